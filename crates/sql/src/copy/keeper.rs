//! The shell that makes a private copy, and ends and removes it.

use super::room::{RESERVE_BYTES, free_bytes};
use duel_load::WorkloadError;
use duel_model::{format_bytes, sanitize_line};
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// What is the same for all systems.
const SCRIPT: &str = include_str!("keeper.sh");
/// What is around it where only root may make its folder.
const AROUND: &str = include_str!("around.sh");
/// Most bytes that it may say.
const MOST_ANSWER_BYTES: u64 = 1 << 20;
/// A server's log is cut off here: one that logs each statement would fill the disk.
const MOST_LOG_BYTES: u64 = 64 << 20;
/// How often is looked whether it has become too large, and whether it is to be stopped.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Removing a large copy takes seconds. Beyond this it goes on by itself.
const END: Duration = Duration::from_secs(30);

/// What it is told.
pub(super) struct Order<'a> {
    /// What is made, and removed again.
    pub(super) folder: &'a Path,
    /// The server's own user and group.
    pub(super) owner: (u32, u32),
    /// CPUs that its server may run on, as the kernel lists them. On those of duel it would be held up by duel, or be quicker than its server.
    pub(super) cpus: Option<&'a str>,
    /// How its system's copies are made.
    pub(super) making: &'a Making,
    pub(super) password: &'a str,
    /// Lines of the copy's configuration.
    pub(super) settings: &'a [String],
    pub(super) most_bytes: u64,
}

/// What a system's own programs are called with.
#[derive(Debug)]
pub(super) struct Making {
    /// Functions of the shell that [`SCRIPT`] calls.
    pub(super) functions: &'static str,
    /// What these are called with. Any user can list it.
    pub(super) words: Vec<OsString>,
    /// Variables that say how to connect.
    pub(super) variables: Vec<(&'static str, String)>,
}

/// It, until it is dropped.
#[derive(Debug)]
pub(super) struct Keeper {
    child: Child,
    /// As long as this is open, and there is room for it, the copy lives.
    wanted: Option<Sender<()>>,
    answers: Receiver<String>,
    /// Why it was ended before that.
    ended: Arc<OnceLock<String>>,
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
        if let Some(cpus) = order.cpus {
            may_run_on(cpus)?;
            command.args(["taskset", "-c", cpus]);
        }
        // Whether its server could gain rights by setuid programs is not asked.
        if is_for_root_alone(order.folder.parent().unwrap_or(order.folder)) {
            let owner = format!("{}:{}", order.owner.0, order.owner.1);
            command.args(["/bin/sh", "-c", AROUND, "sh"]).arg(order.folder).arg(owner);
        }
        command.args(["setpriv", "--no-new-privs"]).args(as_owner(order.owner)).arg("--");
        let script = format!("{}\n{SCRIPT}", order.making.functions);
        command.args(["/bin/sh", "-c", &script, "sh"]).arg(order.folder).args(&order.making.words);
        command.env_clear().env("PATH", "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin");
        command.envs(order.making.variables.iter().map(|(name, value)| (name, value))).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| WorkloadError(format!("cannot start setsid: {error}")))?;
        let answers = listen(child.stdout.take());
        let told: String = [order.password]
            .into_iter()
            .chain(order.settings.iter().map(String::as_str))
            .chain(["."])
            .fold(String::new(), |mut told, line| {
                told.push_str(line);
                told.push('\n');
                told
            });
        let mut line = child.stdin.take();
        let sent = line.as_mut().map(|line| line.write_all(told.as_bytes()).and_then(|()| line.flush()));
        let (wanted, ended) = line.map(|line| watch(line, order.folder.to_owned(), RESERVE_BYTES)).unzip();
        // From here on dropping ends it.
        let keeper = Self { child, wanted, answers, ended: ended.unwrap_or_default() };
        match sent {
            Some(Ok(())) => Ok(keeper),
            Some(Err(error)) => Err(WorkloadError(format!("its shell takes no orders: {error}"))),
            None => Err(WorkloadError("its shell takes no orders".into())),
        }
    }

    /// Waits until the data is copied, and tells how many bytes the copy has by now.
    pub(super) fn until_copied(
        &self,
        order: &Order<'_>,
        stop: &AtomicBool,
        tells: &dyn Fn(u64),
    ) -> Result<(), WorkloadError> {
        loop {
            match self.answers.recv_timeout(LOOK_EVERY) {
                Ok(line) if line == "copied" => return Ok(()),
                Ok(line) => return Err(WorkloadError(self.why(&line))),
                Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                    return Err(WorkloadError("interrupted".into()));
                }
                Err(RecvTimeoutError::Timeout) => {
                    let bytes = bytes_in(order.folder);
                    if bytes > order.most_bytes {
                        return Err(WorkloadError(format!(
                            "it has grown beyond {} while it was copied; --may-copy-database takes a larger size",
                            format_bytes(order.most_bytes as f64)
                        )));
                    }
                    tells(bytes);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(WorkloadError(self.why("its shell has ended without a word")));
                }
            }
        }
    }

    /// Why it has failed, if it has.
    pub(super) fn failed(&self) -> Option<String> {
        let line = self.answers.try_recv().ok();
        line.map(|line| self.why(&line)).or_else(|| self.ended().map(str::to_owned))
    }

    /// Why it was ended although it is still wanted, if it was.
    pub(super) fn ended(&self) -> Option<&str> {
        self.ended.get().map(String::as_str)
    }

    /// What its shell said, or what made it say so.
    fn why(&self, line: &str) -> String {
        self.ended().map_or_else(|| sanitize_line(line.strip_prefix("failed ").unwrap_or(line)), str::to_owned)
    }
}

