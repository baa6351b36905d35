//! The memory that decoders hold, of all bodies that are under way in this process.
//!
//! A server that stalls within a body keeps its decoder's window alive, on as many connections as there are. So what counts
//! is the sum, and not what each may have.

use brotli_decompressor::{Allocator, SliceWrapper, SliceWrapperMut};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most that windows and tables of all bodies under way may take together. It is room for 16 of brotli's largest windows,
/// for 32 of zstd's, and for 512 of those that nginx's brotli has by default (512 KiB); and it is an eighth of a small
/// machine of 2 GiB.
pub(super) const LIMIT_BYTES: usize = 256 << 20;
/// Pieces up to this size are not counted: they are what a connection costs, of which the user has asked for so many. A
/// decoder has a few; the window of gzip and deflate (32 KiB) is one.
const SMALL_BYTES: usize = 64 << 10;

static HELD: AtomicUsize = AtomicUsize::new(0);

/// Memory that is held; it is given back when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Held(usize);

impl Held {
    /// So much more or less is held from now on; `None`: it would be too much.
    fn of(bytes: usize) -> Option<Self> {
        if bytes <= SMALL_BYTES {
            return Some(Self(0));
        }
        let held = HELD.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let this = Self(bytes);
        (held <= LIMIT_BYTES).then_some(this)
    }

    /// The same for what was allocated elsewhere, and is known only afterwards.
    #[cfg(feature = "zstd")]
    pub(super) fn becomes(&mut self, bytes: usize) -> io::Result<()> {
        if bytes > self.0.max(SMALL_BYTES) {
            // What it was is a part of what it is.
            *self = Self::default();
            *self = Self::of(bytes).ok_or_else(too_much)?;
        }
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// What the user is told.
pub(super) fn too_much() -> io::Error {
    io::Error::other(format!(
        "the decoders of all bodies under way would need more than {} MiB; use fewer connections, or --encoding gzip, which \
         needs less",
        LIMIT_BYTES >> 20
    ))
}

/// Allocates for brotli, and counts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counting;

/// What it has allocated; nothing, where that would have been too much.
#[derive(Debug)]
pub(super) struct Piece<T> {
    items: Box<[T]>,
    _held: Held,
}

impl<T> Default for Piece<T> {
    fn default() -> Self {
        Self { items: Box::default(), _held: Held::default() }
    }
}

impl<T: Clone + Default> Allocator<T> for Counting {
    type AllocatedMemory = Piece<T>;

    fn alloc_cell(&mut self, length: usize) -> Piece<T> {
        match Held::of(length.saturating_mul(size_of::<T>())) {
            Some(held) => Piece { items: vec![T::default(); length].into(), _held: held },
            None => Piece::default(),
        }
    }

    fn free_cell(&mut self, piece: Piece<T>) {
        drop(piece);
    }
}

impl<T> SliceWrapper<T> for Piece<T> {
    fn slice(&self) -> &[T] {
        &self.items
    }
}

impl<T> SliceWrapperMut<T> for Piece<T> {
    fn slice_mut(&mut self) -> &mut [T] {
        &mut self.items
    }
}
