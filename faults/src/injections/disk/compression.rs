//! `disk.compression`: btrfs compresses what is written, at a level that is dear, or has to unpack what is read.

use super::*;

pub(super) const INJECTION: Injection<Disk> = Injection::new("disk.compression", slower);

pub(super) fn cases() -> Vec<Case> {
    let btrfs = VolumePlan::of("btrfs", 1024);
    let flushed = |block_bytes| {
        Setup::on(btrfs, "write").load(|work| {
            work.block_bytes = block_bytes;
            work.words = &["--flush", "8"];
        })
    };
    // zlib gives up on what does not shrink within its first 8 KiB: of random data it cost 3 % by fio. Half of these data shrink.
    const HALF_FLUSHED: &[&str] = &["--flush", "8", "--compressibility", "0.5"];
    let half = |op, block_bytes, words: &'static [&'static str]| {
        Setup::on(btrfs, op).load(move |work| {
            work.block_bytes = block_bytes;
            work.words = words;
        })
    };
    let force = |option| move |twin: &mut crate::kinds::disk::DiskTwin| twin.volume.mount = option;
    vec![
        INJECTION.case(&flushed(128 << 10), "zstd15", force("compress-force=zstd:15")),
        INJECTION.case(&half("write", 1 << 20, HALF_FLUSHED), "zlib9", force("compress-force=zlib:9")),
        // Images in memory: what compressing costs is not hidden behind a device that takes as long.
        INJECTION.case(&in_memory(half("randwrite", 64 << 10, HALF_FLUSHED)), "zstd12", force("compress-force=zstd:12")),
        INJECTION.case(
            &in_memory(half("read", 128 << 10, &["--cold", "--compressibility", "0.5"])),
            "zlib3",
            force("compress-force=zlib:3"),
        ),
    ]
}
