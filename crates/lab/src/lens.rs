//! The lens at a target's server: here in a process of our own, elsewhere with the `openssl speed` that is there.

use crate::hosts::Hosts;
use crate::servers::still_serving;
use duel_lens::ChildCommand;
use duel_lens::speed::{self, SpeedOrder};
use duel_model::{Facts, HostAccess, HostPlan, LensReading};
use std::time::Duration;

/// How much longer than its measurement the script may take: it starts `openssl` some fifteen times, on a machine that
/// may be busy. One that hangs is given up by the script itself, after 10 s.
const PATIENCE: Duration = Duration::from_secs(30);
/// Variables of a server's environment that the script understands.
const VARIABLES: &str = "process.environment.";

/// Measures the libcrypto that a target's server maps. Errors are sentences.
pub(crate) fn reading(
    hosts: &Hosts,
    target: usize,
    host: Option<&HostPlan>,
    child: Option<&ChildCommand>,
) -> Result<LensReading, String> {
    let facts = hosts.facts().into_iter().nth(target).flatten().ok_or("the machine is not read")?;
    let pid = still_serving(hosts, target)?;
    match host.map(|host| &host.access) {
        Some(HostAccess::Local) => {
            let child = child.ok_or("this program cannot start the process that it takes")?;
            let order = duel_lens::of_process(pid, child.clone()).map_err(|error| error.to_string())?;
            // What was read is of that process only if it is still there.
            still_serving(hosts, target)?;
            duel_lens::measure(&order).map_err(|error| error.to_string())
        }
        Some(HostAccess::Ssh(_)) => {
            let order = order(&facts, pid)?;
            let timeout = Duration::from_secs(speed::seconds(&order)) + PATIENCE;
            let printed = hosts.run(target, &speed::script(&order), timeout)?;
            speed::reading(&order, &printed)
        }
        None => Err("the machine is not read".to_owned()),
    }
}

/// What to measure over there. The paths come from that host; they are quoted before a shell sees them.
fn order(facts: &Facts, pid: u32) -> Result<SpeedOrder, String> {
    let library = facts
        .text("process.library.libcrypto.path")
        .ok_or("the server maps no libcrypto, or its mappings could not be read")?;
    if facts.text("process.library.libcrypto.replaced").is_some() {
        return Err("the libcrypto that the server maps was replaced or deleted since the server started".to_owned());
    }
    let mut order = SpeedOrder::new(library, pid);
    let variables = facts.under(VARIABLES);
    order.environment = variables
        .filter_map(|(key, known)| Some((key.strip_prefix(VARIABLES)?.to_owned(), known.text()?.to_owned())))
        .collect();
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_model::Known;

    fn facts(facts: &[(&str, &str)]) -> Facts {
        Facts(facts.iter().map(|(key, value)| ((*key).to_owned(), Known::from((*value).to_owned()))).collect())
    }

    #[test]
    fn the_order_holds_what_the_host_told() {
        let library = ("process.library.libcrypto.path", "/opt/a b/libcrypto.so.3");
        let mask = ("process.environment.OPENSSL_ia32cap", "~0x1");
        let order = order(&facts(&[library, mask, ("process.pid", "7")]), 7).unwrap();
        assert_eq!((order.library.as_str(), order.pid), ("/opt/a b/libcrypto.so.3", 7));
        assert_eq!(order.environment["OPENSSL_ia32cap"], "~0x1");
        let replaced = ("process.library.libcrypto.replaced", "yes: the file on disk is another one");
        assert!(super::order(&facts(&[library, replaced]), 7).unwrap_err().contains("replaced"));
        assert!(super::order(&facts(&[]), 7).unwrap_err().contains("maps no libcrypto"));
    }
}
