//! `app.pauses`: all of the slow side's server stands still now and then, as where a garbage collector stops the program, or
//! somebody stops its processes.
//!
//! Seen from outside: for a while no answer comes on any connection, though requests wait on several, and then all of them come
//! together (`TargetObservation::stalls`). What that adds to the gap follows from its share of the time, beyond the fast side's:
//! what holds the machine or the generator up holds both up.
//!
//! What looks alike from outside, and what splits it from that:
//!
//! * a lost packet: one connection waits for it, and others are answered meanwhile. Where all connections lose one at a time, segments are
//!   sent again, as many as there are stalls at least;
//! * some slow requests: each ends by itself. Where a server that works on one request at a time waits within every twelfth one, all of it stands
//!   still, too, every twelve requests. A collector, or whoever stops processes, does not come so often;
//! * a limit that lets through so many requests in each stretch of time, and has all others wait for the next one: it takes the
//!   less, the fewer are sent. Over one connection a program that pauses has as much of its time go by in slow requests, also where it serves
//!   more of them than such a limit lets through (requests for one byte);
//! * a quota, somebody else's work on the CPU, a hypervisor that withholds it, memory that is read again: all stop the whole
//!   server, and only its machine tells. Each of these causes has to be ruled out by its own judgement, no disk may have been busy
//!   for a good part of that time, and where the machine is not read, this cause is no more than a suspicion.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host, needs_http};
use crate::causes::likes::{self, Against};
use crate::evidence::counted::Counted;
use crate::evidence::fronts::Fronts;
use crate::evidence::machines::{HeldBack, MOST_OF_THE_GAP, Machines, pid};
use crate::evidence::sleepers;
use crate::evidence::stall::{worth_log, worth_log_of};
use crate::evidence::worth::minor;
use crate::gap::{DemandLook, Flip, Gap, Look, View, percent};
use crate::probes::{ALONE, Mode, RANGE_1};
use duel_model::{Confidence, Evidence, MILLISECOND_NS, Probe, TargetObservation, TargetStalls, format_duration_ns};
use duel_stats::Estimate;

static ENTRY: CauseEntry = CauseEntry {
    id: "app.pauses",
    description: "the whole server stands still now and then: a garbage collector, or somebody stops its processes",
    signature: "times without any answer on several connections that wait, which then all get theirs; they take a share of the \
                time that is worth the gap, over one connection as well, and not on the fast side; hosts: no quota, no \
                want of CPU or memory, and no lost packets",
    at_most: "likely; possible where it hands on what it is asked, or that is not known, and where its machine is not ours",
    needs_machine: true,
};

/// Connections from which on stalls of all are told from requests that are slow each for itself.
const FEWEST_CONNECTIONS: u32 = 4;
/// Where no stall was seen: how long one that was missed may have been. HotSpot's default collector means to pause for no longer
/// (`-XX:MaxGCPauseMillis`).
const LONGEST_UNSEEN_NS: f64 = 200.0 * MILLISECOND_NS as f64;
/// Stalls that are missed in 5 % of runs, where none is seen (the rule of three; Hanley and Lippman-Hand 1983).
const RULE_OF_THREE: f64 = 3.0;

/// Requests from which on a stall is no matter of one of them. A collector that runs for fewer has room for the garbage of no more: Go's
/// smallest heap, 4 MiB, over 40 kB a request.
const FEWEST_REQUESTS_BETWEEN: f64 = 100.0;

