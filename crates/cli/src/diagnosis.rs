//! Options of looking for a cause, and what they mean.

use crate::load::values::positive;
use crate::outcome::Usage;
use clap::Args;
use duel_lab::DiagnosisPlan;
use duel_model::{Plan, Target, parse_size_bytes, sanitize_line};

/// How a cause is looked for.
#[derive(Args, Clone)]
pub(crate) struct DiagnosisFlags {
    /// Most load time for finding the cause
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) why_budget: String,
    /// Name also the causes that the fault bench has not proven yet; without, they are told as suspicions
    #[arg(long, hide = true)]
    pub(crate) name_suspects: bool,
    /// Let a private twin of a server be started, as it is and with one thing changed, where that can prove the cause: of
    /// every target that is read on this machine, or of NAME only (repeatable). It runs on this machine, in namespaces and
    /// on files of its own, and ends with duel; the running server is not touched. It takes as much memory again. Linux, root
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) may_start_twin: Vec<String>,
    /// Let private copies of a PostgreSQL or MariaDB server on this machine be made, one after the other, where that can prove the cause:
    /// one as it is, and one with a setting changed that no session may change, or with its tables written anew. Each may have SIZE when it is
    /// made, and grows by what load writes; tables that are written anew take up to twice as much besides. It stands beside the server's data folder and ends and goes with duel. For each copy all data is read, PostgreSQL
    /// makes a checkpoint at once, and MariaDB takes a backup lock, at whose end commits wait for a moment; the server's memory is taken
    /// once more. By root or the server's own user
    #[arg(long, value_name = "SIZE")]
    pub(crate) may_copy_database: Option<String>,
    /// Where `duel net serve` answers on a target's machine (repeatable; one for each target). The path to a web server is then measured
    /// alone: exchanges of as many bytes, as many at a time, with that program in place of the server
    #[arg(long, value_name = "NAME=tcp://HOST:PORT")]
    pub(crate) net_server: Vec<String>,
}

impl DiagnosisFlags {
    /// What the options mean.
    pub(crate) fn plan(&self, plan: &Plan) -> Result<DiagnosisPlan, Usage> {
        let targets = &plan.targets;
        let budget_ns = positive("--why-budget", &self.why_budget)?;
        let may_start_twin = may_start_twin(&self.may_start_twin, targets)?;
        let copied = |typed: &String| match parse_size_bytes(typed) {
            Ok(bytes) if bytes > 0 => Ok(bytes),
            _ => Err(Usage(format!("--may-copy-database {}: it takes a size, such as 2GB", sanitize_line(typed)))),
        };
        let most_copied_bytes = self.may_copy_database.as_ref().map(copied).transpose()?;
        let net_servers = net_servers(&self.net_server, targets)?;
        if !net_servers.is_empty() && !duel_lab::kinds::measures_paths(plan.schema()) {
            let targets = plan.schema().targets.to_lowercase();
            return Err(Usage(format!(
                "--net-server has no meaning for {targets}: it measures the paths to web servers"
            )));
        }
        let names_suspects = self.name_suspects;
        Ok(DiagnosisPlan { budget_ns, names_suspects, may_start_twin, most_copied_bytes, net_servers })
    }
}

/// Where the path to each target is measured alone, in their order; empty where nothing was given.
fn net_servers(given: &[String], targets: &[Target]) -> Result<Vec<String>, Usage> {
    let mut servers = vec![None; targets.len()];
    for given in given {
        let Some((name, address)) = given.split_once('=') else {
            return Err(Usage("--net-server takes NAME=tcp://HOST:PORT".into()));
        };
        let refused = |why: &str| Usage(format!("--net-server {}: {why}", sanitize_line(name)));
        let Some(index) = targets.iter().position(|target| target.name == name) else {
            return Err(refused(&format!("no target is called so; there is {}", names_of(targets))));
        };
        duel_lab::kinds::check_net_server(address).map_err(|why| refused(&why))?;
        if servers[index].replace(address.to_owned()).is_some() {
            return Err(refused("it was given before"));
        }
    }
    if given.is_empty() {
        return Ok(Vec::new());
    }
    let all = servers.into_iter().zip(targets).map(|(server, target)| {
        let name = sanitize_line(&target.name);
        server.ok_or_else(|| {
            Usage(format!(
                "--net-server {name}=tcp://HOST:PORT is missing: the paths to all targets are compared; start 'duel net serve' on the \
                 machine of {name} as well"
            ))
        })
    });
    all.collect()
}

