//! Gunther's universal scaling law: `X(N) = λN / (1 + σ(N - 1) + κN(N - 1))`.
//!
//! λ is the rate of one connection alone, σ the share of work that is done one after the other (Amdahl's law is the case
//! κ = 0), κ what each connection costs each other one. Gunther 2007, "Guerrilla Capacity Planning", chapter 4; the form
//! with λ is that of Schwarz 2015, "Practical Scalability Analysis with the Universal Scalability Law".

use crate::linear;

/// The rate at a number of connections, and how much it counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    pub(crate) connections: f64,
    /// Ops per second, above 0.
    pub(crate) rate: f64,
    /// One over the variance of the rate's logarithm, up to a common factor.
    pub(crate) weight: f64,
}

/// Parameters of the law.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Law {
    pub(crate) lambda: f64,
    pub(crate) sigma: f64,
    pub(crate) kappa: f64,
}

impl Law {
    /// Ops per second at so many connections.
    pub(crate) fn rate(&self, connections: f64) -> f64 {
        let n = connections;
        self.lambda * n / (1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0))
    }

    /// Connections at which the rate is highest; infinite where it never falls.
    pub(crate) fn peak(&self) -> f64 {
        if self.kappa > 0.0 { ((1.0 - self.sigma) / self.kappa).max(1.0).sqrt() } else { f64::INFINITY }
    }
}

/// Fewest numbers of connections that the law is fitted to: it has three parameters, and with no more points than that it
/// passes through all of them, so that nothing could tell whether it describes them.
pub(crate) const FEWEST_POINTS: usize = 4;

