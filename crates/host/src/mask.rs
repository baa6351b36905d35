//! Command lines without their secrets.

use duel_model::is_secret_name;

/// What stands in place of a secret: the same words as in plans.
const MASK: &str = duel_model::Plan::REDACTED;

/// A command line, its arguments joined by blanks, in which values of options and variables with telling names, and
/// passwords in URLs, are replaced.
pub(crate) fn command_line<'a>(arguments: impl Iterator<Item = &'a str>) -> String {
    let mut line = String::new();
    let mut secret_follows = false;
    for argument in arguments {
        if !line.is_empty() {
            line.push(' ');
        }
        if std::mem::take(&mut secret_follows) {
            line.push_str(MASK);
            continue;
        }
        secret_follows = wants_a_secret(argument);
        line.push_str(&words(argument));
    }
    line
}

/// The same for a text in which blanks part words, such as a kernel's command line.
pub(crate) fn text(text: &str) -> String {
    words(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// An argument may itself be a text of several words, as for `sh -c`, or a header field.
fn words(argument: &str) -> String {
    let mut out = Vec::new();
    let mut secret_follows = false;
    for word in argument.split(' ') {
        if secret_follows && !word.is_empty() {
            out.push(MASK.to_owned());
            secret_follows = false;
            continue;
        }
        secret_follows |= wants_a_secret(word);
        out.push(masked_word(word));
        if secret_goes_on(word) {
            break;
        }
    }
    out.join(" ")
}

/// Whether this is an option whose value is the next word, whatever that begins with.
fn wants_a_secret(word: &str) -> bool {
    word.starts_with('-') && is_secret_name(word) && !word.contains(['=', ':'])
}

/// Whether a secret begins in this word whose end nobody can tell: `Authorization: Bearer X`, `password="a b"`.
fn secret_goes_on(word: &str) -> bool {
    let Some(at) = word.find(['=', ':']) else { return false };
    let (name, value) = (&word[..at], &word[at + 1..]);
    let is_header = word[at..].starts_with(':') && !value.starts_with("//");
    is_secret_name(name) && (is_header || value.is_empty() || value.starts_with(['"', '\'']))
}

fn masked_word(word: &str) -> String {
    if let Some((scheme, rest)) = word.split_once("://") {
        let authority = rest.split('/').next().unwrap_or(rest);
        if let Some((user, _)) = authority.rsplit_once('@') {
            return format!("{scheme}://{MASK}{}", masked_word(&rest[user.len()..]));
        }
    }
    if let Some(at) = word.find(['=', ':'])
        && is_secret_name(&word[..at])
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

    #[test]
    fn the_whole_value_is_masked_however_it_is_written() {
        let line = |text: &[&str]| command_line(text.iter().copied());
        for header in ["Authorization: Bearer s3cr3t", "Authorization:Bearer s3cr3t", "X-Auth-Token:  s3cr3t more"] {
            let shown = line(&["curl", "-H", header, "-v"]);
            let name = header.split(':').next().unwrap();
            assert_eq!(shown, format!("curl -H {name}:[not kept] -v"));
        }
        assert_eq!(line(&["x", "--password", "-s3cr3t", "-p", "80"]), "x --password [not kept] -p 80");
        assert_eq!(line(&["sh", "-c", "x --token  -s3cr3t -v"]), "sh -c x --token  [not kept] -v");
        assert_eq!(line(&["sh", "-c", "PASSWORD='s3 cr3t' x"]), "sh -c PASSWORD=[not kept]");
        assert_eq!(line(&["x", "password=", "y"]), "x password=[not kept] y", "its argument ends");
        assert_eq!(text("quiet root=/dev/sda token:  s3cr3t"), "quiet root=/dev/sda token:[not kept]");
    }

    proptest! {
        #[test]
        fn no_value_of_a_secret_header_shows(name in "[A-Za-z-]{0,5}", blanks in " {0,3}", scheme in "([A-Z][a-z]{1,5} )?") {
            let header = format!("{name}Authorization:{blanks}{scheme}SECRET1");
            let shown = command_line(["x", "-H", &header].into_iter());
            prop_assert!(!shown.contains("SECRET1"), "{}", shown);
        }

        #[test]
        fn any_argument_is_survived(arguments in prop::collection::vec(".{0,20}", 0..5)) {
            command_line(arguments.iter().map(String::as_str));
        }

        #[test]
        fn no_value_of_a_password_option_shows(name in "[a-z-]{0,5}", after in "[a-z-]{0,5}", dash in "-{0,2}") {
            let joined = format!("--{name}password{after}=SECRET1");
            let parted = format!("--{name}token{after}");
            let value = format!("{dash}SECRET1");
            let shown = command_line(["x", &joined, &parted, &value].into_iter());
            prop_assert!(!shown.contains("SECRET1"), "{}", shown);
        }
    }
}
