//! Datagrams that come, counted.

use super::{Served, answer};
use crate::arrival::{self, Arrival};
use crate::protocol::{DATAGRAM_HEADER, Op, Refusal, Report};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io::{
    self,
    ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock},
};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

/// How often the client is told what came.
const REPORT_EVERY: Duration = Duration::from_millis(5);
/// How many numbers back one may come and still be known for late or for come again; what comes later counts as lost.
const REMEMBERED: u64 = 1 << 16;
/// Between two datagrams that are sent back, on average: half of the shortest pause between those of a watch.
const ANSWER_EVERY: Duration = Duration::from_micros(50);
/// What waited on a way that stood still comes all at once: as much as could have been sent back in this time is.
const ANSWERS_SAVED: Duration = Duration::from_secs(1);

/// Counts datagrams with the token of this connection, and tells of them on it.
pub(super) fn serve(mut served: Served<'_>) -> io::Result<()> {
    // Whoever knows the token could name another machine as the sender, and so have it flooded: what does not come from the
    // connection's peer is none of its datagrams.
    let peer = served.stream.peer_addr()?.ip().to_canonical();
    let socket = served.stream.local_addr().and_then(|mut at| {
        at.set_port(0);
        // A mapped address cannot be bound where the system keeps IPv6 sockets to IPv6.
        if at.ip().to_canonical().is_ipv4() {
            at.set_ip(at.ip().to_canonical());
        }
        let socket = UdpSocket::bind(at)?;
        // A burst is to be lost on the way, not here; the system gives as much as it allows.
        let _ = socket2::SockRef::from(&socket).set_recv_buffer_size(4 << 20);
        arrival::ask_for(&socket);
        socket.set_read_timeout(Some(REPORT_EVERY))?;
        Ok((socket.local_addr()?.port(), socket))
    });
    let Ok((port, socket)) = socket else { return answer(&mut served.stream, Err(Refusal::NoDatagrams), 0) };
    answer(&mut served.stream, Ok(()), port)?;
    let mut buffer = vec![0; served.hello.block as usize + 1];
    let (mut seen, mut told) = (Seen::default(), Report::default());
    let (mut last_report, mut last_sign) = (Instant::now(), Instant::now());
    let mut answers = Answers { next: last_report };
    loop {
        match arrival::receive(&socket, &mut buffer) {
            Ok(Arrival { from, .. }) if from.ip().to_canonical() != peer => {}
            Ok(Arrival { bytes: n, from, at_ns }) => {
                let is_new = seen.came(&buffer[..n], served.hello.token, at_ns);
                // No more is sent back than the numbers that it is about.
                if is_new && served.hello.op == Op::Watch && n == DATAGRAM_HEADER && answers.may_send(Instant::now()) {
                    // One that cannot be sent back is missed by its sender, as one that was lost.
                    let _ = socket.send_to(&buffer[..n], from);
                }
            }
            Err(error) if matches!(error.kind(), WouldBlock | TimedOut | Interrupted | ConnectionRefused) => {}
            // What became of one that was sent back: the way may come again.
            Err(_) if served.hello.op == Op::Watch => {}
            Err(error) => return Err(error),
        }
        if last_report.elapsed() < REPORT_EVERY {
            continue;
        }
        last_report = Instant::now();
        match recv(&served.stream, &mut [0; 64][..], RecvFlags::DONTWAIT) {
            // It is over; a client has nothing to say here.
            Ok(_) => return Ok(()),
            // A way that is watched may be gone for long.
            Err(Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
        // Of a way that is watched the client sees for itself what came: reports would wait in the connection while it is gone. It
        // may be gone for long, and how long is what is to be found out: silence does not end a watch, its lifetime does.
        seen.report.dropped = arrival::dropped(&socket).unwrap_or(0).max(seen.report.dropped);
        if served.hello.op == Op::Watch {
            (told, last_sign) = (seen.report, last_report);
        }
        if seen.report != told {
            match send(&served.stream, &seen.report.bytes(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(crate::protocol::REPORT_BYTES) => (told, last_sign) = (seen.report, last_report),
                // It is told the sums later.
                Err(Errno::AGAIN) => {}
                Ok(_) => return Err(io::ErrorKind::WriteZero.into()),
                Err(error) => return Err(error.into()),
            }
        }
        if last_sign.elapsed() > served.idle || served.is_over() {
            return Ok(());
        }
    }
}

/// How many datagrams may be sent back.
struct Answers {
    /// When the next one may be, if all before had been sent at their pace.
    next: Instant,
}

impl Answers {
    fn may_send(&mut self, now: Instant) -> bool {
        if self.next > now {
            return false;
        }
        self.next = self.next.max(now.checked_sub(ANSWERS_SAVED).unwrap_or(self.next)) + ANSWER_EVERY;
        true
    }
}

/// Which numbers came.
struct Seen {
    report: Report,
    /// A bit for each of the last numbers.
    bits: Vec<u64>,
    jitter_ns: f64,
    /// Time from sending to arrival of the last one, by two clocks that need not agree.
    transit_ns: Option<i128>,
}

impl Default for Seen {
    fn default() -> Self {
        let bits = vec![0; (REMEMBERED / 64) as usize];
        Self { report: Report::default(), bits, jitter_ns: 0.0, transit_ns: None }
    }
}

impl Seen {
    /// Whether it is one of this connection's that has not come before.
    fn came(&mut self, datagram: &[u8], token: u64, now_ns: u64) -> bool {
        let long = |at: usize| datagram.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
        let (Some(theirs), Some(number), Some(sent_ns)) = (long(0), long(8), long(DATAGRAM_HEADER - 8)) else {
            return false;
        };
        // A number that is far ahead of all others is not one of this connection's: so many cannot have been lost at once.
        if theirs != token || number > self.report.next.saturating_add(1 << 32) {
            return false;
        }
        let next = self.report.next;
        if number >= next {
            // Numbers that were passed over have not come.
            let passed = (number - next).min(REMEMBERED);
            (0..passed).for_each(|back| self.set(number - 1 - back, false));
            self.set(number, true);
            self.report.next = number + 1;
            self.report.came += 1;
        } else if next - number <= REMEMBERED {
            if self.is_set(number) {
                self.report.again += 1;
                return false;
            }
            self.set(number, true);
            self.report.came += 1;
            self.report.late += 1;
        } else {
            return false;
        }
        let transit_ns = i128::from(now_ns) - i128::from(sent_ns);
        if let Some(before_ns) = self.transit_ns.replace(transit_ns) {
            let difference_ns = (transit_ns - before_ns).unsigned_abs() as f64;
            self.jitter_ns += (difference_ns - self.jitter_ns) / 16.0;
            self.report.jitter_ns = self.jitter_ns as u64;
        }
        true
    }

    fn place(number: u64) -> (usize, u64) {
        ((number % REMEMBERED / 64) as usize, 1 << (number % 64))
    }

    fn is_set(&self, number: u64) -> bool {
        let (word, bit) = Self::place(number);
        self.bits[word] & bit != 0
    }

    fn set(&mut self, number: u64, came: bool) {
        let (word, bit) = Self::place(number);
        if came { self.bits[word] |= bit } else { self.bits[word] &= !bit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(number: u64, sent_ns: u64) -> Vec<u8> {
        [7_u64, number, sent_ns].iter().flat_map(|long| long.to_be_bytes()).collect()
    }

    fn seen(numbers: &[u64]) -> Report {
        let mut seen = Seen::default();
        for number in numbers {
            seen.came(&datagram(*number, 0), 7, 0);
        }
        seen.report
    }

    #[test]
    fn what_came_late_or_again_is_told_from_what_was_lost() {
        let report = |came, next, late, again| Report { came, next, late, again, ..Report::default() };
        assert_eq!(seen(&[0, 1, 2]), report(3, 3, 0, 0));
        assert_eq!(seen(&[0, 2, 1, 2, 5]), report(4, 6, 1, 1));
        assert_eq!(seen(&[0, 1 << 20, 3]), report(2, (1 << 20) + 1, 0, 0), "too late to be known");
        assert_eq!(seen(&[0, u64::MAX, 1]), report(2, 2, 0, 0), "no number of ours");
        let mut seen = Seen::default();
        assert!(!seen.came(&datagram(0, 0), 8, 0) && !seen.came(b"short", 7, 0));
        assert_eq!(seen.report, Report::default());
    }

    #[test]
    fn no_more_is_sent_back_than_a_watch_asks_for_but_what_waited_on_the_way_is() {
        let began = Instant::now();
        let mut answers = Answers { next: began };
        let all = |answers: &mut Answers, at| (0..50_000).filter(|_| answers.may_send(at)).count();
        assert_eq!(all(&mut answers, began), 1);
        assert_eq!(all(&mut answers, began + 10 * ANSWER_EVERY), 10);
        let saved = ANSWERS_SAVED.div_duration_f64(ANSWER_EVERY) as usize;
        assert_eq!(all(&mut answers, began + 100 * ANSWERS_SAVED), saved + 1);
        assert_eq!(all(&mut answers, began + 100 * ANSWERS_SAVED), 0);
    }

    #[test]
    fn jitter_is_that_of_rfc_3550() {
        let mut seen = Seen::default();
        // Sent every 1000 ns; the way takes 500, 500, 660 and 500 ns by clocks that differ by 10^6.
        for (number, transit) in [500, 500, 660, 500].into_iter().enumerate() {
            let sent = 5_000_000 + 1000 * number as u64;
            assert!(seen.came(&datagram(number as u64, sent), 7, sent - 1_000_000 + transit));
        }
        let expected = 160.0_f64 / 16.0;
        let expected = expected + (160.0 - expected) / 16.0;
        assert_eq!(seen.report.jitter_ns, expected as u64);
    }
}
