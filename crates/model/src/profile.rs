//! The shape of a distribution in a few numbers.

use crate::{Distribution, Nanos};
use serde::{Deserialize, Serialize};

/// Quantiles of a distribution at fixed probabilities: enough to see its floor, its modes and its tail, and small
/// enough to be kept with every probe.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// Values recorded.
    pub count: u64,
    /// Values in ns at [`Profile::PROBABILITIES`]; empty when nothing was recorded.
    pub at_ns: Vec<Nanos>,
}

impl Profile {
    /// Where a profile is taken: every twentieth, and the ends more closely.
    pub const PROBABILITIES: [f64; 25] = [
        0.0, 0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9,
        0.95, 0.99, 0.995, 0.999, 1.0,
    ];

    /// The profile of a distribution.
    pub fn of(distribution: &Distribution) -> Self {
        let quantile = |q: f64| {
            if q == 0.0 { distribution.min_ns() } else { distribution.quantile_ns(q) }
        };
        Self { count: distribution.count(), at_ns: Self::PROBABILITIES.into_iter().filter_map(quantile).collect() }
    }

    /// The value at this probability or the next one below it at which the profile was taken, ns.
    pub fn quantile_ns(&self, probability: f64) -> Option<Nanos> {
        let place = Self::PROBABILITIES.partition_point(|&taken| taken <= probability).checked_sub(1)?;
        self.at_ns.get(place).copied()
    }

    /// Share of the values that are at least this long: between the probabilities taken it is interpolated, and it is
    /// `None` when nothing was recorded.
    pub fn share_from(&self, least_ns: Nanos) -> Option<f64> {
        if self.at_ns.len() != Self::PROBABILITIES.len() {
            return None;
        }
        let place = self.at_ns.partition_point(|&value| value < least_ns);
        if place == 0 {
            return Some(1.0);
        }
        let Some(&above) = self.at_ns.get(place) else { return Some(0.0) };
        let below = self.at_ns[place - 1];
        let (p, q) = (Self::PROBABILITIES[place - 1], Self::PROBABILITIES[place]);
        let at = p + (q - p) * (least_ns - below) as f64 / (above - below) as f64;
        Some(1.0 - at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_quantiles_of_two_modes() {
        // 90 ops of 1 ms and 10 of 41 ms.
        let values = (0..100).map(|i| if i < 90 { 1_000_000 } else { 41_000_000 });
        let profile = Profile::of(&Distribution::from_values(values));
        assert_eq!((profile.quantile_ns(0.5), profile.quantile_ns(0.97)), (Some(1_000_000), Some(41_000_000)));
        assert_eq!((profile.quantile_ns(0.0), profile.quantile_ns(1.0)), (Some(1_000_000), Some(41_000_000)));
        let slow = profile.share_from(41_000_000).unwrap();
        assert!((0.05..=0.1).contains(&slow), "{slow}");
        assert_eq!((profile.share_from(500_000), profile.share_from(42_000_000)), (Some(1.0), Some(0.0)));
    }

    #[test]
    fn nothing_recorded_is_not_zero() {
        let nothing = Profile::of(&Distribution::default());
        assert_eq!((nothing.quantile_ns(0.5), nothing.share_from(1)), (None, None));
    }
}
