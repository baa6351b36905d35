//! `lock.contention`: the more work at a time, the less gets done on the slow side.
//!
//! A queue, a limit on workers or CPUs lets throughput level off; only what those who work at the same time cost each
//! other lets it *fall*. So fewer connections than the plan's have to get more done on the slow side, beyond the intervals, and not
//! on the fast side. What was lost on the way down is what it is worth at least. But a lock that one after the other holds lets
//! throughput level off, too. So where it does not fall, this is ruled out only where the server's own work fills its CPUs: then
//! requests wait for these, and not for each other.
//!
//! Where it levels off, what the server's threads sleep in tells a lock from a queue: behind a lock requests wait in threads that
//! sleep for each other, in a queue they wait where no thread has them yet. That one request is served at a time tells a lock from
//! a pool of several places. In some programs idle threads sleep in the same way (Java's pools). There it also tells that several
//! threads do this work in turn: with one worker, one thread would do it.
//!
//! What looks alike: a listen queue that overflows under many connections (then the gap sits in connecting), and memory
//! that is too small for them (pages read again). From outside another reason for falling remains possible; the
//! machine's counters make it likely: more CPU time per op (threads that spin). More switches (threads that sleep for a lock)
//! are told, and do not make it likely: servers differ in them by how they are built.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host};
use crate::causes::likes;
use crate::evidence::by_hand;
use crate::evidence::counted::Counted;
use crate::evidence::fronts::Fronts;
use crate::evidence::listen_queues::ListenQueues;
use crate::evidence::machines::{
    FULL, Machines, QUOTA, allowed_cpus, busy_share_of_cpus, needs_concurrency, pid, workers,
};
use crate::evidence::scaling::{
    FEWEST_CONNECTIONS, Fall, Law, ONE_AT_A_TIME, Point, connecting_share, could_fall, falls, fewer_connections,
    in_hand_at_a_time, served_at_a_time,
};
use crate::evidence::sleepers::{self, WaitingWithin};
use crate::gap::{DemandLook, Flip, Gap, Look, View, percent, phase_share};
use crate::probes::{ALONE, CONNECTIONS};
use duel_model::web::phase;
use duel_model::{Confidence, Evidence, format_duration_ns};

static ENTRY: CauseEntry = CauseEntry {
    id: "lock.contention",
    description: "requests that are served at the same time hinder each other: with more of them, less gets done",
    signature: "throughput falls with more connections on the slow side alone; or hosts: CPU time per request \
                grows with them though over one connection both are as fast (no segments lost); or it levels off, while CPUs and disks \
                are idle, one request is served at a time, and as many of the server's threads as requests wait sleep until \
                another one wakes them, or several threads do this work in turn",
    at_most: "likely; possible without more CPU time, where one request is served at a time by several threads, and where nobody sees how \
              busy the disks are",
    needs_machine: false,
};

/// CPU time was counted in other slots than the gap was measured in; beyond a quarter more they do not tell the same.
const MOST_OF_THE_GAP: f64 = 1.25;

