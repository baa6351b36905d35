//! `http.bad-backend`: of several servers behind the slow side's name or balancer one is slow, so that some connections take longer than
//! the others.
//!
//! Seen from outside: connections fall into two classes, and stay in them (`TargetObservation::connection_classes`). What the slow ones cost
//! follows from how many they are and how long they take. Under load connections differ for other reasons as well, so they are asked
//! once more with one request at a time.
//!
//! What looks alike, and what splits it from that:
//!
//! * some slow requests, whatever connection they go over, as behind a balancer that hands out requests: half of a connection's
//!   requests then says nothing of the other half;
//! * workers of one server of which some have more connections than others, or one that is busy: with one request at a time nobody
//!   waits for another connection's;
//! * a balancer that hands out requests in turn, and connections that have theirs in turn: each round of connections has an order of
//!   its own;
//! * a longer way for some connections: it makes connecting longer by as much as a request;
//! * a way that is as long for some connections and thinner, which only responses of a kilobyte and more would show: possible at most;
//! * a connection that sends slowly since it has lost packets.
//!
//! Under load it is worth what it takes away from the rate, if nothing else holds the others up: where they wait for a CPU that all share, they
//! would only wait longer. So at least half of the log of the gap has to show with one request at a time, as for any gap that is probed
//! over one connection, and of that gap the slow connections are worth what the others do not take longer.
//!
//! Nothing rules it out: where all connections of ours lead to the same slow server, they are alike.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host, needs_http};
use crate::causes::likes;
use crate::gap::{Flip, Gap, Look, View, percent};
use crate::probes::{IN_TURN, SMALLEST_SWEEP_BYTES};
use duel_model::{Confidence, ConnectionClasses, format_duration_ns};
use duel_stats::Estimate;

static ENTRY: CauseEntry = CauseEntry {
    id: "http.bad-backend",
    description: "of several servers, or workers, behind one name or balancer one is slow: some connections take longer than the others",
    signature: "connections fall into two classes and stay in them, with one request at a time as well, when none waits for another; \
                connecting takes no longer for the slow ones; they are worth the gap, and the fast side has none such",
    at_most: "likely; possible where responses are so large that it may be the way to it",
    needs_machine: false,
};

