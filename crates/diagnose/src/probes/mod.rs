//! The probes. Each is an [`Entry`], which owns all that is to be known of it: what it is called, what it changes, when it can be
//! made, how to tell that the change took effect, and what else may change with it.

mod copies;
mod layers;
mod load;
mod machines;
pub(crate) mod sessions;
mod settings;
mod web;

pub(crate) use copies::{COPY, REWRITTEN_COPY, copy_setting, copy_with};
pub(crate) use layers::{FILES, PATH};
pub(crate) use load::{AGAIN, ALONE, CLOSED, CONNECTIONS, IN_TURN, STREAMS};
pub(crate) use machines::{HOSTS, LENS, SAME_FEW, twin};
pub(crate) use settings::{
    ASYNCHRONOUS, COMPRESSIBLE, DEEPER, FAR_BLOCK, FEW_ROWS, FEWER_DATAGRAMS, KEPT_SESSIONS, LARGER_BLOCK, LITTLE,
    LOGGING_SETTINGS, MANY_CALLS, NO_AES, NO_FEATURES, NO_FLUSH, OTHER_SETTINGS, OWN_READ_AHEAD, SET_WINDOW,
    SHORT_SEGMENTS, SHORTEST_SEGMENTS, SMALLER_FILE, TRICKLE, congestion,
};
pub(crate) use web::{
    ALL_CLOSE, CHACHA20, FEW_STREAMS, GROUP, HTTP_1, IDENTITY, KEPT, MORE_CONNECTIONS, OTHER_FAMILY, QUICK_ACK,
    RANGE_1, RANGE_HALF, RANGE_SAME, RESUMED, SEGMENTS, SMALLEST_SWEEP_BYTES, SOURCE_OTHER, SOURCES_SPREAD, SUITE,
    THIRD_SEGMENTS, TLS_12, TRIP, UNRESUMED, WIDE_WINDOW, is_https,
};

use crate::case::Case;
use duel_model::web::phase;
use duel_model::{Layer, MILLISECOND_NS, Nanos, Probe, SECOND_NS, Streamed, TargetObservation, TwinChange, Variation};
use settings::Value;

/// Probes in the order in which ties between equally valuable ones are broken; all others come after them.
const FIRST: &[Kind] = &[
    ALONE,
    AGAIN,
    CLOSED,
    HOSTS,
    HTTP_1,
    MORE_CONNECTIONS,
    FEW_STREAMS,
    WIDE_WINDOW,
    CHACHA20,
    ALL_CLOSE,
    TRIP,
    OTHER_FAMILY,
    IDENTITY,
    RESUMED,
    UNRESUMED,
    KEPT,
    SUITE,
    GROUP,
    TLS_12,
    QUICK_ACK,
    SEGMENTS,
    RANGE_1,
    RANGE_SAME,
    RANGE_HALF,
    LENS,
    twin(None),
    SOURCES_SPREAD,
    SOURCE_OTHER,
];

/// A probe without its circumstances.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) entry: &'static Entry,
    /// Which target it is about, or how many connections it has, where its id ends with that.
    number: usize,
    /// The fact that tells the setting of a database that it is about, where it is about one.
    setting: Option<&'static str>,
    /// Made once more, for [`LONGER`] times as long.
    pub(crate) is_longer: bool,
}

/// How many times as long a probe takes that is made once more, since its first interval was too wide to tell anything. It is judged
/// by itself: who looks again because of what he saw and then counts both would see what he looks for too often. The first may have ended
/// early, as sharp as a comparison has to be, and what a flip leaves of a gap may need more than that: this one takes all of its time.
pub const LONGER: u64 = 3;
/// Round trips that a slot of a probe has at least, where ops are parts of streams: half of what a slot of a comparison has, as there are
/// fewer ops in one.
pub const TRIPS_OF_PROBE_SLOT: u64 = 10;

