//! The bytes that bodies are made of: a fixed pattern, so that a client can check every one of them.

use std::sync::LazyLock;

/// The pattern repeats after this many bytes: small enough to stay in the second-level cache, so that a bulk body
/// costs the copy into the kernel and not a walk through memory.
pub(crate) const PERIOD: usize = 64 * 1024;

/// Two periods, so that a whole period is contiguous from any offset.
static PATTERN: LazyLock<Vec<u8>> = LazyLock::new(|| (0..2 * PERIOD).map(|at| byte(at as u64)).collect());

/// The first `len` bytes of the body of `/size/...`, from byte `offset` on: what a client must have received.
pub fn payload(offset: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| byte(offset + at)).collect()
}

/// At most one period of the pattern, from body offset `offset` on, without a copy.
pub(crate) fn slice(offset: u64, len: u64) -> &'static [u8] {
    let from = (offset % PERIOD as u64) as usize;
    let len = len.min(PERIOD as u64) as usize;
    &PATTERN[from..from + len]
}

/// A mix of the offset (the finaliser of splitmix64), as a printable character: readable in a terminal, yet without
/// runs that a compressing proxy could profit from.
fn byte(offset: u64) -> u8 {
    let mut mixed = (offset % PERIOD as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[((mixed ^ (mixed >> 31)) % 64) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_agree_with_the_definition() {
        for offset in [0, 1, 65_535, 65_536, 2_860_006] {
            assert_eq!(slice(offset, 1000), payload(offset, 1000));
        }
        assert_eq!(slice(7, u64::MAX).len(), PERIOD);
    }
}
