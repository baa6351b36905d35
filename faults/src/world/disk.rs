//! A small file system of its own, on a loop device.

use super::{Folder, Guard, Made, World, succeed};
use std::path::{Path, PathBuf};

/// ext4, whose writes wait for the device if it is mounted with `sync`.
pub(crate) struct SyncDisk {
    // Dropped in this order: unmounted, detached, removed.
    _mount: Guard,
    _parent: Guard,
    _device: Guard,
    _folder: Folder,
    path: PathBuf,
}

impl SyncDisk {
    /// `synchronous` or not is all that twins differ in.
    pub(crate) fn new(world: &World, synchronous: bool) -> anyhow::Result<SyncDisk> {
        /// Enough for the log of some minutes.
        const BYTES: u64 = 1 << 30;
        let folder = world.folder()?;
        let image = folder.path().join("image");
        let parent = folder.path().join("disk");
        let path = parent.join("mounted");
        std::fs::create_dir(&parent)?;
        std::fs::File::create(&image)?.set_len(BYTES)?;
        succeed("mkfs.ext4", &["-q", "-F", &image.to_string_lossy()])?;
        let device = world.promise(Made::Loop(image.clone()))?;
        let attached = super::run("losetup", &["--direct-io=on", "--show", "-f", &image.to_string_lossy()])?;
        // Each `ip netns exec` copies all mounts, and a copy would hold on to the device. Below a shared mount, the copies
        // go away with the original.
        let parent_mount = world.promise(Made::Mount(parent.clone()))?;
        succeed("mount", &["--bind", &parent.to_string_lossy(), &parent.to_string_lossy()])?;
        succeed("mount", &["--make-shared", &parent.to_string_lossy()])?;
        std::fs::create_dir(&path)?;
        let mount = world.promise(Made::Mount(path.clone()))?;
        let how = if synchronous { "sync" } else { "async" };
        succeed("mount", &["-o", how, attached.trim(), &path.to_string_lossy()])?;
        Ok(SyncDisk { _mount: mount, _parent: parent_mount, _device: device, _folder: folder, path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}
