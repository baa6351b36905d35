//! The header of the PROXY protocol (HAProxy, `doc/proxy-protocol.txt`, versions 1 and 2): the first bytes of a
//! connection tell who is at its other end.

use duel_model::ProxyProtocol;
use rustix::fd::OwnedFd;
use std::net::{IpAddr, SocketAddr};

/// What every header of version 2 begins with (2.2): no request, no line and no greeting of another protocol.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Version 2 and `LOCAL`: the connection is the sender's own, and there are no addresses to tell.
const V2_LOCAL: u8 = 0x20;
/// Version 2 and `PROXY`: addresses follow.
const V2_PROXY: u8 = 0x21;
/// TCP over IPv4, and over IPv6.
const V2_TCP4: u8 = 0x11;
const V2_TCP6: u8 = 0x21;

/// Appends the header for a connection: from where it really comes, and where to. What no TCP is (a Unix socket) has no
/// addresses that the protocol could tell.
pub(crate) fn append(version: ProxyProtocol, socket: &OwnedFd, out: &mut Vec<u8>) {
    let own = rustix::net::getsockname(socket).ok().and_then(|own| SocketAddr::try_from(own).ok());
    let peer = rustix::net::getpeername(socket).ok().flatten().and_then(|peer| SocketAddr::try_from(peer).ok());
    match version {
        ProxyProtocol::V1 => append_v1(own.zip(peer), out),
        ProxyProtocol::V2 => append_v2(own.zip(peer), out),
    }
}

fn append_v1(ends: Option<(SocketAddr, SocketAddr)>, out: &mut Vec<u8>) {
    let line = match ends {
        Some((own, peer)) if own.is_ipv4() == peer.is_ipv4() => {
            let family = if own.is_ipv4() { "TCP4" } else { "TCP6" };
            format!("PROXY {family} {} {} {} {}\r\n", own.ip(), peer.ip(), own.port(), peer.port())
        }
        _ => "PROXY UNKNOWN\r\n".to_owned(),
    };
    out.extend_from_slice(line.as_bytes());
}

fn append_v2(ends: Option<(SocketAddr, SocketAddr)>, out: &mut Vec<u8>) {
    out.extend_from_slice(SIGNATURE);
    let mut ports = Vec::new();
    let (family, addresses): (u8, Vec<u8>) = match ends.map(|(own, peer)| (own.ip(), peer.ip())) {
        Some((IpAddr::V4(own), IpAddr::V4(peer))) => (V2_TCP4, [own.octets(), peer.octets()].concat()),
        Some((IpAddr::V6(own), IpAddr::V6(peer))) => (V2_TCP6, [own.octets(), peer.octets()].concat()),
        _ => {
            out.extend_from_slice(&[V2_LOCAL, 0, 0, 0]);
            return;
        }
    };
    for end in ends.iter().flat_map(|(own, peer)| [own, peer]) {
        ports.extend_from_slice(&end.port().to_be_bytes());
    }
    // 12 or 36.
    let length = (addresses.len() + ports.len()) as u16;
    out.extend_from_slice(&[V2_PROXY, family]);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&addresses);
    out.extend_from_slice(&ports);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(own: &str, peer: &str) -> Option<(SocketAddr, SocketAddr)> {
        Some((own.parse().unwrap(), peer.parse().unwrap()))
    }

    #[test]
    fn a_line_of_version_1() {
        for (ends, line) in [
            (ends("192.0.2.1:56324", "192.0.2.9:443"), "PROXY TCP4 192.0.2.1 192.0.2.9 56324 443\r\n"),
            (ends("[2001:db8::1]:1", "[2001:db8::2]:65535"), "PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n"),
            (None, "PROXY UNKNOWN\r\n"),
        ] {
            let mut out = Vec::new();
            append_v1(ends, &mut out);
            // The longest allowed has 107 characters (2.1).
            assert_eq!((std::str::from_utf8(&out).unwrap(), out.len() <= 107), (line, true));
        }
    }

    #[test]
    fn the_bytes_of_version_2() {
        let signature = [0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a];
        let mut out = Vec::new();
        append_v2(ends("192.0.2.1:258", "192.0.2.9:443"), &mut out);
        let expected = [0x21, 0x11, 0, 12, 192, 0, 2, 1, 192, 0, 2, 9, 1, 2, 1, 0xbb];
        assert_eq!(out, [&signature[..], &expected].concat());
        out.clear();
        append_v2(ends("[2001:db8::1]:258", "[::2]:443"), &mut out);
        let mut expected = vec![0x21, 0x21, 0, 36, 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        expected.extend([0; 15]);
        expected.extend([2, 1, 2, 1, 0xbb]);
        assert_eq!(out, [&signature[..], &expected].concat());
        out.clear();
        append_v2(None, &mut out);
        assert_eq!(out, [&signature[..], &[0x20, 0, 0, 0]].concat());
    }
}
