//! An image written onto a device, or into a new file: each byte of it, and read back afterwards.
//!
//! On a device neither writes nor reads go through the page cache: what is wrong is then told at its place, and what is read back
//! has been there. Where a call on many sectors fails, each sector is tried, so that a bad place is as small as it is.

use crate::buffer::Buffer;
use crate::device::{Device, Done, mount_of};
use crate::errors::{cannot, shown, why};
use crate::facts::served_from;
use crate::place::{Identity, Place};
use crate::watch::Came;
use crate::work_file::{forget, leads_to};
use crate::{destroy, tell};
use duel_load::{WorkloadError, monotonic_ns};
use duel_model::{Nanos, SECOND_NS, format_bytes};
use rustix::fs::{SeekFrom, ioctl_blksszget, seek};
use rustix::io::{Errno, pread, pwrite};
use std::fs::{self, File, Metadata};
use std::io::{self, Seek};
use std::mem::take;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// What is to be written, and onto what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImagePlan {
    /// The image.
    pub image: PathBuf,
    /// A device, or a file that is not there yet.
    pub onto: PathBuf,
    /// The device whose content may be overwritten, as the user has named it once more.
    pub destroy: Option<PathBuf>,
    /// What becomes of places where the image has a hole.
    pub holes: Holes,
    /// The first byte that is written: what lies before was written by a call that was interrupted.
    pub from: u64,
}

/// What becomes of places where the image has a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holes {
    /// Zeros are written there.
    Zero,
    /// Nothing is: zeros have to be there. Whether they are is seen when all is read back.
    Skip,
}

/// An image that is about to be written.
#[derive(Debug)]
pub struct Image {
    plan: ImagePlan,
    source: File,
    before: Metadata,
    bytes: u64,
    onto: File,
    path: PathBuf,
    is_device: bool,
    /// Calls on a device are of whole sectors.
    sector: u64,
    /// Bytes that were written now, and bytes of all holes that were come by.
    written_bytes: u64,
    hole_bytes: u64,
    bad: Vec<Bad>,
    /// So many sectors failed by themselves.
    failed_calls: usize,
    began_ns: Nanos,
    told_ns: Nanos,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq)]
pub enum ImageEnd {
    /// All was written and read back.
    Done(Written),
    /// It was interrupted.
    Stopped(Stopped),
}

/// How far an interrupted call has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// Everything before this byte is there, but for bad places; `ImagePlan::from` goes on there. 0: nothing is kept.
    pub at: u64,
    /// All was written, and not all was read back.
    pub is_written: bool,
    /// Places that are not as in the image, as far as they are known.
    pub bad: Vec<Bad>,
}

/// What was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// Size of the image.
    pub bytes: u64,
    /// Bytes that were written now: zeros of holes included, sectors that failed not.
    pub written_bytes: u64,
    /// Bytes of all holes of the image.
    pub hole_bytes: u64,
    /// How long writing took until all was on the device, in ns.
    pub write_ns: u64,
    /// How long reading back took, in ns.
    pub read_ns: u64,
    /// Whether what was read back came from the device or from memory, where that is known.
    pub served_from: Option<&'static str>,
    /// Space that a new file takes.
    pub used_bytes: Option<u64>,
    /// Places that are not as in the image.
    pub bad: Vec<Bad>,
}

/// A place that is not as in the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bad {
    /// Where.
    pub place: Range<u64>,
    /// What happened there.
    pub what: String,
}

/// Bytes of a call.
const BLOCK: u64 = 1 << 20;
/// Holes of a device are looked at in pieces of this: to skip less than that saves no time.
const DEVICE_PIECE: u64 = 64 << 10;
/// Holes of a file are left as they are: file systems give out space in pieces of this.
const FILE_PIECE: u64 = 4096;
/// A device with so many bad places is broken. Each sector that fails counts by itself: it may take seconds, neighbours too.
const MOST_BAD: usize = 100;
/// How often it is told how far it has come.
const TELL_EVERY_NS: Nanos = SECOND_NS / 5;
/// Marks of a whole bar.
const BAR: usize = 30;

