//! `net.rate-cap`: bytes of the slow side flow no faster than somebody lets them.
//!
//! A cap is paid per byte, in the receive phase, while the machine is idle: small responses come in time, another cipher
//! does not change it, and the server's CPU has nothing to do. It holds for each connection (several flow as many times
//! faster) or for all together. Where the machine is not read, a slow way of producing bytes looks the same, and a small
//! window looks like a cap of each connection unless the round trip is too short for it.

use crate::cause::{Cause, CauseEntry, Cure, Standing, Told, did_not_move, fit, fit_by_host, needs_http};
use crate::evidence::bulk::{Bulk, Growth, LEAST_WINDOW_BYTES, bulk, largest_window_bytes, longer_receiving_ns};
use crate::evidence::by_hand;
use crate::evidence::counted::{Counted, MOSTLY_WAITING, further_cpu_ns, share_of_phases};
use crate::evidence::lost::Lost;
use crate::evidence::machines::allowed_cpus;
use crate::evidence::trip::{MOST_TRIPS, SAME_TRIP, trips};
use crate::evidence::worth::{demands, reference};
use crate::gap::{Demands, FlipLook, Gap, Look, View, percent};
use crate::probes::{Mode, RANGE_1};
use duel_model::{Confidence, Evidence, HostDemand, TwinChange, format_bytes, format_duration_ns, web};

static ENTRY: CauseEntry = CauseEntry {
    id: "net.rate-cap",
    description: "bandwidth is capped on the path or by the server, per connection or in total",
    signature: "hosts: bytes flow evenly and slowly while disks, each CPU and all other processes are idle; the \
                first byte comes in time; not a window's size, and where each connection is held, nothing is lost",
    at_most: "likely; possible where a buffer that the server chose would show the same",
    needs_machine: true,
};

/// A server that is held up by its CPU keeps at least one busy; one that waits a third of the time is not.
const IDLE_PROCESS: f64 = 0.7;
/// Of all CPUs together. The generator may be on the same machine and busy itself.
const IDLE_MACHINE: f64 = 0.9;
/// Bytes read from disks, per byte sent: below, the cache has served the rest.
const FROM_DISK: f64 = 0.1;
/// Under way at the fast side, over the same buffers of ours: beyond what two scattering rates make of equal windows.
const CLEARLY_MORE: f64 = 1.5;
/// A cap is one value for all: a buffer this many times as large as what is under way does not hold it up. Half of a
/// buffer is the kernel's own book-keeping.
const AMPLE_BUFFER: f64 = 4.0;

pub(super) static CAUSE: Cause =
    Cause { cure: Some(Cure { change: TwinChange::NoLimits, may_lie_outside: true }), ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    needs_http(gap)?;
    let reference = reference(gap)?;
    let receive_ns = longer_receiving_ns(gap, reference)?;
    let Some(share) = share_of_phases(reference, receive_ns) else {
        let text = "the time per request is not known".to_owned();
        return Err(Standing::Undecided(gap.evidence(reference, text)));
    };
    let small = match gap.flip(RANGE_1) {
        FlipLook::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
        FlipLook::Shown(flip) if !flip.moved() => return Err(did_not_move(gap, &flip)),
        FlipLook::Shown(flip) => Some(flip),
        // Under load a flip that takes most of the work away is not judged; over one connection it has to be. But the
        // probe has to have been answered.
        FlipLook::Missing(_) if gap.mode == Mode::Loaded && matches!(gap.look(RANGE_1), Look::Shown(_)) => None,
        FlipLook::Missing(why) => return Err(Standing::Undecided(gap.evidence(reference, why))),
    };
    let bulk = bulk(gap)?;
    match bulk.is_even() {
        Some(true) => {}
        Some(false) => {
            let text = "receiving stalls now and then rather than being slow throughout".to_owned();
            return Err(Standing::RuledOut(gap.evidence(&bulk.alone, text)));
        }
        None => {
            let text = "how the times of receiving are spread is not known".to_owned();
            return Err(Standing::Undecided(gap.evidence(&bulk.alone, text)));
        }
    }
    let demands = demands(gap)?;
    let mut facts = idle(gap, &demands, reference, receive_ns)?;
    let flow = gap.evidence(&bulk.many, format!("bytes of {} flow at {}", gap.slow_name(), bulk.tell()));
    let (kind, confidence) = kind(gap, &bulk, receive_ns, &flow)?;
    if let Some(again) = Counted::of(&demands, "tcp.retransmitted_segments").filter(|again| again.is_marked()) {
        let text = format!("its machine sends {:.3} segments per request again", again.per_op);
        // A cap that drops what exceeds it loses packets; so does a bad line, which holds up each connection by itself.
        if matches!(kind, Held::EachConnection) {
            let text = format!("{}; {text}: what is lost keeps a connection slow as well", flow.text);
            return Err(Standing::Undecided(gap.on_host(text, Some(by_hand::SENT_AGAIN.to_owned()))));
        }
        facts.push(gap.on_host(text, Some(by_hand::SENT_AGAIN.to_owned())));
    }
    if matches!(kind, Held::EachConnection) {
        not_by_losses(gap, &bulk, &demands, &flow)?;
    }
    facts.push(flow);
    let told = told(gap, kind, &bulk, facts, share);
    Ok(match small {
        // It takes away everything that is paid per byte, not the cap alone.
        Some(flip) if gap.mode == Mode::Alone => fit(gap, &ENTRY, &flip, confidence, told),
        _ => fit_by_host(gap, &ENTRY, Some(share), confidence, told),
    })
}

