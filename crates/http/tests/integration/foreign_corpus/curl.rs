//! curl's tests: what its server sends, and what curl then has (docs/tests/FILEFORMAT.md there).

use super::{Case, Expected, Read1};
use std::path::Path;

/// Errors of curl that are about the response; the others are about what it was asked to do: unsupported version or
/// protocol, nonsense, a part of a file, nothing at all, an error of the connection, a coding.
const OF_RESPONSES: [u16; 6] = [1, 8, 18, 52, 56, 61];

/// Options that make curl read a response in another way, or only a part of it.
const OTHER_WAYS: &[(&str, &str)] = &[
    ("--raw", "that ask for what is not decoded"),
    ("--tr-encoding", "that ask for transfer codings"),
    ("--http0.9", "of HTTP/0.9"),
    ("--ignore-content-length", "that do not look at Content-Length"),
    ("--continue-at", "that go on with a file"),
    (" -C ", "that go on with a file"),
    (" -C-", "that go on with a file"),
    (" -z ", "whose time decides whether a body is read"),
    ("--time-cond", "whose time decides whether a body is read"),
    ("--max-filesize", "that limit a file's size"),
    ("--skip-existing", "that look at files first"),
    ("ws://", "of WebSockets"),
    ("--proxytunnel", "of tunnels"),
    ("--retry", "that are tried again"),
];

pub(crate) fn cases(folder: &Path) -> Vec<Read1> {
    let mut numbers: Vec<u32> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.strip_prefix("test")?.parse().ok())
        .collect();
    numbers.sort_unstable();
    let read_file = |number: u32| {
        let name = format!("test{number}");
        read(&name, number, &std::fs::read(folder.join(&name)).unwrap(), folder)
    };
    numbers.into_iter().map(read_file).collect()
}

/// A test that lies in a folder.
pub(crate) fn read(name: &str, number: u32, file: &[u8], folder: &Path) -> Read1 {
    let test = Test::of(file, number, folder);
    let server = test.text("client", "server");
    if !server.split_whitespace().any(|word| matches!(word, "http" | "https" | "http-ipv6" | "http-unix")) {
        return Err("of other servers than those of HTTP/1.1");
    }
    if ["client", "verify"].iter().any(|&section| test.part(section, "tool").is_some()) {
        return Err("of other programs than curl");
    }
    let Some((attributes, _)) = test.part("client", "command") else { return Err("without a command") };
    if attributes.contains("type=") {
        return Err("of other programs than curl");
    }
    let command = format!(" {} ", test.text("client", "command").split_whitespace().collect::<Vec<_>>().join(" "));
    if let Some((_, reason)) = OTHER_WAYS.iter().find(|(option, _)| command.contains(option)) {
        return Err(reason);
    }
    for part in ["servercmd", "postcmd", "connect"] {
        if test.part("reply", part).is_some() {
            return Err("whose server does more than send the response");
        }
    }
    let error = test.text("verify", "errorcode");
    let error = error.trim().split(['\n', ',']).next().unwrap_or_default().trim();
    let error: u16 = if error.is_empty() { 0 } else { error.parse().map_err(|_| "without a plain error code")? };
    if error != 0 && !OF_RESPONSES.contains(&error) {
        return Err("whose error is not that of a response");
    }
    let request = test.text("verify", "protocol");
    let is_head = request.starts_with("HEAD ");
    if request.starts_with("CONNECT ") {
        return Err("of tunnels");
    }
    if is_head && !command.contains(" -I ") && !command.contains(" --head ") && !command.contains(" -iI ") {
        return Err("whose method is another one than curl is told");
    }
    let data = first_data(&command, number);
    let Some((attributes, bytes)) = test.part("reply", &data) else { return Err("without a response") };
    let bytes = without_last_newline(attributes, bytes);
    let closes = bytes.is_empty() || bytes.windows(8).any(|window| window == b"swsclose");
    let is_only_one = test.is_only_one(&command, &bytes);
    let expected = match error {
        0 => test.expected(&data, attributes, &bytes, is_only_one),
        _ if !is_only_one => return Err("whose error may be that of a later response"),
        _ => Expected::Failed,
    };
    // Where a redirect is followed, nobody waits for the end of its body.
    let leads_on = follows(&command) && behind_heads(&bytes).is_some_and(|(status, _)| (300..400).contains(&status));
    let closes = closes || leads_on;
    let decompress = command.contains(" --compressed ");
    Ok(Case { name: name.to_owned(), bytes, closes, to_head_request: is_head, decompress, expected })
}

fn follows(command: &str) -> bool {
    [" -L ", " --location", " -iL ", " -Li ", "-sL", "-LI "].iter().any(|option| command.contains(option))
}

/// The part that the first request of the command is answered with: the last four digits of a long number in its path.
fn first_data(command: &str, number: u32) -> String {
    let number = number.to_string();
    let longer = command.split('/').filter_map(|word| word.strip_prefix(&number));
    let digits = longer.map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>()).next();
    match digits.filter(|digits| digits.len() == 4).map(|digits| digits.parse::<u32>().unwrap()) {
        Some(part) if part > 0 => format!("data{part}"),
        _ => "data".to_owned(),
    }
}

