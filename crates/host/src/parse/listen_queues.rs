//! Connections that wait to be accepted beside a server.

use duel_model::{ListenQueues, sanitize_line};

/// Different sockets that are kept: of more than a front asks, a look tells nothing that is to be read.
const MOST_SOCKETS: usize = 64;
/// Longest name of a Unix socket, in bytes (`sun_path` of unix(7)).
const LONGEST_PATH: usize = 108;
/// More than any queue holds: its length is a number of 32 bits, and a kernel allows 65,535 and fewer.
const MOST_WAITING: u64 = 1 << 20;

/// Reads one look. Nothing was seen where it does not end with the word that it did.
pub(crate) fn listen_queues(text: &str) -> ListenQueues {
    let mut seen = ListenQueues::default();
    for line in text.lines() {
        if line == "looked" {
            seen.looks = 1;
            continue;
        }
        let Some((socket, waiting)) = waiting(line).filter(|(_, waiting)| (1..=MOST_WAITING).contains(waiting)) else {
            continue;
        };
        if let Some(sum) = seen.waiting.get_mut(&socket) {
            *sum += waiting;
        } else if seen.waiting.len() < MOST_SOCKETS {
            seen.waiting.insert(socket, waiting);
        }
    }
    if seen.looks == 0 {
        return ListenQueues::default();
    }
    seen.looks_by_waiting.insert(seen.waiting.values().sum(), 1);
    seen
}

/// A socket, and how many connections wait there. Several sockets may listen on one port.
fn waiting(line: &str) -> Option<(String, u64)> {
    let mut parts = line.splitn(3, ' ');
    match (parts.next()?, parts.next()?, parts.next()?) {
        ("tcp", port, waiting) => {
            let port = u16::from_str_radix(port, 16).ok()?;
            Some((format!("port {port}"), u64::from_str_radix(waiting, 16).ok()?))
        }
        ("unix", waiting, path) if !path.is_empty() && path.len() <= LONGEST_PATH => {
            Some((sanitize_line(path), waiting.parse().ok()?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_counted_by_where_they_wait() {
        let mut seen =
            listen_queues("tcp 24BA 0000000B\ntcp 24BA 1\nunix 11 /run/php fpm.sock\nunix 2 @abstract\nlooked\n");
        seen.add(&listen_queues("looked\n"));
        assert_eq!(seen.looks, 2);
        assert_eq!(seen.mean("port 9402"), Some(6.0));
        assert_eq!(seen.mean("/run/php fpm.sock"), Some(5.5));
        assert_eq!(seen.mean("@abstract"), Some(1.0));
        assert_eq!(seen.mean("port 1"), Some(0.0), "an empty queue");
        seen.add(&listen_queues("tcp 24BA 3\nlooked\n"));
        assert_eq!(seen.median(), Some(3), "of 25, 0 and 3");
    }

    #[test]
    fn a_look_that_was_not_ended_tells_nothing() {
        for text in ["", "unix 11 /run/a.sock\n", "tcp 0050 00000004\nlooked at\n"] {
            assert_eq!(listen_queues(text), ListenQueues::default(), "{text:?}");
            assert_eq!(listen_queues(text).mean("/run/a.sock"), None);
        }
    }

    #[test]
    fn what_is_no_queue_is_left_out() {
        let long = "x".repeat(LONGEST_PATH + 1);
        let text = format!(
            "tcp 12345 1\ntcp 50 FFFFFFFFF\ntcp 50 0\nunix -1 /a\nunix 4\nunix 3 {long}\nudp 50 1\nunix 1 \x1b[2J\nlooked\n"
        );
        let seen = listen_queues(&text);
        assert_eq!(seen.waiting.len(), 1);
        assert!(seen.waiting.keys().all(|path| !path.contains('\x1b')), "{seen:?}");
        let many: String = (0..1000).map(|n| format!("unix 1 /run/{n}\n")).collect();
        assert_eq!(listen_queues(&format!("{many}looked\n")).waiting.len(), MOST_SOCKETS);
    }
}
