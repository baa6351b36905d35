//! What the fuzzers call (`fuzz/`): what a host prints, and what a management controller answers.
//!
//! Compiled for fuzzers and for unit tests only. The tests run each of them over the corpus that is kept.

use crate::access::{Options, Server};
use crate::frames::{Frames, bounded_line};
use crate::kernel_log::KernelLog;
use crate::parse::{self, Sought};
use std::io::BufReader;

/// Everything that a host may print: frames, facts, samples, lines of its kernel's log. Whatever it is, what is kept of it can
/// be shown on a terminal.
pub fn host_output(data: &[u8]) {
    let mut input = BufReader::with_capacity(512, data);
    let (mut frames, mut log) = (Frames::new("M"), KernelLog::default());
    let mut whole = Vec::new();
    while let Ok(Some(line)) = bounded_line(&mut input) {
        whole.extend(frames.line(&line));
        log.take(&line);
    }
    let server = Server::Port(80);
    let options = Options::default();
    let found = parse::facts(&whole, &Sought::new(&server, &options), "/proc", "/sys");
    for frame in &whole {
        let _ = parse::serving(&frame.text);
        let readings = parse::sample(&frame.text, &found.context);
        assert_safe(&format!("{:?}", readings.counters.keys()));
        assert_safe(&format!("{:?}", parse::sleepers(&frame.text).threads.keys()));
        parse::listen_queues(&frame.text).waiting.keys().for_each(|socket| assert_safe(socket));
        log.catch_up(&frame.text);
    }
    for (key, known) in &found.facts.0 {
        assert_safe(key);
        if let Some(value) = known.text() {
            assert_safe(value);
        }
    }
    found.doubts.iter().for_each(|doubt| assert_safe(doubt));
    frames.stray.iter().for_each(|line| assert_safe(line));
    log.last_words().iter().for_each(|line| assert_safe(&line.text));
}

/// What a management controller answers.
#[cfg(feature = "redfish")]
pub fn redfish(data: &[u8]) {
    crate::redfish::fuzzing::redfish(data);
}

fn assert_safe(text: &str) {
    assert!(!text.chars().any(char::is_control), "a control character would reach a terminal: {text:?}");
}

#[cfg(test)]
mod tests {
    use duel_corpus::each;

    #[test]
    fn the_kept_corpus_breaks_nothing() {
        each("host_output", super::host_output);
        #[cfg(feature = "redfish")]
        each("redfish", super::redfish);
    }
}
