//! A connection's cookies (RFC 6265), as far as they matter to load on one target.
//!
//! A jar belongs to a connection to one host, so that `Domain` need not be looked at, and it ends with the connection. A
//! cookie that expires later is kept: runs are short.

use crate::requests::request::Request;
use duel_load::unix_ms;
use std::sync::Arc;

/// Most cookies in a jar, and longest cookie: what RFC 6265, 6.1 asks of browsers at least.
const MOST_COOKIES: usize = 50;
const LONGEST_COOKIE_BYTES: usize = 4096;

/// The cookies of a connection.
#[derive(Debug, Default)]
pub(crate) struct Jar {
    cookies: Vec<Cookie>,
}

#[derive(Debug, PartialEq, Eq)]
struct Cookie {
    name: Vec<u8>,
    value: Vec<u8>,
    path: Vec<u8>,
}

impl Jar {
    /// Takes what a response's head sets or takes back. `path` is the request's, without its query.
    pub(crate) fn take(&mut self, head: &[u8], path: &[u8], is_tls: bool) {
        for line in head.split(|&b| b == b'\n').skip(1) {
            let Some(colon) = line.iter().position(|&b| b == b':') else { continue };
            if line[..colon].eq_ignore_ascii_case(b"set-cookie") && line.len() <= LONGEST_COOKIE_BYTES {
                self.set(&line[colon + 1..], path, is_tls);
            }
        }
    }

