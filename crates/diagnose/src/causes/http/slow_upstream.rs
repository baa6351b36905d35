//! `http.slow-upstream`: the fronts are equal, and what the slow side's asks takes longer to answer.
//!
//! Seen on the machines, over kept connections, where the gap shows over one connection and sits in the wait for the answer:
//!
//! * one and the same program listens on both, and both hand requests on: answers arrive in their networks once more. (One
//!   that has a proxy where the other has none is `net.extra-hop`.)
//! * the slow front computes no longer, nor does it wait for a CPU: both together are not worth a quarter of the gap. Its CPUs
//!   are idle, and no disk is busy, so that nobody else's work is what keeps both waiting;
//! * the slow front goes to sleep twice for a request: until it comes, and until its answer does. A front that waits for
//!   anything else (a timer of its own, a limit on rate, its log's disk, a name) goes to sleep for that as well. Over several
//!   connections one wake-up may be for several requests, and three waits may pass for two: possible at most.
//!
//! Where the server behind computes on the front's CPUs, that looks like somebody else's work there: left open. So is a front
//! on either side of which connections are made, or that connects anew to what is behind it.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host, needs_http};
use crate::causes::likes;
use crate::evidence::by_hand;
use crate::evidence::counted::share_of_phases;
use crate::evidence::fronts::{Fronts, waits_longer};
use crate::evidence::handshakes::MOSTLY_REUSED;
use crate::evidence::machines::{Machines, Side, allowed_cpus};
use crate::evidence::worth::{demands, needs_gap_alone, reference, share_of_log};
use crate::gap::{Flip, Gap, phase_differences};
use duel_model::web::phase;
use duel_model::{Confidence, format_duration_ns, format_figure, sanitize_line};

static ENTRY: CauseEntry = CauseEntry {
    id: "http.slow-upstream",
    description: "the server behind a front takes longer to answer it",
    signature: "hosts: the same front on both, which hands requests on and sleeps longer for each, no oftener; the gap is in the \
                wait for the answer; CPUs and disks are idle",
    at_most: "likely; possible over several connections, where one wake-up may be for several requests",
    needs_machine: true,
};

/// A front sleeps until a request comes, and until its answer does: twice. Half of a wait more is what housekeeping adds at most; and
/// half of one less means that it was woken for several at once, so that nothing tells how often it waits for one.
const SLEEPS: std::ops::RangeInclusive<f64> = 1.5..=2.5;

