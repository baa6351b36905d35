//! The twins of a draw, running, and whether what was drawn does what it should under the load that duel will make.

use super::draw::{Draw, Sort};
use crate::case::Bite;
use crate::kinds::web::{Load, ToolLoad, Web};
use crate::kinds::{Stage, Started};
use crate::servers::Up;
use crate::world::{Launch, World};
use anyhow::Context;
use std::path::Path;

/// A draw's twins.
pub(super) struct Drawn {
    twins: Started<Web>,
    sort: Sort,
    seen_by_load: bool,
}

impl Drawn {
    pub(super) fn start(world: &World, draw: &Draw, duel: &Path) -> anyhow::Result<Drawn> {
        let pair = draw.case.trial.pair::<Web>().context("only web servers are drawn")?;
        let twins = Started::new(world, pair, draw.faulty, duel)?;
        Ok(Drawn { twins, sort: draw.sort, seen_by_load: draw.seen_by_load })
    }

    /// How many times as long a request takes on the twin that differs, under the draw's load by another generator.
    fn effect(&self) -> anyhow::Result<f64> {
        let Started { arena, pair } = &self.twins;
        let (healthy, faulty) = arena.by_turns(|up| ms_per_request(arena, up, &pair.load))?;
        Ok(faulty / healthy)
    }
}

impl Stage for Drawn {
    /// The fault bites by its own verification, and by what it does to the time of a request under the draw's load. A
    /// difference that is to do no harm does none. Equals are equal by how they are made.
    fn verify(&self) -> anyhow::Result<Bite> {
        /// Well above duel's margin of 2 %, and about what tools can tell on a machine that does other things as well.
        const LEAST: f64 = 1.05;
        let all = self.twins.verify()?;
        if self.sort == Sort::Equals || !self.seen_by_load {
            return Ok(all);
        }
        let effect = self.effect()?;
        let bites = match self.sort {
            Sort::Decoy => effect < LEAST && effect > 1.0 / LEAST,
            _ => effect >= LEAST,
        };
        Ok(all.and(Bite { bites, figures: format!("{effect:.2}x the time per request under the draw's load") }))
    }

    fn duel(&self, duel: &Path, local: bool) -> Launch {
        self.twins.duel(duel, local)
    }
}

/// A second of load; five where nothing was answered within one.
fn ms_per_request(arena: &crate::arena::Arena, up: &Up, load: &Load) -> anyhow::Result<f64> {
    // duel asks for gzip, too, unless the user typed something else.
    const USUAL: &[&str] = &["Accept-Encoding: gzip"];
    let headers = if load.headers.is_empty() { USUAL } else { load.headers };
    let short = ToolLoad {
        connections: load.connections,
        streams: load.streams,
        seconds: 1,
        connect_anew: load.connect_anew,
        resumes: load.resumption,
        headers,
    };
    let served = arena.client.load(up, &short);
    Ok(1e3 / served.or_else(|_| arena.client.load(up, &ToolLoad { seconds: 5, ..short }))?.per_s)
}
