//! Why: probes, what they showed, and the causes held against it.

use crate::{Doubt, Facts, HostDemand, Id, LensReading, Nanos, PairVerdict, Profile, TwinReading, Variation};
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
    /// Read the targets' machines before and after each of its slots.
    #[serde(default)]
    pub reads_hosts: bool,
    /// No load: the libcrypto that this target's server maps is measured alone, on its machine.
    #[serde(default)]
    pub lens_of: Option<usize>,
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
    /// Why the probe could not be made, in one sentence.
    pub unavailable: Option<String>,
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
    /// What its kind of work counts beside, for each ok op.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counted_per_op: BTreeMap<Id, f64>,
    /// Share of ops that went over a connection used before.
    pub reused_share: Option<f64>,
    /// Share of new connections whose TLS session was resumed.
    pub resumed_share: Option<f64>,
    /// What was negotiated.
    #[serde(serialize_with = "crate::web::serialize_whole")]
    pub negotiated: Option<Facts>,
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
pub struct Evidence {
    /// Id of the probe that it comes from; `comparison` or `first-contact` for what was seen without one.
    pub probe: String,
    /// What was measured, with figures.
    pub text: String,
    /// How to repeat it by hand.
    pub repeat: Option<String>,
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
