//! A small file system of its own, on a loop device.

use super::{Folder, Guard, Made, World, succeed};
use std::path::{Path, PathBuf};

/// ext4 mounted with `sync`: each write waits for the device.
pub(crate) struct SyncDisk {
    // Dropped in this order: unmounted, detached, removed.
    _mount: Guard,
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
        let path = folder.path().join("mounted");
        std::fs::create_dir(&path)?;
        std::fs::File::create(&image)?.set_len(BYTES)?;
        succeed("mkfs.ext4", &["-q", "-F", &image.to_string_lossy()])?;
        let device = world.promise(Made::Loop(image.clone()))?;
        let attached = super::run("losetup", &["--direct-io=on", "--show", "-f", &image.to_string_lossy()])?;
        let mount = world.promise(Made::Mount(path.clone()))?;
        let how = if synchronous { "sync" } else { "async" };
        succeed("mount", &["-o", how, attached.trim(), &path.to_string_lossy()])?;
        Ok(SyncDisk { _mount: mount, _device: device, _folder: folder, path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}
