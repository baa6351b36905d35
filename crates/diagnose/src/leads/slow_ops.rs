//! A share of the slow side's ops that takes far longer than all others.

use crate::case::Case;
use crate::gap::{Flip, Gap, View, percent};
use duel_model::{SlowClass, SlowOps, TargetObservation, format_duration_ns, sanitize_line};

/// The class of slow ops that makes a part of the gap worth a name: at the reference, where no op waits for another one, else
/// in the comparison.
pub(super) fn of_gap(gap: &Gap<'_>) -> Option<SlowOps> {
    let views = [gap.known_reference(), Some(&gap.comparison)].into_iter().flatten();
    views.map(|view| in_view(gap, view)).find_map(|told| told.filter(is_worth_a_name))
}

/// The class of slow ops that one target has in the comparison, and another one has not or less of: a tail differs, and what
/// ops cost in the mean may not.
pub(super) fn of_tail(case: &Case<'_>, slow: usize, fast: usize) -> Option<SlowOps> {
    let seen = [case.comparison.get(slow)?, case.comparison.get(fast)?];
    tell(case, "comparison", "in the comparison", seen)
}

fn in_view(gap: &Gap<'_>, view: &View<'_>) -> Option<SlowOps> {
    tell(&gap.case, view.id, &view.over(gap.case.plan), [view.slow, view.fast])
}

fn is_worth_a_name(told: &SlowOps) -> bool {
    told.share_of_gap.is_some_and(|share| share >= Flip::NOTEWORTHY)
}

/// `None` where the slow side has no class, or where that adds no more than the fast side's, as far as both are known.
fn tell(case: &Case<'_>, probe: &str, over: &str, [slow, fast]: [&TargetObservation; 2]) -> Option<SlowOps> {
    let class = slow.slow_class.clone()?;
    let of_other = fast.slow_class.clone();
    let (other_ns, other_half_ns) = of_other.as_ref().map_or((0.0, 0.0), |other| (other.adds_ns, other.adds_half_ns));
    let beyond_ns = class.adds_ns - other_ns;
    if beyond_ns <= class.adds_half_ns.hypot(other_half_ns) {
        return None;
    }
    let difference_ns = slow.service_mean_ns.zip(fast.service_mean_ns).map(|(slow, fast)| slow - fast);
    let share_of_gap = difference_ns.filter(|ns| *ns > 0.0).map(|ns| beyond_ns / ns);
    let (ops, [target, other]) = (case.plan.schema().op.many, [slow, fast].map(|seen| sanitize_line(&seen.name)));
    let of_gap = match share_of_gap {
        // What slow ops add is known to its interval, and the gap to its own.
        Some(share) if share > 1.05 => {
            ": that is more than the gap of the means, as the others are quicker there".to_owned()
        }
        Some(share) if share > 0.95 => ": that is the whole gap of the means".to_owned(),
        Some(share) => format!(": {} of the gap of the means", percent(share)),
        None => String::new(),
    };
    let text = format!(
        "{over}: {} of the {ops} to {target} take {}{} (the others {}) and add {} to the mean (95 % interval {} to {}){of_gap}. {}",
        share(&class),
        format_duration_ns(class.slow_ns as f64),
        on_average(&class),
        format_duration_ns(class.others_ns as f64),
        format_duration_ns(class.adds_ns),
        format_duration_ns((class.adds_ns - class.adds_half_ns).max(0.0)),
        format_duration_ns(class.adds_ns + class.adds_half_ns),
        match &of_other {
            None => format!("{other} has no such class"),
            Some(of_other) => format!(
                "Of those to {other} {} take {} and add {}",
                share(of_other),
                format_duration_ns(of_other.slow_ns as f64),
                format_duration_ns(of_other.adds_ns)
            ),
        }
    );
    Some(SlowOps { probe: probe.to_owned(), target, class, of_other, share_of_gap, text })
}

/// Where the mean of the class is far from its median, by what it adds: some of its ops take far longer than most.
fn on_average(class: &SlowClass) -> String {
    let mean_ns = class.others_ns as f64 + class.adds_ns / class.share().max(f64::MIN_POSITIVE);
    let is_far = mean_ns > 2.0 * class.slow_ns as f64;
    if is_far { format!(" at the median, {} on average", format_duration_ns(mean_ns)) } else { String::new() }
}

/// `5.1 %`, `32 %`.
fn share(class: &SlowClass) -> String {
    let percent = 100.0 * class.share();
    if percent < 10.0 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_with_a_long_tail_is_not_told_by_its_median_alone() {
        let class = |adds_ns: f64| SlowClass {
            ops: 4,
            of: 1_000,
            from_ns: 100_000,
            slow_ns: 256_000,
            others_ns: 35_000,
            adds_ns,
            adds_half_ns: 0.0,
        };
        // 0.4 % of the ops add 15.4 us to the mean: each takes 3.85 ms more.
        assert_eq!(on_average(&class(15_400.0)), " at the median, 3.88 ms on average");
        assert_eq!(on_average(&class(900.0)), "");
    }
}
