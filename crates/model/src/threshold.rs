//! What a check holds a run against, as people type it: a promise, or `slower than A by 5%`.

use crate::{Metric, ParsePromiseError, Promise, parse_ratio, sanitize_line};
use std::fmt;
use std::str::FromStr;

/// A condition that makes a check warn or fail.
///
/// | typed | the check fails when |
/// |---|---|
/// | `p99<200ms`, `errors<0.1%`, `rate>500/s` | a target does not keep this promise (see [`Promise`]) |
/// | `slower than A by 5%` | a target is slower than A by more than 5 % in the main metric |
/// | `p99 slower than A by 5%` | the same of another metric: `rate`, `p50`, `p99` |
#[derive(Debug, Clone, PartialEq)]
pub enum Threshold {
    /// Every target has to keep this.
    Promise(Promise),
    /// No target may be slower than the baseline by more than a share.
    Slower {
        /// In which metric; `None`: the main one of the comparison.
        metric: Option<Metric>,
        /// Name of the baseline.
        than: String,
        /// How much more time, or how much lower a rate, is too much: 0.05 is a slowdown of 1.05.
        by: f64,
    },
}

/// A threshold could not be understood; the text is a sentence for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseThresholdError(String);

/// How these metrics are typed.
const METRICS: [(&str, Metric); 3] =
    [("rate", Metric::Rate), ("p50", Metric::ResponseP50), ("p99", Metric::ResponseP99)];

impl FromStr for Threshold {
    type Err = ParseThresholdError;

    fn from_str(typed: &str) -> Result<Self, ParseThresholdError> {
        let words: Vec<&str> = typed.split_whitespace().collect();
        let Some(at) = words.iter().position(|&word| word == "slower") else {
            return typed.parse().map(Self::Promise).map_err(|error| {
                ParseThresholdError(match error {
                    ParsePromiseError::Unclear(typed) => format!(
                        "'{typed}' is no threshold such as p99<200ms, errors<0.1%, rate>500/s or 'slower than A by 5%'"
                    ),
                    ParsePromiseError::Senseless(why) => why,
                })
            });
        };
        let error = |what: &str| {
            ParseThresholdError(format!("'{}': {what}, as in 'slower than A by 5%'", sanitize_line(typed.trim())))
        };
        let metric = match words[..at] {
            [] => None,
            [name] => {
                let known = METRICS.iter().find(|(known, _)| *known == name);
                Some(known.ok_or_else(|| error("of rate, p50 and p99 targets are compared"))?.1)
            }
            _ => return Err(error("one metric at most stands in front")),
        };
        // A name may have spaces in it, and a word "by".
        let (than, by) = match &words[at + 1..] {
            ["than", name @ .., "by", share] if !name.is_empty() => (name.join(" "), share),
            _ => return Err(error("a target and a share are wanted")),
        };
        // A bare 5 would be 500 %, and a check that never fails.
        let by = by.strip_suffix('%').and_then(|_| parse_ratio(by).ok()).ok_or_else(|| error("a share has a %"))?;
        // Rounded to a billionth, so that it is shown as it was typed.
        Ok(Self::Slower { metric, than, by: (by * 1e9).round() / 1e9 })
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Promise(promise) => promise.fmt(f),
            Self::Slower { metric, than, by } => {
                if let Some((name, _)) = METRICS.iter().find(|(_, known)| Some(*known) == *metric) {
                    write!(f, "{name} ")?;
                }
                write!(f, "slower than {} by {}%", sanitize_line(than), (by * 1e9).round() / 1e7)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_shown_as_they_are_typed() {
        for typed in [
            "p99<200ms",
            "errors<0.1%",
            "rate>500/s",
            "slower than A by 5%",
            "p99 slower than old site by 0.5%",
            "rate slower than by by 100%",
        ] {
            let threshold: Threshold = typed.parse().unwrap();
            assert_eq!(threshold.to_string(), typed);
            assert_eq!(threshold.to_string().parse::<Threshold>().unwrap(), threshold);
        }
        let typed = "  slower   than A  by 5.0% ";
        assert_eq!(typed.parse::<Threshold>().unwrap().to_string(), "slower than A by 5%");
    }

    #[test]
    fn what_is_no_threshold_is_refused_in_words() {
        for (typed, said) in [
            ("", "is no threshold"),
            ("p99", "is no threshold"),
            ("fast", "is no threshold"),
            ("slower", "a target and a share"),
            ("slower than by 5%", "a target and a share"),
            ("slower than A", "a target and a share"),
            ("slower than A by much", "a share has a %"),
            ("slower than A by 5", "a share has a %, as in 'slower than A by 5%'"),
            ("slower than A by 0.05", "a share has a %"),
            ("slower than A by -5%", "a share has a %"),
            ("p99<200", "has no unit: p99<200ms"),
            ("errors<1", "has no unit: errors<1%"),
            ("p99>1s", "is better when it is lower; write p99<LIMIT"),
            ("p98 slower than A by 5%", "rate, p50 and p99"),
            ("a b slower than A by 5%", "one metric at most"),
            ("p99<\u{1b}[2J", "is no threshold"),
        ] {
            let error = typed.parse::<Threshold>().unwrap_err().to_string();
            assert!(error.contains(said) && !error.contains('\u{1b}'), "{typed}: {error}");
        }
    }
}
