//! What a file system does with files, as `bonnie++` tells it: one file written and read in order, by character and by block,
//! and many files made, looked at, read and removed.

use crate::buffer::Buffer;
use crate::device::{Device, Done, mount_of};
use crate::errors::{cannot, shown, why};
use crate::facts::served_from;
use crate::file_set::{FileSet, Hand, Laps};
use crate::place::Place;
use crate::settings::FileWork;
use crate::tell;
use crate::watch::Came;
use crate::work_file::{WorkFile, forget};
use duel_load::{WorkloadError, monotonic_ns};
use duel_model::{Nanos, SECOND_NS, format_bytes, format_count};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rustix::io::{pread, pwrite};
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileTablesPlan {
    /// Size of the one file.
    pub bytes: u64,
    /// Bytes of each of its blocks.
    pub block: u64,
    /// How many files are made.
    pub files: u32,
    /// How large they are; the rows of the table for each size.
    pub file_bytes: Vec<u64>,
    /// How many folders they are in.
    pub folders: u32,
}

/// A row: work on the one file.
#[derive(Debug, Clone, PartialEq)]
pub struct Throughput {
    /// What was done.
    pub name: &'static str,
    /// Calls that read or wrote.
    pub ops: u64,
    /// Bytes that were read or written; what was rewritten counts once.
    pub bytes: u64,
    /// How long that took, what was written being on the device at the end, in ns.
    pub took_ns: u64,
    /// CPU time of the thread, in ns.
    pub cpu_ns: u64,
    /// Where reads came from, as far as the device's counters tell.
    pub served_from: Option<&'static str>,
}

/// A row: work on many files.
#[derive(Debug, Clone, PartialEq)]
pub struct FileRate {
    /// Whether files were named and gone through in order, or at random.
    pub order: &'static str,
    /// What was done.
    pub name: &'static str,
    /// How large each file was.
    pub file_bytes: u64,
    /// How many there were.
    pub files: u64,
    /// How long all of them took, what was made or removed being so on the device at the end, in ns.
    pub took_ns: u64,
    /// CPU time of the thread, in ns.
    pub cpu_ns: u64,
    /// Whether what was read came from the device or from memory, where that is known.
    pub served_from: Option<&'static str>,
}

/// All that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct FileTables {
    /// The folder.
    pub path: String,
    /// What was done.
    pub plan: FileTablesPlan,
    /// Work on the one file.
    pub throughputs: Vec<Throughput>,
    /// Work on many files.
    pub rates: Vec<FileRate>,
}

/// How long rows may take that would not end by themselves in reasonable time, or at all: single characters, and blocks at random.
const PATIENCE_NS: Nanos = 2 * SECOND_NS;
/// Of blocks at random, as many are written back: what `bonnie++` does.
const REWRITTEN_SHARE: f64 = 0.1;
/// From when on it is told how far it has come, and how often.
const TELL_EVERY_NS: Nanos = SECOND_NS / 5;
/// How many characters are read or written between two looks at the clock.
const CHARACTERS: u64 = 512;

/// Does all of that in a folder.
///
/// # Errors
///
/// It cannot be done, or was interrupted: a sentence for the user. Nothing is left behind.
pub fn file_tables(folder: &str, plan: &FileTablesPlan, stop: &AtomicBool) -> Result<FileTables, WorkloadError> {
    let Place::Folder(within) = Place::of(folder)? else {
        return Err(cannot(format!("{} is no folder: files are made there", shown(&crate::place::path(folder)))));
    };
    crate::target::tell_of_left_behind(&within);
    let throughputs = OneFile::make(&within, plan, stop)?.rows()?;
    let mut rates = Vec::new();
    for bytes in &plan.file_bytes {
        for is_random in [false, true] {
            let block = plan.block;
            let work = FileWork { files: plan.files, folders: plan.folders, bytes: *bytes, block, is_random };
            rates.extend(many_files(&within, work, stop)?);
        }
    }
    tell::progress("");
    Ok(FileTables { path: shown(&within), plan: plan.clone(), throughputs, rates })
}

/// The one file, and what is done with it.
struct OneFile<'a> {
    made: WorkFile,
    file: File,
    device: Option<Device>,
    plan: &'a FileTablesPlan,
    buffer: Buffer,
    round: u64,
    stop: &'a AtomicBool,
}

