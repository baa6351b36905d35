//! The probes: what each one changes, when it can be made, and how to tell that the change took effect.

use crate::case::Case;
use crate::flips::Settings;
use duel_model::web::phase;
use duel_model::{
    AddressRange, Capabilities, Facts, HostAccess, MILLISECOND_NS, Nanos, Probe, SECOND_NS, TargetObservation,
    TlsVersion, TwinChange, TwinPlan, Variation, web,
};
use std::net::IpAddr;

/// A probe without its circumstances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// The same requests over one connection: phases without queueing.
    Alone,
    /// The comparison's own load once more: whether the gap is still what it was.
    Again,
    /// The plan's connections in a closed loop: the reference of an open-loop plan whose gap does not show alone.
    Closed,
    Chacha20,
    Range1,
    RangeHalf,
    /// As many bytes of the response as the smallest one has.
    RangeSame,
    AllClose,
    /// Connections made anew for as little as the plan allows: how long a round trip is.
    Trip,
    Kept,
    Resumed,
    Identity,
    /// Full handshakes, where the plan resumes sessions.
    Unresumed,
    /// TLS 1.2 on all targets.
    Tls12,
    /// Acknowledgements sent at once.
    QuickAck,
    /// The cipher suite that this target chose, forced on all.
    SuiteOf(usize),
    /// The key exchange group that this target chose, forced on all.
    GroupOf(usize),
    /// The plan's connections, each from another address of this machine, as far as it has so many.
    SourcesSpread,
    /// The plan's connections, all from one other address of this machine.
    SourceOther,
    /// Segments no larger than those of this target, announced to all.
    SegmentsOf(usize),
    /// This many connections, whatever the mode: a point of the concurrency sweep.
    Connections(u32),
    /// The plan's load, with the targets' machines read before and after each slot.
    Hosts,
    /// The libcrypto that this target's server maps, measured alone.
    LensOf(usize),
    /// Settings of the work as this entry has them.
    Set(&'static Settings),
    /// A private twin in the place of this target's server, started with this change.
    TwinOf(usize, Option<TwinChange>),
}

/// How a gap is probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Over one connection: cheap and sharp, where the gap shows there.
    Alone,
    /// With the plan's connections.
    Loaded,
}

/// Local addresses that connections are spread over, at most.
const MOST_SOURCES: usize = 64;

/// Why connections cannot be varied alone.
const SHARED: &str = "requests share connections, so that it would change how many are under way as well";

/// Below this size, what a response costs per byte is less than what it costs anyhow: a sweep would show noise.
pub(crate) const SMALLEST_SWEEP_BYTES: f64 = 1024.0;

impl Kind {
    /// How ties between equally valuable probes are broken: the one that comes first in this list of ids.
    pub(crate) fn order(id: &str) -> usize {
        const ORDER: [&str; 23] = [
            "alone",
            "again",
            "closed",
            "hosts",
            "cipher-",
            "all-close",
            "trip",
            "identity",
            "resumed",
            "unresumed",
            "kept",
            "suite-of-",
            "group-of-",
            "tls-1.2",
            "quick-ack",
            "segments-of-",
            "range-1",
            "range-same",
            "range-half",
            "lens-of-",
            "twin-of-",
            "sources-spread",
            "source-other",
        ];
        ORDER.iter().position(|known| id.starts_with(known)).unwrap_or(ORDER.len())
    }

