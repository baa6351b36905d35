//! A connection that waits for its answers: for what is done before and after load.

use crate::address::System;
use crate::connection::{Connection, Server};
use crate::failure;
use crate::link::{End, Sent};
use crate::wire::{Happened, SqlFailure};
use duel_load::monotonic_ns;
use duel_model::{Nanos, SECOND_NS, format_duration_ns};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::BorrowedFd;

/// Rows that are taken of an answer, at most: what is asked here has some.
const MOST_ROWS: usize = 10_000;
/// Bytes that are kept of an answer, at most.
const MOST_ANSWER_BYTES: usize = 4 << 20;
const SCRATCH_BYTES: usize = 64 * 1024;

/// What stands in front of a question about a server itself: with it, it is one transaction, and the setting ends with that.
const OWN_NAMES: &str = "SET LOCAL search_path TO pg_catalog, pg_temp; ";

/// Rows as texts; NULL is `None`.
pub(crate) type Rows = Vec<Vec<Option<String>>>;

/// A connection and how long to wait for it.
#[derive(Debug)]
pub(crate) struct Client {
    server: Server,
    connection: Connection,
    scratch: Vec<u8>,
    /// Longest time without any sign of life.
    patience_ns: Nanos,
    is_broken: bool,
}

impl Client {
    /// Connects to the first of the server's addresses that answers, and logs in. Answers which one that was, too.
    pub(crate) fn connect(server: &Server, patience_ns: Nanos) -> Result<(Self, End), SqlFailure> {
        let mut last = SqlFailure::new(failure::REFUSED, "it has no address");
        for end in &server.ends {
            match Self::connect_to(server, end, patience_ns) {
                Ok(client) => return Ok((client, end.clone())),
                // Another address of the same server would say the same.
                Err(why) if why.kind != failure::REFUSED && why.kind != failure::CONNECT_TIMEOUT => return Err(why),
                Err(why) => last = why,
            }
        }
        Err(last)
    }

    /// Connects to one of the server's addresses, and logs in.
    pub(crate) fn connect_to(server: &Server, end: &End, patience_ns: Nanos) -> Result<Self, SqlFailure> {
        let connection = Connection::open(server, end)?;
        let mut client =
            Self { server: server.clone(), connection, scratch: vec![0; SCRATCH_BYTES], patience_ns, is_broken: false };
        let deadline_ns = monotonic_ns() + patience_ns;
        match client.wait(deadline_ns)? {
            Happened::LoggedIn => Ok(client),
            other => Err(SqlFailure::new(failure::BROKEN, format!("{other:?} instead of a login"))),
        }
    }

    /// The connection's TLS version and suite.
    pub(crate) fn tls_facts(&self) -> Option<(String, String)> {
        self.connection.tls_facts()
    }

    /// Whose process, and which one, listens at the other end of a Unix socket. `None`: that cannot be seen from here.
    #[cfg(target_os = "linux")]
    pub(crate) fn peer(&self) -> Option<(u32, u32)> {
        use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
        // One of another namespace has the number 0, for which rustix has no value.
        let peer = getsockopt(&self.connection.fd(), PeerCredentials).ok()?;
        let process = u32::try_from(peer.pid()).ok().filter(|&process| process > 0)?;
        Some((peer.uid(), process))
    }

    pub(crate) fn local_port(&self) -> Option<u16> {
        self.connection.local_port()
    }

    /// For statements that take long, such as the making of an index.
    pub(crate) fn be_patient(&mut self, patience_ns: Nanos) {
        self.patience_ns = patience_ns;
    }

    /// Executes statements and answers their rows.
    pub(crate) fn rows(&mut self, sql: &str) -> Result<Rows, SqlFailure> {
        self.connection.wire().want_rows(true);
        let answer = self.ask(sql);
        self.connection.wire().want_rows(false);
        answer.map(|(rows, _)| rows)
    }

    /// Asks a server about itself. Names mean its own functions, operators and tables, whatever the database's owner has called so,
    /// who would have it run with the rights of the session's user. A setting of the whole session would be another client's, too,
    /// where both come through one pool.
    pub(crate) fn ask_server(&mut self, sql: &str) -> Result<Rows, SqlFailure> {
        match self.server.system {
            System::Postgres => self.rows(&format!("{OWN_NAMES}{sql}")),
            System::Mysql | System::Sqlite => self.rows(sql),
        }
    }

    /// Executes a statement and answers how many rows it changed.
    pub(crate) fn run(&mut self, sql: &str) -> Result<u64, SqlFailure> {
        self.ask(sql).map(|(_, affected)| affected)
    }

    /// Prepares a statement under a number.
    pub(crate) fn prepare(&mut self, number: u16, sql: &str) -> Result<(), SqlFailure> {
        self.connection.wire().prepare(number, sql)?;
        match self.wait(monotonic_ns() + self.patience_ns)? {
            Happened::Prepared => Ok(()),
            Happened::Refused(why) => Err(why),
            other => Err(SqlFailure::new(failure::BROKEN, format!("{other:?} instead of a prepared statement"))),
        }
    }

