//! `duel facts HOST ...`: what machines are, side by side.

use crate::hosts::{self, RedfishFlags, ServerFlags};
use crate::outcome::{Outcome, Usage, say};
use crate::output::OutputFlags;
use crate::terminal;
use clap::Args;
use duel_model::{HostAccess, HostPlan, HostRecord, ServerPlan, sanitize_line};

/// Machines to look at.
#[derive(Args, Clone)]
pub(crate) struct FactsFlags {
    /// Machines as [NAME=]HOST: 'local' for this one, or a destination of ssh
    #[arg(value_name = "[NAME=]HOST", default_value = "local")]
    pub(crate) hosts: Vec<String>,
    /// The server on NAME is whoever listens on this TCP port
    #[arg(long, value_name = "NAME=PORT")]
    pub(crate) port: Vec<String>,
    #[command(flatten)]
    pub(crate) server: ServerFlags,
    #[command(flatten)]
    pub(crate) redfish: RedfishFlags,
    /// Show the facts that are the same, too
    #[arg(long, help_heading = "Output")]
    pub(crate) all: bool,
}

/// Reads the machines given and shows their facts.
pub(crate) fn facts(facts: &FactsFlags, output: &OutputFlags) -> anyhow::Result<Outcome> {
    let plans = plans(facts)?;
    let mut hosts: Vec<(String, Result<HostRecord, String>)> = Vec::new();
    for (name, plan) in plans {
        let read = duel_lab::host_facts(&plan).map(HostRecord::shown).map_err(|why| why.to_string());
        match &read {
            Ok(record) => record.doubts.iter().for_each(|doubt| say(&format!("{}: {doubt}", sanitize_line(&name)))),
            Err(why) => say(&format!("{}: {why}", sanitize_line(&name))),
        }
        hosts.push((name, read));
    }
    let columns: Vec<_> =
        hosts.iter().filter_map(|(name, read)| Some((name.as_str(), &read.as_ref().ok()?.facts))).collect();
    if output.json {
        terminal::print(&duel_report::json_facts(&hosts))?;
    } else if !columns.is_empty() {
        terminal::print(&duel_report::facts(&columns, facts.all, terminal::result_style()))?;
    }
    Ok(if columns.len() == hosts.len() { Outcome::Done } else { Outcome::CouldNotRun })
}

fn plans(facts: &FactsFlags) -> Result<Vec<(String, HostPlan)>, Usage> {
    let mut servers = hosts::servers(&facts.server)?;
    for typed in &facts.port {
        let (name, port) = hosts::pair("--port", typed, "web=443")?;
        let port = port.parse().map_err(|_| Usage(format!("--port {}: a port is a number", sanitize_line(typed))))?;
        if servers.insert(name, ServerPlan::Port(port)).is_some() {
            return Err(Usage(format!("--port: '{}' is told about twice", sanitize_line(name))));
        }
    }
    let mut controllers = hosts::controllers(&facts.redfish)?;
    let mut plans: Vec<(String, HostPlan)> = Vec::new();
    for typed in &facts.hosts {
        let (name, host) = typed.split_once('=').unwrap_or((typed, typed));
        if plans.iter().any(|(other, _)| other == name) {
            return Err(Usage(format!("two machines are called '{}'; write NAME=HOST", sanitize_line(name))));
        }
        // ssh would be started with it, passwords included, and any user lists those of processes.
        if host.contains("://") && !host.starts_with("ssh://") {
            return Err(Usage(
                "an address of a target is no machine; a machine is HOST or USER@HOST, as ssh knows it".into(),
            ));
        }
        let access = if host == "local" { HostAccess::Local } else { HostAccess::Ssh(host.to_owned()) };
        let server = servers.remove(name).unwrap_or(ServerPlan::Unknown);
        let redfish = controllers.remove(name);
        plans.push((name.to_owned(), HostPlan { access, server, process: None, redfish }));
    }
    match servers.keys().chain(controllers.keys()).next() {
        None => Ok(plans),
        Some(name) => {
            let names: Vec<_> = plans.iter().map(|(name, _)| sanitize_line(name)).collect();
            Err(Usage(format!("no machine is called '{}'; there is {}", sanitize_line(name), names.join(", "))))
        }
    }
}
