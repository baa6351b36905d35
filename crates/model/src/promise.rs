//! A promise about a target's figures, as people type it: `p99<50ms`, `errors<0.1%`, `rate>500/s`.

use crate::units::{parse_per_second, typed_duration};
use crate::{Nanos, parse_duration_ns, parse_ratio, sanitize_line};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// One figure of a target held against a limit. Several of them are all to be kept.
///
/// Grammar: `METRIC COMPARISON LIMIT`, where spaces do not matter.
///
/// | typed | meaning |
/// |---|---|
/// | `p99<50ms`, `p99.9<1s` | a percentile of the response time |
/// | `mean<5ms`, `max<2s` | its mean, its maximum |
/// | `errors<0.1%` | ops that did not end well, as a share of those that became due |
/// | `rate>500/s` | ok ops per second |
/// | `rate>99%` | ok ops, as a share of those that became due |
///
/// `<=` and `>=` are comparisons as well: `errors<=0%`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Promise {
    /// Which figure.
    pub metric: PromiseMetric,
    /// On which side of the limit it has to stay.
    pub comparison: Comparison,
    /// The limit: in ns of a time, a share (0 to 1) of `Errors` and `Done`, per second of `Rate`.
    pub limit: f64,
}

/// A figure that something can be promised of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromiseMetric {
    /// Quantile of the response time, in millionths: `p99.9` is 999,000. An integer, so that equal promises are equal.
    Quantile {
        /// Share of ops that do not take longer, in millionths.
        millionths: u32,
    },
    /// Arithmetic mean of the response time.
    Mean,
    /// Longest response time.
    Max,
    /// Ops that did not end well, as a share of those that became due.
    Errors,
    /// Ok ops per second.
    Rate,
    /// Ok ops, as a share of those that became due.
    Done,
}

impl PromiseMetric {
    /// Whether it is a length of time.
    pub fn is_time(self) -> bool {
        matches!(self, Self::Quantile { .. } | Self::Mean | Self::Max)
    }

    /// The quantile as a share of one.
    pub fn quantile(self) -> Option<f64> {
        match self {
            Self::Quantile { millionths } => Some(f64::from(millionths) / 1e6),
            _ => None,
        }
    }

    /// Whether less of it is better: then it is promised to stay below a limit.
    fn is_better_low(self) -> bool {
        self.is_time() || self == Self::Errors
    }
}

/// On which side of its limit a figure has to stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
}

/// A promise could not be understood; the text is a sentence for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParsePromiseError {
    /// It has not the form of one.
    #[error("'{0}' is no promise such as p99<50ms, mean<5ms, max<1s, errors<0.1%, rate>500/s or rate>99%")]
    Unclear(String),
    /// It has, and cannot be meant.
    #[error("{0}")]
    Senseless(String),
}

impl Promise {
    /// Whether a figure, in the unit of [`Promise::limit`], keeps it.
    pub fn holds(&self, figure: f64) -> bool {
        match self.comparison {
            Comparison::Below => figure < self.limit,
            Comparison::AtMost => figure <= self.limit,
            Comparison::Above => figure > self.limit,
            Comparison::AtLeast => figure >= self.limit,
        }
    }

    /// Parses promises separated by commas, all of which are to be kept: `p99<50ms,errors<0.1%`.
    pub fn parse_all(typed: &str) -> Result<Vec<Self>, ParsePromiseError> {
        let promises: Vec<Self> = typed.split(',').map(str::parse).collect::<Result<_, _>>()?;
        for (index, promise) in promises.iter().enumerate() {
            if promises[..index].iter().any(|earlier| earlier.metric == promise.metric) {
                return Err(ParsePromiseError::Senseless(format!("{} is promised twice", promise.metric)));
            }
        }
        Ok(promises)
    }
}

