//! How a worker waits for events: asleep in the kernel, or awake for a while before it sleeps.
//!
//! Whoever sends to a sleeping process wakes it within the own send call. On a virtual machine that is an exit to the
//! hypervisor, and a halted CPU takes tens of microseconds to come back: the server pays for the one, the response time shows
//! the other, and both vary from wake-up to wake-up. So a worker with ops in flight may poll for events before it sleeps.
//!
//! For how long is the ski-rental problem (Karlin, Li, Manasse and Owicki 1991, "Empirical studies of competitive spinning
//! for a shared-memory multiprocessor"): staying awake costs its own time, a sleep costs a fixed price. The limit is the one that
//! would have cost least over the waits that have been seen, and 0 (sleep at once) is one of the choices.
//!
//! Waits that are slept through last longer than the same waits awake: not only do we have to be woken, but the CPU of whoever
//! answers falls asleep as well while we do not ask. Chosen from them, sleeping looks right for ever. So waits are learnt from
//! now and then while the worker stays awake for as long as it ever does, and the price of a sleep is what waits have lasted
//! longer in between.

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
/// How long before a due time a worker is awake at first, and at most: it costs 100 ops per second 1 % of a CPU.
const FIRST_LEAD_NS: Nanos = 50 * MICROSECOND_NS;
const LONGEST_LEAD_NS: Nanos = 100 * MICROSECOND_NS;
/// The lead grows by so much where a sleep lasted longer than it, and shrinks by a 99th of that where it did not: it settles where
/// one sleep in a hundred lasts longer.
const LEAD_STEP_NS: Nanos = 5 * MICROSECOND_NS;
/// No more than this part of the mean gap between ops is spent awake for punctuality: of a CPU that others may want, and of one that
/// is free.
const LEAD_SHARE: f64 = 1.0 / 8.0;
const FREE_LEAD_SHARE: f64 = 1.0 / 2.0;
/// Waiting times that have to be known before they choose the limit.
const WAITS_TO_CHOOSE: u32 = 32;
/// Between two times in which waits are learnt lie twice as many others each time, up to so many times as many.
const MOST_BETWEEN: u32 = 16;
/// Longer waits count as this in means: a stall is no matter of how it was waited for.
const LONGEST_IN_MEANS_NS: Nanos = MILLISECOND_NS;
/// Waiting times are classed by half octaves from this one on, up to some 0.5 s. It is a power of two.
const SHORTEST_CLASS_NS: Nanos = 1_024;
const CLASSES: usize = 38;

/// What waiting cost in a slot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WaitAudit {
    /// Time awake without anything to do.
    pub(crate) polling_ns: Nanos,
    /// Time in which others had the CPU while the worker was awake without anything to do, or, where the kernel counts that and
    /// it is more, while it wanted to run at all.
    pub(crate) taken_ns: Nanos,
    /// Polling was in somebody's way, so the worker has slept from then on.
    pub(crate) gave_way: bool,
}

/// For how long a worker may wait: asleep first, and then awake until something is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Patience {
    pub(crate) asleep_ns: Nanos,
    pub(crate) awake_ns: Nanos,
}

impl Patience {
    /// All that is waited for.
    pub(crate) fn total_ns(self) -> Nanos {
        self.asleep_ns.saturating_add(self.awake_ns)
    }
}

/// Waits for events of one worker.
#[derive(Debug)]
pub(crate) struct Waiter {
    /// What a sleep costs: see [`crate::wake_cost_ns`].
    sleep_costs_ns: Nanos,
    /// The same, with what it does to whoever is waited for, as far as was seen.
    price_ns: Nanos,
    /// How long the worker stays awake before it sleeps; 0: it sleeps at once.
    limit_ns: Nanos,
    /// How long before a due time it has to wake up to be awake in time.
    lead_ns: Nanos,
    may_poll: bool,
    gives_way: bool,
    slot_start_ns: Nanos,
    /// It stays awake as long as ever, to learn how long waits are.
    learns: bool,
    /// What was learnt since it began to.
    waits: [u32; CLASSES],
    /// Waits since it began to learn, or ended.
    seen: Seen,
    /// Waits before that, in which it did not learn.
    usual: Seen,
    /// How often it was asked to reconsider since it learnt, and how often it has to be before it learns again.
    rested: u32,
    rests: u32,
    audit: WaitAudit,
}

/// Waits and what they came to.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    count: u32,
    slept: u32,
    sum_ns: Nanos,
}