/// A server that serves so many times its rate under load is above a limit on requests.
const BEYOND_A_LIMIT: f64 = 1.5;
/// Responses of a probe are as large as those of the comparison: heads differ a little.
const AS_LARGE: f64 = 1.05;

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    needs_http(gap)?;
    gap.needs_gap_of_means()?;
    let seen = Seen::of(gap)?;
    let (view, slow) = (&gap.comparison, gap.slow_name());
    let line = |text: String| gap.evidence(view, text);
    let share = seen.share(view);
    if seen.most_log() < Flip::NOTEWORTHY * view.log.low() {
        let shorter_log = seen.most_log_of_shorter(view);
        let is_seen = seen.beyond_log.low() > 0.0 && seen.beyond_log.mid >= gap.case.margin_log();
        return Err(match shorter_log {
            Some(log) if log < Flip::NOTEWORTHY * view.log.low() && is_seen => {
                minor(seen.beyond_log.mid / view.log.mid, line(seen.told(gap)))
            }
            Some(log) if log < Flip::NOTEWORTHY * view.log.low() => Standing::RuledOut(line(seen.told(gap))),
            _ => Standing::Undecided(line(format!(
                "{}; stalls of less than 10 ms, or than four requests usually take, are not looked for",
                seen.told(gap)
            ))),
        });
    }
    let beyond_chance = seen.beyond_log.mid > Flip::MANY_LOOKS * seen.beyond_log.below;
    if share < Flip::NOTEWORTHY || !beyond_chance || seen.beyond_log.mid < gap.case.margin_log() {
        return Err(Standing::Undecided(line(format!("{}: that leaves open whether it matters", seen.told(gap)))));
    }
    if share > MOST_OF_THE_GAP {
        let text = format!("{}: more than the whole gap, so that not all of it can have mattered", seen.told(gap));
        return Err(Standing::Undecided(line(text)));
    }
    let requests = seen.requests_between(view);
    if requests.is_none_or(|requests| requests < FEWEST_REQUESTS_BETWEEN) {
        let every = requests.map_or_else(|| "an unknown number of".to_owned(), |requests| format!("{requests:.0}"));
        let text = format!("{}; that is once in {every} requests, one of which may hold up all others", seen.told(gap));
        return Err(Standing::Undecided(line(text)));
    }
    let alone = not_a_limit(gap, &seen)?;
    let told_with = |why: &str| line(format!("{}; {why}", seen.told(gap)));
    if !gap.has_host(gap.slow) {
        let why = format!(
            "{slow} pauses, or something stops it: a quota or others on its CPU do so as well, and its machine is not read"
        );
        return Err(Standing::Suspected(told_with(&why)));
    }
    let open_for = |why: &str| Standing::Undecided(told_with(why));
    // What machines did while the server never stood still acquits nobody.
    if let Look::Shown(read) = gap.look(gap.hosts())
        && read.slow.stalls.is_none_or(|stalls| stalls.share < 0.5 * seen.slow.share)
    {
        let open = || open_for("but while its machine was read it hardly did");
        return Err(gap.longer_hosts().map_or_else(open, |probe| Standing::Wants(vec![probe])));
    }
    let mut further = only_this(gap, &open_for)?;
    let confidence = nothing_else_stops_it(gap, &seen, &open_for)?;
    let or_else = match confidence {
        Confidence::Likely => "",
        _ => " (or what it asks does, or the way to it)",
    };
    further.push(no_disk(gap, &seen, &open_for)?);
    let told = Told {
        summary: format!(
            "Now and then all of {slow} stands still{or_else}, for {} on average, every {}: no connection gets an answer meanwhile. That is \
             worth about {} of the gap.",
            format_duration_ns(seen.mean_ns()),
            format_duration_ns(seen.every_ns()),
            percent(share)
        ),
        remedy: format!(
            "Look at what the program itself says of its pauses: the log of its garbage collector (Java: `-Xlog:gc*,safepoint`; Go: \
             `GODEBUG=gctrace=1`; .NET: `dotnet-counters`). Give it more memory, or another collector. Where it has none, \
             `grep State /proc/{}/status`, asked often, tells whether somebody stops it (`T`).",
            pid(gap, gap.slow)
        ),
        facts: vec![line(seen.told(gap))],
        further: alone.into_iter().chain(further).collect(),
    };
    Ok(fit_by_host(gap, &ENTRY, Some(share), confidence, told))
}

