//! `duel ruler`: the embedded test server, for the demonstration and for tests.

use crate::flags::RulerFlags;
use crate::outcome::{Outcome, Usage};
use duel_ruler::child;

/// Serves until standard input ends.
pub(crate) fn serve(ruler: &RulerFlags) -> anyhow::Result<Outcome> {
    let arguments = ruler.arguments.iter().map(|argument| argument.to_string_lossy().into_owned());
    let config = child::ChildConfig::from_args(arguments).map_err(Usage)?;
    child::main(config)?;
    Ok(Outcome::Done)
}
