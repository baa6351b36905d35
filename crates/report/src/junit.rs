//! Test cases in JUnit's XML, which CI servers show.

use crate::markup::escape;
use crate::text::clean_whole;
use std::fmt::Write;

/// The cases of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct JunitSuite {
    /// Name of the suite.
    pub name: String,
    /// Start on the wall clock, in ms since 1970.
    pub started_unix_ms: i64,
    /// The cases.
    pub cases: Vec<JunitCase>,
    /// Lines to print below them.
    pub notes: Vec<String>,
}

/// One case.
#[derive(Debug, Clone, PartialEq)]
pub struct JunitCase {
    /// What it is about: a target's name.
    pub subject: String,
    /// What holds if it passes.
    pub name: String,
    /// Time under load.
    pub seconds: f64,
    /// How it went.
    pub outcome: JunitOutcome,
}

/// How a case went, and what there is to say.
#[derive(Debug, Clone, PartialEq)]
pub enum JunitOutcome {
    /// It passed.
    Passed(String),
    /// It failed, in the way that the first word tells.
    Failed(&'static str, String),
    /// Nothing was decided.
    Skipped(String),
    /// It could not be tried, in the way that the first word tells.
    Error(&'static str, String),
}

impl JunitSuite {
    /// The document. What it holds is made safe.
    pub fn xml(&self) -> String {
        let count = |is: fn(&JunitOutcome) -> bool| self.cases.iter().filter(|case| is(&case.outcome)).count();
        let counts = format!(
            "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.3}\"",
            self.cases.len(),
            count(|outcome| matches!(outcome, JunitOutcome::Failed(..))),
            count(|outcome| matches!(outcome, JunitOutcome::Error(..))),
            count(|outcome| matches!(outcome, JunitOutcome::Skipped(_))),
            self.cases.iter().map(|case| case.seconds).sum::<f64>(),
        );
        let started = crate::calendar::utc_to_the_second(self.started_unix_ms);
        let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let _ = writeln!(xml, "<testsuites name=\"duel\" {counts}>");
        let _ = writeln!(xml, "  <testsuite name=\"{}\" timestamp=\"{started}\" {counts}>", escape(&self.name));
        for case in &self.cases {
            let _ = write!(
                xml,
                "    <testcase classname=\"duel.{}\" name=\"{}\" time=\"{:.3}\">",
                escape(&case.subject),
                escape(&case.name),
                case.seconds
            );
            let _ = match &case.outcome {
                JunitOutcome::Passed(text) => write!(xml, "<system-out>{}</system-out>", escape(text)),
                JunitOutcome::Failed(kind, text) => {
                    write!(xml, "<failure type=\"{kind}\" message=\"{}\"/>", escape(text))
                }
                JunitOutcome::Skipped(text) => write!(xml, "<skipped message=\"{}\"/>", escape(text)),
                JunitOutcome::Error(kind, text) => write!(xml, "<error type=\"{kind}\" message=\"{}\"/>", escape(text)),
            };
            xml.push_str("</testcase>\n");
        }
        if !self.notes.is_empty() {
            let lines: Vec<String> =
                self.notes.iter().map(|note| format!("! {}", escape(&clean_whole(note)))).collect();
            let _ = writeln!(xml, "    <system-out>{}</system-out>", lines.join("\n"));
        }
        xml.push_str("  </testsuite>\n</testsuites>\n");
        xml
    }
}