/// The stalls of both sides in the comparison.
struct Seen {
    slow: TargetStalls,
    fast: TargetStalls,
    /// What those of the slow side are worth beyond those of the fast side, as a log.
    beyond_log: Estimate,
    /// Log of how many times slower the slow side is over all of the time.
    whole_log: f64,
}

impl Seen {
    /// `Err` where they were not looked for.
    fn of(gap: &Gap<'_>) -> Result<Self, Standing> {
        let view = &gap.comparison;
        let open = |text: String| Standing::Undecided(gap.evidence(view, text));
        if gap.case.is_open_loop() {
            return Err(open(
                "at an offered rate the time of stalls is no part of the time that requests take".to_owned(),
            ));
        }
        let connections = gap.case.plan.load.connections;
        if connections < FEWEST_CONNECTIONS {
            let lane = gap.case.plan.schema().lane.one;
            return Err(open(format!("{connections} {lane}s are too few to tell stalls of all from slow requests")));
        }
        let counted = view.slow.stalls.zip(view.fast.stalls);
        let rates = view.slow.rate_per_s.zip(view.fast.rate_per_s);
        let (Some((slow, fast)), Some((slow_per_s, fast_per_s))) = (counted, rates) else {
            return Err(open("stalls of all connections at once were not looked for".to_owned()));
        };
        let beyond_log = worth_log(slow).minus(worth_log(fast));
        Ok(Self { slow, fast, beyond_log, whole_log: (fast_per_s / slow_per_s).ln() })
    }

    /// The share of the gap that is gone where the time of stalls is taken away. A gap by the typical pair may have none of them in it:
    /// what counts is what is left of it.
    fn share(&self, view: &View<'_>) -> f64 {
        let left = self.whole_log - self.beyond_log.mid;
        let share = 1.0 - left / view.log.mid;
        // Of a gap by all of the time it is the same.
        share.min(self.beyond_log.mid / view.log.mid)
    }

    /// The most that they can be worth, those included that were missed by chance.
    fn most_log(&self) -> f64 {
        let longest_ns = if self.slow.count == 0 { LONGEST_UNSEEN_NS } else { self.slow.longest_ns as f64 };
        let missed = RULE_OF_THREE * longest_ns / self.slow.watched_ns.max(1) as f64;
        let share = (self.slow.share + missed).max(self.slow.share + self.slow.share_half);
        worth_log_of(share).max(self.beyond_log.high())
    }

    /// The most that stalls can be worth which are too short to be looked for. They do not touch the quickest quarter of the requests: by what
    /// these take longer, stalls are not the reason. The rest of the gap, by all of the time, may be theirs. `None`: how the times are spread is not known.
    fn most_log_of_shorter(&self, view: &View<'_>) -> Option<f64> {
        let quick = |seen: &TargetObservation| seen.service_profile.quantile_ns(0.25).filter(|&ns| ns > 0);
        let (slow_ns, fast_ns) = (quick(view.slow)? as f64, quick(view.fast)? as f64);
        Some((self.whole_log - (slow_ns / fast_ns).ln()).max(0.0))
    }

    fn mean_ns(&self) -> f64 {
        self.slow.share * self.slow.watched_ns as f64 / self.slow.count.max(1) as f64
    }

    /// Mean time under load from one to the next.
    fn every_ns(&self) -> f64 {
        self.slow.watched_ns as f64 / self.slow.count.max(1) as f64
    }

    /// Requests of the slow side from one to the next.
    fn requests_between(&self, view: &View<'_>) -> Option<f64> {
        Some(view.slow.rate_per_s? * self.every_ns() / 1e9)
    }

