//! Brotli (RFC 7932) piece by piece, without the large windows that HTTP does not know.

use super::windows::{Counting, too_much};
use super::{Count, PIECE_BYTES};
use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState};
use std::fmt;
use std::io;

type State = BrotliState<Counting, Counting, Counting>;

/// The codes of the library that say that it was not given memory (`BROTLI_DECODER_ERROR_ALLOC_...`).
const NO_MEMORY: std::ops::RangeInclusive<i32> = -30..=-21;

/// A body under way.
pub(super) struct Brotli {
    /// Some KiB, so not beside the other codings. Its window grows with what comes, up to 16 MiB.
    state: Box<State>,
    count: Count,
    is_over: bool,
}

impl Brotli {
    pub(super) fn new() -> Self {
        let state = State::new_strict(Counting, Counting, Counting);
        Self { state: Box::new(state), count: Count::default(), is_over: false }
    }

    pub(super) fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut piece = [0; PIECE_BYTES];
        let (mut left, mut at) = (bytes.len(), 0);
        loop {
            let (mut room, mut written, mut total) = (piece.len(), 0, 0);
            let result = BrotliDecompressStream(
                &mut left,
                &mut at,
                bytes,
                &mut room,
                &mut written,
                &mut piece,
                &mut total,
                &mut self.state,
            );
            self.count.add(written)?;
            match result {
                BrotliResult::NeedsMoreOutput => {}
                BrotliResult::NeedsMoreInput => return Ok(()),
                BrotliResult::ResultSuccess if left == 0 => {
                    self.is_over = true;
                    return Ok(());
                }
                BrotliResult::ResultSuccess => {
                    return Err(io::Error::other("bytes follow the end of its brotli stream"));
                }
                BrotliResult::ResultFailure if NO_MEMORY.contains(&(self.state.error_code as i32)) => {
                    return Err(too_much());
                }
                BrotliResult::ResultFailure => return Err(io::Error::other("it is not brotli, or damaged")),
            }
        }
    }

    #[cfg(test)]
    pub(super) fn window_bytes(&self) -> usize {
        usize::try_from(self.state.ringbuffer_size).unwrap()
    }

    /// The size after decompression, if the end was there.
    pub(super) fn finish(self) -> io::Result<u64> {
        if self.is_over { Ok(self.count.0) } else { Err(io::Error::other("its brotli stream ends early")) }
    }
}

impl fmt::Debug for Brotli {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Brotli").field("count", &self.count).field("is_over", &self.is_over).finish_non_exhaustive()
    }
}
