//! Tests of the course of an experiment: one program,
//! since each further one is compiled and linked for itself.

#![allow(
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub,
    reason = "helpers of tests may panic, and are seen by tests only"
)]

mod common;
mod factors;
mod probes;
mod redirects;
mod turns;
mod waiting;
