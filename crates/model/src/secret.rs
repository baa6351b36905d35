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

/// Whether the value of a header field is a secret: by the field's name, or because it begins as credentials do (RFC 9110,
/// 11.4), whatever field they are in.
pub fn is_secret_field(name: &str, value: &str) -> bool {
    const SCHEMES: [&str; 4] = ["basic", "bearer", "digest", "negotiate"];
    let scheme = value.trim_start().split_once(' ').map(|(scheme, _)| scheme);
    is_secret_name(name) || scheme.is_some_and(|scheme| SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known)))
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

/// A text without what is secret in whatever addresses it holds: user information (`//user:password@`) and values of
/// parameters whose names say that they are secret. It is the one rule for all that is shown, and for all that is kept of
/// what others have said. A secret within a path is not known as one.
pub fn without_secrets(text: &str) -> String {
    cleaned(text, MOST_ESCAPES)
}

/// How often an address is escaped that is a part of another one, at most: a way back within a way back is the most that is
/// seen. Without a bound each `%25` of a hostile text would be one more turn.
const MOST_ESCAPES: u32 = 3;

fn cleaned(text: &str, escapes: u32) -> String {
    // Failures come by the thousand, and most of their texts hold no address.
    if !text.contains(begins_a_parameter) && !text.contains("//") {
        return text.to_owned();
    }
    without_parameters(&without_user_information(text), escapes)
}

/// An address without its secrets. Unlike a text it has no end before its last character, so that blanks and quotes in a
/// value are a part of it.
pub fn public_address(address: &str) -> String {
    let mut whole = String::with_capacity(address.len());
    for c in address.chars() {
        if ends_a_word(c) || matches!(c, '\'' | ';') {
            c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| whole.push_str(&format!("%{byte:02X}")));
        } else {
            whole.push(c);
        }
    }
    // What has no secret is shown as it was typed.
    let public = without_secrets(&whole);
    if public == whole { without_secrets(address) } else { public }
}

/// Addresses whose user is a name, and no token.
const USERS_ARE_NAMES: [&str; 5] = ["ssh://", "postgres://", "postgresql://", "mysql://", "mariadb://"];

/// A text without the user information of the addresses in it.
fn without_user_information(text: &str) -> String {
    let mut public = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("//") {
        let (before, authority) = rest.split_at(at + 2);
        public.push_str(before);
        rest = match user_information(authority) {
            // It was left out before.
            Some(end) if authority[..end] == *DOTS => authority,
            // The user of a shell or a database on another machine is no secret; a user of a web server may be a token.
            Some(end)
                if USERS_ARE_NAMES.iter().any(|scheme| before.ends_with(scheme)) && !authority[..end].contains(':') =>
            {
                authority
            }
            Some(end) if end > 0 => {
                public.push_str(Plan::LEFT_OUT);
                &authority[end..]
            }
            _ => authority,
        };
    }
    public.push_str(rest);
    public
}

/// What messages about a typed address have in place of a password.
const DOTS: &str = "...";

/// Where the `@` behind the user information of an authority is.
fn user_information(text: &str) -> Option<usize> {
    // Longer than any password. A text that is full of addresses is looked through once and not once for each of them.
    const LONGEST: usize = 1024;
    let ends = |&(at, c): &(usize, char)| at > LONGEST || ends_a_word(c) || is_closing_quote(text, at, c);
    let is_part = |(_, c): &(usize, char)| matches!(c, '/' | '?' | '#' | '\\');
    let end = text.char_indices().find(|found| is_part(found) || ends(found)).map_or(text.len(), |(at, _)| at);
    let authority = &text[..end];
    authority.rfind('@').or_else(|| {
        // A slash in a password that was not escaped: then what stands behind the colon is no port.
        let (host, port) = authority.rsplit_once(':')?;
        if port.chars().all(|c| c.is_ascii_digit()) || host.starts_with('[') {
            return None;
        }
        let word = text.char_indices().find(ends).map_or(text.len(), |(at, _)| at);
        text[..word].rfind('@')
    })
}

/// A text without the values of secret parameters in whatever addresses it holds: `?id=7&token=abc` keeps the 7. Where an
/// address was cut, what is left of a value goes too.
pub fn without_secret_parameters(text: &str) -> String {
    without_parameters(text, MOST_ESCAPES)
}

fn without_parameters(text: &str, escapes: u32) -> String {
    let mut public = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['?', '&', ';', '#']) {
        let (before, parameter) = rest.split_at(at + 1);
        public.push_str(before);
        let name_end = parameter.find(|c| c == '=' || begins_a_parameter(c) || ends_a_word(c));
        let name_end = name_end.filter(|&end| parameter[end..].starts_with('='));
        let Some((name, value)) = name_end.map(|end| (&parameter[..end], &parameter[end + 1..])) else {
            rest = parameter;
            continue;
        };
        public.push_str(&format!("{name}="));
        rest = value;
        if value.starts_with(Plan::LEFT_OUT) || value.starts_with(Plan::REDACTED) {
            continue;
        }
        let secret_length = if is_secret_name(&decoded(name)) {
            value_length(value)
        } else {
            // No more than belongs to it: what follows is looked at by itself, and only once.
            let end = value.find(|c| begins_a_parameter(c) || ends_a_word(c)).unwrap_or(value.len());
            if holds_a_secret(&value[..end], escapes) { end } else { 0 }
        };
        if secret_length > 0 {
            public.push_str(Plan::LEFT_OUT);
            rest = &value[secret_length..];
        }
    }
    public.push_str(rest);
    public
}

