//! Resolvers that lie, each on port 53 of an address of its own below 127.0.0.0/8, by UDP.
//!
//! A client meets one when its `resolv.conf` names that address. Port 53 takes root.

use super::Expected;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// One resolver that lies.
#[derive(Clone, Copy, Debug)]
pub struct DnsLie {
    /// `dns/what-it-does`, unique.
    pub name: &'static str,
    /// What it does, in words.
    pub does: &'static str,
    /// The name that it is asked for.
    pub asked: &'static str,
    /// How a client has to take it.
    pub expected: Expected,
    /// Its answers to a question, in order, and how long it waits before each.
    answers: fn(&Question<'_>) -> Vec<Vec<u8>>,
    delay: Duration,
}

/// What it was asked.
struct Question<'a> {
    packet: &'a [u8],
    /// Its section of the packet: name, type and class.
    section: &'a [u8],
    is_v4: bool,
}

const NAME: &str = "liar.example";
const OWN: [u8; 4] = [127, 0, 0, 1];
const NO_DELAY: Duration = Duration::ZERO;

macro_rules! lie {
    ($name:literal, $does:literal, $expected:ident, $answers:expr) => {
        lie!($name, $does, $expected, NO_DELAY, $answers)
    };
    ($name:literal, $does:literal, $expected:ident, $delay:expr, $answers:expr) => {
        DnsLie {
            name: concat!("dns/", $name),
            does: $does,
            asked: NAME,
            expected: Expected::$expected,
            answers: $answers,
            delay: $delay,
        }
    };
}

/// All of them.
pub const LIES: &[DnsLie] = &[
    lie!("in-order", "the address as it is, so that the others fail for what is wrong with them", Ok, |q| vec![
        q.answered(&[OWN])
    ]),
    lie!("silent", "no answer", Refused, |_| vec![]),
    lie!("slow", "an answer after 700 ms", Either, Duration::from_millis(700), |q| vec![q.answered(&[OWN])]),
    lie!("no-such-name", "there is no such name", Refused, |q| vec![q.replied(3, 0, &[])]),
    lie!("server-fails", "it says that it cannot", Refused, |q| vec![q.replied(2, 0, &[])]),
    lie!("refuses", "it does not want to", Refused, |q| vec![q.replied(5, 0, &[])]),
    lie!("no-address", "the name is there, and has no address", Refused, |q| vec![q.replied(0, 0, &[])]),
    lie!("garbage", "bytes that are no answer", Refused, |_| vec![b"\x1b[2J\x1b]0;owned\x07".to_vec()]),
    lie!("another-question", "an answer to another question", Refused, |q| {
        let mut answer = q.answered(&[OWN]);
        answer[0] ^= 0xff;
        vec![answer]
    }),
    lie!("cut", "an answer that ends within an address", Refused, |q| {
        let mut answer = q.answered(&[OWN]);
        answer.truncate(answer.len() - 2);
        vec![answer]
    }),
    lie!("many-addresses", "thirty addresses, of which none listens but the last", Either, |q| {
        let mut addresses: Vec<[u8; 4]> = (2..32).map(|last| [127, 77, 0, last]).collect();
        addresses.push(OWN);
        vec![q.answered(&addresses)]
    }),
    lie!("address-of-nobody", "an address that nobody listens on", Refused, |q| vec![q.answered(&[[127, 77, 0, 1]])]),
    lie!("address-of-all", "the address 0.0.0.0", Either, |q| vec![q.answered(&[[0, 0, 0, 0]])]),
    lie!("address-of-broadcast", "the address 255.255.255.255", Refused, |q| vec![q.answered(&[[255, 255, 255, 255]])]),
    lie!("counts-that-lie", "an answer that is said to hold 65,535 addresses, and holds one", Either, |q| {
        let mut answer = q.answered(&[OWN]);
        answer[6..8].copy_from_slice(&[0xff, 0xff]);
        vec![answer]
    }),
    lie!("alias-of-itself", "the name is an alias of itself", Refused, |q| {
        vec![q.replied(0, 1, b"\xc0\x0c\x00\x05\x00\x01\x00\x00\x00\x00\x00\x02\xc0\x0c")]
    }),
    lie!("alias-with-escapes", "the name is an alias of one with escape sequences", Either, |q| {
        vec![q.replied(0, 1, b"\xc0\x0c\x00\x05\x00\x01\x00\x00\x00\x00\x00\x07\x05\x1b[2J\x07\x00")]
    }),
    lie!("pointer-to-itself", "a compressed name that refers to itself", Refused, |q| {
        let at = (12 + q.section.len()) as u8;
        vec![q.replied(0, 1, &[0xc0, at, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1])]
    }),
    lie!("flood", "a thousand answers to other questions before the right one", Either, |q| {
        let mut wrong = q.answered(&[[127, 77, 0, 1]]);
        wrong[0] ^= 0xff;
        let mut answers = vec![wrong; 1000];
        answers.push(q.answered(&[OWN]));
        answers
    }),
    lie!(
        "cut-short-for-ever",
        "it says that the answer is too long for UDP, and does not listen for TCP",
        Refused,
        |q| {
            let mut answer = q.replied(0, 0, &[]);
            answer[2] |= 2;
            vec![answer]
        }
    ),
];