/// Holds the line by which a copy in this folder lives, on a thread: until it is not wanted any more, or less than a reserve is left in the
/// file system around it. Has the log cut off where it becomes long. Answers with what wants it, and with why it ends unasked.
fn watch(mut line: ChildStdin, folder: PathBuf, reserve_bytes: u64) -> (Sender<()>, Arc<OnceLock<String>>) {
    let (wanted, wants) = channel();
    let ended: Arc<OnceLock<String>> = Arc::default();
    let tells = Arc::clone(&ended);
    // Without the thread the line is closed, and the copy ends.
    let _ = thread::Builder::new().name("duel-copy-room".into()).spawn(move || {
        let around = folder.parent().unwrap_or(&folder);
        while wants.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
            if let Some(left) = free_bytes(around).ok().filter(|left| *left < reserve_bytes) {
                let [left, reserve] = [left, reserve_bytes].map(|bytes| format_bytes(bytes as f64));
                let _ = tells
                    .set(format!("the copy was ended: {left} were left beside it, and {reserve} are for its server"));
                return;
            }
            // Its shell does that: it has no more rights than whoever may put another file there.
            if fs::symlink_metadata(folder.join("log")).is_ok_and(|log| log.len() > MOST_LOG_BYTES) {
                let _ = line.write_all(b"\n");
            }
        }
    });
    (wanted, ended)
}

/// What makes root's `setpriv` the server's own user; nobody else is anybody else.
pub(super) fn as_owner((user, group): (u32, u32)) -> Vec<String> {
    let own =
        [format!("--reuid={user}"), format!("--regid={group}"), "--clear-groups".into(), "--inh-caps=-all".into()];
    own.into_iter().filter(|_| rustix::process::geteuid().is_root()).collect()
}