impl Seen {
    fn mean_ns(self) -> f64 {
        self.sum_ns as f64 / f64::from(self.count.max(1))
    }

    /// What a sleep adds to a wait, where these waits were mostly slept through and `awake` ones were not; `None` where they were not.
    fn price_ns(self, awake: Self) -> Option<f64> {
        let share = f64::from(self.slept) / f64::from(self.count.max(1));
        (share > 0.5).then(|| (self.mean_ns() - awake.mean_ns()) / share)
    }
}

impl Waiter {
    /// One whose sleeps cost this much.
    pub(crate) fn new(sleep_costs_ns: Nanos) -> Self {
        Self {
            sleep_costs_ns,
            price_ns: sleep_costs_ns,
            limit_ns: LONGEST_AWAKE_NS,
            lead_ns: FIRST_LEAD_NS,
            may_poll: false,
            gives_way: true,
            slot_start_ns: 0,
            learns: true,
            waits: [0; CLASSES],
            seen: Seen::default(),
            usual: Seen::default(),
            rested: 0,
            rests: 1,
            audit: WaitAudit::default(),
        }
    }

    /// What a sleep costs.
    pub(crate) fn sleep_costs_ns(&self) -> Nanos {
        self.sleep_costs_ns
    }

    /// A slot begins, in which the worker may poll or may not, and has to give way to others or has not. What was learnt
    /// about waiting times stays.
    pub(crate) fn begin(&mut self, may_poll: bool, gives_way: bool, now: Nanos) {
        self.audit = WaitAudit::default();
        (self.may_poll, self.gives_way) = (may_poll, gives_way);
        self.slot_start_ns = now;
        if self.is_told_to_poll() {
            self.limit_ns = LONGEST_AWAKE_NS;
        }
    }

    /// Whether it polls whatever that costs. Waits that were slept through would choose otherwise: they last longer, since the CPU of
    /// whoever answers has slept, too, and so sleeping would look cheap for ever.
    fn is_told_to_poll(&self) -> bool {
        self.may_poll && !self.gives_way
    }

    /// Whether it polls until others want its CPU.
    pub(crate) fn gives_way(&self) -> bool {
        self.may_poll && self.gives_way
    }

    /// Others had the CPU for so long in this slot while the worker wanted it, as the kernel counts; `None` where it does not. Who
    /// works more than it waits meets others while it works, and its gaps do not show them.
    pub(crate) fn waited_for_cpu(&mut self, waited_ns: Option<Nanos>) {
        if self.gives_way() {
            self.audit.taken_ns = self.audit.taken_ns.max(waited_ns.unwrap_or(0));
        }
    }

    /// What the slot's waits have cost so far.
    pub(crate) fn audit(&self) -> WaitAudit {
        self.audit
    }

    /// For how long a worker may wait where it has to look again in `left_ns`, and the mean gap between ops that are due is this;
    /// `None` where none become due by the clock.
    #[inline]
    pub(crate) fn patience(&self, left_ns: Nanos, mean_gap_ns: Option<f64>) -> Patience {
        let share = if self.may_poll { FREE_LEAD_SHARE } else { LEAD_SHARE };
        let Some(gap_ns) = mean_gap_ns else { return Patience { asleep_ns: left_ns, awake_ns: 0 } };
        let lead_ns = self.lead_ns.min((gap_ns * share) as Nanos);
        // A sleep that is shorter than what it costs saves nothing.
        if self.may_poll && left_ns.saturating_sub(lead_ns) < self.sleep_costs_ns {
            return Patience { asleep_ns: 0, awake_ns: left_ns };
        }
        Patience { asleep_ns: left_ns.saturating_sub(lead_ns), awake_ns: left_ns.min(lead_ns) }
    }

