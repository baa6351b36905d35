//! `disk.slow-spindle`: no disk here turns.

use super::*;

const INJECTION: Injection<Disk> = Injection::new("disk.slow-spindle", slower);

pub(super) fn cases() -> Vec<Case> {
    vec![INJECTION.unavailable(&Setup::on(EXT4, "randread"), "seeks", "no disk here turns, and a throttle does not care where blocks lie")]
}
