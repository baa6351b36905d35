//! What came of a draw, as a line of JSON.

use super::draw::{Draw, Sort};
use super::kind::Registered;
use crate::kinds::Kind;
use crate::kinds::web::Web;
use crate::score::judge::{Judged, NONE, Outcome, SUSPECTED, UNKNOWN};
use serde_json::{Value, json};

/// The form of the lines. A later form gets a later number; lines of an unknown one are refused.
const SCHEMA: &str = "duel-draws/2";
/// The form before it, which knew web servers alone.
const OF_WEB_SERVERS: &str = "duel-draws/1";

/// Under what a draw is looked at once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// The name of its kind of work.
    pub(crate) kind: String,
    pub(crate) seed: u64,
    pub(crate) number: u32,
    pub(crate) commit: String,
    /// What the draw was made from: see [`super::Installed`].
    pub(crate) installed: Vec<String>,
}

/// A draw, and what duel said of it where it was asked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Looked {
    pub(crate) key: Key,
    pub(crate) date: String,
    /// Of the last minute, before duel was asked; `None` where the system does not tell.
    pub(crate) load_average: Option<f64>,
    pub(crate) sort: Sort,
    pub(crate) truth: Vec<String>,
    pub(crate) setup: String,
    pub(crate) strength: String,
    /// Which target is the one that differs, or would.
    pub(crate) faulty: String,
    /// What the verification measured.
    pub(crate) verified: String,
    pub(crate) outcome: Outcome,
    pub(crate) said: Vec<String>,
    pub(crate) call: String,
    /// `None` where duel gave no answer.
    pub(crate) wrongly_blamed: Option<Vec<String>>,
    /// `None` where duel gave no answer, or does not tell what it rules out.
    pub(crate) wrongly_ruled_out: Option<Vec<String>>,
    /// All that was ruled out, right or wrong.
    pub(crate) ruled_out: Option<Vec<String>>,
    /// From the end of the comparison to duel's answer.
    pub(crate) seconds: Option<f64>,
    /// duel's document, in the raw folder.
    pub(crate) file: String,
    pub(crate) remark: String,
}

impl Looked {
    /// Before anything was done.
    pub(super) fn new(key: Key, draw: &Draw, date: String) -> Looked {
        Looked {
            key,
            date,
            load_average: None,
            sort: draw.sort,
            truth: draw.case.truth.iter().map(|&cause| cause.to_owned()).collect(),
            setup: draw.case.setup.clone(),
            strength: draw.case.strength.clone(),
            faulty: draw.faulty.target_name().to_owned(),
            verified: String::new(),
            outcome: Outcome::Failed,
            said: Vec::new(),
            call: String::new(),
            wrongly_blamed: None,
            wrongly_ruled_out: None,
            ruled_out: None,
            seconds: None,
            file: String::new(),
            remark: String::new(),
        }
    }

    /// Takes what duel said. A difference that does no harm may be measured: it is there. Only blame is wrong.
    pub(super) fn take(&mut self, judged: Judged, document: &Value) {
        self.outcome = match self.sort {
            Sort::Decoy if judged.wrongly_blamed.is_empty() => Outcome::First,
            Sort::Decoy => Outcome::Wrong,
            _ => judged.outcome,
        };
        self.said = judged.said;
        self.call = judged.call;
        self.wrongly_blamed = Some(judged.wrongly_blamed);
        self.wrongly_ruled_out = judged.wrongly_ruled_out;
        self.ruled_out = (document["explained"] != false).then(|| texts(&document["ruled_out"])).flatten();
    }

    /// Something is blamed that is not at work: `None` where duel gave no answer.
    pub(super) fn accuses(&self) -> Option<bool> {
        self.wrongly_blamed.as_ref().map(|blamed| !blamed.is_empty())
    }

    /// The fault is ruled out: `None` where that is not known.
    pub(super) fn acquits(&self) -> Option<bool> {
        self.wrongly_ruled_out.as_ref().map(|names| !names.is_empty())
    }

    /// Whether some cause was named, right or wrong.
    pub(super) fn names_a_cause(&self) -> bool {
        let cause = |said: &String| said.split(" on ").next().unwrap_or_default().to_owned();
        self.said.iter().any(|said| !said.starts_with(SUSPECTED) && ![NONE, UNKNOWN].contains(&cause(said).as_str()))
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "schema": SCHEMA, "kind": self.key.kind, "seed": self.key.seed, "number": self.key.number, "commit": self.key.commit,
            "date": self.date, "load_average": self.load_average, "installed": self.key.installed,
            "sort": self.sort.name(), "truth": self.truth, "setup": self.setup, "strength": self.strength,
            "faulty": self.faulty, "verified": self.verified, "outcome": self.outcome.name(), "said": self.said,
            "call": self.call, "wrongly_blamed": self.wrongly_blamed, "wrongly_ruled_out": self.wrongly_ruled_out,
            "ruled_out": self.ruled_out, "seconds": self.seconds, "file": self.file, "remark": self.remark,
        })
    }

    /// Reads a line; `None` for what is none of ours. A list of which a member is no text is none.
    pub(super) fn parse(line: &str) -> Option<Looked> {
        let value: Value = serde_json::from_str(line).ok()?;
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        let finite = |name: &str| value[name].as_f64().filter(|number| number.is_finite() && *number >= 0.0);
        let kind = match value["schema"].as_str()? {
            SCHEMA => text("kind").filter(|kind| Registered::called(kind).is_some())?,
            OF_WEB_SERVERS => Web::NAME.to_owned(),
            _ => return None,
        };
        Some(Looked {
            key: Key {
                kind,
                seed: value["seed"].as_u64()?,
                number: value["number"].as_u64()?.try_into().ok()?,
                commit: text("commit").filter(|commit| !commit.is_empty())?,
                installed: texts(&value["installed"])?,
            },
            date: text("date")?,
            load_average: finite("load_average"),
            sort: Sort::parse(value["sort"].as_str()?)?,
            truth: texts(&value["truth"])?,
            setup: text("setup")?,
            strength: text("strength")?,
            faulty: text("faulty")?,
            verified: text("verified")?,
            outcome: Outcome::parse(value["outcome"].as_str()?)?,
            said: texts(&value["said"])?,
            call: text("call")?,
            wrongly_blamed: texts(&value["wrongly_blamed"]),
            wrongly_ruled_out: texts(&value["wrongly_ruled_out"]),
            ruled_out: texts(&value["ruled_out"]),
            seconds: finite("seconds"),
            file: text("file")?,
            remark: text("remark")?,
        })
    }
}

