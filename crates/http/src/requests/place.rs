//! Where a value stands in a request, and how it is kept from breaking out of there.

/// What a variable may not break out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Path or query of an address: values are percent-encoded.
    Address,
    /// A header field's value; what may stand there is checked before anything is sent.
    Field,
    /// A body: values stand as they are.
    Body,
}

/// Appends text to an address, percent-encoded so that it stays one part of it: all but the unreserved characters of RFC
/// 3986, 2.3.
pub(crate) fn push_encoded(out: &mut Vec<u8>, value: &[u8]) {
    for &b in value {
        if b.is_ascii_alphanumeric() || b"-._~".contains(&b) {
            out.push(b);
        } else {
            push_percent(out, b);
        }
    }
}

/// Appends a part of an address as it was written; only what cannot stand in a request line is encoded.
pub(crate) fn push_address(out: &mut Vec<u8>, text: &str) {
    for &b in text.as_bytes() {
        if b.is_ascii_graphic() && !b"\"<>`".contains(&b) {
            out.push(b);
        } else {
            push_percent(out, b);
        }
    }
}

fn push_percent(out: &mut Vec<u8>, b: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.extend_from_slice(&[b'%', DIGITS[usize::from(b >> 4)], DIGITS[usize::from(b & 15)]]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_one_part_of_an_address() {
        let mut out = Vec::new();
        push_encoded(&mut out, "a/b?&é\r\n~".as_bytes());
        push_address(&mut out, "/x%20?é \"{}");
        assert_eq!(String::from_utf8(out).unwrap(), "a%2Fb%3F%26%C3%A9%0D%0A~/x%20?%C3%A9%20%22{}");
    }
}
