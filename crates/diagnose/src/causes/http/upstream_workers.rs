//! `http.upstream-workers`: what the slow side's server asks in turn has too few workers, so that its requests wait there.
//!
//! Over one connection both are as fast; over many throughput levels off. The front itself waits for all of its connections at a time, has
//! CPUs to spare, and its threads tell nothing. What tells is the queue of the socket behind it, on the same machine:
//!
//! * connections wait there until somebody accepts them, under load, beyond what does without, and more than beside the fast side;
//! * all others are served: by Little's law, the rate times what a request takes alone, about as many as do not wait there.
//!
//! What looks alike, and what splits it from that:
//!
//! * a lock, or a pool of a database's connections, within what is asked: its workers accept more requests than they serve, by Little's
//!   law. With one worker it makes no difference;
//! * a front, or a server without one, that has too few workers itself (`http.few-workers`): then requests wait in its own queue,
//!   or in it, and not behind it;
//! * what is asked accepts all, and lets them wait within for one of its threads (Tomcat, HAProxy with `maxconn`): its queue is empty, and this is open;
//! * CPUs that are full, or a disk that is: more workers would wait for these. It is worth no more than is free of them;
//! * throughput that falls (`lock.contention`): requests hinder each other.
//!
//! Nothing rules it out: on another machine, or in another network of this one, nobody sees the queue. Nothing outside takes it away but fewer
//! connections, so it is likely at most.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host, needs_http, shown_look};
use crate::causes::likes;
use crate::evidence::by_hand::LISTEN_QUEUES;
use crate::evidence::listen_queues::ListenQueues;
use crate::evidence::machines::{FULL, Machines, allowed_cpus, busy_share_of_cpus, is_same_fact, needs_concurrency};
use crate::evidence::scaling::served_at_a_time;
use crate::evidence::worth::reference;
use crate::gap::{Flip, Gap, percent};
use crate::probes::{ALONE, Mode};
use duel_model::{Confidence, capitalized, format_figure, sanitize_line};

static ENTRY: CauseEntry = CauseEntry {
    id: "http.upstream-workers",
    description: "what a front asks has too few workers: requests wait there until one accepts them",
    signature: "throughput levels off, over one connection both are as fast; hosts: connections wait to be accepted at what listens behind \
                the server, more than beside the fast side, and as many as do not are served by Little's law; CPUs and disks are not full",
    at_most: "likely; possible where nobody sees how busy the disks are",
    needs_machine: true,
};

/// How closely the requests that do not wait have to be those that are served: both figures are of different times, and a
/// look sees a queue between two requests.
const CLOSE: f64 = 0.25;
const CLOSE_REQUESTS: f64 = 0.5;

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    needs_http(gap)?;
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let reference = reference(gap)?;
    needs_concurrency(gap)?;
    if gap.mode == Mode::Alone {
        let text = format!("{}: a part of the gap does not show over one connection", gap.tell(reference));
        return Err(Standing::Undecided(gap.evidence(reference, text)));
    }
    let alone = shown_look(gap, ALONE)?;
    let machines = Machines::read(gap)?;
    let (on_slow, _) = machines.both(gap)?;
    let open = |text: String| Standing::Undecided(gap.on_host(text, Some(LISTEN_QUEUES.to_owned())));
    let queues = ListenQueues::of_machines(gap, &machines)
        .ok_or_else(|| open("how many connections wait to be accepted beside the servers is not known".to_owned()))?;
    let seen = queues.tell(gap);
    let Some(socket) = queues.where_more_wait() else {
        // A queue on another machine, or in another network of this one, is not seen.
        return Err(open(seen));
    };
    let view = &machines.view;
    let Some([by_slow, by_fast]) = served_at_a_time(view, &alone) else {
        return Err(open(format!("{seen}; how many requests are served at a time is not known")));
    };
    let connections = f64::from(view.connections().unwrap_or(gap.case.plan.lanes()));
    let facts = format!(
        "of {connections:.0} requests at a time {} are served for {slow} and {} for {fast}; {seen}",
        format_figure(by_slow),
        format_figure(by_fast)
    );
    let facts = match queues.slow.in_most_looks {
        Some(waiting) => format!("{facts}; in most looks {} wait beside {slow}", format_figure(waiting)),
        None => facts,
    };
    let accepted = connections - queues.slow.in_most_looks.unwrap_or(queues.slow.waiting);
    if (accepted - by_slow).abs() > CLOSE * by_slow + CLOSE_REQUESTS {
        let accepted = format_figure(accepted.max(0.0));
        return Err(open(format!(
            "{facts}: {accepted} do not wait there, and not as many are served: the others wait for something else, such as a lock or a database"
        )));
    }
    let busy = busy_share_of_cpus(gap, gap.slow, on_slow)
        .ok_or_else(|| open(format!("{facts}; how busy the CPUs are is not known")))?;
    let disk = on_slow.busiest_disk();
    let facts = match disk {
        Some(disk) => format!("{facts}; {slow}'s CPUs are {} busy, its busiest disk {}", percent(busy), percent(disk)),
        None => format!("{facts}; {slow}'s CPUs are {} busy", percent(busy)),
    };
    // More workers get no more done than CPUs and disks are free for. Of CPUs that both have the fast side shows what they are free for.
    let busy = if has_same_cpus(gap) { 0.0 } else { busy };
    let fullest = disk.map_or(busy, |disk| disk.max(busy));
    let share = (by_fast / by_slow).min(1.0 / fullest.max(f64::MIN_POSITIVE)).ln() / view.log.mid;
    if fullest >= FULL || share < Flip::NOTEWORTHY {
        return Err(open(format!("{facts}: that more workers would get more done is not seen")));
    }
    for like in likes::held_against(gap, &ENTRY) {
        like.map_err(|against| against.settles(|other| open(format!("{facts}; {other} would look the same"))))?;
    }
    let socket = sanitize_line(socket);
    let told = Told {
        summary: format!(
            "What listens at {socket}, behind {slow}'s server, has too few workers: {facts}. {}: {}.",
            capitalized(ALONE.phrase()),
            gap.tell(&alone)
        ),
        remedy: format!(
            "Give what listens at {socket} more workers, as far as its machine's memory and CPUs carry them: PHP-FPM `pm.max_children`, gunicorn \
             `--workers` and `--threads`, uWSGI `processes`, Puma `workers`, Apache `MaxRequestWorkers`. `{LISTEN_QUEUES}` on {slow}'s machine tells who \
             listens there, and under `Recv-Q` how many wait."
        ),
        facts: vec![gap.on_host(facts, Some(LISTEN_QUEUES.to_owned()))],
        further: Vec::new(),
    };
    let confidence = if disk.is_some() { Confidence::Likely } else { Confidence::Possible };
    Ok(fit_by_host(gap, &ENTRY, Some(share), confidence, told))
}

/// Whether both servers may use the same CPUs of one machine.
fn has_same_cpus(gap: &Gap<'_>) -> bool {
    let cpus = allowed_cpus(gap, gap.slow);
    is_same_fact(gap, "os.boot_id") && cpus.is_some() && cpus == allowed_cpus(gap, gap.fast)
}
