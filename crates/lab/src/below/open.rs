//! What servers have open while they work, and how their devices read for them.

use crate::kinds;
use duel_model::{KindPlan, Target, sanitize_line};
use duel_process::{OpenFile, ProcessError, ProcessFiles, descendants, open_files};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often is looked: a file that is sent in less time is missed at times, and there are many.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The pause is so many times as long as the look before it at least: this process makes the load, and looks take a tenth of a CPU of it.
const PAUSE_PER_LOOK: u32 = 9;
/// What the reads of a smaller file show is where it lies, and how much of it the device keeps.
const LEAST_FILE_BYTES: u64 = 1 << 20;
/// Of a server's open files so many are kept, the largest.
const MOST_FILES: usize = 32;
/// Generations of processes below the one that was found.
const MOST_GENERATIONS: usize = 4;
/// Pieces that are read: a page at least, and no larger than what systems hand to a device at once.
const BLOCKS: [u64; 2] = [4096, 1 << 20];
/// So many pieces a file has at least, to be read at random places.
const LEAST_PIECES: u64 = 16;
/// Most reads at a time: a server with more keeps any device busy.
const MOST_AT_A_TIME: f64 = 32.0;
/// This part of what a server reads comes from the device under a file that it reads: from a second device no larger part can come.
const LEAST_PART: f64 = 0.5;
/// The unit that the kernel counts a device's bytes in, whatever the device's own is.
const SECTOR_BYTES: u64 = 512;

/// What a server had open, and what the devices under that did meanwhile.
#[derive(Debug, Default)]
pub(super) struct Seen {
    files: BTreeMap<(u64, u64), Arc<OpenFile>>,
    devices: BTreeMap<PathBuf, Device>,
    /// What each process had read from disks when it was looked at last.
    processes: BTreeMap<u32, u64>,
    /// What all of them have read from disks since the first look.
    read_bytes: u64,
}

/// A device since it was first seen under an open file.
#[derive(Debug, Clone, Copy)]
struct Device {
    since: Instant,
    begun: Reads,
    over: Duration,
    done: Reads,
    /// As [`Seen::read_bytes`], then and now.
    server_bytes: [u64; 2],
}

/// Reads of a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Reads {
    number: u64,
    bytes: u64,
    /// Of all reads together.
    time_ms: u64,
}

/// Looks at what a process and those that it has started have open, until `work` is done.
pub(super) fn look_while<T>(pid: u32, work: impl FnOnce() -> T) -> (T, Result<Seen, String>) {
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut seen = Seen::default();
            // So that one look is made however short the work is.
            loop {
                let is_last = is_done.load(Ordering::Relaxed);
                let began = Instant::now();
                seen.look(pid).map_err(|error| error.to_string())?;
                if is_last {
                    return Ok(seen);
                }
                std::thread::park_timeout(LOOK_EVERY.max(PAUSE_PER_LOOK * began.elapsed()));
            }
        });
        let done = work();
        is_done.store(true, Ordering::Relaxed);
        watch.thread().unpark();
        let seen =
            watch.join().unwrap_or_else(|_| Err("it could not be looked at what the server has open".to_owned()));
        (done, seen)
    })
}

impl Seen {
    fn look(&mut self, pid: u32) -> Result<(), ProcessError> {
        let (server, workers) = (ProcessFiles::of(pid), descendants(pid, MOST_GENERATIONS));
        let workers: Vec<ProcessFiles> = workers.into_iter().map(ProcessFiles::of).collect();
        // Of the process itself all has to be seen; its workers come and go.
        let own_bytes = disk_bytes(&server.read("io", "the counts of disk reads")?);
        let own_bytes = own_bytes.ok_or_else(|| ProcessError("what it reads from disks is not told".to_owned()))?;
        let of_worker = |worker: &ProcessFiles| Some((worker.pid(), disk_bytes(&worker.bytes("io").ok()?)?));
        self.count(workers.iter().filter_map(of_worker).chain([(pid, own_bytes)]).collect());
        self.look_at(&server)?;
        for worker in &workers {
            let _ = self.look_at(worker);
        }
        for (folder, device) in &mut self.devices {
            (device.over, device.done) = (device.since.elapsed(), Reads::of(folder).unwrap_or(device.done));
            device.server_bytes[1] = self.read_bytes;
        }
        Ok(())
    }

