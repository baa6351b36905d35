//! How targets are started anew in the course of a comparison, and what of the commands for it is kept and shown.

use crate::{Nanos, Plan, SECOND_NS, is_secret_field, is_secret_name, without_secrets};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How targets are started anew before each round of blocks: what differs between two starts of one program is then part of the
/// noise, and no difference between programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestartPlan {
    /// One for each target that is started anew, in the plan's order; at least one.
    pub commands: Vec<RestartCommand>,
    /// Longest time from the beginning of a command until its target answers again.
    pub timeout_ns: Nanos,
}

/// What starts a target anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestartCommand {
    /// Name of the target.
    pub target: String,
    /// What a shell on this machine is given.
    pub command: String,
}

impl RestartPlan {
    /// Where no other time is typed: systemd gives a service 90 s to stop and 90 s to start (`DefaultTimeoutStopSec=` and
    /// `DefaultTimeoutStartSec=`).
    pub const TIMEOUT_NS: Nanos = 180 * SECOND_NS;

    /// The command of a target; `None`: it stays as it runs.
    pub fn of(&self, target: &str) -> Option<&str> {
        self.commands.iter().find(|command| command.target == target).map(|command| command.command.as_str())
    }

    /// As it may be kept: in place of values whose names say that they are secret stands [`Plan::REDACTED`].
    pub(crate) fn redact(&mut self) {
        self.commands.iter_mut().for_each(|command| command.command = redacted_command(&command.command));
    }

    /// As it may be shown. A secret in a command need not have a name (`mysqladmin -ps3cr3t`), so nothing of it is shown.
    pub(crate) fn leave_out(&mut self) {
        self.commands.iter_mut().for_each(|command| Plan::LEFT_OUT.clone_into(&mut command.command));
    }

    /// Of which targets the command is not whole: a part of it was not kept, or it was left out of what was shown.
    pub(crate) fn incomplete(&self) -> impl Iterator<Item = &str> {
        let is_incomplete = |text: &str| text.contains(Plan::REDACTED) || text.contains(Plan::LEFT_OUT);
        self.commands.iter().filter(move |command| is_incomplete(&command.command)).map(|command| &*command.target)
    }
}

/// A command without the values in it whose names say that they are secret: of variables (`DB_PASSWORD=...`), of options
/// (`--token ...`, `--token=...`), of header fields (`'Authorization: ...'`) and in addresses.
pub fn redacted_command(command: &str) -> String {
    without_secrets(&without(command, &secret_ranges(command)))
}

/// A text that a command has said, without what is secret in the command itself.
pub fn without_secrets_of_command(text: &str, command: &str) -> String {
    let unquoted = |range: &Range<usize>| command[range.clone()].trim_matches(['\'', '"']).to_owned();
    let mut values: Vec<String> = secret_ranges(command).iter().map(unquoted).collect();
    values.retain(|value| !value.is_empty());
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    let text = values.iter().fold(text.to_owned(), |text, value| text.replace(value.as_str(), Plan::REDACTED));
    without_secrets(&text)
}

fn without(text: &str, ranges: &[Range<usize>]) -> String {
    let (mut kept, mut at) = (String::with_capacity(text.len()), 0);
    for range in ranges {
        kept.push_str(&text[at..range.start]);
        kept.push_str(Plan::REDACTED);
        at = range.end;
    }
    kept.push_str(&text[at..]);
    kept
}

/// Where in a command values stand whose names say that they are secret, in rising order. No shell is played here: words end
/// where they would outside of quotes, and a word of several words (`sh -c '...'`) is looked through as a command, too.
fn secret_ranges(command: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut is_value = false;
    for word in words(command) {
        let (text, begin) = (&command[word.clone()], word.start);
        let is_known = |from: usize| command[from..].trim_start_matches(['\'', '"']).starts_with(Plan::REDACTED);
        let (option, was_value) = (text.trim_matches(['\'', '"']), is_value);
        is_value = option.starts_with('-') && !option.contains('=') && is_secret_name(option);
        if was_value && !option.starts_with('-') {
            found.extend((!is_known(begin)).then_some(word));
        } else if let Some(at) = value_of(text) {
            if is_known(begin + at) {
                continue;
            }
            // A quote that was opened before the value ends behind it.
            let is_quoted = text.ends_with(['\'', '"']) && text[..at].matches(&text[text.len() - 1..]).count() % 2 == 1;
            found.push(begin + at..word.end - usize::from(is_quoted));
        } else if let Some(inner) = inside(text) {
            found.extend(secret_ranges(&text[inner.clone()]).into_iter().map(|range| {
                let offset = begin + inner.start;
                range.start + offset..range.end + offset
            }));
        }
    }
    found
}

/// Where the secret value of `name=value`, of `name: value` or of an option that has such a value (`--header='name: value'`) begins.
fn value_of(word: &str) -> Option<usize> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.'\"".contains(c);
    let mark = word.find(|c: char| !is_name(c))?;
    let name = word[..mark].trim_start_matches(['\'', '"', '-']);
    let (value, is_secret) = match (word[mark..].strip_prefix('='), word[mark..].strip_prefix(':')) {
        (Some(value), _) if !is_secret_name(name) => return value_of(value).map(|at| mark + 1 + at),
        (Some(value), _) => (value, true),
        (None, Some(value)) => (value, word.contains(' ') && is_secret_field(name, value)),
        (None, None) => return None,
    };
    let has_value = !value.trim_matches(['\'', '"', ' ']).is_empty();
    (is_secret && has_value).then_some(mark + 1)
}

