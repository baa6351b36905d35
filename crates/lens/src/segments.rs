//! Which parts of a library's file are variables in memory: its program headers (ELF).

use std::ops::Range;

/// Bytes of a file in which its program headers are looked for; they follow its head.
pub(crate) const HEADERS_BYTES: usize = 64 << 10;
/// Most program headers; libraries have about ten.
const MOST_HEADERS: usize = 64;
/// `PT_LOAD` and `PT_GNU_RELRO`.
const LOAD: u32 = 1;
const RELRO: u32 = 0x6474_e552;
/// `PF_W`.
const WRITABLE: u32 = 2;

/// Addresses in a library, relative to where it is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Where the file's first byte comes to lie; 0 unless the library was prelinked.
    pub(crate) first: u64,
    /// Variables: what may be written after the library was linked to others. Constants that hold addresses are writable
    /// until then only, and many.
    pub(crate) variables: Vec<Range<u64>>,
}

/// The layout that the beginning of a file tells; `None` where it makes no sense.
pub(crate) fn layout(head: &[u8]) -> Option<Layout> {
    let reader = Reader::new(head)?;
    let mut loads = Vec::new();
    let mut relro = 0..0;
    for header in reader.headers()? {
        match header.kind {
            LOAD => loads.push(header),
            RELRO => relro = header.memory,
            _ => {}
        }
    }
    let lowest = loads.iter().min_by_key(|header| header.file_offset)?;
    let first = lowest.memory.start.checked_sub(lowest.file_offset)?;
    let writable = loads.iter().filter(|header| header.flags & WRITABLE != 0).map(|header| &header.memory);
    let variables =
        writable.flat_map(|memory| without(memory, &relro)).filter(|range: &Range<u64>| !range.is_empty()).collect();
    Some(Layout { first, variables })
}

/// What is left of a range.
fn without(range: &Range<u64>, hole: &Range<u64>) -> [Range<u64>; 2] {
    if hole.is_empty() || hole.end <= range.start || hole.start >= range.end {
        return [range.clone(), 0..0];
    }
    [range.start..hole.start.max(range.start), hole.end.min(range.end)..range.end]
}

/// One program header.
struct Header {
    kind: u32,
    flags: u32,
    file_offset: u64,
    memory: Range<u64>,
}

/// Reads numbers of the file's own class and byte order.
struct Reader<'a> {
    head: &'a [u8],
    is_64: bool,
    is_big_endian: bool,
}

impl<'a> Reader<'a> {
    fn new(head: &'a [u8]) -> Option<Self> {
        if !head.starts_with(b"\x7fELF") {
            return None;
        }
        Some(Self { head, is_64: *head.get(4)? == 2, is_big_endian: *head.get(5)? == 2 })
    }

    fn headers(&self) -> Option<Vec<Header>> {
        // Elf64_Ehdr and Elf32_Ehdr: e_phoff, e_phentsize, e_phnum.
        let (table, size_at, count_at) = if self.is_64 { (self.word(32)?, 54, 56) } else { (self.word(28)?, 42, 44) };
        let (size, count) = (self.number(size_at, 2)?, self.number(count_at, 2)?);
        if count > MOST_HEADERS as u64 {
            return None;
        }
        (0..count).map(|index| self.header(table.checked_add(index * size)?)).collect()
    }

    fn header(&self, at: u64) -> Option<Header> {
        let at = usize::try_from(at).ok()?;
        let field = |offset: usize| at.checked_add(offset);
        // Elf64_Phdr and Elf32_Phdr: p_flags, p_offset, p_vaddr, p_memsz.
        let (flags, offset, start, bytes) = if self.is_64 { (4, 8, 16, 40) } else { (24, 4, 8, 20) };
        let start = self.word(field(start)?)?;
        Some(Header {
            kind: u32::try_from(self.number(at, 4)?).ok()?,
            flags: u32::try_from(self.number(field(flags)?, 4)?).ok()?,
            file_offset: self.word(field(offset)?)?,
            memory: start..start.checked_add(self.word(field(bytes)?)?)?,
        })
    }

    /// An address or a size.
    fn word(&self, at: usize) -> Option<u64> {
        self.number(at, if self.is_64 { 8 } else { 4 })
    }

    fn number(&self, at: usize, bytes: usize) -> Option<u64> {
        let bytes = self.head.get(at..at.checked_add(bytes)?)?;
        let fold = |number: u64, byte: &u8| (number << 8) | u64::from(*byte);
        Some(if self.is_big_endian { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A file of 64 bits with these program headers: kind, flags, address, size.
    fn file(headers: &[(u32, u32, u64, u64)]) -> Vec<u8> {
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(64, 0);
        file[32..40].copy_from_slice(&64_u64.to_le_bytes());
        file[54..56].copy_from_slice(&56_u16.to_le_bytes());
        file[56..58].copy_from_slice(&(headers.len() as u16).to_le_bytes());
        for (kind, flags, address, size) in headers {
            file.extend(kind.to_le_bytes());
            file.extend(flags.to_le_bytes());
            // Offset, address, physical address, size in the file, size in memory, alignment.
            for word in [0, *address, 0, 0, *size, 4096] {
                file.extend(word.to_le_bytes());
            }
        }
        file
    }

    fn variables(first: u64, range: Range<u64>) -> Option<Layout> {
        Some(Layout { first, variables: std::iter::once(range).collect() })
    }

    #[test]
    fn variables_are_what_stays_writable() {
        // As Debian's libcrypto of OpenSSL 3.0.
        let debian = file(&[
            (LOAD, 4, 0, 0xb1_000),
            (LOAD, 6, 0x42_2e50, 0x66_760),
            (RELRO, 4, 0x42_2e50, 0x61_1b0),
            (2, 6, 0x48_0000, 0x100),
        ]);
        assert_eq!(layout(&debian), variables(0, 0x48_4000..0x48_95b0));
        let plain = file(&[(LOAD, 5, 0x1000, 0x1000), (LOAD, 6, 0x3000, 0x10)]);
        assert_eq!(layout(&plain), variables(0x1000, 0x3000..0x3010));
        assert_eq!(layout(&file(&[])), None);
        assert_eq!(layout(&file(&[(LOAD, 6, u64::MAX, 2)])), None);
    }

    #[test]
    fn this_very_program_has_variables() {
        let head = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let layout = layout(&head[..HEADERS_BYTES.min(head.len())]).unwrap();
        assert!(layout.variables.iter().any(|range| !range.is_empty()), "{layout:?}");
    }

    proptest! {
        #[test]
        fn no_file_makes_it_stumble(
            headers in proptest::collection::vec((0_u32..3, 0_u32..8, any::<u64>(), any::<u64>()), 0..5),
            at in 0_usize..300, with in any::<u8>(), cut in 0_usize..400,
        ) {
            let mut file = file(&headers);
            if let Some(byte) = file.get_mut(at) {
                *byte = with;
            }
            file.truncate(cut);
            let _ = layout(&file);
        }
    }
}
