//! Slots, and what hosts did, as they are kept: JSON, deflated.
//!
//! The form is that of SQLite's `sqlar` archives: a zlib stream beside the length of what is in it; equal lengths
//! mean that it was not compressed. A slot is mostly distributions, long lists of digits, of which zlib leaves about a
//! third. Plain JSON was rejected for its size (a run of 100 slots would be 18 MB), a binary form of our own because
//! no other program could read it.

use flate2::write::ZlibEncoder;
use flate2::{Compression, Decompress, FlushDecompress, Status};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Write};

/// As measured below: level 4 takes half as long again for 1 % less, level 6 seven times as long for 2 % less; level 2 saves a
/// fifth of the time for 8 % more.
const LEVEL: u32 = 3;

/// Nothing that is kept is near this; a forged file shall not make us fill the memory.
const LONGEST_JSON_BYTES: usize = 256 << 20;

/// Something ready to be stored.
pub(crate) struct Packed {
    /// Length of the JSON text.
    pub(crate) json_bytes: i64,
    /// The JSON text as a zlib stream, or as it is where that would be longer.
    pub(crate) data: Vec<u8>,
}

/// Writes something down.
pub(crate) fn pack<T: Serialize>(noun: &T) -> Result<Packed, serde_json::Error> {
    let json = serde_json::to_vec(noun)?;
    let json_bytes = i64::try_from(json.len()).unwrap_or(i64::MAX);
    let deflated = deflated(&json, LEVEL).map_err(serde_json::Error::io)?;
    Ok(Packed { json_bytes, data: if deflated.len() < json.len() { deflated } else { json } })
}

/// Reads it back, or says in words why that is not possible.
pub(crate) fn unpack<T: DeserializeOwned>(data: &[u8], json_bytes: i64) -> Result<T, String> {
    let length = usize::try_from(json_bytes).ok().filter(|&n| n <= LONGEST_JSON_BYTES);
    let length = length.ok_or_else(|| format!("its length of {json_bytes} bytes makes no sense"))?;
    let inflated;
    let json = if length == data.len() {
        data
    } else {
        inflated = inflated_to(data, length)?;
        &inflated
    };
    serde_json::from_slice(json).map_err(|error| error.to_string())
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
    use duel_model::Slot;
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
