//! `dns.slow` and `net.address-fallback`: what a client goes through before it is connected.
//!
//! A name is looked up, and an address is chosen, once and before any load, so neither is part of a gap and neither needs
//! one: both are told beside whatever the comparison says, with no share of it.

use crate::case::Case;
use crate::cause::CauseEntry;
use duel_model::{
    Confidence, Evidence, Facts, Finding, Leads, MILLISECOND_NS, Nanos, SECOND_NS, format_duration_ns, sanitize_line,
    web,
};

static DNS_SLOW: CauseEntry = CauseEntry {
    id: "dns.slow",
    description: "looking up the target's name takes long",
    signature: "a look-up of 40 ms or more that takes 4 times as long as the quickest other one, or 1 s",
    at_most: "likely from 1 s, else possible",
    needs_machine: false,
};

static ADDRESS_FALLBACK: CauseEntry = CauseEntry {
    id: "net.address-fallback",
    description: "the name's first addresses do not answer, and each client tries them first",
    signature: "addresses that did not answer before the one that was used",
    at_most: "likely",
    needs_machine: false,
};

/// The causes that are told beside gaps.
pub(crate) static BESIDE: [&CauseEntry; 2] = [&DNS_SLOW, &ADDRESS_FALLBACK];

/// A look-up that is answered by a cache takes a millisecond or a few; a distant server that has to ask others may take
/// some tens. It was seen once, so a shorter one may be a cache that was cold.
const SLOW_NS: Nanos = 40 * MILLISECOND_NS;
/// How much longer than the quickest look-up of a target: all of them slow is this machine's matter rather than a target's.
const CLEARLY_LONGER: u64 = 4;
/// Resolvers wait for whole seconds until they ask the next name server (resolv.conf(5), 5 s by default): a second is
/// beyond what an answering one takes.
const WAITED_NS: Nanos = SECOND_NS;

/// What is told beside the findings about gaps, for each target that it concerns.
pub(crate) fn findings(case: &Case<'_>) -> Vec<Finding> {
    // Through a proxy it is the proxy's name that was looked up, and its addresses that were tried: no target's matter.
    if case.http().is_some_and(|http| http.proxy.is_some()) {
        return Vec::new();
    }
    let lookups: Vec<Option<Nanos>> = (0..case.plan.targets.len()).map(|index| lookup_ns(case, index)).collect();
    let quickest_ns = lookups.iter().flatten().min().copied();
    let mut findings = Vec::new();
    for (index, lookup_ns) in lookups.iter().enumerate() {
        findings.extend(lookup_ns.and_then(|lookup_ns| slow_lookup(case, index, lookup_ns, quickest_ns?)));
        findings.extend(dead_addresses(case, index));
    }
    findings
}

fn slow_lookup(case: &Case<'_>, index: usize, lookup_ns: Nanos, quickest_ns: Nanos) -> Option<Finding> {
    let apart = lookup_ns >= quickest_ns.saturating_mul(CLEARLY_LONGER);
    if lookup_ns < SLOW_NS || !(apart || lookup_ns >= WAITED_NS) {
        return None;
    }
    let (name, took) = (name(case, index), format_duration_ns(lookup_ns as f64));
    let against = if apart {
        format!(", the quickest of the other ones {}", format_duration_ns(quickest_ns as f64))
    } else {
        String::new()
    };
    let measured = format!("looking up the name of {name} took {took}{against}");
    let confidence = if lookup_ns >= WAITED_NS { Confidence::Likely } else { Confidence::Possible };
    Some(Finding {
        cause: DNS_SLOW.id.to_owned(),
        target: Some(case.plan.targets.get(index)?.name.clone()),
        confidence,
        explains: None,
        summary: format!(
            "Looking up the name of {name} took {took}, before any load: new clients wait for that, and the speed measured \
             here does not contain it."
        ),
        evidence: vec![Evidence::new("first-contact", measured, Some(lookup_command(case, index)))],
        remedy:
            "Look the name up a few times: `dig NAME` tells the time and the server that answered. A first name server \
                 in `/etc/resolv.conf` that is dead costs seconds each time; a zone with a short TTL or distant name \
                 servers costs it whenever caches forget."
                .to_owned(),
        leads: Leads::default(),
    })
}

