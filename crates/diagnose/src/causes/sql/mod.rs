//! Causes of databases. What a server tells of its settings, its plans and its counters is held against what a client measures.

causes! {
    statement_logging,
    config,
    bad_plan,
    slow_flush,
    small_buffer_pool,
    bloat,
    small_log,
    split_reads,
    costly_connect,
    contention,
}

/// The work that these causes are for.
const KINDS: &[&str] = &["sql"];