fn without_last_newline(attributes: &str, mut bytes: Vec<u8>) -> Vec<u8> {
    if attributes.contains("nonewline=\"yes\"") && bytes.pop_if(|last| *last == b'\n').is_some() {
        // A CR before it is a part of the text.
    }
    bytes
}

/// A test's lines, after what stands for other bytes was put in.
struct Test {
    lines: Vec<Vec<u8>>,
}

impl Test {
    fn of(file: &[u8], number: u32, folder: &Path) -> Self {
        let mut lines: Vec<Vec<u8>> = Vec::new();
        // For each open %if whether it shows its lines.
        let mut shows: Vec<bool> = Vec::new();
        let (mut crlf, mut in_head) = ("", false);
        for line in file.split_inclusive(|&b| b == b'\n') {
            let text = String::from_utf8_lossy(line);
            let text = text.trim();
            if let Some(condition) = text.strip_prefix("%if ") {
                shows.push(!condition.starts_with('!'));
                continue;
            } else if text.starts_with("%else") {
                if let Some(shown) = shows.last_mut() {
                    *shown = !*shown;
                }
                continue;
            } else if text.starts_with("%endif") {
                shows.pop();
                continue;
            }
            if shows.contains(&false) {
                continue;
            }
            if text.starts_with("<data") || text.starts_with("<connect") {
                crlf = if text.contains("crlf=\"yes\"") {
                    "yes"
                } else if text.contains("crlf=\"headers\"") {
                    "headers"
                } else {
                    ""
                };
            } else if text.starts_with("</data") || text.starts_with("</connect") {
                crlf = "";
            }
            let mut line = put_in(line, number, folder);
            match crlf {
                "yes" => end_with_crlf(&mut line),
                "headers" => {
                    if is_head_line(&line) {
                        end_with_crlf(&mut line);
                        in_head = true;
                    } else {
                        if line == b"\n" && in_head {
                            end_with_crlf(&mut line);
                        }
                        in_head = false;
                    }
                }
                _ => {}
            }
            lines.push(line);
        }
        Self { lines }
    }

    /// Attributes and content of a part of a section.
    fn part(&self, section: &str, part: &str) -> Option<(&str, Vec<u8>)> {
        let starts = |line: &[u8], tag: &str| {
            let line = line.trim_ascii_start();
            line.starts_with(tag.as_bytes()) && line.get(tag.len()).is_some_and(|b| b" >".contains(b))
        };
        let mut lines = self.lines.iter().skip_while(|line| !starts(line, &format!("<{section}"))).skip(1);
        let within: Vec<&Vec<u8>> = lines.by_ref().take_while(|line| !starts(line, &format!("</{section}"))).collect();
        let at = within.iter().position(|line| starts(line, &format!("<{part}")))?;
        let attributes = std::str::from_utf8(within[at]).ok()?;
        let content = within[at + 1..].iter().take_while(|line| !starts(line, &format!("</{part}")));
        Some((attributes, content.flat_map(|line| line.iter().copied()).collect()))
    }

