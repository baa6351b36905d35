//! How a run is ended from outside: once ends it cleanly, twice at once.
//!
//! Ctrl-C (SIGINT), a service manager or a CI (SIGTERM), and a terminal that goes away (SIGHUP) mean the same: what was measured
//! so far is judged and kept as interrupted. SIGQUIT stays what it is everywhere, the end at once and a core where they are kept:
//! who wants no clean end needs a key for that. SIGPIPE is ignored by the standard library; who reads no further is told apart
//! where results are printed.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A flag that the first of these signals sets; the second one ends the process with exit code 130.
///
/// What was measured is in the archive by then, slot by slot.
pub(crate) fn stop_flag() -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let hangup = may_take_hangup().then_some(SIGHUP);
    for signal in [SIGINT, SIGTERM].into_iter().chain(hangup) {
        // The order matters: the conditional one is asked before the flag is set.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// Whether SIGHUP is ours to take. Under `nohup` it is ignored when the program starts, and stays so. Where the system does
/// not tell in a file what is ignored, it is left alone: a run that `nohup` was to protect is worth more than one that a closed
/// terminal ends without its last words.
fn may_take_hangup() -> bool {
    std::fs::read_to_string("/proc/self/status").ok().and_then(|status| ignores(&status, SIGHUP)) == Some(false)
}

/// Whether a process ignores a signal, by its `/proc/PID/status`; `None` where that is not told.
fn ignores(status: &str, signal: i32) -> Option<bool> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
    // Signals are numbered from 1, the bits of the mask from 0.
    let bit = u32::try_from(signal).ok()?.checked_sub(1)?;
    Some(mask.checked_shr(bit)? & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_read_from_the_mask() {
        let status = "Name:\tduel\nSigBlk:\t0000000000000003\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000002\n";
        assert_eq!((ignores(status, SIGHUP), ignores(status, SIGINT)), (Some(true), Some(false)));
        assert_eq!(ignores("SigIgn:\t0000000000001000\n", SIGHUP), Some(false));
        for strange in ["", "SigIgn:\n", "SigIgn:\tffffffffffffffffffff\n", "SigIgn:\t-1\n"] {
            assert_eq!(ignores(strange, SIGHUP), None, "{strange}");
        }
    }
}
