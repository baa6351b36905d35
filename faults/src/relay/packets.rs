//! The packet relay: two TUN interfaces, one in the client's namespace, one in the server's, and a link each way.

use super::tun::open_tun;
use super::{Link, LinkPlan};
use anyhow::Context;
use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::time::Instant;

/// What the relay's process is told.
#[derive(Args, Clone, Debug)]
pub(crate) struct PacketRelayFlags {
    /// Name of the interface towards the client, made in the namespace of this process
    #[arg(long)]
    pub(crate) client_side: String,
    /// Name of the interface towards the server, moved into --server-namespace
    #[arg(long)]
    pub(crate) server_side: String,
    /// A descriptor's path, such as /run/netns/NAME, that `ip link set netns` takes
    #[arg(long)]
    pub(crate) server_namespace: String,
    /// The link to the server as DELAY_US,JITTER_US,BYTES_PER_S,QUEUE_BYTES,LOSS_PPM,ONLY_IPV6,STALLS_US,STALLS_EACH_US; a rate of 0 means none
    #[arg(long, value_parser = parse_link)]
    pub(crate) to_server: LinkPlan,
    /// The link to the client
    #[arg(long, value_parser = parse_link)]
    pub(crate) to_client: LinkPlan,
}

/// As [`parse_link`] reads it.
pub(crate) fn link_word(plan: &LinkPlan) -> String {
    let LinkPlan { delay_us, jitter_us, bytes_per_s, queue_bytes, loss_ppm, only_ipv6, stalls_us, stalls_each_us } =
        plan;
    let (rate, only_ipv6) = (bytes_per_s.unwrap_or(0), u8::from(*only_ipv6));
    format!("{delay_us},{jitter_us},{rate},{queue_bytes},{loss_ppm},{only_ipv6},{stalls_us},{stalls_each_us}")
}

fn parse_link(word: &str) -> Result<LinkPlan, String> {
    let numbers: Vec<u64> = word.split(',').map(str::parse).collect::<Result<_, _>>().map_err(|e| format!("{e}"))?;
    let &[delay_us, jitter_us, rate, queue_bytes, loss_ppm, only_ipv6, stalls_us, stalls_each_us] = numbers.as_slice()
    else {
        return Err("eight numbers are needed".to_owned());
    };
    let loss_ppm = u32::try_from(loss_ppm).map_err(|e| format!("{e}"))?;
    let bytes_per_s = (rate > 0).then_some(rate);
    let only_ipv6 = only_ipv6 > 0;
    Ok(LinkPlan { delay_us, jitter_us, bytes_per_s, queue_bytes, loss_ppm, only_ipv6, stalls_us, stalls_each_us })
}

/// Relays until it is killed. Prints `ready` once both interfaces exist; addresses and routes are the caller's.
pub(crate) fn main(flags: &PacketRelayFlags) -> anyhow::Result<()> {
    let client = open_tun(&flags.client_side)?;
    let server = open_tun(&flags.server_side)?;
    // The interface moves; the descriptor stays its other end. So nobody has to enter a namespace.
    crate::world::run("ip", &["link", "set", &flags.server_side, "netns", &flags.server_namespace])?;
    // The kernel adds 50 µs to a thread's timeouts unless asked not to.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    println!("ready");
    std::io::stdout().flush()?;
    relay(&client, &server, flags)
}

/// One direction: the link that was planned, and one for packets that it does not concern.
struct Links {
    planned: Link<Vec<u8>>,
    straight: Link<Vec<u8>>,
    only_ipv6: bool,
}

impl Links {
    fn new(plan: LinkPlan, seed: u64) -> Links {
        let straight = Link::new(LinkPlan::default(), seed);
        Links { planned: Link::new(plan, seed), straight, only_ipv6: plan.only_ipv6 }
    }

    fn push(&mut self, packet: &[u8], now_ns: u64) {
        let is_ipv6 = packet.first().is_some_and(|byte| byte >> 4 == 6);
        let link = if self.only_ipv6 && !is_ipv6 { &mut self.straight } else { &mut self.planned };
        link.push(packet.to_vec(), packet.len() as u64, now_ns);
    }

