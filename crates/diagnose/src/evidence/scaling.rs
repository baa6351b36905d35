//! How throughput grows with the number of connections: the universal scalability law.
//!
//! X(N) = λN / (1 + σ(N-1) + κN(N-1)) (Gunther, *Guerrilla Capacity Planning*, 2007): σ is the part that waits in one
//! queue and makes throughput level off, κ what any two that work at the same time cost each other, which makes it fall.
//!
//! N/X(N) = a + b(N-1) + cN(N-1) is linear in a = 1/λ, b = σ/λ and c = κ/λ, so the fit is weighted least squares in three
//! unknowns. Three points determine it; the interval comes from those of the points either way.
//!
//! κ beyond zero is necessary for a throughput that falls, and not enough: the law has no place for the time that
//! requests spend elsewhere, whose sharp bend into a plateau looks like a small κ. So nobody is accused by it alone.

use crate::cause::Standing;
use crate::evidence::trip::trips;
use crate::gap::{Flip, Gap, Look, View, phase_differences};
use crate::probes::{ALONE, CONNECTIONS};
use duel_model::web::phase;
use duel_stats::Estimate;

/// Throughput under a number of connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    pub(crate) connections: f64,
    pub(crate) per_s: f64,
    /// 95 % half-width of its log.
    pub(crate) half_log: f64,
}

/// A fitted law.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Law {
    /// With its 95 % interval.
    pub(crate) kappa: Estimate,
}

impl Law {
    /// `None` for fewer than three different numbers of connections, or throughputs that no such law fits.
    pub(crate) fn fit(points: &[Point]) -> Option<Self> {
        // Rates of some hundred ops are never surer than this.
        const SUREST_LOG: f64 = 1e-3;
        let mut normal = [[0.0; 3]; 3];
        let mut right = [0.0; 3];
        for point in points {
            let n = point.connections;
            let y = n / point.per_s;
            let weight = 1.0 / (y * point.half_log.max(SUREST_LOG)).powi(2);
            let row = [1.0, n - 1.0, n * (n - 1.0)];
            for i in 0..3 {
                right[i] += weight * row[i] * y;
                for j in 0..3 {
                    normal[i][j] += weight * row[i] * row[j];
                }
            }
        }
        let covariance = inverse(&normal)?;
        let [a, b, c] = [0, 1, 2].map(|i| (0..3).map(|j| covariance[i][j] * right[j]).sum::<f64>());
        let kappa = c / a;
        // Of a quotient to first order.
        let variance = (covariance[2][2] - 2.0 * kappa * covariance[0][2] + kappa * kappa * covariance[0][0]) / (a * a);
        let sane = a > 0.0 && [b, kappa, variance].iter().all(|value| value.is_finite()) && variance >= 0.0;
        sane.then(|| Self { kappa: Estimate::around(kappa, variance.sqrt()) })
    }
}

/// Of a symmetric matrix that is positive definite where the points differ; `None` where they do not.
fn inverse(m: &[[f64; 3]; 3]) -> Option<[[f64; 3]; 3]> {
    let minor = |i: usize, j: usize| {
        let (r, s) = ((i + 1) % 3, (i + 2) % 3);
        let (t, u) = ((j + 1) % 3, (j + 2) % 3);
        m[r][t] * m[s][u] - m[r][u] * m[s][t]
    };
    let determinant: f64 = (0..3).map(|j| m[0][j] * minor(0, j)).sum();
    // Hadamard: the determinant is no more than this product, and rounding leaves some 1e-16 of it.
    let most = m[0][0] * m[1][1] * m[2][2];
    if !determinant.is_finite() || determinant <= 1e-13 * most {
        return None;
    }
    // Cofactors are transposed; those of a symmetric matrix are so by themselves.
    Some([0, 1, 2].map(|i| [0, 1, 2].map(|j| minor(i, j) / determinant)))
}

