//! Options of the targets' machines, and what they mean: which machine belongs to which target, and how it is read.

use crate::outcome::Usage;
use clap::Args;
use duel_model::{HostAccess, HostPlan, Plan, RedfishPlan, ServerPlan, sanitize_line};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Which machines are read while their targets are under load, and how.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Hosts")]
pub(crate) struct HostFlags {
    /// Target NAME runs on this machine: read it. With --why a target on localhost, on an address of this machine or behind a Unix socket of its address is read without it
    #[arg(long, value_name = "NAME")]
    pub(crate) local: Vec<String>,
    /// Read no target's machine that --local or --ssh does not name
    #[arg(long)]
    pub(crate) no_local: bool,
    /// Target NAME runs on a machine that ssh reaches as DEST: read it, by a shell; nothing is installed
    #[arg(long, value_name = "NAME=DEST")]
    pub(crate) ssh: Vec<String>,
    #[command(flatten)]
    pub(crate) server: ServerFlags,
    #[command(flatten)]
    pub(crate) redfish: RedfishFlags,
}

/// Which process is the server, where it is not found by the port it listens on.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Hosts")]
pub(crate) struct ServerFlags {
    /// The server of NAME is process N and its children
    #[arg(long, value_name = "NAME=N")]
    pub(crate) pid: Vec<String>,
    /// The server of NAME is this service
    #[arg(long, value_name = "NAME=UNIT")]
    pub(crate) service: Vec<String>,
}

/// Management controllers of machines. A password on the command line could be read by everybody on this machine.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Hosts")]
pub(crate) struct RedfishFlags {
    /// The management controller of NAME's machine: its fans, temperatures and power supplies are read before and after
    /// the run. The password of USER is in $DUEL_REDFISH_PASSWORD or in a file
    #[arg(long, value_name = "NAME=https://[USER@]HOST")]
    pub(crate) redfish: Vec<String>,
    /// The first line of FILE is the password for NAME's management controller
    #[arg(long, value_name = "NAME=FILE")]
    pub(crate) redfish_password_file: Vec<String>,
    /// Do not verify certificates of management controllers
    #[arg(long)]
    pub(crate) redfish_insecure: bool,
}

/// Has targets on this machine read of whose machines the plan says nothing: where a cause is sought. Reading changes nothing, and
/// many causes are found on the machine only.
pub(crate) fn read_unasked(plan: &mut Plan) {
    for target in plan.targets.iter_mut().filter(|target| target.host.is_none()) {
        let server = match duel_lab::port_on_this_machine(&plan.workload, target) {
            Some(port) => ServerPlan::Port(port),
            // Who listens on the socket is asked when the machine is read.
            None if duel_lab::is_behind_socket(&plan.workload, target) => ServerPlan::Unknown,
            None => continue,
        };
        target.host = Some(HostPlan { access: HostAccess::Local, server, process: None, redfish: None });
    }
}

