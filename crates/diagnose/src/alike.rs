//! Whether what a probe sent and got was the same as before, but for the one thing that it changed.
//!
//! A server may answer one change with another one: a suite of TLS 1.2 names who signs, so forcing it chooses the
//! certificate as well; another cache may have an answer of another size. What a flip takes away is then not what it was
//! made for. And a list of requests that is not gone through leaves each side, and each probe, with requests of its own.

use crate::gap::{Gap, View};
use crate::probes::Kind;
use duel_model::{Declaration, Facts, TargetObservation, Value, format_bytes, sanitize_line, unit, web};

/// A fact in words; `None` where it is not known, or says nothing of the requests that count.
fn told(declared: &Declaration, seen: &Facts) -> Option<String> {
    let is_size = unit(declared.name) == Some("bytes");
    let told = seen.value(declared.name).map(|value| match value {
        Value::Number(bytes) if is_size => format_bytes(*bytes as f64),
        value => value.to_string(),
    });
    if !declared.is_of_answer {
        return told;
    }
    // One answer of many was looked at, and it may be one of the few that failed.
    seen.count(web::STATUS).filter(|status| *status < 400)?;
    told.or_else(|| Some("none".to_owned()))
}

/// A list that was gone through so many times at least: what is left of a further round is then no more than a quarter of
/// what was sent.
const LEAST_ROUNDS: u64 = 3;

/// Of the requests so many may connect, or resume, that did not before, or the other way round: where a slot holds a few
/// ops, its first ones make as much of a difference.
const MOST_CONNECT: f64 = 0.5;

impl Gap<'_> {
    /// What a probe found changed against the comparison that it was not to change, in words.
    pub(crate) fn changed_besides(&self, kind: Kind, index: usize, seen: &TargetObservation) -> Option<String> {
        let differ = self.case.http().is_some_and(|http| http.requests.differ());
        // Different requests have different answers.
        let is_held = |declared: &&Declaration| declared.is_held && !(differ && declared.is_of_answer);
        Declaration::all().filter(is_held).filter(|declared| !kind.entry.changes.contains(&declared.name)).find_map(
            |declared| {
                let before = self.fact(index, |negotiated| told(declared, negotiated))?;
                let now = told(declared, seen.negotiated.as_ref()?)?;
                (before != now).then(|| {
                    format!(
                        "came with another {}: {} instead of {}",
                        declared.noun,
                        sanitize_line(&now),
                        sanitize_line(&before)
                    )
                })
            },
        )
    }

    /// The same of what is measured rather than negotiated, against what the flip is held against.
    pub(crate) fn measured_besides(&self, kind: Kind, reference: &View<'_>, view: &View<'_>) -> Option<String> {
        let sides = [(self.slow, reference.slow, view.slow), (self.fast, reference.fast, view.fast)];
        sides.into_iter().find_map(|(index, before, now)| {
            let why = self.bytes_besides(kind, before, now).or_else(|| connecting_besides(kind, before, now))?;
            Some(format!("{} {why}", self.name(index)))
        })
    }

    fn bytes_besides(&self, kind: Kind, before: &TargetObservation, now: &TargetObservation) -> Option<String> {
        if kind.entry.changes_size || self.case.http().is_some_and(|http| http.requests.differ()) {
            return None;
        }
        let [before, now] = [before, now].map(|seen| seen.body_bytes_per_op.filter(|bytes| *bytes > 0.0));
        let (before, now) = before.zip(now)?;
        ((now / before).ln().abs() > self.case.margin_log())
            .then(|| format!("sent {} instead of {}", format_bytes(now), format_bytes(before)))
    }

    /// Why requests that differ from each other are not the same on both sides and in each probe; `None` where they are, as
    /// far as lists go. Values that are drawn, or counted on, scatter like everything else.
    pub(crate) fn other_requests(&self, slow: &TargetObservation, fast: &TargetObservation) -> Option<String> {
        let round = self.case.round_ops?;
        let sides = [(self.slow, slow), (self.fast, fast)].map(|(index, seen)| (index, seen.ok + seen.failed));
        let (index, sent) = sides.into_iter().min_by_key(|(_, sent)| *sent)?;
        (sent < LEAST_ROUNDS * round).then(|| {
            format!(
                "the requests were not the same everywhere: of {round} that differ, {sent} were sent to {}, and not \
                 each of them several times",
                self.name(index)
            )
        })
    }
}

fn connecting_besides(kind: Kind, before: &TargetObservation, now: &TargetObservation) -> Option<String> {
    let moved = |before: Option<f64>, now: Option<f64>| {
        before.zip(now).filter(|(before, now)| (before - now).abs() > MOST_CONNECT)
    };
    if !kind.entry.changes_reuse {
        if let Some((before, now)) = moved(before.reused_share, now.reused_share) {
            let [before, now] = [before, now].map(|share| 100.0 * share);
            return Some(format!("used connections again for {now:.0} % of the requests instead of {before:.0} %"));
        }
        // Where hardly anybody connects, few handshakes make any share.
        let connects = |seen: &TargetObservation| seen.reused_share.is_some_and(|share| share < MOST_CONNECT);
        if !kind.entry.changes_resumption
            && connects(before)
            && connects(now)
            && let Some((before, now)) = moved(before.resumed_share, now.resumed_share)
        {
            let [before, now] = [before, now].map(|share| 100.0 * share);
            return Some(format!("resumed {now:.0} % of the sessions instead of {before:.0} %"));
        }
    }
    None
}