    /// Whether an answer was given up in its middle: what comes next would be the rest of it.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    fn ask(&mut self, sql: &str) -> Result<(Rows, u64), SqlFailure> {
        if self.is_broken {
            return Err(SqlFailure::new(failure::BROKEN, "the answer before was given up"));
        }
        self.connection.wire().query(sql)?;
        self.is_broken = true;
        let (mut rows, mut bytes) = (Rows::new(), 0);
        let deadline_ns = monotonic_ns() + self.patience_ns;
        loop {
            match self.wait(deadline_ns)? {
                Happened::Row if rows.len() < MOST_ROWS => {
                    let row = self.connection.row();
                    bytes += size_of_val(row) + row.iter().flatten().map(String::len).sum::<usize>();
                    if bytes > MOST_ANSWER_BYTES {
                        return Err(SqlFailure::new(
                            failure::WRONG,
                            "the server answers more bytes than were asked for",
                        ));
                    }
                    rows.push(row.to_vec());
                }
                Happened::Row => {
                    return Err(SqlFailure::new(failure::WRONG, "the server answers more rows than were asked for"));
                }
                Happened::FirstRow => {}
                Happened::Done { affected, .. } => {
                    self.is_broken = false;
                    return Ok((rows, affected));
                }
                Happened::Refused(why) => {
                    self.is_broken = false;
                    return Err(why);
                }
                other => return Err(SqlFailure::new(failure::BROKEN, format!("{other:?} instead of an answer"))),
            }
        }
    }

    /// A bulk load: what `fill` writes is sent until it answers that there is no more.
    pub(crate) fn load(
        &mut self,
        sql: &str,
        fill: &mut dyn FnMut(&mut Vec<u8>) -> Result<bool, SqlFailure>,
    ) -> Result<u64, SqlFailure> {
        self.connection.wire().load(sql)?;
        let deadline_ns = monotonic_ns() + self.patience_ns;
        match self.wait(deadline_ns)? {
            Happened::WantsData => {}
            Happened::Refused(why) => return Err(why),
            other => return Err(SqlFailure::new(failure::BROKEN, format!("{other:?} instead of a bulk load"))),
        }
        let (mut chunk, mut has_more) = (Vec::new(), true);
        while has_more {
            chunk.clear();
            has_more = fill(&mut chunk)?;
            self.connection.wire().data(Some(&chunk))?;
            let deadline_ns = monotonic_ns() + self.patience_ns;
            while self.connection.flush()? == Sent::Blocked {
                // A server that has refused says so while we write.
                self.wait_for(PollFlags::OUT, deadline_ns)?;
            }
        }
        self.connection.wire().data(None)?;
        let deadline_ns = monotonic_ns() + self.patience_ns;
        match self.wait(deadline_ns)? {
            Happened::Done { affected, .. } => Ok(affected),
            Happened::Refused(why) => Err(why),
            other => Err(SqlFailure::new(failure::BROKEN, format!("{other:?} instead of an end"))),
        }
    }

    /// Waits for the next thing that happens.
    fn wait(&mut self, deadline_ns: Nanos) -> Result<Happened, SqlFailure> {
        loop {
            let sent = self.connection.flush()?;
            if let Some(happened) = self.connection.next(&self.server)? {
                return Ok(happened);
            }
            let is_connecting = self.connection.stage() == crate::connection::Stage::Connecting;
            let writes = sent == Sent::Blocked || is_connecting;
            let flags = if writes { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            let ready = self.wait_for(flags, deadline_ns)?;
            if ready.intersects(PollFlags::OUT) {
                self.connection.writable(&self.server)?;
            }
            if ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
                self.connection.receive(&self.server, &mut self.scratch)?;
            }
        }
    }

    fn wait_for(&self, flags: PollFlags, deadline_ns: Nanos) -> Result<PollFlags, SqlFailure> {
        ready(self.connection.fd(), flags, deadline_ns)?.ok_or_else(|| {
            let is_open = self.connection.stage() == crate::connection::Stage::Open;
            let kind = if is_open { failure::TIMEOUT } else { failure::CONNECT_TIMEOUT };
            let what = if is_open { "no answer" } else { "no login" };
            let within = format_duration_ns(self.patience_ns as f64);
            // A server that waits for us to begin, as PostgreSQL and web servers do, waits as long as we do.
            let is_mute = self.server.system == System::Mysql && self.connection.is_unanswered();
            let hint = if is_mute {
                ", and not a word: a MySQL server would speak first; is it another one, postgres://?"
            } else {
                ""
            };
            SqlFailure::new(kind, format!("{what} within {within}{hint}"))
        })
    }
}

/// Waits until a socket is ready; `None`: it is not until then.
pub(crate) fn ready(
    socket: BorrowedFd<'_>,
    flags: PollFlags,
    deadline_ns: Nanos,
) -> Result<Option<PollFlags>, SqlFailure> {
    loop {
        let left_ns = deadline_ns.saturating_sub(monotonic_ns());
        if left_ns == 0 {
            return Ok(None);
        }
        let mut fds = [PollFd::new(&socket, flags)];
        let timeout = Timespec { tv_sec: (left_ns / SECOND_NS) as i64, tv_nsec: (left_ns % SECOND_NS) as _ };
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(Some(fds[0].revents())),
            Err(errno) => {
                let text = format!("cannot wait: {}", std::io::Error::from(errno));
                return Err(SqlFailure::new(failure::OURS, text));
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.connection.wire().leave();
        let _ = self.connection.flush();
    }
}
