//! An HTTP proxy as it is typed, and who asks it.

use crate::basic;
use crate::outcome::Usage;
use duel_model::{ProxyPlan, sanitize_line};
use std::io::Read;
use std::path::Path;
use url::Url;

/// The header field that carries credentials to a proxy. It is a secret, so that it is not kept.
pub(crate) const CREDENTIALS: &str = "Proxy-Authorization";
/// Environment variable with the password for the proxy.
const PASSWORD_VARIABLE: &str = "DUEL_PROXY_PASSWORD";
/// A file without line ends is not read whole.
const LONGEST_PASSWORD_BYTES: u64 = 4096;

/// A proxy as it is typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Typed {
    pub(crate) plan: ProxyPlan,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
}

/// Reads `HOST:PORT` or `http://[USER[:PASSWORD]@]HOST:PORT`. An error goes on behind the option's name; nothing of what
/// was typed is in it, since there may be a password there.
pub(crate) fn parse(typed: &str) -> Result<Typed, String> {
    let address = if typed.contains("://") { typed.to_owned() } else { format!("http://{typed}") };
    let url = Url::parse(&address).map_err(|error| format!("takes host:port of a proxy: {error}"))?;
    if url.scheme() != "http" {
        return Err(format!("takes host:port of a proxy; the scheme {} is not available", sanitize_line(url.scheme())));
    }
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return Err("takes host:port of a proxy, and nothing behind it".to_owned());
    }
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
    let port = url.port_or_known_default().filter(|&port| port > 0 && !host.is_empty());
    let port = port.ok_or_else(|| "takes host:port of a proxy".to_owned())?;
    let text = |encoded: &str| decoded(encoded).ok_or_else(|| "takes a user and a password that are text".to_owned());
    let user = Some(url.username()).filter(|user| !user.is_empty()).map(text).transpose()?;
    let password = url.password().map(text).transpose()?;
    if user.as_ref().is_some_and(|user| user.contains(':')) {
        return Err("takes a user without a colon (RFC 7617, 2)".to_owned());
    }
    Ok(Typed { plan: ProxyPlan { host, port }, user, password })
}

/// The value of the header field for `--proxy`; the password stands in a file or in the environment, since everybody on
/// this machine can read command lines.
pub(crate) fn credentials(proxy: &Typed, password_file: Option<&Path>) -> Result<Option<String>, Usage> {
    if proxy.password.is_some() {
        return Err(Usage(format!(
            "--proxy: everybody on this machine could read that password; give the user only, http://USER@{}, and the \
             password in ${PASSWORD_VARIABLE} or in a file (--proxy-password-file)",
            proxy.plan
        )));
    }
    let Some(user) = &proxy.user else {
        return match password_file {
            None => Ok(None),
            Some(_) => {
                Err(Usage(format!("--proxy-password-file: whose password is it? --proxy http://USER@{}", proxy.plan)))
            }
        };
    };
    let password = match password_file {
        Some(path) => first_line(path).map_err(|why| {
            let shown = sanitize_line(&path.to_string_lossy());
            Usage(format!("--proxy-password-file {shown}: the password cannot be read: {why}"))
        })?,
        None => std::env::var(PASSWORD_VARIABLE).ok().filter(|password| !password.is_empty()).ok_or_else(|| {
            Usage(format!(
                "--proxy: there is no password for {}: set {PASSWORD_VARIABLE}, or name a file with --proxy-password-file",
                sanitize_line(user)
            ))
        })?,
    };
    Ok(Some(basic::credentials(&format!("{user}:{password}"))))
}

fn first_line(path: &Path) -> Result<String, std::io::Error> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(LONGEST_PASSWORD_BYTES).read_to_string(&mut text)?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// Text whose `%XX` are bytes; `None` where that is no text.
pub(crate) fn decoded(encoded: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = encoded.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let escape = behind.get(..2).filter(|_| first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match escape.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(first);
                rest = behind;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_are_host_and_port_or_an_address() {
        let of = |typed: &str| parse(typed).map(|proxy| proxy.plan.to_string());
        assert_eq!(of("proxy:3128").as_deref(), Ok("proxy:3128"));
        assert_eq!(of("10.0.0.1:3128").as_deref(), Ok("10.0.0.1:3128"));
        assert_eq!(of("http://proxy:3128/").as_deref(), Ok("proxy:3128"));
        assert_eq!(of("[::1]:8080").as_deref(), Ok("[::1]:8080"));
        for (wrong, part) in [
            ("socks5://proxy:1080", "socks5 is not available"),
            ("https://proxy:443", "https is not available"),
            ("proxy:notaport", "host:port"),
            ("proxy:0", "host:port"),
            ("", "host:port"),
            ("proxy:1/path", "nothing behind it"),
            ("u:s3cr3t@proxy:x", "host:port"),
        ] {
            let said = of(wrong).unwrap_err();
            assert!(said.contains(part) && !said.contains("s3cr3t"), "{wrong}: {said}");
        }
    }

    #[test]
    fn users_and_passwords_are_decoded() {
        let proxy = parse("http://me%40home:a%3Ab%25+%zz@proxy:3128").unwrap();
        assert_eq!((proxy.user.as_deref(), proxy.password.as_deref()), (Some("me@home"), Some("a:b%+%zz")));
        assert_eq!(parse("me@proxy:1").unwrap().user.as_deref(), Some("me"));
        assert!(parse("a%3Ab@proxy:1").is_err() && parse("a%ff@proxy:1").is_err());
    }

    #[test]
    fn passwords_are_read_from_files_and_never_from_the_command_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        std::fs::write(&file, "open sesame\nnot this\n").unwrap();
        let of =
            |typed: &str, file: Option<&Path>| credentials(&parse(typed).unwrap(), file).map_err(|Usage(said)| said);
        assert_eq!(of("Aladdin@p:1", Some(&file)), Ok(Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==".to_owned())));
        assert_eq!(of("p:1", None), Ok(None));
        for (typed, file, part) in [
            ("u:s3cr3t@p:1", None, "everybody on this machine"),
            ("p:1", Some(file.as_path()), "whose password is it"),
            ("u@p:1", Some(Path::new("/no/such/file")), "cannot be read"),
        ] {
            let said = of(typed, file).unwrap_err();
            assert!(said.contains(part) && !said.contains("s3cr3t"), "{said}");
        }
    }
}
