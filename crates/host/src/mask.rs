//! Command lines without their secrets.

/// What stands in place of a secret: the same words as in plans.
const MASK: &str = duel_model::Plan::REDACTED;

/// Parts of names whose values are secret.
const SECRET_NAMES: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "token",
    "secret",
    "apikey",
    "api-key",
    "api_key",
    "credential",
    "private-key",
    "auth",
];

/// A command line, its arguments joined by blanks, in which values of options and variables with telling names, and
/// passwords in URLs, are replaced.
pub(crate) fn command_line<'a>(arguments: impl Iterator<Item = &'a str>) -> String {
    let mut line = String::new();
    let mut secret_follows = false;
    for argument in arguments {
        if !line.is_empty() {
            line.push(' ');
        }
        if secret_follows && !argument.starts_with('-') {
            line.push_str(MASK);
            secret_follows = false;
            continue;
        }
        secret_follows = argument.starts_with('-') && is_secret(argument) && !argument.contains(['=', ':']);
        line.push_str(&words(argument));
    }
    line
}

/// The same for a text in which blanks part words, such as a kernel's command line.
pub(crate) fn text(text: &str) -> String {
    command_line(text.split_whitespace())
}

/// An argument may itself be a text of several words, as for `sh -c`.
fn words(argument: &str) -> String {
    let mut out = Vec::new();
    let mut secret_follows = false;
    for word in argument.split(' ') {
        if std::mem::take(&mut secret_follows) && !word.is_empty() && !word.starts_with('-') {
            out.push(MASK.to_owned());
            continue;
        }
        secret_follows = word.starts_with('-') && is_secret(word) && !word.contains(['=', ':']);
        out.push(masked_word(word));
    }
    out.join(" ")
}

fn masked_word(word: &str) -> String {
    if let Some((scheme, rest)) = word.split_once("://") {
        let authority = rest.split('/').next().unwrap_or(rest);
        if let Some((user, _)) = authority.rsplit_once('@') {
            return format!("{scheme}://{MASK}{}", masked_word(&rest[user.len()..]));
        }
    }
    if let Some(at) = word.find(['=', ':'])
        && is_secret(&word[..at])
    {
        return format!("{}{MASK}", &word[..=at]);
    }
    // Several assignments in one word, as in URLs' queries and connection strings.
    for separator in ['&', ';', ','] {
        if word.contains(separator) && word.contains('=') {
            let parts: Vec<String> = word.split(separator).map(masked_word).collect();
            return parts.join(&separator.to_string());
        }
    }
    word.to_owned()
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn obvious_secrets_are_masked() {
        let line = |text: &[&str]| command_line(text.iter().copied());
        assert_eq!(line(&["x", "--password=hunter2", "-p", "80"]), "x --password=[not kept] -p 80");
        assert_eq!(line(&["x", "--db-password", "hunter2", "y"]), "x --db-password [not kept] y");
        assert_eq!(line(&["x", "postgres://me:hunter2@db/x"]), "x postgres://[not kept]@db/x");
        assert_eq!(
            line(&["sh", "-c", "run --token hunter2 API_KEY=hunter2"]),
            "sh -c run --token [not kept] API_KEY=[not kept]"
        );
        assert_eq!(line(&["x", "http://h/?a=1&token=hunter2"]), "x http://h/?a=1&token=[not kept]");
        assert_eq!(
            line(&["nginx: master process", "/usr/sbin/nginx", "-g", "daemon on;"]),
            "nginx: master process /usr/sbin/nginx -g daemon on;"
        );
    }

    proptest! {
        #[test]
        fn any_argument_is_survived(arguments in prop::collection::vec(".{0,20}", 0..5)) {
            command_line(arguments.iter().map(String::as_str));
        }

        #[test]
        fn no_value_of_a_password_option_shows(name in "[a-z-]{0,5}", after in "[a-z-]{0,5}") {
            let joined = format!("--{name}password{after}=SECRET1");
            let parted = format!("--{name}token{after}");
            let shown = command_line(["x", &joined, &parted, "SECRET1"].into_iter());
            prop_assert!(!shown.contains("SECRET1"), "{}", shown);
        }
    }
}
