//! The twins of a draw, running, and whether what was drawn does what it should under the load that duel will make.

use super::draw::{Draw, Sort};
use super::kind::DrawnKind;
use crate::case::Bite;
use crate::kinds::{Stage, Started};
use crate::world::{Launch, World};
use anyhow::Context;
use std::path::Path;

/// A draw's twins.
struct Drawn<K: DrawnKind> {
    twins: Started<K>,
    sort: Sort,
    seen_by_load: bool,
}

/// Starts them.
pub(super) fn start<K: DrawnKind>(world: &World, draw: &Draw, duel: &Path) -> anyhow::Result<Box<dyn Stage>> {
    let pair = draw.case.trial.pair::<K>().with_context(|| format!("the draw is none of {}", K::NAME))?;
    let twins = Started::new(world, pair, draw.faulty, duel)?;
    Ok(Box::new(Drawn { twins, sort: draw.sort, seen_by_load: draw.seen_by_load }))
}

impl<K: DrawnKind> Stage for Drawn<K> {
    /// The fault bites by its own verification, and by what it does to the time of an op under the draw's load. A
    /// difference that is to do no harm does none. Equals are equal by how they are made.
    fn verify(&self) -> anyhow::Result<Bite> {
        /// Well above duel's margin of 2 %, and about what tools can tell on a machine that does other things as well.
        const LEAST: f64 = 1.05;
        let all = self.twins.verify()?;
        if self.sort == Sort::Equals || !self.seen_by_load {
            return Ok(all);
        }
        let (healthy, faulty) = K::op_takes(&self.twins.arena, &self.twins.pair.load)?;
        let effect = faulty / healthy;
        let bites = match self.sort {
            Sort::Decoy => effect < LEAST && effect > 1.0 / LEAST,
            _ => effect >= LEAST,
        };
        Ok(all.and(Bite { bites, figures: format!("{effect:.2}x the time per {} under the draw's load", K::OP) }))
    }

    fn duel(&self, duel: &Path, local: bool) -> Launch {
        self.twins.duel(duel, local)
    }
}
