//! What the flags mean: the plan of a run or of a comparison, put together from what each subject's file makes of its own
//! options.

use crate::load::restart::RestartFlags;
use crate::load::values::{self, positive};
use crate::load::{LoadFlags, factors, request, shape, targets, tls};
use crate::outcome::Usage;
use crate::usage;
use clap::Args;
use duel_model::{
    Bound, BusyPoll, ComparePlan, KindPlan, LoadPlan, LoadShape, LoopKind, Plan, Target, Threads, WorkloadPlan, null,
    parse_ratio, sanitize_line,
};

/// Connections that are not given.
const CONNECTIONS: &str = "50";

/// How a comparison is judged.
#[derive(Args, Clone)]
#[command(next_help_heading = "Comparing")]
pub(crate) struct JudgingFlags {
    /// Difference that does not matter in practice
    #[arg(long, value_name = "SHARE", default_value = "2%")]
    pub(crate) margin: String,
    /// Length of a slot [default: from the latency seen]
    #[arg(long, value_name = "TIME")]
    pub(crate) slot: Option<String>,
    /// Use the whole time even when the interval is narrow enough before
    #[arg(long)]
    pub(crate) no_early_stop: bool,
    /// Seed of all random choices [default: from the clock; shown and kept]
    #[arg(long, allow_negative_numbers = true, value_name = "N")]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) restart: RestartFlags,
}

/// The plan of a run on one target.
pub(crate) fn single(typed: &str, requests: Option<u64>, seed: u64, load: &LoadFlags) -> Result<Plan, Usage> {
    let mut target = targets::read(&[typed.to_owned()])?.remove(0);
    load.netns.apply(std::slice::from_mut(&mut target))?;
    let bound = match (requests, &load.duration) {
        (Some(_), Some(_)) => return Err(Usage("give a number of requests (-n) or a duration (-d), not both".into())),
        (Some(0), None) => return Err(Usage("-n 0: there is nothing to do without requests".into())),
        (Some(requests), None) => Bound::Ops(requests),
        (None, duration) => Bound::Duration(positive("-d", duration.as_deref().unwrap_or("10s"))?),
    };
    let workload = workload(std::slice::from_ref(&target), load, seed)?;
    let compare = ComparePlan { seed, ..ComparePlan::default() };
    let load_plan = load_plan(load, bound, &workload)?;
    let mut plan = Plan { targets: vec![target], workload, load: load_plan, compare, factors: Vec::new() };
    shape::single(&mut plan, load)?;
    factors::vary(plan, load, requests.is_some())
}

/// The plan of a comparison.
pub(crate) fn comparison(typed: &[String], judging: &JudgingFlags, load: &LoadFlags) -> Result<Plan, Usage> {
    let mut targets = targets::read(typed)?;
    load.netns.apply(&mut targets)?;
    if let [only] = targets.as_slice() {
        return Err(Usage(format!(
            "a comparison needs two targets; to load '{0}' alone: duel run {0}",
            sanitize_line(&only.address)
        )));
    }
    let seed = judging.seed.unwrap_or_else(seed_from_clock);
    let workload = workload(&targets, load, seed)?;
    let max_load_ns = positive("-d", load.duration.as_deref().unwrap_or("30s"))?;
    let margin =
        parse_ratio(&judging.margin).map_err(|_| Usage(usage::takes("--margin", usage::SHARE, &judging.margin)))?;
    if !(margin > 0.0 && margin < 1.0) {
        return Err(Usage("--margin has to lie between 0 and 100 %".into()));
    }
    let compare = ComparePlan {
        seed,
        margin,
        max_load_ns,
        slot_ns: judging.slot.as_deref().map(|slot| positive("--slot", slot)).transpose()?,
        stop_early: !judging.no_early_stop,
        restart: judging.restart.plan(&targets)?,
        ..ComparePlan::default()
    };
    let load_plan = load_plan(load, Bound::Duration(max_load_ns), &workload)?;
    let mut plan = Plan { targets, workload, load: load_plan, compare, factors: Vec::new() };
    shape::comparison(&mut plan, load)?;
    factors::vary(plan, load, false)
}

/// Half of the CPUs: the other half may be the server's, and is the kernel's in any case.
pub(crate) fn default_threads() -> u32 {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (cpus / 2).clamp(1, 64) as u32
}

