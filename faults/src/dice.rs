//! Chance that can be repeated.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Draws the same from the same beginning.
pub(crate) struct Dice(Pcg64Mcg);

impl Dice {
    /// Those of one draw: neither draws of neighbouring numbers nor those of neighbouring seeds resemble each other.
    pub(crate) fn of(seed: u64, number: u32) -> Dice {
        // Spread by the golden ratio, as SplitMix64 does; the generator mixes further.
        let spread = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31) ^ u64::from(number);
        let mut dice = Dice(Pcg64Mcg::seed_from_u64(spread.wrapping_mul(0xbf58_476d_1ce4_e5b9)));
        dice.0.random::<u64>();
        dice
    }

    /// A number between these two, each octave as likely as the other: strengths and sizes are ratios. Two digits of it
    /// are kept, so that it can be read.
    pub(crate) fn between(&mut self, from: f64, to: f64) -> f64 {
        let (low, high) = (from.min(to).max(f64::MIN_POSITIVE), to.max(from));
        let drawn = low * (high / low).powf(self.0.random::<f64>());
        let unit = 10_f64.powf(drawn.log10().floor() - 1.0);
        ((drawn / unit).round() * unit).clamp(low, high)
    }

    /// As [`Dice::between`], a whole number.
    pub(crate) fn whole(&mut self, from: u32, to: u32) -> u32 {
        (self.between(f64::from(from), f64::from(to)).round() as u32).clamp(from, to)
    }

    /// One of these, which are not none.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.0.random_range(0..from.len())]
    }

    pub(crate) fn one_in(&mut self, n: u32) -> bool {
        self.0.random_ratio(1, n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_beginning_draws_the_same_and_another_one_does_not() {
        let drawn = |seed, number| {
            let mut dice = Dice::of(seed, number);
            (0..4).map(|_| dice.whole(1, 1_000_000)).collect::<Vec<_>>()
        };
        assert_eq!(drawn(1, 1), drawn(1, 1));
        assert_ne!(drawn(1, 1), drawn(1, 2));
        assert_ne!(drawn(1, 1), drawn(2, 1));
    }

    #[test]
    fn numbers_stay_within_their_range_and_octaves_are_alike() {
        let mut dice = Dice::of(5, 5);
        let drawn: Vec<f64> = (0..4000).map(|_| dice.between(1.0, 16.0)).collect();
        assert!(drawn.iter().all(|drawn| (1.0..=16.0).contains(drawn)));
        let low = drawn.iter().filter(|drawn| **drawn < 4.0).count();
        assert!((1800..2200).contains(&low), "{low} of 4000 in the lower half of the octaves");
    }
}
