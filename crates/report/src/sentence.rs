//! The verdict in one sentence.

use crate::figures::{UNKNOWN, exact_percent, near_one, three_digits};
use crate::text::{clean, plural};
use duel_model::{Call, Doubt, DoubtId, HeadlineKind, Metric, PairVerdict, Verdict, call_confidence};

/// The verdict on a pair in one sentence, without a full stop:
/// `B is 3.04x slower than A (95 % interval 2.97 to 3.11, 24 slots)`.
///
/// `margin` is the practical margin of the plan. `at_least` says that the ratio is a lower bound (see
/// [`is_lower_bound`]). Names are made safe to show.
pub fn verdict_sentence(pair: &PairVerdict, margin: f64, at_least: bool) -> String {
    let (target, baseline) = (clean(&pair.target), clean(&pair.baseline));
    let slots = plural(u64::from(pair.slots), "slot");
    let confidence = exact_percent(pair.confidence);
    let interval = |low: Option<&String>, high: Option<&String>| match (low, high) {
        (Some(low), Some(high)) => format!("{confidence} interval {low} to {high}"),
        _ => "no interval".to_owned(),
    };
    let bound = if at_least { "at least " } else { "" };
    // The faster of the two was held back by the generator.
    let held_back = if pair.call == Call::Faster { &target } else { &baseline };
    let limit = if at_least { format!("; the generator, not {held_back}, was the limit") } else { String::new() };
    let known = |value: Option<f64>| value.filter(|v| v.is_finite() && *v > 0.0);
    let (ratio, low, high) = (known(pair.ratio), known(pair.low), known(pair.high));

    match pair.call {
        Call::Slower | Call::Faster => {
            let word = if pair.call == Call::Slower { "slower" } else { "faster" };
            let Some(ratio) = ratio else {
                let what = subject(&target, pair.metric);
                return format!("{what} is {word} than {baseline}, by how much is not known ({slots})");
            };
            // "slower" and "faster" are told as a factor above one; a response time is told as its ratio.
            let inverted = match pair.metric {
                Metric::Rate => pair.call == Call::Slower,
                Metric::ResponseP50 | Metric::ResponseP99 => false,
            };
            let (ratio, low, high) =
                if inverted { (1.0 / ratio, high.map(|v| 1.0 / v), low.map(|v| 1.0 / v)) } else { (ratio, low, high) };
            let (ratio, low, high) = distinct(ratio, low, high);
            let interval = interval(low.as_ref(), high.as_ref());
            match response_time(pair.metric) {
                None => format!("{target} is {bound}{ratio}x {word} than {baseline} ({interval}, {slots}{limit})"),
                Some(time) => {
                    let bound = match (at_least, pair.call) {
                        (false, _) => "",
                        (true, Call::Slower) => "at least ",
                        (true, _) => "at most ",
                    };
                    format!(
                        "{target}'s {time} is {bound}{ratio}x that of {baseline}, so {word} ({interval}, {slots}{limit})"
                    )
                }
            }
        }
        Call::Equivalent => {
            let time = response_time(pair.metric).map(|time| format!(" in {time}")).unwrap_or_default();
            let figures = judged_near_one(pair, [ratio, low, high], &interval);
            let margin = exact_percent(margin);
            format!(
                "{target} and {baseline} are equivalent{time}: any difference is within {margin} ({figures}, {slots})"
            )
        }
        Call::Unknown => {
            let what = subject(&target, pair.metric);
            let than = match pair.metric {
                Metric::Rate => baseline,
                Metric::ResponseP50 | Metric::ResponseP99 => format!("that of {baseline}"),
            };
            if ratio.is_none() {
                return format!("Unknown whether {what} is faster or slower than {than}: there is no ratio ({slots})");
            }
            if let Some(ratio) = ratio.filter(|ratio| low.is_none() && high.is_none() && !(0.5..2.0).contains(ratio)) {
                let looks = match pair.metric {
                    Metric::Rate if ratio < 1.0 => format!("its rate looks {}x lower", three_digits(1.0 / ratio)),
                    Metric::Rate => format!("its rate looks {}x higher", three_digits(ratio)),
                    Metric::ResponseP50 | Metric::ResponseP99 => format!("it looks {}x as long", three_digits(ratio)),
                };
                return format!(
                    "Unknown whether {what} is faster or slower than {than}: {looks}, but there is no interval ({slots})"
                );
            }
            let figures = judged_near_one(pair, [ratio, low, high], &interval);
            let why = why_no_call(pair, [ratio, low, high], margin);
            format!("Unknown whether {what} is faster or slower than {than} ({figures}, {slots}{why})")
        }
    }
}

