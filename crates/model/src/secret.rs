//! Which names stand before secrets: the one list that plans, reports and the reading of hosts go by.

use crate::Plan;

/// Parts of names that give a secret away wherever they stand: `X-CSRF-Token`, `JSESSIONID`, `clientsecret`.
const PARTS: [&str; 10] = [
    "sessid",
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "session",
    "signature",
    "credential",
    "authorization",
];
/// Words that do so only as a whole: `X-Auth-Key` is a secret, a monkey is none.
const WORDS: [&str; 18] = [
    "key",
    "pass",
    "passcode",
    "pwd",
    "pw",
    "pin",
    "sig",
    "jwt",
    "sid",
    "otp",
    "bearer",
    "cookie",
    "auth",
    "authn",
    "apikey",
    "appkey",
    "accesskey",
    "privatekey",
];
/// Names with one of these words that no secret follows.
const PUBLIC: [&str; 7] =
    ["idempotency-key", "websocket-key", "web-socket-key", "cache-key", "surrogate-key", "public-key", "key-id"];

/// Whether a header field, a parameter, an option or a variable of this name carries a secret: by its definition, or because
/// people give such names to secrets.
pub fn is_secret_name(name: &str) -> bool {
    let words = words(name);
    let joined = words.join("-");
    PARTS.iter().any(|part| joined.contains(part) || joined.replace('-', "").contains(part))
        || (!PUBLIC.iter().any(|public| joined.contains(public))
            && words.iter().any(|word| WORDS.contains(&word.as_str()) || is_of_authentication(word)))
}

/// `oauth`, `auth0`, `authentication`, and not `author` or `authority`.
fn is_of_authentication(word: &str) -> bool {
    word.ends_with("auth") || (word.starts_with("auth") && !word.starts_with("author"))
}

/// The words of a name in small letters, which it parts by signs or by its letters' case: `X-Auth_apiKey.v2`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() || (was_small && c.is_ascii_uppercase()) {
            words.push(String::new());
        }
        if c.is_ascii_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.push(c.to_ascii_lowercase());
        }
        was_small = c.is_ascii_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// A text without the values of secret parameters in whatever addresses it holds: `?id=7&token=abc` keeps the 7. Where an
/// address was cut, what is left of a value goes too.
pub fn without_secret_parameters(text: &str) -> String {
    let mut public = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['?', '&', ';', '#']) {
        let (before, parameter) = rest.split_at(at + 1);
        public.push_str(before);
        let end = parameter.find(ends_a_parameter).unwrap_or(parameter.len());
        rest = &parameter[end..];
        match parameter[..end].split_once('=') {
            Some((name, _)) if parameter[name.len() + 1..].starts_with(Plan::LEFT_OUT) => {
                public.push_str(&parameter[..end]);
            }
            Some((name, value)) if !value.is_empty() && is_secret_name(name) => {
                public.push_str(&format!("{name}={}", Plan::LEFT_OUT));
            }
            _ => public.push_str(&parameter[..end]),
        }
    }
    public.push_str(rest);
    public
}

fn ends_a_parameter(c: char) -> bool {
    matches!(c, '?' | '&' | ';' | '#' | '"' | '\'' | '<' | '>' | '|') || c.is_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_that_vendors_give_to_secrets() {
        for name in [
            "Authorization",
            "Proxy-Authorization",
            "X-Original-Authorization",
            "X-Forwarded-Authorization",
            "Cookie",
            "X-Api-Key",
            "apikey",
            "API_KEY",
            "APIKey",
            "X-Auth-Key",
            "X-Auth",
            "X-Auth-Token",
            "Ocp-Apim-Subscription-Key",
            "X-Functions-Key",
            "X-Access-Key",
            "x-goog-api-key",
            "X-Amz-Security-Token",
            "X-Amz-Signature",
            "X-Amz-Credential",
            "DD-APPLICATION-KEY",
            "X-JWT-Assertion",
            "X-Passwd",
            "X-Pwd",
            "X-CSRF-Token",
            "JSESSIONID",
            "PHPSESSID_session",
            "access_token",
            "client_secret",
            "clientSecret",
            "accessKey",
            "sig",
            "jwt",
            "sid",
            "pass",
            "passwd",
            "pwd",
            "pin",
            "password",
            "--db-password",
            "DB_PASSWORD",
            "private-key",
            "oauth",
            "basicAuth",
            "auth0",
            "X-Vault-Token",
            "Bearer",
            "Private-Token",
            "signature",
            "pass-word",
            "key",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "Accept",
            "Accept-Encoding",
            "Content-Type",
            "User-Agent",
            "Idempotency-Key",
            "Sec-WebSocket-Key",
            "Surrogate-Key",
            "X-Cache-Key",
            "Public-Key-Pins",
            "X-Request-Id",
            "X-Request-Key-Id",
            "Authority",
            "Author",
            "monkey",
            "keyboard",
            "Keep-Alive",
            "keepalive",
            "compass",
            "passenger",
            "X-Passthrough",
            "spinner",
            "design",
            "id",
            "q",
            "page",
            "",
            "-",
            "X-Forwarded-For",
            "Origin",
            "Range",
            "If-None-Match",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn values_of_secret_parameters_are_left_out_and_others_stay() {
        for (text, public) in [
            (
                "https://h/?X-Amz-Signature=abc#access_token=abc",
                "https://h/?X-Amz-Signature=[left out]#access_token=[left out]",
            ),
            ("redirect to 'https://h/f?id=7&sig=abc' failed", "redirect to 'https://h/f?id=7&sig=[left out]' failed"),
            ("?token=abc%20&a=b c", "?token=[left out]&a=b c"),
            ("?token=a=b==", "?token=[left out]"),
            ("/token=abc", "/token=abc"),
            ("what? key=5 is", "what? key=5 is"),
            ("?token=&key=", "?token=&key="),
            ("", ""),
        ] {
            assert_eq!(without_secret_parameters(text), public);
            assert_eq!(without_secret_parameters(public), public, "once more changes nothing");
        }
    }

    proptest! {
        #[test]
        fn no_value_shows_and_nothing_else_is_lost(before in "[a-z/?&=# ]{0,20}", value in "[A-Z0-9%+/=.]{1,20}", after in "(&[x-z]{1,5}=[a-z]{1,5}){0,3}") {
            let text = format!("{before}?access_token={value}{after}");
            let public = without_secret_parameters(&text);
            prop_assert!(public.ends_with(&format!("access_token=[left out]{after}")), "{}", public);
        }
    }
}
