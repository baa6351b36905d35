//! Networks as a kind of work: `duel tcp://A tcp://B --op bulk`, against `duel net serve` at the other end.
//!
//! `protocol` says what both ends say to each other; `server` is the other end; `client` the workload, a connection for each lane.
//! `info` is what TCP tells of a connection, `arrival` when a datagram came and which were dropped, `wire` what a byte costs on the wire, `link` what is known of the interface.

mod address;
mod arrival;
mod client;
mod info;
mod kind;
mod link;
mod protocol;
mod schema;
pub mod server;
mod socket;
pub mod watch;
mod wire;

pub use address::{Address, PORT, check_netns};
pub use kind::Net;
pub use schema::{AHEAD, BLOCK, OP, RESPONSE, SCHEMA};
