//! What the fuzzers call (`fuzz/`): rows of an archive that somebody else wrote.
//!
//! Compiled for fuzzers and for unit tests only. The tests run each of them over the corpus that is kept.

use crate::packing::{pack, unpack};
use duel_model::{HostRecord, Slot};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A kept slot, or what a host did: any bytes of any length give one that can be kept again, or a reason.
pub fn archive_row(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    // The length is another column, and may be anything.
    let (length, data) = match data.split_first_chunk::<4>() {
        Some((length, rest)) if kind & 2 != 0 => (i64::from(i32::from_be_bytes(*length)), rest),
        _ => (data.len() as i64, data),
    };
    if kind & 1 == 0 { row::<Slot>(data, length) } else { row::<HostRecord>(data, length) }
}

fn row<T: DeserializeOwned + Serialize>(data: &[u8], length: i64) {
    let Ok(noun) = unpack::<T>(data, length) else { return };
    let packed = pack(&noun).expect("what was read can be written");
    let again = unpack::<T>(&packed.data, packed.json_bytes).expect("what was written can be read");
    let text = |noun: &T| serde_json::to_string(noun).expect("it was written before");
    assert_eq!(text(&noun), text(&again));
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_kept_corpus_breaks_nothing() {
        duel_corpus::each("archive_row", super::archive_row);
    }
}
