//! How to repeat a measurement by hand: the commands of ours that do. What is typed on a machine is in `evidence::by_hand`.

use crate::case::Case;
use duel_model::{Bound, HostAccess, LoadShape, LoopKind, Plan, Variation, shell_word};

/// The command that repeats a probe with this variation for two of the plan's targets; `None`: the comparison itself.
///
/// There is none where [`duel_model::Plan::command`] has none, and for a twin in a server's place.
pub(crate) fn command(case: &Case<'_>, targets: [usize; 2], variation: Option<&Variation>) -> Option<String> {
    // No option makes a twin by itself.
    if variation.is_some_and(|variation| variation.twin.is_some()) {
        return None;
    }
    let plan = variation.map_or_else(|| case.plan.clone(), |variation| case.plan.varied(variation));
    among(case, plan, targets)?.command()
}

/// The commands that send one request to each of two targets and show what is negotiated with them.
pub(crate) fn contact(case: &Case<'_>, targets: [usize; 2]) -> Option<String> {
    let one = |target: usize| {
        let mut plan = case.plan.clone();
        plan.targets = vec![case.plan.targets.get(target)?.clone()];
        plan.factors = Vec::new();
        let load = &mut plan.load;
        (load.connections, load.threads, load.bound) = (1, 1, Bound::Ops(1));
        (load.kind, load.shape) = (LoopKind::Closed { think_ns: 0 }, LoadShape::default());
        plan.command()
    };
    Some([one(targets[0])?, one(targets[1])?].join("; "))
}

/// The command that compares two targets anew and goes on to probes, with twins of the second one's server; for the machine
/// that it runs on. `pids`: where the servers are known to run.
pub(crate) fn with_twins(case: &Case<'_>, targets: [usize; 2], twin: usize, pids: [Option<u32>; 2]) -> Option<String> {
    let (plan, mut line) = comparison(case, targets)?;
    for (target, pid) in plan.targets.iter().zip(pids) {
        if target.host.as_ref().is_some_and(|host| host.access == HostAccess::Local) {
            line.push_str(&format!(" --local {}", shell_word(&target.name)));
            if let Some(pid) = pid {
                line.push_str(&format!(" --pid {}", shell_word(&format!("{}={pid}", target.name))));
            }
        }
    }
    let twin = &case.plan.targets.get(twin)?.name;
    Some(format!("{line} --why {}", shell_word(&format!("--may-start-twin={twin}"))))
}

/// The same with private copies of a database, of so many bytes at most.
pub(crate) fn with_copies(case: &Case<'_>, targets: [usize; 2], most_bytes: u64) -> Option<String> {
    comparison(case, targets).map(|(_, line)| format!("{line} --why --may-copy-database {most_bytes}"))
}

/// The comparison of two targets, and the command that repeats it, behind which options may stand.
fn comparison(case: &Case<'_>, targets: [usize; 2]) -> Option<(Plan, String)> {
    let plan = among(case, case.plan.clone(), targets)?;
    // Behind such a target no option is one any more.
    if plan.targets.iter().any(|target| target.name.starts_with('-')) {
        return None;
    }
    let line = plan.command()?;
    Some((plan, line))
}

fn among(case: &Case<'_>, mut plan: Plan, targets: [usize; 2]) -> Option<Plan> {
    plan.targets = targets.into_iter().map(|index| case.plan.targets.get(index).cloned()).collect::<Option<_>>()?;
    Some(plan)
}
