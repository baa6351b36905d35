//! Which file system an archive lies on, and so which journal SQLite may keep there.
//!
//! A write-ahead log needs memory that all processes share through a mapped file, and locks on it. Two machines do not
//! share memory through a file system: each would follow its own index of the log, and both would write over each other's
//! pages. SQLite does not look for that; its manual says that the log "does not work over a network filesystem". A
//! rollback journal needs locks on the database alone, which these file systems have had for long (NFS with version 4, or
//! with its lock manager). To refuse such places was rejected: homes lie on NFS in many institutes, and duel would be of
//! no use there.

use std::path::Path;

/// Where an archive lies, as far as that decides about its journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    /// Only this machine writes there: a write-ahead log is safe.
    Local,
    /// Other machines may write there, or a program serves the files, of which nobody knows what stands behind it: a rollback
    /// journal. By the name that people know.
    Shared(&'static str),
    /// Not known here: a rollback journal as well. If the guess is wrong, that costs time for each slot; a log on a shared
    /// file system would cost the runs.
    Unknown,
}

impl Storage {
    /// The file system of a file that is there.
    ///
    /// Asked by name: closing a second descriptor of a database drops the locks that this process has on it.
    pub(crate) fn of(file: &Path) -> Self {
        look(file).unwrap_or(Self::Unknown)
    }

    /// Whether a write-ahead log is safe.
    pub(crate) fn is_local(self) -> bool {
        self == Self::Local
    }

    /// What to call it in a sentence.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Local => "a file system of this machine",
            Self::Shared(name) => name,
            Self::Unknown => "a file system that duel does not know",
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn look(file: &Path) -> Option<Storage> {
    let found = rustix::fs::statfs(file).ok()?;
    // The field is signed on some systems, and the numbers of 32 bits are then negative.
    Some(of_magic(found.f_type as u32))
}

/// These systems tell it themselves (`MNT_LOCAL` in `sys/mount.h`, the same bit in all of them): stored on this machine.
#[cfg(any(target_os = "macos", target_os = "freebsd", target_os = "openbsd", target_os = "dragonfly"))]
fn look(file: &Path) -> Option<Storage> {
    const MNT_LOCAL: u64 = 0x1000;
    let found = rustix::fs::statfs(file).ok()?;
    Some(if found.f_flags as u64 & MNT_LOCAL != 0 { Storage::Local } else { Storage::Shared("a network file system") })
}

#[cfg(not(any(
    target_os = "linux",
    target_os = "android",
    target_os = "macos",
    target_os = "freebsd",
    target_os = "openbsd",
    target_os = "dragonfly"
)))]
fn look(_: &Path) -> Option<Storage> {
    None
}

/// By the number that Linux gives each kind (`statfs(2)`, `linux/magic.h`, and the sources of those outside the kernel).
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), allow(dead_code, reason = "others tell it by a flag"))]
fn of_magic(magic: u32) -> Storage {
    match magic {
        0x6969 => Storage::Shared("NFS"),
        0xff53_4d42 | 0xfe53_4d42 | 0x517b => Storage::Shared("SMB (CIFS)"),
        // sshfs, s3fs, GlusterFS, virtiofs, folders that a virtual machine or Docker shares, and NTFS on this machine: the kernel
        // calls them all the same.
        0x6573_5546 => Storage::Shared("FUSE"),
        0x0102_1997 => Storage::Shared("9p"),
        0x5346_414f | 0x6b41_4653 => Storage::Shared("AFS"),
        0x7375_7245 => Storage::Shared("Coda"),
        0x564c => Storage::Shared("NCP"),
        0x00c3_6400 => Storage::Shared("Ceph"),
        0x0bd0_0bd0 => Storage::Shared("Lustre"),
        0x4750_4653 => Storage::Shared("GPFS"),
        0x0116_1970 => Storage::Shared("GFS2"),
        0x7461_636f => Storage::Shared("OCFS2"),
        0x1983_0326 => Storage::Shared("BeeGFS"),
        0x2003_0528 => Storage::Shared("OrangeFS"),
        0xaad7_aaea => Storage::Shared("PanFS"),
        0x6163_6673 => Storage::Shared("ACFS"),
        0xbeef_dead => Storage::Shared("SNFS"),
        0x0131_11a8 => Storage::Shared("IBRIX"),
        0xa501_fcf5 => Storage::Shared("VxFS"),
        0x786f_4256 => Storage::Shared("a shared folder of VirtualBox"),
        0xbacb_acbc => Storage::Shared("a shared folder of VMware"),
        0x7c7c_6673 => Storage::Shared("a shared folder of Parallels"),
        0x00c0_ffee => Storage::Shared("hostfs"),
        // Disks of this machine: ext2 to ext4, XFS, Btrfs, ZFS, F2FS, bcachefs, JFS, ReiserFS (two), NILFS2, FAT, exFAT, NTFS
        // (two), HFS, HFS+, UFS, UDF, Minix, UBIFS, JFFS2.
        0xef53 | 0x5846_5342 | 0x9123_683e | 0x2fc1_2fc1 | 0xf2f5_2010 | 0xca45_1a4e | 0x3153_464a | 0x5265_4973
        | 0x5265_6973 | 0x3434 | 0x4d44 | 0x2011_bab0 | 0x5346_544e | 0x7366_746e | 0x4244 | 0x482b | 0x0001_1954
        | 0x1501_3346 | 0x137f | 0x2405_1905 | 0x72b6 => Storage::Local,
        // Memory of this machine: tmpfs, ramfs.
        0x0102_1994 | 0x8584_58f6 => Storage::Local,
        // Read-only ones, where no log is written: SquashFS, EROFS, ISO 9660, cramfs.
        0x7371_7368 | 0xe0f5_e1e2 | 0x9660 | 0x28cd_3d45 => Storage::Local,
        // Layers over another one. overlayfs takes no NFS for the layer that is written to, and eCryptfs and aufs are not made for
        // it; containers and older encrypted homes lie there.
        0x794c_7630 | 0xf15f | 0x6175_6673 => Storage::Local,
        _ => Storage::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_machines_may_write_to_is_not_taken_for_our_own() {
        for (magic, name) in [
            (0x6969, "NFS"),
            (0xff53_4d42, "SMB (CIFS)"),
            (0xfe53_4d42, "SMB (CIFS)"),
            (0x6573_5546, "FUSE"),
            (0x0102_1997, "9p"),
            (0x00c3_6400, "Ceph"),
            (0x0bd0_0bd0, "Lustre"),
            (0x786f_4256, "a shared folder of VirtualBox"),
        ] {
            assert_eq!(of_magic(magic), Storage::Shared(name), "{magic:#x}");
            assert!(!of_magic(magic).is_local());
        }
        for magic in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630] {
            assert_eq!(of_magic(magic), Storage::Local, "{magic:#x}");
        }
        assert_eq!(of_magic(0x1234_5678), Storage::Unknown);
        assert!(!Storage::Unknown.is_local(), "what is not known is treated as shared");
    }

    #[test]
    fn this_machine_s_own_are_known() {
        if cfg!(target_os = "linux") {
            assert_eq!(Storage::of(Path::new("/proc")), Storage::Unknown, "no archive is kept there");
            assert_eq!(Storage::of(Path::new("/no/such/file")), Storage::Unknown);
            assert_eq!(Storage::of(Path::new("/dev/shm")), Storage::Local);
        }
    }
}
