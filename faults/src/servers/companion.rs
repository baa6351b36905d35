//! Who else is at the machine of a server.

use super::{Serve, Up};
use crate::twin::Companion;
use crate::world::Launch;

/// Starts who else is at the machine. The server is up by then, since a tracer needs its processes.
pub(super) fn start<S: Serve>(up: &mut Up<S>) -> anyhow::Result<()> {
    let Some(companion) = up.twin.process().companion else { return Ok(()) };
    let cpus = up.twin.process().cpus;
    let launch = match companion {
        Companion::Spinners(count) => {
            let script = format!(
                "i=1; while [ $i -lt {count} ]; do (while :; do :; done) & i=$((i+1)); done; while :; do :; done"
            );
            Launch::new("sh").args(["-c", &script]).on(cpus).member_of(up.cgroup.as_ref())
        }
        Companion::Tracer => {
            let mut tracer = Launch::new("strace").args(["-f", "-q", "-o", "/dev/null"]);
            for pid in up.pids()? {
                tracer = tracer.args(["-p", &pid.to_string()]);
            }
            tracer.on(cpus)
        }
    };
    let log = up.folder.path().join("companion.log");
    let mut running = launch.within(&up.namespace).start(&log)?;
    // Attaching takes a moment.
    std::thread::sleep(std::time::Duration::from_millis(500));
    running.check()?;
    up.companion = Some(running);
    Ok(())
}
