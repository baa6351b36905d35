//! Slots, and what hosts did, as they are kept: JSON, deflated.
//!
//! The form is that of SQLite's `sqlar` archives: a zlib stream beside the length of what is in it; equal lengths
//! mean that it was not compressed. A slot is mostly distributions, long lists of digits, of which zlib leaves about a
//! third. Plain JSON was rejected for its size (a run of 100 slots would be 18 MB), a binary form of our own because
//! no other program could read it.

use crate::numbers::Numbers;
use duel_model::Slot;
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;

/// As measured below: level 4 takes twice as long for 5 % less, level 6 eight times as long for 6 % less.
const LEVEL: u8 = 2;

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
    let deflated = compress_to_vec_zlib(&json, LEVEL);
    Ok(Packed { json_bytes, data: if deflated.len() < json.len() { deflated } else { json } })
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
    let json = if length == data.len() {
        Cow::Borrowed(data)
    } else {
        Cow::Owned(decompress_to_vec_zlib_with_limit(data, length).map_err(|error| error.to_string())?)
    };
    if json.len() != length {
        return Err(format!("it holds {} bytes where {length} were written", json.len()));
    }
    Ok(json)
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
            let size: usize = json.iter().map(|text| compress_to_vec_zlib(text, level).len()).sum();
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
