//! `tls.no-asm` of crypto libraries: the slow one makes no use of any feature of the CPU.

use super::KINDS;
use super::features::{Hidden, has_assembly};
use crate::cause::{Cause, CauseEntry, Standing};
use crate::gap::Gap;
use crate::probes::NO_FEATURES;
use duel_model::Confidence;

static ENTRY: CauseEntry = CauseEntry {
    id: "tls.no-asm",
    description: "the library was built without assembly, so that all cryptography is slow",
    signature: "the same with all features hidden, and what the library tells of how it was built",
    at_most: "confirmed; likely where the library does not tell",
    needs_machine: false,
};

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let slow = gap.slow_name();
    let has_assembly = has_assembly(gap, gap.slow);
    if has_assembly == Some(true) {
        let text = format!("{slow} tells which features of the CPU it has found, as only a library with assembly does");
        return Err(Standing::RuledOut(gap.first_contact(text)));
    }
    let hidden = Hidden::of(gap, NO_FEATURES)?;
    if has_assembly.is_none() && hidden.uses_some(gap) {
        let text = format!("{}: what uses features of the CPU has assembly", hidden.told);
        return Err(Standing::RuledOut(gap.evidence(&hidden.flip.view, text)));
    }
    if !hidden.flip.moved() || !hidden.are_unused() {
        let text = format!("{}: that leaves open whether it matters", hidden.told);
        return Err(Standing::Undecided(gap.evidence(&hidden.flip.view, text)));
    }
    let built = match has_assembly {
        Some(_) => "was built without assembly, by what it tells of itself",
        None => "uses no feature of the CPU, as a library that was built without assembly",
    };
    let summary = format!("{slow} {built}: {}. That is {} of the gap.", hidden.told, hidden.flip.percent());
    let remedy = format!(
        "Give what uses {slow} a libcrypto that was built with assembly: the distribution's package; for one's own build \
         leave out `no-asm`."
    );
    let mut standing = hidden.fits(gap, &ENTRY, summary, remedy);
    // A mask in its environment looks the same.
    if let (Standing::Fits(fit), None) = (&mut standing, has_assembly) {
        fit.finding.confidence = fit.finding.confidence.min(Confidence::Likely);
    }
    Ok(standing)
}
