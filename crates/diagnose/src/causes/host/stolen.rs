//! `cpu.stolen`: the hypervisor withholds CPU time from the slow side's machine.
//!
//! Counted as stolen: time in which a virtual CPU wanted to run and did not. That is all that the machine knows. Other
//! machines may have had the time; or nobody, because credits of a burstable type are used up, or the type, or a group above
//! the machine, is capped. So nobody is called a neighbour here.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host};
use crate::evidence::machines::{Machines, Side, allowed_cpus};
use crate::gap::{Gap, percent};
use duel_model::{Confidence, sanitize_line};
use std::collections::BTreeSet;

static ENTRY: CauseEntry = CauseEntry {
    id: "cpu.stolen",
    description: "the hypervisor withholds CPU time: credits are used up, a cap, or other machines",
    signature: "hosts: CPU time that the hypervisor withheld, to whomever it went",
    at_most: "told as a suspicion only",
    needs_machine: false,
};

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let machines = Machines::read(gap)?;
    let open = |text: String| Standing::Undecided(gap.on_host(text, None));
    let withheld = |index: usize, side: &Side<'_>| Withheld::of(side, &allowed_cpus(gap, index)?);
    let Some(of_slow) = withheld(gap.slow, &machines.slow) else {
        return Err(open(format!("how much CPU time the hypervisor withholds from {slow} is not known")));
    };
    let of_fast = machines.fast.as_ref().and_then(|side| withheld(gap.fast, side));
    let worth_log = |side: usize, of: &Withheld| machines.loss_log(gap, side, of.run, of.stolen);
    let worth = worth_log(gap.slow, &of_slow) - of_fast.as_ref().map_or(0.0, |of| worth_log(gap.fast, of));
    let mut text =
        format!("under load the hypervisor withheld {} of the CPU time that {slow} could use", of_slow.told());
    if let Some(of_fast) = &of_fast {
        text.push_str(&format!(", {} of {fast}'s", of_fast.told()));
    }
    let counted = gap.on_host(text, Some("vmstat 1 5".to_owned()));
    let share = machines.noteworthy(worth, &counted)?;
    if machines.slow.is_held_back(&machines.view) {
        return Err(open(format!("{}; but a quota holds {slow} back as well", counted.text)));
    }
    let product = gap.host_fact(gap.slow, "machine.product").map(sanitize_line);
    let mut facts = Vec::new();
    if let Some(product) = &product {
        let text = format!("{slow}'s machine is of the type {product}");
        facts.push(gap.on_host(text, Some("cat /sys/class/dmi/id/product_name".to_owned())));
    }
    let told = Told {
        summary: format!(
            "The hypervisor withholds {} of the CPU time that {slow} could use under load: credits that are used up, a \
             cap of the machine's type, or other machines. That is worth {}.",
            of_slow.told(),
            machines.about(share)
        ),
        remedy: format!(
            "`vmstat 1` on {slow}'s host shows what is stolen (st). Its provider tells whether the type runs on credits \
             (T and B types do) or has a cap, and how many are left; else ask for CPUs of its own, or move it to another \
             machine."
        ),
        facts,
        further: vec![counted],
    };
    let confidence = if of_fast.is_some() { machines.at_most() } else { Confidence::Possible };
    Ok(fit_by_host(gap, &ENTRY, Some(share), confidence, told))
}

/// What the hypervisor withheld from a server, in CPUs.
struct Withheld {
    run: f64,
    stolen: f64,
}

impl Withheld {
    fn of(side: &Side<'_>, cpus: &BTreeSet<u32>) -> Option<Self> {
        let run = side.cpus("process.cpu_ns")?;
        let others = side.others_on(cpus)?;
        let steal = side.modes_on(cpus, &["steal"])?;
        // The server's part of it.
        let stolen = if run + others > 0.0 { steal * run / (run + others) } else { 0.0 };
        Some(Self { run, stolen })
    }

    fn told(&self) -> String {
        percent(self.stolen / (self.run + self.stolen).max(1.0))
    }
}
