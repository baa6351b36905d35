//! What is done while requests are made: results are counted, lines printed, the run kept if that is wanted.

use crate::keep::Keeper;
use crate::progress_log::ProgressLog;
use crate::streams;
use duel_hey::{Output, Results, Style, Writer, csv};
use duel_lab::{OpRecord, View, Watcher};
use duel_model::{Run, Slot};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Watches a run as hey would.
#[derive(Debug)]
pub(super) struct Watch<'a> {
    pub(super) keeper: Keeper<'a>,
    pub(super) results: Results,
    /// The one slot of the run, once it is over.
    pub(super) slot: Option<Slot>,
    lines: Lines,
    out: Writer,
    /// Ends the run.
    stop: Arc<AtomicBool>,
    /// The first line that could not be printed; there were no more.
    pub(super) broken: Option<io::Error>,
}

/// What is printed on the way.
#[derive(Debug)]
enum Lines {
    None,
    Progress(ProgressLog),
    Csv,
}

impl<'a> Watch<'a> {
    pub(super) fn new(keeper: Keeper<'a>, output: Output, stop: Arc<AtomicBool>) -> io::Result<Self> {
        let lines = match output {
            Output::Summary(Style::Current) => Lines::None,
            Output::Summary(Style::Historic { .. }) => Lines::Progress(ProgressLog::new()),
            Output::Csv => Lines::Csv,
        };
        let (results, out) = (Results::default(), Writer::to(streams::Output)?);
        Ok(Self { keeper, results, slot: None, lines, out, stop, broken: None })
    }

    fn print(&mut self, text: &str) {
        if self.broken.is_none() {
            let printed = self.out.print(text, &self.stop);
            self.note(printed);
        }
    }

    /// Waits until everything is printed, or cannot be.
    pub(super) fn end(&mut self) {
        let printed = self.out.end(&self.stop);
        self.note(printed);
    }

    fn note(&mut self, printed: io::Result<()>) {
        let Err(error) = printed else { return };
        // Results that nobody reads would fill the memory.
        if error.kind() == ErrorKind::TimedOut {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.broken.get_or_insert(error);
    }
}

impl Watcher for Watch<'_> {
    fn begun(&mut self, run: &Run) {
        self.keeper.begin(run);
        if matches!(self.lines, Lines::Csv) {
            self.print(csv::HEADER);
        }
    }

    fn wants_ops(&self) -> bool {
        true
    }

    fn ops(&mut self, ops: &[OpRecord]) {
        ops.iter().for_each(|op| self.results.add(op));
        if matches!(self.lines, Lines::Csv) {
            let rows: String = ops.iter().filter_map(csv::row).collect();
            self.print(&rows);
        }
    }

    fn live(&mut self, view: &View<'_>) {
        let target = &view.targets[view.active];
        if let Lines::Progress(log) = &mut self.lines
            && let Some(line) = log.line(view.elapsed_ns, target.ok + target.failed)
        {
            self.print(&format!("{line}\n"));
        }
    }

    fn slot(&mut self, slot: &Slot) {
        // The only one: that it is missing is told at the end, if it still is.
        let _ = self.keeper.slot(slot);
        if matches!(self.lines, Lines::Progress(_)) {
            self.print(&format!("{}\n", ProgressLog::last_line(slot)));
        }
        self.slot = Some(slot.clone());
    }
}
