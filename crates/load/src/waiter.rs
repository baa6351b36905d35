//! How a worker waits for events: asleep in the kernel, or awake for a while before it sleeps.
//!
//! Whoever sends to a sleeping process wakes it within the own send call. On a virtual machine that is an exit to the
//! hypervisor, and a halted CPU takes tens of microseconds to come back: the server pays for the one, the response time shows
//! the other, and both vary from wake-up to wake-up. So a worker with ops in flight may poll for events before it sleeps.
//!
//! For how long is the ski-rental problem (Karlin, Li, Manasse and Owicki 1991, "Empirical studies of competitive spinning
//! for a shared-memory multiprocessor"): staying awake costs its own time, a sleep costs a fixed price. Where nothing is known
//! of the waiting times, staying awake for as long as a sleep costs is at most twice as dear as the best choice. Where some
//! have been seen, the limit is the one that would have cost least over them, and 0 (sleep at once) is one of the choices.

use crate::clock::monotonic_ns;
use crate::poller::Poller;
use duel_model::{MICROSECOND_NS, MILLISECOND_NS, Nanos};
use std::io;

/// Pause between two questions while awake. To ask epoll takes the lock that the server needs to report an event, so asking
/// without pause slows down who is waited for; a pause makes an answer at most this late, and late answers are time-stamped
/// by the kernel. Half of what the shortest answers over loopback take (10 µs).
const PAUSE_NS: Nanos = 5 * MICROSECOND_NS;
/// Longest time awake before a sleep, whatever waiting times say: 100 ops per second that each end a wait of it cost 2 % of
/// a CPU.
const LONGEST_AWAKE_NS: Nanos = 200 * MICROSECOND_NS;
/// Two readings of the clock while awake lie some 30 ns apart, a timer interrupt between them makes that some microseconds.
/// A gap longer than this is time in which somebody else had the CPU.
const TAKEN_NS: Nanos = 50 * MICROSECOND_NS;
/// Share of the time from which on polling is in somebody's way: it is what others had to be given, by the scheduler, the
/// group's quota or the hypervisor.
const TAKEN_SHARE: f64 = 0.02;
/// Less than this in all is no sign of anything: some turns of short-lived processes.
const LEAST_TAKEN_NS: Nanos = 50 * MILLISECOND_NS;
/// Waiting times that have to be known before they choose the limit.
const WAITS_TO_CHOOSE: u32 = 32;
/// Waiting times are classed by half octaves from this one on, up to some 0.5 s. It is a power of two.
const SHORTEST_CLASS_NS: Nanos = 1_024;
const CLASSES: usize = 38;

/// What waiting cost in a slot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WaitAudit {
    /// Time awake without anything to do.
    pub(crate) polling_ns: Nanos,
    /// Time in which others had the CPU while the worker was awake without anything to do.
    pub(crate) taken_ns: Nanos,
    /// Polling was in somebody's way, so the worker has slept from then on.
    pub(crate) gave_way: bool,
}

/// Waits for events of one worker.
#[derive(Debug)]
pub(crate) struct Waiter {
    /// What a sleep costs: see [`crate::wake_cost_ns`].
    sleep_costs_ns: Nanos,
    /// How long the worker stays awake before it sleeps; 0: it sleeps at once.
    limit_ns: Nanos,
    may_poll: bool,
    gives_way: bool,
    slot_start_ns: Nanos,
    /// How often a wait took so long, by class; halved now and then, so that the latest count most.
    waits: [u32; CLASSES],
    audit: WaitAudit,
}

impl Waiter {
    /// One whose sleeps cost this much.
    pub(crate) fn new(sleep_costs_ns: Nanos) -> Self {
        Self {
            sleep_costs_ns,
            limit_ns: sleep_costs_ns.min(LONGEST_AWAKE_NS),
            may_poll: false,
            gives_way: true,
            slot_start_ns: 0,
            waits: [0; CLASSES],
            audit: WaitAudit::default(),
        }
    }

    /// A slot begins, in which the worker may poll or may not, and has to give way to others or has not. What was learnt
    /// about waiting times stays.
    pub(crate) fn begin(&mut self, may_poll: bool, gives_way: bool, now: Nanos) {
        self.audit = WaitAudit::default();
        (self.may_poll, self.gives_way) = (may_poll, gives_way);
        self.slot_start_ns = now;
    }

    /// What the slot's waits have cost so far.
    pub(crate) fn audit(&self) -> WaitAudit {
        self.audit
    }

