//! A request's fields, from its head as HTTP/1.1 has it.
//!
//! All that requests are made of (lists, variables, cookies, signatures) ends in such a head. What stays the same from op
//! to op is translated once.

use super::hpack;
use memchr::memchr;

/// Appends the header block of a request to `block`.
///
/// What concerns the connection alone is left out (RFC 9113, 8.2.2), `Host` becomes the authority (8.3.1).
pub(crate) fn push_fields(head: &[u8], is_tls: bool, block: &mut Vec<u8>) {
    let mut lines = head.split(|&b| b == b'\n').map(<[u8]>::trim_ascii_end);
    let mut words = lines.next().unwrap_or_default().split(|&b| b == b' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let fields =
        || lines.clone().filter_map(|line| memchr(b':', line).map(|at| (&line[..at], line[at + 1..].trim_ascii())));
    hpack::encode(b":method", method, block);
    hpack::encode(b":scheme", if is_tls { b"https" } else { b"http" }, block);
    if let Some((_, host)) = fields().find(|(name, _)| name.eq_ignore_ascii_case(b"host")) {
        hpack::encode(b":authority", host, block);
    }
    hpack::encode(b":path", path, block);
    for (name, value) in fields() {
        let name = name.to_ascii_lowercase();
        let is_of_connection = matches!(
            name.as_slice(),
            b"host" | b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade"
        );
        let is_to_next_hop = name == b"te" && value != b"trailers";
        if !is_of_connection && !is_to_next_hop {
            hpack::encode(&name, value, block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_lower_case_and_those_of_the_connection_are_left_out() {
        let head = b"POST /a?b HTTP/1.1\r\nHost: h:81\r\nConnection: close\r\nTE: gzip\r\nX-A: b: c\r\nContent-Length: 2\r\n\r\n";
        let mut block = Vec::new();
        push_fields(head, true, &mut block);
        let mut seen = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        hpack::Decoder::new().decode(&block, |name, value| seen.push((text(name), text(value)))).unwrap();
        let expected = [
            (":method", "POST"),
            (":scheme", "https"),
            (":authority", "h:81"),
            (":path", "/a?b"),
            ("x-a", "b: c"),
            ("content-length", "2"),
        ];
        assert_eq!(seen, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}
