//! A statement in pieces: what stays as it is, and the values in it.
//!
//! As much of SQL is read as it takes to find the end of a statement and to tell what a variable stands in: a text in quotes, a name,
//! a comment, or anywhere else.

use super::file::Flaw;
use crate::address::System;
use duel_template::{Columns, Part};

/// A piece of a statement.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    Text(String),
    /// A value that is a parameter, or a literal.
    Value {
        parts: Vec<Part>,
        /// It stood in quotes, so that it is a text whatever is in it.
        is_text: bool,
    },
    /// A part of a name, such as of `sbtest{rand:1..4}`: a statement with one cannot be prepared.
    OfName(Vec<Part>),
}

/// A statement as it stands in its file, cut by what quotes and comments mean.
pub(super) struct Statement<'a> {
    pub(super) text: Vec<Cut<'a>>,
    /// Where its first word stands.
    pub(super) line: usize,
    /// Behind it, and behind the semicolon that ends it.
    pub(super) end: usize,
}

/// A part of a statement.
pub(super) struct Cut<'a> {
    line: usize,
    text: &'a str,
    what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Plain,
    /// With its quotes.
    Quoted,
    /// A name in its quotes.
    Name,
    /// It stays as it is, braces and all: a comment within the statement, a text between dollars.
    Verbatim,
}

/// Cuts the statement that a text begins with.
pub(super) fn cut(text: &str, system: System, line: usize) -> Result<Statement<'_>, Flaw> {
    let mut cuts = Vec::new();
    let (mut at, mut plain, mut now) = (0, 0, line);
    let mut plain_line = line;
    let bytes = text.as_bytes();
    let end = loop {
        let rest = &bytes[at..];
        let unended = |what: &str| Flaw::new(now, format!("{what} that begins here does not end"));
        let (length, what) = match rest {
            [] => break at,
            [b';', ..] => break at + 1,
            [b'\'', ..] => {
                let backslash = takes_backslash(system, &text[..at]);
                (quoted(rest, backslash).ok_or_else(|| unended("a text"))?, What::Quoted)
            }
            [b'"', ..] if system == System::Mysql => {
                (quoted(rest, true).ok_or_else(|| unended("a text"))?, What::Quoted)
            }
            [b'"', ..] => (quoted(rest, false).ok_or_else(|| unended("a name"))?, What::Name),
            [b'`', ..] if system != System::Postgres => {
                (quoted(rest, false).ok_or_else(|| unended("a name"))?, What::Name)
            }
            [b'/', b'*', ..] => {
                (comment(rest, system == System::Postgres).ok_or_else(|| unended("a comment"))?, What::Verbatim)
            }
            [b'-', b'-', ..] => (line_end(rest), What::Verbatim),
            [b'#', ..] if system == System::Mysql => (line_end(rest), What::Verbatim),
            [b'$', ..] if system == System::Postgres && !ends_in_name(&text[..at]) => match tag(rest) {
                Some(tag) => (between(rest, tag).ok_or_else(|| unended("a text"))?, What::Verbatim),
                None => (1, What::Plain),
            },
            _ => (1, What::Plain),
        };
        if what != What::Plain {
            if plain < at {
                cuts.push(Cut { line: plain_line, text: &text[plain..at], what: What::Plain });
            }
            cuts.push(Cut { line: now, text: &text[at..at + length], what });
        }
        now += bytes[at..at + length].iter().filter(|&&b| b == b'\n').count();
        at += length;
        if what != What::Plain {
            (plain, plain_line) = (at, now);
        }
    };
    let last = if bytes.get(end.wrapping_sub(1)) == Some(&b';') && end > at { end - 1 } else { end };
    if plain < last {
        cuts.push(Cut { line: plain_line, text: &text[plain..last], what: What::Plain });
    }
    let is_empty = cuts.iter().all(|cut| cut.what == What::Verbatim || cut.text.trim().is_empty());
    if is_empty && last < end {
        return Err(Flaw::new(line, "there is no statement before this ';'"));
    }
    Ok(Statement { text: if is_empty { Vec::new() } else { cuts }, line, end })
}

/// Bytes of what stands in quotes, which its first byte is; `None`: it does not end.
fn quoted(text: &[u8], backslash: bool) -> Option<usize> {
    let mut at = 1;
    loop {
        match text.get(at)? {
            b'\\' if backslash => at += 2,
            byte if *byte == text[0] => match text.get(at + 1) {
                Some(next) if *next == text[0] => at += 2,
                _ => return Some(at + 1),
            },
            _ => at += 1,
        }
    }
}

/// Whether a backslash in the text that follows protects what is behind it: always in MySQL, in PostgreSQL behind an `E`.
fn takes_backslash(system: System, before: &str) -> bool {
    match system {
        System::Mysql => true,
        System::Postgres => before.strip_suffix(['E', 'e']).is_some_and(|before| !ends_in_name(before)),
        System::Sqlite => false,
    }
}

fn comment(text: &[u8], nests: bool) -> Option<usize> {
    let (mut at, mut depth) = (2, 1);
    while depth > 0 {
        match text.get(at..)? {
            [b'*', b'/', ..] => (at, depth) = (at + 2, depth - 1),
            [b'/', b'*', ..] if nests => (at, depth) = (at + 2, depth + 1),
            [] => return None,
            _ => at += 1,
        }
    }
    Some(at)
}

