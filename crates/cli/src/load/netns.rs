//! `--netns`: from which network namespaces of this machine connections are made.

use crate::outcome::Usage;
use clap::Args;
use duel_model::{Target, sanitize_line};
use duel_net::Address;

/// From where connections to networks are made.
#[derive(Args, Clone, Default)]
pub(crate) struct NetnsFlags {
    /// Make the connections to target NAME from network namespace NS of this machine, as `ip netns` names it; without NAME
    /// those to all targets. Needs root
    #[arg(long, value_name = "[NAME=]NS,...", value_delimiter = ',', help_heading = "Networks")]
    netns: Vec<String>,
}

impl NetnsFlags {
    /// Says so in the addresses of targets, which are all that is kept of it.
    pub(crate) fn apply(&self, targets: &mut [Target]) -> Result<(), Usage> {
        for typed in &self.netns {
            let (name, netns) =
                typed.split_once('=').map_or((None, typed.as_str()), |(name, netns)| (Some(name), netns));
            duel_net::check_netns(netns).map_err(|error| Usage(format!("--netns: {error}")))?;
            let mut has_any = false;
            for target in targets.iter_mut().filter(|target| name.is_none_or(|name| target.name == name)) {
                has_any = true;
                let address = Address::parse(&target.address).map_err(|_| {
                    Usage(format!(
                        "--netns is for networks (tcp://); '{}' is a target of another kind",
                        sanitize_line(&target.name)
                    ))
                })?;
                target.address = address.within(netns).to_string();
            }
            if let Some(name) = name.filter(|_| !has_any) {
                return Err(Usage(format!("--netns: no target is called '{}'", sanitize_line(name))));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(netns: &[&str]) -> Result<Vec<String>, String> {
        let target = |name: &str| Target { name: name.into(), address: format!("tcp://{name}.example"), host: None };
        let mut targets = [target("A"), target("B")];
        let flags = NetnsFlags { netns: netns.iter().map(ToString::to_string).collect() };
        flags.apply(&mut targets).map_err(|usage| usage.0)?;
        Ok(targets.into_iter().map(|target| target.address).collect())
    }

    #[test]
    fn namespaces_become_part_of_addresses() {
        assert_eq!(
            applied(&["A=left", "B=right"]).unwrap(),
            ["tcp://A.example:3835?netns=left", "tcp://B.example:3835?netns=right"]
        );
        assert_eq!(applied(&["both"]).unwrap()[1], "tcp://B.example:3835?netns=both");
        assert!(applied(&["C=x"]).unwrap_err().contains("no target is called 'C'"));
        assert!(applied(&["A=../x"]).unwrap_err().contains("no name of a network namespace"));
    }
}
