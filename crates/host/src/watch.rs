//! Watching a host while it is under load.

use crate::access::{HostAccess, Options, Server};
use crate::error::HostError;
use crate::frames::Frame;
use crate::parse::{self, Context, Serving, Sought};
use crate::samples::Samples;
use crate::session::{Session, locked};
use duel_model::{Facts, HostRecord, HostSample, HostSpan, Looks, sanitize_line};
use rustix::time::{ClockId, clock_gettime};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The kernel's log is asked for with every so many samples where it cannot be followed.
const LOG_EVERY: u64 = 10;

/// The time before each look at who waits. A look takes the machine some 15 ms of a CPU.
const BETWEEN_LOOKS: Duration = Duration::from_millis(60);
/// Looks where nobody says how many.
const FEW_LOOKS: u32 = 3;
/// Looks, at most: no samples are taken meanwhile.
const MOST_LOOKS: u32 = 30;

/// A host that is being watched. Dropping it ends the shell there.
///
/// A host that stops answering does not end anything: [`HostWatch::sample`] says so from then on, and
/// [`HostWatch::finish`] gives what there is.
#[derive(Debug)]
pub struct HostWatch {
    facts: Facts,
    asks: Option<Sender<Ask>>,
    watcher: Option<JoinHandle<HostRecord>>,
    how: String,
}

/// Looks at who waits at a server, which go on until this is dropped, for some seconds at most.
#[derive(Debug)]
pub struct Looking {
    seen: Receiver<Looks>,
    /// Looking ends as soon as this is gone.
    ends: Sender<()>,
}

impl Looking {
    /// What was seen until now, and ends it.
    pub fn so_far(self) -> Looks {
        drop(self.ends);
        sum(self.seen.try_iter())
    }

    /// What three looks see, which are waited for; fewer where the host does not tell.
    pub fn few(self) -> Looks {
        sum(self.seen.iter().take(FEW_LOOKS as usize))
    }
}

fn sum(looks: impl Iterator<Item = Looks>) -> Looks {
    looks.fold(Looks::default(), |mut all, look| {
        all.sleepers.add(&look.sleepers);
        all.queues.add(&look.queues);
        all
    })
}

/// What the watching thread is asked for.
enum Ask {
    Sample(Sender<Result<HostSample, HostError>>),
    Sockets(Sender<Result<String, HostError>>),
    Waiting(Sender<Looks>, Receiver<()>),
    Server(Sender<Result<Serving, HostError>>),
    Run(String, Duration, Sender<Result<String, HostError>>),
    Finish,
}

impl HostWatch {
    /// Starts a shell on the host, reads its facts and goes on taking samples, one each second.
    ///
    /// # Errors
    ///
    /// If the shell cannot be started, or says nothing that is asked for. Facts that cannot be read are no error.
    pub fn open(access: HostAccess, server: Server) -> Result<Self, HostError> {
        Self::open_with(&access, &server, &Options::default())
    }

    /// The same with other options.
    ///
    /// # Errors
    ///
    /// As [`HostWatch::open`], and if an option makes no sense.
    pub fn open_with(access: &HostAccess, server: &Server, options: &Options) -> Result<Self, HostError> {
        let (session, frames, late) = Session::open(access, server, options)?;
        let found = parse::facts(&frames, &Sought::new(server, options), &options.proc_root, &options.sys_root);
        let mut doubts = found.doubts;
        if let Some(late) = &late {
            doubts.push(format!("not all facts of the host were read: {late}"));
        }
        let watcher = Watcher {
            session: late.as_ref().map_or(Some(session), |_| None),
            context: found.context,
            options: options.clone(),
            record: HostRecord { how: access.how(), facts: found.facts.clone(), doubts, ..HostRecord::default() },
            lost: late,
            samples: Samples::default(),
            taken: 0,
        };
        let (asks, asked) = channel();
        let how = access.how();
        let watcher = thread::Builder::new()
            .name("host-watch".into())
            .spawn(move || watcher.run(&asked))
            .map_err(|error| HostError::Start { how: how.clone(), why: error.to_string() })?;
        Ok(Self { facts: found.facts, asks: Some(asks), watcher: Some(watcher), how })
    }

    /// What the host is.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// A sample of now, which the record keeps too. It takes some milliseconds and a round trip.
    ///
    /// # Errors
    ///
    /// If the host does not answer, or has stopped answering before.
    pub fn sample(&self) -> Result<HostSample, HostError> {
        self.ask(Ask::Sample)?
    }

    /// The state of the server's established connections now, as `ss -t -i` tells it; only where its port is known.
    ///
    /// # Errors
    ///
    /// If the host does not answer.
    pub fn sockets(&self) -> Result<String, HostError> {
        self.ask(Ask::Sockets)?
    }