    pub(crate) fn id(self, mode: Mode) -> String {
        let id = match self {
            // These are what they are in either mode.
            Self::Alone => return "alone".to_owned(),
            Self::Again => return "again".to_owned(),
            Self::Closed => return "closed".to_owned(),
            Self::Trip => return "trip".to_owned(),
            Self::Hosts => return "hosts".to_owned(),
            Self::SourcesSpread => return "sources-spread".to_owned(),
            Self::SourceOther => return "source-other".to_owned(),
            Self::Connections(count) => return format!("connections-{count}"),
            Self::LensOf(target) => return format!("lens-of-{target}"),
            Self::Set(settings) => settings.id.to_owned(),
            Self::Chacha20 => "cipher-chacha20".to_owned(),
            Self::Range1 => "range-1".to_owned(),
            Self::RangeHalf => "range-half".to_owned(),
            Self::RangeSame => "range-same".to_owned(),
            Self::AllClose => "all-close".to_owned(),
            Self::Kept => "kept".to_owned(),
            Self::Resumed => "resumed".to_owned(),
            Self::Identity => "identity".to_owned(),
            Self::Unresumed => "unresumed".to_owned(),
            Self::Tls12 => "tls-1.2".to_owned(),
            Self::QuickAck => "quick-ack".to_owned(),
            Self::SuiteOf(target) => format!("suite-of-{target}"),
            Self::GroupOf(target) => format!("group-of-{target}"),
            Self::SegmentsOf(target) => format!("segments-of-{target}"),
            Self::TwinOf(target, None) => format!("twin-of-{target}"),
            Self::TwinOf(target, Some(change)) => format!("twin-of-{target}-{}", change.id()),
        };
        match mode {
            Mode::Alone => id,
            Mode::Loaded => format!("{id}-loaded"),
        }
    }