    fn set(&mut self, text: &[u8], path: &[u8], is_tls: bool) {
        let mut parts = text.split(|&b| b == b';').map(<[u8]>::trim_ascii);
        let Some((name, value)) = parts.next().and_then(split_pair) else { return };
        let is_sendable = |bytes: &[u8]| bytes.iter().all(|&b| b > 32 && b != 127 || b == b' ');
        if name.is_empty() || !is_sendable(name) || !is_sendable(value) {
            return;
        }
        let mut cookie = Cookie { name: name.to_vec(), value: value.to_vec(), path: default_path(path).to_vec() };
        let (mut max_age, mut expires) = (None, None);
        for part in parts {
            let (attribute, value) = split_pair(part).unwrap_or((part, b""));
            match attribute.to_ascii_lowercase().as_slice() {
                b"path" if value.starts_with(b"/") => cookie.path = value.to_vec(),
                b"max-age" => max_age = std::str::from_utf8(value).ok().and_then(|value| value.parse::<i64>().ok()),
                b"expires" => expires = date(value),
                // Browsers do not take such a cookie from the open wire, nor give it there.
                b"secure" if !is_tls => return,
                _ => {}
            }
        }
        // The age counts where both are given (5.3, 3).
        let is_over = max_age.map_or_else(|| expires.is_some_and(|at| at <= unix_ms() / 1000), |age| age <= 0);
        let known = self.cookies.iter().position(|known| known.name == cookie.name && known.path == cookie.path);
        match (known, is_over) {
            // It keeps its place among those of equal paths (5.3, 11).
            (Some(at), false) => self.cookies[at] = cookie,
            (Some(at), true) => drop(self.cookies.remove(at)),
            (None, true) => {}
            (None, false) => {
                // The oldest makes room (5.3): what a server sets last, such as a login, is what it asks for next.
                if self.cookies.len() == MOST_COOKIES {
                    self.cookies.remove(0);
                }
                self.cookies.push(cookie);
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.cookies.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.cookies.clear();
    }

    /// Joins a request that was made without them, as redirects' are.
    pub(crate) fn go_along(&self, request: &mut Arc<Request>) {
        if !self.is_empty() {
            let mut field = Vec::new();
            self.push_field(path_of(&request.bytes), &mut field);
            *request = Arc::new(request.with_field(&field));
        }
    }

    /// Appends the `Cookie` field for a request to this path, if there is a cookie for it; longer paths first (5.4, 2).
    pub(crate) fn push_field(&self, path: &[u8], out: &mut Vec<u8>) {
        let mut fitting: Vec<&Cookie> = self.cookies.iter().filter(|cookie| covers(&cookie.path, path)).collect();
        fitting.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        for (index, cookie) in fitting.iter().enumerate() {
            out.extend_from_slice(if index == 0 { b"Cookie: " } else { b"; " });
            out.extend_from_slice(&cookie.name);
            out.push(b'=');
            out.extend_from_slice(&cookie.value);
        }
        if !fitting.is_empty() {
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// The path in a request's first line, without its query; also of one that names its host for a proxy.
pub(crate) fn path_of(head: &[u8]) -> &[u8] {
    let target = head.split(|&b| b == b' ').nth(1).unwrap_or_default();
    let target = target
        .strip_prefix(b"http://")
        .map_or(target, |rest| rest.iter().position(|&b| b == b'/').map_or(&b"/"[..], |at| &rest[at..]));
    target.split(|&b| b == b'?').next().unwrap_or_default()
}

fn split_pair(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|&b| b == b'=')?;
    Some((text[..at].trim_ascii(), text[at + 1..].trim_ascii()))
}

/// RFC 6265, 5.1.4.
fn default_path(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|&b| b == b'/') {
        None | Some(0) => b"/",
        Some(last) => &path[..last],
    }
}

/// RFC 6265, 5.1.4.
fn covers(cookie: &[u8], path: &[u8]) -> bool {
    path.strip_prefix(cookie).is_some_and(|rest| rest.is_empty() || cookie.ends_with(b"/") || rest.starts_with(b"/"))
}

/// Seconds since 1970 of a date such as `Wed, 21 Oct 2015 07:28:00 GMT`, in whatever order its parts stand (5.1.1).
fn date(text: &[u8]) -> Option<i64> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let text = std::str::from_utf8(text).ok()?.to_ascii_lowercase();
    let (mut day, mut month, mut year, mut of_day) = (None, None, None, None);
    for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != ':').filter(|word| !word.is_empty()) {
        let number = word.parse::<i64>().ok().filter(|number| (0..=9999).contains(number));
        if word.contains(':') {
            let mut parts = word.split(':').map(|part| part.parse::<i64>().ok().filter(|part| (0..60).contains(part)));
            of_day = Some(parts.next()?? * 3600 + parts.next()?? * 60 + parts.next()??);
        } else if let Some(at) = word.get(..3).and_then(|word| MONTHS.iter().position(|month| *month == word)) {
            month = month.or(Some(at as i64 + 1));
        } else if day.is_none() && word.len() <= 2 {
            day = number;
        } else if year.is_none() {
            year = number.map(|year| match (word.len(), year) {
                (2, 0..=69) => year + 2000,
                (2, _) => year + 1900,
                _ => year,
            });
        }
    }
    Some(days_from_civil(year?, month?, day?) * 86_400 + of_day?)
}

/// Days since 1970 (Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sent(jar: &Jar, path: &str) -> String {
        let mut out = Vec::new();
        jar.push_field(path.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    fn jar(lines: &[&str]) -> Jar {
        let mut jar = Jar::default();
        let head = format!("HTTP/1.1 200 OK\r\n{}\r\n\r\n", lines.join("\r\n"));
        jar.take(head.as_bytes(), b"/a/b", false);
        jar
    }

    #[test]
    fn cookies_are_sent_where_their_path_covers() {
        let jar = jar(&["Set-Cookie: a=1", "set-cookie: b = \"2\" ; Path=/; HttpOnly", "Set-Cookie: c=3; Path=/a/b/"]);
        assert_eq!(sent(&jar, "/a/b"), "Cookie: a=1; b=\"2\"\r\n");
        assert_eq!(sent(&jar, "/a/b/c"), "Cookie: c=3; a=1; b=\"2\"\r\n");
        assert_eq!(sent(&jar, "/ab"), "Cookie: b=\"2\"\r\n");
        assert_eq!(sent(&Jar::default(), "/"), "");
    }

    #[test]
    fn cookies_are_replaced_and_taken_back() {
        assert_eq!(sent(&jar(&["Set-Cookie: a=1", "Set-Cookie: a=2"]), "/a/b"), "Cookie: a=2\r\n");
        for end in [
            "Max-Age=0",
            "max-age=-1; Expires=Fri, 01 Jan 2100 00:00:00 GMT",
            "Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            "expires=Wednesday, 09-Nov-99 23:12:40 GMT",
        ] {
            assert_eq!(sent(&jar(&["Set-Cookie: a=1", &format!("Set-Cookie: a=x; {end}")]), "/a/b"), "", "{end}");
        }
        for kept in [
            "Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            "Expires=nonsense",
            "Expires=Fri, 01 Jan 2100 00:00:00 GMT",
        ] {
            assert_eq!(sent(&jar(&[&format!("Set-Cookie: a=1; {kept}")]), "/a/b"), "Cookie: a=1\r\n", "{kept}");
        }
    }

    #[test]
    fn a_full_jar_loses_its_oldest_cookie_and_a_replaced_one_keeps_its_place() {
        let mut lines: Vec<String> = (0..MOST_COOKIES).map(|n| format!("Set-Cookie: track{n}=1")).collect();
        lines.push("Set-Cookie: login=1".into());
        lines.push("Set-Cookie: track1=2".into());
        let sent = sent(&jar(&lines.iter().map(String::as_str).collect::<Vec<_>>()), "/a/b");
        assert!(sent.starts_with("Cookie: track1=2; track2=1; ") && sent.ends_with("; login=1\r\n"), "{sent}");
    }

    #[test]
    fn what_cannot_be_sent_back_is_not_kept() {
        assert_eq!(
            sent(&jar(&["Set-Cookie: a", "Set-Cookie: =1", "Set-Cookie: a=\x01", "Set-Cookie: s=1; Secure"]), "/a/b"),
            ""
        );
        let many: Vec<String> = (0..80).map(|n| format!("Set-Cookie: c{n}={}", "x".repeat(n * 100))).collect();
        let jar = jar(&many.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(jar.cookies.len() <= MOST_COOKIES && jar.cookies.iter().all(|c| c.value.len() < LONGEST_COOKIE_BYTES));
        assert_eq!(days_from_civil(1970, 1, 1), 0);
        assert_eq!(date(b"Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
    }

    #[test]
    fn the_path_of_a_request() {
        assert_eq!(path_of(b"GET /a?b HTTP/1.1\r\n"), b"/a");
        assert_eq!(path_of(b"GET http://h:1/a?b HTTP/1.1\r\n"), b"/a");
        assert_eq!(path_of(b""), b"");
    }

    proptest! {
        #[test]
        fn any_head_is_taken(lines in prop::collection::vec("[a-e=;/0-9 :,\\t\x01\x7f-]{0,40}", 0..5)) {
            let mut jar = Jar::default();
            let head = format!("HTTP/1.1 200 OK\r\nSet-Cookie: {}\r\n\r\n", lines.join("\r\nSet-Cookie: "));
            jar.take(head.as_bytes(), b"/x", true);
            let sent = sent(&jar, "/x");
            prop_assert_eq!(sent.matches("\r\n").count(), usize::from(!sent.is_empty()));
        }
    }
}
