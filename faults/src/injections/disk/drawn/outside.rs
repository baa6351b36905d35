//! Faults that no cause of duel's stands for: not to know is right.

use super::*;
use crate::case::NAMELESS;

pub(super) const ALL: &[Drawable<Disk>] = &[
    // Each call of the device takes a way through a program.
    Drawable::new(
        Injection::new(NAMELESS, slower),
        |setup| setup.is_told("--direct") && setup.is_in_memory() && setup.twin.throttle == Throttle::default(),
        |twin, _, _| {
            twin.volume = VolumePlan { backing: Backing::UserSpace, direct_io: true, ..twin.volume };
            "through-user-space".to_owned()
        },
    )
    // Else every call of either would go to its file.
    .after(|setup, _| setup.with("cached", |twin| twin.volume.direct_io = false))
    .needing(&["bindfs"]),
];
