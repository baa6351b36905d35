//! Probes that set declared settings of the work, on all targets, and change nothing else.

use super::sessions::{Group, session_of};
use super::{Entry, FLIP, Kind, refuse};
use crate::case::Case;
use crate::path::Path;
use duel_model::{Id, TargetObservation, Variation, WorkloadPlan};
use std::collections::BTreeMap;

pub(crate) const NO_AES: Kind = Kind::new(&Entry {
    id: "no-aes",
    phrase: "with the CPU's AES instructions hidden from all targets",
    question: "Does the gap go away when no library may use the CPU's AES instructions?",
    sets: &[("mask", Value::Is("aes"))],
    ..FLIP
});

pub(crate) const NO_FEATURES: Kind = Kind::new(&Entry {
    id: "no-features",
    phrase: "with all features of the CPU hidden from all targets",
    question: "Does the gap go away when no library may use features of the CPU?",
    sets: &[("mask", Value::Is("all"))],
    ..FLIP
});

pub(crate) const OWN_READ_AHEAD: Kind = Kind::new(&Entry {
    id: "own-read-ahead",
    phrase: "with duel reading ahead on all targets",
    question: "Does the gap go away when duel itself reads ahead?",
    sets: &[("read-ahead", Value::Is("own"))],
    ..FLIP
});

/// Larger blocks: what is limited by calls moves more, what is limited by bytes does not.
pub(crate) const LARGER_BLOCK: Kind = Kind::new(&Entry {
    id: "larger-block",
    phrase: "with blocks 16 times as large",
    question: "Do larger blocks move more, and does the gap go away with them?",
    sets: &[("block", Value::Times(16)), ("align", Value::Always("0"))],
    ..FLIP
});

/// More ops in flight: what only takes long does more of them.
pub(crate) const DEEPER: Kind = Kind::new(&Entry {
    id: "deeper",
    phrase: "with 8 times as many ops in flight",
    question: "Does the slow side do more with more ops in flight?",
    sets: &[("depth", Value::Times(8))],
    ..FLIP
});

/// The same writes without a flush, and past the page cache: into it they would go at any speed.
pub(crate) const NO_FLUSH: Kind = Kind::new(&Entry {
    id: "no-flush",
    phrase: "with the same writes unflushed and past the page cache",
    question: "Does the gap go away when nothing is flushed?",
    sets: &[
        ("op", Value::Instead(&[("fsync", "write"), ("dsync", "write")])),
        ("flush", Value::Always("0")),
        ("direct", Value::Always("on")),
    ],
    ..FLIP
});

pub(crate) const COMPRESSIBLE: Kind = Kind::new(&Entry {
    id: "compressible",
    phrase: "with data that compresses to nothing",
    question: "Does the gap go away when there is nothing in the data to work on?",
    // What the plan has may compress in part, and cost as much for that.
    sets: &[("compressibility", Value::Becomes("1"))],
    ..FLIP
});

/// A smaller part of the disk, or a smaller file: what tells where its blocks lie stays in memory.
pub(crate) const SMALLER_FILE: Kind = Kind::new(&Entry {
    id: "smaller-file",
    phrase: "within a sixteenth of the size",
    question: "Does the gap go away within a smaller file?",
    sets: &[("size", Value::Part { by: 16, of: 256 << 20 })],
    ..FLIP
});

pub(crate) const FAR_BLOCK: Kind = Kind::new(&Entry {
    id: "far-block",
    phrase: "with blocks of another size",
    question: "Is the gap paid per block or per byte?",
    sets: &[("block", Value::Far)],
    ..FLIP
});

/// As many bytes as in the larger block, in as many calls as it has smaller ones.
pub(crate) const MANY_CALLS: Kind = Kind::new(&Entry {
    id: "many-calls",
    phrase: "with each block handed over in several calls",
    question: "Is the gap paid per block or per call?",
    sets: &[("block", Value::Larger("block")), ("chunk", Value::Smaller("block"))],
    ..FLIP
});

/// Segments as short as the shortest that a target has.
pub(crate) const SHORTEST_SEGMENTS: Kind = Kind::new(&Entry {
    id: "shortest-segments",
    phrase: "with segments as short on all paths",
    question: "Does the gap go away with segments of the same size?",
    sets: &[("mss", Value::Segment { part: 1 })],
    ..FLIP
});

/// Segments a third as long as the shortest that a target has: where packets are what costs, there are three times as many.
pub(crate) const SHORT_SEGMENTS: Kind = Kind::new(&Entry {
    id: "short-segments",
    phrase: "with segments a third as long on all paths",
    question: "Is the gap paid per packet or per byte?",
    sets: &[("mss", Value::Segment { part: 3 })],
    is_for_times: true,
    ..FLIP
});

