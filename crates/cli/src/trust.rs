//! Plans of somebody else: what an archive asks this machine to open, read, start and talk to is told before it is done.

use crate::keep;
use crate::outcome::Usage;
use crate::output::OutputFlags;
use clap::Args;
use duel_model::{Plan, sanitize_line};
use std::io::{BufRead, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Options of whoever carries out an archived plan.
#[derive(Args, Clone)]
pub(crate) struct TrustFlags {
    /// Do what the archive's plan says, also where it names files, passwords, proxies or machines to log in to. Without it,
    /// what a plan of another archive than your own names is shown and asked for; so are, of any archive, commands that start
    /// targets anew
    #[arg(long)]
    pub(crate) trust_archive: bool,
}

/// Most lines of a plan that are shown. A form may have any number of fields, and who is asked has to read them.
const MOST_TOLD: usize = 20;

/// Makes sure that the user wants what an archived plan names; `given` are the names of header fields whose secret values are
/// to be sent to its targets. Nothing is opened before.
pub(crate) fn ensure(plan: &Plan, given: &[String], trust: &TrustFlags, output: &OutputFlags) -> anyhow::Result<()> {
    let told = told(plan, given);
    // A command by which a server is started anew is asked for in the user's own archive, too: it breaks off what others do with that
    // server, and by the time that a run is repeated, the name in it may be that of another one, or one that is in use.
    let is_own = keep::path(output).is_ok_and(|path| is_own(&path, output));
    if told.is_empty() || trust.trust_archive || (is_own && plan.carried_out().is_empty()) {
        return Ok(());
    }
    let whose = if is_own { "" } else { "this archive may be somebody else's, and " };
    let targets: Vec<String> = plan.targets.iter().map(|target| sanitize_line(&target.address)).collect();
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return Err(Usage(format!(
            "{whose}its plan would, on its way to {}: {}; if you want that, say so with --trust-archive",
            shortened(&targets, 2).join(", "),
            shortened(&told, 3).join("; ")
        ))
        .into());
    }
    let mut question = String::from(if is_own { "" } else { "This archive may be somebody else's. " });
    question += "Its plan sends requests to:\n";
    let list = |lines: &[String]| lines.iter().map(|line| format!("  {line}\n")).collect::<String>();
    question += &list(&shortened(&targets, MOST_TOLD));
    question += "and it would:\n";
    // Whoever agrees has seen all that is overwritten, and all commands.
    question += &list(&shortened(&told, MOST_TOLD.max(plan.overwritten().len() + plan.carried_out().len())));
    question += "Do that? (y/N) ";
    let mut answer = String::new();
    let asked =
        std::io::stderr().write_all(question.as_bytes()).and_then(|()| std::io::stdin().lock().read_line(&mut answer));
    if asked.is_ok() && ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()) {
        return Ok(());
    }
    Err(Usage("nothing was done; --trust-archive does what the archive's plan says without a question".into()).into())
}

/// What the plan would do, secrets that are typed now included: they go where the plan says.
fn told(plan: &Plan, given: &[String]) -> Vec<String> {
    let mut told = plan.obeyed();
    if !given.is_empty() {
        let names: Vec<String> = given.iter().map(|name| sanitize_line(name)).collect();
        let is_first = told.is_empty();
        told.push(format!("send the values given with -H ({})", names.join(", ")));
        if is_first {
            told.extend(plan.unverified());
        }
    }
    told
}

/// The first lines, and how many more there are.
fn shortened(lines: &[String], most: usize) -> Vec<String> {
    let mut shown: Vec<String> = lines.iter().take(most).cloned().collect();
    if lines.len() > most {
        shown.push(format!("and {} more", lines.len() - most));
    }
    shown
}

/// Whether an archive is the user's own: the one where runs are kept when nobody says where else, and a file that nobody
/// else can have written.
fn is_own(path: &Path, output: &OutputFlags) -> bool {
    let absolute = |path: &Path| std::path::absolute(path).ok();
    let is_default = || keep::default_file().is_some_and(|file| absolute(&file) == absolute(path));
    (output.archive.is_none() || is_default()) && is_of_user_alone(path)
}

/// Whether only this user can have written a file: it is his, no link, and neither it nor its folder can be written to by
/// others, who could put another file in its place.
fn is_of_user_alone(path: &Path) -> bool {
    let Some(folder) = path.parent() else { return false };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    const BY_OTHERS: u32 = 0o022;
    // Of a folder that belongs to the system, such as one made for the user by root.
    const ROOT: u32 = 0;
    let user = rustix::process::geteuid().as_raw();
    let file_is_own =
        path.symlink_metadata().is_ok_and(|file| file.is_file() && file.uid() == user && file.mode() & BY_OTHERS == 0);
    let folder_is_safe =
        folder.metadata().is_ok_and(|folder| [user, ROOT].contains(&folder.uid()) && folder.mode() & BY_OTHERS == 0);
    file_is_own && folder_is_safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_file_that_others_may_have_written_is_not_the_users_own() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("runs.sqlite"), folder.path().join("link"));
        let mode = |path: &Path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        std::fs::write(&file, "x").unwrap();
        mode(&file, 0o600);
        assert!(is_of_user_alone(&file));
        symlink(&file, &link).unwrap();
        assert!(!is_of_user_alone(&link), "a link leads elsewhere");
        for others in [0o620, 0o602] {
            mode(&file, others);
            assert!(!is_of_user_alone(&file), "{others:o}");
        }
        mode(&file, 0o644);
        assert!(is_of_user_alone(&file), "who may read it has not written it");
        mode(folder.path(), 0o777);
        assert!(!is_of_user_alone(&file), "another file can be put in its place");
        mode(folder.path(), 0o700);
        assert!(!is_of_user_alone(&folder.path().join("none")));
    }

    #[test]
    fn long_lists_are_cut_and_say_so() {
        let lines: Vec<String> = (0..5).map(|n| n.to_string()).collect();
        assert_eq!(shortened(&lines, 2), ["0", "1", "and 3 more"]);
        assert_eq!(shortened(&lines, 5), lines);
    }
}
