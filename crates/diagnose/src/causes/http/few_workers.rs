//! `http.few-workers`: the slow side serves fewer requests at a time than its machine could.
//!
//! From outside the gap shows with many connections and not with one, which is what fewer CPUs, locks and limits on rate
//! look like too. On the machine:
//!
//! * workers that compute: each one that does the work has a CPU to itself all the time, no more of them work, and CPUs
//!   that they may use are idle. With too few CPUs none would be idle; a quota would throttle; workers that wait for a
//!   lock or for each other would not be busy all the time. What one more worker on each idle CPU would do is counted;
//! * workers that wait (for a backend, a disk, a timer): the CPUs are idle, and the server has about as many threads or
//!   processes as it serves requests at a time, by Little's law: its rate times what a request takes alone. Where the
//!   numbers do not agree, a limit elsewhere (of connections, of a pool) is possible, and so are others; what a pool is
//!   worth is known where those who wait for a place are seen to sleep for each other. A disk that is
//!   busy is such a queue, and where throughput bends early or falls, requests hinder each other: both leave it open.

use crate::cause::{Cause, CauseEntry, Cure, Standing, Told, fit_by_host, needs_http, shown_look};
use crate::causes::likes;
use crate::evidence::by_hand;
use crate::evidence::listen_queues::ListenQueues;
use crate::evidence::machines::{FULL, Machines, allowed_cpus, needs_concurrency, pid, workers};
use crate::evidence::scaling::{ONE_AT_A_TIME, fewer_connections, in_hand_at_a_time, levels_off, served_at_a_time};
use crate::evidence::sleepers::{self, WaitingWithin};
use crate::evidence::worth::{demands, reference};
use crate::gap::{Demands, Flip, Gap, Look, View, percent, phase_differences};
use crate::probes::{ALONE, CONNECTIONS, Mode};
use duel_model::web::phase;
use duel_model::{Confidence, HostDemand, Phase, TwinChange};

static ENTRY: CauseEntry = CauseEntry {
    id: "http.few-workers",
    description: "the server has too few workers for its CPUs, or serves too few requests at a time",
    signature: "hosts: workers that are busy all the time beside idle CPUs (one that shares its core with a busy \
                one counts 0.3), or as many threads as requests in service by Little's law, or several requests at a \
                time, while the server's threads that serve the others sleep until another one wakes them",
    at_most: "likely; possible below eight at a time, for a pool, or where the fast side's machine is not read",
    needs_machine: true,
};

/// From here on a worker counts as busy all the time. The spans in which a machine is read begin before the load and end
/// after it, and a slot ends with ops that some connections still wait for.
const BUSY: f64 = 0.8;

/// CPUs that are less busy than this, all together, do not hold back workers that mostly wait.
const MOSTLY_IDLE: f64 = 0.5;

/// Below this, one of four counts agrees within a half with any small number in a third of the cases and more.
const MOST_BY_CHANCE: f64 = 8.0;

/// What a CPU gains that shares its core with one that is busy: 30 % at most on servers (Marr et al., Intel Technology
/// Journal 6(1), 2002).
const OF_A_SIBLING: f64 = 0.3;

/// Share of the time in which a cgroup may hold back the server before the quota, not the workers, is the story.
const THROTTLED: f64 = 0.05;

