//! Processes: which namespace, which CPUs, which control group, and that none outlives us.

use super::{Cgroup, Namespace};
use anyhow::Context;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A command line with everything around it.
pub(crate) struct Launch {
    words: Vec<OsString>,
    env: Vec<(String, String)>,
    namespace: Option<String>,
    joins: Vec<PathBuf>,
    cpus: Option<String>,
    nice: i8,
    filters: u32,
}

/// Puts filters before a program; there is no way to do so here without `unsafe`.
const FILTERED: &str = include_str!("filtered.pl");
/// Steps of one filter: as many as one has that looks for each of the some 350 calls of Linux by itself, and at arguments of some.
const FILTER_STEPS: u32 = 500;

impl Launch {
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Launch {
        Launch {
            words: vec![program.as_ref().to_owned()],
            env: Vec::new(),
            namespace: None,
            joins: Vec::new(),
            cpus: None,
            nice: 0,
            filters: 0,
        }
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Launch {
        self.words.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    pub(crate) fn env(mut self, env: &[(String, String)]) -> Launch {
        self.env.extend_from_slice(env);
        self
    }

    /// In this namespace, by way of `ip netns exec`, which hides `/sys/fs/cgroup` from it.
    pub(crate) fn within(mut self, namespace: &Namespace) -> Launch {
        self.namespace = Some(namespace.name().to_owned());
        self
    }

    /// On these CPUs.
    pub(crate) fn on(mut self, cpus: &str) -> Launch {
        self.cpus = Some(cpus.to_owned());
        self
    }

    /// At this nice value.
    pub(crate) fn nice(self, nice: i8) -> Launch {
        Launch { nice, ..self }
    }

    /// Under so many long filters of system calls that let everything pass.
    pub(crate) fn filtered(self, filters: u32) -> Launch {
        Launch { filters, ..self }
    }

    /// A member of this group from its first instruction on.
    pub(crate) fn member_of(mut self, group: Option<&Cgroup>) -> Launch {
        self.joins = group.map(|group| group.joins().to_vec()).unwrap_or_default();
        self
    }

    /// The command. Each program in front replaces itself by the next, so that the pid is the last one's, and the kernel
    /// kills it when this process ends, however it ends.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]);
        if !self.joins.is_empty() {
            let mut script = String::new();
            for join in &self.joins {
                script += &format!("echo $$ >{} || exit 97; ", join.display());
            }
            command.args(["sh", "-c", &(script + "exec \"$@\""), "sh"]);
        }
        if let Some(cpus) = &self.cpus {
            command.args(["taskset", "-c", cpus]);
        }
        if let Some(namespace) = &self.namespace {
            command.args(["ip", "netns", "exec", namespace]);
        }
        if self.nice != 0 {
            command.args(["nice", "-n", &self.nice.to_string()]);
        }
        // The last one, so that nothing else is filtered.
        if self.filters > 0 {
            command.args(["perl", "-e", FILTERED, &self.filters.to_string(), &FILTER_STEPS.to_string()]);
        }
        command.args(&self.words).envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts it in the background; both its outputs go to the file `log`. Its standard input stays open while it runs.
    pub(crate) fn start(&self, log: &Path) -> anyhow::Result<Running> {
        use std::os::unix::process::CommandExt;
        let output = File::create(log).with_context(|| format!("could not write {}", log.display()))?;
        let child = self
            .command()
            // HAProxy will not start in a folder that somebody has removed meanwhile.
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output)
            // Ctrl-C is for us; we end our children in our own time.
            .process_group(0)
            .spawn()
            .with_context(|| format!("could not start {}", self.words[0].display()))?;
        Ok(Running { child, log: log.to_owned(), name: self.words[0].to_string_lossy().into_owned() })
    }
}

/// A process in the background. Killed when dropped; its children end with their namespace.
pub(crate) struct Running {
    child: Child,
    log: PathBuf,
    name: String,
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// An error with its last words, if it has ended.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        if let Some(status) = self.child.try_wait()? {
            let said = std::fs::read_to_string(&self.log).unwrap_or_default();
            let tail: Vec<&str> = said.lines().rev().take(5).collect();
            anyhow::bail!("{} ended ({status}): {}", self.name, tail.into_iter().rev().collect::<Vec<_>>().join(" / "));
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
