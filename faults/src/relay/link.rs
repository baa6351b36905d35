//! One direction of a path: what is lost, what waits in the queue, and when each piece arrives.

use super::Bucket;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::VecDeque;

/// What one direction of a path does to packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkPlan {
    /// Propagation delay of each packet.
    pub(crate) delay_us: u64,
    /// Added to it: uniformly between nothing and this. Order is kept, as on a queue, so that nothing looks like loss.
    pub(crate) jitter_us: u64,
    /// Rate of the line, without headers of lower layers.
    pub(crate) bytes_per_s: Option<u64>,
    /// How much may wait for the line; what does not fit is dropped at the tail. Only with a rate.
    pub(crate) queue_bytes: u64,
    /// Packets lost in a million, each independently.
    pub(crate) loss_ppm: u32,
    /// All that to packets of IPv6 only; others arrive at once.
    pub(crate) only_ipv6: bool,
    /// How long nothing arrives at the beginning of each period, and the period; 0: never.
    pub(crate) stalls_us: u64,
    pub(crate) stalls_each_us: u64,
}

impl Default for LinkPlan {
    fn default() -> LinkPlan {
        // A queue of 256 KiB: about what a router's port has for a line of 10 to 100 MB/s.
        LinkPlan {
            delay_us: 0,
            jitter_us: 0,
            bytes_per_s: None,
            queue_bytes: 256 << 10,
            loss_ppm: 0,
            only_ipv6: false,
            stalls_us: 0,
            stalls_each_us: 0,
        }
    }
}

/// A link under way. Times are nanoseconds since any one instant, and the caller's.
#[derive(Debug)]
pub(crate) struct Link<T> {
    plan: LinkPlan,
    bucket: Option<Bucket>,
    random: Pcg64Mcg,
    /// Pieces in the order of arrival, with the time at which each leaves the line and that at which it arrives.
    under_way: VecDeque<Piece<T>>,
    latest_arrival_ns: u64,
    dropped: u64,
}

#[derive(Debug)]
struct Piece<T> {
    content: T,
    bytes: u64,
    sent_ns: u64,
    arrives_ns: u64,
}

impl<T> Link<T> {
    pub(crate) fn new(plan: LinkPlan, seed: u64) -> Link<T> {
        // A line sends packet by packet: the burst is one packet of the usual size.
        const BURST_BYTES: u64 = 1500;
        Link {
            plan,
            bucket: plan.bytes_per_s.map(|rate| Bucket::new(rate, BURST_BYTES)),
            random: Pcg64Mcg::seed_from_u64(seed),
            under_way: VecDeque::new(),
            latest_arrival_ns: 0,
            dropped: 0,
        }
    }

    /// Takes a piece in, or drops it.
    pub(crate) fn push(&mut self, content: T, bytes: u64, now_ns: u64) {
        let lost = self.plan.loss_ppm > 0 && self.random.random_range(0..1_000_000) < self.plan.loss_ppm;
        let full = self.bucket.is_some() && self.waiting_bytes(now_ns) + bytes > self.plan.queue_bytes;
        if lost || full {
            self.dropped += 1;
            return;
        }
        let sent_ns = self.bucket.as_mut().map_or(now_ns, |bucket| bucket.take(bytes, now_ns));
        let jitter_ns = match self.plan.jitter_us {
            0 => 0,
            jitter_us => self.random.random_range(0..=jitter_us * 1000),
        };
        let without_stalls_ns = sent_ns + self.plan.delay_us * 1000 + jitter_ns;
        let arrives_ns = self.after_stall(without_stalls_ns).max(self.latest_arrival_ns);
        self.latest_arrival_ns = arrives_ns;
        self.under_way.push_back(Piece { content, bytes, sent_ns, arrives_ns });
    }

    /// The next piece that has arrived by now.
    pub(crate) fn pop(&mut self, now_ns: u64) -> Option<T> {
        if self.next_ns()? > now_ns {
            return None;
        }
        self.under_way.pop_front().map(|piece| piece.content)
    }

