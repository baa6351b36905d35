//! File systems of their own, on loop devices.

use super::{Folder, Guard, Made, World, run, succeed};
use anyhow::Context;
use std::path::{Path, PathBuf};

/// What a loop device's image lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backing {
    /// A disk of this machine.
    Disk,
    /// Memory: as fast in one moment as in the next, whoever else uses the disk, and flushed at once.
    Memory,
    /// The same behind a file system in user space (bindfs): each read takes longer, whoever makes it.
    UserSpace,
}

/// A file system to be, and the device under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VolumePlan {
    /// `ext4`, `xfs` and so on: `mkfs.` before it is the program that makes it.
    pub(crate) file_system: &'static str,
    /// Words for that program.
    pub(crate) make: &'static [&'static str],
    /// Options of the mount.
    pub(crate) mount: &'static str,
    pub(crate) mib: u32,
    pub(crate) backing: Backing,
    /// Whether the device keeps nothing in memory of its own.
    pub(crate) direct_io: bool,
    /// How far the system reads ahead; `None` leaves it as it is.
    pub(crate) read_ahead_kib: Option<u32>,
}

impl VolumePlan {
    /// All as it is made by default, and a device that passes everything on.
    pub(crate) const fn of(file_system: &'static str, mib: u32) -> VolumePlan {
        VolumePlan {
            file_system,
            make: &[],
            mount: "async",
            mib,
            backing: Backing::Disk,
            direct_io: true,
            read_ahead_kib: None,
        }
    }
}

/// A file system in memory that every Linux has.
const SHARED_MEMORY: &str = "/dev/shm";

/// A mounted file system. It goes away with everything under it.
pub(crate) struct Volume {
    // Dropped in this order: unmounted, detached, removed.
    _mount: Guard,
    _parent: Guard,
    _device: Guard,
    _user_space: Option<Guard>,
    _folder: Folder,
    path: PathBuf,
    /// As `/sys/class/block` has it.
    device: String,
}

impl Volume {
    /// Makes and mounts it.
    pub(crate) fn new(world: &World, plan: &VolumePlan) -> anyhow::Result<Volume> {
        let folder = match plan.backing {
            Backing::Disk => world.folder()?,
            Backing::Memory | Backing::UserSpace => world.folder_in(Path::new(SHARED_MEMORY))?,
        };
        let images = folder.path().join("images");
        let parent = folder.path().join("disk");
        let path = parent.join("mounted");
        std::fs::create_dir(&parent)?;
        std::fs::create_dir(&images)?;
        std::fs::File::create(images.join("image"))?.set_len(u64::from(plan.mib) << 20)?;
        let (image, user_space) = match plan.backing {
            Backing::Disk | Backing::Memory => (images.join("image"), None),
            Backing::UserSpace => {
                let seen = folder.path().join("seen");
                std::fs::create_dir(&seen)?;
                let mount = world.promise(Made::Mount(seen.clone()))?;
                succeed("bindfs", &[&images.to_string_lossy(), &seen.to_string_lossy()])?;
                (seen.join("image"), Some(mount))
            }
        };
        let image_word = image.to_string_lossy();
        let force: &[&str] = if plan.file_system.starts_with("ext") { &["-q", "-F"] } else { &["-q", "-f"] };
        succeed(&format!("mkfs.{}", plan.file_system), &[force, plan.make, &[&image_word]].concat())?;
        let device = world.promise(Made::Loop(image.clone()))?;
        let direct = if plan.direct_io { "--direct-io=on" } else { "--direct-io=off" };
        let attached = run("losetup", &[direct, "--show", "-f", &image_word])?;
        let attached = attached.trim();
        if let Some(kib) = plan.read_ahead_kib {
            // In sectors of 512 bytes.
            succeed("blockdev", &["--setra", &(2 * kib).to_string(), attached])?;
        }
        // Each `ip netns exec` copies all mounts, and a copy would hold on to the device. Below a shared mount, the copies
        // go away with the original.
        let parent_mount = world.promise(Made::Mount(parent.clone()))?;
        succeed("mount", &["--bind", &parent.to_string_lossy(), &parent.to_string_lossy()])?;
        succeed("mount", &["--make-shared", &parent.to_string_lossy()])?;
        std::fs::create_dir(&path)?;
        let mount = world.promise(Made::Mount(path.clone()))?;
        succeed("mount", &["-o", plan.mount, attached, &path.to_string_lossy()])?;
        let device_name = attached.trim_start_matches("/dev/").to_owned();
        let volume = Volume {
            _mount: mount,
            _parent: parent_mount,
            _device: device,
            _user_space: user_space,
            _folder: folder,
            path,
            device: device_name,
        };
        Ok(volume)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The device's number, `MAJOR:MINOR`.
    pub(crate) fn device_number(&self) -> anyhow::Result<String> {
        let path = format!("/sys/class/block/{}/dev", self.device);
        Ok(std::fs::read_to_string(&path).with_context(|| format!("could not read {path}"))?.trim().to_owned())
    }

    /// Calls and bytes that the device has carried out so far, reads and writes together.
    pub(crate) fn calls_and_bytes(&self) -> anyhow::Result<(f64, f64)> {
        const SECTOR_BYTES: f64 = 512.0;
        let text = std::fs::read_to_string(format!("/sys/class/block/{}/stat", self.device))?;
        let fields: Vec<f64> = text.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        anyhow::ensure!(fields.len() > 6, "the device's counters are {text:?}");
        Ok((fields[0] + fields[4], (fields[2] + fields[6]) * SECTOR_BYTES))
    }
}

/// ext4, whose writes wait for the device if it is mounted with `sync`: for a log.
pub(crate) fn log_volume(world: &World, synchronous: bool) -> anyhow::Result<Volume> {
    /// Enough for the log of some minutes.
    const MIB: u32 = 1024;
    let mount = if synchronous { "sync" } else { "async" };
    Volume::new(world, &VolumePlan { mount, ..VolumePlan::of("ext4", MIB) })
}
