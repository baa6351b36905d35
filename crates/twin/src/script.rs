//! The script: what is sent to the shell that becomes process 1 of the twin.

use crate::settings::EditedFile;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// What the script is told.
#[derive(Debug, Default)]
pub(crate) struct Told<'a> {
    /// The program first.
    pub(crate) arguments: Vec<&'a OsStr>,
    /// The file that its processes execute.
    pub(crate) executable: &'a OsStr,
    pub(crate) environment: Vec<(&'a OsStr, &'a OsStr)>,
    pub(crate) folder: &'a OsStr,
    /// Bits that it leaves out of the modes of files, as the shell takes them; empty: ours.
    pub(crate) umask: String,
    /// The command that takes the server's rights, priority and limits, and then runs what follows.
    pub(crate) rights: Vec<String>,
    /// Address and length of its prefix; empty: loopback is enough.
    pub(crate) address: String,
    pub(crate) port: u16,
    /// A file, and another one that is put in its place.
    pub(crate) exchanged: Option<(&'a OsStr, &'a OsStr)>,
    /// Files that stand in the place of others.
    pub(crate) edited: &'a [EditedFile],
    /// Files that it appends to, and finds empty.
    pub(crate) logs: Vec<&'a OsStr>,
    /// Tenths of a second until it has to listen.
    pub(crate) patience: u32,
    /// Most memory for what it writes.
    pub(crate) memory_bytes: u64,
}

/// The whole script. It is sent to standard input, so that no list of processes shows the environment, which may hold
/// secrets. Its last line starts it: a shell that reads ahead has nothing left to read.
pub(crate) fn script(told: &Told<'_>) -> Vec<u8> {
    let mut script = Vec::with_capacity(16 << 10);
    let (exchanged, exchanged_for) = told.exchanged.unwrap_or_default();
    let inner = inner(told);
    for (name, value) in [
        // Words are quoted twice: once for this line, once for `eval`, which makes words of it.
        ("RIGHTS", words(told.rights.iter().map(OsStr::new)).as_os_str()),
        ("LOGS", words(told.logs.iter().copied()).as_os_str()),
        ("EDITED", edited(told.edited).as_os_str()),
        ("INNER", inner.as_os_str()),
        ("EXECUTABLE", told.executable),
        ("EXCHANGED", exchanged),
        ("EXCHANGED_FOR", exchanged_for),
        ("ADDRESS", OsStr::new(&told.address)),
        ("PORT_HEX", OsStr::new(&format!("{:04X}", told.port))),
        ("TRIES", OsStr::new(&told.patience.to_string())),
        ("MEMORY_BYTES", OsStr::new(&told.memory_bytes.to_string())),
    ] {
        script.extend([name.as_bytes(), b"=", quoted(value).as_bytes(), b"\n"].concat());
    }
    script.extend(include_bytes!("start.sh"));
    script.extend(b"main; exit\n");
    script
}

/// Five words for each file: its path, its owner and group, its mode, what it holds and what is to stand there. None of
/// them holds a zero byte: see `settings`.
fn edited(files: &[EditedFile]) -> OsString {
    let words_of = |file: &EditedFile| {
        let owner = format!("{}:{}", file.uid, file.gid);
        [
            file.path.clone().into_os_string(),
            owner.into(),
            format!("{:o}", file.mode).into(),
            OsString::from_vec(file.was.clone()),
            OsString::from_vec(file.content.clone()),
        ]
    };
    let all: Vec<OsString> = files.iter().flat_map(words_of).collect();
    words(all.iter().map(OsString::as_os_str))
}

