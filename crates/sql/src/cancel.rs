//! Statements that were given up are stopped at the server, over a connection of its own: one that ran on would disturb whatever is
//! measured next.

use crate::client::{self, Client, Rows};
use crate::connection::Server;
use crate::failure;
use crate::link::{End, Link, Sent};
use crate::wire::{Cancellation, SqlFailure};
use duel_load::monotonic_ns;
use duel_model::{Nanos, SECOND_NS};
use rustix::event::PollFlags;
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
            Cancellation::Session { number, port } => kill(server, end, &mut client, (number, port)),
        };
        let has_failed = outcome.is_err();
        desk.done(&outcome);
        // A server that answers nobody would be asked for each connection in turn.
        while has_failed && from.try_recv().is_ok() {
            desk.done(&outcome);
        }
    }
}

/// Stops what a session does, over one of our own that is kept for the next.
fn kill(
    server: &Server,
    end: &End,
    client: &mut Option<Client>,
    session: (u32, Option<u16>),
) -> Result<(), SqlFailure> {
    let mut connected = match client.take() {
        Some(connected) => connected,
        None => Client::connect_to(server, end, PATIENCE_NS)?,
    };
    let rows = connected.rows(&format!(
        "SELECT id = CONNECTION_ID(), user, host FROM information_schema.processlist WHERE id IN ({}, CONNECTION_ID())",
        session.0
    ))?;
    if is_there(&rows, &server.login.user, connected.local_port(), session.1)? {
        match connected.run(&format!("KILL QUERY {}", session.0)) {
            Err(why) if !why.text.starts_with(GONE) => return Err(why),
            _ => {}
        }
    }
    *client = Some(connected);
    Ok(())
}

/// Whether a session still is at the server that we ask, which numbers those of others, too: behind a balancer the same number is a
/// stranger's. `asking` and `asked` are the ports of ours from which both sessions come.
fn is_there(rows: &Rows, user: &str, asking: Option<u16>, asked: Option<u16>) -> Result<bool, SqlFailure> {
    let of = |own: &str| {
        let row = rows.iter().find(|row| row.first().is_some_and(|is_own| is_own.as_deref() == Some(own)))?;
        Some((row.get(1)?.as_deref()?, row.get(2)?.as_deref()?))
    };
    let is_ours = |(name, host): (&str, &str), port: Option<u16>| {
        let from = host.rsplit_once(':').and_then(|(_, from)| from.parse().ok());
        name == user && from == port
    };
    // Where the server sees our own ports, nobody stands in between, and a session that it does not know is over.
    if !of("1").is_some_and(|own| is_ours(own, asking)) {
        return Err(SqlFailure::new(failure::ERROR, "there is a balancer before the server"));
    }
    match of("0") {
        None => Ok(false),
        Some(session) if is_ours(session, asked) => Ok(true),
        Some(_) => Err(SqlFailure::new(failure::ERROR, "the session is one of somebody else")),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(all: &[[&str; 3]]) -> Rows {
        all.iter().map(|row| row.iter().map(|value| Some((*value).to_owned())).collect()).collect()
    }

    #[test]
    fn only_a_session_of_ours_at_the_same_server_is_stopped() {
        let own = ["1", "u", "10.0.0.1:4001"];
        let found = |all: &[[&str; 3]]| is_there(&rows(all), "u", Some(4001), Some(4000)).ok();
        assert_eq!(found(&[own, ["0", "u", "10.0.0.1:4000"]]), Some(true));
        assert_eq!(found(&[own]), Some(false), "it is over");
        assert_eq!(found(&[own, ["0", "u", "10.0.0.9:4444"]]), None, "of somebody else");
        assert_eq!(found(&[own, ["0", "v", "10.0.0.1:4000"]]), None);
        assert_eq!(found(&[["1", "u", "10.0.0.5:9999"]]), None, "of a balancer");
        assert_eq!(found(&[]), None);
        let local = rows(&[["1", "u", "localhost"], ["0", "u", "localhost"]]);
        assert_eq!(is_there(&local, "u", None, None).ok(), Some(true), "a Unix socket has no port");
    }
}