pub(super) static CAUSE: Cause =
    Cause { cure: Some(Cure { change: TwinChange::MoreWorkers, may_lie_outside: false }), ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    needs_http(gap)?;
    let slow = gap.slow_name();
    let reference = reference(gap)?;
    needs_concurrency(gap)?;
    if gap.mode == Mode::Alone {
        let text = format!("{}: a part of the gap does not show over one connection", gap.tell(reference));
        return Err(Standing::Undecided(gap.evidence(reference, text)));
    }
    let alone = shown_look(gap, ALONE)?;
    let demands = demands(gap)?;
    let open = |text: String| Standing::Undecided(gap.on_host(text, None));
    let cpus = Cpus::of(gap, demands.slow)
        .ok_or_else(|| open(format!("which CPUs the server of {slow} may use, and how busy they are, is not known")))?;
    let throttled = demands.slow.share_of_time("cgroup.throttled_ns");
    if let Some(share) = throttled
        && share > THROTTLED
    {
        let text = format!("{slow}'s server is held back by its cgroup's quota {:.0} % of the time", 100.0 * share);
        return Err(open(text));
    }
    let workers =
        workers(demands.slow).ok_or_else(|| open(format!("what each worker of {slow} spends is not known")))?;
    let busy = workers.iter().filter(|&&share| share >= BUSY).count();
    let by_busy: f64 = workers.iter().filter(|&&share| share >= BUSY).sum();
    // The busy ones do the work: all but a fifth of it.
    if busy > 0 && by_busy >= Flip::EXPLAINS * workers.iter().sum::<f64>() {
        // They are that under load; between two samples there is silence, too, in which no CPU is idle for want of work.
        let as_under_load = busy as f64 / by_busy;
        let own = cpus.own.map(|own| own * as_under_load);
        let cpus = Cpus { busy: cpus.busy * as_under_load, own, ..cpus };
        return Ok(computing(gap, reference, &alone, &demands, &cpus, busy));
    }
    if cpus.busy > MOSTLY_IDLE * cpus.count {
        // Not with the server's own work: what it would do on CPUs of its own is not to be seen.
        if cpus.own.is_none_or(|own| own <= MOSTLY_IDLE * cpus.busy) {
            return Err(open(format!(
                "the {:.0} CPUs that {slow}'s server may use are {:.0} % busy, mostly with other work than its own",
                cpus.count,
                100.0 * cpus.busy / cpus.count
            )));
        }
        let text = format!(
            "{slow}'s server may use {:.0} CPUs, which are {:.0} % busy, and none of its workers is all the time",
            cpus.count,
            100.0 * cpus.busy / cpus.count
        );
        // Few may be let in to compute.
        let within = WaitingWithin::of(gap, &Machines::read(gap)?, reference, &alone)?;
        return Err(match within {
            Some(within) => open(format!("{text}; but {}", within.tell(gap))),
            None => Standing::RuledOut(gap.on_host(text, None)),
        });
    }
    nothing_else_queues(gap, reference)?;
    bends_sharply(gap, reference, &alone)?;
    waiting(gap, reference, &alone, &cpus, workers.len())
}

/// Workers that are busy all the time.
fn computing(
    gap: &Gap<'_>,
    reference: &View<'_>,
    alone: &View<'_>,
    demands: &Demands<'_>,
    cpus: &Cpus,
    busy: usize,
) -> Standing {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let idle = cpus.count - cpus.busy;
    let plural = if busy == 1 { "worker computes" } else { "workers compute" };
    let facts = format!(
        "{busy} {plural} for {slow} all the time, while {idle:.1} of the {:.0} CPUs that it may use are idle",
        cpus.count
    );
    // With one more worker on each idle CPU the rate grows in that proportion, and no further than the gap. What the fast
    // side does not use either is not what makes it fast: the rest of the gap is what a request takes.
    let by_idle = ((busy as f64 + cpus.gain()) / busy as f64).ln();
    let used = |demand: &HostDemand| demand.share_of_time("process.cpu_ns").filter(|cpus| *cpus > 0.0);
    let by_fast = demands.fast.and_then(used).zip(used(demands.slow)).map(|(fast, slow)| (fast / slow).ln());
    let share = by_fast.map_or(by_idle, |by_fast| by_fast.min(by_idle)) / reference.log.mid;
    if share < Flip::NOTEWORTHY {
        // More workers would get a larger part of what others have now.
        let Some(own) = cpus.own else {
            return Standing::Undecided(gap.on_host(format!("{facts}; what others run there is not known"), None));
        };
        let others = (cpus.busy - own).max(0.0);
        let with_others = ((busy as f64 + idle.max(0.0) + others) / busy as f64).ln() / reference.log.mid;
        if with_others >= Flip::NOTEWORTHY {
            let text = format!(
                "{facts}, and {others:.1} are busy with other work than its own: that hides what more workers \
                                would be worth"
            );
            return Standing::Undecided(gap.on_host(text, None));
        }
        let text = format!("{facts}: more workers would find no CPU, or {fast} has no use for more either");
        return Standing::RuledOut(gap.on_host(text, None));
    }
    // The fast side gets more done by the same number of workers: then their number is not what separates the two.
    let of_fast = demands.fast.and_then(self::workers).map(|workers| working(&workers));
    if let Some(of_fast) = of_fast
        && of_fast <= busy
    {
        return Standing::Undecided(gap.on_host(format!("{facts}, but no more work for {fast}"), None));
    }
    let beside = of_fast.map_or_else(String::new, |count| format!("; {count} work for {fast}"));
    // Where the other machine is not read, as few may work there.
    let confidence = if of_fast.is_some() { Confidence::Likely } else { Confidence::Possible };
    fit_by_host(gap, &ENTRY, Some(share), confidence, told(gap, alone, format!("{facts}{beside}")))
}