/// The names of targets, for whoever typed another one.
fn names_of(targets: &[Target]) -> String {
    targets.iter().map(|target| sanitize_line(&target.name)).collect::<Vec<_>>().join(", ")
}

/// Of which targets' servers twins may be started. A target behind ssh may be named: that there is no twin over ssh is then told
/// with the findings.
fn may_start_twin(names: &[String], targets: &[Target]) -> Result<Vec<bool>, Usage> {
    for name in names.iter().filter(|name| !name.is_empty()) {
        match targets.iter().find(|target| target.name == *name) {
            Some(target) if target.host.is_some() => {}
            Some(_) => {
                return Err(Usage(format!("--may-start-twin={0} needs --local {0} as well", sanitize_line(name))));
            }
            None => {
                let name = sanitize_line(name);
                let known = names_of(targets);
                return Err(Usage(format!("--may-start-twin={name}: no target is called so; there is {known}")));
            }
        }
    }
    let all = names.iter().any(String::is_empty);
    if all && targets.iter().all(|target| target.host.is_none()) {
        return Err(Usage("--may-start-twin needs to know which servers run on this machine: --local NAME".into()));
    }
    let may = |target: &Target| target.host.is_some() && (all || names.contains(&target.name));
    Ok(if names.is_empty() { Vec::new() } else { targets.iter().map(may).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twins_are_started_of_named_servers_or_of_all_that_are_read() {
        let mut targets = ["A", "B"].map(|name| Target { name: name.into(), address: "http://h/".into(), host: None });
        let of = |names: &[&str], targets: &[Target]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            may_start_twin(&names, targets).map_err(|Usage(said)| said)
        };
        assert_eq!(of(&[], &targets), Ok(vec![]));
        assert!(of(&[""], &targets).unwrap_err().contains("--local NAME"));
        assert!(of(&["B"], &targets).unwrap_err().contains("--local B"));
        assert!(of(&["X"], &targets).unwrap_err().contains("there is A, B"));
        targets[1].host = Some(duel_model::HostPlan {
            access: duel_model::HostAccess::Local,
            server: duel_model::ServerPlan::Unknown,
            process: None,
            redfish: None,
        });
        assert_eq!(of(&[""], &targets), Ok(vec![false, true]));
        assert_eq!(of(&["B"], &targets), Ok(vec![false, true]));
    }

    #[test]
    fn the_path_to_each_target_has_one_server_or_none_has() {
        let targets = ["A", "B"].map(|name| Target { name: name.into(), address: "http://h/".into(), host: None });
        let of = |given: &[&str]| {
            let given: Vec<String> = given.iter().map(|given| (*given).to_owned()).collect();
            net_servers(&given, &targets).map_err(|Usage(said)| said)
        };
        assert_eq!(of(&[]), Ok(vec![]));
        assert_eq!(of(&["B=tcp://b", "A=tcp://[::1]:5"]).unwrap(), ["tcp://[::1]:5", "tcp://b"]);
        for (given, told) in [
            (&["A=tcp://a"][..], "--net-server B=tcp://HOST:PORT is missing"),
            (&["A=tcp://a", "A=tcp://a"], "given before"),
            (&["X=tcp://a"], "there is A, B"),
            (&["A=http://a"], "does not begin with tcp://"),
            (&["tcp://a"], "NAME=tcp://HOST:PORT"),
        ] {
            let said = of(given).unwrap_err();
            assert!(said.contains(told), "{said}");
        }
    }
}