/// What stands between the quotes of a word that holds several words.
fn inside(word: &str) -> Option<Range<usize>> {
    let quote = word.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let is_whole = word.len() >= 2 && word.ends_with(quote) && word.contains(char::is_whitespace);
    is_whole.then(|| 1..word.len() - 1)
}

/// The words of a command, quotes included.
fn words(command: &str) -> Vec<Range<usize>> {
    let (mut words, mut begin, mut quote) = (Vec::new(), None, None);
    let mut is_escaped = false;
    for (at, c) in command.char_indices() {
        let ends = quote.is_none() && !is_escaped && (c.is_whitespace() || ";|&()<>".contains(c));
        if ends {
            words.extend(begin.take().map(|begin| begin..at));
            continue;
        }
        begin.get_or_insert(at);
        match quote {
            _ if is_escaped => is_escaped = false,
            _ if c == '\\' && quote != Some('\'') => is_escaped = true,
            None if matches!(c, '\'' | '"') => quote = Some(c),
            Some(open) if c == open => quote = None,
            _ => {}
        }
    }
    words.extend(begin.map(|begin| begin..command.len()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_with_secret_names_are_not_kept_and_all_else_is() {
        for (command, kept) in [
            ("systemctl restart nginx", "systemctl restart nginx"),
            ("DB_PASSWORD=s3cr3t ./start &", "DB_PASSWORD=[not kept] ./start &"),
            ("DB_PASSWORD='s3 cr3t' ./start", "DB_PASSWORD=[not kept] ./start"),
            ("export API_KEY=s3cr3t; ./start", "export API_KEY=[not kept]; ./start"),
            ("./start --token s3cr3t --port 80", "./start --token [not kept] --port 80"),
            ("./start --token=s3cr3t >/dev/null 2>&1 &", "./start --token=[not kept] >/dev/null 2>&1 &"),
            ("curl -H 'Authorization: Bearer s3cr3t' http://h/", "curl -H 'Authorization:[not kept]' http://h/"),
            ("wget --header='X-Api-Key: s3cr3t' http://h/", "wget --header='X-Api-Key:[not kept]' http://h/"),
            ("wget '--header=Authorization: Bearer s3cr3t'", "wget '--header=Authorization:[not kept]'"),
            ("ssh web 'cd /srv; PASSWORD=s3cr3t ./start'", "ssh web 'cd /srv; PASSWORD=[not kept] ./start'"),
            // Where the value ends is not known.
            ("env 'PASSWORD=s3cr3t two' ./start", "env 'PASSWORD=[not kept]' ./start"),
            ("curl https://u:s3cr3t@h/restart?token=s3cr3t", "curl https://[left out]@h/restart?token=[left out]"),
            ("./start --no-password --port 80", "./start --no-password --port 80"),
            ("PORT=80 ./start", "PORT=80 ./start"),
            ("", ""),
        ] {
            assert_eq!(redacted_command(command), kept);
            assert_eq!(redacted_command(kept), kept, "once more changes nothing");
        }
    }

    #[test]
    fn what_a_command_says_does_not_repeat_its_secrets() {
        let command = "PASSWORD='s3cr3t' ./start --token abcd1234";
        assert_eq!(
            without_secrets_of_command("login with s3cr3t and abcd1234 failed at http://u:p@h/", command),
            "login with [not kept] and [not kept] failed at http://[left out]@h/"
        );
        assert_eq!(without_secrets_of_command("fine", "./start"), "fine");
    }

    #[test]
    fn what_is_missing_is_told_by_its_target() {
        let command = |target: &str, command: &str| RestartCommand { target: target.into(), command: command.into() };
        let commands = vec![command("A", "./start"), command("B", "TOKEN=x ./start")];
        let mut plan = RestartPlan { commands, timeout_ns: 1 };
        assert_eq!((plan.of("A"), plan.of("C")), (Some("./start"), None));
        assert_eq!(plan.incomplete().count(), 0);
        plan.redact();
        assert_eq!(plan.incomplete().collect::<Vec<_>>(), ["B"]);
        plan.leave_out();
        assert_eq!(plan.incomplete().collect::<Vec<_>>(), ["A", "B"]);
    }

    proptest! {
        #[test]
        fn any_command_can_be_redacted_and_twice_is_once(command in "[a-zA-Z=' \"\\\\;:é-]{0,60}") {
            let once = redacted_command(&command);
            prop_assert_eq!(redacted_command(&once), once);
        }

        #[test]
        fn no_value_of_a_secret_variable_is_kept(before in "[a-z ]{0,20}", value in "[A-Z0-9]{4,20}", after in "[a-z ]{0,20}") {
            let kept = redacted_command(&format!("{before} MY_TOKEN={value} {after}"));
            prop_assert!(!kept.contains(&value), "{}", kept);
        }
    }
}
