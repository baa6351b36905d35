//! Local ports: whoever took most of them a moment ago connects as quickly as before.

use rustix::fd::AsFd;
use rustix::net::{AddressFamily, SocketType, ipproto, socket};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

/// Connects as the generator does, and waits until that is done.
fn connect(to: &SocketAddr) -> TcpStream {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, Some(ipproto::TCP)).unwrap();
    duel_load::connect_from_next(socket.as_fd(), || rustix::net::connect(&socket, to)).unwrap();
    TcpStream::from(socket)
}

/// An address of the loopback network that no other test uses, and whoever accepts there.
fn listener(third: u8) -> TcpListener {
    TcpListener::bind((Ipv4Addr::new(127, 113, third, 1), 0)).unwrap()
}

/// Tests that cannot run here pass, unless none may be skipped.
fn skipped(why: &str) {
    assert!(std::env::var_os("DUEL_TESTS_SKIP_NOTHING").is_none_or(|value| value != "1"), "{why}");
    eprintln!("skipped: {why}");
}

/// Whether the kernel lets a socket say where to look: Linux 6.3 and later.
fn kernel_can_be_told() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split('.').map_while(|number| number.parse::<u32>().ok());
    numbers.next().zip(numbers.next()).is_some_and(|version| version >= (6, 3))
}

const IN_ITS_OWN_NETWORK: &str = "DUEL_TEST_IN_ITS_OWN_NETWORK";

/// Whoever closes a connection keeps its port for a minute. The kernel walks through half of its range in search of another one, once that half
/// is taken for a pair of addresses. Told where to look, it does not.
#[test]
fn a_connection_is_as_cheap_where_most_ports_were_taken_a_moment_ago() {
    if std::env::var_os(IN_ITS_OWN_NETWORK).is_some() {
        return as_cheap_as_the_first();
    }
    if !kernel_can_be_told() {
        return eprintln!("skipped: this kernel cannot be told where to look for ports");
    }
    // On the loopback interface ports are free again after a second, unless a network has it otherwise.
    let script = "ip link set lo up && echo 0 >/proc/sys/net/ipv4/tcp_tw_reuse && exec \"$@\"";
    let name = "local_ports::a_connection_is_as_cheap_where_most_ports_were_taken_a_moment_ago";
    let in_one = |command: &[&str]| {
        let of_root = &["--net"][..];
        let of_user = &["--user", "--map-root-user", "--net"];
        let mut unshare = Command::new("unshare");
        unshare.args(if rustix::process::geteuid().is_root() { of_root } else { of_user });
        unshare.args(["sh", "-c", script, "sh"]).args(command).env(IN_ITS_OWN_NETWORK, "1").status()
    };
    if !in_one(&["true"]).is_ok_and(|status| status.success()) {
        return skipped("no network of its own can be made here");
    }
    let this = std::env::current_exe().unwrap();
    assert!(in_one(&[this.to_str().unwrap(), "--exact", name]).unwrap().success());
}

fn as_cheap_as_the_first() {
    let listener = listener(1);
    let to = listener.local_addr().unwrap();
    let open_and_close = || {
        let ours = connect(&to);
        let theirs = listener.accept().unwrap();
        // Who closes first keeps the port.
        drop(ours);
        drop(theirs);
    };
    // Of this thread alone: what others do to the machine is none of it.
    let cpu_of = |count: u32| {
        let before_ns = duel_load::thread_cpu_ns().unwrap();
        (0..count).for_each(|_| open_and_close());
        Duration::from_nanos(duel_load::thread_cpu_ns().unwrap() - before_ns)
    };
    let first = cpu_of(200);
    cpu_of(duel_load::local_ports_of(1).unwrap() * 6 / 10);
    let later = cpu_of(200);
    assert!(later < 10 * first, "{first:?} for 200 connections at first, {later:?} once most ports were taken");
}

#[test]
fn connections_in_a_row_come_from_different_parts_of_the_range() {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let first: u16 = range.split_whitespace().next().unwrap().parse().unwrap();
    let listener = listener(2);
    let to = listener.local_addr().unwrap();
    let made: Vec<TcpStream> = (0..100).map(|_| connect(&to)).collect();
    let parts: std::collections::BTreeSet<u16> =
        made.iter().map(|stream| (stream.local_addr().unwrap().port() - first) / 64).collect();
    // By chance it would be 90 of 441 or so. Others may connect meanwhile.
    let most = made.len().min(duel_load::local_ports_of(1).unwrap() as usize / 64);
    assert!(!kernel_can_be_told() || parts.len() + 2 >= most, "{} of {most}", parts.len());
}
