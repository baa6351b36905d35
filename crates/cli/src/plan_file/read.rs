//! From a file to its entries, each with its place.

use super::place::PlanError;
use super::{CHECK, TARGETS, commands, is_planned, table_of};
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, Command};
use duel_model::{sanitize_line, web};
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A plan of all options with all their explanations has about 10 kB.
pub(super) const LONGEST_FILE_BYTES: u64 = 1 << 20;

/// A plan file.
#[derive(Debug)]
pub(super) struct PlanFile {
    name: String,
    text: String,
    /// In the order of the file.
    pub(super) entries: Vec<Entry>,
}

/// A key and what it is set to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) key_span: Range<usize>,
    /// The table that it stands in.
    pub(super) table: Option<String>,
    pub(super) given: Given,
}

/// What a key is set to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Given {
    Switch(bool),
    /// A single value, or those of a list.
    Values {
        is_list: bool,
        values: Vec<Value>,
    },
}

/// A value as it would be typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) typed: String,
    pub(super) span: Range<usize>,
}

impl PlanFile {
    pub(super) fn read(path: &Path) -> Result<Self, PlanError> {
        let name = path.to_string_lossy().into_owned();
        let cannot = |why: &str| cannot_read(&name, why);
        let mut bytes = Vec::new();
        std::fs::File::open(path)
            .and_then(|file| file.take(LONGEST_FILE_BYTES + 1).read_to_end(&mut bytes))
            .map_err(|error| cannot(&error.to_string()))?;
        Self::of_bytes(name, bytes)
    }

    /// The same of what is in the file, of which a byte more than the longest is enough.
    pub(super) fn of_bytes(name: String, bytes: Vec<u8>) -> Result<Self, PlanError> {
        let cannot = |why: &str| cannot_read(&name, why);
        if bytes.len() as u64 > LONGEST_FILE_BYTES {
            return Err(cannot("no plan is longer than 1 MiB"));
        }
        let text = String::from_utf8(bytes).map_err(|_| cannot("it is no text in UTF-8"))?;
        Self::parse(&name, text)
    }

    pub(super) fn parse(name: &str, text: String) -> Result<Self, PlanError> {
        let mut file = Self { name: name.to_owned(), text, entries: Vec::new() };
        let text = file.text.clone();
        let root = DeTable::parse(&text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            file.error_at(span, &format!("this is no TOML: {}", sanitize_line(&error.message().replace('\n', ", "))))
        })?;
        file.collect(root.get_ref(), None)?;
        file.entries.sort_by_key(|entry| entry.key_span.start);
        Ok(file)
    }

    fn collect(&mut self, table: &DeTable<'_>, name: Option<&str>) -> Result<(), PlanError> {
        for (key, value) in table {
            let (word, key_span) = (key.get_ref().to_string(), key.span());
            if let DeValue::Table(inner) = value.get_ref() {
                if name.is_some() || word == TARGETS {
                    let sentence = format!("'{}' cannot be a table", sanitize_line(&word));
                    return Err(PlanError::at(&self.name, &self.text, &key_span, hides(&word), &sentence));
                }
                self.known_table(&word, &key_span)?;
                self.collect(inner, Some(&word))?;
                continue;
            }
            let given = given(value).map_err(|(span, what)| {
                let hides = hides(&word);
                let word = sanitize_line(&word);
                let sentence = format!("{word} is set to {what}; a plan has texts, numbers, true, false and lists");
                PlanError::at(&self.name, &self.text, &span, hides, &sentence)
            })?;
            self.entries.push(Entry { key: word, key_span, table: name.map(str::to_owned), given });
        }
        Ok(())
    }

    fn known_table(&self, word: &str, span: &Range<usize>) -> Result<(), PlanError> {
        let known = tables();
        if known.iter().any(|table| table == word) {
            return Ok(());
        }
        let known: Vec<String> = known.iter().map(|table| format!("[{table}]")).collect();
        let sentence = format!("there is no table [{}] in a plan; there is {}", sanitize_line(word), known.join(", "));
        Err(self.error_at(span.clone(), &sentence))
    }

    /// Drops what is for `duel check` alone and what changes nothing, and refuses keys that are no options of this command or
    /// cannot be set so.
    pub(super) fn keep_known(&mut self, command: &Command, verb: Option<&str>) -> Result<(), PlanError> {
        let is_checked = |entry: &Entry| entry.table.as_deref() == Some(CHECK) && verb != Some(CHECK);
        let is_any = |entry: &Entry| commands().any(|(_, command)| option(command, &entry.key).is_some());
        self.entries.retain(|entry| !(is_checked(entry) && is_any(entry)));
        self.entries.retain(|entry| option(command, &entry.key).is_some() || !is_default_elsewhere(entry));
        for (index, entry) in self.entries.iter().enumerate() {
            let sentence = if self.entries[..index].iter().any(|earlier| earlier.key == entry.key) {
                Some(format!("{} is set twice", sanitize_line(&entry.key)))
            } else if entry.key == TARGETS {
                matches!(entry.given, Given::Switch(_))
                    .then(|| "targets are texts such as \"web=http://h/\"".to_owned())
            } else {
                match option(command, &entry.key) {
                    None => Some(unknown(command, verb, &entry.key)),
                    Some(arg) => misfit(arg, &entry.given),
                }
            };
            if let Some(sentence) = sentence {
                return Err(self.error_at(entry.key_span.clone(), &sentence));
            }
        }
        // Typed, a default would exclude what excludes its option; left out, it means the same.
        self.entries.retain(|entry| !option(command, &entry.key).is_some_and(|arg| is_default(arg, &entry.given)));
        Ok(())
    }

    /// An error at a place of this file.
    pub(super) fn error_at(&self, span: Range<usize>, sentence: &str) -> PlanError {
        let holds = |entry: &&Entry| {
            entry.key_span == span
                || match &entry.given {
                    Given::Switch(_) => false,
                    Given::Values { values, .. } => values.iter().any(|value| value.span == span),
                }
        };
        let hides = self.entries.iter().find(holds).is_some_and(|entry| hides(&entry.key));
        PlanError::at(&self.name, &self.text, &span, hides, sentence)
    }
}

