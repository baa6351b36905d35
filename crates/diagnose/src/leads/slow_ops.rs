//! A share of the slow side's ops that takes far longer than all others.

use crate::gap::{Flip, Gap, View, percent};
use duel_model::{SlowClass, SlowOps, format_duration_ns};

/// The class of slow ops that makes a part of the gap worth a name: at the reference, where no op waits for another one, else
/// in the comparison.
pub(super) fn slow_ops(gap: &Gap<'_>) -> Option<SlowOps> {
    [gap.known_reference(), Some(&gap.comparison)].into_iter().flatten().find_map(|view| in_view(gap, view))
}

fn in_view(gap: &Gap<'_>, view: &View<'_>) -> Option<SlowOps> {
    let class = view.slow.slow_class.clone()?;
    let of_other = view.fast.slow_class.clone();
    let difference_ns = view.slow.service_mean_ns? - view.fast.service_mean_ns?;
    let (other_ns, other_half_ns) = of_other.as_ref().map_or((0.0, 0.0), |other| (other.adds_ns, other.adds_half_ns));
    let beyond_ns = class.adds_ns - other_ns;
    let share_of_gap = beyond_ns / difference_ns;
    let is_beyond_chance = beyond_ns > class.adds_half_ns.hypot(other_half_ns);
    if difference_ns <= 0.0 || share_of_gap < Flip::NOTEWORTHY || !is_beyond_chance {
        return None;
    }
    let (target, ops) = (gap.slow_name(), gap.case.plan.schema().op.many);
    let text = format!(
        "{}: {} of the {ops} to {target} take {} (the others {}) and add {} to the mean (95 % interval {} to {}): {}. {}",
        view.over(gap.case.plan),
        share(&class),
        format_duration_ns(class.slow_ns as f64),
        format_duration_ns(class.others_ns as f64),
        format_duration_ns(class.adds_ns),
        format_duration_ns((class.adds_ns - class.adds_half_ns).max(0.0)),
        format_duration_ns(class.adds_ns + class.adds_half_ns),
        // What slow ops add is known to its interval, and the gap to its own.
        if share_of_gap > 0.95 {
            "that is the whole gap".to_owned()
        } else {
            format!("{} of the gap", percent(share_of_gap))
        },
        match &of_other {
            None => format!("{} has no such class", gap.fast_name()),
            Some(other) => format!(
                "To {} it is {} of {}, which add {}",
                gap.fast_name(),
                share(other),
                format_duration_ns(other.slow_ns as f64),
                format_duration_ns(other.adds_ns)
            ),
        }
    );
    Some(SlowOps { probe: view.id.to_owned(), target, class, of_other, share_of_gap, text })
}

/// `5.1 %`, `32 %`.
fn share(class: &SlowClass) -> String {
    let percent = 100.0 * class.share();
    if percent < 10.0 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}
