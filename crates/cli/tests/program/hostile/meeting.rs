//! One run of `duel` against somebody who lies, and what has to hold of it.

use crate::common::Place;
use duel_ruler::hostile::Expected;
use serde_json::Value;
use std::any::Any;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Requests of a run, and its connections.
const OPS: u64 = 4;
const CONNECTIONS: u64 = 2;
/// For connecting, and for a request.
const TIMEOUT: Duration = Duration::from_secs(1);
/// First contact tries so often.
const ATTEMPTS: u32 = 3;
/// A controller of Redfish: twice the patience with all of its answers, and once with one.
const REDFISH: Duration = Duration::from_secs(2 * (20 + 5));
/// A collector: a push under way, the last one, and the time for trying it again.
const OTLP: Duration = Duration::from_secs(3 + 3 + 3 + 1);
/// ssh: connecting, starting a shell, facts, and a sample on either side of the slot.
const SSH: Duration = Duration::from_secs(15 + 15 + 30 + 2 * 10);
/// A resolver: one try of one second for each of two families, as `resolv.conf` says.
const DNS: Duration = Duration::from_secs(2);
/// For starting, on a machine that is busy with other tests. A client that does not end would never do so: all who lie go
/// on for ever.
const SLACK: Duration = Duration::from_secs(30);
/// Most memory that a run may take.
const MOST_KIB: u64 = 200 * 1024;
/// A run that takes this much is ended at once, before it takes the machine with it.
const FUSE_KIB: u64 = 1024 * 1024;
/// Longest sentence, in characters.
const LONGEST_SENTENCE: usize = 700;
/// Most sentences on standard error beside a result.
const MOST_COMPLAINTS: usize = 2;
/// In every secret of those who lie.
const SECRET: &str = "s3cr3t";
/// Most that a run may print: a document of a run of one target has some 20 kB, and with the facts of a machine some 100.
const MOST_PRINTED_BYTES: usize = 1 << 20;

const DONE: i32 = 0;
const COULD_NOT_RUN: i32 = 1;

/// How it is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// It lies from the first byte; the result is text.
    Stranger,
    /// Its first answer was in order; the result is JSON.
    Known,
    /// Another one is loaded, and this one is told of it or asked about it; the result is JSON.
    Beside,
}

/// One run of `duel`.
pub(crate) struct Meeting {
    pub(crate) name: &'static str,
    pub(crate) does: &'static str,
    pub(crate) limit: Duration,
    expected: Expected,
    manner: Manner,
    place: Place,
    wrapper: Vec<String>,
    words: Vec<String>,
    path: Option<String>,
    /// Who lies; ends with this.
    _liars: Vec<Box<dyn Any + Send + Sync>>,
}

/// What came of it.
pub(crate) struct Told {
    pub(crate) took: Duration,
    pub(crate) peak_kib: u64,
    /// The sentence, or a part of the doubts.
    pub(crate) said: String,
    /// What does not hold.
    pub(crate) faults: Vec<String>,
    /// The honest answer came too late for first contact, and its next attempt met the lie.
    pub(crate) was_refused: bool,
}

impl Meeting {
    pub(crate) fn new<L: Any + Send + Sync>(
        name: &'static str,
        does: &'static str,
        expected: Expected,
        manner: Manner,
        words: Vec<String>,
        liars: Vec<Box<L>>,
    ) -> Self {
        let has = |option: &str| words.iter().any(|word| word == option);
        let per_op = 2 * TIMEOUT;
        let mut limit = SLACK + ATTEMPTS * per_op + OPS as u32 * per_op + TIMEOUT;
        for (option, more) in [("--redfish", REDFISH), ("--otlp", OTLP), ("--ssh", SSH)] {
            limit += if has(option) { more } else { Duration::ZERO };
        }
        if name.starts_with("dns/") {
            limit += DNS;
        }
        let liars = liars.into_iter().map(|liar| liar as Box<dyn Any + Send + Sync>).collect();
        Self {
            name,
            does,
            limit,
            expected,
            manner,
            place: Place::new(),
            wrapper: Vec::new(),
            words,
            path: None,
            _liars: liars,
        }
    }