fn cannot_read(name: &str, why: &str) -> PlanError {
    PlanError::nowhere(&format!("cannot read the plan {}: {why}", sanitize_line(name)))
}

/// Whether values of this key may be secrets without a name that tells it: a header field, a body, a field of a form.
fn hides(key: &str) -> bool {
    ["header", "body", "form", "field", "user", "redfish"].contains(&key)
}

/// The option that a key is the name of.
pub(super) fn option<'c>(command: &'c Command, key: &str) -> Option<&'c Arg> {
    command.get_arguments().find(|arg| is_planned(arg) && arg.get_long() == Some(key))
}

/// Whether a key is an option of another command, set to what it is anyhow: plans are written with all defaults, and one
/// of a comparison is of use to a check, too.
fn is_default_elsewhere(entry: &Entry) -> bool {
    commands().any(|(_, command)| option(command, &entry.key).is_some_and(|arg| is_default(arg, &entry.given)))
}

/// Whether an option is set to what it is anyhow.
fn is_default(arg: &Arg, given: &Given) -> bool {
    match given {
        Given::Switch(is_set) => !is_set,
        Given::Values { values, .. } => {
            let typed = || values.iter().map(|value| value.typed.as_str());
            // Plans of earlier versions have those of the web with their defaults, whatever the targets are.
            let declared = web::SCHEMA.param(arg.get_id().as_str());
            typed().eq(arg.get_default_values()) || declared.is_some_and(|param| typed().eq([param.default]))
        }
    }
}

/// The tables that options are written to, of all commands that take a plan.
fn tables() -> Vec<String> {
    let mut tables: Vec<String> = Vec::new();
    for (_, command) in commands() {
        for table in command.get_arguments().filter(|arg| is_planned(arg)).filter_map(table_of) {
            if !tables.contains(&table) {
                tables.push(table);
            }
        }
    }
    tables
}

/// What a value would be typed as; where that cannot be, its place and what it is.
fn given(value: &Spanned<DeValue<'_>>) -> Result<Given, (Range<usize>, &'static str)> {
    Ok(match value.get_ref() {
        DeValue::Boolean(is_set) => Given::Switch(*is_set),
        DeValue::Array(array) => {
            Given::Values { is_list: true, values: array.iter().map(single).collect::<Result<_, _>>()? }
        }
        _ => Given::Values { is_list: false, values: vec![single(value)?] },
    })
}

fn single(value: &Spanned<DeValue<'_>>) -> Result<Value, (Range<usize>, &'static str)> {
    let typed = match value.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Integer(_) => return Err((value.span(), "a number that is not decimal")),
        DeValue::Boolean(_) => return Err((value.span(), "true or false within a list")),
        DeValue::Datetime(_) => return Err((value.span(), "a date")),
        DeValue::Array(_) => return Err((value.span(), "a list within a list")),
        DeValue::Table(_) => return Err((value.span(), "a table")),
    };
    Ok(Value { typed, span: value.span() })
}

fn unknown(command: &Command, verb: Option<&str>, key: &str) -> String {
    let called = |verb: Option<&str>| verb.map_or_else(|| "duel".to_owned(), |verb| format!("duel {verb}"));
    let shown = sanitize_line(key);
    let elsewhere = commands().find(|(_, other)| option(other, key).is_some());
    if let Some((other, _)) = elsewhere {
        return format!("{shown} has no meaning for '{}'; it is an option of '{}'", called(verb), called(other));
    }
    let similar = similar(command, key).map(|name| format!("; a similar key exists: {name}"));
    format!("there is no option --{shown}{}", similar.unwrap_or_default())
}

/// What clap takes for the option that was meant.
fn similar(command: &Command, key: &str) -> Option<String> {
    let words = [command.get_name().to_owned(), format!("--{key}")];
    let error = super::indulgent(command.clone()).try_get_matches_from(words).err()?;
    let suggested = match error.get(ContextKind::SuggestedArg)? {
        ContextValue::String(one) => one.clone(),
        ContextValue::Strings(all) => all.first()?.clone(),
        _ => return None,
    };
    Some(suggested.trim_start_matches('-').to_owned())
}

/// What is wrong with the kind of a value.
fn misfit(arg: &Arg, given: &Given) -> Option<String> {
    let name = arg.get_long()?;
    let needs_no_value = arg.get_num_args().is_some_and(|count| count.min_values() == 0);
    match (arg.get_action(), given) {
        (ArgAction::SetTrue, Given::Values { .. }) => Some(format!("{name} is true or false")),
        (ArgAction::SetTrue, Given::Switch(_)) | (ArgAction::Append, Given::Values { .. }) => None,
        (_, Given::Switch(_)) if !needs_no_value => Some(format!("{name} takes a value, not true or false")),
        (ArgAction::Set, Given::Values { is_list: true, .. }) => {
            Some(format!("{name} takes a single value, not a list"))
        }
        _ => None,
    }
}
