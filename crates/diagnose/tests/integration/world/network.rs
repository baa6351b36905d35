//! The network in front of a simulated server: packets, windows, stalls, and what their times look like.

use super::Server;
use duel_model::web::phase;
use duel_model::{Id, Nanos, Phase, Profile, Variation};
use std::collections::BTreeMap;

/// What lies between us and a server.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Net {
    /// Whether the times of phases are kept; a world without has none.
    pub profiles: bool,
    /// Bytes of a segment.
    pub segment: Option<u32>,
    /// CPU time for each packet of a response, ns.
    pub per_packet: f64,
    /// CPU time for each packet to the server, before it is even looked at, ns.
    pub filter: f64,
    /// Bytes under way at most, for each connection.
    pub window: Option<f64>,
    /// Segments under way at most, for each connection.
    pub window_segments: Option<f64>,
    /// Segments in the first flight of a new connection; `None`: slow start costs nothing.
    pub first_flight: Option<f64>,
    /// Segments in the first flight of each response over a kept connection, which rests between requests; `None`: it goes on as it was.
    pub after_pause: Option<f64>,
    /// The part of growing that acknowledging at once saves.
    pub by_quick_ack: f64,
    /// Bytes per second of all connections together.
    pub total_cap: Option<f64>,
    /// Ops that wait long in one phase.
    pub stalls: Vec<Stall>,
    /// Hardly any connection that is kept was seen being made.
    pub few_connects: bool,
    pub lookup_ns: Option<Nanos>,
    pub dead: Vec<String>,
}

/// A part of the ops that go through a phase wait there.
#[derive(Debug, Clone, PartialEq)]
pub struct Stall {
    pub phase: Phase,
    pub share: f64,
    pub ns: f64,
    /// With fewer connections nobody does.
    pub from_connections: f64,
    /// Nobody does where acknowledgements are sent at once.
    pub ends_by_quick_ack: bool,
    /// TCP at our end had to send them again.
    pub sent_again: bool,
}

impl Stall {
    pub fn of(phase: Phase, share: f64, ns: f64) -> Self {
        Self { phase, share, ns, from_connections: 1.0, ends_by_quick_ack: false, sent_again: false }
    }

    fn happens(&self, connections: f64, variation: &Variation) -> bool {
        connections >= self.from_connections && !(self.ends_by_quick_ack && variation.quick_ack == Some(true))
    }
}

impl Net {
    fn segment_bytes(&self, variation: &Variation) -> Option<f64> {
        let own = f64::from(self.segment?);
        Some(variation.segment_bytes.map_or(own, |announced| own.min(f64::from(announced))))
    }

    /// Segments as they are seen.
    pub fn seen_segment(&self, variation: &Variation) -> Option<u32> {
        self.segment_bytes(variation).map(|bytes| bytes as u32)
    }

    /// CPU time that an op's packets take besides all else.
    pub fn work_ns(&self, new: bool, bytes: f64, variation: &Variation) -> f64 {
        let packets = self.segment_bytes(variation).map_or(0.0, |segment| (bytes / segment).ceil());
        packets * self.per_packet + self.filtering_ns(new)
    }

    /// CPU time that filtering an op's packets takes.
    pub fn filtering_ns(&self, new: bool) -> f64 {
        self.filter * if new { 4.0 } else { 1.0 }
    }

