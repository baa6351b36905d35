//! `duel completions`: made from the definitions that the options are read by, and for hey from the table of its flags.

use crate::outcome::Outcome;
use crate::terminal;
use anyhow::Context;
use clap::Args;
use clap_complete::Shell;

/// For which shell.
#[derive(Args, Clone)]
#[command(after_help = "Example: duel completions bash >/etc/bash_completion.d/duel")]
pub(crate) struct CompletionsFlags {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints a shell's completions of these commands.
pub(crate) fn completions(flags: &CompletionsFlags, mut all: clap::Command) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(flags.shell, &mut all, "duel", &mut script);
    let script = String::from_utf8(script)?;
    let script = as_hey_writes(flags.shell, &script).context("hey's part of the completions is not found")?;
    terminal::print(&script)?;
    Ok(Outcome::Done)
}

/// hey's long flags have one dash, and who types one dash is offered only what has one. clap writes two, so they are taken
/// out of hey's part of the script.
fn as_hey_writes(shell: Shell, script: &str) -> Option<String> {
    let (begin, end) = match shell {
        Shell::Bash => ("duel__subcmd__hey)\n            opts=", "\n            ;;"),
        Shell::Zsh => ("\n(hey)\n", "\n;;"),
        Shell::Elvish => ("&'duel;hey'= {", "\n        }"),
        Shell::PowerShell => ("'duel;hey' {", "\n        }"),
        Shell::Fish => return Some(fish(script)),
        _ => return Some(script.to_owned()),
    };
    let (before, part) = script.split_once(begin)?;
    let (part, after) = part.split_once(end)?;
    let mut part = one_dash(part);
    if shell == Shell::Zsh {
        // Nor are its letters put together, nor is a value put behind one without an equals sign.
        part = part.replacen("\"${_arguments_options[@]}\"", "-S -C", 1).replace("+[", "=[");
    }
    Some([before, begin, &part, end, after].concat())
}

/// The text with one dash before each long option.
fn one_dash(text: &str) -> String {
    let mut parts = text.split("--");
    let mut one_dash = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_option = part.starts_with(|c: char| c.is_ascii_alphabetic());
        one_dash += if is_option { "-" } else { "--" };
        one_dash += part;
    }
    one_dash
}

/// fish has a letter of its own for such options. A single letter gets it as well: behind `-d` fish would look for nothing but
/// the value of `-d`, and not for `-disable-keepalive`.
fn fish(script: &str) -> String {
    let lines = script.split_inclusive('\n').map(|line| {
        let is_hey = line.starts_with("complete -c duel -n \"__fish_duel_using_subcommand hey\" ");
        if is_hey { line.replacen(" -l ", " -o ", 1).replacen(" -s ", " -o ", 1) } else { line.to_owned() }
    });
    lines.collect()
}
