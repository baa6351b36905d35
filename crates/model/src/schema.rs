//! What a kind of work declares of itself: what its ops are called, what parts they have, how they fail.
//!
//! Whoever counts, keeps, judges or reports goes by this declaration, and so knows no kind by name. While a slot runs the
//! parts and failures of ops are places in arrays; what is kept has them by name, so that it reads the same whatever a
//! later version declares beside them.

use crate::web::settings::{Setting, SwitchedOff};
use crate::{Declaration, Param, web};
use std::collections::BTreeMap;
use std::fmt;

/// Most phases that a kind may have: what an op's times have room for.
pub const MOST_PHASES: usize = 8;
/// Most kinds of failure that a kind of work may have.
pub const MOST_FAILURES: usize = 16;

/// What a kind of work declares of itself.
#[derive(Debug, PartialEq)]
pub struct Schema {
    /// Its name in archives and JSON.
    pub kind: &'static str,
    /// What its targets are called, as a heading: the help lists its settings under it.
    pub targets: &'static str,
    /// What an op is called.
    pub op: Noun,
    /// What a lane is called that has its connection for itself.
    pub lane: Noun,
    /// What a lane is called that shares its connection with others.
    pub shared_lane: Noun,
    /// The parts of an op, in the order in which it goes through them.
    pub phases: &'static [Phase],
    /// How ops fail, in the order in which that is told.
    pub failures: &'static [FailureKind],
    /// What the bytes of its ops are called.
    pub bytes: &'static str,
    /// The heading of tables of what is known of its targets.
    pub facts_title: &'static str,
    /// What may be known of its targets, in the order in which it is shown.
    pub facts: &'static [Declaration],
    /// Its settings, in the order in which they are shown.
    pub params: &'static [Param],
    /// Its targets are programs or libraries, which this machine runs: an archive of somebody else must not make it do so unasked.
    pub runs_targets: bool,
    /// What some addresses make this machine do that their owner may not want: the archive of somebody else must not do so
    /// unasked.
    pub reaches: &'static [Reach],
    /// What `-t` counts.
    pub threads: Threads,
    /// The setting that says how many ops a thread or connection has under way at a time, each in a lane; `None`: one.
    pub depth: Option<&'static Param>,
    /// A setting that, once it has a value, says what others would say.
    pub replaces: Option<Replaces>,
    /// What is counted beside ops and bytes, in the order in which it is told.
    pub counters: &'static [Counter],
    /// What an op consists of, where it is handed over in parts: its cost is told by them.
    pub parts: Option<Parts>,
    /// Where the other side may wait for an acknowledgement of ours before it sends more.
    pub held_back: Option<HeldBack>,
    /// Which ops may be parts of streams, and then have no response times (see [`Plan::is_streamed`](crate::Plan::is_streamed)).
    pub streamed: Option<Streamed>,
}

/// A setting that stands for others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Replaces {
    /// The setting; empty, it stands for none.
    pub by: &'static Param,
    /// Those that mean nothing beside it.
    pub params: &'static [&'static Param],
}

/// What addresses of a form make this machine do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// How such addresses begin.
    pub begins: &'static str,
    /// What such addresses hold; empty: whatever they hold.
    pub holds: &'static str,
    /// What it is, read as "this plan would ... ADDRESS".
    pub what: &'static str,
}

impl Reach {
    /// What all addresses with this beginning do.
    pub const fn all(begins: &'static str, what: &'static str) -> Self {
        Self { begins, holds: "", what }
    }

    /// Whether an address is one of these.
    pub fn is_of(&self, address: &str) -> bool {
        address.starts_with(self.begins) && address.contains(self.holds)
    }
}

/// What `-t` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// Threads of duel, which share the lanes; `-c` counts lanes.
    OfDuel,
    /// Lanes, which are connections, as load generators for databases count them. Some threads of duel share them.
    Connections,
    /// Lanes, each of which is a thread or a process that works beside duel; one thread of duel waits for all of them.
    Beside,
    /// Threads of duel that do the work themselves; each has lanes of its own.
    Working,
}

/// What a kind of work counts beside ops and bytes, while ops run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counter {
    /// What it is kept under, and called in JSON. The last word may be its unit (`cpu_ns`).
    pub name: &'static str,
    place: u8,
    /// What tables call it.
    pub title: &'static str,
}

/// Most counters that a kind may have.
pub const MOST_COUNTERS: usize = 32;

/// Where the other side may hold back what it sends until we acknowledge what came before (Nagle's algorithm, RFC 896), and we delay
/// that.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeldBack {
    /// The part of an op in which we wait meanwhile.
    pub phase: Phase,
    /// The switch by which we acknowledge at once.
    pub at_once: &'static Param,
}