/// What is done with blocks or characters one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Write,
    Rewrite,
    Read,
}

impl<'a> OneFile<'a> {
    fn make(within: &Path, plan: &'a FileTablesPlan, stop: &'a AtomicBool) -> Result<Self, WorkloadError> {
        let made = WorkFile::empty(within, plan.bytes)?;
        let identity = made.identity()?;
        let unread = |error: io::Error| cannot(format!("{} cannot be opened: {}", shown(&made.path), why(&error)));
        let file = File::options().read(true).write(true).open(&made.path).map_err(unread)?;
        identity.is_that_of(&file.metadata().map_err(unread)?, &made.path)?;
        let device = mount_of(&file).as_ref().and_then(Device::under);
        let buffer = Buffer::new(plan.block as usize);
        Ok(Self { made, file, device, plan, buffer, round: 0, stop })
    }

    fn rows(mut self) -> Result<Vec<Throughput>, WorkloadError> {
        Ok(vec![
            self.row("write, by character", |this, row| this.characters(Way::Write, row))?,
            self.row("write, by block", |this, row| this.blocks(Way::Write, row))?,
            self.row("rewrite, by block", |this, row| this.blocks(Way::Rewrite, row))?,
            self.row("read, by character", |this, row| this.characters(Way::Read, row))?,
            self.row("read, by block", |this, row| this.blocks(Way::Read, row))?,
            self.row("random blocks", Self::random)?,
        ])
    }

    fn row(
        &mut self,
        name: &'static str,
        work: impl FnOnce(&mut Self, &mut Running) -> Result<(), WorkloadError>,
    ) -> Result<Throughput, WorkloadError> {
        forget(&self.file, None);
        let before = self.device.as_ref().and_then(Device::done);
        let mut running = Running::new(name);
        work(self, &mut running)?;
        if running.writes {
            // What is still in memory has not been written.
            self.file.sync_data().map_err(|error| self.failed("flush", 0, &error))?;
        }
        let (took_ns, cpu_ns) = running.since();
        let device =
            self.device.as_ref().and_then(Device::done).zip(before).map(|(now, before)| Done::since(now, before));
        let served_from = served_from(Came { device, read_bytes: running.read_bytes });
        let Running { ops, bytes, .. } = running;
        Ok(Throughput { name, ops, bytes, took_ns, cpu_ns, served_from })
    }

    /// One call for each byte.
    fn characters(&mut self, way: Way, running: &mut Running) -> Result<(), WorkloadError> {
        let mut done = 0;
        while done < self.plan.bytes && running.since().0 < PATIENCE_NS {
            self.goes_on(running, done)?;
            let bytes = CHARACTERS.min(self.plan.bytes - done);
            let block = &mut self.buffer.get_mut()[..bytes as usize];
            match way {
                Way::Read => {
                    for (at, byte) in block.iter_mut().enumerate() {
                        let place = done + at as u64;
                        let said = pread(&self.file, std::slice::from_mut(byte), place);
                        is_whole(said, 1).map_err(|error| failed(&self.made, "read", place, &error))?;
                    }
                    self.made.content.check(block, done).map_err(cannot)?;
                    running.read_bytes += bytes;
                }
                Way::Write | Way::Rewrite => {
                    self.made.content.fill(block, done, self.round);
                    for (at, byte) in block.iter().enumerate() {
                        let place = done + at as u64;
                        let said = pwrite(&self.file, std::slice::from_ref(byte), place);
                        is_whole(said, 1).map_err(|error| failed(&self.made, "write", place, &error))?;
                    }
                    running.writes = true;
                }
            }
            done += bytes;
            running.count(bytes, bytes);
        }
        Ok(())
    }

    fn blocks(&mut self, way: Way, running: &mut Running) -> Result<(), WorkloadError> {
        let block = self.plan.block;
        for number in 0..self.plan.bytes / block {
            self.goes_on(running, number * block)?;
            self.block(way, number * block, running)?;
        }
        Ok(())
    }