    /// Begins to look at what the server's threads sleep in, and at connections that nobody accepts, every 60 ms. No samples are taken
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// If the watching thread is gone.
    pub fn look_who_waits(&self) -> Result<Looking, HostError> {
        let (ends, ended) = channel();
        let seen = self.send(|to| Ask::Waiting(to, ended))?;
        Ok(Looking { seen, ends })
    }

    /// Who serves now: the server is looked for anew. Facts tell of the process that was found first; since then it may have
    /// ended, and its id may have been given to another one.
    ///
    /// # Errors
    ///
    /// If the host does not answer.
    pub fn server(&self) -> Result<Serving, HostError> {
        self.ask(Ask::Server)?
    }

    /// Has lines for a POSIX shell run in a shell of their own, with nothing on their standard input, and gives what they
    /// print, made safe to show and cut after a megabyte. They have to end by themselves within `timeout`; until then no
    /// samples are taken.
    ///
    /// # Errors
    ///
    /// If the host does not answer in time. It is then not asked any more: what hangs there is ended with the shell.
    pub fn run(&self, script: &str, timeout: Duration) -> Result<String, HostError> {
        self.ask(|sender| Ask::Run(script.to_owned(), timeout, sender))?
    }

    /// Ends watching, and gives everything.
    pub fn finish(mut self) -> HostRecord {
        self.end().unwrap_or_else(|| HostRecord {
            how: self.how.clone(),
            facts: std::mem::take(&mut self.facts),
            lost: Some("the thread that watched the host is gone".to_owned()),
            ..HostRecord::default()
        })
    }

    fn ask<T>(
        &self,
        what: impl FnOnce(Sender<Result<T, HostError>>) -> Ask,
    ) -> Result<Result<T, HostError>, HostError> {
        // The watching thread has a timeout of its own for everything that it does.
        self.send(what)?.recv().map_err(|_| self.gone())
    }

    fn send<T>(&self, what: impl FnOnce(Sender<T>) -> Ask) -> Result<Receiver<T>, HostError> {
        let (sender, answer) = channel();
        self.asks.as_ref().ok_or_else(|| self.gone())?.send(what(sender)).map_err(|_| self.gone())?;
        Ok(answer)
    }

    fn gone(&self) -> HostError {
        HostError::Ended { how: self.how.clone(), said: String::new() }
    }

    fn end(&mut self) -> Option<HostRecord> {
        let _ = self.asks.take()?.send(Ask::Finish);
        self.watcher.take()?.join().ok()
    }
}

impl Drop for HostWatch {
    fn drop(&mut self) {
        self.end();
    }
}

/// The thread that talks to the host.
struct Watcher {
    /// `None` once the host does not answer any more.
    session: Option<Session>,
    context: Context,
    options: Options,
    record: HostRecord,
    lost: Option<HostError>,
    samples: Samples,
    taken: u64,
}

