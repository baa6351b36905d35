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
}
