//! Whether programs were built from the work tree: a look is written down under its commit.
//!
//! Cargo writes beside a program from which files of the workspace it was built (`duel.d` beside `duel`). None of them may be
//! younger than the program, or gone. The work tree is a commit by then, so that its files are what the commit has. What is
//! not seen: a file that was changed while Cargo was at work.

use anyhow::{Context, ensure};
use std::path::{Path, PathBuf};

/// # Errors
///
/// Which program was not built from the files as they are, or may not have been.
pub(super) fn ensure_of_work_tree(programs: &[&Path]) -> anyhow::Result<()> {
    let top = crate::score::stamp::top();
    programs.iter().try_for_each(|program| {
        is_built_from(program, &top).with_context(|| {
            let program = program.display();
            format!("{program} is not shown to be built from this commit: build it in its work tree, and call it there")
        })
    })
}

fn is_built_from(program: &Path, top: &Path) -> anyhow::Result<()> {
    let list = program.with_extension("d");
    let text = std::fs::read_to_string(&list).with_context(|| format!("could not read {}", list.display()))?;
    let sources = sources(&text);
    ensure!(!sources.is_empty(), "{} names no files", list.display());
    let changed = |path: &Path| -> anyhow::Result<_> {
        let about = std::fs::metadata(path).with_context(|| format!("could not look at {}", path.display()))?;
        Ok(about.modified()?)
    };
    let built = changed(program)?;
    let mut of_the_tree = 0;
    for source in &sources {
        ensure!(changed(source)? <= built, "{} has changed since", source.display());
        of_the_tree += usize::from(source.starts_with(top));
    }
    ensure!(of_the_tree > 0, "none of its files is in {}", top.display());
    Ok(())
}

/// The files of a rule `program: file file`, in which a backslash stands before a space that belongs to a name.
fn sources(rule: &str) -> Vec<PathBuf> {
    const SPACE: &str = "\u{0}";
    let Some((_, files)) = rule.split_once(": ") else { return Vec::new() };
    let files = files.replace("\\ ", SPACE);
    files.split_whitespace().map(|file| PathBuf::from(file.replace(SPACE, " "))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    #[test]
    fn a_program_is_as_old_as_the_youngest_of_its_files_at_most() {
        let folder = std::env::temp_dir().join(format!("duel-faults-{} built-test", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, seconds: u64| {
            let file = std::fs::File::create(folder.join(name)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + seconds)).unwrap();
        };
        let program = folder.join("program");
        write("program", 10);
        assert!(is_built_from(&program, &folder).is_err(), "nothing tells from what");
        let name = |name: &str| folder.join(name).display().to_string().replace(' ', "\\ ");
        std::fs::write(folder.join("program.d"), format!("{}: {} {}\n", name("program"), name("a.rs"), name("b.rs")))
            .unwrap();
        write("a.rs", 5);
        assert!(is_built_from(&program, &folder).is_err(), "b.rs is gone");
        write("b.rs", 10);
        assert!(is_built_from(&program, &folder).is_ok());
        assert!(is_built_from(&program, Path::new("/elsewhere")).is_err(), "it is of another work tree");
        write("a.rs", 11);
        assert!(is_built_from(&program, &folder).unwrap_err().to_string().contains("a.rs has changed"));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
