//! What reading the servers' files by ourselves does on either side.

use crate::cause::Standing;
use crate::evidence::device::{AT_THE_LIMIT, PerOp, setting};
use crate::gap::Gap;
use duel_model::{format_bytes, format_count};

/// Nearly all that is read has to come from the device: holes and what was never written are answered without it, as is what a cache
/// has. By bytes, since a read that is cut in two pieces reaches it twice.
const FROM_DEVICE: f64 = 0.9;
/// On both sides the same part of it, or nearly: one more byte in ten may be what tells where a file's blocks lie.
const ALIKE: f64 = 1.1;
/// So many times as many reads of the device for one of ours: two pieces in half of all are this.
const MORE_PER_READ: f64 = 1.5;

/// What reading a side's file does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Reads {
    pub(crate) bytes_per_s: f64,
    /// Of ours, per second, each of so many bytes, so many at a time.
    per_s: f64,
    bytes: f64,
    at_a_time: u32,
    /// Of the device, for one of ours.
    of_device: f64,
    /// Bytes of the device, for one of ours.
    from_device: f64,
}

impl Reads {
    /// How much of what was read came from the device.
    fn told_origin(self, name: &str) -> String {
        format!("for 100 bytes that duel reads of {name}'s file its device reads {:.0}", 100.0 * self.from_device)
    }

    /// Both sides' in a sentence, slow side first.
    pub(crate) fn compared([slow, fast]: [Self; 2], [slow_name, fast_name]: [&str; 2]) -> String {
        let per_s = |reads: Self| format_count(reads.per_s.round() as u64);
        let at_a_time = if slow.at_a_time > 1 { format!(", {} at a time", slow.at_a_time) } else { String::new() };
        let mut text = format!(
            "Of reads of {} at random places{at_a_time}, {slow_name}'s file takes {} per second, {fast_name}'s {}.",
            format_bytes(slow.bytes),
            per_s(slow),
            per_s(fast)
        );
        if slow.of_device > MORE_PER_READ * fast.of_device {
            text.push_str(&format!(
                " For each of them {slow_name}'s device is read {:.1} times, {fast_name}'s {:.1} times.",
                slow.of_device, fast.of_device
            ));
        }
        text
    }
}

/// What was read on either side, slow side first.
pub(crate) fn reads(gap: &Gap<'_>, below: &Gap<'_>) -> Result<[Reads; 2], Standing> {
    let open = |why: String| Standing::Undecided(gap.not_measured(why));
    let bytes = setting(below, "block").and_then(|bytes| bytes.parse::<f64>().ok());
    let at_a_time = below.case.plan.lanes();
    let view = &below.comparison;
    let sides = [(gap.slow, view.slow), (gap.fast, view.fast)].map(|(side, seen)| {
        let (Some(bytes), Some(per_s), Some(done)) = (bytes, seen.rate_per_s, PerOp::of(seen)) else {
            return Err(open(format!("what the device under {} did is not known", gap.name(side))));
        };
        let from_device = done.read_bytes / bytes;
        let reads = Reads { bytes_per_s: per_s * bytes, per_s, bytes, at_a_time, of_device: done.reads, from_device };
        if from_device >= FROM_DEVICE { Ok(reads) } else { Err(open(reads.told_origin(&gap.name(side)))) }
    });
    let [slow, fast] = sides;
    let [slow, fast] = [slow?, fast?];
    let [less, more] = [slow.from_device.min(fast.from_device), slow.from_device.max(fast.from_device)];
    if more > ALIKE * less {
        let told = [(slow, gap.slow_name()), (fast, gap.fast_name())].map(|(reads, name)| reads.told_origin(&name));
        return Err(open(told.join("; ")));
    }
    Ok([slow, fast])
}

/// That duel's own control group holds its reads of the slow side back, where it does: the server's may have another limit, or none.
pub(crate) fn held_back(gap: &Gap<'_>, below: &Gap<'_>, slow: Reads) -> Option<String> {
    let reaches =
        |name: &str, per_s: f64| below.count(below.slow, name).filter(|limit| per_s >= AT_THE_LIMIT * *limit as f64);
    let bytes = reaches("disk.limit_read_bytes_per_s", slow.per_s * slow.from_device * slow.bytes)
        .map(|limit| format_bytes(limit as f64));
    let limit = bytes.or_else(|| {
        reaches("disk.limit_reads_per_s", slow.per_s * slow.of_device)
            .map(|limit| format!("{} reads", format_count(limit)))
    })?;
    let name = gap.slow_name();
    Some(format!(
        "duel's own control group lets it have {limit} per second of the device under {name}, and that is what duel had: the server's group \
         may have another limit"
    ))
}
