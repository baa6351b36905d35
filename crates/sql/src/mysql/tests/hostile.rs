//! Servers that lie: each is met by a failure that says so, at once and with nothing given away.

use super::*;
use crate::failure::{BROKEN, ERROR, LOGIN, LOST, TLS};
use crate::wire::{LONGEST_ROW_BYTES, Value};
use duel_model::FailureKind;

fn greeted(login: &Login, greeting: &[u8]) -> (MySql, Result<Vec<Happened>, SqlFailure>) {
    let mut wire = MySql::default();
    wire.log_in(login).unwrap();
    let happened = all(&mut wire, greeting);
    (wire, happened)
}

fn fails(happened: Result<Vec<Happened>, SqlFailure>, kind: FailureKind, says: &str) {
    let failure = happened.unwrap_err();
    assert_eq!(failure.kind, kind, "{}", failure.text);
    assert!(failure.text.contains(says), "{}", failure.text);
}

#[test]
fn another_protocol_is_told_by_its_first_bytes() {
    for banner in [
        &b"SSH-2.0-OpenSSH_9.2p1\r\n"[..],
        b"220 mail ESMTP\r\n",
        b"HTTP/1.1 400 Bad Request\r\n",
        b"\x15\x03\x01\0\x02\x02\x0a",
    ] {
        let (_, happened) = greeted(&login(), banner);
        fails(happened, BROKEN, "no MySQL and no MariaDB server");
    }
    let (_, happened) = greeted(&login(), b"SSH-2.0-\x1b[2Jx\r\n");
    assert!(!happened.unwrap_err().text.contains('\x1b'));
}

#[test]
fn a_server_that_asks_for_a_file_gets_none() {
    for prepared_statement in [false, true] {
        let mut wire = prepared(NEW, 0xFE);
        match prepared_statement {
            true => wire.execute(3, &[Value::Int(1)]).unwrap(),
            false => wire.query("SELECT 1").unwrap(),
        }
        wire.outgoing().clear();
        fails(all(&mut wire, &packet(1, b"\xfb/etc/passwd")), BROKEN, "asks for a file");
        assert_eq!(*wire.outgoing(), [0, 0, 0, 2]);
        assert!(wire.query("SELECT 1").is_err(), "nothing goes on");
    }
}

#[test]
fn a_server_gets_the_rows_of_a_bulk_load_once_and_under_their_own_name() {
    let asked = packet(1, b"\xfbrows of duel");
    for file in [&packet(1, b"\xfb/etc/passwd"), &packet(1, b"\xfb"), &packet(1, b"\xfbrows of duel\0")] {
        let mut wire = logged_in(NEW);
        wire.load("LOAD DATA LOCAL INFILE 'rows of duel' INTO TABLE t").unwrap();
        fails(all(&mut wire, file), BROKEN, "asks for a file");
    }
    let mut wire = logged_in(NEW);
    wire.query("LOAD DATA LOCAL INFILE 'rows of duel' INTO TABLE t").unwrap();
    fails(all(&mut wire, &asked), BROKEN, "asks for a file");
    // The offer ends with its statement, and with the first time that it is taken.
    let mut wire = logged_in(NEW);
    wire.load("LOAD DATA").unwrap();
    let disabled = packet(1, b"\xff\x6c\x0f#42000Loading local data is disabled");
    let happened = all(&mut wire, &disabled).unwrap();
    assert!(matches!(&happened[..], [Happened::Refused(why)] if why.kind == ERROR), "{happened:?}");
    wire.query("SELECT 1").unwrap();
    fails(all(&mut wire, &asked), BROKEN, "asks for a file");
    let loading = || {
        let mut wire = logged_in(NEW);
        wire.load("LOAD DATA").unwrap();
        assert_eq!(all(&mut wire, &asked), Ok(vec![Happened::WantsData]));
        wire
    };
    let mut wire = loading();
    wire.data(None).unwrap();
    fails(all(&mut wire, &packet(3, b"\xfbrows of duel")), BROKEN, "asks for a file");
    let mut wire = loading();
    assert!(wire.query("SELECT 1").is_err(), "the data has no end yet");
    fails(all(&mut wire, &packet(2, OK)), BROKEN, "before the data has come to its end");
    assert!(wire.data(Some(b"1")).is_err(), "nothing goes on");
    assert!(logged_in(NEW).data(Some(b"1")).is_err(), "nobody waits for it");
}