/// CPUs that are busy for less of the time are not what requests wait for.
const MOSTLY_IDLE: f64 = 0.5;

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let slow = gap.slow_name();
    needs_concurrency(gap)?;
    let open = |view: &View<'_>, text: String| Standing::Undecided(gap.evidence(view, text));
    let Some(many) = gap.known_reference().filter(|view| view.connections() != Some(1)) else {
        return Err(open(&gap.comparison, "the gap could not be held against other numbers of connections".to_owned()));
    };
    let connections = gap.case.plan.lanes();
    if connections < FEWEST_CONNECTIONS {
        return Err(open(many, format!("{connections} connections are too few to see throughput fall")));
    }
    if let Some(share) = connecting_share(many)
        && share >= Flip::NOTEWORTHY
    {
        let text = format!("{} of the extra time is spent on connecting: that is not the work itself", percent(share));
        return Err(open(many, text));
    }

    let mut points: Vec<View<'_>> = Vec::new();
    if let Look::Shown(alone) = gap.look(ALONE) {
        points.push(alone);
    }
    let mut why_not = None;
    for count in fewer_connections(connections) {
        match gap.look(CONNECTIONS.of(count as usize)) {
            Look::Shown(view) => points.push(view),
            // One that shows the fall is enough.
            Look::NotAsked(_) if falls(gap, &points, many).is_some() => {}
            Look::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
            Look::Missing(why) => why_not = Some(why),
        }
    }
    let Some(fall) = falls(gap, &points, many) else {
        if let Some(standing) = by_cpu_time(gap, many)? {
            return Ok(standing);
        }
        if let Some(standing) = by_sleepers(gap, many)? {
            return Ok(standing);
        }
        if let Some(standing) = by_turns(gap, many)? {
            return Ok(standing);
        }
        if let Some(why) = why_not {
            return Err(open(many, why));
        }
        let text = format!("{} under {}", rates(&points, many, |view| view.slow.rate_per_s), names(&points, many));
        let told = format!("{slow}'s throughput does not fall: {text}");
        let line = |text: String| gap.evidence(many, text);
        if could_fall(gap, &points, many) {
            return Err(Standing::Undecided(line(format!("{told}, as far as the intervals tell"))));
        }
        return Err(match own_share_of_cpus(gap).filter(|share| *share >= FULL) {
            // Who spins for a lock takes more CPU time, which was looked at.
            Some(share) => Standing::RuledOut(line(format!(
                "{told}; {} of its CPUs' time goes to its own work, and no more of it per request than elsewhere",
                percent(share)
            ))),
            None => Standing::Undecided(line(format!(
                "{told}; a lock that one request after the other holds lets it level off, too"
            ))),
        });
    };

    // Close to the peak, wherever that is: it is known already that there is one.
    if points.iter().all(|view| view.connections() != Some(2)) {
        match gap.look(CONNECTIONS.of(2)) {
            Look::NotAsked(probe) if probe.budget_ns <= gap.case.budget_left_ns => {
                return Err(Standing::Wants(vec![probe]));
            }
            Look::Shown(view) => points.push(view),
            Look::NotAsked(_) | Look::Missing(_) => {}
        }
    }
    let fall = falls(gap, &points, many).unwrap_or(fall);
    points.sort_by_key(View::connections);
    points.push(many.clone());
    judge(gap, many, &points, &fall)
}

/// The share of the time of the CPUs that the slow side's server may use which it uses itself; `None` where that is not known.
fn own_share_of_cpus(gap: &Gap<'_>) -> Option<f64> {
    let allowed = allowed_cpus(gap, gap.slow)?.len();
    Some(Machines::read(gap).ok()?.slow.cpus("process.cpu_ns")? / allowed as f64)
}

fn judge(gap: &Gap<'_>, many: &View<'_>, points: &[View<'_>], fall: &Fall<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let open = |text: String| Standing::Undecided(gap.evidence(&fall.from, text));
    let law = |rate: fn(&View<'_>) -> Option<f64>| {
        let point = |view: &View<'_>| {
            let (connections, half_log) = (f64::from(view.connections()?), view.log.half());
            Some(Point { connections, per_s: rate(view).filter(|rate| *rate > 0.0)?, half_log })
        };
        Law::fit(&points.iter().filter_map(point).collect::<Vec<_>>())
    };
    let connections = many.connections().unwrap_or(gap.case.plan.lanes());
    let told_rates = rates(&points[..points.len() - 1], many, |view| view.slow.rate_per_s);
    let told_of_fast = rates(&points[..points.len() - 1], many, |view| view.fast.rate_per_s);
    let seen =
        format!("under {}: {told_rates} on {slow}, {told_of_fast} on {fast}", names(&points[..points.len() - 1], many));
    // What is lost on the way down. What it cost before its peak cannot be told from waiting in one queue by the rates,
    // and by the CPU time that a request takes more of among others.
    let hindered = hindered_log(gap, many);
    let worth = fall.slow_log.min(fall.gap_grows_log).max(hindered.unwrap_or(0.0));
    let mut further = vec![gap.evidence(&fall.from, seen)];
    if let Some(of_slow) = law(|view| view.slow.rate_per_s) {
        if of_slow.kappa.low() <= 0.0 {
            return Err(open(format!("{slow}'s throughput falls, but by the scalability law that may be chance")));
        }
        let of_fast = law(|view| view.fast.rate_per_s);
        let kappa = |law: &Law| {
            format!("{:.2e} (95 % interval {:.1e} to {:.1e})", law.kappa.mid, law.kappa.low(), law.kappa.high())
        };
        let mut text = format!("the scalability law gives \u{3ba} = {} for {slow}", kappa(&of_slow));
        if let Some(of_fast) = of_fast {
            text.push_str(&format!(", {} for {fast}", kappa(&of_fast)));
        }
        further.push(gap.evidence(many, text));
    }
    let share = worth / many.log.mid;
    if share < Flip::NOTEWORTHY {
        return Err(open(format!(
            "{slow}'s throughput falls by {}: less than the gap",
            percent(1.0 - (-fall.slow_log).exp())
        )));
    }
    let (confidence, of_host) = by_host(gap)?;
    further.extend(of_host);
    let told = Told {
        summary: format!(
            "{slow} gets {} less done over {connections} connections than over {}: requests that are served at the same \
             time hinder each other, as they do when they contend for a lock. That is worth at least {} of the gap.",
            percent(1.0 - (-fall.slow_log).exp()),
            fall.from.connections().unwrap_or(1),
            percent(share)
        ),
        remedy: remedy(gap),
        facts: vec![],
        further,
    };
    Ok(fit_by_host(gap, &ENTRY, Some(share), confidence, told))
}