    /// Waits until something is ready or `timeout_ns` is over; answers how many events there are. The worker stays awake
    /// first where it may and ops are in flight.
    #[inline]
    pub(crate) fn wait(&mut self, poller: &mut Poller, timeout_ns: Nanos, in_flight: bool) -> io::Result<usize> {
        if !self.may_poll {
            return Ok(poller.wait(Some(timeout_ns))?.len());
        }
        // What is there at the first question was not waited for.
        let count = poller.wait(Some(0))?.len();
        if count > 0 || timeout_ns == 0 {
            return Ok(count);
        }
        self.poll_then_sleep(poller, timeout_ns, in_flight)
    }

    fn poll_then_sleep(&mut self, poller: &mut Poller, timeout_ns: Nanos, in_flight: bool) -> io::Result<usize> {
        let began_ns = monotonic_ns();
        let mut now = began_ns;
        if in_flight {
            let until_ns = began_ns.saturating_add(self.limit_ns.min(timeout_ns));
            while now < until_ns {
                let pause_until_ns = (now + PAUSE_NS).min(until_ns);
                while now < pause_until_ns {
                    std::hint::spin_loop();
                    now = self.awake_since(now);
                }
                let count = poller.wait(Some(0))?.len();
                if count > 0 {
                    self.waited(now.saturating_sub(began_ns));
                    return Ok(count);
                }
                now = self.awake_since(now);
            }
        }
        let left_ns = timeout_ns.saturating_sub(now.saturating_sub(began_ns));
        let count = poller.wait(Some(left_ns))?.len();
        if in_flight && count > 0 {
            // The wake-up itself is no waiting.
            let waited_ns = monotonic_ns().saturating_sub(began_ns).saturating_sub(self.sleep_costs_ns);
            self.waited(waited_ns.max(now.saturating_sub(began_ns)));
        }
        Ok(count)
    }

    /// Counts the time since the clock was last read, and reads it.
    #[inline]
    fn awake_since(&mut self, last_ns: Nanos) -> Nanos {
        let now = monotonic_ns();
        let step_ns = now.saturating_sub(last_ns);
        if step_ns < TAKEN_NS {
            self.audit.polling_ns += step_ns;
        } else {
            self.audit.taken_ns += step_ns;
        }
        now
    }

    #[inline]
    fn waited(&mut self, waited_ns: Nanos) {
        let count = &mut self.waits[class_of(waited_ns)];
        *count = count.saturating_add(1);
    }

    /// Looks at what was seen since the last time: sleeps from now on where polling is in somebody's way, and otherwise
    /// chooses how long to stay awake.
    pub(crate) fn reconsider(&mut self, now: Nanos) {
        let passed_ns = now.saturating_sub(self.slot_start_ns);
        if self.may_poll && self.gives_way && is_in_the_way(self.audit.taken_ns, passed_ns) {
            self.may_poll = false;
            self.audit.gave_way = true;
        }
        if self.waits.iter().sum::<u32>() >= WAITS_TO_CHOOSE {
            self.limit_ns = cheapest_limit_ns(&self.waits, self.sleep_costs_ns);
            self.waits.iter_mut().for_each(|count| *count /= 2);
        }
    }
}

/// Whether polling is in somebody's way, where others had the CPU for so much of this time.
pub fn is_in_the_way(taken_ns: Nanos, passed_ns: Nanos) -> bool {
    taken_ns >= LEAST_TAKEN_NS && taken_ns as f64 > TAKEN_SHARE * passed_ns as f64
}

/// The limit that would have cost least over these waits, where a sleep costs so much.
fn cheapest_limit_ns(waits: &[u32; CLASSES], sleep_costs_ns: Nanos) -> Nanos {
    let cost = |limit_ns: Nanos| -> f64 {
        let of_class = |(class, &count): (usize, &u32)| {
            let is_awaited = upper_ns(class) <= limit_ns;
            let each_ns = if is_awaited { middle_ns(class) } else { limit_ns + sleep_costs_ns };
            f64::from(count) * each_ns as f64
        };
        waits.iter().enumerate().map(of_class).sum()
    };
    let longer = (0..CLASSES).map(upper_ns).filter(|&limit_ns| limit_ns <= LONGEST_AWAKE_NS);
    std::iter::once(0).chain(longer).min_by(|&a, &b| cost(a).total_cmp(&cost(b))).unwrap_or(0)
}

/// The class of a waiting time.
#[inline]
fn class_of(wait_ns: Nanos) -> usize {
    let highest_bit = wait_ns.max(SHORTEST_CLASS_NS).ilog2();
    // The bit below the highest one tells the half of the octave.
    let half = wait_ns.max(SHORTEST_CLASS_NS) >> (highest_bit - 1) & 1;
    (2 * (highest_bit - SHORTEST_CLASS_NS.ilog2()) as usize + half as usize).min(CLASSES - 1)
}

