//! From a command line to a plan file.

use super::{TARGETS, is_planned, is_typed, table_of};
use crate::load::targets;
use crate::outcome::Usage;
use clap::{Arg, ArgAction, ArgMatches, Command};
use duel_model::{Plan, is_secret_field, is_secret_name, public_address, redacted_command};
use std::any::TypeId;
use std::ffi::OsStr;
use std::fmt::Write;

/// The plan file of a command line: each option with its value, those with a fixed default included, and those that are
/// not set as comments. Values that carry secrets are left out.
///
/// # Errors
///
/// A value that is no text (TOML has no other bytes).
pub(crate) fn written(command: &Command, verb: Option<&str>, matches: &ArgMatches) -> Result<String, Usage> {
    let called = verb.map_or_else(|| "duel".to_owned(), |verb| format!("duel {verb}"));
    let mut text = format!(
        "# A plan for '{called}', made by duel {}: {called} --plan FILE\n\
         # What is typed beside it goes first. A line with a # in front sets nothing.\n",
        env!("CARGO_PKG_VERSION")
    );
    let targets = command.get_positionals().next();
    let named = targets.map_or(Ok(Vec::new()), |arg| values(arg, matches))?;
    let named: Vec<String> = named.iter().map(|name| quoted(name)).collect();
    let mark = if named.is_empty() { "# " } else { "" };
    let _ = writeln!(
        text,
        "\n# Targets as [NAME=]URL; the first is the baseline\n{mark}{TARGETS} = [{}]",
        named.join(", ")
    );

    let options: Vec<&Arg> = command.get_arguments().filter(|arg| is_planned(arg)).collect();
    let mut tables: Vec<Option<String>> = vec![None];
    for table in options.iter().map(|arg| table_of(arg)) {
        if !tables.contains(&table) {
            tables.push(table);
        }
    }
    for table in tables {
        let mut lines = String::new();
        for arg in options.iter().filter(|arg| table_of(arg) == table) {
            let is_shown = !arg.is_hide_set() || is_typed(matches, arg.get_id().as_str());
            if is_shown {
                lines.push_str(&entry(arg, matches)?);
            }
        }
        if !lines.is_empty() {
            if let Some(name) = &table {
                let _ = write!(text, "\n[{name}]");
            }
            text.push('\n');
            text.push_str(&lines);
        }
    }
    Ok(text)
}

/// An option's explanation and value.
fn entry(arg: &Arg, matches: &ArgMatches) -> Result<String, Usage> {
    let name = arg.get_long().unwrap_or_default();
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let mut possible = arg.get_possible_values();
    possible.retain(|_| !matches!(arg.get_action(), ArgAction::SetTrue));
    let possible: Vec<String> = possible.iter().map(|value| value.get_name().to_owned()).collect();
    let choice = if possible.is_empty() { String::new() } else { format!(": {}", possible.join(", ")) };
    let line = match arg.get_action() {
        ArgAction::SetTrue => format!("{name} = {}", matches.get_flag(arg.get_id().as_str())),
        action => {
            let values: Vec<String> = values(arg, matches)?.iter().map(|value| literal(arg, value)).collect();
            match (action, values.as_slice()) {
                (_, []) => format!("# {name} = {}", placeholder(arg)),
                (ArgAction::Set, [one]) => format!("{name} = {one}"),
                // An option that may stand without a value, and does.
                (_, [one]) if one == "\"\"" && needs_no_value(arg) => format!("{name} = true"),
                (_, all) => format!("{name} = [{}]", all.join(", ")),
            }
        }
    };
    Ok(format!("{}{line}\n", comment(&format!("{help}{choice}"))))
}

/// Lines of a comment, none longer than 100 columns where words allow that.
fn comment(text: &str) -> String {
    let mut lines = vec![String::from("#")];
    for word in text.split_whitespace() {
        let line = lines.last_mut().filter(|line| line.chars().count() + 1 + word.chars().count() <= 100);
        match line {
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(format!("# {word}")),
        }
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

fn needs_no_value(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|count| count.min_values() == 0)
}

/// What stands in a comment for a value that is not set.
fn placeholder(arg: &Arg) -> String {
    let names: Vec<&str> = arg.get_value_names().unwrap_or_default().iter().map(clap::builder::Str::as_str).collect();
    let name = if is_number(arg) { names.join(" ") } else { quoted(&names.join(" ")) };
    if matches!(arg.get_action(), ArgAction::Append) { format!("[{name}]") } else { name }
}

/// The values of an option as they were typed, secrets left out.
pub(super) fn values(arg: &Arg, matches: &ArgMatches) -> Result<Vec<String>, Usage> {
    let raw = matches.get_raw(arg.get_id().as_str()).into_iter().flatten();
    raw.map(|value: &OsStr| {
        let text = value.to_str().ok_or_else(|| {
            let name = arg.get_long().map_or_else(|| TARGETS.to_owned(), |long| format!("--{long}"));
            Usage(format!("{name}: '{}' is no text in UTF-8, which TOML is", value.to_string_lossy()))
        })?;
        Ok(public(arg, text))
    })
    .collect()
}

/// A value without its secret. Where a file is named, its name is none.
fn public(arg: &Arg, value: &str) -> String {
    let option = arg.get_long().unwrap_or_default();
    let is_file = arg.get_value_names().is_some_and(|names| names.iter().any(|name| name.ends_with("FILE")));
    let header = value.split_once(':').map(|(name, value)| (name.trim(), value));
    match header {
        Some((name, content)) if option == "header" && !value.starts_with('@') && is_secret_field(name, content) => {
            format!("{name}: {}", Plan::REDACTED)
        }
        _ if is_secret_name(option) && !is_file => Plan::REDACTED.to_owned(),
        _ if has_password(value) => Plan::REDACTED.to_owned(),
        _ if option == "restart" => match value.split_once('=') {
            Some((name, command)) => format!("{name}={}", redacted_command(command)),
            None => redacted_command(value),
        },
        // A body is the request itself; without it the plan would mean another one.
        _ if option == "body" => value.to_owned(),
        _ => public_address(value),
    }
}

/// Whether an address, as it is or behind a name, has a password in it.
fn has_password(value: &str) -> bool {
    let Some((_, rest)) = value.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':')) && targets::without_password(value).is_some()
}

/// A value as TOML: numbers bare, all else in quotes.
fn literal(arg: &Arg, value: &str) -> String {
    let is_plain = value == "0"
        || (!value.starts_with('0')
            && !value.is_empty()
            && value.len() <= 18
            && value.chars().all(|c| c.is_ascii_digit()))
        || value.parse::<f64>().is_ok_and(|number| number.to_string() == value && value.contains('.'));
    if is_number(arg) && is_plain { value.to_owned() } else { quoted(value) }
}

fn is_number(arg: &Arg) -> bool {
    let id = arg.get_value_parser().type_id();
    let numbers =
        [TypeId::of::<u16>(), TypeId::of::<u32>(), TypeId::of::<u64>(), TypeId::of::<usize>(), TypeId::of::<f64>()];
    numbers.iter().any(|number| id == *number)
}

/// A basic string of TOML 1.0: quotes, backslashes and control characters are escaped.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