/// The verdict on a pair as a report tells it: [`verdict_sentence`], and before it of which requests it speaks where a headline
/// says that these are not all.
pub fn pair_sentence(verdict: &Verdict, pair: &PairVerdict, margin: f64, doubts: &[Doubt]) -> String {
    let sentence = verdict_sentence(pair, margin, is_lower_bound(pair, doubts));
    let fails = verdict
        .headlines
        .iter()
        .any(|told| told.kind == HeadlineKind::Failing && [&pair.target, &pair.baseline].contains(&&told.target));
    if fails && let Some(sentence) = successes(pair) {
        return sentence;
    }
    let before = match told_first(verdict, pair) {
        Some(HeadlineKind::TargetDied) => "Until then: ",
        Some(HeadlineKind::ContentWrong) => "With wrong content: ",
        Some(HeadlineKind::Failing) => "Of the requests that succeed: ",
        Some(HeadlineKind::RateNotReached) => "At the rates that were reached: ",
        _ => "",
    };
    format!("{before}{sentence}")
}

/// A call of the rate where requests fail: `B gives 0.800x as many good answers per second as A (...)`. That is no
/// slowness: a server that fails every fifth request at once is as fast as ever.
fn successes(pair: &PairVerdict) -> Option<String> {
    if pair.metric != Metric::Rate || !matches!(pair.call, Call::Faster | Call::Slower) {
        return None;
    }
    let known = |value: Option<f64>| value.filter(|v| v.is_finite() && *v > 0.0);
    let (ratio, low, high) = distinct(known(pair.ratio)?, known(pair.low), known(pair.high));
    let interval = low.zip(high).map_or_else(
        || "no interval".to_owned(),
        |(low, high)| format!("{} interval {low} to {high}", exact_percent(pair.confidence)),
    );
    Some(format!(
        "{} gives {ratio}x as many good answers per second as {} ({interval}, {})",
        clean(&pair.target),
        clean(&pair.baseline),
        plural(u64::from(pair.slots), "slot")
    ))
}

/// What has to be told before anything else of the two targets of a pair.
pub fn told_first(verdict: &Verdict, pair: &PairVerdict) -> Option<HeadlineKind> {
    let of = |name: &str| verdict.headline(name).map(|headline| headline.kind);
    of(&pair.target).into_iter().chain(of(&pair.baseline)).min()
}

/// The headlines of a verdict, safe to show.
pub(crate) fn headlines(verdict: &Verdict) -> impl Iterator<Item = String> {
    verdict.headlines.iter().map(|headline| crate::text::clean_whole(&headline.text))
}

/// Whether the ratio of a pair is a lower bound of the true one: the generator was the bottleneck on the faster of the
/// two, which could therefore have been faster still, and not on the slower one.
pub fn is_lower_bound(pair: &PairVerdict, doubts: &[Doubt]) -> bool {
    let saturated = |name: &str| {
        doubts.iter().any(|d| d.id == DoubtId::GeneratorSaturated && d.target.as_deref().is_none_or(|t| t == name))
    };
    match pair.call {
        Call::Slower => saturated(&pair.baseline) && !saturated(&pair.target),
        Call::Faster => saturated(&pair.target) && !saturated(&pair.baseline),
        Call::Equivalent | Call::Unknown => false,
    }
}

/// What is faster or slower.
fn subject(target: &str, metric: Metric) -> String {
    match response_time(metric) {
        None => target.to_owned(),
        Some(time) => format!("{target}'s {time}"),
    }
}

fn response_time(metric: Metric) -> Option<&'static str> {
    match metric {
        Metric::Rate => None,
        Metric::ResponseP50 => Some("median response time"),
        Metric::ResponseP99 => Some("99th percentile response time"),
    }
}

/// Ratio and interval of a pair that may well be equal, and of what: three decimals, since the question is how near one
/// they are.
fn judged_near_one(
    pair: &PairVerdict,
    [ratio, low, high]: [Option<f64>; 3],
    interval: &impl Fn(Option<&String>, Option<&String>) -> String,
) -> String {
    let shown = ratio.map_or_else(|| UNKNOWN.to_owned(), near_one);
    let (low, high) = (low.map(near_one), high.map(near_one));
    format!("{} {shown}, {}", ratio_of(pair), interval(low.as_ref(), high.as_ref()))
}

