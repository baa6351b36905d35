//! Progress as lines that programs read: how many requests are done, twice a second.

use duel_model::{MILLISECOND_NS, Nanos, Slot};

/// Time between two lines.
const STEP_NS: Nanos = 500 * MILLISECOND_NS;

/// When the next line is due. Lines come with the first look after each whole half second, so that being late once does
/// not make all others late.
#[derive(Debug)]
pub(crate) struct ProgressLog {
    next_ns: Nanos,
}

impl ProgressLog {
    /// The first line comes after half a second.
    pub(crate) fn new() -> Self {
        Self { next_ns: STEP_NS }
    }

    /// The line that is due, if one is, when so many requests were done after so much time.
    pub(crate) fn line(&mut self, elapsed_ns: Nanos, done: u64) -> Option<String> {
        if elapsed_ns < self.next_ns {
            return None;
        }
        self.next_ns = (elapsed_ns / STEP_NS + 1) * STEP_NS;
        Some(requests_done(done))
    }

    /// The last line, when all load is over.
    pub(crate) fn last_line(slot: &Slot) -> String {
        let tally = &slot.tally;
        if tally.in_flight + tally.unstarted == 0 {
            "All requests done.".to_owned()
        } else {
            requests_done(tally.ok + tally.failed_total())
        }
    }

    /// A line with the time in front, in seconds.
    pub(crate) fn stamped(elapsed_ns: Nanos, line: &str) -> String {
        format!("{:.4} {line}", elapsed_ns as f64 / 1e9)
    }
}

fn requests_done(done: u64) -> String {
    format!("{done} requests done.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_with_the_first_look_after_each_half_second() {
        let mut log = ProgressLog::new();
        let ms = |ms: u64| ms * MILLISECOND_NS;
        let looks =
            [(100, 9), (499, 40), (503, 51), (999, 230), (1_002, 235), (2_700, 900), (2_900, 950), (3_000, 960)];
        let lines: Vec<String> = looks
            .into_iter()
            .filter_map(|(at_ms, done)| Some(ProgressLog::stamped(ms(at_ms), &log.line(ms(at_ms), done)?)))
            .collect();
        assert_eq!(
            lines,
            [
                "0.5030 51 requests done.",
                "1.0020 235 requests done.",
                "2.7000 900 requests done.",
                "3.0000 960 requests done."
            ]
        );
    }
}