    fn random(&mut self, running: &mut Running) -> Result<(), WorkloadError> {
        let (block, mut random) = (self.plan.block, Pcg64Mcg::seed_from_u64(1));
        while running.since().0 < PATIENCE_NS {
            self.goes_on(running, 0)?;
            let place = random.random_range(0..self.plan.bytes / block) * block;
            let way = if random.random_bool(REWRITTEN_SHARE) { Way::Rewrite } else { Way::Read };
            self.block(way, place, running)?;
        }
        Ok(())
    }

    fn block(&mut self, way: Way, place: u64, running: &mut Running) -> Result<(), WorkloadError> {
        let block = self.buffer.get().len();
        if way != Way::Write {
            let said = pread(&self.file, self.buffer.get_mut(), place);
            is_whole(said, block).map_err(|error| self.failed("read", place, &error))?;
            self.made.content.check(self.buffer.get(), place).map_err(cannot)?;
            running.read_bytes += block as u64;
        }
        if way != Way::Read {
            self.round += 1;
            self.made.content.fill(self.buffer.get_mut(), place, self.round);
            let said = pwrite(&self.file, self.buffer.get(), place);
            is_whole(said, block).map_err(|error| self.failed("write", place, &error))?;
            running.writes = true;
        }
        running.count(1, block as u64);
        Ok(())
    }

    fn goes_on(&self, running: &mut Running, place: u64) -> Result<(), WorkloadError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(cannot("interrupted"));
        }
        running.tell(|running, took_ns| {
            let per_s = format_bytes(running.bytes as f64 * 1e9 / took_ns as f64);
            format!(
                "{}: at {} of {}, {per_s}/s",
                running.name,
                format_bytes(place as f64),
                format_bytes(self.plan.bytes as f64)
            )
        });
        Ok(())
    }

    fn failed(&self, what: &str, place: u64, error: &io::Error) -> WorkloadError {
        failed(&self.made, what, place, error)
    }
}

fn failed(made: &WorkFile, what: &str, place: u64, error: &io::Error) -> WorkloadError {
    cannot(format!("a {what} at byte {place} of {} failed: {}", shown(&made.path), why(error)))
}

fn is_whole(said: rustix::io::Result<usize>, wanted: usize) -> io::Result<()> {
    match said? {
        done if done == wanted => Ok(()),
        done => Err(io::Error::other(format!("{done} of {wanted} bytes"))),
    }
}

/// What a row has come to.
struct Running {
    name: &'static str,
    ops: u64,
    bytes: u64,
    read_bytes: u64,
    writes: bool,
    began_ns: Nanos,
    cpu_began_ns: Nanos,
    told_ns: Nanos,
}

impl Running {
    fn new(name: &'static str) -> Self {
        let began_ns = monotonic_ns();
        let (cpu_began_ns, told_ns) = (cpu_ns(), began_ns + SECOND_NS);
        Self { name, ops: 0, bytes: 0, read_bytes: 0, writes: false, began_ns, cpu_began_ns, told_ns }
    }

    fn count(&mut self, ops: u64, bytes: u64) {
        self.ops += ops;
        self.bytes += bytes;
    }

    /// Time since it began, and CPU time of this thread.
    fn since(&self) -> (Nanos, Nanos) {
        (monotonic_ns().saturating_sub(self.began_ns).max(1), cpu_ns().saturating_sub(self.cpu_began_ns))
    }

    fn tell(&mut self, line: impl FnOnce(&Self, Nanos) -> String) {
        let now = monotonic_ns();
        if now >= self.told_ns {
            self.told_ns = now + TELL_EVERY_NS;
            tell::progress(&line(self, now.saturating_sub(self.began_ns).max(1)));
        }
    }
}

