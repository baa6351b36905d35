//! A command that starts a target anew: a shell on this machine, in a group of its own, with a time limit.

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Between two looks whether the command has ended.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long a command that took too long is given to end by itself, once it was asked to.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How much of the end of what was said is read.
const TAIL_BYTES: u64 = 2048;

/// What became of a command.
#[derive(Debug)]
pub(super) enum Ended {
    /// It ended by itself, well.
    Well,
    /// It ended by itself, and says that something went wrong.
    Badly(ExitStatus),
    /// It had not ended in time, and was ended with all that was in its group.
    Late,
    /// Who watches wants the end. The command goes on by itself: half done it might leave a service stopped.
    Left,
}

/// A command and what it says.
#[derive(Debug)]
pub(super) struct Shell {
    child: Child,
    /// A file without a name. A pipe would break when we end, or stand still when nobody reads it, and a server that the command
    /// leaves in the background writes to what the command wrote to.
    said: File,
}

impl Shell {
    /// Starts it. Its standard input is empty, and what it says goes to a file.
    pub(super) fn start(command: &str) -> std::io::Result<Self> {
        let said = tempfile::tempfile()?;
        let child = Command::new("sh")
            .args(["-c", command])
            .stdin(Stdio::null())
            .stdout(said.try_clone()?)
            .stderr(said.try_clone()?)
            .process_group(0)
            .spawn()?;
        Ok(Self { child, said })
    }

    /// Waits until it has ended, which is all that is waited for: what it has left in the background goes on.
    pub(super) fn wait(&mut self, until: Instant, stop: &AtomicBool) -> std::io::Result<Ended> {
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(if status.success() { Ended::Well } else { Ended::Badly(status) });
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(Ended::Left);
            }
            if Instant::now() >= until {
                self.end()?;
                return Ok(Ended::Late);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// The end of what was said, by the command and by what it has left in the background.
    pub(super) fn said(&self) -> String {
        let length = self.said.metadata().map_or(0, |file| file.len());
        let from = length.saturating_sub(TAIL_BYTES);
        let mut bytes = vec![0; (length - from) as usize];
        // Whoever writes goes on from where the file's cursor is, which stays where it is.
        match self.said.read_exact_at(&mut bytes, from) {
            Ok(()) => String::from_utf8_lossy(&bytes).trim().to_owned(),
            Err(_) => String::new(),
        }
    }

    fn end(&mut self) -> std::io::Result<()> {
        // It was not waited for yet, so its id is still its own.
        let group = Pid::from_child(&self.child);
        let _ = kill_process_group(group, Signal::TERM);
        // What it has started may outlive the shell, and as long as somebody is in the group its id is nobody else's.
        let until = Instant::now() + LAST_WORDS;
        while self.child.try_wait()?.is_none() || test_kill_process_group(group).is_ok() {
            if Instant::now() >= until {
                let _ = kill_process_group(group, Signal::KILL);
                self.child.wait()?;
                break;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(command: &str, limit: Duration) -> (Ended, String) {
        let mut shell = Shell::start(command).unwrap();
        let ended = shell.wait(Instant::now() + limit, &AtomicBool::new(false)).unwrap();
        (ended, shell.said())
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn what_a_command_says_is_there_when_it_fails() {
        let (how, said) = ended("echo one; echo two >&2; exit 3", LONG);
        assert!(matches!(how, Ended::Badly(status) if status.code() == Some(3)), "{how:?}");
        assert_eq!(said, "one\ntwo");
    }

    #[test]
    fn what_it_leaves_in_the_background_is_not_waited_for_and_lives() {
        let mut shell = Shell::start("sleep 60 & echo $!").unwrap();
        let how = shell.wait(Instant::now() + LONG, &AtomicBool::new(false)).unwrap();
        assert!(matches!(how, Ended::Well), "{how:?}");
        let pid = Pid::from_raw(shell.said().parse().unwrap()).unwrap();
        rustix::process::test_kill_process(pid).unwrap();
        rustix::process::kill_process(pid, Signal::KILL).unwrap();
    }

    #[test]
    fn a_command_that_hangs_is_ended_even_if_it_does_not_want_to() {
        let (how, said) = ended("trap '' TERM; echo begun; while :; do sleep 60; done", Duration::from_millis(200));
        assert!(matches!(how, Ended::Late), "{how:?}");
        assert_eq!(said, "begun");
    }

    #[test]
    fn what_a_command_that_hangs_has_started_is_ended_with_it() {
        let mut shell = Shell::start("(trap '' TERM; sleep 60) & echo $!; wait").unwrap();
        let how = shell.wait(Instant::now() + Duration::from_millis(200), &AtomicBool::new(false)).unwrap();
        assert!(matches!(how, Ended::Late), "{how:?}");
        let pid = Pid::from_raw(shell.said().parse().unwrap()).unwrap();
        // Whoever inherits it reaps it a moment later.
        let until = Instant::now() + LONG;
        while rustix::process::test_kill_process(pid).is_ok() && !is_dead(pid) {
            assert!(Instant::now() < until, "it lives on");
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Whether it only waits to be reaped.
    fn is_dead(pid: Pid) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
    }

    #[test]
    fn who_stops_the_run_leaves_the_command_to_itself() {
        let mut shell = Shell::start("sleep 60").unwrap();
        let how = shell.wait(Instant::now() + LONG, &AtomicBool::new(true)).unwrap();
        assert!(matches!(how, Ended::Left), "{how:?}");
        assert!(shell.child.try_wait().unwrap().is_none(), "it goes on");
        shell.end().unwrap();
    }
}