/// Fits the law by least squares of relative errors, with σ and κ not below 0. `None` with fewer than
/// [`FEWEST_POINTS`] points, and where a point is no finite number above 0.
///
/// Errors of rates are relative: a slot of 100,000/s scatters by as many percent as one of 100/s. And in `N / X(N)`, the
/// time that a request takes as its connection sees it, the law is linear: `a + b(N - 1) + cN(N - 1)` with `λ = 1/a`,
/// `σ = b/a`, `κ = c/a`. So a search with starting values and step sizes is not needed.
pub(crate) fn fit(points: &[Point]) -> Option<Law> {
    let usable =
        |p: &Point| [p.connections, p.rate, p.weight].iter().all(|v| v.is_finite() && *v > 0.0) && p.connections >= 1.0;
    if points.len() < FEWEST_POINTS || !points.iter().all(usable) {
        return None;
    }
    let rows: Vec<[f64; 3]> =
        points.iter().map(|p| [1.0, p.connections - 1.0, p.connections * (p.connections - 1.0)]).collect();
    let seen: Vec<f64> = points.iter().map(|p| p.connections / p.rate).collect();
    let weights: Vec<f64> = points.iter().map(|p| p.weight).collect();
    let [a, b, c] = linear::fit(&rows, &seen, &weights, &[&[0, 1, 2], &[0, 1], &[0, 2], &[0]])?;
    let law = Law { lambda: 1.0 / a, sigma: b / a, kappa: c / a };
    [law.lambda, law.sigma, law.kappa].iter().all(|v| v.is_finite()).then_some(law)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    const LEVELS: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];

    fn points(law: &Law, levels: &[f64], mut noise: impl FnMut() -> f64) -> Vec<Point> {
        let point = |&connections: &f64| Point { connections, rate: law.rate(connections) * noise(), weight: 1.0 };
        levels.iter().map(point).collect()
    }

    fn relative_error(law: &Law, points: &[Point]) -> f64 {
        // Of what is fitted: of N over the rate.
        points.iter().map(|p| (law.rate(p.connections) / p.rate - 1.0).powi(2)).sum()
    }

    proptest! {
        #[test]
        fn exact_rates_give_their_parameters_back(
            lambda in 0.01..1e6_f64, sigma in 0.0..1.0_f64, kappa in 0.0..0.1_f64, last in 4..8_usize,
        ) {
            let law = Law { lambda, sigma, kappa };
            let found = fit(&points(&law, &LEVELS[..last], || 1.0)).unwrap();
            prop_assert!((found.lambda / lambda - 1.0).abs() < 1e-6, "{found:?}");
            prop_assert!((found.sigma - sigma).abs() < 1e-6 && (found.kappa - kappa).abs() < 1e-6, "{found:?}");
        }

        #[test]
        fn no_neighbour_within_the_bounds_fits_better(
            sigma in 0.0..0.5_f64, kappa in 0.0..0.01_f64, seed in any::<u64>(), noise in 0.001..0.1_f64,
        ) {
            let mut random = Pcg64::seed_from_u64(seed);
            let law = Law { lambda: 1000.0, sigma, kappa };
            let points = points(&law, &LEVELS, || 1.0 + noise * (random.random::<f64>() - 0.5));
            let found = fit(&points).unwrap();
            prop_assert!(found.sigma >= 0.0 && found.kappa >= 0.0 && found.lambda > 0.0, "{found:?}");
            // The quasi-likelihood's minimum is not that of the squares of relative errors, but as near as the noise is
            // small: no step of a hundredth of the parameters may make these smaller by more than that allows.
            let best = relative_error(&found, &points);
            for (l, s, k) in [(0.01, 0.0, 0.0), (0.0, 0.01, 0.0), (0.0, 0.0, 0.01)] {
                for sign in [-1.0, 1.0] {
                    let near = Law {
                        lambda: found.lambda * (1.0 + sign * l),
                        sigma: found.sigma * (1.0 + sign * s),
                        kappa: found.kappa * (1.0 + sign * k),
                    };
                    prop_assert!(relative_error(&near, &points) > best * (1.0 - 3.0 * noise) - 1e-12, "{near:?} {found:?}");
                }
            }
        }

        #[test]
        fn nothing_makes_it_panic(values in proptest::collection::vec((any::<f64>(), any::<f64>(), any::<f64>()), 0..9)) {
            let points: Vec<Point> = values
                .into_iter()
                .map(|(connections, rate, weight)| Point { connections, rate, weight })
                .collect();
            if let Some(law) = fit(&points) {
                prop_assert!(law.lambda > 0.0 && law.sigma >= 0.0 && law.kappa >= 0.0, "{law:?}");
            }
        }
    }

    #[test]
    fn better_than_linear_is_held_at_linear() {
        // Each doubling brings 2.2 times the rate: σ would have to be negative.
        let points: Vec<Point> = (0..6)
            .map(|i| Point { connections: 2.0_f64.powi(i), rate: 100.0 * 2.2_f64.powi(i), weight: 1.0 })
            .collect();
        let law = fit(&points).unwrap();
        assert_eq!((law.sigma, law.kappa, law.peak()), (0.0, 0.0, f64::INFINITY));
    }

    #[test]
    fn a_falling_rate_has_a_peak() {
        let law = Law { lambda: 100.0, sigma: 0.19, kappa: 0.01 };
        assert!((law.peak() - 9.0).abs() < 1e-12);
        assert!(law.rate(9.0) > law.rate(8.0) && law.rate(9.0) > law.rate(10.0));
        assert_eq!(Law { sigma: 2.0, ..law }.peak(), 1.0);
    }

    #[test]
    fn agrees_with_the_published_example() {
        // Queries per second of a database server by threads, 1 to 32; Schwartz 2015 fits λ = 995.6486, σ = 0.02671591,
        // κ = 7.690945e-4 by least squares of absolute errors, to which relative ones come near when they are weighted by
        // the square of the rate.
        let rates = [
            955.16, 1878.91, 2688.01, 3548.68, 4315.54, 5130.43, 5931.37, 6531.08, 7219.8, 7867.61, 8278.71, 8646.7,
            9047.84, 9426.55, 9645.37, 9897.24, 10097.6, 10240.5, 10532.39, 10798.52, 11151.43, 11518.63, 11806.0,
            12089.37, 12075.41, 12177.29, 12211.41, 12158.93, 12155.27, 12118.04, 12140.4, 12074.39,
        ];
        let points: Vec<Point> = (1..=32)
            .zip(rates)
            .map(|(n, rate)| Point { connections: f64::from(n), rate, weight: rate * rate })
            .collect();
        let law = fit(&points).unwrap();
        assert!((law.lambda / 995.6486 - 1.0).abs() < 0.001, "{law:?}");
        assert!((law.sigma / 0.02671591 - 1.0).abs() < 0.005, "{law:?}");
        assert!((law.kappa / 7.690945e-4 - 1.0).abs() < 0.005, "{law:?}");
        assert!((34.0..37.0).contains(&law.peak()), "{law:?}");
    }

    #[test]
    fn three_points_are_too_few() {
        let law = Law { lambda: 1.0, sigma: 0.1, kappa: 0.1 };
        assert_eq!(fit(&points(&law, &LEVELS[..3], || 1.0)), None);
    }
}
