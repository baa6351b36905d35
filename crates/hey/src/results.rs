//! What came of all requests, as hey counts it. Its memory stays bounded, however many there are.

use duel_load::OpRecord;
use duel_model::web::phase;
use duel_model::{Distribution, Nanos, Tally, sanitize_line};
use std::collections::BTreeMap;

/// Results so far.
#[derive(Debug, Default)]
pub struct Results {
    /// Complete responses, whatever their status.
    pub(crate) responses: u64,
    /// Requests without a complete response.
    pub failures: u64,
    /// Bytes of their bodies as transferred, chunk framing left out.
    pub(crate) body_bytes: u64,
    /// When the last request was over, since the start.
    pub last_end_ns: Nanos,
    pub(crate) response: Times,
    pub(crate) details: Parts<Times>,
    pub(crate) statuses: BTreeMap<u16, u64>,
    pub(crate) errors: BTreeMap<String, u64>,
    spread: Distribution,
    /// Response times that are not in `spread` yet.
    new: Vec<Nanos>,
}

/// The parts of a request in hey's order and division; a part that it does not go through takes no time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Parts<T> {
    /// Look-up, connection and handshake together.
    pub(crate) dialup: T,
    pub(crate) lookup: T,
    pub(crate) write: T,
    pub(crate) wait: T,
    pub(crate) read: T,
}

/// Sum and extremes of lengths of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Times {
    count: u64,
    sum_ns: u128,
    min_ns: Nanos,
    max_ns: Nanos,
}

/// Most different errors that are told apart; a server could make up as many as there are requests.
const MOST_ERRORS: usize = 50;
const OTHER_ERRORS: &str = "other errors";
/// Response times are collected this long before they are sorted in.
const BATCH: usize = 1 << 16;
/// Leading bits of a response time that are kept: 30 ppm, so that memory is bounded and no printed figure changes.
const KEPT_BITS: u32 = 16;

impl Parts<Nanos> {
    /// Those of one request.
    pub(crate) fn of(op: &OpRecord) -> Self {
        let spent = |phase| op.phases.get(phase).unwrap_or(0);
        Self {
            dialup: spent(phase::DNS) + spent(phase::CONNECT) + spent(phase::TLS),
            lookup: spent(phase::DNS),
            write: spent(phase::SEND),
            wait: spent(phase::WAIT),
            read: spent(phase::RECEIVE),
        }
    }
}

impl Results {
    /// One more request is over.
    pub fn add(&mut self, op: &OpRecord) {
        self.last_end_ns = self.last_end_ns.max(op.end_ns);
        if let Some(failure) = &op.failure {
            self.fail(&failure.text, 1);
            return;
        }
        self.responses += 1;
        self.body_bytes += op.body_bytes;
        if let Some(status) = op.status {
            *self.statuses.entry(status).or_default() += 1;
        }
        self.response.add(op.response_ns());
        let Parts { dialup, lookup, write, wait, read } = Parts::of(op);
        self.details.dialup.add(dialup);
        self.details.lookup.add(lookup);
        self.details.write.add(write);
        self.details.wait.add(wait);
        self.details.read.add(read);
        self.new.push(rounded(op.response_ns()));
        if self.new.len() >= BATCH {
            self.sort_in();
        }
    }

    /// The load is over: what was left unanswered has failed, unless the user cut it.
    pub fn finish(&mut self, tally: &Tally, is_cut: bool) {
        self.sort_in();
        if !is_cut {
            self.fail("no answer until the end", tally.in_flight);
            self.fail("not sent: no connection was free until the end", tally.unstarted);
        }
    }

    /// All requests that are over.
    pub(crate) fn total(&self) -> u64 {
        self.responses + self.failures
    }

    /// Response time that this share of responses does not exceed.
    pub(crate) fn quantile_ns(&self, share: f64) -> Option<Nanos> {
        self.spread.quantile_ns(share)
    }

    /// Number of responses with at most each of these response times, which rise.
    pub(crate) fn counts_up_to(&self, marks_ns: &[Nanos]) -> Vec<u64> {
        let mut buckets = self.spread.buckets().iter().peekable();
        let mut count = 0;
        let up_to = |&mark_ns: &Nanos| {
            while let Some(&(_, more)) = buckets.next_if(|&&(value_ns, _)| value_ns <= rounded(mark_ns)) {
                count += more;
            }
            count
        };
        marks_ns.iter().map(up_to).collect()
    }

    fn fail(&mut self, text: &str, count: u64) {
        if count == 0 {
            return;
        }
        self.failures += count;
        let text = sanitize_line(text);
        let is_told_apart = self.errors.contains_key(&text) || self.errors.len() < MOST_ERRORS;
        *self.errors.entry(if is_told_apart { text } else { OTHER_ERRORS.to_owned() }).or_default() += count;
    }

    fn sort_in(&mut self) {
        self.spread.merge(&Distribution::from_values(self.new.drain(..)));
    }
}

