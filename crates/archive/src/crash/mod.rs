//! Crashes: writers that are killed, disks that are full, power that fails. Whatever happens, the archive opens, and every
//! run that was reported as finished is whole.
//!
//! `./test` makes a few of each. The full numbers:
//!
//! ```sh
//! DUEL_CRASHES=full cargo test -p duel-archive --lib crash -- --nocapture
//! ```

mod disk;
mod full;
mod kills;
mod power;
mod trace;
mod writer;

/// So many as `./test` has time for, or all where that was asked for.
fn number(few: usize, full: usize) -> usize {
    match std::env::var("DUEL_CRASHES").as_deref() {
        Ok("full") => full,
        _ => few,
    }
}

/// Marsaglia's xorshift: the seed tells all that follows.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// From 0 to below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}