impl Watcher {
    fn run(mut self, asked: &Receiver<Ask>) -> HostRecord {
        let mut next = self.period().map(|period| Instant::now() + period);
        loop {
            let ask = match next {
                Some(at) => asked.recv_timeout(at.saturating_duration_since(Instant::now())),
                None => asked.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match ask {
                Ok(Ask::Sample(to)) => {
                    // Whoever asked may have gone; then nobody is told.
                    let _ = to.send(self.sample());
                }
                Ok(Ask::Sockets(to)) => {
                    let _ = to.send(self.sockets());
                }
                Ok(Ask::Waiting(to, ended)) => self.looks(&to, &ended),
                Ok(Ask::Server(to)) => {
                    let _ = to.send(self.server());
                }
                Ok(Ask::Run(script, timeout, to)) => {
                    let printed = self.answer(|session, _| session.run(&script, timeout));
                    let _ = to.send(printed.map(|text| duel_model::sanitize(&text)));
                }
                Err(RecvTimeoutError::Timeout) => {
                    let _ = self.sample();
                    // From now on, not from when it was due: a slow host must not be asked without a pause.
                    next = self.period().map(|period| Instant::now() + period);
                }
                Ok(Ask::Finish) | Err(RecvTimeoutError::Disconnected) => return self.finish(),
            }
        }
    }

    /// Time between samples that nobody asked for; `None` where there are none any more.
    fn period(&self) -> Option<Duration> {
        self.session.as_ref()?;
        Some(self.options.period?.saturating_mul(self.samples.every()))
    }

    fn sample(&mut self) -> Result<HostSample, HostError> {
        let asked_ns = monotonic_ns();
        let text = self.ask("sample")?;
        let arrived_ns = monotonic_ns();
        let readings = parse::sample(&text, &self.context);
        let sample = HostSample {
            unix_ms: unix_ms(),
            asked_ns,
            arrived_ns,
            uptime_ns: readings.uptime_ns,
            counters: readings.counters,
            gauges: readings.gauges,
            counted_by: readings.counted_by,
        };
        let followed = self.session.as_ref().is_some_and(|session| locked(&session.kernel_log).is_followed());
        if !followed && self.taken % LOG_EVERY == LOG_EVERY - 1 {
            self.read_log();
        }
        self.taken += 1;
        self.keep(sample.clone());
        Ok(sample)
    }

    fn keep(&mut self, sample: HostSample) {
        if self.record.watched_from_uptime_ns.is_none() {
            self.record.watched_from_uptime_ns = sample.uptime_ns;
        }
        self.samples.keep(sample);
    }

    fn sockets(&mut self) -> Result<String, HostError> {
        let text = self.ask("sockets")?;
        Ok(duel_model::sanitize(&text))
    }

    /// Looks until nobody wants to know any more.
    fn looks(&mut self, to: &Sender<Looks>, ended: &Receiver<()>) {
        for _ in 0..MOST_LOOKS {
            if ended.recv_timeout(BETWEEN_LOOKS) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let mut seen = Looks::default();
            let (Ok(sleeping), Ok(queues)) = (self.ask("sleeping"), self.ask("queues")) else { return };
            seen.sleepers.add(&parse::sleepers(&sleeping));
            seen.queues.add(&parse::listen_queues(&queues));
            if to.send(seen).is_err() {
                return;
            }
        }
    }

    fn server(&mut self) -> Result<Serving, HostError> {
        // It looks through as much as the facts do.
        let text = self.answer(|session, options| session.ask("server", options.facts_timeout))?;
        Ok(parse::serving(&text))
    }

    fn ask(&mut self, what: &str) -> Result<String, HostError> {
        self.answer(|session, options| session.ask(what, options.sample_timeout))
    }

    /// Says what went wrong the first time, and the same ever after.
    fn answer(
        &mut self,
        ask: impl FnOnce(&mut Session, &Options) -> Result<Frame, HostError>,
    ) -> Result<String, HostError> {
        if let Some(session) = &mut self.session {
            match ask(session, &self.options) {
                Ok(frame) => return Ok(frame.text),
                Err(error) => {
                    self.take_log();
                    // A shell that hangs is of no more use, and ending it ends what it hangs in.
                    self.session = None;
                    self.record.doubts.push(sanitize_line(&format!("the host was not read to the end: {error}")));
                    self.lost = Some(error);
                }
            }
        }
        Err(self.lost.clone().unwrap_or_else(|| HostError::Ended { how: self.record.how.clone(), said: String::new() }))
    }

    fn read_log(&mut self) {
        if let Ok(text) = self.ask("log")
            && let Some(session) = &self.session
        {
            locked(&session.kernel_log).catch_up(&text);
        }
    }

    fn take_log(&mut self) {
        if let Some(session) = &self.session {
            self.record.last_words = locked(&session.kernel_log).last_words();
        }
    }

    fn finish(mut self) -> HostRecord {
        if self.session.is_some() {
            self.read_log();
        }
        self.take_log();
        let (samples, doubt) = std::mem::take(&mut self.samples).finish();
        self.record.samples = samples;
        self.record.doubts.extend(doubt);
        self.record.lost = self.lost.as_ref().map(|lost| sanitize_line(&lost.to_string()));
        self.note_restarts();
        self.note_jumps();
        self.record
    }

    /// Where the clocks disagree the host slept, was paused, or was started anew.
    fn note_jumps(&mut self) {
        let told = |sample: &HostSample| sample.uptime_ns.is_some();
        let jumped = |pair: &&[HostSample]| {
            told(&pair[0]) && told(&pair[1]) && HostSpan::between(&pair[0], &pair[1]).elapsed_ns().is_none()
        };
        let jumps = self.record.samples.windows(2).filter(jumped).count();
        if jumps > 0 {
            let times = if jumps == 1 { "once".to_owned() } else { format!("{jumps} times") };
            // On this machine both clocks are its own: one counts the time that it slept, the other does not.
            let clocks = if self.record.how == HostAccess::Local.how() {
                "this machine's clocks disagreed about how long a stretch took"
            } else {
                "the host's clock and the generator's disagreed about how long a stretch took"
            };
            self.record.doubts.push(format!(
                "{clocks} ({times}), as after a pause, sleep or a new start; what the host did then is not counted"
            ));
        }
    }

    /// A server that was started anew has counters of its own, and may have done its work with other settings.
    fn note_restarts(&mut self) {
        let who = |sample: &HostSample| sample.counted_by.get("process.").cloned();
        let mut servers: Vec<String> = self.record.samples.iter().filter_map(who).collect();
        servers.dedup();
        if servers.len() > 1 {
            let times = servers.len() - 1;
            let text = format!(
                "the server's main process changed {times} times while it was watched: facts are those of the first"
            );
            self.record.doubts.push(text);
        }
    }
}

/// The clock that ops are measured with, so that samples can be laid over slots.
fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    // It is never negative.
    time.tv_sec as u64 * duel_model::SECOND_NS + time.tv_nsec as u64
}

fn unix_ms() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
    }
}
