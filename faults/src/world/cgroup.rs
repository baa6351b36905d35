//! Control groups, version 1 and 2 behind the same few words.

use super::{Guard, Made, World};
use anyhow::{Context, anyhow};
use std::path::{Path, PathBuf};

/// A CPU quota of the completely fair scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quota {
    pub(crate) quota_us: u64,
    pub(crate) period_us: u64,
}

/// How much the members of a group may do on one device, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Throttle {
    pub(crate) read_calls: Option<u64>,
    pub(crate) read_bytes: Option<u64>,
    pub(crate) written_calls: Option<u64>,
    pub(crate) written_bytes: Option<u64>,
}

impl Throttle {
    /// Each limit with its file in version 1 and its key in version 2.
    fn limits(self) -> [(Option<u64>, &'static str, &'static str); 4] {
        [
            (self.read_calls, "blkio.throttle.read_iops_device", "riops"),
            (self.read_bytes, "blkio.throttle.read_bps_device", "rbps"),
            (self.written_calls, "blkio.throttle.write_iops_device", "wiops"),
            (self.written_bytes, "blkio.throttle.write_bps_device", "wbps"),
        ]
    }
}

/// What a group may have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) quota: Option<Quota>,
    /// A list of CPUs as the kernel writes it.
    pub(crate) cpus: Option<String>,
    pub(crate) memory_bytes: Option<u64>,
    /// Share of the CPU against other groups; 1024 is usual.
    pub(crate) shares: Option<u64>,
    /// Devices by their numbers, `MAJOR:MINOR`.
    pub(crate) devices: Vec<(String, Throttle)>,
}

impl Limits {
    pub(crate) fn is_none(&self) -> bool {
        *self == Limits::default()
    }
}

/// A control group, in as many hierarchies as its limits need.
pub(crate) struct Cgroup {
    /// Where a process writes its pid to join, one for each hierarchy.
    joins: Vec<PathBuf>,
    cpu: Option<PathBuf>,
    _guards: Vec<Guard>,
}

impl Cgroup {
    /// A new group with these limits.
    pub(crate) fn new(world: &World, limits: &Limits) -> anyhow::Result<Cgroup> {
        let name = world.name();
        let mut group = Cgroup { joins: Vec::new(), cpu: None, _guards: Vec::new() };
        let mounts = std::fs::read_to_string("/proc/self/mounts")?;
        if v1_mount(&mounts, "cpu").is_some() {
            group.version_1(world, &name, limits, &mounts)?;
        } else {
            let root = v2_mount(&mounts).ok_or_else(|| anyhow!("no control groups are mounted"))?;
            group.version_2(world, &root.join(&name), limits)?;
        }
        Ok(group)
    }

    /// The files to which a process writes its pid to join.
    pub(crate) fn joins(&self) -> &[PathBuf] {
        &self.joins
    }

    /// How often its processes were held back by the quota, as the kernel counts it.
    pub(crate) fn throttled(&self) -> anyhow::Result<u64> {
        let folder = self.cpu.as_deref().context("the group has no CPU limit")?;
        let stat = std::fs::read_to_string(folder.join("cpu.stat"))?;
        stat.lines()
            .find_map(|line| line.strip_prefix("nr_throttled "))
            .and_then(|count| count.trim().parse().ok())
            .context("cpu.stat does not tell nr_throttled")
    }

    fn version_1(&mut self, world: &World, name: &str, limits: &Limits, mounts: &str) -> anyhow::Result<()> {
        let mut folder = |controller: &str| -> anyhow::Result<PathBuf> {
            let root =
                v1_mount(mounts, controller).ok_or_else(|| anyhow!("the controller {controller} is not mounted"))?;
            let path = root.join(name);
            self._guards.push(world.promise(Made::Cgroup(path.clone()))?);
            std::fs::create_dir(&path)?;
            self.joins.push(path.join("cgroup.procs"));
            Ok(path)
        };
        if limits.quota.is_some() || limits.shares.is_some() {
            let path = folder("cpu")?;
            if let Some(Quota { quota_us, period_us }) = limits.quota {
                set(&path, "cpu.cfs_period_us", period_us)?;
                set(&path, "cpu.cfs_quota_us", quota_us)?;
            }
            if let Some(shares) = limits.shares {
                set(&path, "cpu.shares", shares)?;
            }
            self.cpu = Some(path);
        }
        if let Some(cpus) = &limits.cpus {
            let path = folder("cpuset")?;
            // Without memory nodes of its own nobody can join.
            set(&path, "cpuset.mems", 0)?;
            set(&path, "cpuset.cpus", cpus)?;
        }
        if let Some(bytes) = limits.memory_bytes {
            let path = folder("memory")?;
            set(&path, "memory.limit_in_bytes", bytes)?;
        }
        if !limits.devices.is_empty() {
            let path = folder("blkio")?;
            for (device, throttle) in &limits.devices {
                for (limit, file, _) in throttle.limits() {
                    if let Some(per_s) = limit {
                        set(&path, file, format!("{device} {per_s}"))?;
                    }
                }
            }
        }
        Ok(())
    }

    fn version_2(&mut self, world: &World, path: &Path, limits: &Limits) -> anyhow::Result<()> {
        let root = path.parent().context("the group has no parent")?;
        // Refused where a controller is on already or not to be had; what is missing shows below.
        for controller in ["+cpu", "+cpuset", "+memory", "+io"] {
            let _ = std::fs::write(root.join("cgroup.subtree_control"), controller);
        }
        self._guards.push(world.promise(Made::Cgroup(path.to_owned()))?);
        std::fs::create_dir(path)?;
        self.joins.push(path.join("cgroup.procs"));
        if let Some(Quota { quota_us, period_us }) = limits.quota {
            set(path, "cpu.max", format!("{quota_us} {period_us}"))?;
        }
        if let Some(shares) = limits.shares {
            // 1024 shares are a weight of 100; the kernel takes 1 to 10,000.
            set(path, "cpu.weight", (shares * 100 / 1024).clamp(1, 10_000))?;
        }
        if let Some(cpus) = &limits.cpus {
            set(path, "cpuset.cpus", cpus)?;
        }
        if let Some(bytes) = limits.memory_bytes {
            set(path, "memory.max", bytes)?;
        }
        for (device, throttle) in &limits.devices {
            for (limit, _, key) in throttle.limits() {
                if let Some(per_s) = limit {
                    set(path, "io.max", format!("{device} {key}={per_s}"))?;
                }
            }
        }
        self.cpu = Some(path.to_owned());
        Ok(())
    }
}

fn set(folder: &Path, file: &str, value: impl std::fmt::Display) -> anyhow::Result<()> {
    let path = folder.join(file);
    std::fs::write(&path, value.to_string()).with_context(|| format!("could not write {value} to {}", path.display()))
}

/// Where a controller of version 1 is mounted.
fn v1_mount(mounts: &str, controller: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (path, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
        (kind == "cgroup" && options.split(',').any(|option| option == controller)).then(|| path.into())
    })
}

fn v2_mount(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (path, kind) = (fields.next()?, fields.next()?);
        (kind == "cgroup2").then(|| path.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_found_where_they_are_mounted() {
        let mounts = "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\n\
                      cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        assert_eq!(v1_mount(mounts, "cpu"), Some("/sys/fs/cgroup/cpu,cpuacct".into()));
        assert_eq!(v1_mount(mounts, "cpuset"), Some("/sys/fs/cgroup/cpuset".into()));
        assert_eq!(v1_mount(mounts, "memory"), None);
        assert_eq!(v2_mount(mounts), Some("/sys/fs/cgroup/unified".into()));
    }
}