/// Numbers of connections below the plan's: by powers of two, close to its square root and to its three quarters' power.
pub(crate) fn fewer_connections(connections: u32) -> Vec<u32> {
    let near = |power: f64| 2f64.powf((f64::from(connections).log2() * power).round()) as u32;
    let mut few = vec![near(0.5), near(0.75)];
    few.dedup();
    few.retain(|count| *count > 1 && *count < connections);
    few
}

/// Throughput that is lost between fewer connections and the plan's, as logs.
pub(crate) struct Fall<'a> {
    pub(crate) from: View<'a>,
    /// On the slow side, with the half-width of its interval.
    pub(crate) slow_log: f64,
    pub(crate) half_log: f64,
    /// By how much the gap grows in between.
    pub(crate) gap_grows_log: f64,
}

fn fall_between<'a>(from: &View<'a>, many: &View<'a>) -> Option<Fall<'a>> {
    let log = |view: &View<'_>| view.slow.rate_per_s.filter(|rate| *rate > 0.0).map(f64::ln);
    Some(Fall {
        slow_log: log(from)? - log(many)?,
        // The rates come from different times, so each scatters as a pair does at least.
        half_log: from.log.half().hypot(many.log.half()),
        gap_grows_log: many.log.mid - from.log.mid,
        from: from.clone(),
    })
}

/// The deepest fall beyond chance and beyond the margin, in which the gap grows as well; the fast side must not fall as
/// far, or the two would not be apart for it.
pub(crate) fn falls<'a>(gap: &Gap<'_>, points: &[View<'a>], many: &View<'a>) -> Option<Fall<'a>> {
    let deep = |fall: &Fall<'_>| {
        let least = (Flip::MANY_LOOKS * fall.half_log).max(gap.case.margin_log());
        fall.slow_log > least && fall.gap_grows_log > least
    };
    let falls = points.iter().filter_map(|from| fall_between(from, many)).filter(deep);
    falls.max_by(|a, b| a.slow_log.total_cmp(&b.slow_log))
}

/// Whether a fall worth a name lies within the intervals.
pub(crate) fn could_fall(gap: &Gap<'_>, points: &[View<'_>], many: &View<'_>) -> bool {
    let falls: Vec<_> = points.iter().filter_map(|from| fall_between(from, many)).collect();
    let worth_a_name = Flip::NOTEWORTHY * gap.comparison.log.mid;
    falls.is_empty() || falls.iter().any(|fall| fall.slow_log + fall.half_log > worth_a_name)
}

/// Below that there is no room for a peak between one connection and the plan's.
pub(crate) const FEWEST_CONNECTIONS: u32 = 4;

/// Share of the extra time per op that is spent on connecting and its handshake.
pub(crate) fn connecting_share(view: &View<'_>) -> Option<f64> {
    let differences = phase_differences(view);
    let whole_ns: f64 = differences.iter().map(|(_, ns)| ns).sum();
    let connecting_ns: f64 =
        differences.iter().filter(|(phase, _)| *phase == phase::CONNECT).map(|(_, ns)| ns.max(0.0)).sum();
    (whole_ns > 0.0).then(|| connecting_ns / whole_ns)
}

/// Requests that the slow and the fast side serve at a time: their rate times what one takes alone (Little's law).
pub(crate) fn served_at_a_time(many: &View<'_>, alone: &View<'_>) -> Option<[f64; 2]> {
    let served =
        |rate: Option<f64>, alone_ns: Option<f64>| Some(rate? * alone_ns? / 1e9).filter(|served| *served > 0.0);
    Some([served(many.slow.rate_per_s, alone.slow_ns())?, served(many.fast.rate_per_s, alone.fast_ns())?])
}

/// Below this, one request is served at a time: behind one lock, or by one worker. The estimate scatters, and parts of two requests overlap.
pub(crate) const ONE_AT_A_TIME: f64 = 1.5;

