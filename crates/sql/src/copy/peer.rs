//! Whose process answers: what a server says of itself is no proof of which one it is.

use crate::client::Client;
use crate::link::End;
use std::fs;
use std::net::{IpAddr, SocketAddr};

/// Who is at the other end of a connection on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peer {
    user: u32,
    by: By,
}

/// What tells the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// The number of the one that listens.
    Process(u32),
    /// The number of the socket that it, or one that it has started, holds.
    Socket(u64),
}

impl Peer {
    /// `None`: that cannot be seen.
    pub(super) fn of(client: &Client, end: &End) -> Option<Self> {
        match end {
            End::Unix(_) => client.peer().map(|(user, process)| Self { user, by: By::Process(process) }),
            End::Tcp(server) => {
                let port = client.local_port()?;
                let tables =
                    ["/proc/net/tcp", "/proc/net/tcp6"].map(|file| fs::read_to_string(file).unwrap_or_default());
                Self::in_tables(&tables.concat(), *server, port)
            }
        }
    }

    /// Whether it is this process, of this user.
    pub(super) fn is(self, process: u32, user: u32) -> bool {
        let is_process = match self.by {
            By::Process(number) => number == process,
            By::Socket(number) => duel_process::holds_socket(process, number),
        };
        is_process && self.user == user
    }

    /// Who has the server's end of the connection from a port in the kernel's tables, where there is one of these.
    fn in_tables(tables: &str, server: SocketAddr, port: u16) -> Option<Self> {
        let mut peers = tables.lines().filter_map(|line| {
            let mut fields = line.split_ascii_whitespace().skip(1);
            let (here, there) = (fields.next()?, fields.next()?);
            let is_it = shown_as(server).iter().any(|shown| shown == here)
                && there.rsplit_once(':').is_some_and(|(_, of)| of == format!("{port:04X}"));
            // Behind them are its state, two queues, two timers, and what was sent again; behind the user is one more timer.
            let (user, number) = if is_it { (fields.nth(4)?, fields.nth(1)?) } else { return None };
            Some(Self { user: user.parse().ok()?, by: By::Socket(number.parse().ok()?) })
        });
        let first = peers.next()?;
        peers.next().is_none().then_some(first)
    }
}

/// An address in the ways in which the kernel shows it: words of 32 bits as they lie in memory, and one of version 4 as one of
/// version 6, too.
fn shown_as(address: SocketAddr) -> Vec<String> {
    let words = |octets: &[u8]| -> String {
        let words = octets.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
        words.map(|word| format!("{word:08X}")).collect()
    };
    let port = address.port();
    match address.ip() {
        IpAddr::V4(ip) => vec![words(&ip.octets()), words(&ip.to_ipv6_mapped().octets())],
        IpAddr::V6(ip) => vec![words(&ip.octets())],
    }
    .into_iter()
    .map(|ip| format!("{ip}:{port:04X}"))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn who_is_behind_a_connection_is_read_from_the_servers_end_of_it() {
        let table = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1965 00000000:0000 0A 00000000:00000000 00:00000000 00000000   106        0 1 1 0 100 0 0 10 0
   1: 0100007F:C350 0100007F:1965 01 00000000:00000000 00:00000000 00000000     0        0 2 1 0 20 4 30 10 -1
   2: 0100007F:1965 0100007F:C350 01 00000000:00000000 00:00000000 00000000   106        0 3 1 0 20 4 30 10 -1
   3: 0000000000000000FFFF00000100007F:1966 0000000000000000FFFF00000100007F:C351 01 0:0 00:0 0   107 0 4 1 0 20 4 30 10 -1
";
        let of = |server: &str, port| Peer::in_tables(table, server.parse().unwrap(), port);
        let peer = |user, socket| Some(Peer { user, by: By::Socket(socket) });
        assert_eq!(of("127.0.0.1:6501", 50_000), peer(106, 3));
        assert_eq!(of("127.0.0.1:6502", 50_001), peer(107, 4), "a socket for both versions");
        assert_eq!(of("127.0.0.1:6501", 50_002), None);
        assert_eq!(of("127.0.0.2:6501", 50_000), None, "another listener on the same port");
        let of_two = format!("{table}   4: 0100007F:1965 0300007F:C350 01 0:0 00:0 0   106 0 5 1 0 20 4 30 10 -1\n");
        let two = Peer::in_tables(&of_two, "127.0.0.1:6501".parse().unwrap(), 50_000);
        assert_eq!(two, None, "which of them is not known");
    }

    #[test]
    fn behind_a_connection_to_ourselves_is_this_process_and_no_other_one_of_its_user() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (_served, from) = listener.accept().unwrap();
        let table = fs::read_to_string("/proc/net/tcp").unwrap();
        let peer = Peer::in_tables(&table, client.peer_addr().unwrap(), from.port()).unwrap();
        let user = rustix::process::geteuid().as_raw();
        assert!(peer.is(std::process::id(), user));
        assert!(!peer.is(std::process::id(), user + 1));
        let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(!peer.is(other.id(), user), "it runs as the same user, and does not serve this connection");
        other.kill().unwrap();
        other.wait().unwrap();
        let unix = Peer { user, by: By::Process(7) };
        assert_eq!([7, 8].map(|process| unix.is(process, user)), [true, false]);
    }
}
