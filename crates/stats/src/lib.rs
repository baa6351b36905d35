//! From slots to verdicts with doubts. Pure: no I/O, no clock, no threads; the same slots give the same verdict.
//!
//! The statistical unit is the slot, never the single request: requests of one slot share its moment, its connections
//! and its neighbours on the host, so a million of them may say no more than one number. Slots of two targets are
//! paired within their block, and all that is decided rests on the log-ratios of these pairs.
//!
//! * [`judge`] and [`judge_slots`]: slots in, [`Verdict`](duel_model::Verdict) with doubts out.
//!   A run with factors is judged level by level, and where connections are varied a scaling law is fitted.
//! * [`check`]: a run held against thresholds.
//! * [`early_stop`]: whether more blocks would tell more.
//! * [`observe`]: what each target showed, merged over its slots.
//! * [`rate_searches`], [`next_rate`]: the highest rate that keeps a promise, and which one to try next.
//! * [`next_head_to_head`]: the rate that is to tell two targets apart, while that is not known.
//! * [`Ratio`]: a counter per op with its scatter over slots, and what differs between two of them.
//! * [`warmup_ended`]: from when on a series of rates is steady.
//! * [`cache_model`]: the rate of a database with caches of other sizes, from the counters of one run.
//! * [`Estimate`]: arithmetic on numbers with intervals, for who compares differences of differences.
//!
//! The method with its sources and its simulated error rates is told in `method/verdicts.md` and `method/error-rates.md`.

mod acks;
mod bootstrap;
mod budget;
mod cache;
mod check;
mod connection_classes;
mod contest;
mod contrast;
mod courses;
mod doubts;
mod estimate;
mod experiment;
#[cfg(test)]
mod fixture;
mod headline;
mod judge;
mod lasting;
mod linear;
mod observe;
mod pairing;
mod plain;
mod ratio;
mod search;
mod side;
mod signed_rank;
mod slots;
mod slow_class;
mod starts;
mod stopping;
mod trend;
mod usl;
mod wakes;
mod warmup;
mod whole;

pub use budget::{LOAD_TIMES_PER_WARM_UP, LONGEST_SLOT_NS};
pub use cache::{CacheCase, CacheSlot, PageGroup, cache_model, miss_share};
pub use check::{CheckStanding, CheckSubject, Checked, TargetFigures, check};
pub use contest::next_head_to_head;
pub use estimate::Estimate;
pub use judge::judge;
pub use observe::observe;
pub use ratio::Ratio;
pub use search::{START_SHARE, SearchStep, attempt, attempt_ns, next_rate, promised_figure, rate_searches};
pub use slots::{judge_probe, judge_slots};
pub use starts::FEWEST_STARTS;
pub use stopping::{Held, SlotFigure, Stop, Wanted, early_stop};
pub use warmup::warmup_ended;
pub use whole::WholeGap;
