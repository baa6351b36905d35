//! The machine against scripts of a server, whole and cut anywhere, and against servers that lie.

use super::*;
use crate::wire::AskTls;
use duel_model::FailureKind;
use proptest::prelude::*;

fn login() -> Login {
    Login {
        session: Vec::new(),
        user: "u".into(),
        password: Some("hunter2".into()),
        database: "db".into(),
        tls: AskTls::Never,
        loads_tables: false,
        is_socket: false,
        is_local: true,
    }
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() + 4) as i32;
    [&[tag][..], &length.to_be_bytes(), body].concat()
}

fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

fn row(values: &[Option<&[u8]>]) -> Vec<u8> {
    let mut body = (values.len() as u16).to_be_bytes().to_vec();
    for value in values {
        body.extend(value.map_or(-1, |value| value.len() as i32).to_be_bytes());
        body.extend(value.unwrap_or_default());
    }
    message(b'D', &body)
}

fn error(severity: &str, code: &str, text: &str) -> Vec<u8> {
    message(b'E', format!("S{severity}\0V{severity}\0C{code}\0M{text}\0\0").as_bytes())
}

/// A connection that is let in.
fn open() -> Postgres {
    let mut wire = Postgres::default();
    wire.log_in(&login()).unwrap();
    wire.receive(&[message(b'R', &[0; 4]), message(b'S', b"a\0b\0"), ready()].concat()).unwrap();
    assert_eq!(wire.next(), Ok(Some(Happened::LoggedIn)));
    wire.outgoing().clear();
    wire
}

/// What happened, with the rows that were told, and the end.
type Told = (Vec<(Happened, Vec<Option<String>>)>, Option<FailureKind>);

/// All that happens of these pieces, and the end.
fn tell<'a>(wire: &mut Postgres, pieces: impl Iterator<Item = &'a [u8]>) -> Told {
    let mut told = Vec::new();
    for piece in pieces {
        if let Err(why) = wire.receive(piece) {
            return (told, Some(why.kind));
        }
        loop {
            match wire.next() {
                Ok(Some(happened)) => told.push((happened, wire.row().to_vec())),
                Ok(None) => break,
                Err(why) => return (told, Some(why.kind)),
            }
        }
        let kept = wire.incoming.len() - wire.at;
        assert!(kept <= LONGEST_ROW_BYTES + HEADER_BYTES, "{kept} bytes are kept");
    }
    (told, None)
}

fn all(wire: &mut Postgres, bytes: &[u8]) -> Result<Vec<Happened>, FailureKind> {
    let (told, end) = tell(wire, [bytes].into_iter());
    end.map_or_else(|| Ok(told.into_iter().map(|(happened, _)| happened).collect()), Err)
}

#[test]
fn a_statement_is_prepared_and_executed_and_its_rows_are_counted() {
    let mut wire = open();
    wire.prepare(7, "SELECT c FROM t WHERE id=$1").unwrap();
    assert_eq!(&wire.outgoing()[..4], b"P\0\0\0");
    assert_eq!(all(&mut wire, &[message(b'1', b""), ready()].concat()), Ok(vec![Happened::Prepared]));
    wire.outgoing().clear();
    wire.execute(7, &[Value::Int(-42), Value::Text("x".into())]).unwrap();
    let sent = b"B\0\0\0\x1a\0s7\0\0\0\0\x02\0\0\0\x03-42\0\0\0\x01x\0\0E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";
    assert_eq!(wire.outgoing().as_slice(), sent);
    let answer = [message(b'2', b""), row(&[Some(b"a")]), row(&[None]), message(b'C', b"SELECT 2\0"), ready()].concat();
    assert_eq!(all(&mut wire, &answer), Ok(vec![Happened::FirstRow, Happened::Done { rows: 2, affected: 0 }]));
    wire.execute(7, &[]).unwrap();
    let answer = [message(b'2', b""), message(b'C', b"INSERT 0 3\0"), ready()].concat();
    assert_eq!(all(&mut wire, &answer), Ok(vec![Happened::Done { rows: 0, affected: 3 }]));
}

#[test]
fn rows_that_are_wanted_come_as_texts_whatever_their_bytes() {
    let mut wire = open();
    wire.want_rows(true);
    wire.query("SELECT 1").unwrap();
    wire.receive(&[row(&[Some(b"a\xff"), None]), message(b'C', b"SELECT 1\0"), ready()].concat()).unwrap();
    assert_eq!(wire.next(), Ok(Some(Happened::FirstRow)));
    assert_eq!(wire.next(), Ok(Some(Happened::Row)));
    assert_eq!(wire.row(), [Some("a\u{fffd}".to_owned()), None]);
    assert_eq!(wire.next(), Ok(Some(Happened::Done { rows: 1, affected: 0 })));
}

