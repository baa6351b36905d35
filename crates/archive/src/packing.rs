//! Slots, and what hosts did, as they are kept: JSON, deflated.
//!
//! The form is that of SQLite's `sqlar` archives: a zlib stream beside the length of what is in it; equal lengths
//! mean that it was not compressed. A slot is mostly distributions, long lists of digits, of which zlib leaves about a
//! third. Plain JSON was rejected for its size (a run of 100 slots would be 18 MB), a binary form of our own because
//! no other program could read it.

use crate::numbers::Numbers;
use duel_model::{HostRecord, Slot};
use flate2::write::ZlibEncoder;
use flate2::{Compression, Decompress, FlushDecompress, Status};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::io::{self, Write};

/// As measured below: level 4 takes half as long again for 1 % less, level 6 seven times as long for 2 % less; level 2 saves a
/// fifth of the time for 8 % more.
const LEVEL: u32 = 3;

/// The longest text that is written, and that is read: a run that is kept can be opened. Honest slots have a thousandth of it,
/// and of a host no more than three quarters are sampled (`duel-host`); a forged file shall not make us fill the memory.
pub(crate) const LONGEST_JSON_BYTES: usize = 256 << 20;

/// Why something cannot be packed.
#[derive(Debug)]
pub(crate) enum PackError {
    /// Its text would be longer than is read.
    TooLong,
    /// It has no written form.
    Json(serde_json::Error),
}

impl PackError {
    /// As an error of serde_json, to be shown.
    pub(crate) fn into_json(self) -> serde_json::Error {
        match self {
            Self::TooLong => serde::ser::Error::custom(format!("it takes more than {LONGEST_JSON_BYTES} bytes")),
            Self::Json(error) => error,
        }
    }
}

/// Something ready to be stored.
pub(crate) struct Packed {
    /// Length of the JSON text.
    pub(crate) json_bytes: i64,
    /// The JSON text as a zlib stream, or as it is where that would be longer.
    pub(crate) data: Vec<u8>,
}

/// Writes something down.
pub(crate) fn pack<T: Serialize>(noun: &T) -> Result<Packed, PackError> {
    pack_within(noun, LONGEST_JSON_BYTES)
}

fn pack_within<T: Serialize>(noun: &T, most_bytes: usize) -> Result<Packed, PackError> {
    let json = json_within(noun, most_bytes)?;
    let json_bytes = i64::try_from(json.len()).unwrap_or(i64::MAX);
    let deflated = deflated(&json, LEVEL).map_err(|error| PackError::Json(serde_json::Error::io(error)))?;
    Ok(Packed { json_bytes, data: if deflated.len() < json.len() { deflated } else { json } })
}

/// What a host was and did, and in words what of it had to be left out because it is longer than is read: samples, every
/// second one as often as it takes, and where that is not enough all that it says.
pub(crate) fn pack_host(host: &HostRecord) -> Result<(Packed, Option<String>), PackError> {
    pack_host_within(host, LONGEST_JSON_BYTES)
}

fn pack_host_within(host: &HostRecord, most_bytes: usize) -> Result<(Packed, Option<String>), PackError> {
    match pack_within(host, most_bytes) {
        Err(PackError::TooLong) => {}
        packed => return packed.map(|packed| (packed, None)),
    }
    let head = HostRecord { samples: Vec::new(), ..host.clone() };
    let mut every = 2;
    while every < host.samples.len() {
        let thinned = HostRecord { samples: host.samples.iter().step_by(every).cloned().collect(), ..head.clone() };
        match pack_within(&thinned, most_bytes) {
            Err(PackError::TooLong) => every *= 2,
            packed => {
                let told = format!("its samples are too large to be kept: only one in {every} of them was");
                return packed.map(|packed| (packed, Some(told)));
            }
        }
    }
    match pack_within(&head, most_bytes) {
        Err(PackError::TooLong) => {}
        packed => {
            return packed
                .map(|packed| (packed, Some("its samples are too large to be kept: none of them was".into())));
        }
    }
    let packed = pack_within(&HostRecord { how: host.how.clone(), ..HostRecord::default() }, most_bytes)?;
    Ok((packed, Some("what it said of itself is too large to be kept: nothing of it was".into())))
}

