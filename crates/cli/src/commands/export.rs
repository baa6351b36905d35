//! `duel export RUN --format FORM`: an earlier run for other programs.

use crate::deliver::{Destination, deliver};
use crate::flags::{ExportFlags, OutputFlags};
use crate::keep;
use crate::outcome::{Outcome, Usage};
use duel_report::ExportError;

/// Writes an earlier run, judged again, in the form that was asked for.
pub(crate) fn export(export: &ExportFlags, output: &OutputFlags) -> anyhow::Result<Outcome> {
    if output.json {
        return Err(
            Usage("--json prints results; for the document of a run: duel export RUN --format json".into()).into()
        );
    }
    let to = export.out.as_deref().map_or(Ok(Destination::Output), Destination::of)?;
    let run = keep::open_to_read(output)?.load(&export.run.name)?;
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
