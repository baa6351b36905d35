//! A run in the forms that other programs read. A file for each form; none decides anything.

mod highcharts;

use duel_model::Run;

/// A form that other programs read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Requests done per half second, as points of Highcharts series.
    Highcharts,
}

impl Format {
    /// All that this build can write.
    pub const ALL: &[Self] = &[Self::Highcharts];

    /// The form's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Highcharts => "highcharts",
        }
    }
}

/// The run in this form; `only` is the number of the only target to write.
pub fn export(run: &Run, format: Format, only: Option<usize>) -> String {
    match format {
        Format::Highcharts => highcharts::highcharts(run, only),
    }
}
