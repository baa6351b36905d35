//! What is seen while a run goes on.

use crate::figures::{bar, clock, count, duration, maybe, rate};
use crate::style::{Ink, Style};
use crate::text::{clean, columns, cut_end, cut_middle, pad_left, pad_right};
use duel_model::Nanos;

/// The state of a run at an instant, as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgressFrame {
    /// Since the start of the run.
    pub elapsed_ns: Nanos,
    /// How long the run may take at most; `None` where that is not known.
    pub total_ns: Option<Nanos>,
    /// Of a probe: how long all probes have taken so far, and may take at most.
    pub search: Option<(Nanos, Nanos)>,
    /// What is being done: `warming up`, `measuring`, or the question of the probe.
    pub label: String,
    /// One entry per target, in the plan's order.
    pub targets: Vec<TargetProgress>,
    /// What the slots say up to now, such as `B 3.04x slower so far`; `None` while they say nothing.
    pub call_so_far: Option<String>,
}

/// One target within a frame.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetProgress {
    /// Name of the target.
    pub name: String,
    /// Ok ops until now.
    pub ops_ok: u64,
    /// Ok ops per second of load; `None` before the first.
    pub rate_per_s: Option<f64>,
    /// 99th percentile of the response time; `None` before the first.
    pub p99_ns: Option<Nanos>,
    /// Failed ops until now.
    pub failed: u64,
    /// How much of its load is done, 0 to 1.
    pub share_done: f64,
    /// Whether it is under load at this instant.
    pub active: bool,
}

/// The frame for a terminal: a line per target with a bar, rate, p99 and errors, and a status line with the total.
///
/// There are always as many lines as targets and one more, none longer than the width, so that the caller can overwrite
/// the former frame. Every line ends without a newline.
pub fn progress_terminal(frame: &ProgressFrame, style: Style) -> Vec<String> {
    let width = style.columns();
    let rows: Vec<[String; 4]> = frame.targets.iter().map(cells).collect();
    let widest = |i: usize| rows.iter().map(|row| columns(&row[i])).max().unwrap_or(0);
    let (rate_width, p99_width, failed_width) = (widest(1), widest(2), widest(3));
    // Names give way before figures do.
    let figures_width = 2 + rate_width + 2 + p99_width + 2 + failed_width;
    let name_width = widest(0).min(width / 4).min(width.saturating_sub(2 + figures_width)).max(4);
    let used = 2 + name_width + figures_width;
    let bar_width = width.saturating_sub(used + 2).min(40);

    let mut lines: Vec<String> = frame
        .targets
        .iter()
        .zip(&rows)
        .map(|(target, [name, rate, p99, failed])| {
            let mark = if target.active { '>' } else { ' ' };
            let name = pad_right(&cut_middle(name, name_width), name_width);
            let figures = format!(
                "{}  {}  {}",
                pad_left(rate, rate_width),
                pad_left(p99, p99_width),
                pad_left(failed, failed_width)
            );
            if bar_width < 4 {
                return cut_end(&format!("{mark} {name}  {figures}"), width);
            }
            let done = bar(target.share_done, bar_width);
            let rest = "░".repeat(bar_width - columns(&done));
            format!("{mark} {name}  {}  {figures}", style.paint(Ink::Bar, &(done + &rest)))
        })
        .collect();
    lines.push(cut_end(&status(frame), width));
    lines.iter().map(|line| style.finish_line(line)).collect()
}

/// What is done without figures, as one line for a terminal.
pub fn progress_line(what: &str, style: Style) -> String {
    style.finish_line(&cut_end(&clean(what), style.columns()))
}

/// The frame as one plain line for a pipe or a log, without a newline and of whatever length it takes.
pub fn progress_plain(frame: &ProgressFrame) -> String {
    let targets = frame.targets.iter().map(|target| {
        let [name, rate, p99, failed] = cells(target);
        let mark = if target.active { "*" } else { "" };
        format!("{name}{mark} {rate}, {p99}, {failed}")
    });
    let head = format!("{}, {}", time(frame), clean(&frame.label));
    let so_far = frame.call_so_far.as_deref().map(clean);
    [head].into_iter().chain(targets).chain(so_far).collect::<Vec<_>>().join("; ")
}

/// Name, rate, p99 and errors.
fn cells(target: &TargetProgress) -> [String; 4] {
    [
        clean(&target.name),
        maybe(target.rate_per_s, rate),
        format!("p99 {}", maybe(target.p99_ns.map(|ns| ns as f64), duration)),
        format!("{} failed", count(target.failed)),
    ]
}

fn status(frame: &ProgressFrame) -> String {
    let ok: u64 = frame.targets.iter().map(|t| t.ops_ok).sum();
    let failed: u64 = frame.targets.iter().map(|t| t.failed).sum();
    let mut text = format!("{}  {}: {} ok, {} failed", clean(&frame.label), time(frame), count(ok), count(failed));
    if let Some(call) = &frame.call_so_far {
        text += &format!("; {}", clean(call));
    }
    text
}

fn time(frame: &ProgressFrame) -> String {
    // How long one probe takes says nothing of how long the search goes on.
    if let Some((spent_ns, budget_ns)) = frame.search {
        return format!("{} of at most {}", clock(spent_ns), clock(budget_ns));
    }
    match frame.total_ns {
        Some(total_ns) => format!("{} of {}", clock(frame.elapsed_ns), clock(total_ns)),
        None => clock(frame.elapsed_ns),
    }
}
