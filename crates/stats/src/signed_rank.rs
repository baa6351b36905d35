//! Hodges-Lehmann estimate and Wilcoxon signed-rank interval.

use statrs::distribution::{ContinuousCDF, Normal};

/// A closed interval, low end first, usually of log-ratios.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Span {
    /// Low end.
    pub(crate) low: f64,
    /// High end.
    pub(crate) high: f64,
}

impl Span {
    /// Half of the width.
    pub(crate) fn half_width(self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// The smallest interval that holds both.
    pub(crate) fn union(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// Whether the value lies within, ends included.
    pub(crate) fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// The averages of every pair of values, a value with itself included (Walsh averages), in rising order.
///
/// Their median is the estimate of Hodges and Lehmann (1963): for symmetric noise about as sharp as the mean when the
/// noise is normal (asymptotic efficiency 3/pi = 0.955) and never less sharp than 0.864 of it, while one wild value of
/// ten does not move it far. Their order statistics are the ends of the interval that inverts Wilcoxon's signed-rank
/// test (Hollander, Wolfe and Chicken 2014, chapter 3). No shape of noise is assumed beyond
/// symmetry, which differences of two equally distributed values have by construction: an A/A comparison meets the
/// assumption exactly.
#[derive(Debug, Clone)]
pub(crate) struct Walsh {
    /// Average and the places of the two values in the input; n (n + 1) / 2 of them.
    averages: Vec<(f64, u32, u32)>,
    values: usize,
}

impl Walsh {
    /// Of these values, all finite; takes n (n + 1) / 2 * 16 bytes.
    pub(crate) fn new(values: &[f64]) -> Self {
        debug_assert!(values.iter().all(|v| v.is_finite()), "pairing drops what is not finite");
        let mut averages = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
        for (i, a) in values.iter().enumerate() {
            for (j, b) in values.iter().enumerate().take(i + 1) {
                averages.push(((a + b) / 2.0, i as u32, j as u32));
            }
        }
        averages.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        Self { averages, values: values.len() }
    }

    /// The Hodges-Lehmann estimate; `None` without values.
    pub(crate) fn median(&self) -> Option<f64> {
        let count = self.averages.len();
        let upper = self.averages.get(count / 2)?.0;
        Some(if count % 2 == 1 { upper } else { (self.averages[count / 2 - 1].0 + upper) / 2.0 })
    }

    /// The interval that covers the centre with at least this confidence (such as 0.95).
    ///
    /// Exact for up to 50 values, by the normal approximation with continuity correction beyond. `None`
    /// when no interval of finite length has the confidence, see [`pairs_needed`]. With tied values the closed
    /// interval given here covers at least as often (Noether 1967).
    pub(crate) fn interval(&self, confidence: f64) -> Option<Span> {
        let place = critical_place(self.values, 1.0 - confidence)?;
        let count = self.averages.len();
        Some(Span { low: self.averages[place - 1].0, high: self.averages[count - place].0 })
    }

    /// Averages in rising order, with the places of their two values in the input.
    pub(crate) fn averages(&self) -> &[(f64, u32, u32)] {
        &self.averages
    }
}

/// Fewest values for which an interval of this confidence exists: 6 at 0.95, 8 at 0.99, 11 at 0.999.
///
/// The widest interval, from the smallest to the largest value, misses the centre only when all n values lie on one
/// side of it: in 2 of 2^n cases. `None` for a confidence that is not between 0 and 1.
pub(crate) fn pairs_needed(confidence: f64) -> Option<u32> {
    let alpha = 1.0 - confidence;
    (alpha > 0.0 && alpha < 1.0).then(|| (1.0 - alpha.log2()).ceil().max(1.0) as u32)
}

/// Largest number of values for which the null distribution is counted out: its 2^n sign patterns then still fit a
/// `u64` and are exact in an `f64`. Beyond, the normal approximation is off by at most one place of 450.
const EXACT_UP_TO: usize = 50;

/// The largest k such that the k-th smallest and k-th largest Walsh averages enclose the centre with confidence
/// `1 - alpha`: the largest k with P(T+ <= k - 1) <= alpha / 2. `None` when not even k = 1 does.
fn critical_place(n: usize, alpha: f64) -> Option<usize> {
    if n == 0 || !(alpha > 0.0 && alpha < 1.0) {
        return None;
    }
    if n <= EXACT_UP_TO {
        let patterns = (1u64 << n) as f64;
        let mut below = 0u64;
        let mut place = 0;
        for count in rank_sum_counts(n) {
            below += count;
            // A relative rounding error of 1e-12 must not turn 2 of 64 into more than 1/32.
            if below as f64 / patterns > alpha / 2.0 * (1.0 + 1e-12) {
                break;
            }
            place += 1;
        }
        (place > 0).then_some(place)
    } else {
        let n = n as f64;
        let mean = n * (n + 1.0) / 4.0;
        let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        // P(T+ <= t) is near Phi((t + 1/2 - mean) / deviation).
        let largest = mean + deviation * normal_quantile(alpha / 2.0) - 0.5;
        (largest >= 0.0).then(|| largest.floor() as usize + 1)
    }
}

/// In how many of the 2^n sign patterns the positive ranks 1..=n sum up to 0, 1, 2, ...
fn rank_sum_counts(n: usize) -> Vec<u64> {
    let most = n * (n + 1) / 2;
    let mut counts = vec![0u64; most + 1];
    counts[0] = 1;
    for rank in 1..=n {
        for sum in (rank..=most).rev() {
            counts[sum] += counts[sum - rank];
        }
    }
    counts
}

/// The quantile of the standard normal distribution; `p` between 0 and 1.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    /// Hollander and Wolfe, Nonparametric Statistical Methods, chapter 3: depression scores, after minus before.
    const DEPRESSION: [f64; 9] = [-0.952, 0.147, -1.022, -0.430, -0.620, -0.590, -0.490, 0.080, -0.010];

    #[test]
    fn the_textbook_example() {
        let walsh = Walsh::new(&DEPRESSION);
        // As given there, and by numpy's sorted Walsh averages: estimate -0.46, interval (-0.786, -0.010) of confidence 0.961.
        assert!((walsh.median().unwrap() + 0.46).abs() < 1e-9);
        let interval = walsh.interval(0.95).unwrap();
        assert!((interval.low + 0.786).abs() < 1e-9 && (interval.high + 0.010).abs() < 1e-9, "{interval:?}");
    }

    #[test]
    fn null_distribution_agrees_with_published_tables() {
        // Wilcoxon's table of critical values for alpha/2 = 0.025 (T+ <= table value; place is one more), as textbooks
        // print it and numpy's exact counting confirms; for alpha/2 = 0.005 likewise.
        for (n, table) in
            [(6, 0), (7, 2), (8, 3), (9, 5), (10, 8), (12, 13), (15, 25), (20, 52), (25, 89), (30, 137), (50, 434)]
        {
            assert_eq!(critical_place(n, 0.05), Some(table + 1), "n = {n}");
        }
        for (n, table) in [(8, 0), (10, 3), (15, 15), (20, 37), (30, 109), (50, 373)] {
            assert_eq!(critical_place(n, 0.01), Some(table + 1), "n = {n}");
        }
        assert_eq!(critical_place(5, 0.05), None);
        assert_eq!(critical_place(0, 0.05), None);
    }

    #[test]
    fn counts_sum_up_to_all_sign_patterns() {
        assert_eq!(rank_sum_counts(3), [1, 1, 1, 2, 1, 1, 1]);
        for n in [1, 10, EXACT_UP_TO] {
            assert_eq!(rank_sum_counts(n).iter().sum::<u64>(), 1 << n);
        }
    }

    #[test]
    fn the_normal_approximation_takes_over_smoothly() {
        // numpy's exact counting for n = 51 and 60: largest k with P(T+ <= k - 1) <= 0.025.
        for (n, exact) in [(51, 454), (60, 649), (100, 1956)] {
            let place = critical_place(n, 0.05).unwrap();
            assert!(place.abs_diff(exact) <= 1, "n = {n}: {place} for {exact}");
        }
    }

    #[test]
    fn agrees_with_scipy() {
        // SciPy 1.17.1, scipy.stats.wilcoxon(x - theta, method="exact").pvalue: 0.04248 with theta 1e-9 outside of
        // either end and 0.05225 with theta 1e-9 inside; numpy's median of the Walsh averages.
        let walsh =
            Walsh::new(&[0.05, 0.059, 0.0418, 0.0233, 0.0364, 0.0203, 0.0518, 0.0902, 0.0352, 0.0314, 0.0647, 0.0607]);
        assert!((walsh.median().unwrap() - 0.045975).abs() < 1e-12);
        let interval = walsh.interval(0.95).unwrap();
        assert!((interval.low - 0.0339).abs() < 1e-12 && (interval.high - 0.0607).abs() < 1e-12, "{interval:?}");
    }

    #[test]
    fn fewest_pairs_for_a_confidence() {
        assert_eq!(pairs_needed(0.95), Some(6));
        assert_eq!(pairs_needed(0.99), Some(8));
        assert_eq!(pairs_needed(0.999), Some(11));
        assert_eq!(pairs_needed(1.0), None);
        assert_eq!(pairs_needed(f64::NAN), None);
        for confidence in [0.5, 0.8, 0.9, 0.95, 0.96875, 0.99, 0.999] {
            let n = pairs_needed(confidence).unwrap() as usize;
            assert!(critical_place(n, 1.0 - confidence).is_some(), "{confidence}");
            assert!(critical_place(n - 1, 1.0 - confidence).is_none(), "{confidence}");
        }
    }

    #[test]
    fn the_interval_covers_as_often_as_it_says() {
        let mut random = Pcg64::seed_from_u64(4);
        // Box and Muller 1958.
        let normal = |random: &mut Pcg64| {
            let (u, v) = (1.0 - random.random::<f64>(), random.random::<f64>());
            (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
        };
        let student3 = |random: &mut Pcg64| {
            let chi_squared: f64 = (0..3).map(|_| normal(random).powi(2)).sum();
            normal(random) / (chi_squared / 3.0).sqrt()
        };
        let runs = 4000;
        for n in [6, 8, 12, 30, 60] {
            for heavy in [false, true] {
                let mut value = || 0.3 + if heavy { student3(&mut random) } else { normal(&mut random) };
                let mut covers = || {
                    let values: Vec<f64> = (0..n).map(|_| value()).collect();
                    Walsh::new(&values).interval(0.95).unwrap().contains(0.3)
                };
                let share = (0..runs).filter(|_| covers()).count() as f64 / f64::from(runs);
                println!("n = {n:2}, {}: {:.2} % covered", if heavy { "t3" } else { "normal" }, share * 100.0);
                // At least 95 %, less three standard errors of the simulation; not much more than the next finer
                // interval.
                assert!((0.94..=0.98).contains(&share), "n = {n}: {share}");
            }
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn shifting_values_shifts_estimate_and_interval(
            values in proptest::collection::vec(-1.0f64..1.0, 6..60),
            by in -5.0f64..5.0,
        ) {
            let shifted: Vec<f64> = values.iter().map(|value| value + by).collect();
            let (here, there) = (Walsh::new(&values), Walsh::new(&shifted));
            proptest::prop_assert!((here.median().unwrap() + by - there.median().unwrap()).abs() < 1e-9);
            let (a, b) = (here.interval(0.95).unwrap(), there.interval(0.95).unwrap());
            proptest::prop_assert!((a.low + by - b.low).abs() < 1e-9 && (a.high + by - b.high).abs() < 1e-9);
            let narrower = here.interval(0.9).unwrap();
            proptest::prop_assert!(a.low <= narrower.low && narrower.high <= a.high);
        }
    }

    #[test]
    fn nothing_is_known_from_nothing() {
        let walsh = Walsh::new(&[]);
        assert_eq!((walsh.median(), walsh.interval(0.95)), (None, None));
    }
}