/// Leaves it open where something else than the number of workers is seen to let few requests through at a time.
///
/// A disk that is busy is a queue of its own, however many workers wait in it. So is that of what the server asks in turn
/// (`http.upstream-workers`). And few workers let throughput level off:
/// where it falls, requests hinder each other.
fn nothing_else_queues(gap: &Gap<'_>, reference: &View<'_>) -> Result<(), Standing> {
    let slow = gap.slow_name();
    let machines = Machines::read(gap)?;
    if let Some(share) = machines.slow.busiest_disk().filter(|&share| share >= FULL) {
        let text =
            format!("a disk of {slow}'s machine is busy for {:.0} % of the time: requests wait there", 100.0 * share);
        return Err(Standing::Undecided(gap.on_host(text, None)));
    }
    if let Some(queues) = ListenQueues::of_machines(gap, &machines).filter(|queues| queues.where_more_wait().is_some())
    {
        let text = format!("{}: they wait for what the server asks, and not for it", queues.tell(gap));
        return Err(Standing::Undecided(gap.on_host(text, Some(by_hand::LISTEN_QUEUES.to_owned()))));
    }
    let open = || {
        let text = format!("that {slow}'s throughput does not fall under many connections was not shown: a lock?");
        Standing::Undecided(gap.on_host(text, None))
    };
    likes::held_against(gap, &ENTRY)
        .try_for_each(|like| like.map(drop).map_err(|against| against.settles(|_| open())))?;
    if levels_off(gap, reference) { Ok(()) } else { Err(open()) }
}

/// Leaves it open where throughput bends before all workers are busy.
///
/// With no more connections than workers nobody waits for one, so n connections get n times as much done as one does, up to
/// the number of workers. What those who are served together cost each other makes that less from the start.
fn bends_sharply(gap: &Gap<'_>, reference: &View<'_>, alone: &View<'_>) -> Result<(), Standing> {
    // As close as the numbers of workers have to agree: see `waiting`.
    const CLOSE: f64 = 0.9;
    let at_a_time = |view: &View<'_>| Some(view.slow.rate_per_s? * alone.slow_ns()? / 1e9);
    let Some(most) = at_a_time(reference) else { return Ok(()) };
    for count in fewer_connections(gap.case.plan.lanes()) {
        let Look::Shown(view) = gap.look(CONNECTIONS.of(count as usize)) else { continue };
        let possible = f64::from(count).min(most);
        if let Some(served) = at_a_time(&view).filter(|&served| served < CLOSE * possible) {
            let text = format!(
                "over {count} connections {} serves {served:.1} requests at a time, although it can serve {possible:.1}",
                gap.slow_name()
            );
            return Err(Standing::Undecided(gap.evidence(&view, text)));
        }
    }
    Ok(())
}

