//! Which process is the server behind a Unix socket of this machine.
//!
//! The kernel keeps with a socket who began to listen on it, and tells that to whoever is connected (`SO_PEERCRED` of unix(7)). That is the
//! server, but not always: a process may listen for servers that are started by their first connection (systemd), or hand
//! connections on (pgbouncer, socat, ssh), and one that has ended may have left its number to another one. So the process has to live, as the
//! user that listens, and run the program of such a server. Whoever is in another namespace of processes has no number here.

use crate::address::{ServerAddress, System};
use crate::client::Client;
use crate::kind;
use crate::link::End;
use duel_model::{Nanos, sanitize_line};
use duel_process::{ProcessFiles, Status};

/// Names of the programs of PostgreSQL's, MySQL's and MariaDB's servers, as the kernel has them.
pub(crate) fn programs(system: System) -> &'static [&'static str] {
    match system {
        System::Postgres => &["postgres"],
        System::Mysql => &["mariadbd", "mysqld"],
        System::Sqlite => &[],
    }
}

/// The server's process. The connection logs in: one that only came and went would be a warning in the server's log.
pub(crate) fn of(server: &ServerAddress, patience_ns: Nanos) -> Result<u32, String> {
    let (client, found, end) = kind::connect(server, patience_ns).map_err(|why| why.text)?;
    match end {
        End::Unix(_) => of_peer(peer(&client), found.system),
        End::Tcp(_) => Err("it is not reached by a Unix socket".to_owned()),
    }
}

#[cfg(target_os = "linux")]
fn peer(client: &Client) -> Option<(u32, u32)> {
    client.peer()
}

/// Only Linux shows what is needed beside it.
#[cfg(not(target_os = "linux"))]
fn peer(_: &Client) -> Option<(u32, u32)> {
    None
}

/// The process that listens, by the user and the number that the kernel tells, where it is the server itself.
fn of_peer(peer: Option<(u32, u32)>, system: System) -> Result<u32, String> {
    let (user, process) = peer.ok_or("which process listens on its socket cannot be seen from here")?;
    let files = ProcessFiles::of(process);
    let gone = || format!("process {process}, which began to listen on its socket, cannot be read");
    let name = files.bytes("comm").map_err(|_| gone())?;
    let status = Status::parse(&files.bytes("status").map_err(|_| gone())?);
    is_server(&String::from_utf8_lossy(&name), status.user.map(|user| user.uid), user, system)?;
    Ok(process)
}

/// Whether a process of this name and user is such a server, and of the user that began to listen.
fn is_server(name: &str, runs_as: Option<u32>, listens_as: u32, system: System) -> Result<(), String> {
    let name = name.trim_end();
    if !programs(system).contains(&name) {
        return Err(format!("{} listens on its socket, which is no server of {}", sanitize_line(name), system.name()));
    }
    if runs_as != Some(listens_as) {
        return Err(format!("who listens on its socket was another user's process than {name} is"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_hands_connections_on_or_has_only_the_number_of_the_server_is_not_taken_for_it() {
        for (name, system) in
            [("postgres\n", System::Postgres), ("mariadbd\n", System::Mysql), ("mysqld", System::Mysql)]
        {
            assert_eq!(is_server(name, Some(7), 7, system), Ok(()));
            assert!(is_server(name, Some(8), 7, system).unwrap_err().contains("another user's"), "{name}");
            assert!(is_server(name, None, 7, system).is_err(), "whose it is is not known");
        }
        for (name, system) in [
            ("pgbouncer\n", System::Postgres),
            ("systemd\n", System::Mysql),
            ("socat\n", System::Mysql),
            ("ssh\n", System::Postgres),
            ("mariadbd\n", System::Postgres),
            ("\x1b[2Jpostgres\n", System::Postgres),
        ] {
            let why = is_server(name, Some(7), 7, system).unwrap_err();
            assert!(why.contains(" listens on its socket, which is no server of ") && !why.contains('\x1b'), "{why}");
        }
    }

    #[test]
    fn a_listener_that_cannot_be_seen_is_nobody() {
        assert!(of_peer(None, System::Postgres).unwrap_err().contains("cannot be seen"));
        // The largest number of a process is 2^22.
        assert!(of_peer(Some((0, u32::MAX)), System::Postgres).unwrap_err().contains("cannot be read"));
        let ours = std::process::id();
        let why = of_peer(Some((rustix::process::geteuid().as_raw(), ours)), System::Postgres).unwrap_err();
        assert!(cfg!(not(target_os = "linux")) || why.contains("is no server of PostgreSQL"), "{why}");
    }
}
