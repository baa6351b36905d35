//! Which rows are asked for: the distributions of sysbench, with its parameters.
//!
//! `special` is what sysbench 1.0 takes where nothing is said, `uniform` what 1.1 does; `zipfian` came with 1.1. As there, hot
//! rows lie beside each other (at the beginning, or in the middle), and so share pages.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;

/// How keys are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Keys {
    /// Each as often as the other.
    Uniform,
    /// The mean of twelve uniform numbers: mostly near the middle.
    Gaussian,
    /// 75 of 100 fall into 1 % of the rows, in the middle; the others are `Gaussian`.
    Special,
    /// The first fifth gets four fifths: u to the power of ln 0.2 / ln 0.8.
    Pareto,
    /// The k-th row with a weight of k to the power of -0.8.
    Zipfian(Zipf),
}

/// Numbers that a mean is taken of (`--rand-spec-iter`).
const ITERATIONS: u32 = 12;
/// Share of the rows that is special (`--rand-spec-pct`), and share of the draws that fall there (`--rand-spec-res`).
const SPECIAL_SHARE: f64 = 0.01;
const SPECIAL_DRAWS: f64 = 0.75;
/// `--rand-pareto-h`.
const PARETO_H: f64 = 0.2;
/// `--rand-zipfian-exp`.
const ZIPF_EXPONENT: f64 = 0.8;

impl Keys {
    /// By its name, for rows 1 to `rows`.
    pub(crate) fn named(name: &str, rows: u64) -> Self {
        match name {
            "uniform" => Self::Uniform,
            "gaussian" => Self::Gaussian,
            "pareto" => Self::Pareto,
            "zipfian" => Self::Zipfian(Zipf::new(rows)),
            _ => Self::Special,
        }
    }

    /// A number from `least` to `most`.
    pub(crate) fn draw(&self, rng: &mut Pcg64Mcg, least: i64, most: i64) -> i64 {
        let span = (most - least) as f64;
        let mut uniform = || rng.random::<f64>();
        let beyond = match self {
            Self::Uniform => uniform() * (span + 1.0),
            Self::Gaussian => mean(&mut uniform) * (span + 1.0),
            Self::Special => {
                let drawn = uniform();
                if drawn < 1.0 - SPECIAL_DRAWS {
                    mean(&mut uniform) * span
                } else {
                    drawn * (span * SPECIAL_SHARE + 1.0) + span / 2.0 - span * SPECIAL_SHARE / 2.0
                }
            }
            Self::Pareto => (span + 1.0) * uniform().powf(PARETO_H.ln() / (1.0 - PARETO_H).ln()),
            Self::Zipfian(zipf) => zipf.draw(&mut uniform, span as u64 + 1) - 1.0,
        };
        (least + beyond as i64).min(most)
    }

    /// Share of the draws from `rows` rows that fall below a place in them, from 0 to 1.
    pub(crate) fn share_below(&self, place: f64, rows: u64) -> f64 {
        let place = place.clamp(0.0, 1.0);
        match self {
            Self::Uniform => place,
            Self::Gaussian => mean_below(place),
            Self::Special => {
                let [first, last] = SPECIAL_PLACES;
                let special = ((place - first) / (last - first)).clamp(0.0, 1.0);
                (1.0 - SPECIAL_DRAWS) * mean_below(place) + SPECIAL_DRAWS * special
            }
            Self::Pareto => place.powf((1.0 - PARETO_H).ln() / PARETO_H.ln()),
            Self::Zipfian(_) => {
                let weights = |rows: f64| area(rows + 0.5) - area(0.5);
                weights(place * rows as f64) / weights(rows as f64)
            }
        }
    }

    /// Places where how often rows are drawn changes at once.
    pub(crate) fn edges(&self) -> &'static [f64] {
        if *self == Self::Special { &SPECIAL_PLACES } else { &[] }
    }
}

/// Where special rows lie: what is drawn for them is not from 0 but from 1 - [`SPECIAL_DRAWS`] to 1, as sysbench has it.
const SPECIAL_PLACES: [f64; 2] =
    [0.5 - SPECIAL_SHARE / 2.0 + (1.0 - SPECIAL_DRAWS) * SPECIAL_SHARE, 0.5 + SPECIAL_SHARE / 2.0];