#[test]
fn errors_are_told_by_their_class_and_only_fatal_ones_end_the_connection() {
    for (code, kind) in [
        ("40P01", failure::DEADLOCK),
        ("40001", failure::SERIALIZATION),
        ("23505", failure::DUPLICATE),
        ("57014", failure::STATEMENT_TIMEOUT),
        ("25006", failure::READ_ONLY),
        ("42P01", failure::ERROR),
    ] {
        let mut wire = open();
        wire.query("SELECT 1").unwrap();
        let told = all(&mut wire, &[error("ERROR", code, "no\u{1b}[2J"), ready()].concat()).unwrap();
        let [Happened::Refused(why)] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!(why.kind, kind, "{code}");
        assert!(!why.text.contains('\u{1b}'), "{}", why.text);
        wire.query("SELECT 1").unwrap();
        assert!(all(&mut wire, &[message(b'C', b"SELECT 0\0"), ready()].concat()).is_ok());
    }
    let mut wire = open();
    assert_eq!(all(&mut wire, &error("FATAL", "57P01", "terminating connection")), Err(failure::LOST));
    for (code, kind) in [("53300", failure::TOO_MANY), ("28P01", failure::LOGIN), ("3D000", failure::LOGIN)] {
        let mut wire = Postgres::default();
        wire.log_in(&login()).unwrap();
        assert_eq!(all(&mut wire, &error("FATAL", code, "no")), Err(kind));
    }
}

#[test]
fn what_is_not_its_protocol_is_told_in_one_sentence() {
    for (bytes, says) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "HTTP"),
        (b"SSH-2.0-OpenSSH_9.2p1\r\n", "SSH"),
        (b"\x4a\0\0\0\x0a5.5.5-10.11.6-MariaDB\0", "mysql://"),
        (b"\x15\x03\x01\0\x02\x02\x16", "TLS"),
        (b"+OK hello\r\n", "something else"),
    ] {
        for tls in [AskTls::Never, AskTls::IfOffered] {
            let mut wire = Postgres::default();
            wire.log_in(&Login { tls, ..login() }).unwrap();
            wire.receive(bytes).unwrap();
            let why = wire.next().unwrap_err();
            assert_eq!(why.kind, failure::BROKEN);
            assert!(
                why.text.contains("does not speak PostgreSQL's protocol") && why.text.contains(says),
                "{}",
                why.text
            );
        }
    }
}

#[test]
fn nothing_is_let_in_between_the_agreement_on_tls_and_tls() {
    let asked = |tls| {
        let mut wire = Postgres::default();
        wire.log_in(&Login { tls, ..login() }).unwrap();
        wire
    };
    let mut wire = asked(AskTls::Required);
    assert_eq!(all(&mut wire, b"S"), Ok(vec![Happened::WantsTls]));
    wire.receive(b"R").unwrap();
    assert_eq!(wire.tls_established().unwrap_err().kind, failure::TLS);
    assert_eq!(all(&mut asked(AskTls::Required), b"N"), Err(failure::TLS));
    let mut wire = asked(AskTls::IfOffered);
    wire.outgoing().clear();
    assert_eq!(all(&mut wire, b"N"), Ok(Vec::new()));
    assert!(wire.outgoing().windows(4).any(|bytes| bytes == b"user"));
    assert_eq!(all(&mut asked(AskTls::IfOffered), b"SR"), Err(failure::BROKEN));
}

#[test]
fn a_password_in_clear_text_does_not_leave_this_machine_without_tls() {
    let asks = message(b'R', &3_i32.to_be_bytes());
    let mut wire = Postgres::default();
    wire.log_in(&Login { is_local: false, is_socket: false, ..login() }).unwrap();
    wire.outgoing().clear();
    assert_eq!(all(&mut wire, &asks), Err(failure::LOGIN));
    assert!(wire.outgoing().is_empty());
    let mut wire = Postgres::default();
    wire.log_in(&login()).unwrap();
    wire.outgoing().clear();
    assert_eq!(all(&mut wire, &asks), Ok(Vec::new()));
    assert_eq!(wire.outgoing().as_slice(), b"p\0\0\0\x0chunter2\0");
}

