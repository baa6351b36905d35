//! `net.slow-path`: whoever exchanges as many bytes on the path to the slow side waits longer.
//!
//! The user has started `duel net serve` on the targets' machines. Duel asks it for as many bytes as the servers' own answers have at
//! least, time after time, as many at a time as ops are in flight where the gap is held. What an exchange takes longer
//! on the slow side is time that an op takes longer there: the path is the same. That is the least that the path is worth: larger requests,
//! connecting and TLS go over it as well.
//!
//! What looks like it is a machine that has no time for either program, as beside busy neighbours. But a program that waits for a CPU sends
//! nothing, and TCP counts for how long there was something under way: where that is not most of what exchanges take longer, or is not told,
//! this cause is a suspicion. By itself it is possible at most, for a machine that a hypervisor stops acknowledges nothing either. TCP
//! tells what makes a path slow (how long its round trips are, what was sent again, what held a stream back), and the causes of paths are
//! held against the gap between the two paths: where one of them is likely, this is.

use super::BUSY;
use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host};
use crate::causes::likes::{self, Against};
use crate::evidence::below::{nested, told_below};
use crate::evidence::device::setting;
use crate::evidence::paths::both;
use crate::gap::{Flip, Gap, View, percent};
use duel_model::{Confidence, Layer, PEER, format_bytes, format_duration_ns, sanitize_line};
use std::net::SocketAddr;

static ENTRY: CauseEntry = CauseEntry {
    id: "net.slow-path",
    description: "the path to the server's machine is slower for another program as well",
    signature: "`duel net serve` answers on both machines (`--net-server`): exchanges of as many bytes with it, as many at a time, take \
                longer on the slow side, which is worth the gap, and for most of that time data is under way; what makes that path slow is found \
                there",
    at_most: "likely; possible where nothing tells what makes the path slow",
    needs_machine: false,
};

// Of databases it is not known which address they are reached at.
pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

/// An op cannot be shorter than the exchange that is a part of it, but for what both scatter: they are measured one after the other.
const MOST_OF_OP: f64 = 1.5;
/// Data has to be under way for most of what exchanges take longer.
const MOST: f64 = 0.5;

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let op = gap.case.plan.schema().op.one;
    // What is known without the probe spares it.
    let stands = likes::held_against(gap, &ENTRY).find_map(|like| match like {
        Err(Against::Stands(id)) => Some(id),
        Err(Against::Asks(_)) | Ok(_) => None,
    });
    if let Some(id) = stands {
        return Err(Standing::Undecided(gap.not_measured(format!("{id} fits, which would show there as well"))));
    }
    let below = nested(gap, Layer::Path)?;
    let told = |text: String| told_below(&below, Layer::Path, text);
    let open = |text: String| Standing::Undecided(told(text));
    let view = gap.known_reference().ok_or_else(|| open("the gap has no reference".to_owned()))?;
    ensure_same_machines(gap, &below).map_err(open)?;
    let at_a_time = below.case.plan.ops_at_a_time();
    if view.connections() != Some(at_a_time) {
        return Err(open(format!("exchanges were made {at_a_time} at a time, and this gap is not held so")));
    }
    let paths = &below.comparison;
    let ([Some(slow_ns), Some(fast_ns)], [Some(whole_slow_ns), Some(whole_fast_ns)]) = (each_ns(paths), each_ns(view))
    else {
        return Err(open(format!("how long exchanges and {op}s take is not known")));
    };
    let bytes = paths.slow.bytes_in_per_op.unwrap_or(0.0);
    let takes = format!(
        "an exchange of {} with `duel net serve` takes {} on the path to {slow}, and {} on that to {fast}, {}",
        format_bytes(bytes),
        format_duration_ns(slow_ns),
        format_duration_ns(fast_ns),
        paths.over(below.case.plan)
    );
    // By what it takes longer at least: losses scatter widely.
    let least_ns = fast_ns * paths.log.low().exp();
    if least_ns > MOST_OF_OP * whole_slow_ns || fast_ns > MOST_OF_OP * whole_fast_ns {
        let wholes = [whole_slow_ns, whole_fast_ns].map(format_duration_ns);
        return Err(open(format!("{takes}; the {op} takes {} and {}: it is done otherwise", wholes[0], wholes[1])));
    }
    if at_a_time > 1 && slow_ns < BUSY * whole_slow_ns {
        let whole = format_duration_ns(whole_slow_ns);
        return Err(open(format!("{takes}, and the {op} takes {whole}: the path is not what all wait for")));
    }
    // The gap may be of the typical pair of slots alone.
    if whole_slow_ns <= whole_fast_ns {
        return Err(open(format!("{takes}; over all of the time the {op}s of {slow} take no longer")));
    }
    let left_ns = (whole_slow_ns - (slow_ns - fast_ns)).max(whole_fast_ns);
    let share = 1.0 - (left_ns / whole_fast_ns).ln() / (whole_slow_ns / whole_fast_ns).ln();
    if share.is_nan() || share < Flip::NOTEWORTHY {
        return Err(open(format!("{takes}: {} of the gap", percent(share.max(0.0)))));
    }
    for like in likes::held_against(gap, &ENTRY) {
        like.map_err(|against| against.settles(|id| open(format!("{takes}; {id} fits, which shows there as well"))))?;
    }
    let under_way = under_way(&below, slow_ns - fast_ns);
    let busy = match under_way {
        Some(part) => format!("data is under way for {} of what that is longer", percent(part.max(0.0))),
        None => "for how much of what that is longer data is under way is not known".to_owned(),
    };
    if under_way.is_none_or(|part| part < MOST) {
        let text =
            format!("{takes}: {} of the gap; {busy}: a machine without time for it would look so", percent(share));
        return Err(Standing::Suspected(told(text)));
    }
    let summary = format!(
        "The path to {slow} is slower for another program as well: {takes}. That is {} of the gap.",
        percent(share)
    );
    let remedy = format!(
        "Compare both paths alone, as in the line above, and with `--why`. Look at the path to {slow} (`mtr -n`, `tracepath`, `ip route get`), at \
         what forwards, filters or shapes on it, and whether that machine has time for its network (`mpstat -P ALL 1`, softirq and steal)."
    );
    let facts =
        vec![told(format!("exchanges with `duel net serve`: {}", below.tell(paths))), told(format!("{takes}; {busy}"))];
    let told = Told { summary, remedy, facts, further: Vec::new() };
    Ok(fit_by_host(gap, &ENTRY, Some(share), Confidence::Possible, told).with(|fit| fit.below = Some(Layer::Path)))
}

