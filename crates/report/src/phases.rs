//! Where the time goes, and where the gap between two targets sits.

use crate::figures::{TimeUnit, bar, maybe, percent};
use crate::style::{Ink, Style};
use crate::table::{Align, Row, Table};
use crate::text::{columns, cut_middle, pad_left, pad_right, wrap};
use crate::totals::Totals;
use duel_model::{Call, Phase};

/// Mean time per op in one phase.
pub(crate) struct Share {
    pub(crate) name: &'static str,
    pub(crate) baseline_ns: f64,
    pub(crate) target_ns: f64,
}

impl Share {
    /// How much longer the target takes than the baseline.
    pub(crate) fn difference_ns(&self) -> f64 {
        self.target_ns - self.baseline_ns
    }
}

/// Mean time per op of two targets, by phase.
pub(crate) struct Gap {
    pub(crate) shares: Vec<Share>,
    pub(crate) total: Share,
    /// Whether the difference is one that the verdict has called and mean times show; shares of any other would be
    /// shares of chance.
    pub(crate) is_real: bool,
}

impl Gap {
    /// `None` where nothing is known of the phases.
    pub(crate) fn between(baseline: &Totals<'_>, target: &Totals<'_>, call: Option<Call>) -> Option<Self> {
        let shares = compared(baseline, target);
        if shares.is_empty() {
            return None;
        }
        let total = Share {
            name: "total",
            baseline_ns: shares.iter().map(|s| s.baseline_ns).sum(),
            target_ns: shares.iter().map(|s| s.target_ns).sum(),
        };
        let gap_ns = total.difference_ns();
        let judged = match call {
            Some(Call::Slower) => gap_ns > 0.0,
            Some(Call::Faster) => gap_ns < 0.0,
            _ => false,
        };
        let is_real = judged && gap_ns.abs() > 0.005 * total.baseline_ns.max(total.target_ns);
        Some(Self { shares, total, is_real })
    }

    /// What part of the gap sits in a phase, as per cent; empty where there is none.
    pub(crate) fn part_of(&self, share: &Share) -> String {
        if self.is_real { whole_percent(share.difference_ns() / self.total.difference_ns()) } else { String::new() }
    }

    /// The unit and the format of the times.
    pub(crate) fn times(&self) -> Times {
        Times::up_to(self.total.baseline_ns.max(self.total.target_ns))
    }
}

/// How means of one table are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    unit: TimeUnit,
    largest_ns: f64,
}

impl Times {
    /// For means of at most this length. The largest sets the unit: the small ones do not matter.
    pub(crate) fn up_to(largest_ns: f64) -> Self {
        Self { unit: TimeUnit::suiting([largest_ns / 10.0]), largest_ns }
    }

    /// The unit's name.
    pub(crate) fn unit(self) -> TimeUnit {
        self.unit
    }

    /// A mean with as many decimals as the whole column has: figures of a column are compared by their length.
    pub(crate) fn show(self, ns: f64) -> String {
        let decimals = match self.unit.value(self.largest_ns) {
            v if v >= 100.0 => 1,
            v if v >= 10.0 => 2,
            _ => 3,
        };
        let text = format!("{:.decimals$}", self.unit.value(ns));
        // No "-0.00".
        match text.strip_prefix('-') {
            Some(rest) if is_zero(rest) => rest.to_owned(),
            _ => text,
        }
    }

    /// A difference, with its sign.
    pub(crate) fn show_difference(self, ns: f64) -> String {
        let shown = self.show(ns);
        let sign = if ns < 0.0 || is_zero(&shown) { "" } else { "+" };
        format!("{sign}{shown}")
    }
}