    /// What it changes, in front of a colon.
    pub(crate) fn phrase(self) -> &'static str {
        match self {
            Self::Alone => "over one connection",
            Self::Again => "once more as in the comparison",
            Self::Closed => "with as many connections in a closed loop",
            Self::Chacha20 => "with ChaCha20 forced",
            Self::Range1 => "for the first byte of the response only",
            Self::RangeHalf => "for the first half of the response only",
            Self::RangeSame => "with as many bytes asked of all targets as the smallest response has",
            Self::AllClose => "with one connection per request on all targets",
            Self::Trip => "with new connections for as little as can be asked",
            Self::Kept => "with connections kept alive",
            Self::Resumed => "with TLS sessions resumed",
            Self::Identity => "without compression",
            Self::Unresumed => "with full handshakes",
            Self::Tls12 => "with TLS 1.2 on all targets",
            Self::QuickAck => "with acknowledgements sent at once",
            Self::SuiteOf(_) => "with the same cipher suite forced on all targets",
            Self::GroupOf(_) => "with the same key exchange group forced on all targets",
            Self::SegmentsOf(_) => "with segments of the same size on all targets",
            Self::SourcesSpread => "with connections spread over other addresses of this machine",
            Self::SourceOther => "with all connections from one other address of this machine",
            Self::Connections(1) => "over a single connection",
            Self::Connections(_) => "with another number of connections",
            Self::Hosts => "with the machines read around each slot",
            Self::LensOf(_) => "the server's libcrypto alone",
            Self::Set(settings) => settings.phrase,
            Self::TwinOf(_, None) => "with its server started anew as it is",
            Self::TwinOf(_, Some(change)) => match change {
                TwinChange::NoMask => "with its server started anew without a mask on CPU features",
                TwinChange::SystemLibcrypto => "with its server started anew on the system's own libcrypto",
                TwinChange::AllCpus => "with its server started anew on all CPUs of the machine",
                TwinChange::MoreWorkers => "with its server started anew with more workers",
                TwinChange::LargePieces => "with its server started anew to send in large pieces",
                TwinChange::NoLimits => "with its server started anew without limits of its own",
            },
        }
    }

    fn question(self) -> &'static str {
        match self {
            Self::Alone => "Does the gap show over a single connection, and in which phase?",
            Self::Again => "Is the gap still what it was in the comparison?",
            Self::Closed => "Does the gap show in a closed loop?",
            Self::Chacha20 => "Does the gap go away with another cipher?",
            Self::Range1 => "Is the gap paid per request or per byte?",
            Self::RangeHalf => "Does the gap grow evenly with the size of the response?",
            Self::RangeSame => "Does the gap go away with responses of the same size?",
            Self::AllClose => "Does the gap go away when all connections are closed after each request?",
            Self::Trip => "How long is a round trip?",
            Self::Kept => "Does the gap go away when connections are kept?",
            Self::Resumed => "Does the gap go away when handshakes are resumed?",
            Self::Identity => "Does the gap go away without compression?",
            Self::Unresumed => "Does the gap go away when no handshake is resumed?",
            Self::Tls12 => "Does the gap go away with the same TLS version?",
            Self::QuickAck => "Does the gap go away when acknowledgements do not wait?",
            Self::SuiteOf(_) => "Does the gap go away with the same cipher suite?",
            Self::GroupOf(_) => "Does the gap go away with the same key exchange group?",
            Self::SegmentsOf(_) => "Does the gap go away with segments of the same size?",
            Self::SourcesSpread => "Does the gap go away when connections come from several other addresses?",
            Self::SourceOther => "Does the gap go away when all connections come from one other address?",
            Self::Connections(_) => "How does the gap change with the number of connections?",
            Self::Hosts => "What do the machines do for each request?",
            Self::LensOf(_) => "Does the server's libcrypto use the CPU's AES instructions?",
            Self::Set(settings) => settings.question,
            Self::TwinOf(_, None) => "Does a private twin of the server show the gap?",
            Self::TwinOf(_, Some(change)) => match change {
                TwinChange::NoMask => "Does the gap go away on a twin without a mask on CPU features?",
                TwinChange::SystemLibcrypto => "Does the gap go away on a twin with the system's libcrypto?",
                TwinChange::AllCpus => "Does the gap go away on a twin that may use all CPUs?",
                TwinChange::MoreWorkers => "Does the gap go away on a twin with more workers?",
                TwinChange::LargePieces => "Does the gap go away on a twin that sends in large pieces?",
                TwinChange::NoLimits => "Does the gap go away on a twin without limits of its own?",
            },
        }
    }

    /// Whether the plan leaves room for it; if not, why.
    pub(crate) fn possible(self, case: &Case<'_>) -> Result<(), String> {
        if matches!(self, Self::Alone | Self::Again) {
            return Ok(());
        }
        if let Self::Set(settings) = self {
            return settings.possible(case);
        }
        if self == Self::Hosts {
            let any = case.hosts.iter().any(Option::is_some);
            return if any { Ok(()) } else { Err("no machine is read".to_owned()) };
        }
        if let Self::LensOf(target) = self {
            let here = case.plan.targets.get(target).and_then(|target| target.host.as_ref());
            return match here.map(|host| &host.access) {
                Some(HostAccess::Local | HostAccess::Ssh(_)) => Ok(()),
                None => Err("the machine is not read".to_owned()),
            };
        }
        if let Self::TwinOf(target, _) = self {
            if !case.may_have_twin(target) {
                return Err("no twin of its server may be started".to_owned());
            }
            let here = case.plan.targets.get(target).and_then(|target| target.host.as_ref());
            return match here.map(|host| &host.access) {
                Some(HostAccess::Local) => Ok(()),
                Some(HostAccess::Ssh(_)) => {
                    Err("not available over ssh: a twin's network has no way out, and load from here would not reach it; run duel \
                     on that machine".to_owned())
                }
                None => Err("the machine is not read".to_owned()),
            };
        }
        let Some(http) = case.http() else { return Err("the workload is not HTTP".to_owned()) };
        let refuse = |when: bool, why: &str| if when { Err(why.to_owned()) } else { Ok(()) };
        match self {
            Self::Alone | Self::Again | Self::Closed => Ok(()),
            Self::Chacha20 => refuse(
                case.plan.targets.iter().all(|target| !is_https(&target.address)),
                "no target is addressed by https",
            ),
            Self::Range1 | Self::RangeHalf | Self::RangeSame => {
                refuse(http.method != "GET" || http.requests.may_write(), "only a GET can ask for a part")?;
                refuse(
                    http.requests.differ(),
                    "the requests differ, so that there is no one response to take a part of",
                )?;
                refuse(
                    http.range_bytes.is_some()
                        || http.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("range")),
                    "the plan asks for a part already",
                )?;
                refuse(
                    case.smallest_body_bytes().is_none_or(|bytes| bytes < SMALLEST_SWEEP_BYTES),
                    "the responses are too small to ask for a part",
                )
            }
            Self::AllClose | Self::Trip => {
                refuse(!http.keepalive, "the plan closes connections already")?;
                refuse(self == Self::AllClose && http.streams() > 1, SHARED)
            }
            Self::Kept => refuse(http.keepalive, "the plan keeps connections already"),
            Self::Resumed => refuse(http.tls.resumption, "the plan resumes sessions already"),
            Self::Identity => refuse(
                http.accept_encoding.is_none()
                    && !http.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("accept-encoding")),
                "the plan does not accept compression anyhow",
            ),
            Self::Unresumed => refuse(!http.tls.resumption, "the plan resumes no session"),
            Self::Tls12 => {
                refuse(!http.tls.versions.contains(&TlsVersion::V1_2), "the plan does not allow TLS 1.2")?;
                refuse(http.tls.versions == [TlsVersion::V1_2], "the plan allows TLS 1.2 only")
            }
            Self::QuickAck => {
                refuse(http.proxy.is_some(), "it is the proxy that acknowledges what a target sends")?;
                refuse(http.quick_ack, "the plan acknowledges at once already")
            }
            Self::SuiteOf(target) => {
                refuse(chosen(case, target, |seen| seen.text(web::TLS_CIPHER)).is_none(), "the suite is not known")
            }
            Self::GroupOf(target) => {
                refuse(chosen(case, target, |seen| seen.text(web::TLS_GROUP)).is_none(), "the group is not known")
            }
            Self::SourcesSpread | Self::SourceOther => {
                refuse(!http.reach.sources.is_empty(), "the plan says which addresses connections are made from")?;
                refuse(http.proxy.is_some(), "it is the proxy that connects to the targets")?;
                refuse(http.unix_socket.is_some(), "a Unix socket knows no addresses")?;
                let others = case.sources?;
                refuse(others.is_empty(), "this machine has no other address")?;
                let spread = self == Self::SourcesSpread;
                refuse(spread && case.plan.load.connections < 2, "a single connection comes from a single address")?;
                refuse(spread && others.len() < 2, "this machine has only one other address")
            }
            Self::SegmentsOf(target) => {
                refuse(http.segment_bytes.is_some(), "the plan sets the size of segments already")?;
                refuse(segments_of(case, target).is_none(), "the size of segments is not known")
            }
            Self::Connections(count) => {
                refuse(count == 0, "no load without a connection")?;
                refuse(http.streams() > 1, SHARED)
            }
            Self::Hosts | Self::LensOf(_) | Self::TwinOf(..) | Self::Set(_) => Ok(()),
        }
    }

    pub(crate) fn probe(self, case: &Case<'_>, mode: Mode) -> Probe {
        let connections = match self {
            Self::Alone | Self::Trip => Some(1),
            Self::Again | Self::Closed | Self::Hosts | Self::SourcesSpread | Self::SourceOther => None,
            Self::Connections(count) => Some(count),
            _ => (mode == Mode::Alone).then_some(1),
        };
        let budget_ns = budget_ns(case, connections == Some(1), self.needs_whole_response());
        Probe {
            id: self.id(mode),
            question: self.question().to_owned(),
            variation: Variation { connections, ..self.variation(case) },
            budget_ns: match self {
                Self::Hosts => budget_ns.max(HOSTS_BUDGET_NS),
                Self::Trip => TRIP_BUDGET_NS,
                _ => budget_ns,
            },
            reads_hosts: self == Self::Hosts,
            lens_of: if let Self::LensOf(target) = self { Some(target) } else { None },
        }
    }

    /// Whether ops take as long as they do in the comparison, as far as the response's size makes them long.
    fn needs_whole_response(self) -> bool {
        !matches!(self, Self::Range1 | Self::Trip)
    }

    fn variation(self, case: &Case<'_>) -> Variation {
        let nothing = Variation::default();
        match self {
            Self::Alone | Self::Again | Self::Closed | Self::Hosts | Self::Connections(_) | Self::LensOf(_) => nothing,
            // The environment is read where the twin is started; where it cannot be, the lens may have seen its mask at work.
            Self::TwinOf(of, change) => {
                Variation { twin: Some(TwinPlan { of, change, mask: mask_in_server(case, of) }), ..nothing }
            }
            Self::Set(settings) => Variation { settings: settings.variation(case), ..nothing },
            Self::Unresumed => Variation { resumption: Some(false), ..nothing },
            Self::Tls12 => Variation { versions: Some(vec![TlsVersion::V1_2]), ..nothing },
            Self::QuickAck => Variation { quick_ack: Some(true), ..nothing },
            Self::SuiteOf(target) => Variation {
                ciphers: chosen(case, target, |seen| seen.text(web::TLS_CIPHER)).map(|suite| vec![suite.to_owned()]),
                ..nothing
            },
            Self::GroupOf(target) => Variation {
                groups: chosen(case, target, |seen| seen.text(web::TLS_GROUP)).map(|group| vec![group.to_owned()]),
                ..nothing
            },
            Self::SourcesSpread => Variation { sources: Some(AddressRange::holding(spread(case).0)), ..nothing },
            Self::SourceOther => Variation { sources: spread(case).1.map(|other| vec![other.into()]), ..nothing },
            Self::SegmentsOf(target) => Variation { segment_bytes: segments_of(case, target), ..nothing },
            Self::Chacha20 => Variation { ciphers: Some(CHACHA20.map(str::to_owned).to_vec()), ..nothing },
            Self::Range1 => Variation { range_bytes: Some(1), ..nothing },
            Self::RangeHalf => Variation {
                range_bytes: case.smallest_body_bytes().map(|bytes| (bytes / 2.0).max(1.0) as u64),
                ..nothing
            },
            Self::RangeSame => {
                Variation { range_bytes: case.smallest_body_bytes().map(|bytes| bytes.max(1.0) as u64), ..nothing }
            }
            Self::AllClose => Variation { keepalive: Some(false), ..nothing },
            Self::Trip => {
                let short = Self::Range1.possible(case).is_ok();
                Variation { keepalive: Some(false), range_bytes: short.then_some(1), ..nothing }
            }
            Self::Kept => Variation { keepalive: Some(true), ..nothing },
            Self::Resumed => Variation { resumption: Some(true), ..nothing },
            Self::Identity => Variation { accept_encoding: Some(None), ..nothing },
        }
    }

    /// Whether the change took effect on this target; if not, what was seen instead. A flip that one server ignored
    /// must not pass for a flip that did not move the gap.
    pub(crate) fn took_effect(self, variation: &Variation, seen: &TargetObservation) -> Result<(), String> {
        let negotiated = seen.negotiated.as_ref();
        let text = |name| negotiated.and_then(|seen| seen.text(name));
        match self {
            // Acknowledging at once is asked of our own system, which does or does not; nothing tells.
            // Whether a twin is what it should be is found out when it is started, and where connections cannot be made from
            // an address nothing is measured.
            Self::Alone
            | Self::Again
            | Self::Closed
            | Self::Hosts
            | Self::Connections(_)
            | Self::QuickAck
            | Self::SourcesSpread
            | Self::SourceOther
            | Self::LensOf(_)
            | Self::TwinOf(..)
            // What cannot be set is refused before anything is measured.
            | Self::Set(_) => Ok(()),
            Self::Unresumed => match seen.resumed_share {
                Some(share) if share <= 0.1 => Ok(()),
                Some(_) => Err("resumed sessions all the same".to_owned()),
                None => Err("left open whether sessions were resumed".to_owned()),
            },
            Self::Tls12 => match text(web::TLS_VERSION) {
                Some("1.2") => Ok(()),
                Some(_) => Err("negotiated another version".to_owned()),
                None => Err("did not tell its version".to_owned()),
            },
            Self::SuiteOf(_) => match (variation.ciphers.as_deref(), text(web::TLS_CIPHER)) {
                (Some([forced]), Some(cipher)) if cipher == forced => Ok(()),
                _ => Err("negotiated another cipher".to_owned()),
            },
            Self::GroupOf(_) => match (variation.groups.as_deref(), text(web::TLS_GROUP)) {
                (Some([forced]), Some(group)) if group == forced => Ok(()),
                _ => Err("negotiated another group".to_owned()),
            },
            Self::SegmentsOf(_) => {
                let bytes = negotiated.and_then(|seen| seen.count(web::SEGMENT_BYTES));
                match (variation.segment_bytes, bytes) {
                    (Some(forced), Some(bytes)) if bytes <= u64::from(forced) => Ok(()),
                    _ => Err("used larger segments".to_owned()),
                }
            }
            Self::Chacha20 => match text(web::TLS_CIPHER) {
                Some(cipher) if cipher.contains("CHACHA20") => Ok(()),
                Some(_) => Err("negotiated another cipher".to_owned()),
                None => Err("did not tell its cipher".to_owned()),
            },
            Self::Range1 | Self::RangeHalf | Self::RangeSame => match (variation.range_bytes, seen.body_bytes_per_op) {
                (Some(asked), Some(sent)) if sent <= asked as f64 + 0.5 => Ok(()),
                (_, Some(sent)) => Err(format!("ignored the range and sent {}", duel_model::format_bytes(sent))),
                (_, None) => Err("sent an unknown number of bytes".to_owned()),
            },
            // A few ops per slot may go over the connection of the slot before; a tenth leaves the flip whole.
            Self::AllClose | Self::Trip => match seen.reused_share {
                Some(share) if share <= 0.1 => Ok(()),
                Some(_) => Err("still used connections again".to_owned()),
                None => Err("left open whether connections were closed".to_owned()),
            },
            // The first op on each connection of a slot is new in any case: short slots reach no 100 %.
            Self::Kept => match seen.reused_share {
                Some(share) if share >= 0.75 => Ok(()),
                Some(_) => Err("closed connections all the same".to_owned()),
                None => Err("left open whether connections were kept".to_owned()),
            },
            Self::Resumed => match (seen.resumed_share, seen.reused_share) {
                (Some(share), _) if share >= 0.75 => Ok(()),
                // Who keeps its connections has no handshakes to resume.
                (_, Some(reused)) if reused >= 0.9 => Ok(()),
                _ => Err("did not resume sessions".to_owned()),
            },
            Self::Identity => match negotiated.map(|seen| seen.text(web::CONTENT_ENCODING)) {
                Some(None | Some("identity")) => Ok(()),
                Some(Some(_)) => Err("compressed all the same".to_owned()),
                None => Err("left open whether it compressed".to_owned()),
            },
        }
    }
}

