//! Tests of the diagnosis, in simulated worlds: one program,
//! since each further one is compiled and linked for itself.

#![allow(
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub,
    reason = "helpers of tests may panic, and are seen by tests only"
)]

mod address_family;
mod bad_backend;
mod below;
mod causes;
mod client_limit;
mod cold_cache;
mod databases;
mod disks;
mod handshakes_and_sizes;
mod http2_waiting;
mod http_version;
mod io_limits;
mod kinds;
mod leads;
mod lens;
mod longer;
mod machines;
mod network;
mod paths;
mod pauses;
mod rights_and_hooks;
mod servers_at_work;
mod through_files;
mod twins;
mod upstreams;
mod wanted_cpus;
mod world;