    /// Adds what the processes have read from disks since the last look.
    fn count(&mut self, now: BTreeMap<u32, u64>) {
        let is_first = self.processes.is_empty();
        for (pid, bytes) in now {
            // Who was not there has read all of it since.
            let before = self.processes.insert(pid, bytes).unwrap_or(if is_first { bytes } else { 0 });
            self.read_bytes = self.read_bytes.saturating_add(bytes.saturating_sub(before));
        }
    }

    fn look_at(&mut self, files: &ProcessFiles) -> Result<(), ProcessError> {
        for found in open_files(files)? {
            if self.wants(found.bytes, found.identity)
                && let Some(file) = found.hold()
            {
                self.keep(file);
            }
        }
        Ok(())
    }

    /// Whether a file is large enough, not known, and larger than one that it would take the place of.
    fn wants(&self, bytes: u64, identity: (u64, u64)) -> bool {
        let has_room = self.files.len() < MOST_FILES || self.smallest().is_some_and(|smallest| smallest.bytes < bytes);
        bytes >= LEAST_FILE_BYTES && has_room && !self.files.contains_key(&identity)
    }

    fn keep(&mut self, file: OpenFile) {
        let read_bytes = self.read_bytes;
        self.devices.entry(file.device.clone()).or_insert_with(|| Device::at(&file.device, read_bytes));
        self.files.insert(file.identity, Arc::new(file));
        if self.files.len() > MOST_FILES
            && let Some(identity) = self.smallest().map(|file| file.identity)
        {
            self.files.remove(&identity);
        }
    }

    fn smallest(&self) -> Option<&Arc<OpenFile>> {
        self.files.values().min_by_key(|file| file.bytes)
    }

    /// The files that the server may have read from: their devices were read as much meanwhile as the server has read, but for a part.
    /// Of the slow side it has to be seen that the server reads at all; what the fast side has in memory tells nothing against a file.
    fn read_from(&self, is_slow: bool) -> impl Iterator<Item = &Arc<OpenFile>> {
        let is_read = move |device: &Device| {
            let [before, now] = device.server_bytes;
            let (by_server, by_all) =
                (now.saturating_sub(before), device.done.bytes.saturating_sub(device.begun.bytes));
            by_all as f64 >= LEAST_PART * by_server as f64 && (by_server > 0 || !is_slow)
        };
        self.files.values().filter(move |file| self.devices.get(&file.device).is_some_and(is_read))
    }

    /// Mean bytes of a read of the device under a file, and reads under way at a time. `None`: it was not read.
    fn manner(&self, file: &OpenFile) -> Option<(f64, f64)> {
        let Device { begun, over, done, .. } = self.devices.get(&file.device)?;
        let reads = done.number.checked_sub(begun.number).filter(|&reads| reads > 0)? as f64;
        let bytes = done.bytes.checked_sub(begun.bytes)? as f64 / reads;
        // By Little's law.
        let at_a_time = done.time_ms.checked_sub(begun.time_ms)? as f64 / (over.as_secs_f64() * 1e3).max(1.0);
        Some((bytes, at_a_time))
    }
}

impl Device {
    fn at(folder: &Path, server_bytes: u64) -> Self {
        let begun = Reads::of(folder).unwrap_or_default();
        Self { since: Instant::now(), begun, over: Duration::ZERO, done: begun, server_bytes: [server_bytes; 2] }
    }
}

impl Reads {
    /// Documentation/block/stat.rst: reads, merged, sectors, ms.
    fn of(folder: &Path) -> Option<Self> {
        Self::told(&fs::read_to_string(folder.join("stat")).ok()?)
    }

    fn told(stat: &str) -> Option<Self> {
        let fields: Vec<u64> = stat.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
        let [number, _, sectors, time_ms, ..] = fields[..] else { return None };
        Some(Self { number, bytes: sectors.checked_mul(SECTOR_BYTES)?, time_ms })
    }
}