/// How long a parameter's value is, if it is a secret: what may belong to it goes with it.
fn value_length(value: &str) -> usize {
    let next_is_parameter = |rest: &str| {
        rest.find(|c| c == '=' || begins_a_parameter(c) || ends_a_word(c)).is_some_and(|at| rest[at..].starts_with('='))
    };
    let ends = |(at, c): &(usize, char)| {
        let (at, c) = (*at, *c);
        matches!(c, '&' | '#')
            || ends_a_word(c)
            || is_closing_quote(value, at, c)
            || (c == ';' && next_is_parameter(&value[at + 1..]))
    };
    value.char_indices().find(ends).map_or(value.len(), |(at, _)| at)
}

/// Whether a value is, or has in it, an address with a secret that was escaped for its way.
fn holds_a_secret(value: &str, escapes: u32) -> bool {
    if escapes == 0 || !value.contains('%') {
        return false;
    }
    let plain = decoded(value);
    cleaned(&plain, escapes - 1) != plain || holds_a_secret(&plain, escapes - 1)
}

/// A text without its percent escapes.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, others @ ..] = rest {
        let digit = |at: usize| others.get(at).and_then(|&byte| char::from(byte).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = &others[2..];
            }
            _ => {
                bytes.push(*first);
                rest = others;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn begins_a_parameter(c: char) -> bool {
    matches!(c, '?' | '&' | ';' | '#')
}

fn ends_a_word(c: char) -> bool {
    matches!(c, '"' | '<' | '>' | '|') || c.is_whitespace()
}

/// Whether a quote ends what it stands behind: within a word it is a letter of it.
fn is_closing_quote(text: &str, at: usize, c: char) -> bool {
    c == '\'' && !text[at + 1..].starts_with(|next: char| next.is_alphanumeric() || "%_-=&/@:.~+".contains(next))
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
    fn credentials_are_known_in_whatever_field_they_are() {
        assert!(is_secret_field("X-Forwarded", "Bearer abc") && is_secret_field("X-Y", " basic eDp5"));
        assert!(!is_secret_field("X-Y", "basically fine") && !is_secret_field("X-Y", "Basic"));
    }

    #[test]
    fn what_is_secret_in_an_address_is_left_out_wherever_the_address_stands() {
        for (text, public) in [
            ("https://user:pass@h/x", "https://[left out]@h/x"),
            ("https://ghp_abc@h/x and more", "https://[left out]@h/x and more"),
            ("'//u:p@ss@h:81/a@b' failed", "'//[left out]@h:81/a@b' failed"),
            ("see 'https://u:it's@h/' now", "see 'https://[left out]@h/' now"),
            ("https://u:a/b@h/", "https://[left out]@h/"),
            ("'https://...@h/' has a password", "'https://...@h/' has a password"),
            (
                "https://h/a@b http://[::1]:80/@x https://h:8443/x@y",
                "https://h/a@b http://[::1]:80/@x https://h:8443/x@y",
            ),
            ("over ssh to ssh://me@web1", "over ssh to ssh://me@web1"),
            ("ssh://me:pw@web1", "ssh://[left out]@web1"),
            ("at postgres://u@/db?host=/tmp", "at postgres://u@/db?host=/tmp"),
            ("at mysql://u:pw@h/db", "at mysql://[left out]@h/db"),
            ("https://h/?%74oken=abc&x=1", "https://h/?%74oken=[left out]&x=1"),
            ("/login?next=https%3A%2F%2Fh%2F%3Ftoken%3Dabc&x=1", "/login?next=[left out]&x=1"),
            ("/login?next=https%253A%252F%252Fu%253Ap%2540h", "/login?next=[left out]"),
            ("/login?next=https%3A%2F%2Fh%2F", "/login?next=https%3A%2F%2Fh%2F"),
            ("?token=a;b;c&x=1", "?token=[left out]&x=1"),
            ("?token=a;id=7", "?token=[left out];id=7"),
            ("?token=ab'cd?ef", "?token=[left out]"),
            ("?token=[not kept]&x=1", "?token=[not kept]&x=1"),
        ] {
            assert_eq!(without_secrets(text), public);
            assert_eq!(without_secrets(public), public, "once more changes nothing");
        }
        assert_eq!(public_address("https://h/?token=a b;c'\"d&x=1"), "https://h/?token=[left out]&x=1");
        assert_eq!(public_address("http://u:p w@h/"), "http://[left out]@h/");
        assert_eq!(public_address("https://h/a;b'c\"d?x=1"), "https://h/a;b'c\"d?x=1");
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

    #[test]
    fn a_long_hostile_text_is_soon_read() {
        // A field of an answer may have 256 KiB; with a turn of its own for each mark this would take minutes.
        for part in ["//", "//a:b", "?a=%25", "?token=;", "%25", "&a=%2525"] {
            let text = format!("?a={}", part.repeat(128 * 1024 / part.len()));
            assert!(without_secrets(&text).len() <= text.len() + 16 * 1024 * 1024);
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
