//! A run in the forms that other programs read. A file for each form; none decides anything.

mod columns;
mod csv;
mod hgrm;
mod highcharts;
mod junit;
mod ndjson;
#[cfg(feature = "parquet")]
mod parquet;

use duel_model::{Run, Verdict};

/// A form that other programs read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A row for each slot, named columns with units.
    Csv,
    /// The whole run as one document, schema `duel/1`.
    Json,
    /// A line for each slot: the columns of [`Format::Csv`] as JSON.
    Ndjson,
    /// The response times of one target as HdrHistogram's tools print percentiles.
    Hgrm,
    /// Requests done per half second, as points of Highcharts series.
    Highcharts,
    /// The verdict as test cases, as CI servers read them.
    Junit,
    /// The columns of [`Format::Csv`], typed, in an Apache Parquet file. Builds may leave it out.
    Parquet,
}

impl Format {
    /// All of them.
    pub const ALL: &[Self] =
        &[Self::Csv, Self::Json, Self::Ndjson, Self::Hgrm, Self::Highcharts, Self::Junit, Self::Parquet];

    /// The form's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Ndjson => "ndjson",
            Self::Hgrm => "hgrm",
            Self::Highcharts => "highcharts",
            Self::Junit => "junit",
            Self::Parquet => "parquet",
        }
    }

    /// Whether it is text, which a terminal may show.
    pub fn is_text(self) -> bool {
        match self {
            Self::Csv | Self::Json | Self::Ndjson | Self::Hgrm | Self::Highcharts | Self::Junit => true,
            Self::Parquet => false,
        }
    }
}

/// Why a run has no such form. Names of targets in it are safe to show.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The form holds one target, and the run has several.
    #[error("{format} holds one target; choose one with --target: {known}")]
    WhichTarget {
        /// Name of the form.
        format: &'static str,
        /// Names of the run's targets.
        known: String,
    },
    /// A target was asked for that the run has not.
    #[error("the run has no target '{asked}'; it has {known}")]
    NoSuchTarget {
        /// What was asked for.
        asked: String,
        /// Names of the run's targets.
        known: String,
    },
    /// One target was asked for, and the form holds the whole run.
    #[error("{0} holds the whole run; leave --target out")]
    WholeRun(&'static str),
    /// There is nothing to write.
    #[error("no response time of {0} was measured: there is nothing to write")]
    Nothing(String),
    /// There are no measured slots to draw.
    #[error("no slot of {0} was measured: there is nothing to write")]
    NotMeasured(String),
    /// This build leaves the form out.
    #[error("this duel was built without {0}: build it with `--features {0}`; csv has the same columns")]
    LeftOut(&'static str),
    /// The file could not be put together.
    #[error("cannot write parquet: {0}")]
    Parquet(String),
}

/// The run in this form. `target` is the name of the only target to write, where the form allows that.
pub fn export(run: &Run, verdict: &Verdict, format: Format, target: Option<&str>) -> Result<Vec<u8>, ExportError> {
    let known = || run.plan.targets.iter().map(|t| crate::text::clean(&t.name)).collect::<Vec<_>>().join(", ");
    let only = match target {
        None => None,
        Some(asked) => {
            let found = run.plan.targets.iter().position(|t| t.name == asked);
            let missing = || ExportError::NoSuchTarget { asked: crate::text::clean(asked), known: known() };
            Some(found.ok_or_else(missing)?)
        }
    };
    let whole_run = || if only.is_some() { Err(ExportError::WholeRun(format.name())) } else { Ok(()) };
    Ok(match format {
        Format::Csv => csv::csv(run, only).into_bytes(),
        Format::Ndjson => ndjson::ndjson(run, only).into_bytes(),
        Format::Highcharts => highcharts::highcharts(run, only)?.into_bytes(),
        Format::Json => {
            whole_run()?;
            crate::json_text(run, verdict, run.explanation.as_ref()).into_bytes()
        }
        Format::Junit => {
            whole_run()?;
            junit::junit(run, verdict).into_bytes()
        }
        Format::Hgrm => {
            let which = ExportError::WhichTarget { format: format.name(), known: known() };
            let index = only.or_else(|| (run.plan.targets.len() == 1).then_some(0)).ok_or(which)?;
            hgrm::hgrm(run, index)?.into_bytes()
        }
        #[cfg(feature = "parquet")]
        Format::Parquet => parquet::parquet(run, only)?,
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => return Err(ExportError::LeftOut(format.name())),
    })
}
