//! What the threads have in common that tell others.

use super::figures::Figures;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Figures that threads share.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shared(Arc<Mutex<Figures>>);

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Figures> {
        // Figures are replaced one by one: a panic elsewhere leaves none of them half-written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A copy, so that writing it out holds nobody up.
    pub(super) fn copied(&self) -> Figures {
        self.lock().clone()
    }
}

/// Lets everybody else on this machine go first, the load generator above all. Where a priority is the whole process's and
/// not a thread's, it is left alone.
pub(super) fn step_back() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, 10);
}