impl Question<'_> {
    /// A packet with this code and these records of answers.
    fn replied(&self, code: u8, count: u8, records: &[u8]) -> Vec<u8> {
        let header = [self.packet[0], self.packet[1], 0x81, 0x80 | code, 0, 1, 0, count, 0, 0, 0, 0];
        [&header[..], self.section, records].concat()
    }

    /// These addresses for IPv4, and none for IPv6.
    fn answered(&self, addresses: &[[u8; 4]]) -> Vec<u8> {
        if !self.is_v4 {
            return self.replied(0, 0, &[]);
        }
        let record = |address: &[u8; 4]| [&b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x00\x00\x04"[..], address].concat();
        let records: Vec<u8> = addresses.iter().flat_map(record).collect();
        self.replied(0, addresses.len() as u8, &records)
    }
}

/// A resolver at work until it is dropped.
#[derive(Debug)]
pub struct Resolver {
    address: Ipv4Addr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Resolver {
    /// Starts it on port 53 of this address, which has to be one of 127.0.0.0/8.
    pub fn start(lie: &'static DnsLie, address: Ipv4Addr) -> io::Result<Resolver> {
        let socket = UdpSocket::bind((address, 53))?;
        socket.set_read_timeout(Some(Duration::from_millis(50)))?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("liar-dns".into()).spawn(move || {
            let mut packet = [0; 1500];
            while !stopped.load(Ordering::Relaxed) {
                if let Ok((length, from)) = socket.recv_from(&mut packet) {
                    answer(lie, &socket, &packet[..length], from);
                }
            }
        })?;
        Ok(Resolver { address, stop, thread: Some(thread) })
    }

    /// What a `resolv.conf` has to say to lead here: one try, of the shortest time that there is.
    pub fn resolv_conf(&self) -> String {
        format!("nameserver {}\noptions timeout:1 attempts:1 ndots:1\n", self.address)
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn answer(lie: &DnsLie, socket: &UdpSocket, packet: &[u8], from: SocketAddr) {
    // A header of 12 bytes, a name that ends with an empty label, type and class; one question.
    let Some(end) = packet.get(12..).and_then(|rest| rest.iter().position(|&byte| byte == 0)) else { return };
    let Some(section) = packet.get(12..12 + end + 5) else { return };
    let is_v4 = section[end + 1..end + 3] == [0, 1];
    let answers = (lie.answers)(&Question { packet, section, is_v4 });
    std::thread::sleep(lie.delay);
    for answer in answers {
        let _ = socket.send_to(&answer, from);
    }
}
