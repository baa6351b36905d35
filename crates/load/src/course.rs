//! How the load of a slot changes over its stages: the rate of an open loop, the connections of a closed one.

use duel_model::{Nanos, Stage, StageLevel};

/// The rate of an open loop as a function of time, linear within each stage.
///
/// The number of ops due until `t` is the integral of the rate. Its inverse is known in closed form for each stage, so
/// that the n-th op's due time is computed from n alone and no error accumulates, however long the stages are.
#[derive(Debug, Clone)]
pub(crate) struct RateCourse {
    /// Stages in which any op is due, with where they begin.
    legs: Vec<Leg>,
    /// The integral to the end of the last stage.
    total_ops: f64,
}

#[derive(Debug, Clone, Copy)]
struct Leg {
    /// Since the start of the slot.
    begin_ns: Nanos,
    duration_ns: Nanos,
    from_per_s: f64,
    /// Change of the rate per second.
    slope: f64,
    /// Ops due before it begins.
    ops_before: f64,
}

impl RateCourse {
    pub(crate) fn new(stages: &[Stage]) -> Self {
        let (mut legs, mut begin_ns, mut total_ops) = (Vec::new(), 0, 0.0);
        for stage in stages {
            if let StageLevel::Rate { from_per_s, to_per_s } = stage.level {
                let seconds = stage.duration_ns as f64 / 1e9;
                let slope = (to_per_s - from_per_s) / seconds;
                if stage.highest() > 0.0 {
                    legs.push(Leg {
                        begin_ns,
                        duration_ns: stage.duration_ns,
                        from_per_s,
                        slope,
                        ops_before: total_ops,
                    });
                }
                total_ops += stage.mean() * seconds;
            }
            begin_ns += stage.duration_ns;
        }
        Self { legs, total_ops }
    }

    /// When so many ops are due, since the start of the slot; `None` if there are never as many.
    pub(crate) fn when_ns(&self, ops: f64) -> Option<Nanos> {
        if ops >= self.total_ops {
            return None;
        }
        // The last leg that begins with no more: a leg without ops of its own cannot be it, unless it is the last.
        let leg = self.legs[..self.legs.partition_point(|leg| leg.ops_before <= ops)].last()?;
        let within = (ops - leg.ops_before).max(0.0);
        // `from t + slope t² / 2 = within`, solved so that nothing cancels out for slopes near 0, and that from 0 works.
        let rate_then = (leg.from_per_s.powi(2) + 2.0 * leg.slope * within).max(0.0).sqrt();
        let denominator = leg.from_per_s + rate_then;
        let seconds = if denominator > 0.0 { 2.0 * within / denominator } else { 0.0 };
        Some(leg.begin_ns + ((seconds * 1e9).round() as Nanos).min(leg.duration_ns))
    }

    /// The highest rate of all.
    pub(crate) fn highest_per_s(stages: &[Stage]) -> f64 {
        stages.iter().map(Stage::highest).fold(0.0, f64::max)
    }
}

/// How many of a worker's lanes carry ops, as it changes over the stages of a closed loop.
#[derive(Debug, Clone)]
pub(crate) struct LaneCourse {
    /// When the number changes, on the clock of the slot's start, and to what; rising.
    changes: Vec<(Nanos, usize)>,
    next: usize,
    allowed: usize,
}

impl LaneCourse {
    /// The share of `worker` among `workers`, beginning at `start_ns`.
    pub(crate) fn new(stages: &[Stage], start_ns: Nanos, worker: u32, workers: u32) -> Self {
        // As lanes are spread over workers: the first ones take the remainder.
        let share = |total: u32| (total / workers + u32::from(worker < total % workers)) as usize;
        let mut changes: Vec<(Nanos, usize)> = Vec::new();
        let mut note = |at_ns: Nanos, total: u32| {
            let lanes = share(total);
            if changes.last().is_none_or(|&(_, before)| before != lanes) {
                changes.push((at_ns, lanes));
            }
        };
        let mut begin_ns = start_ns;
        for stage in stages {
            if let StageLevel::Connections { from, to } = stage.level {
                note(begin_ns, from);
                // Rounded to whole connections, the line crosses from one to the next half way between them.
                let steps = from.abs_diff(to);
                for step in 1..=steps {
                    let at = stage.duration_ns as f64 * (f64::from(step) - 0.5) / f64::from(steps);
                    let total = if to > from { from + step } else { from - step };
                    note(begin_ns + at as Nanos, total);
                }
            }
            begin_ns += stage.duration_ns;
        }
        Self { changes, next: 0, allowed: 0 }
    }

    /// How many lanes may carry ops at `now`, which never goes back.
    #[inline]
    pub(crate) fn allowed(&mut self, now: Nanos) -> usize {
        while let Some(&(at_ns, lanes)) = self.changes.get(self.next) {
            if at_ns > now {
                break;
            }
            self.allowed = lanes;
            self.next += 1;
        }
        self.allowed
    }