/// What the ratio of a pair is of, and which is divided by which: always the target by the baseline.
pub(crate) fn ratio_of(pair: &PairVerdict) -> String {
    let of = match pair.metric {
        Metric::Rate => "rate",
        Metric::ResponseP50 => "median",
        Metric::ResponseP99 => "99th percentile",
    };
    format!("{of} of {} over {}", clean(&pair.target), clean(&pair.baseline))
}

/// Why there is no call though the interval leaves out 1, or lies within the margin, which a reader would take for one.
fn why_no_call(pair: &PairVerdict, figures: [Option<f64>; 3], margin: f64) -> String {
    let [Some(ratio), Some(low), Some(high)] = figures else { return String::new() };
    let log_margin = margin.max(0.0).ln_1p();
    if [low, high].iter().all(|bound| bound.ln().abs() <= log_margin) {
        format!("; that is within {}, but a doubt keeps it from being called equivalent", exact_percent(margin))
    } else if low <= 1.0 && 1.0 <= high {
        String::new()
    } else if ratio.ln().abs() <= log_margin {
        format!("; a difference within {} is not called", exact_percent(margin))
    } else {
        // Which of the two it is, the verdict does not hold.
        let calling = exact_percent(call_confidence(pair.confidence));
        format!("; slower or faster is called at {calling}, and not where a doubt may have made the difference")
    }
}

