//! What a target's machine did over the measured slots, and what it said last: the one place where samples are laid over
//! slots.

use duel_model::{
    HostRecord, HostSample, HostSpan, Interruption, KernelLine, MILLISECOND_NS, Run, RunStatus, SlotRole,
};
use std::collections::BTreeMap;

/// A machine between the last sample before the measured slots and the first one after them.
pub(crate) struct Watched<'a> {
    pub(crate) span: HostSpan<'a>,
    /// Every sample in between, both ends included.
    samples: Vec<&'a HostSample>,
    /// Requests to this target that ended well in between, whatever their slot was for, those of run-ups included.
    pub(crate) ops: u64,
}

/// How far the generator's clocks may go apart between two samples. Beyond that its wall clock was set, and which samples
/// lie around the slots is not known.
const CLOCKS_AGREE_NS: u64 = 100 * MILLISECOND_NS;

impl<'a> Watched<'a> {
    /// The machine of a target while all targets were measured; `None` where it was not read around that time.
    pub(crate) fn over_measured_slots(run: &'a Run, target: usize, record: &'a HostRecord) -> Option<Self> {
        let ends_ms = |elapsed_ns: u64| i64::try_from(elapsed_ns.div_ceil(MILLISECOND_NS)).unwrap_or(i64::MAX);
        let measured = || run.slots.iter().filter(|slot| slot.role == SlotRole::Measured);
        let began_ms = measured().map(|slot| slot.started_unix_ms).min()?;
        let ended_ms = measured().map(|slot| slot.started_unix_ms.saturating_add(ends_ms(slot.elapsed_ns))).max()?;
        // A machine that was lost before the end, or read late, tells of a part; ops are counted for that part alone.
        let first = record.samples.iter().rposition(|sample| sample.unix_ms <= began_ms).unwrap_or(0);
        let last = record.samples.iter().position(|sample| sample.unix_ms >= ended_ms);
        let last = last.unwrap_or(record.samples.len().checked_sub(1)?);
        let samples: Vec<&HostSample> = record.samples.get(first..=last)?.iter().collect();
        let (from, to) = (*samples.first()?, *samples.last()?);
        let by_wall_ns = u64::try_from(to.unix_ms.checked_sub(from.unix_ms)?).ok()?.checked_mul(MILLISECOND_NS)?;
        let elapsed_ns = to.arrived_ns.checked_sub(from.arrived_ns)?;
        if elapsed_ns == 0 || by_wall_ns.abs_diff(elapsed_ns) > CLOCKS_AGREE_NS {
            return None;
        }
        let is_between = |from_ms: i64, to_ms: i64| from_ms >= from.unix_ms && to_ms <= to.unix_ms;
        let ops = run.slots.iter().filter(|slot| slot.target == target).filter(|slot| {
            is_between(slot.started_unix_ms, slot.started_unix_ms.saturating_add(ends_ms(slot.elapsed_ns)))
        });
        let ops = ops.map(|slot| slot.tally.ok + slot.tally.ok_in_run_up).sum();
        Some(Self { span: HostSpan::between(from, to), ops, samples })
    }

    /// All counters that either end has, in order.
    pub(crate) fn counters(&self) -> Vec<&'a str> {
        let ends = [self.samples.first(), self.samples.last()];
        let keys = ends.into_iter().flatten().flat_map(|sample| sample.counters.keys());
        let mut keys: Vec<&str> = keys.map(String::as_str).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// The mean of each gauge that every sample has.
    pub(crate) fn gauges(&self) -> BTreeMap<&'a str, f64> {
        let of_all = |key: &str| {
            let values: Option<Vec<f64>> = self.samples.iter().map(|sample| sample.gauges.get(key).copied()).collect();
            Some(values?.iter().sum::<f64>() / self.samples.len() as f64)
        };
        let keys = self.samples.first().into_iter().flat_map(|sample| sample.gauges.keys());
        keys.filter_map(|key| Some((key.as_str(), of_all(key)?))).collect()
    }
}

/// Whether a reading is of one CPU, thread or process of many: the archive has these, a report their sums.
pub(crate) fn is_of_one(key: &str) -> bool {
    let mut parts = key.split('.');
    match (parts.next(), parts.next()) {
        (Some("thread" | "worker"), Some(_)) => true,
        (Some("cpu"), Some(second)) => second.bytes().all(|byte| byte.is_ascii_digit()),
        _ => false,
    }
}

/// The last lines of a machine's kernel log, the oldest first, and whether each came while it was watched (`None`: the
/// line does not tell when it came).
pub(crate) fn last_words(record: &HostRecord, most: usize) -> impl Iterator<Item = (&KernelLine, Option<bool>)> {
    let skipped = record.last_words.len().saturating_sub(most);
    let while_watched = |line: &KernelLine| Some(line.uptime_ns? >= record.watched_from_uptime_ns?);
    record.last_words.iter().skip(skipped).map(move |line| (line, while_watched(line)))
}

/// When a machine was heard of last, in ns since the run began; `None` if it never was.
pub(crate) fn last_heard_ns(run: &Run, record: &HostRecord) -> Option<u64> {
    let since_ms = record.samples.last()?.unix_ms.checked_sub(run.started_unix_ms)?;
    u64::try_from(since_ms).ok()?.checked_mul(MILLISECOND_NS)
}

/// Whether a target stopped answering.
pub(crate) fn died(run: &Run, name: &str) -> bool {
    matches!(&run.status, RunStatus::Interrupted(Interruption::TargetDied { target, .. }) if target == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_of_one_among_many_are_told_apart() {
        for one in ["thread.12.run_ns", "worker.7.cpu_ns", "cpu.0.user_ns", "cpu.127.idle_ns"] {
            assert!(is_of_one(one), "{one}");
        }
        for all in ["cpu.busy_ns", "cpu.switches", "workers.run_ns", "process.cpu_ns", "disk.sda.reads", "cpu", ""] {
            assert!(!is_of_one(all), "{all}");
        }
    }
}
