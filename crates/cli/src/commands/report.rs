//! `duel report RUN`: an earlier run as a page, and its charts as files.

use super::demo;
use crate::deliver::{Destination, deliver, write};
use crate::keep::RunName;
use crate::outcome::{Outcome, Usage};
use crate::output::OutputFlags;
use crate::raster::Painter;
use crate::{keep, terminal};
use anyhow::Context;
use clap::Args;
use duel_model::{Plan, Run, sanitize_line};
use duel_report::{Chart, Command, Layout};
use std::path::{Path, PathBuf};

/// Options of a report.
#[derive(Args, Clone)]
pub(crate) struct ReportFlags {
    #[command(flatten)]
    pub(crate) run: RunName,
    /// Write the page to this file; - is standard output [default: duel-RUN.html here; none with --svg or --png]
    #[arg(short = 'o', value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Write each chart to this folder as an SVG file
    #[arg(long, value_name = "DIR")]
    pub(crate) svg: Option<PathBuf>,
    /// Write each chart to this folder as a PNG file
    #[arg(long, value_name = "DIR")]
    pub(crate) png: Option<PathBuf>,
    /// Replace files that are there
    #[arg(long)]
    pub(crate) force: bool,
}

/// Writes the page of an earlier run, judged again, and the charts that were asked for. Tells the names of the files.
pub(crate) fn report(report: &ReportFlags, output: &OutputFlags) -> anyhow::Result<Outcome> {
    if output.json {
        return Err(
            Usage("--json prints results; for the document of a run: duel export RUN --format json".into()).into()
        );
    }
    let asked = report.out.as_deref().map(Destination::of).transpose()?;
    // First, so that nothing is written where pictures cannot be made.
    let painter = report.png.as_ref().map(|_| Painter::new()).transpose()?;
    let run = keep::load_to_show(&report.run.name, output)?;
    let verdict = duel_lab::judge(&run);
    let mut written: Vec<PathBuf> = Vec::new();

    let page = match asked {
        Some(to) => Some(to),
        None if report.svg.is_some() || report.png.is_some() => None,
        None => Some(Destination::File(PathBuf::from(format!("{}.html", file_name(&run.id))))),
    };
    if let Some(to) = &page {
        let html = duel_report::page(&run, &verdict, &commands(&run));
        written.extend(deliver(to, html.as_bytes(), true, report.force)?.map(Path::to_path_buf));
    }
    let charts =
        if report.svg.is_some() || report.png.is_some() { duel_report::charts(&run, &verdict) } else { Vec::new() };
    if let Some(folder) = &report.svg {
        written.extend(each(&charts, folder, "svg", report.force, |chart| Ok(chart.svg(Layout::Wide).into_bytes()))?);
    }
    if let (Some(folder), Some(painter)) = (&report.png, &painter) {
        written.extend(each(&charts, folder, "png", report.force, |chart| painter.png(&chart.svg(Layout::Wide)))?);
    }
    // Nothing else may be on standard output where the page is.
    if page != Some(Destination::Output) {
        let names: String =
            written.iter().map(|path| format!("{}\n", sanitize_line(&path.to_string_lossy()))).collect();
        terminal::print(&names)?;
    }
    Ok(Outcome::Done)
}

/// Writes a file for each chart.
fn each(
    charts: &[Chart],
    folder: &Path,
    ending: &str,
    replaces: bool,
    drawn: impl Fn(&Chart) -> anyhow::Result<Vec<u8>>,
) -> anyhow::Result<Vec<PathBuf>> {
    let shown = || sanitize_line(&folder.to_string_lossy());
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", shown()))?;
    charts
        .iter()
        .map(|chart| {
            let path = folder.join(format!("{}.{ending}", chart.id()));
            write(&path, &drawn(chart)?, replaces)?;
            Ok(path)
        })
        .collect()
}

/// `duel-20261120-233200-7f3a`; an archive of somebody else may hold any text as an id.
fn file_name(id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    format!("duel-{}", id.chars().take(80).map(plain).collect::<String>())
}

/// What leads back to the run.
fn commands(run: &Run) -> Vec<Command> {
    let command = |purpose: &str, typed: String| Command { purpose: purpose.to_owned(), typed };
    let mut commands = Vec::new();
    if demo::made(&run.plan) {
        let seed = run.plan.compare.seed;
        commands.push(command("Make another demonstration with this seed", format!("duel demo --seed {seed}")));
    } else {
        if let Some(typed) = run.plan.command() {
            let again = if typed.contains(Plan::REDACTED) || typed.contains(Plan::LEFT_OUT) {
                "Repeat it on any machine; put the values that are left out here in their places"
            } else if run.plan.targets.iter().any(|target| target.host.is_some()) {
                "Repeat it on any machine; the servers' machines are not read then"
            } else {
                "Repeat it on any machine"
            };
            commands.push(command(again, typed));
        }
        commands.push(command("Repeat it where it was archived", format!("duel rerun {}", run.id)));
    }
    commands.push(command("Show it on a terminal", format!("duel show {}", run.id)));
    commands.push(command("All slots for other programs", format!("duel export {} --format csv", run.id)));
    commands
}
