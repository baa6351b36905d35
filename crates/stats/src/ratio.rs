//! Ratios of sums over slots, such as a counter's growth per op, and how sure they and their differences are.

use crate::Estimate;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A ratio of two sums over slots with its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// The ratio itself.
    pub mid: f64,
    /// Its standard error.
    pub error: f64,
    /// Slots that it was summed over.
    pub slots: u32,
}

impl Ratio {
    /// The ratio of the sums of y and x over slots, from these and from the sums of their squares and products; `None` where
    /// nothing tells its scatter, or x is zero.
    ///
    /// The error is that of the linearised ratio (Cochran 1977, section 6.4): the residuals `y - R x` of slots are what
    /// scatters, so a long slot counts for what it is.
    pub fn of_sums(slots: u32, [x, y]: [f64; 2], [xx, xy, yy]: [f64; 3]) -> Option<Self> {
        if slots < 2 || x <= 0.0 {
            return None;
        }
        let mid = y / x;
        // What rounding leaves of a sum of squares may be below zero.
        let residuals = (yy - 2.0 * mid * xy + mid * mid * xx).max(0.0);
        let count = f64::from(slots);
        let error = (residuals * count / (count - 1.0)).sqrt() / x;
        [mid, error].iter().all(|value| value.is_finite()).then_some(Self { mid, error, slots })
    }

    /// Its own interval, by Student's t. `None` for a confidence that is none.
    pub fn interval(self, confidence: f64) -> Option<Estimate> {
        Some(Estimate::around(self.mid, quantile(f64::from(self.slots) - 1.0, confidence)? * self.error))
    }

    /// How much larger it is than `factor` times another one, with an interval by Welch's t.
    pub fn beyond(self, factor: f64, other: Self, confidence: f64) -> Option<Estimate> {
        let (ours, theirs) = (self.error.powi(2), (factor * other.error).powi(2));
        let mid = self.mid - factor * other.mid;
        let error = (ours + theirs).sqrt();
        if error == 0.0 {
            return mid.is_finite().then(|| Estimate::around(mid, 0.0));
        }
        let freedom = |slots: u32| f64::from(slots) - 1.0;
        // Welch 1947 and Satterthwaite 1946.
        let freedom =
            (ours + theirs).powi(2) / (ours.powi(2) / freedom(self.slots) + theirs.powi(2) / freedom(other.slots));
        Some(Estimate::around(mid, quantile(freedom, confidence)? * error))
    }
}

fn quantile(freedom: f64, confidence: f64) -> Option<f64> {
    let quantile = StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(f64::midpoint(1.0, confidence));
    quantile.is_finite().then_some(quantile)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(slots: &[(f64, f64)]) -> Option<Ratio> {
        let sum = |of: fn(f64, f64) -> f64| slots.iter().map(|&(x, y)| of(x, y)).sum::<f64>();
        let squares = [sum(|x, _| x * x), sum(|x, y| x * y), sum(|_, y| y * y)];
        Ratio::of_sums(slots.len() as u32, [sum(|x, _| x), sum(|_, y| y)], squares)
    }

    #[test]
    fn the_error_is_that_of_residuals_and_of_nothing_else() {
        // By hand: R = 2; residuals 1, -1, 0; 2 * 3/2 = 3, its root over 30.
        let ratio = of(&[(10.0, 21.0), (10.0, 19.0), (10.0, 20.0)]).unwrap();
        assert_eq!((ratio.mid, ratio.slots), (2.0, 3));
        assert!((ratio.error - 3f64.sqrt() / 30.0).abs() < 1e-12, "{ratio:?}");
        // Slots of other lengths with the same ratio have no residuals.
        assert!(of(&[(1.0, 2.0), (100.0, 200.0), (7.0, 14.0)]).unwrap().error < 1e-9);
        assert_eq!((of(&[(10.0, 20.0)]), of(&[(0.0, 1.0), (0.0, 2.0)])), (None, None));
    }

    #[test]
    fn differences_have_the_intervals_of_welch() {
        // By hand: a standard error of 0.43970 with 3.5610 degrees of freedom, of which t(0.975) is 2.91677.
        let (ours, theirs) = ([20.1, 19.9, 20.3, 19.7], [18.0, 19.0, 17.0, 18.4]);
        let ratio = |values: [f64; 4]| of(&values.map(|value| (1.0, value))).unwrap();
        let difference = ratio(ours).beyond(1.0, ratio(theirs), 0.95).unwrap();
        assert!((difference.mid - 1.9).abs() < 1e-12, "{difference:?}");
        assert!((difference.low() - 0.61751).abs() < 1e-4, "{difference:?}");
        let same = ratio([2.0; 4]).beyond(2.0, ratio([1.0; 4]), 0.99).unwrap();
        assert_eq!((same.mid, same.half()), (0.0, 0.0));
    }
}
