//! The Huffman code of HPACK (RFC 7541, appendix B).
//!
//! The code is canonical: the lengths of the codes give all of them, in the order of length and symbol. What is common in
//! header fields has at most 8 bits and is found by one look into a table.

use super::hpack::HpackError;

/// Bits of the code of each octet, and of the end of string (EOS), which never stands in a string.
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
    28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12,
    10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6,
    5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22,
    22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20,
    22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28,
    27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28,
    27, 27, 27, 27, 27, 26, 30,
];
const EOS: u16 = 256;
const LONGEST: usize = 30;
/// Codes up to this length are found by one look.
const SHORT_BITS: u32 = 8;

/// What decoding looks into.
struct Tables {
    /// By the next 8 bits: the symbol whose code they begin with, and its length; length 0 where it is longer.
    short: [(u8, u8); 1 << SHORT_BITS],
    /// All symbols in the order of their codes.
    symbols: [u16; 257],
    /// For each length: the code behind the last one of this length, left-aligned in 32 bits.
    ends: [u32; LONGEST + 1],
    /// For each length: its first code, left-aligned, and where its symbols begin.
    firsts: [(u32, u16); LONGEST + 1],
}

static TABLES: Tables = Tables::build();

impl Tables {
    const fn build() -> Self {
        let mut tables = Self {
            short: [(0, 0); 1 << SHORT_BITS],
            symbols: [0; 257],
            ends: [0; LONGEST + 1],
            firsts: [(0, 0); LONGEST + 1],
        };
        let (mut code, mut placed, mut bits) = (0u64, 0usize, 1usize);
        while bits <= LONGEST {
            tables.firsts[bits] = (code as u32, placed as u16);
            let mut symbol = 0;
            while symbol < LENGTHS.len() {
                if LENGTHS[symbol] as usize == bits {
                    tables.symbols[placed] = symbol as u16;
                    placed += 1;
                    if bits <= SHORT_BITS as usize {
                        let first = (code >> (32 - SHORT_BITS)) as usize;
                        let mut at = 0;
                        while at < 1 << (SHORT_BITS as usize - bits) {
                            tables.short[first + at] = (symbol as u8, bits as u8);
                            at += 1;
                        }
                    }
                    code += 1 << (32 - bits);
                }
                symbol += 1;
            }
            // The last code ends where 32 bits do.
            tables.ends[bits] = if code > u32::MAX as u64 { u32::MAX } else { code as u32 };
            bits += 1;
        }
        tables
    }
}

/// Appends the text of an encoded string.
pub(super) fn decode(encoded: &[u8], out: &mut Vec<u8>) -> Result<(), HpackError> {
    let mut bytes = encoded.iter();
    // The next bits, left-aligned, and how many of them are there.
    let (mut window, mut held) = (0u64, 0u32);
    loop {
        while held <= 56 {
            let Some(&byte) = bytes.next() else { break };
            window |= u64::from(byte) << (56 - held);
            held += 8;
        }
        let (symbol, bits) = TABLES.short[(window >> (64 - SHORT_BITS)) as usize];
        let (symbol, bits) = if bits > 0 { (u16::from(symbol), u32::from(bits)) } else { long(window) };
        if bits > held {
            // Less than a code is left: padding with the highest bits of EOS, which are ones, of less than an octet.
            let is_padding = held < 8 && window >> (64 - held.max(1)) == (1 << held.max(1)) - 1;
            return if held == 0 || is_padding { Ok(()) } else { Err(HpackError("a string's padding is wrong")) };
        }
        if symbol == EOS {
            return Err(HpackError("a string contains the end-of-string symbol"));
        }
        out.push(symbol as u8);
        window <<= bits;
        held -= bits;
    }
}