/// Where throughput levels off without falling, what requests cost each other shows in CPU time alone: who spins for a
/// lock wears out a CPU that would have been idle. `None` where it does not show.
fn by_cpu_time(gap: &Gap<'_>, many: &View<'_>) -> Result<Option<Standing>, Standing> {
    let machines = match Machines::read(gap) {
        Ok(machines) => machines,
        Err(Standing::Wants(probes)) => return Err(Standing::Wants(probes)),
        Err(_) => return Ok(None),
    };
    // Twice as much is more than two threads of one core, or caches that are shared, cost each other.
    let Some(worth) = hindered_log(gap, many).filter(|worth| *worth >= 2f64.ln()) else { return Ok(None) };
    let share = worth / many.log.mid;
    let both = machines.fast.as_ref().and_then(|fast| {
        Some([machines.slow.per_op("process.cpu_ns")?, fast.per_op("process.cpu_ns")?].map(format_duration_ns))
    });
    let Some([of_slow, of_fast]) = both.filter(|_| share >= Flip::NOTEWORTHY) else { return Ok(None) };
    // Memory that does not suffice for so many costs CPU time, too.
    let (_, of_host) = by_host(gap)?;
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let connections = many.connections().unwrap_or(gap.case.plan.lanes());
    let seen = format!(
        "over {connections} connections a request takes {of_slow} of CPU time on {slow}, {of_fast} on {fast}; over one the \
         two are as fast"
    );
    let told = Told {
        summary: format!(
            "Requests that are served at the same time cost each other CPU time on {slow}, as they do when they spin for a \
             lock: {seen}. That is worth about {} of the gap.",
            percent(share)
        ),
        remedy: remedy(gap),
        facts: vec![gap.on_host(seen, Some(by_hand::cpu_time(gap, gap.slow)))],
        further: of_host.into_iter().collect(),
    };
    Ok(Some(fit_by_host(gap, &ENTRY, Some(share), Confidence::Likely, told)))
}

