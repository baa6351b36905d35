//! A link that is watched: small datagrams at a steady pace to the server and back, and when none came back for how long.

use crate::address::Address;
use crate::client::connection::unconnected;
use crate::kind::greet;
use crate::protocol::{DATAGRAM_HEADER, Hello, Op};
use duel_load::{Network, WorkloadError, monotonic_ns, unix_ms};
use duel_model::{MICROSECOND_NS, MILLISECOND_NS, Nanos, SECOND_NS};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often the server is asked on the connection whether it is still there.
const ALIVE_EVERY: Duration = Duration::from_secs(30);

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct WatchPlan {
    /// Between two datagrams.
    pub every_ns: Nanos,
    /// Shortest silence that is told.
    pub gap_ns: Nanos,
    /// How long it goes on; `None`: until it is stopped.
    pub duration_ns: Option<Nanos>,
    /// How long connecting may take.
    pub timeout_ns: Nanos,
}

/// A stretch in which nothing came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// When the last datagram before it came back, in ms since 1970.
    pub at_unix_ms: i64,
    /// From then to the next one, less the pause between two: that one would have taken in any case.
    pub silence_ns: Nanos,
    /// Datagrams sent meanwhile that never came back.
    pub lost: u64,
    /// For how long duel itself did not send or look, within it: the machine was busy with other things.
    pub own_ns: Nanos,
    /// It had not ended when the watch did.
    pub is_open: bool,
}

/// What a watch came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Watched {
    /// How long it went on.
    pub elapsed_ns: Nanos,
    /// Datagrams that the system took.
    pub sent: u64,
    /// Datagrams that came back, each counted once.
    pub came: u64,
    /// Datagrams that the system did not take: there was no way.
    pub unsent: u64,
    /// Shortest and longest time to the server and back.
    pub round_trip_ns: Option<(Nanos, Nanos)>,
    /// Gaps, the first [`MOST_GAPS`] of them.
    pub gaps: Vec<Gap>,
    /// All of them.
    pub gap_count: u64,
    /// The server ended it, or its connection was lost: nothing is sent back any more, whether the link is up or not.
    pub is_ended_by_server: bool,
}

/// Gaps that are kept: a link that fails for longer than this is told of as it goes on.
pub const MOST_GAPS: usize = 10_000;

/// A link that is about to be watched.
#[derive(Debug)]
pub struct Watch {
    socket: UdpSocket,
    /// As long as it is open the server sends datagrams back.
    connection: TcpStream,
    token: u64,
    plan: WatchPlan,
    to: SocketAddr,
}

impl Watch {
    /// Asks the server to send datagrams back.
    ///
    /// # Errors
    ///
    /// A sentence for the user.
    pub fn begin(address: &Address, plan: WatchPlan) -> Result<Self, WorkloadError> {
        let netns = address.netns.as_deref().map(Network::named).transpose()?;
        Network::within(netns.as_ref(), || Self::begin_here(address, plan))
    }

    fn begin_here(address: &Address, plan: WatchPlan) -> Result<Self, WorkloadError> {
        let timeout = Duration::from_nanos(plan.timeout_ns);
        let (to, mut connection) = address.connect(|to| {
            TcpStream::connect_timeout(&to, timeout).map_err(|error| WorkloadError(unconnected(&to, &error).text))
        })?;
        let until = Instant::now() + timeout;
        let refused = |error: io::Error| WorkloadError(unconnected(&to, &error).text);
        let token = monotonic_ns() << 12 ^ u64::from(std::process::id());
        let hello = Hello {
            op: Op::Watch,
            each_at_once: false,
            block: DATAGRAM_HEADER as u32,
            response: 0,
            window: 0,
            delays: false,
            token,
            congestion: [0; 15],
        };
        let welcome = greet(&mut connection, to, &hello, until)?;
        // A server that is gone without a word is noticed when the link is up again; while it is down for less than an hour, the
        // connection outlasts that.
        let alive = TcpKeepalive::new().with_time(ALIVE_EVERY).with_interval(ALIVE_EVERY);
        #[cfg(target_os = "linux")]
        let alive = alive.with_retries(127);
        SockRef::from(&connection).set_tcp_keepalive(&alive).map_err(refused)?;
        let from = connection.local_addr().map_err(refused)?;
        let socket = UdpSocket::bind(SocketAddr::new(from.ip(), 0)).and_then(|socket| {
            socket.set_nonblocking(true)?;
            socket.connect(SocketAddr::new(to.ip(), welcome.udp_port))?;
            Ok(socket)
        });
        let socket = socket.map_err(|error| WorkloadError(format!("no socket for datagrams: {error}")))?;
        Ok(Self { socket, connection, token, plan, to })
    }

