//! `disk.slow-flush`: flushes are sent to the device and waited for, and on the healthy twin they are not.

use super::*;

pub(super) const INJECTION: Injection<Disk> = Injection::new("disk.slow-flush", verify);

pub(super) fn cases() -> Vec<Case> {
    // The same on the healthy twin alone: its image is in memory, where there is nothing to wait for.
    let safe_at_once = |op, words: &'static [&'static str]| {
        in_memory(Setup::on(VolumePlan { direct_io: false, ..EXT4 }, op).load(move |work| work.words = words))
    };
    let cached = |op| {
        let mut setup = Setup::on(EXT4, op);
        does_not_wait(&mut setup.twin);
        setup
    };
    let on_disk = |twin: &mut DiskTwin| twin.volume.backing = Backing::Disk;
    vec![
        INJECTION.case(&cached("fsync").load(|work| work.words = &[]), "barriers", waits),
        INJECTION.case(&cached("randwrite").load(|work| work.words = &["--flush", "4"]), "barriers", waits),
        INJECTION.case(&safe_at_once("fsync", &[]), "on-disk", on_disk),
        INJECTION.case(&safe_at_once("randwrite", &["--flush", "4"]), "on-disk", on_disk),
        INJECTION.case(&safe_at_once("write", &["--flush", "8"]), "on-disk", on_disk),
    ]
}

/// A device with a cache: writing is as quick as memory, and what is flushed would have to reach the disk below.
pub(super) fn does_not_wait(twin: &mut DiskTwin) {
    twin.volume = VolumePlan { direct_io: false, mount: "barrier=0", ..twin.volume };
}

pub(super) fn waits(twin: &mut DiskTwin) {
    twin.volume.mount = "barrier=1";
}

fn verify(arena: &DiskArena) -> anyhow::Result<Bite> {
    let [healthy, faulty] = arena.samples()?;
    let flushes = Bite::ratio("us per flush", (healthy.flush_us, faulty.flush_us), 1.5);
    Ok(flushes.and(Bite::ratio("us per op", (1e6 / healthy.ops_per_s, 1e6 / faulty.ops_per_s), 1.3)))
}