/// A seed that differs from run to run and is easy to type again.
pub(crate) fn seed_from_clock() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(1, |since| since.as_millis() as u64 % 1_000_000)
}

/// The kind of work that the targets are for: the same for all of them.
fn workload(targets: &[Target], load: &LoadFlags, seed: u64) -> Result<WorkloadPlan, Usage> {
    let kinds: Vec<_> = targets.iter().map(|target| duel_lab::kinds::of_address(&target.address)).collect();
    let name = |index: usize| kinds[index].map_or("http", |kind| kind.schema().kind);
    if let Some(other) = (1..kinds.len()).find(|&index| name(index) != name(0)) {
        return Err(Usage(format!(
            "'{}' is a target for {}, and '{}' one for {}: what is compared has to do the same work",
            sanitize_line(&targets[0].name),
            name(0),
            sanitize_line(&targets[other].name),
            name(other)
        )));
    }
    if let Some(kind) = kinds.first().copied().flatten() {
        let mut plan = KindPlan::of(kind.schema());
        load.web_only.refuse(plan.schema)?;
        load.settings.set(plan.schema, |param, value| drop(plan.settings.insert(param.id(), value.to_owned())))?;
        return Ok(WorkloadPlan::Plain(plan));
    }
    if let Some(null) = targets.iter().find(|target| target.address == targets::NULL) {
        if let Some(other) = targets.iter().find(|target| target.address != targets::NULL) {
            let [null, other] = [null, other].map(|target| sanitize_line(&target.name));
            return Err(Usage(format!(
                "'{null}' does nothing, and '{other}' is a web server: what is compared has to do the same work"
            )));
        }
        tls::refuse_unspoken(targets, load)?;
        load.settings.set(&null::SCHEMA, |_, _| ())?;
        return Ok(WorkloadPlan::NULL);
    }
    let http = request::http(load, seed)?;
    tls::refuse_unspoken(targets, load)?;
    Ok(WorkloadPlan::Http(Box::new(http)))
}

fn load_plan(load: &LoadFlags, bound: Bound, workload: &WorkloadPlan) -> Result<LoadPlan, Usage> {
    // Of lists the first level: `factors` makes the others.
    let lanes = load.lanes(workload.schema())?;
    let levels = values::connections(lanes.unwrap_or(CONNECTIONS))?;
    let rates = load.rate.as_deref().map(values::rates).transpose()?.unwrap_or_default();
    let kind = match rates.first() {
        None => {
            LoopKind::Closed { think_ns: load.think.as_deref().map_or(Ok(0), |think| values::time("--think", think))? }
        }
        Some(&rate_per_s) => LoopKind::Open { rate_per_s, arrival: load.arrival.into() },
    };
    let counted = workload.schema().threads;
    let typed = load.threads.as_deref().map(|typed| values::threads(typed, counted != Threads::OfDuel)).transpose()?;
    let threads = typed.unwrap_or_else(default_threads);
    if threads == 0 {
        return Err(Usage("-t 0: without threads nothing can be sent; use at least 1".into()));
    }
    if counted != Threads::OfDuel && lanes.is_some() && typed.is_some() {
        let schema = workload.schema();
        return Err(Usage(format!(
            "-c and -t both say how many {} there are for {}; give one of them",
            schema.lane.many,
            schema.targets.to_lowercase()
        )));
    }
    let lanes = if lanes.is_some() { levels[0] } else { typed.unwrap_or(1) };
    let (connections, threads) = match counted {
        Threads::OfDuel => (levels[0], threads),
        Threads::Connections => (lanes, default_threads()),
        // One thread of ours waits for all of theirs.
        Threads::Beside => (lanes, 1),
        Threads::Working => (lanes, lanes),
    };
    let lanes_are_threads = workload.schema().lanes_are_threads();
    Ok(LoadPlan {
        connections,
        threads,
        kind,
        bound,
        connect_timeout_ns: positive("--connect-timeout", &load.connect_timeout)?,
        op_timeout_ns: positive("--timeout", &load.timeout)?,
        // Who works on this machine is not to be kept from a CPU by who waits.
        busy_poll: if lanes_are_threads { BusyPoll::Never } else { load.busy_poll.into() },
        shape: LoadShape::default(),
    })
}
