//! Probes that change what is asked of web servers, and how connections to them are made.

use super::load::{SHARED, http};
use super::settings::Value;
use super::{Budget, Entry, FLIP, Kind, Load, refuse};
use crate::case::Case;
use duel_model::{
    AddressRange, Nanos, SECOND_NS, TargetObservation, TlsVersion, Variation, format_bytes, sanitize_line, web,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

pub(crate) const CHACHA20: Kind = Kind::new(&Entry {
    id: "cipher-chacha20",
    phrase: "with ChaCha20 forced",
    question: "Does the gap go away with another cipher?",
    possible: |_, case| {
        http(case)?;
        let none_is_https = case.plan.targets.iter().all(|target| !is_https(&target.address));
        refuse(none_is_https, "no target is addressed by https")
    },
    varies: |_, _, to| to.ciphers = Some(SUITES_OF_CHACHA20.map(str::to_owned).to_vec()),
    took_effect: |_, seen| match negotiated(seen, web::TLS_CIPHER) {
        Some(cipher) if cipher.contains("CHACHA20") => Ok(()),
        Some(_) => Err("negotiated another cipher".to_owned()),
        None => Err("did not tell its cipher".to_owned()),
    },
    changes: &[web::TLS_CIPHER],
    ..FLIP
});

/// The ChaCha20 suites of both TLS versions, so that any server that has one can choose it.
const SUITES_OF_CHACHA20: [&str; 3] = [
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
];

/// The cipher suite that this target chose, forced on all.
pub(crate) const SUITE: Kind = Kind::new(&Entry {
    id: "suite-of-",
    phrase: "with the same cipher suite forced on all targets",
    question: "Does the gap go away with the same cipher suite?",
    possible: |kind, case| {
        http(case)?;
        refuse(chosen_text(kind, case, web::TLS_CIPHER).is_none(), "the suite is not known")
    },
    varies: |kind, case, to| to.ciphers = forced(kind, case, web::TLS_CIPHER),
    took_effect: |variation, seen| match (variation.ciphers.as_deref(), negotiated(seen, web::TLS_CIPHER)) {
        (Some([forced]), Some(cipher)) if cipher == forced => Ok(()),
        _ => Err("negotiated another cipher".to_owned()),
    },
    // A suite belongs to a version, which `tls.slow-cipher` looks at.
    changes: &[web::TLS_CIPHER, web::TLS_VERSION],
    ..FLIP
});

/// The key exchange group that this target chose, forced on all.
pub(crate) const GROUP: Kind = Kind::new(&Entry {
    id: "group-of-",
    phrase: "with the same key exchange group forced on all targets",
    question: "Does the gap go away with the same key exchange group?",
    possible: |kind, case| {
        http(case)?;
        refuse(chosen_text(kind, case, web::TLS_GROUP).is_none(), "the group is not known")
    },
    varies: |kind, case, to| {
        to.groups = forced(kind, case, web::TLS_GROUP).map(|mut groups| {
            let curves = (0..case.plan.targets.len()).filter_map(|target| curve_of_certificate(case, target));
            for curve in curves {
                if groups.iter().all(|group| group != curve) {
                    groups.push(curve.to_owned());
                }
            }
            groups
        });
    },
    took_effect: |variation, seen| match (variation.groups.as_deref(), negotiated(seen, web::TLS_GROUP)) {
        (Some([forced, ..]), Some(group)) if group == forced => Ok(()),
        _ => Err("negotiated another group".to_owned()),
    },
    changes: &[web::TLS_GROUP],
    ..FLIP
});

pub(crate) const TLS_12: Kind = Kind::new(&Entry {
    id: "tls-1.2",
    phrase: "with TLS 1.2 on all targets",
    question: "Does the gap go away with the same TLS version?",
    possible: |_, case| {
        let versions = &http(case)?.tls.versions;
        refuse(!versions.contains(&TlsVersion::V1_2), "the plan does not allow TLS 1.2")?;
        refuse(*versions == [TlsVersion::V1_2], "the plan allows TLS 1.2 only")
    },
    varies: |_, _, to| to.versions = Some(vec![TlsVersion::V1_2]),
    took_effect: |_, seen| match negotiated(seen, web::TLS_VERSION) {
        Some("1.2") => Ok(()),
        Some(_) => Err("negotiated another version".to_owned()),
        None => Err("did not tell its version".to_owned()),
    },
    changes: &[web::TLS_CIPHER, web::TLS_VERSION],
    ..FLIP
});

pub(crate) const RESUMED: Kind = Kind::new(&Entry {
    id: "resumed",
    phrase: "with TLS sessions resumed",
    question: "Does the gap go away when handshakes are resumed?",
    possible: |_, case| refuse(http(case)?.tls.resumption, "the plan resumes sessions already"),
    varies: |_, _, to| to.resumption = Some(true),
    took_effect: |_, seen| match (seen.resumed_share, seen.reused_share) {
        (Some(share), _) if share >= 0.75 => Ok(()),
        // Who keeps its connections has no handshakes to resume.
        (_, Some(reused)) if reused >= 0.9 => Ok(()),
        _ => Err("did not resume sessions".to_owned()),
    },
    changes_resumption: true,
    ..FLIP
});

/// Full handshakes, where the plan resumes sessions.
pub(crate) const UNRESUMED: Kind = Kind::new(&Entry {
    id: "unresumed",
    phrase: "with full handshakes",
    question: "Does the gap go away when no handshake is resumed?",
    possible: |_, case| refuse(!http(case)?.tls.resumption, "the plan resumes no session"),
    varies: |_, _, to| to.resumption = Some(false),
    took_effect: |_, seen| match seen.resumed_share {
        Some(share) if share <= 0.1 => Ok(()),
        Some(_) => Err("resumed sessions all the same".to_owned()),
        None => Err("left open whether sessions were resumed".to_owned()),
    },
    changes_resumption: true,
    ..FLIP
});

pub(crate) const ALL_CLOSE: Kind = Kind::new(&Entry {
    id: "all-close",
    phrase: "with one connection per request on all targets",
    question: "Does the gap go away when all connections are closed after each request?",
    possible: |_, case| {
        can_close(case)?;
        refuse(http(case)?.streams() > 1, SHARED)
    },
    varies: |_, _, to| to.keepalive = Some(false),
    took_effect: were_closed,
    changes_reuse: true,
    ..FLIP
});

/// Connections made anew for as little as the plan allows: how long a round trip is.
pub(crate) const TRIP: Kind = Kind::new(&Entry {
    id: "trip",
    phrase: "with new connections for as little as can be asked",
    question: "How long is a round trip?",
    load: Load::One,
    possible: |_, case| can_close(case),
    varies: |_, case, to| {
        to.keepalive = Some(false);
        to.range_bytes = RANGE_1.possible(case).is_ok().then_some(1);
    },
    took_effect: were_closed,
    changes: &[web::STATUS, web::CONTENT_ENCODING],
    changes_reuse: true,
    is_for_times: true,
    has_whole_response: false,
    budget: Budget::Fixed(TRIP_BUDGET_NS),
    ..FLIP
});

/// Some slots of 0.15 s for each target: dozens of connections, where a round trip is as long as between continents too.
/// How large the response is does not matter, for its first byte is enough.
const TRIP_BUDGET_NS: Nanos = 3 * SECOND_NS;

fn can_close(case: &Case<'_>) -> Result<(), String> {
    refuse(!http(case)?.keepalive, "the plan closes connections already")
}

/// A few ops per slot may go over the connection of the slot before; a tenth leaves the flip whole.
fn were_closed(_: &Variation, seen: &TargetObservation) -> Result<(), String> {
    match seen.reused_share {
        Some(share) if share <= 0.1 => Ok(()),
        Some(_) => Err("still used connections again".to_owned()),
        None => Err("left open whether connections were closed".to_owned()),
    }
}

pub(crate) const KEPT: Kind = Kind::new(&Entry {
    id: "kept",
    phrase: "with connections kept alive",
    question: "Does the gap go away when connections are kept?",
    possible: |_, case| refuse(http(case)?.keepalive, "the plan keeps connections already"),
    varies: |_, _, to| to.keepalive = Some(true),
    // The first op on each connection of a slot is new in any case: short slots reach no 100 %.
    took_effect: |_, seen| match seen.reused_share {
        Some(share) if share >= 0.75 => Ok(()),
        Some(_) => Err("closed connections all the same".to_owned()),
        None => Err("left open whether connections were kept".to_owned()),
    },
    changes_reuse: true,
    ..FLIP
});

/// HTTP/1.1 on all targets. As many requests are under way: where connections of HTTP/2 carry several at a time, there are as many
/// more connections.
pub(crate) const HTTP_1: Kind = Kind::new(&Entry {
    id: "http-1.1",
    phrase: "with HTTP/1.1 on all targets and as many requests at a time",
    question: "Does the gap go away with HTTP/1.1?",
    sets: &[("http2", Value::Becomes("off"))],
    took_effect: |_, seen| match negotiated(seen, web::HTTP_VERSION) {
        Some("HTTP/1.1") => Ok(()),
        Some(_) => Err("spoke another version of HTTP".to_owned()),
        None => Err("did not tell its version of HTTP".to_owned()),
    },
    changes: &[web::HTTP_VERSION],
    ..FLIP
});

/// No target is sent more requests at a time on a connection than the one that takes the fewest: for that one nothing changes but how
/// many wait at our end.
pub(crate) const FEW_STREAMS: Kind = Kind::new(&Entry {
    id: "few-streams",
    phrase: "with as few requests at a time on each connection to all targets",
    question: "Are the others as slow when they are sent as few requests at a time on a connection?",
    possible: |_, case| streams(case).map(|_| ()),
    varies: |_, case, to| {
        share_connections(to, case.plan.load.connections, streams(case).map(|streams| streams.fewest));
    },
    ..STREAMS_OF_ONE
});

/// As many requests at a time, over so many more connections that each target takes all that a connection carries.
pub(crate) const MORE_CONNECTIONS: Kind = Kind::new(&Entry {
    id: "more-connections",
    phrase: "with as many requests at a time, over as many connections as that takes",
    question: "Does the gap go away when no connection carries more requests at a time than each target takes?",
    possible: |_, case| streams(case).map(|_| ()),
    varies: |_, case, to| {
        let streams = streams(case);
        let connections = streams.as_ref().map_or(1, |streams| case.plan.lanes() / streams.each);
        share_connections(to, connections, streams.map(|streams| streams.each));
    },
    ..STREAMS_OF_ONE
});

/// Another number of requests that a connection carries, without which. It is a matter of many at a time, so they are made with many.
const STREAMS_OF_ONE: Entry = Entry { load: Load::Plan, ..FLIP };

/// Requests at a time on a connection.
/// Where the targets take so many, there are at most so many times as many connections as it takes.
const MOST_CONNECTIONS_FOR_ONE: u32 = 4;

struct Streams {
    /// As many as the target takes that takes the fewest.
    fewest: u32,
    /// The most that each target takes and of which some number of connections carries exactly as many as the plan sends.
    each: u32,
}

/// Where a target takes fewer requests at a time on a connection than the plan sends.
fn streams(case: &Case<'_>) -> Result<Streams, String> {
    let asked = http(case)?.streams();
    let of = |index: usize| case.fact(index, |seen| seen.count(web::MAX_STREAMS));
    let all: Option<Vec<u64>> = (0..case.plan.targets.len()).map(of).collect();
    let fewest =
        all.and_then(|all| all.into_iter().min()).ok_or("how many requests a connection takes is not known")?;
    let fewest = u32::try_from(fewest).unwrap_or(u32::MAX);
    refuse(fewest >= asked, "all targets take as many requests at a time on a connection as the plan sends")?;
    let all = case.plan.lanes();
    let each = (1..=fewest).rev().find(|few| all.is_multiple_of(*few)).ok_or("a target takes no request at all")?;
    // Connections with hardly any requests are another load, and many of them a burden.
    refuse(
        MOST_CONNECTIONS_FOR_ONE * each < fewest,
        "no number of connections carries exactly as many requests, but one that is far larger",
    )?;
    Ok(Streams { fewest, each })
}

fn share_connections(to: &mut Variation, connections: u32, streams: Result<u32, String>) {
    if let Ok(streams) = streams {
        to.connections = Some(connections);
        to.settings.insert(web::settings::STREAMS.id(), streams.to_string());
    }
}

/// A window as large as it is where the plan sets none.
pub(crate) const WIDE_WINDOW: Kind = Kind::new(&Entry {
    id: "wide-window",
    phrase: "with a window of 1 GiB for the responses of all targets",
    question: "Does the gap go away when no server waits for our leave to send on?",
    sets: &[("h2-window", Value::Becomes(web::settings::H2_WINDOW.default))],
    ..FLIP
});

pub(crate) const IDENTITY: Kind = Kind::new(&Entry {
    id: "identity",
    phrase: "without compression",
    question: "Does the gap go away without compression?",
    possible: |_, case| {
        let http = http(case)?;
        let asks = http.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("accept-encoding"));
        refuse(http.accept_encoding.is_none() && !asks, "the plan does not accept compression anyhow")
    },
    varies: |_, _, to| to.accept_encoding = Some(None),
    took_effect: |_, seen| match seen.negotiated.as_ref().map(|seen| seen.text(web::CONTENT_ENCODING)) {
        Some(None | Some("identity")) => Ok(()),
        Some(Some(_)) => Err("compressed all the same".to_owned()),
        None => Err("left open whether it compressed".to_owned()),
    },
    changes: &[web::CONTENT_ENCODING],
    changes_size: true,
    ..FLIP
});

