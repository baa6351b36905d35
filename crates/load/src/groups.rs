//! The control groups that this process works in.

use duel_model::MountLine;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The folders of the groups that may limit what this controller (`cpu`, `blkio`) is for: those that the process is in and all around them,
/// of version 2 and of version 1. Limits of all of them hold at once. A container sees no groups above its own root.
pub fn own_groups(controller: &str) -> Vec<PathBuf> {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let (groups, mounts) = (read("/proc/self/cgroup"), read("/proc/self/mountinfo"));
    groups.lines().filter_map(|line| of_line(line, &mounts, controller)).flatten().collect()
}

/// Of a line `NUMBER:CONTROLLERS:PATH`, whose version 2 names no controllers: the folder of the group, then those around it.
fn of_line(line: &str, mounts: &str, controller: &str) -> Option<Vec<PathBuf>> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let version = match controllers {
        "" => Version::Two,
        some if some.split(',').any(|one| one == controller) => Version::One(controller),
        _ => return None,
    };
    let MountLine { root, point, .. } =
        mounts.lines().filter_map(MountLine::of).find(|mount| version.is_mounted(mount))?;
    // What is mounted may be a part of the hierarchy.
    let below = Path::new(path).strip_prefix(root).or_else(|_| Path::new(path).strip_prefix("/")).ok()?;
    // A group that is not below our own root is told by its way up and down again: it has no folder here.
    let is_plain = below.components().all(|part| matches!(part, Component::Normal(_)));
    let own = Path::new(point).join(below);
    is_plain.then(|| own.ancestors().take_while(|above| above.starts_with(point)).map(Path::to_owned).collect())
}

#[derive(Clone, Copy)]
enum Version<'a> {
    /// With this controller.
    One(&'a str),
    Two,
}

impl Version<'_> {
    /// Whether it is such a hierarchy that is mounted there.
    fn is_mounted(self, mount: &MountLine<'_>) -> bool {
        match (mount.file_system, self) {
            ("cgroup2", Self::Two) => true,
            ("cgroup", Self::One(name)) => mount.super_options.split(',').any(|option| option == name),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_of_either_version_are_found_where_they_are_mounted() {
        let mount = |root: &str, point: &str, sort: &str, options: &str| {
            format!("30 25 0:26 {root} {point} rw,nosuid shared:7 - {sort} {sort} {options}\n")
        };
        let both = mount("/", "/sys/fs/cgroup/cpu", "cgroup", "rw,cpu")
            + &mount("/", "/sys/fs/cgroup/blkio", "cgroup", "rw,blkio")
            + &mount("/", "/sys/fs/cgroup/unified", "cgroup2", "rw");
        let found = |line: &str, mounts: &str| {
            let folders = of_line(line, mounts, "blkio").unwrap_or_default();
            folders.iter().map(|folder| folder.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let of_blkio = ["/sys/fs/cgroup/blkio/a/b", "/sys/fs/cgroup/blkio/a", "/sys/fs/cgroup/blkio"];
        assert_eq!(found("7:blkio:/a/b", &both), of_blkio);
        assert_eq!(found("0::/a.slice", &both), ["/sys/fs/cgroup/unified/a.slice", "/sys/fs/cgroup/unified"]);
        assert!(found("3:cpu,cpuacct:/a", &both).is_empty(), "it limits something else");
        assert!(found("0::/../other", &both).is_empty(), "it has no folder here");
        let within = mount("/box", "/sys/fs/cgroup", "cgroup2", "rw");
        assert_eq!(found("0::/box/work", &within), ["/sys/fs/cgroup/work", "/sys/fs/cgroup"]);
        for strange in ["", ":", "0:", "0::", "x:blkio:relative"] {
            assert!(found(strange, &both).is_empty(), "{strange}");
        }
        assert!(found("0::/a", " - \n- cgroup2 x y\n1 2 3:4 / /m rw - cgroup\n").is_empty());
    }
}
