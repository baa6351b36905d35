//! Which stream a place carries, and which place a stream has.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The identifiers of the streams under way.
#[derive(Debug)]
pub(super) struct Ids {
    of: Vec<Option<u32>>,
    places: HashMap<u32, usize, BuildHasherDefault<Spread>>,
}

impl Ids {
    pub(super) fn new(places: usize) -> Self {
        Self {
            of: vec![None; places],
            places: HashMap::with_capacity_and_hasher(places, BuildHasherDefault::default()),
        }
    }

    /// The stream in a place.
    #[inline]
    pub(super) fn of(&self, place: usize) -> Option<u32> {
        self.of[place]
    }

    /// The place of a stream that is under way.
    #[inline]
    pub(super) fn place(&self, id: u32) -> Option<usize> {
        self.places.get(&id).copied()
    }

    pub(super) fn active(&self) -> usize {
        self.places.len()
    }

    #[inline]
    pub(super) fn set(&mut self, place: usize, id: u32) {
        self.of[place] = Some(id);
        self.places.insert(id, place);
    }

    #[inline]
    pub(super) fn clear(&mut self, place: usize) {
        if let Some(id) = self.of[place].take() {
            self.places.remove(&id);
        }
    }
}

/// Spreads identifiers, which are odd and follow each other, over all bits (Fibonacci hashing). They are ours: no server can
/// choose them so that they collide.
#[derive(Debug, Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, octets: &[u8]) {
        octets.iter().for_each(|&octet| self.write_u32(u32::from(octet)));
    }

    #[inline]
    fn write_u32(&mut self, id: u32) {
        self.0 = (self.0 ^ u64::from(id)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