/// Mean time per op by phase of two targets, with the difference; and with its share of the gap, if the target was
/// called slower or faster and the mean times show it.
pub(crate) fn gap(
    baseline: &Totals<'_>,
    target: &Totals<'_>,
    call: Option<Call>,
    noun: &str,
    style: Style,
) -> Vec<String> {
    if baseline.slots.is_empty() || target.slots.is_empty() {
        return Vec::new();
    }
    for side in [baseline, target] {
        if side.tally.ok == 0 {
            let text = format!("Where the time goes is not known: no {noun} to {} ended well", side.name);
            return wrap(&text, style.columns(), "", "  ");
        }
    }
    let Some(gap) = Gap::between(baseline, target, call) else { return Vec::new() };
    let (shares, has_gap, gap_ns, times) = (&gap.shares, gap.is_real, gap.total.difference_ns(), gap.times());
    let title = if has_gap { "Where the gap sits" } else { "Where the time goes" };
    let unit = times.unit().name;
    let mut lines = wrap(&format!("{title}: mean time per {noun} by phase, {unit}"), style.columns(), "", "  ");

    let rows: Vec<[String; 5]> = shares
        .iter()
        .chain([&gap.total])
        .map(|s| {
            let difference = times.show_difference(s.difference_ns());
            [s.name.to_owned(), times.show(s.baseline_ns), times.show(s.target_ns), difference, gap.part_of(s)]
        })
        .collect();
    let names = [&baseline.name, &target.name].map(|name| cut_middle(name, 12));
    let [first, second] = names;
    let of_gap = if has_gap { "of gap" } else { "" };
    let head = [String::new(), first, second, "difference".to_owned(), of_gap.to_owned()];
    let all: Vec<&[String; 5]> = [&head].into_iter().chain(&rows).collect();
    let mut widths = [0; 5];
    for row in &all {
        for (width, cell) in widths.iter_mut().zip(row.iter()) {
            *width = columns(cell).max(*width);
        }
    }
    // Where there is little room, the difference says more than what it is the difference of.
    let wide = 2 + widths.iter().sum::<usize>() + 2 * 4 <= style.columns();
    let shown: &[usize] = if wide { &[1, 2, 3, 4] } else { &[3, 4] };
    let used = 2 + widths[0] + shown.iter().map(|&i| 2 + widths[i]).sum::<usize>() + 2;
    let bar_width = style.columns().saturating_sub(used).min(30);
    let most_ns = shares.iter().map(|s| s.difference_ns().abs()).fold(0.0, f64::max);

    for (i, row) in all.iter().enumerate() {
        let mut line = format!("  {}", pad_right(&row[0], widths[0]));
        for &column in shown {
            line += "  ";
            line += &pad_left(&row[column], widths[column]);
        }
        if let Some(share) = i.checked_sub(1).and_then(|i| shares.get(i)).filter(|_| has_gap && bar_width >= 4) {
            let difference = share.difference_ns();
            // What rounds to nothing in figures is not drawn, either.
            let part = (difference.abs() / most_ns).max(0.0);
            let mut drawn = if part < 0.01 { String::new() } else { bar(part, bar_width) };
            // A phase that works against the gap is drawn lighter.
            if difference * gap_ns < 0.0 {
                drawn = "▒".repeat(columns(&drawn));
            }
            line += &format!("  {}", style.paint(Ink::Bar, &drawn));
        }
        lines.push(line);
    }
    lines
}

