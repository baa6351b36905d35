//! Foreign text within HTML, SVG and XML.

/// A text that means nothing but itself in elements and in quoted attributes of all three: markup is escaped (OWASP's five
/// characters), and what XML 1.0 has no place for (2.2: most control characters, U+FFFE and U+FFFF) is shown as `�`.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            // `&apos;` is not known to HTML 4.
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(c),
            '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            c if c.is_control() => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_markup_and_no_forbidden_character_is_left() {
        assert_eq!(escape("<a b=\"c\">&'\u{1b}\u{ffff}\n"), "&lt;a b=&quot;c&quot;&gt;&amp;&#39;\u{fffd}\u{fffd}\n");
    }
}