fn texts(list: &Value) -> Option<Vec<String>> {
    list.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::random::draw::draw;
    use crate::random::installed::Installed;

    /// A draw of this sort at which duel was not looked at yet.
    pub(in crate::random) fn looked(sort: Sort, number: u32, commit: &str) -> Looked {
        let installed = Installed::of(vec!["nginx".to_owned()]);
        let of_sort = (1..).map(|n| draw::<Web>(1, n, &installed).unwrap()).find(|drawn| drawn.sort == sort).unwrap();
        let (kind, installed) = (Web::NAME.to_owned(), installed.names().to_vec());
        let key = Key { kind, seed: 1, number, commit: commit.to_owned(), installed };
        Looked::new(key, &of_sort, "2026-01-01 00:00 UTC".to_owned())
    }

    #[test]
    fn lines_read_back() {
        let mut full = looked(Sort::Catalogue, 3, "abc");
        full.load_average = Some(1.5);
        full.outcome = Outcome::Wrong;
        full.said = vec!["net.loss on B".to_owned(), "strange\n\"words\"".to_owned()];
        full.wrongly_blamed = Some(vec!["net.loss on B".to_owned()]);
        full.wrongly_ruled_out = Some(Vec::new());
        full.ruled_out = Some(vec!["tls.large-key".to_owned()]);
        full.seconds = Some(12.5);
        for one in [looked(Sort::Equals, 1, "abc"), full] {
            let line = one.json().to_string();
            assert!(!line.contains('\n'));
            assert_eq!(Looked::parse(&line), Some(one));
        }
    }

    #[test]
    fn hostile_lines_are_refused() {
        let good = looked(Sort::Double, 1, "abc").json();
        assert!(Looked::parse(&good.to_string()).is_some());
        let cut = good.to_string();
        for end in 0..cut.len() {
            assert!(cut.is_char_boundary(end) && Looked::parse(&cut[..end]).is_none());
        }
        let changed = |name: &str, value: Value| {
            let mut other = good.clone();
            other[name] = value;
            Looked::parse(&other.to_string())
        };
        for (name, value) in [
            ("schema", json!("duel-draws/3")),
            ("kind", json!("anything")),
            ("kind", json!(null)),
            ("seed", json!(-1)),
            ("number", json!(5_000_000_000_u64)),
            ("commit", json!("")),
            ("sort", json!("anything")),
            ("outcome", json!("excellent")),
            ("said", json!(["a", 5])),
            ("truth", json!({})),
        ] {
            assert!(changed(name, value).is_none(), "{name}");
        }
        assert_eq!(changed("seconds", json!("soon")).unwrap().seconds, None, "unknown is not nought");
        assert_eq!(changed("wrongly_ruled_out", json!([1])).unwrap().wrongly_ruled_out, None);
        for line in ["", "{}", "[]", "null", "5", "{\"schema\":\"duel-draws/1\"}"] {
            assert!(Looked::parse(line).is_none());
        }
    }

    #[test]
    fn lines_without_a_kind_are_of_web_servers() {
        let one = looked(Sort::Double, 1, "abc");
        let mut line = one.json();
        line["schema"] = json!(OF_WEB_SERVERS);
        line.as_object_mut().unwrap().remove("kind");
        assert_eq!(Looked::parse(&line.to_string()), Some(one));
    }

    #[test]
    fn a_decoy_may_be_measured_but_not_blamed() {
        let judged = |blamed: &[&str]| Judged {
            outcome: Outcome::Wrong,
            said: Vec::new(),
            call: "slower".to_owned(),
            right: None,
            wrongly_blamed: blamed.iter().map(|&name| name.to_owned()).collect(),
            wrongly_ruled_out: Some(Vec::new()),
        };
        let outcome = |sort: Sort, blamed: &[&str]| {
            let mut one = looked(sort, 1, "abc");
            one.take(judged(blamed), &json!({"ruled_out": ["a"]}));
            (one.outcome, one.ruled_out)
        };
        let ruled_out = Some(vec!["a".to_owned()]);
        assert_eq!(outcome(Sort::Decoy, &[]), (Outcome::First, ruled_out.clone()));
        assert_eq!(outcome(Sort::Decoy, &["net.loss on B"]), (Outcome::Wrong, ruled_out.clone()));
        assert_eq!(outcome(Sort::Equals, &[]), (Outcome::Wrong, ruled_out), "a difference between equals is none");
    }
}