/// A lock that one request after the other holds lets throughput level off. Whoever waits for it sleeps until another thread of the
/// server wakes it, and the kernel tells of how many that is so ([`WaitingWithin`]). `None` where it does not show.
///
/// Where several are served at a time they wait in the same way for a place in a pool, which is more likely then than a lock that is held
/// for a part of each request: that leaves this open.
fn by_sleepers(gap: &Gap<'_>, many: &View<'_>) -> Result<Option<Standing>, Standing> {
    let machines = match Machines::read(gap) {
        Ok(machines) => machines,
        Err(Standing::Wants(probes)) => return Err(Standing::Wants(probes)),
        Err(_) => return Ok(None),
    };
    // On CPUs that are full with its own work whoever hands a request to another thread waits until that one had its turn.
    if own_share_of_cpus(gap).is_none_or(|share| share >= FULL) {
        return Ok(None);
    }
    let Look::Shown(alone) = gap.look(ALONE) else { return Ok(None) };
    let Some(waiting) = WaitingWithin::of(gap, &machines, many, &alone)? else { return Ok(None) };
    let (slow, seen) = (gap.slow_name(), waiting.tell(gap));
    let open = |text: String| Err(Standing::Undecided(gap.on_host(text, Some(by_hand::sleepers(gap, gap.slow)))));
    if waiting.in_hand >= ONE_AT_A_TIME {
        return open(format!(
            "{seen}; behind a lock that is held for the whole of a request it would be one at a time. A pool of several places would look \
             like this, and so would a lock that is held for {} of each request",
            percent(1.0 / waiting.in_hand)
        ));
    }
    // Whoever holds the lock may do so for as long as a disk takes.
    if machines.slow.busiest_disk().is_some_and(|share| share >= Flip::NOTEWORTHY) {
        return open(format!("{seen}; but a disk of {slow}'s machine is busy, too, and they may wait for that"));
    }
    // How long the way is has no interval.
    let is_plain = machines.slow.busiest_disk().is_some() && !waiting.seems_several();
    let confidence = if is_plain { Confidence::Likely } else { Confidence::Possible };
    let summary = format!(
        "Requests wait for each other within {slow}'s server, as they do behind a lock that one holds after the other, or for the one \
         place of a pool: {seen}. That is worth about {} of the gap.",
        percent(waiting.share)
    );
    let seen = gap.on_host(seen, Some(by_hand::sleepers(gap, gap.slow)));
    Ok(Some(waiting_within(gap, waiting.share, summary, seen, confidence)))
}

/// Where idle threads sleep in the same way as those that wait for a lock, the number of those that do the work tells. One request is
/// served at a time (Little's law), and several threads share the work: with one worker, one would do it. As many threads as requests wait
/// sleep until another one wakes them. `None` where it does not show.
///
/// A limit that lets through about as many requests as one after the other would be looks alike, and so does another server that answers one
/// at a time. So this is possible at most. A limit that lets through far fewer shows over one connection, too.
fn by_turns(gap: &Gap<'_>, many: &View<'_>) -> Result<Option<Standing>, Standing> {
    let machines = match Machines::read(gap) {
        Ok(machines) => machines,
        Err(Standing::Wants(probes)) => return Err(Standing::Wants(probes)),
        Err(_) => return Ok(None),
    };
    let (DemandLook::Shown(demands), Look::Shown(alone)) = (gap.demands(), gap.look(ALONE)) else { return Ok(None) };
    let slow_side = &machines.slow;
    let is_free = busy_share_of_cpus(gap, gap.slow, slow_side).is_some_and(|busy| busy <= MOSTLY_IDLE)
        && gap.host_fact(gap.slow, QUOTA).is_some()
        && !slow_side.is_held_back(&machines.view);
    let shares = workers(slow_side.demand()).filter(|_| is_free);
    let (Some(shares), Some(threads)) = (shares, slow_side.busy_threads()) else { return Ok(None) };
    let Some([by_slow, by_fast]) = served_at_a_time(many, &alone) else { return Ok(None) };
    let connections = f64::from(machines.view.connections().unwrap_or(gap.case.plan.lanes()));
    let waiting = connections - by_slow.max(1.0);
    let takes_turns = by_fast >= 2.0 * by_slow && waiting >= 2.0;
    // Of a pool that is smaller than the number of connections no more can wait than it has threads. Those who waited for work before and wait
    // for the lock now are as many; before a timer of the program's own, which has a time-out, they would be fewer.
    let asleep = slow_side.demand().sleepers.mean_without_timeout();
    let more_asleep = sleepers::for_each_other(slow_side.demand());
    let sleep_for_each_other = asleep.zip(more_asleep).is_some_and(|(asleep, more)| {
        asleep >= Flip::EXPLAINS * waiting.min(threads - by_slow) && more >= -by_slow.max(1.0) - 0.5 * waiting
    });
    if !takes_turns || !is_shared(shares) || !sleep_for_each_other {
        return Ok(None);
    }
    if in_hand_at_a_time(gap, &alone, by_slow)? >= ONE_AT_A_TIME {
        return Ok(None);
    }
    // All but a few wait for their turn. Not all as long: whoever lets go of a lock may take it again before others wake up.
    let quick_ns = many.slow.service_profile.quantile_ns(0.25).map(|ns| ns as f64);
    let all_wait =
        quick_ns.zip(alone.slow_ns()).is_some_and(|(quick_ns, ns)| quick_ns >= (1.0 + Flip::NOTEWORTHY) * ns);
    let carries_longer =
        phase_share(many, &[phase::SEND, phase::RECEIVE]).is_none_or(|share| share > 1.0 - Flip::EXPLAINS);
    // Whoever waits for another server, or for a disk, sleeps otherwise, or beside its connections.
    let waits_elsewhere = sleepers::for_sockets(slow_side.demand())
        .zip(sleepers::for_disks(slow_side.demand()))
        .is_none_or(|(sockets, disks)| sockets.max(disks) >= 1.0)
        || !Fronts::of(gap, &demands).is_ok_and(|fronts| fronts.slow.answers_alone);
    let queues = ListenQueues::of_machines(gap, &machines);
    let waits_before = queues.is_none_or(|queues| queues.where_more_wait().is_some());
    // A lock makes no gap over one connection, and so does nothing that holds up each request.
    let shows_alone = alone.log.high() >= Flip::NOTEWORTHY * many.log.mid;
    if !all_wait || carries_longer || waits_elsewhere || waits_before || shows_alone {
        return Ok(None);
    }
    let share = (many.log.mid - alone.log.mid) / many.log.mid;
    let slow = gap.slow_name();
    let seen = format!(
        "of {connections:.0} requests at a time {slow} serves {by_slow:.1}, though about {threads:.0} of its threads share the work, and its \
         CPUs are mostly idle; {} serves {by_fast:.1}",
        gap.fast_name()
    );
    if slow_side.busiest_disk().is_some_and(|share| share >= Flip::NOTEWORTHY) {
        let text = format!("{seen}; but a disk of {slow}'s machine is busy, too, and they may wait for that");
        return Err(Standing::Undecided(gap.on_host(text, None)));
    }
    for like in likes::held_against(gap, &ENTRY) {
        like.map_err(|against| {
            against
                .settles(|other| Standing::Undecided(gap.on_host(format!("{seen}; {other} would look the same"), None)))
        })?;
    }
    let summary = format!(
        "Requests to {slow} are served one at a time, though several of its threads serve them, as behind a lock, a pool of one, a limit, \
         or another server that answers one at a time: {seen}. That is worth about {} of the gap.",
        percent(share)
    );
    let repeat = Some(format!("top -H -b -n 1 -p {} | head -n 40", pid(gap, gap.slow)));
    Ok(Some(waiting_within(gap, share, summary, gap.on_host(seen, repeat), Confidence::Possible)))
}