pub(crate) const RANGE_1: Kind = Kind::new(&Entry {
    id: "range-1",
    phrase: "for the first byte of the response only",
    question: "Is the gap paid per request or per byte?",
    varies: |_, _, to| to.range_bytes = Some(1),
    has_whole_response: false,
    ..RANGE
});

pub(crate) const RANGE_HALF: Kind = Kind::new(&Entry {
    id: "range-half",
    phrase: "for the first half of the response only",
    question: "Does the gap grow evenly with the size of the response?",
    varies: |_, case, to| to.range_bytes = case.smallest_body_bytes().map(|bytes| (bytes / 2.0).max(1.0) as u64),
    ..RANGE
});

pub(crate) const RANGE_SAME: Kind = Kind::new(&Entry {
    id: "range-same",
    phrase: "with as many bytes asked of all targets as the smallest response has",
    question: "Does the gap go away with responses of the same size?",
    varies: |_, case, to| to.range_bytes = case.smallest_body_bytes().map(|bytes| bytes.max(1.0) as u64),
    ..RANGE
});

/// A part of the response, without how much of it.
const RANGE: Entry = Entry {
    possible: |_, case| {
        let http = http(case)?;
        let asks = http.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("range"));
        refuse(http.method != "GET" || http.requests.may_write(), "only a GET can ask for a part")?;
        refuse(http.requests.differ(), "the requests differ, so that there is no one response to take a part of")?;
        refuse(http.range_bytes.is_some() || asks, "the plan asks for a part already")?;
        let too_small = case.smallest_body_bytes().is_none_or(|bytes| bytes < SMALLEST_SWEEP_BYTES);
        refuse(too_small, "the responses are too small to ask for a part")
    },
    took_effect: |variation, seen| match (variation.range_bytes, seen.body_bytes_per_op) {
        (Some(asked), Some(sent)) if sent <= asked as f64 + 0.5 => Ok(()),
        (_, Some(sent)) => Err(format!("ignored the range and sent {}", format_bytes(sent))),
        (_, None) => Err("sent an unknown number of bytes".to_owned()),
    },
    changes: &[web::STATUS, web::CONTENT_ENCODING],
    changes_size: true,
    // Shorter requests: more of them to a slot.
    changes_reuse: true,
    ..FLIP
};