/// The mask on CPU features that a target's running server works with, as far as the lens has read it, in the form of
/// `OPENSSL_ia32cap`: two words of 64 bits, of which those that are set are taken away.
fn mask_in_server(case: &Case<'_>, target: usize) -> Option<String> {
    let reading = case.outcome(&Kind::LensOf(target).id(Mode::Alone))?.lens.as_ref()?;
    let Some(Capabilities::Masked(vector)) = &reading.capabilities else { return None };
    // On Arm it is a single word, and another variable.
    let [whole, server] =
        [&vector.whole, &vector.processes.first()?.words].map(|words| <[u32; 4]>::try_from(&words[..]));
    let (whole, server) = (whole.ok()?, server.ok()?);
    let missing = |low: usize| {
        let at = |place: usize| u64::from(whole[place] & !server[place]);
        at(low) | at(low + 1) << 32
    };
    Some(format!("~{:#x}:~{:#x}", missing(0), missing(2)))
}

/// What a target chose, as seen in the comparison, else at the first contact.
fn chosen<'a, T>(case: &Case<'a>, target: usize, of: impl Fn(&'a Facts) -> Option<T>) -> Option<T> {
    let seen = case.comparison.get(target).and_then(|seen| seen.negotiated.as_ref());
    let first = case.first_contact.get(target).and_then(Option::as_ref);
    seen.and_then(&of).or_else(|| first.and_then(&of))
}

