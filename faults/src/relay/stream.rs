//! The stream relay: accepts TCP connections and passes their bytes on, as a proxy that knows no HTTP.

use super::Bucket;
use anyhow::Context;
use clap::Args;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
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
    /// Held back before each piece is passed on, either way
    #[arg(long, default_value_t = 0)]
    pub(crate) delay_us: u64,
}

/// Bytes that pass at once before a rate holds: some packets, as in a shaper.
const BURST_BYTES: u64 = 16 << 10;

/// Relays until it is killed.
pub(crate) fn main(flags: &StreamRelayFlags) -> anyhow::Result<()> {
    let listener = TcpListener::bind(flags.listen).with_context(|| format!("could not listen on {}", flags.listen))?;
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
    let delay = Duration::from_micros(flags.delay_us);
    let (client_in, server_out) = (client.try_clone()?, server.try_clone()?);
    std::thread::Builder::new().spawn(move || pass(client_in, server_out, delay, &mut []))?;
    let own = flags.rate_per_connection.map(|rate| Arc::new(Mutex::new(Bucket::new(rate, BURST_BYTES))));
    let mut buckets: Vec<_> = own.into_iter().chain(total).map(|bucket| Limit { bucket, began }).collect();
    pass(server, client, delay, &mut buckets)
}

struct Limit {
    bucket: Arc<Mutex<Bucket>>,
    began: Instant,
}

impl Limit {
    /// How long bytes have to wait.
    fn wait(&self, bytes: usize) -> Duration {
        let now_ns = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let at_ns = self.bucket.lock().unwrap_or_else(PoisonError::into_inner).take(bytes as u64, now_ns);
        Duration::from_nanos(at_ns - now_ns)
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, delay: Duration, limits: &mut [Limit]) -> anyhow::Result<()> {
    // Small pieces where a rate holds: a large one would be a burst.
    let mut buffer = vec![0; if limits.is_empty() { 64 << 10 } else { 4 << 10 }];
    loop {
        let bytes = from.read(&mut buffer).unwrap_or(0);
        if bytes == 0 {
            let _ = to.shutdown(Shutdown::Write);
            return Ok(());
        }
        let wait = limits.iter().map(|limit| limit.wait(bytes)).max().unwrap_or_default().max(delay);
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
        if to.write_all(&buffer[..bytes]).is_err() {
            let _ = from.shutdown(Shutdown::Read);
            return Ok(());
        }
    }
}
