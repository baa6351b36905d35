//! Probes that change how much load there is, and nothing else.

use super::{Budget, Entry, FLIP, Kind, Load, refuse};
use crate::case::Case;
use duel_model::{HttpPlan, Nanos, SECOND_NS};

/// The same requests over one connection: phases without queueing.
pub(crate) const ALONE: Kind = Kind::new(&Entry {
    id: "alone",
    phrase: "over one connection",
    question: "Does the gap show over a single connection, and in which phase?",
    load: Load::One,
    shows_gap: true,
    ..FLIP
});

/// The comparison's own load once more: whether the gap is still what it was.
pub(crate) const AGAIN: Kind = Kind::new(&Entry {
    id: "again",
    phrase: "once more as in the comparison",
    question: "Is the gap still what it was in the comparison?",
    load: Load::Plan,
    shows_gap: true,
    ..FLIP
});

/// The plan's connections in a closed loop: the reference of an open-loop plan whose gap does not show alone.
pub(crate) const CLOSED: Kind = Kind::new(&Entry {
    id: "closed",
    phrase: "with as many connections in a closed loop",
    question: "Does the gap show in a closed loop?",
    load: Load::Plan,
    possible: |_, case| http(case).map(|_| ()),
    shows_gap: true,
    ..FLIP
});

/// So many connections, whatever the mode: a point of the concurrency sweep.
pub(crate) const CONNECTIONS: Kind = Kind::new(&Entry {
    id: "connections-",
    phrase: "with another number of connections",
    question: "How does the gap change with the number of connections?",
    load: Load::Number,
    possible: |kind, case| {
        let http = http(case)?;
        refuse(kind.number == 0, "no load without a connection")?;
        refuse(http.streams() > 1, SHARED)
    },
    ..FLIP
});

/// Several connections, of which one at a time has a request under way: none waits for another, and whatever drifts hits all alike. What
/// they differ by is where they lead.
pub(crate) const IN_TURN: Kind = Kind::new(&Entry {
    id: "one-at-a-time",
    phrase: "with one request at a time, over several connections in turn",
    question: "Do some connections take longer than others when none waits for another?",
    load: Load::Plan,
    possible: |_, case| {
        let http = http(case)?;
        refuse(!http.keepalive, "each request has a connection of its own")?;
        refuse(http.streams() > 1, SHARED)
    },
    varies: |_, _, to| {
        to.connections = Some(IN_TURN_CONNECTIONS);
        to.one_at_a_time = true;
    },
    // Each connection is asked several times in each slot, and of slots there have to be some.
    budget: Budget::AtLeast(IN_TURN_BUDGET_NS),
    is_for_times: true,
    ..FLIP
});

/// Of servers that take connections in turn, eight meet each of up to eight; of so many one parts from the others by chance in one slot of eight.
const IN_TURN_CONNECTIONS: u32 = 8;
/// As patient as a probe is at most: of two targets a slot takes 0.75 s, in which each of eight connections has four requests of 23 ms.
const IN_TURN_BUDGET_NS: Nanos = 12 * SECOND_NS;

/// So many streams of a kind of work that has streams, each with its own connection: how much flows over them.
pub(crate) const STREAMS: Kind = Kind::new(&Entry {
    id: "streams-",
    phrase: "with another number of streams",
    question: "Do several streams add up?",
    load: Load::Number,
    is_for_times: true,
    ..FLIP
});

/// Why connections cannot be varied alone.
pub(super) const SHARED: &str = "requests share connections, so that it would change how many are under way as well";

/// The plan's settings of HTTP; else that it has none.
pub(super) fn http<'a>(case: &Case<'a>) -> Result<&'a HttpPlan, String> {
    case.http().ok_or_else(|| "the workload is not HTTP".to_owned())
}
