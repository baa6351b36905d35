//! duel's document held against the truth.

use crate::case::{Case, NAMELESS};
use serde_json::Value;

/// How duel did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// The right cause, on the right target, before all others. Of equals, and of what has no name: nothing was blamed.
    First,
    /// Among the first three. Of two faults: both.
    AmongThree,
    /// It said that it does not know, or that no difference was established and neither that there is none.
    Unknown,
    /// Something else was blamed, or the wrong target, or a difference was denied, or the fault was ruled out.
    Wrong,
    /// duel ended with an error instead of an answer.
    NoAnswer,
    /// The fault did not bite, so there was nothing to find.
    NotVerified,
    /// The bench failed.
    Failed,
}

impl Outcome {
    pub(crate) const ALL: [Outcome; 7] = [
        Outcome::First,
        Outcome::AmongThree,
        Outcome::Unknown,
        Outcome::Wrong,
        Outcome::NoAnswer,
        Outcome::NotVerified,
        Outcome::Failed,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Outcome::First => "first",
            Outcome::AmongThree => "among three",
            Outcome::Unknown => "unknown",
            Outcome::Wrong => "wrong",
            Outcome::NoAnswer => "no answer",
            Outcome::NotVerified => "not verified",
            Outcome::Failed => "failed",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Outcome> {
        Outcome::ALL.into_iter().find(|outcome| outcome.name() == name)
    }

    /// Whether duel was asked. An error of its own counts: leaving it out would flatter it.
    pub(crate) fn counts(self) -> bool {
        !matches!(self, Outcome::NotVerified | Outcome::Failed)
    }
}

/// The outcome, and what it rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Judged {
    pub(crate) outcome: Outcome,
    /// The findings in duel's order: `cause on target`, and what was suspected only.
    pub(crate) said: Vec<String>,
    /// The call on the main metric.
    pub(crate) call: String,
    /// The right cause, where it is among the first three; of two the one that comes first.
    pub(crate) right: Option<Right>,
    /// What was blamed and is not the fault, wherever it stands: `cause on target`.
    pub(crate) wrongly_blamed: Vec<String>,
    /// Names of the fault that are listed as ruled out; `None` where the document does not tell what is.
    pub(crate) wrongly_ruled_out: Option<Vec<String>>,
}

/// How the right cause was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Right {
    /// Its name: the injected one, or another that is as right.
    pub(crate) cause: String,
    /// duel's own word for how firmly it stands; `None` where it said none.
    pub(crate) confidence: Option<String>,
}

struct Finding<'a> {
    cause: &'a str,
    target: Option<&'a str>,
    confidence: Option<&'a str>,
}

impl Finding<'_> {
    fn text(&self) -> String {
        match self.target {
            Some(target) => format!("{} on {target}", self.cause),
            None => self.cause.to_owned(),
        }
    }
}

/// Judges one document.
pub(crate) fn judge(document: &Value, case: &Case, faulty: &str) -> Judged {
    let findings: Vec<Finding<'_>> = document["findings"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
        .map(|finding| Finding {
            cause: finding["cause"].as_str().unwrap_or("?"),
            target: finding["target"].as_str(),
            confidence: finding["confidence"].as_str(),
        })
        .collect();
    let call = document["pairs"][0]["call"].as_str().unwrap_or("?").to_owned();
    let named = match case.truth.len() {
        0 => of_equals(&findings, &call),
        1 if case.truth == [NAMELESS] => of_nameless(&findings, &call),
        1 => of_one(&findings, &call, case, faulty),
        _ => of_two(&findings, case, faulty),
    };
    let mut said: Vec<String> = findings.iter().map(Finding::text).collect();
    said.extend(suspected(document));
    let right: Option<Right> = findings
        .iter()
        .take(3)
        .find(|finding| is_right(finding, case, faulty))
        .map(|finding| Right { cause: finding.cause.to_owned(), confidence: finding.confidence.map(str::to_owned) });
    let wrongly_blamed = findings
        .iter()
        .filter(|finding| !matches!(finding.cause, NONE | UNKNOWN) && !is_right(finding, case, faulty))
        .map(Finding::text)
        .collect();
    let told: Vec<&str> = findings
        .iter()
        .take(3)
        .filter(|finding| is_right(finding, case, faulty))
        .map(|finding| finding.cause)
        .collect();
    let wrongly_ruled_out = wrongly_ruled_out(document, case, &told);
    // An acquittal is a claim like an accusation: what else was said does not make it right.
    let acquits = wrongly_ruled_out.as_ref().is_some_and(|names| !names.is_empty());
    let outcome = if acquits { Outcome::Wrong } else { named };
    Judged { outcome, said, call, right, wrongly_blamed, wrongly_ruled_out }
}