    fn pop(&mut self, now_ns: u64) -> Option<Vec<u8>> {
        self.straight.pop(now_ns).or_else(|| self.planned.pop(now_ns))
    }

    fn next_ns(&self) -> Option<u64> {
        [&self.straight, &self.planned].into_iter().filter_map(Link::next_ns).min()
    }
}

fn relay(client: &OwnedFd, server: &OwnedFd, flags: &PacketRelayFlags) -> anyhow::Result<()> {
    let mut to_server = Links::new(flags.to_server, 1);
    let mut to_client = Links::new(flags.to_client, 2);
    let began = Instant::now();
    let now = || u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let mut buffer = vec![0; 1 << 16];
    loop {
        take_in(client, &mut to_server, &mut buffer, now())?;
        take_in(server, &mut to_client, &mut buffer, now())?;
        hand_out(&mut to_server, server, now())?;
        hand_out(&mut to_client, client, now())?;
        let next = [to_server.next_ns(), to_client.next_ns()].into_iter().flatten().min();
        let wait_ns = next.map(|at| at.saturating_sub(now()));
        if wait_ns != Some(0) {
            wait(client, server, wait_ns)?;
        }
    }
}

/// Reads what is there, at most so much that nobody has to wait for long.
fn take_in(from: &OwnedFd, into: &mut Links, buffer: &mut [u8], now_ns: u64) -> anyhow::Result<()> {
    const AT_A_TIME: usize = 64;
    for _ in 0..AT_A_TIME {
        match rustix::io::read(from, &mut *buffer) {
            Ok(bytes) => into.push(&buffer[..bytes], now_ns),
            Err(Errno::AGAIN) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("could not read a packet"),
        }
    }
    Ok(())
}

fn hand_out(from: &mut Links, to: &OwnedFd, now_ns: u64) -> anyhow::Result<()> {
    while let Some(packet) = from.pop(now_ns) {
        match rustix::io::write(to, &packet) {
            // An interface that is down (at the beginning) or has no room loses packets, as any does.
            Ok(_) | Err(Errno::IO | Errno::AGAIN | Errno::INVAL | Errno::NOBUFS) => {}
            Err(error) => return Err(error).context("could not write a packet"),
        }
    }
    Ok(())
}

fn wait(client: &OwnedFd, server: &OwnedFd, wait_ns: Option<u64>) -> anyhow::Result<()> {
    let mut fds = [PollFd::new(client, PollFlags::IN), PollFd::new(server, PollFlags::IN)];
    let timeout = wait_ns.map(|ns| Timespec {
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (ns % 1_000_000_000) as i64,
    });
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error).context("could not wait for packets"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_pass_through_a_command_line() {
        for plan in [
            LinkPlan::default(),
            LinkPlan {
                delay_us: 5,
                jitter_us: 6,
                bytes_per_s: Some(7),
                queue_bytes: 8,
                loss_ppm: 9,
                only_ipv6: true,
                stalls_us: 10,
                stalls_each_us: 11,
            },
        ] {
            assert_eq!(parse_link(&link_word(&plan)), Ok(plan));
        }
        assert!(parse_link("1,2,3").is_err());
        assert!(parse_link("a,b,c,d,e,f,g,h").is_err());
    }

    #[test]
    fn what_is_for_ipv6_leaves_other_packets_alone() {
        let (ipv4, ipv6) = ([0x45, 0], [0x60, 0]);
        let mut links = Links::new(LinkPlan { delay_us: 5, only_ipv6: true, ..LinkPlan::default() }, 1);
        links.push(&ipv6, 0);
        links.push(&ipv4, 1000);
        assert_eq!(links.next_ns(), Some(1000));
        assert_eq!(links.pop(1000), Some(ipv4.to_vec()));
        assert_eq!((links.pop(4999), links.next_ns()), (None, Some(5000)));
        assert_eq!(links.pop(5000), Some(ipv6.to_vec()));
        let mut both = Links::new(LinkPlan { delay_us: 5, ..LinkPlan::default() }, 1);
        both.push(&ipv4, 0);
        assert_eq!(both.next_ns(), Some(5000));
    }
}
