//! Web servers as they can be drawn by `faults random`: the faults, into which set-ups they can be put, and how strong. The strengths
//! are ranges, drawn so that each octave is as likely as the other; on set-ups that fit they make a request some 1.05 to 20 times as dear.

mod cpu;
mod decoys;
mod http;
mod installed;
mod net;
mod outside;
mod setups;
#[cfg(test)]
mod tests;
mod tls;

use crate::arena::Arena;
use crate::case::{Injection, Setup};
use crate::dice::Dice;
use crate::kinds::web::{Load, ToolLoad, Web};
use crate::random::{Decoy, Drawable, DrawnKind, Installed, Merged};
use crate::servers::Up;
use crate::twin::{Address, Content, Key, Path, Server, Twin};

impl DrawnKind for Web {
    // Web servers were drawn before all other kinds.
    const BESIDE_SEED: u64 = 0;
    const OP: &'static str = "request";
    const MERGED: Option<Merged<Web>> = Some(merged);
    const CATALOGUE: &'static [&'static [Drawable]] = &[tls::ALL, net::ALL, http::ALL, cpu::ALL];
    const OUTSIDE: &'static [Drawable] = outside::ALL;
    const DECOYS: &'static [Decoy] = decoys::ALL;

    fn installed() -> Installed {
        installed::here()
    }

    fn set_up(dice: &mut Dice, installed: &Installed) -> Option<Setup> {
        Some(setups::draw(dice, installed))
    }

    fn is_possible(twin: &Twin) -> bool {
        twin.possible().is_ok()
    }

    fn op_takes(arena: &Arena, load: &Load) -> anyhow::Result<(f64, f64)> {
        arena.by_turns(|up| ms_per_request(arena, up, load))
    }
}

/// Both change what they change of another part.
fn merged(healthy: &Twin, one: &Twin, other: &Twin) -> Option<Twin> {
    fn part<T: Clone + PartialEq>(healthy: &T, one: &T, other: &T) -> Option<T> {
        match (one == healthy, other == healthy) {
            (_, true) => Some(one.clone()),
            (true, false) => Some(other.clone()),
            (false, false) => None,
        }
    }
    Some(Twin {
        server: part(&healthy.server, &one.server, &other.server)?,
        tls: part(&healthy.tls, &one.tls, &other.tls)?,
        content: part(&healthy.content, &one.content, &other.content)?,
        http: part(&healthy.http, &one.http, &other.http)?,
        process: part(&healthy.process, &one.process, &other.process)?,
        network: part(&healthy.network, &one.network, &other.network)?,
        front: part(&healthy.front, &one.front, &other.front)?,
        address: part(&healthy.address, &one.address, &other.address)?,
    })
}

/// A second of load; five where nothing was answered within one.
fn ms_per_request(arena: &Arena, up: &Up, load: &Load) -> anyhow::Result<f64> {
    // duel asks for gzip, too, unless the user typed something else.
    const USUAL: &[&str] = &["Accept-Encoding: gzip"];
    let headers = if load.headers.is_empty() { USUAL } else { load.headers };
    let short = ToolLoad {
        connections: load.connections,
        streams: load.streams,
        seconds: 1,
        connect_anew: load.connect_anew,
        resumes: load.resumption,
        headers,
    };
    let served = arena.client.load(up, &short);
    Ok(1e3 / served.or_else(|_| arena.client.load(up, &ToolLoad { seconds: 5, ..short }))?.per_s)
}

/// What set-ups have, as faults ask for it.
impl Setup {
    pub(crate) fn is_on(&self, servers: &[Server]) -> bool {
        servers.contains(&self.twin.server)
    }

    fn is_https(&self) -> bool {
        self.twin.tls.is_some()
    }

    fn key(&self) -> Option<Key> {
        self.twin.tls.as_ref().map(|tls| tls.key)
    }

    fn body_bytes(&self) -> u64 {
        match self.twin.content {
            Content::Text { bytes } | Content::Files { bytes, .. } => bytes,
            Content::Path(_) => 0,
        }
    }

    fn is_http2(&self) -> bool {
        self.twin.http.http2
    }

    fn is_kept(&self) -> bool {
        !self.load.connect_anew
    }

    /// New connections that resume nothing.
    fn connects_in_full(&self) -> bool {
        self.load.connect_anew && !self.load.resumption
    }

    /// Without delay on the path, which would hide what a CPU does.
    fn is_near(&self) -> bool {
        self.twin.network.path == Path::Veth
    }

    fn round_trip_us(&self) -> u64 {
        round_trip_us(&self.twin)
    }

    fn is_literal(&self) -> bool {
        self.twin.address == Address::Literal
    }
}

fn round_trip_us(twin: &Twin) -> u64 {
    match &twin.network.path {
        Path::Veth => 0,
        Path::Relay { to_server, to_client } => to_server.delay_us + to_client.delay_us,
    }
}

/// Requests that are under way at a time.
fn at_a_time(load: &Load) -> u64 {
    u64::from(load.connections) * u64::from(load.streams)
}

/// A path through the relay, of a round trip within these bounds, unless there is one that is long enough.
fn distant(setup: Setup, dice: &mut Dice, (from_us, to_us): (u32, u32)) -> Setup {
    if setup.round_trip_us() >= u64::from(from_us) {
        return setup;
    }
    let rtt_us = u64::from(dice.whole(from_us, to_us));
    setup.with(&format!("rtt{rtt_us}us"), |twin| twin.network.path = Path::round_trip_us(rtt_us))
}

/// The servers that are told much: those that serve files, and nginx before PHP.
const PACKAGED: [Server; 5] = [Server::Nginx, Server::Apache, Server::HaproxyNginx, Server::Lighttpd, Server::NginxPhp];