/// Below this size, what a response costs per byte is less than what it costs anyhow: a sweep would show noise.
pub(crate) const SMALLEST_SWEEP_BYTES: f64 = 1024.0;

pub(crate) const QUICK_ACK: Kind = Kind::new(&Entry {
    id: "quick-ack",
    phrase: "with acknowledgements sent at once",
    question: "Does the gap go away when acknowledgements do not wait?",
    possible: |_, case| {
        let http = http(case)?;
        refuse(http.proxy.is_some(), "it is the proxy that acknowledges what a target sends")?;
        refuse(http.quick_ack, "the plan acknowledges at once already")
    },
    varies: |_, _, to| to.quick_ack = Some(true),
    // It is asked of our own system, which does it or does not; nothing tells.
    ..FLIP
});

/// Segments no larger than those of this target, announced to all.
pub(crate) const SEGMENTS: Kind = Kind::new(&Entry {
    id: "segments-of-",
    phrase: "with segments of the same size on all targets",
    question: "Does the gap go away with segments of the same size?",
    possible: |kind, case| {
        refuse(http(case)?.segment_bytes.is_some(), "the plan sets the size of segments already")?;
        refuse(segments_of(kind, case).is_none(), "the size of segments is not known")
    },
    varies: |kind, case, to| to.segment_bytes = segments_of(kind, case),
    ..SEGMENTS_OF_ONE
});

