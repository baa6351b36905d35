//! Whether a series moves one way: Mann-Kendall test and Sen's slope.

use statrs::distribution::{ContinuousCDF, Normal};

/// A trend of values in the order given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Trend {
    /// Two-sided probability of so strong an order among values without trend.
    pub p: f64,
    /// Change from the first to the last value by the median slope.
    pub change: f64,
}

/// Fewest values of which a perfect order falls below p = 0.001 in the normal approximation of Kendall's S (p = 0.0008;
/// 0.003 with seven): with fewer, no trend would be reported anyway.
const FEWEST: usize = 8;

/// Mann (1945) and Kendall (1975), with the slope of Sen (1968). `None` with fewer than eight values.
///
/// Ranks are used rather than regression, for the reason that the estimate itself uses ranks: one disturbed slot at the
/// end of a run is not a trend.
pub(crate) fn trend(values: &[f64]) -> Option<Trend> {
    let n = values.len();
    if n < FEWEST {
        return None;
    }
    let mut score = 0i64;
    let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
    for (i, early) in values.iter().enumerate() {
        for (j, late) in values.iter().enumerate().skip(i + 1) {
            score += i64::from(late > early) - i64::from(late < early);
            slopes.push((late - early) / (j - i) as f64);
        }
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let term = |count: usize| (count * (count - 1) * (2 * count + 5)) as f64;
    let ties: f64 = sorted.chunk_by(|a, b| a == b).map(|tied| term(tied.len())).sum();
    let variance = (term(n) - ties) / 18.0;
    let p = if variance > 0.0 && score != 0 {
        let z = (score.abs() - 1) as f64 / variance.sqrt();
        2.0 * Normal::standard().sf(z)
    } else {
        1.0
    };
    slopes.sort_unstable_by(f64::total_cmp);
    let slope = (slopes[(slopes.len() - 1) / 2] + slopes[slopes.len() / 2]) / 2.0;
    Some(Trend { p: p.min(1.0), change: slope * (n - 1) as f64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_scipy() {
        // SciPy 1.17.1: scipy.stats.theilslopes(y, range(12))[0] * 11; and 2 * norm.sf((|S| - 1) / sqrt(var)) with
        // S = 52 counted by numpy. (scipy.stats.kendalltau lacks the continuity correction and gives 3.6e-4.)
        let y = [0.11, 0.05, 0.13, 0.21, 0.17, 0.19, 0.31, 0.22, 0.29, 0.35, 0.30, 0.41];
        let found = trend(&y).unwrap();
        assert!((found.p - 0.0004701692793139693).abs() < 1e-9, "{found:?}");
        assert!((found.change - 0.2966666666666667).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn no_trend_in_constants_or_too_little() {
        assert_eq!(trend(&[1.0; 20]), Some(Trend { p: 1.0, change: 0.0 }));
        assert_eq!(trend(&[1.0, 2.0, 3.0]), None);
    }

    #[test]
    fn a_single_outlier_is_no_trend() {
        let mut values = vec![0.0, 0.01, -0.01, 0.005, -0.005, 0.012, -0.003, 0.002, 0.004, -0.006, 0.001];
        values.push(5.0);
        assert!(trend(&values).unwrap().p > 0.05);
    }
}