/// The symbol of a code of more than 8 bits, and its length.
#[cold]
fn long(window: u64) -> (u16, u32) {
    let code = (window >> 32) as u32;
    let mut bits = SHORT_BITS as usize + 1;
    while bits < LONGEST && code >= TABLES.ends[bits] {
        bits += 1;
    }
    let (first, place) = TABLES.firsts[bits];
    let index = usize::from(place) + (code.saturating_sub(first) >> (32 - bits)) as usize;
    (TABLES.symbols[index.min(LENGTHS.len() - 1)], bits as u32)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Encodes as the standard says, from the lengths alone.
    pub(in super::super) fn encode(text: &[u8]) -> Vec<u8> {
        let code_of = |symbol: usize| {
            let bits = LENGTHS[symbol];
            let (first, place) = TABLES.firsts[usize::from(bits)];
            let at = TABLES.symbols.iter().position(|&s| usize::from(s) == symbol).unwrap() - usize::from(place);
            ((first >> (32 - bits)) + at as u32, bits)
        };
        let mut bits = Vec::new();
        for &byte in text {
            let (code, length) = code_of(usize::from(byte));
            bits.extend((0..length).rev().map(|at| code >> at & 1 == 1));
        }
        while bits.len() % 8 != 0 {
            bits.push(true);
        }
        bits.chunks(8).map(|octet| octet.iter().fold(0, |byte, &bit| byte << 1 | u8::from(bit))).collect()
    }

    fn decoded(encoded: &[u8]) -> Result<Vec<u8>, HpackError> {
        let mut out = Vec::new();
        decode(encoded, &mut out).map(|()| out)
    }

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    #[test]
    fn the_code_is_complete_and_agrees_with_the_standards_table() {
        let sum: u64 = LENGTHS.iter().map(|&bits| 1u64 << (32 - bits)).sum();
        assert_eq!(sum, 1 << 32, "Kraft's sum is 1");
        // RFC 7541, appendix B: some codes of each kind.
        for (symbol, code, bits) in
            [(b'0', 0x0u32, 5), (b'a', 0x3, 5), (b' ', 0x14, 6), (b'X', 0xfc, 8), (b'~', 0x1ffd, 13), (0, 0x1ff8, 13)]
        {
            let mut encoded = encode(&[symbol]);
            encoded.resize(4, 0);
            let read = u32::from_be_bytes(encoded.try_into().unwrap()) >> (32 - bits);
            assert_eq!(read, code, "{symbol}");
        }
        assert_eq!(encode(&[10])[..], hex("fffffff3"), "30 bits, padded");
        assert_eq!(encode(&[255])[..], hex("fffffbbf"), "26 bits, padded");
    }

    #[test]
    fn strings_of_appendix_c() {
        for (encoded, text) in [
            ("f1e3 c2e5 f23a 6ba0 ab90 f4ff", "www.example.com"),
            ("a8eb 1064 9cbf", "no-cache"),
            ("25a8 49e9 5ba9 7d7f", "custom-key"),
            ("25a8 49e9 5bb8 e8b4 bf", "custom-value"),
            ("6402", "302"),
            ("aec3 771a 4b", "private"),
            ("d07a be94 1054 d444 a820 0595 040b 8166 e082 a62d 1bff", "Mon, 21 Oct 2013 20:13:21 GMT"),
            ("9d29 ad17 1863 c78f 0b97 c8e9 ae82 ae43 d3", "https://www.example.com"),
        ] {
            assert_eq!(decoded(&hex(encoded)).unwrap(), text.as_bytes(), "{text}");
            assert_eq!(encode(text.as_bytes()), hex(encoded), "{text}");
        }
    }

    #[test]
    fn padding_is_ones_and_shorter_than_an_octet() {
        assert_eq!(decoded(&hex("1f")).unwrap(), b"a");
        assert!(decoded(&hex("1e")).is_err(), "not ones");
        assert!(decoded(&hex("1fff")).is_err(), "an octet and more");
        assert!(decoded(&hex("ffffffff")).is_err(), "the end of string itself");
        assert_eq!(decoded(&[]).unwrap(), b"");
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(decoded(&encode(&text)).unwrap(), text);
        }

        #[test]
        fn a_string_is_decoded_in_one_way_only(encoded in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(text) = decoded(&encoded) {
                prop_assert_eq!(encode(&text), encoded);
            }
        }
    }
}
