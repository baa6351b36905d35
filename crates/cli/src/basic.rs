//! Basic credentials (RFC 7617): a user and a password in a header field.

/// The value of `Authorization` or `Proxy-Authorization`.
pub(crate) fn credentials(user_and_password: &str) -> String {
    format!("Basic {}", base64(user_and_password.as_bytes()))
}

/// Base64 with padding (RFC 4648, 4).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, index| bits << 8 | usize::from(group.get(index).copied().unwrap_or(0)));
        for digit in 0..4 {
            let is_padding = digit > group.len();
            text.push(if is_padding { '=' } else { char::from(DIGITS[bits >> (18 - 6 * digit) & 63]) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648() {
        for (plain, encoded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
        assert_eq!(base64(&[0xfb, 0xff]), "+/8=");
        // RFC 7617, 2.
        assert_eq!(credentials("Aladdin:open sesame"), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    }
}