/// Mean time per op by phase of any number of targets.
pub(crate) fn all(targets: &[Totals<'_>], noun: &str, style: Style) -> Vec<String> {
    let in_phases = |t: &Totals<'_>| t.schema.phases.iter().filter_map(|&phase| t.phase_per_op_ns(phase)).sum::<f64>();
    let totals = targets.iter().map(|t| in_phases(t) + t.queue_ns().unwrap_or(0.0));
    let totals: Vec<Option<f64>> = totals.map(|ns| Some(ns).filter(|&ns| ns > 0.0)).collect();
    let largest_ns = totals.iter().flatten().copied().fold(0.0, f64::max);
    if largest_ns == 0.0 {
        return Vec::new();
    }
    let times = Times::up_to(largest_ns);
    let cells = |values: Vec<Option<f64>>| values.into_iter().map(|v| maybe(v, |ns| times.show(ns))).collect();
    let mut rows: Vec<Row> = gone_through(targets)
        .into_iter()
        .map(|phase| (phase, targets.iter().map(|t| t.phase_per_op_ns(phase)).collect::<Vec<_>>()))
        .map(|(phase, values)| Row::new(format!("  {}", phase.name), cells(values)))
        .collect();
    if targets.iter().any(|t| t.queue_ns().is_some()) {
        rows.insert(0, Row::new(format!("  {QUEUE}"), cells(targets.iter().map(Totals::queue_ns).collect())));
    }
    rows.push(Row::new("  total", cells(totals)));
    let title = format!("Where the time goes: mean time per {noun} by phase, {}", times.unit().name);
    let heads = targets.iter().map(|t| t.name.clone()).collect();
    let mut lines = wrap(&title, style.columns(), "", "  ");
    lines.extend(Table { corner: String::new(), heads, rows, align: Align::Right }.lines(style.columns()));
    lines
}

/// Mean time per op by phase of one target.
pub(crate) fn spent(target: &Totals<'_>, noun: &str, style: Style) -> Vec<String> {
    let shares = compared(target, target);
    if shares.is_empty() {
        return Vec::new();
    }
    let total_ns: f64 = shares.iter().map(|s| s.target_ns).sum();
    let times = Times::up_to(total_ns);
    let unit = times.unit().name;
    let mut lines =
        wrap(&format!("Where the time goes: mean time per {noun} by phase, {unit}"), style.columns(), "", "  ");
    let names = shares.iter().map(|share| columns(share.name)).fold(8, usize::max);
    for share in &shares {
        let part = if total_ns > 0.0 { share.target_ns / total_ns } else { 0.0 };
        let (time, of_all) = (times.show(share.target_ns), percent(part));
        let label = format!("  {}  {}  {}", pad_right(share.name, names), pad_left(&time, 9), pad_left(&of_all, 7));
        let drawn = bar(part, style.columns().saturating_sub(columns(&label) + 2).min(40));
        lines.push(format!("{label}  {}", style.paint(Ink::Bar, &drawn)));
    }
    lines
}

/// The phases that at least one of the targets went through.
pub(crate) fn gone_through<'a>(targets: impl IntoIterator<Item = &'a Totals<'a>>) -> Vec<Phase> {
    let targets: Vec<_> = targets.into_iter().collect();
    let phases = targets.first().map_or(&[][..], |target| target.schema.phases);
    phases.iter().copied().filter(|&phase| targets.iter().any(|t| t.phase_per_op_ns(phase).is_some())).collect()
}

/// What ops of an open loop wait in before they start. It is no phase of any kind of work: each may have it.
pub(crate) const QUEUE: &str = "queue";

/// The time before ops were started, the phases that at least one of the two went through, and the time outside of them; the
/// first and the last where they are worth a row.
fn compared(baseline: &Totals<'_>, target: &Totals<'_>) -> Vec<Share> {
    let shares = gone_through([baseline, target]).into_iter().map(|phase| Share {
        name: phase.name,
        baseline_ns: baseline.phase_per_op_ns(phase).unwrap_or(0.0),
        target_ns: target.phase_per_op_ns(phase).unwrap_or(0.0),
    });
    let mut shares: Vec<Share> = shares.collect();
    let total_ns: f64 = shares.iter().map(|s| s.baseline_ns.max(s.target_ns)).sum();
    if let (Some(baseline_ns), Some(target_ns)) = (baseline.outside_phases_ns(), target.outside_phases_ns()) {
        // Between phases lie only our own few instructions; less than a hundredth is not worth a row.
        if !shares.is_empty() && baseline_ns.abs().max(target_ns.abs()) > 0.01 * total_ns {
            shares.push(Share { name: "other", baseline_ns, target_ns });
        }
    }
    let queues = [baseline, target].map(Totals::queue_ns);
    if !shares.is_empty() && queues != [None, None] {
        let [baseline_ns, target_ns] = queues.map(Option::unwrap_or_default);
        shares.insert(0, Share { name: QUEUE, baseline_ns, target_ns });
    }
    shares
}

/// A share of the gap; a small one is as good as none.
fn whole_percent(share: f64) -> String {
    // Adding zero turns -0 into 0.
    format!("{:.0} %", (share * 100.0).round() + 0.0)
}

fn is_zero(figure: &str) -> bool {
    figure.bytes().all(|b| b == b'0' || b == b'.')
}
