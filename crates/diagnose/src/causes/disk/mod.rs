//! Causes of file systems, files and devices. All sides are on this machine, and do the same work in turns.

mod read_ahead;

pub(super) use read_ahead::{ENTRY as READ_AHEAD, ReadAhead};

/// The work that these causes are for.
const KINDS: &[&str] = &["disk"];
