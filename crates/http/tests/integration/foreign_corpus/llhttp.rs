//! llhttp's tests: Markdown with responses and the events that they cause.

use super::{Case, Expected, Read1};
use std::path::Path;

/// Flags of llhttp: a body in chunks; a Content-Length.
const CHUNKED: u32 = 0x8;
const CONTENT_LENGTH: u32 = 0x20;

pub(crate) fn cases(folder: &Path) -> Vec<Read1> {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    files.sort();
    let read_file = |path: &std::path::PathBuf| {
        read(&path.file_stem().unwrap().to_string_lossy(), &std::fs::read_to_string(path).unwrap())
    };
    files.iter().flat_map(read_file).collect()
}

/// The cases of a file.
pub(crate) fn read(file: &str, text: &str) -> Vec<Read1> {
    let (mut cases, mut name, mut meta, mut http) = (Vec::new(), "", "", String::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with('#') {
            name = line.trim_start_matches('#').trim();
        } else if line.starts_with("<!-- meta=") {
            meta = line;
        } else if line == "```http" || line == "```log" {
            let block: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
            if line == "```http" {
                http = block.iter().map(|line| format!("{line}\n")).collect();
            } else {
                cases.push(case(&format!("{file}: {name}"), meta, &http, &block));
            }
        }
    }
    cases
}

fn case(name: &str, meta: &str, http: &str, log: &[&str]) -> Read1 {
    if !meta.contains("\"type\": \"response\"") && !meta.contains("\"type\": \"response-finish\"") {
        return Err("that switch llhttp to one of its lenient ways");
    }
    if http.contains("${") {
        return Err("that are made by a script");
    }
    Ok(Case {
        name: name.to_owned(),
        bytes: unescaped(http),
        closes: true,
        to_head_request: meta.contains("\"skipBody\": true"),
        decompress: false,
        expected: expected(log),
    })
}

/// The bytes that are meant, by the steps that llhttp's own harness takes.
fn unescaped(text: &str) -> Vec<u8> {
    let text = text.strip_suffix('\n').unwrap_or(text).replace("\\\n", "").replace('\n', "\r\n");
    let text = text.replace("\\r", "\r").replace("\\n", "\n").replace("\\t", "\t").replace("\\f", "\x0c");
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let (skipped, radix, most) = match behind {
            [b'x', ..] => (1, 16, usize::MAX),
            _ => (0, 8, 3),
        };
        let digits = behind[skipped.min(behind.len())..]
            .iter()
            .take(most)
            .take_while(|&&digit| char::from(digit).is_digit(radix))
            .count();
        if first == b'\\' && digits > 0 {
            let digits = std::str::from_utf8(&behind[skipped..skipped + digits]).unwrap();
            bytes.push(u32::from_str_radix(digits, radix).unwrap() as u8);
            rest = &behind[skipped + digits.len()..];
        } else {
            bytes.push(first);
            rest = behind;
        }
    }
    bytes
}

/// What the events say of the first final response.
fn expected(log: &[&str]) -> Expected {
    let number = |line: &str, name: &str, radix: u32| {
        let digits = line.split(name).nth(1)?.split(' ').next()?;
        u32::from_str_radix(digits, radix).ok()
    };
    let (mut status, mut flags, mut body_bytes) = (None, 0, 0);
    for line in log {
        let ok = Expected::Ok { status, body_bytes: Some(body_bytes) };
        if line.contains("headers complete") {
            status = number(line, "status=", 10).map(|status| status as u16);
            flags = number(line, "flags=", 16).unwrap_or(0);
        } else if line.contains("span[body]") {
            body_bytes += u64::from(number(line, "len=", 10).unwrap());
        } else if line.contains("error code=") {
            return Expected::Failed;
        } else if line.contains("message complete") {
            match status {
                Some(100 | 102..200) => (status, flags, body_bytes) = (None, 0, 0),
                _ => return ok,
            }
        }
    }
    // The connection ends here.
    match status {
        Some(_) if flags & (CHUNKED | CONTENT_LENGTH) == 0 => Expected::Ok { status, body_bytes: Some(body_bytes) },
        _ => Expected::Failed,
    }
}
