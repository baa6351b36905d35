//! Tests of twins of servers: one program,
//! since each further one is compiled and linked for itself.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic, and are seen by tests only")]

mod common;
mod nginx;
mod ordinary;
mod rights;
mod settings;
