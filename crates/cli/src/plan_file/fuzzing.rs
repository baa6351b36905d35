//! Fuzzers' entry to plan files; see `crate::fuzzing`.

use super::read::{LONGEST_FILE_BYTES, PlanFile};
use super::{COMMANDS, PlanError, command_of, commands, indulgent, is_planned, table_of};
use super::{understood, understood_with, words, write};
use crate::load::values;
use crate::outcome::Usage;
use crate::{command_line, outcome};
use clap::{Arg, ArgMatches, Command};
use duel_model::{Plan, Stage};
use std::ffi::OsString;

/// What the file is called.
const NAME: &str = "p.toml";
/// The longest excerpt of a line: the line itself, the number before it and a caret behind it.
const LONGEST_EXCERPT_LINE: usize = 130;

/// Any bytes as a plan file of a comparison, a run or a check. What is wrong with it is told with its place, and can be shown.
/// What is accepted is within limits, and comes back from the plan that is written of it.
pub fn plan_file(data: &[u8]) {
    let Some((&kind, data)) = data.split_first() else { return };
    let verb = COMMANDS[usize::from(kind & 0x0f) % COMMANDS.len()];
    let bytes = if kind & 0x10 == 0 { data.to_vec() } else { spelt_out(data) };
    let command = command_of(verb).expect("it takes a plan");
    let read = PlanFile::of_bytes(NAME.to_owned(), bytes.clone());
    let Ok(text) = std::str::from_utf8(&bytes) else {
        assert_eq!(place(&read.expect_err("it is no text"), ""), None);
        return;
    };
    let mut file = match read {
        Ok(file) => file,
        Err(error) if bytes.len() as u64 > LONGEST_FILE_BYTES => return assert_eq!(place(&error, text), None),
        Err(error) => return assert!(place(&error, text).is_some(), "{}", error.sentence),
    };
    if let Err(error) = file.keep_known(command, verb) {
        assert!(place(&error, text).is_some(), "{}", error.sentence);
        return;
    }
    match understood_with(&file, &bare(verb)) {
        // What is missing has no place.
        Err(error) => drop(place(&error, text)),
        Ok(words) => {
            assert_within_limits(&words);
            assert_comes_back(command, verb, &words);
        }
    }
}

/// The place that an error names; it is in the file, and what is shown of it is safe.
fn place(error: &PlanError, text: &str) -> Option<(usize, usize)> {
    let said = outcome::said(&error.sentence);
    assert_eq!(duel_model::sanitize(&said), said, "it cannot be shown as it is");
    assert!(!said.trim().is_empty() && !said.contains(['\n', '\t']), "{said:?}");
    if let Some(excerpt) = &error.excerpt {
        assert_eq!(duel_model::sanitize(excerpt), *excerpt, "it cannot be shown as it is");
        assert!(!excerpt.contains('\t'), "{excerpt:?}");
        let (line, carets) = excerpt.split_once('\n').expect("two lines");
        let length = |line: &str| line.chars().count();
        assert!(length(line) <= LONGEST_EXCERPT_LINE && length(carets) <= length(line) + 2, "{excerpt}");
        assert!(carets.ends_with("^\n") && carets.trim().bytes().all(|byte| byte == b'^'), "{excerpt}");
    }
    let rest = error.sentence.strip_prefix(NAME)?.strip_prefix(':')?;
    let mut parts = rest.splitn(3, ':');
    let mut number = || parts.next().and_then(|part| part.parse::<usize>().ok()).expect("a number");
    let (line, column) = (number(), number());
    assert!(parts.next().is_some_and(|why| !why.trim().is_empty()), "{}", error.sentence);
    let there = text.split('\n').nth(line.checked_sub(1).expect("lines begin with 1")).expect("a line of the file");
    assert!((1..=there.chars().count() + 1).contains(&column), "{} of {there:?}", error.sentence);
    Some((line, column))
}

/// What a plan that is accepted may be at most.
fn assert_within_limits(words: &[OsString]) {
    let flags = command_line::read(words).expect("it was read before");
    let Usage(why) = match flags.plan() {
        Ok(None) => return,
        Ok(Some(plan)) => return assert_within(&plan),
        Err(error) => error,
    };
    panic!("it had a meaning before: {why}");
}

fn assert_within(plan: &Plan) {
    let load = &plan.load;
    assert!((1..=values::MOST_THREADS).contains(&load.threads), "{} threads", load.threads);
    assert!(load.connections > 0 && load.op_timeout_ns > 0 && load.connect_timeout_ns > 0);
    assert!((1..=Plan::MOST_TREATMENTS).contains(&plan.treatments()), "{} treatments", plan.treatments());
    assert!(load.shape.stages.len() <= Stage::MOST, "{} stages", load.shape.stages.len());
    assert!(plan.compare.margin > 0.0 && plan.compare.margin < 1.0, "a margin of {}", plan.compare.margin);
    // A comparison of nothing is `duel` alone, which shows its help.
    for (index, target) in plan.targets.iter().enumerate() {
        assert!(target.name.chars().count() <= 40 && !target.name.chars().any(char::is_control), "{:?}", target.name);
        assert!(plan.targets[..index].iter().all(|earlier| earlier.name != target.name), "{:?} twice", target.name);
    }
}

