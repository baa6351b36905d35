//! What the child does before it loads anything: it leaves the terminal, and then the rights, of who has started it.
//!
//! A process that shares a session with a terminal can open that terminal, whoever it belongs to, and push input into it: the
//! shell of root would then run what a library has typed. So the child is the leader of a new session before anything comes to
//! it that a server's owner has chosen, and that is so before it becomes that owner's: the owner's other processes may take
//! hold of it from then on. The standard library can change the user at an `exec` only, so the child executes itself
//! once more. The environment is set aside until then, since the loader would look at it.

use crate::order::RunAs;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The words for the steps. The first has the user and group behind it, or [`OURS`].
const DEPART: &str = "depart";
const LOAD: &str = "load";
const OURS: &str = "ours";
/// Before the names of variables that are set aside. No program looks at such names.
const ASIDE: &[u8] = b"DUEL_LENS_ASIDE_";

/// What the child's arguments ask for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    /// To leave, become this user, and be executed once more.
    First { run_as: Option<RunAs>, rest: &'a [OsString] },
    /// To load the library.
    Second(&'a [OsString]),
}

/// The arguments that make a child begin with the first step.
pub(crate) fn first_step(run_as: Option<RunAs>) -> [OsString; 2] {
    let whose = run_as.map_or_else(|| OURS.to_owned(), |run_as| format!("{}:{}", run_as.uid, run_as.gid));
    [DEPART.into(), whose.into()]
}

/// A variable's name for as long as nobody is to look at it.
pub(crate) fn set_aside(name: &OsStr) -> OsString {
    OsString::from_vec([ASIDE, name.as_bytes()].concat())
}

/// The name under which a variable was set aside.
fn taken_back(name: &OsStr) -> Option<&OsStr> {
    name.as_bytes().strip_prefix(ASIDE).map(OsStr::from_bytes)
}

/// What the arguments behind the command's name ask for.
pub(crate) fn step(arguments: &[OsString]) -> Option<Step<'_>> {
    match arguments {
        [step, whose, rest @ ..] if step == DEPART => {
            let run_as = if whose == OURS { None } else { Some(identity(whose)?) };
            Some(Step::First { run_as, rest })
        }
        [step, rest @ ..] if step == LOAD => Some(Step::Second(rest)),
        _ => None,
    }
}

fn identity(words: &OsStr) -> Option<RunAs> {
    let (uid, gid) = words.to_str()?.split_once(':')?;
    Some(RunAs { uid: uid.parse().ok()?, gid: gid.parse().ok()? })
}

/// Leaves the session, becomes this user, and begins with the second step. Comes back only to tell why it could not.
pub(crate) fn depart(run_as: Option<RunAs>, rest: &[OsString]) -> String {
    if let Err(error) = rustix::process::setsid() {
        return format!("the process that is to load it cannot have a session of its own: {error}");
    }
    if let Err(why) = must_have_departed() {
        return why;
    }
    let all: Vec<OsString> = std::env::args_os().collect();
    // What leads to the first step is what leads to the second: the name of a command, or nothing.
    let Some(command) = all.get(1..all.len().saturating_sub(rest.len() + 2)) else {
        return "the process that is to load it was started in an unknown way".to_owned();
    };
    let program = if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() };
    let program = match program {
        Ok(program) => program,
        Err(error) => return format!("the duel program cannot be found: {error}"),
    };
    let aside: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let environment = aside.iter().filter_map(|(name, value)| Some((taken_back(name)?, value)));
    let mut next = Command::new(program);
    next.args(command).arg(LOAD).args(rest).env_clear().envs(environment);
    if let Some(run_as) = run_as {
        // The standard library drops our supplementary groups with our user.
        next.gid(run_as.gid).uid(run_as.uid);
    }
    let error = next.exec();
    format!(
        "the duel program cannot be started as the server's user: {error}; copy it to a place where that user may execute it"
    )
}

/// Refuses where this process has a terminal: that of its session, or one of its streams.
pub(crate) fn must_have_departed() -> Result<(), String> {
    use rustix::fs::{Mode, OFlags, open};
    let tty = open("/dev/tty", OFlags::RDONLY | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty());
    if tty.is_ok() {
        return Err("the process that is to load it would have the terminal that duel was started from".to_owned());
    }
    if rustix::termios::isatty(rustix::stdio::stdin())
        || rustix::termios::isatty(rustix::stdio::stdout())
        || rustix::termios::isatty(rustix::stdio::stderr())
    {
        return Err("a stream of the process that is to load it is a terminal".to_owned());
    }
    Ok(())
}

/// Whether the other end of standard output is gone: the parent reads it as long as it lives.
#[cfg(target_os = "linux")]
pub(crate) fn nobody_listens() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdout = rustix::stdio::stdout();
    let mut all = [PollFd::new(&stdout, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut all, Some(&at_once)).is_ok() && all[0].revents().contains(PollFlags::ERR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_are_told_apart() {
        let rest = [OsString::from("/lib/libcrypto.so.3"), "variables".into()];
        for run_as in [None, Some(RunAs { uid: 33, gid: 34 })] {
            let arguments = [&first_step(run_as)[..], &rest].concat();
            assert_eq!(step(&arguments), Some(Step::First { run_as, rest: &rest }));
        }
        assert_eq!(step(&[&[OsString::from(LOAD)][..], &rest].concat()), Some(Step::Second(&rest)));
        for wrong in [&[][..], &["depart"], &["depart", "0"], &["depart", "-1:0"], &["/lib/libcrypto.so.3"]] {
            let wrong: Vec<OsString> = wrong.iter().map(OsString::from).collect();
            assert_eq!(step(&wrong), None);
        }
    }

    #[test]
    fn the_loader_does_not_see_what_is_set_aside() {
        let aside = set_aside(OsStr::new("LD_LIBRARY_PATH"));
        assert!(!aside.to_string_lossy().starts_with("LD_"));
        assert_eq!(taken_back(&aside), Some(OsStr::new("LD_LIBRARY_PATH")));
        assert_eq!(taken_back(OsStr::new("PATH")), None);
    }
}
