//! `duel prepare TARGET...` and `duel cleanup TARGET...`: the tables that load on databases needs.

use crate::outcome::{Outcome, Usage, say};
use crate::output::OutputFlags;
use crate::signals;
use crate::terminal;
use clap::Args;
use duel_model::{format_figure, sanitize_line};
use duel_sql::{Existing, Filled, Progress};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Which tables.
#[derive(Args, Clone)]
pub(crate) struct TablesFlags {
    /// Databases: postgres://USER@HOST/DATABASE, mysql://USER@HOST/DATABASE or sqlite:FILE
    #[arg(value_name = "TARGET", required = true)]
    targets: Vec<String>,
    /// Tables sbtest1 to sbtestN
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    tables: u32,
}

/// How to make them.
#[derive(Args, Clone)]
pub(crate) struct PrepareFlags {
    #[command(flatten)]
    tables: TablesFlags,
    /// Rows of each table
    #[arg(long, value_name = "ROWS", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=2_000_000_000))]
    table_size: u64,
    /// Make the tables of --op bulk-insert, which have two columns and no rows
    #[arg(long, conflicts_with_all = ["table_size", "go_on"])]
    bulk: bool,
    /// Go on with tables whose preparation did not end
    #[arg(long, conflicts_with = "anew")]
    go_on: bool,
    /// Drop the tables that are there, and make all of them anew
    #[arg(long)]
    anew: bool,
}

/// How often progress is told: on a terminal, where a line replaces the one before, and elsewhere.
const TOLD_EVERY: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(5)];

/// How soon it is seen that the work is done, or is to stop.
const TURN: Duration = Duration::from_millis(20);

/// Makes the tables of each target in turn.
pub(crate) fn prepare(prepare: &PrepareFlags, output: &OutputFlags) -> anyhow::Result<Outcome> {
    let stop = signals::stop_flag()?;
    let targets = addresses(&prepare.tables.targets)?;
    let (tables, rows) = (prepare.tables.tables, prepare.table_size);
    let existing = Existing { go_on: prepare.go_on, anew: prepare.anew };
    for target in targets {
        let begun = Instant::now();
        let progress = Arc::new(Progress::default());
        let done = if prepare.bulk {
            duel_sql::prepare_bulk(target, tables, prepare.anew)
        } else {
            let _teller = Teller::start(&progress, &stop, u64::from(tables) * rows, output.quiet);
            duel_sql::prepare(target, tables, rows, existing, &progress)
        };
        match done {
            Ok(filled) => tell(target, filled, begun.elapsed())?,
            Err(why) if stop.load(Ordering::Relaxed) => {
                say(&why.to_string());
                return Ok(Outcome::Interrupted);
            }
            Err(why) => anyhow::bail!("{why}"),
        }
    }
    Ok(Outcome::Done)
}

/// Drops the tables of each target.
pub(crate) fn cleanup(cleanup: &TablesFlags) -> anyhow::Result<Outcome> {
    for target in addresses(&cleanup.targets)? {
        let dropped = duel_sql::cleanup(target, cleanup.tables).map_err(|why| anyhow::anyhow!("{why}"))?;
        terminal::print(&format!("{}: {} dropped\n", shown(target), counted(dropped, "table")))?;
    }
    Ok(Outcome::Done)
}

/// The addresses of targets, with or without names before them.
fn addresses(typed: &[String]) -> Result<Vec<&str>, Usage> {
    typed
        .iter()
        .map(|typed| {
            let named = typed.split_once('=').filter(|(name, _)| !name.contains([':', '/', '?']));
            let address = named.map_or(typed.as_str(), |(_, address)| address);
            match duel_lab::kinds::of_address(address) {
                Some(kind) if *kind.schema() == duel_sql::SCHEMA => {
                    duel_lab::check_address("the target", address).map_err(|error| Usage(error.to_string()))?;
                    Ok(address)
                }
                _ => Err(Usage(format!(
                    "'{}' is no database; postgres://, mysql:// and sqlite: are",
                    sanitize_line(
                        &crate::load::targets::without_password(address).unwrap_or_else(|| address.to_owned())
                    )
                ))),
            }
        })
        .collect()
}

/// An address without its password.
fn shown(address: &str) -> String {
    sanitize_line(&duel_sql::public_address(address))
}

/// Tells how far a preparation is, and hands on that it is to stop.
struct Teller {
    is_done: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Teller {
    fn start(progress: &Arc<Progress>, stop: &Arc<AtomicBool>, rows: u64, is_quiet: bool) -> Self {
        let is_done = Arc::new(AtomicBool::new(false));
        let (progress, stop, done) = (Arc::clone(progress), Arc::clone(stop), Arc::clone(&is_done));
        let is_terminal = std::io::stderr().is_terminal();
        let work = move || {
            let (begun, mut told) = (Instant::now(), Instant::now());
            while !done.load(Ordering::Relaxed) {
                std::thread::sleep(TURN);
                if stop.load(Ordering::Relaxed) {
                    progress.stop.store(true, Ordering::Relaxed);
                }
                let every = TOLD_EVERY[usize::from(!is_terminal)];
                if is_quiet || told.elapsed() < every {
                    continue;
                }
                told = Instant::now();
                let written = progress.rows.load(Ordering::Relaxed);
                let rate = format_figure(written as f64 / begun.elapsed().as_secs_f64());
                let tables = progress.tables.load(Ordering::Relaxed);
                let line = format!("{written} of {rows} rows, {rate}/s, {tables} tables done");
                if is_terminal { terminal::redraw(&line) } else { terminal::note(&line) }
            }
            if is_terminal && !is_quiet {
                terminal::redraw("");
            }
        };
        // Without a thread there is no line of progress, and nothing else is missing.
        let thread = std::thread::Builder::new().name("duel-teller".to_owned()).spawn(work).ok();
        Self { is_done, thread }
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.is_done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn tell(target: &str, filled: Filled, took: Duration) -> anyhow::Result<()> {
    let Filled { found, made, rows } = filled;
    let seconds = took.as_secs_f64();
    let had = if found > 0 { format!("; {} were whole already", counted(found, "table")) } else { String::new() };
    let rate = format_figure(rows as f64 / seconds.max(1e-3));
    let text = if made == 0 {
        format!("{}: {} are whole already; nothing was done", shown(target), counted(found, "table"))
    } else {
        format!("{}: {} made, {rows} rows in {seconds:.1} s ({rate}/s){had}", shown(target), counted(made, "table"))
    };
    terminal::print(&format!("{text}\n"))
}

fn counted(count: u32, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
