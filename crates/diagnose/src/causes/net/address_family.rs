//! `net.address-family`: the slow side's name has IPv4 and IPv6 addresses, and the one that clients use leads a slower way.
//!
//! Tunnels, other routers, other firewall rules, an MTU of its own, a load balancer of which one family knows nothing: the ways of the
//! two families may differ in anything. Which of these it is other causes tell; that it is one of them is shown by the other family, which
//! changes nothing of the server. All targets change that are reached by the slow side's family: where that is slow for everybody, as
//! behind a tunnel of our own, it is none of the gap.
//!
//! A name that has addresses of both is one server by its owner's word only. Where the other address answers with another certificate
//! or another body, the flip does not count (see `alike`); where it leads to another machine that answers alike, the gap is still of
//! the address, which is all that is said. A limit that counts our address apart lets another one of ours pass: it is asked for, and where
//! this machine has no other addresses to ask with, nothing is confirmed.

use crate::cause::{Cause, CauseEntry, Standing, Told, did_not_move, fit, needs_http, of_both, shown_flip};
use crate::causes::likes;
use crate::gap::Gap;
use crate::probes::OTHER_FAMILY;
use duel_model::web::phase;
use duel_model::{Confidence, IpFamily, TargetObservation, format_duration_ns, sanitize_line, web};
use std::net::SocketAddr;

static ENTRY: CauseEntry = CauseEntry {
    id: "net.address-family",
    description: "the server is reached by IPv6, or by IPv4, and that way is slower than the one of the other family",
    signature: "its name has addresses of both families; reached by the other one, the gap goes away",
    at_most: "confirmed; likely where a limit for each client cannot be excluded",
    needs_machine: false,
};

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let http = needs_http(gap)?;
    if http.proxy.is_some() {
        return Err(Standing::Undecided(gap.not_measured("it is the proxy that connects to the targets".to_owned())));
    }
    if http.unix_socket.is_some() {
        return Err(Standing::RuledOut(gap.not_measured("a Unix socket knows no addresses".to_owned())));
    }
    let peer = |side: usize| gap.text(side, web::PEER).and_then(|peer| peer.parse::<SocketAddr>().ok());
    let [used, of_fast] = of_both(gap, "which single addresses both sides are reached by is not known", peer)?;
    let family = IpFamily::of(used.ip());
    if gap.text(gap.slow, web::OTHER_FAMILY).is_none() {
        let are_of_one = IpFamily::of(of_fast.ip()) == family && gap.text(gap.slow, web::ONLY_FAMILY).is_some();
        let text = if are_of_one {
            format!("both sides are reached by {family}, and the name of {slow} has no other addresses")
        } else {
            format!("{slow} is reached by {used}, and no address of the other family is known")
        };
        let fact = gap.first_contact(text);
        return Err(if are_of_one { Standing::RuledOut(fact) } else { Standing::Undecided(fact) });
    }

    let flip = shown_flip(gap, OTHER_FAMILY.of(gap.slow))?;
    if !flip.moved() {
        return Err(did_not_move(gap, &flip));
    }
    // Else it is the fast side whose way by that family is quicker than its other one.
    if gap.known_reference().is_none_or(|reference| flip.costs_the_fast_side(reference)) {
        let text = format!("{}; but {fast} has become slower", gap.tell_flip(&flip));
        return Err(Standing::Undecided(gap.evidence(&flip.view, text)));
    }
    let mut is_nothing_else = true;
    for like in likes::held_against(gap, &ENTRY) {
        let told = gap.tell_flip(&flip);
        let not_excluded = |id: &str| {
            Standing::Undecided(
                gap.evidence(&flip.view, format!("{told}; but {id} is not excluded, which could show like that")),
            )
        };
        is_nothing_else &= like.map_err(|against| against.settles(not_excluded))?.is_some();
    }
    let other = flip.view.slow.negotiated.as_ref().and_then(|seen| seen.text(web::PEER)).map(sanitize_line);
    let [before, after] = [gap.known_reference().map(|view| view.slow), Some(flip.view.slow)].map(connect);
    let connecting = match before.zip(after) {
        Some((before, after)) => format!(" Connecting takes {before} the one way and {after} the other."),
        None => String::new(),
    };
    let told = Told {
        summary: format!(
            "{slow} is slower by {family}: its name leads to {used}, and by {} instead {} of the gap to {fast} is gone.{connecting}",
            other.unwrap_or_else(|| "its other address".to_owned()),
            flip.percent()
        ),
        remedy: format!(
            "Hold the two ways against each other: `mtr -4 HOST` and `mtr -6 HOST`, `tracepath -4` and `tracepath -6` for the MTU, the \
             firewall's rules for both families. Tunnels, VPNs and load balancers often know one family only. Where it is so for other \
             clients as well, take the {} record out of the zone until that way is mended, or let them prefer the other family.",
            if family == IpFamily::V6 { "AAAA" } else { "A" }
        ),
        facts: vec![gap.first_contact(format!("{slow} is reached by {used}"))],
        further: if is_nothing_else {
            Vec::new()
        } else {
            vec![gap.not_measured(format!(
                "not shown: that it is no limit for what comes from this machine's {family} address"
            ))]
        },
    };
    let confidence = if flip.confirms() && is_nothing_else { Confidence::Confirmed } else { Confidence::Likely };
    Ok(fit(gap, &ENTRY, &flip, confidence, told))
}

/// How long connecting takes in the median, in words; `None` where hardly anybody connected.
fn connect(seen: Option<&TargetObservation>) -> Option<String> {
    let connects = seen?.phase_profile.get(&phase::CONNECT.id())?;
    connects.quantile_ns(0.5).map(|ns| format_duration_ns(ns as f64))
}
