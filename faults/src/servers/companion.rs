//! Who else is at the machine of a server.

use super::{Serve, Up};
use crate::twin::Companion;
use crate::world::Launch;

/// Longest time in which a server is stopped now and then: longer than any case takes.
const LONGEST_PAUSING_MS: u32 = 3_600_000;

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
        Companion::Sleeper => Launch::new("sleep").args(["infinity"]).on(cpus),
        Companion::Pauser { stopped_ms, running_ms } => {
            // On the client's CPU: a server that is stopped needs somebody who is not.
            let seconds = |ms: u32| format!("{}.{:03}", ms / 1000, ms % 1000);
            // Whoever ends the loop, and however, another process sees it and has the server go on; and it has an end of its own.
            let script = "s=$1 r=$2 n=$3; shift 3; (while kill -0 $$; do sleep 0.1; done; kill -CONT $@) 2>/dev/null & \
                          while [ $n -gt 0 ]; do kill -STOP $@; sleep $s; kill -CONT $@; sleep $r; n=$((n-1)); done";
            let rounds = (LONGEST_PAUSING_MS / (stopped_ms + running_ms).max(1)).to_string();
            let words = ["-c", script, "sh", &seconds(stopped_ms), &seconds(running_ms), &rounds];
            let mut pauser = Launch::new("sh").args(words);
            for pid in up.pids()? {
                pauser = pauser.args([pid.to_string()]);
            }
            pauser.on(crate::arena::CLIENT_CPU)
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
