//! The twins of a draw, running, and whether what was drawn does what it should under the load that duel will make.

use super::draw::{Draw, Sort};
use crate::arena::Arena;
use crate::case::Bite;
use crate::kinds::web::{Load, ToolLoad, Web};
use crate::kinds::{Kind, Pair, Stage};
use crate::servers::{Place, Up};
use crate::world::{Launch, World};
use anyhow::Context;
use std::path::Path;

/// A draw's twins.
pub(super) struct Drawn {
    arena: Arena,
    pair: Pair<Web>,
    sort: Sort,
    seen_by_load: bool,
}

impl Drawn {
    pub(super) fn start(world: &World, draw: &Draw, duel: &Path) -> anyhow::Result<Drawn> {
        let mut trial = draw.case.trial.clone();
        let pair = Web::pair_of(&mut trial).context("only web servers are drawn")?.clone();
        let faulty: Place = draw.faulty;
        Ok(Drawn {
            arena: Web::start(world, &pair, faulty, duel)?,
            pair,
            sort: draw.sort,
            seen_by_load: draw.seen_by_load,
        })
    }

    /// How many times as long a request takes on the twin that differs, under the draw's load by another generator.
    fn effect(&self) -> anyhow::Result<f64> {
        let (healthy, faulty) = self.arena.by_turns(|up| ms_per_request(&self.arena, up, &self.pair.load))?;
        Ok(faulty / healthy)
    }
}

impl Stage for Drawn {
    /// The fault bites by its own verification, and by what it does to the time of a request under the draw's load. A
    /// difference that is to do no harm does none. Equals are equal by how they are made.
    fn verify(&self) -> anyhow::Result<Bite> {
        /// Well above duel's margin of 2 %, and about what tools can tell on a machine that does other things as well.
        const LEAST: f64 = 1.05;
        Web::ensure_both_work(&self.arena)?;
        let mut all = Bite { bites: true, figures: "both work".to_owned() };
        for verify in &self.pair.verify {
            all = all.and(verify(&self.arena)?);
        }
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
        Web::duel(&self.arena, &self.pair.load, duel, local)
    }
}

/// A second of load; five where nothing was answered within one.
fn ms_per_request(arena: &Arena, up: &Up, load: &Load) -> anyhow::Result<f64> {
    // duel asks for gzip, too, unless the user typed something else.
    const USUAL: &[&str] = &["Accept-Encoding: gzip"];
    let headers = if load.headers.is_empty() { USUAL } else { load.headers };
    let short = ToolLoad {
        connections: load.connections,
        seconds: 1,
        connect_anew: load.connect_anew,
        resumes: load.resumption,
        headers,
    };
    let served = arena.client.load(up, &short);
    Ok(1e3 / served.or_else(|_| arena.client.load(up, &ToolLoad { seconds: 5, ..short }))?.per_s)
}
