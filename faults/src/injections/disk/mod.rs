//! The faults of disks. Their causes may be suspicions only, which the table counts beside what is unknown.

mod drawn;

use super::*;
use crate::kinds::disk::{Disk, DiskArena, DiskTwin};
use crate::world::{Backing, Throttle, VolumePlan};

macro_rules! disks {
    ($($module:ident),* $(,)?) => {
        $(mod $module;)*

        pub(super) fn cases() -> Vec<Case> {
            let mut cases = Vec::new();
            $(cases.extend($module::cases().into_iter().map(where_there_is_such_a_thing));)*
            cases
        }
    };
}

disks!(none, read_ahead, caps, slow_flush, compression, block_size, metadata_misses, slow_spindle);

const EXT4: VolumePlan = VolumePlan::of("ext4", 512);
/// XFS is not made smaller than 300 MB.
const XFS: VolumePlan = VolumePlan::of("xfs", 512);

/// Images in memory: whoever else uses the machine's disk, both are as fast as ever.
fn in_memory(setup: Setup<Disk>) -> Setup<Disk> {
    setup.with("in-memory", |twin| twin.volume.backing = Backing::Memory)
}

/// What has to be installed is looked for, and its lack is told.
fn where_there_is_such_a_thing(mut case: Case) -> Case {
    let maker = case.setup.split('-').nth(1).map(|file_system| format!("mkfs.{file_system}")).unwrap_or_default();
    let missing = [&*maker, "fio", "losetup"].into_iter().find(|program| !crate::world::is_installed(program));
    if let (None, Some(program)) = (&case.unavailable, missing) {
        case.unavailable = Some(format!("{program} is not installed"));
    }
    case
}

/// The healthy one does so many times as many ops per second, by fio.
fn slower(arena: &DiskArena) -> anyhow::Result<Bite> {
    let [healthy, faulty] = arena.samples()?.map(|sample| 1e6 / sample.ops_per_s);
    Ok(Bite::ratio("us per op", (healthy, faulty), 1.3))
}