/// What a cap holds for.
#[derive(Debug, Clone, Copy)]
enum Held {
    EachConnection,
    Total,
}

/// What the cap holds for, and how firmly that stands.
fn kind(gap: &Gap<'_>, bulk: &Bulk<'_>, receive_ns: f64, flow: &Evidence) -> Result<(Held, Confidence), Standing> {
    let open = |why: String| Standing::Undecided(Evidence { text: format!("{}{why}", flow.text), ..flow.clone() });
    match (bulk.growth, gap.mode) {
        (Growth::Stays, _) | (Growth::Between, Mode::Loaded) => Ok((Held::Total, Confidence::Likely)),
        (Growth::Between, Mode::Alone) => Err(open(": neither each connection nor all together are capped".to_owned())),
        (Growth::Scales, _) => {
            // A window does the same: so many bytes for each round trip.
            let trips = trips(gap)?;
            let Some(under_way) = bulk.under_way_bytes(bulk.alone.slow, trips.slow) else {
                return Err(open(": how long receiving takes is not known".to_owned()));
            };
            // New connections begin slowly: some round trips more say nothing of a cap.
            let reused = bulk.alone.slow.reused_share.unwrap_or(0.0);
            if reused < 0.9 && receive_ns < MOST_TRIPS * trips.slow.typical.mid {
                return Err(open(": a few round trips more may be those in which a new connection grows".to_owned()));
            }
            // On a longer way the same windows carry less.
            let longer = trips.slow.typical.mid > SAME_TRIP * trips.fast.typical.mid;
            // The server's buffers are large enough, and so are ours, for the fast side has had more under way.
            let fast_under_way = bulk.under_way_bytes(bulk.alone.fast, trips.fast).unwrap_or(0.0);
            let ample = largest_window_bytes(gap, gap.slow).is_some_and(|largest| largest >= AMPLE_BUFFER * under_way)
                && fast_under_way >= CLEARLY_MORE * under_way
                && !longer;
            if under_way < LEAST_WINDOW_BYTES {
                return Ok((Held::EachConnection, Confidence::Likely));
            }
            // A server may have chosen a smaller buffer than the machine would give it, which is not read.
            if ample {
                return Ok((Held::EachConnection, Confidence::Possible));
            }
            let under_way = format_bytes(under_way);
            Err(open(format!(": {under_way} per round trip may be a window as well as a cap of each connection")))
        }
    }
}

/// That no connection has just as much under way as an algorithm leaves it that takes what gets lost for congestion, if as much gets lost
/// on the fast side.
fn not_by_losses(gap: &Gap<'_>, bulk: &Bulk<'_>, demands: &Demands<'_>, flow: &Evidence) -> Result<(), Standing> {
    let Some(lost) = Lost::of(demands) else { return Ok(()) };
    let under_way = bulk.under_way_bytes(bulk.alone.slow, trips(gap)?.slow);
    let segment = gap.count(gap.slow, web::SEGMENT_BYTES);
    let Some(segments) = under_way.zip(segment).map(|(bytes, segment)| bytes / segment as f64) else { return Ok(()) };
    if !lost.leaves(segments) {
        return Ok(());
    }
    let text = format!(
        "{}; {:.2} % of the segments are sent again, which leaves about as many under way as there are ({segments:.0})",
        flow.text,
        100.0 * lost.share
    );
    Err(Standing::Undecided(gap.on_host(text, Some(by_hand::SENT_AGAIN.to_owned()))))
}

