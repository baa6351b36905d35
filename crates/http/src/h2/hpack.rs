//! Header compression (RFC 7541): all that a server may send is decoded; what we send has no state.

use super::huffman;
use std::collections::VecDeque;

/// Octets of the dynamic table that a server may use: the default, which nobody has to be told.
const TABLE_LIMIT: usize = 4096;
/// What an entry counts beside its text (RFC 7541, 4.1).
const ENTRY_OVERHEAD: usize = 32;
/// Longest string: no header list that we take holds a longer one.
const STRING_LIMIT: usize = super::HEADER_LIST_LIMIT;

/// A header block cannot be decoded, which ends its connection (RFC 9113, 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HpackError(pub(crate) &'static str);

/// Decodes the header blocks of one connection.
#[derive(Debug)]
pub(crate) struct Decoder {
    table: Table,
    /// Texts of a field that stand neither in the block nor in a table.
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Decoder {
    pub(crate) fn new() -> Self {
        Self { table: Table::new(), name: Vec::new(), value: Vec::new() }
    }

    /// Decodes a whole block; each field goes to `field` in turn. Its error ends nothing here: the table has to follow all
    /// blocks, and what is wrong with a message is the business of its stream.
    pub(crate) fn decode(&mut self, block: &[u8], mut field: impl FnMut(&[u8], &[u8])) -> Result<(), HpackError> {
        let mut rest = block;
        let mut may_resize = true;
        while let [first, ..] = *rest {
            match first {
                // Indexed.
                0x80.. => {
                    let index = integer(&mut rest, 7)?;
                    let (name, value) = self.table.get(index)?;
                    field(name, value);
                }
                // A new limit of the table, which stands before all fields.
                0x20..0x40 => {
                    let limit = integer(&mut rest, 5)?;
                    if !may_resize || limit > TABLE_LIMIT {
                        return Err(HpackError("the dynamic table is resized wrongly"));
                    }
                    self.table.resize(limit);
                    continue;
                }
                // A literal: to be indexed, not to be indexed, or never.
                _ => {
                    let is_indexed = first & 0x40 != 0;
                    let index = integer(&mut rest, if is_indexed { 6 } else { 4 })?;
                    self.literal(index, &mut rest)?;
                    field(&self.name, &self.value);
                    if is_indexed {
                        self.table.insert(&self.name, &self.value);
                    }
                }
            }
            may_resize = false;
        }
        Ok(())
    }

    fn literal(&mut self, index: usize, rest: &mut &[u8]) -> Result<(), HpackError> {
        let Self { table, name, value } = self;
        name.clear();
        match index {
            0 => string(rest, name)?,
            _ => name.extend_from_slice(table.get(index)?.0),
        }
        value.clear();
        string(rest, value)
    }
}

/// The dynamic table: texts behind each other in one buffer, the newest last.
#[derive(Debug)]
struct Table {
    entries: VecDeque<Entry>,
    text: Vec<u8>,
    size: usize,
    limit: usize,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    start: usize,
    name: usize,
    value: usize,
}

impl Entry {
    fn size(self) -> usize {
        self.name + self.value + ENTRY_OVERHEAD
    }
}

impl Table {
    fn new() -> Self {
        Self { entries: VecDeque::new(), text: Vec::new(), size: 0, limit: TABLE_LIMIT }
    }

    fn get(&self, index: usize) -> Result<(&[u8], &[u8]), HpackError> {
        if let Some(&(name, value)) = index.checked_sub(1).and_then(|at| STATIC.get(at)) {
            return Ok((name.as_bytes(), value.as_bytes()));
        }
        let newest_first = index.checked_sub(STATIC.len() + 1);
        let entry = newest_first.and_then(|age| self.entries.len().checked_sub(age + 1)).map(|at| self.entries[at]);
        let Entry { start, name, value } = entry.ok_or(HpackError("a field's index stands for nothing"))?;
        Ok((&self.text[start..start + name], &self.text[start + name..start + name + value]))
    }

    fn insert(&mut self, name: &[u8], value: &[u8]) {
        let size = name.len() + value.len() + ENTRY_OVERHEAD;
        self.shrink_to(self.limit.saturating_sub(size));
        if size > self.limit {
            // It empties the table, and is not in it (RFC 7541, 4.4).
            return;
        }
        if self.text.len() + size > 2 * TABLE_LIMIT {
            let oldest = self.entries.front().map_or(self.text.len(), |entry| entry.start);
            self.text.drain(..oldest);
            self.entries.iter_mut().for_each(|entry| entry.start -= oldest);
        }
        let start = self.text.len();
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(value);
        self.entries.push_back(Entry { start, name: name.len(), value: value.len() });
        self.size += size;
    }

    fn resize(&mut self, limit: usize) {
        self.limit = limit;
        self.shrink_to(limit);
    }

