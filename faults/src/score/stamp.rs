//! When, what and where a result was measured.

use std::process::Command;

pub(super) fn date() -> String {
    said("date", &["-u", "+%Y-%m-%d %H:%M UTC"])
}

pub(super) fn commit() -> String {
    let id = said("git", &["rev-parse", "--short", "HEAD"]);
    let changed = said("git", &["status", "--porcelain", "--untracked-files=no"]);
    if changed.is_empty() { id } else { format!("{id} with changes") }
}

/// What it was measured on: figures of other machines may differ.
pub(super) fn machine() -> String {
    let cpus = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    format!("{cpus} CPUs, Linux {}", said("uname", &["-r"]))
}

fn said(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    output
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_else(|_| "unknown".to_owned())
}