/// The addresses that the plan's connections are spread over, and one for all of them: one of which the server has not heard
/// before, if there is one left.
fn spread(case: &Case<'_>) -> (impl Iterator<Item = IpAddr>, Option<IpAddr>) {
    let others = case.sources.unwrap_or_default();
    let count = others.len().min(case.plan.load.connections as usize).min(MOST_SOURCES);
    (others[..count].iter().copied(), others.get(count).or(others.first()).copied())
}

/// The size of a target's segments in bytes, in the range that can be announced.
fn segments_of(case: &Case<'_>, target: usize) -> Option<u16> {
    chosen(case, target, |seen| seen.count(web::SEGMENT_BYTES))
        .and_then(|bytes| u16::try_from(bytes).ok())
        .filter(|&bytes| bytes >= 88)
}

/// Some slots of 0.15 s for each target: dozens of connections, where a round trip is as long as between continents too.
/// How large the response is does not matter, for its first byte is enough.
const TRIP_BUDGET_NS: Nanos = 3 * SECOND_NS;

/// Six pairs of slots of 0.4 s for two targets take 9.6 s with what is drained; see `SHORTEST_READ_SLOT_NS` in `lab`.
const HOSTS_BUDGET_NS: Nanos = 10 * SECOND_NS;

/// The ChaCha20 suites of both TLS versions, so that any server that has one can choose it.
const CHACHA20: [&str; 3] = [
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
];

