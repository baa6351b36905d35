//! The targets: names and addresses as they are typed.

use crate::outcome::Usage;
use crate::secrets;
use duel_model::{Plan, Target, sanitize_line};
use std::collections::HashSet;

/// Address of a run that measures the generator itself.
pub(super) const NULL: &str = "null:";

/// Names and addresses; targets without a name are called A, B, C and so on.
pub(super) fn read(typed: &[String]) -> Result<Vec<Target>, Usage> {
    let mut targets: Vec<Target> = Vec::new();
    // A plan file may have a hundred thousand of them: each is not compared with all others.
    let mut names = HashSet::new();
    for (index, typed) in typed.iter().enumerate() {
        let (name, address) = split_name(typed);
        let name = name.map_or_else(|| default_name(index), str::to_owned);
        if name.chars().count() > 40 || name.chars().any(char::is_control) {
            return Err(Usage(format!(
                "'{}' is no usable name of a target; one has at most 40 characters, and no control characters",
                sanitize_line(&name)
            )));
        }
        if !names.insert(name.clone()) {
            return Err(Usage(format!(
                "two targets are called '{}'; give each a name of its own: NAME=URL",
                sanitize_line(&name)
            )));
        }
        let address = if address == "null" { NULL } else { address };
        if address != NULL {
            let is_url = duel_lab::kinds::of_address(address).is_none();
            if let Some(shown) = without_password(address).filter(|_| is_url) {
                return Err(Usage(format!(
                    "'{}' has a user name or a password in it, which would be kept and shown; use -H 'Authorization: \
                     ...' or, to keep it out of the process list, -H @FILE",
                    sanitize_line(&shown)
                )));
            }
            if !address.contains("://") && duel_lab::kinds::of_address(address).is_none() {
                return Err(Usage(format!(
                    "'{}' is neither a command nor an address; {}",
                    sanitize_line(address),
                    meant(address)
                )));
            }
            if let Some(scheme) = unknown_scheme(address) {
                return Err(Usage(format!("duel knows no scheme '{}'; {KINDS_OF_TARGETS}", sanitize_line(scheme))));
            }
            // First, or the blank in what stands in its place would be found fault with.
            let place = address.contains(Plan::LEFT_OUT).then(|| format!("the address of {}", sanitize_line(&name)));
            secrets::refuse_left_out(place)?;
            duel_lab::check_address(&name, address).map_err(|error| Usage(error.to_string()))?;
        }
        let address = match duel_lab::kinds::of_address(address) {
            Some(kind) => kind.without_secrets(address).map_err(|error| Usage(error.to_string()))?,
            None => address.to_owned(),
        };
        targets.push(Target { name, address, host: None });
    }
    Ok(targets)
}

/// What may have been meant by a word that is neither a command nor an address.
fn meant(word: &str) -> String {
    let authority = word.split(['/', '?']).next().unwrap_or_default();
    let (host, port) = authority.rsplit_once(':').map_or((authority, None), |(host, port)| (host, Some(port)));
    let is_host = !host.is_empty()
        && (host == "localhost"
            || host.trim_matches('.').contains('.')
            || port.is_some_and(|port| port.parse::<u16>().is_ok()));
    let address = format!("http://{word}");
    if is_host && duel_lab::check_address("A", &address).is_ok() {
        return format!("did you mean {}?", sanitize_line(&address));
    }
    // A folder is a target by its path, and a path has a slash in it, or it could not be told from a command.
    let path = format!("./{word}");
    if std::fs::exists(&path).unwrap_or(false) && duel_lab::kinds::of_address(&path).is_some() {
        return format!("did you mean {}?", sanitize_line(&path));
    }
    KINDS_OF_TARGETS.to_owned()
}

const KINDS_OF_TARGETS: &str = "a target is a URL (http://, https://, postgres://, mysql://, tcp://), a path with a slash in it \
                                (./FOLDER, /dev/...), or such as openssl: and sqlite:FILE (see duel --help)";

/// The scheme of a URL that is of no kind of target.
fn unknown_scheme(address: &str) -> Option<&str> {
    let (scheme, _) = address.split_once("://")?;
    let is_word = scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c));
    (is_word && !duel_lab::kinds::is_claimed(address)).then_some(scheme)
}

/// `NAME=URL`: what stands before an `=` that comes before any character of a URL's beginning.
fn split_name(typed: &str) -> (Option<&str>, &str) {
    match typed.split_once('=') {
        Some((name, address)) if !name.is_empty() && !name.contains([':', '/', '?']) => (Some(name), address),
        _ => (None, typed),
    }
}

/// The address with dots instead of a user name and password; `None` if it has none.
pub(crate) fn without_password(address: &str) -> Option<String> {
    let (scheme, rest) = address.split_once("://").map_or(("", address), |(scheme, rest)| (scheme, rest));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (_, host) = authority.rsplit_once('@')?;
    let separator = if scheme.is_empty() { "" } else { "://" };
    Some(format!("{scheme}{separator}...@{host}{}", &rest[authority.len()..]))
}

pub(crate) fn default_name(index: usize) -> String {
    let letter = char::from(b'A' + (index % 26) as u8);
    if index < 26 { letter.to_string() } else { format!("{letter}{}", index / 26) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_queries() {
        assert_eq!(split_name("new=https://h/?a=b"), (Some("new"), "https://h/?a=b"));
        assert_eq!(split_name("https://h/?a=b"), (None, "https://h/?a=b"));
        assert_eq!(split_name("=https://h/"), (None, "=https://h/"));
    }

    #[test]
    fn passwords_in_addresses_are_not_shown() {
        assert_eq!(without_password("http://u:s3cr3t@h:1/a@b").as_deref(), Some("http://...@h:1/a@b"));
        assert_eq!(without_password("u:s3c@r3t@h").as_deref(), Some("...@h"));
        assert_eq!(without_password("http://h/a@b"), None);
    }

    #[test]
    fn targets_without_a_name_get_letters() {
        let typed: Vec<String> = (0..28).map(|n| format!("http://h{n}/")).collect();
        let targets = read(&typed).unwrap();
        assert_eq!((targets[0].name.as_str(), targets[27].name.as_str()), ("A", "B1"));
    }
}
