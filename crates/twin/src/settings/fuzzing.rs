//! Fuzzers' entry to nginx's configuration; see `crate::fuzzing`.

use super::nginx_syntax::directives;

/// Any text gives directives in the order in which they stand, none within another, or is not understood.
pub fn nginx_configuration(data: &[u8]) {
    const MOST: usize = 1000;
    let Some(found) = directives(data, &[b"http".to_vec()], MOST) else { return };
    assert!(found.len() <= MOST);
    let mut end = 0;
    for directive in &found {
        assert!(end <= directive.span.start && directive.span.start < directive.span.end);
        end = directive.span.end;
        assert!(matches!(data[end - 1], b';' | b'{') && !directive.name().is_empty());
        assert_eq!(
            directive.context.first().map(Vec::as_slice),
            Some(&b"http"[..]),
            "nobody leaves the outermost block"
        );
    }
    assert!(end <= data.len());
}
