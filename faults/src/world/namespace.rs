//! Network namespaces and the veth pairs between them.

use super::{Guard, Made, World, run, run_with_input, succeed};

/// A network namespace; its interfaces and processes go away with it.
pub(crate) struct Namespace {
    name: String,
    _guard: Guard,
}

impl Namespace {
    /// A new one, in which only the loopback interface is up.
    pub(crate) fn new(world: &World) -> anyhow::Result<Namespace> {
        let name = world.name();
        let guard = world.promise(Made::Namespace(name.clone()))?;
        succeed("ip", &["netns", "add", &name])?;
        let namespace = Namespace { name, _guard: guard };
        namespace.ip(&["link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Where it can be entered, also by programs that know nothing of names.
    pub(crate) fn path(&self) -> String {
        format!("/run/netns/{}", self.name)
    }

    /// Runs `ip` in it.
    pub(crate) fn ip(&self, args: &[&str]) -> anyhow::Result<()> {
        let all: Vec<&str> = ["-n", &self.name].into_iter().chain(args.iter().copied()).collect();
        succeed("ip", &all)
    }

    /// Runs a program in it to its end, and returns what it printed.
    pub(crate) fn run(&self, program: &str, args: &[&str]) -> anyhow::Result<String> {
        let all: Vec<&str> = ["netns", "exec", &self.name, program].into_iter().chain(args.iter().copied()).collect();
        run("ip", &all)
    }

    /// Loads nftables rules.
    pub(crate) fn firewall(&self, rules: &str) -> anyhow::Result<()> {
        run_with_input("ip", &["netns", "exec", &self.name, "nft", "-f", "-"], rules).map(drop)
    }

    /// Sets a variable of the kernel that is the namespace's own.
    pub(crate) fn sysctl(&self, name: &str, value: &str) -> anyhow::Result<()> {
        self.run("sysctl", &["-q", "-w", &format!("{name}={value}")]).map(drop)
    }

    /// Ends all its processes, before what they hold on to is taken away.
    pub(crate) fn end_processes(&self) {
        // What does not end shows when the namespace itself is unmade.
        let _ = Made::Namespace(self.name.clone()).end_processes();
    }

    /// Its processes.
    pub(crate) fn pids(&self) -> anyhow::Result<Vec<u32>> {
        let listed = run("ip", &["netns", "pids", &self.name])?;
        Ok(listed.split_whitespace().filter_map(|pid| pid.parse().ok()).collect())
    }
}

/// Connects two namespaces by a veth pair whose ends have these names.
pub(crate) fn veth(one: (&Namespace, &str), other: (&Namespace, &str)) -> anyhow::Result<()> {
    let peer = ["peer", "name", other.1, "netns", other.0.name()];
    let args: Vec<&str> = ["link", "add", one.1, "type", "veth"].into_iter().chain(peer).collect();
    one.0.ip(&args)?;
    one.0.ip(&["link", "set", one.1, "up"])?;
    other.0.ip(&["link", "set", other.1, "up"])
}