/// Which ops are parts of a stream, where nothing holds the stream back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Streamed {
    /// The setting that says what is done.
    pub by: &'static Param,
    /// Its values under which ops are parts of a stream.
    pub values: &'static [&'static str],
    /// A setting, and its value, with which they are none: each is asked for, or answered, by itself.
    pub unless: Option<(&'static Param, &'static str)>,
    /// The fact that tells the shortest round trip of such streams, µs, where a slot has shown one.
    pub round_trip_us: &'static str,
}

impl Streamed {
    /// For so many round trips a stream is under load before it is measured. From a window of ten segments (RFC 6928), which doubles in
    /// each round trip, it has ten thousand after ten: 3 Gbit/s over a round trip of 40 ms. A sender that the line, loss or a window
    /// holds to less has met that limit by then.
    pub const TRIPS_OF_RUN_UP: u64 = 10;

    /// For so many round trips a new stream is under load before it is measured, where it has any run-up. Behind an earlier one that lost
    /// something, Linux begins it with the threshold that this one had (`tcp_no_metrics_save`), from which a sender of Reno's kind grows by
    /// a segment in each round trip: of a path that loses one segment in a thousand, to about forty (Mathis et al. 1997). One that has
    /// rested keeps its own threshold, and is back there within a run-up.
    pub const TRIPS_TO_SETTLE: u64 = 40;

    /// Why such ops have no response times, in a sentence without a full stop.
    pub const NO_TIMES: &str = "an op is a part of a stream, and parts are not answered one by one";
}

/// The parts that an op is handed over in.
#[derive(Debug, PartialEq)]
pub struct Parts {
    /// How many bytes an op has.
    pub whole: &'static Param,
    /// How many bytes a part has; 0: the op has one part.
    pub part: &'static Param,
    /// What the bytes of an op are called together.
    pub whole_noun: &'static str,
    /// What hands over a part.
    pub part_noun: &'static str,
}

/// What something is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Noun {
    /// One of it.
    pub one: &'static str,
    /// Several.
    pub many: &'static str,
}

/// A part of an op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phase {
    /// Its name in tables and JSON.
    pub name: &'static str,
    place: u8,
    /// When an op goes through it.
    pub when: When,
}

/// When an op goes through a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Before the first op, once: its time lies outside of all ops, and is shared among them.
    Beforehand,
    /// When its connection is made: an op that has one skips it.
    Connecting,
    /// In each op.
    Each,
}

/// How an op failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureKind {
    /// Its name in tables and JSON.
    pub name: &'static str,
    place: u8,
    /// What it says of both sides.
    pub means: Meaning,
}

/// What a failure says of the other side, or of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// No connection came about: nobody there, or none that agrees with us.
    Unconnected,
    /// No connection came about in the time that it was given.
    UnconnectedInTime,
    /// No complete answer came in the time that it was given.
    UnansweredInTime,
    /// The connection was lost before the answer.
    Lost,
    /// An answer came that breaks the rules, or is not whole.
    Broken,
    /// An answer came, and it says no.
    Rejected,
    /// We ran out of something ourselves before there was a connection.
    Ours,
}

impl Meaning {
    /// Whether the other side gave no sign of life: neither a response nor anything that stands in for one. What we ran
    /// out of ourselves says nothing about it.
    pub fn is_silence(self) -> bool {
        matches!(self, Self::Unconnected | Self::Lost) || self.is_waiting()
    }

    /// Whether nothing was seen but that the time was over.
    pub fn is_waiting(self) -> bool {
        matches!(self, Self::UnconnectedInTime | Self::UnansweredInTime)
    }

    /// Whether there was no connection to send anything over.
    pub fn is_unconnected(self) -> bool {
        matches!(self, Self::Unconnected | Self::UnconnectedInTime | Self::Ours)
    }

    /// Whether we ran out of something ourselves.
    pub fn is_ours(self) -> bool {
        self == Self::Ours
    }

    /// Whether it is an answer that says no.
    pub fn is_rejected(self) -> bool {
        self == Self::Rejected
    }
}