/// CPUs that are less busy than this, all together, hold nobody up for long.
const MOSTLY_IDLE: f64 = 0.5;

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    needs_http(gap)?;
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let reference = reference(gap)?;
    let waits = waits_longer(gap, reference)?;
    needs_gap_alone(gap, None).map_err(|standing| match standing {
        // Behind a front there may be too few workers.
        Standing::RuledOut(line) => Standing::Undecided(line),
        other => other,
    })?;
    let machines = Machines::read(gap)?;
    let (on_slow, on_fast) = machines.both(gap)?;
    let fronts = Fronts::of(gap, &demands(gap)?)?;
    let open = |text: String| Standing::Undecided(gap.on_host(text, None));
    let program = match (gap.server_program(gap.slow), gap.server_program(gap.fast)) {
        (Some(program), Some(other)) if program == other => sanitize_line(program),
        _ => return Err(open(format!("{slow} and {fast} are not seen to have the same front"))),
    };
    if !(fronts.slow.hands_on && fronts.fast.hands_on) {
        return Err(open(format!("not both {slow} and {fast} are seen to hand requests on")));
    }
    if waits != Some(true) {
        return Err(open("the gap is not in waiting for answers alone".to_owned()));
    }
    let kept = |index| gap.reused_share(index).is_some_and(|share| share >= MOSTLY_REUSED);
    if !(kept(gap.slow) && kept(gap.fast)) {
        return Err(open(format!(
            "the front sleeps for new connections as well, and not all to {slow} and {fast} are kept"
        )));
    }
    let front = Front::of(gap, gap.slow, on_slow)
        .ok_or_else(|| open(format!("how often {slow}'s front sleeps is not known")))?;
    let others = Front::of(gap, gap.fast, on_fast)
        .ok_or_else(|| open(format!("how often {fast}'s front sleeps is not known")))?;
    let facts = format!(
        "{program} listens on both and hands requests on; for each request {slow}'s takes {} of CPU, waits {} for one and goes to \
         sleep {} times, {fast}'s {}, {} and {} times; the CPUs that {slow}'s may use are {:.0} % busy",
        format_duration_ns(front.cpu_ns),
        format_duration_ns(front.queued_ns),
        format_figure(front.sleeps),
        format_duration_ns(others.cpu_ns),
        format_duration_ns(others.queued_ns),
        format_figure(others.sleeps),
        100.0 * front.busy
    );
    let awake_ns = (front.cpu_ns + front.queued_ns - others.cpu_ns).max(0.0);
    let is_awake = share_of_log(reference, awake_ns).is_none_or(|share| share >= Flip::NOTEWORTHY);
    let disk = on_slow
        .busiest_disk()
        .ok_or_else(|| open(format!("{facts}; how busy the disks of {slow}'s machine are is not known")))?;
    if is_awake || front.busy > MOSTLY_IDLE || disk >= Flip::NOTEWORTHY {
        return Err(open(format!("{facts}: that it only waits for the server behind it is not shown")));
    }
    if !SLEEPS.contains(&front.sleeps) {
        let text = format!("{facts}: that it sleeps for a request and its answer, and for nothing else, is not shown");
        return Err(open(text));
    }
    for like in likes::held_against(gap, &ENTRY) {
        like.map_err(|against| against.settles(|other| open(format!("{facts}; {other} would look the same"))))?;
    }
    let waiting_ns: f64 =
        phase_differences(reference).iter().filter(|(phase, _)| *phase == phase::WAIT).map(|(_, ns)| ns).sum();
    let share = share_of_phases(reference, waiting_ns - awake_ns).filter(|share| *share >= Flip::NOTEWORTHY);
    let Some(share) = share else { return Err(open(format!("{facts}; what that is worth is not known"))) };
    let told = Told {
        summary: format!(
            "What {slow}'s front asks takes longer to answer: {facts}. A request waits {} longer for its answer than one to \
             {fast}, and the front sleeps meanwhile.",
            format_duration_ns(waiting_ns)
        ),
        remedy: format!(
            "Ask the server behind {slow}'s {program} directly, and the one behind {fast}'s (`ss -tnp` names them; `duel \
             http://127.0.0.1:PORT/ ...` on their machines), and let duel explain that gap. A log with nginx's \
             `$upstream_response_time` (HAProxy's `Tr`) tells it for each request."
        ),
        facts: vec![gap.on_host(facts, Some(by_hand::switches(gap, gap.slow)))],
        further: Vec::new(),
    };
    // Where one wake-up may be for several requests, three waits may pass for two.
    let one_at_a_time = machines.view.connections() == Some(1);
    let confidence = if one_at_a_time { Confidence::Likely } else { Confidence::Possible };
    Ok(fit_by_host(gap, &ENTRY, Some(share), confidence, told))
}

/// What a front does for each request.
struct Front {
    cpu_ns: f64,
    /// What its threads waited for a CPU.
    queued_ns: f64,
    sleeps: f64,
    /// Share of the time in which the CPUs that it may use are busy.
    busy: f64,
}

impl Front {
    fn of(gap: &Gap<'_>, index: usize, side: &Side<'_>) -> Option<Self> {
        let cpus = allowed_cpus(gap, index)?;
        let of_cpu = |cpu: &u32| side.cpus_all_the_time(&format!("cpu.{cpu}.busy_ns"));
        let busy: Vec<f64> = cpus.iter().map(of_cpu).collect::<Option<_>>()?;
        Some(Self {
            cpu_ns: side.per_op("process.cpu_ns")?,
            queued_ns: side.per_op("workers.wait_ns")?,
            sleeps: side.per_op("workers.voluntary_switches")?,
            busy: busy.iter().sum::<f64>() / busy.len().max(1) as f64,
        })
    }
}
