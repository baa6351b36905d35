//! Seek times and transfer rates, as FreeBSD's `diskinfo -t` tells them: one read after the other, past the page cache.

use crate::buffer::Buffer;
use crate::errors::{cannot, shown, why};
use crate::place::Place;
use crate::schema::{BLOCK, DIRECT, OP, SCHEMA};
use crate::settings::Work;
use crate::target::Target;
use crate::tell;
use duel_load::{WorkloadError, monotonic_ns};
use duel_model::{KindPlan, Nanos, SECOND_NS, format_bytes, format_duration_ns};
use rustix::io::pread;
use std::sync::atomic::{AtomicBool, Ordering};

/// What one row of reads showed.
#[derive(Debug, Clone, PartialEq)]
pub struct Seeks {
    /// What was done.
    pub name: &'static str,
    /// How many reads were made.
    pub reads: u64,
    /// How long one took, in ns: the mean, the median, and the longest.
    pub mean_ns: f64,
    /// The median.
    pub median_ns: u64,
    /// The longest.
    pub most_ns: u64,
}

/// How fast a part of the target is read in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Transfer {
    /// Which part.
    pub name: &'static str,
    /// How much was read.
    pub bytes: u64,
    /// How fast.
    pub bytes_per_s: f64,
}

/// All that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Tables {
    /// What was looked at.
    pub path: String,
    /// How large it is.
    pub bytes: u64,
    /// Bytes of each read of `seeks`.
    pub sector_bytes: u64,
    /// Times of single reads.
    pub seeks: Vec<Seeks>,
    /// Rates of reads in order.
    pub transfers: Vec<Transfer>,
}

/// A read of the seek table: what all devices take.
const SECTOR: u64 = 4096;
/// A read of the transfer table.
const PIECE: u64 = 1 << 20;
/// How much of each part is read: what `diskinfo` reads.
const TRANSFER_BYTES: u64 = 100 << 20;
/// How far a short seek goes: some tracks.
const SHORT_BYTES: u64 = 1 << 20;
/// How much there has to be for the parts to be different ones.
const LEAST_BYTES: u64 = 16 << 20;
/// From when on it is told how far it has come, and how often.
const TELL_EVERY_NS: Nanos = SECOND_NS / 5;

/// Reads a folder's work file, a file or a device in all these ways.
///
/// # Errors
///
/// It cannot be read so, or was interrupted: a sentence for the user.
pub fn tables(address: &str, stop: &AtomicBool) -> Result<Tables, WorkloadError> {
    let settings = [(&OP, "read"), (&DIRECT, "on"), (&BLOCK, "4096")];
    let settings = settings.map(|(param, value)| (param.id(), value.to_owned())).into_iter().collect();
    let work = Work::of(&KindPlan { settings, ..KindPlan::of(&SCHEMA) })?;
    let target = Target::ready(work, Place::of(address)?, 1, 1, stop)?;
    if target.bytes < LEAST_BYTES {
        return Err(cannot(format!(
            "{} has {}; below {} its outside, middle and inside are one place",
            shown(&crate::place::path(address)),
            format_bytes(target.bytes as f64),
            format_bytes(LEAST_BYTES as f64)
        )));
    }
    let mut reader = Reader { target: &target, stop, began_ns: monotonic_ns(), told_ns: monotonic_ns() };
    let seeks = patterns(target.bytes)
        .into_iter()
        .map(|(name, places)| reader.seeks(name, &places))
        .collect::<Result<Vec<_>, _>>()?;
    let bytes = (target.bytes / 4).min(TRANSFER_BYTES) / PIECE * PIECE;
    let last = target.bytes - bytes;
    let transfers = [("outside", 0), ("middle", last / 2 / SECTOR * SECTOR), ("inside", last / SECTOR * SECTOR)]
        .into_iter()
        .map(|(name, begin)| reader.transfer(name, begin, bytes))
        .collect::<Result<Vec<_>, _>>()?;
    tell::progress("");
    let path = shown(&crate::place::path(address));
    Ok(Tables { path, bytes: target.bytes, sector_bytes: SECTOR, seeks, transfers })
}

/// The rows of the seek table: their names, and where each read begins.
fn patterns(bytes: u64) -> Vec<(&'static str, Vec<u64>)> {
    let last = bytes / SECTOR - 1;
    // From one place to another that is so far away, and back; each a little further, so that nothing is read twice.
    let stroke = |from: u64, to: u64, count: u64| -> Vec<u64> {
        (0..count / 2).flat_map(|step| [from + step, to - step]).map(|sector| sector.min(last) * SECTOR).collect()
    };
    let short = (SHORT_BYTES / SECTOR).min(last / 2 / 400).max(1);
    let middle = last / 2;
    vec![
        ("full stroke", stroke(0, last, 250)),
        ("half stroke", stroke(last / 4, last / 4 * 3, 250)),
        ("quarter stroke", stroke(last / 8 * 3, last / 8 * 5, 500)),
        ("short forward", (1..=400).map(|step| (middle + step * short).min(last) * SECTOR).collect()),
        ("short backward", (1..=400).map(|step| middle.saturating_sub(step * short) * SECTOR).collect()),
        ("sequential outer", (0..2048).map(|sector| sector * SECTOR).collect()),
        ("sequential inner", (last - 2047..=last).map(|sector| sector * SECTOR).collect()),
    ]
}