impl Image {
    /// Opens both, and makes sure that nothing is overwritten that should not be: on a terminal the device's name is asked for.
    ///
    /// # Errors
    ///
    /// What is wrong with them: a sentence for the user. Nothing was written.
    pub fn open(plan: ImagePlan) -> Result<Self, WorkloadError> {
        let image = shown(&plan.image);
        let failed = |error: io::Error| cannot(format!("{image} cannot be read: {}", why(&error)));
        let careful = libc::O_NONBLOCK;
        let source = File::options().read(true).custom_flags(careful).open(&plan.image).map_err(failed)?;
        let before = source.metadata().map_err(failed)?;
        if !before.is_file() {
            return Err(cannot(format!("{image} is no regular file: an image is one")));
        }
        let bytes = before.len();
        if plan.from > bytes || !plan.from.is_multiple_of(DEVICE_PIECE) {
            return Err(cannot(format!(
                "--from {}: it is the byte that an interrupted call has told, a multiple of {DEVICE_PIECE} within the {bytes} bytes \
                 of the image",
                plan.from
            )));
        }
        let began_ns = monotonic_ns();
        let (onto, path, sector) = if fs::symlink_metadata(&plan.onto).is_ok() {
            let named = plan.onto.to_str().ok_or_else(|| cannot(format!("{} is no text", shown(&plan.onto))))?;
            match Place::of(&format!("file:{named}"))? {
                Place::Device(path, identity) => device(&plan, path, identity, bytes)?,
                Place::File(path, identity) if plan.from > 0 && plan.destroy.is_some() => {
                    begun(&plan, path, identity, &before)?
                }
                Place::File(path, _) | Place::Folder(path) => {
                    return Err(cannot(format!(
                        "{} is there already: an image is written onto a device, or into a new file",
                        shown(&path)
                    )));
                }
            }
        } else {
            (new_file(&plan, bytes)?, plan.onto.clone(), None)
        };
        let (is_device, sector) = (sector.is_some(), sector.unwrap_or(1));
        Ok(Self {
            plan,
            source,
            before,
            bytes,
            onto,
            path,
            is_device,
            sector,
            written_bytes: 0,
            hole_bytes: 0,
            bad: Vec::new(),
            failed_calls: 0,
            began_ns,
            told_ns: began_ns,
        })
    }

    /// Writes it, and reads it back.
    ///
    /// # Errors
    ///
    /// The image cannot be read, or was changed meanwhile, or the device is gone: a sentence for the user.
    pub fn write(mut self, stop: &AtomicBool) -> Result<ImageEnd, WorkloadError> {
        let mut buffer = Buffer::new(BLOCK as usize);
        let mut at = 0;
        // What an interrupted call has come by.
        while at < self.plan.from {
            let Piece { place, is_hole } = self.piece(at)?;
            at = place.end.min(self.plan.from);
            self.hole_bytes += if is_hole { at - place.start } else { 0 };
        }
        self.began_ns = monotonic_ns();
        while at < self.bytes {
            if stop.load(Ordering::Relaxed) {
                return self.stopped(at, false);
            }
            let Piece { place, is_hole } = self.piece(at)?;
            let length = place.end - place.start;
            if is_hole {
                self.hole_bytes += length;
                buffer.get_mut()[..length as usize].fill(0);
            } else {
                self.read_image(&mut buffer.get_mut()[..length as usize], at)?;
            }
            let is_left_out = is_hole && self.plan.holes == Holes::Skip;
            if !is_left_out && !self.write_piece(&mut buffer, place.clone(), stop)? {
                return self.stopped(at, false);
            }
            at = place.end;
            self.tell("writing", at, at - self.plan.from);
        }
        self.flush()?;
        let write_ns = monotonic_ns().saturating_sub(self.began_ns);
        let device = if self.is_device {
            Device::at(&self.path)
        } else {
            mount_of(&self.onto).and_then(|on| Device::under(&on))
        };
        let done = || device.as_ref().and_then(Device::done);
        if !self.is_device {
            forget(&self.onto, None);
        }
        let before = done();
        let Some(read_ns) = self.read_back(&mut buffer, stop)? else {
            return self.stopped(self.bytes, true);
        };
        let device = done().zip(before).map(|(now, before)| Done::since(now, before));
        tell::progress("");
        self.is_unchanged()?;
        let used_bytes = (!self.is_device).then(|| self.onto.metadata().ok().map(|seen| seen.blocks() * 512)).flatten();
        let mut bad = take(&mut self.bad);
        bad.sort_by_key(|bad| bad.place.start);
        Ok(ImageEnd::Done(Written {
            bytes: self.bytes,
            written_bytes: self.written_bytes,
            hole_bytes: self.hole_bytes,
            write_ns,
            read_ns,
            served_from: served_from(Came { device, read_bytes: self.bytes }),
            used_bytes,
            bad,
        }))
    }

