//! Differences that do no harm.

use super::*;

pub(super) const ALL: &[Decoy<Disk>] = &[
    Decoy {
        fits: |_| true,
        differ: |twin, dice| {
            let label = kept(format!("data{}", dice.whole(1, 99)));
            twin.volume.make = vec!["-L", label].leak();
            format!("label-{label}")
        },
    },
    // Blocks that are kept for the superuser.
    Decoy {
        fits: |setup| setup.is_on(&["ext4"]),
        differ: |twin, dice| {
            let percent = kept(dice.whole(1, 20).to_string());
            twin.volume.make = vec!["-m", percent].leak();
            format!("reserved-{percent}percent")
        },
    },
    Decoy {
        fits: |_| true,
        differ: |twin, _| {
            twin.volume.mount = "noatime";
            "noatime".to_owned()
        },
    },
    Decoy {
        fits: |setup| setup.is_on(&["ext4"]) && setup.reads(),
        differ: |twin, dice| {
            let seconds = dice.whole(6, 60);
            twin.volume.mount = kept(format!("commit={seconds}"));
            format!("commit-each-{seconds}s")
        },
    },
    // Nobody reads ahead past the page cache.
    Decoy {
        fits: |setup| setup.is_told("--direct"),
        differ: |twin, dice| {
            let kib = *dice.pick(&[0, 16, 512, 1024]);
            twin.volume.read_ahead_kib = Some(kib);
            format!("ahead-{kib}k")
        },
    },
];
