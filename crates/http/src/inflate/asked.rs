//! Which codings a request asks for.

use std::fmt;

/// Codings that an `Accept-Encoding` allows (RFC 9110, 12.5.3), of those that are known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked(u8);

/// The codings, with what they are called and the bit of each.
const CODINGS: [(&str, u8); 4] = [("gzip", 1), ("deflate", 2), ("br", 4), ("zstd", 8)];
const ALL: u8 = 15;

impl Asked {
    /// Every coding, as of a request that says nothing of them.
    pub(crate) const ANY: Self = Self(ALL);

    /// What the head of a request asks for, in the form of HTTP/1.1.
    pub(crate) fn of(head: &[u8]) -> Self {
        let (mut is_there, mut named, mut asked, mut others) = (false, 0, 0, false);
        let lines = head.split(|&byte| byte == b'\n').skip(1).map(<[u8]>::trim_ascii);
        for line in lines.take_while(|line| !line.is_empty()) {
            let Some(value) = value_of(line) else { continue };
            is_there = true;
            for item in value.split(|&byte| byte == b',') {
                let (name, weight) = item.split_at(item.iter().position(|&byte| byte == b';').unwrap_or(item.len()));
                let (name, is_wanted) = (name.trim_ascii(), !is_zero(weight));
                if name == b"*" {
                    others = is_wanted;
                }
                let bit = bit_of(name);
                named |= bit;
                asked |= if is_wanted { bit } else { 0 };
            }
        }
        match (is_there, others) {
            (false, _) => Self::ANY,
            (true, true) => Self(asked | ALL & !named),
            (true, false) => Self(asked),
        }
    }

    /// Whether it has asked for this coding, whatever the case of its letters.
    pub(crate) fn has(self, coding: &[u8]) -> bool {
        self.0 & bit_of(coding) != 0
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = CODINGS.iter().filter(|(_, bit)| self.0 & bit != 0).map(|(name, _)| *name).collect();
        f.write_str(if names.is_empty() { "none" } else { "" })?;
        f.write_str(&names.join(", "))
    }
}

fn value_of(line: &[u8]) -> Option<&[u8]> {
    const NAME: &[u8] = b"accept-encoding:";
    let (name, value) = line.split_at_checked(NAME.len())?;
    name.eq_ignore_ascii_case(NAME).then_some(value)
}

fn bit_of(name: &[u8]) -> u8 {
    let name = if name.eq_ignore_ascii_case(b"x-gzip") { b"gzip" } else { name };
    CODINGS.iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes())).map_or(0, |(_, bit)| *bit)
}

/// Whether `;q=0`, with zeros behind the point, stands there: not wanted.
fn is_zero(weight: &[u8]) -> bool {
    let weight = weight.strip_prefix(b";").unwrap_or(weight).trim_ascii();
    let value = weight.strip_prefix(b"q=").or_else(|| weight.strip_prefix(b"Q="));
    value.is_some_and(|value| value.starts_with(b"0") && value.iter().all(|byte| matches!(byte, b'0' | b'.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(fields: &str) -> String {
        Asked::of(format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\nAccept-Encoding: br").as_bytes()).to_string()
    }

    #[test]
    fn what_a_request_asks_for() {
        for (fields, expected) in [
            ("X: gzip", "gzip, deflate, br, zstd"),
            ("Accept-Encoding: gzip", "gzip"),
            ("accept-encoding: BR;q=1.0, GZip ; q=0.5", "gzip, br"),
            ("Accept-Encoding: br;q=0, gzip;q=0.000, zstd;q=0.001", "zstd"),
            ("Accept-Encoding: x-gzip\r\nAccept-Encoding:deflate", "gzip, deflate"),
            ("Accept-Encoding: *", "gzip, deflate, br, zstd"),
            ("Accept-Encoding: br;q=0, *", "gzip, deflate, zstd"),
            ("Accept-Encoding: br, *;q=0", "br"),
            ("Accept-Encoding: identity", "none"),
            ("Accept-Encoding:", "none"),
            ("Accept-Encoding: compress, brr", "none"),
        ] {
            assert_eq!(asked(fields), expected, "{fields}");
        }
        assert!(Asked::of(b"GET / HTTP/1.1\r\nAccept-Encoding: gzip\r\n\r\n").has(b"X-GZIP"));
    }
}
