//! Nobody's data is overwritten unless they asked for it: twice, where it is a device's.

use crate::device::Device;
use crate::errors::{cannot, shown, why};
use crate::place::Identity;
use crate::settings::Work;
use crate::{signature, tell};
use duel_load::WorkloadError;
use duel_model::format_bytes;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Devices whose names were typed a second time, for one run may prepare its targets several times. Each stays open for us alone
/// until the process ends: nobody can mount it meanwhile.
static AGREED: Mutex<Vec<Agreed>> = Mutex::new(Vec::new());

/// A device whose content may be overwritten: the one that was looked at and agreed upon, open.
#[derive(Debug, Clone)]
pub(crate) struct Agreed {
    path: PathBuf,
    file: Arc<File>,
    bytes: u64,
}

impl Agreed {
    /// Its size when it was agreed upon.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Opens this very device once more, with other flags: its path may lead elsewhere by now.
    ///
    /// # Errors
    ///
    /// It is gone, or has another size.
    pub(crate) fn open(&self, options: &mut OpenOptions, flags: i32) -> Result<File, WorkloadError> {
        let name = shown(&self.path);
        let again = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let failed = |error: io::Error| cannot(format!("{name} cannot be opened: {}", why(&error)));
        let mut opened = options.custom_flags(flags).open(again).map_err(failed)?;
        Identity::of(&self.file.metadata().map_err(failed)?)
            .is_that_of(&opened.metadata().map_err(failed)?, &self.path)?;
        let bytes = opened.seek(SeekFrom::End(0)).map_err(failed)?;
        if bytes != self.bytes {
            return Err(cannot(format!(
                "{name} had {} bytes when it was looked at, and has {bytes} now: nothing was written",
                self.bytes
            )));
        }
        opened.rewind().map_err(failed)?;
        Ok(opened)
    }
}

/// Whether the content of this file may be overwritten.
///
/// # Errors
///
/// It may not: how to say that it may.
pub(crate) fn file(path: &Path, work: &Work) -> Result<(), WorkloadError> {
    if work.may_destroy(path) {
        return Ok(());
    }
    let path = shown(path);
    Err(cannot(format!(
        "{path} is a file of yours, which is only read; --destroy {path} says that its content may be overwritten, and a \
         folder as the target makes a work file for itself"
    )))
}

/// Whether an opened file has no name but this one: the user agreed to what happens to this one only.
///
/// # Errors
///
/// It has several.
pub(crate) fn has_one_name(file: &File, path: &Path) -> Result<(), WorkloadError> {
    let path = shown(path);
    let seen = file.metadata().map_err(|error| cannot(format!("{path} cannot be read: {}", why(&error))))?;
    if seen.nlink() > 1 {
        return Err(cannot(format!(
            "{path} has {} names (hard links), and --destroy tells one of them: it is not overwritten",
            seen.nlink()
        )));
    }
    Ok(())
}

/// Whether the content of this device may be overwritten, which its user has said once by naming it (`is_named`). On a terminal its
/// name is asked for once more.
///
/// # Errors
///
/// It may not, or somebody uses it.
pub(crate) fn device(path: &Path, identity: Identity, is_named: bool) -> Result<Agreed, WorkloadError> {
    let name = shown(path);
    if !is_named {
        return Err(cannot(format!(
            "{name} is a device, which is only read; --destroy {name} says that all that is on it may be overwritten"
        )));
    }
    let known = Device::at(path).ok_or_else(|| cannot(format!("{name} is a device that the system does not know")))?;
    if let Some(user) = known.user() {
        return Err(cannot(format!("{user}: its content is in use, and is not overwritten")));
    }
    let mut agreed = AGREED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_it = |opened: &File| {
        let seen = opened.metadata().map_err(|error| cannot(format!("{name} cannot be read: {}", why(&error))))?;
        identity.is_that_of(&seen, path)
    };
    if let Some(known) = agreed.iter().find(|known| known.path == path) {
        return is_it(&known.file).map(|()| known.clone());
    }
    if !std::io::stdin().is_terminal() {
        return Err(cannot(format!(
            "to overwrite {name} its name has to be typed once more, on a terminal; there is none here, and nothing was written"
        )));
    }
    // Without O_CREAT it means: unless somebody uses it, and nobody else may from now on.
    let opened = File::options().read(true).write(true).custom_flags(libc::O_EXCL | libc::O_NOFOLLOW).open(path);
    let mut opened = opened.map_err(|error| cannot(format!("{name} cannot be overwritten: {}", why(&error))))?;
    is_it(&opened)?;
    let size = opened.seek(SeekFrom::End(0));
    let bytes = size.map_err(|error| cannot(format!("{name} does not tell its size: {}", why(&error))))?;
    let model = known.model().map_or_else(String::new, |model| format!(", {model}"));
    let on_it = match signature::of(&opened) {
        marks if marks.is_empty() => "no partition table and no file system that is known".to_owned(),
        marks => marks.join(", "),
    };
    tell::note(&format!("{name}: {}{model}", format_bytes(bytes as f64)));
    tell::note(&format!("on it: {on_it}"));
    tell::note(&format!("ALL OF IT WILL BE LOST. To go on, type {name}"));
    let mut typed = String::new();
    let read = std::io::stdin().read_line(&mut typed);
    if read.is_err() || typed.trim() != name {
        return Err(cannot(format!("{name} was not typed; nothing was written")));
    }
    let device = Agreed { path: path.to_owned(), file: Arc::new(opened), bytes };
    agreed.push(device.clone());
    Ok(device)
}