/// What is to be known of a probe.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// Its id, without the mode. One that ends with a dash has a number behind it.
    id: &'static str,
    /// What it changes, in front of a colon.
    phrase: &'static str,
    question: &'static str,
    load: Load,
    /// What it reads beside, or in place of, making load.
    reads: Reads,
    /// Whether the plan leaves room for it; if not, why.
    possible: fn(Kind, &Case<'_>) -> Result<(), String>,
    /// The declared settings of the work that it sets, by name. What cannot be set is refused before anything is measured.
    sets: &'static [(&'static str, Value)],
    /// What else it changes.
    varies: fn(Kind, &Case<'_>, &mut Variation),
    /// Whether the change took effect on a target; if not, what was seen instead.
    took_effect: fn(&Variation, &TargetObservation) -> Result<(), String>,
    /// Facts that it is made to change, or that come with that and are reckoned with by those who ask for it.
    pub(crate) changes: &'static [&'static str],
    /// Responses are of another size with it.
    pub(crate) changes_size: bool,
    /// As many more, or fewer, requests go over connections that were used before.
    pub(crate) changes_reuse: bool,
    /// As many more, or fewer, sessions are resumed.
    pub(crate) changes_resumption: bool,
    /// It shows the gap itself, and not what becomes of it.
    pub(crate) shows_gap: bool,
    /// It is asked for times, or for how much flows, on either side by itself. For these neither ratio nor equal requests are needed.
    pub(crate) is_for_times: bool,
    /// Ops take as long as they do in the comparison, as far as the response's size makes them long.
    has_whole_response: bool,
    budget: Budget,
    /// What it changes in a twin of the server.
    pub(crate) twin: Option<TwinChange>,
    /// It is made on a private copy of a database.
    pub(crate) is_copy: bool,
    /// The layer below the targets that it measures in place of them.
    pub(crate) below: Option<Layer>,
}

/// With how many connections a probe is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Load {
    /// As the gap is probed, which its id tells.
    OfGap,
    /// None is made on the targets.
    None,
    /// Over one connection, however the gap is probed.
    One,
    /// With the plan's.
    Plan,
    /// With as many as its number says.
    Number,
}

/// What a probe reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reads {
    Nothing,
    /// The targets' machines, before and after each slot.
    Hosts,
    /// The libcrypto of a target's server, alone.
    Lens,
}

/// How much load time a probe may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Budget {
    /// By how long ops take.
    ByOps,
    /// The same, and as much at least.
    AtLeast(Nanos),
    Fixed(Nanos),
}

/// How a gap is probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Over one connection: cheap and sharp, where the gap shows there.
    Alone,
    /// With the plan's connections.
    Loaded,
}

/// A flip that changes nothing yet: what entries leave out is as here.
const FLIP: Entry = Entry {
    id: "",
    phrase: "",
    question: "",
    load: Load::OfGap,
    reads: Reads::Nothing,
    possible: |_, _| Ok(()),
    sets: &[],
    varies: |_, _, _| {},
    took_effect: |_, _| Ok(()),
    changes: &[],
    changes_size: false,
    changes_reuse: false,
    changes_resumption: false,
    shows_gap: false,
    is_for_times: false,
    has_whole_response: true,
    budget: Budget::ByOps,
    twin: None,
    is_copy: false,
    below: None,
};

/// That a plan leaves no room for a probe, where that is so.
fn refuse(when: bool, why: &str) -> Result<(), String> {
    if when { Err(why.to_owned()) } else { Ok(()) }
}

/// Whether they change the same, for however long they are made.
impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        let all = |kind: &Self| (kind.entry.id, kind.entry.twin, kind.number, kind.setting);
        all(self) == all(other)
    }
}

impl Kind {
    const fn new(entry: &'static Entry) -> Self {
        Self { entry, number: 0, setting: None, is_longer: false }
    }

    /// The one about this target, or with so many connections.
    pub(crate) const fn of(self, number: usize) -> Self {
        Self { number, ..self }
    }

    /// The one about the setting that this fact tells.
    pub(crate) const fn with_setting(self, fact: &'static str) -> Self {
        Self { setting: Some(fact), ..self }
    }

    /// The same, made once more and longer; `None` where it is that already, or starts servers.
    pub(crate) fn longer(self) -> Option<Self> {
        let can_be = !self.is_longer && self.entry.twin.is_none() && !self.entry.is_copy;
        can_be.then_some(Self { is_longer: true, ..self })
    }