/// What is written of the words of a command line is read as the same again, and written the same again.
fn assert_comes_back(command: &Command, verb: Option<&str>, words: &[OsString]) {
    let before = matched(verb, words);
    let text = write::written(command, verb, &before).expect("TOML has texts only");
    let mut file = PlanFile::of_bytes(NAME.to_owned(), text.clone().into_bytes())
        .unwrap_or_else(|error| panic!("{}\n{text}", error.sentence));
    file.keep_known(command, verb).unwrap_or_else(|error| panic!("{}\n{text}", error.sentence));
    let again = words::joined(&bare(verb), &file.entries);
    let after = matched(verb, &again);
    let mut is_whole = true;
    for arg in command.get_arguments().filter(|arg| arg.is_positional() || is_planned(arg)) {
        let public = write::values(arg, &before).expect("texts");
        is_whole &= public.iter().map(OsString::from).eq(raw(&before, arg));
        let back: Vec<_> = raw(&after, arg);
        assert!(public.iter().map(OsString::from).eq(back.iter().cloned()), "{arg}: {public:?}, then {back:?}\n{text}");
    }
    assert_eq!(write::written(command, verb, &after).expect("texts"), text);
    // Without its secrets it may be refused.
    if is_whole {
        assert_eq!(understood(&again), Ok(()), "{text}");
    }
}

fn matched(verb: Option<&str>, words: &[OsString]) -> ArgMatches {
    let matches =
        indulgent(command_line::readable()).try_get_matches_from(words).unwrap_or_else(|error| panic!("{error}"));
    if verb.is_none() { matches } else { matches.subcommand().expect("the verb").1.clone() }
}

fn raw(matches: &ArgMatches, arg: &Arg) -> Vec<OsString> {
    matches.get_raw(arg.get_id().as_str()).into_iter().flatten().map(OsString::from).collect()
}

/// The command line that a plan stands on alone.
fn bare(verb: Option<&str>) -> Vec<OsString> {
    ["duel"].into_iter().chain(verb).map(OsString::from).collect()
}

/// Bytes above those of ASCII, each with the one behind it, as words that plans have: a fuzzer does not guess a hundred names of
/// options. All others stand for themselves.
fn spelt_out(data: &[u8]) -> Vec<u8> {
    let (keys, tables, values) = vocabulary();
    let mut text = Vec::new();
    let mut bytes = data.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte < 0x80 {
            text.push(byte);
            continue;
        }
        let which = usize::from(bytes.next().unwrap_or_default());
        let of = |words: &[String]| words[which % words.len()].clone();
        text.extend(match byte & 3 {
            0 => format!("\n{} = ", of(keys)).into_bytes(),
            1 => format!("\n[{}]", of(tables)).into_bytes(),
            _ => of(values).into_bytes(),
        });
    }
    text
}

/// Keys, tables and values of plans.
fn vocabulary() -> &'static (Vec<String>, Vec<String>, Vec<String>) {
    static VOCABULARY: std::sync::OnceLock<(Vec<String>, Vec<String>, Vec<String>)> = std::sync::OnceLock::new();
    VOCABULARY.get_or_init(|| {
        let args = || commands().flat_map(|(_, command)| command.get_arguments()).filter(|arg| is_planned(arg));
        let mut keys: Vec<String> = args().filter_map(Arg::get_long).map(str::to_owned).collect();
        keys.push(super::TARGETS.to_owned());
        let mut tables: Vec<String> = args().filter_map(table_of).collect();
        let possible = args().flat_map(Arg::get_possible_values).map(|value| format!("\"{}\"", value.get_name()));
        let mut values: Vec<String> = VALUES.iter().map(|&value| value.to_owned()).chain(possible).collect();
        for words in [&mut keys, &mut tables, &mut values] {
            words.sort_unstable();
            words.dedup();
        }
        (keys, tables, values)
    })
}

/// Values of which each option takes one.
const VALUES: [&str; 24] = [
    "true",
    "false",
    "7",
    "0.5",
    "\"\"",
    "[]",
    "\"5s\"",
    "\"10%\"",
    "\"1..64\"",
    "\"1,2\"",
    "\"on,off\"",
    "\"10s@100\"",
    "\"a=http://a/\"",
    "\"http://b/\"",
    "[\"http://a/\", \"http://b/\"]",
    "\"https://h/\"",
    "\"a=7\"",
    "\"a=https://u@h/\"",
    "\"A: b\"",
    "\"Authorization: x\"",
    "\"p99<1s\"",
    "\"slower than a by 5%\"",
    "\"h:80:g:81\"",
    "\"a\"",
];