/// Socket buffers of one size at both ends of all paths: what a program may ask for on a Linux system that nobody has changed
/// (`net.core.rmem_max` and `wmem_max`), whatever sizes the system chooses by itself.
pub(crate) const SET_WINDOW: Kind = Kind::new(&Entry {
    id: "set-window",
    phrase: "with socket buffers of 208 KiB at both ends of all paths",
    question: "Does the gap go away when all socket buffers are of one size?",
    sets: &[("window", Value::Is("212992"))],
    ..FLIP
});

/// So small buffers that a sixteenth of what flows is under way for each round trip: what is too much for a cap is not sent any more, and
/// what gets lost at random gets lost as often.
pub(crate) const TRICKLE: Kind = Kind::new(&Entry {
    id: "trickle",
    phrase: "with so small buffers that little flows",
    question: "Does as much get lost of a small part of what flows?",
    possible: |_, case| trickle_bytes(case).map(|_| ()),
    varies: |_, case, to| {
        to.settings.extend(trickle_bytes(case).ok().map(|bytes| (Id::new("window"), bytes.to_string())));
    },
    is_for_times: true,
    ..FLIP
});

/// Buffers for that, by the path over which the least is under way for a round trip; of paths that are too short for a sixteenth the
/// smallest buffers that tell, where those are a small part of it as well.
fn trickle_bytes(case: &Case<'_>) -> Result<u64, String> {
    /// A few segments, as retransmissions that wait for no time-out take.
    const LEAST_BYTES: f64 = 8192.0;
    let streams = f64::from(case.plan.load.connections.max(1));
    let under_way = |seen: &TargetObservation| {
        let path = Path::of(seen);
        Some(path.bytes_per_s()? / streams * path.shortest_trip_ns()? / 1e9)
    };
    let all: Option<Vec<f64>> = case.comparison.iter().map(under_way).collect();
    let least = all.and_then(|all| all.into_iter().reduce(f64::min)).ok_or("what is under way is not known")?;
    let bytes = (least / FAR as f64).max(LEAST_BYTES);
    refuse(least.is_nan() || bytes > LITTLE * least, "a round trip is so short that small buffers hold little back")?;
    Ok(bytes as u64)
}

/// A part that is small enough for a cap to let all of it pass, whatever it let pass before.
pub(crate) const LITTLE: f64 = 0.25;

/// The same congestion control at both ends of all paths: those that Linux systems use by themselves. Every system has the last one,
/// and lets everybody choose it.
const CONGESTION: [(&str, Kind); 3] = [("bbr", CONGESTION_BBR), ("cubic", CONGESTION_CUBIC), ("reno", CONGESTION_RENO)];

const CONGESTION_BBR: Kind = Kind::new(&Entry {
    id: "congestion-bbr",
    phrase: "with the congestion control bbr at both ends of all paths",
    question: "Does the gap go away with bbr everywhere?",
    sets: &[("congestion", Value::Is("bbr"))],
    ..FLIP
});

const CONGESTION_CUBIC: Kind = Kind::new(&Entry {
    id: "congestion-cubic",
    phrase: "with the congestion control cubic at both ends of all paths",
    question: "Does the gap go away with cubic everywhere?",
    sets: &[("congestion", Value::Is("cubic"))],
    ..FLIP
});

const CONGESTION_RENO: Kind = Kind::new(&Entry {
    id: "congestion-reno",
    phrase: "with the congestion control reno at both ends of all paths",
    question: "Does the gap go away with reno everywhere?",
    sets: &[("congestion", Value::Is("reno"))],
    ..FLIP
});

/// The flips that set a congestion control everywhere: that of this name, and the one that can always be had.
pub(crate) fn congestion(name: &str) -> impl Iterator<Item = Kind> {
    let named = CONGESTION.into_iter().find(|(of, _)| *of == name).map(|(_, kind)| kind);
    named.filter(|kind| *kind != CONGESTION_RENO).into_iter().chain([CONGESTION_RENO])
}

/// Datagrams at a rate that a path may carry which does not carry the plan's.
pub(crate) const FEWER_DATAGRAMS: Kind = Kind::new(&Entry {
    id: "fewer-datagrams",
    phrase: "with a sixteenth of the datagrams",
    question: "Does the gap go away when less is sent?",
    sets: &[("bitrate", Value::Lower)],
    is_for_times: true,
    ..FLIP
});

/// Commits of PostgreSQL that do not wait for the disk.
pub(crate) const ASYNCHRONOUS: Kind = Kind::new(&Entry {
    id: "asynchronous-commit",
    phrase: "with commits that do not wait for the disk, in duel's sessions on all targets",
    question: "Does the gap go away when commits do not wait for the disk?",
    sets: &[("set", Value::Is("synchronous_commit=off"))],
    ..FLIP
});