/// For which part of what exchanges take longer the sender of the answers had data under way: longer than it had on the fast side. `None`: it
/// does not tell. Of requests and responses (`rr`) our own end tells, which sends requests.
fn under_way(paths: &Gap<'_>, longer_ns: f64) -> Option<f64> {
    let [slow, fast] = both(&paths.comparison).map(|path| path.busy_ns_per_op());
    let answers = setting(paths, "op") == Some("bulk-reverse");
    answers.then_some((slow? - fast?) / longer_ns)
}

/// How long an op takes on the slow side and on the fast one, by all of the time: where a few ops take a hundred times as long as the
/// others, the typical pair of slots is far from that.
fn each_ns(view: &View<'_>) -> [Option<f64>; 2] {
    [view.slow, view.fast].map(|seen| {
        let ns = f64::from(view.connections()?) * 1e9 / seen.rate_per_s?;
        (ns.is_finite() && ns > 0.0).then_some(ns)
    })
}

/// The other program answers at the addresses that the targets answer at: else exchanges may have gone another way.
fn ensure_same_machines(gap: &Gap<'_>, below: &Gap<'_>) -> Result<(), String> {
    for side in [gap.slow, gap.fast] {
        let name = gap.name(side);
        let [of_target, of_program] = [gap, below].map(|gap| gap.text(side, PEER));
        let address = |peer: Option<&str>| peer.and_then(|peer| peer.parse::<SocketAddr>().ok()).map(|at| at.ip());
        match (address(of_target), address(of_program)) {
            (Some(target), Some(program)) if target == program => {}
            (Some(target), Some(program)) => {
                return Err(format!(
                    "{name} is reached at {target}, and its `duel net serve` at {program}: that may be another path"
                ));
            }
            _ => {
                let told = of_target.map_or_else(|| "an address that is not known".to_owned(), sanitize_line);
                return Err(format!(
                    "{name} is reached at {told}: whether its `duel net serve` is on the same path is not known"
                ));
            }
        }
    }
    Ok(())
}
