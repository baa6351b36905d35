//! Passwords that were typed in addresses of databases: every user of a machine may read the command lines of its processes.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// Writes over these words in the list of processes what may be shown of them. Whether no password stands there afterwards.
pub(crate) fn hide_passwords(typed: &[OsString]) -> bool {
    let shown: Vec<Option<String>> = typed.iter().map(|word| without_password(word.as_bytes())).collect();
    shown.iter().all(Option::is_none) || written(&shown).is_ok()
}

/// A word as it may be seen; `None`: as it is.
fn without_password(word: &[u8]) -> Option<String> {
    let text = &*String::from_utf8_lossy(word);
    // Behind the name of a target, or the option of a plan file.
    let begin = text.find("://").and_then(|at| text[..at].rfind('=')).map_or(0, |at| at + 1);
    let (before, address) = text.split_at(begin);
    let public = duel_sql::public_address(address);
    // Without a password it is at most longer, by a '/'.
    (duel_sql::claims(address) && public.len() < address.len()).then(|| format!("{before}{public}"))
}

/// The kernel shows the memory that it put the words into when the program began. What is read of them later is without passwords, too.
#[cfg(target_os = "linux")]
fn written(shown: &[Option<String>]) -> std::io::Result<()> {
    use std::io::{Error, ErrorKind};
    use std::os::unix::fs::FileExt;
    // `arg_start` in `/proc/self/stat`: the 48th field, of which the second is in brackets.
    const FIELDS_BEHIND_NAME: usize = 48 - 3;
    let unknown = || Error::from(ErrorKind::Unsupported);
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit_once(") ").ok_or_else(unknown)?.1;
    let start: u64 = fields.split(' ').nth(FIELDS_BEHIND_NAME).and_then(|at| at.parse().ok()).ok_or_else(unknown)?;
    let line = std::fs::read("/proc/self/cmdline")?;
    let memory = std::fs::OpenOptions::new().write(true).open("/proc/self/mem")?;
    let mut at = 0;
    for (word, shown) in line.split(|byte| *byte == 0).zip(shown) {
        if let Some(shown) = shown {
            // Zero bytes end the word, and there are as many as before.
            let mut bytes = vec![0; word.len()];
            let kept = shown.len().min(word.len());
            bytes[..kept].copy_from_slice(&shown.as_bytes()[..kept]);
            memory.write_all_at(&bytes, start + at)?;
        }
        at += word.len() as u64 + 1;
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn written(_: &[Option<String>]) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_loses_its_password_and_nothing_else() {
        for (typed, shown) in [
            ("postgres://u:hunter2@h/db", Some("postgres://u@h/db")),
            ("new=mysql://u:hunter2@h:1/db?ssl-mode=require", Some("new=mysql://u@h:1/db?ssl-mode=require")),
            ("postgres://u@h/db?password=hunter2&sslmode=disable", Some("postgres://u@h/db?sslmode=disable")),
            ("a=b=postgres://:p@/", Some("a=b=postgres:///")),
            ("postgres://u:p", Some("postgres:...")),
            ("postgres://u:hun/ter2@h/db", Some("postgres:...")),
            ("postgres://u@h/db", None),
            ("postgres://h", None),
            ("sqlite:x.db", None),
            ("https://u:p@h/", None),
            ("--op", None),
        ] {
            let found = without_password(typed.as_bytes());
            assert_eq!(found.as_deref(), shown, "{typed}");
        }
        let found = without_password(b"postgres://u:hunter\xff2@h/db");
        assert!(found.is_some_and(|shown| !shown.contains("hunter")), "a word that is no text has one as well");
    }
}
