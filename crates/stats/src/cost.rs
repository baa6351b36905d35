//! Fixed cost and cost per byte: T(n) = a + b n.

use crate::Span;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// One point of a size sweep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostPoint {
    /// Size in bytes.
    pub bytes: f64,
    /// Time of one op of this size in ns.
    pub time_ns: f64,
    /// Weight: proportional to one over the variance of `time_ns`; the scale does not matter. For times that are
    /// equally sharp in percent, `1 / time_ns^2`.
    pub weight: f64,
}

/// A straight line through a size sweep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Time of an op of no bytes, ns. May come out negative where the line does not fit or the points scatter.
    pub fixed_ns: f64,
    /// Further time for each byte, ns.
    pub per_byte_ns: f64,
    /// 95 % interval of `fixed_ns`; `None` from two points, which every line fits.
    pub fixed_interval: Option<Span>,
    /// 95 % interval of `per_byte_ns`, likewise.
    pub per_byte_interval: Option<Span>,
    /// Largest distance of a point from the line as a share of the point: above some 0.1 the costs are not a line.
    pub misfit: f64,
}

/// Fits T(n) = a + b n by weighted least squares, with Student's t intervals (n - 2 degrees of freedom).
///
/// Points with a value that is not finite, a negative size, or a weight or time that is not above zero are left out.
/// `None` when fewer than two different sizes remain: a line needs two. The few points of a sweep are medians over slots
/// already, so the robustness is where the noise is, and least squares can use the weights.
pub fn linear_cost(points: &[CostPoint]) -> Option<Cost> {
    let points: Vec<&CostPoint> = points
        .iter()
        .filter(|p| p.bytes.is_finite() && p.bytes >= 0.0 && p.time_ns.is_finite() && p.time_ns > 0.0)
        .filter(|p| p.weight.is_finite() && p.weight > 0.0)
        .collect();
    // Weights are scaled to at most 1, and sizes centred below: sums of raw squares would lose digits.
    let heaviest = points.iter().map(|p| p.weight).fold(0.0, f64::max);
    let weighted = |f: &dyn Fn(&CostPoint) -> f64| points.iter().map(|p| p.weight / heaviest * f(p)).sum::<f64>();
    let total = weighted(&|_| 1.0);
    let mean_bytes = weighted(&|p| p.bytes) / total;
    let mean_time = weighted(&|p| p.time_ns) / total;
    let spread = weighted(&|p| (p.bytes - mean_bytes).powi(2));
    let smallest = points.iter().map(|p| p.bytes).fold(f64::INFINITY, f64::min);
    let largest = points.iter().map(|p| p.bytes).fold(f64::NEG_INFINITY, f64::max);
    // Not a comparison of `spread` with zero alone: equal sizes may leave a rounding rest in it.
    if points.len() < 2 || largest <= smallest || spread <= 0.0 {
        return None;
    }
    let slope = weighted(&|p| (p.bytes - mean_bytes) * (p.time_ns - mean_time)) / spread;
    let intercept = mean_time - slope * mean_bytes;
    let residual = |p: &CostPoint| p.time_ns - intercept - slope * p.bytes;
    let freedom = points.len() - 2;
    let half_widths = (freedom > 0).then(|| {
        let variance = weighted(&|p| residual(p).powi(2)) / freedom as f64;
        let t = StudentsT::new(0.0, 1.0, freedom as f64).map_or(f64::INFINITY, |t| t.inverse_cdf(0.975));
        (t * (variance * (1.0 / total + mean_bytes.powi(2) / spread)).sqrt(), t * (variance / spread).sqrt())
    });
    let around = |centre: f64, half: f64| Span { low: centre - half, high: centre + half };
    Some(Cost {
        fixed_ns: intercept,
        per_byte_ns: slope,
        fixed_interval: half_widths.map(|(fixed, _)| around(intercept, fixed)),
        per_byte_interval: half_widths.map(|(_, per_byte)| around(slope, per_byte)),
        misfit: points.iter().map(|p| (residual(p) / p.time_ns).abs()).fold(0.0, f64::max),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(bytes: f64, time_ns: f64, weight: f64) -> CostPoint {
        CostPoint { bytes, time_ns, weight }
    }

    #[test]
    fn an_exact_line_is_found() {
        let points: Vec<_> =
            [0.0, 1024.0, 65536.0, 1048576.0].map(|n| point(n, 40_000.0 + 0.3 * n, 1.0 / (40_000.0 + n))).to_vec();
        let cost = linear_cost(&points).unwrap();
        assert!((cost.fixed_ns - 40_000.0).abs() < 1e-6 && (cost.per_byte_ns - 0.3).abs() < 1e-12, "{cost:?}");
        assert!(cost.misfit < 1e-9);
    }

    #[test]
    fn agrees_with_numpy_and_scipy() {
        // numpy 2.4.6, (X'WX)^-1 X'Wt with W = diag(1 / t^2), and SciPy 1.17.1, scipy.stats.t.ppf(0.975, 3) = 3.18245.
        let sweep =
            [(1024.0, 52100.0), (8192.0, 53900.0), (65536.0, 71200.0), (262144.0, 131500.0), (1048576.0, 362400.0)];
        let points = sweep.map(|(bytes, time): (f64, f64)| point(bytes, time, 1.0 / (time * time)));
        let cost = linear_cost(&points).unwrap();
        let near = |value: f64, reference: f64| assert!((value / reference - 1.0).abs() < 1e-7, "{value} {reference}");
        near(cost.fixed_ns, 5.16990742e4);
        near(cost.per_byte_ns, 2.98780491e-1);
        near(cost.fixed_interval.unwrap().low, 5.08057774e4);
        near(cost.fixed_interval.unwrap().high, 5.25923710e4);
        near(cost.per_byte_interval.unwrap().low, 2.91106721e-1);
        near(cost.per_byte_interval.unwrap().high, 3.06454261e-1);
        near(cost.misfit, 0.011235078425921488);
    }

    #[test]
    fn two_points_have_no_interval_and_one_size_no_line() {
        let cost = linear_cost(&[point(0.0, 10.0, 1.0), point(10.0, 30.0, 1.0)]).unwrap();
        assert_eq!((cost.per_byte_ns, cost.fixed_interval), (2.0, None));
        assert_eq!(linear_cost(&[point(5.0, 10.0, 1.0), point(5.0, 30.0, 1.0)]), None);
        assert_eq!(linear_cost(&[point(5.0, 10.0, 1.0), point(9.0, 30.0, 0.0)]), None);
        assert_eq!(linear_cost(&[point(5.0, 10.0, 1.0), point(9.0, f64::NAN, 1.0)]), None);
        assert_eq!(linear_cost(&[]), None);
    }
}
