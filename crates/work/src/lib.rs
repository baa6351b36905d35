//! What is sent: one file or folder for each kind of workload.

pub mod http;
pub mod null;
mod requests;
