//! What can be left behind, and how each kind of it is unmade.

use super::tools::succeed;
use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The beginning of the name of everything that this program makes.
pub(crate) const PREFIX: &str = "duel-faults-";

/// Something that outlives the process that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    /// A named network namespace, with the processes that run in it.
    Namespace(String),
    /// The folder of a control group, with the processes in it.
    Cgroup(PathBuf),
    /// A folder for temporary files.
    Folder(PathBuf),
    /// A file system mounted on this folder.
    Mount(PathBuf),
    /// The loop devices of a file.
    Loop(PathBuf),
}

impl Made {
    /// Takes it away. What is already gone is fine; what is not ours by its name is refused.
    pub(crate) fn unmake(&self) -> anyhow::Result<()> {
        ensure!(self.is_ours(), "its name does not begin with {PREFIX}: it is not touched");
        match self {
            Made::Namespace(name) => unmake_namespace(name),
            Made::Cgroup(path) => unmake_cgroup(path),
            Made::Folder(path) => match std::fs::remove_dir_all(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
                _ => Ok(()),
            },
            Made::Mount(path) => unmake_mount(path),
            Made::Loop(file) => unmake_loop(file),
        }
    }

    /// Ends the processes that live in it, so that nothing holds on to what is unmade next.
    pub(crate) fn end_processes(&self) -> anyhow::Result<()> {
        match self {
            Made::Namespace(name) if self.is_ours() && namespace_exists(name) => end(|| namespace_pids(name)),
            Made::Cgroup(path) if self.is_ours() && path.exists() => end(|| Ok(cgroup_pids(path))),
            _ => Ok(()),
        }
    }

    /// Whether some part of its name is one that only this program gives.
    pub(crate) fn is_ours(&self) -> bool {
        match self {
            Made::Namespace(name) => name.starts_with(PREFIX) && !name.contains('/'),
            Made::Cgroup(path) | Made::Folder(path) | Made::Mount(path) | Made::Loop(path) => {
                path.is_absolute()
                    && path.components().all(|part| part != std::path::Component::ParentDir)
                    && path.components().any(|part| part.as_os_str().to_string_lossy().starts_with(PREFIX))
            }
        }
    }

    /// From a line of a journal; `None` for what no journal of ours holds.
    pub(crate) fn parse(line: &str) -> Option<Made> {
        let (kind, value) = line.split_once(' ')?;
        Some(match kind {
            "namespace" => Made::Namespace(value.to_owned()),
            "cgroup" => Made::Cgroup(value.into()),
            "folder" => Made::Folder(value.into()),
            "mount" => Made::Mount(value.into()),
            "loop" => Made::Loop(value.into()),
            _ => return None,
        })
    }
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Made::Namespace(name) => write!(f, "namespace {name}"),
            Made::Cgroup(path) => write!(f, "cgroup {}", path.display()),
            Made::Folder(path) => write!(f, "folder {}", path.display()),
            Made::Mount(path) => write!(f, "mount {}", path.display()),
            Made::Loop(path) => write!(f, "loop {}", path.display()),
        }
    }
}

fn namespace_exists(name: &str) -> bool {
    Path::new("/run/netns").join(name).exists()
}

fn unmake_namespace(name: &str) -> anyhow::Result<()> {
    if !namespace_exists(name) {
        return Ok(());
    }
    end(|| namespace_pids(name))?;
    succeed("ip", &["netns", "del", name])
}