/// Threads beside the two busiest do half of the work and more: one that works, and one that accepts and reads for it, are two.
fn is_shared(mut shares: Vec<f64>) -> bool {
    shares.sort_by(|a, b| b.total_cmp(a));
    let all: f64 = shares.iter().sum();
    all > 0.0 && shares.iter().skip(2).sum::<f64>() >= 0.5 * all
}

/// The standing of requests that wait for each other within the slow side's server.
fn waiting_within(gap: &Gap<'_>, share: f64, summary: String, seen: Evidence, confidence: Confidence) -> Standing {
    let told = Told {
        summary,
        remedy: format!(
            "{} Hold it for a shorter time, divide it, or make the pool larger.",
            sleepers::thread_dump(gap)
        ),
        facts: vec![seen],
        further: Vec::new(),
    };
    fit_by_host(gap, &ENTRY, Some(share), confidence, told)
}

fn remedy(gap: &Gap<'_>) -> String {
    let (slow, pid) = (gap.slow_name(), pid(gap, gap.slow));
    format!(
        "Let fewer requests work at a time on {slow} (fewer workers or threads, a smaller pool, a limit in the balancer): \
         throughput should rise, or take less CPU. `perf record -g -p {pid}` and `perf lock` on its host, or a thread dump, \
         tell what they wait for: one lock, one row, one file, one cache line."
    )
}