/// What the shell that has the server's rights already is told on its standard input. Only here, and not before, comes what
/// the server's owner has chosen: a library to be loaded into every program, for example.
fn inner(told: &Told<'_>) -> OsString {
    let mut lines: Vec<u8> = Vec::new();
    let mut line = |parts: &[&OsStr]| {
        parts.iter().for_each(|part| lines.extend(part.as_bytes()));
        lines.push(b'\n');
    };
    if !told.umask.is_empty() {
        line(&[OsStr::new("umask "), OsStr::new(&told.umask)]);
    }
    line(&[OsStr::new("cd "), &quoted(told.folder), OsStr::new(" || exit")]);
    let mut assigned = Vec::new();
    for &(name, value) in &told.environment {
        if is_for_env(name) {
            assigned.push([name.as_bytes(), b"=", value.as_bytes()].concat());
        } else {
            line(&[OsStr::new("export "), name, OsStr::new("="), &quoted(value)]);
        }
    }
    let unset = SET_BY_SHELLS.iter().flat_map(|name| [OsStr::new("-u"), OsStr::new(*name)]);
    let assigned = assigned.iter().map(|assignment| OsStr::from_bytes(assignment));
    let all = words(unset.chain(assigned).chain(told.arguments.iter().copied()));
    line(&[OsStr::new("exec /usr/bin/env "), &all, OsStr::new(" </dev/null")]);
    OsString::from_vec(lines)
}

/// Variables that shells make themselves; a server that had none gets none.
const SET_BY_SHELLS: [&str; 4] = ["_", "OLDPWD", "PWD", "SHLVL"];
/// Variables that a shell will not have set, or minds when they are.
const MINDED_BY_SHELLS: [&str; 15] = [
    "BASHOPTS",
    "DIRSTACK",
    "ENV",
    "EUID",
    "FUNCNAME",
    "GROUPS",
    "HISTCMD",
    "IFS",
    "LINENO",
    "OPTARG",
    "OPTIND",
    "PPID",
    "RANDOM",
    "SHELLOPTS",
    "UID",
];

/// Whether a variable is handed over as an argument of `env`, which starts the program and is no shell. Arguments can be
/// seen by others for a moment, so it is only for what holds no secrets; also for what the loader looks at, so that it is
/// loaded into the program alone.
fn is_for_env(name: &OsStr) -> bool {
    SET_BY_SHELLS.iter().chain(&MINDED_BY_SHELLS).any(|known| name == *known)
        || [&b"LD_"[..], b"BASH_", b"GLIBC_TUNABLES"].iter().any(|start| name.as_bytes().starts_with(start))
}

/// Words for a shell, with spaces between them.
fn words<'a>(words: impl Iterator<Item = &'a OsStr>) -> OsString {
    let words: Vec<OsString> = words.map(quoted).collect();
    words.join(OsStr::new(" "))
}

