//! `duel demo`: two embedded HTTPS servers, one really handicapped; compared and explained.

use super::execute;
use crate::load::meaning;
use crate::outcome::{Outcome, Usage};
use crate::output::OutputFlags;
use crate::telemetry::TelemetryFlags;
use crate::watching::Shown;
use anyhow::Context;
use clap::Args;
use duel_lab::DiagnosisPlan;
use duel_model::{Bound, ComparePlan, HttpPlan, LoadPlan, Plan, Run, SECOND_NS, Target, TlsPlan, WorkloadPlan};
use duel_ruler::child::Child;
use std::io::Write;

/// Options of the demonstration.
#[derive(Args, Clone)]
pub(crate) struct DemoFlags {
    /// Seed of all random choices
    #[arg(long, allow_negative_numbers = true, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// Load time of the comparison; with the probes the whole stays under a minute.
const COMPARE_NS: u64 = 12 * SECOND_NS;
/// Load time of the probes.
const WHY_NS: u64 = 30 * SECOND_NS;
const HEALTHY: &str = "healthy";
const HANDICAPPED: &str = "handicapped";
/// What both serve: 2.86 MB.
const PATH: &str = "/file";

/// Starts both servers, compares them, explains the difference and says what to try next.
pub(crate) fn demo(demo: &DemoFlags, output: &OutputFlags) -> anyhow::Result<Outcome> {
    let exe = std::env::current_exe().context("cannot find the duel program to start the demo's servers with")?;
    let server = |mask: Option<(&'static str, &'static str)>| {
        Child::spawn(&exe, ["ruler", "--tls", "p256"], mask).context("cannot start one of the demo's servers")
    };
    let (healthy, handicapped) = (server(None)?, server(aes_mask())?);
    if !output.quiet {
        let _ = writeln!(
            std::io::stderr(),
            "Two HTTPS servers on this machine serve the same file of 2.86 MB. One of them may not use the CPU's AES \
             instructions{}.",
            if aes_mask().is_some() { "" } else { " (not available on this kind of CPU: both are equal here)" }
        );
    }
    let address = |child: &Child| format!("https://{}{PATH}", child.addr());
    let plan = Plan {
        targets: vec![
            Target { name: HEALTHY.into(), address: address(&healthy), host: None },
            Target { name: HANDICAPPED.into(), address: address(&handicapped), host: None },
        ],
        workload: WorkloadPlan::Http(Box::new(HttpPlan {
            keepalive: false,
            tls: TlsPlan { verify: false, ..TlsPlan::default() },
            ..HttpPlan::default()
        })),
        load: LoadPlan {
            connections: 4,
            bound: Bound::Duration(COMPARE_NS),
            busy_poll: duel_model::BusyPoll::Auto,
            ..LoadPlan::default()
        },
        compare: ComparePlan {
            seed: demo.seed.unwrap_or_else(meaning::seed_from_clock),
            max_load_ns: COMPARE_NS,
            ..ComparePlan::default()
        },
        factors: Vec::new(),
    };
    let why = DiagnosisPlan {
        budget_ns: WHY_NS,
        names_suspects: false,
        may_start_twin: Vec::new(),
        most_copied_bytes: None,
        net_servers: Vec::new(),
    };
    execute(&plan, Some(why), Shown::Progress, &TelemetryFlags::default(), output)
}

/// Whether a plan is a demonstration's: its servers ended with it. Who gives targets of their own these very names and
/// this path misses an offer to repeat the run, no more.
pub(super) fn made(plan: &Plan) -> bool {
    plan.targets.len() == 2
        && plan.targets.iter().zip([HEALTHY, HANDICAPPED]).all(|(target, name)| {
            target.name == name && target.address.starts_with("https://127.0.0.1:") && target.address.ends_with(PATH)
        })
}

/// Refuses to load the servers of an earlier demonstration again.
pub(super) fn refuse_if_made(run: &Run) -> Result<(), Usage> {
    if made(&run.plan) {
        return Err(Usage(format!(
            "run {} is a demonstration, and its servers ended with it; for another one: duel demo --seed {}",
            run.id, run.plan.compare.seed
        )));
    }
    Ok(())
}

/// The environment that hides the CPU's AES instructions from the TLS library.
///
/// x86: `OPENSSL_ia32cap` clears AES-NI and PCLMULQDQ in the first word, VAES and VPCLMULQDQ in the second. Arm:
/// `OPENSSL_armcap` sets the capabilities; 1 leaves NEON alone.
fn aes_mask() -> Option<(&'static str, &'static str)> {
    match std::env::consts::ARCH {
        "x86_64" | "x86" => Some(("OPENSSL_ia32cap", "~0x200000200000000:~0x60000000000")),
        "aarch64" | "arm" => Some(("OPENSSL_armcap", "1")),
        _ => None,
    }
}