/// The bytes in `/proc/PID/io` that were read from disks.
fn disk_bytes(io: &[u8]) -> Option<u64> {
    String::from_utf8_lossy(io).lines().find_map(|line| line.strip_prefix("read_bytes:")?.trim().parse().ok())
}

/// A file of each target that its server may have read from: the largest of the names that all servers have open, and where there is none,
/// the largest of each.
pub(super) fn chosen(
    seen: &[Seen],
    targets: &[Target],
    is_slow: impl Fn(usize) -> bool,
) -> Result<Vec<Arc<OpenFile>>, String> {
    let files: Vec<Vec<&Arc<OpenFile>>> =
        seen.iter().enumerate().map(|(target, seen)| seen.read_from(is_slow(target)).collect()).collect();
    let names = |files: &Vec<&Arc<OpenFile>>| -> BTreeSet<Box<OsStr>> {
        files.iter().filter_map(|file| Some(file.path.file_name()?.into())).collect()
    };
    let common = files.iter().map(names).reduce(|all, names| all.intersection(&names).cloned().collect());
    let largest = |files: &[&Arc<OpenFile>], name: Option<&OsStr>| {
        let files = files.iter().filter(|file| name.is_none() || file.path.file_name() == name);
        files.max_by_key(|file| file.bytes).copied().cloned()
    };
    // By the target that has least of it, so that all have enough.
    let bytes = |name: &OsStr| files.iter().filter_map(|files| Some(largest(files, Some(name))?.bytes)).min();
    let name = common.iter().flatten().max_by_key(|name| bytes(name)).cloned();
    let of_target = |((files, seen), target): ((&Vec<_>, &Seen), &Target)| {
        largest(files, name.as_deref()).ok_or_else(|| not_found(seen, target))
    };
    files.iter().zip(seen).zip(targets).map(of_target).collect()
}

fn not_found(seen: &Seen, target: &Target) -> String {
    let name = sanitize_line(&target.name);
    if seen.files.is_empty() {
        return format!(
            "while it worked, the server of {name} was not seen to have a file of 1 MiB or more open that lies on a device"
        );
    }
    format!(
        "the file that the server of {name} reads was not seen: it read nothing from disks, or not from the devices under its open files"
    )
}

/// Reads as the devices under these files made them for the servers: the larger pieces of all, and the more at a time.
pub(super) fn work(seen: &[Seen], files: &[Arc<OpenFile>]) -> Result<KindPlan, String> {
    let manners: Vec<(f64, f64)> = seen.iter().zip(files).filter_map(|(seen, file)| seen.manner(file)).collect();
    if manners.is_empty() {
        return Err("while the servers worked, the devices under their files read nothing".to_owned());
    }
    let largest = |of: fn(&(f64, f64)) -> f64| manners.iter().map(of).fold(0.0, f64::max);
    let smallest_file = files.iter().map(|file| file.bytes).min().unwrap_or(0);
    let [least, most] = BLOCKS;
    let block = power_below(largest(|manner| manner.0))
        .clamp(least, most.min(power_below((smallest_file / LEAST_PIECES) as f64)));
    let at_a_time = largest(|manner| manner.1).ceil().clamp(1.0, MOST_AT_A_TIME) as u64;
    Ok(kinds::reads_of_files(block, at_a_time))
}