/// What requests cost each other in CPU time, as a log: beyond the fast side's, and beyond what shows over one connection.
///
/// A request that waits in a queue sleeps; who spins for a lock, or finds its data in another CPU's cache, does not. CPU
/// time that a request takes for its own sake makes it longer over one connection too, so the most that it can be longer
/// there does not count.
fn hindered_log(gap: &Gap<'_>, many: &View<'_>) -> Option<f64> {
    let Look::Shown(alone) = gap.look(ALONE) else { return None };
    let machines = Machines::read(gap).ok()?;
    let of_slow = machines.slow.per_op("process.cpu_ns")?;
    let of_fast = machines.fast.as_ref()?.per_op("process.cpu_ns").filter(|ns| *ns > 0.0)?;
    let for_others_ns = of_slow - of_fast - alone.difference_ns()?.high().max(0.0);
    let hindered = -(-(for_others_ns / of_slow).clamp(0.0, 0.999)).ln_1p();
    // Where the CPU time is far more than the gap, the CPU is not what requests wait for.
    Some(hindered).filter(|log| *log <= MOST_OF_THE_GAP * many.log.high()).map(|log| log.min(many.log.mid))
}

/// What the machines' counters say: pages that are read again and lost segments leave it open, CPU time that requests cost each
/// other makes it likely. Switches are told; but a server with a thread for each connection has many at any load, whoever
/// hinders whom.
fn by_host(gap: &Gap<'_>) -> Result<(Confidence, Option<Evidence>), Standing> {
    let machines = match Machines::read(gap) {
        Ok(machines) => machines,
        Err(Standing::Wants(probes)) => return Err(Standing::Wants(probes)),
        Err(_) => return Ok((Confidence::Possible, None)),
    };
    let Some(fast_side) = &machines.fast else { return Ok((Confidence::Possible, None)) };
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let both = |key: &str| Some((machines.slow.per_op(key)?, fast_side.per_op(key)?));
    // One page read again per request and more: then it is memory that does not suffice for so many.
    if let Some((of_slow, of_fast)) = both("memory.refaults_file").or_else(|| both("process.major_faults"))
        && of_slow - of_fast >= 1.0
    {
        let text =
            format!("{slow}'s machine reads {of_slow:.1} pages again for each request: memory may be what is short");
        return Err(Standing::Undecided(gap.on_host(text, Some(by_hand::PAGES_AGAIN.to_owned()))));
    }
    let marked = |key: &str| counted(gap, key).is_some_and(Counted::is_marked);
    if marked("tcp.retransmitted_segments") {
        let text = format!(
            "{slow}'s machine sends more segments again: what many connections lose to each other may be packets"
        );
        return Err(Standing::Undecided(gap.on_host(text, Some(by_hand::SENT_AGAIN.to_owned()))));
    }
    // Twice as much is more than a longer queue makes of it: who waits longer does not take more CPU time.
    let more = |(of_slow, of_fast): (f64, f64)| of_slow > 2.0 * of_fast;
    if let Some(both) = both("process.cpu_ns").filter(|both| more(*both)) {
        let [of_slow, of_fast] = [both.0, both.1].map(format_duration_ns);
        let text = format!("a request takes {of_slow} of CPU time on {slow}, {of_fast} on {fast}");
        return Ok((Confidence::Likely, Some(gap.on_host(text, Some(by_hand::cpu_time(gap, gap.slow))))));
    }
    let switches = both("workers.voluntary_switches").or_else(|| both("cpu.switches"));
    let told = switches.filter(|both| more(*both)).map(|(of_slow, of_fast)| {
        let text = format!("switches per request: {of_slow:.1} on {slow}, {of_fast:.1} on {fast}");
        gap.on_host(text, Some(by_hand::switches(gap, gap.slow)))
    });
    Ok((Confidence::Possible, told))
}

/// A counter of both machines, where it is known already.
fn counted(gap: &Gap<'_>, key: &str) -> Option<Counted> {
    match gap.demands() {
        DemandLook::Shown(demands) => Counted::of(&demands, key),
        DemandLook::NotAsked(_) | DemandLook::Missing(_) => None,
    }
}

/// `1, 4 and 16 connections`.
fn names(points: &[View<'_>], many: &View<'_>) -> String {
    let counts: Vec<_> = points.iter().filter_map(|view| Some(view.connections()?.to_string())).collect();
    format!("{} and {} connections", counts.join(", "), many.connections().map_or_else(String::new, |n| n.to_string()))
}

/// `700, 1200 and 400 requests a second`.
fn rates(points: &[View<'_>], many: &View<'_>, of: fn(&View<'_>) -> Option<f64>) -> String {
    let told = |view: &View<'_>| of(view).map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}"));
    let few: Vec<_> = points.iter().map(told).collect();
    format!("{} and {} requests a second", few.join(", "), told(many))
}
