//! What is on a device, by the marks that partition tables and file systems put there.

use rustix::io::pread;
use std::fs::File;

/// A mark: what it tells of, where it is, and what it says.
type Mark = (&'static str, u64, &'static [u8]);

const MARKS: &[Mark] = &[
    ("a GPT partition table", 512, b"EFI PART"),
    ("a GPT partition table", 4096, b"EFI PART"),
    ("an XFS file system", 0, b"XFSB"),
    ("a btrfs file system", 65_600, b"_BHRfS_M"),
    ("an ext2, ext3 or ext4 file system", 1080, &[0x53, 0xef]),
    ("an LVM physical volume", 536, b"LVM2 001"),
    ("a LUKS container", 0, b"LUKS\xba\xbe"),
    ("swap space", 4086, b"SWAPSPACE2"),
    ("an ISO 9660 file system", 32_769, b"CD001"),
    ("an NTFS file system", 3, b"NTFS    "),
    ("a FAT file system", 54, b"FAT1"),
    ("a FAT file system", 82, b"FAT32"),
    ("an F2FS file system", 1024, &[0x10, 0x20, 0xf5, 0xf2]),
    ("a SquashFS file system", 0, b"hsqs"),
    ("a part of a Linux RAID", 4096, &[0xfc, 0x4e, 0x2b, 0xa9]),
    ("an MBR partition table", 510, &[0x55, 0xaa]),
];

/// What is on a device, in words. No mark is no proof that nothing is there.
pub(crate) fn of(device: &File) -> Vec<&'static str> {
    let mut found: Vec<&'static str> = MARKS
        .iter()
        .filter(|(_, offset, says)| {
            let mut bytes = [0; 16];
            let bytes = &mut bytes[..says.len()];
            matches!(pread(device, &mut *bytes, *offset), Ok(read) if read == says.len()) && *bytes == **says
        })
        .map(|(what, ..)| *what)
        .collect();
    found.dedup();
    // File systems of this sort, and the guard of a GPT, have the MBR's mark, too.
    if found.len() > 1 {
        found.retain(|what| !what.contains("MBR"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn marks_are_found_where_they_stand() {
        for (what, offset, says) in MARKS {
            let mut file = tempfile::tempfile().unwrap();
            let mut bytes = vec![0; 70_000];
            bytes[*offset as usize..*offset as usize + says.len()].copy_from_slice(says);
            file.write_all(&bytes).unwrap();
            assert_eq!(of(&file), [*what]);
        }
        assert_eq!(of(&tempfile::tempfile().unwrap()), [""; 0]);
    }
}
