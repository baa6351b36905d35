//! What tests need of the machine, and what becomes of them where it is not to be had.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where a program is, or says that the test is skipped for want of it.
pub(crate) fn program(name: &str, test: &str) -> Option<PathBuf> {
    let found = find_program(name);
    if found.is_none() {
        skipped(test, &format!("no {name} here"));
    }
    found
}

/// Where a program is.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let places = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
    places.iter().map(|place| Path::new(place).join(name)).find(|path| path.exists())
}

/// Says that a test is skipped for want of something that `./test` sees to; where that is set to skip nothing, it fails.
#[track_caller]
fn skipped(test: &str, why: &str) {
    println!("skipped {test}: {why}");
    assert!(
        std::env::var_os("DUEL_TESTS_SKIP_NOTHING").is_none_or(|value| value != "1"),
        "nothing may be skipped: {why}"
    );
}

/// Whether this is root; says that the test is skipped otherwise.
pub(crate) fn is_root(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skipped(test, "it takes root");
    }
    root
}

/// Runs the test of this name again, alone, in a network and below a `/run` of its own. There it does `body`.
pub(crate) fn in_own_network(test: &str, body: impl FnOnce()) {
    const INSIDE: &str = "DUEL_TEST_INSIDE";
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    if !is_root(test) || ["unshare", "ip", "mount"].iter().any(|name| program(name, test).is_none()) {
        return;
    }
    let script = "ip link set lo up && mount -t tmpfs tmpfs /run && mkdir /run/sshd && exec \"$0\" \"$@\"";
    let exe = std::env::current_exe().unwrap();
    let output = Command::new("unshare")
        .args(["--net", "--mount", "--propagation", "private", "sh", "-c", script])
        .arg(exe)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .env_remove("XDG_RUNTIME_DIR")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if told.contains("unshare failed") || told.contains("Operation not permitted") {
        return skipped(test, &format!("no namespaces here: {told}"));
    }
    assert!(output.status.success(), "{told}");
    assert!(told.contains("1 passed"), "{told}");
    told.lines().filter(|line| line.starts_with("skipped ")).for_each(|line| println!("{line}"));
}
