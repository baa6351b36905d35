//! Which of several addresses accept connections: tried one after another, in a race, or all at once.

use crate::reach::resolve::{Place, Proof, plain};
use crate::reach::source::{self, Sources};
use duel_load::{WorkloadError, monotonic_ns};
use duel_model::{Nanos, sanitize_line};
use socket2::{Domain, Socket, Type};
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Looks which addresses accept connections.
pub(crate) struct Search<'a> {
    pub(crate) place: &'a Place,
    pub(crate) sources: &'a Sources,
    pub(crate) connect_timeout_ns: Nanos,
    pub(crate) proof: Proof,
}

/// What came of it.
pub(crate) struct Found {
    pub(crate) peers: Vec<SocketAddr>,
    pub(crate) dead: Vec<String>,
    pub(crate) dead_ns: Option<Nanos>,
}

impl Search<'_> {
    /// The first that accepts a connection.
    pub(crate) fn in_turn(&self, candidates: &[SocketAddr]) -> Result<Found, WorkloadError> {
        let only = |peer: SocketAddr, dead, dead_ns| Found { peers: vec![peer], dead, dead_ns };
        if let (Proof::Unneeded, [peer]) = (self.proof, candidates) {
            return Ok(only(*peer, Vec::new(), None));
        }
        let mut failures = Vec::new();
        let first_ns = monotonic_ns();
        for peer in candidates {
            let before_ns = monotonic_ns();
            match self.attempt(*peer).make()? {
                None => {
                    let dead_ns = (!failures.is_empty()).then(|| before_ns - first_ns);
                    return Ok(only(*peer, failures, dead_ns));
                }
                Some(why) => failures.push(why),
            }
        }
        if let (Proof::Unneeded, Some(first)) = (self.proof, candidates.first()) {
            return Ok(only(*first, failures, None));
        }
        Err(self.nobody(failures))
    }

    /// All that accept a connection, in an order that does not depend on the resolver's: name servers rotate theirs.
    pub(crate) fn at_once(&self, candidates: &[SocketAddr]) -> Result<Found, WorkloadError> {
        /// A name may have thousands of addresses, and each attempt is a thread.
        const MOST_AT_ONCE: usize = 64;
        let mut candidates = candidates.to_vec();
        candidates.sort_unstable();
        let (mut peers, mut dead) = (Vec::new(), Vec::new());
        for some in candidates.chunks(MOST_AT_ONCE) {
            let answers: Vec<_> = std::thread::scope(|scope| {
                let attempts: Vec<_> = some.iter().map(|peer| scope.spawn(|| self.attempt(*peer).make())).collect();
                attempts.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
            });
            for (peer, answer) in some.iter().zip(answers) {
                let lost = || Err(WorkloadError("a thread that tried an address ended unexpectedly".into()));
                match answer.unwrap_or_else(|_| lost())? {
                    None => peers.push(*peer),
                    Some(why) => dead.push(why),
                }
            }
        }
        match (self.proof, peers.is_empty()) {
            (_, false) => Ok(Found { peers, dead, dead_ns: None }),
            (Proof::Unneeded, true) => Ok(Found { peers: candidates, dead, dead_ns: None }),
            (Proof::Needed, true) => Err(self.nobody(dead)),
        }
    }

    /// The one that accepts a connection first, where attempts begin one after another (RFC 8305, 4 and 5). What has
    /// failed by then is told; who was only slower is not called dead.
    pub(crate) fn race(&self, candidates: &[SocketAddr]) -> Result<Found, WorkloadError> {
        /// How much later than the attempt before one begins, unless that has failed: the RFC's recommendation.
        const APART: Duration = Duration::from_millis(250);
        if let (Proof::Unneeded, [peer]) = (self.proof, candidates) {
            return Ok(Found { peers: vec![*peer], dead: Vec::new(), dead_ns: None });
        }
        let (tell, answers) = channel();
        let began_ns = monotonic_ns();
        let (mut waiting, mut under_way, mut failures) = (by_turns_of_family(candidates).into_iter(), 0, Vec::new());
        loop {
            // Where any address will do, it is not to take longer than one of them may.
            let is_late = monotonic_ns().saturating_sub(began_ns) >= self.connect_timeout_ns;
            if self.proof == Proof::Unneeded && is_late {
                waiting.by_ref().for_each(drop);
            }
            if let Some(peer) = waiting.next() {
                let (tell, attempt) = (tell.clone(), self.attempt(peer));
                // Losers end by themselves, by the connect timeout at the latest.
                std::thread::Builder::new()
                    .spawn(move || tell.send((peer, attempt.make())))
                    .map_err(|error| WorkloadError(format!("cannot start a thread: {}", plain(&error))))?;
                under_way += 1;
            } else if under_way == 0 {
                return match (self.proof, candidates) {
                    (Proof::Unneeded, [first, ..]) => Ok(Found { peers: vec![*first], dead: failures, dead_ns: None }),
                    _ => Err(self.nobody(failures)),
                };
            }
            let answer = if waiting.len() > 0 {
                answers.recv_timeout(APART)
            } else {
                answers.recv().map_err(|_| RecvTimeoutError::Disconnected)
            };
            if let Ok((peer, answer)) = answer {
                match answer? {
                    None => return Ok(Found { peers: vec![peer], dead: failures, dead_ns: None }),
                    Some(why) => failures.push(why),
                }
                under_way -= 1;
            }
        }
    }

    fn attempt(&self, peer: SocketAddr) -> Attempt {
        let timeout = Duration::from_nanos(self.connect_timeout_ns.max(1));
        Attempt { peer, source: self.sources.of(&peer).first().copied(), timeout }
    }

    fn nobody(&self, mut failures: Vec<String>) -> WorkloadError {
        failures.dedup();
        let Place { host, port, is_proxy } = self.place;
        let (the, who) = if *is_proxy { ("the proxy ", "proxy") } else { ("", "server") };
        WorkloadError(format!(
            "cannot connect to {the}{} port {port} ({}); is the {who} running, and the port right?",
            sanitize_line(host),
            failures.join("; ")
        ))
    }
}

