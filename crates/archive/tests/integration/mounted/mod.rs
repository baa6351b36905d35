//! Tests that need a file system of their own, mounted in a namespace of their own.
#![allow(dead_code, unreachable_pub, reason = "every test takes what it needs")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Names the folder, in the process that has it mounted.
const FOLDER: &str = "DUEL_ARCHIVE_TEST_FOLDER";

/// Where the file system is mounted, in the process that has it.
pub fn folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// Runs one ignored test of this binary where `mount` (of which "$1" is the folder) has been done.
pub fn where_mounted(mount: &str, folder: &Path, test: &str) {
    let script = format!("{mount} || exit 77; shift; exec \"$@\"");
    let output = Command::new("unshare")
        .args(["-rm", "sh", "-c", &script, "sh"])
        .arg(folder)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .output();
    match output {
        Ok(output) if output.status.success() => {
            assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{test} has to exist");
            eprint!("{}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(output) if !output.stdout.starts_with(b"\nrunning") => {
            skipped(&format!("no mount here: {}", String::from_utf8_lossy(&output.stderr)));
        }
        Ok(output) => panic!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)),
        Err(error) => skipped(&format!("no unshare here: {error}")),
    }
}

/// Says that a test is skipped for want of something that `./test` sees to; where that is set to skip nothing, it fails.
#[track_caller]
pub fn skipped(why: &str) {
    eprintln!("skipped: {why}");
    assert!(std::env::var_os("DUEL_TESTS_SKIP_NOTHING").is_none_or(|value| value != "1"), "{why}");
}
