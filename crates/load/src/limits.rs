//! How many descriptors the process may open.

use crate::groups::own_groups;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::path::{Path, PathBuf};

/// The process may not open as many descriptors as a plan needs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{needed} descriptors are needed, but this process may open {limit} at most; \
     raise the hard limit (ulimit -Hn, or LimitNOFILE= of its service) or use fewer connections"
)]
pub struct LimitError {
    /// Descriptors needed.
    pub needed: u64,
    /// The hard limit.
    pub limit: u64,
}

/// Raises the soft limit of open descriptors so that `needed` fit, and returns the limit then in force.
pub fn ensure_descriptors(needed: u64) -> Result<u64, LimitError> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let soft = current.unwrap_or(u64::MAX);
    if soft >= needed {
        return Ok(soft);
    }
    let hard = maximum.unwrap_or(u64::MAX);
    if hard < needed || setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum }).is_err() {
        return Err(LimitError { needed, limit: hard.min(soft.max(hard)) });
    }
    Ok(needed)
}

/// Descriptors that the process has open, where the system lists them.
pub(crate) fn descriptors_open() -> Option<u64> {
    // Linux, and the BSDs where fdescfs is mounted; the listing itself takes one.
    let folder = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };
    Some(std::fs::read_dir(folder).ok()?.count().saturating_sub(1) as u64)
}

/// How many CPUs this process can use at a time: those that it may run on, and no more than its group's quota; at least 1.
pub fn usable_cpus() -> u32 {
    std::thread::available_parallelism().ok().and_then(|cpus| u32::try_from(cpus.get()).ok()).unwrap_or(1)
}

/// The quota of CPU time that the process's control group has, those around it included, in CPUs; `None` where there is none, or
/// where the system has no such groups.
pub fn quota_cpus() -> Option<f64> {
    least_quota(&own_groups("cpu"))
}

/// The least quota of these groups, in CPUs.
fn least_quota(groups: &[PathBuf]) -> Option<f64> {
    groups.iter().filter_map(|group| quota_of(group)).reduce(f64::min)
}

/// The quota that the files of one group tell, of either version; `None` where it has none.
fn quota_of(group: &Path) -> Option<f64> {
    let read = |name: &str| std::fs::read_to_string(group.join(name)).ok();
    let line = read("cpu.max").or_else(|| Some(read("cpu.cfs_quota_us")? + " " + &read("cpu.cfs_period_us")?))?;
    let mut numbers = line.split_ascii_whitespace().map(str::parse::<f64>);
    // "max" of version 2 and -1 of version 1 are none.
    let (quota, period) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

/// How many CPUs the machine has, where the system tells.
pub fn cpus_online() -> Option<u32> {
    // Ranges and single numbers, such as `0-3,6`.
    let list = std::fs::read_to_string("/sys/devices/system/cpu/online").ok()?;
    list.trim().split(',').try_fold(0u32, |sum, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let count = last.parse::<u32>().ok()?.checked_sub(first.parse().ok()?)?.checked_add(1)?;
        sum.checked_add(count)
    })
}

/// CPUs that this process may run on, by their numbers; empty where the system does not tell.
pub fn allowed_cpus() -> Vec<u32> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Ok(set) = rustix::thread::sched_getaffinity(None) {
        let numbers = 0..rustix::thread::CpuSet::MAX_CPU;
        return numbers.filter(|&cpu| set.is_set(cpu)).filter_map(|cpu| u32::try_from(cpu).ok()).collect();
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_can_use_no_more_cpus_than_there_are() {
        assert!((1..=cpus_online().unwrap_or(u32::MAX)).contains(&usable_cpus()));
    }

    #[test]
    fn the_least_quota_of_a_group_and_those_around_it_is_the_one() {
        let mount = std::env::temp_dir().join(format!("duel-quota-{}", std::process::id()));
        let groups = ["a/b", "a", ""].map(|group| mount.join(group));
        std::fs::create_dir_all(&groups[0]).unwrap();
        let write = |name: &str, text: &str| std::fs::write(mount.join(name), text).unwrap();
        assert_eq!(least_quota(&groups), None);
        write("a/cpu.max", "50000 100000\n");
        write("a/b/cpu.max", "max 100000\n");
        assert_eq!(least_quota(&groups), Some(0.5));
        write("a/b/cpu.max", "25000 100000\n");
        assert_eq!(least_quota(&groups), Some(0.25));
        // Version 1.
        std::fs::remove_file(mount.join("a/b/cpu.max")).unwrap();
        write("a/b/cpu.cfs_quota_us", "-1\n");
        write("a/b/cpu.cfs_period_us", "100000\n");
        assert_eq!(least_quota(&groups), Some(0.5));
        write("a/b/cpu.cfs_quota_us", "150000\n");
        assert_eq!(least_quota(&groups), Some(0.5));
        std::fs::remove_file(mount.join("a/cpu.max")).unwrap();
        assert_eq!(least_quota(&groups), Some(1.5));
        std::fs::remove_dir_all(&mount).unwrap();
    }

    #[test]
    fn asking_for_more_than_the_hard_limit_says_so() {
        let Some(hard) = getrlimit(Resource::Nofile).maximum else { return };
        let error = ensure_descriptors(hard + 1).unwrap_err();
        assert_eq!(error.needed, hard + 1);
        assert!(error.to_string().contains("ulimit -Hn"));
    }
}
