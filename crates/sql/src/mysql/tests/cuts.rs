//! How bytes are cut never changes what happens, and no bytes make a panic, a hang or memory that grows.

use super::*;
use crate::wire::{LONGEST_MESSAGE_BYTES, LONGEST_ROW_BYTES, Value};
use duel_model::FailureKind;
use proptest::prelude::*;

/// What a connection is doing when the bytes come.
#[derive(Debug, Clone, Copy)]
enum Doing {
    LoggingIn,
    Answering,
    Idle,
    Preparing,
    Querying,
    Executing,
}

const DOING: [Doing; 6] =
    [Doing::LoggingIn, Doing::Answering, Doing::Idle, Doing::Preparing, Doing::Querying, Doing::Executing];

fn wire(doing: Doing, capabilities: u64, wants_rows: bool) -> MySql {
    let mut wire = match doing {
        Doing::LoggingIn | Doing::Answering => {
            let mut wire = MySql::default();
            wire.log_in(&login()).unwrap();
            wire
        }
        _ => prepared(capabilities, 0xFE),
    };
    wire.want_rows(wants_rows);
    match doing {
        Doing::LoggingIn | Doing::Idle => {}
        Doing::Answering => {
            all(&mut wire, &packet(0, &greeting(capabilities, "caching_sha2_password"))).unwrap();
        }
        Doing::Preparing => wire.prepare(1, "SELECT ?").unwrap(),
        Doing::Querying => wire.query("SELECT 1").unwrap(),
        Doing::Executing => wire.execute(3, &[Value::Int(1)]).unwrap(),
    }
    wire
}

/// What happened, with the rows that were told, what was sent, and the end. Its text may quote what had come until then.
type Told = (Vec<(Happened, Vec<Option<String>>)>, Vec<u8>, Option<FailureKind>);

/// As the caller does it: a piece, all that happens of it, and the next piece. After an answer the next query follows.
fn tell<'a>(wire: &mut MySql, pieces: impl Iterator<Item = &'a [u8]>) -> Told {
    let mut told = Vec::new();
    let mut end = None;
    'pieces: for piece in pieces {
        if let Err(failure) = wire.receive(piece) {
            end = Some(failure.kind);
            break;
        }
        loop {
            match wire.next() {
                Ok(Some(happened)) => told.push((happened, wire.row().to_vec())),
                Ok(None) => break,
                Err(failure) => {
                    end = Some(failure.kind);
                    break 'pieces;
                }
            }
        }
    }
    (told, std::mem::take(wire.outgoing()), end)
}

/// Bytes that look like an answer, so that all of the machine is reached, or that are anything.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let payload = prop_oneof![
        Just(OK.to_vec()),
        Just(END.to_vec()),
        Just(OLD_END.to_vec()),
        Just(column(0xFE)),
        Just(column(0x08)),
        Just(vec![1]),
        Just(vec![1, 0]),
        Just(vec![1, 1]),
        Just(vec![1, 4]),
        Just(vec![0xFB, b'/']),
        Just(vec![0, 7, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0]),
        Just(b"\x01x".to_vec()),
        Just(b"\0\0\x01x".to_vec()),
        Just(b"\xff\xbd\x04#40001Deadlock".to_vec()),
        Just(b"\xff\x1d\x04#08S01Shutdown".to_vec()),
        Just(b"\xfemysql_native_password\x000123456789abcdefghij\0".to_vec()),
        Just(b"\xfeclient_ed25519\x000123456789abcdefghij0123456789ab\0".to_vec()),
        Just(greeting(NEW, "mysql_native_password")),
        prop::collection::vec(any::<u8>(), 0..40),
    ];
    let message = (payload, any::<u8>(), prop::bool::weighted(0.05));
    prop_oneof![
        8 => (0..4_u8, prop::collection::vec(message, 0..12)).prop_map(|(first, messages)| {
            let numbered = (first..).zip(messages);
            numbered.flat_map(|(number, (payload, other, lies))| packet(if lies { other } else { number }, &payload)).collect()
        }),
        2 => prop::collection::vec(any::<u8>(), 0..300),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn how_bytes_are_cut_never_changes_what_happens(
        bytes in bytes(),
        cuts in prop::collection::vec(1_usize..40, 1..20),
        doing in 0..6_usize,
        capabilities in prop::sample::select(vec![OLD, NEW, MARIADB]),
        wants_rows in any::<bool>(),
    ) {
        let doing = DOING[doing];
        let whole = tell(&mut wire(doing, capabilities, wants_rows), std::iter::once(&bytes[..]));
        let single = tell(&mut wire(doing, capabilities, wants_rows), bytes.chunks(1));
        prop_assert_eq!(&whole, &single);
        let mut rest = &bytes[..];
        let pieces = cuts.iter().cycle().map_while(|&length| {
            let (piece, left) = rest.split_at(length.min(rest.len()));
            rest = left;
            (!piece.is_empty()).then_some(piece)
        });
        prop_assert_eq!(&whole, &tell(&mut wire(doing, capabilities, wants_rows), pieces));
    }

    #[test]
    fn what_is_kept_is_bounded(
        bytes in bytes(),
        garbage in prop::collection::vec(any::<u8>(), 1..2000),
        doing in 0..6_usize,
        wants_rows in any::<bool>(),
    ) {
        let mut wire = wire(DOING[doing], NEW, wants_rows);
        let mut happened = all(&mut wire, &bytes);
        for _ in 0..4000 {
            if happened.is_err() {
                break;
            }
            happened = all(&mut wire, &garbage);
            prop_assert!(wire.incoming.unread().len() <= LONGEST_ROW_BYTES.max(LONGEST_MESSAGE_BYTES) + 4);
        }
    }
}
