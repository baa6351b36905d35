//! `duel net serve`: the other end of network work.

use crate::outcome::{Outcome, Usage};
use crate::{meaning, signals, terminal};
use anyhow::Context;
use clap::{Args, Subcommand};
use duel_model::sanitize_line;
use duel_net::server::{Limits, Server};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What is to be done with a network.
#[derive(Args, Clone)]
pub(crate) struct NetFlags {
    #[command(subcommand)]
    what: Net,
}

#[derive(Subcommand, Clone)]
enum Net {
    /// Be the other end of network work, until Ctrl-C: `duel run tcp://THIS-MACHINE` on another one
    #[command(after_help = SERVE)]
    Serve(ServeFlags),
}

const SERVE: &str = "\
It takes what it is sent and throws it away, sends what is asked for, answers requests, and counts datagrams: for whoever \
reaches the address that it listens at. It opens no file, starts nothing, connects to nobody, and sends only on \
connections that were made to it. How many there are, how long they may be silent and how long they may last is bounded; \
what a connection may use of the line is not. Datagrams come to a port of their own for each connection.

TIME is 500ms, 10s, 2m or the like; a bare number counts seconds.";

/// Options of the server.
#[derive(Args, Clone)]
pub(crate) struct ServeFlags {
    /// Where to listen; [::] is all addresses of both families
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = format!("0.0.0.0:{}", duel_net::PORT))]
    listen: String,
    /// Most connections at a time; those beyond are told so
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: u32,
    /// Longest time that a connection may be silent
    #[arg(long, value_name = "TIME", default_value = "2m")]
    idle: String,
    /// Longest time that a connection may last
    #[arg(long, value_name = "TIME", default_value = "1h")]
    lifetime: String,
}

/// Does what was asked for.
pub(crate) fn net(flags: &NetFlags) -> anyhow::Result<Outcome> {
    match &flags.what {
        Net::Serve(flags) => serve(flags),
    }
}

fn serve(flags: &ServeFlags) -> anyhow::Result<Outcome> {
    let time = |name: &str, typed: &str| meaning::positive(name, typed).map(Duration::from_nanos);
    let limits = Limits {
        connections: flags.connections,
        idle: time("--idle", &flags.idle)?,
        lifetime: time("--lifetime", &flags.lifetime)?,
    };
    let at: SocketAddr = flags.listen.parse().map_err(|_| {
        Usage(format!(
            "--listen takes an address and a port, such as 0.0.0.0:{0}, 192.0.2.1:{0} or [::]:{0}; got '{1}'",
            duel_net::PORT,
            sanitize_line(&flags.listen)
        ))
    })?;
    let stop = signals::stop_flag().context("signals cannot be heard")?;
    let server = Server::listen(at, limits).map_err(anyhow::Error::new)?;
    let at = server.address().context("the server's own address is not known")?;
    // Whoever reads this may wait for it: it is printed at once.
    terminal::print(&format!(
        "Listening at {at}. Serves bulk, bulk-reverse, rr, connect and udp to whoever connects, up to {} connections at a time; Ctrl-C ends it.\n",
        limits.connections
    ))?;
    server.serve(&stop).context("waiting for connections failed")?;
    let [served, strangers, refused] =
        [&server.counts().served, &server.counts().strangers, &server.counts().refused].map(|n| n.load(Ordering::Relaxed));
    terminal::print(&format!(
        "Served {served} connections; {strangers} spoke something else or said nothing, for {refused} there was no room.\n"
    ))?;
    Ok(Outcome::Done)
}
