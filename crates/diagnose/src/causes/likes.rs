//! Which causes look like which others, and what has to be known of the other one before a cause is named.
//!
//! Causes do not know each other: each asks here for those that it looks like, and how one of them stands is that one's own judgement.

use super::suiting;
use crate::cause::{CauseEntry, Standing};
use crate::gap::Gap;
use duel_model::{Evidence, Probe};

/// What has to be known of another cause.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Must {
    /// That it is ruled out; its probes are made for that.
    BeRuledOut,
    /// That it does not fit, once its probes were made: it may stay open.
    NotFit,
    /// That it does not fit by what is known without probes of its own.
    NotBeSeen,
    /// That no flip has shown it: where one has, a cause that is not confirmed is taken back.
    NotBeShown,
    /// The same, and its flip is made even where this cause alone would end the search: it tells where this one comes from.
    NotBeShownWhenAsked,
}

impl Must {
    fn takes_back(self) -> bool {
        matches!(self, Self::NotBeShown | Self::NotBeShownWhenAsked)
    }
}

/// Each a cause, another one that it looks like, and what has to be known of that one.
static LIKES: [(&str, &str, Must); 71] = [
    // What the client sees has to speak against it; what only a machine tells must not speak for it.
    ("http.version", "http.no-keepalive", Must::BeRuledOut),
    ("http.version", "net.delayed-ack", Must::BeRuledOut),
    ("http.version", "cpu.traced", Must::NotFit),
    ("http.version", "cpu.quota", Must::NotFit),
    // Those stop a whole server, too.
    ("app.pauses", "cpu.quota", Must::BeRuledOut),
    ("app.pauses", "cpu.noisy-neighbour", Must::BeRuledOut),
    ("app.pauses", "cpu.stolen", Must::BeRuledOut),
    ("app.pauses", "mem.limit", Must::BeRuledOut),
    // A way that stops for a while stops all.
    ("app.pauses", "net.slow-path", Must::NotFit),
    // Those hold up one request and not another.
    ("app.pauses", "net.loss", Must::NotBeSeen),
    ("app.pauses", "http.sync-logging", Must::NotBeSeen),
    // At the end of a turn only its slow connections still wait, and nobody gets an answer.
    ("app.pauses", "http.bad-backend", Must::NotFit),
    // A connection that has lost packets sends slowly for a while.
    ("http.bad-backend", "net.loss", Must::NotBeSeen),
    // Whoever hands on reads and writes each byte once more.
    ("http.no-sendfile", "net.extra-hop", Must::NotFit),
    // Those make kernel time as well, or all of it dearer.
    ("http.proxy-buffering", "cpu.traced", Must::NotFit),
    ("http.proxy-buffering", "net.filter-chain", Must::NotBeSeen),
    ("http.proxy-buffering", "net.small-mtu", Must::NotBeSeen),
    ("http.proxy-buffering", "net.extra-hop", Must::NotFit),
    ("http.proxy-buffering", "mem.limit", Must::NotBeSeen),
    // Those make kernel time as well: more of it for each call, or more calls that nobody counts.
    ("cpu.security-hooks", "cpu.traced", Must::NotFit),
    ("cpu.security-hooks", "http.no-sendfile", Must::NotBeSeen),
    ("cpu.security-hooks", "http.proxy-buffering", Must::NotBeSeen),
    ("cpu.security-hooks", "net.filter-chain", Must::NotBeSeen),
    ("cpu.security-hooks", "net.small-mtu", Must::NotBeSeen),
    ("cpu.security-hooks", "net.extra-hop", Must::NotBeSeen),
    ("cpu.security-hooks", "mem.limit", Must::NotBeSeen),
    // Who cannot keep what it has read reads first what it will read again.
    ("mem.cold-cache", "mem.limit", Must::NotFit),
    // Others run beside both, and one of the two was put behind them.
    ("cpu.noisy-neighbour", "cpu.priority", Must::NotFit),
    // Whom a limit holds up is served few at a time.
    ("lock.contention", "net.client-limit", Must::NotBeShown),
    // Few workers let throughput level off: where it falls, requests hinder each other.
    ("http.few-workers", "lock.contention", Must::NotFit),
    // Whatever holds up all requests at a time shows in the queue behind a front as well.
    ("http.upstream-workers", "lock.contention", Must::NotFit),
    ("http.upstream-workers", "cpu.quota", Must::NotFit),
    ("http.upstream-workers", "mem.limit", Must::NotFit),
    ("http.upstream-workers", "net.client-limit", Must::NotBeShown),
    // Whom a limit for each client holds up is served few requests at a time, or few bytes.
    ("http.few-workers", "net.client-limit", Must::NotBeShown),
    ("net.rate-cap", "net.client-limit", Must::NotBeShown),
    // Whom a limit for each client holds up is another client by the other family.
    ("net.address-family", "net.client-limit", Must::NotFit),
    // What the way of one family costs shows as any of these: that the other family's way does not have it was shown.
    ("net.path-delay", "net.address-family", Must::NotBeShownWhenAsked),
    ("net.extra-hop", "net.address-family", Must::NotBeShownWhenAsked),
    ("net.loss", "net.address-family", Must::NotBeShownWhenAsked),
    ("net.rate-cap", "net.address-family", Must::NotBeShownWhenAsked),
    ("net.small-window", "net.address-family", Must::NotBeShownWhenAsked),
    ("net.initcwnd", "net.address-family", Must::NotBeShownWhenAsked),
    // What the servers' own connections tell of the path stands before what another program's do, and who has no time for one program has
    // none for the other.
    ("net.slow-path", "net.path-delay", Must::NotFit),
    ("net.slow-path", "net.loss", Must::NotFit),
    ("net.slow-path", "net.rate-cap", Must::NotFit),
    ("net.slow-path", "net.small-window", Must::NotFit),
    ("net.slow-path", "net.small-mtu", Must::NotFit),
    ("net.slow-path", "net.congestion-control", Must::NotFit),
    ("net.slow-path", "net.filter-chain", Must::NotFit),
    ("net.slow-path", "net.initcwnd", Must::NotFit),
    ("net.slow-path", "net.address-family", Must::NotFit),
    ("net.slow-path", "cpu.noisy-neighbour", Must::NotFit),
    ("net.slow-path", "cpu.stolen", Must::NotFit),
    // A further hop, too, has to be connected to.
    ("http.upstream-no-keepalive", "net.extra-hop", Must::NotFit),
    // What holds up the server behind a front as well as the front is none of what is behind it.
    ("http.slow-upstream", "cpu.quota", Must::NotFit),
    ("http.slow-upstream", "cpu.noisy-neighbour", Must::NotFit),
    ("http.slow-upstream", "cpu.stolen", Must::NotFit),
    ("http.slow-upstream", "cpu.traced", Must::NotFit),
    ("http.slow-upstream", "mem.limit", Must::NotFit),
    // Over kept connections all of these are in the wait for the answer.
    ("http.slow-upstream", "net.path-delay", Must::BeRuledOut),
    ("http.slow-upstream", "net.delayed-ack", Must::NotFit),
    ("http.slow-upstream", "net.loss", Must::NotFit),
    ("http.slow-upstream", "net.client-limit", Must::NotFit),
    ("http.slow-upstream", "net.extra-hop", Must::NotFit),
    ("http.slow-upstream", "http.sync-logging", Must::NotFit),
    ("http.slow-upstream", "http.upstream-no-keepalive", Must::NotFit),
    // Settings that differ may be why, and their flip tells how much they are worth.
    ("db.bad-plan", "db.config", Must::NotFit),
    // Another plan looks at more blocks, too, and so does who has not kept them.
    ("db.bloat", "db.bad-plan", Must::NotFit),
    ("db.bloat", "db.small-buffer-pool", Must::NotFit),
    // Who has no room for blocks writes changed ones back early.
    ("db.small-log", "db.small-buffer-pool", Must::NotFit),
];

