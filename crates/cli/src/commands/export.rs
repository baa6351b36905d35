//! `duel export RUN --format FORM`: an earlier run for other programs.

use crate::deliver::{Destination, deliver};
use crate::keep;
use crate::keep::RunName;
use crate::outcome::{Outcome, Usage};
use crate::output::OutputFlags;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use duel_report::{ExportError, Format};
use std::path::PathBuf;

/// Options of an export.
#[derive(Args, Clone)]
pub(crate) struct ExportFlags {
    #[command(flatten)]
    pub(crate) run: RunName,
    /// The form. csv, ndjson and parquet hold a row for each slot, json the document of --json, hgrm percentiles for
    /// HdrHistogram's plotter, junit the verdict as test cases, highcharts lines `[seconds, requests],` to paste between the
    /// brackets of a series' `data: [...]`: load time, and requests that ended since the line before
    #[arg(short = 'f', long, value_name = "FORM", value_parser = forms())]
    pub(crate) format: Format,
    /// Write to this file; - is standard output [default: -]
    #[arg(short = 'o', value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Only this target; hgrm holds one
    #[arg(long, value_name = "NAME")]
    pub(crate) target: Option<String>,
    /// Replace a file that is there
    #[arg(long)]
    pub(crate) force: bool,
}

/// The forms, by name.
fn forms() -> impl TypedValueParser<Value = Format> {
    let names = Format::ALL.iter().map(|format| format.name());
    PossibleValuesParser::new(names).map(|name| {
        let found = Format::ALL.iter().find(|format| format.name() == name);
        found.copied().unwrap_or(Format::Json)
    })
}

/// Writes an earlier run, judged again, in the form that was asked for.
pub(crate) fn export(export: &ExportFlags, output: &OutputFlags) -> anyhow::Result<Outcome> {
    if output.json {
        return Err(
            Usage("--json prints results; for the document of a run: duel export RUN --format json".into()).into()
        );
    }
    let to = export.out.as_deref().map_or(Ok(Destination::Output), Destination::of)?;
    let run = keep::load_to_show(&export.run.name, output)?;
    let verdict = duel_lab::judge(&run);
    let bytes =
        duel_report::export(&run, &verdict, export.format, export.target.as_deref()).map_err(|error| match error {
            ExportError::WhichTarget { .. }
            | ExportError::NoSuchTarget { .. }
            | ExportError::WholeRun(_)
            | ExportError::LeftOut(_) => anyhow::Error::new(Usage(error.to_string())),
            error => anyhow::Error::new(error),
        })?;
    deliver(&to, &bytes, export.format.is_text(), export.force)?;
    Ok(Outcome::Done)
}
