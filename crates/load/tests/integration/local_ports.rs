//! Local ports: whoever took most of them a moment ago connects as quickly as before.

use rustix::fd::AsFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

/// Connects as the generator does, and waits until that is done.
fn connect(to: &SocketAddr) -> TcpStream {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, Some(ipproto::TCP)).unwrap();
    duel_load::connect_from_next(socket.as_fd(), || rustix::net::connect(&socket, to)).unwrap();
    TcpStream::from(socket)
}

/// An address of the loopback network that no other test uses, and whoever accepts there.
fn listener(third: u8) -> TcpListener {
    TcpListener::bind((Ipv4Addr::new(127, 113, third, 1), 0)).unwrap()
}

const IN_ITS_OWN_NETWORK: &str = "DUEL_TEST_IN_ITS_OWN_NETWORK";

/// Whoever closes a connection keeps its port for a minute. The kernel walks through half of its range in search of another one, once that half
/// is taken for a pair of addresses. Told where to look, it does not.
#[test]
fn a_connection_is_as_cheap_where_most_ports_were_taken_a_moment_ago() {
    if std::env::var_os(IN_ITS_OWN_NETWORK).is_some() {
        return as_cheap_as_the_first();
    }
    // On the loopback interface ports are free again after a second, unless a network has it otherwise.
    let script = "ip link set lo up && echo 0 >/proc/sys/net/ipv4/tcp_tw_reuse && exec \"$@\"";
    let name = "local_ports::a_connection_is_as_cheap_where_most_ports_were_taken_a_moment_ago";
    let status = Command::new("unshare")
        .args(if rustix::process::geteuid().is_root() {
            &["--net"][..]
        } else {
            &["--user", "--map-root-user", "--net"]
        })
        .args(["sh", "-c", script, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env(IN_ITS_OWN_NETWORK, "1")
        .status()
        .unwrap();
    assert!(status.success());
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
    let listener = listener(2);
    let to = listener.local_addr().unwrap();
    let made: Vec<TcpStream> = (0..100).map(|_| connect(&to)).collect();
    let parts: std::collections::BTreeSet<u16> =
        made.iter().map(|stream| stream.local_addr().unwrap().port() / 64).collect();
    // By chance 100 of 441 parts would be 90 or so. Others may connect meanwhile.
    assert!(parts.len() >= 98, "{}", parts.len());
}
