//! From the target's address to the socket addresses that connections are made to, and those that they are made from.

use crate::reach::address::Address;
use crate::reach::search::{Found, Search};
use crate::reach::source::Sources;
use duel_load::{WorkloadError, monotonic_ns};
use duel_model::{AddressChoice, HttpPlan, IpFamily, Nanos, ReachPlan, sanitize_line};
use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// Whether an address has to accept a connection before load is put on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    /// What cannot work is said at once.
    Needed,
    /// What cannot work is seen under load. Addresses of one name are still tried in turn, or a dead one would be
    /// loaded where a client uses the next.
    Unneeded,
}

/// Where connections go, and how that was found.
#[derive(Debug, Clone)]
pub(crate) struct Resolved {
    pub(crate) ends: Ends,
    /// Where they go, in words, safe to show.
    pub(crate) shown: String,
    /// All addresses that the name led to, the peers among them; none of a Unix socket.
    pub(crate) candidates: Vec<SocketAddr>,
    /// The family of all addresses that a look-up found, where that is one and the plan wanted no part of them.
    pub(crate) only_family: Option<IpFamily>,
    /// Time that the look-up took; `None` when there was nothing to look up.
    pub(crate) lookup_ns: Option<Nanos>,
    /// Addresses that did not answer before one did, and why, safe to show.
    pub(crate) dead: Vec<String>,
    /// Time that was lost on them, where they were tried one after another.
    pub(crate) dead_ns: Option<Nanos>,
}

/// The ends that connections can have.
#[derive(Debug, Clone)]
pub(crate) enum Ends {
    /// Peers, of which there is one at least, and local addresses.
    Tcp {
        peers: Vec<SocketAddr>,
        sources: Sources,
    },
    Unix(SocketAddrUnix),
}

/// The ends of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way<'a> {
    Tcp { peer: SocketAddr, source: Option<IpAddr> },
    Unix(&'a SocketAddrUnix),
}

impl Resolved {
    /// The first address of the other family than the peers' that was not found dead; `None` where peers are of both, too.
    pub(crate) fn of_other_family(&self) -> Option<SocketAddr> {
        let Ends::Tcp { peers, .. } = &self.ends else { return None };
        let family = family_of_all(peers)?;
        // Told with where it was tried from, if that was given.
        let is_told =
            |told: &str, address: &str| told.strip_prefix(address).is_some_and(|rest| rest.starts_with([':', ' ']));
        let is_dead = |address: &SocketAddr| self.dead.iter().any(|told| is_told(told, &address.to_string()));
        let is_other = |address: &&SocketAddr| IpFamily::of(address.ip()) != family && !is_dead(address);
        self.candidates.iter().find(is_other).copied()
    }
}

impl Ends {
    /// The ends of the connection number `turn`.
    ///
    /// Peers take turns, and so do sources. Where both do, sources advance by one more each time that all combinations of
    /// equal steps are through, or two peers and two sources would make two pairs of the four that have ports of their own.
    pub(crate) fn way(&self, turn: usize) -> Way<'_> {
        let (peers, sources) = match self {
            Self::Unix(path) => return Way::Unix(path),
            Self::Tcp { peers, sources } => (peers, sources),
        };
        let peer = peers[turn % peers.len()];
        let of_family = sources.of(&peer);
        let source = (!of_family.is_empty()).then(|| {
            let round = turn / least_common_multiple(peers.len(), of_family.len());
            of_family[turn.wrapping_add(round) % of_family.len()]
        });
        Way::Tcp { peer, source }
    }

    /// Pairs of a local and a remote address, each of which has a range of ports of its own.
    pub(crate) fn pairs(&self) -> usize {
        match self {
            Self::Tcp { peers, sources } => peers.iter().map(|peer| sources.of(peer).len().max(1)).sum(),
            Self::Unix(_) => 1,
        }
    }
}

impl Way<'_> {
    pub(crate) fn family(&self) -> AddressFamily {
        match self {
            Self::Tcp { peer: SocketAddr::V4(_), .. } => AddressFamily::INET,
            Self::Tcp { peer: SocketAddr::V6(_), .. } => AddressFamily::INET6,
            Self::Unix(_) => AddressFamily::UNIX,
        }
    }

    pub(crate) fn is_tcp(&self) -> bool {
        matches!(self, Self::Tcp { .. })
    }

    /// Connects a socket that `open` makes; with what connecting said.
    pub(crate) fn connect<S: AsFd, E>(&self, open: impl Fn() -> Result<S, E>) -> Result<(S, Result<(), Errno>), E> {
        match self {
            Self::Tcp { peer, .. } => duel_load::connect_from_next(open, |socket| rustix::net::connect(socket, peer)),
            Self::Unix(path) => open().map(|socket| {
                let connected = rustix::net::connect(&socket, *path);
                (socket, connected)
            }),
        }
    }
}

/// Whom connections are made to, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// A proxy, and not the target.
    pub(crate) is_proxy: bool,
}

