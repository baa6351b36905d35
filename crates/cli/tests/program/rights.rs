//! What a library that somebody else has chosen may do to who looks at it: nothing that its owner may not do.

use crate::common::{DUEL, Place};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const NOBODY: u32 = 65534;
const PYTHON: &str = "/usr/bin/python3";

/// Poses as a libcrypto. When it is loaded it pushes a character into the terminal, by whatever leads there, and tells what it
/// has found open.
const SOURCE: &str = r#"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>
__attribute__((constructor)) static void attack(void) {
    FILE *told = fopen("TOLD", "a");
    if (!told) return;
    fprintf(told, "loaded by %d\n", geteuid());
    int tty = open("/dev/tty", O_RDWR);
    if (tty >= 0) fprintf(told, "has a terminal\n");
    if (tty >= 0 && ioctl(tty, TIOCSTI, "x") == 0) fprintf(told, "has typed\n");
    if (tty >= 0) close(tty);
    DIR *open_files = opendir("/proc/self/fd");
    struct dirent *entry;
    while (open_files && (entry = readdir(open_files))) {
        char link[300], to[4096];
        snprintf(link, sizeof link, "/proc/self/fd/%s", entry->d_name);
        ssize_t length = readlink(link, to, sizeof to - 1);
        if (length > 0) { to[length] = 0; fprintf(told, "open: %s\n", to); }
    }
    fclose(told);
}
"#;

/// A folder with such a library in it.
struct Attack {
    place: Place,
    library: PathBuf,
}

impl Attack {
    /// `None`, and said, where it cannot be made.
    fn new() -> Option<Self> {
        let place = Place::new();
        let told = place.file("told", "");
        fs::set_permissions(&told, fs::Permissions::from_mode(0o666)).unwrap();
        place.file("secret", "a secret");
        let source = place.file("attack.c", SOURCE.replace("TOLD", &told));
        let library = place.path("libcrypto.so.3");
        let made = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status();
        if !made.is_ok_and(|made| made.success()) || !Path::new(PYTHON).exists() {
            skipped("there is no C compiler, or no python3");
            return None;
        }
        Some(Self { place, library })
    }

    /// What it tells of who looks at `subject` with the lens, on a terminal of its own and with a secret open.
    fn told_of_lens(&self, subject: &str) -> String {
        fs::write(self.place.path("told"), "").unwrap();
        let spawn = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
        let script = format!("exec 7<{} && : </dev/tty && {DUEL} lens {subject}", self.place.path("secret").display());
        let mut command = Command::new(PYTHON);
        command.args(["-c", spawn, "/bin/sh", "-c", &script]).current_dir(self.place.root());
        let output = command.stdin(Stdio::null()).output().unwrap();
        // What has no EVP functions is no libcrypto. By then it has been loaded.
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains("none of the EVP functions"), "{said}");
        fs::read_to_string(self.place.path("told")).unwrap()
    }
}

fn skipped(why: &str) {
    eprintln!("skipped: {why}");
    assert!(std::env::var_os("DUEL_TESTS_SKIP_NOTHING").is_none_or(|value| value != "1"), "{why}");
}

/// A process that maps the library; it ends when dropped.
struct Server(Child);

impl Server {
    fn start(attack: &Attack, uid: u32) -> Self {
        let script = format!("import ctypes, time; ctypes.CDLL('{}'); time.sleep(300)", attack.library.display());
        let mut command = Command::new(PYTHON);
        command.args(["-c", &script]).current_dir("/").stdin(Stdio::null()).uid(uid).gid(uid);
        let server = Self(command.spawn().unwrap());
        crate::common::wait_until("it has loaded the library", || {
            fs::read_to_string(attack.place.path("told")).unwrap().contains("open: ")
        });
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The library was loaded, as this user, and has got hold of nothing.
#[track_caller]
fn assert_harmless(told: &str, uid: u32) {
    let loaded: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix("loaded by ")).collect();
    assert!(!loaded.is_empty() && loaded.iter().all(|by| *by == uid.to_string()), "{told}");
    assert!(!told.contains("terminal") && !told.contains("typed"), "{told}");
    assert!(!told.contains("/dev/pts") && !told.contains("/dev/tty"), "{told}");
    assert!(!told.contains("secret"), "it has found open what duel was started with: {told}");
}

#[test]
fn a_library_has_neither_the_terminal_nor_the_files_of_who_looks_at_it() {
    let Some(attack) = Attack::new() else { return };
    let own = rustix::process::geteuid().as_raw();
    assert_harmless(&attack.told_of_lens(attack.library.to_str().unwrap()), own);
}

#[test]
fn a_library_of_another_user_s_server_has_no_more_than_that_user() {
    if !rustix::process::geteuid().is_root() {
        skipped("it takes root to look at another user's server");
        return;
    }
    let Some(attack) = Attack::new() else { return };
    let server = Server::start(&attack, NOBODY);
    assert_harmless(&attack.told_of_lens(&server.0.id().to_string()), NOBODY);
}

#[test]
fn options_may_name_files_that_duel_was_started_with() {
    // They are kept from its children, not from itself.
    let place = Place::new();
    let printed = place.duel(["plan", "run", "http://127.0.0.1:9/", "-n", "40", "-c", "2"]).ok().stdout;
    let plan = place.file("plan.toml", &printed);
    let script = format!("exec 7<{plan} && exec {DUEL} plan run --plan /dev/fd/7");
    let output = Command::new("/bin/sh").args(["-c", &script]).current_dir(place.root()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), printed, "{}", String::from_utf8_lossy(&output.stderr));
}
