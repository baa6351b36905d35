//! Causes of file systems, files and devices. All sides are on this machine, and do the same work in turns.

causes! {
    read_ahead::ReadAhead,
}

/// The work that these causes are for.
const KINDS: &[&str] = &["disk"];