    /// Ends where everything before this byte was written.
    fn stopped(&mut self, at: u64, is_written: bool) -> Result<ImageEnd, WorkloadError> {
        self.flush()?;
        tell::progress("");
        let at = at / DEVICE_PIECE * DEVICE_PIECE;
        // A file of which nothing is kept would only be in the way when it begins again.
        if at == 0 && !self.is_device && leads_to(&self.path, &self.onto) {
            let removed = fs::remove_file(&self.path);
            removed.map_err(|error| self.failed("removed, after an interruption", &error))?;
        }
        let mut bad = take(&mut self.bad);
        bad.sort_by_key(|bad| bad.place.start);
        Ok(ImageEnd::Stopped(Stopped { at, is_written, bad }))
    }

    /// What comes at this place: data or a hole, up to a whole block.
    fn piece(&self, at: u64) -> Result<Piece, WorkloadError> {
        let unit = if self.is_device { DEVICE_PIECE } else { FILE_PIECE };
        let end = (at + BLOCK).min(self.bytes);
        let found = |to: SeekFrom| match seek(&self.source, to) {
            Ok(place) => Ok(Some(place)),
            // No data behind this place.
            Err(Errno::NXIO) => Ok(None),
            // The file system knows of no holes.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(Some(at)),
            Err(error) => Err(self.unread(at, &error.into())),
        };
        let data = found(SeekFrom::Data(at))?.map_or(end, |data| data / unit * unit);
        if data > at {
            return Ok(Piece { place: at..data.min(end), is_hole: true });
        }
        let hole = found(SeekFrom::Hole(at))?.filter(|hole| *hole > at).map_or(end, |hole| hole.next_multiple_of(unit));
        Ok(Piece { place: at..hole.min(end), is_hole: false })
    }

    fn read_image(&self, memory: &mut [u8], at: u64) -> Result<(), WorkloadError> {
        self.source.read_exact_at(memory, at).map_err(|error| self.unread(at, &error))
    }

    /// Writes what stands at the buffer's beginning; whether it was not interrupted.
    fn write_piece(
        &mut self,
        buffer: &mut Buffer,
        place: Range<u64>,
        stop: &AtomicBool,
    ) -> Result<bool, WorkloadError> {
        let length = place.end - place.start;
        let whole = length.next_multiple_of(self.sector);
        if whole > length {
            // The image ends within a sector: what lies behind it stays.
            let last = whole - self.sector;
            let mut kept = Buffer::new(self.sector as usize);
            self.read_exactly(kept.get_mut(), place.start + last).map_err(|error| self.failed("read", &error))?;
            let begin = (length - last) as usize;
            buffer.get_mut()[length as usize..whole as usize].copy_from_slice(&kept.get()[begin..]);
        }
        if self.write_exactly(&buffer.get()[..whole as usize], place.start).is_ok() {
            self.written_bytes += length;
            return Ok(true);
        }
        // Which of its sectors is it?
        for at in (0..whole).step_by(self.step() as usize) {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let end = (at + self.step()).min(whole);
            if let Err(error) = self.write_exactly(&buffer.get()[at as usize..end as usize], place.start + at) {
                if is_over(&error) {
                    return Err(self.failed(&format!("written at byte {}", place.start + at), &error));
                }
                let place = place.start + at..place.start + end.min(length);
                self.note_failed(place, format!("cannot be written: {}", why(&error)))?;
            } else {
                self.written_bytes += end.min(length) - at;
            }
        }
        Ok(true)
    }