    /// When the next piece arrives.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.under_way.front().map(|piece| piece.arrives_ns)
    }

    /// The end of the stall that this time falls into, or the time itself.
    fn after_stall(&self, at_ns: u64) -> u64 {
        let (stalls_ns, each_ns) = (self.plan.stalls_us * 1000, self.plan.stalls_each_us * 1000);
        let since_ns = at_ns.checked_rem(each_ns).unwrap_or(stalls_ns);
        at_ns + stalls_ns.saturating_sub(since_ns)
    }

    /// What has not left the line yet. Pieces leave in order, so the search ends at the first that has.
    fn waiting_bytes(&self, now_ns: u64) -> u64 {
        self.under_way.iter().rev().take_while(|piece| piece.sent_ns > now_ns).map(|piece| piece.bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn plan() -> LinkPlan {
        LinkPlan::default()
    }

    #[test]
    fn a_piece_arrives_after_the_delay_and_not_before() {
        let mut link = Link::new(LinkPlan { delay_us: 5000, ..plan() }, 1);
        link.push('a', 100, 10 * MS);
        assert_eq!(link.next_ns(), Some(15 * MS));
        assert_eq!(link.pop(15 * MS - 1), None);
        assert_eq!(link.pop(15 * MS), Some('a'));
        assert_eq!((link.pop(99 * MS), link.next_ns()), (None, None));
    }

    #[test]
    fn delay_does_not_lessen_what_passes() {
        let mut link = Link::new(LinkPlan { delay_us: 100_000, ..plan() }, 1);
        for n in 0..1000_u64 {
            link.push(n, 1500, n);
        }
        let arrived: Vec<u64> = std::iter::from_fn(|| link.pop(100 * MS + 1000)).collect();
        assert_eq!(arrived, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn a_rate_spaces_pieces_and_the_queue_drops_at_its_tail() {
        // 1 MB/s: 1500 bytes take 1.5 ms. The first passes from the burst, then 3000 bytes may wait.
        let mut link = Link::new(LinkPlan { bytes_per_s: Some(1_000_000), queue_bytes: 3000, ..plan() }, 1);
        for n in 0..5 {
            link.push(n, 1500, 0);
        }
        assert_eq!(link.dropped, 2);
        assert_eq!((link.pop(0), link.pop(0)), (Some(0), None));
        assert_eq!(link.next_ns(), Some(3 * MS / 2));
        assert_eq!((link.pop(3 * MS), link.pop(3 * MS)), (Some(1), Some(2)));
        // Once the queue has run empty there is room again.
        link.push(9, 1500, 3 * MS);
        assert_eq!(link.dropped, 2);
    }

    #[test]
    fn jitter_never_changes_the_order() {
        let mut link = Link::new(LinkPlan { jitter_us: 1000, ..plan() }, 7);
        for n in 0..100_u64 {
            link.push(n, 1, n * 1000);
        }
        let mut last = 0;
        for n in 0..100 {
            let next = link.next_ns().unwrap();
            assert!(next >= last && next <= 99 * 1000 + MS);
            last = next;
            assert_eq!(link.pop(next), Some(n));
        }
    }

    #[test]
    fn nothing_arrives_in_a_stall_and_all_at_its_end() {
        let mut link = Link::new(LinkPlan { delay_us: 1000, stalls_us: 20_000, stalls_each_us: 100_000, ..plan() }, 1);
        for (n, ms) in [50, 98, 99, 110, 119, 120].into_iter().enumerate() {
            link.push(n, 1500, ms * MS);
        }
        let arrives: Vec<u64> = std::iter::from_fn(|| {
            let next = link.next_ns()?;
            link.pop(next)?;
            Some(next / MS)
        })
        .collect();
        assert_eq!(arrives, [51, 99, 120, 120, 120, 121]);
    }

    #[test]
    fn losses_are_as_frequent_as_told() {
        let mut link = Link::new(LinkPlan { loss_ppm: 20_000, ..plan() }, 3);
        for n in 0..100_000 {
            link.push(n, 1500, 0);
        }
        // 2000 are expected; the standard deviation is 44.
        assert!((1780..2220).contains(&link.dropped), "{}", link.dropped);
        let mut lossless = Link::new(plan(), 3);
        (0..1000).for_each(|n| lossless.push(n, 1500, 0));
        assert_eq!(lossless.dropped, 0);
    }
}
