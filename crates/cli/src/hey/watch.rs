//! What is done while requests are made: results are counted, lines printed, the run kept if that is wanted.

use super::csv;
use super::plan::{Output, Style};
use super::results::Results;
use crate::keep::Keeper;
use crate::progress_log::ProgressLog;
use duel_lab::{OpRecord, View, Watcher};
use duel_model::{Run, Slot};
use std::io::{self, StdoutLock, Write};

/// Watches a run as hey would.
#[derive(Debug)]
pub(super) struct Watch<'a> {
    pub(super) keeper: Keeper<'a>,
    pub(super) results: Results,
    /// The one slot of the run, once it is over.
    pub(super) slot: Option<Slot>,
    lines: Lines,
    out: StdoutLock<'static>,
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
    pub(super) fn new(keeper: Keeper<'a>, output: Output) -> Self {
        let lines = match output {
            Output::Summary(Style::Current) => Lines::None,
            Output::Summary(Style::Historic { .. }) => Lines::Progress(ProgressLog::new()),
            Output::Csv => Lines::Csv,
        };
        let (results, out) = (Results::default(), io::stdout().lock());
        Self { keeper, results, slot: None, lines, out, broken: None }
    }

    fn print(&mut self, text: &str) {
        if self.broken.is_none() {
            self.broken = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()).err();
        }
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
        self.keeper.slot(slot);
        if matches!(self.lines, Lines::Progress(_)) {
            self.print(&format!("{}\n", ProgressLog::last_line(slot)));
        }
        self.slot = Some(slot.clone());
    }
}
