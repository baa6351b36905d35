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
pub(crate) struct Result {
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
}

impl Result {
    pub(super) fn new(case: &Case, round: u32, faulty: &str) -> Result {
        Result {
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
            "file": self.file, "remark": self.remark,
        })
    }

    fn parse(line: &str) -> Option<Result> {
        let value: Value = serde_json::from_str(line).ok()?;
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        Some(Result {
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
        })
    }
}

/// The results so far.
pub(super) struct Kept {
    file: File,
    results: Vec<Result>,
}

impl Kept {
    /// Opens the file; what is in it counts if `resume`, and is overwritten otherwise. A line that was cut off is
    /// measured again, and so is what failed or did not bite: the machine may have been busy.
    pub(super) fn open(path: PathBuf, resume: bool) -> anyhow::Result<Kept> {
        let doing = || format!("could not open the results {}", path.display());
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(doing)?;
        }
        let mut results = Vec::new();
        if resume {
            let text = std::fs::read_to_string(&path).with_context(doing)?;
            results = text.lines().filter_map(Result::parse).filter(|result| result.outcome.counts()).collect();
        }
        let mut kept = Kept {
            file: OpenOptions::new().create(true).write(true).truncate(true).open(&path).with_context(doing)?,
            results: Vec::new(),
        };
        for result in results {
            kept.add(result)?;
        }
        Ok(kept)
    }

    pub(super) fn has(&self, case: &str, round: u32) -> bool {
        self.results.iter().any(|result| result.case == case && result.round == round)
    }

    pub(super) fn add(&mut self, result: Result) -> anyhow::Result<()> {
        writeln!(self.file, "{}", result.json()).context("could not write the results")?;
        self.results.push(result);
        Ok(())
    }

    pub(super) fn results(&self) -> &[Result] {
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
        let mut good = Result::new(&cases[0], 1, "A");
        good.outcome = Outcome::First;
        good.seconds = Some(2.5);
        let failed = Result::new(&cases[1], 1, "B");
        let mut kept = Kept::open(path.clone(), false).unwrap();
        kept.add(good.clone()).unwrap();
        kept.add(failed).unwrap();
        drop(kept);
        // A line cut off by a crash.
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"case\":").unwrap();
        let kept = Kept::open(path.clone(), true).unwrap();
        assert_eq!(kept.results(), [good]);
        assert!(kept.has(&cases[0].id, 1) && !kept.has(&cases[0].id, 2) && !kept.has(&cases[1].id, 1));
        std::fs::remove_file(path).unwrap();
    }
}
