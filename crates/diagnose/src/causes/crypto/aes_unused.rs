//! `tls.aes-unused` of crypto libraries: the slow one makes no use of the CPU's AES instructions, and of other features it does.

use super::KINDS;
use super::features::{Hidden, has_assembly};
use crate::cause::{Cause, CauseEntry, Standing};
use crate::gap::Gap;
use crate::probes::{NO_AES, NO_FEATURES};
use duel_model::WorkloadPlan;

static ENTRY: CauseEntry = CauseEntry {
    id: "tls.aes-unused",
    description: "the CPU's AES instructions are not used by the library",
    signature: "with the AES instructions hidden from all targets the slow library takes hardly longer, and the \
                fast one does; ops of AES only",
    at_most: "confirmed",
    needs_machine: false,
};

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let slow = gap.slow_name();
    if !works_with_aes(gap) {
        return Err(Standing::RuledOut(gap.not_measured("the op is none of AES".to_owned())));
    }
    let hidden = Hidden::of(gap, NO_AES)?;
    if hidden.flip.is_negligible() {
        return Err(Standing::RuledOut(gap.evidence(&hidden.flip.view, hidden.told)));
    }
    if !hidden.flip.moved() {
        return Err(Standing::Undecided(gap.evidence(&hidden.flip.view, hidden.told)));
    }
    if !hidden.are_unused() {
        let text = format!("{}: both use them", hidden.told);
        return Err(Standing::Undecided(gap.evidence(&hidden.flip.view, text)));
    }
    // One that uses no feature at all lacks more than these.
    let has_assembly = has_assembly(gap, gap.slow);
    if has_assembly != Some(true) {
        let all = Hidden::of(gap, NO_FEATURES)?;
        if has_assembly == Some(false) || !all.uses_some(gap) {
            let text = format!("{}; it uses no other feature either, see tls.no-asm", hidden.told);
            return Err(Standing::Undecided(gap.evidence(&all.flip.view, text)));
        }
    }
    let summary = format!(
        "{slow} does not use the CPU's AES instructions: {}. That is {} of the gap.",
        hidden.told,
        hidden.flip.percent()
    );
    let remedy = format!(
        "Look for OPENSSL_ia32cap in the environment of what uses {slow}, and at the hypervisor's CPU model (`grep -c aes \
         /proc/cpuinfo`); else give it a newer libcrypto."
    );
    Ok(hidden.fits(gap, &ENTRY, summary, remedy))
}

/// Whether the plan's op is one of AES.
fn works_with_aes(gap: &Gap<'_>) -> bool {
    let WorkloadPlan::Plain(kind) = &gap.case.plan.workload else { return false };
    let op = kind.schema.params.iter().find(|param| param.name == "op");
    op.is_some_and(|op| kind.get(op).starts_with("aes-"))
}
