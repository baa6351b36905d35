//! Fuzzers' entry to what collectors answer; see `crate::fuzzing`.

use super::*;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport};

/// What is told of an answer is a line of this length at most: [`sanitize_line`]'s, and a few words of ours.
const LONGEST_TOLD: usize = 301 + 60;
/// How long an endless answer is: longer than all that is read of one.
const ENDLESS_BYTES: usize = 256 << 10;
/// The separator of answers, of which each connection gets one.
const NEXT_CONNECTION: &[u8] = b"\n--\n";

/// Any bytes as what a collector answers to the last push, each time that it is tried. It is taken or refused within the time
/// that a run's end waits for it, and what is told of it can be shown.
pub fn otlp_answer(data: &[u8]) {
    let Some((&[kind, at_once, took], data)) = data.split_first_chunk() else { return };
    if kind & 1 == 0 {
        assert_judged(data);
    }
    let head = Head { kind, at_once, took };
    let connector = Replies::of(head, data);
    let to = Destination {
        url: "http://c.example/v1/metrics".to_owned(),
        shown: "http://c.example/v1/metrics".to_owned(),
        headers: Vec::new(),
        interval: INTERVAL,
    };
    let agent = Agent::with_parts(config(&to).expect("without TLS"), connector, Nowhere);
    let document = serde_json::json!({});
    // A clock of its own: pushes take as long as the input says, and pauses what is asked for.
    let (passed, paused, tries) = (Cell::new(Duration::ZERO), Cell::new(Duration::ZERO), Cell::new(0_u32));
    let done = persist(
        || {
            tries.set(tries.get() + 1);
            passed.set(passed.get() + head.each_push());
            push(&agent, &to, &document)
        },
        || PERSISTENCE.saturating_sub(passed.get()),
        |pause| {
            assert!(pause >= FIRST_PAUSE, "a collector that is busy would be asked again after {pause:?}");
            passed.set(passed.get() + pause);
            paused.set(paused.get() + pause);
        },
    );
    // Pauses double from 200 ms.
    assert!(tries.get() <= 5 && paused.get() <= PERSISTENCE, "{} tries, {:?} of pauses", tries.get(), paused.get());
    if let Err(Trouble { why, .. }) = done {
        assert_told(&why);
    }
}

/// The first bytes of an input: how a collector behaves.
#[derive(Debug, Clone, Copy)]
struct Head {
    kind: u8,
    at_once: u8,
    took: u8,
}

impl Head {
    /// How many bytes come in one go.
    fn bytes_at_once(self) -> usize {
        if self.at_once == 0 { usize::MAX } else { usize::from(self.at_once) }
    }

    fn is_endless(self) -> bool {
        self.kind & 2 != 0 && self.at_once == 0
    }

    fn breaks_off(self) -> bool {
        self.kind & 4 != 0
    }

    /// How long a push takes, up to [`PATIENCE`].
    fn each_push(self) -> Duration {
        PATIENCE * u32::from(self.took) / 255
    }
}

fn assert_told(why: &str) {
    assert_eq!(duel_model::sanitize(why), why, "it cannot be shown as it is");
    assert!(!why.trim().is_empty() && why.chars().count() <= LONGEST_TOLD && !why.contains('\n'), "{why:?}");
}

/// The body of an answer that is well, and the value of a `Retry-After`.
fn assert_judged(data: &[u8]) {
    match accepted(data) {
        Err(why) => assert_told(&why),
        Ok(()) if data.is_empty() => {}
        Ok(()) => {
            let answer: serde_json::Value = serde_json::from_slice(data).expect("what is taken is JSON");
            assert!(answer.is_object(), "{answer}");
            let refused = &answer["partialSuccess"]["rejectedDataPoints"];
            let is_none = refused.is_null() || refused.as_u64() == Some(0);
            let is_none = is_none || refused.as_str().is_some_and(|text| text.parse() == Ok(0_u64));
            assert!(is_none, "refused figures are taken for none: {answer}");
        }
    }
    if let Some(value) = std::str::from_utf8(data).ok().and_then(asked_for) {
        assert!(value.subsec_nanos() == 0);
    }
}

/// Hands out an answer for each connection; the last one again and again.
#[derive(Debug)]
struct Replies {
    head: Head,
    left: Mutex<VecDeque<Vec<u8>>>,
}

impl Replies {
    fn of(head: Head, data: &[u8]) -> Self {
        let mut left = VecDeque::new();
        let mut rest = data;
        while let Some(at) = rest.windows(NEXT_CONNECTION.len()).position(|part| part == NEXT_CONNECTION) {
            left.push_back(rest[..at].to_vec());
            rest = &rest[at + NEXT_CONNECTION.len()..];
        }
        left.push_back(rest.to_vec());
        Self { head, left: Mutex::new(left) }
    }
}

impl Connector for Replies {
    type Out = Reply;

    fn connect(&self, details: &ConnectionDetails<'_>, _: Option<()>) -> Result<Option<Reply>, Error> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = if left.len() > 1 { left.pop_front() } else { left.front().cloned() };
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(Reply { head: self.head, buffers, bytes: bytes.unwrap_or_default(), at: 0, given: 0 }))
    }
}

/// A connection on which a collector answers whatever it is sent.
#[derive(Debug)]
struct Reply {
    head: Head,
    buffers: LazyBuffers,
    bytes: Vec<u8>,
    at: usize,
    given: usize,
}

impl Transport for Reply {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, _: usize, _: NextTimeout) -> Result<(), Error> {
        Ok(())
    }

    fn await_input(&mut self, _: NextTimeout) -> Result<bool, Error> {
        if self.at == self.bytes.len() && self.head.is_endless() && self.given < ENDLESS_BYTES {
            // The end again and again: of a body, a chunk, a list of fields.
            self.at = self.bytes.len().saturating_sub(64);
        }
        let room = self.buffers.input_append_buf();
        let count = (self.bytes.len() - self.at).min(room.len()).min(self.head.bytes_at_once());
        room[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.buffers.input_appended(count);
        self.at += count;
        self.given += count;
        if count == 0 && self.head.breaks_off() {
            return Err(Error::Io(std::io::Error::from(std::io::ErrorKind::ConnectionReset)));
        }
        Ok(count > 0)
    }

    fn is_open(&mut self) -> bool {
        self.at < self.bytes.len()
    }
}

/// Every name has an address, to which nothing is ever sent.
#[derive(Debug)]
struct Nowhere;

impl Resolver for Nowhere {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let mut addresses = self.empty();
        addresses.push(([192, 0, 2, 1], 4318).into());
        Ok(addresses)
    }
}