#[test]
fn only_who_fills_tables_can_be_asked_for_data() {
    const LOCAL_FILES: u8 = 1 << 7;
    for (loads_tables, server, told) in
        [(false, NEW | 1 << 7, 0), (true, NEW | 1 << 7, LOCAL_FILES), (true, NEW & !(1 << 7), 0)]
    {
        let (mut wire, _) =
            greeted(&Login { loads_tables, ..login() }, &packet(0, &greeting(server, "mysql_native_password")));
        assert_eq!(wire.outgoing()[4] & LOCAL_FILES, told, "{loads_tables} {server:x}");
    }
}

#[test]
fn tls_that_is_required_is_never_given_up() {
    let required = Login { tls: AskTls::Required, ..login() };
    let (mut wire, happened) = greeted(&required, &packet(0, &greeting(NEW, "mysql_native_password")));
    fails(happened, TLS, "no TLS");
    assert!(wire.outgoing().is_empty());
    let with_tls = NEW | 1 << 11;
    let (mut wire, happened) = greeted(&required, &packet(0, &greeting(with_tls, "mysql_native_password")));
    assert_eq!(happened, Ok(vec![Happened::WantsTls]));
    let sent = std::mem::take(wire.outgoing());
    assert_eq!((sent.len(), sent[3]), (36, 1), "nobody is named before TLS");
    assert_eq!(wire.next(), Ok(None));
    wire.tls_established().unwrap();
    assert_eq!(wire.outgoing()[3], 2);
    assert!(wire.outgoing()[36..].starts_with(b"u\0"));
    let if_offered = Login { tls: AskTls::IfOffered, ..login() };
    assert_eq!(greeted(&if_offered, &packet(0, &greeting(NEW, "mysql_native_password"))).1, Ok(vec![]));
}

#[test]
fn bytes_in_clear_text_before_tls_are_not_believed() {
    let required = Login { tls: AskTls::Required, ..login() };
    let greeting = packet(0, &greeting(NEW | 1 << 11, "mysql_native_password"));
    for late in [false, true] {
        let injected = packet(2, OK);
        let (mut wire, happened) = match late {
            false => greeted(&required, &[greeting.clone(), injected.clone()].concat()),
            true => greeted(&required, &greeting),
        };
        assert_eq!(happened, Ok(vec![Happened::WantsTls]));
        if late {
            wire.receive(&injected).unwrap();
        }
        wire.outgoing().clear();
        assert_eq!(wire.tls_established().unwrap_err().kind, BROKEN);
        assert!(wire.outgoing().is_empty());
    }
}

#[test]
fn a_password_is_never_sent_in_clear_text_to_whoever_asks() {
    for plugin in ["mysql_clear_password", "dialog", "mysql_old_password", "sha256_password", "\x1b[2J"] {
        let (mut wire, _) = greeted(&login(), &packet(0, &greeting(NEW, plugin)));
        assert!(!wire.outgoing().windows(6).any(|bytes| bytes == b"secret"));
        wire.outgoing().clear();
        let switch = [b"\xfe", plugin.as_bytes(), b"\0", NONCE, b"\0"].concat();
        let happened = all(&mut wire, &packet(2, &switch));
        assert!(!happened.as_ref().unwrap_err().text.contains('\x1b'));
        fails(happened, LOGIN, "log in by");
        assert!(wire.outgoing().is_empty());
    }
    for tls in [AskTls::Never, AskTls::IfOffered] {
        let remote = Login { tls, ..login() };
        let (mut wire, _) = greeted(&remote, &packet(0, &greeting(NEW, "caching_sha2_password")));
        wire.outgoing().clear();
        fails(all(&mut wire, &packet(2, &[1, 4])), LOGIN, "sslmode=require encrypts it");
        assert!(wire.outgoing().is_empty(), "neither the password nor a wish for somebody's key");
    }
}