    fn shrink_to(&mut self, size: usize) {
        while self.size > size {
            let Some(oldest) = self.entries.pop_front() else { return };
            self.size -= oldest.size();
        }
    }
}

/// An integer whose first octet has so many bits for it (RFC 7541, 5.1).
fn integer(rest: &mut &[u8], bits: u32) -> Result<usize, HpackError> {
    const CUT: HpackError = HpackError("a header block ends within an integer");
    let mask = (1usize << bits) - 1;
    let (&first, mut left) = rest.split_first().ok_or(CUT)?;
    let mut value = usize::from(first) & mask;
    if value == mask {
        // Four octets more are enough for all that is in bounds here.
        for shift in [0, 7, 14, 21, 28] {
            let (&octet, next) = left.split_first().ok_or(CUT)?;
            left = next;
            if shift == 28 {
                return Err(HpackError("an integer is too large"));
            }
            value += usize::from(octet & 0x7f) << shift;
            if octet & 0x80 == 0 {
                break;
            }
        }
    }
    *rest = left;
    Ok(value)
}

/// Appends a string (RFC 7541, 5.2).
fn string(rest: &mut &[u8], out: &mut Vec<u8>) -> Result<(), HpackError> {
    let is_huffman = rest.first().is_some_and(|octet| octet & 0x80 != 0);
    let length = integer(rest, 7)?;
    if length > STRING_LIMIT {
        return Err(HpackError("a header field is too long"));
    }
    let (text, left) = rest.split_at_checked(length).ok_or(HpackError("a header block ends within a string"))?;
    *rest = left;
    if is_huffman {
        return huffman::decode(text, out);
    }
    out.extend_from_slice(text);
    Ok(())
}

/// Appends a field to a block: whole where the static table has it, else a literal that no table takes up, so that a block
/// means the same on each connection at any time.
pub(crate) fn encode(name: &[u8], value: &[u8], block: &mut Vec<u8>) {
    let is_named = |&(known, _): &(&str, &str)| known.as_bytes() == name;
    if let Some(at) =
        STATIC.iter().position(|field| is_named(field) && field.1.as_bytes() == value && !value.is_empty())
    {
        push_integer(at + 1, 7, 0x80, block);
        return;
    }
    match STATIC.iter().position(is_named) {
        Some(at) => push_integer(at + 1, 4, 0, block),
        None => {
            block.push(0);
            push_string(name, block);
        }
    }
    push_string(value, block);
}

fn push_string(text: &[u8], block: &mut Vec<u8>) {
    push_integer(text.len(), 7, 0, block);
    block.extend_from_slice(text);
}

fn push_integer(value: usize, bits: u32, first: u8, block: &mut Vec<u8>) {
    let mask = (1usize << bits) - 1;
    if value < mask {
        block.push(first | value as u8);
        return;
    }
    block.push(first | mask as u8);
    let mut left = value - mask;
    while left >= 0x80 {
        block.push((left & 0x7f) as u8 | 0x80);
        left >>= 7;
    }
    block.push(left as u8);
}

/// RFC 7541, appendix A.
const STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Fields = Vec<(String, String)>;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    fn decoded(decoder: &mut Decoder, block: &[u8]) -> Result<Fields, HpackError> {
        let mut fields = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        decoder.decode(block, |name, value| fields.push((text(name), text(value)))).map(|()| fields)
    }