/// Requests that the slow side's server has in hand at a time: the same, without those that travel. (By the shortest times of connecting:
/// what else these hold is none of the way.) How long the way is, is asked for where it matters, which is where more than one is served, and
/// where there is time for that.
pub(crate) fn in_hand_at_a_time(gap: &Gap<'_>, alone: &View<'_>, by_slow: f64) -> Result<f64, Standing> {
    if by_slow < ONE_AT_A_TIME {
        return Ok(by_slow);
    }
    let trip_ns = match trips(gap) {
        Ok(trips) => trips.slow.floor_ns,
        Err(Standing::Wants(probes)) if probes.iter().all(|probe| probe.budget_ns <= gap.case.budget_left_ns) => {
            return Err(Standing::Wants(probes));
        }
        Err(_) => return Ok(by_slow),
    };
    // Once for the request and its answer, and for a new connection once more, twice with TLS.
    let connects = 1.0 - alone.slow.reused_share.unwrap_or(1.0);
    let travels_ns = trip_ns * (1.0 + connects * if gap.uses_tls(gap.slow) { 2.0 } else { 1.0 });
    let takes_ns = alone.slow_ns().unwrap_or(0.0);
    Ok(by_slow * (1.0 - travels_ns / takes_ns.max(1.0)).max(0.0))
}

/// Whether throughput of the slow side was seen to level off: it does not fall on the way to `many` connections, beyond what the
/// intervals leave open, and it is the work itself that takes longer there.
pub(crate) fn levels_off(gap: &Gap<'_>, many: &View<'_>) -> bool {
    let is_work = connecting_share(many).is_none_or(|share| share < Flip::NOTEWORTHY);
    if !is_work || gap.case.plan.lanes() < FEWEST_CONNECTIONS {
        return false;
    }
    let fewer =
        fewer_connections(gap.case.plan.lanes()).into_iter().map(|count| gap.look(CONNECTIONS.of(count as usize)));
    let shown = |look| if let Look::Shown(view) = look { Some(view) } else { None };
    let points: Option<Vec<View<'_>>> = std::iter::once(gap.look(ALONE)).chain(fewer).map(shown).collect();
    points.is_some_and(|points| falls(gap, &points, many).is_none() && !could_fall(gap, &points, many))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(sigma: f64, kappa: f64, at: &[f64]) -> Vec<Point> {
        let per_s = |n: f64| 1000.0 * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0));
        at.iter().map(|&n| Point { connections: n, per_s: per_s(n), half_log: 0.02 }).collect()
    }

    #[test]
    fn a_law_is_found_again() {
        for (sigma, kappa) in [(0.0, 0.0), (0.05, 0.0), (0.5, 0.02), (1.0, 0.3)] {
            for at in [&[1.0, 4.0, 16.0][..], &[1.0, 2.0, 4.0, 8.0, 24.0], &[1.0, 16.0, 64.0, 300.0]] {
                let law = Law::fit(&points(sigma, kappa, at)).unwrap();
                assert!((law.kappa.mid - kappa).abs() < 1e-6 && law.kappa.half() > 0.0, "{law:?}");
            }
        }
    }

    #[test]
    fn too_few_points_make_no_law() {
        assert!(Law::fit(&points(0.1, 0.0, &[1.0, 4.0])).is_none());
        assert!(Law::fit(&points(0.1, 0.0, &[1.0, 4.0, 4.0])).is_none());
        assert!(Law::fit(&[]).is_none());
        let dead = Point { connections: 4.0, per_s: 0.0, half_log: 0.1 };
        assert!(Law::fit(&[dead; 3]).is_none());
    }

    proptest::proptest! {
        #[test]
        fn any_points_give_finite_numbers_or_none(
            rates in proptest::collection::vec((1.0f64..1e4, 1e-3f64..1e9, 0.0f64..2.0), 0..8)
        ) {
            let points: Vec<_> = rates
                .into_iter()
                .map(|(connections, per_s, half_log)| Point { connections, per_s, half_log })
                .collect();
            if let Some(law) = Law::fit(&points) {
                proptest::prop_assert!(law.kappa.mid.is_finite() && law.kappa.half().is_finite());
            }
        }
    }
}