/// Other segments, without how long.
const SEGMENTS_OF_ONE: Entry = Entry {
    took_effect: |variation, seen| {
        let bytes = seen.negotiated.as_ref().and_then(|seen| seen.count(web::SEGMENT_BYTES));
        match (variation.segment_bytes, bytes) {
            (Some(forced), Some(bytes)) if bytes <= u64::from(forced) => Ok(()),
            _ => Err("used larger segments".to_owned()),
        }
    },
    ..FLIP
};

/// Segments a third as long as the shortest that a target has, announced to all: what is held back in segments flows at a third.
pub(crate) const THIRD_SEGMENTS: Kind = Kind::new(&Entry {
    id: "third-segments",
    phrase: "with segments a third as long on all targets",
    question: "Is the gap paid per segment or per byte?",
    possible: |_, case| {
        refuse(http(case)?.segment_bytes.is_some(), "the plan sets the size of segments already")?;
        refuse(third_of_segments(case).is_none(), "the sizes of segments are not known, or too short to be a third")
    },
    varies: |_, case, to| to.segment_bytes = third_of_segments(case),
    is_for_times: true,
    ..SEGMENTS_OF_ONE
});

/// A third of the shortest segment, where that can be announced.
fn third_of_segments(case: &Case<'_>) -> Option<u16> {
    let all: Option<Vec<u16>> =
        (0..case.plan.targets.len()).map(|index| segments_of(SEGMENTS.of(index), case)).collect();
    all?.into_iter().min().map(|shortest| shortest / 3).filter(|&bytes| bytes >= LEAST_SEGMENT_BYTES)
}

