//! Whose process answers: what a server says of itself is no proof of which one it is.

use crate::client::Client;
use crate::link::End;
use std::fs;
use std::net::{IpAddr, SocketAddr};

/// The user whose process is at the other end of a connection on this machine; `None`: that cannot be seen.
pub(super) fn user(client: &Client, end: &End) -> Option<u32> {
    match end {
        End::Unix(_) => client.peer_user(),
        End::Tcp(server) => {
            let port = client.local_port()?;
            let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|file| fs::read_to_string(file).unwrap_or_default());
            user_in(&tables.concat(), *server, port)
        }
    }
}

/// The user of the server's ends of all connections from a port in the kernel's tables, where these are of one user.
fn user_in(tables: &str, server: SocketAddr, port: u16) -> Option<u32> {
    let mut users = tables.lines().filter_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (here, there) = (fields.next()?, fields.next()?);
        let is_it = shown_as(server).iter().any(|shown| shown == here)
            && there.rsplit_once(':').is_some_and(|(_, of)| of == format!("{port:04X}"));
        // Behind them are its state, two queues, two timers, and what was sent again.
        if is_it { fields.nth(4)?.parse::<u32>().ok() } else { None }
    });
    let first = users.next()?;
    users.all(|user| user == first).then_some(first)
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
    fn the_user_behind_a_connection_is_read_from_the_servers_end_of_it() {
        let table = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1965 00000000:0000 0A 00000000:00000000 00:00000000 00000000   106        0 1 1 0 100 0 0 10 0
   1: 0100007F:C350 0100007F:1965 01 00000000:00000000 00:00000000 00000000     0        0 2 1 0 20 4 30 10 -1
   2: 0100007F:1965 0100007F:C350 01 00000000:00000000 00:00000000 00000000   106        0 3 1 0 20 4 30 10 -1
   3: 0000000000000000FFFF00000100007F:1966 0000000000000000FFFF00000100007F:C351 01 0:0 00:0 0   107 0 4 1 0 20 4 30 10 -1
";
        let of = |server: &str, port| user_in(table, server.parse().unwrap(), port);
        assert_eq!(of("127.0.0.1:6501", 50_000), Some(106));
        assert_eq!(of("127.0.0.1:6502", 50_001), Some(107), "a socket for both versions");
        assert_eq!(of("127.0.0.1:6501", 50_002), None);
        assert_eq!(of("127.0.0.2:6501", 50_000), None, "another listener on the same port");
        let of_two = format!("{table}   4: 0100007F:1965 0300007F:C350 01 0:0 00:0 0   1000 0 3 1 0 20 4 30 10 -1\n");
        assert_eq!(user_in(&of_two, "127.0.0.1:6501".parse().unwrap(), 50_000), None, "which of them is not known");
    }

    #[test]
    fn this_very_process_is_found_behind_its_own_connection() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (_served, from) = listener.accept().unwrap();
        let table = fs::read_to_string("/proc/net/tcp").unwrap();
        let user = user_in(&table, client.peer_addr().unwrap(), from.port());
        assert_eq!(user, Some(rustix::process::geteuid().as_raw()));
    }
}
