//! `disk.readahead-off`: the system reads little or nothing ahead on the device.

use super::*;

pub(super) const INJECTION: Injection<Disk> = Injection::new("disk.readahead-off", slower);

pub(super) fn cases() -> Vec<Case> {
    // Devices of a known speed: it is calls that read-ahead saves.
    let in_order = |volume| {
        Setup::on(volume, "read").load(|work| work.words = &["--cold"]).with("both-800ios", |twin| {
            twin.throttle = Throttle { read_calls: Some(800), ..Throttle::default() };
            twin.volume.read_ahead_kib = Some(128);
        })
    };
    vec![
        INJECTION.case(&in_order(EXT4), "none", |twin| twin.volume.read_ahead_kib = Some(0)),
        INJECTION.case(&in_order(XFS), "8k", |twin| twin.volume.read_ahead_kib = Some(8)),
    ]
}
