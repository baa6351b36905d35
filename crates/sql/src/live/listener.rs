//! Which process is found behind the Unix socket of a real server, and behind one that somebody hands on.

use super::server::server;
use crate::address::{Address, Place, ServerAddress, parse};
use crate::listener;
use duel_model::SECOND_NS;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;

fn at(address: &str) -> ServerAddress {
    let Ok(Address::Server(address)) = parse(address) else { panic!("{address}") };
    address
}

#[test]
#[cfg(target_os = "linux")]
fn the_process_behind_a_socket_is_the_server_that_has_written_its_number_down() {
    let Some(server) = server() else { return };
    let written = fs::read_to_string(server.folder.join("data/postmaster.pid")).unwrap();
    let found = listener::of(&at(&server.address("u", "postgres")), 30 * SECOND_NS).unwrap();
    assert_eq!(Some(found), written.lines().next().unwrap().parse().ok());
}

#[test]
#[cfg(target_os = "linux")]
fn who_hands_connections_on_to_a_server_is_not_taken_for_it() {
    let Some(server) = server() else { return };
    let folder = tempfile::tempdir().unwrap();
    let proxy = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
    let Place::Unix(behind) = at(&server.address("u", "postgres")).place else { panic!("it has a socket") };
    thread::spawn(move || {
        let (near, _) = proxy.accept().unwrap();
        let far = UnixStream::connect(behind).unwrap();
        let back = (far.try_clone().unwrap(), near.try_clone().unwrap());
        let copy = |mut from: UnixStream, mut to: UnixStream| {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                if to.write_all(&bytes[..count]).is_err() {
                    return;
                }
            }
        };
        let other = thread::spawn(move || copy(back.0, back.1));
        copy(near, far);
        other.join().unwrap();
    });
    let before = format!("postgres://u@/postgres?host={}", folder.path().display());
    let why = listener::of(&at(&before), 30 * SECOND_NS).unwrap_err();
    assert!(why.contains(" listens on its socket, which is no server of PostgreSQL"), "{why}");
    let by_tcp = listener::of(&at(&server.tcp("u", "postgres", "")), 30 * SECOND_NS);
    assert_eq!(by_tcp, Err("it is not reached by a Unix socket".to_owned()));
}
