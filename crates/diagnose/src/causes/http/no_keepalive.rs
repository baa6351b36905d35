//! `http.no-keepalive`: the slow side closes connections that the fast side keeps.
//!
//! Seen in what the servers do with connections that we ask them to keep; shown by closing all connections on all
//! targets after each request: then both pay for connecting, and the gap goes away.

use crate::cause::{Cause, CauseEntry, Standing, Told, did_not_move, fit, needs_http, of_both, shown_flip};
use crate::evidence::fronts::Fronts;
use crate::evidence::handshakes::{MOSTLY_REUSED, connecting_at_most};
use crate::gap::{DemandLook, Flip, Gap, View, phase_differences};
use crate::probes::{ALL_CLOSE, Mode};
use duel_model::{Confidence, Evidence, When, format_figure, web};

static ENTRY: CauseEntry = CauseEntry {
    id: "http.no-keepalive",
    description: "the server closes connections that could be kept alive, so that each request connects anew",
    signature: "the slow side closes connections that the fast one keeps, or keeps for longer where connecting is \
                worth the gap; the gap goes away when all are closed",
    at_most: "confirmed",
    needs_machine: false,
};

/// Least share of the difference that has to be spent on connecting and its handshake, where closing costs the fast side little. Not
/// all of it has to be: a new connection also starts slowly, has small buffers, and a proxy may connect anew behind it; that
/// is in the receive phase, and closing costs the fast side as much.
const LEAST_CONNECTING: f64 = 0.1;

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let ruled_out = |text: String| Err(Standing::RuledOut(gap.at_reference(text)));
    if !needs_http(gap)?.keepalive {
        return ruled_out("the plan itself closes connections after each request".to_owned());
    }
    let [of_slow, of_fast] = of_both(gap, "whether connections are kept is not known", |side| connects(gap, side))?;
    let at_most = connecting_at_most(gap);
    if of_slow <= 1.0 - MOSTLY_REUSED && at_most.is_none_or(|most| most < Flip::NOTEWORTHY) {
        return ruled_out(format!("{slow} keeps connections alive"));
    }
    // Both count the first connections of our own slots.
    if of_fast >= (1.0 - Flip::NOTEWORTHY) * of_slow {
        return ruled_out(format!("{fast} closes connections as well"));
    }
    let flip = shown_flip(gap, ALL_CLOSE)?;
    if !flip.moved() {
        return Err(match did_not_move(gap, &flip) {
            Standing::RuledOut(told) => unless_those_behind_close_too(gap, told, of_slow),
            standing => standing,
        });
    }
    if let Some(reference) = gap.known_reference()
        && gap.mode == Mode::Alone
        && connecting_share(reference).is_some_and(|share| share < LEAST_CONNECTING)
        && !flip.costs_the_fast_side(reference)
    {
        let text = format!(
            "{}, but hardly any of the gap is spent on connecting, and closing costs {fast} hardly anything",
            gap.tell_flip(&flip)
        );
        return Err(Standing::Undecided(gap.evidence(reference, text)));
    }
    let shares = [gap.slow, gap.fast].map(|side| gap.reused_share(side));
    let seen = match shares {
        [Some(of_slow), Some(of_fast)] => format!(
            "{:.0} % of the requests to {slow} went over a connection used before, {:.0} % of those to {fast}",
            100.0 * of_slow,
            100.0 * of_fast
        ),
        _ => format!("{slow} closed the first connection though asked to keep it, {fast} kept it"),
    };
    let told = Told {
        summary: format!(
            "{slow} closes connections {} while {fast} keeps them{}: {} request to {slow} connects anew{}. When all \
             connections are closed on both, {} of the gap is gone.",
            if of_slow > 0.5 {
                "after each request".to_owned()
            } else {
                format!("after some {:.0} requests", 1.0 / (of_slow - of_fast))
            },
            if of_slow > 0.5 { "" } else { " longer" },
            if of_slow > 0.5 { "each" } else { "the next" },
            if gap.uses_tls(gap.slow) { ", with a TLS handshake" } else { "" },
            flip.percent()
        ),
        remedy: format!(
            "Let {slow} keep connections: nginx `keepalive_timeout` above 0 and a `keepalive_requests` of thousands; \
             Apache `KeepAlive On` and `MaxKeepAliveRequests`; HAProxy `option http-keep-alive` rather than \
             `httpclose`. `curl -v URL URL` says \"Re-using existing connection\" when it does."
        ),
        facts: vec![gap.at_reference(seen)],
        further: Vec::new(),
    };
    let confidence = if flip.confirms() { Confidence::Confirmed } else { Confidence::Likely };
    Ok(fit(gap, &ENTRY, &flip, confidence, told))
}

/// Closing ours takes nothing away. But whoever closes ours may close those to a server behind it for the same reason (one setting of
/// HAProxy does both), and those are not closed on the fast side then. So it is ruled out only where the slow side is seen to ask
/// another server over TCP, and to keep hardly fewer of those connections than there are requests: of Unix sockets nothing is counted.
/// Over HTTP/2 servers take leave in ways of their own, which have nothing to do with that.
fn unless_those_behind_close_too(gap: &Gap<'_>, told: Evidence, of_slow: f64) -> Standing {
    if gap.case.http().is_some_and(|http| http.http2.is_some()) {
        return Standing::RuledOut(told);
    }
    let slow = gap.slow_name();
    let open = |why: String| Standing::Undecided(Evidence { text: format!("{}; {why}", told.text), ..told.clone() });
    let unknown = || open(format!("whether {slow} closes connections to a server behind it as well is not known"));
    let demands = match gap.demands() {
        DemandLook::Shown(demands) => demands,
        DemandLook::NotAsked(probe) if probe.budget_ns <= gap.case.budget_left_ns => {
            return Standing::Wants(vec![probe]);
        }
        DemandLook::NotAsked(_) | DemandLook::Missing(_) => return unknown(),
    };
    match Fronts::of(gap, &demands) {
        Ok(fronts) if fronts.slow.opened >= Flip::NOTEWORTHY * of_slow => open(format!(
            "but for each request {slow}'s network opens {} connections besides ours: it may close those to a server behind it as well",
            format_figure(fronts.slow.opened)
        )),
        Ok(fronts) if fronts.slow.hands_on => Standing::RuledOut(told),
        Ok(_) | Err(_) => unknown(),
    }
}

/// Share of the difference that is spent before the request can be sent; `None` where phases were not recorded.
fn connecting_share(reference: &View<'_>) -> Option<f64> {
    let differences = phase_differences(reference);
    let whole_ns: f64 = differences.iter().map(|(_, ns)| ns).sum();
    let before = differences.iter().filter(|(phase, _)| phase.when != When::Each);
    let before_ns: f64 = before.map(|(_, ns)| ns).sum();
    (whole_ns > 0.0).then(|| before_ns / whole_ns)
}

/// Share of the requests that connect anew, by count where there is one.
fn connects(gap: &Gap<'_>, side: usize) -> Option<f64> {
    let counted = gap.reused_share(side).map(|share| 1.0 - share);
    counted.or_else(|| gap.fact(side, |seen| seen.is(web::KEEPS_ALIVE)).map(|keeps| f64::from(u8::from(!keeps))))
}