/// The largest power of two that is not above.
fn power_below(number: f64) -> u64 {
    let whole = number as u64;
    if whole == 0 { 0 } else { 1 << whole.ilog2() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, bytes: u64, number: u64) -> OpenFile {
        let held = fs::File::open("/dev/null").unwrap().into();
        OpenFile { held, path: path.into(), bytes, device: "/sys/dev/block/7:0".into(), identity: (1, number) }
    }

    fn seen(files: &[(&str, u64)]) -> Seen {
        let files =
            files.iter().zip(0..).map(|(&(path, bytes), number)| ((1, number), Arc::new(file(path, bytes, number))));
        let devices = BTreeMap::from([("/sys/dev/block/7:0".into(), read(1, 4096, 1))]);
        Seen { files: files.collect(), devices, ..Seen::default() }
    }

    fn targets() -> Vec<Target> {
        ["A", "B"].map(|name| Target { name: name.into(), address: "http://x/".into(), host: None }).into()
    }

    fn read(number: u64, bytes: u64, time_ms: u64) -> Device {
        let (since, done) = (Instant::now(), Reads { number, bytes, time_ms });
        Device { since, begun: Reads::default(), over: Duration::from_secs(1), done, server_bytes: [7, 7 + bytes] }
    }

    #[test]
    fn a_file_that_all_have_open_goes_before_a_larger_one_that_is_one_s_alone() {
        let of = |one: &[(&str, u64)], other: &[(&str, u64)]| {
            let chosen = chosen(&[seen(one), seen(other)], &targets(), |target| target == 1)?;
            Ok::<_, String>(chosen.iter().map(|file| file.path.to_string_lossy().into_owned()).collect::<Vec<_>>())
        };
        let (log, rows) = (("/a/log", 9 << 20), ("/a/rows", 5 << 20));
        assert_eq!(of(&[log, rows], &[("/b/rows", 5 << 20)]).unwrap(), ["/a/rows", "/b/rows"]);
        assert_eq!(of(&[log, rows], &[("/b/x", 5 << 20)]).unwrap(), ["/a/log", "/b/x"]);
        let both = [("/b/log", 9 << 20), ("/b/rows", 5 << 20)];
        assert_eq!(of(&[log, rows], &both).unwrap(), ["/a/log", "/b/log"], "the largest");
        assert!(of(&[log], &[]).unwrap_err().contains("server of B"));
    }

    #[test]
    fn a_file_is_read_only_if_its_device_gave_what_the_server_read() {
        // A and B have a file of one name, and B, the slow one, another one on a device of its own.
        let told = |of_file: [u64; 2], of_other: u64, read_by_b: u64| {
            let (mut one, mut slow) = (seen(&[("/a/rows", 9 << 20)]), seen(&[("/b/rows", 9 << 20)]));
            let other = OpenFile { device: "/sys/dev/block/7:1".into(), ..file("/b/x", 8 << 20, 77) };
            slow.files.insert(other.identity, Arc::new(other));
            let device =
                |bytes: u64, server_bytes: u64| Device { server_bytes: [0, server_bytes], ..read(1, bytes, 1) };
            one.devices.insert("/sys/dev/block/7:0".into(), device(of_file[0], of_file[0]));
            slow.devices.insert("/sys/dev/block/7:0".into(), device(of_file[1], read_by_b));
            slow.devices.insert("/sys/dev/block/7:1".into(), device(of_other, read_by_b));
            let chosen = chosen(&[one, slow], &targets(), |target| target == 1)?;
            Ok::<_, String>(chosen.iter().map(|file| file.path.to_string_lossy().into_owned()).collect::<Vec<_>>())
        };
        let rows = Ok(vec!["/a/rows".to_owned(), "/b/rows".to_owned()]);
        assert_eq!(told([9000, 9000], 0, 9000), rows);
        assert_eq!(told([9000, 4500], 0, 9000), rows, "half of it is enough");
        assert_eq!(told([0, 9000], 0, 9000), rows, "the fast side has it in memory");
        let other = Ok(vec!["/a/rows".to_owned(), "/b/x".to_owned()]);
        assert_eq!(told([9000, 4000], 5000, 9000), other, "it came from the other device");
        assert!(told([9000, 4000], 4000, 9000).unwrap_err().contains("server of B reads was not seen"));
        assert!(told([9000, 9000], 9000, 0).unwrap_err().contains("server of B reads was not seen"), "it read nothing");
    }

    #[test]
    fn what_a_server_s_processes_read_from_disks_is_added_up() {
        let mut seen = Seen::default();
        for (now, sum) in [
            (vec![(1, 500), (2, 70)], 0),
            (vec![(1, 600), (2, 70)], 100),
            (vec![(1, 600), (3, 40)], 140),
            (vec![(1, 601), (2, 5), (3, 40)], 141),
        ] {
            seen.count(now.into_iter().collect());
            assert_eq!(seen.read_bytes, sum);
        }
        assert_eq!(disk_bytes(b"rchar: 9\nread_bytes: 4096\nwrite_bytes: 7\ncancelled_write_bytes: 0\n"), Some(4096));
        assert_eq!(disk_bytes(b"rchar: 9\n"), None);
    }

    #[test]
    fn the_largest_files_are_held_and_no_other_is_opened() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let sizes = || (0..MOST_FILES as u64 + 20).map(|number| LEAST_FILE_BYTES - 10 + number);
        let open: Vec<fs::File> = sizes()
            .map(|bytes| {
                let file = fs::File::create_new(folder.path().join(bytes.to_string())).unwrap();
                file.set_len(bytes).unwrap();
                fs::File::open(folder.path().join(bytes.to_string())).unwrap()
            })
            .collect();
        let mut seen = Seen::default();
        seen.look(std::process::id()).unwrap();
        let held = |seen: &Seen| {
            let ours = seen.files.values().filter(|file| file.path.starts_with(folder.path()));
            ours.map(|file| file.bytes).collect::<BTreeSet<_>>()
        };
        if held(&seen).is_empty() {
            return eprintln!("skipped: {} is on no block device", folder.path().display());
        }
        // Other tests of this process may have a large file open as well.
        let largest: Vec<u64> = sizes().rev().take(held(&seen).len()).collect();
        assert!(largest.iter().all(|bytes| held(&seen).contains(bytes)), "{:?}", held(&seen));
        assert_eq!(seen.files.len(), MOST_FILES);
        let known = seen.files.values().next_back().unwrap();
        assert!(!seen.wants(known.bytes, known.identity), "it is known");
        assert!(!seen.wants(LEAST_FILE_BYTES - 1, (0, 0)), "it is small");
        assert!(!seen.wants(LEAST_FILE_BYTES, (0, 0)) && seen.wants(u64::MAX, (0, 0)), "all others are larger");
        drop(open);
    }

    #[test]
    fn files_are_read_as_their_devices_read_them_for_the_servers() {
        let files: Vec<Arc<OpenFile>> =
            [("/a", 64 << 20), ("/b", 64 << 20)].iter().map(|(path, bytes)| Arc::new(file(path, *bytes, 0))).collect();
        let manner = |one: Option<Device>, other: Option<Device>, files: &[Arc<OpenFile>]| {
            let seen = [one, other].map(|device| {
                let devices = device.map(|device| (PathBuf::from("/sys/dev/block/7:0"), device)).into_iter().collect();
                Seen { devices, ..Seen::default() }
            });
            let value = |work: &KindPlan, name| work.get(work.schema.param(name).unwrap()).to_owned();
            work(&seen, files).map(|work| ["block", "depth"].map(|name| value(&work, name)))
        };
        let whole = read(1000, 1000 * 16_384, 3500);
        let pieces = read(4000, 4000 * 4096, 900);
        assert_eq!(manner(Some(whole), Some(pieces), &files).unwrap(), ["16384", "4"]);
        assert_eq!(manner(None, Some(pieces), &files).unwrap(), ["4096", "1"], "one of them is enough");
        let odd = read(10, 10 * 500, 0);
        assert_eq!(manner(Some(odd), None, &files).unwrap(), ["4096", "1"], "a page at least, and one at a time");
        let huge = read(1, 1 << 30, 900_000);
        assert_eq!(manner(Some(huge), None, &files).unwrap(), ["1048576", "32"]);
        let small = [Arc::new(file("/a", 1 << 20, 0)), Arc::new(file("/b", 64 << 20, 0))];
        assert_eq!(manner(Some(huge), None, &small).unwrap()[0], "65536", "in sixteen pieces at least");
        assert!(manner(None, Some(read(0, 0, 0)), &files).unwrap_err().contains("read nothing"));
    }

    #[test]
    fn what_the_kernel_tells_of_a_device_is_read() {
        let stat = "    1209       3    38752     1000      0        0        0        0        0      900     1000";
        assert_eq!(Reads::told(stat), Some(Reads { number: 1209, bytes: 38752 * 512, time_ms: 1000 }));
        assert_eq!(Reads::told("1209 3"), None);
        assert_eq!(Reads::told(""), None);
    }
}
