//! How to repeat a measurement by hand.

use crate::case::Case;
use duel_model::Variation;

/// The command that repeats a probe with this variation for two of the plan's targets; `None`: the comparison itself.
///
/// There is none where [`duel_model::Plan::command`] has none, and for a twin in a server's place.
pub(crate) fn command(case: &Case<'_>, targets: [usize; 2], variation: Option<&Variation>) -> Option<String> {
    // No option makes a twin by itself.
    if variation.is_some_and(|variation| variation.twin.is_some()) {
        return None;
    }
    let mut plan = variation.map_or_else(|| case.plan.clone(), |variation| case.plan.varied(variation));
    plan.targets = targets.into_iter().map(|index| case.plan.targets.get(index).cloned()).collect::<Option<_>>()?;
    plan.command()
}