/// CPU time of this thread.
fn cpu_ns() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * SECOND_NS + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Makes, looks at, reads and removes files, all of them each time.
fn many_files(within: &Path, work: FileWork, stop: &AtomicBool) -> Result<Vec<FileRate>, WorkloadError> {
    let set = FileSet::make(within, work, 0.0, false, stop)?;
    let mut hand = Hand::new(&set);
    let device = set.folder().ok().and_then(mount_of).and_then(|mount| Device::under(&mount));
    let done = || device.as_ref().and_then(Device::done);
    let mut made: Vec<u32> = (0..work.files).collect();
    let order = if work.is_random { "at random" } else { "in order" };
    let names: [&'static str; 4] = ["create", "stat", "read", "unlink"];
    let mut rates = Vec::new();
    for name in names {
        if work.is_random {
            let mut random = Pcg64Mcg::seed_from_u64(u64::from(work.files));
            for last in (1..made.len()).rev() {
                made.swap(last, random.random_range(0..=last));
            }
        }
        let failed = |error: io::Error| cannot(format!("{name} of files in {} failed: {}", shown(within), why(&error)));
        match name {
            // What others have in memory is not to be paid for by this row.
            "create" => set.flush().map_err(failed)?,
            // All of it is on the device since `create`.
            "read" => made.iter().try_for_each(|number| hand.forget(&set, *number)).map_err(failed)?,
            _ => {}
        }
        let before = done();
        let mut running = Running::new(name);
        let mut laps = Laps::new(0);
        for number in &made {
            if stop.load(Ordering::Relaxed) {
                return Err(cannot("interrupted"));
            }
            match name {
                "create" => drop(hand.create(&set, *number, false, &mut laps).map_err(failed)?),
                "stat" => drop(hand.stat(&set, *number, &mut laps).map_err(failed)?),
                "read" => hand.read(&set, *number, &mut laps).map_err(failed)?.1.map_err(cannot)?,
                _ => hand.unlink(&set, *number, &mut laps).map_err(failed)?,
            }
            running.count(1, work.bytes);
            running.tell(|running, took_ns| {
                let per_s = running.ops as f64 * 1e9 / took_ns as f64;
                format!("{name}, files {order}: {} of {}, {per_s:.0}/s", running.ops, work.files)
            });
        }
        if matches!(name, "create" | "unlink") {
            // What is still in memory has not been done.
            set.flush().map_err(failed)?;
        }
        let (took_ns, cpu_ns) = running.since();
        let read_bytes = if name == "read" { work.bytes * running.ops } else { 0 };
        let device = done().zip(before).map(|(now, before)| Done::since(now, before));
        let served_from = served_from(Came { device, read_bytes });
        rates.push(FileRate { order, name, file_bytes: work.bytes, files: running.ops, took_ns, cpu_ns, served_from });
    }
    Ok(rates)
}

impl Throughput {
    /// Bytes per second.
    pub fn bytes_per_s(&self) -> f64 {
        self.bytes as f64 * 1e9 / self.took_ns as f64
    }

    /// Reads and writes per second.
    pub fn per_s(&self) -> f64 {
        self.ops as f64 * 1e9 / self.took_ns as f64
    }
}

impl FileRate {
    /// Files per second.
    pub fn per_s(&self) -> f64 {
        self.files as f64 * 1e9 / self.took_ns as f64
    }
}

impl FileTables {
    /// As text.
    pub fn text(&self) -> String {
        let FileTablesPlan { bytes, block, files, folders, .. } = self.plan;
        let mut text = format!(
            "{}: a file of {} in blocks of {}, and {} files in {}\n\n",
            self.path,
            format_bytes(bytes as f64),
            format_bytes(block as f64),
            format_count(u64::from(files)),
            if folders == 1 {
                "one folder".to_owned()
            } else {
                format!("{} folders", format_count(u64::from(folders)))
            }
        );
        let mut rows = vec![["One file", "bytes", "rate", "ops", "CPU", "reads came from"].map(str::to_owned)];
        rows.extend(self.throughputs.iter().map(|row| {
            [
                format!("  {}", row.name),
                format_bytes(row.bytes as f64),
                format!("{}/s", format_bytes(row.bytes_per_s())),
                format!("{}/s", format_count(row.per_s().round() as u64)),
                percent(row.cpu_ns, row.took_ns),
                row.served_from.unwrap_or("-").to_owned(),
            ]
        }));
        text += &in_columns(&rows);
        let mut rows = vec![["Many files", "file size", "create", "stat", "read", "unlink", ""].map(str::to_owned)];
        for of_size in self.rates.chunks(4) {
            let [first, ..] = of_size else { continue };
            let cells = |tell: fn(&FileRate) -> String| {
                let mut cells = of_size.iter().map(tell);
                [(); 4].map(|()| cells.next().unwrap_or_default())
            };
            let from = of_size.iter().find_map(|row| row.served_from);
            let from = from.map_or_else(String::new, |from| format!("read from {from}"));
            let size = format_bytes(first.file_bytes as f64);
            let [create, stat, read, unlink] = cells(|row| format!("{}/s", format_count(row.per_s().round() as u64)));
            rows.push([format!("  {}", first.order), size, create, stat, read, unlink, from]);
            let [create, stat, read, unlink] = cells(|row| percent(row.cpu_ns, row.took_ns));
            rows.push(["    CPU".to_owned(), String::new(), create, stat, read, unlink, String::new()]);
        }
        text.push('\n');
        text + &in_columns(&rows)
    }
}

/// Rows below each other, the head first: names and what stands last begin together, figures end together.
fn in_columns<const N: usize>(rows: &[[String; N]]) -> String {
    let widths: [usize; N] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| match column {
            0 => format!("{cell:<width$}"),
            last if last + 1 == N => format!("  {cell}"),
            _ => format!("  {cell:>width$}"),
        });
        text += cells.collect::<String>().trim_end();
        text.push('\n');
    }
    text
}