    /// The server's address.
    pub fn to(&self) -> SocketAddr {
        self.to
    }

    /// Watches until it is stopped or over, and tells of each gap when it has ended. While one goes on, it is told of it once a
    /// second.
    pub fn watch(&self, stop: &AtomicBool, tell: &mut dyn FnMut(&Gap)) -> io::Result<Watched> {
        let mut course = Course::new(self.plan, monotonic_ns());
        let mut buffer = [0; DATAGRAM_HEADER + 1];
        loop {
            let now_ns = monotonic_ns();
            course.turn(now_ns);
            while let Ok(n) = self.socket.recv(&mut buffer) {
                if let Some((number, sent_ns)) = self.ours(&buffer[..n])
                    && let Some(gap) = course.came(number, sent_ns, monotonic_ns(), unix_ms())
                {
                    tell(&gap);
                }
            }
            if let Some(gap) = course.goes_on(now_ns) {
                tell(&gap);
            }
            let is_over = self.plan.duration_ns.is_some_and(|ns| now_ns >= course.began_ns.saturating_add(ns));
            if is_over || stop.load(Ordering::Relaxed) {
                break;
            }
            if self.is_ended() {
                course.watched.is_ended_by_server = true;
                break;
            }
            if let Some(number) = course.due(now_ns) {
                let sent = self.socket.send(&self.datagram(number, monotonic_ns()));
                // A way that is gone may come again: that is what is looked for.
                course.sent(sent.is_ok());
            }
            let left_ns = course.next_ns.saturating_sub(monotonic_ns());
            let left = Timespec { tv_sec: (left_ns / SECOND_NS) as _, tv_nsec: (left_ns % SECOND_NS) as _ };
            let mut awaited = [PollFd::new(&self.socket, PollFlags::IN), PollFd::new(&self.connection, PollFlags::IN)];
            match poll(&mut awaited, Some(&left)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            // An error that waits at the socket, such as that the way is gone, would wake us again and again.
            let _ = self.socket.take_error();
        }
        let (watched, open) = course.end(monotonic_ns());
        if let Some(gap) = open {
            tell(&gap);
        }
        Ok(watched)
    }

    /// Whether the server has closed the connection, or it was lost.
    fn is_ended(&self) -> bool {
        match recv(&self.connection, &mut [0; 64][..], RecvFlags::DONTWAIT) {
            // A server has nothing to say here.
            Ok((_, n)) => n == 0,
            Err(Errno::AGAIN | Errno::INTR) => false,
            Err(_) => true,
        }
    }

    fn datagram(&self, number: u64, now_ns: Nanos) -> [u8; DATAGRAM_HEADER] {
        let mut datagram = [0; DATAGRAM_HEADER];
        for (place, long) in datagram.chunks_exact_mut(8).zip([self.token, number, now_ns]) {
            place.copy_from_slice(&long.to_be_bytes());
        }
        datagram
    }

    /// Number and time of one of ours.
    fn ours(&self, datagram: &[u8]) -> Option<(u64, Nanos)> {
        let [token, number, sent_ns]: [u64; 3] = std::array::from_fn(|at| {
            datagram.get(8 * at..8 * at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes)
        });
        (datagram.len() == DATAGRAM_HEADER && token == self.token).then_some((number, sent_ns))
    }
}

/// How a watch goes, by a clock that is told to it.
#[derive(Debug)]
struct Course {
    plan: WatchPlan,
    began_ns: Nanos,
    next_ns: Nanos,
    number: u64,
    /// One more than the highest number that came back.
    seen: u64,
    last_ns: Nanos,
    last_unix_ms: i64,
    turned_ns: Nanos,
    /// For how long we ourselves stood still since the last one came back.
    own_ns: Nanos,
    told_ns: Nanos,
    watched: Watched,
}

/// A turn that takes so much longer than it should is time in which we did nothing.
const OWN_NS: Nanos = MILLISECOND_NS;

impl Course {
    fn new(plan: WatchPlan, now_ns: Nanos) -> Self {
        let (last_unix_ms, watched) = (unix_ms(), Watched::default());
        Self {
            plan,
            began_ns: now_ns,
            next_ns: now_ns,
            number: 0,
            seen: 0,
            last_ns: now_ns,
            last_unix_ms,
            turned_ns: now_ns,
            own_ns: 0,
            told_ns: now_ns,
            watched,
        }
    }