    /// Started by another program.
    pub(crate) fn within(mut self, wrapper: &[&str]) -> Self {
        self.wrapper = wrapper.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// Programs are looked for here first.
    pub(crate) fn with_programs_of(mut self, folder: &str) -> Self {
        self.path = Some(format!("{folder}:{}", std::env::var("PATH").unwrap_or_default()));
        self
    }

    /// A file of this meeting alone; answers its path.
    pub(crate) fn file(&self, name: &str, content: &str) -> String {
        self.place.file(name, content)
    }

    pub(crate) fn label(&self) -> String {
        format!("{} ({:?})", self.name, self.manner)
    }

    /// Has it take place.
    pub(crate) fn held(&self) -> Told {
        let wrapper: Vec<&str> = self.wrapper.iter().map(String::as_str).collect();
        let mut command = self.place.command_within(&wrapper);
        let seconds = format!("{}s", TIMEOUT.as_secs());
        command.arg("run").args(&self.words).args(["-q", "--no-archive", "-t", "1"]);
        command.args(["-n", &OPS.to_string(), "-c", &CONNECTIONS.to_string()]);
        command.args(["--timeout", &seconds, "--connect-timeout", &seconds]);
        if self.manner != Manner::Stranger {
            command.arg("--json");
        }
        if let Some(path) = &self.path {
            command.env("PATH", path);
        }
        let ended = Ended::of(command, self.limit);
        let mut told = Told {
            took: ended.took,
            peak_kib: ended.peak_kib,
            said: String::new(),
            faults: Vec::new(),
            was_refused: false,
        };
        if let Err(fault) = self.judge(&ended, &mut told) {
            told.faults.push(fault);
        }
        told
    }

    fn judge(&self, ended: &Ended, told: &mut Told) -> Result<(), String> {
        if ended.peak_kib > MOST_KIB {
            told.faults.push(format!("it took {} MB", ended.peak_kib / 1024));
        }
        let (stdout, stderr) = (text(&ended.stdout, "standard output")?, text(&ended.stderr, "standard error")?);
        told.said = stderr.trim_end().to_owned();
        let Some(status) = ended.status else {
            return Err(format!("it had not ended after {:?}", ended.took));
        };
        let code = status.code().ok_or_else(|| format!("signal {:?} ended it: {stderr}", status.signal()))?;
        if code != DONE && code != COULD_NOT_RUN {
            return Err(format!("it ended with {code}: {stderr}"));
        }
        // In a released duel that is the end of all threads.
        if stderr.contains("panicked at") {
            return Err(format!("a thread of it panicked: {stderr}"));
        }
        // Beside a result there may be a few things that it lacks.
        let sentences: Vec<&str> = stderr.lines().collect();
        if sentences.len() > if code == DONE { MOST_COMPLAINTS } else { 1 } || (code != DONE && sentences.is_empty()) {
            return Err(format!("that are {} lines: {stderr}", sentences.len()));
        }
        sentences.iter().try_for_each(|line| sentence(line))?;
        let fits = match (self.expected, self.manner) {
            (Expected::Either, _) => true,
            (Expected::Ok | Expected::Doubt, _) => code == DONE,
            // One of several requests may have ended well.
            (Expected::Failed, Manner::Known) => true,
            (Expected::Failed | Expected::Refused, _) => code == COULD_NOT_RUN,
        };
        if !fits {
            return Err(format!("{:?} was expected, and it ended with {code}: {stderr}", self.expected));
        }
        if [stdout, stderr].iter().any(|said| said.contains(SECRET)) {
            return Err("it shows a secret".to_owned());
        }
        match self.manner {
            Manner::Stranger if code == DONE && stdout.is_empty() => {
                Err("it is content, and prints nothing".to_owned())
            }
            Manner::Stranger => Ok(()),
            Manner::Known | Manner::Beside => self.account(stdout, told),
        }
    }

    /// The document: one, and every request is in it.
    fn account(&self, stdout: &str, told: &mut Told) -> Result<(), String> {
        let document: Value = serde_json::from_str(stdout)
            .map_err(|error| format!("not one document ({error}): {stdout:.300} {}", told.said))?;
        let is_refusal = document["status"] == "failed" && document["error"].is_string();
        if is_refusal && matches!(self.expected, Expected::Refused | Expected::Either) {
            return Ok(());
        }
        if is_refusal && self.expected == Expected::Failed && self.manner == Manner::Known {
            told.was_refused = true;
            return Ok(());
        }
        let target = &document["targets"][0];
        let count = |name: &str| target[name].as_u64().ok_or_else(|| format!("there is no '{name}': {target:.300}"));
        let failed = target["failed"].as_object().ok_or("there is no 'failed'")?;
        let failed: u64 = failed.values().filter_map(Value::as_u64).sum();
        let (ok, started) = (count("ops")?, count("started")?);
        if ok + failed + count("in_flight")? != started || started + count("unstarted")? + count("shed")? != OPS {
            return Err(format!("not every request is accounted for: {target}"));
        }
        let doubts = document["doubts"].as_array().ok_or("there are no doubts")?;
        let texts: Vec<&str> = doubts.iter().filter_map(|doubt| doubt["text"].as_str()).collect();
        texts.iter().try_for_each(|text| for_people(text))?;
        if told.said.is_empty() {
            told.said = texts.join(" | ");
        }
        match self.expected {
            Expected::Ok if failed > 0 => Err(format!("what is in order failed: {texts:?}")),
            Expected::Failed if failed == 0 => Err("none failed".to_owned()),
            Expected::Doubt if doubts.iter().all(is_of_the_run) => Err(format!("nothing is doubted: {texts:?}")),
            _ => Ok(()),
        }
    }
}

/// Whether a doubt is about the run, which is short and beside its server, and not about who lies.
fn is_of_the_run(doubt: &Value) -> bool {
    let is_short = doubt["text"].as_str().is_some_and(|text| text.contains("ended") && text.contains("in a slot"));
    is_short || doubt["id"] == "wake-ups"
}

/// How a program ended.
struct Ended {
    /// None: it did not.
    status: Option<ExitStatus>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    took: Duration,
    peak_kib: u64,
}

impl Ended {
    fn of(mut command: Command, limit: Duration) -> Self {
        let began = Instant::now();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (stdout, stderr) = (reader(child.stdout.take().unwrap()), reader(child.stderr.take().unwrap()));
        let mut peak_kib = 0;
        let status = loop {
            peak_kib = peak_kib.max(memory_kib(child.id()));
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if began.elapsed() > limit || peak_kib > FUSE_KIB {
                end(&mut child);
                break None;
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let took = began.elapsed();
        Self { status, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap(), took, peak_kib }
    }
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

fn reader(stream: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.take(MOST_PRINTED_BYTES as u64 + 1).read_to_end(&mut bytes);
        bytes
    })
}

/// The most memory that a running `duel` has had. Before it is one it is a copy of the test.
fn memory_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    if value("Name:") != Some("duel") {
        return 0;
    }
    value("VmHWM:").and_then(|value| value.strip_suffix(" kB")?.parse().ok()).unwrap_or(0)
}

/// What was printed, if it is text and nothing else.
fn text<'a>(bytes: &'a [u8], whence: &str) -> Result<&'a str, String> {
    if bytes.len() > MOST_PRINTED_BYTES {
        return Err(format!("{whence} has more than {MOST_PRINTED_BYTES} bytes"));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| format!("{whence} is no text: {error}"))?;
    // Characters that turn the direction of a text hide what it says (Unicode UAX 9).
    let turns = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    match text.chars().find(|&c| c.is_control() && c != '\n' || turns(c)) {
        Some(c) => {
            Err(format!("{whence} has the control character {c:?}: {:?}", text.lines().find(|line| line.contains(c))))
        }
        None => Ok(text),
    }
}

/// One sentence for people.
fn sentence(line: &str) -> Result<(), String> {
    let said = line.strip_prefix("duel: ").ok_or_else(|| format!("that is no sentence: {line:?}"))?;
    for_people(said)
}

/// Of a length that is read, and in words that are understood.
fn for_people(said: &str) -> Result<(), String> {
    if said.chars().count() > LONGEST_SENTENCE {
        return Err(format!("that is no sentence, it is too long: {said:.900}"));
    }
    let for_programmers =
        ["Error:", "Os {", "panicked", "Some(", "None", "unwrap", "os error", "Err(", "http parse", "io: "];
    match for_programmers.iter().find(|word| said.contains(**word)) {
        Some(word) => Err(format!("'{word}' is for programmers: {said}")),
        None => Ok(()),
    }
}
