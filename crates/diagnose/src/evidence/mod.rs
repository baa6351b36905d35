//! What several causes read of the evidence, each file by what it is about. None of it accuses or acquits by itself.

pub(crate) mod below;
pub(crate) mod bulk;
pub(crate) mod by_hand;
pub(crate) mod clock;
pub(crate) mod counted;
pub(crate) mod database;
pub(crate) mod db_settings;
pub(crate) mod device;
pub(crate) mod filter_rules;
pub(crate) mod fronts;
pub(crate) mod handshakes;
pub(crate) mod hooks;
pub(crate) mod listen_queues;
pub(crate) mod machines;
pub(crate) mod others;
pub(crate) mod paths;
pub(crate) mod rights;
pub(crate) mod scaling;
pub(crate) mod sleepers;
pub(crate) mod stall;
pub(crate) mod tls_libraries;
pub(crate) mod tls_records;
pub(crate) mod trip;
pub(crate) mod worth;