    /// Compares all of it with the image; how long that took. `None`: it was interrupted.
    fn read_back(&mut self, buffer: &mut Buffer, stop: &AtomicBool) -> Result<Option<Nanos>, WorkloadError> {
        self.began_ns = monotonic_ns();
        let mut wanted = vec![0; BLOCK as usize];
        let mut at = 0;
        while at < self.bytes {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let end = (at + BLOCK).min(self.bytes);
            let length = (end - at) as usize;
            self.read_image(&mut wanted[..length], at)?;
            let whole = (length as u64).next_multiple_of(self.sector) as usize;
            match self.read_exactly(&mut buffer.get_mut()[..whole], at) {
                Ok(()) => self.compare(&buffer.get()[..length], &wanted[..length], at)?,
                Err(_) if !self.read_by_sector(buffer, &wanted[..length], at, stop)? => return Ok(None),
                Err(_) => {}
            }
            at = end;
            self.tell("reading back", at, at);
        }
        Ok(Some(monotonic_ns().saturating_sub(self.began_ns)))
    }

    /// The same sector by sector; whether it was not interrupted.
    fn read_by_sector(
        &mut self,
        buffer: &mut Buffer,
        wanted: &[u8],
        at: u64,
        stop: &AtomicBool,
    ) -> Result<bool, WorkloadError> {
        for (number, wanted) in wanted.chunks(self.step() as usize).enumerate() {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let place = at + number as u64 * self.step();
            let whole = (wanted.len() as u64).next_multiple_of(self.sector) as usize;
            match self.read_exactly(&mut buffer.get_mut()[..whole], place) {
                Ok(()) => self.compare(&buffer.get()[..wanted.len()], wanted, place)?,
                Err(error) if is_over(&error) => return Err(self.failed(&format!("read back at byte {place}"), &error)),
                Err(error) => {
                    let end = place + wanted.len() as u64;
                    self.note_failed(place..end, format!("cannot be read back: {}", why(&error)))?;
                }
            }
        }
        Ok(true)
    }

    fn compare(&mut self, read: &[u8], wanted: &[u8], at: u64) -> Result<(), WorkloadError> {
        if read == wanted {
            return Ok(());
        }
        let step = self.step() as usize;
        for (number, (read, wanted)) in read.chunks(step).zip(wanted.chunks(step)).enumerate() {
            if read != wanted {
                let place = at + (number * step) as u64;
                let what = match wanted.iter().all(|byte| *byte == 0) && self.plan.holes == Holes::Skip {
                    true => "is not zero, where the image has zeros: --holes zero writes them",
                    false => "is not what was written",
                };
                self.note(place..place + read.len() as u64, what.to_owned())?;
            }
        }
        Ok(())
    }

    /// Notes a sector that failed by itself.
    fn note_failed(&mut self, place: Range<u64>, what: String) -> Result<(), WorkloadError> {
        let at = place.start;
        self.failed_calls += 1;
        self.note(place, what)?;
        if self.failed_calls > MOST_BAD { Err(self.given_up(at)) } else { Ok(()) }
    }

    /// Notes a bad place; neighbours are one.
    fn note(&mut self, place: Range<u64>, what: String) -> Result<(), WorkloadError> {
        if let Some(last) = self.bad.last_mut().filter(|last| last.place.end == place.start && last.what == what) {
            last.place.end = place.end;
            return Ok(());
        }
        // It could not be written: that it is not what was written says nothing more.
        if self.bad.iter().any(|known| known.place.start <= place.start && place.end <= known.place.end) {
            return Ok(());
        }
        if self.bad.len() == MOST_BAD {
            return Err(self.given_up(place.start));
        }
        self.bad.push(Bad { place, what });
        Ok(())
    }

