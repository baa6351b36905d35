//! Causes of crypto libraries. Both sides do the same work on this machine, in turns, each in a process of its own: what
//! differs is the libraries.

mod features;

causes! {
    aes_unused,
    no_asm,
    block_overhead,
    slower,
}

/// The work that these causes are for.
const KINDS: &[&str] = &["crypto"];
