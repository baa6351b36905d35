//! Which charts a run has, each with the numbers that are drawn and a text for those who cannot see it.

mod courses;
mod factors;
mod latency;
mod level_latency;
mod over_time;
mod percentiles;
mod phases;
mod probes;
mod progress;
mod rate;
mod ratios;
mod search;

use crate::plot::{self, Drawing, Layout, Setting, Texts};
use crate::table::Table;
use crate::totals::{Totals, op_noun, totals};
use duel_model::{Run, Verdict};

/// A chart of a run.
#[derive(Debug)]
pub struct Chart {
    /// Short and stable: names its file.
    id: String,
    title: String,
    /// What is to be seen, in words and figures.
    description: String,
    drawing: Drawing,
    /// The numbers that are drawn, or those between which they were drawn.
    table: Table,
}

impl Chart {
    /// Short and stable, such as `percentiles`: fit for the name of a file.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The chart as an SVG file that needs nothing else. Light or dark, as the reader prefers.
    pub fn svg(&self, layout: Layout) -> String {
        format!("{}\n", plot::draw(&self.drawing, self.texts(), layout, Setting::File))
    }

    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    pub(crate) fn description(&self) -> &str {
        &self.description
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// The chart within a page, whose identifiers end in `suffix`.
    pub(crate) fn inline(&self, layout: Layout, suffix: &str) -> String {
        plot::draw(&self.drawing, self.texts(), layout, Setting::Inline(suffix))
    }

    fn texts(&self) -> Texts<'_> {
        Texts { id: &self.id, title: &self.title, description: &self.description }
    }
}

/// The charts of a run, those left out that there is nothing to draw in.
pub fn charts(run: &Run, verdict: &Verdict) -> Vec<Chart> {
    let subject = Subject { run, verdict, noun: op_noun(run), targets: totals(run) };
    if let Some(experiment) = &verdict.experiment {
        // Over time, and put together, slots of different treatments would make a picture of the order in which they ran.
        return ratios::chart(&subject).into_iter().chain(factors::charts(&subject, experiment)).collect();
    }
    // Courses are laid one over the other: side by side in time, nobody could compare their stages.
    let of_courses = courses::is_drawn(&subject);
    [
        ratios::chart(&subject),
        probes::chart(&subject),
        search::chart(&subject),
        if of_courses { None } else { progress::chart(&subject) },
        if of_courses { courses::rate(&subject) } else { rate::chart(&subject) },
        if of_courses { courses::latency(&subject) } else { latency::chart(&subject) },
        percentiles::chart(&subject),
        phases::chart(&subject),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What charts are drawn from.
struct Subject<'a> {
    run: &'a Run,
    verdict: &'a Verdict,
    /// What one op is called.
    noun: &'static str,
    targets: Vec<Totals<'a>>,
}

impl Subject<'_> {
    /// Names of the targets, as heads of a table.
    fn names(&self) -> Vec<String> {
        self.targets.iter().map(|target| target.name.clone()).collect()
    }

    /// Which of the plan's targets has this name.
    fn index(&self, name: &str) -> usize {
        self.run.plan.targets.iter().position(|target| target.name == name).unwrap_or(0)
    }
}

/// Sentences without those that have nothing to say.
fn sentences(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(". ") + "."
}

/// So many of the points that a curve keeps its shape and the file stays small; the last one is kept.
fn thinned<T: Copy>(points: &[T], most: usize) -> Vec<T> {
    let every = points.len().div_ceil(most.max(1)).max(1);
    let last = points.len().saturating_sub(1);
    points.iter().enumerate().filter(|(i, _)| i % every == 0 || *i == last).map(|(_, point)| *point).collect()
}