    /// When that number changes next.
    #[inline]
    pub(crate) fn next_change_ns(&self) -> Option<Nanos> {
        self.changes.get(self.next).map(|&(at_ns, _)| at_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_model::SECOND_NS;
    use proptest::prelude::*;

    fn stages(typed: &str) -> Vec<Stage> {
        Stage::parse_all(typed).unwrap()
    }

    fn dues(course: &RateCourse) -> Vec<Nanos> {
        (0u64..).map_while(|number| course.when_ns(number as f64)).collect()
    }

    #[test]
    fn steps_ramps_and_pauses_are_followed_exactly() {
        let course = RateCourse::new(&stages("2s@2,1s@0,2s@0..4,1s@4"));
        // 4 ops at 0, 0.5, 1, 1.5 s; a pause; then t² ops until t after 3 s; then 4 per second.
        let second = SECOND_NS as f64;
        let expected: Vec<Nanos> =
            [0.0, 0.5, 1.0, 1.5, 3.0, 4.0, 3.0 + 2f64.sqrt(), 3.0 + 3f64.sqrt(), 5.0, 5.25, 5.5, 5.75]
                .iter()
                .map(|at| (at * second).round() as Nanos)
                .collect();
        assert_eq!(dues(&course), expected);
    }

    #[test]
    fn a_falling_ramp_ends_with_its_last_op() {
        let course = RateCourse::new(&stages("10s@10..0"));
        let dues = dues(&course);
        assert_eq!(dues.len(), 50);
        // 10 t - t² / 2 = 49 at t = 10 - sqrt 2.
        assert_eq!(dues[49], ((10.0 - 2f64.sqrt()) * 1e9).round() as Nanos);
    }

    #[test]
    fn no_error_accumulates_over_an_hour() {
        let course = RateCourse::new(&stages("1h@50000,1h@50000..50001"));
        assert_eq!(course.when_ns(50_000.0 * 3_599.0), Some(3_599 * SECOND_NS));
        assert_eq!(course.when_ns(50_000.0 * 3_600.0), Some(3_600 * SECOND_NS));
    }

    #[test]
    fn lanes_of_all_workers_add_up_to_the_connections_of_the_moment() {
        let stages = stages("1s@1c,4s@1c..5c,1s@2c,1s@0c");
        let mut courses: Vec<LaneCourse> = (0..3).map(|worker| LaneCourse::new(&stages, 100, worker, 3)).collect();
        for (at_ms, total) in
            [(0, 1), (1_400, 1), (1_600, 2), (2_600, 3), (3_600, 4), (4_600, 5), (5_500, 2), (6_500, 0)]
        {
            let now = 100 + at_ms * 1_000_000;
            assert_eq!(courses.iter_mut().map(|course| course.allowed(now)).sum::<usize>(), total, "{at_ms} ms");
        }
        assert!(courses.iter().all(|course| course.next_change_ns().is_none()));
    }

    fn any_stage() -> impl Strategy<Value = Stage> {
        let level = prop_oneof![Just(0.0), 0.1..2_000.0f64];
        (1u64..3_000, level.clone(), level).prop_map(|(ms, from_per_s, to_per_s)| Stage {
            duration_ns: ms * 1_000_000,
            level: StageLevel::Rate { from_per_s, to_per_s },
        })
    }

    /// Ops due until `t` by the integral, summed up stage by stage.
    fn integral(stages: &[Stage], until_ns: Nanos) -> f64 {
        let (mut begin_ns, mut ops) = (0, 0.0);
        for stage in stages {
            let StageLevel::Rate { from_per_s, to_per_s } = stage.level else { continue };
            let within_ns = until_ns.saturating_sub(begin_ns).min(stage.duration_ns) as f64;
            let share = within_ns / stage.duration_ns as f64;
            ops += (from_per_s + (to_per_s - from_per_s) * share / 2.0) * within_ns / 1e9;
            begin_ns += stage.duration_ns;
        }
        ops
    }

    proptest! {
        #[test]
        fn as_many_ops_are_due_as_the_integral_of_the_rate_says(
            stages in prop::collection::vec(any_stage(), 1..8),
            part in 0.0..1.0f64,
        ) {
            let course = RateCourse::new(&stages);
            let end_ns = Stage::total_ns(&stages);
            let dues = dues(&course);
            prop_assert!(dues.windows(2).all(|pair| pair[0] <= pair[1]), "rising");
            prop_assert!(dues.last().is_none_or(|&last| last <= end_ns), "within the stages");
            // The op numbered n is due when the integral reaches n, so that ceil(integral) of them are due in all. A
            // nanosecond is some millionths of an op here.
            for until_ns in [end_ns, (end_ns as f64 * part) as Nanos] {
                let due = dues.iter().filter(|&&due| due < until_ns).count() as f64;
                let wanted = integral(&stages, until_ns);
                prop_assert!(due >= (wanted - 1e-4).ceil() && due <= (wanted + 1e-4).ceil(), "{} of {}", due, wanted);
            }
        }
    }
}