    /// A turn of the loop begins, which was to come no later than the next datagram is due.
    fn turn(&mut self, now_ns: Nanos) {
        let late_ns = now_ns.saturating_sub(self.next_ns.max(self.turned_ns));
        if late_ns > OWN_NS {
            self.own_ns += late_ns;
        }
        self.turned_ns = now_ns;
    }

    /// The number of a datagram that is due. Those that were not sent in time are left out.
    fn due(&mut self, now_ns: Nanos) -> Option<u64> {
        if now_ns < self.next_ns {
            return None;
        }
        let missed = (now_ns - self.next_ns) / self.plan.every_ns;
        self.next_ns += (missed + 1) * self.plan.every_ns;
        Some(self.number)
    }

    fn sent(&mut self, is_sent: bool) {
        if is_sent {
            self.number += 1;
            self.watched.sent += 1;
        } else {
            self.watched.unsent += 1;
        }
    }

    /// One came back: the gap that it ends, if it does.
    fn came(&mut self, number: u64, sent_ns: Nanos, now_ns: Nanos, now_unix_ms: i64) -> Option<Gap> {
        // One that came before, or one that was never sent.
        if number < self.seen || number >= self.number {
            return None;
        }
        let lost = number - self.seen;
        self.seen = number + 1;
        self.watched.came += 1;
        let trip_ns = now_ns.saturating_sub(sent_ns);
        let (shortest_ns, longest_ns) = self.watched.round_trip_ns.unwrap_or((trip_ns, trip_ns));
        self.watched.round_trip_ns = Some((shortest_ns.min(trip_ns), longest_ns.max(trip_ns)));
        let gap = self.gap(now_ns, lost, false);
        (self.last_ns, self.last_unix_ms, self.own_ns, self.told_ns) = (now_ns, now_unix_ms, 0, now_ns);
        gap.inspect(|gap| self.keep(*gap))
    }

    /// A gap that goes on, once a second.
    fn goes_on(&mut self, now_ns: Nanos) -> Option<Gap> {
        if now_ns.saturating_sub(self.told_ns) < SECOND_NS {
            return None;
        }
        self.told_ns = now_ns;
        self.gap(now_ns, self.number - self.seen, true)
    }

    fn gap(&self, now_ns: Nanos, lost: u64, is_open: bool) -> Option<Gap> {
        let silence_ns = now_ns.saturating_sub(self.last_ns).saturating_sub(self.plan.every_ns);
        let Self { last_unix_ms: at_unix_ms, own_ns, .. } = *self;
        (silence_ns >= self.plan.gap_ns).then_some(Gap { at_unix_ms, silence_ns, lost, own_ns, is_open })
    }

