//! A child process that works, as its parent sees it: orders go in and answers come out as lines of text.
//!
//! The protocol is the same for a library that duel loads in a process of its own and for a program of a user:
//!
//! | parent says | child answers |
//! |---|---|
//! | `work OP block=BYTES chunk=BYTES direction=encrypt renew=nothing` | `fact NAME TEXT` (any number), then `ready`, or `cannot SENTENCE` |
//! | `answer KEY IV AAD INPUT` (each hexadecimal, `-` where empty) | `answer HEX`, or `cannot SENTENCE` |
//! | `run COUNT` | `done START_NS END_NS CPU_NS` (`CLOCK_MONOTONIC`, and CPU time between), or `failed SENTENCE` |
//! | end of input | the child ends |

use duel_load::monotonic_ns;
use duel_model::{Nanos, sanitize_line};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Longest line that a child may say, bytes: an answer of 1 MiB as hexadecimal digits, and its word.
const LONGEST_LINE_BYTES: usize = (2 << 20) + 64;

/// How a child is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) program: std::ffi::OsString,
    pub(crate) arguments: Vec<std::ffi::OsString>,
    /// Variables of its environment beside ours.
    pub(crate) environment: Vec<(String, String)>,
}

/// A running child; it is killed and reaped when dropped.
#[derive(Debug)]
pub(crate) struct Worker {
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    /// What it has said and nobody has read yet.
    said: Vec<u8>,
}

/// What a child said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    Ready,
    Fact(String, String),
    Answer(Vec<u8>),
    Done {
        start_ns: Nanos,
        end_ns: Nanos,
        cpu_ns: Nanos,
    },
    /// The op cannot be done at all.
    Cannot(String),
    /// It failed while it was done.
    Failed(String),
}

/// Why nothing, or nothing more, was heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Silence {
    /// It has ended: how, in words.
    Ended(String),
    /// It said something that makes no sense.
    Nonsense(String),
    /// Its time was over.
    TimedOut,
}

impl Said {
    /// What a line means; `None`: nothing.
    pub(crate) fn of(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let safe = |text: &str| sanitize_line(text.trim());
        Some(match word {
            "ready" if rest.is_empty() => Self::Ready,
            "fact" => {
                let (name, text) = rest.split_once(' ')?;
                let is_name =
                    !name.is_empty() && name.len() <= 24 && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
                is_name.then(|| Self::Fact(name.to_owned(), safe(text)))?
            }
            "answer" => Self::Answer(unhex(rest)?),
            "done" => {
                let mut numbers = rest.split(' ').map(str::parse::<Nanos>);
                let mut next = || numbers.next()?.ok();
                let (start_ns, end_ns, cpu_ns) = (next()?, next()?, next()?);
                (start_ns <= end_ns && numbers.next().is_none()).then_some(Self::Done { start_ns, end_ns, cpu_ns })?
            }
            "cannot" if !rest.is_empty() => Self::Cannot(safe(rest)),
            "failed" if !rest.is_empty() => Self::Failed(safe(rest)),
            _ => return None,
        })
    }
}

