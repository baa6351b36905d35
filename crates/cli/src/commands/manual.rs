//! `duel man`: made from the definitions that the options are read by.

use crate::outcome::{Outcome, Usage};
use crate::{commands, terminal};
use clap::{Args, Command};
use duel_model::sanitize_line;

/// Which page.
#[derive(Args, Clone)]
#[command(after_help = "Example: duel man >/usr/local/share/man/man1/duel.1; duel man run >.../duel-run.1")]
pub(crate) struct ManFlags {
    /// The page of this command [default: that of duel itself]
    #[arg(value_name = "COMMAND")]
    page: Option<String>,
}

/// Prints a manual page of these commands as troff.
pub(crate) fn man(man: &ManFlags, all: Command) -> anyhow::Result<Outcome> {
    let command = command(man.page.as_deref(), all)?;
    let is_hey = command.get_name() == "hey";
    // The pages of commands are called as git's: duel-run(1).
    let title = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .title(title.to_ascii_uppercase())
        .section("1")
        .source(concat!("duel ", env!("CARGO_PKG_VERSION")))
        .manual("duel")
        .render(&mut page)?;
    let page = String::from_utf8(page)?;
    // hey's long flags have one dash, which clap does not know.
    terminal::print(&if is_hey { page.replace("\\-\\-", "\\-") } else { page })?;
    Ok(Outcome::Done)
}

/// The command that a page is about.
fn command(name: Option<&str>, mut all: Command) -> Result<Command, Usage> {
    all.build();
    let Some(name) = name else { return Ok(all) };
    match name {
        "hey" => return Ok(duel_hey::command()),
        "plan" => return Ok(commands::plan::described()),
        _ => {}
    }
    let found = all.find_subcommand(name).filter(|command| !command.is_hide_set());
    found.cloned().ok_or_else(|| Usage(format!("there is no command '{}'", sanitize_line(name))))
}
