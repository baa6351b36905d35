//! The syntax of nginx's configuration, as far as it takes to find directives and where they stand (`ngx_conf_read_token`).

use std::ops::Range;

/// Blocks within each other; nginx itself knows five.
const MOST_DEPTH: usize = 16;
/// Longest name of a block: thrice the longest of nginx's own (`match_http_upstream` of its modules has 19). Each directive
/// keeps the names around it, so that a name of megabytes would be there once for each directive.
const LONGEST_BLOCK_NAME_BYTES: usize = 64;

/// A directive, with or without a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Directive {
    /// Its name and arguments, without quotes.
    pub(super) words: Vec<Vec<u8>>,
    /// Names of the blocks that it stands in, the outermost first.
    pub(super) context: Vec<Vec<u8>>,
    /// Its text, with what ends it: a semicolon, or the brace that opens its block.
    pub(super) span: Range<usize>,
    pub(super) has_block: bool,
}

impl Directive {
    pub(super) fn name(&self) -> &[u8] {
        self.words.first().map_or(b"", |word| word)
    }
}

/// All directives of a text, which stands in the blocks of `context`. `None` where it is not understood, or has more than
/// `most`.
///
/// Blocks of Lua, in which braces and semicolons mean something else, are not.
pub(super) fn directives(text: &[u8], context: &[Vec<u8>], most: usize) -> Option<Vec<Directive>> {
    let mut found = Vec::new();
    let mut inside = context.to_vec();
    let mut words: Vec<Vec<u8>> = Vec::new();
    let (mut at, mut start) = (0, 0);
    while at < text.len() {
        match text[at] {
            b' ' | b'\t' | b'\r' | b'\n' => at += 1,
            b'#' => at += text[at..].iter().position(|&byte| byte == b'\n').unwrap_or(text.len() - at),
            end @ (b';' | b'{') => {
                at += 1;
                let has_block = end == b'{';
                let directive = Directive {
                    words: std::mem::take(&mut words),
                    context: inside.clone(),
                    span: start..at,
                    has_block,
                };
                let name = directive.name().to_vec();
                let is_too_much = inside.len() == MOST_DEPTH || name.len() > LONGEST_BLOCK_NAME_BYTES;
                if name.is_empty() || has_block && (name.ends_with(b"_by_lua_block") || is_too_much) {
                    return None;
                }
                found.push(directive);
                if found.len() > most {
                    return None;
                }
                if has_block {
                    inside.push(name);
                }
            }
            b'}' if words.is_empty() => {
                // What was open before this text is not closed in it.
                if inside.len() == context.len() {
                    return None;
                }
                inside.pop();
                at += 1;
            }
            _ => {
                if words.is_empty() {
                    start = at;
                }
                let (word, end) = word(text, at)?;
                words.push(word);
                at = end;
            }
        }
    }
    (words.is_empty() && inside.len() == context.len()).then_some(found)
}

/// The word that begins here, and where it ends.
fn word(text: &[u8], start: usize) -> Option<(Vec<u8>, usize)> {
    let quote = Some(text[start]).filter(|byte| matches!(byte, b'"' | b'\''));
    let mut word = Vec::new();
    // Behind a dollar sign a brace belongs to the name of a variable, and so do further ones.
    let mut is_variable = false;
    let mut at = start + usize::from(quote.is_some());
    while let Some(&byte) = text.get(at) {
        match (byte, quote) {
            (b'\\', _) => {
                word.extend(text.get(at..at + 2)?);
                (at, is_variable) = (at + 2, false);
                continue;
            }
            (byte, Some(quote)) if byte == quote => {
                // A word ends behind its quote; nginx minds where something else follows.
                let follows = text.get(at + 1).is_none_or(|next| b" \t\r\n;{)".contains(next));
                return follows.then_some((word, at + 1));
            }
            (b'{', None) if is_variable => {}
            (b' ' | b'\t' | b'\r' | b'\n' | b';' | b'{', None) => return Some((word, at)),
            _ => is_variable = byte == b'$',
        }
        word.push(byte);
        at += 1;
    }
    // At the end of the text nothing has ended it.
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str) -> Option<Vec<String>> {
        let line = |directive: &Directive| {
            let join = |words: &[Vec<u8>], by: &str| {
                words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect::<Vec<_>>().join(by)
            };
            format!("{}:{}", join(&directive.context, "/"), join(&directive.words, " "))
        };
        Some(directives(text.as_bytes(), &[], 100)?.iter().map(line).collect())
    }

    #[test]
    fn directives_are_found_where_they_stand() {
        let text = "worker_processes 1; # not; this {\nhttp{server { listen 80;location ~ \"a{2};\" { return 200 ${x}y; } } \
                    log_format x '{\"a\": \"$b\"}' ;}\n";
        assert_eq!(
            shown(text).unwrap(),
            [
                ":worker_processes 1",
                ":http",
                "http:server",
                "http/server:listen 80",
                "http/server:location ~ a{2};",
                "http/server/location:return 200 ${x}y",
                "http:log_format x {\"a\": \"$b\"}"
            ]
        );
        let found = directives(text.as_bytes(), &[], 7).unwrap();
        assert_eq!(directives(text.as_bytes(), &[], 6), None, "too many");
        assert_eq!(&text[found[0].span.clone()], "worker_processes 1;");
        assert_eq!(&text[found[1].span.clone()], "http{");
    }

    #[test]
    fn what_is_not_understood_is_not_guessed() {
        for text in ["a", "a {", "}", "a; }", "\"a", "\"a\"b;", ";", "x_by_lua_block { if a then b = '}' end }", "a\\"]
        {
            assert_eq!(shown(text), None, "{text}");
        }
        assert_eq!(shown("").unwrap(), Vec::<String>::new());
        assert_eq!(shown(&"a {".repeat(100)), None);
    }

    #[test]
    fn a_name_that_no_block_has_is_not_kept_for_each_directive_in_it() {
        let text = |length: usize| format!("{} {{ a; b; }} {} c;", "x".repeat(length), "y".repeat(1000));
        assert_eq!(shown(&text(LONGEST_BLOCK_NAME_BYTES)).unwrap().len(), 4);
        assert_eq!(shown(&text(LONGEST_BLOCK_NAME_BYTES + 1)), None);
    }

    #[test]
    fn braces_of_variables_are_told_from_those_of_blocks() {
        assert_eq!(shown("return 200 ${{a}b;").unwrap(), [":return 200 ${{a}b"]);
        assert_eq!(shown("a \\${ b; }").unwrap(), [":a \\$", "a:b"]);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_stumble(text in "[ab;{}\"'\\\\$# \n]{0,60}") {
            if let Some(found) = directives(text.as_bytes(), &[], 100) {
                for directive in found {
                    let end = if directive.has_block { b"{" } else { b";" };
                    prop_assert!(text.as_bytes()[directive.span].ends_with(end));
                }
            }
        }
    }
}
