//! Nothing stays behind: neither after SIGINT nor after SIGKILL and `faults clean`.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

const FAULTS: &str = env!("CARGO_BIN_EXE_faults");

/// A case with a control group, one with a loop device and a mount, and one in whose group tools work on a mount, and the line of the journal by which it is there.
const CASES: [(&str, &str); 3] = [
    ("cpu.quota/nginx-http-612B-c16-kept/30of100ms", "made cgroup "),
    ("http.sync-logging/nginx-http-612B-c16-kept-logged/sync-mount", "made mount "),
    ("disk.iops-cap/disk-ext4-randread-4k-direct/500ios", "made cgroup "),
];

/// `faults clean` cleans for all, so one test would take the other's leftovers away.
static CLEANING: Mutex<()> = Mutex::new(());

#[test]
fn clean_removes_what_a_killed_process_has_left() {
    let _alone = CLEANING.lock().unwrap_or_else(PoisonError::into_inner);
    for (case, line) in CASES {
        let Some(mut check) = Check::start(case) else { return };
        if !check.wait_for(line) {
            return;
        }
        check.signal(Signal::KILL);
        let status = check.child.wait().unwrap();
        assert!(!status.success());
        assert!(!left_of(check.pid).is_empty(), "{case}: there should be something to remove");
        let output = clean();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        assert_eq!(left_of(check.pid), Vec::<String>::new(), "{case}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn an_interrupted_process_removes_everything_itself() {
    for (case, line) in CASES {
        let Some(mut check) = Check::start(case) else { return };
        if !check.wait_for(line) {
            return;
        }
        check.signal(Signal::INT);
        let status = check.child.wait().unwrap();
        assert_eq!(status.code(), Some(130), "{case}");
        assert_eq!(left_of(check.pid), Vec::<String>::new(), "{case}");
    }
}

#[test]
fn clean_leaves_alone_what_a_living_process_has_made() {
    let _alone = CLEANING.lock().unwrap_or_else(PoisonError::into_inner);
    let (case, line) = CASES[0];
    let Some(mut check) = Check::start(case) else { return };
    if !check.wait_for(line) {
        return;
    }
    assert!(clean().status.success());
    assert!(!left_of(check.pid).is_empty());
    check.signal(Signal::INT);
    check.child.wait().unwrap();
}

/// Whether all is here that cases need, or what is not. Asked once: of two tests that make and remove a namespace of one name at
/// the same time, one may fail.
static HAS_ALL: LazyLock<Result<(), String>> = LazyLock::new(|| {
    if let Some(missing) = ["nginx", "setpriv"].iter().find(|program| !is_installed(program)) {
        return Err(format!("no {missing}"));
    }
    let probe = format!("duel-faults-{}-test", std::process::id());
    let made = Command::new("ip").args(["netns", "add", &probe]).output().map_err(|error| error.to_string())?;
    let _ = Command::new("ip").args(["netns", "del", &probe]).output();
    if made.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&made.stderr).into_owned()) }
});

/// A `faults check` under way. Interrupted when dropped, so that it removes its things also when a test fails.
struct Check {
    child: Child,
    pid: u32,
}

impl Check {
    /// `None`, with a word, where there may be no namespaces.
    fn start(case: &str) -> Option<Check> {
        if let Err(why) = HAS_ALL.as_ref() {
            eprintln!("passed over: it needs root, network namespaces, nginx and setpriv: {why}");
            // `./test` sees to all of these.
            let may_skip = std::env::var_os("DUEL_TESTS_SKIP_NOTHING").is_none_or(|value| value != "1");
            assert!(may_skip, "nothing may be skipped");
            return None;
        }
        let child = Command::new(FAULTS)
            .args(["check", case])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let pid = child.id();
        Some(Check { child, pid })
    }

    /// Waits until its journal has such a line; false where the machine has no such thing and it has ended.
    fn wait_for(&mut self, line: &str) -> bool {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let journal = std::fs::read_to_string(format!("/run/duel-faults/{}.journal", self.pid)).unwrap_or_default();
            if journal.lines().any(|made| made.starts_with(line)) {
                return true;
            }
            if self.child.try_wait().unwrap().is_some() {
                eprintln!("passed over: this machine has not what the case needs");
                return false;
            }
            assert!(Instant::now() < until, "nothing happens");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.pid as i32).unwrap(), signal).unwrap();
    }
}

impl Drop for Check {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            self.signal(Signal::INT);
            let _ = self.child.wait();
        }
    }
}

fn clean() -> Output {
    Command::new(FAULTS).arg("clean").output().unwrap()
}

fn is_installed(program: &str) -> bool {
    ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].iter().any(|folder| Path::new(folder).join(program).exists())
}

/// Everything with this owner's name: namespaces, groups, folders, mounts, loop devices, the journal, processes.
fn left_of(pid: u32) -> Vec<String> {
    let mark = format!("duel-faults-{pid}-");
    let mut left = Vec::new();
    let mut names = |folder: &str| {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&mark) {
                left.push(entry.path().display().to_string());
            }
        }
    };
    names("/run/netns");
    names(&std::env::temp_dir().to_string_lossy());
    for entry in std::fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten() {
        names(&entry.path().to_string_lossy());
    }
    names("/sys/fs/cgroup");
    if Path::new(&format!("/run/duel-faults/{pid}.journal")).exists() {
        left.push("journal".to_owned());
    }
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    left.extend(mounts.lines().filter(|line| line.contains(&mark)).map(str::to_owned));
    for device in std::fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let file = std::fs::read_to_string(device.path().join("loop/backing_file")).unwrap_or_default();
        left.extend(file.contains(&mark).then(|| file.trim().to_owned()));
    }
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let words = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        left.extend(words.contains(&mark).then_some(words));
    }
    left
}