    fn text(&self, section: &str, part: &str) -> String {
        self.part(section, part).map_or_else(String::new, |(_, bytes)| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Whether curl asks for one response, and that is all that it has in the end.
    fn is_only_one(&self, command: &str, bytes: &[u8]) -> bool {
        let parts = (0..10_000).filter(|number| self.part("reply", &format!("data{number}")).is_some()).count();
        let urls = command.matches("http://").count() + command.matches("https://").count();
        let globs = command.contains("/{") || command.contains("/[") && !command.contains("http://[");
        let bounces = bytes.windows(9).any(|window| window == b"swsbounce");
        let goes_on = [" -: ", " --next ", " -u ", "--anyauth"].iter().any(|option| command.contains(option));
        parts == 0 && urls <= 1 && !globs && !bounces && !goes_on && !follows(command)
    }

    /// What curl has in the end, as far as it is that of the first final response.
    fn expected(&self, data: &str, attributes: &str, bytes: &[u8], is_only_one: bool) -> Expected {
        let unknown = Expected::Ok { status: None, body_bytes: None };
        let checked = match self.part("reply", "datacheck") {
            Some((attributes, bytes)) => without_last_newline(attributes, bytes),
            None if data == "data" => bytes.to_vec(),
            None => return unknown,
        };
        if attributes.contains("nocheck=\"yes\"") {
            return unknown;
        }
        let Some((status, body)) = behind_heads(&checked) else {
            // Without heads.
            let body_bytes = is_only_one.then_some(checked.len() as u64);
            return Expected::Ok { status: None, body_bytes };
        };
        // It may be another response than the first one, or one that nobody had the body of.
        let is_that = behind_heads(bytes).is_some_and(|(sent, _)| sent == status);
        let head = &checked[..checked.len() - body.len()];
        let has_trailers = head.windows(7).any(|window| window == b"chunked");
        let body_bytes = is_only_one.then(|| (body.len() - if has_trailers { trailer_bytes(body) } else { 0 }) as u64);
        Expected::Ok { status: is_that.then_some(status), body_bytes }
    }
}

/// Status and what follows the first final head.
fn behind_heads(mut bytes: &[u8]) -> Option<(u16, &[u8])> {
    loop {
        let status: u16 = std::str::from_utf8(bytes.strip_prefix(b"HTTP/")?.get(4..7)?).ok()?.parse().ok()?;
        let mut at = 0;
        loop {
            at += bytes[at..].iter().position(|&b| b == b'\n')? + 1;
            let line_end = bytes[at..].iter().take(2).take_while(|b| b"\r\n".contains(b)).copied().collect::<Vec<_>>();
            if let [b'\n', ..] | [b'\r', b'\n'] = line_end[..] {
                bytes = &bytes[at + if line_end[0] == b'\n' { 1 } else { 2 }..];
                break;
            }
        }
        if !(100..200).contains(&status) {
            return Some((status, bytes));
        }
    }
}

/// Length of the trailers that curl shows behind a body.
fn trailer_bytes(body: &[u8]) -> usize {
    let lines: Vec<&[u8]> = body.split_inclusive(|&b| b == b'\n').collect();
    let is_trailer =
        |line: &&&[u8]| line.ends_with(b"\r\n") && is_head_line(&[&line[..line.len() - 2], b"\n"].concat());
    lines.iter().rev().take_while(is_trailer).map(|line| line.len()).sum()
}

/// Whether a line looks like one of a head, by which curl's harness goes.
fn is_head_line(line: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(line) else { return false };
    if text.contains('\r') {
        return false;
    }
    let version = ["HTTP/1.1 ", "HTTP/1.0 ", "HTTP/2 ", "HTTP/3 "].iter().find_map(|start| text.strip_prefix(start));
    if version.is_some_and(|rest| rest.starts_with(['1', '2', '3', '4', '5', '9'])) {
        return true;
    }
    let Some((name, _)) = text.split_once(": ") else { return false };
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

fn end_with_crlf(line: &mut Vec<u8>) {
    if line.pop_if(|last| *last == b'\n').is_some() {
        while line.pop_if(|last| *last == b'\r').is_some() {}
        line.extend_from_slice(b"\r\n");
    }
}

/// Puts in what stands for other bytes, in the order in which curl's harness does.
fn put_in(line: &[u8], number: u32, folder: &Path) -> Vec<u8> {
    if !line.contains(&b'%') {
        return line.to_vec();
    }
    // Bytes as characters, so that none is lost.
    let mut text: String = line.iter().map(|&b| char::from(b)).collect();
    let (number_as_given, number) = (number, number.to_string());
    for (name, value) in [
        ("%TESTNUMBER", &number[..]),
        ("%HOSTIP", "127.0.0.1"),
        ("%CLIENTIP", "127.0.0.1"),
        ("%HTTPSPORT", "8991"),
        ("%HTTPPORT", "8990"),
        ("%PROXYPORT", "8992"),
        ("%VERSION", "8.0.0"),
        ("%SRCDIR/data/", ""),
        ("%SP", " "),
        ("%TAB", "\t"),
        ("%CR", "\r"),
        ("%LT", "<"),
        ("%GT", ">"),
        ("%AMP", "&"),
    ] {
        text = text.replace(name, value);
    }
    if let Some(name) = text.strip_prefix("%includetext ").and_then(|rest| rest.trim_end().strip_suffix('%')) {
        let lines = std::fs::read_to_string(folder.join(name)).unwrap().replace('\r', "");
        return lines.split_inclusive('\n').flat_map(|line| put_in(line.as_bytes(), number_as_given, folder)).collect();
    }
    text = each(&text, "%b64[", "]b64%", |inner| {
        use std::fmt::Write;
        let bytes: Vec<u8> = decoded(inner).chars().map(|c| c as u8).collect();
        let mut out = String::new();
        for piece in bytes.chunks(3) {
            let group = piece.iter().fold(0u32, |group, &byte| group << 8 | u32::from(byte)) << (8 * (3 - piece.len()));
            for place in 0..4 {
                let digit = (group >> (18 - 6 * place)) as usize & 63;
                let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
                let shown = if place > piece.len() { '=' } else { char::from(alphabet[digit]) };
                write!(out, "{shown}").unwrap();
            }
        }
        out
    });
    text = each(&text, "%hex[", "]hex%", decoded);
    text = each(&text, "%repeat[", "]%", |inner| {
        let (times, what) = inner.split_once(" x ").unwrap();
        decoded(what).repeat(times.trim().parse().unwrap())
    });
    text.chars().map(|c| c as u8).collect()
}

/// Replaces what stands between two marks, and the marks.
fn each(text: &str, start: &str, end: &str, replace: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once(start) {
        let Some((inner, after)) = behind.split_once(end) else { break };
        out += before;
        out += &replace(inner);
        rest = after;
    }
    out + rest
}

/// `%41` is an A.
fn decoded(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('%') {
        out += before;
        match behind.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                out.push(char::from(byte));
                rest = &behind[2..];
            }
            None => {
                out.push('%');
                rest = behind;
            }
        }
    }
    out + rest
}