/// The JSON text, or that it would be longer: what is too long is given up where it is, and not made first.
pub(crate) fn json_within<T: Serialize>(noun: &T, most_bytes: usize) -> Result<Vec<u8>, PackError> {
    /// Takes so many bytes and no more.
    struct Bounded {
        text: Vec<u8>,
        most_bytes: usize,
    }
    impl io::Write for Bounded {
        fn write(&mut self, more: &[u8]) -> io::Result<usize> {
            if self.text.len() + more.len() > self.most_bytes {
                return Err(io::Error::other("too long"));
            }
            self.text.extend_from_slice(more);
            Ok(more.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut bounded = Bounded { text: Vec::new(), most_bytes };
    match serde_json::to_writer(&mut bounded, noun) {
        Ok(()) => Ok(bounded.text),
        // Nothing else makes a vector fail.
        Err(error) if error.is_io() => Err(PackError::TooLong),
        Err(error) => Err(PackError::Json(error)),
    }
}

/// Reads it back, or says in words why that is not possible.
pub(crate) fn unpack<T: DeserializeOwned>(data: &[u8], json_bytes: i64) -> Result<T, String> {
    serde_json::from_slice(&text(data, json_bytes)?).map_err(|error| error.to_string())
}

/// A slot, if its numbers are such as runs have.
pub(crate) fn unpack_slot(data: &[u8], json_bytes: i64, numbers: &mut Numbers) -> Result<Slot, String> {
    let json = text(data, json_bytes)?;
    numbers.add(&json)?;
    serde_json::from_slice(&json).map_err(|error| error.to_string())
}

/// The JSON text.
fn text(data: &[u8], json_bytes: i64) -> Result<Cow<'_, [u8]>, String> {
    let length = usize::try_from(json_bytes).ok().filter(|&n| n <= LONGEST_JSON_BYTES);
    let length = length.ok_or_else(|| format!("its length of {json_bytes} bytes makes no sense"))?;
    let json = if length == data.len() { Cow::Borrowed(data) } else { Cow::Owned(inflated_to(data, length)?) };
    Ok(json)
}

fn deflated(json: &[u8], level: u32) -> io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(level));
    encoder.write_all(json)?;
    encoder.finish()
}

