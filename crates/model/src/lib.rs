//! Every noun that crosses a room: targets, plans, slots, runs, verdicts, doubts, findings, hosts and their units.
//!
//! This crate does no I/O and decides nothing. What is here can be written down (serde) and read back by a later
//! version: fields are added, never re-used with another meaning.

#[macro_use]
mod kept;

mod cache;
mod command;
mod contest;
mod distribution;
mod experiment;
mod factor;
mod facts;
mod finding;
mod host;
pub mod kinds;
mod leads;
mod lens;
mod machine;
mod mount;
pub mod null;
mod obeyed;
mod param;
mod plan;
mod profile;
mod promise;
mod reach;
mod requests;
mod restart;
mod run;
mod schema;
mod secret;
mod shape;
mod shown;
mod slot;
mod stretch;
mod text;
mod threshold;
mod twin;
mod units;
mod variation;
mod verdict;
mod waiting;
pub mod web;

pub use cache::{CacheBasis, CacheModel, CachePrediction};
pub use contest::{Contest, HeadToHead, StageContrast};
pub use distribution::Distribution;
pub use experiment::{
    CostDifference, CostMisfit, Costs, Dependence, DependenceAnswer, Experiment, FactorVerdict, LevelFigure,
    LevelVerdict, Ranged, Scaling, ScalingBand, ScalingCurve, ScalingDifference, ScalingLaw, ScalingMisfit,
    ScalingPoint, ScalingShape, TargetCosts,
};
pub use factor::{Factor, SettingLevels};
pub use facts::{Compared, Declaration, Facts, Known, Line, PEER, Value, unit};
pub use finding::{
    AboutCause, Confidence, ConnectionClasses, Evidence, Explanation, Finding, Layer, NotMade, Probe, ProbeOutcome,
    Stands, TargetObservation, TargetStalls,
};
pub use host::{HostDemand, HostRecord, HostSample, HostSpan, KernelLine, ListenQueues, Looks, Sleepers};
pub use kinds::KindPlan;
pub use leads::{Difference, DifferenceKind, Leads, Scatter, SlotSums, SlowClass, SlowOps, Unread};
pub use lens::{
    Assembly, Capabilities, CapabilityVector, Gain, HardwareUse, LensFigure, LensIdentity, LensMeans, LensOp,
    LensReading, LensTreatment, MaskEffect, ProcessVector,
};
pub use mount::MountLine;
pub use param::{Param, Sort, assignments};
pub use plan::{
    Arrival, Body, Bound, ComparePlan, ConnectTo, HostAccess, HostPlan, Http2Plan, HttpPlan, LoadPlan, LoopKind, Plan,
    ProcessIdentity, ProxyPlan, RedfishPlan, ServerPlan, Target, TlsPlan, TlsVersion, WorkloadPlan, is_safe_method,
};
pub use profile::Profile;
pub use promise::{Comparison, ParsePromiseError, Promise, PromiseMetric};
pub use reach::{AddressChoice, AddressRange, IpFamily, NameOverride, ParseReachError, ProxyProtocol, ReachPlan};
pub use requests::{
    AuthPlan, FormField, FormPlan, FormValue, RequestFormat, RequestOrder, RequestSource, RequestsPlan, SecretSource,
};
pub use restart::{RestartCommand, RestartPlan, redacted_command, without_secrets_of_command};
pub use run::{Interruption, Run, RunKind, RunStatus, Versions};
pub use schema::{
    Counter, FailureKind, HeldBack, Id, MOST_COUNTERS, MOST_FAILURES, MOST_PHASES, Meaning, NoId, Noun, Parts, Phase,
    Reach, Replaces, Schema, Streamed, Threads, When,
};
pub use secret::{is_secret_field, is_secret_name, public_address, without_secret_parameters, without_secrets};
pub use shape::{
    Attempt, AttemptOutcome, LoadShape, ParseStageError, RateSearch, SearchEnd, SearchPlan, Stage, StageLevel,
};
pub use shown::PlanSecrets;
pub use slot::{
    ConnectionTimes, GeneratorAudit, Interval, Series, Slot, SlotRole, StageTally, Standstill, Tally, Turn, WorkerAudit,
};
pub use text::{capitalized, sanitize, sanitize_line, shell_word};
pub use threshold::{ParseThresholdError, Threshold};
pub use twin::{CopyPlan, CopySetting, TwinChange, TwinPlan, TwinReading};
pub use units::{
    ParseUnitError, UNKNOWN_FIGURE, format_bytes, format_count, format_duration_ns, format_figure, format_ratio,
    parse_duration_ns, parse_ratio, parse_size_bytes, typed_duration,
};
pub use variation::Variation;
pub use verdict::{Call, Doubt, DoubtId, Headline, HeadlineKind, Metric, PairVerdict, Verdict, call_confidence};
pub use waiting::{BusyPoll, Waiting, Waking, WhyWaiting};

/// Nanoseconds on the generator's monotonic clock, or a length of time in nanoseconds.
///
/// 64 bits last 584 years: there is no wrap to think of, and arithmetic on integers is exact where pacing needs it.
pub type Nanos = u64;

/// One second in [`Nanos`].
pub const SECOND_NS: Nanos = 1_000_000_000;
/// One millisecond in [`Nanos`].
pub const MILLISECOND_NS: Nanos = 1_000_000;
/// One microsecond in [`Nanos`].
pub const MICROSECOND_NS: Nanos = 1_000;
