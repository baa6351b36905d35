//! The script: what is sent to the shell that becomes process 1 of the twin.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// What the script is told.
#[derive(Debug, Default)]
pub(crate) struct Told<'a> {
    pub(crate) arguments: Vec<&'a OsStr>,
    pub(crate) environment: Vec<(&'a OsStr, &'a OsStr)>,
    pub(crate) folder: &'a OsStr,
    /// `UID:GID` as chroot takes it, and further groups; both empty for root.
    pub(crate) user: String,
    pub(crate) groups: String,
    /// Address and length of its prefix; empty: loopback is enough.
    pub(crate) address: String,
    pub(crate) port: u16,
    pub(crate) descriptors: u64,
    /// Tenths of a second until it has to listen.
    pub(crate) patience: u32,
    /// Most memory for what it writes.
    pub(crate) memory_bytes: u64,
}

/// The whole script. It is sent to standard input, so that no list of processes shows the environment, which may hold
/// secrets. Its last line starts it: a shell that reads ahead has nothing left to read.
pub(crate) fn script(told: &Told<'_>) -> Vec<u8> {
    let words: Vec<OsString> = told.arguments.iter().map(|word| quoted(word)).collect();
    let words = words.join(OsStr::new(" "));
    let mut script = Vec::with_capacity(16 << 10);
    let mut line = |parts: &[&OsStr]| {
        parts.iter().for_each(|part| script.extend(part.as_bytes()));
        script.push(b'\n');
    };
    for (name, value) in [
        // Quoted twice: once for this line, once for `eval`, which makes words of it.
        ("ARGUMENTS", words.as_os_str()),
        ("FOLDER", told.folder),
        ("USER_AND_GROUP", OsStr::new(&told.user)),
        ("GROUPS_TOO", OsStr::new(&told.groups)),
        ("ADDRESS", OsStr::new(&told.address)),
        ("PORT_HEX", OsStr::new(&format!("{:04X}", told.port))),
        ("DESCRIPTORS", OsStr::new(&told.descriptors.to_string())),
        ("TRIES", OsStr::new(&told.patience.to_string())),
        ("MEMORY_BYTES", OsStr::new(&told.memory_bytes.to_string())),
    ] {
        line(&[OsStr::new(name), OsStr::new("="), &quoted(value)]);
    }
    line(&[OsStr::new("twin_environment() {\n:")]);
    for (name, value) in &told.environment {
        line(&[OsStr::new("export "), name, OsStr::new("="), &quoted(value)]);
    }
    line(&[OsStr::new("}")]);
    script.extend(include_bytes!("start.sh"));
    script.extend(b"main; exit\n");
    script
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
    std::os::unix::ffi::OsStringExt::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    /// What a shell understands of the variables: the script without its end, and other words behind it.
    fn shell_says(told: &Told<'_>, rest: &str) -> Vec<u8> {
        let mut text = script(told);
        let end = text.len() - b"main; exit\n".len();
        text.truncate(end);
        text.extend(rest.as_bytes());
        let mut shell = Command::new("/bin/sh").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        shell.stdin.take().unwrap().write_all(&text).unwrap();
        shell.wait_with_output().unwrap().stdout
    }

    #[test]
    fn what_is_handed_over_arrives_byte_by_byte() {
        let odd = OsStr::from_bytes(b"it's $(x) \\ `y`\n\"z\" \xff*");
        let told = Told {
            arguments: vec![OsStr::new("a"), OsStr::new(""), odd],
            environment: vec![(OsStr::new("ODD"), odd)],
            folder: odd,
            ..Told::default()
        };
        let said = shell_says(
            &told,
            "eval \"set -- $ARGUMENTS\"; twin_environment; printf '%s|' $# \"$1\" \"$2\" \"$3\" \"$FOLDER\"; \
             sh -c 'printf \"%s|\" \"$ODD\"'\n",
        );
        let expected = [b"3".as_slice(), b"a", b"", odd.as_bytes(), odd.as_bytes(), odd.as_bytes(), b""].join(&b'|');
        assert_eq!(said, expected);
    }

    #[test]
    fn the_port_is_written_as_the_kernel_writes_it() {
        let told = Told { port: 443, ..Told::default() };
        assert!(script(&told).windows(16).any(|line| line == b"PORT_HEX='01BB'\n"));
    }
}
