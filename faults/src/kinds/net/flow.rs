//! A sender and a receiver of our own, to see what a path does without asking duel: bytes either way, bytes there and back,
//! connections, and datagrams that are counted where they arrive.

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What the receiver's process is told.
#[derive(Args, Clone, Debug)]
pub(crate) struct ServeFlags {
    #[arg(long)]
    pub(crate) listen: SocketAddr,
}

/// What the sender's process is told.
#[derive(Args, Clone, Debug)]
pub(crate) struct AskFlags {
    #[arg(long)]
    pub(crate) to: SocketAddr,
    #[arg(long)]
    pub(crate) what: What,
    /// How often, of exchanges and connections
    #[arg(long, default_value_t = 30)]
    pub(crate) count: u32,
    /// How long, of the others
    #[arg(long, default_value_t = 2)]
    pub(crate) seconds: u32,
    #[arg(long, default_value_t = 1)]
    pub(crate) streams: u32,
    /// Of datagrams
    #[arg(long, default_value_t = 10)]
    pub(crate) mbit_per_s: u32,
}

/// What is asked for, and what the answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// Bytes per second to the server, over all streams
    Up,
    /// Bytes per second from it
    Down,
    /// Microseconds of an exchange of a byte, their mean
    Exchange,
    /// Microseconds until TCP has a connection, their mean
    Connect,
    /// Datagrams of a thousand that do not arrive
    Datagrams,
}

/// First byte of a connection.
const UP: u8 = b'u';
const DOWN: u8 = b'd';
const ECHO: u8 = b'e';
const COUNT: u8 = b'c';

/// A path that carries nothing for so long is broken.
const PATIENCE: Duration = Duration::from_secs(30);

/// Serves until it is killed.
pub(crate) fn serve(flags: &ServeFlags) -> anyhow::Result<()> {
    let failed = || format!("could not listen on {}", flags.listen);
    let listener = TcpListener::bind(flags.listen).with_context(failed)?;
    let datagrams = UdpSocket::bind(flags.listen).with_context(failed)?;
    let arrived = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&arrived);
    std::thread::Builder::new().spawn(move || {
        let mut buffer = [0; 2048];
        loop {
            if datagrams.recv(&mut buffer).is_ok() {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        }
    })?;
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        let arrived = Arc::clone(&arrived);
        // Who breaks off has seen enough.
        std::thread::Builder::new().spawn(move || _ = answer(stream, &arrived))?;
    }
    Ok(())
}

fn answer(mut stream: TcpStream, arrived: &AtomicU64) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut order = [0];
    stream.read_exact(&mut order)?;
    let mut block = vec![0; 128 << 10];
    match order[0] {
        UP => {
            while stream.read(&mut block)? > 0 {}
            // Only when all of it has come.
            stream.write_all(&[UP])
        }
        DOWN => loop {
            stream.write_all(&block)?;
        },
        ECHO => loop {
            stream.read_exact(&mut order)?;
            stream.write_all(&order)?;
        },
        COUNT => stream.write_all(&arrived.load(Ordering::Relaxed).to_be_bytes()),
        _ => Ok(()),
    }
}

/// Asks, and prints one number.
pub(crate) fn ask(flags: &AskFlags) -> anyhow::Result<()> {
    let time = Duration::from_secs(flags.seconds.into());
    let figure = match flags.what {
        What::Exchange => exchange_us(flags)?,
        What::Connect => connect_us(flags)?,
        What::Datagrams => lost_per_mille(flags, time)?,
        What::Up | What::Down => {
            let streams: Vec<_> = (0..flags.streams)
                .map(|_| {
                    let flags = flags.clone();
                    std::thread::spawn(move || match flags.what {
                        What::Up => up(&flags, time),
                        _ => down(&flags, time),
                    })
                })
                .collect();
            let mut sum = 0.0;
            for stream in streams {
                sum += stream.join().map_err(|_| anyhow::anyhow!("a stream panicked"))??;
            }
            sum
        }
    };
    println!("{figure}");
    Ok(())
}

