//! When ops are due in an open loop: arithmetic on an explicit clock.

use crate::course::RateCourse;
use duel_model::{Arrival, Nanos, Stage};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// The due times of one worker's share of an open loop, in rising order.
///
/// Two steps: arrivals are counted off in ops, and the course of the rate says when so many ops are due. That is the
/// time change which makes any rate out of a rate of 1, for equal gaps as for a Poisson process (Cinlar 1975,
/// "Introduction to Stochastic Processes", section 4.7).
///
/// Constant arrivals are computed from the op's number, never by adding gaps, so that no rounding accumulates:
/// after an hour at 50,000 per second the schedule is still exact to the nanosecond.
#[derive(Debug, Clone)]
pub struct Schedule {
    start_ns: Nanos,
    arrivals: Arrivals,
    course: Course,
    next_due_ns: Nanos,
}

/// How many ops of all workers are due before this worker's next one.
#[derive(Debug, Clone)]
enum Arrivals {
    /// The worker's ops are those numbered `first`, `first + step`, ... of all workers' together.
    Constant { number: u64, step: u64 },
    /// Splitting a Poisson process evenly gives independent Poisson processes of a part of the rate.
    Poisson { ops: f64, mean_gap: f64, random: Box<Pcg64Mcg> },
}

/// When so many ops are due.
#[derive(Debug, Clone)]
enum Course {
    Constant { period_ns: f64 },
    Staged(RateCourse),
}

impl Schedule {
    /// The share of `worker` (counted from 0) among `workers`, beginning at `start_ns`.
    ///
    /// `rate_per_s` is that of all workers together and must be above zero; `seed` matters for Poisson arrivals only.
    pub fn new(start_ns: Nanos, rate_per_s: f64, arrival: Arrival, worker: u32, workers: u32, seed: u64) -> Self {
        assert!(rate_per_s > 0.0, "a schedule needs a rate");
        Self::on(Course::Constant { period_ns: 1e9 / rate_per_s }, start_ns, arrival, worker, workers, seed)
    }

    /// The same where the rate changes by stages, and no op is due after the last one.
    pub fn staged(start_ns: Nanos, stages: &[Stage], arrival: Arrival, worker: u32, workers: u32, seed: u64) -> Self {
        Self::on(Course::Staged(RateCourse::new(stages)), start_ns, arrival, worker, workers, seed)
    }

    fn on(course: Course, start_ns: Nanos, arrival: Arrival, worker: u32, workers: u32, seed: u64) -> Self {
        assert!(worker < workers, "a schedule needs a place among the workers");
        let arrivals = match arrival {
            Arrival::Constant => Arrivals::Constant { number: u64::from(worker), step: u64::from(workers) },
            Arrival::Poisson => {
                let random = Pcg64Mcg::seed_from_u64(seed ^ (u64::from(worker) << 48));
                let mut arrivals =
                    Arrivals::Poisson { ops: 0.0, mean_gap: f64::from(workers), random: Box::new(random) };
                arrivals.advance();
                arrivals
            }
        };
        let mut schedule = Self { start_ns, arrivals, course, next_due_ns: start_ns };
        schedule.next_due_ns = schedule.due_ns();
        schedule
    }

    /// When the next op is due; at the end of time if none is.
    #[inline]
    pub fn next_due_ns(&self) -> Nanos {
        self.next_due_ns
    }

    /// Moves on to the op after the next one.
    #[inline]
    pub fn advance(&mut self) {
        self.arrivals.advance();
        self.next_due_ns = self.due_ns();
    }

    fn due_ns(&self) -> Nanos {
        let ops = match self.arrivals {
            Arrivals::Constant { number, .. } => number as f64,
            Arrivals::Poisson { ops, .. } => ops,
        };
        match &self.course {
            Course::Constant { period_ns } => self.start_ns.saturating_add((ops * *period_ns).round() as Nanos),
            Course::Staged(course) => {
                course.when_ns(ops).map_or(Nanos::MAX, |since_ns| self.start_ns.saturating_add(since_ns))
            }
        }
    }
}

impl Arrivals {
    #[inline]
    fn advance(&mut self) {
        match self {
            Self::Constant { number, step } => *number += *step,
            // Inverse transform; 1 - u lies in (0, 1], so the logarithm is finite.
            Self::Poisson { ops, mean_gap, random } => *ops += -(1.0 - random.random::<f64>()).ln() * *mean_gap,
        }
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
    fn an_op_that_is_not_due_in_our_time_is_not_due_in_the_past() {
        for arrival in [Arrival::Constant, Arrival::Poisson] {
            for worker in 0..3 {
                let mut schedule = Schedule::new(1_000, 1e-12, arrival, worker, 3, 0);
                for _ in 0..5 {
                    let before_ns = schedule.next_due_ns();
                    schedule.advance();
                    assert!(before_ns >= 1_000 && schedule.next_due_ns() >= before_ns, "{arrival:?} {schedule:?}");
                }
            }
        }
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

    #[test]
    fn workers_share_a_ramp() {
        let stages = Stage::parse_all("2s@0..1000,1s@500").unwrap();
        let mut dues: Vec<_> = (0..3)
            .flat_map(|worker| dues_before(Schedule::staged(7, &stages, Arrival::Constant, worker, 3, 0), Nanos::MAX))
            .collect();
        dues.sort_unstable();
        let alone = dues_before(Schedule::staged(7, &stages, Arrival::Constant, 0, 1, 0), Nanos::MAX);
        assert_eq!(dues, alone);
        assert_eq!(dues.len(), 1_500);
    }

    /// Of an inhomogeneous Poisson process the counts in any stretches are independent and Poisson, with the integral of
    /// the rate as mean.
    #[test]
    fn poisson_arrivals_follow_a_ramp() {
        let stages = Stage::parse_all("50s@0..1000,10s@0,50s@1000..0").unwrap();
        let dues = dues_before(Schedule::staged(0, &stages, Arrival::Poisson, 0, 1, 11), Nanos::MAX);
        let counts = |from_s: u64, to_s: u64| {
            dues.iter().filter(|&&due| due >= from_s * SECOND_NS && due < to_s * SECOND_NS).count() as f64
        };
        for (from_s, to_s, mean) in [(0, 25, 6_250.0), (25, 50, 18_750.0), (50, 60, 0.0), (60, 110, 25_000.0)] {
            let count = counts(from_s, to_s);
            // Five standard deviations.
            assert!((count - mean).abs() <= 5.0 * f64::sqrt(mean), "{count} of {mean} from {from_s} s");
        }
    }
}
