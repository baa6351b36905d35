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
//! are not: the former are skipped, the latter refused. So is what would be sent as a part of the request before it although
//! it looks like a request of its own: in vegeta's text there is no `###` between them.

use super::{Entry, EntryBody, Flaw};
use duel_template::FILE_LIMIT_BYTES;
use std::collections::BTreeMap;
use std::path::Path;

/// Methods that may stand in front of an address.
const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "PATCH", "OPTIONS", "TRACE"];

/// Longest value of a variable.
const VALUE_LIMIT_BYTES: usize = 1 << 20;

/// The variables of a file. What is put in for them is bounded: a few lines of `@b = {{a}}{{a}}` would take all memory.
struct Variables {
    values: BTreeMap<String, String>,
    /// Bytes that lines may still have, with their variables put in.
    left_bytes: usize,
}

/// Reads such a file, as far as `most` requests; bodies from files are looked for from its folder on.
pub(super) fn read(text: &str, folder: &Path, most: usize) -> Result<Vec<Entry>, Flaw> {
    let mut variables = Variables { values: BTreeMap::new(), left_bytes: FILE_LIMIT_BYTES as usize };
    let mut entries: Vec<Entry> = Vec::new();
    let mut add = |block: &[(usize, &str)]| match request(block, &mut variables, folder)? {
        Some(entry) if entries.len() == most => Err(Flaw::too_many(entry.line, most)),
        entry => {
            entries.extend(entry);
            Ok(())
        }
    };
    let mut block: Vec<(usize, &str)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("###") {
            add(&block)?;
            block.clear();
        } else {
            block.push((index + 1, line));
        }
    }
    add(&block)?;
    Ok(entries)
}

/// The request of a block, if it has one.
fn request(block: &[(usize, &str)], variables: &mut Variables, folder: &Path) -> Result<Option<Entry>, Flaw> {
    let mut lines = block.iter().copied().peekable();
    while let Some((number, line)) = lines.next_if(|(_, line)| is_preamble(line)) {
        if let Some((name, value)) = line.trim().strip_prefix('@').and_then(|line| line.split_once('=')) {
            let value = variables.put_into(number, value.trim(), VALUE_LIMIT_BYTES)?;
            variables.values.insert(name.trim().to_owned(), value);
        }
    }
    let Some((first, line)) = lines.next() else { return Ok(None) };
    let mut request_line = line.trim().to_owned();
    // A long query may go on in lines of its own.
    while let Some((_, more)) = lines.next_if(|(_, line)| line.trim_start().starts_with(['?', '&'])) {
        request_line.push_str(more.trim());
    }
    let (method, address) = method_and_address(&variables.replaced(first, &request_line)?);
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
        let line = variables.replaced(number, line)?;
        if is_request_line(&line) {
            return Err(swallowed(number, first));
        }
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
    let says_length = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    if let Some((number, _)) = rest.iter().find(|(_, line)| is_request_line(line))
        && !is_multipart
        && !says_length
    {
        return Err(swallowed(*number, first));
    }
    let body = body(&rest, variables, folder, if is_multipart { "\r\n" } else { "\n" })?;
    Ok(Some(Entry { line: first, weight: 1, method: Some(method), address, headers, body }))
}

/// Whether a line can hardly be anything but the first one of a request: a method in front of a path or a whole address.
fn is_request_line(line: &str) -> bool {
    if !line.split_once(char::is_whitespace).is_some_and(|(method, _)| METHODS.contains(&method)) {
        return false;
    }
    let (_, address) = method_and_address(line.trim());
    let is_address = ["/", "http://", "https://", "{{"].iter().any(|start| address.starts_with(start));
    is_address && !address.contains(char::is_whitespace)
}