#[test]
fn a_server_cannot_skip_its_own_proof_nor_make_us_compute_for_ever() {
    let sasl = [&10_i32.to_be_bytes()[..], b"SCRAM-SHA-256\0\0"].concat();
    let begun = || {
        let mut wire = Postgres::default();
        wire.log_in(&login()).unwrap();
        wire.outgoing().clear();
        assert_eq!(all(&mut wire, &message(b'R', &sasl)), Ok(Vec::new()));
        wire
    };
    assert_eq!(all(&mut begun(), &message(b'R', &0_i32.to_be_bytes())), Err(failure::BROKEN), "no proof was asked for");
    let mut wire = begun();
    let sent = String::from_utf8_lossy(wire.outgoing()).into_owned();
    let nonce = sent.split_once("r=").unwrap().1.to_owned();
    let first = format!("r={nonce}more,s=c2FsdA==,i=4000000000");
    assert_eq!(
        all(&mut wire, &message(b'R', &[&11_i32.to_be_bytes()[..], first.as_bytes()].concat())),
        Err(failure::BROKEN)
    );
    let mut wire = begun();
    let sent = String::from_utf8_lossy(wire.outgoing()).into_owned();
    let nonce = sent.split_once("r=").unwrap().1.to_owned();
    let first = format!("r={nonce}more,s=c2FsdA==,i=4096");
    all(&mut wire, &message(b'R', &[&11_i32.to_be_bytes()[..], first.as_bytes()].concat())).unwrap();
    assert!(!String::from_utf8_lossy(wire.outgoing()).contains("hunter2"));
    let wrong = [&12_i32.to_be_bytes()[..], b"v=AAAA"].concat();
    assert_eq!(all(&mut wire, &message(b'R', &wrong)), Err(failure::LOGIN));
}

#[test]
fn lengths_that_lie_and_endless_rows_cost_no_memory() {
    let mut wire = open();
    wire.query("SELECT 1").unwrap();
    assert_eq!(all(&mut wire, b"T\x7f\xff\xff\xff"), Err(failure::BROKEN));
    let mut wire = open();
    wire.query("SELECT 1").unwrap();
    assert_eq!(all(&mut wire, b"C\xff\xff\xff\xff"), Err(failure::BROKEN));
    // A row of two gigabytes that never ends, of which 64 MB come.
    let mut wire = open();
    wire.query("SELECT 1").unwrap();
    assert_eq!(all(&mut wire, b"D\x7f\xff\xff\xff"), Ok(vec![Happened::FirstRow]));
    for _ in 0..1024 {
        assert_eq!(all(&mut wire, &[0; 64 * 1024]), Ok(Vec::new()));
    }
    assert!(wire.incoming.capacity() < 1 << 20, "{}", wire.incoming.capacity());
    let mut wire = open();
    wire.want_rows(true);
    wire.query("SELECT 1").unwrap();
    assert_eq!(all(&mut wire, b"D\x7f\xff\xff\xff"), Err(failure::BROKEN), "it is wanted, and would have to be kept");
}

/// Bytes that look like answers, so that all of the machine is reached, or that are anything.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(ready()),
        Just(message(b'1', b"")),
        Just(message(b'2', b"")),
        Just(message(b'C', b"UPDATE 5\0")),
        Just(row(&[Some(b"abc"), None])),
        Just(error("ERROR", "40P01", "deadlock")),
        Just(message(b'N', b"SNOTICE\0\0")),
        Just(message(b'R', &[0; 4])),
        Just(message(b'G', &[0; 3])),
        Just(message(b'S', b"a\0b\0")),
        (any::<u8>(), prop::collection::vec(any::<u8>(), 0..40)).prop_map(|(tag, body)| message(tag, &body)),
        prop::collection::vec(any::<u8>(), 0..12),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

#[derive(Debug, Clone, Copy)]
enum State {
    AskedTls,
    Entering,
    Idle,
    Preparing,
    Querying,
}

fn wire_in(state: State, wants_rows: bool) -> Postgres {
    let mut wire = match state {
        State::AskedTls | State::Entering => {
            let tls = if matches!(state, State::Entering) { AskTls::Never } else { AskTls::IfOffered };
            let mut wire = Postgres::default();
            wire.log_in(&Login { tls, ..login() }).unwrap();
            wire
        }
        _ => open(),
    };
    wire.want_rows(wants_rows);
    match state {
        State::Preparing => wire.prepare(1, "SELECT $1").unwrap(),
        State::Querying => wire.query("SELECT 1").unwrap(),
        _ => {}
    }
    wire
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn how_bytes_are_cut_never_changes_what_happens(
        state in prop::sample::select(&[State::AskedTls, State::Entering, State::Idle, State::Preparing, State::Querying][..]),
        wants_rows in any::<bool>(),
        bytes in bytes(),
        size in 1..7_usize,
    ) {
        let whole = tell(&mut wire_in(state, wants_rows), [bytes.as_slice()].into_iter());
        let cut = tell(&mut wire_in(state, wants_rows), bytes.chunks(size));
        // What came before TLS, or with the answer to the question for it, is judged by being there at once.
        if !matches!(state, State::AskedTls) {
            prop_assert_eq!(whole, cut);
        }
    }
}
