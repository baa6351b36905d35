//! A connection to a database server from its first segment on: connect, TLS, login, statements.

use crate::address::{Place, ServerAddress, SslMode, System};
use crate::failure;
use crate::link::{End, Link, Sent};
use crate::mysql::MySql;
use crate::postgres::Postgres;
use crate::tls::TlsClient;
use crate::wire::{AskTls, Cancellation, Happened, Login, SqlFailure, Value, Wire};
use duel_load::WorkloadError;
use duel_model::sanitize_line;
use rustix::fd::BorrowedFd;
use rustix::net::SocketAddrUnix;
use std::net::ToSocketAddrs;

/// What all connections to a server share.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) system: System,
    /// Where it may be; the first that answers is it.
    pub(crate) ends: Vec<End>,
    pub(crate) login: Login,
    tls: Option<TlsClient>,
}

/// How far a connection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Connecting,
    ShakingHands,
    LoggingIn,
    Open,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    link: Link,
    machine: Machine,
    stage: Stage,
    /// Bytes of the last read.
    last_read: usize,
}

/// The protocols.
#[derive(Debug)]
enum Machine {
    Postgres(Postgres),
    MySql(Box<MySql>),
}

/// The same for each protocol, without a table of functions: it is done for each statement.
macro_rules! each {
    ($machine:expr, $bound:ident => $what:expr) => {
        match $machine {
            Machine::Postgres($bound) => $what,
            Machine::MySql($bound) => $what,
        }
    };
}

impl Server {
    /// Looks up the host, and finds the password.
    pub(crate) fn find(server: &ServerAddress) -> Result<Self, WorkloadError> {
        let ends = match &server.place {
            Place::Unix(path) => {
                let end = SocketAddrUnix::new(path.as_path());
                vec![End::Unix(end.map_err(|_| WorkloadError("the path of its socket is too long".into()))?)]
            }
            Place::Tcp { host, port } => {
                let shown = sanitize_line(host);
                let found = (host.as_str(), *port).to_socket_addrs();
                let found = found.map_err(|error| WorkloadError(format!("cannot look up {shown}: {error}")))?;
                found.map(End::Tcp).collect()
            }
        };
        if ends.is_empty() {
            return Err(WorkloadError("its host has no address".into()));
        }
        let is_loopback = |end: &End| match end {
            End::Tcp(peer) => peer.ip().is_loopback(),
            End::Unix(_) => true,
        };
        let is_local = ends.iter().all(is_loopback);
        let tls = TlsClient::build(server)?;
        let ask = match server.tls {
            _ if tls.is_none() => AskTls::Never,
            SslMode::Disable => AskTls::Never,
            SslMode::Prefer => AskTls::IfOffered,
            SslMode::Require | SslMode::VerifyFull => AskTls::Required,
        };
        let login = Login {
            user: server.user.clone(),
            password: crate::secret::password(server)?,
            session: server.session.clone(),
            database: server.database.clone(),
            tls: ask,
            loads_tables: false,
            is_local,
            is_socket: matches!(server.place, Place::Unix(_)),
        };
        Ok(Self { system: server.system, ends, login, tls })
    }
}

impl Connection {
    /// Begins to connect.
    pub(crate) fn open(server: &Server, end: &End) -> Result<Self, SqlFailure> {
        let (link, is_connected) = Link::open(end)?;
        let machine = match server.system {
            System::Mysql => Machine::MySql(Box::default()),
            System::Postgres | System::Sqlite => Machine::Postgres(Postgres::default()),
        };
        let mut connection = Self { link, machine, stage: Stage::Connecting, last_read: 0 };
        if is_connected {
            connection.connected(server)?;
        }
        Ok(connection)
    }

    pub(crate) fn stage(&self) -> Stage {
        self.stage
    }

