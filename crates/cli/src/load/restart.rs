//! `--restart`: by which commands targets are started anew, and where that has no meaning.

use crate::load::values::positive;
use crate::outcome::Usage;
use crate::secrets;
use clap::Args;
use duel_model::{Plan, RestartCommand, RestartPlan, ServerPlan, Target, WorkloadPlan, sanitize_line};

/// How targets are started anew.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Comparing")]
pub(crate) struct RestartFlags {
    /// Start target NAME anew before each round of blocks, by this command of a shell on this machine, and wait until it answers
    /// again: what differs between two starts of one program is then no difference between programs. Repeatable, once for each
    /// target; a server that COMMAND starts itself belongs in the background (&)
    #[arg(long, value_name = "NAME=COMMAND")]
    pub(crate) restart: Vec<String>,
    /// Longest time from the beginning of a --restart command until its target answers again [default: 3m]
    #[arg(long, value_name = "TIME", requires = "restart")]
    pub(crate) restart_timeout: Option<String>,
}

impl RestartFlags {
    /// Whether any is given.
    pub(crate) fn is_given(&self) -> bool {
        !self.restart.is_empty()
    }

    /// What the flags mean for a comparison of these targets.
    pub(crate) fn plan(&self, targets: &[Target]) -> Result<Option<RestartPlan>, Usage> {
        let typed = self.typed()?;
        if let Some((name, _)) = typed.iter().find(|(name, _)| targets.iter().all(|target| target.name != *name)) {
            let names: Vec<_> = targets.iter().map(|target| sanitize_line(&target.name)).collect();
            return Err(Usage(format!(
                "--restart: no target is called '{}'; there is {}",
                sanitize_line(name),
                names.join(", ")
            )));
        }
        let of = |target: &Target| {
            let (_, command) = typed.iter().find(|(name, _)| *name == target.name)?;
            Some(RestartCommand { target: target.name.clone(), command: (*command).to_owned() })
        };
        let commands: Vec<RestartCommand> = targets.iter().filter_map(of).collect();
        let timeout_ns = match &self.restart_timeout {
            Some(typed) => positive("--restart-timeout", typed)?,
            None => RestartPlan::TIMEOUT_NS,
        };
        Ok((!commands.is_empty()).then_some(RestartPlan { commands, timeout_ns }))
    }

    /// Takes the commands out of an archived plan in whose place others are typed, and answers those.
    pub(crate) fn replace(&self, plan: &mut Plan) -> Result<Vec<RestartCommand>, Usage> {
        let typed = self.typed()?;
        if let Some((name, _)) = typed
            .iter()
            .find(|(name, _)| plan.compare.restart.as_ref().is_none_or(|restart| restart.of(name).is_none()))
        {
            return Err(Usage(format!(
                "--restart: the run did not start '{}' anew, so a repetition does not either",
                sanitize_line(name)
            )));
        }
        if let Some(restart) = &mut plan.compare.restart {
            restart.commands.retain(|kept| typed.iter().all(|(name, _)| kept.target != *name));
        }
        let command = |(target, command): &(&str, &str)| RestartCommand {
            target: (*target).to_owned(),
            command: (*command).to_owned(),
        };
        Ok(typed.iter().map(command).collect())
    }

    /// Names and commands, each name once.
    fn typed(&self) -> Result<Vec<(&str, &str)>, Usage> {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for typed in &self.restart {
            // What was typed may hold a secret: of what is wrong with it nothing is shown.
            let pair = typed.split_once('=').filter(|(name, command)| !name.is_empty() && !command.trim().is_empty());
            let (name, command) = pair.ok_or_else(|| {
                Usage(
                    "--restart takes the name of a target and a command, such as --restart A='systemctl restart nginx'"
                        .into(),
                )
            })?;
            if command.contains('\0') {
                return Err(Usage("--restart: a command cannot hold a zero byte".into()));
            }
            let is_left_out = command.contains(Plan::LEFT_OUT) || command.contains(Plan::REDACTED);
            secrets::refuse_left_out(
                is_left_out.then(|| format!("the command that starts {} anew", sanitize_line(name))),
            )?;
            if pairs.iter().any(|(before, _)| *before == name) {
                return Err(Usage(format!("--restart: '{}' is told about twice", sanitize_line(name))));
            }
            pairs.push((name, command));
        }
        Ok(pairs)
    }
}

/// Refuses a plan under which targets cannot be started anew.
pub(crate) fn refuse(plan: &Plan) -> Result<(), Usage> {
    let Some(restart) = &plan.compare.restart else { return Ok(()) };
    let why = if !matches!(plan.workload, WorkloadPlan::Http(_)) {
        "is for web servers"
    } else if !plan.factors.is_empty() {
        "starts targets anew for one comparison; leave the factors out, or --restart"
    } else if !plan.load.shape.stages.is_empty() || plan.load.shape.search.is_some() {
        "starts targets anew for a comparison under one load; leave --stages and --find-rate out, or --restart"
    } else if let Some(target) =
        plan.targets.iter().find(|target| has_process(target) && restart.of(&target.name).is_some())
    {
        return Err(Usage(format!(
            "--pid {0}: --restart starts {0} anew, and then it is another process; leave --pid out",
            sanitize_line(&target.name)
        )));
    } else {
        return Ok(());
    };
    Err(Usage(format!("--restart {why}")))
}

/// Whether the user has said which process the target's server is.
fn has_process(target: &Target) -> bool {
    target.host.as_ref().is_some_and(|host| matches!(host.server, ServerPlan::Pid(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(typed: &[&str]) -> Result<Option<RestartPlan>, String> {
        let target = |name: &str| Target { name: name.into(), address: "http://h/".into(), host: None };
        let restart = typed.iter().map(ToString::to_string).collect();
        RestartFlags { restart, restart_timeout: None }.plan(&[target("A"), target("B")]).map_err(|usage| usage.0)
    }

    #[test]
    fn commands_go_to_their_targets() {
        assert_eq!(read(&[]), Ok(None));
        let plan = read(&["B=PORT=2 ./start &", "A=./start"]).unwrap().unwrap();
        assert_eq!((plan.of("A"), plan.of("B")), (Some("./start"), Some("PORT=2 ./start &")));
        assert_eq!((plan.commands[0].target.as_str(), plan.timeout_ns), ("A", RestartPlan::TIMEOUT_NS));
    }

    #[test]
    fn what_makes_no_sense_is_said_and_no_command_is_shown() {
        for (typed, part) in [
            (&["A"][..], "takes the name of a target and a command"),
            (&["A= "], "takes the name of a target and a command"),
            (&["=s3cr3t"], "takes the name of a target and a command"),
            (&["C=s3cr3t"], "no target is called 'C'; there is A, B"),
            (&["A=s3cr3t", "A=x"], "'A' is told about twice"),
            (&["A=TOKEN=[not kept] s3cr3t"], "a secret was left out of the command that starts A anew"),
        ] {
            let said = read(typed).unwrap_err();
            assert!(said.contains(part) && !said.contains("s3cr3t"), "{said}");
        }
    }
}
