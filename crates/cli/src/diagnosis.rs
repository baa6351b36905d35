//! Options of looking for a cause, and what they mean.

use crate::load::values::positive;
use crate::outcome::Usage;
use clap::Args;
use duel_lab::DiagnosisPlan;
use duel_model::{Target, parse_size_bytes, sanitize_line};

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
}

impl DiagnosisFlags {
    /// What the options mean.
    pub(crate) fn plan(&self, targets: &[Target]) -> Result<DiagnosisPlan, Usage> {
        let budget_ns = positive("--why-budget", &self.why_budget)?;
        let may_start_twin = may_start_twin(&self.may_start_twin, targets)?;
        let copied = |typed: &String| match parse_size_bytes(typed) {
            Ok(bytes) if bytes > 0 => Ok(bytes),
            _ => Err(Usage(format!("--may-copy-database {}: it takes a size, such as 2GB", sanitize_line(typed)))),
        };
        let most_copied_bytes = self.may_copy_database.as_ref().map(copied).transpose()?;
        Ok(DiagnosisPlan { budget_ns, names_suspects: self.name_suspects, may_start_twin, most_copied_bytes })
    }
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
                let known: Vec<_> = targets.iter().map(|target| sanitize_line(&target.name)).collect();
                let name = sanitize_line(name);
                return Err(Usage(format!(
                    "--may-start-twin={name}: no target is called so; there is {}",
                    known.join(", ")
                )));
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
}
