//! Causes of file systems, files and devices. All sides are on this machine, and do the same work in turns.

causes! {
    read_ahead,
    iops_cap,
    bandwidth_cap,
    slow_flush,
    compression,
    block_size,
    metadata_misses,
    slow_spindle,
}

/// The work that these causes are for.
const KINDS: &[&str] = &["disk"];
