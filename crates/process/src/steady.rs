//! What is read of a process while it stays what it is.
//!
//! Several things are read of a process one after the other: its user, its libraries, its environment. In between it may
//! execute another program, and keeps its number and start. One that executes a setuid program passes for root from then on.
//! Whoever took the libraries and the environment from before with the user from after would run with the rights of root what
//! a user has chosen. So the rights and the program are read before and after, and nothing that was read in between counts
//! where they are not the same.

use crate::files::{ProcessError, ProcessFiles};
use crate::status::{Status, User};
use std::fs;
use std::os::unix::fs::MetadataExt;

/// Reads of a process what belongs together, with its status from before.
///
/// # Errors
///
/// Those of `read`; and, of type [`ProcessError`], where the process has changed meanwhile, where it has more than one user or
/// group (it may be about to change), and where its program was started with other rights than its starter had (setuid): then
/// somebody else has chosen its environment.
pub fn steady<T, E: From<ProcessError>>(
    files: &ProcessFiles,
    read: impl FnOnce(&Status) -> Result<T, E>,
) -> Result<T, E> {
    let before = Nature::of(files)?;
    let found = read(&before.status)?;
    let after = Nature::of(files)?;
    if before.is_that_of(&after) {
        return Ok(found);
    }
    let pid = files.pid();
    Err(E::from(ProcessError(format!(
        "process {pid} has changed its program or its rights while it was looked at, so nothing of it is run; try again when \
         the server has started"
    ))))
}

/// What a process is and may do.
struct Nature {
    status: Status,
    /// Device and number of the program's file.
    program: (u64, u64),
    /// What the kernel has told the program when it was executed. Its addresses are drawn anew by each execution, so no other
    /// one has the same, not even of the same program, unless the machine's `randomize_va_space` is 0.
    told: Vec<u8>,
}

impl Nature {
    fn of(files: &ProcessFiles) -> Result<Self, ProcessError> {
        let pid = files.pid();
        let status = Status::parse(&files.read("status", "the owner")?);
        if status.user.is_none() {
            return Err(ProcessError(format!("whose process {pid} is cannot be found out, so nothing of it is run")));
        }
        if !status.has_one_identity {
            return Err(ProcessError(format!(
                "not available here: process {pid} has several user or group ids at once, so what it runs may be somebody \
                 else's choice"
            )));
        }
        let told = files.read("auxv", "the start")?;
        // The kernel tells it a moment after the program has begun.
        let why = match starter_had_these_rights(&told) {
            Some(true) => None,
            Some(false) => {
                Some("runs a setuid or setgid program, whose environment was chosen by somebody with other rights")
            }
            None => Some("does not tell with which rights its program was started; if that was just now, try again"),
        };
        if let Some(why) = why {
            return Err(ProcessError(format!("not available here: process {pid} {why}")));
        }
        // An open of the link would be an open of the file.
        let program = fs::metadata(files.path("exe"))
            .map_err(|error| ProcessError(format!("cannot look at the program of process {pid}: {error}")))?;
        Ok(Self { status, program: (program.dev(), program.ino()), told })
    }

    /// The mask of files' modes and the CPUs may change, and are no rights.
    fn is_that_of(&self, other: &Self) -> bool {
        fn rights(status: &Status) -> (Option<&User>, Option<u64>, Option<u64>, bool, u64) {
            (
                status.user.as_ref(),
                status.effective_capabilities,
                status.bounding_capabilities,
                status.has_no_new_privileges,
                status.system_call_filters,
            )
        }
        self.program == other.program && self.told == other.told && rights(&self.status) == rights(&other.status)
    }
}

