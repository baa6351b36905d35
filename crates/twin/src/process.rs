//! How a running server was started.

use crate::NoTwin;
use crate::title::{CommandLine, command_line};
use crate::{limits, mounts};
use duel_model::sanitize_line;
use duel_process::{
    Mapping, ProcessError, ProcessFiles, Status, confinement, listens_with, mappings, parent, steady, variables,
};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

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
    /// The command that takes its limits, priority, user and groups.
    pub(crate) rights: Vec<String>,
    /// Bits that it leaves out of the modes of files.
    pub(crate) umask: Option<u32>,
    /// CPUs that it may run on, as the kernel lists them.
    pub(crate) cpus: Option<String>,
    /// Files that it maps to execute them, once each.
    pub(crate) mapped: Vec<Mapping>,
    /// The file that it executes.
    pub(crate) executable: PathBuf,
    /// It sees other mounts than we do.
    pub(crate) has_own_mounts: bool,
    /// Held, so that what is looked at later is of the same process.
    files: ProcessFiles,
}

impl From<ProcessError> for NoTwin {
    fn from(error: ProcessError) -> Self {
        Self::new(error.to_string())
    }
}

/// What is known of a process's environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Environment {
    /// All of it.
    Known(BTreeMap<OsString, OsString>),
    /// Nothing: the program has written over it.
    Overwritten,
}

impl ServerProcess {
    /// Reads how the server that `pid` belongs to was started: the topmost of its ancestors that runs the same program,
    /// since workers are not started by hand.
    ///
    /// # Errors
    ///
    /// What cannot have a twin, in one sentence: a process that may not be looked at, that changes its program or its user
    /// meanwhile, whose program or libcrypto or libssl
    /// were replaced since it started, that tells no arguments, that got its sockets from systemd, that is confined to less
    /// than its user may do (a container, fewer capabilities, filters of system calls), or that sees other programs than we
    /// do.
    pub fn read(pid: u32) -> Result<Self, NoTwin> {
        let files = ProcessFiles::of(topmost(pid));
        steady(&files, |status| Self::of(&files, status))
    }

    /// One that stays what it is meanwhile.
    fn of(files: &ProcessFiles, status: &Status) -> Result<Self, NoTwin> {
        let pid = files.pid();
        let link = |name: &str, what: &str| files.link(name, what).map_err(NoTwin::from);
        let file = |name: &str, what: &str| files.read(name, what).map_err(NoTwin::from);

        let executable = link("exe", "the program")?;
        let shown = sanitize_line(&executable.to_string_lossy());
        if executable.as_os_str().to_string_lossy().ends_with(" (deleted)") {
            return Err(NoTwin::new(format!("its program was replaced since it started: {shown}")));
        }
        if let Some(why) = confinement(files)? {
            return Err(NoTwin::new(format!(
                "not available here: the server (process {pid}) {why}; a twin of it would run with more rights than it has"
            )));
        }
        let has_own_mounts = link("ns/mnt", "the mounts")? != own_mounts();
        if has_own_mounts {
            mounts::must_show_our_programs(files)?;
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
        let mapped = executed(&file("maps", "the mappings")?);
        let is_tls = |mapping: &&Mapping| mapping.is_libcrypto() || mapping.name().starts_with(b"libssl");
        if let Some(gone) = mapped.iter().filter(is_tls).find(|mapping| mapping.is_deleted) {
            let gone = sanitize_line(&gone.path.to_string_lossy());
            return Err(NoTwin::new(format!("a library that it maps was replaced since it started: {gone}")));
        }
        let program = named(&words, &executable, files);
        if program.as_os_str().to_string_lossy().contains('=') {
            // `env`, which starts it, would take it for a variable.
            return Err(NoTwin::new(format!("its program has an equals sign in its name: {shown}")));
        }
        Ok(Self {
            pid,
            program,
            arguments: words.into_iter().skip(1).collect(),
            folder: link("cwd", "the working folder")?,
            environment,
            rights: limits::rights(files, status),
            umask: status.umask,
            cpus: status.cpus.clone(),
            mapped,
            executable,
            has_own_mounts,
            files: files.clone(),
        })
    }

    /// What the kernel shows of it.
    pub(crate) fn files(&self) -> &ProcessFiles {
        &self.files
    }
}

/// The topmost ancestor of a process that belongs to the same server, itself where there is none.
///
/// That it runs the same program is not enough: an interpreter runs many, one of which may have started the other. Either
/// they have the same arguments (workers are copies of the process that starts them), or both show a title of the same
/// program, or they listen together. And a server that we have started ourselves is not us.
fn topmost(pid: u32) -> u32 {
    // Nobody nests deeper; and process ids may be given to others while we look.
    const MOST: usize = 32;
    let mut top = pid;
    for _ in 0..MOST {
        match parent(top).filter(|&parent| parent > 0 && parent != std::process::id()) {
            Some(parent) if belongs(top, parent) => top = parent,
            _ => break,
        }
    }
    top
}

fn belongs(child: u32, parent: u32) -> bool {
    let program = |pid: u32| {
        let files = ProcessFiles::of(pid);
        let file = fs::metadata(files.path("exe")).ok()?;
        // The name tells programs apart that are one file: a shell and a server of busybox.
        Some((file.dev(), file.ino(), files.bytes("comm").ok()?))
    };
    if program(child).is_none() || program(child) != program(parent) {
        return false;
    }
    let arguments = |pid: u32| ProcessFiles::of(pid).bytes("cmdline").unwrap_or_default();
    are_of_one_server(&arguments(child), &arguments(parent)) || listens_with(child, parent)
}

/// Whether these arguments tell that one process is a copy of the other.
fn are_of_one_server(child: &[u8], parent: &[u8]) -> bool {
    let title = |line: &[u8]| {
        let text = match command_line(line) {
            CommandLine::Title(title) => title,
            CommandLine::NginxTitle(_) => return Some("nginx".to_owned()),
            CommandLine::Arguments(_) | CommandLine::Nothing => return None,
        };
        text.split_once(": ").map(|(program, _)| program.to_owned())
    };
    is_copy(child, parent) || title(child).is_some_and(|of_child| title(parent) == Some(of_child))
}

/// Whether the arguments are the same, or the parent has put some right behind the program's name: HAProxy tells a worker that
/// follows another one which socket to take over.
fn is_copy(child: &[u8], parent: &[u8]) -> bool {
    fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
        let end = line.iter().position(|&byte| byte == 0)?;
        Some((&line[..end], &line[end..]))
    }
    let adds = |(of_child, behind): (&[u8], &[u8]), (of_parent, arguments): (&[u8], &[u8])| {
        // A zero byte at each end, so that whole arguments are compared; more than that, so that there are any.
        of_child == of_parent && arguments.len() > 1 && behind.ends_with(arguments)
    };
    !child.is_empty() && (child == parent || split(child).zip(split(parent)).is_some_and(|(c, p)| adds(c, p)))
}

