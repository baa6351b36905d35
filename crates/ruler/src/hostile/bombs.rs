//! Compressed bodies that are small until somebody unpacks them. Made by hand: none needs more than a few bytes that repeat.

use std::sync::OnceLock;

/// A gzip header without a name (RFC 1952, 2.3).
const GZIP_HEADER: &[u8] = &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// A gzip header and the beginning of a DEFLATE block without an end, which goes on with [`gzip_more`].
pub(super) fn gzip_begin() -> Vec<u8> {
    let mut bits = Bits { bytes: GZIP_HEADER.to_vec(), used: 0 };
    // Not the last block; fixed codes (RFC 1951, 3.2.3).
    bits.push(0, 1);
    bits.push(1, 2);
    // The byte 0 is the code 00110000.
    bits.push_code(0b0011_0000, 8);
    // To the next whole byte: the byte 144 is a code of 9 bits, 110010000.
    while bits.used != 0 {
        bits.push_code(0b1_1001_0000, 9);
    }
    bits.bytes
}

/// 8 times 258 bytes more of it: length code 285 (11000101) and distance code 0 (00000), which is 13 bits.
pub(super) fn gzip_more() -> Vec<u8> {
    let mut bits = Bits { bytes: Vec::new(), used: 0 };
    for _ in 0..8 {
        bits.push_code(0b1100_0101, 8);
        bits.push_code(0, 5);
    }
    bits.bytes
}

/// Many of them, so that a flood is one.
pub(super) fn gzip_flood() -> Vec<u8> {
    static FLOOD: OnceLock<Vec<u8>> = OnceLock::new();
    FLOOD.get_or_init(|| gzip_more().repeat(5000)).clone()
}

/// A whole gzip body of five bytes in one stored block, with this check sum.
fn gzip_of_hello(check: u32) -> Vec<u8> {
    let mut bytes = [GZIP_HEADER, &[1, 5, 0, 0xfa, 0xff], b"hello"].concat();
    bytes.extend_from_slice(&check.to_le_bytes());
    bytes.extend_from_slice(&5_u32.to_le_bytes());
    bytes
}

/// CRC-32 of `hello` (RFC 1952, 8).
const CHECK_OF_HELLO: u32 = 0x3610_a686;

/// A response with a body of this coding.
fn response(coding: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

pub(super) fn gzip_right() -> Vec<u8> {
    response("gzip", &gzip_of_hello(CHECK_OF_HELLO))
}

pub(super) fn gzip_wrong_check() -> Vec<u8> {
    response("gzip", &gzip_of_hello(CHECK_OF_HELLO ^ 1))
}

pub(super) fn gzip_without_end() -> Vec<u8> {
    let whole = gzip_of_hello(CHECK_OF_HELLO);
    response("gzip", &whole[..whole.len() - 6])
}

pub(super) fn gzip_with_garbage_behind() -> Vec<u8> {
    response("gzip", &[&gzip_of_hello(CHECK_OF_HELLO)[..], b"and more that is no gzip"].concat())
}

/// A thousand whole bodies one after another, as RFC 1952 allows.
pub(super) fn gzip_of_many_members() -> Vec<u8> {
    response("gzip", &gzip_of_hello(CHECK_OF_HELLO).repeat(10_000))
}

/// A gzip header whose file name never ends.
pub(super) fn gzip_endless_name() -> Vec<u8> {
    vec![0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 255]
}

/// A distance before the first byte.
pub(super) fn gzip_far_back() -> Vec<u8> {
    let mut bits = Bits { bytes: GZIP_HEADER.to_vec(), used: 0 };
    bits.push(1, 1);
    bits.push(1, 2);
    bits.push_code(0b1100_0101, 8);
    bits.push_code(29, 5);
    bits.push(0x1fff, 13);
    bits.push_code(0, 7);
    response("gzip", &[&bits.bytes[..], &[0; 8]].concat())
}

pub(super) fn named_gzip_and_plain() -> Vec<u8> {
    response("gzip", b"not compressed at all")
}

pub(super) fn named_brotli_and_plain() -> Vec<u8> {
    response("br", b"\xff\xff not compressed at all")
}

pub(super) fn named_zstd_and_plain() -> Vec<u8> {
    response("zstd", b"not compressed at all")
}

pub(super) fn named_deflate_and_garbage() -> Vec<u8> {
    response("deflate", b"\x78\x9c\xff\xff\xff\xff\xff")
}

/// A zstd frame that wants a window of 2 TB to be kept (RFC 8878, 3.1.1.1.2).
pub(super) fn zstd_huge_window() -> Vec<u8> {
    response("zstd", &[0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xff, 1, 0, 0])
}

/// A zstd frame with a window of 128 KiB, which goes on with [`zstd_flood`].
pub(super) fn zstd_begin() -> Vec<u8> {
    vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38]
}

/// Blocks of one byte that stands for 128 KiB (RFC 8878, 3.1.1.2.2).
pub(super) fn zstd_flood() -> Vec<u8> {
    [2, 0, 0x10, 0].repeat(16_000)
}

/// The beginning of a brotli stream of zeros, 16 MiB, and behind it 16 MiB for each 26 bytes: what the reference encoder
/// makes of zeros, flushed after each 16 MiB.
pub(super) fn brotli_begin() -> Vec<u8> {
    vec![
        0xcb, 0xff, 0xff, 0x3f, 0xf8, 0x27, 0x00, 0xe2, 0xb1, 0x40, 0x20, 0xf7, 0xfe, 0x8f, 0xff, 0xff, 0x7f, 0xf0,
        0x4f, 0x00, 0xc4, 0x61, 0x11, 0x80, 0xee, 0xfd, 0x9f, 0x01,
    ]
}

/// See [`brotli_begin`].
pub(super) fn brotli_flood() -> Vec<u8> {
    [
        0xfc, 0xff, 0xff, 0x83, 0x7f, 0x02, 0x20, 0x0e, 0x0b, 0x00, 0x74, 0xef, 0xff, 0xf8, 0xff, 0xff, 0x07, 0xff,
        0x04, 0x40, 0x1c, 0x16, 0x00, 0xe8, 0xde, 0xff, 0x19,
    ]
    .repeat(1000)
}

/// The name of a coding, a thousand times.
pub(super) fn thousand_codings() -> Vec<u8> {
    response(&["gzip"; 1000].join(", "), &gzip_of_hello(CHECK_OF_HELLO))
}

/// What is sent from the least significant bit on (RFC 1951, 3.1.1).
struct Bits {
    bytes: Vec<u8>,
    /// Bits of the last byte that are in use; 0: all.
    used: u32,
}

impl Bits {
    fn push(&mut self, value: u32, count: u32) {
        for at in 0..count {
            if self.used == 0 {
                self.bytes.push(0);
            }
            if let Some(last) = self.bytes.last_mut() {
                *last |= (((value >> at) & 1) as u8) << self.used;
            }
            self.used = (self.used + 1) % 8;
        }
    }

    /// Codes of Huffman stand the other way round.
    fn push_code(&mut self, code: u32, count: u32) {
        self.push(code.reverse_bits() >> (32 - count), count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_units_are_whole_bytes() {
        assert_eq!(gzip_more().len(), 13);
        // 3 bits, 8 bits, and five times 9 are 56.
        assert_eq!(gzip_begin().len(), GZIP_HEADER.len() + 7);
    }
}