pub(crate) fn is_https(address: &str) -> bool {
    address.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"))
}

/// Six pairs of slots are the fewest that give an interval, and one slot of each target goes before them as a trial, with
/// as much again for what is drained; a slot must hold some ops, and not be shorter than 150 ms.
///
/// Where ops take so long that several to a slot would use up the time for all other questions, a slot holds one and a
/// bit: such ops hardly scatter by what a slot cuts off, and where they do the interval says so.
fn budget_ns(case: &Case<'_>, one_connection: bool, whole_response: bool) -> Nanos {
    const DEFAULT_NS: Nanos = 6 * SECOND_NS;
    const PATIENCE_NS: f64 = 12e9;
    const SLOTS_PER_TARGET: f64 = 9.0;
    const OPS_PER_SLOT: f64 = 4.0;
    const LEAST_OPS_PER_SLOT: f64 = 1.2;
    let shortest_slot_ns = (150 * MILLISECOND_NS) as f64;
    let service_ns = slowest_service_ns(case, one_connection, whole_response).unwrap_or(0.0);
    let slots = SLOTS_PER_TARGET * case.plan.targets.len() as f64;
    let patient_ns = (PATIENCE_NS / slots).max(LEAST_OPS_PER_SLOT * service_ns);
    let slot_ns = shortest_slot_ns.max((OPS_PER_SLOT * service_ns).min(patient_ns));
    DEFAULT_NS.max((slots * slot_ns) as Nanos)
}

