//! Causes of file systems, files and devices. All sides are on this machine, and do the same work in turns.

causes! {
    read_ahead::ReadAhead,
    iops_cap::IopsCap,
    bandwidth_cap::BandwidthCap,
    slow_flush::SlowFlush,
    compression::Compression,
    block_size::BlockSize,
    metadata_misses::MetadataMisses,
    slow_spindle::SlowSpindle,
}

/// The work that these causes are for.
const KINDS: &[&str] = &["disk"];
