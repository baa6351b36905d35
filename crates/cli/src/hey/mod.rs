//! `duel hey`: takes the place of hey (github.com/rakyll/hey). Its flags, its output, duel's engine.
//!
//! What hey is known to do wrong is not repeated: all requests are made where `-c` does not divide `-n`, averages are right
//! beyond a million results, nothing is `NaN` where all fail, rates are kept while the server is slow, chunked bodies have
//! a size, and as many connections are kept as are asked for.

mod plan;
mod watch;

use crate::keep::Keeper;
use crate::outcome::{Outcome, say};
use crate::{signals, terminal};
use anyhow::Context;
use duel_archive::Archive;
use duel_hey::{Flags, Output, Unusable};
use duel_lab::{Lab, LabError};
use duel_model::{Interruption, Plan, RunStatus, WorkloadPlan, sanitize_line};
use plan::Task;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use watch::Watch;

/// What stands behind `duel hey` on a command line; `None`: it is another command. A link to duel whose name is hey is hey.
///
/// It is read without clap, which knows no flags such as `-h2` and takes `-q 5` for its own `-q`.
pub(crate) fn arguments(mut all: impl Iterator<Item = OsString>) -> Option<Vec<OsString>> {
    let program = all.next()?;
    let mut rest: Vec<OsString> = all.collect();
    if Path::new(&program).file_stem().is_some_and(|name| name == "hey") {
        return Some(rest);
    }
    if rest.first().is_some_and(|first| first == "hey") {
        rest.remove(0);
        return Some(rest);
    }
    None
}

/// Does what hey would do with these arguments.
pub(crate) fn main(arguments: &[OsString]) -> Outcome {
    let task = Flags::parse(arguments).and_then(|flags| {
        let task = Task::of(&flags)?;
        if let Some(first) = flags.ignored.first() {
            say(&format!("'{}' stands behind the URL and is ignored, as by hey", sanitize_line(first)));
        }
        Ok((task, flags))
    });
    match task {
        Ok((task, flags)) => Outcome::of(run(task, &flags)),
        Err(Unusable::Help) => Outcome::of(terminal::print(&duel_hey::help()).map(|()| Outcome::Done)),
        Err(Unusable::Flags(text)) => {
            say(&format!("{text} (see duel hey -help)"));
            Outcome::BadUsage
        }
        Err(Unusable::Meaning(text)) => {
            say(&text);
            Outcome::CouldNotRun
        }
    }
}

/// The task over the version of HTTP that the server chooses. hey says nothing where that is HTTP/1.1 after all.
fn agreed(task: Task, flags: &Flags, stop: &Arc<AtomicBool>) -> Task {
    let why = match chooses_http2(&task.plan, stop) {
        // That there is no server is for the load to find out.
        Some(Some(true)) | None => return task,
        Some(Some(false)) => "the server does not choose HTTP/2",
        Some(None) => "-h2 is for https:// only",
    };
    say(&format!("{why}: the requests are made over HTTP/1.1"));
    let mut flags = flags.clone();
    flags.http2 = false;
    Task::of(&flags).unwrap_or(task)
}

/// Whether the server chooses HTTP/2 when it is offered beside HTTP/1.1; `Some(None)`: nothing is chosen without TLS; `None`: there
/// was no handshake. It costs one connection and no request.
fn chooses_http2(plan: &Plan, stop: &Arc<AtomicBool>) -> Option<Option<bool>> {
    let (WorkloadPlan::Http(http), Some(target)) = (&plan.workload, plan.targets.first()) else { return Some(None) };
    if !target.address.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:")) {
        return Some(None);
    }
    duel_http::chooses_http2(http, &target.address, plan.load.connect_timeout_ns, stop).ok().map(Some)
}

/// Makes the requests and prints what came of them, also of those until Ctrl-C.
fn run(task: Task, flags: &Flags) -> anyhow::Result<Outcome> {
    let mut archive = flags.archive.as_deref().map(Archive::open).transpose()?;
    if let Some(note) = archive.as_ref().and_then(Archive::note) {
        say(&note);
    }
    let stop = signals::stop_flag()?;
    let task = if task.wants_http2() { agreed(task, flags, &stop) } else { task };
    let lab = Lab::new(Arc::clone(&stop)).to_the_letter();
    let mut watch = Watch::new(Keeper::new(archive.as_mut()), task.output, stop)?;
    let run = lab.run(&task.plan, &mut watch).map_err(|error| match error {
        // There is one target, and hey's users have not named it.
        LabError::Target { text, .. } => anyhow::Error::msg(text),
        error => error.into(),
    })?;
    watch.end();
    let Watch { keeper, mut results, slot, broken, .. } = watch;
    let slot = slot.context("the run has no result")?;
    let is_cut = run.status == RunStatus::Interrupted(Interruption::User);
    results.finish(&slot.tally, is_cut);
    // The rate of an open loop counts by its schedule; hey's total ends with the last request.
    let total_ns = slot.elapsed_ns.max(results.last_end_ns);
    // Kept before it is shown: that it cannot be shown is no reason to lose it.
    let kept = keeper.finish(&run);
    match (task.output, broken) {
        // Who reads no further wants no more.
        (_, Some(error)) if error.kind() == ErrorKind::BrokenPipe => {}
        (_, Some(error)) => {
            return Err(anyhow::Error::new(error).context("cannot write the result to standard output"));
        }
        (Output::Summary(style), None) => terminal::print(&duel_hey::summary(&results, total_ns, style))?,
        (Output::Csv, None) if results.failures > 0 => {
            say(&format!("{} requests failed and have no row", results.failures));
            terminal::note(duel_hey::errors(&results).trim_end_matches('\n'));
        }
        (Output::Csv, None) => {}
    }
    kept?;
    Ok(Outcome::Done)
}