/// Workers that wait for something else than a CPU.
fn waiting(
    gap: &Gap<'_>,
    reference: &View<'_>,
    alone: &View<'_>,
    cpus: &Cpus,
    threads: usize,
) -> Result<Standing, Standing> {
    let slow = gap.slow_name();
    let open = |text: String| Standing::Undecided(gap.on_host(text, None));
    let Some([by_slow, by_fast]) = served_at_a_time(reference, alone) else {
        return Err(open("how many requests are served at a time is not known".to_owned()));
    };
    let in_hand = in_hand_at_a_time(gap, alone, by_slow)?;
    let facts = format!(
        "{slow} serves about {in_hand:.1} requests at a time, {} {by_fast:.1}, and the {:.0} CPUs that {slow} may use are \
         {:.0} % busy",
        gap.fast_name(),
        cpus.count,
        100.0 * cpus.busy / cpus.count
    );
    let processes = gap.host_number(gap.slow, "process.count");
    // Threads that serve, threads beside one that accepts, and processes beside their parent.
    let threads = threads as f64;
    let counts = [Some(threads), Some(threads - 1.0), processes, processes.map(|count| count - 1.0)];
    // Both figures of Little's law scatter by some percent, and a half of one is as close as a count can be.
    let close = |count: f64| count >= 2.0 && (count - in_hand).abs() <= (0.1 * count).max(0.5);
    // One at a time is what a lock looks like as well.
    if in_hand < ONE_AT_A_TIME {
        return Err(open(format!("{facts}: one worker or one lock would look like that")));
    }
    let Some(count) = counts.into_iter().flatten().find(|&count| close(count)) else {
        return limited(gap, reference, alone, facts, by_slow);
    };
    let share = (by_fast / by_slow).ln() / reference.log.mid;
    let text = format!("{facts}; it has {count:.0} threads or processes for that");
    if share < Flip::NOTEWORTHY {
        return Err(Standing::RuledOut(gap.on_host(text, None)));
    }
    let confidence = if count < MOST_BY_CHANCE { Confidence::Possible } else { Confidence::Likely };
    Ok(fit_by_host(gap, &ENTRY, Some(share), confidence, told(gap, alone, text)))
}

/// A limit on what is served at a time that is not its number of workers: of connections, say, or of a pool.
///
/// Where as many of the server's threads as requests wait sleep until another one wakes them, they wait for a place, or for a lock that
/// is held for a part of each request.
///
/// A limit on rate serves as few at a time. One on bytes shows while responses are received, and is excluded by that; one
/// on requests is not, so it is possible at most.
fn limited(
    gap: &Gap<'_>,
    reference: &View<'_>,
    alone: &View<'_>,
    facts: String,
    by_slow: f64,
) -> Result<Standing, Standing> {
    let slow = gap.slow_name();
    let differences = phase_differences(reference);
    let of = |wanted: fn(Phase) -> bool| -> f64 {
        differences.iter().filter(|(phase, _)| wanted(*phase)).map(|(_, ns)| ns).sum()
    };
    let (whole_ns, receiving_ns) = (of(|_| true), of(|phase| phase == phase::RECEIVE));
    let queued = whole_ns > 0.0 && receiving_ns <= (1.0 - Flip::EXPLAINS) * whole_ns;
    // As many as there are connections is no limit of the server's.
    let fewer = reference.connections().is_some_and(|connections| by_slow < Flip::EXPLAINS * f64::from(connections));
    if !queued || !fewer {
        let text =
            format!("{facts}: a limit on what it serves at a time, a lock or a limit on rate would look like that");
        return Err(Standing::Undecided(gap.on_host(text, None)));
    }
    // A disk makes those wait for each other who want the same of it, as followers of one that flushes do.
    let machines = Machines::read(gap)?;
    let is_no_disk = machines.slow.busiest_disk().is_some_and(|share| share < Flip::NOTEWORTHY);
    let within = if is_no_disk { WaitingWithin::of(gap, &machines, reference, alone)? } else { None };
    let alike = match &within {
        Some(within) => {
            let held = percent(1.0 / within.in_hand);
            format!("A lock that is held for {held} of each request, or a limit on rate, would look the same.")
        }
        None => "A lock or a limit on rate would look the same.".to_owned(),
    };
    let summary = format!(
        "{slow} may be allowed to serve too few requests at a time: {facts}. Over a single connection there is hardly a gap. {alike}"
    );
    let mut told = Told { summary, ..told(gap, alone, facts) };
    if let Some(within) = &within {
        told.remedy =
            format!("{} Make the pool larger, or hold the lock for a shorter time.", sleepers::thread_dump(gap));
        told.facts.push(gap.on_host(within.tell(gap), Some(by_hand::sleepers(gap, gap.slow))));
    }
    Ok(fit_by_host(gap, &ENTRY, within.map(|within| within.share), Confidence::Possible, told))
}