impl Worker {
    /// Starts a child. It leads a process group of its own, so that Ctrl-C comes to the parent alone, which ends its children in
    /// its own time.
    pub(crate) fn start(start: &Start) -> io::Result<Self> {
        let mut child = Command::new(&start.program)
            .args(&start.arguments)
            .envs(start.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else { return Err(io::Error::other("it has no pipes")) };
        rustix::io::ioctl_fionbio(&stdout, true)?;
        // A child that does not read its orders must not stop us. An order is far shorter than a pipe.
        rustix::io::ioctl_fionbio(&stdin, true)?;
        Ok(Self { child, stdin, stdout, said: Vec::new() })
    }

    /// The pipe to be watched for what it says.
    pub(crate) fn stdout(&self) -> &ChildStdout {
        &self.stdout
    }

    /// Gives it an order.
    pub(crate) fn tell(&mut self, order: &str) -> Result<(), Silence> {
        self.stdin.write_all(order.as_bytes()).and_then(|()| self.stdin.write_all(b"\n")).map_err(|_| self.ended())
    }

    /// What it has said by now; `None`: nothing that is complete.
    pub(crate) fn heard(&mut self) -> Result<Option<Said>, Silence> {
        loop {
            if let Some(end) = self.said.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.said.drain(..=end).take(end).collect();
                let line = String::from_utf8_lossy(&line).into_owned();
                let nonsense = || {
                    let start: String = line.chars().take(80).collect();
                    Silence::Nonsense(format!("said '{}', which is no answer", sanitize_line(&start)))
                };
                return Said::of(line.trim_end_matches('\r')).ok_or_else(nonsense).map(Some);
            }
            if self.said.len() > LONGEST_LINE_BYTES {
                return Err(Silence::Nonsense("said a line without an end".into()));
            }
            let mut room = [0; 4096];
            match self.stdout.read(&mut room) {
                Ok(0) => return Err(self.ended()),
                Ok(count) => self.said.extend_from_slice(&room[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(self.ended()),
            }
        }
    }

    /// What it says next, waited for until this time.
    pub(crate) fn hear_until(&mut self, deadline_ns: Nanos) -> Result<Said, Silence> {
        loop {
            if let Some(said) = self.heard()? {
                return Ok(said);
            }
            let left_ns = deadline_ns.saturating_sub(monotonic_ns());
            if left_ns == 0 {
                return Err(Silence::TimedOut);
            }
            let timeout =
                Timespec { tv_sec: (left_ns / 1_000_000_000) as i64, tv_nsec: (left_ns % 1_000_000_000) as _ };
            let mut watched = [PollFd::from_borrowed_fd(self.stdout.as_fd(), PollFlags::IN)];
            let _ = poll(&mut watched, Some(&timeout));
        }
    }

    /// How it has ended, in words. What ends a process closes its pipes first, so it is waited for a moment.
    fn ended(&mut self) -> Silence {
        for _ in 0..100 {
            match self.child.try_wait() {
                Ok(Some(status)) => {
                    let how = match (status.signal(), status.code()) {
                        (Some(signal), _) => format!("was ended by signal {signal}{}", signal_name(signal)),
                        (_, Some(code)) => format!("ended with exit code {code}"),
                        _ => "ended".to_owned(),
                    };
                    return Silence::Ended(how);
                }
                Ok(None) => std::thread::sleep(std::time::Duration::from_millis(1)),
                Err(_) => break,
            }
        }
        Silence::Ended("closed its output".to_owned())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // A command of the user's may have started others: its whole group ends.
        let _ = rustix::process::kill_process_group(
            rustix::process::Pid::from_child(&self.child),
            rustix::process::Signal::KILL,
        );
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The signals that a broken library ends in.
fn signal_name(signal: i32) -> &'static str {
    match signal {
        4 => " (illegal instruction)",
        6 => " (abort)",
        8 => " (arithmetic error)",
        9 => " (killed)",
        11 => " (bad memory access)",
        _ => "",
    }
}

/// Hexadecimal digits, `-` where there is nothing.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    if bytes.is_empty() {
        return "-".to_owned();
    }
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The way back; `None`: it is none.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    if text == "-" {
        return Some(Vec::new());
    }
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let bytes = pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect::<Option<Vec<u8>>>()?;
    (rest.is_empty() && !bytes.is_empty()).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_mean_what_the_protocol_says() {
        assert_eq!(Said::of("ready"), Some(Said::Ready));
        assert_eq!(Said::of("fact version OpenSSL 3"), Some(Said::Fact("version".into(), "OpenSSL 3".into())));
        assert_eq!(Said::of("done 5 9 3"), Some(Said::Done { start_ns: 5, end_ns: 9, cpu_ns: 3 }));
        assert_eq!(Said::of("answer 00ff"), Some(Said::Answer(vec![0, 255])));
        for wrong in [
            "",
            "Ready",
            "ready x",
            "done 9 5 3",
            "done 1 2",
            "done 1 2 3 4",
            "answer 0",
            "answer ",
            "fact A b",
            "cannot",
        ] {
            assert_eq!(Said::of(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_line_makes_it_stumble(line in ".{0,60}") {
            let _ = Said::of(&line);
        }

        #[test]
        fn bytes_survive_as_digits(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(unhex(&hex(&bytes)), Some(bytes));
        }
    }
}
