//! The catalogue: one file per cause, each with what it looks for, why, and what the user will read.
//!
//! A new cause is a new file with one implementation of [`Cause`], and a line in [`CAUSES`]. It sees the world through
//! a [`Gap`] only; evidence from the hosts will be found there as well.

mod aes_unused;
mod compression;
mod large_key;
mod no_keepalive;
pub(crate) mod none;
pub(crate) mod unknown;

use crate::gap::{Flip, Gap};
use duel_model::{Confidence, Evidence, Finding, Probe};

/// A cause, to be held against a gap.
pub(crate) trait Cause: Sync {
    /// Its id and description.
    fn entry(&self) -> &'static CauseEntry;

    /// How the cause stands, given what is known so far.
    fn examine(&self, gap: &Gap<'_>) -> Standing;
}

/// How a cause stands against the evidence.
pub(crate) enum Standing {
    /// The evidence excludes it as a cause of this gap.
    RuledOut(Evidence),
    /// These probes, in any order, would tell more.
    Wants(Vec<Probe>),
    /// Its signature fits.
    Fits(Box<Fit>),
    /// No probe would tell more, and neither does the evidence at hand.
    Undecided(Evidence),
}

/// A cause whose signature fits.
pub(crate) struct Fit {
    pub(crate) finding: Finding,
    /// Time per op that the slow side would save without it, ns.
    pub(crate) moved_ns: f64,
}

/// An entry of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CauseEntry {
    /// Stable id, such as `tls.aes-unused`.
    pub id: &'static str,
    /// What it is, in one line.
    pub description: &'static str,
}

/// The causes that compete for a gap, in the order in which equal ones are told.
pub(crate) static CAUSES: [&dyn Cause; 4] =
    [&aes_unused::AesUnused, &large_key::LargeKey, &no_keepalive::NoKeepalive, &compression::Compression];

static CATALOGUE: [CauseEntry; 6] =
    [aes_unused::ENTRY, large_key::ENTRY, no_keepalive::ENTRY, compression::ENTRY, none::ENTRY, unknown::ENTRY];

/// The causes that can be named, for documentation and help.
pub fn catalogue() -> &'static [CauseEntry] {
    &CATALOGUE
}

/// A fit that rests on a flip.
fn fit(gap: &Gap<'_>, entry: &CauseEntry, flip: &Flip<'_>, confidence: Confidence, told: Told) -> Standing {
    let mut evidence = gap.preamble();
    evidence.extend(told.facts);
    evidence.push(gap.evidence(&flip.view, gap.tell_flip(flip)));
    evidence.extend(told.further);
    Standing::Fits(Box::new(Fit {
        finding: Finding {
            cause: entry.id.to_owned(),
            target: gap.case.plan.targets.get(gap.slow).map(|target| target.name.clone()),
            confidence,
            explains: Some(flip.share.mid.clamp(0.0, 1.0)),
            summary: told.summary,
            evidence,
            remedy: told.remedy,
        },
        moved_ns: flip.moved_ns,
    }))
}

/// What the user will read of a fit.
struct Told {
    summary: String,
    remedy: String,
    /// Evidence from before the flip.
    facts: Vec<Evidence>,
    /// Evidence from after it.
    further: Vec<Evidence>,
}

/// The standing of a cause whose flip was made and did not move the gap beyond doubt, in the sentence that says so.
fn did_not_move(gap: &Gap<'_>, flip: &Flip<'_>) -> Standing {
    let text = gap.tell_flip(flip);
    if flip.is_negligible() {
        Standing::RuledOut(gap.evidence(&flip.view, text))
    } else {
        Standing::Undecided(gap.evidence(&flip.view, format!("{text}: that leaves open whether it matters")))
    }
}