    /// Waits until something is ready or the patience is over; answers how many events there are. The worker stays awake
    /// first where it may and ops are in flight.
    #[inline]
    pub(crate) fn wait(&mut self, poller: &mut Poller, patience: Patience, in_flight: bool) -> io::Result<usize> {
        if !self.may_poll && patience.awake_ns == 0 {
            return Ok(poller.wait(Some(patience.asleep_ns))?.len());
        }
        // What is there at the first question was not waited for.
        let count = poller.wait(Some(0))?.len();
        if count > 0 || patience.total_ns() == 0 {
            return Ok(count);
        }
        let began_ns = monotonic_ns();
        let until_ns = began_ns.saturating_add(patience.total_ns());
        if patience.asleep_ns > 0 {
            let count = self.poll_then_sleep(poller, began_ns, patience.asleep_ns, in_flight)?;
            if count > 0 || patience.awake_ns == 0 {
                return Ok(count);
            }
            match monotonic_ns().checked_sub(began_ns.saturating_add(patience.asleep_ns)) {
                Some(late_ns) => self.woke_late(late_ns),
                // A signal ended the sleep, or work of the kernel for this thread (io_uring): that says nothing of how late sleeps
                // end. The caller looks what there is, and waits again.
                None => return Ok(0),
            }
        }
        let (count, now) = self.awake_until(poller, monotonic_ns(), until_ns)?;
        if in_flight && count > 0 {
            self.waited(now.saturating_sub(began_ns), patience.asleep_ns > 0);
        }
        Ok(count)
    }

    fn poll_then_sleep(
        &mut self,
        poller: &mut Poller,
        began_ns: Nanos,
        timeout_ns: Nanos,
        in_flight: bool,
    ) -> io::Result<usize> {
        let mut now = began_ns;
        if in_flight && self.may_poll {
            let until_ns = began_ns.saturating_add(self.limit_ns.min(timeout_ns));
            let count;
            (count, now) = self.awake_until(poller, began_ns, until_ns)?;
            if count > 0 {
                self.waited(now.saturating_sub(began_ns), false);
                return Ok(count);
            }
        }
        let left_ns = timeout_ns.saturating_sub(now.saturating_sub(began_ns));
        let count = poller.wait(Some(left_ns))?.len();
        if in_flight && count > 0 {
            self.waited(monotonic_ns().saturating_sub(began_ns), true);
        }
        Ok(count)
    }

    /// Stays awake from `now` on until something is ready or the time has come; answers how many events there are, and when.
    fn awake_until(&mut self, poller: &mut Poller, mut now: Nanos, until_ns: Nanos) -> io::Result<(usize, Nanos)> {
        while now < until_ns {
            let pause_until_ns = (now + PAUSE_NS).min(until_ns);
            while now < pause_until_ns {
                std::hint::spin_loop();
                now = self.awake_since(now);
            }
            if now >= until_ns {
                // To ask once more would be time that the op which is due waits for. Who sleeps next is told then.
                break;
            }
            let count = poller.wait(Some(0))?.len();
            if count > 0 {
                return Ok((count, now));
            }
            now = self.awake_since(now);
        }
        Ok((0, now))
    }

