//! Tests of looking at hosts: one program,
//! since each further one is compiled and linked for itself.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic, and are seen by tests only")]

mod common;
mod hostile;
mod lens;
mod local;
mod redfish;
mod servers;
mod ssh;
mod trouble;