/// The middle of a class, in ns.
fn middle_ns(class: usize) -> Nanos {
    let octave_ns = SHORTEST_CLASS_NS << (class / 2);
    upper_ns(class) - octave_ns / 4
}

/// The longest time of a class, in ns.
fn upper_ns(class: usize) -> Nanos {
    let octave_ns = SHORTEST_CLASS_NS << (class / 2);
    if class.is_multiple_of(2) { octave_ns + octave_ns / 2 } else { 2 * octave_ns }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poller::Interest;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_wait_belongs_to_the_class_that_holds_it() {
        for class in 0..CLASSES - 1 {
            assert_eq!((class_of(upper_ns(class) - 1), class_of(upper_ns(class))), (class, class + 1));
        }
        assert_eq!((class_of(0), class_of(Nanos::MAX)), (0, CLASSES - 1));
    }

    #[test]
    fn the_limit_is_the_cheapest_over_the_waits_seen() {
        let limit_of = |waits_us: &[u64], costs_us: u64| {
            let mut counts = [0; CLASSES];
            waits_us.iter().for_each(|us| counts[class_of(us * MICROSECOND_NS)] += 1);
            cheapest_limit_ns(&counts, costs_us * MICROSECOND_NS)
        };
        // All answers within 60 µs: it pays to stay awake for them, although a sleep costs less than one of them takes.
        assert!((60_000..100_000).contains(&limit_of(&[60; 9], 65)));
        // A tenth of the waits is long: awake for the short ones only.
        assert!((10_000..20_000).contains(&limit_of(&[10, 10, 10, 10, 10, 10, 10, 10, 10, 5_000], 30)));
        // All are long: asleep at once.
        assert_eq!(limit_of(&[3_000; 5], 30), 0);
        // So long that no sleep costs as much.
        assert!(limit_of(&[3_000; 5], 100_000) <= LONGEST_AWAKE_NS);
    }

    #[test]
    fn an_awake_wait_hears_of_an_event_keeps_its_timeout_and_counts_its_time() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut poller = Poller::new().unwrap();
        poller.add(&ours, 3, Interest::Read).unwrap();
        let mut waiter = Waiter::new(100 * MICROSECOND_NS);
        waiter.begin(true, true, monotonic_ns());
        let before = monotonic_ns();
        assert_eq!(waiter.wait(&mut poller, 400_000, true).unwrap(), 0);
        assert!(monotonic_ns() - before >= 400_000);
        let awake = waiter.audit();
        assert!(awake.polling_ns + awake.taken_ns >= 100_000, "{awake:?}");
        // Nothing is in flight: there is nothing to stay awake for.
        assert_eq!(waiter.wait(&mut poller, 400_000, false).unwrap(), 0);
        assert_eq!(waiter.audit(), awake);
        theirs.write_all(b"x").unwrap();
        assert_eq!(waiter.wait(&mut poller, 1_000_000_000, true).unwrap(), 1);
        // It was there at the first question.
        assert_eq!(waiter.audit(), awake);
        waiter.begin(false, true, monotonic_ns());
        assert_eq!(waiter.wait(&mut poller, 1_000_000_000, true).unwrap(), 1);
        assert_eq!(waiter.audit(), WaitAudit::default());
    }

    #[test]
    fn who_is_in_the_way_sleeps_from_then_on() {
        let mut waiter = Waiter::new(50 * MICROSECOND_NS);
        waiter.begin(true, true, 0);
        waiter.audit.taken_ns = 40 * MILLISECOND_NS;
        waiter.reconsider(100 * MILLISECOND_NS);
        assert!(!waiter.audit().gave_way, "too little in all");
        waiter.audit.taken_ns = 60 * MILLISECOND_NS;
        waiter.reconsider(10_000 * MILLISECOND_NS);
        assert!(!waiter.audit().gave_way, "too small a share");
        waiter.gives_way = false;
        waiter.reconsider(200 * MILLISECOND_NS);
        assert!(!waiter.audit().gave_way, "it was told to poll, whoever wants the CPU");
        waiter.gives_way = true;
        waiter.reconsider(200 * MILLISECOND_NS);
        assert!(waiter.audit().gave_way && !waiter.may_poll);
        waiter.begin(true, true, 0);
        assert!(waiter.may_poll && !waiter.audit().gave_way);
    }
}
