//! `duel man` and `duel completions`: made from the definitions that the options are read by.

use crate::outcome::{Outcome, Usage};
use crate::{flags, terminal};
use clap::Args;
use clap_complete::Shell;
use duel_model::sanitize_line;

/// Which page.
#[derive(Args, Clone)]
#[command(after_help = "Example: duel man >/usr/local/share/man/man1/duel.1; duel man run >.../duel-run.1")]
pub(crate) struct ManFlags {
    /// The page of this command [default: that of duel itself]
    #[arg(value_name = "COMMAND")]
    page: Option<String>,
}

/// For which shell.
#[derive(Args, Clone)]
#[command(after_help = "Example: duel completions bash >/etc/bash_completion.d/duel")]
pub(crate) struct CompletionsFlags {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints a manual page as troff.
pub(crate) fn man(man: &ManFlags) -> anyhow::Result<Outcome> {
    let mut all = flags::command();
    all.build();
    let command = match &man.page {
        None => all,
        Some(name) => {
            let found = all.find_subcommand(name).filter(|command| !command.is_hide_set());
            found.cloned().ok_or_else(|| Usage(format!("there is no command '{}'", sanitize_line(name))))?
        }
    };
    // The pages of commands are called as git's: duel-run(1).
    let title = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .title(title.to_ascii_uppercase())
        .section("1")
        .source(concat!("duel ", env!("CARGO_PKG_VERSION")))
        .manual("duel")
        .render(&mut page)?;
    terminal::print_bytes(&page)?;
    Ok(Outcome::Done)
}

/// Prints a shell's completions.
pub(crate) fn completions(flags: &CompletionsFlags) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(flags.shell, &mut flags::command(), "duel", &mut script);
    terminal::print_bytes(&script)?;
    Ok(Outcome::Done)
}