/// Says of each target how its machine is read, as the flags say. `seeks_cause`: see [`read_unasked`].
pub(crate) fn assign(plan: &mut Plan, flags: &HostFlags, seeks_cause: bool) -> Result<(), Usage> {
    let mut access = BTreeMap::new();
    for name in &flags.local {
        once(&mut access, "--local", name, HostAccess::Local)?;
    }
    for typed in &flags.ssh {
        let (name, destination) = pair("--ssh", typed, "web=root@web1")?;
        once(&mut access, "--ssh", name, HostAccess::Ssh(destination.to_owned()))?;
    }
    let mut servers = servers(&flags.server)?;
    let mut controllers = controllers(&flags.redfish)?;
    if seeks_cause && !flags.no_local {
        read_unasked(plan);
    }
    for target in &mut plan.targets {
        let named = servers.remove(target.name.as_str());
        let redfish = controllers.remove(target.name.as_str());
        let unasked = target.host.take().map(|host| host.access);
        let Some(access) = access.remove(target.name.as_str()).or(unasked) else {
            if named.is_some() || redfish.is_some() {
                return Err(Usage(format!(
                    "--pid, --service and --redfish need to know how the machine of {0} is read: --local {0}, or --ssh {0}=DEST",
                    sanitize_line(&target.name)
                )));
            }
            continue;
        };
        // What has no port has no server to be found by one: a folder, a library. Who listens on a Unix socket of an address is found when
        // the machine is read.
        let by_port = || duel_lab::server_port(&plan.workload, target).map(ServerPlan::Port);
        let server = named.or_else(by_port).unwrap_or(ServerPlan::Unknown);
        target.host = Some(HostPlan { access, server, process: None, redfish });
    }
    match access.keys().chain(servers.keys()).chain(controllers.keys()).next() {
        None => Ok(()),
        Some(name) => {
            let names: Vec<_> = plan.targets.iter().map(|target| sanitize_line(&target.name)).collect();
            Err(Usage(format!("no target is called '{}'; there is {}", sanitize_line(name), names.join(", "))))
        }
    }
}

/// The server processes that are named, by the name of their target or machine.
pub(crate) fn servers(flags: &ServerFlags) -> Result<BTreeMap<&str, ServerPlan>, Usage> {
    let mut servers = BTreeMap::new();
    for typed in &flags.pid {
        let (name, pid) = pair("--pid", typed, "web=1234")?;
        let pid = pid.parse().ok().filter(|&pid| pid > 0);
        let pid = pid.ok_or_else(|| Usage(format!("--pid {}: a process id is a number", sanitize_line(typed))))?;
        once(&mut servers, "--pid", name, ServerPlan::Pid(pid))?;
    }
    for typed in &flags.service {
        let (name, unit) = pair("--service", typed, "web=nginx")?;
        once(&mut servers, "--service", name, ServerPlan::Service(unit.to_owned()))?;
    }
    Ok(servers)
}

/// The management controllers that are named, by the name of their target or machine.
pub(crate) fn controllers(flags: &RedfishFlags) -> Result<BTreeMap<&str, RedfishPlan>, Usage> {
    let mut files = BTreeMap::new();
    for typed in &flags.redfish_password_file {
        let (name, file) = pair("--redfish-password-file", typed, "web=/root/bmc-password")?;
        once(&mut files, "--redfish-password-file", name, PathBuf::from(file))?;
    }
    let mut controllers = BTreeMap::new();
    for typed in &flags.redfish {
        // What is wrong with it may be a password: it is not shown.
        let (name, address) =
            typed.split_once('=').filter(|(name, _)| !name.is_empty() && !name.contains("://")).ok_or_else(|| {
                Usage(
                    "--redfish takes the name of a target and an address, such as --redfish web=https://root@bmc1"
                        .into(),
                )
            })?;
        let plan = controller(name, address, files.remove(name), !flags.redfish_insecure)?;
        once(&mut controllers, "--redfish", name, plan)?;
    }
    match files.keys().next() {
        None => Ok(controllers),
        Some(name) => Err(Usage(format!(
            "--redfish-password-file: the management controller of '{}' is not named; --redfish does that",
            sanitize_line(name)
        ))),
    }
}

fn controller(name: &str, typed: &str, password_file: Option<PathBuf>, verify: bool) -> Result<RedfishPlan, Usage> {
    let name = sanitize_line(name);
    let rest = typed.strip_prefix("https://");
    let rest = rest.ok_or_else(|| Usage(format!("--redfish {name}: the address has to begin with https://")))?;
    let (user, host) = rest.rsplit_once('@').map_or((None, rest), |(user, host)| (Some(user.to_owned()), host));
    if user.as_ref().is_some_and(|user| user.is_empty() || user.contains(':')) {
        return Err(Usage(format!(
            "--redfish {name}: before the @ stands a user and nothing else; a password would be read by everybody on this \
             machine: --redfish-password-file {name}=FILE reads it from a file"
        )));
    }
    if user.is_none() && password_file.is_some() {
        return Err(Usage(format!(
            "--redfish-password-file {name}: whose password is it? --redfish {name}=https://USER@HOST"
        )));
    }
    let plan = RedfishPlan { address: format!("https://{host}"), user, password_file, verify };
    duel_lab::check_redfish(&plan).map_err(|why| Usage(format!("--redfish {name}: {why}")))?;
    Ok(plan)
}

