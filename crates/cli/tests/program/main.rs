//! Tests of the program as its users have it: one file for each subject. They are one program, since each of them would link all
//! of duel.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

mod bad_input;
mod check;
mod connections;
#[cfg(target_os = "linux")]
mod copies;
mod crashes;
mod crypto;
#[cfg(target_os = "linux")]
mod databases;
#[cfg(target_os = "linux")]
mod descriptors;
#[cfg(target_os = "linux")]
mod disk;
mod factors;
mod golden;
mod headlines;
mod hey;
mod hey_beside_hey;
#[cfg(target_os = "linux")]
mod hostile;
mod hosts;
mod http2;
mod interrupt;
mod json;
mod kept;
#[cfg(target_os = "linux")]
mod layers;
mod net;
#[cfg(target_os = "linux")]
mod output;
mod plans;
mod proxies;
mod redirects;
mod report;
mod requests;
mod restarts;
#[cfg(target_os = "linux")]
mod rights;
mod secrets;
mod servers;
mod shapes;
mod standstill;
mod telemetry;
mod trust;
mod twins;
mod verdicts;
mod why;
