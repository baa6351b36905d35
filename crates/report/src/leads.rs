//! Leads of a finding, for text and page alike: which of them are shown, and under which titles.

use duel_model::{Finding, Leads};

/// Most differences that are shown; all of them are in the document.
const MOST: usize = 5;

/// Title of what to look at first, and of what was not read.
pub(crate) const FIRST: &str = "Where to look first:";
pub(crate) const UNREAD: &str = "Not read:";

/// What to look at first, in this order, each with how to look at it by hand.
pub(crate) fn first(finding: &Finding) -> Vec<(&str, Option<&str>)> {
    let Leads { slow_ops, differences, unread: _ } = &finding.leads;
    let slow_ops = slow_ops.iter().map(|slow| (&*slow.text, None));
    let differences = differences.iter().take(MOST).map(|differs| (&*differs.text, differs.look.as_deref()));
    slow_ops.chain(differences).collect()
}

/// Says how many differences are not shown; `None` where all are.
pub(crate) fn more(finding: &Finding) -> Option<String> {
    let left = finding.leads.differences.len().saturating_sub(MOST);
    (left > 0).then(|| format!("{left} more that differ: --json"))
}

/// What was not read, with the options that have it read.
pub(crate) fn unread(finding: &Finding) -> impl Iterator<Item = &str> {
    finding.leads.unread.iter().map(|unread| &*unread.text)
}