    fn told(&self, gap: &Gap<'_>) -> String {
        let over = gap.comparison.over(gap.case.plan);
        let watched = format_duration_ns(self.slow.watched_ns as f64);
        let (slow, fast) = (gap.slow_name(), gap.fast_name());
        if self.slow.count == 0 {
            return format!("{over}: {slow} never stood still for all of them at once in {watched} of load");
        }
        format!(
            "{over}: {slow} stood still for all of them at once {} times in {watched} of load, for {} on average and {} at the \
             longest: {} of the time (95 % interval {} to {}), {fast} for {}",
            self.slow.count,
            format_duration_ns(self.mean_ns()),
            format_duration_ns(self.slow.longest_ns as f64),
            tenths(self.slow.share),
            tenths(self.slow.share - self.slow.share_half),
            tenths(self.slow.share + self.slow.share_half),
            tenths(self.fast.share)
        )
    }
}

/// `7.6 %`.
fn tenths(share: f64) -> String {
    format!("{:.1} %", 100.0 * share.clamp(0.0, 1.0))
}

/// Whether slow requests take more of the slow side's time over one connection than they would for a limit on requests in each stretch
/// of time, which has room for as many as came under load.
fn not_a_limit(gap: &Gap<'_>, seen: &Seen) -> Result<Option<Evidence>, Standing> {
    let alone = match gap.look(ALONE) {
        Look::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
        Look::Missing(why) => return Err(Standing::Undecided(gap.not_measured(why))),
        Look::Shown(view) => view,
    };
    let over_one = gap.case.outcomes.iter().filter(|outcome| outcome.probe.variation.connections == Some(1));
    let over_one = over_one.filter(|outcome| outcome.unavailable.is_none() && outcome.probe.variation.twin.is_none());
    let over_one: Vec<OverOne> = over_one
        .filter_map(|outcome| OverOne::of(outcome.targets.get(gap.slow)?, outcome.targets.get(gap.fast)?))
        .collect();
    let [slow, fast] = [0, 1].map(|side| together(over_one.iter().map(|probe| probe.stalls[side])));
    let counted = gap.comparison.slow.rate_per_s.zip(slow.zip(fast));
    let Some((loaded_per_s, (slow, fast))) = counted else {
        let text = format!("{}; over one connection slow requests were not counted", seen.told(gap));
        return Err(Standing::Undecided(gap.evidence(&alone, text)));
    };
    let text = format!(
        "{}: {} of {}'s time goes by in {} requests that take far longer than they usually do, {} of {}'s",
        ALONE.phrase(),
        tenths(slow.share),
        gap.slow_name(),
        slow.count,
        tenths(fast.share),
        gap.fast_name()
    );
    // A program that pauses does so whoever asks.
    let stands_still = |share: f64| share >= 0.5 * seen.slow.share;
    // Of larger responses a limit on bytes would let through fewer.
    let most_bytes = AS_LARGE * gap.comparison.slow.bytes_in_per_op.unwrap_or(f64::INFINITY);
    let is_as_small = |probe: &&OverOne| stands_still(probe.least_share()) && probe.bytes <= most_bytes;
    if over_one.iter().filter(is_as_small).any(|probe| probe.loses_more_than_by_a_limit(loaded_per_s)) {
        return Ok(Some(gap.evidence(&alone, text)));
    }
    // Where pauses come seldom, each probe sees one or two: all of them together, against the quickest of them.
    let quickest_per_s = over_one.iter().map(|probe| probe.fast_per_s).fold(0.0, f64::max);
    let limit_log = (quickest_per_s / loaded_per_s).ln().max(0.0);
    if stands_still(slow.share) && worth_log(slow).minus(worth_log(fast)).low() > limit_log {
        return Ok(Some(gap.evidence(&alone, text)));
    }
    // Requests for one byte are as many as one connection can make, and no limit on bytes holds them up. Where the gap does not show over
    // one connection, this probe runs over all of them, and tells nothing here.
    if gap.mode == Mode::Alone {
        let byte = match gap.look(RANGE_1) {
            Look::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
            Look::Missing(_) => None,
            Look::Shown(view) => Some(view),
        };
        let probe = byte.as_ref().and_then(|view| OverOne::of(view.slow, view.fast));
        let tells = |probe: &OverOne| {
            probe.slow_per_s > BEYOND_A_LIMIT * loaded_per_s
                && stands_still(probe.least_share())
                && probe.least_lost_log() > 0.0
        };
        if let (Some(view), Some(probe)) = (byte, probe.filter(tells)) {
            let text = format!(
                "{}: {} answers {:.0} requests a second, and over all connections {loaded_per_s:.0} whole ones: no limit on requests holds it \
                 up; {} of its time goes by in requests that take far longer than they usually do",
                RANGE_1.phrase(),
                gap.slow_name(),
                probe.slow_per_s,
                tenths(probe.stalls[0].share)
            );
            return Ok(Some(gap.evidence(&view, text)));
        }
    }
    let text = format!(
        "{}; but {text}: that may be no more than for a limit that lets through so many requests in each stretch of time",
        seen.told(gap)
    );
    Err(Standing::Undecided(gap.evidence(&alone, text)))
}

