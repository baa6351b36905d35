//! Databases as a kind of work.

#[allow(dead_code, reason = "the event loop uses it")]
mod mysql;
pub mod schema;
#[allow(dead_code, reason = "the event loop uses it")]
mod wire;