/// Whether we are root, and a folder, without links on the way to it, is one in which nobody else can make or rename anything, nor put
/// another one in its place: only there root can make a folder and give it away. `/var/lib`, where MariaDB's data folder mostly lies, is one.
fn is_for_root_alone(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    const STICKY: u32 = 0o1000;
    const OTHERS_WRITE: u32 = 0o022;
    let is_roots = |path: &Path, may_be_sticky: bool| {
        fs::symlink_metadata(path).is_ok_and(|found| {
            let is_kept = found.mode() & OTHERS_WRITE == 0 || may_be_sticky && found.mode() & STICKY != 0;
            found.is_dir() && found.uid() == 0 && is_kept
        })
    };
    let mut around = folder.ancestors().skip(1);
    rustix::process::geteuid().is_root()
        && folder.is_absolute()
        && is_roots(folder, false)
        && around.all(|path| is_roots(path, true))
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.wanted.take());
        let deadline = Instant::now() + END;
        while Instant::now() < deadline {
            match self.child.try_wait() {
                Ok(None) => thread::sleep(Duration::from_millis(10)),
                Ok(Some(_)) | Err(_) => return,
            }
        }
    }
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

/// Whether a process of ours may run on these CPUs, on all of them and no others: those of the server may be in a part of the machine that
/// is closed to us, where the kernel refuses, or leaves some out without a word.
fn may_run_on(cpus: &str) -> Result<(), WorkloadError> {
    let status = Command::new("taskset").args(["-c", cpus, "cat", "/proc/self/status"]).stderr(Stdio::null()).output();
    match status.map(|output| duel_process::Status::parse(&output.stdout).cpus) {
        Ok(Some(ours)) if ours == cpus => Ok(()),
        _ => Err(WorkloadError(format!(
            "a copy cannot run on the CPUs that its server may use ({}): taskset does not let it",
            sanitize_line(cpus)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn root_gives_a_folder_away_only_where_nobody_else_could_put_another_one_in_its_place() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: it takes root");
            return;
        }
        // In a folder that others may write to, and rename nothing of ours.
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        let has = |mode: u32| fs::set_permissions(folder.path().join("a"), PermissionsExt::from_mode(mode)).unwrap();
        has(0o755);
        assert!(is_for_root_alone(&inner));
        has(0o775);
        assert!(!is_for_root_alone(&inner), "its group may rename it");
        has(0o755);
        std::os::unix::fs::symlink(&inner, folder.path().join("link")).unwrap();
        assert!(!is_for_root_alone(&folder.path().join("link")));
        std::os::unix::fs::chown(&inner, Some(65534), None).unwrap();
        assert!(!is_for_root_alone(&inner), "somebody else's");
        assert!(!is_for_root_alone(Path::new("/tmp")), "anybody may make a folder there");
    }

    /// A shell that lives by its input, as the one of a copy does.
    fn shell() -> (Child, ChildStdin) {
        let mut command = Command::new("sh");
        command.args(["-c", "read -r _; echo over"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let line = child.stdin.take().unwrap();
        (child, line)
    }

    #[test]
    fn a_copy_ends_once_less_than_a_reserve_is_left_beside_it_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let (child, line) = shell();
        let (_wanted, ended) = watch(line, folder.path().join("copy"), u64::MAX);
        assert_eq!(child.wait_with_output().unwrap().stdout, b"over\n");
        assert!(ended.get().unwrap().starts_with("the copy was ended: "), "{ended:?}");
    }

    /// A copy in this folder whose server does this.
    fn keeper_of(copy: &Path, server: &str) -> Keeper {
        keeper_on(copy, server, None)
    }

    /// The same where the server may run on these CPUs.
    fn keeper_on(copy: &Path, server: &str, cpus: Option<&str>) -> Keeper {
        let programs = copy.parent().unwrap().join("bin");
        fs::create_dir(&programs).unwrap();
        for (name, script) in [
            ("pg_basebackup", "for word; do case $word in --pgdata=*) mkdir \"${word#*=}\";; esac; done"),
            ("postgres", server),
        ] {
            fs::write(programs.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(programs.join(name), PermissionsExt::from_mode(0o755)).unwrap();
        }
        let words = [programs.as_os_str(), OsStr::new(""), OsStr::new("1"), OsStr::new("")];
        let making = Making {
            functions: include_str!("postgres/keeper.sh"),
            words: words.map(OsStr::to_owned).to_vec(),
            variables: Vec::new(),
        };
        let order = Order {
            folder: copy,
            owner: (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()),
            cpus,
            making: &making,
            password: "",
            settings: &[],
            most_bytes: u64::MAX,
        };
        let keeper = Keeper::start(&order).unwrap();
        keeper.until_copied(&order, &AtomicBool::new(false), &|_| {}).unwrap();
        keeper
    }

    fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
        let deadline = Instant::now() + 2 * END;
        while !is_so() {
            assert!(Instant::now() < deadline, "{what}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_copy_runs_on_the_cpus_of_its_server() {
        let cpus_in = |status: &[u8]| duel_process::Status::parse(status).cpus.unwrap();
        let ours = cpus_in(&fs::read("/proc/self/status").unwrap());
        let one = ours.split([',', '-']).next().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy");
        let server = "cp /proc/self/status \"${2%/data}/new\"; mv \"${2%/data}/new\" \"${2%/data}/status\"; \
                      exec env --default-signal=QUIT sleep 60";
        for cpus in [one, &ours] {
            let keeper = keeper_on(&copy, server, Some(cpus));
            wait_until("its server runs", || copy.join("status").exists());
            assert_eq!(cpus_in(&fs::read(copy.join("status")).unwrap()), cpus);
            drop(keeper);
            // Whoever drops it does not wait for the end of that.
            wait_until("the copy is gone", || !copy.exists());
            fs::remove_dir_all(folder.path().join("bin")).unwrap();
        }
    }

    #[test]
    fn cpus_that_are_closed_to_us_are_said() {
        let refused = may_run_on("4093").unwrap_err();
        assert!(refused.0.contains("CPUs that its server may use (4093)"), "{}", refused.0);
    }

    #[test]
    fn a_log_is_cut_off_while_its_server_writes_and_of_a_copy_that_is_not_wanted_nothing_stays() {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy");
        let longer = MOST_LOG_BYTES + 1;
        // What a shell starts beside itself ignores QUIT until it says otherwise, as PostgreSQL does.
        let server = format!("head -c {longer} /dev/zero >&2; exec env --default-signal=QUIT sleep 60");
        let keeper = keeper_of(&copy, &server);
        // Its server writes so much once only.
        let bytes = || fs::metadata(copy.join("log")).unwrap().len();
        let mut most = 0;
        wait_until("the log was cut off", || {
            most = most.max(bytes());
            most >= longer && bytes() == 0
        });
        assert_eq!(keeper.ended(), None);
        let child = keeper.child.id().to_string();
        drop(keeper);
        assert!(!copy.exists());
        assert_eq!(parent(&child), None, "it has ended, and not been given up after some time");
    }

    /// The number of a process's parent, and whether it is still there at all, other than as one that nobody has asked about.
    fn parent(process: &str) -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        (fields.next()? != "Z").then_some(fields.next()?.parse().ok()?)
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_copy_whose_keeper_was_killed_lives_and_is_ended_and_removed_once_it_is_not_wanted() {
        use rustix::process::{Pid, Signal, kill_process};
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy");
        let keeper = keeper_of(&copy, "echo $$ >\"${2%/data}/server\"; exec env --default-signal=QUIT sleep 600");
        let mut server = String::new();
        wait_until("its server", || {
            server = fs::read_to_string(copy.join("server")).unwrap_or_default().trim().to_owned();
            !server.is_empty()
        });
        // Its server's parent is the shell that has made the copy, and that one's parent is the keeper.
        let first = parent(&server).and_then(|worker| parent(&worker.to_string())).unwrap();
        assert!(first == keeper.child.id() || parent(&first.to_string()) == Some(keeper.child.id()));
        kill_process(Pid::from_raw(first as i32).unwrap(), Signal::KILL).unwrap();
        wait_until("the keeper is gone", || parent(&first.to_string()).is_none());
        assert!(parent(&server).is_some() && copy.exists(), "the copy is still wanted");
        drop(keeper);
        wait_until("the copy is gone", || parent(&server).is_none() && !copy.exists());
    }
}