/// CPU time of all time.
fn percent(cpu_ns: u64, took_ns: u64) -> String {
    format!("{:.0} %", 100.0 * cpu_ns as f64 / took_ns.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn heads_end_where_their_figures_end_however_large_these_are() {
        let one = |name, bytes: u64, ops| Throughput {
            name,
            ops,
            bytes,
            took_ns: SECOND_NS,
            cpu_ns: 790_000_000,
            served_from: None,
        };
        let many = |name, files| FileRate {
            name,
            order: "in order",
            file_bytes: 0,
            files,
            took_ns: 1_000_000,
            cpu_ns: 1_000_000,
            served_from: None,
        };
        let tables = FileTables {
            path: "/mnt".to_owned(),
            plan: FileTablesPlan { bytes: 1 << 24, block: 8192, files: 500, file_bytes: vec![0], folders: 1 },
            throughputs: vec![one("write, by character", 3_140_000, 1_566_587), one("random blocks", 4_240_000_000, 5)],
            rates: vec![many("create", 40), many("stat", 1_111_111), many("read", 236), many("unlink", 48)],
        };
        assert_eq!(
            tables.text(),
            "\
/mnt: a file of 16.8 MB in blocks of 8.19 kB, and 500 files in one folder

One file                 bytes       rate          ops   CPU  reads came from
  write, by character  3.14 MB  3.14 MB/s  1,566,587/s  79 %  -
  random blocks        4.24 GB  4.24 GB/s          5/s  79 %  -

Many files  file size    create             stat       read    unlink
  in order        0 B  40,000/s  1,111,111,000/s  236,000/s  48,000/s
    CPU                   100 %            100 %      100 %     100 %
"
        );
    }

    #[test]
    fn all_rows_are_there_and_nothing_is_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let plan = FileTablesPlan { bytes: 1 << 20, block: 8192, files: 30, file_bytes: vec![0, 3000], folders: 2 };
        let tables = file_tables(folder.path().to_str().unwrap(), &plan, &AtomicBool::new(false)).unwrap();
        let of = |name: &str| tables.throughputs.iter().find(|row| row.name == name).unwrap();
        for name in ["write, by block", "rewrite, by block", "read, by block"] {
            assert_eq!((of(name).bytes, of(name).ops), (1 << 20, 128), "{name}");
        }
        assert_eq!(of("read, by character").ops, of("read, by character").bytes);
        let rates: Vec<(&str, &str, u64, u64)> =
            tables.rates.iter().map(|row| (row.order, row.name, row.file_bytes, row.files)).collect();
        assert_eq!(rates.len(), 2 * 2 * 4);
        assert_eq!(rates[0], ("in order", "create", 0, 30));
        assert_eq!(rates[15], ("at random", "unlink", 3000, 30));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let text = tables.text();
        assert!(text.contains("random blocks") && text.lines().count() == 19, "{text}");
    }

    #[test]
    fn an_interruption_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let plan = FileTablesPlan { bytes: 1 << 20, block: 8192, files: 30, file_bytes: vec![0], folders: 1 };
        let said = file_tables(folder.path().to_str().unwrap(), &plan, &AtomicBool::new(true)).unwrap_err();
        assert!(said.to_string().contains("interrupted"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