/// How often [`mean`] is below a place: the distribution of Irwin and Hall, of the half where its sum has few terms.
fn mean_below(place: f64) -> f64 {
    if place > 0.5 {
        return 1.0 - mean_below(1.0 - place);
    }
    let sum = place * f64::from(ITERATIONS);
    let (mut below, mut choices, mut factorial) = (0.0, 1.0, 1.0);
    for term in 0..ITERATIONS {
        let distance = sum - f64::from(term);
        if distance <= 0.0 {
            break;
        }
        below += if term % 2 == 0 { choices } else { -choices } * distance.powi(ITERATIONS as i32);
        choices *= f64::from(ITERATIONS - term) / f64::from(term + 1);
    }
    for factor in 1..=ITERATIONS {
        factorial *= f64::from(factor);
    }
    (below / factorial).clamp(0.0, 1.0)
}

/// The mean of some uniform numbers.
fn mean(uniform: &mut dyn FnMut() -> f64) -> f64 {
    (0..ITERATIONS).map(|_| uniform()).sum::<f64>() / f64::from(ITERATIONS)
}

/// Draws from Zipf's law by rejection-inversion (Hörmann and Derflinger 1996): no table, whatever the number of rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Zipf {
    /// The number of rows, and what belongs to it.
    rows: u64,
    last: f64,
    first: f64,
    /// Below this distance a draw is accepted without a look at the curve.
    sure: f64,
}

impl Zipf {
    fn new(rows: u64) -> Self {
        let sure = 2.0 - inverse(area(2.5) - weight(2.0));
        Self { rows, last: area(rows as f64 + 0.5), first: area(1.5) - 1.0, sure }
    }

    /// From 1 to `rows`.
    fn draw(&self, uniform: &mut dyn FnMut() -> f64, rows: u64) -> f64 {
        let last = if rows == self.rows { self.last } else { area(rows as f64 + 0.5) };
        loop {
            let under = last + uniform() * (self.first - last);
            let x = inverse(under);
            let row = (x + 0.5).floor().clamp(1.0, rows as f64);
            if row - x <= self.sure || under >= area(row + 0.5) - weight(row) {
                return row;
            }
        }
    }
}

/// The weight of a place.
fn weight(x: f64) -> f64 {
    x.powf(-ZIPF_EXPONENT)
}

/// The integral of [`weight`] from 1, and its inverse.
fn area(x: f64) -> f64 {
    (x.powf(1.0 - ZIPF_EXPONENT) - 1.0) / (1.0 - ZIPF_EXPONENT)
}

fn inverse(area: f64) -> f64 {
    (area * (1.0 - ZIPF_EXPONENT) + 1.0).max(0.0).powf(1.0 / (1.0 - ZIPF_EXPONENT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    const ROWS: u64 = 10_000;
    const DRAWS: usize = 200_000;

    fn drawn(name: &str) -> Vec<i64> {
        let (keys, mut rng) = (Keys::named(name, ROWS), Pcg64Mcg::seed_from_u64(7));
        (0..DRAWS).map(|_| keys.draw(&mut rng, 1, ROWS as i64)).collect()
    }

    fn share(drawn: &[i64], least: i64, most: i64) -> f64 {
        drawn.iter().filter(|key| (least..=most).contains(*key)).count() as f64 / drawn.len() as f64
    }

    #[test]
    fn no_key_is_outside_and_shares_are_those_of_the_definitions() {
        for name in ["uniform", "gaussian", "special", "pareto", "zipfian"] {
            let drawn = drawn(name);
            assert!(drawn.iter().all(|key| (1..=ROWS as i64).contains(key)), "{name}");
        }
        assert!((share(&drawn("uniform"), 1, 1000) - 0.1).abs() < 0.005);
        // A mean of twelve uniform numbers has a deviation of 1/12: 68 % within one.
        assert!((share(&drawn("gaussian"), 4167, 5833) - 0.683).abs() < 0.01);
        let special = drawn("special");
        // Three quarters, and what of the others is in the middle anyway.
        assert!((share(&special, 4950, 5053) - 0.77).abs() < 0.02, "{}", share(&special, 4950, 5053));
        // P(u^p <= 0.2) = 0.2^(1/p) with p = ln 0.2 / ln 0.8 is 0.8.
        assert!((share(&drawn("pareto"), 1, 2000) - 0.8).abs() < 0.005);
        let weights = |least: u32, most: u32| (least..=most).map(|row| weight(f64::from(row))).sum::<f64>();
        let expected = weights(1, 10) / weights(1, ROWS as u32);
        assert!((share(&drawn("zipfian"), 1, 10) - expected).abs() < 0.005);
    }
}