/// How long an op's packets travel: a round trip as long as connecting takes (the median), once for its request, and twice
/// for a new connection with TLS.
fn on_the_way_ns(target: &TargetObservation) -> f64 {
    let Some(connects) = target.phase_profile.get(&phase::CONNECT.id()) else { return 0.0 };
    let trips = 1 + usize::from(target.phase_mean_ns.contains_key(&phase::TLS.id()));
    let connects_per_op = connects.count as f64 / target.ok.max(1) as f64;
    let trip_ns = connects.quantile_ns(0.5).map_or(0.0, |ns| ns as f64);
    trip_ns * (1.0 + trips as f64 * connects_per_op.min(1.0))
}

/// Time of an op on the slowest target; where the probe asks for a part of the response only, without its receiving.
fn slowest_service_ns(case: &Case<'_>, one_connection: bool, whole_response: bool) -> Option<f64> {
    let receive_ns = |target: &TargetObservation| match whole_response {
        true => 0.0,
        false => target.phase_mean_ns.get(&phase::RECEIVE.id()).copied().unwrap_or(0.0),
    };
    let slowest = |seen: &[TargetObservation], of: &dyn Fn(&TargetObservation) -> Option<f64>| {
        seen.iter().filter_map(of).filter(|ns| ns.is_finite()).reduce(f64::max)
    };
    if one_connection {
        let alone = case.outcome("alone").map_or(&[][..], |outcome| &outcome.targets);
        if let Some(seen) = slowest(alone, &|target| Some((target.service_mean_ns? - receive_ns(target)).max(0.0))) {
            return Some(seen);
        }
    }
    slowest(case.comparison, &|target| {
        let service_ns = (target.service_mean_ns? - receive_ns(target)).max(0.0);
        match target.rate_per_s {
            // Alone, an op takes between 1/rate (the others were only waiting for each other) and what it took among
            // the others; the geometric mean is never far off in orders of magnitude. Packets do not travel faster alone.
            Some(rate) if one_connection && !case.is_open_loop() && rate > 0.0 => {
                let between = (service_ns * (1e9 / rate).min(service_ns)).sqrt();
                Some(between.max(on_the_way_ns(target)).min(service_ns))
            }
            _ => Some(service_ns),
        }
    })
}