/// A connection that is made to see whether it can be, and given up.
#[derive(Debug, Clone, Copy)]
struct Attempt {
    peer: SocketAddr,
    source: Option<IpAddr>,
    timeout: Duration,
}

impl Attempt {
    /// Whether the address accepts it; if not, why. What no other address could help is an error.
    fn make(self) -> Result<Option<String>, WorkloadError> {
        let Self { peer, source, timeout } = self;
        let connected = Socket::new(Domain::for_address(peer), Type::STREAM, None).and_then(|socket| {
            source.map_or(Ok(()), |source| source::bind(&socket, source))?;
            socket.connect_timeout(&peer.into(), timeout)
        });
        let from = source.map_or_else(String::new, |source| format!(" from {source}"));
        match connected {
            Ok(()) => Ok(None),
            Err(error) if error.kind() == std::io::ErrorKind::AddrNotAvailable => Err(WorkloadError(format!(
                "no local port is free to connect to {peer}{from}; wait a minute for closed connections to give theirs \
                 back, let this machine use them again at once (net.ipv4.tcp_tw_reuse=1), give more local addresses (--source), or widen \
                 net.ipv4.ip_local_port_range"
            ))),
            Err(error) => Ok(Some(format!("{peer}{from}: {}", plain(&error)))),
        }
    }
}

/// The families in turn, beginning with the first's (RFC 8305, 4): a whole family may be dead.
fn by_turns_of_family(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let (firsts, others): (Vec<SocketAddr>, Vec<SocketAddr>) =
        addresses.iter().partition(|address| address.is_ipv4() == addresses[0].is_ipv4());
    let longest = firsts.len().max(others.len());
    (0..longest).flat_map(|at| [firsts.get(at), others.get(at)]).flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns_in_a_race() {
        let order = |texts: &[&str]| {
            let addresses: Vec<SocketAddr> = texts.iter().map(|text| text.parse().unwrap()).collect();
            by_turns_of_family(&addresses).iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(order(&["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1"]), "[::1]:1 1.1.1.1:1 [::2]:1 [::3]:1");
        assert_eq!(order(&["1.1.1.1:1", "1.1.1.2:1", "[::1]:1"]), "1.1.1.1:1 [::1]:1 1.1.1.2:1");
        assert_eq!(order(&["1.1.1.1:1"]), "1.1.1.1:1");
    }
}
