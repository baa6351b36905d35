//! Datagrams to the server, which tells on the connection how many came. An op is a datagram that came; one that did not come is
//! an op that failed.

use super::Step;
use super::bulk::readable_before;
use super::connection::{Connection, closed, failed, lost};
use crate::protocol::{REPORT_BYTES, Report};
use crate::schema::failure;
use duel_load::{Failure, monotonic_ns};
use duel_model::{MICROSECOND_NS, MILLISECOND_NS, Nanos, SECOND_NS};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Instant;

/// Datagrams that are sent before other streams get their turn, and at most to catch up with a rate.
const BURST: u32 = 64;
/// A sender that the system takes nothing from asks again after this time.
const PAUSE_NS: Nanos = 50 * MICROSECOND_NS;
/// A datagram that has not come for this long after later ones is lost. A reordered one would have come: paths that keep some back for
/// longer are rarer than lost datagrams by far.
const LOST_AFTER_NS: Nanos = 100 * MILLISECOND_NS;

/// A datagram that no report has passed for this long is missing, even where no report comes at all: few round trips take longer.
const OVERDUE_AFTER_NS: Nanos = SECOND_NS;

/// A stream of datagrams.
#[derive(Debug)]
pub(crate) struct Datagrams {
    socket: UdpSocket,
    /// Header and payload of the next one.
    next: Vec<u8>,
    /// Between two; 0: as fast as the system takes them.
    gap_ns: f64,
    due_ns: f64,
    sent: u64,
    unsent: u64,
    heard: [u8; REPORT_BYTES],
    heard_bytes: usize,
    pub(crate) told: Report,
    /// Where the slot began: numbers and sums before belong to earlier ones.
    base: Report,
    losses: Losses,
    /// Of the datagrams that the server's system dropped in this slot: those that an op has failed with.
    dropped_told: u64,
}

/// Which datagrams are lost for good.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Losses {
    since_ns: Nanos,
    /// Fewest that were missing since.
    fewest: u64,
    lost: u64,
    /// Of them: those that no op has failed with.
    untold: u64,
    /// So many had been sent at that time.
    mark: Option<(Nanos, u64)>,
    /// What has a lower number than this is overdue.
    overdue: u64,
}

impl Losses {
    /// So many are missing now.
    fn missing(&mut self, missing: u64, now_ns: Nanos) {
        self.fewest = self.fewest.min(missing);
        if now_ns.saturating_sub(self.since_ns) >= LOST_AFTER_NS {
            let more = self.fewest.saturating_sub(self.lost);
            self.lost += more;
            self.untold += more;
            (self.since_ns, self.fewest) = (now_ns, missing);
        }
    }

    /// So many were sent until now.
    fn sent(&mut self, sent: u64, now_ns: Nanos) {
        match self.mark {
            Some((at_ns, _)) if now_ns.saturating_sub(at_ns) < OVERDUE_AFTER_NS => {}
            before => {
                self.overdue = before.map_or(self.overdue, |(_, sent)| sent);
                self.mark = Some((now_ns, sent));
            }
        }
    }
}

/// What a slot's datagrams came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) sent: u64,
    /// Lost on the way.
    pub(crate) lost: u64,
    /// Dropped by the server's system.
    pub(crate) dropped: u64,
    pub(crate) late: u64,
    pub(crate) again: u64,
    pub(crate) unsent: u64,
}

