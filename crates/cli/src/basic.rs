//! Basic credentials (RFC 7617): a user and a password in a header field.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The value of `Authorization` or `Proxy-Authorization`.
pub(crate) fn credentials(user_and_password: &str) -> String {
    format!("Basic {}", STANDARD.encode(user_and_password))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_those_of_rfc_7617() {
        assert_eq!(credentials("Aladdin:open sesame"), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    }
}