impl Times {
    fn add(&mut self, spent_ns: Nanos) {
        self.min_ns = if self.count == 0 { spent_ns } else { self.min_ns.min(spent_ns) };
        self.max_ns = self.max_ns.max(spent_ns);
        self.count += 1;
        self.sum_ns += u128::from(spent_ns);
    }

    /// Mean, shortest and longest; `None` where there is nothing.
    pub(crate) fn figures_ns(&self) -> Option<(f64, Nanos, Nanos)> {
        (self.count > 0).then(|| (self.sum_ns as f64 / self.count as f64, self.min_ns, self.max_ns))
    }
}

/// The value without its bits beyond [`KEPT_BITS`].
fn rounded(value_ns: Nanos) -> Nanos {
    let dropped = (Nanos::BITS - value_ns.leading_zeros()).saturating_sub(KEPT_BITS);
    value_ns >> dropped << dropped
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use duel_load::{Failure, PhaseTimes};
    use duel_model::web::failure;

    /// A response that took so long, 1 µs of which for connecting.
    pub(crate) fn response(status: u16, response_ns: Nanos, body_bytes: u64) -> OpRecord {
        let mut phases = PhaseTimes::NONE;
        for (phase, spent_ns) in
            [(phase::CONNECT, 1_000), (phase::SEND, 20), (phase::WAIT, response_ns - 1_050), (phase::RECEIVE, 30)]
        {
            phases.set(phase, spent_ns);
        }
        OpRecord {
            due_ns: 5,
            start_ns: 7,
            end_ns: 5 + response_ns,
            phases,
            status: Some(status),
            body_bytes,
            failure: None,
        }
    }

    pub(crate) fn failure(text: &str) -> OpRecord {
        let failure = Some(Box::new(Failure { kind: failure::RESET, text: text.to_owned() }));
        OpRecord { failure, status: None, ..response(200, 9_000, 0) }
    }

    pub(crate) fn results(ops: impl IntoIterator<Item = OpRecord>) -> Results {
        let mut results = Results::default();
        ops.into_iter().for_each(|op| results.add(&op));
        results.finish(&Tally::default(), false);
        results
    }

    #[test]
    fn sums_are_exact_beyond_a_million() {
        // hey's own average divides the sum of all by the first million.
        let count = 1_200_000;
        let results = results((0..count).map(|number| response(200, 2_000_000 + number % 2, 10)));
        assert_eq!((results.responses, results.body_bytes, results.total()), (count, 10 * count, count));
        assert_eq!(results.response.figures_ns(), Some((2_000_000.5, 2_000_000, 2_000_001)));
        assert_eq!(results.details.dialup.figures_ns(), Some((1_000.0, 1_000, 1_000)));
        assert!(results.spread.buckets().len() <= 2);
    }

    #[test]
    fn quantiles_and_counts_cover_all_responses() {
        let results = results((1..=1000).map(|ms| response(if ms % 4 == 0 { 503 } else { 200 }, ms * 1_000_000, 0)));
        for (share, ms) in [(0.1, 100.0), (0.5, 500.0), (0.99, 990.0)] {
            let got = results.quantile_ns(share).unwrap() as f64 / 1e6;
            assert!((got - ms).abs() < ms * 1e-4, "{share} {got}");
        }
        assert_eq!(results.counts_up_to(&[1_000_000, 250_000_000, 1_000_000_000]), [1, 250, 1000]);
        assert_eq!(results.statuses, BTreeMap::from([(200, 750), (503, 250)]));
    }

    #[test]
    fn failures_have_no_times_and_are_told_apart_up_to_a_limit() {
        let all = (0..200).map(|number| failure(&format!("error {number}\x1b[2J")));
        let results = results(all.chain([failure("error 7\x1b[2J"), response(200, 9_000, 1)]));
        assert_eq!((results.responses, results.failures, results.total()), (1, 201, 202));
        assert_eq!(results.errors.len(), MOST_ERRORS + 1);
        assert_eq!((results.errors["error 7\u{fffd}[2J"], results.errors[OTHER_ERRORS]), (2, 150));
        assert_eq!(results.response.figures_ns().unwrap().2, 9_000);
    }

    #[test]
    fn what_got_no_answer_has_failed_unless_the_user_cut_it() {
        let tally = Tally { in_flight: 3, unstarted: 2, ..Tally::default() };
        for (is_cut, failures) in [(false, 5), (true, 0)] {
            let mut results = Results::default();
            results.finish(&tally, is_cut);
            assert_eq!(results.failures, failures);
            assert_eq!(results.response.figures_ns(), None, "unknown is not 0");
        }
    }

    #[test]
    fn rounding_keeps_five_digits() {
        for value_ns in [0, 1, 65_535, 65_537, 123_456_789, 9_876_543_210, u64::MAX] {
            let kept = rounded(value_ns);
            assert!(kept <= value_ns && (value_ns - kept) as f64 <= value_ns as f64 / 32_768.0, "{value_ns} {kept}");
        }
    }
}
