//! A shell that is a child of ours, or hangs on one: ssh.

use super::Shell;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Starts a program, a shell or what leads to one, and takes its standard streams.
///
/// It has a session of its own, away from our terminal: it reads what others have written, and starts programs to read more.
/// Where there is no `setsid`, as on macOS, it has a process group of its own at least. In neither does Ctrl-C come to it: that
/// is for duel, which ends its shells in its own time.
///
/// # Errors
///
/// What the system said.
pub(super) fn start(program: &str, arguments: &[OsString]) -> io::Result<Shell> {
    let piped = |command: &mut Command| {
        // ssh opens no window to ask for a password, for hosts on the way neither.
        command.args(arguments).current_dir("/").env("SSH_ASKPASS_REQUIRE", "never");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    };
    // Of who leads no group it makes the leader of all three, and keeps its number.
    let mut child = match piped(Command::new("setsid").arg(program)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => piped(Command::new(program).process_group(0)),
        started => started,
    }?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let keeper = Box::new(Keeper(child));
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(io::Error::other("it has no standard streams"));
    };
    Ok(Shell {
        stdin: File::from(OwnedFd::from(stdin)),
        stdout: File::from(OwnedFd::from(stdout)),
        stderr: File::from(OwnedFd::from(stderr)),
        keeper,
    })
}

/// Ends and reaps the shell and all that it started. Its input has ended by then, so it ends by itself, unless something
/// in it hangs.
struct Keeper(Child);

impl Drop for Keeper {
    fn drop(&mut self) {
        const PATIENCE: Duration = Duration::from_millis(500);
        let deadline = Instant::now() + PATIENCE;
        if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            while runs(pid) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether a child has not ended yet. It is left unreaped, so that its number stays its own, and its group's, until the group
/// is killed.
#[cfg(not(target_os = "openbsd"))]
fn runs(pid: Pid) -> bool {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::Pid(pid), look), Ok(None))
}

/// rustix has no `waitid` here, and to ask by any other call would reap it. So it gets all the time that there is.
#[cfg(target_os = "openbsd")]
fn runs(_: Pid) -> bool {
    true
}
