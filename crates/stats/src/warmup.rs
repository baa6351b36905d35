//! When a series of rates has become steady.

/// The index of the first interval from which on the per-interval rates are steady, `None` while they are not yet.
///
/// MSER (White 1997): of all points to cut at, the one that leaves the smallest standard error of the mean of what is
/// left, `sum((x - mean)^2) / count^2`. Cutting away the warm-up makes the sum smaller, cutting away good data makes the
/// count smaller: the minimum balances the two, and nothing has to be tuned. Batches of one interval.
///
/// The rates may be in any unit. `None` when the best cut lies in the last half (the series was mostly warm-up, so what
/// is left cannot be trusted to be steady either; the usual rule with MSER), with fewer than 10 intervals, or when a value is
/// not finite. Cuts that leave fewer than 5 intervals are not tried: a few neighbours that happen to be alike would win
/// (so do Hoad, Robinson and Davies 2010).
pub fn warmup_ended(series_rates: &[f64]) -> Option<usize> {
    let n = series_rates.len();
    if n < FEWEST_INTERVALS || !series_rates.iter().all(|rate| rate.is_finite()) {
        return None;
    }
    // From the end backwards, mean and sum of squares by Welford's update: exact zero for constants.
    let (mut mean, mut squares) = (0.0, 0.0);
    let mut best = (f64::INFINITY, n);
    for (cut, &rate) in series_rates.iter().enumerate().rev() {
        let count = (n - cut) as f64;
        let off = rate - mean;
        mean += off / count;
        squares += off * (rate - mean);
        let error = squares / (count * count);
        // On equal errors the earlier cut wins: it keeps more.
        if n - cut >= FEWEST_LEFT && error <= best.0 {
            best = (error, cut);
        }
    }
    (2 * best.1 < n).then_some(best.1)
}

const FEWEST_INTERVALS: usize = 10;
const FEWEST_LEFT: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    /// Deterministic noise between -1 and 1.
    fn ripple(i: usize) -> f64 {
        ((i * 7919 + 13) % 101) as f64 / 50.0 - 1.0
    }

    #[test]
    fn steady_from_the_start() {
        assert_eq!(warmup_ended(&[5.0; 10]), Some(0));
        let noisy: Vec<f64> = (0..50).map(|i| 1000.0 + 10.0 * ripple(i)).collect();
        assert!(warmup_ended(&noisy).unwrap() <= 10);
    }

    #[test]
    fn a_slow_start_is_cut_off() {
        let rates: Vec<f64> =
            (0..60).map(|i| if i < 12 { 100.0 + 60.0 * i as f64 } else { 1000.0 } + 5.0 * ripple(i)).collect();
        let cut = warmup_ended(&rates).unwrap();
        assert!((12..=20).contains(&cut), "{cut}");
    }

    #[test]
    fn a_burst_at_the_start_is_cut_off() {
        let mut rates = vec![9000.0, 4000.0];
        rates.extend((0..30).map(|i| 1000.0 + 5.0 * ripple(i)));
        let cut = warmup_ended(&rates).unwrap();
        assert!((2..=8).contains(&cut), "{cut}");
    }

    #[test]
    fn still_rising_is_not_steady() {
        let rising: Vec<f64> = (0..40).map(|i| 100.0 + 10.0 * f64::from(i)).collect();
        assert_eq!(warmup_ended(&rising), None);
        let just_settled: Vec<f64> = (0..40).map(|i| 1000.0 * (f64::from(i) / 30.0).min(1.0)).collect();
        assert_eq!(warmup_ended(&just_settled), None);
    }

    #[test]
    fn too_little_to_tell() {
        assert_eq!(warmup_ended(&[]), None);
        assert_eq!(warmup_ended(&[1.0; 9]), None);
        assert_eq!(warmup_ended(&[f64::NAN; 20]), None);
    }

    #[test]
    fn the_minimum_is_whites() {
        // numpy: argmin over d of x[d:].var() / (n - d), d up to n - 5.
        let x = [3.0, 8.0, 9.0, 10.0, 10.5, 9.5, 10.2, 9.4, 10.1, 9.8, 10.4, 9.6, 10.3];
        assert_eq!(warmup_ended(&x), Some(3));
    }
}
