//! Text that came from elsewhere, made safe to show.

use crate::without_secrets;

/// Replaces control characters (terminal escapes among them) and bidirectional overrides by `�`; keeps `\n` and `\t`.
///
/// Servers, certificates and file names are hostile input: what they say may end up on a terminal.
pub fn sanitize(text: &str) -> String {
    text.chars().map(|c| if c == '\n' || c == '\t' || !is_unsafe(c) { c } else { '\u{fffd}' }).collect()
}

/// As [`sanitize`], for one line, without the secrets of addresses in it ([`without_secrets`]): newlines and tabs become
/// spaces, and at most 300 characters are kept, `…` behind them where it was cut.
///
/// All that others have said goes through here before it is kept or shown. Secrets go before it is cut: half of an address
/// no longer tells that there was a password in it.
pub fn sanitize_line(text: &str) -> String {
    let text = without_secrets(text);
    let mut line: String = text
        .chars()
        .take(LONGEST_LINE)
        .map(|c| match c {
            '\n' | '\t' | '\r' => ' ',
            c if is_unsafe(c) => '\u{fffd}',
            c => c,
        })
        .collect();
    if text.chars().nth(LONGEST_LINE).is_some() {
        line.push('…');
    }
    line
}

/// Most characters of a line: four lines of a terminal. A server may send 256 KiB of a field, each of which would be kept
/// with every slot and shown in every report; who reads one knows it by its beginning.
const LONGEST_LINE: usize = 300;

/// A word as a POSIX shell has to be given it.
///
/// Within single quotes every character stands for itself except the single quote (POSIX.1-2024, 2.2.2), which is
/// therefore put between a closing and an opening one. Words of plain characters stay readable.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./_-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Words as a line for a POSIX shell; `None` where one cannot be shown whole: it has control characters, or is longer than
/// what a line keeps.
pub(crate) fn shell_line(words: &[String]) -> Option<String> {
    let is_whole = |word: &String| !word.chars().any(is_unsafe) && word.chars().nth(LONGEST_LINE).is_none();
    let whole = words.iter().all(is_whole);
    whole.then(|| words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" "))
}

/// With a capital letter in front, as sentences begin.
pub fn capitalized(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_do_not_survive() {
        let shown = sanitize_line("nginx\x1b]0;owned\x07\x1b[2J\u{9b}31m\u{202e}ok\nnext");
        assert!(!shown.contains(['\x1b', '\x07', '\u{9b}', '\u{202e}', '\n']), "{shown:?}");
        assert!(shown.ends_with("ok next"));
        assert!(sanitize_line(&"x".repeat(1000)).chars().count() == 301);
    }

    #[test]
    fn a_password_goes_before_its_address_is_cut() {
        let long = format!("the redirect to 'https://user:{}@h/' leads nowhere", "s3cr3t".repeat(100));
        assert_eq!(sanitize_line(&long), "the redirect to 'https://[left out]@h/' leads nowhere");
    }

    #[test]
    fn a_word_stays_one_word() {
        for (word, quoted) in [
            ("A=https://a.example/f", "A=https://a.example/f"),
            ("", "''"),
            ("a b", "'a b'"),
            ("A=https://a/?x=1&y=$(reboot)", "'A=https://a/?x=1&y=$(reboot)'"),
            ("it's", "'it'\\''s'"),
            ("';rm -rf /;'", "''\\'';rm -rf /;'\\'''"),
            ("~root", "'~root'"),
            ("#x", "'#x'"),
            ("a\\b", "'a\\b'"),
        ] {
            assert_eq!(shell_word(word), quoted);
        }
    }

    #[test]
    fn a_line_is_shown_whole_or_not_at_all() {
        let line = |words: &[&str]| shell_line(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(line(&["duel", "a b"]).as_deref(), Some("duel 'a b'"));
        assert_eq!(line(&["duel", "a\x1b[2J"]), None);
        assert_eq!(line(&["duel", &"x".repeat(301)]), None);
    }

    proptest::proptest! {
        #[test]
        fn the_shell_reads_back_what_was_meant(words in proptest::collection::vec("[ -~äß€]{0,12}", 1..4)) {
            let line = shell_line(&words).unwrap();
            proptest::prop_assert_eq!(shell_reads(&line), words);
        }
    }

    /// Word splitting and quote removal for the quoting that we use; anything special outside quotes is a failure.
    fn shell_reads(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quoted) = (Vec::new(), None::<String>, false);
        let mut rest = line.chars();
        while let Some(c) = rest.next() {
            match c {
                '\'' => {
                    quoted = !quoted;
                    word.get_or_insert_default();
                }
                c if quoted => word.get_or_insert_default().push(c),
                '\\' => word.get_or_insert_default().push(rest.next().unwrap()),
                ' ' => words.extend(word.take()),
                c => {
                    assert!(!"|&;<>()$`\"*?[#~!{}\n".contains(c), "{c} is bare in {line}");
                    word.get_or_insert_default().push(c);
                }
            }
        }
        assert!(!quoted, "unclosed: {line}");
        words.extend(word);
        words
    }
}
