//! `none`: the same disk twice, as fast as it can be and capped.

use super::*;

pub(super) fn cases() -> Vec<Case> {
    let capped = |setup: Setup<Disk>| {
        setup.with("both-800ios", |twin| twin.throttle = Throttle { read_calls: Some(800), ..Throttle::default() })
    };
    [
        capped(Setup::on(EXT4, "randread")),
        capped(Setup::on(XFS, "read").load(|work| work.words = &["--cold"])),
        Setup::on(EXT4, "fsync").load(|work| work.words = &[]),
        Setup::on(XFS, "randwrite"),
        in_memory(capped(Setup::on(XFS, "randread"))),
        in_memory(Setup::on(EXT4, "write").load(|work| work.words = &["--flush", "8"])),
        // Less memory than the file has bytes.
        Setup::on(EXT4, "randread").load(|work| {
            work.words = &["--cold"];
            (work.mib, work.memory_mib) = (256, Some(96));
        }),
    ]
    .iter()
    .map(Case::equals)
    .collect()
}
