//! Why: probes, what they showed, and the causes held against it.

use crate::{
    Doubt, Facts, HostDemand, Id, Leads, LensReading, Nanos, PairVerdict, Profile, Scatter, SlowClass, TwinReading,
    Variation,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A small paired experiment that diagnosis asks for: the run's plan with some parameters changed, on all targets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// Stable identity, such as `cipher-chacha20`; no probe is asked for twice.
    pub id: String,
    /// What it is to find out, as shown while it runs.
    pub question: String,
    /// What it changes.
    pub variation: Variation,
    /// Most load time that it may take over all targets.
    pub budget_ns: Nanos,
    /// It takes all of that, however sharp it is before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes_all: bool,
    /// Read the targets' machines before and after each of its slots.
    #[serde(default)]
    pub reads_hosts: bool,
    /// No load: the libcrypto that this target's server maps is measured alone, on its machine.
    #[serde(default)]
    pub lens_of: Option<usize>,
    /// No load on the targets: work of another kind on this layer below each of them. The variation is then one of that work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<Layer>,
}

/// What lies below the targets, and is measured by a kind of work of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// Files that the targets' servers have open, on the devices under them.
    Files,
    /// The paths to the targets' machines, between two programs that are not the servers.
    Path,
}

/// What a probe showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeOutcome {
    /// The probe.
    pub probe: Probe,
    /// The targets against the baseline; empty when the probe could not be made.
    pub pairs: Vec<PairVerdict>,
    /// What each target showed, in the plan's order; empty when the probe could not be made.
    pub targets: Vec<TargetObservation>,
    /// What each target's machine did for its ops, in the plan's order; empty unless machines were read.
    #[serde(default)]
    pub demands: Vec<Option<HostDemand>>,
    /// What the lens showed.
    #[serde(default)]
    pub lens: Option<LensReading>,
    /// What the twin was that took a server's place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub twin: Option<TwinReading>,
    /// Doubts about this probe's numbers.
    pub doubts: Vec<Doubt>,
    /// Why the probe could not be made.
    pub unavailable: Option<NotMade>,
}

impl ProbeOutcome {
    /// One that has shown nothing.
    pub fn of(probe: Probe) -> Self {
        let (pairs, targets, demands, doubts) = Default::default();
        Self { probe, pairs, targets, demands, lens: None, twin: None, doubts, unavailable: None }
    }
}

/// Why a probe could not be made. It is kept and shown in JSON as the text that tells it, as it always was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum NotMade {
    /// The user ended the search meanwhile.
    Interrupted,
    /// Something else, in one sentence.
    Because(String),
}

impl NotMade {
    const INTERRUPTED: &str = "interrupted";

    /// What the user reads of it.
    pub fn told(&self) -> &str {
        match self {
            Self::Interrupted => Self::INTERRUPTED,
            Self::Because(why) => why,
        }
    }
}

impl From<NotMade> for String {
    fn from(why: NotMade) -> Self {
        match why {
            NotMade::Interrupted => NotMade::INTERRUPTED.to_owned(),
            NotMade::Because(why) => why,
        }
    }
}

impl From<String> for NotMade {
    fn from(kept: String) -> Self {
        if kept == Self::INTERRUPTED { Self::Interrupted } else { Self::Because(kept) }
    }
}

/// What one target showed under one treatment, over all its slots.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetObservation {
    /// Name of the target.
    pub name: String,
    /// Ok ops.
    pub ok: u64,
    /// Failed ops.
    pub failed: u64,
    /// Ok ops per second of load.
    pub rate_per_s: Option<f64>,
    /// Mean service time of an op, ns.
    pub service_mean_ns: Option<f64>,
    /// Mean time in each phase **per ok op** (time of ops that skipped the phase counts as none spent), ns.
    pub phase_mean_ns: BTreeMap<Id, f64>,
    /// Where the times of each phase lie, of ok ops that went through it.
    #[serde(default)]
    pub phase_profile: BTreeMap<Id, Profile>,
    /// Where the service times lie.
    #[serde(default)]
    pub service_profile: Profile,
    /// Bytes of response bodies per ok op.
    pub body_bytes_per_op: Option<f64>,
    /// Bytes read per ok op.
    pub bytes_in_per_op: Option<f64>,
    /// Bytes written per ok op.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_out_per_op: Option<f64>,
    /// CPU time that the load generator itself worked for each ok op, without what it polled, ns; `None` where the system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_work_ns_per_op: Option<f64>,
    /// What its kind of work counts beside, for each ok op.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counted_per_op: BTreeMap<Id, f64>,
    /// How that scatters over slots.
    #[serde(default, skip_serializing_if = "Scatter::is_empty")]
    pub scatter: Scatter<Id>,
    /// Ops that take far longer than its others; `None` where there is no such class, or it was not looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_class: Option<SlowClass>,
    /// Times in which it stood still for all connections at once; `None` where that was not looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalls: Option<TargetStalls>,
    /// Whether its connections are alike; `None` where they are not told apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_classes: Option<ConnectionClasses>,
    /// Share of ops that went over a connection used before.
    pub reused_share: Option<f64>,
    /// Share of new connections whose TLS session was resumed.
    pub resumed_share: Option<f64>,
    /// What was negotiated.
    #[serde(serialize_with = "crate::web::serialize_whole")]
    pub negotiated: Option<Facts>,
}

