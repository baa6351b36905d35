//! Passwords: where they are looked for, and where they are kept: in this process, and nowhere else.

use crate::address::{POSTGRES_SOCKETS, Place, ServerAddress, System};
use duel_load::WorkloadError;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Passwords that were typed, by the address without them.
static TYPED: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());
/// A file of passwords is some lines.
const MOST_FILE_BYTES: u64 = 1 << 20;

/// Remembers what was typed, and answers the address as it may be kept.
pub(crate) fn remember(server: &ServerAddress) -> Result<String, WorkloadError> {
    if let Some(password) = &server.password {
        let mut typed = TYPED.lock().unwrap_or_else(PoisonError::into_inner);
        let known = typed.entry(server.public.clone()).or_insert_with(|| password.clone());
        if known != password {
            return Err(WorkloadError("two targets have the same address and different passwords".into()));
        }
    }
    Ok(server.public.clone())
}

/// The password for a server, by the places that its own clients look at: what was typed, the environment, the file.
pub(crate) fn password(server: &ServerAddress) -> Result<Option<String>, WorkloadError> {
    let typed = TYPED.lock().unwrap_or_else(PoisonError::into_inner).get(&server.public).cloned();
    if let Some(password) = server.password.clone().or(typed) {
        return Ok(Some(password));
    }
    let variable = if server.system == System::Mysql { "MYSQL_PWD" } else { "PGPASSWORD" };
    if let Some(password) = std::env::var(variable).ok().filter(|password| !password.is_empty()) {
        return Ok(Some(password));
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    match server.system {
        System::Mysql => {
            let text = home.and_then(|home| readable(&home.join(".my.cnf")).transpose()).transpose()?;
            Ok(text.and_then(|text| of_my_cnf(&text)))
        }
        _ => {
            let file = std::env::var_os("PGPASSFILE").map(PathBuf::from).or(home.map(|home| home.join(".pgpass")));
            let text = file.and_then(|file| private(&file).transpose()).transpose()?;
            Ok(text.and_then(|text| of_pgpass(&text, server)))
        }
    }
}

/// The text of a file, if there is one.
fn readable(file: &Path) -> Result<Option<String>, WorkloadError> {
    match std::fs::metadata(file) {
        Ok(found) if found.is_file() && found.len() <= MOST_FILE_BYTES => Ok(std::fs::read_to_string(file).ok()),
        _ => Ok(None),
    }
}

/// The same of a file that nobody else may read: as libpq, duel does not take passwords from others.
fn private(file: &Path) -> Result<Option<String>, WorkloadError> {
    use std::os::unix::fs::PermissionsExt;
    let is_open = std::fs::metadata(file).is_ok_and(|found| found.permissions().mode() & 0o077 != 0);
    if is_open {
        return Err(WorkloadError(format!(
            "{} can be read by others, and is not used; chmod 600 makes it private",
            duel_model::sanitize_line(&file.to_string_lossy())
        )));
    }
    readable(file)
}

/// The first line of a `.pgpass` that fits: `host:port:database:user:password`, each but the last may be `*`.
fn of_pgpass(text: &str, server: &ServerAddress) -> Option<String> {
    let (host, port) = match &server.place {
        Place::Tcp { host, port } => (host.clone(), port.to_string()),
        Place::Unix(path) => {
            let port = path.extension().map_or_else(String::new, |port| port.to_string_lossy().into_owned());
            // As in libpq, only the folder that it looks in by itself is `localhost`.
            let folder = path.parent().unwrap_or(path).to_string_lossy().into_owned();
            (if folder == POSTGRES_SOCKETS { "localhost".to_owned() } else { folder }, port)
        }
    };
    let database = if server.database.is_empty() { &server.user } else { &server.database };
    let wanted = [&host, &port, database, &server.user];
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let [a, b, c, d, password] = fields.as_slice() else { return None };
        let fits = [a, b, c, d].iter().zip(wanted).all(|(given, wanted)| *given == "*" || *given == wanted);
        fits.then(|| password.clone())
    })
}

/// The five fields of a line, in which `\` protects `:` and itself. The password is all that is left.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut is_protected) = (vec![String::new()], false);
    for c in line.chars() {
        let is_last = fields.len() == 5;
        match c {
            '\\' if !is_protected => is_protected = true,
            ':' if !is_protected && !is_last => fields.push(String::new()),
            _ => {
                is_protected = false;
                if let Some(field) = fields.last_mut() {
                    field.push(c);
                }
            }
        }
    }
    fields
}

