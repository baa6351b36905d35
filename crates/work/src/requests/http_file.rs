//! Requests as editors write them (`.http` files of VS Code's REST client and of JetBrains' IDEs).
//!
//! ```text
//! @id = 7
//!
//! ### change it
//! PUT https://example.org/things/{{id}}
//!     ?dry=1
//! Content-Type: application/json
//!
//! < ./thing.json
//! ```
//!
//! Variables of the file are put in as text. Scripts (`> {% ... %}`) and variables that an editor makes up (`{{$guid}}`)
//! are not: the former are skipped, the latter refused.

use super::{Entry, EntryBody, Flaw};
use std::collections::BTreeMap;
use std::path::Path;

/// Methods that may stand in front of an address.
const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "PATCH", "OPTIONS", "TRACE"];

/// Reads such a file; bodies from files are looked for from its folder on.
pub(super) fn read(text: &str, folder: &Path) -> Result<Vec<Entry>, Flaw> {
    let mut variables = BTreeMap::new();
    let mut entries = Vec::new();
    let mut block: Vec<(usize, &str)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("###") {
            entries.extend(request(&block, &mut variables, folder)?);
            block.clear();
        } else {
            block.push((index + 1, line));
        }
    }
    entries.extend(request(&block, &mut variables, folder)?);
    Ok(entries)
}