/// Times in which a target stood still for all connections at once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TargetStalls {
    /// How often that was.
    pub count: u64,
    /// The longest of them, ns.
    pub longest_ns: Nanos,
    /// Time under load in which they were looked for, ns.
    pub watched_ns: Nanos,
    /// The share of that time that they take.
    pub share: f64,
    /// Half width of its 95 % interval, by how it scatters over slots.
    pub share_half: f64,
}

/// Connections to one target, and those among them that take longer than the others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ConnectionClasses {
    /// Connections that were told apart.
    pub of: u64,
    /// Those among them that take longer; 0 where all are alike, as far as can be told.
    pub slow: u64,
    /// Median over the slow ones of the mean time of their ops, ns; 0 where there is none.
    pub slow_ns: f64,
    /// The same over all others.
    pub others_ns: f64,
    /// The chance that connections which are alike part as these do.
    pub chance: f64,
    /// By how much more the slow ones were waited for when they were made, ns; `None` where that is not known.
    pub connects_longer_ns: Option<f64>,
    /// Log of how many times as many ops there would be if the slow ones took as long as the others, all connections being busy.
    pub worth_log: f64,
    /// Half width of its 95 % interval, by how it scatters over slots; `None` where one slot tells none.
    pub worth_log_half: Option<f64>,
}

impl ConnectionClasses {
    /// Log of how many times as long an op takes on average as over a connection that is not slow, where each connection has as many.
    pub fn mean_log(&self) -> f64 {
        if self.slow == 0 {
            return 0.0;
        }
        let share = self.slow as f64 / self.of.max(1) as f64;
        (share * (self.slow_ns / self.others_ns - 1.0)).ln_1p()
    }
}

/// A cause held against the evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable id of the cause, such as `tls.aes-unused`, `none` or `unknown`.
    pub cause: String,
    /// Name of the target that has it; `None` where it concerns no single target.
    pub target: Option<String>,
    /// How firmly it stands.
    pub confidence: Confidence,
    /// Share of the log of the gap that goes away with the cause; `None` where it was not measured.
    pub explains: Option<f64>,
    /// The finding in one sentence.
    pub summary: String,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// What to try next.
    pub remedy: String,
    /// Where to look, if no cause is named.
    #[serde(default)]
    pub leads: Leads,
}

/// How firmly a finding stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// It does not contradict the evidence.
    Possible,
    /// Its signature fits, and alone.
    Likely,
    /// Taking the cause away moved at least 80 % of the log of the gap.
    Confirmed,
}

/// One line of evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Line", into = "Line")]
pub struct Evidence {
    /// Id of the probe that it comes from; `comparison` or `first-contact` for what was seen without one.
    pub probe: String,
    /// What was measured, with figures.
    pub text: String,
    /// How to repeat it by hand.
    pub repeat: Option<String>,
    /// The cause that is no finding because of this.
    pub about: Option<AboutCause>,
}

/// A cause that is no finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AboutCause {
    /// Its id.
    pub cause: String,
    /// How it stands.
    pub stands: Stands,
}

/// How a cause stands that is no finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stands {
    /// The evidence excludes it.
    RuledOut,
    /// The evidence does not tell.
    Open,
    /// It fits, and may not be named.
    Suspected,
}

impl Evidence {
    /// What a probe, or what was seen without one, tells.
    pub fn new(probe: impl Into<String>, text: impl Into<String>, repeat: Option<String>) -> Self {
        Self { probe: probe.into(), text: text.into(), repeat, about: None }
    }

    /// What it tells, with the cause that it is about: `not http.compression: B does not compress`.
    pub fn told(&self) -> String {
        match &self.about {
            None => self.text.clone(),
            Some(about) => format!("{}{}", about.introduction(), self.text),
        }
    }
}

