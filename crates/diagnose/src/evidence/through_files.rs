//! Servers that write what they answer with to a file and read it from there again, as far as their calls tell.
//!
//! Whoever hands an answer on reads each byte once and writes it once. With a file in between each is written twice, and read twice.
//! Which of the calls for sockets are counted depends on the program (`writev`, `sendfile` and `readv` are, `send` and `recv` are not), so
//! that a side is held against the other one as well. What is written to a file on a disk is told apart: as pages that have to be written
//! back. Of a file in memory it is not.

use crate::gap::{Demands, Gap};
use duel_model::{HostDemand, format_bytes};

/// Less than this share of what is answered with is a log, or what some answers are held back by.
const NOTEWORTHY: f64 = 0.25;
/// Of what is written to a file so much at least is read from there again; a log, or a copy for somebody else, is not.
const READ_AGAIN: f64 = 0.5;

/// Bytes that a side's server writes to files and reads by counted calls for each byte of an answer.
#[derive(Debug, Clone, Copy)]
struct Moved {
    answer_bytes: f64,
    written: f64,
    read: f64,
    /// To be written to disks, for each byte of the answer.
    to_disk: f64,
}

impl Moved {
    fn of(gap: &Gap<'_>, index: usize, demand: &HostDemand) -> Option<Self> {
        let answer_bytes = gap.case.comparison.get(index)?.bytes_in_per_op.filter(|bytes| *bytes > 0.0)?;
        let per_byte = |key: &str| Some(demand.per_op(key)? / answer_bytes);
        let written = per_byte("workers.written_chars_bytes")?;
        Some(Self {
            answer_bytes,
            written,
            read: per_byte("workers.read_chars_bytes")?,
            // A line of a log is counted as the page that it lies on, which is more than a small answer.
            to_disk: per_byte("workers.disk_written_bytes")?.min(written),
        })
    }

    /// The share of an answer that goes to files, as far as this side alone tells: all beyond what is sent.
    fn to_files(self) -> f64 {
        self.to_disk.max(self.written - 1.0)
    }
}

/// What both sides' servers do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThroughFiles {
    slow: Moved,
    fast: Moved,
}

impl ThroughFiles {
    /// `None` where it is not counted on both sides.
    pub(crate) fn of(gap: &Gap<'_>, demands: &Demands<'_>) -> Option<Self> {
        let slow = Moved::of(gap, gap.slow, demands.slow)?;
        let fast = Moved::of(gap, gap.fast, demands.fast?)?;
        Some(Self { slow, fast })
    }

    /// By how much the slow side has more of its answers in files: no more than it shows alone, or beside the other one.
    fn further_share(&self) -> f64 {
        let beside = (self.slow.to_disk - self.fast.to_disk).max(self.slow.written - self.fast.written);
        self.slow.to_files().min(beside)
    }

    /// Bytes of each answer that the slow side has in files beyond the fast one.
    pub(crate) fn further_bytes(&self) -> f64 {
        self.further_share().max(0.0) * self.slow.answer_bytes
    }

    /// That a part of the slow side's answers worth speaking of goes to files, and of the fast side's no such part.
    pub(crate) fn are_written(&self) -> bool {
        self.further_share() >= NOTEWORTHY
    }

    /// That this is read from there again.
    pub(crate) fn are_read_again(&self) -> bool {
        self.slow.read - self.fast.read >= READ_AGAIN * self.further_share()
    }

    /// That neither shows any: not alone, and the slow side not beside the fast one.
    pub(crate) fn are_not_seen(&self) -> bool {
        let beside = (self.slow.to_disk - self.fast.to_disk).max(self.slow.written - self.fast.written);
        beside < NOTEWORTHY && [self.slow, self.fast].iter().all(|moved| moved.to_files() < NOTEWORTHY)
    }

    pub(crate) fn told(&self, gap: &Gap<'_>) -> String {
        let of = |name: String, moved: Moved| {
            let [answer, written, read, to_disk] =
                [1.0, moved.written, moved.read, moved.to_disk].map(|times| format_bytes(times * moved.answer_bytes));
            format!(
                "for each answer of {answer} {name}'s server writes {written} ({to_disk} of it to files on disks) and reads {read}"
            )
        };
        format!("{}; {}", of(gap.slow_name(), self.slow), of(gap.fast_name(), self.fast))
    }
}

/// That what the slow side's server writes may be its answers, in the words that keep another cause open.
pub(crate) fn may_be_answers(gap: &Gap<'_>, demands: &Demands<'_>) -> Option<String> {
    // What is written and not read again is a log.
    let files = ThroughFiles::of(gap, demands).filter(|files| files.are_written() && files.are_read_again())?;
    Some(format!("{}: that may be the answers, which go through files there", files.told(gap)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(written: f64, read: f64, to_disk: f64) -> Moved {
        Moved { answer_bytes: 1e5, written, read, to_disk }
    }

    #[test]
    fn answers_in_files_are_written_twice_and_read_twice() {
        let files = |slow, fast| ThroughFiles { slow, fast };
        // As counted of nginx: by writev and readv, and through its cache.
        let plain = moved(1.0, 0.99, 0.0);
        let cached = files(moved(2.0, 1.99, 1.02), plain);
        assert!(cached.are_written() && cached.are_read_again() && !cached.are_not_seen());
        assert!((cached.further_bytes() - 1.02e5).abs() < 1.0, "{}", cached.further_bytes());
        // In memory.
        assert!(files(moved(2.0, 2.0, 0.0), plain).are_written());
        // Neither.
        let none = files(plain, plain);
        assert!(!none.are_written() && none.are_not_seen() && none.further_bytes() == 0.0);
        // Sent by calls that are not counted on the fast side, which says nothing of files; but a file in memory may be meant.
        let other = files(plain, moved(0.0, 0.0, 0.0));
        assert!(!other.are_written() && !other.are_not_seen());
        // A log as long as the answers.
        let logged = files(moved(2.0, 1.0, 1.0), plain);
        assert!(logged.are_written() && !logged.are_read_again());
        // Both alike.
        let both = files(moved(2.0, 2.0, 1.0), moved(2.0, 2.0, 1.0));
        assert!(!both.are_written() && !both.are_not_seen());
    }
}