#[test]
fn a_login_that_never_ends_is_ended() {
    let (mut wire, _) = greeted(&login(), &packet(0, &greeting(NEW, "mysql_native_password")));
    let switch = [b"\xfemysql_native_password\0", &NONCE[..], b"\0"].concat();
    let failure = (1..100).find_map(|turn| all(&mut wire, &packet(2 * turn, &switch)).err());
    fails(Err(failure.unwrap()), BROKEN, "come to an end");
}

#[test]
fn names_that_end_early_are_refused() {
    for (user, database) in [("u\0root", "db"), ("u", "db\0x")] {
        let login = Login { user: user.into(), database: database.into(), ..login() };
        assert_eq!(MySql::default().log_in(&login).unwrap_err().kind, LOGIN);
    }
}

#[test]
fn lengths_that_lie_are_found() {
    let (_, happened) = greeted(&login(), &packet(0, b"\x0a5.5"));
    fails(happened, BROKEN, "shorter");
    let mut short = greeting(NEW, "");
    short.truncate(50);
    let (_, happened) = greeted(&login(), &packet(0, &short));
    fails(happened, BROKEN, "shorter");

    let lies: [(&[&[u8]], &str); 12] = [
        (&[b""], "empty"),
        (&[&[0]], "shorter"),
        (&[&[0, 0xFE, 1]], "shorter"),
        (&[&[0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]], "columns"),
        (&[&[0xFC, 0xFF, 0xFF]], "columns"),
        (&[&[2, 9]], "too long"),
        (&[&[1], b"\x03de"], "shorter"),
        (&[&[1], b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff"], "shorter"),
        (&[&[1], &column(0xFE), b"\x05row"], "shorter"),
        (&[&[1], &column(0xFE), b"\x01rest"], "longer"),
        (&[&[1], &column(0xFE), b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff"], "begins with"),
        (&[&[0, 0, 0, 0x0A, 0, 0, 0]], "several answers"),
    ];
    for (answer, says) in lies {
        let mut wire = logged_in(NEW);
        wire.want_rows(true);
        wire.query("SELECT 1").unwrap();
        fails(all(&mut wire, &packets(1, answer)), BROKEN, says);
        assert_eq!(wire.next().unwrap_err().kind, BROKEN, "it stays so");
    }
    let (_, happened) = greeted(&login(), &[0xFF, 0xFF, 0, 0, 10]);
    assert_eq!(happened, Ok(vec![]), "the longest greeting is waited for");
}

#[test]
fn rows_of_prepared_statements_that_lie_are_found() {
    let lies: [(u8, &[u8], &str); 8] = [
        (0xFE, &[1, 0, 0], "begins with"),
        (0xFE, &[0], "shorter"),
        (0xFE, &[0, 0, 9, b'x'], "shorter"),
        (0xFE, &[0, 0, 1, b'x', b'y'], "longer"),
        (0x08, &[0, 0, 1], "shorter"),
        (0x0C, &[0, 0, 2, 1, 1], "shorter"),
        (0x0B, &[0, 0, 3, 0, 1, 1], "shorter"),
        (0x20, &[0, 0, 1], "does not exist"),
    ];
    for (kind, row, says) in lies {
        let mut wire = prepared(NEW, kind);
        wire.want_rows(true);
        wire.execute(3, &[Value::Int(1)]).unwrap();
        fails(all(&mut wire, &packets(1, &[&[1], &column(kind), row])), BROKEN, says);
    }
    let mut wire = prepared(MARIADB, 0xFE);
    wire.execute(3, &[Value::Int(1)]).unwrap();
    fails(all(&mut wire, &packet(1, &[2, 0])), BROKEN, "describes none");
    let mut wire = prepared(OLD, 0xFE);
    wire.execute(3, &[Value::Int(1)]).unwrap();
    fails(all(&mut wire, &packets(1, &[&[1], &column(0xFE), &column(0xFE)])), BROKEN, "more columns");
    let mut wire = logged_in(NEW);
    wire.prepare(0, "SELECT 1").unwrap();
    fails(all(&mut wire, &packet(1, &[0, 1, 0, 0, 0, 0xFF, 0xFF, 0, 0, 0, 0, 0])), BROKEN, "65535 columns");
}

#[test]
fn messages_out_of_order_are_found() {
    let mut wire = logged_in(NEW);
    fails(all(&mut wire, &packet(0, OK)), BROKEN, "without having been asked");
    let mut wire = logged_in(NEW);
    wire.query("SELECT 1").unwrap();
    fails(all(&mut wire, &packet(2, OK)), BROKEN, "number 2, not 1");
    let mut wire = logged_in(NEW);
    wire.query("SELECT 1").unwrap();
    let two = [packet(1, OK), packet(2, OK)].concat();
    fails(all(&mut wire, &two), BROKEN, "without having been asked");
    let mut wire = logged_in(NEW);
    wire.prepare(0, "SELECT 1").unwrap();
    fails(all(&mut wire, &packet(1, &[1])), BROKEN, "prepared");
    let mut wire = logged_in(NEW);
    wire.query("SELECT 1").unwrap();
    assert_eq!(wire.query("SELECT 2").unwrap_err().kind, BROKEN);
}

#[test]
fn a_good_bye_of_the_server_is_a_lost_connection_wherever_it_crosses() {
    let killed = b"\xff\x87\x07#70100Connection was killed";
    let mut wire = logged_in(NEW);
    fails(all(&mut wire, &packet(0, killed)), LOST, "killed");
    let mut wire = logged_in(NEW);
    wire.query("SELECT 1").unwrap();
    fails(all(&mut wire, &packet(0, killed)), LOST, "killed");
    let mut wire = logged_in(NEW);
    wire.query("SELECT 1").unwrap();
    fails(all(&mut wire, &packets(1, &[&[1], &column(0xFE), killed])), LOST, "killed");
}

#[test]
fn endless_rows_take_no_memory() {
    let mut wire = logged_in(NEW);
    wire.query("SELECT 1").unwrap();
    let mut happened = all(&mut wire, &packets(1, &[&[1], &column(0xFC)])).unwrap();
    // Rows of a mebibyte, whose numbers go round.
    let row = [&[0xFD, 0xFC, 0xFF, 0x0F][..], &vec![b'x'; 0xF_FFFC]].concat();
    let mut number = 3_u8;
    for _ in 0..300 {
        let packet = packet(number, &row);
        number = number.wrapping_add(1);
        for piece in packet.chunks(1 << 16) {
            happened.extend(all(&mut wire, piece).unwrap());
            assert!(wire.incoming.unread().is_empty());
        }
    }
    happened.extend(all(&mut wire, &packet(number, END)).unwrap());
    assert_eq!(happened, [Happened::FirstRow, Happened::Done { rows: 300, affected: 0 }]);
}

#[test]
fn a_row_without_an_end_and_one_that_is_wanted_but_too_long_are_failures() {
    let mut wire = logged_in(NEW);
    wire.want_rows(true);
    wire.query("SELECT 1").unwrap();
    let long = vec![1; LONGEST_ROW_BYTES + 1];
    fails(all(&mut wire, &packets(1, &[&[1], &column(0xFC), &long])), BROKEN, "1048577 bytes");

    let mut wire = logged_in(NEW);
    wire.query("SELECT 1").unwrap();
    all(&mut wire, &packets(1, &[&[1], &column(0xFC)])).unwrap();
    let mut full = vec![0xFF, 0xFF, 0xFF, 3];
    full.resize(4 + 0xFF_FFFF, 0xFE);
    let failure = (3..200_u8).find_map(|number| {
        full[3] = number;
        full.chunks(1 << 20).find_map(|piece| all(&mut wire, piece).err())
    });
    fails(Err(failure.unwrap()), BROKEN, "does not end");
}

#[test]
fn whoever_hands_over_bytes_and_never_reads_is_stopped() {
    let mut wire = logged_in(NEW);
    wire.query("SELECT 1").unwrap();
    let failure = (0..1000).find_map(|_| wire.receive(&[1; 1 << 16]).err());
    assert_eq!(failure.unwrap().kind, BROKEN);
}
