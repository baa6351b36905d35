//! Watching an experiment: progress on standard error, slots into the archive, figures to who is told them.

use crate::keep::Keeper;
use crate::outcome::say;
use crate::output::OutputFlags;
use crate::progress_log::ProgressLog;
use crate::telemetry::Telemetry;
use crate::terminal;
use duel_lab::{View, Watcher};
use duel_model::{Nanos, Run, Slot, sanitize_line};
use duel_report::{ProgressFrame, Style, TargetProgress, progress_line, progress_plain, progress_terminal};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often a terminal is redrawn.
const REDRAW: Duration = Duration::from_millis(100);
/// How often a line is printed where there is no terminal.
const PLAIN_LINE: Duration = Duration::from_secs(1);

/// Shows progress and keeps slots.
pub(crate) struct Watching<'a, 't> {
    keeper: Keeper<'a>,
    telemetry: Option<&'t Telemetry>,
    show: Show,
    label: String,
    next: Instant,
}

/// What progress looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Bars on a terminal, lines for people elsewhere.
    Progress,
    /// Lines for programs.
    Log,
    /// Bars on a terminal, nothing elsewhere.
    OnTerminals,
}

enum Show {
    Nothing,
    Log(ProgressLog),
    Lines,
    Terminal { style: Style, drawn: usize },
}

impl<'a, 't> Watching<'a, 't> {
    /// Shows as the output flags and the terminal allow.
    pub(crate) fn new(
        keeper: Keeper<'a>,
        shown: Shown,
        telemetry: Option<&'t Telemetry>,
        output: &OutputFlags,
    ) -> Self {
        let show = if output.quiet {
            Show::Nothing
        } else if shown == Shown::Log {
            Show::Log(ProgressLog::new())
        } else if std::io::stderr().is_terminal() {
            Show::Terminal { style: terminal::progress_style(), drawn: 0 }
        } else if shown == Shown::OnTerminals {
            Show::Nothing
        } else {
            Show::Lines
        };
        Self { keeper, telemetry, show, label: String::new(), next: Instant::now() }
    }

    /// The experiment is over: clears the progress and gives the keeper back.
    pub(crate) fn end(mut self) -> Keeper<'a> {
        self.clear();
        std::mem::replace(&mut self.keeper, Keeper::Nowhere)
    }

    fn clear(&mut self) {
        if let Show::Terminal { drawn, .. } = &mut self.show
            && *drawn > 0
        {
            // Up to the first line drawn, and clear from there.
            let _ = write!(std::io::stderr(), "\x1b[{drawn}F\x1b[J");
            *drawn = 0;
        }
    }

    /// Shows progress in place of what was shown before: on a terminal, or as a line elsewhere.
    fn draw(&mut self, on_terminal: impl FnOnce(Style) -> Vec<String>, as_line: impl FnOnce() -> String) {
        let now = Instant::now();
        // Progress that cannot be shown is no reason to stop measuring: write errors are ignored.
        let mut err = std::io::stderr().lock();
        match &mut self.show {
            Show::Nothing | Show::Log(_) => {}
            Show::Lines => {
                self.next = now + PLAIN_LINE;
                let _ = writeln!(err, "{}", as_line());
            }
            Show::Terminal { style, drawn } => {
                self.next = now + REDRAW;
                let lines = on_terminal(*style);
                // One write, so that nothing flickers.
                let mut text = if *drawn > 0 { format!("\x1b[{drawn}F") } else { String::new() };
                for line in &lines {
                    text.push_str(line);
                    text.push_str("\x1b[K\n");
                }
                text.push_str("\x1b[J");
                *drawn = lines.len();
                let _ = err.write_all(text.as_bytes());
            }
        }
    }

    fn frame(&self, view: &View<'_>) -> ProgressFrame {
        let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { (part as f64 / whole as f64).min(1.0) };
        let still = view.slot.map(|slot| slot.live.standstill).unwrap_or_default();
        // The figures beside it hold the wait of whatever was under way.
        let label = if still.is_none() {
            self.label.clone()
        } else {
            let stood_still = duel_model::format_duration_ns(still.total_ns as f64);
            format!("{} (the generator itself stood still for {stood_still})", self.label)
        };
        ProgressFrame {
            elapsed_ns: view.elapsed_ns,
            total_ns: view.total_ns,
            search: view.search.map(|search| (search.spent_ns, search.budget_ns)),
            label,
            targets: view
                .targets
                .iter()
                .enumerate()
                .map(|(index, target)| TargetProgress {
                    name: target.name.clone(),
                    ops_ok: target.ok,
                    rate_per_s: target.rate_per_s(),
                    p99_ns: target.p99_ns,
                    failed: target.failed,
                    share_done: match (view.total_ns, view.total_ops) {
                        (_, Some(ops)) => share(target.ok + target.failed, ops),
                        (Some(total_ns), None) => share(target.load_ns, total_ns / view.targets.len() as Nanos),
                        (None, None) => 0.0,
                    },
                    active: index == view.active,
                })
                .collect(),
            call_so_far: None,
        }
    }
}

impl Watcher for Watching<'_, '_> {
    fn begun(&mut self, run: &Run) {
        self.keeper.begin(run);
        if let Some(telemetry) = self.telemetry {
            telemetry.begun(run);
        }
    }

    fn label(&mut self, label: &str) {
        label.clone_into(&mut self.label);
    }

    fn meanwhile(&mut self, what: &str) {
        if Instant::now() < self.next || matches!(self.show, Show::Nothing | Show::Log(_)) {
            return;
        }
        self.draw(|style| vec![progress_line(what, style)], || sanitize_line(what));
    }

    fn slot(&mut self, slot: &Slot) {
        if let Some(late) = self.keeper.slot(slot) {
            self.clear();
            say(late);
        }
        if let Some(telemetry) = self.telemetry {
            telemetry.slot(slot);
        }
        if let Show::Log(_) = self.show {
            let line = ProgressLog::stamped(slot.elapsed_ns, &ProgressLog::last_line(slot));
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }

    fn live(&mut self, view: &View<'_>) {
        if let Some(telemetry) = self.telemetry {
            telemetry.live(view);
        }
        if let Show::Log(log) = &mut self.show {
            let target = &view.targets[view.active];
            if let Some(line) = log.line(view.elapsed_ns, target.ok + target.failed) {
                let _ = writeln!(std::io::stderr(), "{}", ProgressLog::stamped(view.elapsed_ns, &line));
            }
            return;
        }
        if Instant::now() < self.next || matches!(self.show, Show::Nothing) {
            return;
        }
        let frame = self.frame(view);
        self.draw(|style| progress_terminal(&frame, style), || progress_plain(&frame));
    }
}