/// Whether the program was executed with the user and group of who executed it; `None` where that is not told.
///
/// The auxiliary vector: pairs of words as wide as the program's own, which may be half as wide as ours.
fn starter_had_these_rights(auxv: &[u8]) -> Option<bool> {
    // AT_UID, AT_EUID, AT_GID, AT_EGID of <linux/auxvec.h>.
    const USERS: [u64; 2] = [11, 12];
    const GROUPS: [u64; 2] = [13, 14];
    /// No kind of entry has a larger number.
    const LARGEST_KIND: u64 = 0xffff;
    let long = |word: &[u8]| Some(u64::from_ne_bytes(word.try_into().ok()?));
    let short = |word: &[u8]| Some(u64::from(u32::from_ne_bytes(word.try_into().ok()?)));
    let entries = |width: usize, number: &dyn Fn(&[u8]) -> Option<u64>| -> Option<Vec<(u64, u64)>> {
        let pairs = auxv.chunks_exact(2 * width).map(|pair| Some((number(&pair[..width])?, number(&pair[width..])?)));
        pairs.collect::<Option<Vec<_>>>().filter(|pairs| pairs.iter().all(|(kind, _)| *kind <= LARGEST_KIND))
    };
    let entries = entries(8, &long).or_else(|| entries(4, &short))?;
    let value = |wanted: u64| entries.iter().find(|(kind, _)| *kind == wanted).map(|(_, value)| *value);
    let are_same = |[one, other]: [u64; 2]| Some(value(one)? == value(other)?);
    Some(are_same(USERS)? && are_same(GROUPS)?)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    const NOBODY: u32 = 65534;
    /// Nothing here takes longer, even where the machine is busy with other things.
    const PATIENCE: Duration = Duration::from_secs(60);

    fn skipped(why: &str) {
        eprintln!("skipped: {why}");
        assert!(std::env::var_os("DUEL_TESTS_SKIP_NOTHING").is_none_or(|value| value != "1"), "{why}");
    }

    /// A shell that executes the next program of its life for each line that it is told.
    struct Changing {
        process: Child,
        _folder: tempfile::TempDir,
    }

    impl Changing {
        /// In a folder with setuid programs; `None`, and said, where there is no root who could make them.
        fn start(uid: u32, script: &str) -> Option<Self> {
            if !rustix::process::geteuid().is_root() {
                skipped("it takes root to make setuid programs");
                return None;
            }
            let folder = tempfile::tempdir().unwrap();
            let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            mode(folder.path(), 0o755);
            for program in ["sleep", "setpriv"] {
                let copy = folder.path().join(program);
                let copied =
                    ["/usr/bin", "/bin"].iter().any(|place| fs::copy(Path::new(place).join(program), &copy).is_ok());
                if !copied {
                    skipped(&format!("there is no {program}"));
                    return None;
                }
                mode(&copy, 0o4755);
            }
            let mut command = Command::new("/bin/sh");
            command.args(["-c", script]).current_dir(folder.path()).stdin(Stdio::piped()).stderr(Stdio::null());
            let process = command.uid(uid).gid(uid).spawn().unwrap();
            let started = Self { process, _folder: folder };
            started.wait_until("its program has begun", Self::has_begun);
            Some(started)
        }

        fn files(&self) -> ProcessFiles {
            ProcessFiles::of(self.process.id())
        }

        /// Has it execute its next program, and waits until it is this user's and another program than the one that
        /// changes users.
        fn change(&mut self, uid: u32) {
            self.process.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
            self.wait_until("it has changed", |this| {
                effective(&this.files()) == uid && !this.program().ends_with("setpriv") && this.has_begun()
            });
        }

        /// The kernel names the new program a moment before it tells the program how it was started.
        fn has_begun(&self) -> bool {
            starter_had_these_rights(&self.files().bytes("auxv").unwrap()).is_some()
        }

        fn wait_until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
            let deadline = Instant::now() + PATIENCE;
            while !is_so(self) {
                assert!(Instant::now() < deadline, "waited in vain until {what}");
                std::thread::sleep(Duration::from_millis(2));
            }
        }

        fn program(&self) -> PathBuf {
            self.files().link("exe", "the program").unwrap()
        }
    }

    impl Drop for Changing {
        fn drop(&mut self) {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }

    fn effective(files: &ProcessFiles) -> u32 {
        Status::parse(&files.bytes("status").unwrap()).user.unwrap().uid
    }

    fn why(result: Result<(), ProcessError>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn a_process_that_executes_a_setuid_program_meanwhile_is_refused() {
        let Some(mut server) = Changing::start(NOBODY, "read line; exec ./sleep 60") else { return };
        let files = server.files();
        let told = why(steady(&files, |status| {
            // What it has chosen as nobody is read here, and whose it is was read before.
            assert_eq!(status.user.as_ref().unwrap().uid, NOBODY);
            assert!(!files.read("environ", "the environment")?.is_empty());
            server.change(0);
            Ok(())
        }));
        assert!(told.contains("several user or group ids"), "{told}");
        // From then on it is not read at all.
        assert!(why(steady(&files, |_| Ok(()))).contains("several user or group ids"));
    }

    #[test]
    fn a_process_that_is_root_s_before_and_after_and_another_s_in_between_is_refused() {
        let to_nobody = format!("setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups");
        let to_root = "./setpriv --reuid=0 --regid=0 --clear-groups";
        let script = format!("read a; exec {to_nobody} sh -c 'read b; exec {to_root} sh -c \"read c; exit 0\"'");
        let Some(mut server) = Changing::start(0, &script) else { return };
        let files = server.files();
        let told = why(steady(&files, |_| {
            server.change(NOBODY);
            server.change(0);
            Ok(())
        }));
        // Both shells of root are the same program with the same rights.
        assert!(told.contains("changed its program or its rights"), "{told}");
        assert_eq!(steady(&files, |_| Ok::<_, ProcessError>(())), Ok(()));
    }

    #[test]
    fn a_program_that_was_started_with_more_rights_than_its_starter_had_is_refused() {
        // One that takes all of root's ids, as sudo does, and keeps the environment of who has called it.
        let Some(mut server) = Changing::start(NOBODY, "read line; exec ./sleep 60") else { return };
        server.change(0);
        assert_eq!(starter_had_these_rights(&server.files().bytes("auxv").unwrap()), Some(false));
        assert_eq!(starter_had_these_rights(&ProcessFiles::of(std::process::id()).bytes("auxv").unwrap()), Some(true));
        assert_eq!(starter_had_these_rights(b""), None, "unknown is not free");
    }

    #[test]
    fn a_process_that_has_ended_is_not_read_by_its_number() {
        let mut process = Command::new("sleep").arg("60").spawn().unwrap();
        let files = ProcessFiles::of(process.id());
        assert!(files.is_there() && files.bytes("stat").is_ok());
        process.kill().unwrap();
        process.wait().unwrap();
        // Whoever has the number by now: the folder that is held is that of the one that has ended.
        assert!(!files.is_there());
        assert!(files.read("stat", "the state").unwrap_err().to_string().contains("there is no process"));
    }

    #[test]
    fn vectors_of_narrow_programs_are_understood() {
        let words = |pairs: &[(u32, u32)]| -> Vec<u8> {
            pairs.iter().flat_map(|(kind, value)| [kind.to_ne_bytes(), value.to_ne_bytes()].concat()).collect()
        };
        let same = [(3, 0x0804_8034), (11, 7), (12, 7), (13, 8), (14, 8), (0, 0)];
        assert_eq!(starter_had_these_rights(&words(&same)), Some(true));
        let setuid = [(3, 0x0804_8034), (11, 7), (12, 0), (13, 8), (14, 8), (0, 0)];
        assert_eq!(starter_had_these_rights(&words(&setuid)), Some(false));
    }
}
