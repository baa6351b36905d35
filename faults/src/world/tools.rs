//! Other programs, run to their end.

use anyhow::{Context, bail};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// Runs a program and returns what it wrote to standard output.
pub(crate) fn run(program: &str, args: &[&str]) -> anyhow::Result<String> {
    let output =
        mortal(program).args(args).stdin(Stdio::null()).output().with_context(|| format!("could not run {program}"))?;
    text(program, args, output)
}

/// As [`run`], with text on its standard input.
pub(crate) fn run_with_input(program: &str, args: &[&str], input: &str) -> anyhow::Result<String> {
    let mut child = mortal(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("could not run {program}"))?;
    // Programs that are given input here read all of it before they write.
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    text(program, args, child.wait_with_output()?)
}

/// As [`run`], where only success matters.
pub(crate) fn succeed(program: &str, args: &[&str]) -> anyhow::Result<()> {
    run(program, args).map(drop)
}

/// A command that the kernel kills together with this process: a `mount` that ends its work after `faults clean` has looked
/// would leave something behind.
fn mortal(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", program]);
    command
}

/// Where a program of this name would be that was built together with this one.
pub(crate) fn beside(program: &str) -> anyhow::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name(program))
}

/// Whether a program can be found.
pub(crate) fn is_installed(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn text(program: &str, args: &[&str], output: Output) -> anyhow::Result<String> {
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{program} {}` failed ({}): {}", args.join(" "), output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
