//! The file of draws: lines are appended and never replaced. The first look under a key is the one that counts.

use super::looked::{Key, Looked};
use anyhow::Context;
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The file, open for more.
pub(super) struct Kept {
    path: PathBuf,
    file: File,
    looks: Vec<Looked>,
}

impl Kept {
    /// Opens it, or begins it. Nobody else adds to it meanwhile.
    ///
    /// # Errors
    ///
    /// Where it cannot be opened, is being added to, or has lines in it that are no draws.
    pub(super) fn open(path: &Path) -> anyhow::Result<Kept> {
        let doing = || format!("could not open {}", path.display());
        let mut file = OpenOptions::new().create(true).append(true).open(path).with_context(doing)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .with_context(|| format!("somebody else adds to {}", path.display()))?;
        let text = std::fs::read_to_string(path).with_context(doing)?;
        let looks = read(&text).with_context(|| format!("{} is not added to", path.display()))?;
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n").with_context(doing)?;
        }
        Ok(Kept { path: path.to_owned(), file, looks })
    }

    /// Whether duel has been asked under this key, or the draw did not bite. What failed in the bench may be tried again:
    /// duel has said nothing.
    pub(super) fn is_done(&self, key: &Key) -> bool {
        self.looks.iter().any(|look| look.key == *key && is_final(look))
    }

    /// Adds a line.
    ///
    /// # Errors
    ///
    /// Where there is a look under its key already, or the file cannot be written.
    pub(super) fn add(&mut self, look: Looked) -> anyhow::Result<()> {
        anyhow::ensure!(
            !self.is_done(&look.key),
            "draw {} of seed {} has been looked at with commit {}; a second look does not count",
            look.key.number,
            look.key.seed,
            look.key.commit
        );
        writeln!(self.file, "{}", look.json()).with_context(|| format!("could not write {}", self.path.display()))?;
        take(&mut self.looks, look);
        Ok(())
    }

    pub(super) fn looks(&self) -> &[Looked] {
        &self.looks
    }
}

/// The looks of a file's text, one for each key.
///
/// # Errors
///
/// The number of the first line that is no draw. The last one may be cut off, by a crash.
pub(super) fn read(text: &str) -> anyhow::Result<Vec<Looked>> {
    let mut looks = Vec::new();
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    for (number, line) in text.lines().enumerate() {
        match Looked::parse(line) {
            Some(look) => take(&mut looks, look),
            // Cut off, and possibly ended when somebody went on.
            None if is_cut_off(line) || number + 1 > text[..whole].lines().count() => {}
            None => anyhow::bail!("line {} is no draw", number + 1),
        }
    }
    Ok(looks)
}

/// A line that begins as ours do and has no end.
fn is_cut_off(line: &str) -> bool {
    line.is_empty() || (line.starts_with('{') && serde_json::from_str::<serde_json::Value>(line).is_err())
}

fn is_final(look: &Looked) -> bool {
    look.outcome != crate::score::judge::Outcome::Failed
}

/// The first look under a key stays. Failures of the bench are no looks, and give way.
fn take(looks: &mut Vec<Looked>, look: Looked) {
    match looks.iter().position(|old| old.key == look.key) {
        Some(place) if !is_final(&looks[place]) => looks[place] = look,
        Some(_) => {}
        None => looks.push(look),
    }
}

#[cfg(test)]
mod tests {
    use super::super::draw::Sort;
    use super::super::looked::tests::looked;
    use super::*;
    use crate::score::judge::Outcome;

    fn with(number: u32, commit: &str, outcome: Outcome) -> Looked {
        Looked { outcome, ..looked(Sort::Catalogue, number, commit) }
    }

    #[test]
    fn the_first_look_under_a_key_stays() {
        let path = std::env::temp_dir().join(format!("duel-faults-{}-draws-test", std::process::id()));
        let first = with(1, "abc", Outcome::Unknown);
        let mut kept = Kept::open(&path).unwrap();
        kept.add(first.clone()).unwrap();
        assert!(kept.add(with(1, "abc", Outcome::First)).unwrap_err().to_string().contains("does not count"));
        kept.add(with(1, "def", Outcome::First)).unwrap();
        kept.add(with(2, "abc", Outcome::Failed)).unwrap();
        assert!(!kept.is_done(&with(2, "abc", Outcome::Failed).key), "the bench failed, and duel was not asked");
        kept.add(with(2, "abc", Outcome::Wrong)).unwrap();
        assert!(Kept::open(&path).is_err(), "two at once");
        drop(kept);
        // By hand, or by two copies of the file that were put together.
        let second = with(1, "abc", Outcome::First).json();
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        write!(file, "{second}\n{{\"schema\":\"duel-dr").unwrap();
        let kept = Kept::open(&path).unwrap();
        let outcomes: Vec<Outcome> = kept.looks().iter().map(|look| look.outcome).collect();
        assert_eq!(outcomes, [Outcome::Unknown, Outcome::First, Outcome::Wrong]);
        drop(kept);
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert_eq!(lines, 6, "nothing is taken away");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_is_no_draw_is_not_passed_over() {
        let good = with(1, "abc", Outcome::First).json().to_string();
        assert_eq!(read(&format!("{good}\n")).unwrap().len(), 1);
        assert_eq!(read(&good).unwrap().len(), 1);
        assert_eq!(read("").unwrap().len(), 0);
        let error = read(&format!("{good}\n{{\"case\":\"net.loss\"}}\n{good}\n")).unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
        assert!(read("hello\n").is_err());
    }
}