    /// Whether it is connected, and nothing came so far.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.stage == Stage::LoggingIn && self.link.bytes_in == 0
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.link.fd()
    }

    /// Bytes received and sent since the last call.
    pub(crate) fn take_traffic(&mut self) -> (u64, u64) {
        (std::mem::take(&mut self.link.bytes_in), std::mem::take(&mut self.link.bytes_out))
    }

    pub(crate) fn tls_facts(&self) -> Option<(String, String)> {
        self.link.tls_facts()
    }

    fn connected(&mut self, server: &Server) -> Result<(), SqlFailure> {
        self.stage = Stage::LoggingIn;
        self.wire().log_in(&server.login)?;
        self.flush().map(|_| ())
    }

    /// Sends what there is to be sent as far as the socket takes it.
    pub(crate) fn flush(&mut self) -> Result<Sent, SqlFailure> {
        let Self { link, machine, .. } = self;
        let out = each!(machine, machine => machine.outgoing());
        if out.is_empty() && !link.has_unsent() && !link.is_shaking_hands() {
            return Ok(Sent::All);
        }
        link.send(out)
    }

    /// Goes on after the socket became ready for writing: whether it is connected now, or more could be sent.
    pub(crate) fn writable(&mut self, server: &Server) -> Result<Sent, SqlFailure> {
        if self.stage == Stage::Connecting {
            if !self.link.is_connected()? {
                return Ok(Sent::Blocked);
            }
            self.connected(server)?;
        }
        self.flush()
    }

    /// Reads once and hands over what came; whether anything did. What happened is asked for by [`Connection::next`].
    pub(crate) fn receive(&mut self, server: &Server, scratch: &mut [u8]) -> Result<bool, SqlFailure> {
        if self.stage == Stage::Connecting {
            self.writable(server)?;
            if self.stage == Stage::Connecting {
                return Ok(false);
            }
        }
        let Self { link, machine, .. } = self;
        let before = link.bytes_in;
        let received = link.receive(scratch)?.map(|bytes| match bytes.is_empty() {
            true => Ok(()),
            false => each!(machine, machine => machine.receive(bytes)),
        });
        self.last_read = (self.link.bytes_in - before) as usize;
        let Some(received) = received else { return Ok(false) };
        received?;
        if self.stage == Stage::ShakingHands {
            if !self.link.is_shaking_hands() {
                self.stage = Stage::LoggingIn;
                self.wire().tls_established()?;
            }
            self.flush()?;
        }
        Ok(true)
    }

    /// Whether the last read filled all the room that there was, so that more may wait.
    pub(crate) fn may_have_more(&self, room: usize) -> bool {
        self.last_read == room
    }

    /// The next thing that happened, with what it led to already sent.
    pub(crate) fn next(&mut self, server: &Server) -> Result<Option<Happened>, SqlFailure> {
        if self.stage == Stage::ShakingHands {
            return Ok(None);
        }
        let happened = each!(&mut self.machine, machine => machine.next())?;
        match happened {
            Some(Happened::WantsTls) => {
                let client = server.tls.as_ref();
                let client = client.ok_or_else(|| SqlFailure::new(failure::TLS, "the server agreed to TLS unasked"))?;
                let Self { link, machine, .. } = self;
                link.begin_tls(client, each!(machine, machine => machine.outgoing()))?;
                self.stage = Stage::ShakingHands;
                self.flush()?;
                return Ok(None);
            }
            Some(Happened::LoggedIn) => self.stage = Stage::Open,
            None if self.stage == Stage::LoggingIn => {
                self.flush()?;
            }
            _ => {}
        }
        Ok(happened)
    }

    pub(crate) fn local_port(&self) -> Option<u16> {
        self.link.local_port()
    }

    /// What asks the server, over another connection, to stop what this one does; `None`: it has not told how.
    pub(crate) fn cancellation(&mut self) -> Option<Cancellation> {
        match self.wire().cancellation()? {
            Cancellation::Session { number, .. } => Some(Cancellation::Session { number, port: self.local_port() }),
            message @ Cancellation::Message(_) => Some(message),
        }
    }

    /// The protocol, to say what is to be done.
    pub(crate) fn wire(&mut self) -> &mut dyn Wire {
        match &mut self.machine {
            Machine::Postgres(machine) => machine,
            Machine::MySql(machine) => machine.as_mut(),
        }
    }

    pub(crate) fn row(&self) -> &[Option<String>] {
        each!(&self.machine, machine => machine.row())
    }

    /// Executes a prepared statement; the caller flushes.
    pub(crate) fn execute(&mut self, number: u16, values: &[Value]) -> Result<(), SqlFailure> {
        each!(&mut self.machine, machine => machine.execute(number, values))
    }
}
