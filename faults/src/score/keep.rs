//! Results on disk, a line of JSON each: an interrupted score goes on where it was.

use super::judge::{self, Outcome, Right};
use super::terms::Terms;
use crate::case::{Case, NAMELESS};
use crate::lines::{self, Lines};
use anyhow::Context;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// One case in one round.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scored {
    pub(crate) case: String,
    /// The kind of work; "web" in results that are older than this.
    pub(crate) kind: String,
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
    /// How the right cause was told. `None` where it was not, and in results that are older than this.
    pub(crate) right: Option<Right>,
    /// What was blamed and is not the fault. `None` where duel gave no answer, and in results that are older than this.
    pub(crate) wrongly_blamed: Option<Vec<String>>,
    /// What was ruled out and is the fault. `None` where duel did not tell, and in results that are older than this.
    pub(crate) wrongly_ruled_out: Option<Vec<String>>,
    /// From the end of the comparison to duel's answer.
    pub(crate) seconds: Option<f64>,
    /// duel's document.
    pub(crate) file: String,
    pub(crate) remark: String,
    /// What duel was allowed; `None` in results that are older than this.
    pub(crate) terms: Option<Terms>,
    /// The commit that was scored, and when.
    pub(crate) commit: String,
    pub(crate) date: String,
}

impl Scored {
    pub(super) fn new(case: &Case, round: u32, faulty: &str) -> Scored {
        Scored {
            case: case.id.clone(),
            kind: case.trial.kind().to_owned(),
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
            right: None,
            wrongly_blamed: None,
            wrongly_ruled_out: None,
            seconds: None,
            file: String::new(),
            remark: String::new(),
            terms: None,
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
        if let Some(ruled_out) = self.ruled_out_text() {
            line += &format!(", {ruled_out}");
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

    /// The fault's names that were ruled out, where any was.
    pub(super) fn ruled_out_text(&self) -> Option<String> {
        let names = self.wrongly_ruled_out.as_deref().filter(|names| !names.is_empty())?;
        Some(format!("ruled out {}", names.join(", ")))
    }

    /// Whether the fault was ruled out: `None` where that is not known.
    pub(super) fn acquits(&self) -> Option<bool> {
        self.wrongly_ruled_out.as_ref().map(|names| !names.is_empty())
    }

    /// Whether duel answered, and there was a fault to rule out.
    pub(super) fn could_acquit(&self) -> bool {
        !matches!(&*self.cause, judge::NONE | NAMELESS) && self.outcome.counts() && self.outcome != Outcome::NoAnswer
    }

    /// Whether duel did not know, and yet has the fault among the causes that fit and may not be named.
    pub(super) fn suspects_the_fault(&self) -> bool {
        let is_fault = |said: &String| {
            said.strip_prefix(judge::SUSPECTED).is_some_and(|name| self.cause.split('+').any(|cause| cause == name))
        };
        self.outcome == Outcome::Unknown && self.said.iter().any(is_fault)
    }

    /// Whether private copies could be made: what is then known is another question, and is counted by itself.
    pub(super) fn had_copies(&self) -> bool {
        self.terms.is_some_and(|terms| terms.copies)
    }

    /// Whether anything is suspected.
    pub(super) fn suspects_anything(&self) -> bool {
        self.said.iter().any(|said| said.starts_with(judge::SUSPECTED))
    }

    /// Whether duel named a cause, right or wrong, in place of `none` and `unknown`.
    pub(super) fn names_a_cause(&self) -> bool {
        let is_cause = |said: &String| {
            !said.starts_with(judge::SUSPECTED) && !matches!(cause_of(said), judge::NONE | judge::UNKNOWN)
        };
        self.said.iter().any(is_cause)
    }

    /// The other name under which a single fault was found, as right as the injected one.
    pub(super) fn named_as(&self) -> Option<&str> {
        let is_single = !matches!(&*self.cause, judge::NONE | NAMELESS) && !self.cause.contains('+');
        let name = match &self.right {
            Some(right) => &right.cause,
            // Results that are older than that field: who is first has said the right name first.
            None if self.outcome == Outcome::First => cause_of(self.said.first()?),
            None => return None,
        };
        (is_single && name != self.cause).then_some(name)
    }

    fn json(&self) -> Value {
        json!({
            "case": self.case, "kind": self.kind, "cause": self.cause, "setup": self.setup, "strength": self.strength,
            "needs_host": self.needs_host, "round": self.round, "faulty": self.faulty, "verified": self.verified,
            "outcome": self.outcome.name(), "said": self.said, "call": self.call,
            "right": self.right.as_ref().map(|right| json!({"cause": right.cause, "confidence": right.confidence})),
            "wrongly_blamed": self.wrongly_blamed, "wrongly_ruled_out": self.wrongly_ruled_out, "seconds": self.seconds, "file": self.file, "remark": self.remark,
            "outside": self.terms.map(|terms| terms.outside), "suspects": self.terms.map(|terms| terms.suspects),
            "twins": self.terms.map(|terms| terms.twins), "copies": self.terms.map(|terms| terms.copies),
            "commit": self.commit, "date": self.date,
        })
    }

    fn parse(line: &str) -> Option<Scored> {
        let value: Value = serde_json::from_str(line).ok()?;
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        let texts = |name: &str| -> Option<Vec<String>> {
            Some(value[name].as_array()?.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect())
        };
        let right = |right: &Value| {
            Some(Right {
                cause: right["cause"].as_str()?.to_owned(),
                confidence: right["confidence"].as_str().map(str::to_owned),
            })
        };
        // Results from before there was `--twins`, or `--copies`, are without.
        let later = |name: &str| value[name].as_bool().unwrap_or(false);
        let terms = || {
            let (outside, suspects) = (value["outside"].as_bool()?, value["suspects"].as_bool()?);
            Some(Terms { outside, suspects, twins: later("twins"), copies: later("copies") })
        };
        Some(Scored {
            case: text("case")?,
            kind: text("kind").unwrap_or_else(|| "web".to_owned()),
            cause: text("cause")?,
            setup: text("setup")?,
            strength: text("strength")?,
            needs_host: value["needs_host"].as_bool()?,
            round: value["round"].as_u64()?.try_into().ok()?,
            faulty: text("faulty")?,
            verified: text("verified")?,
            outcome: Outcome::parse(value["outcome"].as_str()?)?,
            said: texts("said")?,
            call: text("call")?,
            right: right(&value["right"]),
            wrongly_blamed: texts("wrongly_blamed"),
            wrongly_ruled_out: texts("wrongly_ruled_out"),
            seconds: value["seconds"].as_f64(),
            file: text("file")?,
            remark: text("remark")?,
            terms: terms(),
            commit: text("commit").unwrap_or_default(),
            date: text("date").unwrap_or_default(),
        })
    }
}

/// The cause in `cause on target`.
fn cause_of(said: &str) -> &str {
    said.split_once(" on ").map_or(said, |(cause, _)| cause)
}

/// The results so far.
pub(super) struct Kept {
    lines: Lines,
    results: Vec<Scored>,
}

impl Kept {
    /// Opens the file; see [`Lines::open`]. Without `resume` an older file is put aside as `.old`.
    pub(super) fn open(path: PathBuf, resume: bool) -> anyhow::Result<Kept> {
        if !resume && path.exists() {
            std::fs::rename(&path, path.with_extension("jsonl.old"))
                .with_context(|| format!("could not put {} aside", path.display()))?;
        }
        anyhow::ensure!(!resume || path.exists(), "there are no results in {} to go on from", path.display());
        let (lines, results) = Lines::open(&path, Scored::parse)?;
        Ok(Kept { lines, results: latest_of_each(results) })
    }

    /// Whether duel has been asked. What failed or did not bite is tried again: the machine may have been busy.
    pub(super) fn has(&self, case: &str, round: u32) -> bool {
        self.results.iter().any(|result| result.case == case && result.round == round && result.outcome.counts())
    }

    /// Writes it down, too.
    pub(super) fn add(&mut self, result: Scored) -> anyhow::Result<()> {
        self.lines.add(&result.json())?;
        take(&mut self.results, result);
        Ok(())
    }

    pub(super) fn results(&self) -> &[Scored] {
        &self.results
    }
}

/// The results in a file; see [`lines::read`].
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<Scored>> {
    Ok(latest_of_each(lines::read(path, Scored::parse)?))
}

fn latest_of_each(all: Vec<Scored>) -> Vec<Scored> {
    let mut results = Vec::new();
    all.into_iter().for_each(|result| take(&mut results, result));
    results
}

/// The latest of a case and round counts; with private copies it is one of its own.
fn take(results: &mut Vec<Scored>, result: Scored) {
    let is_same =
        |old: &Scored| (&old.case, old.round, old.had_copies()) == (&result.case, result.round, result.had_copies());
    results.retain(|old| !is_same(old));
    results.push(result);
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
        good.right = Some(Right { cause: "cpu.quota".to_owned(), confidence: Some("likely".to_owned()) });
        good.wrongly_blamed = Some(vec!["net.loss on B".to_owned()]);
        good.wrongly_ruled_out = Some(vec!["cpu.quota".to_owned()]);
        good.terms = Some(Terms { outside: false, suspects: false, twins: true, copies: true });
        let failed = Scored::new(&cases[1], 1, "B");
        let mut kept = Kept::open(path.clone(), false).unwrap();
        kept.add(good.clone()).unwrap();
        kept.add(failed.clone()).unwrap();
        drop(kept);
        // A line cut off by a crash.
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        std::io::Write::write_all(&mut file, b"{\"case\":").unwrap();
        let mut kept = Kept::open(path.clone(), true).unwrap();
        assert_eq!(kept.results(), [good.clone(), failed]);
        assert!(kept.has(&cases[0].id, 1) && !kept.has(&cases[0].id, 2) && !kept.has(&cases[1].id, 1));
        let again = Scored { outcome: Outcome::Unknown, ..Scored::new(&cases[1], 1, "B") };
        kept.add(again.clone()).unwrap();
        drop(kept);
        assert_eq!(Kept::open(path.clone(), true).unwrap().results(), [good, again]);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_result_with_copies_stands_beside_the_one_without() {
        let case = &crate::injections::cases()[0];
        let of = |copies: bool, outcome: Outcome| {
            let terms = Some(Terms { outside: false, suspects: false, twins: false, copies });
            Scored { outcome, terms, ..Scored::new(case, 1, "A") }
        };
        let all = [of(false, Outcome::Unknown), of(true, Outcome::Unknown), of(true, Outcome::First)];
        assert_eq!(latest_of_each(all.to_vec()), [of(false, Outcome::Unknown), of(true, Outcome::First)]);
    }

    #[test]
    fn a_result_from_before_there_were_copies_is_without() {
        let line = of_sql().json().to_string().replace(r#""copies":false,"#, "");
        assert!(!line.contains("copies"), "{line}");
        assert_eq!(Scored::parse(&line), Some(of_sql()));
    }

    fn of_sql() -> Scored {
        let cases = crate::injections::cases();
        let case = cases.iter().find(|case| case.trial.kind() == "sql").unwrap();
        let terms = Some(Terms { outside: false, suspects: false, twins: false, copies: false });
        Scored { terms, ..Scored::new(case, 1, "A") }
    }

    /// As the bench of commit f38a11d wrote it.
    const OLD: &str = r#"{"call":"slower","case":"cpu.slower/nginx-https-500k-c2-kept/1of2ms","cause":"cpu.slower","commit":"f38a11d","date":"2026-11-21 11:50 UTC","faulty":"B","file":"x.json","needs_host":false,"outcome":"first","remark":"","round":1,"said":["cpu.quota on B","net.loss on B"],"seconds":12.0,"setup":"nginx-https-500k-c2-kept","strength":"1of2ms","verified":"periods throttled: 2000 against 0"}"#;

    #[test]
    fn of_an_old_result_is_unknown_what_it_does_not_say() {
        let old = Scored::parse(OLD).unwrap();
        assert_eq!((old.outcome, old.seconds), (Outcome::First, Some(12.0)));
        assert_eq!((&old.right, &old.wrongly_blamed, old.terms), (&None, &None, None));
        assert_eq!((old.wrongly_ruled_out.as_ref(), &*old.kind), (None, "web"));
        assert_eq!(old.named_as(), Some("cpu.quota"));
        assert_eq!(Scored::parse(&old.json().to_string()), Some(old));
    }

    #[test]
    fn a_fault_is_suspected_where_it_is_not_known_and_stands_among_what_fits() {
        let result = |outcome, said: &[&str]| {
            let said = said.iter().map(|&said| said.to_owned()).collect();
            let result = Scored::new(&crate::injections::cases()[0], 1, "A");
            Scored { cause: "disk.iops-cap".to_owned(), outcome, said, ..result }
        };
        let both = ["unknown on B", "suspected disk.iops-cap"];
        assert!(result(Outcome::Unknown, &both).suspects_the_fault());
        assert!(!result(Outcome::Wrong, &both).suspects_the_fault(), "it was ruled out, or something else was named");
        let other = result(Outcome::Unknown, &["unknown on B", "suspected disk.iops-cap-of-others"]);
        assert!(!other.suspects_the_fault() && other.suspects_anything());
        assert!(!result(Outcome::First, &["disk.iops-cap on B"]).suspects_anything());
    }

    #[test]
    fn a_cause_is_named_where_one_is_blamed() {
        let cases = crate::injections::cases();
        let names = |said: &[&str]| {
            let said = said.iter().map(|&said| said.to_owned()).collect();
            Scored { said, ..Scored::new(&cases[0], 1, "A") }.names_a_cause()
        };
        assert!(names(&["cpu.quota on B"]) && names(&["unknown on B", "net.loss on A"]) && names(&["x"]));
        assert!(!names(&[]) && !names(&["none"]) && !names(&["unknown on B", "suspected cpu.slower"]));
    }
}