/// Of what the requests of slow connections take longer, how much connecting to them may take longer: a longer way adds as much to either,
/// a slow server nothing to the kernel's answer. In the middle between both.
const OF_THE_WAY: f64 = 0.5;
/// How much of the log of the gap has to show with one request at a time: as much as over one connection, where that is to be the reference.
const SHOWS: f64 = 0.5;

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let http = needs_http(gap)?;
    gap.needs_gap_of_means()?;
    let (view, slow) = (&gap.comparison, gap.slow_name());
    let open = |view: &View<'_>, text: String| Standing::Undecided(gap.evidence(view, text));
    if gap.case.is_open_loop() {
        return Err(open(view, "at an offered rate slow connections are not worth what they take longer".to_owned()));
    }
    if !http.keepalive || http.streams() > 1 {
        let each = if http.keepalive {
            "several requests share a connection at a time"
        } else {
            "each request has a connection of its own"
        };
        return Err(open(view, format!("{each}, so that connections were not told apart")));
    }
    let both = view.slow.connection_classes.zip(view.fast.connection_classes);
    let Some((under_load, of_fast)) = both else {
        return Err(open(view, "connections were too few, or carried too few requests, to be told apart".to_owned()));
    };
    let over = view.over(gap.case.plan);
    if under_load.slow == 0 {
        let text = format!(
            "{over}: {} connections to {slow} were alike; one server that all of them lead to would look so, too",
            under_load.of
        );
        return Err(open(view, text));
    }
    let told = format!("{over}: {}", tell(&under_load, &slow));
    let worth_log = worth(&under_load).minus(worth(&of_fast));
    let beyond_chance = worth_log.mid > Flip::MANY_LOOKS * worth_log.below;
    let share = worth_log.mid / view.log.mid;
    if share < Flip::NOTEWORTHY || !beyond_chance || worth_log.mid < gap.case.margin_log() {
        return Err(open(view, format!("{told}: that leaves open whether it matters")));
    }
    let in_turn = match gap.look(IN_TURN) {
        Look::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
        Look::Missing(why) => return Err(Standing::Undecided(gap.not_measured(why))),
        Look::Shown(view) => view,
    };
    let Some(classes) = in_turn.slow.connection_classes else {
        let text = format!(
            "{told}; {} they carried too few requests in a slot to be told apart (`--one-at-a-time` with a longer `--slot` makes such \
             load)",
            IN_TURN.phrase()
        );
        return Err(open(&in_turn, text));
    };
    if classes.slow == 0 {
        let text =
            format!("{told}; but {} they were not seen to differ: under load some waited for others", IN_TURN.phrase());
        return Err(open(&in_turn, text));
    }
    // Under load alike connections may keep their places in a queue, and chance says nothing.
    let told_alone = format!(
        "{}: {} (if they were alike, they would part so with a chance of {:.0e})",
        IN_TURN.phrase(),
        tell(&classes, &slow),
        classes.chance.max(1e-9)
    );
    let longer_ns = classes.slow_ns - classes.others_ns;
    let connecting = match classes.connects_longer_ns {
        None => return Err(open(&in_turn, format!("{told_alone}; how long they took to connect is not known"))),
        Some(ns) if ns >= OF_THE_WAY * longer_ns => {
            let text = format!(
                "{told_alone}; but connecting took {} longer for them as well: it may be the way to where they lead",
                format_duration_ns(ns)
            );
            return Err(open(&in_turn, text));
        }
        Some(ns) => format!(
            "connecting took the slow ones {} longer, and a request {}: it is not the way to where they lead",
            format_duration_ns(ns.max(0.0)),
            format_duration_ns(longer_ns)
        ),
    };
    if in_turn.log.low() <= 0.0 || in_turn.log.mid < SHOWS * view.log.mid {
        let text = format!(
            "{told_alone}; but {} {}: under load something else may matter",
            IN_TURN.phrase(),
            gap.tell(&in_turn)
        );
        return Err(open(&in_turn, text));
    }
    let share = share.min(classes.mean_log() / in_turn.log.mid);
    if share < Flip::NOTEWORTHY {
        return Err(open(
            &in_turn,
            format!("{told_alone}; but that is {} of the gap, and the others are slower as well", percent(share)),
        ));
    }
    for like in likes::held_against(gap, &ENTRY) {
        if let Err(against) = like {
            return Err(against.settles(|id| open(&in_turn, format!("{told_alone}; but {id} would look so, too"))));
        }
    }
    // A way may be as long as the others, and thinner: one of several links that flows are spread over.
    let may_be_way = gap.case.smallest_body_bytes().is_none_or(|bytes| bytes >= SMALLEST_SWEEP_BYTES);
    let told = Told {
        summary: format!(
            "Some connections to {slow} lead to something slower than the others do: {} of {} take {} for a request, where the others take \
             {}. A server behind the name or the balancer, or one of its workers{}, is slow. That is worth about {} of the gap.",
            classes.slow,
            classes.of,
            format_duration_ns(classes.slow_ns),
            format_duration_ns(classes.others_ns),
            if may_be_way { ", or a way to it that takes long for many bytes" } else { "" },
            percent(share)
        ),
        remedy: format!(
            "Ask each of the servers behind {slow} by itself: their addresses stand in the balancer's configuration and its statistics \
             (HAProxy `show servers state`, nginx `upstream`), or in the name's records (`dig`, then `duel one=http://ADDRESS/... \
             other=http://ADDRESS/...`). Where one program has several workers on a port of their own (`reuseport`), look which one is \
             slow (`top -H`)."
        ),
        facts: vec![gap.evidence(view, told), gap.evidence(&in_turn, told_alone)],
        further: vec![gap.evidence(&in_turn, connecting)],
    };
    let confidence = if may_be_way { Confidence::Possible } else { Confidence::Likely };
    Ok(fit_by_host(gap, &ENTRY, Some(share), confidence, told))
}

/// What slow connections are worth.
fn worth(classes: &ConnectionClasses) -> Estimate {
    Estimate::around(classes.worth_log, classes.worth_log_half.unwrap_or(f64::INFINITY))
}

/// `24 of 96 connections to B take 51.2 ms for a request, the others 1.2 ms`.
fn tell(classes: &ConnectionClasses, target: &str) -> String {
    format!(
        "{} of {} connections to {target} take {} for a request, the others {}",
        classes.slow,
        classes.of,
        format_duration_ns(classes.slow_ns),
        format_duration_ns(classes.others_ns)
    )
}