    /// A sleep that nothing ended lasted so much longer than it was meant to.
    fn woke_late(&mut self, late_ns: Nanos) {
        self.lead_ns = match late_ns > self.lead_ns {
            true => (self.lead_ns + LEAD_STEP_NS).min(LONGEST_LEAD_NS),
            false => self.lead_ns.saturating_sub(LEAD_STEP_NS / 99),
        };
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
    fn waited(&mut self, waited_ns: Nanos, slept: bool) {
        self.seen.count = self.seen.count.saturating_add(1);
        self.seen.slept += u32::from(slept);
        self.seen.sum_ns += waited_ns.min(LONGEST_IN_MEANS_NS);
        if self.learns {
            // The wake-up itself is no waiting.
            let count =
                &mut self.waits[class_of(waited_ns.saturating_sub(if slept { self.sleep_costs_ns } else { 0 }))];
            *count = count.saturating_add(1);
        }
    }

    /// Looks at what was seen since the last time: sleeps from now on where polling is in somebody's way, and otherwise
    /// chooses how long to stay awake.
    pub(crate) fn reconsider(&mut self, now: Nanos) {
        let passed_ns = now.saturating_sub(self.slot_start_ns);
        if self.gives_way() && is_in_the_way(self.audit.taken_ns, passed_ns) {
            self.may_poll = false;
            self.audit.gave_way = true;
        }
        if !self.gives_way() {
            return;
        }
        self.rested += 1;
        if self.learns && self.seen.count >= WAITS_TO_CHOOSE {
            if let Some(price_ns) = self.usual.price_ns(self.seen) {
                self.price_ns =
                    (price_ns.max(0.0) as Nanos).clamp(self.sleep_costs_ns, LONGEST_AWAKE_NS.max(self.sleep_costs_ns));
            }
            self.limit_ns = cheapest_limit_ns(&self.waits, self.price_ns);
            (self.learns, self.rested, self.seen) = (false, 0, Seen::default());
        } else if !self.learns && self.rested >= self.rests && self.seen.count >= self.rests * WAITS_TO_CHOOSE {
            self.rests = (2 * self.rests).min(MOST_BETWEEN);
            (self.learns, self.limit_ns, self.waits) = (true, LONGEST_AWAKE_NS, [0; CLASSES]);
            self.usual = std::mem::take(&mut self.seen);
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

    fn asleep(asleep_ns: Nanos) -> Patience {
        Patience { asleep_ns, awake_ns: 0 }
    }

    #[test]
    fn before_a_due_time_the_worker_is_awake_and_hears_of_events() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut poller = Poller::new().unwrap();
        poller.add(&ours, 3, Interest::Read).unwrap();
        let mut waiter = Waiter::new(30 * MICROSECOND_NS);
        // Also who may not poll for answers.
        waiter.begin(false, true, monotonic_ns());
        let due_in = Patience { asleep_ns: 300_000, awake_ns: 200_000 };
        let before = monotonic_ns();
        assert_eq!(waiter.wait(&mut poller, due_in, false).unwrap(), 0);
        assert!(monotonic_ns() - before >= 500_000, "never early");
        assert_eq!(waiter.wait(&mut poller, Patience { asleep_ns: 0, ..due_in }, false).unwrap(), 0);
        let awake = waiter.audit();
        assert!(awake.polling_ns + awake.taken_ns > 0, "{awake:?}");
        theirs.write_all(b"x").unwrap();
        assert_eq!(waiter.wait(&mut poller, Patience { asleep_ns: 0, awake_ns: 1_000_000_000 }, false).unwrap(), 1);
    }

    /// A process that is stopped goes on with its sleeps interrupted, as by a signal that somebody handles.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_sleep_that_was_interrupted_is_no_sleep_that_ended_in_time() {
        let mut poller = Poller::new().unwrap();
        let mut waiter = Waiter::new(30 * MICROSECOND_NS);
        waiter.begin(false, true, monotonic_ns());
        let lead_ns = waiter.lead_ns;
        let due_in = Patience { asleep_ns: 60_000_000_000, awake_ns: 200_000 };
        // Again and again, since one may come before the sleep has begun.
        let script = format!("while sleep 0.1; do kill -STOP {0}; kill -CONT {0}; done", std::process::id());
        let mut stops = std::process::Command::new("sh").args(["-c", &script]).spawn().unwrap();
        let before = monotonic_ns();
        let count = waiter.wait(&mut poller, due_in, false);
        let waited_ns = monotonic_ns() - before;
        stops.kill().unwrap();
        stops.wait().unwrap();
        assert_eq!(count.unwrap(), 0);
        assert!(waited_ns < due_in.asleep_ns, "it returns to whoever waits");
        assert_eq!((waiter.lead_ns, waiter.audit()), (lead_ns, WaitAudit::default()));
    }

    #[test]
    fn the_lead_is_what_sleeps_last_too_long_within_a_share_of_the_gap() {
        let mut waiter = Waiter::new(30 * MICROSECOND_NS);
        let lead_ns = |waiter: &Waiter, gap_ns: f64| waiter.patience(MILLISECOND_NS, Some(gap_ns)).awake_ns;
        (0..10_000).for_each(|_| waiter.woke_late(20 * MICROSECOND_NS));
        assert!((15_000..30_000).contains(&lead_ns(&waiter, 1e7)), "{waiter:?}");
        (0..10_000).for_each(|_| waiter.woke_late(80 * MICROSECOND_NS));
        assert!((75_000..90_000).contains(&lead_ns(&waiter, 1e7)), "{waiter:?}");
        (0..10_000).for_each(|_| waiter.woke_late(MILLISECOND_NS));
        assert_eq!(lead_ns(&waiter, 1e7), LONGEST_LEAD_NS);
        assert_eq!(lead_ns(&waiter, 80_000.0), 10_000, "an eighth of a CPU that others may want");
        waiter.begin(true, true, 0);
        assert_eq!(lead_ns(&waiter, 80_000.0), 40_000);
        assert_eq!(waiter.patience(MILLISECOND_NS, None), asleep(MILLISECOND_NS), "nothing is due by the clock");
        let soon = waiter.patience(60_000, Some(1e7));
        assert_eq!((soon.asleep_ns, soon.awake_ns), (0, 60_000));
        // Less than a sleep costs is no time to sleep where the CPU is free.
        let lasts_ns = LONGEST_LEAD_NS + 29_000;
        assert_eq!(waiter.patience(lasts_ns, Some(1e7)), Patience { asleep_ns: 0, awake_ns: lasts_ns });
        waiter.begin(false, true, 0);
        assert_eq!(waiter.patience(lasts_ns, Some(1e7)).asleep_ns, 29_000);
    }

    #[test]
    fn an_awake_wait_hears_of_an_event_keeps_its_timeout_and_counts_its_time() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut poller = Poller::new().unwrap();
        poller.add(&ours, 3, Interest::Read).unwrap();
        let mut waiter = Waiter::new(100 * MICROSECOND_NS);
        waiter.begin(true, true, monotonic_ns());
        let before = monotonic_ns();
        assert_eq!(waiter.wait(&mut poller, asleep(400_000), true).unwrap(), 0);
        assert!(monotonic_ns() - before >= 400_000);
        let awake = waiter.audit();
        assert!(awake.polling_ns + awake.taken_ns >= 100_000, "{awake:?}");
        // Nothing is in flight: there is nothing to stay awake for.
        assert_eq!(waiter.wait(&mut poller, asleep(400_000), false).unwrap(), 0);
        assert_eq!(waiter.audit(), awake);
        theirs.write_all(b"x").unwrap();
        assert_eq!(waiter.wait(&mut poller, asleep(1_000_000_000), true).unwrap(), 1);
        // It was there at the first question.
        assert_eq!(waiter.audit(), awake);
        waiter.begin(false, true, monotonic_ns());
        assert_eq!(waiter.wait(&mut poller, asleep(1_000_000_000), true).unwrap(), 1);
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
        // Others had the CPU while it worked.
        waiter.waited_for_cpu(None);
        waiter.waited_for_cpu(Some(60 * MILLISECOND_NS));
        waiter.reconsider(1_000 * MILLISECOND_NS);
        assert!(waiter.audit().gave_way);
        waiter.begin(true, false, 0);
        waiter.waited_for_cpu(Some(60 * MILLISECOND_NS));
        assert_eq!(waiter.audit().taken_ns, 0, "it was told to poll");
    }