/// That the slow side's machine waits: neither its CPUs nor its disks hold up the bytes.
fn idle(
    gap: &Gap<'_>,
    demands: &Demands<'_>,
    reference: &View<'_>,
    receive_ns: f64,
) -> Result<Vec<Evidence>, Standing> {
    let slow = gap.slow_name();
    let demand = demands.slow;
    let on_host = |text: String| gap.on_host(text, None);
    let (Some(process), Some(machine)) = (demand.share_of_time("process.cpu_ns"), demand.share_of_time("cpu.busy_ns"))
    else {
        return Err(Standing::Undecided(on_host(format!("how busy {slow}'s processes are is not known"))));
    };
    let busy =
        format!("{slow}'s processes use {:.0} % of a CPU, its machine {:.0} %", 100.0 * process, 100.0 * machine);
    let cpus = gap.host_number(gap.slow, "cpu.cpus");
    if process > IDLE_PROCESS {
        return Err(Standing::Undecided(on_host(format!("{busy}: that may hold the bytes up"))));
    }
    if cpus.is_none_or(|cpus| machine > IDLE_MACHINE * cpus) {
        return Err(Standing::Undecided(on_host(format!("{busy}: nothing tells that CPUs were free"))));
    }
    // Somebody else on the machine may make the bytes, or a CPU that takes all the interrupts hand them on.
    let ours = demand.share_of_time("process.cpu_ns").unwrap_or(0.0);
    let generator = demand.generator_cpu_ns as f64 / demand.elapsed_ns.max(1) as f64;
    let others = machine - ours - generator;
    if others > IDLE_PROCESS {
        let text = format!("{busy}, {:.0} % others than these: one of them may make the bytes", 100.0 * others);
        return Err(Standing::Undecided(on_host(text)));
    }
    if let Some((cpu, share)) = busiest_cpu(gap, demand).filter(|(_, share)| *share - generator > IDLE_PROCESS) {
        let text = format!("{busy}, CPU {cpu} alone {:.0} %: that may hold the bytes up", 100.0 * share);
        return Err(Standing::Undecided(on_host(text)));
    }
    // A single connection lets CPUs rest in between, however dear its bytes are.
    if let Some(cpu_ns) = further_cpu_ns(demands).filter(|&cpu_ns| cpu_ns > MOSTLY_WAITING * receive_ns) {
        let cpu = format_duration_ns(cpu_ns);
        return Err(Standing::Undecided(on_host(format!(
            "{busy}; a request needs {cpu} more of it, which takes time"
        ))));
    }
    if demand.share_of_time("cgroup.throttled_ns").is_some_and(|share| share > 0.1) {
        return Err(Standing::Undecided(on_host(format!("{slow} is throttled by its CPU quota"))));
    }
    let body_bytes = reference.slow.body_bytes_per_op.unwrap_or(f64::INFINITY);
    let waits_for_disks = match demand.per_op("workers.disk_read_bytes") {
        Some(read) => Some(read > FROM_DISK * body_bytes),
        None => demand.share_of_time("pressure.io.some_ns").map(|share| share > FROM_DISK),
    };
    match waits_for_disks {
        Some(false) => {}
        Some(true) => return Err(Standing::Undecided(on_host(format!("{slow} reads what it sends from disks")))),
        None => return Err(Standing::Undecided(on_host(format!("whether {slow} waits for disks is not known")))),
    }
    Ok(vec![gap.on_host(busy, Some(by_hand::all_cpu_time(gap, gap.slow)))])
}

/// The CPU that was busy the longest of those that the server may use, with the share of the time.
fn busiest_cpu(gap: &Gap<'_>, demand: &HostDemand) -> Option<(u32, f64)> {
    let share = |cpu: u32| Some((cpu, demand.share_of_time(&format!("cpu.{cpu}.busy_ns"))?));
    allowed_cpus(gap, gap.slow)?.into_iter().filter_map(share).max_by(|one, other| one.1.total_cmp(&other.1))
}

fn told(gap: &Gap<'_>, held: Held, bulk: &Bulk<'_>, facts: Vec<Evidence>, share: f64) -> Told {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let flows = match held {
        Held::EachConnection => {
            format!("each connection flows at about {}/s, however many there are", format_bytes(bulk.alone_bytes_per_s))
        }
        Held::Total => {
            format!("all connections together flow at no more than about {}/s", format_bytes(bulk.many_bytes_per_s))
        }
    };
    Told {
        summary: format!(
            "Bytes from {slow} are held back while its machine is idle: {flows}. Receiving makes {} of the gap to {fast}.",
            percent(share)
        ),
        remedy: format!(
            "Look for a cap: in the server (nginx `limit_rate`, Apache `mod_ratelimit`, HAProxy `bwlim`), on {slow}'s \
             machine (`tc -s qdisc show`, `nft list ruleset` for `limit rate`, `ethtool INTERFACE` for the link's speed), \
             in the hypervisor or cloud plan, and on the path."
        ),
        facts,
        further: Vec::new(),
    }
}
