//! A conversation with a shell: the script goes in, facts come out, then one answer for each request.

use crate::access::{HostAccess, Options, Server};
use crate::error::HostError;
use crate::frames::{Frame, Frames, bounded_line};
use crate::kernel_log::KernelLog;
use crate::reader::{self, Shell};
use crate::script;
use std::fs::File;
use std::io::{BufReader, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Frames that may wait to be read. More are left in the pipe, where they hold up whoever prints them.
const MOST_WAITING_FRAMES: usize = 16;

/// What all facts together may have. Some 40 sections of a large host have a tenth of a megabyte each.
const MOST_FACTS_BYTES: usize = 16 << 20;

/// A shell on a host that answers requests.
pub(crate) struct Session {
    how: String,
    /// Nobody there can guess it.
    marker: String,
    /// Dropped first: the end of its input ends the shell.
    stdin: Option<File>,
    frames: Receiver<Frame>,
    stray: Arc<Mutex<Vec<String>>>,
    /// The host's kernel log, as far as it has come.
    pub(crate) kernel_log: Arc<Mutex<KernelLog>>,
    next: u64,
    _keeper: Box<dyn Send>,
}

impl Session {
    /// Starts the shell, runs the script and waits for its facts. Facts that are late are missing from the frames, and
    /// the session can no longer be used then: its error is told beside them.
    pub(crate) fn open(
        access: &HostAccess,
        server: &Server,
        options: &Options,
    ) -> Result<(Self, Vec<Frame>, Option<HostError>), HostError> {
        options.check()?;
        let how = access.how();
        let failed = |error: std::io::Error| HostError::Start { how: how.clone(), why: error.to_string() };
        let marker = script::marker().map_err(failed)?;
        let shell = reader::start(access, options)?;
        let mut session = Self::start(how.clone(), shell, &marker).map_err(failed)?;
        // A shell that is gone already shows in its first answer, which does not come.
        let _ = session.send(script::script(&marker, access, server, options).as_bytes());
        let mut facts = vec![session.first_answer(access, options)?];
        let deadline = Instant::now() + options.facts_timeout;
        let mut room = MOST_FACTS_BYTES;
        // `ready` is followed by the first part of the kernel's log; the script takes requests from then on.
        let error = loop {
            match session.frame(deadline, options.facts_timeout) {
                Ok(frame) if frame.name == "ready" => break None,
                Ok(frame) => facts.push(frame.within(&mut room)),
                Err(error) => break Some(error),
            }
            // The script prints some 40 sections; a shell that prints others for ever is not ours.
            if facts.len() > 256 {
                break Some(HostError::Ended {
                    how: session.how.clone(),
                    said: ": it does not do as it is told".into(),
                });
            }
        };
        Ok((session, facts, error))
    }

    /// Waits for the script's first answer. Before it there is no shell, only the attempt to get one.
    fn first_answer(&self, access: &HostAccess, options: &Options) -> Result<Frame, HostError> {
        const LOOK: Duration = Duration::from_millis(20);
        let began = Instant::now();
        let mut deadline = began + reader::patience(access, options);
        let mut talks = false;
        loop {
            match self.frames.recv_timeout(LOOK) {
                Ok(frame) => return Ok(frame),
                Err(RecvTimeoutError::Disconnected) => {
                    let ended = self.ended();
                    let no_shell = matches!(access, HostAccess::Ssh(_)) && locked(&self.stray).is_empty();
                    let why = || reader::reason(access, &self.complaints());
                    return Err(if no_shell { HostError::Start { how: self.how.clone(), why: why() } } else { ended });
                }
                Err(RecvTimeoutError::Timeout) if !talks && !locked(&self.stray).is_empty() => {
                    // Connected, then: what the login shell prints is no answer, but no silence of the network either.
                    talks = true;
                    deadline = deadline.min(Instant::now() + options.facts_timeout);
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                Err(RecvTimeoutError::Timeout) => {
                    let how = self.how.clone();
                    return Err(match access {
                        HostAccess::Ssh(_) if !talks => HostError::Start {
                            how,
                            why: format!("no connection within {} s", began.elapsed().as_secs()),
                        },
                        _ => HostError::Silent { how, waited: options.facts_timeout, said: self.said(", but said: ") },
                    });
                }
            }
        }
    }

    fn start(how: String, shell: Shell, marker: &str) -> std::io::Result<Self> {
        let Shell { stdin, stdout, stderr, keeper } = shell;
        let (sender, frames) = sync_channel(MOST_WAITING_FRAMES);
        let stray = Arc::new(Mutex::new(Vec::new()));
        let kernel_log = Arc::new(Mutex::new(KernelLog::default()));
        let (into_stray, into_log, sorter) = (Arc::clone(&stray), Arc::clone(&kernel_log), Frames::new(marker));
        // Neither is waited for: each ends with its stream, which ends with the shell.
        thread::Builder::new()
            .name("host-output".into())
            .spawn(move || read_frames(stdout, sorter, &sender, &into_stray))?;
        thread::Builder::new().name("host-log".into()).spawn(move || read_log(stderr, &into_log))?;
        Ok(Self {
            how,
            marker: marker.to_owned(),
            stdin: Some(stdin),
            frames,
            stray,
            kernel_log,
            next: 1,
            _keeper: keeper,
        })
    }

    /// Asks for one thing, and waits for the answer.
    pub(crate) fn ask(&mut self, what: &str, timeout: Duration) -> Result<Frame, HostError> {
        self.ask_with(what, "", timeout)
    }

    /// Has lines of shell run, and waits for what they print.
    pub(crate) fn run(&mut self, script: &str, timeout: Duration) -> Result<Frame, HostError> {
        let end = format!("{} .\n", self.marker);
        let newline = if script.ends_with('\n') { "" } else { "\n" };
        self.ask_with("script", &format!("{script}{newline}{end}"), timeout)
    }

    fn ask_with(&mut self, what: &str, more: &str, timeout: Duration) -> Result<Frame, HostError> {
        let number = self.next;
        self.next += 1;
        let deadline = Instant::now() + timeout;
        self.send(format!("{what} {number}\n{more}").as_bytes())?;
        let wanted = format!("{what} {number}");
        loop {
            let frame = self.frame(deadline, timeout)?;
            if frame.name == wanted {
                return Ok(frame);
            }
            if frame.name == "log 0" {
                locked(&self.kernel_log).catch_up(&frame.text);
            }
        }
    }

    fn frame(&self, deadline: Instant, waited: Duration) -> Result<Frame, HostError> {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.frames.recv_timeout(left) {
            Ok(frame) => Ok(frame),
            Err(RecvTimeoutError::Timeout) => {
                Err(HostError::Silent { how: self.how.clone(), waited, said: self.said(", but said: ") })
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.ended()),
        }
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), HostError> {
        // A shell that has gone is told as that, not as a broken pipe.
        let sent = self.stdin.as_mut().is_some_and(|stdin| stdin.write_all(bytes).and_then(|()| stdin.flush()).is_ok());
        if sent { Ok(()) } else { Err(self.ended()) }
    }

    fn ended(&self) -> HostError {
        // Its last complaint may be under way on another stream.
        thread::sleep(Duration::from_millis(50));
        HostError::Ended { how: self.how.clone(), said: self.said(": ") }
    }

    fn complaints(&self) -> Vec<String> {
        locked(&self.kernel_log).complaints.clone()
    }

    /// What the shell said that was no answer.
    fn said(&self, before: &str) -> String {
        let mut said = self.complaints();
        said.extend(locked(&self.stray).iter().cloned());
        said.truncate(3);
        if said.is_empty() { String::new() } else { format!("{before}{}", said.join("; ")) }
    }
}

fn read_frames(stdout: File, mut frames: Frames, sender: &SyncSender<Frame>, stray: &Mutex<Vec<String>>) {
    let mut input = BufReader::with_capacity(64 << 10, stdout);
    // An error of a pipe is as final as its end.
    while let Ok(Some(line)) = bounded_line(&mut input) {
        let known = frames.stray.len();
        if let Some(frame) = frames.line(&line)
            && sender.send(frame).is_err()
        {
            return;
        }
        if frames.stray.len() > known {
            locked(stray).clone_from(&frames.stray);
        }
    }
}

fn read_log(stderr: File, log: &Mutex<KernelLog>) {
    let mut input = BufReader::new(stderr);
    while let Ok(Some(line)) = bounded_line(&mut input) {
        locked(log).take(&line);
    }
}

/// A panic elsewhere does not make the log worse.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