/// A word as a POSIX shell has to be given it: within single quotes every character but the single quote stands for
/// itself (POSIX.1-2024, 2.2.2).
fn quoted(word: &OsStr) -> OsString {
    let mut bytes = vec![b'\''];
    for &byte in word.as_bytes() {
        match byte {
            b'\'' => bytes.extend(b"'\\''"),
            // No argument and no variable can hold one.
            0 => {}
            byte => bytes.push(byte),
        }
    }
    bytes.push(b'\'');
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    /// What the program prints that the inner shell is told to start, with this shell.
    fn printed(shell: &str, told: &Told<'_>) -> Vec<u8> {
        let mut child = Command::new(shell)
            .arg("-s")
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(inner(told).as_bytes()).unwrap();
        child.wait_with_output().unwrap().stdout
    }

    /// Shells that are `sh` somewhere.
    fn shells() -> impl Iterator<Item = &'static str> {
        let shells = ["/bin/sh", "/bin/bash", "/bin/dash"];
        shells.into_iter().filter(|shell| std::path::Path::new(shell).exists())
    }

    #[test]
    fn what_is_handed_over_arrives_byte_by_byte() {
        let odd = OsStr::from_bytes(b"it's $(x) \\ `y`\n\"z\" \xff*");
        let told = Told {
            arguments: vec![OsStr::new("/usr/bin/printf"), OsStr::new("%s|"), OsStr::new("a"), OsStr::new(""), odd],
            folder: OsStr::new("/"),
            ..Told::default()
        };
        for shell in shells() {
            assert_eq!(printed(shell, &told), [b"a".as_slice(), b"", odd.as_bytes(), b""].join(&b'|'), "{shell}");
        }
    }

    #[test]
    fn the_environment_is_the_server_s_and_nothing_else() {
        let odd = OsStr::from_bytes(b"it's $(x) \\ `y`\n\"z\" \xff*");
        let mut environment: Vec<(&OsStr, &OsStr)> = ["UID", "PPID", "SHELLOPTS", "IFS", "PWD", "LD_X", "PATH", "HOME"]
            .into_iter()
            .map(|name| (OsStr::new(name), OsStr::new("7")))
            .collect();
        environment.push((OsStr::new("ODD"), odd));
        let told = Told {
            arguments: vec![OsStr::new("/usr/bin/env"), OsStr::new("-0")],
            environment: environment.clone(),
            folder: OsStr::new("/"),
            umask: "0027".to_owned(),
            ..Told::default()
        };
        let mut expected: Vec<Vec<u8>> =
            environment.iter().map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat()).collect();
        expected.sort();
        for shell in shells() {
            let printed = printed(shell, &told);
            let mut found: Vec<Vec<u8>> = printed.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect();
            found.retain(|entry| !entry.is_empty());
            found.sort();
            assert_eq!(found, expected, "{shell}");
        }
    }

    /// What the part of the script that puts configurations into their places leaves behind, in mounts of its own; `None`
    /// where there are none to be had.
    fn configured(path: &std::path::Path, was: &str, new: &str) -> Option<String> {
        let file = EditedFile { path: path.into(), was: was.into(), content: new.into(), uid: 0, gid: 0, mode: 0o640 };
        let functions = include_str!("start.sh");
        let script = format!(
            "EDITED={}\n{functions}\nmount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && configure && echo \"done $(cat {})\"\n",
            quoted(&edited(&[file])).to_str().unwrap(),
            path.display()
        );
        let mut child = Command::new("unshare")
            .args(["--mount", "/bin/sh", "-s"])
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        // Without the right to have mounts of its own nobody reads it.
        let _ = child.stdin.take().unwrap().write_all(script.as_bytes());
        let output = child.wait_with_output().unwrap();
        Some(String::from_utf8(output.stdout).unwrap()).filter(|said| !said.is_empty())
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn nothing_but_what_was_read_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("conf"), "it's 1;\n\n").unwrap();
        std::os::unix::fs::symlink("conf", at("link")).unwrap();
        // No file of another content, which a link may lead to in the meantime, and none that is longer.
        std::fs::write(at("program"), "#!/bin/sh\n").unwrap();
        std::os::unix::fs::symlink("program", at("swapped")).unwrap();
        std::fs::write(at("longer"), "it's 1;\n\n\n").unwrap();
        for (name, said) in [
            ("conf", "done it's 4;"),
            ("link", "done it's 4;"),
            ("swapped", "failed its configuration has changed"),
            ("longer", "failed its configuration has changed"),
            ("gone", "failed its configuration is gone"),
        ] {
            let Some(answer) = configured(&at(name), "it's 1;\n\n", "it's 4;\n\n") else {
                eprintln!("skipped: no mounts of one's own are to be had here");
                return;
            };
            assert!(answer.starts_with(said), "{name}: {answer}");
            assert_eq!(std::fs::read_to_string(at("conf")).unwrap(), "it's 1;\n\n", "out here nothing has changed");
        }
    }

    #[test]
    fn no_secret_is_an_argument() {
        assert!(!is_for_env(OsStr::new("DB_PASSWORD")) && is_for_env(OsStr::new("LD_PRELOAD")));
    }

    #[test]
    fn any_posix_shell_parses_the_script() {
        let told = Told { port: 443, logs: vec![OsStr::new("/var/log/it's")], ..Told::default() };
        let script = script(&told);
        assert!(script.windows(16).any(|line| line == b"PORT_HEX='01BB'\n"));
        for shell in shells() {
            let mut parser = Command::new(shell).args(["-n", "-s"]).stdin(Stdio::piped()).spawn().unwrap();
            parser.stdin.take().unwrap().write_all(&script).unwrap();
            assert!(parser.wait().unwrap().success(), "{shell}");
        }
    }
}
