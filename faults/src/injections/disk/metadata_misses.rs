//! `disk.metadata-misses`: where blocks lie is told by lists that do not fit into the memory there is.
//!
//! Tried: ext4 without extents and with blocks of 1 KiB, a file of 4 GiB whose lists take 64 MiB, `nodelalloc`, and a group that
//! may have 32 MiB. fio in that group, reading at random places past the page cache, called the device 1.00 times for each op.

use super::*;

const INJECTION: Injection<Disk> = Injection::new("disk.metadata-misses", slower);

pub(super) fn cases() -> Vec<Case> {
    let why = "the lists stayed in memory in spite of a group's limit of half their size, by fio and the device's counters";
    vec![INJECTION.unavailable(&Setup::on(EXT4, "randread"), "block-lists", why)]
}