/// The password of the groups that every client reads in a `.my.cnf`; of several the last one, as MySQL's client takes it.
fn of_my_cnf(text: &str) -> Option<String> {
    let (mut is_client, mut found) = (false, None);
    for line in text.lines().map(|line| without_comment(line).trim()) {
        if let Some(group) = line.strip_prefix('[') {
            is_client = matches!(group.trim_end_matches(']').trim(), "client" | "client-server" | "client-mariadb");
        } else if is_client
            && let Some((name, value)) = line.split_once('=')
            && name.trim() == "password"
        {
            let value = value.trim();
            let quoted = ['"', '\''].iter().find_map(|&quote| value.strip_prefix(quote)?.strip_suffix(quote));
            found = Some(unescaped(quoted.unwrap_or(value)));
        }
    }
    found
}

/// A line up to its comment: `;` at its beginning, or `#` anywhere but between quotes.
fn without_comment(line: &str) -> &str {
    if line.trim_start().starts_with(';') {
        return "";
    }
    let (mut quote, mut is_protected) = (None, false);
    for (at, c) in line.char_indices() {
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            ('"' | '\'', Some(open)) if c == open && !is_protected => quote = None,
            ('#', None) => return &line[..at],
            _ => {}
        }
        is_protected = quote.is_some() && c == '\\' && !is_protected;
    }
    line
}

/// A value whose `\` sequences are what MySQL's option files mean by them; any other `\` is itself.
fn unescaped(value: &str) -> String {
    let (mut text, mut rest) = (String::with_capacity(value.len()), value.chars());
    while let Some(c) = rest.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        match rest.next() {
            Some('b') => text.push('\u{8}'),
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some('s') => text.push(' '),
            Some('t') => text.push('\t'),
            Some(itself @ ('\\' | '"' | '\'')) => text.push(itself),
            other => text.extend(Some('\\').into_iter().chain(other)),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{Address, parse};

    fn server(address: &str) -> ServerAddress {
        match parse(address) {
            Ok(Address::Server(server)) => server,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_pgpass_file_is_read_as_libpq_reads_it() {
        let text = "# a comment\nother:*:*:u:no\nh:5433:d\\:b:u:p\\\\w:with:colons\n*:*:*:*:last\n";
        assert_eq!(of_pgpass(text, &server("postgres://u@h:5433/d%3Ab")).as_deref(), Some("p\\w:with:colons"));
        assert_eq!(of_pgpass(text, &server("postgres://u@/db")).as_deref(), Some("last"));
        assert_eq!(of_pgpass("localhost:5432:*:u:unix", &server("postgres://u@/")).as_deref(), Some("unix"));
        let elsewhere = server("postgres://u@/?host=/srv/a:b");
        assert_eq!(of_pgpass("localhost:*:*:u:no\n/srv/a\\:b:5432:*:u:folder", &elsewhere).as_deref(), Some("folder"));
        assert_eq!(of_pgpass("h:5432", &server("postgres://u@h/")), None);
    }

    #[test]
    fn of_a_my_cnf_the_group_client_counts() {
        let text = "[mysqld]\npassword=server\n[client]\nuser=u\npassword = \"p=w\"\n[mysqldump]\npassword=dump\n";
        assert_eq!(of_my_cnf(text).as_deref(), Some("p=w"));
        assert_eq!(of_my_cnf("[mysqld]\npassword=x\n"), None);
        for (line, password) in [
            ("password=\"p#w\" # a note", "p#w"),
            ("password = p#w", "p"),
            ("; password=other\n# password=other\npassword=p;w", "p;w"),
            ("password='a\\\\b\\sc\\'#d\\e'", "a\\b c'#d\\e"),
        ] {
            assert_eq!(of_my_cnf(&format!("[client-server]\n{line}\n")).as_deref(), Some(password), "{line}");
        }
    }

    #[test]
    fn one_address_has_one_password() {
        let first = server("postgres://u:one@only-here/db");
        assert_eq!(remember(&first).unwrap(), "postgres://u@only-here/db");
        assert_eq!(password(&server("postgres://u@only-here/db")).unwrap().as_deref(), Some("one"));
        assert!(remember(&server("postgres://u:two@only-here/db")).is_err());
    }
}
