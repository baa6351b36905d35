//! A kernel that is played by AWS-LC: it takes data and gives results as `AF_ALG` sockets do.

use super::*;
use crate::engine::{Engine as OfLibrary, Renews, Task};
use crate::kernel::engine::Engine;
use crate::known;
use crate::library::Library;
use crate::ops::{self, Class};
use std::cell::Cell;

thread_local! {
    /// What is refused, and the bytes that a socket takes until it is read.
    static REFUSED: Cell<Option<Refused>> = const { Cell::new(None) };
    static ROOM: Cell<usize> = const { Cell::new(200 << 10) };
    static ACCEPTED: Cell<u32> = const { Cell::new(0) };
    static SENT: Cell<u32> = const { Cell::new(0) };
}

struct Fake {
    name: String,
    key: Vec<u8>,
    tag_bytes: usize,
    is_accepted: bool,
    iv: Vec<u8>,
    decrypt: bool,
    aad: usize,
    data: Vec<u8>,
    more: bool,
}

impl Fake {
    /// The op that this algorithm and key are.
    fn op(&self) -> &'static ops::Op {
        let of_key = |op: &&&str| {
            let op = ops::of_name(op).unwrap();
            let algorithm = Algorithm::of(op);
            algorithm.is_some_and(|algorithm| algorithm.name == self.name && algorithm.key_bytes == self.key.len())
        };
        ops::of_name(ops::NAMES.iter().find(of_key).unwrap()).unwrap()
    }
}

impl Calls for Fake {
    fn bound(_kind: &str, name: &str) -> Result<Self, Refused> {
        match REFUSED.get() {
            Some(refused) => Err(refused),
            None => Ok(Self {
                name: name.to_owned(),
                key: Vec::new(),
                tag_bytes: 0,
                is_accepted: false,
                iv: Vec::new(),
                decrypt: false,
                aad: 0,
                data: Vec::new(),
                more: false,
            }),
        }
    }

    fn set_key(&mut self, key: &[u8]) -> Result<(), Errno> {
        if self.is_accepted {
            return Err(Errno::EBUSY);
        }
        self.key = key.to_vec();
        Ok(())
    }

    fn set_tag(&mut self, bytes: usize) -> Result<(), Errno> {
        self.tag_bytes = bytes;
        Ok(())
    }

    fn accept(&mut self, _message_bytes: usize) -> Result<(), Errno> {
        self.is_accepted = true;
        self.data.clear();
        ACCEPTED.set(ACCEPTED.get() + 1);
        Ok(())
    }

    fn close(&mut self) {
        self.is_accepted = false;
    }

    fn send(&mut self, begin: Option<Begin<'_>>, data: &[u8], more: bool) -> Result<usize, Errno> {
        assert!(self.is_accepted);
        SENT.set(SENT.get() + 1);
        if let Some(begin) = begin {
            self.iv = begin.iv.to_vec();
            (self.decrypt, self.aad) = (begin.decrypt, begin.aad.unwrap_or(0) as usize);
        }
        // What hashes takes all that comes.
        let is_hash = self.key.is_empty();
        let taken = if is_hash { data.len() } else { data.len().min(ROOM.get().saturating_sub(self.data.len())) };
        if taken == 0 {
            return Err(Errno::EAGAIN);
        }
        self.data.extend_from_slice(&data[..taken]);
        self.more = more;
        Ok(taken)
    }

    fn receive(&mut self, to: &mut [u8]) -> Result<usize, Errno> {
        assert!(!self.more, "a kernel would wait for more");
        let op = self.op();
        let data = std::mem::take(&mut self.data);
        let task = Task { op, block: data.len(), chunk: usize::MAX, decrypt: self.decrypt, renews: Renews::Nothing };
        let (aad, text) = data.split_at(self.aad);
        let made = OfLibrary::answer(&Library::BuiltIn, task, &self.key, &self.iv, aad, text);
        let made = made.map_err(|_| Errno::EBADMSG)?;
        if self.name == "cbc(aes)" {
            let encrypted = if self.decrypt { &data } else { &made };
            self.iv = encrypted[encrypted.len() - 16..].to_vec();
        } else if self.name == "ctr(aes)" {
            let counter = u128::from_be_bytes(self.iv[..].try_into().unwrap());
            self.iv = (counter + (data.len() as u128).div_ceil(16)).to_be_bytes().to_vec();
        }
        let made = [aad, &made].concat();
        if op.class == Class::Aead {
            assert_eq!(self.tag_bytes, 16);
            if to.len() < made.len() {
                return Err(Errno::EINVAL);
            }
        }
        to[..made.len()].copy_from_slice(&made);
        Ok(made.len())
    }
}