fn dead_addresses(case: &Case<'_>, index: usize) -> Option<Finding> {
    let facts = contacts(case, index).find(|facts| !facts.list(web::DEAD_ADDRESSES).is_empty())?;
    /// A name with hundreds of addresses is not told whole.
    const MOST_TOLD: usize = 4;
    let dead = facts.list(web::DEAD_ADDRESSES);
    let mut told: Vec<String> = dead.iter().take(MOST_TOLD).map(|address| sanitize_line(address)).collect();
    if dead.len() > MOST_TOLD {
        told.push(format!("{} more", dead.len() - MOST_TOLD));
    }
    let name = name(case, index);
    let lost = facts.count(web::DEAD_ADDRESSES_NS).map(|ns| format_duration_ns(ns as f64));
    let cost = lost.as_ref().map_or_else(String::new, |lost| format!(", which cost {lost}"));
    let (peer, count) = (facts.text(web::PEER).map_or_else(|| "another one".to_owned(), sanitize_line), dead.len());
    let everybody = case.plan.targets.len() > 1
        && (0..case.plan.targets.len())
            .all(|index| contacts(case, index).any(|facts| !facts.list(web::DEAD_ADDRESSES).is_empty()));
    let ours =
        if everybody { " It is so for all targets, so the way out of this machine may be what is dead." } else { "" };
    Some(Finding {
        cause: ADDRESS_FALLBACK.id.to_owned(),
        target: Some(case.plan.targets.get(index)?.name.clone()),
        // Which address is dead was seen; that other clients see the same was not.
        confidence: Confidence::Likely,
        explains: None,
        summary: format!(
            "{count} address{} of {name} did not answer before {peer} did{cost}: clients that try them in turn wait for \
             that when they connect, and the speed measured here does not contain it.{ours}",
            if count == 1 { "" } else { "es" }
        ),
        evidence: vec![Evidence::new("first-contact", format!("no answer from {}", told.join("; ")), Some(lookup_command(case, index)))],
        remedy: "Let the server listen on every address that its name has (often the IPv6 one is forgotten: `listen [::]:443`), \
                 let the firewall pass them, or take dead ones out of the zone (`dig NAME A`, `dig NAME AAAA`)."
            .to_owned(),
        leads: Leads::default(),
    })
}

/// The shortest time that looking up a target's name was seen to take: a first look-up fills caches.
fn lookup_ns(case: &Case<'_>, index: usize) -> Option<Nanos> {
    contacts(case, index).filter_map(|facts| facts.count(web::LOOKUP_NS)).min()
}

/// What was seen of a target's connections, at the first contact and under load.
fn contacts<'a>(case: &Case<'a>, index: usize) -> impl Iterator<Item = &'a Facts> {
    let first = case.first_contact.get(index).and_then(Option::as_ref);
    let under_load = case.comparison.get(index).and_then(|seen| seen.negotiated.as_ref());
    first.into_iter().chain(under_load)
}

fn name(case: &Case<'_>, index: usize) -> String {
    case.plan.targets.get(index).map_or_else(String::new, |target| sanitize_line(&target.name))
}

/// `getent ahosts HOST` as it can be typed; the host only where it is plain.
fn lookup_command(case: &Case<'_>, index: usize) -> String {
    let address = case.plan.targets.get(index).map_or("", |target| target.address.as_str());
    let authority = address.split_once("://").map_or(address, |(_, rest)| rest).split(['/', '?', '#']).next();
    let host = authority.unwrap_or_default().split(':').next().unwrap_or_default();
    let plain = !host.is_empty()
        && !host.starts_with('-')
        && host.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    format!("time getent ahosts {}", if plain { host } else { "NAME" })
}
