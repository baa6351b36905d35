//! `disk.block-size`: the file system's unit is larger than what is read.

use super::*;

pub(super) const INJECTION: Injection<Disk> = Injection::new("disk.block-size", verify);

pub(super) fn cases() -> Vec<Case> {
    // Both devices move as many bytes per second, so that bytes are what counts.
    let cached = || {
        Setup::on(XFS, "randread").load(|work| work.words = &["--cold"]).with("both-20MBps", |twin| {
            twin.throttle = Throttle { read_bytes: Some(20_000_000), ..Throttle::default() };
        })
    };
    // Nothing is capped: the bytes themselves take the time.
    let uncapped = |op, words: &'static [&'static str]| {
        in_memory(Setup::on(XFS, op).load(move |work| work.words = words))
    };
    vec![
        INJECTION.case(&cached(), "64k", |twin| twin.volume.make = &["-b", "size=65536"]),
        INJECTION.case(&uncapped("randwrite", &["--cold", "--flush", "1"]), "64k", |twin| {
            twin.volume.make = &["-b", "size=65536"];
        }),
        INJECTION.case(&in_memory(cached()), "32k", |twin| twin.volume.make = &["-b", "size=32768"]),
        INJECTION.case(&cached(), "16k", |twin| twin.volume.make = &["-b", "size=16384"]),
    ]
}

/// The device moves at least twice as many bytes for each op.
fn verify(arena: &DiskArena) -> anyhow::Result<Bite> {
    let [healthy, faulty] = arena.samples()?;
    let moved = (healthy.device_bytes_per_op, faulty.device_bytes_per_op);
    Ok(Bite::ratio("bytes moved per op", moved, 2.0)
        .and(Bite::ratio("us per op", (1e6 / healthy.ops_per_s, 1e6 / faulty.ops_per_s), 1.3)))
}
