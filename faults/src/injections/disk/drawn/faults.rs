//! Faults of the catalogue, and how strong they are drawn.

use super::*;

pub(super) const ALL: &[Drawable<Disk>] = &[
    Drawable::new(
        caps::CALLS,
        |setup| setup.is_told("--direct"),
        |twin, load, dice| {
            let per_s = u64::from(dice.whole(150, 3_000));
            if is_of_reads(load) {
                twin.throttle.read_calls = Some(per_s);
            } else {
                twin.throttle.written_calls = Some(per_s);
            }
            format!("{per_s}ios")
        },
    ),
    Drawable::new(
        caps::BYTES,
        |setup| setup.is_told("--direct") && setup.load.block_bytes >= 16 << 10,
        |twin, load, dice| {
            let bytes_per_s = dice.between(3e6, 200e6) as u64;
            if is_of_reads(load) {
                twin.throttle.read_bytes = Some(bytes_per_s);
            } else {
                twin.throttle.written_bytes = Some(bytes_per_s);
            }
            format!("{}kBps", bytes_per_s / 1000)
        },
    ),
    // btrfs reads ahead as it sees fit, whatever is set for its device.
    Drawable::new(
        read_ahead::INJECTION,
        |setup| setup.does(&["read"]) && setup.is_told("--cold") && setup.is_on(&["ext4", "xfs"]) && is_small(setup),
        |twin, _, dice| {
            let kib = *dice.pick(&[0, 4, 8, 16, 32]);
            twin.volume.read_ahead_kib = Some(kib);
            format!("{kib}k-ahead")
        },
    )
    // Devices of a known speed: it is calls that read-ahead saves.
    .after(|setup, dice| {
        let (per_s, kib) = (u64::from(dice.whole(400, 3_000)), *dice.pick(&[128, 256, 512]));
        setup.with(&format!("both-{per_s}ios-{kib}k-ahead"), |twin| {
            twin.throttle.read_calls = Some(per_s);
            twin.volume.read_ahead_kib = Some(kib);
        })
    }),
    // A device with a cache: what is flushed has to reach the disk below on one of both.
    Drawable::new(
        slow_flush::INJECTION,
        |setup| setup.flushes() && setup.is_on(&["ext4"]) && !setup.is_in_memory(),
        |twin, _, _| {
            slow_flush::waits(twin);
            "barriers".to_owned()
        },
    )
    .after(|setup, _| setup.with("cached", slow_flush::does_not_wait)),
    Drawable::new(
        slow_flush::INJECTION,
        |setup| setup.flushes() && setup.is_in_memory(),
        |twin, _, _| {
            twin.volume.backing = Backing::Disk;
            "on-disk".to_owned()
        },
    )
    .after(|setup, _| setup.with("cached", |twin| twin.volume.direct_io = false)),
    Drawable::new(
        compression::INJECTION,
        |setup| {
            let through_the_cache = setup.is_told("--flush") || setup.is_told("--cold");
            setup.is_on(&["btrfs"]) && through_the_cache && setup.load.block_bytes >= 32 << 10
        },
        |twin, _, dice| {
            let (name, levels) = *dice.pick(&[("zlib", 9), ("zstd", 15)]);
            let level = dice.whole(1, levels);
            twin.volume.mount = kept(format!("compress-force={name}:{level}"));
            format!("{name}{level}")
        },
    )
    // What does not shrink is given up soon.
    .after(|setup, dice| {
        let share = kept(format!("0.{}", dice.whole(3, 7)));
        setup.load(|work| work.words = [work.words, &["--compressibility", share]].concat().leak())
    }),
    Drawable::new(
        block_size::INJECTION,
        |setup| {
            let little = setup.does(&["randread"]) && setup.is_told("--cold") && setup.load.block_bytes <= 8 << 10;
            setup.is_on(&["xfs"]) && little && setup.load.memory_mib.is_none()
        },
        |twin, _, dice| {
            let (name, words): (_, &'static [&'static str]) = *dice.pick(&[
                ("16k", &["-b", "size=16384"][..]),
                ("32k", &["-b", "size=32768"]),
                ("64k", &["-b", "size=65536"]),
            ]);
            twin.volume.make = words;
            format!("blocks-of-{name}")
        },
    )
    // Both devices move as many bytes per second, so that bytes are what counts.
    .after(|setup, dice| {
        let bytes_per_s = dice.between(8e6, 50e6) as u64;
        setup.with(&format!("both-{}kBps", bytes_per_s / 1000), |twin| {
            twin.throttle.read_bytes = Some(bytes_per_s);
        })
    }),
];

fn is_of_reads(load: &Work) -> bool {
    matches!(load.op, "read" | "randread")
}

/// So little at a time that much of what is read was read ahead.
fn is_small(setup: &Setup<Disk>) -> bool {
    setup.load.block_bytes <= 16 << 10
}