fn own_mounts() -> PathBuf {
    ProcessFiles::of(std::process::id()).link("ns/mnt", "the mounts").unwrap_or_default()
}

/// Files that are mapped to be executed, once each.
fn executed(maps: &[u8]) -> Vec<Mapping> {
    let mut found: Vec<Mapping> = Vec::new();
    for mapping in mappings(maps).into_iter().filter(|mapping| mapping.is_executable) {
        if found.iter().all(|known| known.path != mapping.path) {
            found.push(mapping);
        }
    }
    found
}

/// The program by the name that it was called by, where that leads to the same file: some do different things by
/// different names.
fn named(words: &[OsString], program: &Path, files: &ProcessFiles) -> PathBuf {
    let called = words.first().map(PathBuf::from).filter(|called| called.is_absolute());
    let is_it = |called: &PathBuf| {
        let known = fs::metadata(files.path("exe")).ok();
        let found = fs::metadata(files.inside(called)).ok();
        found.zip(known).is_some_and(|(a, b)| (a.dev(), a.ino()) == (b.dev(), b.ino()))
    };
    called.filter(is_it).unwrap_or_else(|| program.to_owned())
}

/// Variables with which HAProxy starts itself anew when it is reloaded. With them it would wait for workers that a twin has not.
const OF_A_RELOAD: [&[u8]; 3] = [b"HAPROXY_MWORKER_REEXEC", b"HAPROXY_MWORKER_WAIT_ONLY", b"HAPROXY_PROCESSES"];

/// Variables, the first of a name. A process that shows a title of its own has written over them.
fn environment(bytes: &[u8]) -> Environment {
    let mut known = BTreeMap::new();
    for (name, value) in variables(bytes).filter(|(name, _)| is_name(name) && !OF_A_RELOAD.contains(name)) {
        known.entry(owned(name)).or_insert_with(|| owned(value));
    }
    if known.is_empty() && !bytes.is_empty() { Environment::Overwritten } else { Environment::Known(known) }
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
    fn a_copy_is_told_from_what_an_interpreter_was_told_to_start() {
        assert!(are_of_one_server(b"/usr/sbin/apache2\0-k\0start\0", b"/usr/sbin/apache2\0-k\0start\0"));
        assert!(are_of_one_server(b"nginx: worker process", b"nginx: master process nginx -g daemon off;"));
        assert!(are_of_one_server(b"php-fpm: pool www", b"php-fpm: master process (/etc/php/fpm.conf)"));
        let (reloaded, master) = (b"haproxy\0-sf\x0042\0-x\0sockpair@3\0-W\0-f\0h.cfg\0", b"haproxy\0-W\0-f\0h.cfg\0");
        assert!(are_of_one_server(reloaded, master));
        assert!(!are_of_one_server(master, reloaded));
        assert!(!are_of_one_server(b"python3\0app.py\0", b"python3\0supervisor.py\0"));
        assert!(!are_of_one_server(b"python3\0app.py\0", b"python3\0supervisor.py\0app.py\0"));
        assert!(!are_of_one_server(b"sh\0-c\0x\0", b"sh\0"));
        assert!(!are_of_one_server(b"", b""), "what tells nothing is not taken for the same");
        assert!(!are_of_one_server(b"postgres: writer", b"nginx: master process nginx"));
    }

    #[test]
    fn this_very_process_can_be_read() {
        let own = ServerProcess::read(std::process::id()).unwrap();
        assert!(own.program.is_absolute() && matches!(own.environment, Environment::Known(_)));
        assert!(ServerProcess::read(u32::MAX).unwrap_err().to_string().contains("there is no process"));
    }

    proptest::proptest! {
        #[test]
        fn nothing_makes_it_stumble(bytes: Vec<u8>, other: Vec<u8>) {
            let _ = (environment(&bytes), are_of_one_server(&bytes, &other));
        }
    }
}