/// A request that would be sent as a part of another one.
fn swallowed(line: usize, first: usize) -> Flaw {
    let what = format!(
        "this looks like another request, and would be sent as a part of the one of line {first}: put ### between requests \
         (vegeta's text is read with --request-format vegeta), or the body into a file, as in '< FILE'"
    );
    Flaw::new(line, what)
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

fn body(lines: &[(usize, &str)], variables: &mut Variables, folder: &Path, line_end: &str) -> Result<EntryBody, Flaw> {
    if let Some((number, line)) = lines.iter().find(|(_, line)| line.starts_with("< ") || line.starts_with("<@")) {
        if line.starts_with("<@") {
            return Err(Flaw::new(*number, "variables within a body's file are not replaced; write '< FILE'"));
        }
        if lines.iter().filter(|(_, line)| !line.trim().is_empty()).count() > 1 {
            return Err(Flaw::new(*number, "a body is either a file or the lines that stand here, not both"));
        }
        let path = variables.replaced(*number, line[1..].trim())?;
        return Ok(EntryBody::File(folder.join(path)));
    }
    let lines: Vec<String> =
        lines.iter().map(|(number, line)| variables.replaced(*number, line)).collect::<Result<_, _>>()?;
    Ok(EntryBody::Bytes(lines.join(line_end).into_bytes()))
}

impl Variables {
    /// The text with the file's variables put in. Braces around anything that is no name stay: they are JSON's.
    fn replaced(&mut self, number: usize, text: &str) -> Result<String, Flaw> {
        self.put_into(number, text, usize::MAX)
    }

    /// The same, where it may have so many bytes.
    fn put_into(&mut self, number: usize, text: &str, most_bytes: usize) -> Result<String, Flaw> {
        let most_bytes = most_bytes.min(self.left_bytes);
        let too_long = || {
            let (what, most) = if most_bytes == VALUE_LIMIT_BYTES {
                ("its value has", VALUE_LIMIT_BYTES)
            } else {
                ("all lines together have", FILE_LIMIT_BYTES as usize)
            };
            let text = format!("{what} more than {} MiB with the variables put in, which is the most", most >> 20);
            Flaw::new(number, text)
        };
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("{{") {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            let Some((name, end)) = braced_name(from) else {
                out.push('{');
                rest = &from[1..];
                continue;
            };
            let Some(value) = self.values.get(name) else {
                let known: Vec<&str> = self.values.keys().map(String::as_str).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(Flaw::new(
                    number,
                    format!(
                        "{{{{{name}}}}} is no variable of this file (known: {known}); '@{name} = value' defines it"
                    ),
                ));
            };
            if out.len() + value.len() > most_bytes {
                return Err(too_long());
            }
            out.push_str(value);
            rest = &from[end..];
        }
        out.push_str(rest);
        if out.len() > most_bytes {
            return Err(too_long());
        }
        self.left_bytes -= out.len();
        Ok(out)
    }
}

/// The name within the braces that a text begins with, and where it goes on behind them. No further than a name goes is
/// looked: for the end of braces that are never closed each one would look through all the rest.
fn braced_name(text: &str) -> Option<(&str, usize)> {
    let inner = text[2..].trim_start();
    let name_bytes = inner.find(|c: char| !is_of_name(c)).filter(|&bytes| bytes > 0)?;
    let (name, rest) = inner.split_at(name_bytes);
    let behind = rest.trim_start().strip_prefix("}}")?;
    Some((name, text.len() - behind.len()))
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || "_-.$".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_corpus::growth;
    use proptest::prelude::*;

    fn read_here(text: &str) -> Result<Vec<Entry>, Flaw> {
        read(text, Path::new("dir"), 9)
    }

    /// Each line doubles what the one before it has.
    fn doubling(lines: usize) -> String {
        let line = |at: usize| format!("@v{at} = {{{{v{0}}}}}{{{{v{0}}}}}\n", at - 1);
        format!("@v0 = xxxxxxxx\n{}", (1..=lines).map(line).collect::<String>())
    }

    #[test]
    fn values_that_double_come_to_an_end() {
        // 8 bytes doubled 17 times are one MiB.
        let address = |lines: usize| format!("{}GET /{{{{v3}}}}", doubling(lines));
        assert_eq!(read_here(&address(17)).unwrap()[0].address.len(), 1 + 64);
        let flaw = read_here(&address(40)).unwrap_err();
        assert_eq!(flaw.line, 19);
        assert!(flaw.what.contains("more than 1 MiB"), "{}", flaw.what);
    }

    #[test]
    fn reading_takes_time_in_proportion_to_the_text() {
        for what in ["{", "{{", "{{ ", "{{a", "{{a }"] {
            growth::is_linear(|bytes| {
                let text = format!("POST /\n\n{}", what.repeat(bytes / what.len()));
                move || assert!(read(&text, Path::new(""), 9).is_ok())
            });
        }
    }

    #[test]
    fn a_large_value_cannot_be_put_in_for_ever() {
        let requests = "GET /\nX: {{v17}}\n###\n".repeat(300);
        let flaw = read(&format!("{}{requests}", doubling(17)), Path::new(""), 999).unwrap_err();
        assert!(flaw.what.contains("more than 256 MiB"), "{}", flaw.what);
    }

    #[test]
    fn reading_stops_at_the_most() {
        let read = |most| read("GET /a\n###\nGET /b\n### end\n\nGET /c\n", Path::new(""), most);
        assert_eq!(read(3).unwrap().len(), 3);
        assert_eq!(read(2), Err(Flaw::too_many(6, 2)));
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

    #[test]
    fn a_request_is_not_sent_as_the_body_of_another_one() {
        let vegeta = "GET http://h/small\n\nPOST http://h/post\nX-A: two\n@body\n";
        for (text, line) in [
            (vegeta, 3),
            ("GET /a\nGET http://h/b\n", 2),
            ("POST /a\nX: 1\n\nbody\n\nDELETE /b HTTP/1.1\n", 6),
            ("@h=http://h\nGET {{h}}/a\n\nGET {{h}}/b\n", 4),
        ] {
            let flaw = read_here(text).unwrap_err();
            let told = flaw.what.contains("put ### between") && flaw.what.contains("--request-format vegeta");
            assert!(flaw.line == line && told, "{text}: {flaw:?}");
        }
    }

    #[test]
    fn bodies_may_hold_what_only_resembles_a_request() {
        for (head, body) in [
            ("POST /a\n", "GET the milk\nPOST it"),
            ("POST /a\n", "GET /two words"),
            ("POST /a\nContent-Length: 6\n", "GET /b"),
            ("POST /a\nContent-Type: Multipart/Mixed; boundary=b\n", "GET /b HTTP/1.1"),
        ] {
            let text = format!("{head}\n{body}\n");
            let entries = read_here(&text).unwrap_or_else(|flaw| panic!("{text}: {flaw:?}"));
            assert_eq!(entries[0].body, EntryBody::Bytes(body.as_bytes().to_vec()), "{text}");
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