fn unmake_cgroup(path: &Path) -> anyhow::Result<()> {
    if !path.exists() {
        return Ok(());
    }
    end(|| Ok(cgroup_pids(path)))?;
    // The kernel lets go of a group some time after its last process.
    let until = Instant::now() + PATIENCE;
    while let Err(error) = std::fs::remove_dir(path) {
        if Instant::now() > until {
            return Err(error).context("could not remove the control group");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn unmake_mount(path: &Path) -> anyhow::Result<()> {
    let target = path.to_string_lossy();
    let until = Instant::now() + PATIENCE;
    loop {
        let mounts = std::fs::read_to_string("/proc/self/mounts")?;
        if !mounts.lines().any(|line| line.split(' ').nth(1) == Some(&target)) {
            return Ok(());
        }
        // It may be in use for a moment longer: btrfs writes on, and views of mounts go away some time after their servers.
        if let Err(why) = succeed("umount", &[&target]) {
            ensure!(Instant::now() < until, "{why:#}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn unmake_loop(file: &Path) -> anyhow::Result<()> {
    let until = Instant::now() + PATIENCE;
    loop {
        let devices = loop_devices(file);
        if devices.is_empty() {
            return Ok(());
        }
        ensure!(Instant::now() < until, "{} stays attached", file.display());
        for device in devices {
            // The kernel lets go of it once nobody uses it, which may be later: a killed server's view of mounts goes
            // away some time after the server.
            let _ = succeed("losetup", &["-d", &device]);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The loop devices of a file, also of one that has been deleted in the meantime.
fn loop_devices(file: &Path) -> Vec<String> {
    let mut devices = Vec::new();
    for device in std::fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let backing = std::fs::read_to_string(device.path().join("loop/backing_file")).unwrap_or_default();
        if Path::new(backing.trim_end().trim_end_matches(" (deleted)")) == file {
            devices.push(format!("/dev/{}", device.file_name().to_string_lossy()));
        }
    }
    devices
}

/// A process that has been killed is gone by then, unless it hangs within the kernel.
const PATIENCE: Duration = Duration::from_secs(5);

/// Kills until there is nobody left: processes may have forked in the meantime.
fn end(pids: impl Fn() -> anyhow::Result<Vec<i32>>) -> anyhow::Result<()> {
    let until = Instant::now() + PATIENCE;
    loop {
        let left = pids()?;
        if left.is_empty() {
            return Ok(());
        }
        ensure!(Instant::now() < until, "processes {left:?} do not end");
        for pid in left.into_iter().filter_map(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Processes in the namespace, without this one and without those that have ended and wait to be reaped.
fn namespace_pids(name: &str) -> anyhow::Result<Vec<i32>> {
    Ok(alive(&super::run("ip", &["netns", "pids", name])?))
}

fn cgroup_pids(path: &Path) -> Vec<i32> {
    alive(&std::fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default())
}

fn alive(pids: &str) -> Vec<i32> {
    let me = std::process::id() as i32;
    pids.split_whitespace().filter_map(|pid| pid.parse().ok()).filter(|&pid| pid != me && !is_zombie(pid)).collect()
}

fn is_zombie(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .ok()
        // The name in brackets may hold anything; the state follows its last bracket.
        .and_then(|stat| stat.rsplit_once(") ").map(|(_, rest)| rest.starts_with('Z')))
        .unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_ours_is_refused() {
        for foreign in [
            Made::Namespace("web".into()),
            Made::Namespace("duel-faults-1/../web".into()),
            Made::Folder("/tmp".into()),
            Made::Folder("/tmp/duel-faults-1-0/../../home".into()),
            Made::Folder("duel-faults-1".into()),
            Made::Cgroup("/sys/fs/cgroup/cpu/system".into()),
            Made::Mount("/".into()),
            Made::Loop("/var/disk.img".into()),
        ] {
            assert!(foreign.unmake().is_err(), "{foreign}");
        }
    }

    #[test]
    fn lines_of_a_journal_read_back() {
        for made in [
            Made::Namespace("duel-faults-1-0".into()),
            Made::Cgroup("/sys/fs/cgroup/cpu/duel-faults-1-1".into()),
            Made::Folder("/tmp/duel-faults-1-2".into()),
            Made::Mount("/tmp/duel-faults-1-2/a b".into()),
            Made::Loop("/tmp/duel-faults-1-2/image".into()),
        ] {
            assert_eq!(Made::parse(&made.to_string()), Some(made));
        }
        assert_eq!(Made::parse("planet earth"), None);
        assert_eq!(Made::parse(""), None);
    }

    #[test]
    fn what_is_gone_already_is_fine() {
        Made::Folder("/tmp/duel-faults-0-gone".into()).unmake().unwrap();
        Made::Namespace("duel-faults-0-gone".into()).unmake().unwrap();
        Made::Cgroup("/sys/fs/cgroup/cpu/duel-faults-0-gone".into()).unmake().unwrap();
        Made::Mount("/tmp/duel-faults-0-gone".into()).unmake().unwrap();
    }
}
