//! The message relay: passes on what goes over a Unix socket, and makes every so-manieth message of a client wait.

use anyhow::Context;
use clap::Args;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

/// What the relay's process is told.
#[derive(Args, Clone, Debug)]
pub(crate) struct MessageRelayFlags {
    #[arg(long)]
    pub(crate) listen: PathBuf,
    #[arg(long)]
    pub(crate) to: PathBuf,
    /// Which of the messages on a connection wait; 0: none
    #[arg(long, default_value_t = 0)]
    pub(crate) every: u32,
    /// How long
    #[arg(long, default_value_t = 0)]
    pub(crate) us: u64,
}

/// Relays until it is killed.
pub(crate) fn main(flags: &MessageRelayFlags) -> anyhow::Result<()> {
    let failed = || format!("could not listen on {}", flags.listen.display());
    let listener = UnixListener::bind(&flags.listen).with_context(failed)?;
    // The kernel adds 50 µs to a thread's timeouts unless asked not to; threads inherit this.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    for client in listener.incoming() {
        let Ok(client) = client else { continue };
        let flags = flags.clone();
        // A connection that cannot be relayed is closed; the others go on.
        let _ = std::thread::Builder::new().spawn(move || connection(client, &flags));
    }
    Ok(())
}

fn connection(client: UnixStream, flags: &MessageRelayFlags) -> anyhow::Result<()> {
    let server = UnixStream::connect(&flags.to)?;
    let (answers, answered) = (server.try_clone()?, client.try_clone()?);
    std::thread::Builder::new().spawn(move || pass(answers, answered, |_| Duration::ZERO))?;
    let (every, wait) = (flags.every, Duration::from_micros(flags.us));
    pass(client, server, |number| match every {
        1.. if number % every == 0 => wait,
        _ => Duration::ZERO,
    });
    Ok(())
}

/// Passes messages on until either side ends. Clients wait for an answer before they say more, so what is read at once is a message.
fn pass(mut from: UnixStream, mut to: UnixStream, waits: impl Fn(u32) -> Duration) {
    let mut buffer = vec![0; 64 << 10];
    let mut number = 0_u32;
    while let Ok(bytes @ 1..) = from.read(&mut buffer) {
        number = number.wrapping_add(1);
        let wait = waits(number);
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
        if to.write_all(&buffer[..bytes]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn every_third_message_waits_and_all_arrive() {
        let folder = std::env::temp_dir().join(format!("duel-faults-{}-messages-test", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (listen, to) = (folder.join("front"), folder.join("back"));
        let back = UnixListener::bind(&to).unwrap();
        std::thread::spawn(move || {
            let (mut echo, _) = back.accept().unwrap();
            let mut byte = [0];
            while echo.read_exact(&mut byte).is_ok() {
                echo.write_all(&byte).unwrap();
            }
        });
        let flags = MessageRelayFlags { listen: listen.clone(), to, every: 3, us: 50_000 };
        std::thread::spawn(move || main(&flags));
        let until = Instant::now() + Duration::from_secs(10);
        let mut client = loop {
            match UnixStream::connect(&listen) {
                Ok(client) => break client,
                Err(error) => assert!(Instant::now() < until, "{error}"),
            }
        };
        let took: Vec<Duration> = (1..=6_u8)
            .map(|number| {
                let began = Instant::now();
                client.write_all(&[number]).unwrap();
                let mut answer = [0];
                client.read_exact(&mut answer).unwrap();
                assert_eq!(answer, [number]);
                began.elapsed()
            })
            .collect();
        // Others may take long on a busy machine; these two have to.
        assert!([2, 5].iter().all(|&waits| took[waits] >= Duration::from_millis(50)), "{took:?}");
        assert!(took.iter().min().unwrap() < &Duration::from_millis(50), "{took:?}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