/// Connections to databases that are kept from one transaction to the next.
pub(crate) const KEPT_SESSIONS: Kind = Kind::new(&Entry {
    id: "kept-sessions",
    phrase: "with connections kept from one transaction to the next",
    question: "Does the gap go away when connections are kept?",
    sets: &[("reconnect", Value::Becomes("off"))],
    changes_reuse: true,
    ..FLIP
});

/// So few rows that every server has them in memory.
pub(crate) const FEW_ROWS: Kind = Kind::new(&Entry {
    id: "few-rows",
    phrase: "with the first hundred rows of each table only",
    question: "Does the gap go away with rows that any memory holds?",
    sets: &[("table-size", Value::Becomes("100"))],
    ..FLIP
});

/// All settings that have statements logged, as this target has them, in duel's sessions on all.
pub(crate) const LOGGING_SETTINGS: Kind = Kind::new(&Entry {
    id: "logging-of-",
    phrase: "with the same settings of logging in duel's sessions on all targets",
    question: "Does the gap go away with the same settings of logging?",
    possible: |kind, case| session_of(case, kind.number, Group::Logging, kind.setting).map(|_| ()),
    varies: |kind, case, to| set_session(to, session_of(case, kind.number, Group::Logging, kind.setting)),
    ..FLIP
});

/// All other settings that a session may have, as this target has them, in duel's sessions on all.
pub(crate) const OTHER_SETTINGS: Kind = Kind::new(&Entry {
    id: "settings-of-",
    phrase: "with the same settings in duel's sessions on all targets",
    question: "Does the gap go away with the same settings?",
    possible: |kind, case| session_of(case, kind.number, Group::Other, kind.setting).map(|_| ()),
    varies: |kind, case, to| set_session(to, session_of(case, kind.number, Group::Other, kind.setting)),
    ..FLIP
});

/// Sets what sessions have; without it the probe is not possible.
fn set_session(to: &mut Variation, session: Result<String, String>) {
    to.settings.extend(session.ok().map(|session| (Id::new("set"), session)));
}