struct Reader<'a> {
    target: &'a Target,
    stop: &'a AtomicBool,
    began_ns: Nanos,
    told_ns: Nanos,
}

impl Reader<'_> {
    fn seeks(&mut self, name: &'static str, places: &[u64]) -> Result<Seeks, WorkloadError> {
        let mut buffer = Buffer::new(SECTOR as usize);
        let mut times_ns = Vec::with_capacity(places.len());
        let began_ns = monotonic_ns();
        for place in places {
            let before = monotonic_ns();
            self.read(&mut buffer, *place)?;
            let now = monotonic_ns();
            times_ns.push(now - before);
            let per_s = times_ns.len() as f64 * 1e9 / (now - began_ns).max(1) as f64;
            self.tell(now, || format!("{name}: {} of {} reads, {per_s:.0}/s", times_ns.len(), places.len()));
        }
        let mean_ns = times_ns.iter().sum::<u64>() as f64 / times_ns.len().max(1) as f64;
        times_ns.sort_unstable();
        let at = |index: usize| times_ns.get(index).copied().unwrap_or(0);
        let (median_ns, most_ns) = (at(times_ns.len() / 2), at(times_ns.len().saturating_sub(1)));
        Ok(Seeks { name, reads: times_ns.len() as u64, mean_ns, median_ns, most_ns })
    }

    fn transfer(&mut self, name: &'static str, begin: u64, bytes: u64) -> Result<Transfer, WorkloadError> {
        let mut buffer = Buffer::new(PIECE as usize);
        let began_ns = monotonic_ns();
        let per_s = |done: u64, now: Nanos| done as f64 * 1e9 / now.saturating_sub(began_ns).max(1) as f64;
        for piece in 0..bytes / PIECE {
            self.read(&mut buffer, begin + piece * PIECE)?;
            let (done, now) = ((piece + 1) * PIECE, monotonic_ns());
            self.tell(now, || {
                let told = |bytes: f64| format_bytes(bytes);
                format!("{name}: {} of {}, {}/s", told(done as f64), told(bytes as f64), told(per_s(done, now)))
            });
        }
        Ok(Transfer { name, bytes, bytes_per_s: per_s(bytes, monotonic_ns()) })
    }

    fn read(&self, buffer: &mut Buffer, place: u64) -> Result<(), WorkloadError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(cannot("interrupted"));
        }
        let wanted = buffer.get().len();
        match pread(&self.target.file, buffer.get_mut(), place) {
            Ok(read) if read == wanted => Ok(()),
            Ok(read) => Err(cannot(format!("a read at byte {place} gave {read} of {wanted} bytes"))),
            Err(error) => Err(cannot(format!("a read at byte {place} failed: {}", why(&error.into())))),
        }
    }

    fn tell(&mut self, now: Nanos, line: impl FnOnce() -> String) {
        if now - self.began_ns >= SECOND_NS && now >= self.told_ns {
            self.told_ns = now + TELL_EVERY_NS;
            tell::progress(&line());
        }
    }
}

impl Tables {
    /// As text.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{}: {}, single reads of {}\n\nSeek times           reads        mean      median     longest\n",
            self.path,
            format_bytes(self.bytes as f64),
            format_bytes(self.sector_bytes as f64)
        );
        for Seeks { name, reads, mean_ns, median_ns, most_ns } in &self.seeks {
            let time = |ns: f64| format_duration_ns(ns);
            let (median, most) = (time(*median_ns as f64), time(*most_ns as f64));
            text += &format!("  {name:<17} {reads:>6}  {:>10}  {median:>10}  {most:>10}\n", time(*mean_ns));
        }
        text += "\nTransfer rates       bytes        rate\n";
        for Transfer { name, bytes, bytes_per_s } in &self.transfers {
            let rate = format!("{}/s", format_bytes(*bytes_per_s));
            text += &format!("  {name:<13} {:>10}  {rate:>10}\n", format_bytes(*bytes as f64));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strokes_go_as_far_as_they_are_called_and_stay_within() {
        let bytes = 1_u64 << 30;
        let patterns = patterns(bytes);
        let reads: Vec<usize> = patterns.iter().map(|(_, places)| places.len()).collect();
        assert_eq!(reads, [250, 250, 500, 400, 400, 2048, 2048]);
        for (name, places) in &patterns {
            assert!(places.iter().all(|place| place + SECTOR <= bytes && place % SECTOR == 0), "{name}");
        }
        let far = |number: usize| patterns[number].1[0].abs_diff(patterns[number].1[1]) as f64 / bytes as f64;
        for (number, share) in [(0, 1.0), (1, 0.5), (2, 0.25)] {
            assert!((far(number) - share).abs() < 0.01, "{number}: {}", far(number));
        }
        assert!(patterns[3].1.is_sorted() && patterns[4].1.is_sorted_by(|a, b| a > b));
        assert_eq!(patterns[6].1.last(), Some(&(bytes - SECTOR)));
    }

    #[test]
    fn even_the_smallest_target_has_all_rows() {
        for (name, places) in patterns(LEAST_BYTES) {
            assert!(places.iter().all(|place| place + SECTOR <= LEAST_BYTES), "{name}");
        }
    }
}