/// What a zlib stream holds, of which the length is known; no more room than that is made.
fn inflated_to(data: &[u8], length: usize) -> Result<Vec<u8>, String> {
    let mut json = Vec::with_capacity(length);
    // In one call, since all the room that it takes is there: its end is only said after its checksum was looked at.
    let status = Decompress::new(true).decompress_vec(data, &mut json, FlushDecompress::Finish);
    match status {
        Ok(Status::StreamEnd) if json.len() == length => Ok(json),
        Ok(Status::StreamEnd) => Err(format!("it holds {} bytes where {length} were written", json.len())),
        Ok(Status::Ok | Status::BufError) => Err(format!("it is cut off, or holds more than {length} bytes")),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use std::time::Instant;

    #[test]
    fn what_is_unpacked_is_what_was_packed() {
        let slot = sample::slot(3);
        let packed = pack(&slot).unwrap();
        assert_eq!(unpack::<Slot>(&packed.data, packed.json_bytes).unwrap(), slot);
        let json = serde_json::to_vec(&slot).unwrap();
        assert_eq!(
            unpack::<Slot>(&json, json.len() as i64).unwrap(),
            slot,
            "text that was not compressed is read as well"
        );
    }

    /// The byte format is zlib's, whoever writes it: this was packed by miniz_oxide 0.8, at level 2.
    #[test]
    fn what_another_library_packed_is_read() {
        let packed =
            [0x78, 0x5e, 0x8b, 0x36, 0xd4, 0x31, 0xd2, 0x31, 0xd6, 0xc1, 0x20, 0x63, 0x01, 0x40, 0x55, 0x04, 0xf5];
        assert_eq!(unpack::<Vec<u8>>(&packed, 25).unwrap(), [1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3]);
    }

    #[test]
    fn damage_is_noticed() {
        let packed = pack(&sample::slot(0)).unwrap();
        for (data, length) in [
            (&packed.data[..packed.data.len() / 2], packed.json_bytes),
            (&packed.data[..], packed.json_bytes - 1),
            (&packed.data[..], packed.json_bytes + 1),
            (&packed.data[..], -1),
            (&packed.data[..], i64::MAX),
            (&[][..], 0),
            (b"{}", 2),
        ] {
            assert!(unpack::<Slot>(data, length).is_err());
        }
        let mut flipped = packed.data.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 0x10;
        assert!(unpack::<Slot>(&flipped, packed.json_bytes).is_err(), "zlib carries a checksum");
    }

    #[test]
    fn what_is_too_long_to_be_read_is_not_written() {
        let packed = pack(&sample::slot(0)).unwrap();
        let length = usize::try_from(packed.json_bytes).unwrap();
        assert!(pack_within(&sample::slot(0), length).is_ok());
        assert!(matches!(pack_within(&sample::slot(0), length - 1), Err(PackError::TooLong)));
        // The longest text that is written is not refused for its length.
        let refusal = |json_bytes: usize| unpack::<String>(b"no zlib", json_bytes as i64).unwrap_err();
        assert!(!refusal(LONGEST_JSON_BYTES).contains("makes no sense"));
        assert!(refusal(LONGEST_JSON_BYTES + 1).contains("makes no sense"));
    }

    #[test]
    fn of_a_host_that_says_too_much_samples_are_left_out_and_told() {
        let host = HostRecord {
            how: "over ssh to b".into(),
            samples: (0..100).map(|n| duel_model::HostSample { unix_ms: n, ..Default::default() }).collect(),
            last_words: vec![duel_model::KernelLine { uptime_ns: None, level: None, text: "x".repeat(2000) }],
            ..HostRecord::default()
        };
        let fitted = |most_bytes| {
            let (packed, told) = pack_host_within(&host, most_bytes).unwrap();
            assert!(packed.json_bytes <= most_bytes as i64);
            (unpack::<HostRecord>(&packed.data, packed.json_bytes).unwrap(), told.unwrap_or_default())
        };
        assert_eq!(fitted(1 << 20), (host.clone(), String::new()));
        let (thinned, told) = fitted(6000);
        assert!(told.contains("only one in 4 of them was"), "{told}");
        assert_eq!(thinned.samples.iter().map(|sample| sample.unix_ms).take(3).collect::<Vec<_>>(), [0, 4, 8]);
        let (none, told) = fitted(2200);
        assert!(told.contains("none of them was") && none.samples.is_empty() && none.last_words == host.last_words);
        let (nothing, told) = fitted(300);
        assert!(told.contains("nothing of it was") && nothing.how == host.how && nothing.last_words.is_empty());
        assert!(pack_host_within(&host, 10).is_err());
    }

    /// `cargo test -p duel-archive --release -- --ignored --nocapture packing` prints the figures behind [`LEVEL`].
    #[test]
    #[ignore = "prints measurements"]
    fn measure() {
        let slots: Vec<Slot> = (0..100).map(sample::slot).collect();
        let json: Vec<Vec<u8>> = slots.iter().map(|slot| serde_json::to_vec(slot).unwrap()).collect();
        let total: usize = json.iter().map(Vec::len).sum();
        let start = Instant::now();
        for slot in &slots {
            serde_json::to_vec(slot).unwrap();
        }
        println!("JSON: {} bytes per slot, {} µs", total / 100, start.elapsed().as_micros() / 100);
        for level in 1..=9 {
            let start = Instant::now();
            let size: usize = json.iter().map(|text| deflated(text, level).unwrap().len()).sum();
            println!("level {level}: {} bytes per slot, {} µs", size / 100, start.elapsed().as_micros() / 100);
        }
        let packed: Vec<Packed> = slots.iter().map(|slot| pack(slot).unwrap()).collect();
        let start = Instant::now();
        for packed in &packed {
            unpack::<Slot>(&packed.data, packed.json_bytes).unwrap();
        }
        println!("unpack: {} µs", start.elapsed().as_micros() / 100);
    }
}