impl Promise {
    fn read(typed: &str) -> Result<Self, ParsePromiseError> {
        let shown = || sanitize_line(typed.trim());
        let unclear = || ParsePromiseError::Unclear(shown());
        let senseless = |why: String| ParsePromiseError::Senseless(format!("'{}' {why}", shown()));
        let at = typed.find(['<', '>']).ok_or_else(unclear)?;
        let (name, rest) = (typed[..at].trim(), &typed[at..]);
        let (comparison, limit) = [
            ("<=", Comparison::AtMost),
            (">=", Comparison::AtLeast),
            ("<", Comparison::Below),
            (">", Comparison::Above),
        ]
        .into_iter()
        .find_map(|(sign, comparison)| Some((comparison, rest.strip_prefix(sign)?.trim())))
        .ok_or_else(unclear)?;
        // People think of 5 as of ms, or of per cent: where the number alone decides, a limit is a thousand times too high
        // and never broken. Nothing is nothing in every unit.
        let is_bare = limit.parse::<f64>().is_ok_and(|number| number != 0.0);
        let (metric, limit) = match name {
            "errors" if is_bare => return Err(senseless(format!("has no unit: errors{comparison}{limit}%"))),
            "errors" => (PromiseMetric::Errors, share(limit).ok_or_else(unclear)?),
            "rate" if limit.ends_with('%') => (PromiseMetric::Done, share(limit).ok_or_else(unclear)?),
            "rate" => (PromiseMetric::Rate, parse_per_second(limit).ok_or_else(unclear)?),
            _ => {
                let metric = time_metric(name).ok_or_else(unclear)?;
                if is_bare {
                    let how = format!("has no unit: {metric}{comparison}{limit}ms or {metric}{comparison}{limit}s");
                    return Err(senseless(how));
                }
                (metric, parse_duration_ns(limit).map_err(|_| unclear())? as f64)
            }
        };
        let is_low = matches!(comparison, Comparison::Below | Comparison::AtMost);
        if is_low != metric.is_better_low() {
            let (sign, word) = if metric.is_better_low() { ('<', "lower") } else { ('>', "higher") };
            return Err(ParsePromiseError::Senseless(format!(
                "'{}': {metric} is better when it is {word}; write {metric}{sign}LIMIT",
                shown()
            )));
        }
        Ok(Self { metric, comparison, limit })
    }

    /// What is wrong with its limit: no time and no share is below 0, no share above 1.
    fn nonsense(&self) -> Option<&'static str> {
        let (is_none, is_all) = (self.limit == 0.0, self.limit >= 1.0);
        match (self.comparison, self.metric) {
            (Comparison::Below, _) if is_none => Some("can never be kept"),
            (Comparison::Above, PromiseMetric::Done) if is_all => Some("can never be kept"),
            (Comparison::AtMost, PromiseMetric::Errors) if is_all => Some("can never be broken"),
            (Comparison::AtLeast, _) if is_none => Some("can never be broken"),
            _ => None,
        }
    }
}

impl FromStr for Promise {
    type Err = ParsePromiseError;

    fn from_str(typed: &str) -> Result<Self, ParsePromiseError> {
        let promise = Self::read(typed)?;
        // A mistake in typing. Where a plan is read that was once accepted, it stays what it is.
        match promise.nonsense() {
            Some(why) => Err(ParsePromiseError::Senseless(format!("'{}' {why}", sanitize_line(typed.trim())))),
            None => Ok(promise),
        }
    }
}

fn time_metric(name: &str) -> Option<PromiseMetric> {
    match name {
        "mean" => return Some(PromiseMetric::Mean),
        "max" => return Some(PromiseMetric::Max),
        _ => {}
    }
    let digits = name.strip_prefix('p')?;
    if !digits.starts_with(|c: char| c.is_ascii_digit()) || !digits.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let percent: f64 = digits.parse().ok()?;
    let millionths = (percent * 1e4).round();
    // p0 is the minimum, and p100 has a name of its own.
    (1.0..=999_999.0).contains(&millionths).then_some(PromiseMetric::Quantile { millionths: millionths as u32 })
}

/// A share to a billionth, so that it is shown as it was typed.
fn share(typed: &str) -> Option<f64> {
    let share = parse_ratio(typed).ok()?;
    (share <= 1.0).then(|| (share * 1e9).round() / 1e9)
}

impl fmt::Display for PromiseMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quantile { millionths } => write!(f, "p{}", f64::from(*millionths) / 1e4),
            Self::Mean => f.write_str("mean"),
            Self::Max => f.write_str("max"),
            Self::Errors => f.write_str("errors"),
            Self::Rate | Self::Done => f.write_str("rate"),
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Below => "<",
            Self::AtMost => "<=",
            Self::Above => ">",
            Self::AtLeast => ">=",
        })
    }
}

impl fmt::Display for Promise {
    /// As it is typed, to the nanosecond.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.metric, self.comparison)?;
        match self.metric {
            PromiseMetric::Errors | PromiseMetric::Done => write!(f, "{}%", (self.limit * 1e9).round() / 1e7),
            PromiseMetric::Rate => write!(f, "{}/s", self.limit),
            _ => f.write_str(&typed_duration(self.limit as Nanos)),
        }
    }
}