fn line_end(text: &[u8]) -> usize {
    text.iter().position(|&b| b == b'\n').unwrap_or(text.len())
}

/// `$$` or `$name$`. PostgreSQL's names have up to 63 bytes.
fn tag(text: &[u8]) -> Option<&[u8]> {
    let end = 1 + text[1..].iter().take(64).position(|&b| !b.is_ascii_alphanumeric() && b != b'_')?;
    let is_tag = text[end] == b'$' && !text[1].is_ascii_digit();
    is_tag.then(|| &text[..=end])
}

fn between(text: &[u8], tag: &[u8]) -> Option<usize> {
    let found = text[tag.len()..].windows(tag.len()).position(|window| window == tag)?;
    Some(found + 2 * tag.len())
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '.')
}

fn ends_in_name(text: &str) -> bool {
    text.ends_with(is_of_name)
}

/// Finds the variables of a statement.
pub(super) fn read(cuts: Vec<Cut<'_>>, system: System, names: &Columns) -> Result<Vec<Piece>, Flaw> {
    let mut pieces = Pieces(Vec::new());
    for (place, cut) in cuts.iter().enumerate() {
        let template =
            |text: &str| duel_template::parse(text, names).map_err(|what| Flaw::new(line_of(cut, &what), what));
        match cut.what {
            // A comment to the end of its line says nothing to the server.
            What::Verbatim if cut.text.starts_with("--") || cut.text.starts_with('#') => pieces.text(" "),
            What::Verbatim => pieces.text(cut.text),
            What::Plain => {
                let parts = template(cut.text)?;
                let behind = cuts.get(place + 1).map_or("", |cut| cut.text);
                plain(parts, behind, &mut pieces);
            }
            What::Name => {
                let parts = template(cut.text)?;
                if parts.iter().all(|part| matches!(part, Part::Text(_))) {
                    parts.iter().for_each(|part| pieces.part(part));
                } else {
                    pieces.0.push(Piece::OfName(parts));
                }
            }
            What::Quoted => {
                let inside = &cut.text[1..cut.text.len() - 1];
                let quote = &cut.text[..1];
                let parts = template(inside)?;
                if parts.iter().all(|part| matches!(part, Part::Text(_))) {
                    pieces.text(quote);
                    parts.iter().for_each(|part| pieces.part(part));
                    pieces.text(quote);
                    continue;
                }
                if pieces.ends_in_name() {
                    return Err(Flaw::new(
                        cut.line,
                        "a text with letters before its quote, such as E'...', cannot hold a variable",
                    ));
                }
                if system == System::Mysql && inside.contains('\\') {
                    return Err(Flaw::new(cut.line, "a text that holds a variable cannot hold a backslash, too"));
                }
                let doubled = quote.repeat(2);
                let single = |part| match part {
                    Part::Text(text) => Part::Text(text.replace(&doubled, quote)),
                    Part::Variable(variable) => Part::Variable(variable),
                };
                pieces.0.push(Piece::Value { parts: parts.into_iter().map(single).collect(), is_text: true });
            }
        }
    }
    Ok(pieces.trimmed())
}

/// Where in a cut a variable stands that a flaw names.
fn line_of(cut: &Cut<'_>, what: &str) -> usize {
    let name = what.split_once('}').map_or("", |(name, _)| name);
    let before = cut.text.find(name).map_or("", |at| &cut.text[..at]);
    cut.line + before.matches('\n').count()
}

/// Variables outside of quotes: values, or parts of names where they touch one.
fn plain(parts: Vec<Part>, behind: &str, pieces: &mut Pieces) {
    let mut parts = parts.into_iter().peekable();
    while let Some(part) = parts.next() {
        let Part::Variable(_) = part else {
            pieces.part(&part);
            continue;
        };
        let touches = match parts.peek() {
            Some(Part::Text(text)) => text.starts_with(is_of_name),
            Some(Part::Variable(_)) => true,
            None => behind.starts_with(['"', '`']),
        };
        if touches || pieces.ends_in_name() {
            pieces.0.push(Piece::OfName(vec![part]));
        } else {
            pieces.0.push(Piece::Value { parts: vec![part], is_text: false });
        }
    }
}

struct Pieces(Vec<Piece>);

impl Pieces {
    fn text(&mut self, more: &str) {
        match self.0.last_mut() {
            Some(Piece::Text(text)) => text.push_str(more),
            _ => self.0.push(Piece::Text(more.to_owned())),
        }
    }

    fn part(&mut self, part: &Part) {
        if let Part::Text(text) = part {
            self.text(text);
        }
    }

    fn ends_in_name(&self) -> bool {
        match self.0.last() {
            Some(Piece::Text(text)) => ends_in_name(text),
            Some(Piece::OfName(_)) => true,
            Some(Piece::Value { .. }) | None => false,
        }
    }

    fn trimmed(mut self) -> Vec<Piece> {
        if let Some(Piece::Text(first)) = self.0.first_mut() {
            *first = first.trim_start().to_owned();
        }
        if let Some(Piece::Text(last)) = self.0.last_mut() {
            last.truncate(last.trim_end().len());
        }
        self.0
    }
}
