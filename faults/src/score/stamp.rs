//! When, what and where a result was measured.

use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn date() -> String {
    said("date", &["-u", "+%Y-%m-%d %H:%M UTC"])
}

/// What a score writes, from the top of the repository: kept there, and no change of what is scored.
const WRITTEN: [&str; 3] = ["faults/results.jsonl", "faults/draws.jsonl", "faults/SCORE.md"];

/// The commit of the work tree, and whether anything else than the score itself has changed since.
pub(crate) fn commit() -> String {
    commit_in(Path::new("."))
}

/// The top of the work tree.
pub(crate) fn top() -> PathBuf {
    PathBuf::from(said("git", &["rev-parse", "--show-toplevel"]))
}

fn commit_in(folder: &Path) -> String {
    let git = |args: &[&str]| said_in(folder, "git", args);
    let id = git(&["rev-parse", "--short", "HEAD"]);
    let but = WRITTEN.map(|path| format!(":(top,exclude){path}"));
    let changed = git(&["status", "--porcelain", "--untracked-files=no", "--", ":(top)", &but[0], &but[1], &but[2]]);
    if changed.is_empty() { id } else { format!("{id} with changes") }
}

/// What it was measured on: figures of other machines may differ.
pub(crate) fn machine() -> String {
    let cpus = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    format!("{cpus} CPUs, Linux {}", said("uname", &["-r"]))
}

fn said(program: &str, args: &[&str]) -> String {
    said_in(Path::new("."), program, args)
}

fn said_in(folder: &Path, program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).current_dir(folder).output();
    output
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_else(|_| "unknown".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_score_writes_is_no_change_of_what_is_scored() {
        let folder = std::env::temp_dir().join(format!("duel-faults-{}-commit-test", std::process::id()));
        let write = |path: &str, text: &str| std::fs::write(folder.join(path), text).unwrap();
        let git = |args: &[&str]| {
            let as_somebody = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"];
            let mut command = Command::new("git");
            // Called by git itself, as from a hook, it would work on the repository of the project.
            ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"].iter().for_each(|key| _ = command.env_remove(key));
            let done = command.args(as_somebody).args(args).current_dir(&folder).output().unwrap();
            assert!(done.status.success(), "git {args:?}: {done:?}");
        };
        std::fs::create_dir_all(folder.join("faults")).unwrap();
        git(&["init", "--quiet"]);
        for path in ["source.rs", "faults/README.md"].iter().chain(&WRITTEN) {
            write(path, "as committed");
        }
        git(&["add", "."]);
        git(&["commit", "--quiet", "--message", "all"]);
        let id = said_in(&folder, "git", &["rev-parse", "--short", "HEAD"]);
        assert!(!id.is_empty());
        assert_eq!(commit_in(&folder), id);
        WRITTEN.iter().for_each(|path| write(path, "one result more"));
        // Wherever in the repository the bench is called.
        assert_eq!([commit_in(&folder), commit_in(&folder.join("faults"))], [id.clone(), id.clone()]);
        for path in ["source.rs", "faults/README.md"] {
            write(path, "changed");
            let told = [commit_in(&folder), commit_in(&folder.join("faults"))];
            assert!(told.iter().all(|told| *told == format!("{id} with changes")), "{path}: {told:?}");
            write(path, "as committed");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
