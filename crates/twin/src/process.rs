//! How a running server was started.

use crate::NoTwin;
use crate::libraries;
use crate::title::{CommandLine, command_line};
use duel_model::sanitize_line;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes that are read of any file of a process: the mappings of one with 100,000 of them.
const MOST_BYTES: u64 = 16 << 20;

/// A running server: everything that its program was started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerProcess {
    /// Its main process.
    pub pid: u32,
    /// The program's file, as the process sees it.
    pub(crate) program: PathBuf,
    /// Without the program's name.
    pub(crate) arguments: Vec<OsString>,
    pub(crate) folder: PathBuf,
    /// Its environment.
    pub environment: Environment,
    /// User, group and further groups; `None` where it is root.
    pub(crate) user: Option<User>,
    /// CPUs that it may run on, as the kernel lists them.
    pub(crate) cpus: Option<String>,
    /// How many descriptors it may have open.
    pub(crate) descriptors: Option<u64>,
    /// Files that it maps to execute them.
    pub(crate) mapped: Vec<PathBuf>,
    /// It sees other mounts than we do.
    pub(crate) has_own_mounts: bool,
}

/// What is known of a process's environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Environment {
    /// All of it.
    Known(BTreeMap<OsString, OsString>),
    /// Nothing: the program has written over it.
    Overwritten,
}

/// Whose rights a process has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
}

impl ServerProcess {
    /// Reads how the server that `pid` belongs to was started: the topmost of its ancestors that runs the same program,
    /// since workers are not started by hand.
    ///
    /// # Errors
    ///
    /// What cannot have a twin, in one sentence: a process that may not be looked at, whose program or libraries were
    /// replaced since it started, that tells no arguments, that got its sockets from systemd, or that lives in a root
    /// folder or a user namespace of its own.
    pub fn read(pid: u32) -> Result<Self, NoTwin> {
        let pid = topmost(pid);
        let place = PathBuf::from(format!("/proc/{pid}"));
        let refused = |what: &str, error: &io::Error| {
            NoTwin::new(match error.kind() {
                io::ErrorKind::NotFound if !place.exists() => format!("there is no process {pid}"),
                io::ErrorKind::PermissionDenied => format!("may not read {what} of process {pid}: run duel as root"),
                _ => format!("cannot read {what} of process {pid}: {error}"),
            })
        };
        let link = |name: &str, what: &str| fs::read_link(place.join(name)).map_err(|error| refused(what, &error));
        let file = |name: &str, what: &str| read(&place.join(name)).map_err(|error| refused(what, &error));

        let program = link("exe", "the program")?;
        let shown = sanitize_line(&program.to_string_lossy());
        if program.as_os_str().to_string_lossy().ends_with(" (deleted)") {
            return Err(NoTwin::new(format!("its program was replaced since it started: {shown}")));
        }
        if link("root", "the root folder")? != Path::new("/") {
            return Err(NoTwin::new(format!("process {pid} has changed its root folder")));
        }
        if link("ns/user", "the user namespace")? != own_namespace("user") {
            return Err(NoTwin::new(format!("process {pid} lives in a user namespace of its own")));
        }
        let (words, has_title) = match command_line(&file("cmdline", "the arguments")?) {
            CommandLine::Arguments(words) => (words, false),
            CommandLine::NginxTitle(words) => (words, true),
            CommandLine::Title(title) => {
                return Err(NoTwin::new(format!("process {pid} has written '{title}' over its arguments")));
            }
            CommandLine::Nothing => return Err(NoTwin::new(format!("process {pid} tells no arguments"))),
        };
        let environment =
            if has_title { Environment::Overwritten } else { environment(&file("environ", "the environment")?) };
        if let Environment::Known(environment) = &environment
            && environment.contains_key(OsStr::new("LISTEN_FDS"))
        {
            return Err(NoTwin::new(format!("systemd handed its sockets to process {pid}, and would not to a twin")));
        }
        let mapped = libraries::mapped(&file("maps", "the mappings")?);
        if let Some(gone) =
            libraries::of_tls(&mapped).iter().find(|path| path.to_string_lossy().ends_with(" (deleted)"))
        {
            let gone = sanitize_line(&gone.to_string_lossy());
            return Err(NoTwin::new(format!("a library that it maps was replaced since it started: {gone}")));
        }
        let status = String::from_utf8_lossy(&file("status", "the owner")?).into_owned();
        let user = user(&status).ok_or_else(|| NoTwin::new(format!("whose process {pid} is cannot be found out")))?;
        let limits = String::from_utf8_lossy(&file("limits", "the limits").unwrap_or_default()).into_owned();
        Ok(Self {
            pid,
            program: named(&words, &program, &place),
            arguments: words.into_iter().skip(1).collect(),
            folder: link("cwd", "the working folder")?,
            environment,
            user: (user.uid != 0).then_some(user),
            cpus: field(&status, "Cpus_allowed_list:").filter(|list| is_cpu_list(list)).map(str::to_owned),
            descriptors: field(&limits, "Max open files").and_then(|rest| rest.split_whitespace().next()?.parse().ok()),
            mapped,
            has_own_mounts: link("ns/mnt", "the mounts")? != own_namespace("mnt"),
        })
    }

    /// Where its files are to be found from here.
    pub(crate) fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.pid))
    }
}

