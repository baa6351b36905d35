//! `duel plan ...`: the plan file of a command line. [`crate::plan_file`] carries it out.

use clap::{Args, CommandFactory, Parser};
use std::ffi::OsString;

/// The command line to write down, parsed as it would be without the word `plan`.
#[derive(Args, Clone)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct PlanWords {
    /// The command line: targets and options of a comparison, or 'run' or 'check' with theirs
    #[arg(value_name = "WORDS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<OsString>,
}

const AFTER_HELP: &str = "\
Prints all options with their values as TOML, defaults written out, and those that are not set as comments. Values of \
header fields that carry secrets are left out; name a file for them: -H @FILE.

Examples:
  duel plan old=https://a/ new=https://b/ -c 100 >plan.toml      write a plan
  duel --plan plan.toml                                          compare as it says
  duel --plan plan.toml -c 200                                   what is typed goes first
  duel plan check https://a/ --critical 'p99<200ms'              with thresholds";

/// To tell of this command: its own words are taken as they come.
#[derive(Parser)]
#[command(
    name = "plan",
    bin_name = "duel plan",
    display_name = "duel-plan",
    about = "Print the plan file of a command line",
    override_usage = "duel plan [run|check] [OPTIONS] [NAME=]URL...",
    disable_help_flag = true
)]
struct Alone {
    #[command(flatten)]
    _words: PlanWords,
}

/// This command as its manual page tells of it: without the global options, which would be words of the command line here.
pub(crate) fn described() -> clap::Command {
    Alone::command()
}
