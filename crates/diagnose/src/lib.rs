//! Why: one small file per cause. Pure.
//!
//! [`next`] is asked in a loop. It looks at everything that is known so far, a [`Case`], and answers either with the
//! next small experiment to make or with the explanation. It keeps nothing between calls: the same case gives the same
//! answer, so a diagnosis can be repeated from an archived run.
//!
//! How a cause is held against the evidence:
//!
//! 1. Every target that differs from the baseline is a gap, with a slow side and a fast side. Where the target is the
//!    faster one, the cause is looked for on the baseline.
//! 2. The gap has a *reference*: the same requests over one connection if the gap shows there, else the comparison.
//!    All later probes are made like their reference, and change one thing: they *flip* a cause on all targets.
//! 3. What counts is the difference of the differences: how much of the reference's gap goes away under the flip. It is
//!    measured as a share of the log of the gap, corrected for costs that the flip itself adds to both sides (see
//!    `gap::Flip`), and carries an interval.
//! 4. A cause that cannot be told from another one by the evidence at hand is left open: a wrong accusation is worse
//!    than none.

mod alike;
mod case;
mod cause;
mod causes;
mod engine;
mod evidence;
mod gap;
mod gone;
mod leads;
mod none;
mod path;
mod probes;
mod repeat;
mod twins;
mod unknown;

pub use case::{Case, Step};
pub use cause::CauseEntry;
pub use causes::{catalogue, catalogue_of, unproven};
pub use engine::{next, next_naming};
pub use evidence::below::as_below;
pub use probes::{LONGER, TRIPS_OF_PROBE_SLOT};
