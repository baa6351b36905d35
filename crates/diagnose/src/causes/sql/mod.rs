//! Causes of databases. What a server tells of its settings, its plans and its counters is held against what a client measures.

causes! {
    statement_logging::StatementLogging,
    config::Config,
    bad_plan::BadPlan,
    slow_flush::SlowFlush,
    small_buffer_pool::SmallBufferPool,
    split_reads::SplitReads,
    costly_connect::CostlyConnect,
    contention::Contention,
}

/// The work that these causes are for.
const KINDS: &[&str] = &["sql"];