/// Ratio and interval in three digits, or in as many as it takes near one: `1.01x slower (1.00 to 1.02)` would read as
/// if the two could be equal.
fn distinct(ratio: f64, low: Option<f64>, high: Option<f64>) -> (String, Option<String>, Option<String>) {
    let values = [Some(ratio), low, high];
    let near_one = values.iter().flatten().all(|v| (0.5..2.0).contains(v));
    let show = |decimals: Option<usize>| {
        values.map(|v| {
            v.map(|v| match decimals {
                Some(decimals) => format!("{v:.decimals$}"),
                None => three_digits(v),
            })
        })
    };
    let misleading = |shown: &[Option<String>; 3]| {
        let looks_like_one =
            shown.iter().flatten().any(|text| text.starts_with("1.") && text[2..].bytes().all(|b| b == b'0'));
        looks_like_one || (shown[1].is_some() && shown[1] == shown[2])
    };
    let mut shown = show(None);
    for decimals in [3, 4] {
        if near_one && misleading(&shown) {
            shown = show(Some(decimals));
        }
    }
    let [ratio, low, high] = shown;
    (ratio.unwrap_or_default(), low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(metric: Metric, call: Call, figures: [f64; 3]) -> PairVerdict {
        let [ratio, low, high] = figures.map(Some);
        let (baseline, target) = ("A".to_owned(), "B".to_owned());
        PairVerdict { baseline, target, metric, call, ratio, low, high, confidence: 0.95, slots: 24, by_whole: false }
    }

    fn said(pair: &PairVerdict) -> String {
        verdict_sentence(pair, 0.02, false)
    }

    #[test]
    fn what_is_within_the_margin_and_not_called_equivalent_says_why() {
        assert_eq!(
            said(&pair(Metric::Rate, Call::Unknown, [0.993, 0.99, 0.996])),
            "Unknown whether B is faster or slower than A (rate of B over A 0.993, 95 % interval 0.990 to 0.996, 24 slots; that is \
             within 2 %, but a doubt keeps it from being called equivalent)"
        );
    }

    #[test]
    fn rates() {
        assert_eq!(
            said(&pair(Metric::Rate, Call::Slower, [1.0 / 3.04, 1.0 / 3.11, 1.0 / 2.97])),
            "B is 3.04x slower than A (95 % interval 2.97 to 3.11, 24 slots)"
        );
        assert_eq!(
            said(&pair(Metric::Rate, Call::Faster, [1.25, 1.21, 1.3])),
            "B is 1.25x faster than A (95 % interval 1.21 to 1.30, 24 slots)"
        );
        assert_eq!(
            said(&pair(Metric::Rate, Call::Slower, [1.0 / 1.05, 1.0 / 1.07, 1.0 / 1.03])),
            "B is 1.05x slower than A (95 % interval 1.03 to 1.07, 24 slots)"
        );
    }

    #[test]
    fn an_interval_beside_one_does_not_read_as_if_it_held_one() {
        assert_eq!(
            said(&pair(Metric::Rate, Call::Faster, [1.012, 1.004, 1.02])),
            "B is 1.012x faster than A (95 % interval 1.004 to 1.020, 24 slots)"
        );
    }

    #[test]
    fn response_times_name_what_they_are() {
        assert_eq!(
            said(&pair(Metric::ResponseP50, Call::Slower, [1.3, 1.25, 1.34])),
            "B's median response time is 1.30x that of A, so slower (95 % interval 1.25 to 1.34, 24 slots)"
        );
        assert_eq!(
            said(&pair(Metric::ResponseP99, Call::Faster, [0.8, 0.75, 0.85])),
            "B's 99th percentile response time is 0.800x that of A, so faster (95 % interval 0.750 to 0.850, 24 slots)"
        );
        assert_eq!(
            said(&pair(Metric::ResponseP50, Call::Unknown, [1.1, 0.9, 1.3])),
            "Unknown whether B's median response time is faster or slower than that of A (median of B over A 1.100, 95 % interval \
             0.900 to 1.300, 24 slots)"
        );
    }

    #[test]
    fn a_large_gap_without_an_interval_is_told_as_what_it_looks_like() {
        let few = |metric, ratio| {
            let pair =
                PairVerdict { low: None, high: None, slots: 4, ..pair(metric, Call::Unknown, [ratio, 1.0, 1.0]) };
            said(&pair)
        };
        assert_eq!(
            few(Metric::Rate, 0.004),
            "Unknown whether B is faster or slower than A: its rate looks 250x lower, but there is no interval (4 slots)"
        );
        assert_eq!(
            few(Metric::ResponseP50, 321.4),
            "Unknown whether B's median response time is faster or slower than that of A: it looks 321x as long, but there is \
             no interval (4 slots)"
        );
        assert_eq!(
            few(Metric::Rate, 1.1),
            "Unknown whether B is faster or slower than A (rate of B over A 1.100, no interval, 4 slots)"
        );
    }

    #[test]
    fn equivalent_and_unknown() {
        assert_eq!(
            said(&pair(Metric::Rate, Call::Equivalent, [1.003, 0.996, 1.009])),
            "B and A are equivalent: any difference is within 2 % (rate of B over A 1.003, 95 % interval 0.996 to 1.009, 24 slots)"
        );
        assert_eq!(
            said(&pair(Metric::Rate, Call::Unknown, [0.97, 0.9, 1.05])),
            "Unknown whether B is faster or slower than A (rate of B over A 0.970, 95 % interval 0.900 to 1.050, 24 slots)"
        );
        assert_eq!(
            said(&pair(Metric::Rate, Call::Unknown, [0.97, 0.95, 0.99])),
            "Unknown whether B is faster or slower than A (rate of B over A 0.970, 95 % interval 0.950 to 0.990, 24 slots; slower \
             or faster is called at 99 %, and not where a doubt may have made the difference)"
        );
        assert_eq!(
            said(&pair(Metric::Rate, Call::Unknown, [0.985, 0.97, 0.995])),
            "Unknown whether B is faster or slower than A (rate of B over A 0.985, 95 % interval 0.970 to 0.995, 24 slots; a \
             difference within 2 % is not called)"
        );
        let nothing =
            PairVerdict { ratio: None, low: None, high: None, slots: 1, ..pair(Metric::Rate, Call::Unknown, [1.0; 3]) };
        assert_eq!(said(&nothing), "Unknown whether B is faster or slower than A: there is no ratio (1 slot)");
        let no_interval = PairVerdict { low: None, high: None, ..pair(Metric::Rate, Call::Unknown, [0.5; 3]) };
        assert_eq!(
            said(&no_interval),
            "Unknown whether B is faster or slower than A (rate of B over A 0.500, no interval, 24 slots)"
        );
        // Figures that are none are not shown as figures.
        assert_eq!(
            said(&pair(Metric::Rate, Call::Slower, [f64::NAN; 3])),
            "B is slower than A, by how much is not known (24 slots)"
        );
    }

    #[test]
    fn a_saturated_generator_makes_it_a_bound() {
        let slower = pair(Metric::Rate, Call::Slower, [0.5, 0.48, 0.52]);
        let doubt = |target: Option<&str>| Doubt {
            id: DoubtId::GeneratorSaturated,
            target: target.map(str::to_owned),
            text: String::new(),
        };
        assert!(is_lower_bound(&slower, &[doubt(Some("A"))]));
        assert!(!is_lower_bound(&slower, &[doubt(Some("B"))]));
        assert!(!is_lower_bound(&slower, &[doubt(None)]));
        assert_eq!(
            verdict_sentence(&slower, 0.02, true),
            "B is at least 2.00x slower than A (95 % interval 1.92 to 2.08, 24 slots; the generator, not A, was the \
             limit)"
        );
    }
}
