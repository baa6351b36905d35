//! Tests of the load engine: one program,
//! since each further one is compiled and linked for itself.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic, and are seen by tests only")]

mod accounting;
mod common;
#[cfg(target_os = "linux")]
mod run_up;
mod shapes;
mod shared_connections;
mod standstill;
mod waiting;
