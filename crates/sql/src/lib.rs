//! Databases as a kind of work.

#[cfg_attr(not(test), expect(dead_code, reason = "the event loop uses it"))]
mod mysql;
pub mod schema;
#[cfg_attr(not(test), expect(dead_code, reason = "the event loop uses it"))]
mod wire;
