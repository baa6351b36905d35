//! A latency distribution as it is kept: what an HDR histogram has recorded, without its empty buckets.

use crate::Nanos;
use serde::{Deserialize, Serialize};

/// Recorded lengths of time, as sorted `(value, count)` pairs, 3 significant digits each.
///
/// The recording itself is done in an HDR histogram by the generator. This is its snapshot: some hundred pairs where
/// the histogram has 20,000 buckets, so that a run of hundreds of slots can be kept whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution {
    /// Sum of all recorded values in ns, exact (not rounded to buckets).
    pub sum_ns: u128,
    /// Smallest recorded value in ns, exact; 0 when nothing was recorded (see [`Distribution::min_ns`]).
    min_ns: Nanos,
    /// Largest recorded value in ns, exact.
    max_ns: Nanos,
    /// `(highest value equivalent to the bucket in ns, count)`, values strictly rising, counts above zero.
    buckets: Vec<(Nanos, u64)>,
}

impl Distribution {
    /// Builds a distribution from buckets in rising order of value; empty buckets are left out.
    pub fn from_buckets(
        buckets: impl IntoIterator<Item = (Nanos, u64)>,
        sum_ns: u128,
        min_ns: Nanos,
        max_ns: Nanos,
    ) -> Self {
        let buckets: Vec<_> = buckets.into_iter().filter(|&(_, count)| count > 0).collect();
        debug_assert!(buckets.windows(2).all(|pair| pair[0].0 < pair[1].0), "buckets must rise");
        if buckets.is_empty() { Self::default() } else { Self { sum_ns, min_ns, max_ns, buckets } }
    }

    /// A distribution of exactly these values, none rounded; for tests and for very few observations.
    pub fn from_values(values: impl IntoIterator<Item = Nanos>) -> Self {
        let mut values: Vec<Nanos> = values.into_iter().collect();
        values.sort_unstable();
        let (Some(&min_ns), Some(&max_ns)) = (values.first(), values.last()) else { return Self::default() };
        let sum_ns = values.iter().map(|&v| u128::from(v)).sum();
        let mut buckets: Vec<(Nanos, u64)> = Vec::new();
        for value in values {
            match buckets.last_mut() {
                Some((last, count)) if *last == value => *count += 1,
                _ => buckets.push((value, 1)),
            }
        }
        Self { sum_ns, min_ns, max_ns, buckets }
    }

    /// How many values were recorded.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|&(_, count)| count).sum()
    }

    /// True when nothing was recorded: then no quantile, mean or extreme exists.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// Smallest value in ns, or `None` when nothing was recorded: unknown is never zero.
    pub fn min_ns(&self) -> Option<Nanos> {
        (!self.is_empty()).then_some(self.min_ns)
    }

    /// Largest value in ns, exact.
    pub fn max_ns(&self) -> Option<Nanos> {
        (!self.is_empty()).then_some(self.max_ns)
    }

    /// Arithmetic mean in ns, exact.
    pub fn mean_ns(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum_ns as f64 / count as f64)
    }

    /// The smallest recorded value that at least a share `q` (0 to 1) of all values do not exceed, in ns.
    ///
    /// This is the inverse of the empirical distribution function (type 1 of Hyndman and Fan 1996), as HDR
    /// histograms define it; no interpolation, so that the answer is always a value that was seen (to 3 digits).
    pub fn quantile_ns(&self, q: f64) -> Option<Nanos> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = ((q.clamp(0.0, 1.0) * count as f64).ceil() as u64).clamp(1, count);
        let mut seen = 0;
        for &(value, n) in &self.buckets {
            seen += n;
            if seen >= rank {
                // A bucket's upper edge may lie above the largest value really seen.
                return Some(value.min(self.max_ns));
            }
        }
        Some(self.max_ns)
    }

    /// The `(value in ns, count)` pairs, values rising.
    pub fn buckets(&self) -> &[(Nanos, u64)] {
        &self.buckets
    }

    /// Adds everything that `other` has recorded.
    pub fn merge(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            *self = other.clone();
            return;
        }
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        let mut merged = Vec::with_capacity(self.buckets.len() + other.buckets.len());
        let (mut left, mut right) = (self.buckets.iter().peekable(), other.buckets.iter().peekable());
        loop {
            match (left.peek(), right.peek()) {
                (Some(&&(a, n)), Some(&&(b, m))) if a == b => {
                    merged.push((a, n + m));
                    left.next();
                    right.next();
                }
                (Some(&&(a, n)), Some(&&(b, _))) if a < b => {
                    merged.push((a, n));
                    left.next();
                }
                (_, Some(&&pair)) => {
                    merged.push(pair);
                    right.next();
                }
                (Some(&&pair), None) => {
                    merged.push(pair);
                    left.next();
                }
                (None, None) => break,
            }
        }
        self.buckets = merged;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_recorded_has_no_figures() {
        let empty = Distribution::default();
        assert_eq!((empty.count(), empty.quantile_ns(0.5), empty.mean_ns(), empty.min_ns()), (0, None, None, None));
    }

    #[test]
    fn quantiles_are_values_that_were_seen() {
        let d = Distribution::from_values([10, 20, 30, 40]);
        assert_eq!(d.quantile_ns(0.0), Some(10));
        assert_eq!(d.quantile_ns(0.25), Some(10));
        assert_eq!(d.quantile_ns(0.26), Some(20));
        assert_eq!(d.quantile_ns(0.5), Some(20));
        assert_eq!(d.quantile_ns(0.99), Some(40));
        assert_eq!(d.quantile_ns(1.0), Some(40));
        assert_eq!(d.mean_ns(), Some(25.0));
    }

    #[test]
    fn merging_is_the_same_as_recording_together() {
        let mut left = Distribution::from_values([5, 7, 7, 100]);
        left.merge(&Distribution::from_values([1, 7, 50, 200]));
        assert_eq!(left, Distribution::from_values([1, 5, 7, 7, 7, 50, 100, 200]));
        left.merge(&Distribution::default());
        assert_eq!(left.count(), 8);
    }

    #[test]
    fn a_bucket_edge_never_exceeds_the_largest_value_seen() {
        let d = Distribution::from_buckets([(1023, 1), (2047, 1)], 3000, 1000, 2000);
        assert_eq!(d.quantile_ns(1.0), Some(2000));
    }
}
