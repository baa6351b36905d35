//! What is sent: one file or folder for each kind of workload.

#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod http;
pub mod null;
mod requests;
