//! Text in columns: made safe, measured, wrapped, cut and padded.

use unicode_width::UnicodeWidthChar;

/// Makes foreign text safe and of predictable width: beyond [`duel_model::sanitize_line`], characters that are not seen
/// (zero-width ones, line and paragraph separators, tags) are shown as `�`, because they let two names look alike.
pub(crate) fn clean(text: &str) -> String {
    visible(&duel_model::sanitize_line(text))
}

/// As [`clean`] without a limit of length, for addresses and commands that are useless when cut.
pub(crate) fn clean_whole(text: &str) -> String {
    visible(&duel_model::sanitize(text).replace(['\n', '\t'], " "))
}

fn visible(text: &str) -> String {
    text.chars()
        // Variation selectors change the width of what stands before them, differently on each terminal.
        .filter(|c| !matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}'))
        .map(|c| if is_invisible(c) { '\u{fffd}' } else { c })
        .collect()
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Columns that a character takes on a terminal.
pub(crate) fn char_columns(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// Columns that a text takes. The sum over characters: terminals that join sequences show it narrower, none wider.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(char_columns).sum()
}

/// The text filled up with spaces on the right.
pub(crate) fn pad_right(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(columns(text))))
}

/// The text filled up with spaces on the left.
pub(crate) fn pad_left(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(columns(text))))
}

/// As much of the beginning as fits, with `…` where something was left out.
pub(crate) fn cut_end(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    if width == 0 {
        return String::new();
    }
    format!("{}…", head(text, width - 1))
}

/// Both ends, with `…` between: names that differ at their end stay different.
pub(crate) fn cut_middle(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    if width < 4 {
        return cut_end(text, width);
    }
    let left = (width - 1).div_ceil(2);
    let reversed: String = text.chars().rev().collect();
    let right: String = head(&reversed, width - 1 - left).chars().rev().collect();
    format!("{}…{right}", head(text, left))
}

/// The longest beginning that fits.
fn head(text: &str, width: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += char_columns(c);
        if used > width {
            return &text[..at];
        }
    }
    text
}

/// Breaks a text between words; `first` and `next` are set before the first line and the ones that follow.
///
/// A word longer than a line is broken after `_`, `-`, `/`, `,` or where the line ends, but an address (`…://…`) never
/// is: it stands on a line of its own, since a broken one can no longer be copied.
pub(crate) fn wrap(text: &str, width: usize, first: &str, next: &str) -> Vec<String> {
    wrap_words(text, width, first, next, true)
}

/// As [`wrap`] for a cell of a table, which has no line to itself: addresses are broken, too.
pub(crate) fn wrap_cell(text: &str, width: usize) -> Vec<String> {
    wrap_words(text, width, "", "", false)
}

fn wrap_words(text: &str, width: usize, first: &str, next: &str, keep_addresses: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in &words(text) {
        let mut word = word.as_str();
        loop {
            let gap = usize::from(!empty);
            if columns(&line) + gap + columns(word) <= width {
                if !empty {
                    line.push(' ');
                }
                line.push_str(word);
                empty = false;
                break;
            }
            if !empty {
                lines.push(std::mem::replace(&mut line, next.to_owned()));
                empty = true;
                continue;
            }
            let room = width.saturating_sub(columns(&line)).max(1);
            let part = if keep_addresses && word.contains("://") { word } else { breakable_head(word, room) };
            line.push_str(part);
            word = &word[part.len()..];
            if word.is_empty() {
                empty = false;
                break;
            }
            lines.push(std::mem::replace(&mut line, next.to_owned()));
        }
    }
    if !empty || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// The words of a text; a figure and its unit are one, since `30` at the end of a line and `s` on the next read badly.
fn words(text: &str) -> Vec<String> {
    const UNITS: [&str; 12] = ["%", "ns", "µs", "ms", "s", "min", "B", "kB", "MB", "GB", "slot", "slots"];
    let is_figure = |word: &str| {
        word.ends_with(|c: char| c.is_ascii_digit())
            && word.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '+' | '-' | '('))
    };
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let unit = word.trim_end_matches([',', ';', ')', '.', ':']);
        match words.last_mut() {
            Some(last) if UNITS.contains(&unit) && is_figure(last) => *last += &format!(" {word}"),
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// The beginning of a word that fits, broken where a reader would break it if that is in its second half.
fn breakable_head(word: &str, room: usize) -> &str {
    let fitting = head(word, room);
    // One character that is wider than the room has to go somewhere.
    let fitting = if fitting.is_empty() { &word[..word.chars().next().map_or(0, char::len_utf8)] } else { fitting };
    if fitting.len() == word.len() {
        return word;
    }
    match fitting.rfind(['_', '-', '/', ',', '.', '&']) {
        Some(at) if at + 1 > fitting.len() / 2 => &fitting[..=at],
        _ => fitting,
    }
}

/// A word with its number: `1 slot`, `24 slots`.
pub(crate) fn plural(count: u64, one: &str) -> String {
    format!("{} {one}{}", crate::figures::count(count), if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_long_words_where_a_reader_would() {
        assert_eq!(wrap("one two three", 8, "", "  "), ["one two", "  three"]);
        assert_eq!(wrap("TLS_ECDHE_RSA_WITH_AES_128", 16, "", ""), ["TLS_ECDHE_RSA_", "WITH_AES_128"]);
        assert_eq!(
            wrap("see https://a.example/long/path now", 12, "", ""),
            ["see", "https://a.example/long/path", "now"]
        );
        assert_eq!(wrap("at most 30 s, no more", 11, "", ""), ["at most", "30 s, no", "more"]);
        assert_eq!(wrap("", 10, "- ", "  "), ["- "]);
        assert_eq!(wrap("漢漢漢", 4, "", ""), ["漢漢", "漢"]);
    }

    #[test]
    fn cutting_keeps_what_tells_names_apart() {
        assert_eq!(cut_middle("server-in-berlin-a", 10), "serve…in-a");
        assert_eq!(cut_middle("server-in-berlin-b", 10), "serve…in-b");
        assert_eq!(cut_end("漢字漢字", 5), "漢字…");
        assert_eq!(columns(&cut_middle("漢字漢字漢字", 6)), 5);
    }

    #[test]
    fn what_is_not_seen_is_shown() {
        assert_eq!(clean("a\u{200b}b\u{2028}\u{1b}[31mc\u{fe0f}"), "a�b��[31mc");
    }
}
