//! Tests of the reports: one program,
//! since each further one is compiled and linked for itself.

#![allow(clippy::unwrap_used, unreachable_pub, reason = "helpers of tests may panic, and are seen by tests only")]

mod browser;
mod experiment;
mod exports;
mod golden;
mod kinds;
mod lines;
mod page;
mod sample;
