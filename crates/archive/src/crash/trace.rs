//! What a process did to its files, in order, as strace saw it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// One thing that a process did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// It made a file, if there was none of the name.
    Make(PathBuf),
    MakeFolder(PathBuf),
    Write(PathBuf, u64, Vec<u8>),
    Truncate(PathBuf, u64),
    /// It flushed a file or a folder: when this is over, what was done to it before is on the disk.
    Flush(PathBuf),
    Remove(PathBuf),
    /// It said something on standard error.
    Said(String),
}

/// What strace has to record for this.
pub(super) const STRACE: &[&str] = &[
    "strace",
    "-f",
    "-y",
    "-xx",
    "-s",
    "1000000",
    "-e",
    "trace=open,openat,creat,mkdir,mkdirat,lseek,write,writev,pwrite64,pwritev,ftruncate,truncate,fallocate,fsync,fdatasync,\
     sync_file_range,unlink,unlinkat,rename,renameat,renameat2,link,linkat,symlink",
    "-o",
];

/// The events below a folder, in the order in which calls were over. Panics where a call is none that is understood: what is
/// not replayed would not be tested.
pub(super) fn events(trace: &str, below: &Path) -> Vec<Event> {
    let mut begun: HashMap<&str, String> = HashMap::new();
    let mut positions: HashMap<String, u64> = HashMap::new();
    let mut events = Vec::new();
    for line in trace.lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let call = call.trim_start();
        if let Some(first) = call.strip_suffix(" <unfinished ...>") {
            begun.insert(thread, first.to_owned());
            continue;
        }
        let whole = match call.strip_prefix("<... ").and_then(|rest| rest.split_once(" resumed>")) {
            Some((_, rest)) => format!("{}{rest}", begun.remove(thread).unwrap_or_default()),
            None => call.to_owned(),
        };
        events.extend(event(&whole, &mut positions).filter(|event| concerns(event, below)));
    }
    events
}

fn concerns(event: &Event, below: &Path) -> bool {
    match event {
        Event::Said(_) => true,
        Event::Make(path)
        | Event::MakeFolder(path)
        | Event::Write(path, ..)
        | Event::Truncate(path, _)
        | Event::Flush(path)
        | Event::Remove(path) => path.starts_with(below),
    }
}

/// `NAME(ARGUMENTS) = RESULT`. Strings are in hexadecimal, so commas and brackets are those of strace.
fn event(call: &str, positions: &mut HashMap<String, u64>) -> Option<Event> {
    let (name, rest) = call.split_once('(')?;
    let (arguments, result) = rest.rsplit_once(" = ")?;
    let arguments = arguments.trim_end().strip_suffix(')')?;
    let result: i64 = result.split([' ', '<']).next()?.parse().ok()?;
    if result < 0 {
        return None;
    }
    let arguments: Vec<&str> = arguments.split(", ").collect();
    let number = |n: usize| arguments[n].parse::<u64>().unwrap();
    // `4<\x2f...>`: the descriptor and its file.
    let file = |n: usize| Some(path(arguments[n].split_once('<')?.1.strip_suffix('>')?));
    match name {
        "openat" if arguments[2].contains("O_TRUNC") => panic!("not understood: {call}"),
        "openat" if arguments[2].contains("O_CREAT") => Some(Event::Make(path(arguments[1].trim_matches('"')))),
        "openat" => None,
        "mkdir" => Some(Event::MakeFolder(path(arguments[0].trim_matches('"')))),
        "unlink" => Some(Event::Remove(path(arguments[0].trim_matches('"')))),
        "fsync" | "fdatasync" => Some(Event::Flush(file(0)?)),
        "ftruncate" => Some(Event::Truncate(file(0)?, number(1))),
        "pwrite64" => Some(Event::Write(file(0)?, number(3), bytes(arguments[1], result))),
        "lseek" => {
            positions.insert(arguments[0].to_owned(), u64::try_from(result).unwrap());
            None
        }
        "write" if arguments[0].starts_with("2<") => {
            Some(Event::Said(String::from_utf8(bytes(arguments[1], result)).unwrap()))
        }
        "write" => {
            let written = bytes(arguments[1], result);
            let position = positions.entry(arguments[0].to_owned()).or_default();
            let at = *position;
            *position += written.len() as u64;
            Some(Event::Write(file(0)?, at, written))
        }
        // Whatever else changes a file would be missing in what is replayed.
        _ => panic!("not understood: {call}"),
    }
}

fn path(hex: &str) -> PathBuf {
    PathBuf::from(String::from_utf8(unescaped(hex)).unwrap())
}

/// As many bytes as were written; a string that was cut is not to be replayed.
fn bytes(quoted: &str, result: i64) -> Vec<u8> {
    let text = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).expect("strace cut a string");
    let mut bytes = unescaped(text);
    bytes.truncate(usize::try_from(result).unwrap());
    bytes
}

/// From `\x61\x62`.
fn unescaped(hex: &str) -> Vec<u8> {
    hex.split("\\x").skip(1).map(|digits| u8::from_str_radix(digits, 16).unwrap()).collect()
}

#[test]
fn calls_are_understood() {
    let trace = "7 openat(AT_FDCWD<\\x2f>, \"\\x2f\\x61\\x2f\\x62\", O_RDWR|O_CREAT, 0600) = 3<\\x2f\\x61\\x2f\\x62>\n\
                 7 lseek(3<\\x2f\\x61\\x2f\\x62>, 5, SEEK_SET) = 5\n\
                 8 fdatasync(3<\\x2f\\x61\\x2f\\x62> <unfinished ...>\n\
                 7 write(3<\\x2f\\x61\\x2f\\x62>, \"\\x01\\x02\\x03\", 3) = 2\n\
                 8 <... fdatasync resumed>) = 0\n\
                 7 unlink(\"\\x2f\\x61\\x2f\\x62\") = -1 ENOENT (No such file or directory)\n\
                 7 pwrite64(4<\\x2f\\x63>, \"\\x01\", 1, 9) = 1\n\
                 7 write(2</dev/null>, \"\\x68\\x69\", 2) = 2\n";
    let file = PathBuf::from("/a/b");
    let expected = [
        Event::Make(file.clone()),
        Event::Write(file.clone(), 5, vec![1, 2]),
        Event::Flush(file),
        Event::Said("hi".to_owned()),
    ];
    assert_eq!(events(trace, Path::new("/a")), expected);
}
