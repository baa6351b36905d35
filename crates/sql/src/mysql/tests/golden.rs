//! Bytes as the protocol's documentation has them, and as other implementations send them.

use super::super::auth::Plugin;
use super::super::statements::Statements;
use super::*;
use crate::failure::{DEADLOCK, ERROR, TOO_MANY};
use crate::wire::Value;
use aws_lc_rs::rsa::{OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, PrivateDecryptingKey};

/// Hexadecimal digits with spaces between them.
fn hex(digits: &str) -> Vec<u8> {
    digits.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

/// The greeting of MySQL 5.5.2 in its documentation.
const GREETING_5_5: &str = "36 00 00 00 0a 35 2e 35 2e 32 2d 6d 32 00 0b 00 00 00 64 76 48 40 49 2d 43 4a 00 ff f7 08 02 00 00 00 \
                            00 00 00 00 00 00 00 00 00 00 00 2a 34 64 7c 63 5a 77 6b 34 5e 5d 3a 00";

#[test]
fn an_old_greeting_is_answered_by_name_password_and_database() {
    let mut wire = MySql::default();
    wire.log_in(&login()).unwrap();
    assert_eq!(all(&mut wire, &hex(GREETING_5_5)), Ok(vec![]));
    let sent = std::mem::take(wire.outgoing());
    // Capabilities that both have, the largest packet, the character set, and zeros.
    assert_eq!(
        sent[..36],
        hex(
            "3a 00 00 01 0f a2 00 00 00 00 00 40 2d 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"
        )
    );
    let nonce = hex("64 76 48 40 49 2d 43 4a 2a 34 64 7c 63 5a 77 6b 34 5e 5d 3a");
    let expected = [b"u\0\x14", Plugin::Native.answer("secret", &nonce).unwrap().as_slice(), b"db\0"].concat();
    assert_eq!(sent[36..], expected);
    assert_eq!(all(&mut wire, &hex("07 00 00 02 00 00 00 02 00 00 00")), Ok(vec![Happened::LoggedIn]));
}

#[test]
fn passwords_are_answered_as_others_do() {
    let nonce = [10, 47, 74, 111, 75, 73, 34, 48, 88, 76, 114, 74, 37, 13, 3, 80, 82, 2, 23, 21];
    let hex = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let sha2 = hex(Plugin::CachingSha2.answer("secret", &nonce).unwrap());
    assert_eq!(sha2, "f490e76f66d9d86665ce54d98c78d0acfe2fb0b08b423da807144873d30b312c");
    let native = hex(Plugin::Native.answer("secret", &nonce).unwrap());
    assert_eq!(native, "6a149bdd80bda1ebf0fa2bd2cf2e9717fecc34bb");
    assert_eq!(Plugin::Native.answer("", &nonce), Ok(vec![]));
}

#[test]
fn a_query_is_answered_in_text() {
    let mut wire = logged_in(OLD);
    wire.want_rows(true);
    wire.query("select @@version_comment limit 1").unwrap();
    assert_eq!(wire.outgoing()[..9], hex("21 00 00 00 03 73 65 6c 65"));
    let answer = hex(
        "01 00 00 01 01 27 00 00 02 03 64 65 66 00 00 00 11 40 40 76 65 72 73 69 6f 6e 5f 63 6f 6d 6d 65 6e 74 00 0c 08 00 \
                      1c 00 00 00 fd 00 00 1f 00 00 05 00 00 03 fe 00 00 02 00 1d 00 00 04 1c 4d 79 53 51 4c 20 43 6f 6d 6d 75 6e 69 74 \
                      79 20 53 65 72 76 65 72 20 28 47 50 4c 29 05 00 00 05 fe 00 00 02 00",
    );
    let happened = all(&mut wire, &answer).unwrap();
    assert_eq!(happened, [Happened::FirstRow, Happened::Row, Happened::Done { rows: 1, affected: 0 }]);
    assert_eq!(wire.row(), [Some("MySQL Community Server (GPL)".to_owned())]);
}

#[test]
fn a_statement_is_prepared_and_executed() {
    let mut wire = logged_in(OLD);
    wire.prepare(0, "SELECT CONCAT(?, ?) AS col1").unwrap();
    assert_eq!(wire.outgoing()[..12], hex("1c 00 00 00 16 53 45 4c 45 43 54 20"));
    let answer = hex(
        "0c 00 00 01 00 01 00 00 00 01 00 02 00 00 00 00 17 00 00 02 03 64 65 66 00 00 00 01 3f 00 0c 3f 00 00 00 00 00 fd 80 \
                      00 00 00 00 17 00 00 03 03 64 65 66 00 00 00 01 3f 00 0c 3f 00 00 00 00 00 fd 80 00 00 00 00 05 00 00 04 fe 00 00 \
                      02 00 1a 00 00 05 03 64 65 66 00 00 00 04 63 6f 6c 31 00 0c 3f 00 00 00 00 00 fd 80 00 1f 00 00 05 00 00 06 fe 00 \
                      00 02 00",
    );
    assert_eq!(all(&mut wire, &answer), Ok(vec![Happened::Prepared]));
    wire.outgoing().clear();
    wire.want_rows(true);
    wire.execute(0, &[Value::Text("foo".into()), Value::Int(-2)]).unwrap();
    let first = hex("1c 00 00 00 17 01 00 00 00 00 01 00 00 00 00 01 fd 00 08 00 03 66 6f 6f fe ff ff ff ff ff ff ff");
    assert_eq!(*wire.outgoing(), first);
    let rows = hex(
        "01 00 00 01 01 1a 00 00 02 03 64 65 66 00 00 00 04 63 6f 6c 31 00 0c 08 00 06 00 00 00 fd 00 00 1f 00 00 05 00 00 03 \
                    fe 00 00 02 00 09 00 00 04 00 00 06 66 6f 6f 62 61 72 05 00 00 05 fe 00 00 02 00",
    );
    let happened = all(&mut wire, &rows).unwrap();
    assert_eq!(happened, [Happened::FirstRow, Happened::Row, Happened::Done { rows: 1, affected: 0 }]);
    assert_eq!(wire.row(), [Some("foobar".to_owned())]);
    // Types are told once.
    wire.outgoing().clear();
    wire.execute(0, &[Value::Text("foo".into()), Value::Int(1)]).unwrap();
    let again = hex("18 00 00 00 17 01 00 00 00 00 01 00 00 00 00 00 03 66 6f 6f 01 00 00 00 00 00 00 00");
    assert_eq!(*wire.outgoing(), again);
}

#[test]
fn rows_of_a_bulk_load_are_sent_in_messages_of_one_packet_and_an_empty_one_ends_them() {
    let mut wire = logged_in(NEW);
    wire.load("LOAD DATA LOCAL INFILE 'rows of duel' INTO TABLE t").unwrap();
    assert_eq!(wire.outgoing()[..9], hex("33 00 00 00 03 4c 4f 41 44"));
    assert_eq!(all(&mut wire, &packet(1, b"\xfbrows of duel")), Ok(vec![Happened::WantsData]));
    wire.outgoing().clear();
    // No data is no end.
    wire.data(Some(b"")).unwrap();
    assert!(wire.outgoing().is_empty());
    wire.data(Some(b"1\t2\n")).unwrap();
    assert_eq!(*wire.outgoing(), hex("04 00 00 02 31 09 32 0a"));
    wire.outgoing().clear();
    let large = vec![b'x'; (1 << 19) + 3];
    wire.data(Some(&large)).unwrap();
    assert_eq!(wire.outgoing()[..5], hex("00 00 08 03 78"));
    assert_eq!(wire.outgoing()[4 + (1 << 19)..], hex("03 00 00 04 78 78 78"));
    wire.outgoing().clear();
    wire.data(None).unwrap();
    assert_eq!(*wire.outgoing(), hex("00 00 00 05"));
    let done = all(&mut wire, &packet(6, &[0, 3, 0, 2, 0, 0, 0]));
    assert_eq!(done, Ok(vec![Happened::Done { rows: 0, affected: 3 }]));
}

#[test]
fn preparing_another_statement_by_the_same_number_closes_the_first() {
    let mut wire = prepared(NEW, 0xFE);
    wire.prepare(3, "DO 1").unwrap();
    assert_eq!(*wire.outgoing(), hex("05 00 00 00 19 07 00 00 00 05 00 00 00 16 44 4f 20 31"));
    assert_eq!(all(&mut wire, &packet(1, &[0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])), Ok(vec![Happened::Prepared]));
}

#[test]
fn values_of_a_prepared_statement_are_read_by_their_types() {
    let cases: [(u8, &[u8], &str); 16] = [
        (0x01, &[0xFF], "-1"),
        (0x02, &[0x00, 0x80], "-32768"),
        (0x0D, &[0xEA, 0x07], "2026"),
        (0x03, &[1, 0, 0, 0], "1"),
        (0x08, &[0xFF; 8], "-1"),
        (0x05, &1.5_f64.to_le_bytes(), "1.5"),
        (0x04, &0.25_f32.to_le_bytes(), "0.25"),
        (0xF6, b"\x0512.30", "12.30"),
        (0xFC, b"\x02\xc3\xa4", "ä"),
        (0xFE, b"\x01\xff", "\u{fffd}"),
        (0x0A, &[4, 0xDA, 0x07, 10, 17], "2010-10-17"),
        (0x0C, &[11, 0xDA, 0x07, 10, 17, 19, 27, 30, 1, 0, 0, 0], "2010-10-17 19:27:30.000001"),
        (0x07, &[7, 0xDA, 0x07, 10, 17, 19, 27, 30], "2010-10-17 19:27:30"),
        (0x0B, &[12, 1, 120, 0, 0, 0, 19, 27, 30, 1, 0, 0, 0], "-2899:27:30.000001"),
        (0x0B, &[0], "00:00:00"),
        (0x10, &[1, 5], "\u{5}"),
    ];
    for (kind, bytes, text) in cases {
        let mut wire = prepared(NEW, kind);
        wire.want_rows(true);
        wire.execute(3, &[Value::Int(1)]).unwrap();
        let row = [&[0, 0], bytes].concat();
        let null = [0, 4];
        let happened = all(&mut wire, &packets(1, &[&[1], &column(kind), &row])).unwrap();
        assert_eq!(
            (happened, wire.row()),
            (vec![Happened::FirstRow, Happened::Row], &[Some(text.to_owned())][..]),
            "{kind:#x}"
        );
        let happened = all(&mut wire, &packets(4, &[&null, END])).unwrap();
        assert_eq!(happened, [Happened::Row, Happened::Done { rows: 2, affected: 0 }]);
        assert_eq!(wire.row(), [None], "{kind:#x}");
    }
}

#[test]
fn columns_may_be_left_out_where_they_are_known() {
    let mut wire = prepared(MARIADB, 0xFE);
    wire.execute(3, &[Value::Int(1)]).unwrap();
    let happened = all(&mut wire, &packets(1, &[&[1, 0], b"\0\0\x01x", END])).unwrap();
    assert_eq!(happened, [Happened::FirstRow, Happened::Done { rows: 1, affected: 0 }]);
    // The table was altered: they are told anew.
    wire.want_rows(true);
    wire.execute(3, &[Value::Int(1)]).unwrap();
    all(&mut wire, &packets(1, &[&[1, 1], &column(1), &[0, 0, 9], END])).unwrap();
    assert_eq!(wire.row(), [Some("9".to_owned())]);
}

#[test]
fn an_error_leaves_the_connection_usable_and_is_counted_by_its_kind() {
    let mut wire = logged_in(NEW);
    for (error, kind) in [(&b"\xff\xbd\x04#40001Deadlock"[..], DEADLOCK), (b"\xff\x48\x04#HY000No tables used", ERROR)]
    {
        wire.query("SELECT *").unwrap();
        match &all(&mut wire, &packet(1, error)).unwrap()[..] {
            [Happened::Refused(failure)] => assert_eq!(failure.kind, kind),
            other => panic!("{other:?}"),
        }
    }
    wire.query("DO 1").unwrap();
    let ok = [0, 0xFC, 0x10, 0x27, 0, 2, 0, 0, 0];
    assert_eq!(all(&mut wire, &packet(1, &ok)), Ok(vec![Happened::Done { rows: 0, affected: 10_000 }]));
}

#[test]
fn an_error_in_place_of_a_greeting_is_told() {
    let mut wire = MySql::default();
    wire.log_in(&login()).unwrap();
    let failure = all(&mut wire, &packet(0, b"\xff\x10\x04Too many connections")).unwrap_err();
    assert_eq!((failure.kind, failure.text.as_str()), (TOO_MANY, "error 1040: Too many connections"));
}

#[test]
fn a_message_of_sixteen_mebibytes_goes_in_several_packets() {
    for (length, heads) in [(0xFF_FFFE, 1), (0xFF_FFFF, 2), (0x1FF_FFFE, 3), (0x1FF_FFFF, 3)] {
        let mut wire = logged_in(NEW);
        wire.query(&"x".repeat(length - 1)).unwrap();
        let out = wire.outgoing();
        assert_eq!(out.len(), length + heads * 4);
        assert_eq!(out[..4], if heads == 1 { [0xFE, 0xFF, 0xFF, 0] } else { [0xFF, 0xFF, 0xFF, 0] });
        // The answer's number follows that of the last packet.
        assert_eq!(all(&mut wire, &packet(heads as u8, OK)), Ok(vec![Happened::Done { rows: 0, affected: 0 }]));
    }
}

#[test]
fn a_row_of_sixteen_mebibytes_is_one_row_in_several_packets() {
    for length in [0xFF_FFFE, 0xFF_FFFF, 0x100_0000, 0x1FF_FFFE] {
        let mut wire = logged_in(NEW);
        wire.query("SELECT 1").unwrap();
        let mut row = match length {
            0x1FF_FFFE => [&[0xFE][..], &(length as u64 - 9).to_le_bytes()].concat(),
            _ => [&[0xFD][..], &(length as u64 - 4).to_le_bytes()[..3]].concat(),
        };
        row.resize(length, b'x');
        let mut bytes = packets(1, &[&[1], &column(0xFC)]);
        let number = write(&mut bytes, 3, |out| out.extend_from_slice(&row));
        bytes.extend(packet(number, END));
        let mut happened = Vec::new();
        for piece in bytes.chunks(1 << 16) {
            happened.extend(all(&mut wire, piece).unwrap());
        }
        assert_eq!(happened, [Happened::FirstRow, Happened::Done { rows: 1, affected: 0 }], "{length}");
    }
}

#[test]
fn the_full_way_of_caching_sha2_sends_the_password_to_this_machine() {
    let greeting = packet(0, &greeting(NEW, "caching_sha2_password"));

    let mut wire = MySql::default();
    wire.log_in(&Login { is_local: true, is_socket: true, ..login() }).unwrap();
    all(&mut wire, &greeting).unwrap();
    wire.outgoing().clear();
    all(&mut wire, &packet(2, &[1, 4])).unwrap();
    assert_eq!(*wire.outgoing(), packet(3, b"secret\0"));

    let mut wire = MySql::default();
    wire.log_in(&login()).unwrap();
    all(&mut wire, &greeting).unwrap();
    let both = [packet(2, &[1, 3]), packet(3, OK)].concat();
    assert_eq!(all(&mut wire, &both), Ok(vec![Happened::LoggedIn]), "the server knew the password");
}

/// The greeting of MySQL 9.7.4, as it came by TCP.
const GREETING_9_7: &str = "4b 00 00 00 0a 39 2e 37 2e 34 2d 32 00 f3 00 00 00 33 41 4c 2a 06 31 2a 1f 00 ff ff ff 02 00 ff \
                            df 15 00 00 00 00 00 00 00 00 00 00 39 6f 26 0d 18 2f 6d 0d 32 5b 02 35 00 63 61 63 68 69 6e 67 \
                            5f 73 68 61 32 5f 70 61 73 73 77 6f 72 64 00";

#[test]
fn by_tcp_to_this_machine_the_password_goes_encrypted_for_the_servers_key() {
    let nonce = hex("33 41 4c 2a 06 31 2a 1f 39 6f 26 0d 18 2f 6d 0d 32 5b 02 35");
    let pair = rcgen::KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, rcgen::RsaKeySize::_2048).unwrap();
    let private = PrivateDecryptingKey::from_pkcs8(pair.serialized_der()).unwrap();
    let private = OaepPrivateDecryptingKey::new(private).unwrap();
    // By what the greeting proposes, and where the user has another way than that.
    for switches in [false, true] {
        let mut wire = MySql::default();
        wire.log_in(&Login { is_local: true, ..login() }).unwrap();
        all(&mut wire, &hex(GREETING_9_7)).unwrap();
        let mut number = 2;
        if switches {
            let to = [b"\xfecaching_sha2_password\0", nonce.as_slice(), &[0]].concat();
            all(&mut wire, &packet(number, &to)).unwrap();
            number += 2;
        }
        wire.outgoing().clear();
        assert_eq!(all(&mut wire, &packet(number, &[1, 4])), Ok(vec![]));
        assert_eq!(*wire.outgoing(), packet(number + 1, &[2]), "it is asked for its key, and told nothing");
        wire.outgoing().clear();
        let key = [&[1], pair.public_key_pem().as_bytes()].concat();
        assert_eq!(all(&mut wire, &packet(number + 2, &key)), Ok(vec![]));
        let sent = std::mem::take(wire.outgoing());
        assert_eq!(sent[..4], [0, 1, 0, number + 3]);
        let mut hidden = vec![0; private.min_output_size()];
        let hidden = private.decrypt(&OAEP_SHA1_MGF1SHA1, &sent[4..], &mut hidden, None).unwrap();
        let password: Vec<u8> = hidden.iter().zip(&nonce).map(|(byte, mask)| byte ^ mask).collect();
        assert_eq!(password, b"secret\0");
        assert_eq!(all(&mut wire, &packet(number + 4, OK)), Ok(vec![Happened::LoggedIn]));
    }
    for key in [&b"\x01-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"[..], &[1], &[1, 3]] {
        let mut wire = MySql::default();
        wire.log_in(&Login { is_local: true, ..login() }).unwrap();
        all(&mut wire, &hex(GREETING_9_7)).unwrap();
        all(&mut wire, &packet(2, &[1, 4])).unwrap();
        let why = all(&mut wire, &packet(4, key)).unwrap_err();
        assert!(why.text.contains("key that the server sent"), "{}", why.text);
    }
}

#[test]
fn to_another_machine_the_password_itself_does_not_go_without_tls() {
    let mut wire = MySql::default();
    wire.log_in(&login()).unwrap();
    all(&mut wire, &hex(GREETING_9_7)).unwrap();
    wire.outgoing().clear();
    let why = all(&mut wire, &packet(2, &[1, 4])).unwrap_err();
    assert!(why.text.contains("sslmode=require"), "{}", why.text);
    assert!(wire.outgoing().is_empty());
}

#[test]
fn a_user_that_mysql_9_does_not_have_is_not_said_to_log_in_in_some_way() {
    let mut wire = MySql::default();
    wire.log_in(&login()).unwrap();
    all(&mut wire, &hex(GREETING_9_7)).unwrap();
    let to = [b"\xfesha256_password\0", NONCE.as_slice(), &[0]].concat();
    let why = all(&mut wire, &packet(2, &to)).unwrap_err();
    assert!(why.text.contains("a user that it does not have"), "{}", why.text);
}

#[test]
fn a_number_that_was_never_prepared_is_no_statement() {
    assert!(Statements::default().of(9).is_err());
}
