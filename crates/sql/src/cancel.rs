//! Statements that were given up are stopped at the server, over a connection of its own: one that ran on would disturb whatever is
//! measured next.

use crate::client::{self, Client};
use crate::connection::Server;
use crate::link::{End, Link, Sent};
use crate::schema::failure;
use crate::wire::SqlFailure;
use duel_load::monotonic_ns;
use duel_model::{Nanos, SECOND_NS};
use rustix::event::PollFlags;
use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long one request may take: it takes a millisecond, where the server still answers anybody.
const PATIENCE_NS: Nanos = 2 * SECOND_NS;
/// How long the end of a slot waits for all of them.
const MOST_WAIT: Duration = Duration::from_secs(5);
/// Requests that wait, at most; those of more connections are not made.
const MOST_WAITING: usize = 16_384;
/// How long a connection for requests is kept after the last one: those of a slot come together.
const KEPT: Duration = Duration::from_millis(200);
/// What a server of MySQL answers where the connection is gone, and the statement with it.
const GONE: &str = "error 1094 ";

/// How a server is told to stop what a connection does.
pub(crate) enum Cancellation {
    /// What is sent in place of a login: PostgreSQL.
    Message(Vec<u8>),
    /// A statement of a session of its own: MySQL.
    Statement(String),
}

/// Without the key that the server has given the connection.
impl fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cancellation")
    }
}

/// Asks the server of a target to stop statements, on a thread of its own, so that no worker waits for it.
#[derive(Debug)]
pub(crate) struct Canceller {
    server: Arc<Server>,
    end: End,
    desk: Arc<Desk>,
    /// To the thread, which begins with the first request; `None`: it could not be started.
    to: OnceLock<Option<SyncSender<Cancellation>>>,
}

#[derive(Debug, Default)]
struct Desk {
    counts: Mutex<Counts>,
    changed: Condvar,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    waiting: usize,
    /// Since they were last taken.
    asked: u64,
    failed: u64,
}

impl Canceller {
    pub(crate) fn new(server: Arc<Server>, end: End) -> Self {
        Self { server, end, desk: Arc::default(), to: OnceLock::new() }
    }

    /// Asks for one; what comes of it is counted.
    pub(crate) fn ask(&self, cancellation: Cancellation) {
        self.desk.lock().waiting += 1;
        let to = self.to.get_or_init(|| self.start());
        if to.as_ref().is_none_or(|to| to.try_send(cancellation).is_err()) {
            self.desk.done(&Err(SqlFailure::new(failure::OURS, "too many wait")));
        }
    }

    fn start(&self) -> Option<SyncSender<Cancellation>> {
        let (to, from) = sync_channel(MOST_WAITING);
        let (server, end, desk) = (Arc::clone(&self.server), self.end.clone(), Arc::clone(&self.desk));
        let thread = std::thread::Builder::new().name("duel-cancel".to_owned());
        thread.spawn(move || serve(&server, &end, &desk, &from)).ok().map(|_| to)
    }

    /// Waits until nothing is waiting any more, for a bounded time.
    pub(crate) fn settle(&self) {
        let deadline = Instant::now() + MOST_WAIT;
        let mut counts = self.desk.lock();
        while counts.waiting > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            counts = self.desk.changed.wait_timeout(counts, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// How many were asked for since the last call, and how many more could not be.
    pub(crate) fn take(&self) -> (u64, u64) {
        let mut counts = self.desk.lock();
        (std::mem::take(&mut counts.asked), std::mem::take(&mut counts.failed))
    }
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn done(&self, outcome: &Result<(), SqlFailure>) {
        let mut counts = self.lock();
        counts.waiting = counts.waiting.saturating_sub(1);
        match outcome {
            Ok(()) => counts.asked += 1,
            Err(_) => counts.failed += 1,
        }
        self.changed.notify_all();
    }
}

/// Makes requests until nobody can ask for any more.
fn serve(server: &Server, end: &End, desk: &Desk, from: &Receiver<Cancellation>) {
    let mut client = None;
    loop {
        let next = match from.recv_timeout(KEPT) {
            Err(RecvTimeoutError::Timeout) => {
                client = None;
                from.recv().ok()
            }
            next => next.ok(),
        };
        let Some(next) = next else { return };
        let outcome = match next {
            Cancellation::Message(message) => send(end, &message),
            Cancellation::Statement(sql) => execute(server, end, &mut client, &sql),
        };
        let has_failed = outcome.is_err();
        desk.done(&outcome);
        // A server that answers nobody would be asked for each connection in turn.
        while has_failed && from.try_recv().is_ok() {
            desk.done(&outcome);
        }
    }
}

fn execute(server: &Server, end: &End, client: &mut Option<Client>, sql: &str) -> Result<(), SqlFailure> {
    let connected = match client.take() {
        Some(connected) => connected,
        None => Client::connect_to(server, end, PATIENCE_NS)?,
    };
    match client.insert(connected).run(sql) {
        Err(why) if !why.text.starts_with(GONE) => {
            *client = None;
            Err(why)
        }
        _ => Ok(()),
    }
}

/// Sends what stands in place of a login, and waits until the server closes: it has passed it on then.
fn send(end: &End, message: &[u8]) -> Result<(), SqlFailure> {
    let deadline_ns = monotonic_ns() + PATIENCE_NS;
    let ready = |link: &Link, flags| match client::ready(link.fd(), flags, deadline_ns)? {
        Some(_) => Ok(()),
        None => Err(SqlFailure::new(failure::TIMEOUT, "the server does not take a request to stop a statement")),
    };
    let (mut link, mut is_connected) = Link::open(end)?;
    while !is_connected {
        ready(&link, PollFlags::OUT)?;
        is_connected = link.is_connected()?;
    }
    let mut message = message.to_vec();
    while link.send(&mut message)? == Sent::Blocked {
        ready(&link, PollFlags::OUT)?;
    }
    loop {
        ready(&link, PollFlags::IN)?;
        // It answers nothing.
        if link.receive(&mut [0; 64]).is_err() {
            return Ok(());
        }
    }
}