/// The plan's connections, each from another address of this machine, as far as it has so many.
pub(crate) const SOURCES_SPREAD: Kind = Kind::new(&Entry {
    id: "sources-spread",
    phrase: "with connections spread over other addresses of this machine",
    question: "Does the gap go away when connections come from several other addresses?",
    possible: |_, case| {
        let others = other_sources(case)?;
        refuse(case.plan.load.connections < 2, "a single connection comes from a single address")?;
        refuse(others.len() < 2, "this machine has only one other address")
    },
    varies: |_, case, to| to.sources = Some(AddressRange::holding(spread(case).0)),
    ..SOURCES
});

pub(crate) const SOURCE_OTHER: Kind = Kind::new(&Entry {
    id: "source-other",
    phrase: "with all connections from one other address of this machine",
    question: "Does the gap go away when all connections come from one other address?",
    possible: |_, case| other_sources(case).map(|_| ()),
    varies: |_, case, to| to.sources = spread(case).1.map(|other| vec![other.into()]),
    ..SOURCES
});

/// Connections from elsewhere, without from where. Where they cannot be made from an address, nothing is measured.
const SOURCES: Entry = Entry { load: Load::Plan, ..FLIP };

/// Addresses of the other family than this target's, for all targets that are reached by its family: what that family costs, it may cost
/// others as well.
pub(crate) const OTHER_FAMILY: Kind = Kind::new(&Entry {
    id: "other-family-",
    phrase: "by addresses of the other IP family",
    question: "Does the gap go away by the other family of addresses?",
    possible: |kind, case| {
        let http = http(case)?;
        refuse(http.proxy.is_some(), "it is the proxy that connects to the targets")?;
        refuse(!http.connect_to.is_empty(), "the plan says where connections go")?;
        other_addresses(kind, case).map(|_| ())
    },
    varies: |kind, case, to| to.peers.extend(other_addresses(kind, case).into_iter().flatten()),
    ..FLIP
});