fn task(name: &str, block: usize, chunk: usize, decrypt: bool, renews: Renews) -> Task {
    Task { op: ops::of_name(name).unwrap(), block, chunk, decrypt, renews }
}

fn engine(task: Task) -> Result<Engine, String> {
    let algorithm = Algorithm::of(task.op).unwrap();
    Engine::new(Box::new(AfAlg::<Fake>::open(algorithm, None, task.block)?), algorithm, task)
}

/// What AWS-LC does, for a kernel to be played by.
fn played() -> impl Iterator<Item = &'static str> {
    let has = |name: &&&str| {
        let op = ops::of_name(name).unwrap();
        // It has no AES-128-XTS and no BLAKE2.
        Algorithm::of(op).is_some() && !matches!(**name, "aes-128-xts" | "blake2b512" | "blake2s256")
    };
    ops::NAMES.iter().filter(has).copied()
}

#[test]
fn all_known_answers_come_out_in_both_directions_and_in_parts() {
    for name in played() {
        for decrypt in [false, true] {
            for chunk in [16, usize::MAX] {
                let work = task(name, 64, chunk, decrypt && ops::of_name(name).unwrap().is_cipher(), Renews::Nonce);
                let mut engine = engine(work).unwrap_or_else(|why| panic!("{name}: {why}"));
                for known in known::answers(name) {
                    let order = known.order(work.decrypt);
                    let parts: Vec<Vec<u8>> =
                        order.split(' ').skip(1).map(|part| crate::child_process::unhex(part).unwrap()).collect();
                    let answer = engine.answer(&parts[0], &parts[1], &parts[2], &parts[3]);
                    known.check(work.decrypt, &answer.unwrap()).unwrap();
                    engine.op().unwrap();
                }
            }
        }
    }
}

#[test]
fn a_stream_goes_on_and_a_new_key_opens_anew() {
    let counted = |work: Task, ops: u32| {
        let mut engine = engine(work).unwrap();
        let before = (ACCEPTED.get(), SENT.get());
        for _ in 0..ops {
            engine.op().unwrap();
        }
        (ACCEPTED.get() - before.0, SENT.get() - before.1)
    };
    assert_eq!(counted(task("aes-256-ctr", 64, usize::MAX, false, Renews::Nothing), 5), (0, 5));
    assert_eq!(counted(task("aes-256-gcm", 64, usize::MAX, false, Renews::Key), 5), (5, 5));
    assert_eq!(counted(task("aes-256-gcm", 64, usize::MAX, true, Renews::Nonce), 5), (0, 5));
    // Calls of 16 bytes each; a digest and an AEAD are told that more follows.
    assert_eq!(counted(task("aes-256-cbc", 64, 16, false, Renews::Nothing), 5), (0, 20));
    assert_eq!(counted(task("sha256", 64, 16, false, Renews::Nothing), 5), (0, 20));
    assert_eq!(counted(task("aes-256-gcm", 64, 16, false, Renews::Nonce), 5), (0, 20));
    // More than a socket holds is handed over in parts, where that is possible.
    assert_eq!(counted(task("aes-256-cbc", 1 << 20, usize::MAX, false, Renews::Nothing), 1), (0, 16));
}

#[test]
fn a_message_that_is_too_large_is_refused_in_words() {
    ROOM.set(1000);
    for name in ["aes-256-gcm", "aes-256-xts"] {
        let said = engine(task(name, 2000, usize::MAX, false, Renews::Nonce)).err().unwrap();
        assert!(said.contains("no message of 2000 bytes") && said.contains("wmem_max"), "{said}");
    }
}

#[test]
fn why_there_is_none_is_told() {
    for (refusal, says) in [
        (Refused::Socket(Errno::EAFNOSUPPORT), "not available here: this kernel has no AF_ALG"),
        (Refused::Socket(Errno::EPERM), "not permitted here"),
        (Refused::Socket(Errno::EMFILE), "not available here: an AF_ALG socket"),
        (Refused::Bind(Errno::ENOENT), "no cbc(aes)"),
        (Refused::Bind(Errno::ELIBBAD), "failed its own test"),
        (Refused::Bind(Errno::EINVAL), "refuses cbc(aes)"),
    ] {
        REFUSED.set(Some(refusal));
        let said = engine(task("aes-128-cbc", 64, 16, false, Renews::Nothing)).err().unwrap();
        assert!(said.contains(says) && !said.contains('\n'), "{said}");
    }
    REFUSED.set(Some(Refused::Bind(Errno::ENOENT)));
    let algorithm = Algorithm::of(ops::of_name("aes-128-cbc").unwrap()).unwrap();
    let said = AfAlg::<Fake>::open(algorithm, Some("cbc-aes-ccp"), 64).err().unwrap();
    assert!(said.contains("no cbc-aes-ccp that does cbc(aes)"), "{said}");
}
