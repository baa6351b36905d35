//! The block device that a file lies on, or that a target is.

use duel_model::{MountLine, sanitize_line};
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, StatxFlags, statx};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A mount, of which `/proc/self/mountinfo` tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    id: u64,
    /// `MAJOR:MINOR` of what is mounted; of some file systems a number of their own.
    device: String,
    pub(crate) file_system: String,
    pub(crate) options: String,
    source: String,
}

/// A block device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Device {
    /// `MAJOR:MINOR`.
    number: String,
    /// Its folder in `/sys`, and that of the disk that it is a part of.
    folder: PathBuf,
    disk: PathBuf,
}

/// What a device has done since it is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) reads: u64,
    pub(crate) read_bytes: u64,
    pub(crate) writes: u64,
    pub(crate) written_bytes: u64,
}

/// The unit that the kernel counts in, whatever the device's own is.
const COUNTED_BYTES: u64 = 512;

/// All mounts that this process sees.
fn mounts() -> Vec<Mount> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    text.lines().filter_map(MountLine::of).map(Mount::of).collect()
}

impl Mount {
    fn of(line: MountLine<'_>) -> Self {
        let own: Vec<&str> = line.options.split(',').collect();
        let further = line.super_options.split(',').filter(|option| !own.contains(option));
        let options: Vec<&str> = own.iter().copied().chain(further).collect();
        Self {
            id: line.id,
            device: line.device.to_owned(),
            file_system: sanitize_line(line.file_system),
            options: sanitize_line(&options.join(",")),
            source: line.source.to_owned(),
        }
    }
}

/// The mount that an open file or folder is reached through.
pub(crate) fn mount_of(file: impl AsFd) -> Option<Mount> {
    let seen = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID).ok()?;
    let device = format!("{}:{}", seen.stx_dev_major, seen.stx_dev_minor);
    let mounts = mounts();
    let by_id =
        mounts.iter().find(|mount| seen.stx_mask & StatxFlags::MNT_ID.bits() != 0 && mount.id == seen.stx_mnt_id);
    by_id.or_else(|| mounts.iter().find(|mount| mount.device == device)).cloned()
}

impl Device {
    /// The device of this number; `None` where the system does not know of one.
    fn of_number(number: String) -> Option<Self> {
        let folder = fs::canonicalize(format!("/sys/dev/block/{number}")).ok()?;
        // A partition's folder is within that of its disk.
        let disk = if folder.join("partition").exists() { folder.parent()?.to_owned() } else { folder.clone() };
        Some(Self { number, folder, disk })
    }

    /// The device that a block special file stands for.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        let seen = fs::metadata(path).ok().filter(|seen| seen.file_type().is_block_device())?;
        Self::of_number(format!("{}:{}", rustix::fs::major(seen.rdev()), rustix::fs::minor(seen.rdev())))
    }

    /// The device under what is mounted. File systems with device numbers of their own (btrfs) tell their source.
    pub(crate) fn under(mount: &Mount) -> Option<Self> {
        Self::of_number(mount.device.clone()).or_else(|| Self::at(Path::new(&mount.source)))
    }

    /// Its name, such as `/dev/sda`.
    pub(crate) fn name(&self) -> String {
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy().replace('!', "/");
        format!("/dev/{}", sanitize_line(&name))
    }

    /// The first line of a file that the kernel has of the disk.
    pub(crate) fn told(&self, file: &str) -> Option<String> {
        let text = fs::read_to_string(self.disk.join(file)).ok()?;
        Some(sanitize_line(text.lines().next()?.trim())).filter(|text| !text.is_empty())
    }

    /// The same as a number.
    pub(crate) fn told_number(&self, file: &str) -> Option<u64> {
        self.told(file)?.parse().ok()
    }

    /// Its model; of a loop device, what it shows.
    pub(crate) fn model(&self) -> Option<String> {
        let of_loop = || self.told("loop/backing_file").map(|file| format!("loop device on {file}"));
        self.told("device/model").or_else(of_loop)
    }

    /// The scheduler that is chosen.
    pub(crate) fn scheduler(&self) -> Option<String> {
        let all = self.told("queue/scheduler")?;
        let chosen = all.split(['[', ']']).nth(1).map(str::to_owned);
        Some(chosen.unwrap_or(all))
    }

    /// What it has done; `None` where the system does not count it.
    pub(crate) fn done(&self) -> Option<Done> {
        let text = fs::read_to_string(self.folder.join("stat")).ok()?;
        let fields: Vec<u64> = text.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
        let [reads, _, read, _, writes, _, written, ..] = fields.as_slice() else { return None };
        Some(Done {
            reads: *reads,
            read_bytes: read.saturating_mul(COUNTED_BYTES),
            writes: *writes,
            written_bytes: written.saturating_mul(COUNTED_BYTES),
        })
    }

    /// Who uses it or a part of it, in words: `None` where nobody is known to.
    pub(crate) fn user(&self) -> Option<String> {
        let parts: Vec<Self> = self.parts();
        let all = || std::iter::once(self).chain(&parts);
        let mounts = mounts();
        for device in all() {
            let is_it = |mount: &&Mount| {
                mount.device == device.number
                    || Self::at(Path::new(&mount.source)).is_some_and(|source| source.number == device.number)
            };
            if mounts.iter().any(|mount| is_it(&mount)) {
                return Some(format!("{} is mounted", device.name()));
            }
            let mut holders = fs::read_dir(device.folder.join("holders")).ok().into_iter().flatten().flatten();
            if let Some(holder) = holders.next() {
                let holder = sanitize_line(&holder.file_name().to_string_lossy());
                return Some(format!("{} is a part of /dev/{holder}", device.name()));
            }
            let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
            let is_swap = |line: &str| {
                let path = line.split_ascii_whitespace().next().unwrap_or_default();
                Self::at(Path::new(path)).is_some_and(|swap| swap.number == device.number)
            };
            if swaps.lines().skip(1).any(is_swap) {
                return Some(format!("{} is swap space", device.name()));
            }
        }
        None
    }

    /// Its partitions.
    fn parts(&self) -> Vec<Self> {
        let entries = fs::read_dir(&self.folder).ok().into_iter().flatten().flatten();
        let number = |folder: PathBuf| Some(fs::read_to_string(folder.join("dev")).ok()?.trim().to_owned());
        entries
            .map(|entry| entry.path())
            .filter(|path| path.join("partition").exists())
            .filter_map(|path| Self::of_number(number(path)?))
            .collect()
    }
}

impl Done {
    /// What was done since then.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(before.reads),
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            writes: self.writes.saturating_sub(before.writes),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_a_mount_and_of_its_file_system_are_told_once() {
        let line = "36 35 98:0 /mnt1 /mnt2 rw,noatime - ext4 /dev/root rw,errors=continue";
        assert_eq!(Mount::of(MountLine::of(line).unwrap()).options, "rw,noatime,errors=continue");
    }

    #[test]
    fn the_mount_of_an_open_folder_is_found() {
        let root = fs::File::open("/proc/self").unwrap();
        assert_eq!(mount_of(&root).unwrap().file_system, "proc");
    }
}