/// The addresses of the other family, by the numbers of their targets.
fn other_addresses(kind: Kind, case: &Case<'_>) -> Result<BTreeMap<usize, SocketAddr>, String> {
    let address =
        |index: usize, name: &str| -> Option<SocketAddr> { case.fact(index, |seen| seen.text(name)?.parse().ok()) };
    let mut addresses = BTreeMap::new();
    for (index, target) in case.plan.targets.iter().enumerate() {
        let families = [kind.number, index].map(|of| address(of, web::PEER).map(|peer| peer.is_ipv4()));
        let [Some(changed), Some(of_target)] = families else {
            return Err("which addresses are used is not known".to_owned());
        };
        if of_target == changed {
            let other = address(index, web::OTHER_FAMILY);
            let none = || format!("no address of the other family is known of {}", sanitize_line(&target.name));
            addresses.insert(index, other.ok_or_else(none)?);
        }
    }
    Ok(addresses)
}

/// The other addresses of this machine, where the plan leaves open from which of them connections are made.
fn other_sources<'a>(case: &Case<'a>) -> Result<&'a [IpAddr], String> {
    let http = http(case)?;
    refuse(!http.reach.sources.is_empty(), "the plan says which addresses connections are made from")?;
    refuse(http.proxy.is_some(), "it is the proxy that connects to the targets")?;
    refuse(http.unix_socket.is_some(), "a Unix socket knows no addresses")?;
    let others = case.sources?;
    refuse(others.is_empty(), "this machine has no other address")?;
    Ok(others)
}

/// Local addresses that connections are spread over, at most.
const MOST_SOURCES: usize = 64;

/// The addresses that the plan's connections are spread over, and one for all of them: one of which the server has not heard
/// before, if there is one left.
fn spread(case: &Case<'_>) -> (impl Iterator<Item = IpAddr>, Option<IpAddr>) {
    let others = case.sources.unwrap_or_default();
    let count = others.len().min(case.plan.load.connections as usize).min(MOST_SOURCES);
    (others[..count].iter().copied(), others.get(count).or(others.first()).copied())
}

/// Linux announces no shorter segments (`TCP_MIN_MSS`).
const LEAST_SEGMENT_BYTES: u16 = 88;

/// The size of a target's segments in bytes, in the range that can be announced.
fn segments_of(kind: Kind, case: &Case<'_>) -> Option<u16> {
    case.fact(kind.number, |seen| seen.count(web::SEGMENT_BYTES))
        .and_then(|bytes| u16::try_from(bytes).ok())
        .filter(|&bytes| bytes >= LEAST_SEGMENT_BYTES)
}

/// What the target that the probe is about chose, to be forced on all.
fn forced(kind: Kind, case: &Case<'_>, name: &str) -> Option<Vec<String>> {
    chosen_text(kind, case, name).map(|text| vec![text.to_owned()])
}

fn chosen_text<'a>(kind: Kind, case: &Case<'a>, name: &str) -> Option<&'a str> {
    case.fact(kind.number, |seen| seen.text(name))
}

/// The group of a target's certificate, which a client of TLS 1.2 has to offer as well: else such servers refuse (RFC 8422, 5.3).
fn curve_of_certificate(case: &Case<'_>, target: usize) -> Option<&'static str> {
    case.fact(target, |seen| seen.text(web::TLS_VERSION).filter(|version| *version == "1.2"))?;
    let key = case.fact(target, web::CertificateKey::of).filter(|key| key.algorithm == "EC")?;
    match key.bits? {
        256 => Some("secp256r1"),
        384 => Some("secp384r1"),
        _ => None,
    }
}

fn negotiated<'a>(seen: &'a TargetObservation, name: &str) -> Option<&'a str> {
    seen.negotiated.as_ref().and_then(|seen| seen.text(name))
}

pub(crate) fn is_https(address: &str) -> bool {
    address.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"))
}
