//! Text that came from elsewhere, made safe to show.

/// Replaces control characters (terminal escapes among them) and bidirectional overrides by `�`; keeps `\n` and `\t`.
///
/// Servers, certificates and file names are hostile input: what they say may end up on a terminal.
pub fn sanitize(text: &str) -> String {
    text.chars().map(|c| if c == '\n' || c == '\t' || !is_unsafe(c) { c } else { '\u{fffd}' }).collect()
}

/// As [`sanitize`], for one line: newlines and tabs become spaces, and at most 300 characters are kept.
pub fn sanitize_line(text: &str) -> String {
    const LONGEST: usize = 300;
    let mut line: String = text
        .chars()
        .take(LONGEST)
        .map(|c| match c {
            '\n' | '\t' | '\r' => ' ',
            c if is_unsafe(c) => '\u{fffd}',
            c => c,
        })
        .collect();
    if text.chars().nth(LONGEST).is_some() {
        line.push('…');
    }
    line
}

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
}
