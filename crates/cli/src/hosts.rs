//! Options of the targets' machines, and what they mean: which machine belongs to which target, and how it is read.

use crate::outcome::Usage;
use clap::Args;
use duel_model::{HostAccess, HostPlan, RedfishPlan, ServerPlan, Target, sanitize_line};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Which machines are read while their targets are under load, and how.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Hosts")]
pub(crate) struct HostFlags {
    /// Target NAME runs on this machine: read it
    #[arg(long, value_name = "NAME")]
    pub(crate) local: Vec<String>,
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

/// Says of each target how its machine is read, as the flags say.
pub(crate) fn assign(targets: &mut [Target], flags: &HostFlags) -> Result<(), Usage> {
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
    for target in targets.iter_mut() {
        let named = servers.remove(target.name.as_str());
        let redfish = controllers.remove(target.name.as_str());
        let Some(access) = access.remove(target.name.as_str()) else {
            if named.is_some() || redfish.is_some() {
                return Err(Usage(format!(
                    "--pid, --service and --redfish need to know how the machine of {0} is read: --local {0}, or --ssh {0}=DEST",
                    sanitize_line(&target.name)
                )));
            }
            continue;
        };
        let server = match named {
            Some(server) => server,
            None => ServerPlan::Port(port(target)?),
        };
        target.host = Some(HostPlan { access, server, process: None, redfish });
    }
    match access.keys().chain(servers.keys()).chain(controllers.keys()).next() {
        None => Ok(()),
        Some(name) => {
            let names: Vec<_> = targets.iter().map(|target| sanitize_line(&target.name)).collect();
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

/// The port of a target's address, where its server listens unless somebody stands in between.
fn port(target: &Target) -> Result<u16, Usage> {
    let url = url::Url::parse(&target.address).ok();
    url.as_ref().and_then(url::Url::port_or_known_default).ok_or_else(|| {
        Usage(format!(
            "the address of {0} tells no port to find its server by; name it with --pid {0}=N or --service {0}=UNIT",
            sanitize_line(&target.name)
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &str, address: &str) -> Target {
        Target { name: name.into(), address: address.into(), host: None }
    }

    fn flags(local: &[&str], ssh: &[&str], pid: &[&str]) -> HostFlags {
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let server = ServerFlags { pid: list(pid), service: Vec::new() };
        HostFlags { local: list(local), ssh: list(ssh), server, redfish: RedfishFlags::default() }
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
            let mut targets = [target("A", "http://a/"), target("B", "http://b/")];
            assign(&mut targets, &HostFlags { redfish, ..flags(&["A"], &[], &[]) }).map(|()| targets)
        };
        let [a, b] = assigned(&["A=https://root@bmc:8443"], &[&named]).unwrap();
        let plan = a.host.unwrap().redfish.unwrap();
        assert_eq!((plan.address.as_str(), plan.user.as_deref()), ("https://bmc:8443", Some("root")));
        assert!(plan.verify && plan.password_file == Some(file) && b.host.is_none());
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
        let mut targets =
            [target("A", "https://a.example/f"), target("B", "http://b.example:8080/"), target("C", "x:")];
        assign(&mut targets, &flags(&["A"], &["B=me@b"], &["B=7"])).unwrap();
        assert_eq!(
            targets.map(|target| target.host),
            [
                Some(HostPlan {
                    access: HostAccess::Local,
                    server: ServerPlan::Port(443),
                    process: None,
                    redfish: None
                }),
                Some(HostPlan {
                    access: HostAccess::Ssh("me@b".into()),
                    server: ServerPlan::Pid(7),
                    process: None,
                    redfish: None
                }),
                None
            ]
        );
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
            let Usage(said) = assign(&mut [target("A", "http://a/")], &flags(local, ssh, pid)).unwrap_err();
            assert!(said.contains(part), "{said}");
        }
    }
}