/// What a probe over one connection showed of the slow and of the fast side.
struct OverOne {
    stalls: [TargetStalls; 2],
    slow_per_s: f64,
    fast_per_s: f64,
    /// Bytes of a response of the slow side, with its head.
    bytes: f64,
}

impl OverOne {
    fn of(slow: &TargetObservation, fast: &TargetObservation) -> Option<Self> {
        let (slow_per_s, fast_per_s) = slow.rate_per_s.zip(fast.rate_per_s)?;
        Some(Self { stalls: [slow.stalls?, fast.stalls?], slow_per_s, fast_per_s, bytes: slow.bytes_in_per_op? })
    }

    /// A limit that lets through as many requests as were served under load would have let through as many here, or as many as the fast side
    /// serves. The stalls take more time than such a limit could.
    fn loses_more_than_by_a_limit(&self, loaded_per_s: f64) -> bool {
        self.least_lost_log() > (self.fast_per_s / loaded_per_s).ln().max(0.0)
    }

    /// What the slow side's stalls take beyond the fast side's, as a log, at least. There are several such probes.
    fn least_lost_log(&self) -> f64 {
        let lost = worth_log(self.stalls[0]).minus(worth_log(self.stalls[1]));
        lost.mid - Flip::MANY_LOOKS * lost.below
    }

    /// The share of the slow side's time, at least.
    fn least_share(&self) -> f64 {
        self.stalls[0].share - self.stalls[0].share_half
    }
}

/// Those of several probes together; `None` where there are none.
fn together(of_probes: impl Iterator<Item = TargetStalls>) -> Option<TargetStalls> {
    of_probes.reduce(|a, b| {
        let [of_a, of_b] = [a, b].map(|stalls| stalls.watched_ns as f64);
        let whole = (of_a + of_b).max(1.0);
        TargetStalls {
            count: a.count + b.count,
            longest_ns: a.longest_ns.max(b.longest_ns),
            watched_ns: a.watched_ns.saturating_add(b.watched_ns),
            share: (of_a * a.share + of_b * b.share) / whole,
            share_half: (of_a * a.share_half).hypot(of_b * b.share_half) / whole,
        }
    })
}

