//! Options of load that does not stay as it is: stages, a deadline, the search for a rate.

use crate::load::LoadFlags;
use crate::load::values::{positive, rates};
use crate::outcome::Usage;
use clap::Args;
use duel_model::{
    Arrival, Bound, LoadPlan, LoopKind, Plan, Promise, SECOND_NS, SearchPlan, Stage, Threads, typed_duration,
};

/// Time of a search that is not given: room for twelve attempts of 5 s.
const SEARCH_NS: u64 = 60 * SECOND_NS;
/// The same for each of several targets: eight more, to tell them apart, and time to come to rest in between.
const SEARCH_EACH_NS: u64 = 120 * SECOND_NS;
/// Shortest search of each target: an attempt takes a second at least, and there are eight or so.
const SHORTEST_SEARCH_NS: u64 = 10 * SECOND_NS;

/// How load changes.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Load")]
pub(crate) struct ShapeFlags {
    /// Stages one after the other, each TIME@RATE (a step of the rate of an open loop) or TIME@RATE..RATE (a ramp):
    /// 10s@100,30s@100..5000,10s@0. With a c they are connections of a closed loop: 10s@10c,30s@10c..100c. Several targets
    /// go through all of them in turn, twice, or as often as -d has room for
    #[arg(long, value_name = "STAGES", conflicts_with_all = ["rate", "find_rate"])]
    pub(crate) stages: Option<String>,
    /// Open loop: a request that could only be sent later than this after its due time is not sent, but counted as shed
    #[arg(long, value_name = "TIME")]
    pub(crate) deadline: Option<String>,
    /// Look for the highest rate at which all PROMISES are kept, such as 'p99<50ms,errors<0.1%': pNN, mean or max of the
    /// response time, errors<SHARE, rate>PER_SECOND. Takes -d at most [default: 60s; 120s for each of several targets],
    /// and begins at --rate
    #[arg(long, value_name = "PROMISES", conflicts_with = "think")]
    pub(crate) find_rate: Option<String>,
    /// Closed loop: one request under way at a time, over all connections to a target in turn: what differs is then the connections'
    /// own, and not that they wait for each other
    #[arg(long, conflicts_with_all = ["rate", "stages", "find_rate", "think"])]
    pub(crate) one_at_a_time: bool,
}

/// Gives the plan of a run on one target the shape that was asked for.
pub(crate) fn single(plan: &mut Plan, load: &LoadFlags) -> Result<(), Usage> {
    let given = [("--stages", load.shape.stages.is_some()), ("--find-rate", load.shape.find_rate.is_some())];
    if let (Bound::Ops(_), Some((option, _))) = (plan.load.bound, given.iter().find(|(_, is_given)| *is_given)) {
        return Err(Usage(format!("{option} goes by time, not by a number of requests: leave -n out")));
    }
    if load.shape.stages.is_some() && load.duration.is_some() {
        return Err(Usage("--stages say how long they last: leave -d out".into()));
    }
    shape(plan, load)
}

/// The same for a comparison, whose time is that of all targets.
pub(crate) fn comparison(plan: &mut Plan, load: &LoadFlags) -> Result<(), Usage> {
    let given = [("--stages", load.shape.stages.is_some()), ("--find-rate", load.shape.find_rate.is_some())];
    if let (true, Some((option, _))) = (plan.compare.slot_ns.is_some(), given.iter().find(|(_, is_given)| *is_given)) {
        return Err(Usage(format!("--slot has no meaning with {option}, which says itself how long load lasts")));
    }
    shape(plan, load)?;
    if !plan.load.shape.stages.is_empty() {
        // Each target twice, in mirrored order: what drifts evenly hits all alike.
        let block_ns = Stage::total_ns(&plan.load.shape.stages).saturating_mul(2 * plan.targets.len() as u64);
        if load.duration.is_none() {
            plan.compare.max_load_ns = block_ns;
        } else if plan.compare.max_load_ns < block_ns {
            return Err(Usage(format!(
                "each target goes through the stages twice, which takes {}: give -d at least that, or leave it out",
                typed_duration(block_ns)
            )));
        }
    } else if let (Some(_), Bound::Duration(total_ns)) = (&plan.load.shape.search, plan.load.bound) {
        plan.compare.max_load_ns = total_ns;
    }
    Ok(())
}

