//! `duel lens`: one libcrypto measured alone, with and without the CPU's features.

use crate::outcome::Outcome;
use crate::output::OutputFlags;
use crate::terminal;
use anyhow::Context;
use clap::Args;
use duel_lab::Lab;
use duel_lens::{ChildCommand, LensOrder};
use std::ffi::OsString;
use std::path::PathBuf;

/// Options of the lens.
#[derive(Args, Clone)]
pub(crate) struct LensFlags {
    /// A libcrypto, or the id of a process that maps one
    #[arg(value_name = "PATH|PID")]
    pub(crate) subject: OsString,
}

/// Arguments of the lens's child, parsed by itself.
#[derive(Args, Clone)]
pub(crate) struct ChildFlags {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<OsString>,
}

/// Measures a library, or that of a process, and prints the reading.
pub(crate) fn lens(lens: &LensFlags, output: &OutputFlags) -> anyhow::Result<Outcome> {
    let child = child_command()?;
    let order = match lens.subject.to_str().and_then(|subject| subject.parse().ok()) {
        Some(pid) => duel_lens::of_process(pid, child)?,
        None => {
            let environment = duel_lens::own_environment();
            // The loader searches for a name without a slash instead of opening it here.
            let library = std::path::absolute(&lens.subject).context("cannot tell where the library is")?;
            LensOrder { environment, ..LensOrder::new(library, child) }
        }
    };
    let reading = duel_lens::measure(&order)?;
    if output.json {
        terminal::print(&duel_report::safe_json(&reading))?;
    } else {
        terminal::print(&duel_lens::table(&reading))?;
    }
    Ok(Outcome::Done)
}

/// What `duel lens` starts: loads the library into this process, and does not return.
pub(crate) fn child(child: &ChildFlags) -> anyhow::Result<Outcome> {
    duel_lens::child::main(&child.arguments)
}

/// A lab that can look at the libcrypto of a server on this machine; where that is not possible, one that cannot.
pub(super) fn equip(lab: Lab) -> Lab {
    match child_command() {
        Ok(child) => lab.with_lens(child),
        Err(_) => lab,
    }
}

fn child_command() -> anyhow::Result<ChildCommand> {
    Ok(ChildCommand { program: program()?, arguments: vec!["lens-child".into()] })
}

/// This program. On Linux by the link that also works where the child's user may not pass through our folders.
fn program() -> anyhow::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        return Ok("/proc/self/exe".into());
    }
    std::env::current_exe().context("cannot find the duel program to load the library with")
}
