//! What is written, so that what is read can be told from it.
//!
//! A file is a row of sectors of 512 bytes. Each begins with a stamp: whose it is, where it belongs, and in which round it was
//! written. The rest follows from its place. So data of another place, another file or another run, zeros and flipped bits
//! are seen. A write that never arrived is not: what was there before has a stamp, too.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// What is stamped.
pub(crate) const SECTOR: usize = 512;
/// Bytes of a stamp: owner, place, round.
const STAMP: usize = 24;
/// What follows stamps repeats after so many bytes: more than the 128 KiB that file systems compress together, and little enough
/// for a CPU's cache.
const POOL: usize = 256 << 10;
/// Blocks up to this size are looked at whole. Of larger ones the first sector of each page is, and the last of all: comparing a
/// megabyte takes as long as a fast device needs to read it.
const WHOLE: usize = 64 << 10;
const PAGE: usize = 4096;

/// The content of one file.
#[derive(Debug)]
pub(crate) struct Content {
    owner: u64,
    pool: Vec<u8>,
}

impl Content {
    /// Content that no other file has; a share of it compresses to nothing.
    pub(crate) fn new(owner: u64, compressibility: f64) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(owner);
        let mut pool = vec![0; POOL];
        let zeros = ((SECTOR - STAMP) as f64 * compressibility.clamp(0.0, 1.0)) as usize;
        for sector in pool.chunks_exact_mut(SECTOR) {
            random.fill(&mut sector[STAMP..SECTOR - zeros]);
        }
        Self { owner, pool }
    }

    /// Fills a block that is to be written at this place; both are whole sectors.
    pub(crate) fn fill(&self, block: &mut [u8], offset: u64, round: u64) {
        let (mut done, mut at) = (0, offset as usize % POOL);
        while done < block.len() {
            let bytes = (POOL - at).min(block.len() - done);
            block[done..done + bytes].copy_from_slice(&self.pool[at..at + bytes]);
            (done, at) = (done + bytes, 0);
        }
        for (number, sector) in block.chunks_exact_mut(SECTOR).enumerate() {
            let place = offset + (number * SECTOR) as u64;
            sector[..8].copy_from_slice(&self.owner.to_le_bytes());
            sector[8..16].copy_from_slice(&place.to_le_bytes());
            sector[16..STAMP].copy_from_slice(&round.to_le_bytes());
        }
    }

    /// Whether a block that was read at this place is one that was written there.
    ///
    /// # Errors
    ///
    /// Where it is not, and what is there instead: a sentence for the user.
    pub(crate) fn check(&self, block: &[u8], offset: u64) -> Result<(), String> {
        let is_whole = block.len() <= WHOLE;
        let last = block.len() / SECTOR - 1;
        let step = if is_whole { 1 } else { PAGE / SECTOR };
        for number in (0..last).step_by(step).chain([last]) {
            let at = number * SECTOR;
            self.check_sector(&block[at..at + SECTOR], offset + at as u64, is_whole)?;
        }
        Ok(())
    }

    /// Whether this sector is the first of some file that duel has filled, whoever ran it: the owner alone tells what follows its
    /// stamp, but for how much of it compresses.
    pub(crate) fn is_first_sector(sector: &[u8; SECTOR]) -> bool {
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| sector[at + byte]));
        let known = Self::new(number(0), 0.0);
        let (said, random) = (&sector[STAMP..], &known.pool[STAMP..SECTOR]);
        let same = said.iter().zip(random).take_while(|(said, random)| said == random).count();
        // No owner is 0: a file of zeros is somebody else's.
        number(0) != 0 && number(8) == 0 && said[same..].iter().all(|byte| *byte == 0)
    }

    fn check_sector(&self, sector: &[u8], place: u64, whole: bool) -> Result<(), String> {
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| sector[at + byte]));
        if number(0) != self.owner {
            let what = if sector.iter().all(|byte| *byte == 0) { "zeros" } else { "data of somebody else" };
            return Err(format!("{what} at byte {place}, where our own data had been written"));
        }
        if number(8) != place {
            return Err(format!("at byte {place} is what had been written at byte {}", number(8)));
        }
        let at = place as usize % POOL;
        if whole && sector[STAMP..] != self.pool[at + STAMP..at + SECTOR] {
            return Err(format!("bits are flipped in the sector at byte {place}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_known_and_anything_else_is_not() {
        let content = Content::new(7, 0.25);
        for (bytes, offset) in [(512, 0), (4096, 8192), (65_536, POOL as u64 - 512), (1 << 20, 3 << 20)] {
            let mut block = vec![0; bytes];
            content.fill(&mut block, offset, 3);
            assert_eq!(content.check(&block, offset), Ok(()), "{bytes}");
            assert!(content.check(&block, offset + 512).unwrap_err().contains("had been written at byte"));
            assert!(Content::new(8, 0.25).check(&block, offset).unwrap_err().contains("somebody else"));
            assert!(content.check(&vec![0; bytes], offset).unwrap_err().contains("zeros"));
        }
        let mut block = vec![0; 4096];
        content.fill(&mut block, 0, 0);
        block[700] ^= 1;
        assert!(content.check(&block, 0).unwrap_err().contains("flipped"));
    }

    #[test]
    fn the_share_that_compresses_is_zeros() {
        for (share, least, most) in [(0.0, 0.0, 0.1), (0.5, 0.45, 0.55), (1.0, 0.9, 1.0)] {
            let mut block = vec![1; 65_536];
            Content::new(u64::MAX, share).fill(&mut block, u64::MAX / 2 / 512 * 512, u64::MAX);
            let zeros = block.iter().filter(|byte| **byte == 0).count() as f64 / block.len() as f64;
            assert!((least..=most).contains(&zeros), "{share}: {zeros}");
        }
    }

    #[test]
    fn a_first_sector_is_known_whosever_it_is_and_however_it_compresses() {
        let mut sector = [0; SECTOR];
        for (owner, share) in [(1, 0.0), (u64::MAX, 0.5), (77, 1.0)] {
            Content::new(owner, share).fill(&mut sector, 0, 5);
            assert!(Content::is_first_sector(&sector), "{owner} {share}");
            Content::new(owner, share).fill(&mut sector, 512, 5);
            assert!(!Content::is_first_sector(&sector), "another place");
        }
        assert!(!Content::is_first_sector(&[b'x'; SECTOR]) && !Content::is_first_sector(&[0; SECTOR]));
    }
}
