//! What the control groups that duel works in let it do on a device per second.
//!
//! Limits of all groups on the way up hold at once, so the strictest counts. A container sees no groups above its own root: what is
//! found is a limit, and where none is found there may be one.

use crate::device::Device;
use duel_load::own_groups;
use std::fs;
use std::path::{Path, PathBuf};

/// Most per second; `None`: no limit was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) reads: Option<u64>,
    pub(crate) read_bytes: Option<u64>,
    pub(crate) writes: Option<u64>,
    pub(crate) written_bytes: Option<u64>,
}

/// The limits on this device.
pub(crate) fn of(device: &Device) -> Limits {
    let number = device.told("dev");
    number.map_or_else(Limits::default, |number| strictest(&own_groups("blkio"), &number))
}

/// Of all these groups.
fn strictest(groups: &[PathBuf], number: &str) -> Limits {
    groups.iter().map(|group| in_folder(group, number)).fold(Limits::default(), Limits::stricter)
}

fn in_folder(folder: &Path, number: &str) -> Limits {
    let told = |file: &str| {
        let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
        text.lines().find_map(|line| Some(line.strip_prefix(number)?.strip_prefix(' ')?.to_owned()))
    };
    let of_version_1 = |file: &str| told(&format!("blkio.throttle.{file}_device"))?.trim().parse().ok();
    // `rbps=1048576 wbps=max riops=max wiops=max`
    let all = told("io.max").unwrap_or_default();
    let of_version_2 =
        |key: &str| all.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('=')?.parse::<u64>().ok());
    let either = |file: &str, key: &str| of_version_1(file).or_else(|| of_version_2(key));
    Limits {
        reads: either("read_iops", "riops"),
        read_bytes: either("read_bps", "rbps"),
        writes: either("write_iops", "wiops"),
        written_bytes: either("write_bps", "wbps"),
    }
}

impl Limits {
    fn stricter(self, other: Self) -> Self {
        let least = |of: fn(Self) -> Option<u64>| of(self).into_iter().chain(of(other)).min();
        Self {
            reads: least(|limits| limits.reads),
            read_bytes: least(|limits| limits.read_bytes),
            writes: least(|limits| limits.writes),
            written_bytes: least(|limits| limits.written_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strictest_limit_on_the_way_up_counts_and_other_devices_do_not() {
        let top = tempfile::tempdir().unwrap();
        let own = top.path().join("a/b");
        fs::create_dir_all(&own).unwrap();
        let of = |folder: &Path, file: &str, text: &str| fs::write(folder.join(file), text).unwrap();
        of(&own, "io.max", "8:16 rbps=2097152 wbps=max riops=120 wiops=max\n8:1 rbps=1 wbps=1 riops=1 wiops=1\n");
        of(&top.path().join("a"), "io.max", "8:16 rbps=max wbps=max riops=500 wiops=70\n");
        of(top.path(), "blkio.throttle.read_bps_device", "8:160 7\n8:16 1048576\n");
        let limits = strictest(&[own, top.path().join("a"), top.path().to_owned()], "8:16");
        let expected = Limits { reads: Some(120), read_bytes: Some(1_048_576), writes: Some(70), written_bytes: None };
        assert_eq!(limits, expected);
    }
}
