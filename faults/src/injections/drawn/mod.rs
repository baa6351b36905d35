//! The faults as they can be drawn by `faults random`: into which set-ups, and how strong. The strengths are ranges, drawn
//! so that each octave is as likely as the other; on set-ups that fit they make a request some 1.05 to 20 times as dear.

mod cpu;
pub(crate) mod decoys;
mod http;
mod net;
pub(crate) mod outside;
mod tls;

use crate::case::{Case, Injection, Setup};
use crate::dice::Dice;
use crate::kinds::web::Load;
use crate::twin::{Address, Content, Key, Path, Server, Twin};

/// A fault that can be drawn.
#[derive(Clone, Copy)]
pub(crate) struct Drawable {
    pub(crate) injection: Injection,
    /// Programs and the like without which it cannot be had, as [`crate::random`]'s list of what is installed names them.
    pub(crate) needs: &'static [&'static str],
    /// Whether it can be put on this set-up.
    pub(crate) fits: fn(&Setup) -> bool,
    /// Gives both twins what the fault is about.
    pub(crate) prepare: fn(Setup, &mut Dice) -> Setup,
    /// Puts it on the faulty twin; returns how strong, in one word.
    pub(crate) inject: fn(&mut Twin, &Load, &mut Dice) -> String,
    /// Whether another load generator sees it as time per request. One that looks names up once sees nothing of names.
    pub(crate) seen_by_load: bool,
}

impl Drawable {
    const fn new(
        injection: Injection,
        fits: fn(&Setup) -> bool,
        inject: fn(&mut Twin, &Load, &mut Dice) -> String,
    ) -> Drawable {
        Drawable { injection, needs: &[], fits, prepare: |setup, _| setup, inject, seen_by_load: true }
    }

    const fn after(self, prepare: fn(Setup, &mut Dice) -> Setup) -> Drawable {
        Drawable { prepare, ..self }
    }

    const fn needing(self, needs: &'static [&'static str]) -> Drawable {
        Drawable { needs, ..self }
    }

    const fn unseen_by_load(self) -> Drawable {
        Drawable { seen_by_load: false, ..self }
    }

    /// A case of it alone, on a set-up that was prepared for it.
    pub(crate) fn case(&self, setup: &Setup, dice: &mut Dice) -> Case {
        let mut faulty = setup.twin.clone();
        let strength = (self.inject)(&mut faulty, &setup.load, dice);
        self.injection.case(setup, &strength, |twin| *twin = faulty)
    }
}

/// All faults of the catalogue that can be drawn.
pub(crate) fn catalogue() -> Vec<Drawable> {
    [tls::ALL, net::ALL, http::ALL, cpu::ALL].concat()
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
            Content::Text { bytes } => bytes,
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
