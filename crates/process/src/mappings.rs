//! The files that a process maps, from its `/proc/PID/maps` (Linux).

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// A part of a file in a process's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// As `/proc/PID/map_files` names it.
    pub range: String,
    /// Its first byte.
    pub start: u64,
    /// Behind the last byte.
    pub end: u64,
    /// Where it begins in the file.
    pub file_offset: u64,
    /// Which file it is, whatever became of its name.
    pub file: FileId,
    /// Its name when it was mapped.
    pub path: PathBuf,
    /// The file has no name any more: it was deleted, or another was put in its place.
    pub is_deleted: bool,
    /// What is there may be executed.
    pub is_executable: bool,
}

/// A file as mappings tell it: comparable between processes of one machine. File systems made of layers show another
/// device here than `stat` does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileId {
    /// Major and minor number, as they are printed.
    pub device: String,
    /// Number within the device.
    pub inode: u64,
}

impl Mapping {
    /// The file's name without its folder.
    pub fn name(&self) -> &[u8] {
        self.path.file_name().map(OsStrExt::as_bytes).unwrap_or_default()
    }

    /// Whether the file's name is that of a libcrypto: `libcrypto.so.3`, or with a mark of a build as in
    /// `libcrypto-1f2e3d4c.so.3`; but not `libcryptopp.so`, which is another library.
    pub fn is_libcrypto(&self) -> bool {
        let Some(rest) = self.name().strip_prefix(b"libcrypto") else { return false };
        matches!(rest.first(), Some(b'.' | b'-' | b'_')) && rest.windows(3).any(|part| part == b".so")
    }
}

/// Every mapping of a file, in the order of addresses. Lines that make no sense are passed over.
pub fn mappings(maps: &[u8]) -> Vec<Mapping> {
    maps.split(|&byte| byte == b'\n').filter_map(mapping).collect()
}

/// Every file named libcrypto that is mapped, once.
pub fn libcryptos(maps: &[u8]) -> Vec<Mapping> {
    let mut found: Vec<Mapping> = Vec::new();
    for mapping in mappings(maps) {
        if mapping.is_libcrypto() && found.iter().all(|known| known.file != mapping.file) {
            found.push(mapping);
        }
    }
    found
}

/// Range, rights, offset, device, inode; then the path, which may have spaces.
fn mapping(line: &[u8]) -> Option<Mapping> {
    let mut rest = line;
    let mut field = || {
        let end = rest.iter().position(|&byte| byte == b' ')?;
        let field = std::str::from_utf8(&rest[..end]).ok()?;
        rest = rest[end..].trim_ascii_start();
        Some(field)
    };
    let (range, rights, offset, device, inode) = (field()?, field()?, field()?, field()?, field()?);
    let path = rest.strip_suffix(b" (deleted)").unwrap_or(rest);
    if !path.starts_with(b"/") {
        return None;
    }
    let (start, end) = range.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    Some(Mapping {
        range: range.to_owned(),
        start: address(start)?,
        end: address(end)?,
        file_offset: address(offset)?,
        file: FileId { device: device.to_owned(), inode: inode.parse().ok()? },
        path: PathBuf::from(OsString::from_vec(path.to_vec())),
        is_deleted: path.len() < rest.len(),
        is_executable: rights.as_bytes().get(2) == Some(&b'x'),
    })
}

/// Where a library begins in a process's memory; an error where it is not there, or there more than once.
pub fn start_of(mappings: &[Mapping], file: &FileId) -> Result<u64, String> {
    let mut starts = mappings.iter().filter(|mapping| mapping.file == *file && mapping.file_offset == 0);
    match (starts.next(), starts.next()) {
        (Some(only), None) => Ok(only.start),
        (None, _) => Err("it does not map the library".into()),
        (Some(_), Some(_)) => Err("it maps the library more than once".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAPS: &[u8] = b"\
7f0000000000-7f0000001000 r--p 00000000 08:01 22                         /opt/my libs/libcrypto.so.3 (deleted)\n\
7f0000001000-7f0000002000 r-xp 00001000 08:01 22                         /opt/my libs/libcrypto.so.3 (deleted)\n\
7f0000003000-7f0000004000 rw-p 00000000 00:00 0\n\
7f0000005000-7f0000006000 r--p 00000000 08:02 22                         /usr/lib/libz.so.1\n\
7f0000007000-7f0000008000 r--p 00000000 08:02 22                         /usr/lib/libz.so.1\n\
7f0000009000-7f000000a000 rw-p 00000000 00:00 0                          [heap]\n";

    #[test]
    fn a_library_begins_where_its_file_does() {
        let found = mappings(MAPS);
        assert_eq!(found.len(), 4);
        assert_eq!(found[0].path.to_str(), Some("/opt/my libs/libcrypto.so.3"));
        assert!(found[1].is_executable && !found[0].is_executable && found[0].is_deleted && !found[2].is_deleted);
        assert_eq!((found[1].name(), found[1].end), (&b"libcrypto.so.3"[..], 0x7f00_0000_2000));
        let file = |device: &str, inode| FileId { device: device.into(), inode };
        assert_eq!(start_of(&found, &file("08:01", 22)), Ok(0x7f00_0000_0000));
        assert!(start_of(&found, &file("08:02", 22)).unwrap_err().contains("more than once"));
        assert!(start_of(&found, &file("08:01", 23)).unwrap_err().contains("does not map"));
    }

    #[test]
    fn libcryptos_are_told_by_their_names_once_each() {
        let line = |inode, name: &str| format!("7f0000000000-7f0000001000 r-xp 00000000 08:01 {inode} /x/{name}\n");
        let names = ["libcrypto.so.3", "libcrypto-1f2e.so.1.1", "libcryptopp.so.8", "libcrypto.txt", "libcrypto.so.3"];
        let maps: String = names.iter().zip([1, 2, 3, 4, 1]).map(|(name, inode)| line(inode, name)).collect();
        let found = libcryptos(maps.as_bytes());
        assert_eq!(found.iter().map(|found| found.file.inode).collect::<Vec<_>>(), [1, 2]);
    }

    proptest! {
        #[test]
        fn no_mappings_make_it_stumble(maps in "([0-9a-f-]{0,9} ?|/libcrypto.so|\n| ){0,40}") {
            libcryptos(maps.as_bytes());
        }
    }
}
