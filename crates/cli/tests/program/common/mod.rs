//! What the tests of the real binary share: a place of its own for each test, servers as private children, and the
//! `duel` under test with a time limit.
//!
//! Nothing outlives its test: each child is ended by its own pid when its owner is dropped, which a panic does too, and
//! dies with the test process where `setpriv` can arrange that.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and so do its helpers")]

#[cfg(target_os = "linux")]
mod mariadb;
#[cfg(target_os = "linux")]
mod postgres;
mod recorder;
mod servers;

#[cfg(target_os = "linux")]
pub(crate) use mariadb::MariaDb;
#[cfg(target_os = "linux")]
pub(crate) use postgres::Postgres;
pub(crate) use recorder::{Asked, Recorder};
pub(crate) use servers::{Certificate, Ruler, Server, apache, apache_with, haproxy, nginx, nginx_with};

use serde_json::Value;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The program under test.
pub(crate) const DUEL: &str = env!("CARGO_BIN_EXE_duel");
/// Nothing here takes longer, even where the machine is busy with other things.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A folder of the test's own, with its home and its archive.
#[derive(Debug)]
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("duel-cli-").tempdir().unwrap();
        // Apache gives up root, and has to find its files all the same.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open).unwrap();
        Self(folder)
    }

    pub(crate) fn root(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// Writes a file and answers its path as text, as arguments want it.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub(crate) fn archive(&self) -> PathBuf {
        self.path("runs.sqlite")
    }

    /// `duel` as its own user would start it: nothing of the caller's environment that changes what it does.
    pub(crate) fn command(&self) -> Command {
        self.command_within(&[])
    }

    /// As [`Self::command`], started by another program such as `unshare`.
    pub(crate) fn command_within(&self, wrapper: &[&str]) -> Command {
        let mut words = wrapper.iter().copied().chain([DUEL]);
        let mut command = Command::new(words.next().unwrap());
        command
            .args(words)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.root())
            .env("DUEL_ARCHIVE", self.archive())
            .env("LC_ALL", "C.UTF-8")
            .current_dir(self.root());
        command
    }

    /// Runs `duel` to its end.
    pub(crate) fn duel<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Done {
        let mut command = self.command();
        command.args(args);
        Running::start(command).end()
    }

    /// Runs `duel` with `--json -q` besides, which has to succeed, and answers its one document.
    pub(crate) fn json<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Value {
        self.json_ended(args, 0)
    }

    /// The document of a comparison that has to come to a call of each rate. A machine that gives us hardly any time makes
    /// 'unknown' the right answer, so it is asked anew, and again.
    pub(crate) fn json_decided<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S> + Clone) -> Value {
        const TRIES: u32 = 3;
        let is_open = |pair: &Value| pair["metric"] == "rate" && pair["call"] == "unknown";
        let mut document = self.json(args.clone());
        for _ in 1..TRIES {
            if !document["pairs"].as_array().unwrap().iter().any(is_open) {
                break;
            }
            document = self.json(args.clone());
        }
        document
    }

    /// As [`Self::json`], where it has to end with this exit code.
    pub(crate) fn json_ended<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>, code: i32) -> Value {
        let mut command = self.command();
        command.args(args).args(["--json", "-q"]);
        Running::start(command).end().ended(code).json()
    }
}

/// A `duel` that is running.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    shown: String,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let shown = format!("{command:?}");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{shown}: {error}"));
        // Both pipes are emptied all the time, or a full one would stop the child.
        let stdout = Some(reader(child.stdout.take().unwrap()));
        let stderr = Some(reader(child.stderr.take().unwrap()));
        Self { child, shown, stdout, stderr }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal, by its own pid.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub(crate) fn is_over(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Done {
        let until = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > until {
                self.kill();
                let said = self.stderr();
                panic!("{} had not ended after {PATIENCE:?}: {said}", self.shown);
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let stdout = self.stdout.take().unwrap().join().unwrap();
        Done { shown: self.shown.clone(), code: status.code(), stdout, stderr: self.stderr() }
    }

    fn stderr(&mut self) -> String {
        self.stderr.take().map(|reader| reader.join().unwrap()).unwrap_or_default()
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

fn reader(mut stream: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        String::from_utf8(bytes).unwrap_or_else(|error| format!("not UTF-8: {error}"))
    })
}

/// How a `duel` ended and what it said.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) shown: String,
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        self.ended(0)
    }

    #[track_caller]
    pub(crate) fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}\n{}", self.shown, self.stderr, self.stdout);
        self
    }

    /// The one document that was printed.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }

    /// It refused: nothing on standard output, and one clear sentence on standard error, which is returned.
    #[track_caller]
    pub(crate) fn refused(self, code: i32) -> String {
        let done = self.ended(code);
        assert_eq!(done.stdout, "", "{}: an error is no result", done.shown);
        done.sentence()
    }

    /// The one sentence on standard error, without who says it.
    #[track_caller]
    pub(crate) fn sentence(&self) -> String {
        let text = self.stderr.strip_suffix('\n').unwrap_or_else(|| panic!("{}: {:?}", self.shown, self.stderr));
        assert!(!text.contains('\n'), "{}: one line: {}", self.shown, self.stderr);
        let sentence = text.strip_prefix("duel: ").unwrap_or_else(|| panic!("{}: {text}", self.shown));
        assert!(!sentence.chars().any(char::is_control), "{sentence:?}");
        for bug in ["Error:", "Os {", "panicked", "Some(", "None", "unwrap", "os error"] {
            assert!(!sentence.contains(bug), "that is for programmers: {sentence}");
        }
        assert!(sentence.chars().count() < 700, "that is no sentence: {sentence}");
        sentence.to_owned()
    }
}

/// Only one measurement at a time, over all test binaries of all checkouts: the tests of one binary run side by side,
/// and on two CPUs two loads would measure each other. The kernel gives the lock back whatever becomes of its holder.
///
/// Against the rest of the machine, what this thread starts from here on goes first, where that is allowed: servers and
/// `duel` inherit its priority.
pub(crate) fn measuring() -> File {
    let user = rustix::process::geteuid().as_raw();
    let lock = File::create(std::env::temp_dir().join(format!("duel-measuring-{user}.lock"))).unwrap();
    lock.lock().unwrap();
    let _ = rustix::process::setpriority_process(None, -15);
    lock
}

/// A port that nobody listens on, below those that the kernel gives to connections: one of these could be taken again
/// before its server has bound it.
pub(crate) fn free_port() -> u16 {
    const FIRST: u16 = 10_000;
    const COUNT: u16 = 20_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Test binaries that run side by side begin at different places.
    let begin = (std::process::id() % 199) as u16 * 100;
    for _ in 0..COUNT {
        let port = FIRST + (begin + NEXT.fetch_add(1, Ordering::Relaxed) % COUNT) % COUNT;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("there is no free port");
}

/// Says that a test is skipped for want of something that `./test` sees to; where that is set to skip nothing, it fails.
#[track_caller]
pub(crate) fn skipped(why: &str) {
    println!("skipped: {why}");
    assert!(std::env::var_os("DUEL_TESTS_SKIP_NOTHING").is_none_or(|value| value != "1"), "{why}");
}

/// Waits until something holds.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Holds text against a file under `tests/golden`; with UPDATE=1 writes it anew.
#[track_caller]
pub(crate) fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{name} is not as expected; if the new text is better, run with UPDATE=1\n{text}");
}
