//! Tests of the workloads of the web, against servers whose behaviour is known: one program,
//! since each further one is compiled and linked for itself.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic, and are seen by tests only")]

mod common;
mod connections;
mod decompression;
mod failures;
mod foreign_corpus;
mod garbage;
mod phases;
mod proxies;
mod reach;
mod redirects;
mod requests;
mod responses;
mod streams;
mod surplus;
mod tls;
mod truth;