    fn fields(pairs: &[(&str, &str)]) -> Fields {
        pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn requests_of_appendix_c_3_and_4() {
        let first =
            fields(&[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")]);
        let second = [first.clone(), fields(&[("cache-control", "no-cache")])].concat();
        let third = fields(&[
            (":method", "GET"),
            (":scheme", "https"),
            (":path", "/index.html"),
            (":authority", "www.example.com"),
            ("custom-key", "custom-value"),
        ]);
        for blocks in [
            [
                "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
                "8286 84be 5808 6e6f 2d63 6163 6865",
                "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
            ],
            [
                "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
                "8286 84be 5886 a8eb 1064 9cbf",
                "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
            ],
        ] {
            let mut decoder = Decoder::new();
            for (block, expected) in blocks.iter().zip([&first, &second, &third]) {
                assert_eq!(&decoded(&mut decoder, &hex(block)).unwrap(), expected);
            }
            assert_eq!(decoder.table.size, 164);
        }
    }

    #[test]
    fn responses_of_appendix_c_5_and_6_with_a_table_of_256_octets() {
        let expected = |status: &str, date: &str| {
            fields(&[
                (":status", status),
                ("cache-control", "private"),
                ("date", date),
                ("location", "https://www.example.com"),
            ])
        };
        let first = expected("302", "Mon, 21 Oct 2013 20:13:21 GMT");
        let second = expected("307", "Mon, 21 Oct 2013 20:13:21 GMT");
        let mut third = expected("200", "Mon, 21 Oct 2013 20:13:22 GMT");
        third.extend(fields(&[
            ("content-encoding", "gzip"),
            ("set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"),
        ]));
        for blocks in [
            [
                "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
                "4803 3330 37c1 c0bf",
                "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
            ],
            [
                "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
                "4883 640e ffc1 c0bf",
                "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
            ],
        ] {
            let mut decoder = Decoder::new();
            decoder.table.resize(256);
            for ((block, expected), size) in blocks.iter().zip([&first, &second, &third]).zip([222, 222, 215]) {
                assert_eq!(&decoded(&mut decoder, &hex(block)).unwrap(), expected);
                assert_eq!(decoder.table.size, size);
            }
        }
    }

    #[test]
    fn literals_of_appendix_c_2() {
        let mut decoder = Decoder::new();
        let block = hex("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572");
        assert_eq!(decoded(&mut decoder, &block).unwrap(), fields(&[("custom-key", "custom-header")]));
        assert_eq!(decoder.table.size, 55);
        for block in ["040c 2f73 616d 706c 652f 7061 7468", "100870617373776f726406736563726574"] {
            decoded(&mut decoder, &hex(block)).unwrap();
            assert_eq!(decoder.table.size, 55, "not indexed");
        }
    }

    #[test]
    fn integers_of_appendix_c_1() {
        for (octets, bits, value) in [(&[0x0a][..], 5, 10), (&[0x1f, 0x9a, 0x0a], 5, 1337), (&[0x2a], 8, 42)] {
            let mut rest = octets;
            assert_eq!((integer(&mut rest, bits), rest.len()), (Ok(value), 0));
            let mut pushed = Vec::new();
            push_integer(value, bits, 0, &mut pushed);
            assert_eq!(pushed, octets);
        }
    }

    #[test]
    fn what_is_out_of_bounds_is_refused() {
        for block in [
            "80",
            "be",
            "ff ff ff ff ff ff",
            "3f e2 1f",
            "40",
            "00 05 61",
            "7f ff ff ff 7f",
            "82 20",
            "00 7f ff ff ff 7f",
        ] {
            assert!(decoded(&mut Decoder::new(), &hex(block)).is_err(), "{block}");
        }
        assert!(decoded(&mut Decoder::new(), &hex("20 3f e1 1f 82")).is_ok(), "to nothing, and back to 4096");
    }

    #[test]
    fn an_entry_larger_than_the_table_empties_it() {
        let mut table = Table::new();
        table.insert(b"a", b"b");
        table.insert(&[b'n'; 4000], &[b'v'; 100]);
        assert_eq!((table.size, table.entries.len()), (0, 0));
        for number in 0..10_000 {
            table.insert(b"name", format!("{number}").as_bytes());
            assert_eq!(table.get(62).unwrap().1, format!("{number}").as_bytes());
        }
        assert!(table.text.len() <= 2 * TABLE_LIMIT && table.size <= TABLE_LIMIT);
    }

    proptest! {
        #[test]
        fn arbitrary_blocks_neither_panic_nor_outgrow_the_table(
            blocks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..80), 1..8)
        ) {
            let mut decoder = Decoder::new();
            for block in blocks {
                let _ = decoded(&mut decoder, &block);
                prop_assert!(decoder.table.size <= TABLE_LIMIT);
                prop_assert!(decoder.table.text.len() <= 2 * TABLE_LIMIT);
            }
        }

        #[test]
        fn what_we_encode_is_decoded(
            pairs in proptest::collection::vec(("[a-z:-]{1,12}", "[ -~]{0,300}"), 0..12)
        ) {
            let mut block = Vec::new();
            pairs.iter().for_each(|(name, value)| encode(name.as_bytes(), value.as_bytes(), &mut block));
            prop_assert_eq!(decoded(&mut Decoder::new(), &block).unwrap(), pairs);
        }

        #[test]
        fn fields_come_back_however_a_server_encodes_them(
            pairs in proptest::collection::vec(("[a-z]{1,8}", "[ -~]{0,40}", any::<bool>(), any::<bool>()), 0..40)
        ) {
            let mut decoder = Decoder::new();
            for (name, value, is_indexed, is_huffman) in &pairs {
                let mut block = vec![if *is_indexed { 0x40 } else { 0x00 }];
                for text in [name, value] {
                    if *is_huffman {
                        let encoded = huffman::tests::encode(text.as_bytes());
                        push_integer(encoded.len(), 7, 0x80, &mut block);
                        block.extend(encoded);
                    } else {
                        push_string(text.as_bytes(), &mut block);
                    }
                }
                if *is_indexed {
                    // Right behind itself, from the table.
                    block.push(0x80 | 62);
                }
                let expected = vec![(name.clone(), value.clone()); 1 + usize::from(*is_indexed)];
                prop_assert_eq!(decoded(&mut decoder, &block).unwrap(), expected);
            }
        }
    }
}