fn told(gap: &Gap<'_>, alone: &View<'_>, facts: String) -> Told {
    let slow = gap.slow_name();
    Told {
        summary: format!("{slow} has too few workers: {facts}. Over a single connection there is hardly a gap."),
        remedy: format!(
            "Give {slow} as many workers as it has CPUs, or more where they wait: nginx `worker_processes auto`; Apache \
             `ServerLimit`, `ThreadsPerChild` and `MaxRequestWorkers`; HAProxy `nbthread` and `maxconn`; application servers \
             their number of workers and of connections to what is behind them. `top -H -p {}` tells which threads are busy.",
            pid(gap, gap.slow)
        ),
        facts: vec![gap.on_host(facts, Some("top -H -b -n 1 | head -n 20".to_owned()))],
        further: vec![gap.evidence(alone, format!("{}: {}", ALONE.phrase(), gap.tell(alone)))],
    }
}

/// How many of the workers do all but a fifth of the work.
fn working(workers: &[f64]) -> usize {
    let mut shares = workers.to_vec();
    shares.sort_by(|a, b| b.total_cmp(a));
    let all: f64 = shares.iter().sum();
    let mut done = 0.0;
    let mut count = 0;
    for share in shares {
        if done >= Flip::EXPLAINS * all {
            break;
        }
        done += share;
        count += 1;
    }
    count
}

/// The CPUs that a server may use.
struct Cpus {
    count: f64,
    /// How many of them were busy, by whomever.
    busy: f64,
    /// How many by the server itself, where that is told.
    own: Option<f64>,
    /// Cores that they are on, as far as that is told; a core may be several CPUs.
    cores: f64,
}

impl Cpus {
    /// `None` where one of them is not told.
    fn of(gap: &Gap<'_>, demand: &HostDemand) -> Option<Self> {
        let allowed = allowed_cpus(gap, gap.slow)?;
        // The list may name CPUs that could be plugged in and are not; those have never counted anything.
        let shares: Vec<f64> =
            allowed.iter().filter_map(|cpu| demand.share_of_time(&format!("cpu.{cpu}.busy_ns"))).collect();
        let count = shares.len() as f64;
        let number = |key| gap.host_number(gap.slow, key).filter(|number| *number >= 1.0);
        let of_a_core = number("cpu.cores").zip(number("cpu.cpus")).map_or(1.0, |(cores, cpus)| cores / cpus);
        (!shares.is_empty()).then(|| Self {
            count,
            busy: shares.iter().sum(),
            own: demand.share_of_time("process.cpu_ns"),
            cores: (count * of_a_core).clamp(1.0, count),
        })
    }

    /// What would be gained if those that are idle worked too, in whole cores: busy CPUs spread over cores first.
    fn gain(&self) -> f64 {
        let done_by = |cpus: f64| cpus.min(self.cores) + OF_A_SIBLING * (cpus - self.cores).max(0.0);
        (done_by(self.count) - done_by(self.busy)).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::working;

    #[test]
    fn who_works() {
        assert_eq!(working(&[0.95, 0.01]), 1);
        assert_eq!(working(&[0.4, 0.5, 0.0]), 2);
        assert_eq!(working(&[]), 0);
    }
}