/// A value that a probe sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    /// This one, where the plan leaves it at its default.
    Is(&'static str),
    /// This one, where the plan has another.
    Becomes(&'static str),
    /// A size that is far from the plan's, by [`FAR`].
    Far,
    /// The larger of the plan's size of that setting, and the one far from it.
    Larger(&'static str),
    /// The smaller of the two.
    Smaller(&'static str),
    /// A sixteenth of the plan's number.
    Lower,
    /// The segment size under which the segments of all targets are this part of the shortest of them.
    Segment { part: u64 },
    /// So many times the plan's.
    Times(u64),
    /// A part of the plan's, where that is not 0, and else of this one.
    Part { by: u64, of: u64 },
    /// This one, whatever the plan has.
    Always(&'static str),
    /// What stands beside the plan's word, and where that is not among them, the plan's.
    Instead(&'static [(&'static str, &'static str)]),
}

/// A cost of each op and one of each byte are told apart by two sizes that differ so much: the error of either is then that
/// of the measured times, and not several times as large.
const FAR: u64 = 16;
/// From here on the far size is the smaller one. It is a multiple of 16 then, as ciphers want it.
const SMALL_BYTES: u64 = 256;

/// Whether the plan leaves room for these settings; if not, why.
pub(super) fn can_be_set(sets: &[(&str, Value)], case: &Case<'_>) -> Result<(), String> {
    fit(sets, &case.plan.workload, &|part| segment(case, part))
}

fn fit(sets: &[(&str, Value)], workload: &WorkloadPlan, segment: &dyn Fn(u64) -> Option<u64>) -> Result<(), String> {
    let schema = workload.schema();
    for (name, value) in sets {
        let Some(param) = schema.param(name) else { return Err(format!("the workload has no setting {name}")) };
        let has = workload.setting(param);
        // A size or a rate may be changed whatever it is.
        let is_set = matches!(value, Value::Is(_) | Value::Smaller(_) | Value::Segment { .. });
        if is_set && has != param.default {
            return Err(format!("the plan sets {name} already"));
        }
        if *value == Value::Lower && lower(&has).is_none() {
            return Err(format!("the plan bounds no {name}"));
        }
        if let Value::Segment { part } = value
            && segment(*part).is_none()
        {
            return Err("the sizes of segments are not known, or they are too short to be made shorter".to_owned());
        }
        if matches!(value, Value::Becomes(text) if *text == has) {
            return Err(format!("the plan has that {name} already"));
        }
        if let Some(switch) = schema.needs(param).filter(|switch| workload.setting(switch) != "on") {
            return Err(format!("{name} means nothing without {}", switch.name));
        }
        if matches!(value, Value::Times(_)) {
            param.read(&value.of(workload, name, segment))?;
        }
    }
    Ok(())
}

/// The settings with their values, by what the plan has set.
pub(super) fn values(sets: &[(&'static str, Value)], case: &Case<'_>) -> BTreeMap<Id, String> {
    let of = |name, value: Value| value.of(&case.plan.workload, name, &|part| segment(case, part));
    sets.iter().map(|&(name, value)| (Id::new(name), of(name, value))).collect()
}

impl Value {
    fn of(self, workload: &WorkloadPlan, name: &str, segment: &dyn Fn(u64) -> Option<u64>) -> String {
        let set = |name: &str| workload.schema().param(name).map(|param| workload.setting(param)).unwrap_or_default();
        // 0 where it is none.
        let size = |name: &str| set(name).parse().unwrap_or(0);
        let both = |name: &str| [size(name), far(size(name))];
        match self {
            Self::Lower => return lower(&set(name)).unwrap_or_default(),
            Self::Segment { part } => segment(part).unwrap_or(0),
            Self::Is(text) | Self::Becomes(text) => return text.to_owned(),
            Self::Far => far(size(name)),
            Self::Larger(of) => both(of).into_iter().fold(0, u64::max),
            Self::Smaller(of) => both(of).into_iter().fold(u64::MAX, u64::min),
            Self::Times(times) => size(name).saturating_mul(times),
            Self::Part { by, of } => part(size(name), by, of),
            Self::Always(text) => return text.to_owned(),
            Self::Instead(words) => {
                let word = set(name);
                return words.iter().find(|(of, _)| *of == word).map_or(&*word, |(_, instead)| instead).to_owned();
            }
        }
        .to_string()
    }
}

fn far(bytes: u64) -> u64 {
    if bytes < SMALL_BYTES { bytes * FAR } else { bytes / FAR / 16 * 16 }
}

/// A sixteenth of a number; `None` where there is none.
fn lower(number: &str) -> Option<String> {
    let number: f64 = number.parse().ok()?;
    (number > 0.0).then(|| (number / FAR as f64).to_string())
}

/// What has to be asked for (`TCP_MAXSEG`) for segments that carry this part of the shortest that a target's connections have. It
/// counts the options of each segment as well, which are time stamps if any; fewer than 88 bytes Linux does not take.
fn segment(case: &Case<'_>, part: u64) -> Option<u64> {
    let seen = |index: usize| {
        let of_comparison = case.comparison.get(index).and_then(|seen| seen.negotiated.as_ref());
        let facts = of_comparison.or(case.first_contact.get(index)?.as_ref())?;
        let options = if facts.is("tcp.timestamps") == Some(true) { 12 } else { 0 };
        Some(facts.count("tcp.segment_bytes")? / part + options)
    };
    let all: Option<Vec<u64>> = (0..case.plan.targets.len()).map(seen).collect();
    all?.into_iter().min().filter(|&bytes| bytes >= 88)
}

/// A part of a size, of whole pages, and one page at least.
fn part(bytes: u64, by: u64, of: u64) -> u64 {
    const PAGE: u64 = 4096;
    let whole = if bytes > 0 { bytes } else { of };
    (whole / by / PAGE * PAGE).max(PAGE)
}

#[cfg(test)]
mod tests {
    use super::{NO_AES, Value, far, fit, part};
    use duel_model::web::settings::{H2_WINDOW, HTTP2};
    use duel_model::{HttpPlan, WorkloadPlan};

    #[test]
    fn settings_of_requests_are_set_as_those_of_any_work() {
        let mut http = HttpPlan::default();
        let fits = |name, value, http: &HttpPlan| {
            fit(&[(name, value)], &WorkloadPlan::Http(Box::new(http.clone())), &|_| None)
        };
        assert!(fits("h2-window", Value::Far, &http).unwrap_err().contains("without http2"));
        http.set(&HTTP2, "on");
        assert_eq!(fits("h2-window", Value::Far, &http), Ok(()));
        let workload = WorkloadPlan::Http(Box::new(http.clone()));
        assert_eq!(Value::Far.of(&workload, "h2-window", &|_| None), (1 << 26).to_string());
        http.set(&H2_WINDOW, "65535");
        assert!(fits("h2-window", Value::Is("1024"), &http).unwrap_err().contains("already"));
        assert!(fit(NO_AES.entry.sets, &workload, &|_| None).is_err(), "no such setting");
    }

    #[test]
    fn the_far_size_is_far_and_can_be_had() {
        assert_eq!(
            [(0, 256 << 20), (1 << 20, 7), (4096, 7)].map(|(size, of)| part(size, 16, of)),
            [16 << 20, 65_536, 4096]
        );
        assert_eq!([16, 255, 256, 1000, 16_384, 1 << 20].map(far), [256, 4080, 16, 48, 1024, 65_536]);
    }
}