/// `NAME=VALUE` in two.
pub(crate) fn pair<'a>(flag: &str, typed: &'a str, example: &str) -> Result<(&'a str, &'a str), Usage> {
    typed.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty()).ok_or_else(|| {
        Usage(format!(
            "{flag} takes the name of a target and a value, such as {flag} {example}; got '{}'",
            sanitize_line(typed)
        ))
    })
}

fn once<'a, T>(map: &mut BTreeMap<&'a str, T>, flag: &str, name: &'a str, value: T) -> Result<(), Usage> {
    match map.insert(name, value) {
        None => Ok(()),
        Some(_) => Err(Usage(format!("{flag}: '{}' is told about twice", sanitize_line(name)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::tests::plan_of;
    use duel_model::Target;

    fn plan(words: &[&str]) -> Plan {
        plan_of(["duel"].iter().chain(words).copied())
    }

    fn flags(local: &[&str], ssh: &[&str], pid: &[&str]) -> HostFlags {
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let server = ServerFlags { pid: list(pid), service: Vec::new() };
        HostFlags { local: list(local), ssh: list(ssh), server, ..HostFlags::default() }
    }

    #[test]
    fn management_controllers_go_to_their_targets_and_passwords_are_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        std::fs::write(&file, "hunter2\n").unwrap();
        let named = format!("A={}", file.display());
        let assigned = |typed: &[&str], files: &[&str]| {
            let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
            let redfish =
                RedfishFlags { redfish: list(typed), redfish_password_file: list(files), redfish_insecure: false };
            let mut plan = plan(&["A=http://a/", "B=http://b/"]);
            assign(&mut plan, &HostFlags { redfish, ..flags(&["A"], &[], &[]) }, false).map(|()| plan.targets)
        };
        let targets = assigned(&["A=https://root@bmc:8443"], &[&named]).unwrap();
        let [a, b] = &targets[..] else { panic!("{targets:?}") };
        let plan = a.host.as_ref().unwrap().redfish.as_ref().unwrap();
        assert_eq!((plan.address.as_str(), plan.user.as_deref()), ("https://bmc:8443", Some("root")));
        assert!(plan.verify && plan.password_file.as_ref() == Some(&file) && b.host.is_none());
        assert!(assigned(&["A=https://bmc"], &[]).is_ok(), "nobody needs no password");
        for (typed, files, part) in [
            (&["A=https://root:hunter2@bmc"][..], &[][..], "reads it from a file"),
            (&["A=http://root:hunter2@bmc"], &[], "begin with https://"),
            (&["https://root:hunter2@bmc"], &[], "takes the name of a target"),
            (&["https://root:hunter2=@bmc"], &[], "takes the name of a target"),
            (&["A=https://root@bmc"], &["A=/no/such/file"], "password cannot be read"),
            (&["A=https://bmc"], &[&named], "whose password is it?"),
            (&["A=https://root@b mc"], &[&named], "https://HOST"),
            (&["B=https://bmc"], &[], "--local B, or --ssh B=DEST"),
            (&["X=https://bmc"], &[], "no target is called 'X'"),
            (&["A=https://bmc", "A=https://bmc"], &[], "told about twice"),
            (&[], &[&named], "is not named"),
        ] {
            let Usage(said) = assigned(typed, files).unwrap_err();
            assert!(said.contains(part) && !said.contains("hunter2"), "{said}");
        }
    }

    #[test]
    fn machines_go_to_their_targets() {
        let mut plan = plan(&["A=https://a.example/f", "B=http://b.example:8080/", "C=http://127.0.0.1/"]);
        assign(&mut plan, &flags(&["A"], &["B=me@b"], &["B=7"]), false).unwrap();
        let hosts: Vec<_> = plan.targets.into_iter().map(|target| target.host).collect();
        let read = |access, server| Some(HostPlan { access, server, process: None, redfish: None });
        let expected = [
            read(HostAccess::Local, ServerPlan::Port(443)),
            read(HostAccess::Ssh("me@b".into()), ServerPlan::Pid(7)),
            None,
        ];
        assert_eq!(hosts, expected);
    }

    #[test]
    fn where_a_cause_is_sought_servers_on_this_machine_are_read_unasked() {
        let read = |words: &[&str], seeks_cause: bool, no_local: bool| {
            let mut plan = plan(words);
            assign(&mut plan, &HostFlags { no_local, ..HostFlags::default() }, seeks_cause).unwrap();
            let host = |target: Target| {
                let HostPlan { access, server, .. } = target.host?;
                assert_eq!(access, HostAccess::Local);
                Some(server)
            };
            plan.targets.into_iter().map(host).collect::<Vec<_>>()
        };
        let near = ["http://127.0.0.1:81/", "https://localhost/", "http://[::1]:82/", "http://192.0.2.1/"];
        let ports = [81, 443, 82].map(|port| Some(ServerPlan::Port(port)));
        assert_eq!(read(&near, true, false), [&ports[..], &[None]].concat());
        assert_eq!(read(&near, false, false), [None, None, None, None]);
        assert_eq!(read(&near, true, true), [None, None, None, None]);
        // Whoever listens on that port here is not asked.
        for led_elsewhere in [["--proxy", "http://192.0.2.1:3128"], ["--unix-socket", "/run/x"]] {
            assert_eq!(read(&[&near[..2], &led_elsewhere].concat(), true, false), [None, None]);
        }
        let databases = ["postgres://u@127.0.0.1/db", "postgres://u@localhost:99/db", "postgres://u@192.0.2.1/db"];
        assert_eq!(read(&databases, true, false), [Some(ServerPlan::Port(5432)), Some(ServerPlan::Port(99)), None]);
        // Who listens on a socket is found when the machine is read.
        let sockets = ["postgres://u@/db", "mysql://u@/db?socket=/tmp/m.sock", "sqlite::memory:"];
        assert_eq!(read(&sockets, true, false), [Some(ServerPlan::Unknown), Some(ServerPlan::Unknown), None]);
        assert_eq!(read(&sockets, true, true), [None, None, None]);
        assert_eq!(read(&["tcp://127.0.0.1:98", "tcp://127.0.0.1:98?netns=x"], true, false)[1], None);
    }

    #[test]
    fn what_has_no_server_is_read_without_one() {
        let mut plan = plan(&["A=sqlite::memory:", "B=sqlite::memory:"]);
        assign(&mut plan, &flags(&["B"], &[], &[]), false).unwrap();
        assert_eq!(plan.targets[1].host.as_ref().map(|host| &host.server), Some(&ServerPlan::Unknown));
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        for (local, ssh, pid, part) in [
            (&["X"][..], &[][..], &[][..], "no target is called 'X'; there is A"),
            (&["A"], &["A=h"], &[], "'A' is told about twice"),
            (&[], &["A"], &[], "such as --ssh web=root@web1; got 'A'"),
            (&[], &[], &["A=1"], "--local A, or --ssh A=DEST"),
            (&["A"], &[], &["A=x"], "a process id is a number"),
            (&["A"], &[], &["A=0"], "a process id is a number"),
        ] {
            let Usage(said) = assign(&mut plan(&["run", "A=http://a/"]), &flags(local, ssh, pid), false).unwrap_err();
            assert!(said.contains(part), "{said}");
        }
    }
}
