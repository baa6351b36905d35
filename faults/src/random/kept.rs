//! The file of draws: lines are appended and never replaced. The first look under a key is the one that counts.

use super::looked::{Key, Looked};
use crate::lines::{self, Lines};
use std::path::Path;

/// The file, open for more.
pub(super) struct Kept {
    lines: Lines,
    looks: Vec<Looked>,
}

impl Kept {
    /// Opens it, or begins it; see [`Lines::open`].
    pub(super) fn open(path: &Path) -> anyhow::Result<Kept> {
        let (lines, looks) = Lines::open(path, Looked::parse)?;
        Ok(Kept { lines, looks: first_of_each(looks) })
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
            "draw {} of {} and seed {} has been looked at with commit {}; a second look does not count",
            look.key.number,
            look.key.kind,
            look.key.seed,
            look.key.commit
        );
        self.lines.add(&look.json())?;
        take(&mut self.looks, look);
        Ok(())
    }

    pub(super) fn looks(&self) -> &[Looked] {
        &self.looks
    }
}

/// The looks of a file, one for each key; see [`lines::read`].
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<Looked>> {
    Ok(first_of_each(lines::read(path, Looked::parse)?))
}

fn first_of_each(all: Vec<Looked>) -> Vec<Looked> {
    let mut looks = Vec::new();
    all.into_iter().for_each(|look| take(&mut looks, look));
    looks
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
        drop(kept);
        // By hand, or by two copies of the file that were put together.
        let second = with(1, "abc", Outcome::First).json();
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        std::io::Write::write_all(&mut file, format!("{second}\n").as_bytes()).unwrap();
        let outcomes = |looks: &[Looked]| looks.iter().map(|look| look.outcome).collect::<Vec<_>>();
        let expected = [Outcome::Unknown, Outcome::First, Outcome::Wrong];
        assert_eq!(outcomes(Kept::open(&path).unwrap().looks()), expected);
        assert_eq!(outcomes(&read(&path).unwrap()), expected);
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert_eq!(lines, 5, "nothing is taken away");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_kind_makes_another_draw_of_the_same_number() {
        let one = with(1, "abc", Outcome::Unknown);
        let mut other = with(1, "abc", Outcome::First);
        other.key.kind = "disk".to_owned();
        assert_eq!(first_of_each(vec![one.clone(), other.clone()]), [one, other]);
    }

    #[test]
    fn what_is_installed_makes_another_draw_of_the_same_number() {
        let one = with(1, "abc", Outcome::Unknown);
        let mut other = with(1, "abc", Outcome::First);
        other.key.installed.push("strace".to_owned());
        assert_eq!(first_of_each(vec![one.clone(), other.clone()]), [one, other]);
    }
}
