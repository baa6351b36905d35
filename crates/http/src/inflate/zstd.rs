//! Zstandard (RFC 8878) piece by piece, with windows as large as HTTP allows.

use super::windows::Held;
use super::{Count, PIECE_BYTES};
use std::fmt;
use std::io;
use zstd_safe::{DCtx, DParameter, ErrorCode, InBuffer, OutBuffer, get_error_name};

/// Largest window, as a power of two: what RFC 9659 allows for `Content-Encoding: zstd`, and what clients have.
const WINDOW_LOG: u32 = 23;

/// A body under way: frames, one after the other.
pub(super) struct Zstd {
    context: DCtx<'static>,
    /// What it holds beside what every decoder has at first (95 KiB).
    held: Held,
    first_bytes: usize,
    count: Count,
    /// Between frames.
    is_over: bool,
}

impl Zstd {
    pub(super) fn new() -> io::Result<Self> {
        let mut context = DCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
        context.set_parameter(DParameter::WindowLogMax(WINDOW_LOG)).map_err(refused)?;
        let first_bytes = context.sizeof();
        Ok(Self { context, first_bytes, held: Held::default(), count: Count::default(), is_over: false })
    }

    pub(super) fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut piece = [0; PIECE_BYTES];
        let mut from = InBuffer::around(bytes);
        loop {
            let mut to = OutBuffer::around(&mut piece[..]);
            let wanted = self.context.decompress_stream(&mut to, &mut from).map_err(refused)?;
            self.held.becomes(self.context.sizeof().saturating_sub(self.first_bytes))?;
            let written = to.pos();
            self.count.add(written)?;
            self.is_over = wanted == 0;
            // With a full piece there may be more of the same frame to come. After its end there is not, and asking would
            // begin the next one.
            if from.pos() == bytes.len() && (self.is_over || written < PIECE_BYTES) {
                return Ok(());
            }
        }
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.context.sizeof()
    }

    /// The size after decompression, if the end of a frame was there.
    pub(super) fn finish(self) -> io::Result<u64> {
        if self.is_over { Ok(self.count.0) } else { Err(io::Error::other("its zstd frame ends early")) }
    }
}

fn refused(code: ErrorCode) -> io::Error {
    // The only cause that has a remedy; the library says "Frame requires too much memory for decoding".
    const WINDOW_TOO_LARGE: ErrorCode = 16_usize.wrapping_neg();
    match code {
        WINDOW_TOO_LARGE => io::Error::other(
            "its zstd frame needs a window of more than 8 MiB, which RFC 9659 forbids (zstd --ultra and --long make such)",
        ),
        code => io::Error::other(format!("zstd says: {}", get_error_name(code))),
    }
}

impl fmt::Debug for Zstd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zstd").field("count", &self.count).field("is_over", &self.is_over).finish_non_exhaustive()
    }
}
