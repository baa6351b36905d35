//! Tests of the reference server: one program,
//! since each further one is compiled and linked for itself.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic, and are seen by tests only")]

mod answers;
mod broken;
mod common;
mod connections;
mod hostile;
mod times;
mod tls;
