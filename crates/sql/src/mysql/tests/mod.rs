//! What the protocol's tests have in common: bytes of a server, and what comes of them.

mod copies;
mod cuts;
mod golden;
mod hostile;
mod live;
mod mariadb;

use super::MySql;
use super::packets::write;
use crate::wire::{AskTls, Happened, Login, SqlFailure, Wire};

/// Both with and without a packet that ends columns, and with columns left out.
const OLD: u64 = 0x0008_a207;
const NEW: u64 = OLD | 1 << 24;
const MARIADB: u64 = (NEW & !1) | 1 << 36;

/// The challenge of our servers.
const NONCE: &[u8; 20] = b"0123456789abcdefghij";

fn login() -> Login {
    Login {
        session: Vec::new(),
        user: "u".into(),
        password: Some("secret".into()),
        database: "db".into(),
        tls: AskTls::Never,
        loads_tables: false,
        is_local: false,
        is_socket: false,
    }
}

/// One packet.
fn packet(number: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, number, |out| out.extend_from_slice(payload));
    out
}

/// Packets from this number on.
fn packets(first: u8, payloads: &[&[u8]]) -> Vec<u8> {
    (first..).zip(payloads).flat_map(|(number, payload)| packet(number, payload)).collect()
}

/// A server's first message, without its head.
fn greeting(capabilities: u64, plugin: &str) -> Vec<u8> {
    let bits = capabilities.to_le_bytes();
    let mut out = b"\x0a5.5.5-10.11.0-MariaDB\0\x01\0\0\0".to_vec();
    out.extend_from_slice(&NONCE[..8]);
    out.extend_from_slice(&[0, bits[0], bits[1], 45, 2, 0, bits[2], bits[3], 21, 0, 0, 0, 0, 0, 0]);
    out.extend_from_slice(&bits[4..]);
    out.extend_from_slice(&NONCE[8..]);
    out.push(0);
    out.extend_from_slice(plugin.as_bytes());
    out.push(0);
    out
}

/// What describes a column of this type.
fn column(kind: u8) -> Vec<u8> {
    let mut out = b"\x03def\0\0\0\x01c\0\x0c\x2d\0\x14\0\0\0".to_vec();
    out.extend_from_slice(&[kind, 0, 0, 0, 0, 0]);
    out
}

const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
const END: &[u8] = &[0xFE, 0, 0, 2, 0, 0, 0];
const OLD_END: &[u8] = &[0xFE, 0, 0, 2, 0];

/// A connection that is logged in to a server of these capabilities.
fn logged_in(capabilities: u64) -> MySql {
    let mut wire = MySql::default();
    wire.log_in(&login()).unwrap();
    wire.receive(&packet(0, &greeting(capabilities, "mysql_native_password"))).unwrap();
    assert_eq!(wire.next(), Ok(None));
    wire.receive(&packet(2, OK)).unwrap();
    assert_eq!(wire.next(), Ok(Some(Happened::LoggedIn)));
    wire.outgoing().clear();
    wire
}

/// One on which a statement with one parameter and a column of this type is prepared as number 3.
fn prepared(capabilities: u64, kind: u8) -> MySql {
    let mut wire = logged_in(capabilities);
    wire.prepare(3, "SELECT c FROM sbtest1 WHERE id=?").unwrap();
    let head = [0, 7, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0];
    let column = column(kind);
    let answer = match capabilities & 1 << 24 {
        0 => packets(1, &[&head, &column, OLD_END, &column, OLD_END]),
        _ => packets(1, &[&head, &column, &column]),
    };
    assert_eq!(all(&mut wire, &answer), Ok(vec![Happened::Prepared]));
    wire.outgoing().clear();
    wire
}

/// All that happens when these bytes come at once.
fn all(wire: &mut MySql, bytes: &[u8]) -> Result<Vec<Happened>, SqlFailure> {
    wire.receive(bytes)?;
    let mut happened = Vec::new();
    while let Some(next) = wire.next()? {
        happened.push(next);
    }
    Ok(happened)
}
