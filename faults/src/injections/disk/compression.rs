//! `disk.compression`: btrfs compresses what is written, at a level that is dear.

use super::*;

const INJECTION: Injection<Disk> = Injection::new("disk.compression", slower);

pub(super) fn cases() -> Vec<Case> {
    let btrfs = VolumePlan::of("btrfs", 1024);
    let flushed = |block_bytes| {
        Setup::on(btrfs, "write").load(|work| {
            work.block_bytes = block_bytes;
            work.words = &["--flush", "8"];
        })
    };
    vec![
        INJECTION.case(&flushed(128 << 10), "zstd15", |twin| twin.volume.mount = "compress-force=zstd:15"),
        INJECTION.case(&flushed(1 << 20), "zlib9", |twin| twin.volume.mount = "compress-force=zlib:9"),
    ]
}
