//! Tests of the archive: one program,
//! since each further one is compiled and linked for itself.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic, and are seen by tests only")]

mod mounted;
mod mounts;
mod places;
mod processes;
mod runs;
mod sample;
