//! Results on disk, a line of JSON each: an interrupted score goes on where it was.

use super::judge::Outcome;
use crate::case::Case;
use anyhow::Context;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

/// One case in one round.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scored {
    pub(crate) case: String,
    pub(crate) cause: String,
    pub(crate) setup: String,
    pub(crate) strength: String,
    pub(crate) needs_host: bool,
    pub(crate) round: u32,
    /// Which target was the faulty one.
    pub(crate) faulty: String,
    /// What the verification measured.
    pub(crate) verified: String,
    pub(crate) outcome: Outcome,
    pub(crate) said: Vec<String>,
    pub(crate) call: String,
    pub(crate) seconds: Option<f64>,
    /// duel's document.
    pub(crate) file: String,
    pub(crate) remark: String,
    /// The commit that was scored, and when.
    pub(crate) commit: String,
    pub(crate) date: String,
}

impl Scored {
    pub(super) fn new(case: &Case, round: u32, faulty: &str) -> Scored {
        Scored {
            case: case.id.clone(),
            cause: case.cause(),
            setup: case.setup.clone(),
            strength: case.strength.clone(),
            needs_host: case.needs_host,
            round,
            faulty: faulty.to_owned(),
            verified: String::new(),
            outcome: Outcome::Failed,
            said: Vec::new(),
            call: String::new(),
            seconds: None,
            file: String::new(),
            remark: String::new(),
            commit: String::new(),
            date: String::new(),
        }
    }

    /// For the progress: what came out, and why.
    pub(super) fn line(&self) -> String {
        let mut line = format!("{}: said {}", self.outcome.name(), self.said_text());
        if let Some(seconds) = self.seconds {
            line += &format!(" after {seconds:.0} s");
        }
        if !self.remark.is_empty() {
            line += &format!(" ({})", self.remark);
        }
        line
    }

    /// The findings as they are shown.
    pub(super) fn said_text(&self) -> String {
        if self.said.is_empty() { "nothing".to_owned() } else { self.said.join(", ") }
    }

    fn json(&self) -> Value {
        json!({
            "case": self.case, "cause": self.cause, "setup": self.setup, "strength": self.strength,
            "needs_host": self.needs_host, "round": self.round, "faulty": self.faulty, "verified": self.verified,
            "outcome": self.outcome.name(), "said": self.said, "call": self.call, "seconds": self.seconds,
            "file": self.file, "remark": self.remark, "commit": self.commit, "date": self.date,
        })
    }

    fn parse(line: &str) -> Option<Scored> {
        let value: Value = serde_json::from_str(line).ok()?;
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        Some(Scored {
            case: text("case")?,
            cause: text("cause")?,
            setup: text("setup")?,
            strength: text("strength")?,
            needs_host: value["needs_host"].as_bool()?,
            round: value["round"].as_u64()?.try_into().ok()?,
            faulty: text("faulty")?,
            verified: text("verified")?,
            outcome: Outcome::parse(value["outcome"].as_str()?)?,
            said: value["said"].as_array()?.iter().filter_map(|said| said.as_str().map(str::to_owned)).collect(),
            call: text("call")?,
            seconds: value["seconds"].as_f64(),
            file: text("file")?,
            remark: text("remark")?,
            commit: text("commit").unwrap_or_default(),
            date: text("date").unwrap_or_default(),
        })
    }
}

/// The results so far.
pub(super) struct Kept {
    file: File,
    results: Vec<Scored>,
}

impl Kept {
    /// Opens the file. With `resume`, what is in it counts, but for lines that were cut off. Without, an older file is put
    /// aside as `.old`.
    pub(super) fn open(path: PathBuf, resume: bool) -> anyhow::Result<Kept> {
        let doing = || format!("could not open the results {}", path.display());
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(doing)?;
        }
        let mut text = String::new();
        if resume {
            text = std::fs::read_to_string(&path).with_context(doing)?;
        } else if path.exists() {
            std::fs::rename(&path, path.with_extension("jsonl.old")).with_context(doing)?;
        }
        let mut file = OpenOptions::new().create(true).append(true).open(&path).with_context(doing)?;
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n").with_context(doing)?;
        }
        let mut kept = Kept { file, results: Vec::new() };
        text.lines().filter_map(Scored::parse).for_each(|result| kept.take(result));
        Ok(kept)
    }

    /// Whether duel has been asked. What failed or did not bite is tried again: the machine may have been busy.
    pub(super) fn has(&self, case: &str, round: u32) -> bool {
        self.results.iter().any(|result| result.case == case && result.round == round && result.outcome.counts())
    }

    /// Writes it down, too.
    pub(super) fn add(&mut self, result: Scored) -> anyhow::Result<()> {
        writeln!(self.file, "{}", result.json()).context("could not write the results")?;
        self.take(result);
        Ok(())
    }

    /// The latest of a case and round counts.
    fn take(&mut self, result: Scored) {
        self.results.retain(|old| (&old.case, old.round) != (&result.case, result.round));
        self.results.push(result);
    }

    pub(super) fn results(&self) -> &[Scored] {
        &self.results
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_goes_on_where_it_was() {
        let path = std::env::temp_dir().join(format!("duel-faults-{}-results-test", std::process::id()));
        let cases = crate::injections::cases();
        let mut good = Scored::new(&cases[0], 1, "A");
        good.outcome = Outcome::First;
        good.seconds = Some(2.5);
        let failed = Scored::new(&cases[1], 1, "B");
        let mut kept = Kept::open(path.clone(), false).unwrap();
        kept.add(good.clone()).unwrap();
        kept.add(failed.clone()).unwrap();
        drop(kept);
        // A line cut off by a crash.
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"case\":").unwrap();
        let mut kept = Kept::open(path.clone(), true).unwrap();
        assert_eq!(kept.results(), [good.clone(), failed]);
        assert!(kept.has(&cases[0].id, 1) && !kept.has(&cases[0].id, 2) && !kept.has(&cases[1].id, 1));
        let again = Scored { outcome: Outcome::Unknown, ..Scored::new(&cases[1], 1, "B") };
        kept.add(again.clone()).unwrap();
        drop(kept);
        assert_eq!(Kept::open(path.clone(), true).unwrap().results(), [good, again]);
        std::fs::remove_file(path).unwrap();
    }
}