/// Declares phases, or kinds of failure, in their order: a constant for each, and `ALL` of them.
///
/// ```
/// mod phase {
///     duel_model::in_order! { Phase:
///         /// Until the hand is in the drum.
///         REACH = "reach", duel_model::When::Each;
///         /// Until it has drawn.
///         DRAW = "draw", duel_model::When::Each;
///     }
/// }
/// assert_eq!(phase::ALL[phase::DRAW.place()], phase::DRAW);
/// ```
#[macro_export]
macro_rules! in_order {
    ($sort:ident: $($(#[$meta:meta])* $name:ident = $text:literal, $of:expr;)+) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "they are the names of constants")]
        enum Place {
            $($name),+
        }
        $($(#[$meta])* pub const $name: $crate::$sort = $crate::$sort::at(Place::$name as u8, $text, $of);)+
        /// All of them.
        pub const ALL: &[$crate::$sort] = &[$($name),+];
    };
}

/// What all that is declared in an order can tell of itself.
macro_rules! declared {
    ($($sort:ident { $of:ident: $what:ty })+) => {$(
        impl $sort {
            /// For [`in_order`](crate::in_order): one with this place, name and meaning.
            pub const fn at(place: u8, name: &'static str, $of: $what) -> Self {
                let _ = Id::new(name);
                Self { name, place, $of }
            }

            /// Its place in its schema.
            pub const fn place(self) -> usize {
                self.place as usize
            }

            /// What it is kept under.
            pub const fn id(self) -> Id {
                Id::new(self.name)
            }
        }
    )+};
}

/// What counters of others' work begin with; a counter of the same of duel's may follow.
const OF_OTHERS: &str = "server-others";

impl Counter {
    /// Whether it counts nanoseconds, as the last word of its name tells: it is told for each op and for each byte. Other
    /// counters are numbers of something.
    pub fn is_time(self) -> bool {
        self.name.ends_with("_ns")
    }

    /// Whether it counts bytes, as the last word of its name tells.
    pub fn is_bytes(self) -> bool {
        self.name.ends_with("_bytes")
    }

    /// Whether the target itself counts it, as the first word of its name tells: it is told for each op.
    pub fn is_of_server(self) -> bool {
        self.id().is_of_server()
    }

    /// Whether it is of what others do on the target meanwhile, whose work then is in all else that the target counts.
    pub fn is_of_others(self) -> bool {
        self.name.starts_with(OF_OTHERS)
    }

    /// Where it is of what others do: the name of the counter that counts the same of duel's; ops, where it names none.
    pub fn beside(self) -> Option<&'static str> {
        self.name.strip_prefix(OF_OTHERS)?.strip_prefix('-')
    }
}

declared! { Phase { when: When } FailureKind { means: Meaning } Counter { title: &'static str } }

impl Schema {
    /// The schema itself, if it is sound. In a constant, a mistake is one of compiling.
    pub const fn sound(self) -> Self {
        assert!(self.phases.len() <= MOST_PHASES && self.failures.len() <= MOST_FAILURES);
        assert!(self.counters.len() <= MOST_COUNTERS);
        let (mut place, mut gives_up) = (0, false);
        while place < self.failures.len() {
            gives_up |= matches!(self.failures[place].means, Meaning::UnansweredInTime);
            place += 1;
        }
        assert!(gives_up, "any op may take too long");
        self
    }

    /// Its setting of this name.
    pub fn param(&'static self, name: &str) -> Option<&'static Param> {
        self.params.iter().find(|param| param.name == name)
    }

    /// Its setting of this name, if the kept value is one that an option could have set.
    pub(crate) fn checked(&'static self, id: Id, value: &str) -> Result<&'static Param, String> {
        let param = self.param(id.name()).ok_or_else(|| format!("{} has no setting '{id}'", self.kind))?;
        match param.read(value)? == value {
            true => Ok(param),
            false => Err(format!("'{}' is no value of {id}", crate::sanitize_line(value))),
        }
    }

    /// Under which heading the help lists a setting.
    pub fn heading(&self, param: &Param) -> &'static str {
        self.of_web(param).map_or(self.targets, |setting| setting.heading)
    }

    /// The switch without which a setting means nothing.
    pub fn needs(&self, param: &Param) -> Option<&'static Param> {
        self.of_web(param)?.needs
    }

    /// The setting beside which a setting cannot be typed.
    pub fn excludes(&self, param: &Param) -> Option<&'static Param> {
        self.of_web(param)?.excludes
    }

    /// How a setting is typed.
    pub fn option(&self, param: &Param) -> String {
        match self.option_names(param) {
            (_, Some(letter)) => format!("-{letter}"),
            (word, None) => format!("--{word}"),
        }
    }

    /// The word by which a setting is typed, and the letter, if there is one.
    pub fn option_names(&self, param: &Param) -> (&'static str, Option<char>) {
        let setting = self.of_web(param);
        (setting.and_then(|setting| setting.option).unwrap_or(param.name), setting.and_then(|setting| setting.letter))
    }

    /// What a setting is switched off by, too.
    pub fn switched_off_by(&self, param: &Param) -> Option<SwitchedOff> {
        self.of_web(param)?.off
    }

    /// How a setting is told of any run; `None` where it is told only if it is set, by its name.
    pub fn told(&self, param: &Param, value: &str) -> Option<String> {
        Some(self.of_web(param)?.told?(value))
    }

    /// Where a plan has a setting: a field of its workload, by its path.
    pub fn kept_at(&self, param: &Param) -> String {
        let field = self.of_web(param).and_then(Setting::kept_at);
        field.map_or_else(|| format!("settings.{}", param.name), str::to_owned)
    }

    fn of_web(&self, param: &Param) -> Option<&'static Setting> {
        (self.kind == web::SCHEMA.kind).then(|| web::settings::of_name(param.name)).flatten()
    }

    /// Whether a lane is a thread that works, and not a connection.
    pub const fn lanes_are_threads(&self) -> bool {
        matches!(self.threads, Threads::Beside | Threads::Working)
    }

    /// The kind of failure that an op is counted under which was given up, when it was still connecting or later.
    pub fn given_up(&self, connecting: bool) -> FailureKind {
        let wanted = if connecting { Meaning::UnconnectedInTime } else { Meaning::UnansweredInTime };
        let of = |wanted| self.failures.iter().find(|kind| kind.means == wanted).copied();
        #[expect(clippy::expect_used, reason = "a sound schema has one")]
        of(wanted).or_else(|| of(Meaning::UnansweredInTime)).expect("a kind for ops that took too long")
    }

    /// What a failure means that was kept under this name; `None` where this schema does not have it.
    pub fn meaning(&self, failure: Id) -> Option<Meaning> {
        self.failures.iter().find(|kind| kind.id() == failure).map(|kind| kind.means)
    }

    /// How many ops failed in a way whose meaning fits.
    pub fn failed(&self, failed: &BTreeMap<Id, u64>, fits: fn(Meaning) -> bool) -> u64 {
        failed.iter().filter(|&(&kind, _)| self.meaning(kind).is_some_and(fits)).map(|(_, count)| count).sum()
    }

    /// Failures in the order in which they are told: as they are declared, and then those that are not.
    pub fn in_order(&self, failures: impl IntoIterator<Item = Id>) -> Vec<Id> {
        let mut ids: Vec<Id> = failures.into_iter().collect();
        ids.sort_by_key(|&id| (self.failures.iter().position(|kind| kind.id() == id).unwrap_or(usize::MAX), id));
        ids.dedup();
        ids
    }
}

/// What a phase or a failure is kept under: a short name of lower-case letters, digits, `-` and `_`. So it may be shown,
/// whoever has written it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Id([u8; Id::LONGEST]);

kept_as_typed!(Id);

/// A text is no [`Id`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a name of up to {} lower-case letters, digits, '-' and '_'", Id::LONGEST)]
pub struct NoId;

impl Id {
    /// Whether it is of a counter that the target itself counts. Such a counter is kept also where it is 0: what is absent was not
    /// read.
    pub fn is_of_server(&self) -> bool {
        self.name().starts_with("server-")
    }

    /// Most bytes of a name.
    const LONGEST: usize = 24;

    /// The id of a name that is known to be one.
    ///
    /// # Panics
    ///
    /// It is too long, or has other characters; in a constant that is an error of compiling.
    pub const fn new(name: &'static str) -> Self {
        match Self::read(name) {
            Some(id) => id,
            None => panic!("not a name"),
        }
    }

    const fn read(text: &str) -> Option<Self> {
        let (text, mut bytes, mut at) = (text.as_bytes(), [0; Self::LONGEST], 0);
        if text.is_empty() || text.len() > Self::LONGEST {
            return None;
        }
        while at < text.len() {
            if !matches!(text[at], b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_') {
                return None;
            }
            bytes[at] = text[at];
            at += 1;
        }
        Some(Self(bytes))
    }

    /// The name.
    pub fn name(&self) -> &str {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(Self::LONGEST);
        str::from_utf8(&self.0[..end]).unwrap_or_default()
    }
}

impl std::str::FromStr for Id {
    type Err = NoId;

    fn from_str(text: &str) -> Result<Self, NoId> {
        Self::read(text).ok_or(NoId)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_is_written_and_a_foreign_text_is_none() {
        for name in ["connect", "descriptors-exhausted", "bytes_in", "24-bytes-are-the-longest"] {
            assert_eq!(name.parse::<Id>().unwrap().to_string(), name);
        }
        for text in ["", "Connect", "a b", "\u{1b}[2J", "25-bytes-are-one-too-many"] {
            assert_eq!(text.parse::<Id>(), Err(NoId), "{text:?}");
        }
    }
}