    fn given_up(&self, at: u64) -> WorkloadError {
        let first = self.bad.first().map_or_else(String::new, |first| {
            format!(", the first at byte {}, which {}", first.place.start, first.what)
        });
        cannot(format!(
            "{} has more than {MOST_BAD} bad places{first}: it was given up at byte {at}",
            shown(&self.path)
        ))
    }

    /// What is tried by itself where a larger call fails.
    fn step(&self) -> u64 {
        self.sector.max(512)
    }

    fn read_exactly(&self, memory: &mut [u8], at: u64) -> io::Result<()> {
        let mut done = 0;
        while done < memory.len() {
            match pread(&self.onto, &mut memory[done..], at + done as u64) {
                Ok(0) => return Err(io::Error::other("it ends there")),
                Ok(read) => done += read,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn write_exactly(&self, memory: &[u8], at: u64) -> io::Result<()> {
        let mut done = 0;
        while done < memory.len() {
            match pwrite(&self.onto, &memory[done..], at + done as u64) {
                Ok(0) => return Err(Errno::NOSPC.into()),
                Ok(written) => done += written,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), WorkloadError> {
        self.onto.sync_all().map_err(|error| self.failed("flushed: not all of it is there", &error))
    }

    fn is_unchanged(&self) -> Result<(), WorkloadError> {
        let now = self.source.metadata().map_err(|error| self.unread(0, &error))?;
        let of = |seen: &Metadata| (seen.len(), seen.mtime(), seen.mtime_nsec());
        if of(&now) == of(&self.before) {
            return Ok(());
        }
        Err(cannot(format!(
            "{} was changed while it was written: what {} holds now is a mixture",
            shown(&self.plan.image),
            shown(&self.path)
        )))
    }

    fn unread(&self, at: u64, error: &io::Error) -> WorkloadError {
        cannot(format!("the image {} cannot be read at byte {at}: {}", shown(&self.plan.image), why(error)))
    }

    fn failed(&self, what: &str, error: &io::Error) -> WorkloadError {
        cannot(format!("{} cannot be {what}: {}", shown(&self.path), why(error)))
    }

    /// Tells how far it has come; so many bytes were done since it began.
    fn tell(&mut self, what: &str, at: u64, done: u64) {
        let now = monotonic_ns();
        if now < self.told_ns {
            return;
        }
        self.told_ns = now + TELL_EVERY_NS;
        let per_s = done as f64 * 1e9 / now.saturating_sub(self.began_ns).max(1) as f64;
        let left_s = (self.bytes - at) as f64 / per_s.max(1.0);
        let full = (at as f64 / self.bytes as f64 * BAR as f64) as usize;
        tell::progress(&format!(
            "{what} [{}{}] {} of {}, {}/s, {left_s:.0} s left",
            "#".repeat(full.min(BAR)),
            ".".repeat(BAR - full.min(BAR)),
            format_bytes(at as f64),
            format_bytes(self.bytes as f64),
            format_bytes(per_s)
        ));
    }
}

/// A stretch of the image.
#[derive(Debug, PartialEq, Eq)]
struct Piece {
    place: Range<u64>,
    is_hole: bool,
}

/// The device, its path and the size of its sectors.
fn device(
    plan: &ImagePlan,
    path: PathBuf,
    identity: Identity,
    bytes: u64,
) -> Result<(File, PathBuf, Option<u64>), WorkloadError> {
    let name = shown(&path);
    let failed = |error: io::Error| cannot(format!("{name} cannot be opened: {}", why(&error)));
    // Before anybody is asked anything.
    let looked_at = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(&path)
        .and_then(|mut file| file.seek(io::SeekFrom::End(0)));
    let room = looked_at.map_err(failed)?;
    if room < bytes {
        return Err(cannot(format!(
            "{name} has {}, and the image {}: it does not fit",
            format_bytes(room as f64),
            format_bytes(bytes as f64)
        )));
    }
    let is_named = |named: &PathBuf| fs::canonicalize(named).is_ok_and(|named| named == path);
    let agreed = destroy::device(&path, identity, plan.destroy.as_ref().is_some_and(is_named))?;
    let onto = agreed.open(File::options().read(true).write(true), libc::O_DIRECT)?;
    if agreed.bytes() < bytes {
        return Err(cannot(format!("{name} was exchanged for something else, which is smaller than the image")));
    }
    let sector = ioctl_blksszget(&onto).map_err(|error| failed(error.into()))?;
    Ok((onto, path, Some(u64::from(sector))))
}

/// A file that is not there yet. Where devices are named a file is a mistake: it would lie in memory.
fn new_file(plan: &ImagePlan, bytes: u64) -> Result<File, WorkloadError> {
    let name = shown(&plan.onto);
    if plan.destroy.is_some() || plan.from > 0 {
        return Err(cannot(format!(
            "{name} does not exist: --destroy names a device that is there, and --from goes on with what an interrupted call has left"
        )));
    }
    let failed = |error: io::Error| cannot(format!("{name} cannot be made: {}", why(&error)));
    let within = plan.onto.parent().filter(|within| !within.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let within = fs::canonicalize(within).map_err(failed)?;
    let folder = File::open(&within).map_err(failed)?;
    let is_of_devices = mount_of(&folder).is_some_and(|mount| mount.file_system == "devtmpfs");
    if within.starts_with("/dev") || is_of_devices {
        return Err(cannot(format!(
            "{name} does not exist, and no file is made in a folder of devices: is the device plugged in, and its name right?"
        )));
    }
    let made = File::options().read(true).write(true).create_new(true).mode(0o600).open(&plan.onto).map_err(failed)?;
    // Holes at the end are a part of it, too.
    let said = made.set_len(bytes);
    said.map_err(|error| cannot(format!("{name} cannot be made as long as the image: {}", why(&error))))?;
    Ok(made)
}

/// A file that an interrupted call has begun: it has the image's length from its beginning on.
fn begun(
    plan: &ImagePlan,
    path: PathBuf,
    identity: Identity,
    source: &Metadata,
) -> Result<(File, PathBuf, Option<u64>), WorkloadError> {
    let failed = |error: io::Error| cannot(format!("{} cannot be opened: {}", shown(&path), why(&error)));
    let is_named = plan.destroy.as_ref().is_some_and(|named| fs::canonicalize(named).is_ok_and(|named| named == path));
    if !is_named {
        return Err(cannot(format!("--destroy has to name {} to go on with it", shown(&path))));
    }
    let careful = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let onto = File::options().read(true).write(true).custom_flags(careful).open(&path).map_err(failed)?;
    let seen = onto.metadata().map_err(failed)?;
    identity.is_that_of(&seen, &path)?;
    destroy::has_one_name(&onto, &path)?;
    if (seen.dev(), seen.ino()) == (source.dev(), source.ino()) {
        return Err(cannot(format!("{} is the image itself", shown(&path))));
    }
    if !seen.is_file() || seen.len() != source.len() {
        return Err(cannot(format!(
            "{} has {} bytes, and the image {}: an interrupted call has not begun it, and it is not overwritten",
            shown(&path),
            seen.len(),
            source.len()
        )));
    }
    Ok((onto, path, None))
}

/// Whether no other place would be any better.
fn is_over(error: &io::Error) -> bool {
    let known = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(known, Some(Errno::NOSPC | Errno::DQUOT | Errno::NODEV | Errno::NXIO | Errno::NOMEDIUM | Errno::ROFS))
}

impl Written {
    /// As text.
    pub fn text(&self, onto: &str) -> String {
        let rate = |bytes: u64, ns: u64| format!("{}/s", format_bytes(bytes as f64 * 1e9 / ns.max(1) as f64));
        let told = |bytes: u64| format_bytes(bytes as f64);
        let seconds = |ns: u64| format!("{:.1} s", ns as f64 / 1e9);
        let mut text = format!(
            "written: {} of {} onto {onto} in {}, {}; holes of the image: {}\n",
            told(self.written_bytes),
            told(self.bytes),
            seconds(self.write_ns),
            rate(self.written_bytes, self.write_ns),
            told(self.hole_bytes)
        );
        let said = if self.bad.is_empty() { "it is the image" } else { "IT IS NOT THE IMAGE" };
        text += &format!(
            "read back: {}, {}, in {}, {}: {said}\n",
            told(self.bytes),
            match self.served_from {
                Some(from) => format!("from {from}"),
                None => "not known whether from the device or from memory".to_owned(),
            },
            seconds(self.read_ns),
            rate(self.bytes, self.read_ns)
        );
        if let Some(used) = self.used_bytes {
            text += &format!("space used: {}\n", told(used));
        }
        for bad in &self.bad {
            text += &format!("{}\n", bad.text());
        }
        text
    }
}

impl Bad {
    fn text(&self) -> String {
        format!("bytes {} to {}: {}", self.place.start, self.place.end - 1, self.what)
    }
}

impl Stopped {
    /// Sentences on what is there, and on how to go on.
    pub fn text(&self, onto: &str) -> Vec<String> {
        let at = self.at;
        let but = if self.bad.is_empty() { "" } else { ", but for bad places" };
        let go_on = format!("the same command with --destroy {onto} --from {at}");
        let mut text = vec![match (self.is_written, at) {
            (_, 0) => format!(
                "interrupted: {onto} is not the image, and nothing of it is to be kept; the same command begins again"
            ),
            (true, _) => {
                format!("interrupted: all of it is on {onto}{but}, and was not read back to its end; {go_on} does that")
            }
            (false, _) => {
                format!(
                    "interrupted: what is before byte {at} is on {onto}{but}, and what is behind it is not; {go_on} goes on there"
                )
            }
        }];
        text.extend(self.bad.iter().map(Bad::text));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image of 300 KiB and a bit: data, a hole, data.
    fn image(folder: &Path) -> PathBuf {
        let path = folder.join("image");
        let file = File::create(&path).unwrap();
        file.write_all_at(&[7; 70_000], 0).unwrap();
        file.write_all_at(&[9; 4_100], 300_000).unwrap();
        path
    }

    fn plan(folder: &Path, holes: Holes) -> ImagePlan {
        let (image, onto) = (image(folder), folder.join("copy"));
        ImagePlan { image, onto, destroy: None, holes, from: 0 }
    }

    fn done(image: Image) -> Written {
        match image.write(&AtomicBool::new(false)).unwrap() {
            ImageEnd::Done(written) => written,
            stopped @ ImageEnd::Stopped(_) => panic!("{stopped:?}"),
        }
    }

    #[test]
    fn a_new_file_is_the_image_with_its_holes_or_without() {
        for holes in [Holes::Zero, Holes::Skip] {
            let folder = tempfile::tempdir().unwrap();
            let plan = plan(folder.path(), holes);
            let written = done(Image::open(plan.clone()).unwrap());
            assert!(fs::read(&plan.image).unwrap() == fs::read(&plan.onto).unwrap() && written.bad.is_empty());
            assert_eq!(written.bytes, 304_100);
            match holes {
                Holes::Zero => assert_eq!(written.written_bytes, written.bytes),
                Holes::Skip => assert_eq!(written.written_bytes + written.hole_bytes, written.bytes),
            }
            let again = Image::open(plan).unwrap_err().to_string();
            assert!(again.contains("there already"), "{again}");
        }
    }

    #[test]
    fn what_is_there_instead_is_told_at_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let plan = ImagePlan { from: 0, ..plan(folder.path(), Holes::Skip) };
        let mut image = Image::open(plan.clone()).unwrap();
        let onto = File::options().write(true).open(&plan.onto).unwrap();
        // Somebody else writes into the hole, which is not written over.
        onto.write_all_at(&[1; 700], 131_072 + 100).unwrap();
        image.is_device = false;
        let written = done(image);
        let places: Vec<(u64, u64)> = written.bad.iter().map(|bad| (bad.place.start, bad.place.end)).collect();
        assert_eq!(places, [(131_072, 132_096)]);
        assert!(written.bad[0].what.contains("--holes zero"), "{}", written.text("x"));
    }

    #[test]
    fn an_interrupted_call_tells_where_to_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let plan = plan(folder.path(), Holes::Zero);
        let end = Image::open(plan.clone()).unwrap().write(&AtomicBool::new(true)).unwrap();
        let ImageEnd::Stopped(stopped) = end else { panic!("{end:?}") };
        assert_eq!(stopped, Stopped { at: 0, is_written: false, bad: Vec::new() });
        assert!(stopped.text("copy")[0].ends_with("the same command begins again") && !plan.onto.exists());
        let on = ImagePlan { from: 65_536, destroy: Some(plan.onto.clone()), ..plan.clone() };
        let gone = Image::open(on.clone()).unwrap_err().to_string();
        assert!(gone.contains("does not exist"), "{gone}");
        Image::open(plan).unwrap();
        // What was said to be there is not.
        let written = done(Image::open(on.clone()).unwrap());
        let places: Vec<(u64, u64)> = written.bad.iter().map(|bad| (bad.place.start, bad.place.end)).collect();
        assert_eq!(places, [(0, 65_536)]);
        assert_eq!(
            (written.bytes - 65_536, written.hole_bytes),
            (written.written_bytes, 225_280),
            "holes of all of it"
        );
        let bad = vec![Bad { place: 512..1024, what: "cannot be written: x".to_owned() }];
        let told = Stopped { at: 65_536, is_written: false, bad }.text("copy");
        assert!(told[0].contains("but for bad places") && told[0].contains("--destroy copy --from 65536"), "{told:?}");
        assert_eq!(told[1], "bytes 512 to 1023: cannot be written: x");
        for from in [7, 1 << 30] {
            assert!(Image::open(ImagePlan { from, ..on.clone() }).unwrap_err().to_string().contains("--from"));
        }
    }

    #[test]
    fn bad_places_that_touch_are_one_and_too_many_end_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut image = Image::open(plan(folder.path(), Holes::Zero)).unwrap();
        for place in [0..512, 512..1024, 2048..2560] {
            image.note(place, "cannot be written: x".to_owned()).unwrap();
        }
        image.note(512..1024, "is not what was written".to_owned()).unwrap();
        assert_eq!(image.bad.iter().map(|bad| bad.place.clone()).collect::<Vec<_>>(), [0..1024, 2048..2560]);
        let all: Result<Vec<()>, _> =
            (4..200).map(|number| image.note(number * 4096..number * 4096 + 512, "x".to_owned())).collect();
        assert!(all.unwrap_err().to_string().contains("more than 100 bad places"));
        // Neighbours that fail are one place, and each of them takes its time.
        image.bad.clear();
        let mut noted = (0..).map(|number| image.note_failed(number * 512..(number + 1) * 512, "x".to_owned()));
        assert_eq!(noted.position(|said| said.is_err()), Some(100));
    }

    #[test]
    fn a_device_that_is_not_there_and_files_of_others_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let plan = plan(folder.path(), Holes::Zero);
        let refused = |plan: ImagePlan| Image::open(plan).unwrap_err().to_string();
        let destroy = Some(plan.onto.clone());
        let said = refused(ImagePlan { destroy: destroy.clone(), ..plan.clone() });
        assert!(said.contains("does not exist") && !plan.onto.exists(), "{said}");
        let onto = PathBuf::from("/dev/duel-has-no-such-device");
        let said = refused(ImagePlan { onto: onto.clone(), ..plan.clone() });
        assert!(said.contains("folder of devices") && !onto.exists(), "{said}");
        // It is somebody's, and not of the image's length.
        fs::write(&plan.onto, "mine").unwrap();
        let said = refused(ImagePlan { destroy, from: 65_536, ..plan.clone() });
        assert!(said.contains("has 4 bytes") && fs::read(&plan.onto).unwrap() == b"mine", "{said}");
        let itself = Some(plan.image.clone());
        let said = refused(ImagePlan { onto: plan.image.clone(), destroy: itself, from: 65_536, ..plan });
        assert!(said.contains("is the image itself"), "{said}");
    }
}