/// The faults' names among those that the document rules out. Of a fault with several names that is `told` by one of them, the others may
/// be ruled out; of two faults neither may for the other one's sake.
fn wrongly_ruled_out(document: &Value, case: &Case, told: &[&str]) -> Option<Vec<String>> {
    // Who did not look for causes has ruled out none, and its empty list says nothing.
    if document["explained"] == false {
        return None;
    }
    let listed = document["ruled_out"].as_array()?.iter().filter_map(Value::as_str);
    let is_told = |name: &str| {
        let others = || told.iter().filter(|told| **told != name);
        case.faults_called(name).all(|fault| others().any(|told| case.faults_called(told).any(|other| other == fault)))
    };
    Some(listed.filter(|name| case.accepts(name) && !is_told(name)).map(str::to_owned).collect())
}

/// Causes that fitted and may not be named yet; they stand in the evidence of `unknown`, and count for nothing.
fn suspected(document: &Value) -> Vec<String> {
    let findings = document["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
    let texts =
        findings.iter().flat_map(|finding| finding["evidence"].as_array().map(Vec::as_slice).unwrap_or_default());
    texts
        .filter_map(|evidence| {
            let about = &evidence["about"];
            (about["stands"] == "suspected").then(|| format!("{SUSPECTED}{}", about["cause"].as_str().unwrap_or("?")))
        })
        .collect()
}

/// Before what is suspected only.
pub(crate) const SUSPECTED: &str = "suspected ";
pub(crate) const UNKNOWN: &str = "unknown";
pub(crate) const NONE: &str = "none";

/// Equals: a cause other than `none` is an accusation, and so is a difference that nothing takes back.
fn of_equals(findings: &[Finding<'_>], call: &str) -> Outcome {
    match findings.first().map(|finding| finding.cause) {
        Some(NONE) => Outcome::First,
        Some(UNKNOWN) | None if matches!(call, "faster" | "slower") => Outcome::Wrong,
        Some(UNKNOWN) | None => Outcome::First,
        Some(_) => Outcome::Wrong,
    }
}

/// A fault that has no name among the causes of its kind of work: not to know is right, and whatever is named is wrong.
fn of_nameless(findings: &[Finding<'_>], call: &str) -> Outcome {
    match findings.first().map(|finding| finding.cause) {
        // "Unknown" may stand beside names, which is an accusation nevertheless.
        _ if findings.iter().any(|finding| !matches!(finding.cause, NONE | UNKNOWN)) => Outcome::Wrong,
        Some(NONE) if call == "unknown" => Outcome::Unknown,
        Some(NONE) => Outcome::Wrong,
        _ => Outcome::First,
    }
}

fn of_one(findings: &[Finding<'_>], call: &str, case: &Case, faulty: &str) -> Outcome {
    let place = findings.iter().take(3).position(|finding| is_right(finding, case, faulty));
    match (place, findings.first().map(|finding| finding.cause)) {
        (Some(0), _) => Outcome::First,
        (Some(_), _) => Outcome::AmongThree,
        (None, Some(UNKNOWN) | None) => Outcome::Unknown,
        // "Not established, and neither is that there is none" denies nothing.
        (None, Some(NONE)) if call == "unknown" => Outcome::Unknown,
        (None, Some(_)) => Outcome::Wrong,
    }
}

/// Two faults: `First` if one of them comes first and the other is among three as well, `AmongThree` if one of them is
/// among three.
fn of_two(findings: &[Finding<'_>], case: &Case, faulty: &str) -> Outcome {
    let top = || findings.iter().take(3).filter(|finding| finding.target == Some(faulty));
    let found = case.truth.iter().filter(|truth| top().any(|finding| finding.cause == **truth)).count();
    let first = findings.first().is_some_and(|finding| is_right(finding, case, faulty));
    match findings.first().map(|finding| finding.cause) {
        _ if first && found == case.truth.len() => Outcome::First,
        _ if found > 0 => Outcome::AmongThree,
        Some(UNKNOWN) | None => Outcome::Unknown,
        Some(_) => Outcome::Wrong,
    }
}

fn is_right(finding: &Finding<'_>, case: &Case, faulty: &str) -> bool {
    case.accepts(finding.cause) && finding.target == Some(faulty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select::select;
    use serde_json::json;

    fn case(id: &str) -> Case {
        select(&[id.to_owned()]).unwrap().remove(0)
    }

    fn judged(case: &Case, call: &str, findings: &[(&str, Option<&str>)]) -> Judged {
        let findings: Vec<Value> =
            findings.iter().map(|(cause, target)| json!({"cause": cause, "target": target})).collect();
        judge(&json!({"pairs": [{"call": call}], "findings": findings}), case, "B")
    }

    fn outcome(case: &Case, call: &str, findings: &[(&str, Option<&str>)]) -> Outcome {
        judged(case, call, findings).outcome
    }

    #[test]
    fn one_fault() {
        let key = case("tls.large-key");
        let said = |findings: &[(&str, Option<&str>)]| outcome(&key, "slower", findings);
        assert_eq!(said(&[("tls.large-key", Some("B"))]), Outcome::First);
        assert_eq!(said(&[("cpu.slower", Some("B")), ("tls.large-key", Some("B"))]), Outcome::AmongThree);
        assert_eq!(said(&[("tls.large-key", Some("A"))]), Outcome::Wrong, "the wrong server is accused");
        assert_eq!(said(&[("unknown", None)]), Outcome::Unknown);
        assert_eq!(said(&[]), Outcome::Unknown);
        assert_eq!(said(&[("none", None)]), Outcome::Wrong, "a real difference is denied");
        assert_eq!(outcome(&key, "unknown", &[("none", None)]), Outcome::Unknown);
        assert_eq!(outcome(&key, "equivalent", &[("none", None)]), Outcome::Wrong);
        let fourth = [("a", None), ("b", None), ("c", None), ("tls.large-key", Some("B"))];
        assert_eq!(said(&fourth), Outcome::Wrong);
    }

    #[test]
    fn another_name_for_the_same_is_as_right() {
        let slower = case("cpu.slower");
        assert_eq!(outcome(&slower, "slower", &[("cpu.quota", Some("B"))]), Outcome::First);
    }

    #[test]
    fn what_is_blamed_beside_the_right_cause_is_told() {
        let wrongly_blamed = |id: &str, findings: &[(&str, Option<&str>)]| {
            let judged = judged(&case(id), "slower", findings);
            (judged.outcome, judged.wrongly_blamed)
        };
        let right = ("tls.large-key", Some("B"));
        let key = |besides: &[(&str, Option<&str>)]| wrongly_blamed("tls.large-key", &[&[right], besides].concat());
        assert_eq!(key(&[]), (Outcome::First, Vec::new()));
        assert_eq!(key(&[("unknown", Some("B")), ("none", None)]), (Outcome::First, Vec::new()), "nothing is blamed");
        let fourth = [("unknown", None), ("unknown", None), ("net.loss", Some("B"))];
        assert_eq!(key(&fourth), (Outcome::First, vec!["net.loss on B".to_owned()]), "also beyond the third");
        assert_eq!(key(&[("mem.limit", Some("A"))]), (Outcome::First, vec!["mem.limit on A".to_owned()]));
        assert_eq!(key(&[("tls.large-key", Some("A"))]), (Outcome::First, vec!["tls.large-key on A".to_owned()]));
        let other_name = [("cpu.quota", Some("B")), ("cpu.slower", Some("B"))];
        assert_eq!(wrongly_blamed("cpu.slower", &other_name), (Outcome::First, Vec::new()), "both are right");
        let double = case("double");
        let both: Vec<_> = double.truth.iter().map(|cause| (*cause, Some("B"))).collect();
        assert_eq!(wrongly_blamed("double", &both), (Outcome::First, Vec::new()));
        let three = [both[0], ("x", None), both[1]];
        assert_eq!(wrongly_blamed("double", &three), (Outcome::First, vec!["x".to_owned()]));
        assert_eq!(wrongly_blamed("none", &[right]).1, ["tls.large-key on B"]);
    }

    #[test]
    fn ruling_the_fault_out_is_wrong() {
        let said = |id: &str, findings: &[(&str, &str)], ruled_out: Value| {
            let findings: Vec<Value> =
                findings.iter().map(|(cause, target)| json!({"cause": cause, "target": target})).collect();
            let document = json!({"pairs": [{"call": "slower"}], "findings": findings, "ruled_out": ruled_out});
            let judged = judge(&document, &case(id), "B");
            (judged.outcome, judged.wrongly_ruled_out)
        };
        let none = || Some(Vec::new());
        let names = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        let (key, loss) = ("tls.large-key", "net.loss");
        let unknown = [("unknown", "B")];
        assert_eq!(said(key, &unknown, json!([loss])), (Outcome::Unknown, none()));
        assert_eq!(said(key, &unknown, json!([loss, key])), (Outcome::Wrong, names(&[key])), "unknown is no excuse");
        assert_eq!(said(key, &[(key, "B")], json!([loss])), (Outcome::First, none()));
        assert_eq!(said(key, &[(key, "A")], json!([key])), (Outcome::Wrong, names(&[key])));
        assert_eq!(said("none", &[("none", "B")], json!([key, loss])), (Outcome::First, none()), "there is no fault");
        let slower = |findings: &[(&str, &str)]| said("cpu.slower", findings, json!(["cpu.slower"]));
        assert_eq!(slower(&[("cpu.quota", "B")]), (Outcome::First, none()), "it is told by its other name");
        assert_eq!(slower(&unknown), (Outcome::Wrong, names(&["cpu.slower"])));
        assert_eq!(said("cpu.slower", &unknown, json!(["cpu.quota"])), (Outcome::Wrong, names(&["cpu.quota"])));
        let double = case("double");
        let (one, other) = (double.truth[0], double.truth[1]);
        assert_eq!(said("double", &[(one, "B")], json!([loss])), (Outcome::AmongThree, none()));
        assert_eq!(said("double", &[(one, "B")], json!([other])), (Outcome::Wrong, names(&[other])));
        // Of two faults one may be told by its other name, and that is no word about the second.
        let slow_and_loss = Case { truth: vec!["cpu.slower", "net.loss"], ..case("cpu.slower") };
        let ruled_out = |found: &str, ruled_out: &str| {
            let document = json!({
                "pairs": [{"call": "slower"}],
                "findings": [{"cause": found, "target": "B"}],
                "ruled_out": [ruled_out],
            });
            judge(&document, &slow_and_loss, "B").wrongly_ruled_out
        };
        assert_eq!(ruled_out("cpu.quota", "cpu.slower"), none());
        assert_eq!(ruled_out("cpu.quota", "net.loss"), names(&["net.loss"]));
        assert_eq!(ruled_out("net.loss", "cpu.slower"), names(&["cpu.slower"]));
        for untold in [Value::Null, json!(5)] {
            assert_eq!(said(key, &unknown, untold), (Outcome::Unknown, None));
        }
        let unasked = json!({"explained": false, "findings": [], "ruled_out": []});
        assert_eq!(judge(&unasked, &case(key), "B").wrongly_ruled_out, None);
    }

    #[test]
    fn how_the_right_cause_was_told_is_kept() {
        let right = |id: &str, findings: Value| {
            judge(&json!({"pairs": [{"call": "slower"}], "findings": findings}), &case(id), "B").right
        };
        let told = |cause: &str, confidence: Option<&str>| {
            Some(Right { cause: cause.to_owned(), confidence: confidence.map(str::to_owned) })
        };
        let finding = |cause: &str, confidence: &str| json!({"cause": cause, "target": "B", "confidence": confidence});
        let other = || finding("net.loss", "confirmed");
        assert_eq!(right("cpu.slower", json!([finding("cpu.quota", "likely")])), told("cpu.quota", Some("likely")));
        let second = json!([other(), finding("tls.large-key", "possible")]);
        assert_eq!(right("tls.large-key", second), told("tls.large-key", Some("possible")));
        assert_eq!(
            right("tls.large-key", json!([other(), other(), other(), finding("tls.large-key", "likely")])),
            None
        );
        assert_eq!(right("tls.large-key", json!([{"cause": "tls.large-key", "target": "A"}])), None);
        let unsaid = json!([{"cause": "tls.large-key", "target": "B"}]);
        assert_eq!(right("tls.large-key", unsaid), told("tls.large-key", None));
    }

    #[test]
    fn equals() {
        let equals = case("none");
        assert_eq!(outcome(&equals, "equivalent", &[("none", None)]), Outcome::First);
        assert_eq!(outcome(&equals, "unknown", &[]), Outcome::First);
        assert_eq!(outcome(&equals, "unknown", &[("unknown", None)]), Outcome::First);
        assert_eq!(outcome(&equals, "slower", &[("unknown", Some("B"))]), Outcome::Wrong);
        assert_eq!(outcome(&equals, "unknown", &[("cpu.slower", Some("B"))]), Outcome::Wrong);
    }

    #[test]
    fn what_has_no_name_is_not_to_be_given_one() {
        let nameless = Case { truth: vec![NAMELESS], ..case("tls.large-key") };
        let said = |call: &str, findings: &[(&str, Option<&str>)]| outcome(&nameless, call, findings);
        assert_eq!(said("slower", &[("unknown", Some("B"))]), Outcome::First);
        assert_eq!(said("slower", &[]), Outcome::First);
        assert_eq!(said("slower", &[("net.rate-cap", Some("B"))]), Outcome::Wrong);
        assert_eq!(said("slower", &[("unknown", Some("B")), ("net.loss", Some("A"))]), Outcome::Wrong);
        assert_eq!(said("equivalent", &[("none", None)]), Outcome::Wrong, "it is denied");
        assert_eq!(said("unknown", &[("none", None)]), Outcome::Unknown);
    }

    #[test]
    fn two_faults_want_both_names() {
        let double = case("double");
        let (one, other) = (double.truth[0], double.truth[1]);
        let said = |findings: &[(&str, Option<&str>)]| outcome(&double, "slower", findings);
        assert_eq!(said(&[(other, Some("B")), (one, Some("B"))]), Outcome::First);
        assert_eq!(said(&[(one, Some("B")), ("x", None), (other, Some("B"))]), Outcome::First);
        assert_eq!(said(&[(one, Some("B"))]), Outcome::AmongThree);
        assert_eq!(said(&[("x", None), (one, Some("B")), (other, Some("B"))]), Outcome::AmongThree);
        assert_eq!(said(&[("unknown", None)]), Outcome::Unknown);
        assert_eq!(said(&[("x", Some("B"))]), Outcome::Wrong);
    }

    #[test]
    fn documents_that_are_none_of_ours_are_unknown() {
        for strange in [json!(null), json!([]), json!({"findings": 5}), json!({"findings": [{}, 7]})] {
            let judged = judge(&strange, &case("tls.large-key"), "B");
            assert!(matches!(judged.outcome, Outcome::Unknown | Outcome::Wrong));
        }
    }

    #[test]
    fn names_of_outcomes_read_back() {
        for outcome in Outcome::ALL {
            assert_eq!(Outcome::parse(outcome.name()), Some(outcome));
        }
    }
}
