//! Which machine belongs to which target: what `--local`, `--ssh`, `--pid` and `--service` mean.

use crate::flags::{HostFlags, ServerFlags};
use crate::outcome::Usage;
use duel_model::{HostAccess, HostPlan, ServerPlan, Target, sanitize_line};
use std::collections::BTreeMap;

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
    for target in targets.iter_mut() {
        let named = servers.remove(target.name.as_str());
        let Some(access) = access.remove(target.name.as_str()) else {
            if named.is_some() {
                return Err(Usage(format!(
                    "--pid and --service need to know how the machine of {0} is read: --local {0}, or --ssh {0}=DEST",
                    sanitize_line(&target.name)
                )));
            }
            continue;
        };
        let server = match named {
            Some(server) => server,
            None => ServerPlan::Port(port(target)?),
        };
        target.host = Some(HostPlan { access, server });
    }
    match access.keys().chain(servers.keys()).next() {
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
        HostFlags { local: list(local), ssh: list(ssh), server: ServerFlags { pid: list(pid), service: Vec::new() } }
    }

    #[test]
    fn machines_go_to_their_targets() {
        let mut targets =
            [target("A", "https://a.example/f"), target("B", "http://b.example:8080/"), target("C", "x:")];
        assign(&mut targets, &flags(&["A"], &["B=me@b"], &["B=7"])).unwrap();
        assert_eq!(
            targets.map(|target| target.host),
            [
                Some(HostPlan { access: HostAccess::Local, server: ServerPlan::Port(443) }),
                Some(HostPlan { access: HostAccess::Ssh("me@b".into()), server: ServerPlan::Pid(7) }),
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
