//! Whether a process is confined to less than we are.
//!
//! What a process chooses (its libraries, its environment, its arguments) must not be run with more rights than the process
//! has. A user can be taken over; the walls of a container cannot be built anew from here. So whoever wants to run what a
//! process has chosen asks here first.
//!
//! A mount namespace alone is no wall: `ip netns exec` and systemd's `PrivateTmp=` give one to servers that are otherwise as
//! free as we are, and who has all capabilities can leave it. A network is none either, to who runs without it.

use crate::files::{ProcessError, ProcessFiles};
use crate::status::Status;
use duel_model::sanitize_line;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What keeps a process from what we may do, apart from its user, as the end of "the server ..."; `None` where nothing is
/// known to.
///
/// # Errors
///
/// Where that cannot be found out, which must be taken for a yes.
pub fn confinement(theirs: &ProcessFiles) -> Result<Option<String>, ProcessError> {
    let ours = ProcessFiles::of(std::process::id());
    for (kind, told) in [("user", "user namespace of its own"), ("pid", "container (a process namespace of its own)")] {
        let name = format!("ns/{kind}");
        if theirs.link(&name, "the namespaces")? != ours.link(&name, "the namespaces")? {
            return Ok(Some(format!("runs in a {told}")));
        }
    }
    if !has_our_root(theirs, &ours)? {
        return Ok(Some("runs in a container or a changed root folder: its root folder is not ours".to_owned()));
    }
    let status = |files: &ProcessFiles| Ok::<_, ProcessError>(Status::parse(&files.read("status", "the rights")?));
    if let Some(told) = fewer_rights(&status(theirs)?, &status(&ours)?) {
        return Ok(Some(told));
    }
    // No such file, or an error, where the kernel has no module that gives labels.
    let label = |files: &ProcessFiles| files.bytes("attr/current").map(|label| plain(&label)).unwrap_or_default();
    let (label, our_label) = (label(theirs), label(&ours));
    Ok((label != our_label && !label.is_empty() && label != "unconfined")
        .then(|| format!("is confined by the security label {}", sanitize_line(&label))))
}

/// The link alone does not tell: in a container it reads `/` as well.
fn has_our_root(theirs: &ProcessFiles, ours: &ProcessFiles) -> Result<bool, ProcessError> {
    if theirs.link("root", "the root folder")? != ours.link("root", "the root folder")? {
        return Ok(false);
    }
    let identity = |files: &ProcessFiles| {
        let root = fs::metadata(files.inside(Path::new("/")));
        root.map(|root| (root.dev(), root.ino()))
            .map_err(|error| ProcessError(format!("cannot look at the root folder of a process: {error}")))
    };
    Ok(identity(theirs)? == identity(ours)?)
}

/// Capabilities count of root alone: who is not root is given none.
fn fewer_rights(theirs: &Status, ours: &Status) -> Option<String> {
    if theirs.system_call_filters > ours.system_call_filters {
        return Some("runs under a filter of system calls (seccomp)".to_owned());
    }
    if theirs.is_root() && ours.is_root() {
        let lacks = |theirs: Option<u64>, ours: Option<u64>| match (theirs, ours) {
            (Some(theirs), Some(ours)) => ours & !theirs != 0,
            _ => true,
        };
        if lacks(theirs.effective_capabilities, ours.effective_capabilities)
            || lacks(theirs.bounding_capabilities, ours.bounding_capabilities)
        {
            return Some("runs as a root with fewer capabilities than duel has".to_owned());
        }
    }
    None
}

/// A label without its end, and without the mode that AppArmor shows.
fn plain(label: &[u8]) -> String {
    let label = String::from_utf8_lossy(label);
    let label = label.trim_end_matches(['\0', '\n']);
    label.strip_suffix(" (enforce)").unwrap_or(label).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::User;
    use std::process::{Command, Stdio};

    fn status(uid: u32, capabilities: u64, filters: u64) -> Status {
        Status {
            user: Some(User { uid, gid: uid, groups: Vec::new() }),
            effective_capabilities: Some(capabilities),
            bounding_capabilities: Some(capabilities),
            system_call_filters: filters,
            ..Status::default()
        }
    }

    #[test]
    fn a_root_with_fewer_capabilities_is_confined() {
        let ours = status(0, 0xff, 0);
        assert_eq!(fewer_rights(&status(0, 0xff, 0), &ours), None);
        assert!(fewer_rights(&status(0, 0xfe, 0), &ours).is_some());
        // Who is not root has none anyway.
        assert_eq!(fewer_rights(&status(33, 0, 0), &ours), None);
        assert!(fewer_rights(&status(33, 0, 1), &ours).unwrap().contains("seccomp"));
        // In a container like its server's, we are under the same filter.
        assert_eq!(fewer_rights(&status(0, 0xff, 1), &status(0, 0xff, 1)), None);
        let untold = Status { effective_capabilities: None, ..status(0, 0xff, 0) };
        assert!(fewer_rights(&untold, &ours).is_some(), "unknown is not free");
    }

    #[test]
    fn we_are_not_confined_to_less_than_we_are() {
        assert_eq!(confinement(&ProcessFiles::of(std::process::id())), Ok(None));
        assert!(confinement(&ProcessFiles::of(u32::MAX)).unwrap_err().to_string().contains("there is no process"));
        assert_eq!(plain(b"nginx (enforce)\n"), "nginx");
    }

    /// Waits, started by these words, until it is ended.
    fn sleeper(words: &[&str]) -> std::process::Child {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(["sleep", "60"]).stdin(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    }

    /// The answer for who is started by these words; `None`, and said, where they cannot be run here.
    fn answer_for(words: &[&str]) -> Option<Option<String>> {
        let can = Command::new(words[0]).args(&words[1..]).arg("true").stderr(Stdio::null()).status();
        if !can.is_ok_and(|status| status.success()) {
            let why = format!("skipped: {} cannot be had here", words.join(" "));
            assert!(std::env::var_os("DUEL_TESTS_SKIP_NOTHING").is_none_or(|value| value != "1"), "{why}");
            eprintln!("{why}");
            return None;
        }
        let mut child = sleeper(words);
        let comm = format!("/proc/{}/comm", child.id());
        for _ in 0..500 {
            if fs::read_to_string(&comm).is_ok_and(|comm| comm == "sleep\n") {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let told = confinement(&ProcessFiles::of(child.id()));
        let _ = child.kill();
        let _ = child.wait();
        Some(told.unwrap())
    }

    #[test]
    fn the_walls_of_real_processes_are_seen() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: it takes root");
            return;
        }
        let expect = |words: &[&str], expected: Option<&str>| {
            let Some(told) = answer_for(words) else { return };
            match expected {
                None => assert_eq!(told, None, "{words:?}"),
                Some(part) => assert!(told.as_ref().is_some_and(|told| told.contains(part)), "{words:?}: {told:?}"),
            }
        };
        expect(&["env"], None);
        expect(&["unshare", "--net", "--mount"], None);
        expect(&["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"], None);
        expect(&["setpriv", "--bounding-set=-sys_admin"], Some("fewer capabilities"));
        expect(&["unshare", "--user", "--map-root-user"], Some("user namespace"));
        // chroot to the same folder by another mount of it: the link tells.
        expect(
            &["unshare", "--mount", "sh", "-c", "mount --bind / /mnt && exec chroot /mnt \"$@\"", "sh"],
            Some("root folder"),
        );
    }
}
