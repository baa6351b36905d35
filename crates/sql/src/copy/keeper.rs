//! The shell that makes a private copy, and ends and removes it.

use duel_load::WorkloadError;
use duel_model::{format_bytes, sanitize_line};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

const SCRIPT: &str = include_str!("keeper.sh");
/// Most bytes that it may say.
const MOST_ANSWER_BYTES: u64 = 1 << 20;
/// How often is looked whether it has become too large, and whether it is to be stopped.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Removing a large copy takes seconds. Beyond this it goes on by itself.
const END: Duration = Duration::from_secs(30);

/// What it is told.
pub(super) struct Order<'a> {
    /// Where the server's programs are.
    pub(super) programs: &'a Path,
    /// What is made, and removed again.
    pub(super) folder: &'a Path,
    /// The server's own user and group.
    pub(super) owner: (u32, u32),
    pub(super) host: &'a str,
    pub(super) port: u16,
    pub(super) user: &'a str,
    pub(super) password: &'a str,
    /// Variables of libpq that say how to connect.
    pub(super) variables: &'a [(&'static str, String)],
    /// Lines of the copy's configuration.
    pub(super) settings: &'a [String],
    pub(super) most_bytes: u64,
}

/// It, until it is dropped.
#[derive(Debug)]
pub(super) struct Keeper {
    child: Child,
    /// As long as this is open, the copy lives.
    lifeline: Option<ChildStdin>,
    answers: Receiver<String>,
}

impl Keeper {
    /// Starts it.
    pub(super) fn start(order: &Order<'_>) -> Result<Self, WorkloadError> {
        if order.password.contains('\n') || order.settings.iter().any(|line| line.contains('\n') || line == ".") {
            return Err(WorkloadError("a password or a setting with a line break cannot be handed on".into()));
        }
        // A session of its own comes first, and then the server's user, whose processes could take hold of it in between: whoever has a
        // terminal can type into it, and Ctrl-C there is for duel.
        let mut command = Command::new("setsid");
        // Whether its server could gain rights by setuid programs is not asked.
        command.args(["setpriv", "--no-new-privs"]).args(as_owner(order.owner)).arg("--");
        command.args(["/bin/sh", "-c", SCRIPT, "sh"]).arg(order.programs).arg(order.folder);
        command.args([order.host, &order.port.to_string(), order.user]);
        command.env_clear().env("PATH", "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin");
        command.envs(order.variables.iter().map(|(name, value)| (name, value))).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| WorkloadError(format!("cannot start setsid: {error}")))?;
        let answers = listen(child.stdout.take());
        let lifeline = child.stdin.take();
        // From here on dropping ends it.
        let mut keeper = Self { child, lifeline, answers };
        let told: String = [order.password]
            .into_iter()
            .chain(order.settings.iter().map(String::as_str))
            .chain(["."])
            .fold(String::new(), |mut told, line| {
                told.push_str(line);
                told.push('\n');
                told
            });
        let line = keeper.lifeline.as_mut().ok_or_else(|| WorkloadError("its shell takes no orders".into()))?;
        let sent = line.write_all(told.as_bytes()).and_then(|()| line.flush());
        sent.map_err(|error| WorkloadError(format!("its shell takes no orders: {error}")))?;
        Ok(keeper)
    }

    /// Waits until the data is copied.
    pub(super) fn until_copied(&self, order: &Order<'_>, stop: &AtomicBool) -> Result<(), WorkloadError> {
        loop {
            match self.answers.recv_timeout(LOOK_EVERY) {
                Ok(line) if line == "copied" => return Ok(()),
                Ok(line) => return Err(WorkloadError(told(&line))),
                Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                    return Err(WorkloadError("interrupted".into()));
                }
                Err(RecvTimeoutError::Timeout) if bytes_in(order.folder) > order.most_bytes => {
                    return Err(WorkloadError(format!(
                        "it has grown beyond {} while it was copied; --may-copy-database takes a larger size",
                        format_bytes(order.most_bytes as f64)
                    )));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(WorkloadError("its shell has ended without a word".into()));
                }
            }
        }
    }

    /// Why it has failed, if it has.
    pub(super) fn failed(&self) -> Option<String> {
        self.answers.try_recv().ok().map(|line| told(&line))
    }
}

/// What makes root's `setpriv` the server's own user; nobody else is anybody else.
pub(super) fn as_owner((user, group): (u32, u32)) -> Vec<String> {
    let own = [format!("--reuid={user}"), format!("--regid={group}"), "--clear-groups".into(), "--inh-caps=-all".into()];
    own.into_iter().filter(|_| rustix::process::geteuid().is_root()).collect()
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        let deadline = Instant::now() + END;
        while Instant::now() < deadline {
            match self.child.try_wait() {
                Ok(None) => thread::sleep(Duration::from_millis(10)),
                Ok(Some(_)) | Err(_) => return,
            }
        }
    }
}

fn told(line: &str) -> String {
    sanitize_line(line.strip_prefix("failed ").unwrap_or(line))
}

/// Lines as they come, on a thread: a pipe cannot be read with a timeout. It ends with the pipe.
fn listen(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = channel();
    if let Some(pipe) = pipe {
        let lines = BufReader::new(pipe.take(MOST_ANSWER_BYTES)).split(b'\n');
        // Without the thread the channel is closed, which reads as an end without a word.
        let _ = thread::Builder::new().name("duel-copy".into()).spawn(move || {
            for line in lines.map_while(Result::ok) {
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    return;
                }
            }
        });
    }
    receiver
}

/// Bytes that a folder takes on its disk. Files that come and go meanwhile are left out.
fn bytes_in(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    /// What `st_blocks` counts in.
    const BLOCK_BYTES: u64 = 512;
    let (mut bytes, mut folders) = (0, vec![PathBuf::from(folder)]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            // Of a link the link itself.
            let Ok(found) = entry.metadata() else { continue };
            bytes += found.blocks() * BLOCK_BYTES;
            if found.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    bytes
}
