//! The kernel's log: its last lines, as they come.

use duel_model::{KernelLine, sanitize_line};
use std::collections::VecDeque;

/// Lines that are kept: an oops with its trace has some 60.
const MOST_LINES: usize = 120;

/// The last lines of a kernel's log, and what else came on the same stream.
#[derive(Debug, Default)]
pub(crate) struct KernelLog {
    lines: VecDeque<KernelLine>,
    /// Records come by themselves.
    followed: bool,
    /// First complaints of the shell.
    pub(crate) complaints: Vec<String>,
}

impl KernelLog {
    /// Takes a line of standard error: a record of `/dev/kmsg`, its continuation, or a complaint.
    pub(crate) fn take(&mut self, line: &str) {
        if let Some(record) = record(line) {
            // What `dmesg` printed before is among the first records.
            if !std::mem::replace(&mut self.followed, true) {
                self.lines.clear();
            }
            self.push(record);
        } else if !line.starts_with(' ') && !line.trim().is_empty() && self.complaints.len() < 8 {
            self.complaints.push(sanitize_line(line));
        }
    }

    /// Takes what `dmesg` prints: instead of what it printed before, or, where records come by themselves, only what
    /// has not come yet.
    pub(crate) fn catch_up(&mut self, text: &str) {
        let after = self.lines.back().and_then(|line| line.uptime_ns).filter(|_| self.followed);
        if !self.followed {
            self.lines.clear();
        }
        for line in text.lines().filter(|line| !line.trim().is_empty()).map(printed) {
            if !self.followed || line.uptime_ns > after {
                self.push(line);
            }
        }
    }

    /// Whether records come by themselves.
    pub(crate) fn is_followed(&self) -> bool {
        self.followed
    }

    /// What there is, the oldest first.
    pub(crate) fn last_words(&self) -> Vec<KernelLine> {
        self.lines.iter().cloned().collect()
    }

    fn push(&mut self, line: KernelLine) {
        if self.lines.len() == MOST_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }
}

/// A record of `/dev/kmsg`: `PRIORITY,SEQUENCE,TIME_US,FLAGS[,...];TEXT`, where the lowest three bits of the priority
/// are the level (Documentation/ABI/testing/dev-kmsg).
fn record(line: &str) -> Option<KernelLine> {
    let (head, text) = line.split_once(';')?;
    let mut fields = head.split(',');
    let priority: u64 = fields.next()?.parse().ok()?;
    let _sequence: u64 = fields.next()?.parse().ok()?;
    let time_us: u64 = fields.next()?.parse().ok()?;
    fields.next()?;
    Some(KernelLine {
        uptime_ns: time_us.checked_mul(1000),
        level: Some((priority & 7) as u8),
        text: sanitize_line(text),
    })
}

/// A line as `dmesg` prints it, with or without `[   12.345678] `: seconds and microseconds, as records have them.
fn printed(line: &str) -> KernelLine {
    let timed = line.strip_prefix('[').and_then(|rest| {
        let (time, text) = rest.split_once(']')?;
        let (seconds, micros) = time.trim().split_once('.').filter(|(_, micros)| micros.len() == 6)?;
        let seconds_ns = seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?;
        Some((seconds_ns.checked_add(micros.parse::<u64>().ok()? * 1000)?, text))
    });
    match timed {
        Some((uptime_ns, text)) => {
            KernelLine { uptime_ns: Some(uptime_ns), level: None, text: sanitize_line(text.trim_start()) }
        }
        None => KernelLine { uptime_ns: None, level: None, text: sanitize_line(line) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn records_and_complaints_are_told_apart() {
        let mut log = KernelLog::default();
        log.take("6,1234,5000001,-;eth0: link is down");
        log.take(" SUBSYSTEM=net");
        log.take("sh: 1: ss: not found");
        log.take("3,1235,6000000,-,caller=T1;Out of memory: Killed process 7 (\x1b[31mx)");
        let words = log.last_words();
        assert_eq!(words.len(), 2);
        assert_eq!(
            words[0],
            KernelLine { uptime_ns: Some(5_000_001_000), level: Some(6), text: "eth0: link is down".into() }
        );
        assert_eq!(words[1].level, Some(3));
        assert!(!words[1].text.contains('\x1b'));
        assert_eq!(log.complaints, ["sh: 1: ss: not found"]);
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        let mut log = KernelLog::default();
        for i in 0..10_000 {
            log.take(&format!("6,{i},{i},-;line {i}"));
            log.take("complaint");
        }
        assert_eq!((log.last_words().len(), log.complaints.len()), (MOST_LINES, 8));
        assert_eq!(log.last_words().last().unwrap().text, "line 9999");
    }

    #[test]
    fn what_dmesg_prints() {
        let mut log = KernelLog::default();
        log.catch_up("[    1.500000] Booting\n[Sat Nov 21] no time\nplain\n\n");
        let words = log.last_words();
        assert_eq!((words[0].uptime_ns, words[0].text.as_str()), (Some(1_500_000_000), "Booting"));
        assert_eq!((words[1].uptime_ns, words.len()), (None, 3));
    }

    #[test]
    fn what_has_not_come_yet_is_added() {
        let mut log = KernelLog::default();
        log.catch_up("[    1.000000] first\n");
        log.take("6,1,1000000,-;first");
        log.take("6,2,2000000,-;second");
        log.catch_up("[    1.000000] first\n[    2.000000] second\n[    3.000001] third\nno time");
        let texts: Vec<String> = log.last_words().into_iter().map(|line| line.text).collect();
        assert_eq!(texts, ["first", "second", "third"]);
    }

    proptest! {
        #[test]
        fn any_line_is_survived(line in ".{0,60}", shaped in "[0-9]{0,25},[0-9]{0,25},[0-9]{0,25},-;.{0,9}", text in "\\[[ 0-9.e]{0,12}\\].{0,9}") {
            let mut log = KernelLog::default();
            log.take(&line);
            log.take(&shaped);
            log.catch_up(&text);
            log.catch_up(&line);
        }
    }
}