    /// Adds to the phases what the network costs a response of so many bytes, of which a connection carries so many at a time.
    pub fn delay(
        &self,
        server: &Server,
        phases: &mut [(Phase, f64)],
        (bytes, streams): (f64, f64),
        new: bool,
        variation: &Variation,
    ) {
        let segment = self.segment_bytes(variation).unwrap_or(1460.0);
        // Flights of first, 2 first, 4 first, ... segments.
        let begins_with = if new { self.first_flight } else { self.after_pause };
        let growing_ns = begins_with.map_or(0.0, |first| {
            let flights = (bytes / segment / first + 1.0).log2().ceil();
            let sooner = if variation.quick_ack == Some(true) { self.by_quick_ack } else { 0.0 };
            (1.0 - sooner) * (flights - 1.0).max(0.0) * server.round_trip
        });
        // A record of TLS is read when all of it is there.
        let is_one_record = server.tls && bytes <= 16_384.0;
        for (phase, ns) in phases {
            match *phase {
                phase::CONNECT | phase::TLS => *ns += self.filter,
                phase::WAIT => *ns += self.filter + if is_one_record { growing_ns } else { 0.0 },
                phase::RECEIVE => {
                    *ns += (bytes / segment).ceil() * self.per_packet;
                    let by_segments = self.window_segments.map(|segments| segments * segment);
                    for window in self.window.into_iter().chain(by_segments) {
                        *ns = ns.max(((streams * bytes - 1.0) / window).floor() * server.round_trip);
                    }
                    *ns += if is_one_record { 0.0 } else { growing_ns };
                }
                _ => {}
            }
        }
    }

    /// Adds the mean of stalls to the phases.
    pub fn stall(&self, phases: &mut [(Phase, f64)], connections: f64, variation: &Variation) {
        for stall in self.stalls.iter().filter(|stall| stall.happens(connections, variation)) {
            for (_, ns) in phases.iter_mut().filter(|(phase, _)| *phase == stall.phase) {
                *ns += stall.share * stall.ns;
            }
        }
    }

    /// Ops of so many that TCP at our end had to send again.
    pub fn sent_again(&self, connections: f64, variation: &Variation) -> f64 {
        let ours = self.stalls.iter().filter(|stall| stall.sent_again && stall.happens(connections, variation));
        ours.map(|stall| stall.share).sum()
    }

    /// How the times of phases, whose means are these, are spread; and those of whole ops.
    pub fn profiles(
        &self,
        server: &Server,
        phases: &[(Phase, f64)],
        connections: f64,
        variation: &Variation,
    ) -> (BTreeMap<Id, Profile>, Profile) {
        if !self.profiles {
            return (BTreeMap::new(), Profile::default());
        }
        let stall_of = |phase: Phase| {
            let stalls =
                self.stalls.iter().filter(|stall| stall.phase == phase && stall.happens(connections, variation));
            stalls.fold((0.0, 0.0), |(share, ns): (f64, f64), stall| (share + stall.share, ns.max(stall.ns)))
        };
        let mut profiles = BTreeMap::new();
        let (mut quiet, mut stalled, mut longest) = (0.0, 0.0, 0.0f64);
        for &(phase, mean) in phases {
            let (share, ns) = stall_of(phase);
            let rest = (mean - share * ns).max(1.0);
            profiles.insert(phase.id(), spread(1_000, rest, share, ns));
            quiet += rest;
            stalled += share;
            longest = longest.max(ns);
        }
        // Connections that are kept were made once.
        profiles.entry(phase::CONNECT.id()).or_insert_with(|| {
            spread(if self.few_connects { 2 } else { 8 }, server.round_trip + self.filter, 0.0, 0.0)
        });
        (profiles, spread(1_000, quiet, stalled.min(1.0), longest))
    }
}

/// Times around `ns`, a share of them longer.
fn spread(count: u64, ns: f64, share: f64, longer_ns: f64) -> Profile {
    let at = |probability: f64| {
        let longer = if share > 0.0 && probability > 1.0 - share { longer_ns } else { 0.0 };
        (ns * (0.98 + 0.04 * probability) + longer) as Nanos
    };
    Profile { count, at_ns: Profile::PROBABILITIES.into_iter().map(at).collect() }
}

/// A server without TLS whose network is looked at.
pub fn near() -> Server {
    Server {
        tls: false,
        cores: 32.0,
        net: Net { profiles: true, segment: Some(1448), ..Net::default() },
        ..Server::default()
    }
}