impl Address {
    /// Finds out where connections go, by the plan's choice among the addresses that a name leads to.
    ///
    /// A name may have several addresses of which some are dead; unless something else was asked for, what is measured is
    /// the one that an ordinary client would end up with. The answer is used for the whole session, so that all its
    /// connections go to the same place.
    pub(crate) fn resolve(
        &self,
        plan: &HttpPlan,
        connect_timeout_ns: Nanos,
        proof: Proof,
    ) -> Result<Resolved, WorkloadError> {
        if let Some(path) = &plan.unix_socket {
            let shown = sanitize_line(&path.to_string_lossy());
            let peer = SocketAddrUnix::new(path)
                .map_err(|error| WorkloadError(format!("'{shown}' cannot be a Unix socket: {error}")))?;
            std::os::unix::net::UnixStream::connect(path).map_err(|error| {
                WorkloadError(format!("cannot connect to the Unix socket {shown}: {}", plain(&error)))
            })?;
            let (candidates, dead) = (Vec::new(), Vec::new());
            let (ends, only_family, lookup_ns, dead_ns) = (Ends::Unix(peer), None, None, None);
            return Ok(Resolved { ends, shown, candidates, only_family, lookup_ns, dead, dead_ns });
        }
        let place = self.place(plan);
        let sources = Sources::checked(&plan.reach)?;
        let (found, lookup_ns) = place.look_up(&plan.reach)?;
        let is_free = lookup_ns.is_some() && plan.reach.family.is_none() && plan.reach.sources.is_empty();
        let only_family = family_of_all(&found).filter(|_| is_free);
        let candidates = place.usable(found, &plan.reach, &sources)?;
        let search = Search { place: &place, sources: &sources, connect_timeout_ns, proof };
        let Found { peers, dead, dead_ns } = match plan.reach.addresses {
            AddressChoice::Answering => search.in_turn(&candidates)?,
            AddressChoice::Race => search.race(&candidates)?,
            AddressChoice::First => search.in_turn(&candidates[..1])?,
            AddressChoice::All => search.at_once(&candidates)?,
        };
        let shown = listed(&peers);
        Ok(Resolved { ends: Ends::Tcp { peers, sources }, shown, candidates, only_family, lookup_ns, dead, dead_ns })
    }
}

impl Place {
    /// All addresses that the name leads to, and how long looking it up took if it was.
    fn look_up(&self, reach: &ReachPlan) -> Result<(Vec<SocketAddr>, Option<Nanos>), WorkloadError> {
        let (host, port) = (self.host.as_str(), self.port);
        if let Some(given) = reach.overrides.iter().find_map(|rule| rule.addresses_of(host, port)) {
            return Ok((given.iter().map(|&address| SocketAddr::new(address, port)).collect(), None));
        }
        let is_literal = host.parse::<IpAddr>().is_ok();
        let before = monotonic_ns();
        let addresses = (host, port).to_socket_addrs().map_err(|error| {
            WorkloadError(format!(
                "no such {}: the name '{}' cannot be looked up ({})",
                if self.is_proxy { "proxy" } else { "host" },
                sanitize_line(host),
                plain(&error)
            ))
        })?;
        let mut distinct: Vec<SocketAddr> = Vec::new();
        for address in addresses {
            if !distinct.contains(&address) {
                distinct.push(address);
            }
        }
        Ok((distinct, (!is_literal).then(|| monotonic_ns() - before)))
    }

    /// Those of the addresses that the plan can reach; never none.
    fn usable(
        &self,
        found: Vec<SocketAddr>,
        reach: &ReachPlan,
        sources: &Sources,
    ) -> Result<Vec<SocketAddr>, WorkloadError> {
        let host = sanitize_line(&self.host);
        if found.is_empty() {
            return Err(WorkloadError(format!("the name '{host}' has no address")));
        }
        let mut usable = found.clone();
        if let Some(family) = reach.family {
            usable.retain(|address| IpFamily::of(address.ip()) == family);
            if usable.is_empty() {
                return Err(WorkloadError(format!(
                    "'{host}' has no {family} address, and no other one may be used; it has {}",
                    listed(&found)
                )));
            }
        }
        usable.retain(|address| sources.reach(address));
        if usable.is_empty() {
            let (theirs, ours) = if found[0].is_ipv4() { ("IPv4", "IPv6") } else { ("IPv6", "IPv4") };
            return Err(WorkloadError(format!(
                "'{host}' has {theirs} addresses only ({}), and --source gives {ours} addresses only",
                listed(&found)
            )));
        }
        Ok(usable)
    }
}

/// The family that all of these addresses have; `None` where there are both, or none.
fn family_of_all(addresses: &[SocketAddr]) -> Option<IpFamily> {
    let family = IpFamily::of(addresses.first()?.ip());
    addresses.iter().all(|address| IpFamily::of(address.ip()) == family).then_some(family)
}

