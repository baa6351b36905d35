//! Tests of the statistics, on data whose truth is known: one program,
//! since each further one is compiled and linked for itself.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic, and are seen by tests only")]

mod contests;
mod error_rates;
mod experiment;
mod headlines;
mod properties;
mod queue;
mod search;
mod starts;
mod synthetic;
mod verdicts;
mod wake_ups;
