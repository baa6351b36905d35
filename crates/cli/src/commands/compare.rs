//! `duel A B ...`: compare targets.

use super::execute;
use crate::flags::{CompareFlags, LoadFlags, OutputFlags};
use crate::outcome::Outcome;
use crate::{hosts, meaning};

/// Compares the targets given, and explains the difference if asked to.
pub(crate) fn compare(compare: &CompareFlags, load: &LoadFlags, output: &OutputFlags) -> anyhow::Result<Outcome> {
    let mut plan = meaning::comparison(&compare.targets, &compare.judging, load)?;
    hosts::assign(&mut plan.targets, &compare.hosts)?;
    let budget_ns = meaning::positive("--why-budget", &compare.why_budget)?;
    execute(&plan, compare.why.then_some(budget_ns), output)
}