impl From<Promise> for String {
    fn from(promise: Promise) -> Self {
        promise.to_string()
    }
}

impl TryFrom<String> for Promise {
    type Error = ParsePromiseError;

    fn try_from(typed: String) -> Result<Self, ParsePromiseError> {
        Self::read(&typed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises_are_shown_as_they_are_typed() {
        for typed in [
            "p99<50ms",
            "p50<=1500us",
            "p99.9<2s",
            "p99.99<7ns",
            "mean<5ms",
            "max<90s",
            "errors<0.1%",
            "errors<=0%",
            "errors<7%",
            "rate>500/s",
            "rate>=0.5/s",
            "rate>99.5%",
            "rate>=100%",
        ] {
            let promise: Promise = typed.parse().unwrap();
            assert_eq!(promise.to_string(), typed);
            let json = serde_json::to_string(&promise).unwrap();
            assert_eq!(serde_json::from_str::<Promise>(&json).unwrap(), promise);
        }
        let promise: Promise = " p99 < 0.05 s ".parse().unwrap();
        assert_eq!(promise.to_string(), "p99<50ms");
        assert_eq!("errors<=0".parse::<Promise>().unwrap().to_string(), "errors<=0%");
        assert_eq!("rate>500".parse::<Promise>().unwrap().to_string(), "rate>500/s");
    }

    #[test]
    fn a_quantile_is_the_share_that_was_typed() {
        let promise: Promise = "p99.9<1s".parse().unwrap();
        assert_eq!(promise.metric.quantile(), Some(0.999));
        assert_eq!(promise.limit, 1e9);
    }

    #[test]
    fn limits_are_sharp() {
        let below: Promise = "p99<50ms".parse().unwrap();
        assert!(below.holds(49_999_999.0) && !below.holds(50_000_000.0));
        let at_most: Promise = "errors<=0%".parse().unwrap();
        assert!(at_most.holds(0.0) && !at_most.holds(1e-9));
        let above: Promise = "rate>99%".parse().unwrap();
        assert!(above.holds(0.995) && !above.holds(0.99));
    }

    #[test]
    fn what_is_no_promise_is_refused_in_words() {
        for (typed, said) in [
            ("", "is no promise"),
            ("p99", "is no promise"),
            ("p99=50ms", "is no promise"),
            ("p99<", "is no promise"),
            ("p99<50bananas", "is no promise"),
            ("p<50ms", "is no promise"),
            ("p0<50ms", "is no promise"),
            ("p100<50ms", "is no promise"),
            ("p9e1<50ms", "is no promise"),
            ("pNaN<50ms", "is no promise"),
            ("p99<-5ms", "is no promise"),
            ("errors<101%", "is no promise"),
            ("rate>inf", "is no promise"),
            ("p99>50ms", "is better when it is lower"),
            ("errors>1%", "is better when it is lower"),
            ("rate<500/s", "is better when it is higher"),
            ("p99<0", "can never be kept"),
            ("errors<0%", "can never be kept"),
            ("rate>100%", "can never be kept"),
            ("errors<=100%", "can never be broken"),
            ("rate>=0", "can never be broken"),
            ("rate>=0%", "can never be broken"),
            ("p99<200", "'p99<200' has no unit: p99<200ms or p99<200s"),
            ("mean <= 0.2", "has no unit: mean<=0.2ms or mean<=0.2s"),
            ("errors<1", "'errors<1' has no unit: errors<1%"),
            ("errors<0.01", "has no unit: errors<0.01%"),
            ("p99<5\u{1b}[2Jms", "is no promise"),
        ] {
            let error = typed.parse::<Promise>().unwrap_err().to_string();
            assert!(error.contains(said) && !error.contains('\u{1b}'), "{typed}: {error}");
        }
    }

    #[test]
    fn several_promises_are_separated_by_commas() {
        let promises = Promise::parse_all("p99<50ms, errors<0.1%").unwrap();
        assert_eq!(promises.iter().map(ToString::to_string).collect::<Vec<_>>(), ["p99<50ms", "errors<0.1%"]);
        assert!(Promise::parse_all("p99<50ms,").is_err());
        assert!(Promise::parse_all("p99<50ms,p99<20ms").unwrap_err().to_string().contains("twice"));
        assert!(Promise::parse_all("rate>99%,rate>500/s").is_ok());
    }
}