/// How sure it is that nothing beside the causes that look alike stops the slow side's server, by what its machine counts.
fn nothing_else_stops_it(
    gap: &Gap<'_>,
    seen: &Seen,
    open_for: &dyn Fn(&str) -> Standing,
) -> Result<Confidence, Standing> {
    let machines = Machines::read(gap)?;
    let on_slow = &machines.slow;
    // Stalls of a quota are seen all the same where it is a small part of the gap, or stops the fast side for longer.
    let by_quota = HeldBack::of(on_slow).map_or(0.0, |held_back| held_back.worth_log());
    if by_quota >= Flip::NOTEWORTHY * seen.beyond_log.mid {
        return Err(open_for("but a quota stops it, too"));
    }
    // A hypervisor that stops the whole machine withholds no more than the CPUs that it wanted then.
    if on_slow.cpus_all_the_time("cpu.steal_ns").is_some_and(|stolen| stolen >= Flip::NOTEWORTHY * seen.slow.share) {
        return Err(open_for("but a hypervisor stops its machine, too"));
    }
    let DemandLook::Shown(demands) = gap.demands() else { return Err(open_for("but its machine is not read")) };
    // Packets that are lost may stop all connections. Each time one at least is sent again for that; a server that stands still has a few
    // of its own.
    let stalls_per_s = 1e9 / seen.every_ns();
    let again = Counted::of(&demands, "tcp.retransmitted_segments");
    let again_per_s = again.filter(|again| again.is_marked()).zip(gap.comparison.slow.rate_per_s);
    if again_per_s.is_some_and(|(again, per_s)| again.per_op * per_s >= stalls_per_s) {
        return Err(open_for(
            "but its machine sends more segments again: packets are lost, which may stop all connections",
        ));
    }
    // Whom it asks in turn may be what stops, or the way to it: neither is read.
    let at_sockets = sleepers::for_sockets(on_slow.demand());
    let connections = f64::from(gap.case.plan.lanes());
    let asks_nobody = Fronts::of(gap, &demands).is_ok_and(|fronts| fronts.slow.answers_alone)
        && at_sockets.is_none_or(|threads| threads < 0.5 * seen.slow.share * connections);
    let is_near = demands.slow.generator_cpu_ns > 0;
    Ok(if asks_nobody && is_near && again.is_some() { Confidence::Likely } else { Confidence::Possible })
}

/// What ruled out each of the causes that look alike; else what is asked for that, or the one that is not ruled out.
fn only_this(gap: &Gap<'_>, open_for: &dyn Fn(&str) -> Standing) -> Result<Vec<Evidence>, Standing> {
    let mut wanted: Vec<Probe> = Vec::new();
    let mut open = None;
    let mut ruled_out = Vec::new();
    for like in likes::held_against(gap, &ENTRY) {
        match like {
            Ok(by) => ruled_out.extend(by),
            Err(Against::Asks(probes)) => wanted.extend(probes),
            // One that is at work ends the search: no probe takes it away.
            Err(Against::Stands(id)) => _ = open.get_or_insert(id),
        }
    }
    match open {
        Some(id) => Err(open_for(&format!("but {id} would look so, too, and is not ruled out"))),
        None if !wanted.is_empty() => Err(Standing::Wants(wanted)),
        None => Ok(ruled_out),
    }
}

/// That no disk was busy for so long as a noteworthy part of the stalls: all may have waited for what was flushed to it, or read.
fn no_disk(gap: &Gap<'_>, seen: &Seen, open_for: &dyn Fn(&str) -> Standing) -> Result<Evidence, Standing> {
    let machines = Machines::read(gap)?;
    let side = &machines.slow;
    // Whoever keeps it busy. One of which that is not known may be the one.
    let busy: Option<Vec<f64>> = side.disks().map(|disk| side.cpus_all_the_time(&format!("{disk}.busy_ns"))).collect();
    let busy = busy.and_then(|shares| shares.into_iter().reduce(f64::max));
    match busy {
        Some(busy) if busy < Flip::NOTEWORTHY * seen.slow.share => {
            let text =
                format!("no disk of {}'s machine was busy for more than {} of the time", gap.slow_name(), tenths(busy));
            Ok(gap.on_host(text, Some("iostat -x 1 5".to_owned())))
        }
        Some(busy) => Err(open_for(&format!(
            "but a disk was busy for {} of the time, and all may have waited for it",
            tenths(busy)
        ))),
        None => Err(open_for("but for how long its disks were busy is not known")),
    }
}
