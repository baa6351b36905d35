//! Highest rates against each other, in one sentence for each pair.

use crate::figures::{exact_percent, near_one, rate, three_digits};
use crate::text::clean;
use duel_model::{Call, Contest, HeadToHead, Promise};

/// What is known of a pair, without a full stop: `b's highest rate that keeps p99<50ms is 0.500x that of a, so slower (...)`.
pub(crate) fn sentence(contest: &Contest, promises: &[Promise], margin: f64) -> String {
    let (target, baseline) = (clean(&contest.target), clean(&contest.baseline));
    let what = format!("{target}'s highest rate that keeps {}", promised(promises));
    let mut known: Vec<String> = Vec::new();
    match contest.call {
        Call::Slower | Call::Faster => {
            let (word, end, bound) = if contest.call == Call::Slower {
                ("slower", contest.high, "at most ")
            } else {
                ("faster", contest.low, "at least ")
            };
            let times = match (contest.ratio, end) {
                (Some(ratio), _) => format!("{}x that of {baseline}", three_digits(ratio)),
                (None, Some(end)) => format!("{bound}{}x that of {baseline}", three_digits(end)),
                (None, None) => format!("another one than that of {baseline}"),
            };
            // Where the ratio is not known, the sentence has the end that is.
            known.extend(contest.ratio.and_then(|_| span(contest)));
            known.extend(contest.head_to_head.map(|seen| heads(&seen, contest)));
            format!("{what} is {times}, so {word} ({})", known.join("; "))
        }
        Call::Equivalent | Call::Unknown => {
            known.extend(contest.ratio.map(|ratio| format!("rate of {target} over {baseline} {}", near_one(ratio))));
            known.extend(span(contest));
            known.extend(why_no_call(contest, margin));
            if known.is_empty() {
                known.push("their searches leave the ratio open".to_owned());
            }
            format!("Unknown whether {what} is higher or lower than that of {baseline} ({})", known.join("; "))
        }
    }
}

/// Promises as they are told: `p99<50ms and errors<0.1%`.
pub(crate) fn promised(promises: &[Promise]) -> String {
    promises.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}

/// Between which values the ratio lies, if every attempt told the truth.
fn span(contest: &Contest) -> Option<String> {
    let said = match (contest.low.map(near_one), contest.high.map(near_one)) {
        (Some(low), Some(high)) => format!("{low} to {high}"),
        (Some(low), None) => format!("{low} at least"),
        (None, Some(high)) => format!("{high} at most"),
        (None, None) => return None,
    };
    // By simulation the truth lies outside of it in one run of three or more where a server's speed wanders.
    Some(format!("bracket {said}, no confidence interval"))
}

fn heads(seen: &HeadToHead, contest: &Contest) -> String {
    let (target, baseline) = (clean(&contest.target), clean(&contest.baseline));
    let (first, first_count, other, other_count) = if seen.baseline_alone >= seen.target_alone {
        (baseline, seen.baseline_alone, target, seen.target_alone)
    } else {
        (target, seen.target_alone, baseline, seen.baseline_alone)
    };
    let mut text = format!(
        "head to head at {} {first} alone kept it in {first_count} of {}",
        rate(seen.rate_per_s),
        crate::text::plural(u64::from(seen.pairs()), "pair")
    );
    if other_count > 0 {
        text.push_str(&format!(", {other} alone in {other_count}"));
    }
    text
}

/// Why there is no call where the brackets lie apart.
fn why_no_call(contest: &Contest, margin: f64) -> Option<String> {
    if let Some(seen) = &contest.head_to_head {
        let heads = heads(seen, contest);
        let is_agreed = seen.baseline_alone.min(seen.target_alone) == 0
            && seen.baseline_alone.max(seen.target_alone) >= HeadToHead::PAIRS_NEEDED;
        return Some(if is_agreed {
            // Withheld: one of them fails more requests, or died.
            format!("{heads}, which failed requests may have made")
        } else {
            format!("{heads}, and a call takes {} that agree and none that does not", HeadToHead::PAIRS_NEEDED)
        });
    }
    let is_apart = contest.high.is_some_and(|high| high <= 1.0) || contest.low.is_some_and(|low| low >= 1.0);
    match contest.ratio {
        Some(ratio) if is_apart && ratio.ln().abs() <= margin.max(0.0).ln_1p() => {
            Some(format!("a difference within {} is not called", exact_percent(margin)))
        }
        _ if is_apart => Some("the run ended before both were tried at one rate in turn".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contest(call: Call, figures: [Option<f64>; 3], seen: Option<[u32; 3]>) -> Contest {
        let [ratio, low, high] = figures;
        let seen = seen.map(|[baseline_alone, target_alone, alike]| HeadToHead {
            rate_per_s: 707.1,
            baseline_alone,
            target_alone,
            alike,
        });
        Contest { baseline: "a".into(), target: "b".into(), call, ratio, low, high, head_to_head: seen }
    }

    fn said(contest: &Contest) -> String {
        sentence(contest, &Promise::parse_all("p99<50ms,errors<1%").unwrap_or_default(), 0.02)
    }

    #[test]
    fn what_both_did_at_one_rate_makes_the_call_and_the_brackets_tell_by_how_much() {
        for (call, figures, seen, text) in [
            (
                Call::Slower,
                [Some(0.4), Some(0.392), Some(0.408)],
                Some([8, 0, 1]),
                "b's highest rate that keeps p99<50ms and errors<1% is 0.400x that of a, so slower (bracket 0.392 to \
                 0.408, no confidence interval; head to head at 707/s a alone kept it in 8 of 9 pairs)",
            ),
            (
                Call::Faster,
                [None, Some(1.5), None],
                Some([0, 8, 0]),
                "b's highest rate that keeps p99<50ms and errors<1% is at least 1.50x that of a, so faster (head to head \
                 at 707/s b alone kept it in 8 of 8 pairs)",
            ),
            (
                Call::Unknown,
                [Some(0.9), Some(0.88), Some(0.92)],
                Some([5, 1, 0]),
                "Unknown whether b's highest rate that keeps p99<50ms and errors<1% is higher or lower than that of a \
                 (rate of b over a 0.900; bracket 0.880 to 0.920, no confidence interval; head to head at 707/s a alone kept it in \
                 5 of 6 pairs, b alone in 1, and a call takes 8 that agree and none that does not)",
            ),
            (
                Call::Unknown,
                [Some(1.003), Some(0.983), Some(1.023)],
                None,
                "Unknown whether b's highest rate that keeps p99<50ms and errors<1% is higher or lower than that of a \
                 (rate of b over a 1.003; bracket 0.983 to 1.023, no confidence interval)",
            ),
            (
                Call::Unknown,
                [None, None, Some(0.7)],
                None,
                "Unknown whether b's highest rate that keeps p99<50ms and errors<1% is higher or lower than that of a \
                 (bracket 0.700 at most, no confidence interval; the run ended before both were tried at one rate \
                 in turn)",
            ),
            (
                Call::Unknown,
                [Some(0.985), Some(0.97), Some(1.0)],
                None,
                "Unknown whether b's highest rate that keeps p99<50ms and errors<1% is higher or lower than that of a \
                 (rate of b over a 0.985; bracket 0.970 to 1.000, no confidence interval; a difference within 2 % is not called)",
            ),
            (
                Call::Unknown,
                [None; 3],
                None,
                "Unknown whether b's highest rate that keeps p99<50ms and errors<1% is higher or lower than that of a \
                 (their searches leave the ratio open)",
            ),
        ] {
            assert_eq!(said(&contest(call, figures, seen)), text);
        }
    }
}
