//! When ops are due in an open loop: arithmetic on an explicit clock.

use duel_model::{Arrival, Nanos};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// The due times of one worker's share of an open loop, in rising order.
///
/// Constant arrivals are computed from the op's number, never by adding gaps, so that no rounding accumulates:
/// after an hour at 50,000 per second the schedule is still exact to the nanosecond.
#[derive(Debug, Clone)]
pub struct Schedule {
    start_ns: Nanos,
    gaps: Gaps,
    next_due_ns: Nanos,
}

#[derive(Debug, Clone)]
enum Gaps {
    /// The worker's ops are those numbered `first`, `first + step`, ... of all workers' together.
    Constant { period_ns: f64, number: u64, step: u64 },
    /// Splitting a Poisson process evenly gives independent Poisson processes of a part of the rate.
    Poisson { mean_gap_ns: f64, elapsed_ns: f64, random: Box<Pcg64Mcg> },
}

impl Schedule {
    /// The share of `worker` (counted from 0) among `workers`, beginning at `start_ns`.
    ///
    /// `rate_per_s` is that of all workers together and must be above zero; `seed` matters for Poisson arrivals only.
    pub fn new(start_ns: Nanos, rate_per_s: f64, arrival: Arrival, worker: u32, workers: u32, seed: u64) -> Self {
        assert!(rate_per_s > 0.0 && worker < workers, "a schedule needs a rate and a place among the workers");
        let period_ns = 1e9 / rate_per_s;
        let gaps = match arrival {
            Arrival::Constant => Gaps::Constant { period_ns, number: u64::from(worker), step: u64::from(workers) },
            Arrival::Poisson => Gaps::Poisson {
                mean_gap_ns: period_ns * f64::from(workers),
                elapsed_ns: 0.0,
                random: Box::new(Pcg64Mcg::seed_from_u64(seed ^ (u64::from(worker) << 48))),
            },
        };
        let mut schedule = Self { start_ns, gaps, next_due_ns: start_ns };
        schedule.next_due_ns = schedule.due_ns();
        schedule
    }

    /// When the next op is due.
    #[inline]
    pub fn next_due_ns(&self) -> Nanos {
        self.next_due_ns
    }

    /// Moves on to the op after the next one.
    #[inline]
    pub fn advance(&mut self) {
        if let Gaps::Constant { number, step, .. } = &mut self.gaps {
            *number += *step;
        }
        self.next_due_ns = self.due_ns();
    }

    fn due_ns(&mut self) -> Nanos {
        let since_start_ns = match &mut self.gaps {
            Gaps::Constant { period_ns, number, .. } => *number as f64 * *period_ns,
            Gaps::Poisson { mean_gap_ns, elapsed_ns, random } => {
                // Inverse transform; 1 - u lies in (0, 1], so the logarithm is finite.
                *elapsed_ns += -(1.0 - random.random::<f64>()).ln() * *mean_gap_ns;
                *elapsed_ns
            }
        };
        self.start_ns + since_start_ns.round() as Nanos
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_model::SECOND_NS;

    fn dues_before(mut schedule: Schedule, end_ns: Nanos) -> Vec<Nanos> {
        let mut dues = Vec::new();
        while schedule.next_due_ns() < end_ns {
            dues.push(schedule.next_due_ns());
            schedule.advance();
        }
        dues
    }

    #[test]
    fn workers_interleave_into_one_exact_schedule() {
        let mut dues: Vec<_> = (0..3)
            .flat_map(|worker| dues_before(Schedule::new(7, 50_000.0, Arrival::Constant, worker, 3, 0), 7 + SECOND_NS))
            .collect();
        dues.sort_unstable();
        let exact: Vec<_> = (0..50_000).map(|n| 7 + n * 20_000).collect();
        assert_eq!(dues, exact);
    }

    #[test]
    fn constant_rates_do_not_drift() {
        // 3 per second does not divide a second: after an hour the rounding must still be below 1 ns.
        let dues = dues_before(Schedule::new(0, 3.0, Arrival::Constant, 0, 1, 0), 3_600 * SECOND_NS);
        assert_eq!(dues.len(), 10_800);
        assert_eq!(dues[10_797], 3_599 * SECOND_NS);
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_the_spread_of_an_exponential() {
        let dues = dues_before(Schedule::new(0, 1_000.0, Arrival::Poisson, 1, 2, 42), 400 * SECOND_NS);
        let gaps: Vec<f64> = dues.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 2e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // 200,000 gaps: the mean's standard error is 0.2 %, the variance's about 0.6 %.
        assert!((mean - 1.0).abs() < 0.012, "{mean}");
        assert!((variance - 1.0).abs() < 0.04, "{variance}");
    }
}
