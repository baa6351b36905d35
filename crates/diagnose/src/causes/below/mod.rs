//! Causes of servers that lie in a layer below them, and are shown by work of another kind on that layer alone.

causes! {
    slow_reads,
}

/// The work that these causes are for: that of servers.
const KINDS: &[&str] = &["http", "sql"];
