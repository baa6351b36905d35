//! Secrets that a plan of the archive does not hold, and what is refused without them.

use crate::outcome::Usage;
use clap::Args;
use duel_model::{Plan, sanitize_line};

/// What an archived plan does not hold.
#[derive(Args, Clone)]
pub(crate) struct SecretFlags {
    /// Header field whose value was not kept because it is a secret, repeatable; @FILE reads fields from a file
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
}

/// Refuses a plan in which something is missing that was not kept, or was left out of what was shown.
pub(crate) fn refuse_missing_secrets(plan: &Plan) -> Result<(), Usage> {
    match plan.missing_secrets().as_slice() {
        [] => refuse_left_out(plan.left_out()),
        missing => Err(Usage(format!(
            "the values of {} were not kept, because they are secrets; give them again with -H 'Name: value' or -H @FILE",
            missing.join(", ")
        ))),
    }
}

/// Refuses a plan that starts targets anew by commands of which something is missing.
pub(crate) fn refuse_missing_commands(plan: &Plan) -> Result<(), Usage> {
    let names: Vec<String> = plan.missing_commands().into_iter().map(sanitize_line).collect();
    match names.first() {
        None => Ok(()),
        Some(first) => Err(Usage(format!(
            "the commands that start {} anew were not kept whole, because of the secrets in them; give them again with --restart \
             {first}='...'",
            names.join(", ")
        ))),
    }
}

/// Refuses what was copied from an output that left a secret out of this place.
pub(crate) fn refuse_left_out(place: Option<String>) -> Result<(), Usage> {
    place.map_or(Ok(()), |place| {
        let mark = Plan::LEFT_OUT;
        Err(Usage(format!("a secret was left out of {place} when it was shown; write it in the place of '{mark}'")))
    })
}
