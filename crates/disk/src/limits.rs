//! What the control groups that duel works in let it do on a device per second.
//!
//! Limits of all groups on the way up hold at once, so the strictest counts. A container sees no groups above its own root: what is
//! found is a limit, and where none is found there may be one.

use crate::device::{Device, Mount, mounts};
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
    let (Some(number), Ok(groups)) = (device.told("dev"), fs::read_to_string("/proc/self/cgroup")) else {
        return Limits::default();
    };
    let mounts = mounts();
    let own = groups.lines().filter_map(|line| folder_of(line, &mounts));
    let folders = own.flat_map(|(top, own)| up_to(&top, &own));
    folders.map(|folder| in_folder(&folder, &number)).fold(Limits::default(), Limits::stricter)
}

/// Of a line `NUMBER:CONTROLLERS:PATH`, the folder of the group's hierarchy and that of the group, where it can limit devices: version
/// 2, which has no names of controllers, or version 1's `blkio`.
fn folder_of(line: &str, mounts: &[Mount]) -> Option<(PathBuf, PathBuf)> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let mount = mounts.iter().find(|mount| match controllers {
        "" => mount.file_system == "cgroup2",
        some if some.split(',').any(|one| one == "blkio") => {
            mount.file_system == "cgroup" && mount.options.split(',').any(|option| option == "blkio")
        }
        _ => false,
    })?;
    // What is mounted may be a part of the hierarchy.
    let below = Path::new(path).strip_prefix(&mount.root).or_else(|_| Path::new(path).strip_prefix("/")).ok()?;
    // A group that is not below our own root is told by its way up and down again: it has no folder here.
    let is_plain = below.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    is_plain.then(|| (mount.point.clone(), mount.point.join(below)))
}

/// A folder and all above it, up to this one.
fn up_to(top: &Path, folder: &Path) -> Vec<PathBuf> {
    folder.ancestors().take_while(|above| above.starts_with(top)).map(Path::to_owned).collect()
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
    use crate::device::mount;

    #[test]
    fn the_group_of_either_version_is_found_where_it_is_mounted() {
        let line = |root: &str, point: &str, sort: &str, options: &str| {
            mount(&format!("30 25 0:26 {root} {point} rw,nosuid - {sort} {sort} {options}")).unwrap()
        };
        let both = [
            line("/", "/sys/fs/cgroup/cpu", "cgroup", "rw,cpu"),
            line("/", "/sys/fs/cgroup/blkio", "cgroup", "rw,blkio"),
            line("/", "/sys/fs/cgroup", "cgroup2", "rw"),
        ];
        let found = |line: &str, mounts: &[Mount]| folder_of(line, mounts).map(|(_, own)| own);
        assert_eq!(found("7:blkio:/a/b", &both), Some("/sys/fs/cgroup/blkio/a/b".into()));
        assert_eq!(found("0::/a.slice", &both), Some("/sys/fs/cgroup/a.slice".into()));
        assert_eq!(found("3:cpu,cpuacct:/a", &both), None, "it limits no devices");
        assert_eq!(found("0::/../other", &both), None, "it has no folder here");
        let within = [line("/box", "/sys/fs/cgroup", "cgroup2", "rw")];
        assert_eq!(found("0::/box/work", &within), Some("/sys/fs/cgroup/work".into()));
        for strange in ["", ":", "0:", "0::", "x:blkio:relative"] {
            assert_eq!(found(strange, &both), None, "{strange}");
        }
    }

    #[test]
    fn the_strictest_limit_on_the_way_up_counts_and_other_devices_do_not() {
        let top = tempfile::tempdir().unwrap();
        let own = top.path().join("a/b");
        fs::create_dir_all(&own).unwrap();
        let of = |folder: &Path, file: &str, text: &str| fs::write(folder.join(file), text).unwrap();
        of(&own, "io.max", "8:16 rbps=2097152 wbps=max riops=120 wiops=max\n8:1 rbps=1 wbps=1 riops=1 wiops=1\n");
        of(&top.path().join("a"), "io.max", "8:16 rbps=max wbps=max riops=500 wiops=70\n");
        of(top.path(), "blkio.throttle.read_bps_device", "8:160 7\n8:16 1048576\n");
        let folders = up_to(top.path(), &own);
        let limits = folders.iter().map(|folder| in_folder(folder, "8:16")).fold(Limits::default(), Limits::stricter);
        let expected = Limits { reads: Some(120), read_bytes: Some(1_048_576), writes: Some(70), written_bytes: None };
        assert_eq!((limits, folders.len()), (expected, 3));
    }
}
