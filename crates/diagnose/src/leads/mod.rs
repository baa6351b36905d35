//! Leads: where to look next when no cause is named. They say what differs, and accuse nobody.

mod counted;
mod counters;
mod facts;
mod slow_ops;
mod unread;

use crate::case::Case;
use crate::cause::{Cause, Standing};
use crate::gap::Gap;
use duel_model::{Difference, Leads};

/// Most differences that are kept: whoever has looked at so many in vain needs another idea.
const MOST: usize = 60;

/// All leads of a gap, given how each of `causes` stands.
pub(crate) fn leads(gap: &Gap<'_>, causes: &[&Cause], standings: &[Standing]) -> Leads {
    let mut ranked = counters::differing(gap);
    ranked.extend(facts::differing(gap));
    // Stable: of equally strong ones those that were found first, which is counters before facts.
    ranked.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    Leads {
        slow_ops: slow_ops::of_gap(gap),
        differences: ranked.into_iter().take(MOST).map(|ranked| ranked.difference).collect(),
        unread: unread::unread(gap, causes, standings),
    }
}

/// What is known of a tail that differs where the main metric does not: no probe was made.
pub(crate) fn of_tail(case: &Case<'_>, slow: usize, fast: usize) -> Leads {
    Leads { slow_ops: slow_ops::of_tail(case, slow, fast), ..Leads::default() }
}

/// A difference and how telling it is, from 0 to 1.
///
/// Of a counter of time that is the most of the gap that it can be. Of a counter of events it is the share of the slow side's
/// events that the fast side does not have, less where one event would have to take a time that such events do not take. A
/// fact has no size: it has a fixed place by how near it is to where the gap sits.
struct Ranked {
    difference: Difference,
    weight: f64,
}