/// The request of a block, if it has one.
fn request(
    block: &[(usize, &str)],
    variables: &mut BTreeMap<String, String>,
    folder: &Path,
) -> Result<Option<Entry>, Flaw> {
    let mut lines = block.iter().copied().peekable();
    while let Some((number, line)) = lines.next_if(|(_, line)| is_preamble(line)) {
        if let Some((name, value)) = line.trim().strip_prefix('@').and_then(|line| line.split_once('=')) {
            let value = replaced(number, value.trim(), variables)?;
            variables.insert(name.trim().to_owned(), value);
        }
    }
    let Some((first, line)) = lines.next() else { return Ok(None) };
    let mut request_line = line.trim().to_owned();
    // A long query may go on in lines of its own.
    while let Some((_, more)) = lines.next_if(|(_, line)| line.trim_start().starts_with(['?', '&'])) {
        request_line.push_str(more.trim());
    }
    let (method, address) = method_and_address(&replaced(first, &request_line, variables)?);
    if address.is_empty() || address.contains(char::is_whitespace) {
        return Err(Flaw::new(first, "a request begins with its method and its address, such as GET /path"));
    }
    let mut headers = Vec::new();
    for (number, line) in lines.by_ref() {
        if line.trim().is_empty() {
            break;
        }
        if is_comment(line) {
            continue;
        }
        let line = replaced(number, line, variables)?;
        let (name, value) = line
            .split_once(':')
            .ok_or_else(|| Flaw::new(number, "a header field has the form 'Name: value'; this line has no colon"))?;
        headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    let is_multipart = headers.iter().any(|(name, value)| {
        name.eq_ignore_ascii_case("content-type")
            && value.get(..10).is_some_and(|kind| kind.eq_ignore_ascii_case("multipart/"))
    });
    let rest: Vec<(usize, &str)> = without_scripts(lines);
    let body = body(&rest, variables, folder, if is_multipart { "\r\n" } else { "\n" })?;
    Ok(Some(Entry { line: first, weight: 1, method: Some(method), address, headers, body }))
}

/// What may stand before a request: nothing, comments and variables.
fn is_preamble(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || is_comment(line) || (line.starts_with('@') && line.contains('='))
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with('#') || line.starts_with("//")
}

/// `GET address HTTP/1.1`, where method and version may be left out.
fn method_and_address(line: &str) -> (String, String) {
    let (method, rest) = match line.split_once(char::is_whitespace) {
        Some((method, rest)) if METHODS.contains(&method) => (method, rest.trim()),
        _ => ("GET", line),
    };
    let address = match rest.rsplit_once(char::is_whitespace) {
        Some((address, version)) if version.starts_with("HTTP/") => address.trim(),
        _ => rest,
    };
    (method.to_owned(), address.to_owned())
}

/// The lines of a body without what editors do with the response: `> {% ... %}`, `> file.js`, `<> saved.txt`.
fn without_scripts<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Vec<(usize, &'a str)> {
    let mut kept = Vec::new();
    let mut in_script = false;
    for (number, line) in lines {
        if in_script || line.starts_with("> {%") {
            in_script = !line.contains("%}");
        } else if !line.starts_with("> ") && !line.starts_with("<> ") {
            kept.push((number, line));
        }
    }
    while kept.last().is_some_and(|(_, line)| line.trim().is_empty()) {
        kept.pop();
    }
    kept
}

fn body(
    lines: &[(usize, &str)],
    variables: &BTreeMap<String, String>,
    folder: &Path,
    line_end: &str,
) -> Result<EntryBody, Flaw> {
    if let Some((number, line)) = lines.iter().find(|(_, line)| line.starts_with("< ") || line.starts_with("<@")) {
        if line.starts_with("<@") {
            return Err(Flaw::new(*number, "variables within a body's file are not replaced; write '< FILE'"));
        }
        if lines.iter().filter(|(_, line)| !line.trim().is_empty()).count() > 1 {
            return Err(Flaw::new(*number, "a body is either a file or the lines that stand here, not both"));
        }
        let path = replaced(*number, line[1..].trim(), variables)?;
        return Ok(EntryBody::File(folder.join(path)));
    }
    let lines: Vec<String> =
        lines.iter().map(|(number, line)| replaced(*number, line, variables)).collect::<Result<_, _>>()?;
    Ok(EntryBody::Bytes(lines.join(line_end).into_bytes()))
}

/// The text with the file's variables put in. Braces around anything that is no name stay: they are JSON's.
fn replaced(number: usize, text: &str, variables: &BTreeMap<String, String>) -> Result<String, Flaw> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("{{") {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let name = from.find("}}").map(|end| (from[2..end].trim(), end + 2)).filter(|(name, _)| is_name(name));
        let Some((name, end)) = name else {
            out.push('{');
            rest = &from[1..];
            continue;
        };
        let Some(value) = variables.get(name) else {
            let known: Vec<&str> = variables.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(Flaw::new(
                number,
                format!("{{{{{name}}}}} is no variable of this file (known: {known}); '@{name} = value' defines it"),
            ));
        };
        out.push_str(value);
        rest = &from[end..];
    }
    out.push_str(rest);
    Ok(out)
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-.$".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_here(text: &str) -> Result<Vec<Entry>, Flaw> {
        read(text, Path::new("dir"))
    }

    #[test]
    fn requests_as_editors_write_them() {
        let text = "@host = http://h\n@id=7\n# a comment\n\n### first\n// more\nGET {{host}}/a\n  ?b=1\n  &c={{id}}\nAccept: */*\n# off: 1\n\n\
                    ### second\nPOST /x HTTP/1.1\nContent-Type: application/json\n\n{\"a\": {\"b\": {{id}}}}\n\n> {%\n client.log(1)\n%}\n\
                    ###\n\nPUT /y\n\n< ./body.json\n\n### nothing\n\n### bare\n/z\n";
        let entries = read_here(text).unwrap();
        let seen: Vec<_> = entries.iter().map(|e| (e.line, e.method.as_deref().unwrap(), e.address.as_str())).collect();
        assert_eq!(seen, [(7, "GET", "http://h/a?b=1&c=7"), (14, "POST", "/x"), (24, "PUT", "/y"), (31, "GET", "/z")]);
        assert_eq!(entries[0].headers, [("Accept".to_owned(), "*/*".to_owned())]);
        assert_eq!(entries[1].body, EntryBody::Bytes(b"{\"a\": {\"b\": 7}}".to_vec()));
        assert_eq!(entries[2].body, EntryBody::File("dir/./body.json".into()));
    }

    #[test]
    fn multipart_bodies_have_the_line_ends_that_the_wire_wants() {
        let text = "POST /x\nContent-Type: multipart/form-data; boundary=b\n\n--b\nA: 1\n\nx\n--b--\n";
        assert_eq!(read_here(text).unwrap()[0].body, EntryBody::Bytes(b"--b\r\nA: 1\r\n\r\nx\r\n--b--".to_vec()));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, line, words) in [
            ("GET /{{id}}", 1, "known: none"),
            ("@a=1\nGET /{{$guid}}", 2, "known: a"),
            ("GET /\nno colon\n", 2, "no colon"),
            ("### x\nGET", 2, "GET /path"),
            ("GET /a b", 1, "GET /path"),
            ("POST /\n\n<@ ./x", 3, "not replaced"),
            ("POST /\n\nabc\n< x", 4, "not both"),
        ] {
            let read = read_here(text);
            if text == "### x\nGET" {
                // A lone word is taken for an address, which is refused as such.
                assert_eq!(read.unwrap()[0].address, "GET");
                continue;
            }
            let flaw = read.unwrap_err();
            assert!(flaw.line == line && flaw.what.contains(words), "{text}: {flaw:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[GETPOS/ :a{}@=#<>%\n]{0,80}") {
            if let Err(flaw) = read_here(&text) {
                prop_assert!(flaw.line >= 1 && flaw.line <= text.lines().count());
            }
        }
    }
}
