//! Causes of crypto libraries. Both sides do the same work on this machine, in turns, each in a process of its own: what
//! differs is the libraries.

mod block_overhead;
mod features;
mod same_cpu;

pub(super) use block_overhead::{BlockOverhead, ENTRY as BLOCK_OVERHEAD};
pub(super) use features::{AesUnused, NoAsm};
pub(super) use same_cpu::SameCpu;

/// The work that these causes are for.
const KINDS: &[&str] = &["crypto"];
