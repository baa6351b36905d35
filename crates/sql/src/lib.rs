//! Databases as a kind of work: `duel postgres://u@/db sqlite:./x.db --op point-select`.
//!
//! The ops are those of sysbench's OLTP tests, on its tables, so that results compare. Protocols are machines without
//! sockets (`wire`); servers are driven on the event loop of `load` (`workload`), SQLite is called and blocks (`sqlite`).

mod address;
mod cache;
mod cancel;
mod client;
mod connection;
mod copy;
mod database;
mod explain;
mod facts;
pub mod failure;
mod fill;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod keys;
mod kind;
mod ledger;
mod link;
mod listener;
#[cfg(test)]
mod live;
mod machine;
mod mix;
mod mysql;
mod postgres;
mod schema;
mod script;
mod secret;
mod sqlite;
mod tables;
mod tls;
mod views;
mod wire;
mod work;
mod workload;

pub use address::{claims, public as public_address};
pub use cache::{cache_sizes, page_shares};
pub use fill::{Existing, Filled, Progress, cleanup, prepare, prepare_bulk};
pub use kind::Sql;
pub use schema::{CACHE_SIZES, PARAMS, SCHEMA, TABLE_SIZE, TABLES, counter, phase};
