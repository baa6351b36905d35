//! `duel ruler`: the embedded test server, for the demonstration and for tests.

use crate::outcome::{Outcome, Usage};
use clap::Args;
use duel_ruler::child;
use std::ffi::OsString;

/// Arguments of the ruler, parsed by itself.
#[derive(Args, Clone)]
pub(crate) struct RulerFlags {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<OsString>,
}

/// Serves until standard input ends.
pub(crate) fn serve(ruler: &RulerFlags) -> anyhow::Result<Outcome> {
    let arguments = ruler.arguments.iter().map(|argument| argument.to_string_lossy().into_owned());
    let config = child::ChildConfig::from_args(arguments).map_err(Usage)?;
    child::main(config)?;
    Ok(Outcome::Done)
}