    /// How ties between equally valuable probes are broken.
    pub(crate) fn order(id: &str) -> usize {
        FIRST.iter().position(|known| id.starts_with(known.entry.id)).unwrap_or(FIRST.len())
    }

    pub(crate) fn id(self, mode: Mode) -> String {
        let mut id = self.entry.id.to_owned();
        if id.ends_with('-') {
            id.push_str(&self.number.to_string());
        }
        if let Some(fact) = self.setting {
            id = format!("{id}-{}", fact.rsplit('.').next().unwrap_or(fact));
        }
        if let Some(change) = self.entry.twin {
            id = format!("{id}-{}", change.id());
        }
        if self.is_longer {
            id.push_str("-longer");
        }
        match (mode, self.entry.load) {
            (Mode::Loaded, Load::OfGap) => format!("{id}-loaded"),
            _ => id,
        }
    }

    /// What it changes, in front of a colon.
    pub(crate) fn phrase(self) -> &'static str {
        self.entry.phrase
    }

    /// Whether the plan leaves room for it; if not, why.
    pub(crate) fn possible(self, case: &Case<'_>) -> Result<(), String> {
        settings::can_be_set(self.entry.sets, case)?;
        (self.entry.possible)(self, case)
    }

    pub(crate) fn probe(self, case: &Case<'_>, mode: Mode) -> Probe {
        let Entry { load, reads, has_whole_response, .. } = *self.entry;
        let connections = match load {
            Load::OfGap | Load::None => (mode == Mode::Alone).then_some(1),
            Load::One => Some(1),
            Load::Plan => None,
            Load::Number => u32::try_from(self.number).ok(),
        };
        let by_ops_ns = budget_ns(case, connections == Some(1), has_whole_response);
        let settings = settings::values(self.entry.sets, case);
        let mut variation = Variation { connections, settings, ..Variation::default() };
        (self.entry.varies)(self, case, &mut variation);
        let once_ns = match self.entry.budget {
            Budget::ByOps => by_ops_ns,
            Budget::AtLeast(ns) => by_ops_ns.max(ns),
            Budget::Fixed(ns) => ns,
        };
        Probe {
            id: self.id(mode),
            question: self.entry.question.to_owned(),
            variation,
            budget_ns: if self.is_longer { LONGER * once_ns } else { once_ns },
            takes_all: self.is_longer,
            reads_hosts: reads == Reads::Hosts,
            lens_of: (reads == Reads::Lens).then_some(self.number),
            below: self.entry.below,
        }
    }

    /// Whether the change took effect on this target; if not, what was seen instead. A flip that one server ignored
    /// must not pass for a flip that did not move the gap.
    pub(crate) fn took_effect(self, variation: &Variation, seen: &TargetObservation) -> Result<(), String> {
        (self.entry.took_effect)(variation, seen)
    }
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
    // Streams over a long path come up to speed before each slot, and as new ones in the trial; the last blocks take some round trips.
    const TRIPS_BESIDE: u64 = 3;
    let facts = case.comparison.iter().filter_map(|target| target.negotiated.as_ref());
    let trip_ns = facts.filter_map(|facts| case.plan.stream_trip_ns(facts)).max().unwrap_or(0);
    let run_up_ns = (Streamed::TRIPS_OF_RUN_UP + TRIPS_BESIDE).saturating_mul(trip_ns) as f64;
    let of_trips_ns = slot_ns.max(TRIPS_OF_PROBE_SLOT.saturating_mul(trip_ns) as f64);
    let settle_ns = Streamed::TRIPS_TO_SETTLE.saturating_mul(trip_ns) as f64 * case.plan.targets.len() as f64;
    // No probe is to take longer than the comparison that it explains, however long the round trips are said to be.
    let for_trips_ns = (slots * (of_trips_ns + run_up_ns) + settle_ns).min(case.plan.compare.max_load_ns as f64);
    DEFAULT_NS.max((slots * slot_ns) as Nanos).max(for_trips_ns as Nanos)
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
