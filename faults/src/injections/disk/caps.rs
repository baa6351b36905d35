//! `disk.iops-cap` and `disk.bandwidth-cap`: the device does so many calls per second, or so many bytes, and no more.

use super::*;

pub(super) const CALLS: Injection<Disk> = Injection::new("disk.iops-cap", slower);
pub(super) const BYTES: Injection<Disk> = Injection::new("disk.bandwidth-cap", slower);

pub(super) fn cases() -> Vec<Case> {
    let random = |volume| Setup::on(volume, "randread");
    let written = |volume| Setup::on(volume, "randwrite");
    let wide = |setup: Setup<Disk>| setup.load(|work| work.block_bytes = 64 << 10);
    let cap = |throttle: Throttle| move |twin: &mut crate::kinds::disk::DiskTwin| twin.throttle = throttle;
    let none = Throttle::default();
    let deep = |setup: Setup<Disk>| setup.load(|work| work.words = &["--direct", "--depth", "4"]);
    let in_order = |volume, op, kib: u32| {
        in_memory(Setup::on(volume, op).load(move |work| work.block_bytes = kib << 10))
    };
    vec![
        CALLS.case(&random(EXT4), "500ios", cap(Throttle { read_calls: Some(500), ..none })),
        CALLS.case(&written(XFS), "800ios", cap(Throttle { written_calls: Some(800), ..none })),
        BYTES.case(&wide(random(EXT4)), "20MBps", cap(Throttle { read_bytes: Some(20_000_000), ..none })),
        BYTES.case(&wide(written(XFS)), "30MBps", cap(Throttle { written_bytes: Some(30_000_000), ..none })),
        CALLS.case(&in_memory(deep(random(XFS))), "2000ios", cap(Throttle { read_calls: Some(2000), ..none })),
        CALLS.case(&in_order(EXT4, "write", 4), "1500ios", cap(Throttle { written_calls: Some(1500), ..none })),
        CALLS.case(&in_order(EXT4, "read", 16), "300ios", cap(Throttle { read_calls: Some(300), ..none })),
        BYTES.case(&in_memory(deep(random(EXT4))), "10MBps", cap(Throttle { read_bytes: Some(10_000_000), ..none })),
        BYTES.case(&in_order(XFS, "read", 128), "100MBps", cap(Throttle { read_bytes: Some(100_000_000), ..none })),
        BYTES.case(&in_order(EXT4, "write", 256), "50MBps", cap(Throttle { written_bytes: Some(50_000_000), ..none })),
    ]
}