impl AboutCause {
    fn introduction(&self) -> String {
        match self.stands {
            Stands::RuledOut => format!("not {}: ", self.cause),
            Stands::Open | Stands::Suspected => format!("open: {}: ", self.cause),
        }
    }

    /// What a line of an archive is about that was written before lines said so by themselves, and the rest of its text.
    fn of_old(text: &str) -> Option<(Self, &str)> {
        let (stands, rest) = match text.strip_prefix("open: ") {
            Some(rest) => (Stands::Open, rest),
            None => (Stands::RuledOut, text.strip_prefix("not ")?),
        };
        let (cause, rest) = rest.split_once(": ")?;
        let is_id = !cause.contains(' ') && cause.contains('.');
        is_id.then(|| (Self { cause: cause.to_owned(), stands }, rest))
    }
}

/// A line of evidence as it is kept and shown in JSON: its text names the cause that it is about, as it always has.
#[derive(Serialize, Deserialize)]
struct Line {
    probe: String,
    text: String,
    repeat: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    about: Option<AboutCause>,
}

impl From<Evidence> for Line {
    fn from(evidence: Evidence) -> Self {
        let text = evidence.told();
        Self { probe: evidence.probe, text, repeat: evidence.repeat, about: evidence.about }
    }
}

impl From<Line> for Evidence {
    fn from(line: Line) -> Self {
        let Line { probe, text, repeat, about } = line;
        let (about, text) = match about {
            None => match AboutCause::of_old(&text) {
                Some((about, rest)) => (Some(about), rest.to_owned()),
                None => (None, text),
            },
            Some(about) => {
                let rest = text.strip_prefix(&about.introduction()).map(str::to_owned);
                (Some(about), rest.unwrap_or(text))
            }
        };
        Self { probe, text, repeat, about }
    }
}

/// The outcome of diagnosis.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// Findings, the best first; never empty when diagnosis came to its end.
    pub findings: Vec<Finding>,
    /// Ids of causes that the evidence excludes.
    pub ruled_out: Vec<String>,
    /// Every probe that was asked for, in order.
    pub probes: Vec<ProbeOutcome>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(cause: &str, stands: Stands, text: &str) -> Evidence {
        let about = Some(AboutCause { cause: cause.to_owned(), stands });
        Evidence { about, ..Evidence::new("hosts", text, Some("top".to_owned())) }
    }

    #[test]
    fn how_a_cause_stands_is_kept_beside_a_text_that_tells_it() {
        for (evidence, text) in [
            (
                about("http.compression", Stands::RuledOut, "B does not compress"),
                "not http.compression: B does not compress",
            ),
            (about("net.rate-cap", Stands::Open, "too small: 3 B"), "open: net.rate-cap: too small: 3 B"),
            (about("cpu.slower", Stands::Suspected, "it fits"), "open: cpu.slower: it fits"),
            (Evidence::new("comparison", "not so: it is not", None), "not so: it is not"),
        ] {
            assert_eq!(evidence.told(), text);
            let kept = serde_json::to_value(&evidence).unwrap();
            assert_eq!(kept["text"], text);
            assert_eq!(serde_json::from_value::<Evidence>(kept).unwrap(), evidence);
        }
    }

    #[test]
    fn why_a_probe_was_not_made_is_kept_as_its_text() {
        for (why, text) in [
            (NotMade::Interrupted, "interrupted"),
            (NotMade::Because("B was interrupted".to_owned()), "B was interrupted"),
        ] {
            assert_eq!(why.told(), text);
            let kept = serde_json::to_value(&why).unwrap();
            assert_eq!(kept, text);
            assert_eq!(serde_json::from_value::<NotMade>(kept).unwrap(), why);
        }
    }

    #[test]
    fn lines_of_older_archives_say_the_same_of_causes() {
        let read = |text: &str| {
            let line = serde_json::json!({ "probe": "hosts", "text": text, "repeat": "top" });
            serde_json::from_value::<Evidence>(line).unwrap()
        };
        let ruled_out = about("http.compression", Stands::RuledOut, "B does not compress");
        assert_eq!(read("not http.compression: B does not compress"), ruled_out);
        assert_eq!(read("open: net.rate-cap: small: 3 B"), about("net.rate-cap", Stands::Open, "small: 3 B"));
        for text in ["not so: it is not", "not shown: that 1.5 is less", "open: to all", "no gap"] {
            assert_eq!(read(text), Evidence::new("hosts", text, Some("top".to_owned())));
        }
    }
}