    #[test]
    fn who_is_told_to_poll_does_so_whatever_waits_were_seen() {
        let mut waiter = Waiter::new(10 * MICROSECOND_NS);
        waiter.begin(true, true, 0);
        (0..100).for_each(|_| waiter.waited(150 * MICROSECOND_NS, false));
        waiter.reconsider(100 * MILLISECOND_NS);
        assert_eq!(waiter.limit_ns, 0, "a sleep is cheaper");
        waiter.begin(true, false, 0);
        (0..100).for_each(|_| waiter.waited(150 * MICROSECOND_NS, true));
        waiter.reconsider(100 * MILLISECOND_NS);
        assert_eq!(waiter.limit_ns, LONGEST_AWAKE_NS);
    }

    /// Answers come after `awake_us` where the worker is awake, and after `asleep_us` where it sleeps; its limit after each of so many
    /// looks.
    fn limits(awake_us: Nanos, asleep_us: Nanos, looks: usize) -> Vec<Nanos> {
        let mut waiter = Waiter::new(17 * MICROSECOND_NS);
        waiter.begin(true, true, 0);
        let mut look = || {
            for _ in 0..2_000 {
                let slept = awake_us * MICROSECOND_NS > waiter.limit_ns;
                waiter.waited(MICROSECOND_NS * if slept { asleep_us } else { awake_us }, slept);
            }
            waiter.reconsider(0);
            waiter.limit_ns
        };
        (0..looks).map(|_| look()).collect()
    }

    #[test]
    fn the_price_of_a_sleep_is_what_it_was_seen_to_add() {
        // By our own wake-up alone a sleep seems the better choice; it makes the other end sleep, too.
        let seen = limits(21, 48, 60);
        assert_eq!(seen[0], 0);
        assert!(seen[3..].iter().all(|&limit_ns| limit_ns >= 21 * MICROSECOND_NS), "{seen:?}");
        // It adds no more than our own wake-up: asleep, but for the times of learning, which become few.
        let seen = limits(40, 57, 200);
        assert!(seen[100..].iter().filter(|&&limit_ns| limit_ns > 0).count() <= 7, "{seen:?}");
    }
}