/// What keeps a cause from being named.
pub(crate) enum Against {
    /// Probes of one that it looks like have to be made first.
    Asks(Vec<Probe>),
    /// One that it looks like may be it; its id.
    Stands(&'static str),
}

impl Against {
    /// How the cause stands, which is left open where another one may be it.
    pub(crate) fn settles(self, open: impl FnOnce(&str) -> Standing) -> Standing {
        match self {
            Self::Asks(probes) => Standing::Wants(probes),
            Self::Stands(id) => open(id),
        }
    }
}

/// Holds a cause against each of those that it looks like, in the table's order: what rules that one out, where it has to be, or
/// something did; else what keeps this one from being named.
pub(crate) fn held_against<'a>(
    gap: &'a Gap<'_>,
    entry: &'a CauseEntry,
) -> impl Iterator<Item = Result<Option<Evidence>, Against>> + 'a {
    let of_cause = LIKES.iter().filter(|(cause, _, must)| *cause == entry.id && !must.takes_back());
    of_cause.map(|&(_, other, must)| match (standing_of(gap, other), must) {
        (Some(Standing::Fits(_) | Standing::Suspected(_)), _) => Err(Against::Stands(other)),
        (_, Must::NotBeSeen | Must::NotBeShown | Must::NotBeShownWhenAsked) | (None, _) => Ok(None),
        (Some(Standing::RuledOut(by) | Standing::Minor(by)), _) => Ok(Some(by)),
        (Some(Standing::Wants(probes)), _) => Err(Against::Asks(probes)),
        (Some(Standing::Undecided(_)), Must::BeRuledOut) => Err(Against::Stands(other)),
        (Some(Standing::Undecided(_)), Must::NotFit) => Ok(None),
    })
}

/// Whether a cause is taken back where that other one was shown.
pub(crate) fn gives_way(entry: &CauseEntry, shown: &CauseEntry) -> bool {
    LIKES.iter().any(|(cause, other, must)| (*cause, *other) == (entry.id, shown.id) && must.takes_back())
}

/// Whether the flip of that other one is made though this cause alone would end the search.
pub(crate) fn asks_for(entry: &CauseEntry, other: &CauseEntry) -> bool {
    LIKES.contains(&(entry.id, other.id, Must::NotBeShownWhenAsked))
}

/// How another cause stands by its own judgement. `None`: it is none of this kind of work.
fn standing_of(gap: &Gap<'_>, id: &str) -> Option<Standing> {
    let cause = suiting(&gap.case).into_iter().find(|cause| cause.entry.id == id)?;
    Some(cause.standing(gap))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::all;

    #[test]
    fn each_line_is_of_two_causes_of_one_kind_of_work() {
        for (place, (cause, other, _)) in LIKES.iter().enumerate() {
            let kinds = |id: &str| {
                let of_id = all().filter(|cause| cause.entry.id == id);
                of_id.flat_map(|cause| cause.kinds).collect::<Vec<_>>()
            };
            let (kinds, of_other) = (kinds(cause), kinds(other));
            assert!(kinds.iter().any(|kind| of_other.contains(kind)), "{cause} and {other}");
            assert!(LIKES[..place].iter().all(|(a, b, _)| (a, b) != (cause, other)), "{cause} and {other} again");
        }
    }
}
