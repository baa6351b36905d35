//! The control groups that this process works in.

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
    let (root, point) = mounts.lines().find_map(|mount| mounted(mount, version))?;
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

/// Which group is mounted, and where, if a line of `mountinfo` is about such a hierarchy:
/// `ID PARENT MAJOR:MINOR ROOT POINT OPTIONS ... - TYPE SOURCE SUPER-OPTIONS`.
fn mounted<'a>(line: &'a str, version: Version<'_>) -> Option<(&'a str, &'a str)> {
    let (left, right) = line.split_once(" - ")?;
    let (mut left, mut right) = (left.split(' ').skip(3), right.split(' '));
    let is_it = match (right.next()?, version) {
        ("cgroup2", Version::Two) => true,
        ("cgroup", Version::One(name)) => right.nth(1)?.split(',').any(|option| option == name),
        _ => false,
    };
    is_it.then(|| Some((left.next()?, left.next()?)))?
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
