//! Local ports that connections which we have closed still keep.

use duel_model::{Nanos, SECOND_NS};
use std::collections::VecDeque;

/// How long a connection that we have closed keeps its local port (Linux, TCP_TIMEWAIT_LEN).
const PORT_RESTS_NS: Nanos = 60 * SECOND_NS;

/// The ports for connections to one target.
#[derive(Debug)]
pub(crate) struct Ports {
    /// How many connections may be open or resting: half of the ports are left for everything else.
    affordable: u64,
    /// When connections were opened, and how many.
    opened: VecDeque<(Nanos, u64)>,
}

impl Ports {
    /// `local_ports`: as many as there are; `None`: what carries ops has none, or the system does not tell.
    pub(crate) fn new(local_ports: Option<u32>) -> Self {
        Self { affordable: local_ports.map_or(u64::MAX, |ports| u64::from(ports) / 2), opened: VecDeque::new() }
    }

    /// How many connections can be opened now.
    pub(crate) fn left(&self, now_ns: Nanos) -> u64 {
        let rests = |&&(at_ns, _): &&(Nanos, u64)| at_ns.saturating_add(PORT_RESTS_NS) >= now_ns;
        self.affordable.saturating_sub(self.opened.iter().filter(rests).map(|(_, count)| count).sum())
    }

    /// Whether there is room for so many connections. More than there are ports for at all always have it: what they meet will be seen.
    pub(crate) fn has_room(&self, wanted: u64, now_ns: Nanos) -> bool {
        wanted > self.affordable || wanted <= self.left(now_ns)
    }

    /// So many connections are opened.
    pub(crate) fn take(&mut self, count: u64, now_ns: Nanos) {
        while self.opened.front().is_some_and(|(at_ns, _)| at_ns.saturating_add(PORT_RESTS_NS) < now_ns) {
            self.opened.pop_front();
        }
        self.opened.push_back((now_ns, count));
    }
}

/// How many sets of connections a block may have, where there are ports for so many now, blocks take so long, and load goes on for
/// `left_ns`. Ports are free again after a minute: a longer run needs no more for the sets of more than a minute.
///
/// Half of them are left for the probes that may follow.
pub(crate) fn sets_of_a_block(sets_left: u64, block_ns: Nanos, left_ns: Nanos) -> u64 {
    let blocks = left_ns.min(PORT_RESTS_NS) / block_ns.max(1) + 1;
    sets_left / 2 / blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_closed_connections_are_free_after_a_minute() {
        let mut ports = Ports::new(Some(100));
        assert!(ports.has_room(50, 0));
        ports.take(30, 0);
        assert!(ports.has_room(20, SECOND_NS) && !ports.has_room(21, SECOND_NS));
        assert_eq!((ports.left(SECOND_NS), ports.left(60 * SECOND_NS), ports.left(61 * SECOND_NS)), (20, 20, 50));
        assert!(ports.has_room(51, SECOND_NS), "what can never fit is not waited for");
        ports.take(10, 61 * SECOND_NS);
        assert_eq!((ports.left(61 * SECOND_NS), ports.opened.len()), (40, 1));
        assert!(Ports::new(None).has_room(1 << 40, 0));
    }

    #[test]
    fn a_longer_run_has_no_fewer_sets_than_one_of_a_minute() {
        let of_a_run = |seconds: u64| sets_of_a_block(400, SECOND_NS, seconds * SECOND_NS);
        assert_eq!((of_a_run(0), of_a_run(9), of_a_run(59)), (200, 20, 3));
        assert_eq!((of_a_run(60), of_a_run(61), of_a_run(36_000)), (3, 3, 3));
        // Most of the ports are taken: the set that each block begins with has them.
        assert_eq!(sets_of_a_block(40, SECOND_NS, 60 * SECOND_NS), 0);
    }
}
