//! The stream relay: accepts TCP connections and passes their bytes on, as a proxy that knows no HTTP.

use super::Bucket;
use anyhow::Context;
use clap::Args;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// What the relay's process is told.
#[derive(Args, Clone, Debug)]
pub(crate) struct StreamRelayFlags {
    #[arg(long)]
    pub(crate) listen: SocketAddr,
    #[arg(long)]
    pub(crate) to: SocketAddr,
    /// Bytes per second from the server to the client, for each connection
    #[arg(long)]
    pub(crate) rate_per_connection: Option<u64>,
    /// Bytes per second from the server to the client, for all connections together
    #[arg(long)]
    pub(crate) rate_total: Option<u64>,
    /// How long each byte is under way, either way
    #[arg(long, default_value_t = 0)]
    pub(crate) delay_us: u64,
}

/// Bytes that pass at once before a rate holds: some packets, as in a shaper.
const BURST_BYTES: u64 = 16 << 10;

/// How many pieces may be under way; who sends more has to wait.
const PIECES_UNDER_WAY: usize = 64;

/// Relays until it is killed.
pub(crate) fn main(flags: &StreamRelayFlags) -> anyhow::Result<()> {
    let listener = TcpListener::bind(flags.listen).with_context(|| format!("could not listen on {}", flags.listen))?;
    // The kernel adds 50 µs to a thread's timeouts unless asked not to; threads inherit this.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let began = Instant::now();
    let total = flags.rate_total.map(|rate| Arc::new(Mutex::new(Bucket::new(rate, BURST_BYTES))));
    for client in listener.incoming() {
        let Ok(client) = client else { continue };
        let flags = flags.clone();
        let total = total.clone();
        // A connection that cannot be relayed is closed; the others go on.
        let _ = std::thread::Builder::new().spawn(move || connection(client, &flags, total, began));
    }
    Ok(())
}

fn connection(
    client: TcpStream,
    flags: &StreamRelayFlags,
    total: Option<Arc<Mutex<Bucket>>>,
    began: Instant,
) -> anyhow::Result<()> {
    let server = TcpStream::connect(flags.to)?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
    }
    let (client_in, server_out) = (client.try_clone()?, server.try_clone()?);
    let delay_ns = flags.delay_us * 1000;
    let up = Line { limits: Vec::new(), delay_ns, began };
    std::thread::Builder::new().spawn(move || up.pass(client_in, server_out))?;
    let own = flags.rate_per_connection.map(|rate| Arc::new(Mutex::new(Bucket::new(rate, BURST_BYTES))));
    Line { limits: own.into_iter().chain(total).collect(), delay_ns, began }.pass(server, client)
}

/// One direction of a connection.
struct Line {
    limits: Vec<Arc<Mutex<Bucket>>>,
    delay_ns: u64,
    began: Instant,
}

impl Line {
    /// Passes bytes on until either side ends. With a delay, one thread reads and another writes when the time has come,
    /// so that what is under way does not hold up what follows.
    fn pass(&self, mut from: TcpStream, mut to: TcpStream) -> anyhow::Result<()> {
        // Small pieces where a rate holds: a large one would be a burst.
        let mut buffer = vec![0; if self.limits.is_empty() { 64 << 10 } else { 4 << 10 }];
        if self.delay_ns == 0 && self.limits.is_empty() {
            while let Ok(bytes @ 1..) = from.read(&mut buffer) {
                if to.write_all(&buffer[..bytes]).is_err() {
                    break;
                }
            }
            close(&from, &to);
            return Ok(());
        }
        let (pieces, under_way) = mpsc::sync_channel::<(Vec<u8>, u64)>(PIECES_UNDER_WAY);
        let (began, source) = (self.began, from.try_clone()?);
        std::thread::Builder::new().spawn(move || {
            for (piece, at_ns) in under_way {
                std::thread::sleep(Duration::from_nanos(at_ns.saturating_sub(since(began))));
                if to.write_all(&piece).is_err() {
                    break;
                }
            }
            close(&source, &to);
        })?;
        while let Ok(bytes @ 1..) = from.read(&mut buffer) {
            let at_ns = self.passes_at(bytes as u64, since(self.began));
            if pieces.send((buffer[..bytes].to_vec(), at_ns)).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// When bytes that come now have passed: the slowest limit decides, then the way takes its time.
    fn passes_at(&self, bytes: u64, now_ns: u64) -> u64 {
        let taken =
            self.limits.iter().map(|bucket| bucket.lock().unwrap_or_else(PoisonError::into_inner).take(bytes, now_ns));
        taken.max().unwrap_or(now_ns).saturating_add(self.delay_ns)
    }
}

fn since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Ends this direction: the receiver learns that no more comes, and the sender that nobody listens.
fn close(from: &TcpStream, to: &TcpStream) {
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_limit_decides_and_the_delay_comes_on_top() {
        let bucket = |rate| Arc::new(Mutex::new(Bucket::new(rate, 0)));
        let line = |limits, delay_ns| Line { limits, delay_ns, began: Instant::now() };
        assert_eq!(line(vec![], 0).passes_at(100, 7), 7);
        assert_eq!(line(vec![], 5).passes_at(100, 7), 12);
        let both = line(vec![bucket(1_000_000), bucket(500_000)], 1000);
        assert_eq!(both.passes_at(1000, 0), 2_000_000 + 1000);
        assert_eq!(both.passes_at(1000, 0), 4_000_000 + 1000);
    }

    #[test]
    fn bytes_pass_both_ways_and_ends_are_passed_on() {
        for delay_us in [0, 100] {
            let server = TcpListener::bind("127.0.0.1:0").unwrap();
            let front = TcpListener::bind("127.0.0.1:0").unwrap();
            let flags = StreamRelayFlags {
                listen: front.local_addr().unwrap(),
                to: server.local_addr().unwrap(),
                rate_per_connection: None,
                rate_total: None,
                delay_us,
            };
            let mut client = TcpStream::connect(flags.listen).unwrap();
            let (accepted, _) = front.accept().unwrap();
            std::thread::spawn(move || connection(accepted, &flags, None, Instant::now()));
            let (mut served, _) = server.accept().unwrap();
            client.write_all(&vec![7; 300_000]).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            let mut got = Vec::new();
            served.read_to_end(&mut got).unwrap();
            assert_eq!(got.len(), 300_000);
            served.write_all(b"answer").unwrap();
            drop(served);
            let mut answer = String::new();
            client.read_to_string(&mut answer).unwrap();
            assert_eq!(answer, "answer");
        }
    }
}