/// Addresses in words; of many the first ones.
fn listed(addresses: &[SocketAddr]) -> String {
    /// As many of the longest fit into a line that is shown.
    const MOST_SHOWN: usize = 5;
    let mut texts: Vec<String> = addresses.iter().take(MOST_SHOWN).map(SocketAddr::to_string).collect();
    if addresses.len() > MOST_SHOWN {
        texts.push(format!("and {} more", addresses.len() - MOST_SHOWN));
    }
    texts.join(", ")
}

/// An error of the operating system without its number.
pub(crate) fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    sanitize_line(text.strip_prefix("failed to lookup address information: ").unwrap_or(text)).to_lowercase()
}

/// Of two numbers above 0.
fn least_common_multiple(a: usize, b: usize) -> usize {
    let (mut divisor, mut rest) = (a, b);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    a / divisor * b
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn ends(peers: &[&str], sources: &str) -> Ends {
        let ranges = sources.split(',').filter(|range| !range.is_empty()).map(|range| range.parse().unwrap());
        let reach = ReachPlan { sources: ranges.collect(), ..ReachPlan::default() };
        Ends::Tcp {
            peers: peers.iter().map(|peer| peer.parse().unwrap()).collect(),
            sources: Sources::checked(&reach).unwrap(),
        }
    }

    #[test]
    fn every_pair_of_addresses_gets_its_share() {
        for (peers, sources, pairs) in [
            (&["127.0.0.1:80"][..], "", 1),
            (&["127.0.0.1:80", "127.0.0.2:80"], "", 2),
            (&["127.0.0.1:80"], "127.0.0.2-127.0.0.5", 4),
            (&["127.0.0.1:80", "127.0.0.2:80"], "127.0.0.2,127.0.0.3", 4),
            (&["127.0.0.1:80", "127.0.0.2:80", "127.0.0.3:80"], "127.0.0.2-127.0.0.7", 18),
            (&["127.0.0.1:80", "127.0.0.2:80"], "127.0.0.2-127.0.0.4", 6),
        ] {
            let ends = ends(peers, sources);
            assert_eq!(ends.pairs(), pairs);
            let mut uses: BTreeMap<String, u32> = BTreeMap::new();
            for turn in 0..10 * pairs {
                *uses.entry(format!("{:?}", ends.way(turn))).or_default() += 1;
            }
            assert_eq!((uses.len(), uses.values().all(|&times| times == 10)), (pairs, true), "{uses:?}");
        }
    }

    #[test]
    fn a_source_is_of_its_peers_family() {
        let ends = ends(&["127.0.0.1:80", "[::1]:80"], "127.0.0.2,127.0.0.3");
        for turn in 0..20 {
            let Way::Tcp { peer, source } = ends.way(turn) else { panic!("no TCP") };
            assert_eq!(peer.is_ipv4(), source.is_some(), "{turn}");
        }
        assert_eq!(ends.pairs(), 3);
    }

    #[test]
    fn local_addresses_have_to_be_here() {
        let checked = |range: &str| {
            let reach = ReachPlan { sources: vec![range.parse().unwrap()], ..ReachPlan::default() };
            Sources::checked(&reach).map(|_| ()).map_err(|error| error.to_string())
        };
        assert!(checked("192.0.2.77").unwrap_err().contains("192.0.2.77 is not on this machine"));
        assert!(checked("10.0.0.0/8").unwrap_err().contains("4096 can"));
    }

    proptest::proptest! {
        /// What is typed or kept is read or refused, and what was read is written so that it is read again.
        #[test]
        fn ranges_and_overrides_survive_their_text(text in "[0-9a-f:./,*\\[\\]-]{0,40}|.{0,40}") {
            if let Ok(range) = text.parse::<duel_model::AddressRange>() {
                proptest::prop_assert_eq!(range.to_string().parse(), Ok(range));
                proptest::prop_assert!(range.count() >= 1);
            }
            if let Ok(rule) = text.parse::<duel_model::NameOverride>() {
                proptest::prop_assert_eq!(rule.to_string().parse(), Ok(rule));
            }
        }

        #[test]
        fn a_network_holds_what_its_length_says(bits: u32, length in 16u32..=32) {
            let first = bits & u32::MAX.checked_shl(32 - length).unwrap_or(0);
            let range: duel_model::AddressRange =
                format!("{}/{length}", std::net::Ipv4Addr::from_bits(first)).parse().unwrap();
            let all = 1u128 << (32 - length);
            proptest::prop_assert_eq!(range.count(), if length < 31 { all - 2 } else { all });
            proptest::prop_assert_eq!(range.iter().count() as u128, range.count());
        }
    }

    #[test]
    fn many_addresses_are_not_listed_whole() {
        let addresses: Vec<SocketAddr> = (1..200).map(|port| SocketAddr::from(([127, 0, 0, 1], port))).collect();
        let text = listed(&addresses);
        assert!(text.starts_with("127.0.0.1:1, ") && text.ends_with(", and 194 more"), "{text}");
    }
}
