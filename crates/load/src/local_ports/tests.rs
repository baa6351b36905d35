use super::*;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketType, ipproto, socket};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

/// How a port is found.
type Connect = fn(&SocketAddr) -> TcpStream;

fn open() -> Result<OwnedFd, Errno> {
    socket(AddressFamily::INET, SocketType::STREAM, Some(ipproto::TCP))
}

fn done((socket, connected): (OwnedFd, Result<(), Errno>)) -> TcpStream {
    connected.unwrap();
    TcpStream::from(socket)
}

/// Connects as the generator does, and waits until that is done.
fn as_usual(to: &SocketAddr) -> TcpStream {
    done(connect_from_next(open, |socket| rustix::net::connect(socket, to)).unwrap())
}

/// As it does where the kernel cannot be told where to look.
fn by_ports(to: &SocketAddr) -> TcpStream {
    done(from_ports(open().unwrap(), &PORTS, open, |socket| rustix::net::connect(socket, to)).unwrap())
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

const IN_ITS_OWN_NETWORK: &str = "DUEL_TEST_IN_ITS_OWN_NETWORK";

/// Whoever closes a connection keeps its port for a minute. The kernel walks through half of its range in search of another one, once that half
/// is taken for a pair of addresses. Told where to look, or given a port, it does not.
#[test]
fn a_connection_is_as_cheap_where_most_ports_were_taken_a_moment_ago() {
    if std::env::var_os(IN_ITS_OWN_NETWORK).is_some() {
        // Another address for each: ports are kept for a pair of addresses.
        as_cheap_as_the_first(as_usual, &listener(1));
        return as_cheap_as_the_first(by_ports, &listener(3));
    }
    // On the loopback interface ports are free again after a second, unless a network has it otherwise.
    let script = "ip link set lo up && echo 0 >/proc/sys/net/ipv4/tcp_tw_reuse && exec \"$@\"";
    let name = "local_ports::tests::a_connection_is_as_cheap_where_most_ports_were_taken_a_moment_ago";
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

fn as_cheap_as_the_first(connect: Connect, listener: &TcpListener) {
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
        let before_ns = crate::thread_cpu_ns().unwrap();
        (0..count).for_each(|_| open_and_close());
        Duration::from_nanos(crate::thread_cpu_ns().unwrap() - before_ns)
    };
    let first = cpu_of(200);
    cpu_of(local_ports_of(1).unwrap() * 6 / 10);
    // Whoever does without all this still finds a port.
    let other = TcpListener::bind((Ipv4Addr::new(127, 113, 9, 1), 0)).unwrap();
    TcpStream::connect(other.local_addr().unwrap()).unwrap();
    let later = cpu_of(200);
    assert!(later < 10 * first, "{first:?} for 200 connections at first, {later:?} once most ports were taken");
}

#[test]
fn connections_in_a_row_come_from_different_parts_of_the_range() {
    let range = RANGE.unwrap();
    let listener = listener(2);
    let to = listener.local_addr().unwrap();
    let made: Vec<TcpStream> = (0..100).map(|_| as_usual(&to)).collect();
    let ports = made.iter().map(|stream| stream.local_addr().unwrap().port());
    let parts: BTreeSet<u16> = ports.map(|port| (port - range.first) / 64).collect();
    // By chance it would be 90 of 441 or so. Others may connect meanwhile.
    let most = made.len().min(range.ports() as usize / 64);
    let is_told = narrowing::look_in(open().unwrap().as_fd(), range);
    assert!(!is_told || parts.len() + 2 >= most, "{} of {most}", parts.len());
}

/// One that is taken for this peer already costs a socket, and no connection.
#[test]
fn a_port_that_is_taken_is_passed_over() {
    let listener = listener(4);
    let to = listener.local_addr().unwrap();
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let listens = TcpListener::bind(any).unwrap();
    let connected = open().unwrap();
    rustix::net::sockopt::set_socket_reuseaddr(&connected, true).unwrap();
    rustix::net::bind(&connected, &any).unwrap();
    rustix::net::connect(&connected, &to).unwrap();
    let port_of = |socket: &OwnedFd| SocketAddr::try_from(rustix::net::getsockname(socket).unwrap()).unwrap().port();
    let taken = [listens.local_addr().unwrap().port(), port_of(&connected)];
    let by = |ports: &[u16]| {
        done(from_ports(open().unwrap(), ports, open, |socket| rustix::net::connect(socket, &to)).unwrap())
    };
    for _ in 0..4 {
        assert!(!taken.contains(&by(&taken).local_addr().unwrap().port()));
    }
    // Whichever comes first, there is no other one.
    let free = TcpListener::bind(any).unwrap().local_addr().unwrap().port();
    assert_eq!(by(&[taken[0], free]).local_addr().unwrap().port(), free);
}

/// A socket that was bound to an address keeps it.
#[test]
fn a_port_is_taken_with_the_address_that_the_socket_is_bound_to() {
    let source = Ipv4Addr::new(127, 113, 5, 9);
    let listener = listener(5);
    let open = || {
        let socket = open()?;
        let _ = nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::IpBindAddressNoPort, &true);
        rustix::net::bind(&socket, &SocketAddr::from((source, 0)))?;
        Ok::<_, Errno>(socket)
    };
    let to = listener.local_addr().unwrap();
    let free = TcpListener::bind((source, 0)).unwrap().local_addr().unwrap().port();
    let made = done(from_ports(open().unwrap(), &[free], open, |socket| rustix::net::connect(socket, &to)).unwrap());
    assert_eq!(made.local_addr().unwrap(), SocketAddr::from((source, free)));
}

#[test]
fn reserved_ports_and_those_that_the_kernel_tries_first_are_left_to_others() {
    let range = Range { first: 100, last: 110 };
    assert_eq!(range.given_without("\n"), [101, 103, 105, 107, 109]);
    assert_eq!(range.given_without("101,103-105,110\n"), [107, 109]);
    assert_eq!(range.given_without("90-200"), [] as [u16; 0]);
}

#[test]
fn all_parts_together_are_the_range() {
    for (first, last) in [(32_768, 60_999), (1_024, 65_535), (40_000, 40_063), (40_000, 40_064), (1, 2), (7, 7)] {
        let range = Range { first, last };
        let parts = range.ports().div_ceil(PART_PORTS);
        let mut taken = BTreeSet::new();
        for number in 0..parts {
            let part = range.part(number);
            assert!(part.first < part.last || range.ports() == 1, "{part:?}");
            assert!(part.ports() <= PART_PORTS && first <= part.first && part.last <= last, "{part:?}");
            taken.extend(part.first..=part.last);
        }
        assert_eq!(taken.len(), range.ports() as usize);
        assert_eq!(range.part(parts), range.part(0));
        range.part(u32::MAX);
    }
}

#[test]
fn what_is_no_range_is_unknown() {
    assert_eq!(Range::parse("32768\t60999\n"), Some(Range { first: 32_768, last: 60_999 }));
    for text in ["", "1", "9 8", "-1 5", "1 70000", "a b"] {
        assert_eq!(Range::parse(text), None, "{text}");
    }
}