fn shape(plan: &mut Plan, load: &LoadFlags) -> Result<(), Usage> {
    if let Some(typed) = &load.shape.stages {
        let stages = Stage::parse_all(typed).map_err(|error| Usage(format!("--stages: {error}")))?;
        stage(&mut plan.load, stages, load)?;
    }
    if let Some(typed) = &load.shape.find_rate {
        search(plan, typed, load)?;
    }
    if load.shape.one_at_a_time {
        one_at_a_time(plan, load)?;
    }
    deadline(&mut plan.load, load)
}

fn one_at_a_time(plan: &mut Plan, load: &LoadFlags) -> Result<(), Usage> {
    if plan.schema().threads != Threads::OfDuel {
        return Err(Usage("--one-at-a-time is about connections to web servers: here, -t 1 does one at a time".into()));
    }
    if load.threads.is_some() && plan.load.threads > 1 {
        return Err(Usage("-t and --one-at-a-time: each thread would have a request under way".into()));
    }
    plan.load.threads = 1;
    plan.load.shape.one_at_a_time = true;
    Ok(())
}

fn search(plan: &mut Plan, typed: &str, load: &LoadFlags) -> Result<(), Usage> {
    let promises = Promise::parse_all(typed).map_err(|error| Usage(format!("--find-rate: {error}")))?;
    let targets = plan.targets.len() as u64;
    if load.duration.is_none() {
        plan.load.bound = Bound::Duration(if targets == 1 { SEARCH_NS } else { targets * SEARCH_EACH_NS });
    }
    let shortest_ns = targets * SHORTEST_SEARCH_NS;
    if matches!(plan.load.bound, Bound::Duration(ns) if ns < shortest_ns) {
        return Err(Usage(format!(
            "--find-rate tries one rate after the other, which takes -d {} at least",
            typed_duration(shortest_ns)
        )));
    }
    let typed = load.rate.as_deref().map(rates).transpose()?.unwrap_or_default();
    let rate_per_s = typed.first().copied().unwrap_or(0.0);
    plan.load.kind = LoopKind::Open { rate_per_s, arrival: load.arrival.into() };
    plan.load.shape.search = Some(SearchPlan { promises, precision: SearchPlan::PRECISION });
    Ok(())
}

fn stage(plan: &mut LoadPlan, stages: Vec<Stage>, load: &LoadFlags) -> Result<(), Usage> {
    plan.bound = Bound::Duration(Stage::total_ns(&stages));
    if stages.iter().all(Stage::is_of_rate) {
        if load.think.is_some() {
            return Err(Usage("--think is a pause of a closed loop, and these stages are rates of an open one".into()));
        }
        let arrival: Arrival = load.arrival.into();
        plan.kind = LoopKind::Open { rate_per_s: Stage::mean_of(&stages), arrival };
    } else {
        if load.connections.is_some() {
            return Err(Usage("-c and stages of connections: the stages say how many there are".into()));
        }
        if load.settings.typed("streams").is_some() {
            return Err(Usage("--streams and stages of connections: each stage would change both at once".into()));
        }
        plan.connections = stages.iter().map(Stage::highest).fold(1.0, f64::max) as u32;
        plan.threads = plan.threads.min(plan.connections);
    }
    plan.shape.stages = stages;
    Ok(())
}

fn deadline(plan: &mut LoadPlan, load: &LoadFlags) -> Result<(), Usage> {
    let Some(typed) = &load.shape.deadline else { return Ok(()) };
    if matches!(plan.kind, LoopKind::Closed { .. }) {
        return Err(Usage(
            "--deadline counts from when a request is due, which only an open loop knows: give a --rate as well".into(),
        ));
    }
    plan.shape.deadline_ns = Some(positive("--deadline", typed)?);
    Ok(())
}