impl Datagrams {
    /// Sends to the port that the server has told.
    pub(crate) fn new(
        server: IpAddr,
        port: u16,
        token: u64,
        length: usize,
        mbps: f64,
        payload: &[u8],
    ) -> Result<Self, Box<Failure>> {
        let any: IpAddr = if server.is_ipv4() { [0, 0, 0, 0].into() } else { std::net::Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind(SocketAddr::new(any, 0)).and_then(|socket| {
            socket.connect(SocketAddr::new(server, port))?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        let socket = socket.map_err(|error| failed(failure::EXHAUSTED, format!("no socket for datagrams: {error}")))?;
        let mut next: Vec<u8> = payload.iter().copied().cycle().take(length).collect();
        next[..8].copy_from_slice(&token.to_be_bytes());
        Ok(Self {
            socket,
            next,
            gap_ns: if mbps > 0.0 { length as f64 * 8000.0 / mbps } else { 0.0 },
            due_ns: 0.0,
            sent: 0,
            unsent: 0,
            heard: [0; REPORT_BYTES],
            heard_bytes: 0,
            told: Report::default(),
            base: Report::default(),
            losses: Losses::default(),
            dropped_told: 0,
        })
    }

    /// An op begins: one that is lost ends it at once.
    pub(crate) fn begin(&mut self, now_ns: Nanos) -> Step {
        if self.due_ns == 0.0 {
            self.due_ns = now_ns as f64;
            self.losses.since_ns = now_ns;
        }
        self.take_lost().unwrap_or(Step::Pending)
    }

    /// What ends an op that is under way, if datagrams are lost that no op has failed with. Without reports nothing else would.
    pub(crate) fn take_lost(&mut self) -> Option<Step> {
        let missing = std::mem::take(&mut self.losses.untold);
        // What was dropped at the other end did not get lost on the way.
        let dropped = self.dropped().saturating_sub(self.dropped_told).min(missing);
        let ops = |count| u32::try_from(count).unwrap_or(u32::MAX);
        if dropped > 0 {
            self.dropped_told += dropped;
            self.losses.untold = missing - dropped;
            return Some(Step::Dropped { ops: ops(dropped) });
        }
        (missing > 0).then(|| Step::Lost { ops: ops(missing) })
    }

    /// Dropped by the server's system in this slot, as far as it has told.
    fn dropped(&self) -> u64 {
        self.told.dropped - self.base.dropped
    }

    /// When the next one is to be sent.
    pub(crate) fn wakes_at(&self) -> Nanos {
        self.due_ns as Nanos
    }

    /// Sends what is due.
    pub(crate) fn send(&mut self, now_ns: Nanos) -> Result<(), Box<Failure>> {
        let now = now_ns as f64;
        self.losses.sent(self.sent, now_ns);
        self.look_for_lost(now_ns);
        for _ in 0..BURST {
            if self.due_ns > now {
                return Ok(());
            }
            self.next[8..16].copy_from_slice(&self.sent.to_be_bytes());
            self.next[16..24].copy_from_slice(&monotonic_ns().to_be_bytes());
            match send(&self.socket, &self.next, SendFlags::NOSIGNAL) {
                Ok(_) => self.sent += 1,
                Err(Errno::AGAIN | Errno::NOBUFS) if self.gap_ns > 0.0 => self.unsent += 1,
                Err(Errno::AGAIN | Errno::NOBUFS) => {
                    self.due_ns = now + PAUSE_NS as f64;
                    return Ok(());
                }
                // What became of an earlier one; this one was not sent.
                Err(Errno::CONNREFUSED) if self.told.came > 0 => self.unsent += 1,
                Err(Errno::CONNREFUSED) => {
                    let text = "nobody takes datagrams at the port that the server has told; something between may take connections alone";
                    return Err(failed(failure::REFUSED, text));
                }
                Err(Errno::MSGSIZE) => {
                    return Err(failed(
                        failure::EXHAUSTED,
                        format!("the path takes no datagrams of {} bytes; use a smaller --datagram", self.next.len()),
                    ));
                }
                Err(error) => return Err(lost(error)),
            }
            self.due_ns += self.gap_ns;
        }
        // What could not be sent in time is not sent later in a burst that no rate asked for.
        let behind = ((now - self.due_ns) / self.gap_ns.max(1.0)).floor();
        if self.gap_ns > 0.0 && behind > f64::from(BURST) {
            self.unsent += behind as u64;
            self.due_ns += behind * self.gap_ns;
        }
        Ok(())
    }

    /// Something can be read while an op is under way.
    pub(crate) fn ready(&mut self, connection: &Connection, now_ns: Nanos) -> Result<Step, Box<Failure>> {
        let before = self.told.came;
        self.hear(connection, now_ns)?;
        let came = self.told.came - before.max(self.base.came);
        if came == 0 {
            return Ok(Step::Pending);
        }
        Ok(Step::Done { ops: u32::try_from(came).unwrap_or(u32::MAX), payload: came * self.next.len() as u64 })
    }

    /// What is heard while no op is under way belongs to none.
    pub(crate) fn idle(&mut self, connection: &Connection) -> Result<(), Box<Failure>> {
        self.hear(connection, 0)
    }

    /// Waits until the server has told of the last datagram, and says what became of those since the last time. What has not come
    /// by then is lost.
    pub(crate) fn settle(&mut self, connection: &Connection, until: Instant) -> Sums {
        while self.told.next < self.sent && readable_before(connection, until) && self.hear(connection, 0).is_ok() {}
        let Report { came, next, late, again, jitter_ns: _, dropped: _ } = self.base;
        let sent = self.sent - next;
        let missing = sent.saturating_sub(self.told.came - came);
        let dropped = self.dropped().min(missing);
        let sums = Sums {
            sent,
            lost: missing - dropped,
            dropped,
            late: self.told.late - late,
            again: self.told.again - again,
            unsent: std::mem::take(&mut self.unsent),
        };
        self.base = Report { next: self.sent, ..self.told };
        (self.losses, self.due_ns, self.dropped_told) = (Losses::default(), 0.0, 0);
        sums
    }

    fn hear(&mut self, connection: &Connection, now_ns: Nanos) -> Result<(), Box<Failure>> {
        loop {
            match recv(&connection.stream, &mut self.heard[self.heard_bytes..], RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return Err(closed()),
                Ok((_, n)) => self.heard_bytes += n,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(lost(error)),
            }
            if self.heard_bytes == REPORT_BYTES {
                self.heard_bytes = 0;
                self.take(Report::read(&self.heard), now_ns)?;
            }
        }
    }

    fn take(&mut self, report: Option<Report>, now_ns: Nanos) -> Result<(), Box<Failure>> {
        let before = self.told;
        let report = report.filter(|told| {
            let grows = told.came >= before.came && told.next >= before.next && told.late >= before.late;
            grows && told.again >= before.again && told.dropped >= before.dropped && told.next <= self.sent
        });
        let Some(report) = report else {
            return Err(failed(failure::NONSENSE, "the server tells of datagrams that it was not sent"));
        };
        self.told = report;
        // As long as none of this slot's numbers has come, all that came were earlier slots', which have been counted as lost.
        if report.next <= self.base.next {
            self.base = Report { next: self.base.next, ..report };
        }
        self.look_for_lost(now_ns);
        Ok(())
    }

    fn look_for_lost(&mut self, now_ns: Nanos) {
        let numbers = self.told.next.max(self.losses.overdue).saturating_sub(self.base.next);
        self.losses.missing(numbers.saturating_sub(self.told.came - self.base.came), now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_late_is_not_lost_and_what_does_not_come_is() {
        let mut losses = Losses { since_ns: 0, ..Losses::default() };
        // Two are missing for a moment; one of them is late, the other one does not come.
        for (missing, at_ms) in [(0, 10), (2, 50), (1, 90), (1, 110), (1, 150), (1, 190), (1, 215)] {
            losses.missing(missing, at_ms * MILLISECOND_NS);
        }
        assert_eq!((losses.lost, losses.untold), (1, 1));
    }

    /// A millisecond between two datagrams, on a way where none is ever read.
    fn datagrams() -> (Datagrams, UdpSocket) {
        let nobody = UdpSocket::bind("127.0.0.1:0").unwrap();
        let at = nobody.local_addr().unwrap();
        let mut datagrams = Datagrams::new(at.ip(), at.port(), 7, 100, 0.8, b"payload").unwrap();
        assert!(matches!(datagrams.begin(SECOND_NS), Step::Pending));
        (datagrams, nobody)
    }

    fn lost(datagrams: &mut Datagrams) -> u64 {
        match datagrams.take_lost() {
            Some(Step::Lost { ops }) => u64::from(ops),
            _ => 0,
        }
    }

    #[test]
    fn datagrams_are_lost_even_where_no_report_ever_comes() {
        let (mut datagrams, _nobody) = datagrams();
        let mut all = 0;
        for ms in 0..5000 {
            datagrams.send(SECOND_NS + ms * MILLISECOND_NS).unwrap();
            all += lost(&mut datagrams);
        }
        assert_eq!(datagrams.sent, 5000);
        assert!((2900..=4000).contains(&all), "{all} of those that were sent more than a second ago");
    }

    #[test]
    fn what_is_on_a_long_way_is_not_lost() {
        let (mut datagrams, _nobody) = datagrams();
        for ms in 0..5000_u64 {
            let now_ns = SECOND_NS + ms * MILLISECOND_NS;
            datagrams.send(now_ns).unwrap();
            let came = ms.saturating_sub(900);
            let report = Report { came, next: came, ..Report::default() };
            datagrams.take(Some(report), now_ns).unwrap();
            assert_eq!(lost(&mut datagrams), 0);
        }
    }

    #[test]
    fn what_comes_after_its_slot_makes_up_for_no_loss_of_the_next_one() {
        let (mut datagrams, _nobody) = datagrams();
        let report = |came, next| Report { came, next, ..Report::default() };
        // Ten of the last slot, of which two had not come when it was settled, and ten of this one.
        (datagrams.sent, datagrams.told, datagrams.base) = (20, report(8, 8), report(8, 10));
        datagrams.take(Some(report(10, 10)), 0).unwrap();
        assert_eq!(datagrams.base, report(10, 10));
        datagrams.take(Some(report(17, 20)), 0).unwrap();
        assert_eq!(datagrams.told.came - datagrams.base.came, 7, "three of ten are lost");
    }

    #[test]
    fn what_the_servers_system_dropped_is_not_lost_on_the_way() {
        let (mut datagrams, _nobody) = datagrams();
        datagrams.sent = 20;
        // Of 20 that were sent 12 came, and 5 were dropped where they came to; 3 are missing for another reason.
        let report = Report { came: 12, next: 20, dropped: 5, ..Report::default() };
        for at_ms in [0, 120, 240] {
            datagrams.take(Some(report), SECOND_NS + at_ms * MILLISECOND_NS).unwrap();
        }
        assert!(matches!(datagrams.take_lost(), Some(Step::Dropped { ops: 5 })));
        assert!(matches!(datagrams.take_lost(), Some(Step::Lost { ops: 3 })));
        assert!(datagrams.take_lost().is_none());
        assert!(datagrams.take(Some(Report { dropped: 4, ..report }), 0).is_err(), "fewer than before");
    }

    /// A port that nobody has any more: the system tells by refusing what is sent next.
    #[test]
    fn what_the_system_did_not_take_because_an_earlier_one_was_refused_counts_as_unsent() {
        let (mut datagrams, nobody) = datagrams();
        drop(nobody);
        datagrams.told.came = 1;
        for ms in 0..100 {
            datagrams.send(SECOND_NS + ms * MILLISECOND_NS).unwrap();
        }
        assert_eq!(datagrams.sent + datagrams.unsent, 100);
        // Where none ever came it is another matter.
        datagrams.told.came = 0;
        let refused = (100..200).find_map(|ms| datagrams.send(SECOND_NS + ms * MILLISECOND_NS).err());
        assert_eq!(refused.map(|why| why.kind), Some(failure::REFUSED));
    }
}