/// The topmost ancestor of a process that runs the same program by the same name, itself where there is none.
///
/// The name tells programs apart that are one file (a shell and a server of busybox); and a server that we have started
/// ourselves is not us.
fn topmost(pid: u32) -> u32 {
    // Nobody nests deeper; and process ids may be given to others while we look.
    const MOST: usize = 32;
    let program = |pid: u32| {
        let file = fs::metadata(format!("/proc/{pid}/exe")).ok()?;
        let name = read(Path::new(&format!("/proc/{pid}/comm"))).ok()?;
        Some((file.dev(), file.ino(), name))
    };
    let Some(own) = program(pid) else { return pid };
    let mut top = pid;
    for _ in 0..MOST {
        let above = parent(top).filter(|&parent| parent > 0 && parent != std::process::id());
        match above.filter(|&parent| program(parent).as_ref() == Some(&own)) {
            Some(parent) => top = parent,
            None => break,
        }
    }
    top
}

fn parent(pid: u32) -> Option<u32> {
    let stat = read(Path::new(&format!("/proc/{pid}/stat"))).ok()?;
    // The name stands in brackets and may hold brackets.
    let behind = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = String::from_utf8_lossy(stat.get(behind + 1..)?).into_owned();
    rest.split_whitespace().nth(1)?.parse().ok()
}

fn own_namespace(kind: &str) -> PathBuf {
    fs::read_link(format!("/proc/self/ns/{kind}")).unwrap_or_default()
}

/// The program by the name that it was called by, where that leads to the same file: some do different things by
/// different names.
fn named(words: &[OsString], program: &Path, place: &Path) -> PathBuf {
    let called = words.first().map(PathBuf::from).filter(|called| called.is_absolute());
    let is_it = |called: &PathBuf| {
        let inside = place.join("root").join(called.strip_prefix("/").unwrap_or(called));
        let known = fs::metadata(place.join("exe")).ok();
        fs::metadata(inside).ok().zip(known).is_some_and(|(a, b)| (a.dev(), a.ino()) == (b.dev(), b.ino()))
    };
    called.filter(is_it).unwrap_or_else(|| program.to_owned())
}

/// Variables, the first of a name. A process that shows a title of its own has written over them.
fn environment(bytes: &[u8]) -> Environment {
    let mut variables = BTreeMap::new();
    for entry in bytes.split(|&byte| byte == 0) {
        let Some(equals) = entry.iter().position(|&byte| byte == b'=') else { continue };
        let (name, value) = (&entry[..equals], &entry[equals + 1..]);
        if is_name(name) {
            variables.entry(owned(name)).or_insert_with(|| owned(value));
        }
    }
    if variables.is_empty() && !bytes.is_empty() { Environment::Overwritten } else { Environment::Known(variables) }
}

/// A name as the standard wants it (POSIX.1-2024, 8.1): others cannot be handed on by a shell, and no program that is
/// meant here asks for them.
fn is_name(name: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    name.first().is_some_and(|first| !first.is_ascii_digit()) && name.iter().all(plain)
}

fn owned(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

/// Effective user and groups. The owner of `/proc/PID` is root where a process has changed its user.
fn user(status: &str) -> Option<User> {
    let effective = |name: &str| field(status, name)?.split_whitespace().nth(1)?.parse().ok();
    let groups = field(status, "Groups:").unwrap_or_default();
    Some(User {
        uid: effective("Uid:")?,
        gid: effective("Gid:")?,
        groups: groups.split_whitespace().filter_map(|group| group.parse().ok()).collect(),
    })
}

/// What stands behind a name at the beginning of a line.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

fn is_cpu_list(list: &str) -> bool {
    !list.is_empty() && list.bytes().all(|byte| byte.is_ascii_digit() || byte == b',' || byte == b'-')
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_that_was_written_over_is_unknown() {
        let known = environment(b"PATH=/bin\0A=b=c\0PATH=/x\0odd\0BASH_FUNC_x%%=() {\0");
        let variables: BTreeMap<OsString, OsString> =
            [("PATH", "/bin"), ("A", "b=c")].map(|(a, b)| (a.into(), b.into())).into();
        assert_eq!(known, Environment::Known(variables));
        assert_eq!(environment(b""), Environment::Known(BTreeMap::new()));
        assert_eq!(environment(b"x.conf\0\0\0\0"), Environment::Overwritten);
    }

    #[test]
    fn what_status_and_limits_tell() {
        let status = "Name:\tx\nUid:\t0\t33\t33\t33\nGid:\t0\t34\t34\t34\nGroups:\t34 5 \nCpus_allowed_list:\t0-1,3\n";
        assert_eq!(user(status), Some(User { uid: 33, gid: 34, groups: vec![34, 5] }));
        assert_eq!(field(status, "Cpus_allowed_list:"), Some("0-1,3"));
        assert_eq!(user("Uid:\tx"), None);
        assert!(is_cpu_list("0-1,3") && !is_cpu_list("") && !is_cpu_list("0;reboot"));
    }

    #[test]
    fn this_very_process_can_be_read() {
        let own = ServerProcess::read(std::process::id());
        // Where tests run in a root folder of their own, that is what is said.
        match own {
            Ok(own) => assert!(own.program.is_absolute() && matches!(own.environment, Environment::Known(_))),
            Err(NoTwin(why)) => assert!(!why.is_empty()),
        }
        assert!(ServerProcess::read(u32::MAX).unwrap_err().to_string().contains("there is no process"));
    }

    proptest::proptest! {
        #[test]
        fn nothing_makes_it_stumble(bytes: Vec<u8>, text in "(Uid:|Groups:|Gid:|[0-9\t -]|\n){0,24}") {
            let _ = environment(&bytes);
            let _ = user(&text);
        }
    }
}