fn connect(flags: &AskFlags, order: u8) -> anyhow::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&flags.to, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(&[order])?;
    Ok(stream)
}

fn up(flags: &AskFlags, time: Duration) -> anyhow::Result<f64> {
    let mut stream = connect(flags, UP)?;
    let block = vec![0; 128 << 10];
    let began = Instant::now();
    let mut bytes = 0_u64;
    while began.elapsed() < time {
        bytes += stream.write(&block)? as u64;
    }
    stream.shutdown(Shutdown::Write)?;
    stream.read_exact(&mut [0])?;
    Ok(bytes as f64 / began.elapsed().as_secs_f64())
}

fn down(flags: &AskFlags, time: Duration) -> anyhow::Result<f64> {
    let mut stream = connect(flags, DOWN)?;
    let mut block = vec![0; 128 << 10];
    let began = Instant::now();
    let mut bytes = 0_u64;
    while began.elapsed() < time {
        let read = stream.read(&mut block)?;
        ensure!(read > 0, "the stream ended");
        bytes += read as u64;
    }
    Ok(bytes as f64 / began.elapsed().as_secs_f64())
}

/// The mean, and not the median: of packets that get lost the few that are waited for count.
fn exchange_us(flags: &AskFlags) -> anyhow::Result<f64> {
    let mut stream = connect(flags, ECHO)?;
    let mut exchange = || -> std::io::Result<()> {
        stream.write_all(&[1])?;
        stream.read_exact(&mut [0])
    };
    exchange()?;
    let began = Instant::now();
    for _ in 0..flags.count {
        exchange()?;
    }
    Ok(began.elapsed().as_secs_f64() * 1e6 / f64::from(flags.count.max(1)))
}

fn connect_us(flags: &AskFlags) -> anyhow::Result<f64> {
    let began = Instant::now();
    for _ in 0..flags.count {
        TcpStream::connect_timeout(&flags.to, PATIENCE)?;
    }
    Ok(began.elapsed().as_secs_f64() * 1e6 / f64::from(flags.count.max(1)))
}

fn lost_per_mille(flags: &AskFlags, time: Duration) -> anyhow::Result<f64> {
    const BYTES: u32 = 1400;
    /// What is on the way after the last one was sent.
    const ON_THE_WAY: Duration = Duration::from_millis(500);
    let arrived = || -> anyhow::Result<u64> {
        let mut count = [0; 8];
        connect(flags, COUNT)?.read_exact(&mut count)?;
        Ok(u64::from_be_bytes(count))
    };
    let before = arrived()?;
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(flags.to)?;
    let pause = Duration::from_secs_f64(f64::from(BYTES) * 8.0 / (f64::from(flags.mbit_per_s) * 1e6));
    let (began, mut sent) = (Instant::now(), 0_u32);
    while began.elapsed() < time {
        match socket.send(&[0; BYTES as usize]) {
            Ok(_) => sent += 1,
            // What our own system does not take was not sent.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        std::thread::sleep((pause * sent).saturating_sub(began.elapsed()));
    }
    std::thread::sleep(ON_THE_WAY);
    ensure!(sent > 0, "no datagram was sent");
    Ok((1.0 - (arrived()? - before) as f64 / f64::from(sent)) * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_exchanges_and_datagrams_come_through() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        std::thread::spawn(move || serve(&ServeFlags { listen: free }));
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect(free).is_err() {
            assert!(Instant::now() < until, "the receiver does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
        let flags = AskFlags { to: free, what: What::Up, count: 3, seconds: 0, streams: 1, mbit_per_s: 1 };
        let time = Duration::from_millis(30);
        assert!(up(&flags, time).unwrap() > 0.0 && down(&flags, time).unwrap() > 0.0);
        assert!(exchange_us(&flags).unwrap() > 0.0 && connect_us(&flags).unwrap() > 0.0);
        let lost = lost_per_mille(&flags, time).unwrap();
        assert!((0.0..1000.0).contains(&lost), "some come: {lost}");
    }
}
