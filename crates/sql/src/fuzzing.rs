//! What the fuzzers call (`fuzz/`): each takes any bytes, and panics where a rule is broken that holds for all of them.
//!
//! Compiled for fuzzers and for unit tests only. The tests run each of them over the corpus that is kept, and over changes of it.

use crate::address::System;
use crate::mysql::MySql;
use crate::postgres::Postgres;
use crate::script;
use crate::wire::{AskTls, Happened, Login, Value, Wire};
use duel_model::FailureKind;

/// What a server may make us do in one conversation: a fuzzer's bytes are few, and each thing that happens takes some.
const MOST_HAPPENED: usize = 100_000;

/// A whole conversation with a PostgreSQL server, from its first byte on.
pub fn postgres_server(data: &[u8]) {
    conversation(data, &|| Box::<Postgres>::default());
}

/// A whole conversation with a MySQL server, from its first byte on.
pub fn mysql_server(data: &[u8]) {
    conversation(data, &|| Box::<MySql>::default());
}

/// A file of own SQL is read or refused, with a line of its own.
pub fn sql_script(data: &[u8]) {
    let Some((choice, text)) = data.split_first() else { return };
    let Ok(text) = str::from_utf8(text) else { return };
    let system = [System::Postgres, System::Mysql, System::Sqlite][usize::from(choice % 3)];
    script::fuzzed(text, system);
}

/// The first byte says what is asked for, the second how what follows is cut: what happens is the same.
fn conversation(data: &[u8], new: &dyn Fn() -> Box<dyn Wire>) {
    let [choice, cut, bytes @ ..] = data else { return };
    let tls = if choice & 1 == 0 { AskTls::Never } else { AskTls::IfOffered };
    let wants_rows = choice & 2 != 0;
    let login = Login {
        session: vec![("work_mem".into(), "1MB".into())],
        user: "u".into(),
        password: Some("hunter2".into()),
        database: "db".into(),
        tls,
        is_local: choice & 4 != 0,
        is_socket: choice & 8 != 0,
        loads_tables: choice & 16 != 0,
    };
    let whole = told(&mut *new(), &login, wants_rows, [bytes].into_iter());
    let pieces = told(&mut *new(), &login, wants_rows, bytes.chunks(usize::from(cut % 32) + 1));
    // What comes with the agreement on TLS is an error; how it was cut does matter there.
    if tls == AskTls::Never {
        assert_eq!(whole, pieces);
    }
}

/// What happens when a server sends these pieces, to whoever goes on as load does.
fn told<'a>(
    wire: &mut dyn Wire,
    login: &Login,
    wants_rows: bool,
    pieces: impl Iterator<Item = &'a [u8]>,
) -> (Vec<Happened>, Option<FailureKind>) {
    let mut told = Vec::new();
    let say = || -> Result<(), FailureKind> {
        wire.log_in(login).map_err(|why| why.kind)?;
        for piece in pieces {
            wire.receive(piece).map_err(|why| why.kind)?;
            while let Some(happened) = wire.next().map_err(|why| why.kind)? {
                assert!(told.len() < MOST_HAPPENED, "a server of some bytes has no end");
                told.push(happened.clone());
                go_on(wire, &happened, wants_rows, told.len())?;
                wire.outgoing().clear();
            }
        }
        Ok(())
    };
    let end = say().err();
    (told, end)
}

fn go_on(wire: &mut dyn Wire, happened: &Happened, wants_rows: bool, turn: usize) -> Result<(), FailureKind> {
    let done = match happened {
        Happened::WantsTls => wire.tls_established(),
        Happened::LoggedIn => {
            wire.want_rows(wants_rows);
            wire.prepare(3, "SELECT c FROM t WHERE id=$1 AND c=$2")
        }
        Happened::Prepared => wire.execute(3, &[Value::Int(turn as i64), Value::Text("x".into())]),
        Happened::Done { .. } | Happened::Refused(_) if turn.is_multiple_of(3) => wire.load("LOAD DATA"),
        Happened::Done { .. } | Happened::Refused(_) if turn.is_multiple_of(2) => wire.query("SELECT 1"),
        Happened::Done { .. } | Happened::Refused(_) => wire.prepare(4, "SELECT 1"),
        Happened::WantsData => wire.data(Some(b"1\t2\n")).and_then(|()| wire.data(None)),
        Happened::Row => {
            assert!(wants_rows, "a row that nobody wants is not told");
            std::hint::black_box(wire.row());
            Ok(())
        }
        Happened::FirstRow => Ok(()),
    };
    done.map_err(|why| why.kind)
}

#[cfg(test)]
mod tests {
    use duel_corpus::each;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;
    use std::cell::RefCell;

    type Entry = fn(&[u8]);

    /// The fuzzers of this room.
    const ALL: [(&str, Entry); 3] = [
        ("postgres_server", super::postgres_server),
        ("mysql_server", super::mysql_server),
        ("sql_script", super::sql_script),
    ];

    /// Changes of each kept input that a test run tries: `DUEL_MUTATIONS=100000` tries more.
    const MUTATIONS: usize = 300;

    #[test]
    fn the_kept_corpus_breaks_nothing() {
        ALL.iter().for_each(|(name, entry)| each(name, entry));
    }

    #[test]
    fn conversations_that_were_changed_break_nothing() {
        let mutations = std::env::var("DUEL_MUTATIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(MUTATIONS);
        let rng = RefCell::new(Pcg64Mcg::seed_from_u64(mutations as u64));
        for (name, entry) in ALL {
            each(name, |input| {
                for _ in 0..mutations {
                    entry(&changed(input, &mut rng.borrow_mut()));
                }
            });
        }
    }

    /// Some bytes of it others, left out, put in, or told twice.
    fn changed(input: &[u8], rng: &mut Pcg64Mcg) -> Vec<u8> {
        let mut bytes = input.to_vec();
        for _ in 0..rng.random_range(1..=4) {
            let at = rng.random_range(0..=bytes.len());
            let end = (at + rng.random_range(1..=16)).min(bytes.len());
            match rng.random_range(0..6) {
                0 => bytes[at..end].iter_mut().take(1).for_each(|byte| *byte = rng.random()),
                1 => bytes[at..end].iter_mut().take(1).for_each(|byte| *byte = byte.wrapping_add(1)),
                2 => bytes[at..end].iter_mut().take(1).for_each(|byte| *byte ^= 1 << rng.random_range(0..8)),
                3 => drop(bytes.drain(at..end)),
                4 => bytes.insert(at, rng.random()),
                _ => {
                    let again = bytes[at..end].to_vec();
                    bytes.splice(at..at, again);
                }
            }
        }
        bytes
    }
}