    fn keep(&mut self, gap: Gap) {
        self.watched.gap_count += 1;
        if self.watched.gaps.len() < MOST_GAPS {
            self.watched.gaps.push(gap);
        }
    }

    /// It is over: what it came to, and the gap that goes on.
    fn end(mut self, now_ns: Nanos) -> (Watched, Option<Gap>) {
        self.watched.elapsed_ns = now_ns.saturating_sub(self.began_ns);
        let open = self.gap(now_ns, self.number - self.seen, true);
        if let Some(gap) = open {
            self.keep(gap);
        }
        (self.watched, open)
    }
}

impl Default for WatchPlan {
    fn default() -> Self {
        Self { every_ns: MILLISECOND_NS, gap_ns: 10 * MILLISECOND_NS, duration_ns: None, timeout_ns: 10 * SECOND_NS }
    }
}

/// More often than this is load, and no watch.
pub const SHORTEST_PAUSE_NS: Nanos = 100 * MICROSECOND_NS;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = MILLISECOND_NS;

    /// Datagrams every millisecond, which come back after 0.2 ms, but for those that are lost.
    fn course(milliseconds: u64, is_lost: impl Fn(u64) -> bool) -> (Watched, Option<Gap>, Vec<Gap>) {
        let mut course = Course::new(WatchPlan::default(), 0);
        let mut told = Vec::new();
        for ms in 0..milliseconds {
            course.turn(ms * MS);
            told.extend(course.goes_on(ms * MS));
            let number = course.due(ms * MS).unwrap();
            course.sent(true);
            if !is_lost(ms) {
                told.extend(course.came(number, ms * MS, ms * MS + MS / 5, ms as i64));
            }
        }
        let (watched, open) = course.end(milliseconds * MS);
        (watched, open, told)
    }

    #[test]
    fn a_gap_is_as_long_as_the_link_was_down() {
        let (watched, open, told) = course(200, |ms| (100..137).contains(&ms));
        let gap = Gap { at_unix_ms: 99, silence_ns: 37 * MS, lost: 37, own_ns: 0, is_open: false };
        assert_eq!((told, watched.gaps.as_slice(), open), (vec![gap], &[gap][..], None));
        assert_eq!((watched.sent, watched.came, watched.gap_count), (200, 163, 1));
        assert_eq!(watched.round_trip_ns, Some((MS / 5, MS / 5)));
    }

    #[test]
    fn what_is_lost_one_by_one_is_no_gap_and_a_gap_that_goes_on_is_told_each_second() {
        let (watched, open, told) = course(300, |ms| ms % 7 == 0);
        assert_eq!((watched.gap_count, told.len(), open), (0, 0, None));
        let (watched, open, told) = course(3_500, |ms| ms >= 200);
        assert_eq!((told.len(), told.iter().all(|gap| gap.is_open)), (3, true));
        assert_eq!((watched.gap_count, open.map(|gap| gap.lost)), (1, Some(3_300)));
    }

    #[test]
    fn time_in_which_we_stood_still_is_told_of() {
        let mut course = Course::new(WatchPlan::default(), 0);
        assert_eq!(course.due(0), Some(0));
        course.sent(true);
        assert_eq!(course.came(0, 0, MS / 5, 0), None);
        course.turn(50 * MS);
        assert_eq!(course.due(50 * MS), Some(1));
        course.sent(true);
        let gap = course.came(1, 50 * MS, 50 * MS + MS / 5, 50).unwrap();
        assert_eq!((gap.silence_ns, gap.own_ns, gap.lost), (49 * MS, 49 * MS, 0));
        assert_eq!(course.due(50 * MS + MS / 2), None, "those that were not sent in time are not sent in a burst");
        // Numbers that a peer makes up, and those that come again, tell nothing.
        assert_eq!((course.came(7, 0, 90 * MS, 90), course.came(1, 0, 90 * MS, 90)), (None, None));
    }
}
