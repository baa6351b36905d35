//! `net.small-mtu`: the slow side sends many small packets.
//!
//! From outside: its segments are smaller, and announcing such small segments to all makes the fast side as slow. That is
//! a flip that puts the cause in rather than taking it away; what it shows is the same.
//!
//! Where the fast side's machine has a card that cuts segments for it and the slow side's has none, equal segments do
//! not cost the same. Then packets per request and CPU time are counted on the machines, and over one connection our own.

use crate::cause::{Cause, CauseEntry, Standing, Told, did_not_move, fit, fit_by_host, of_both};
use crate::evidence::by_hand;
use crate::evidence::tls_records::RECORD_OVERHEAD_BYTES;
use crate::evidence::worth::{
    acquit, most_share_alone, our_further_work_ns, reference, share_of_log, share_of_resource,
};
use crate::gap::{DemandLook, Demands, Flip, FlipLook, Gap, View, percent};
use crate::probes::{Mode, SEGMENTS};
use duel_model::{Confidence, Evidence, HostDemand, TargetObservation, format_bytes, format_duration_ns, web};

static ENTRY: CauseEntry = CauseEntry {
    id: "net.small-mtu",
    description: "responses go in many small packets: a small MTU, or nothing that puts packets together",
    signature: "smaller segments; announced to all, the fast side becomes as slow. Or hosts: packets of less than \
                half the size without as many writes or connections",
    at_most: "confirmed; possible by packets",
    needs_machine: false,
};

/// A gap of a quarter in time per byte takes at least a quarter more packets, if packets were all that counts.
const CLEARLY_SMALLER: f64 = 0.8;
/// Of a larger response our further work is not that of packets alone.
const MOST_BYTES: f64 = 1.1;
/// Packets of half the size on one machine are no chance, and no tunnel's header either.
const FEWER_BYTES: f64 = 0.5;

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let reference = reference(gap)?;
    let bytes = |side| gap.count(side, web::SEGMENT_BYTES);
    let [of_slow, of_fast] = of_both(gap, "the sizes of segments are not known", bytes)?;
    let segments = format!("segments of {slow} hold up to {of_slow} bytes, those of {fast} {of_fast}");
    // What is announced when a connection is made: to be seen on this machine while requests are sent.
    let of_segments = |text: String| Evidence { repeat: Some("ss -tin".to_owned()), ..gap.first_contact(text) };
    let fact = || of_segments(segments.clone());
    let Some(response_bytes) = reference.slow.bytes_in_per_op else {
        return Err(Standing::Undecided(gap.evidence(reference, "the size of responses is not known".to_owned())));
    };
    if response_bytes <= of_slow as f64 {
        let text = format!("{segments}: a response of {} takes a single one", format_bytes(response_bytes));
        return Err(Standing::RuledOut(of_segments(text)));
    }
    if of_slow as f64 > CLEARLY_SMALLER * of_fast as f64 {
        return by_packets(gap, reference, None, vec![fact()]);
    }
    let flip = match gap.flip(SEGMENTS.of(gap.slow)) {
        FlipLook::Shown(flip) => flip,
        FlipLook::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
        FlipLook::Missing(why) => {
            return Err(Standing::Undecided(of_segments(format!("{segments}, but {why}"))));
        }
    };
    if !flip.moved() {
        // The fast side may have a card that makes small segments cheap, where the slow one has none.
        let facts = vec![fact(), gap.evidence(&flip.view, gap.tell_flip(&flip))];
        return by_packets(gap, reference, Some(&flip), facts);
    }
    let told = Told {
        summary: format!(
            "{slow} sends its responses in smaller packets: {segments}. With segments as small on all targets, {} of \
             the gap is gone, for {fast} becomes as slow.",
            flip.percent()
        ),
        remedy: format!(
            "On {slow}'s machine, `ip link` shows the MTU of its interfaces and `ip route get ADDRESS` what is known of \
             the path; tunnels and `advmss` in routes or MSS clamping in the firewall also make segments small. \
             `tracepath HOST` finds where the path gets narrow."
        ),
        facts: vec![fact()],
        further: Vec::new(),
    };
    let confidence = if flip.confirms() { Confidence::Confirmed } else { Confidence::Likely };
    Ok(fit(gap, &ENTRY, &flip, confidence, told))
}

/// The judgement by what the machines counted: smaller packets on the slow side's, and CPU time that is worth the gap.
fn by_packets(
    gap: &Gap<'_>,
    reference: &View<'_>,
    flip: Option<&Flip<'_>>,
    facts: Vec<Evidence>,
) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let said = facts.last().map_or_else(String::new, |fact| fact.text.clone());
    let settled = |why: String| match flip {
        Some(flip) if !flip.is_negligible() => did_not_move(gap, flip),
        // The same small segments on all targets left the gap, and nothing tells how dear a packet is to the slow side.
        Some(flip) => Standing::Undecided(gap.evidence(&flip.view, format!("{said}; {why}"))),
        None => Standing::RuledOut(facts.last().cloned().unwrap_or_else(|| gap.not_measured(why))),
    };
    let demands = match gap.demands() {
        DemandLook::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
        DemandLook::Missing(why) => return Err(settled(why)),
        DemandLook::Shown(demands) => demands,
    };
    let Demands { slow: of_slow, fast: Some(of_fast) } = demands else {
        return Err(settled(format!("the machine of {fast} was not read")));
    };
    let (Some(slow_bytes), Some(fast_bytes)) = (bytes_per_packet(of_slow), bytes_per_packet(of_fast)) else {
        return Err(settled("how many packets the machines send is not known".to_owned()));
    };
    let packets = format!(
        "packets that {slow}'s machine hands to its interfaces hold {} on average, those of {fast}'s {}",
        format_bytes(slow_bytes),
        format_bytes(fast_bytes)
    );
    if slow_bytes > FEWER_BYTES * fast_bytes {
        let text = format!("{said}; {packets}");
        return Err(Standing::RuledOut(gap.on_host(text, None)));
    }
    let open = |why: &str| Standing::Undecided(gap.on_host(format!("{packets}; but {why}"), None));
    // A handshake takes many small packets, whatever their size may be.
    let reused = [gap.slow, gap.fast].map(|side| gap.reused_share(side).unwrap_or(0.0));
    if (reused[0] - reused[1]).abs() > 0.1 {
        return Err(open("one side connects more often, which takes small packets too"));
    }
    // Who hands over small pieces sends small packets through any network.
    let pieces = |demand: &HostDemand| demand.per_op("workers.write_calls");
    if let (Some(by_slow), Some(by_fast), Some(packets)) = (pieces(of_slow), pieces(of_fast), packets_per_op(of_slow))
        && by_slow - by_fast >= 0.5 * packets
    {
        return Err(open("the server hands its responses over in as small pieces"));
    }
    // So does who cuts them into small TLS records, by calls that nobody counts: each adds bytes beside the body.
    if let (Some(further), Some(packets)) = (further_records(gap, reference), packets_per_op(of_slow))
        && further >= 0.5 * packets
    {
        return Err(open("the server cuts its responses into as small TLS records"));
    }
    let (Some(slow_cpu_ns), Some(fast_cpu_ns)) = (cpu_ns_per_op(of_slow), cpu_ns_per_op(of_fast)) else {
        return Err(open("CPU time is not known"));
    };
    let cpu_told = format!(
        "a request takes {} of CPU time on {slow}'s machine, {} on {fast}'s, as far as it is the server's or goes into interrupts",
        format_duration_ns(slow_cpu_ns),
        format_duration_ns(fast_cpu_ns)
    );
    // Whoever receives them one by one works longer, too.
    let bytes = reference.slow.bytes_in_per_op.zip(reference.fast.bytes_in_per_op);
    let are_as_many = bytes.is_some_and(|(of_slow, of_fast)| of_slow <= MOST_BYTES * of_fast);
    let known_ns = our_further_work_ns(gap, reference).filter(|_| are_as_many);
    let ours_ns = known_ns.unwrap_or(0.0);
    let cpu_told = match ours_ns > 0.0 {
        true => format!("{cpu_told}; duel itself needs {} more to receive a response", format_duration_ns(ours_ns)),
        false => cpu_told,
    };
    let worth = share_of_log(reference, slow_cpu_ns - fast_cpu_ns + ours_ns);
    if worth.is_none_or(|share| share < Flip::NOTEWORTHY) {
        // On a CPU that others want, that much time takes longer.
        let most = match (gap.mode, known_ns) {
            (Mode::Alone, None) => Err("how long duel itself works to receive them is not known".to_owned()),
            _ => most(gap, reference, of_slow, [slow_cpu_ns + ours_ns, fast_cpu_ns]),
        };
        return Err(match acquit(&most, gap.on_host(cpu_told, None)) {
            Standing::RuledOut(cpu) => {
                settled(format!("{packets}; {}: that is not what the gap consists of", cpu.text))
            }
            Standing::Undecided(cpu) => open(&cpu.text),
            standing => standing,
        });
    }
    if let Some((link, kind)) = may_split_packets(gap, of_slow) {
        return Err(open(&format!(
            "its {link} has a queue of kind {kind}, which may split what was put together, and hold it up"
        )));
    }
    let told = Told {
        summary: format!(
            "{slow}'s machine sends many small packets: {packets}. That may be worth up to {} of the gap: {cpu_told}.",
            worth.map_or_else(String::new, percent)
        ),
        remedy: format!(
            "On {slow}'s machine, `ethtool -k INTERFACE` shows whether tcp-segmentation-offload and \
             generic-segmentation-offload are on (`ethtool -K INTERFACE tso on gso on`), `ip link` the MTU and \
             `gso_max_size`."
        ),
        facts,
        further: vec![
            gap.on_host(packets, Some("ip -s link".to_owned())),
            gap.on_host(cpu_told, Some(by_hand::MACHINE_CPU_TIME.to_owned())),
        ],
    };
    // Counted, but CPU time is spent on other things too: nothing splits it.
    Ok(fit_by_host(gap, &ENTRY, None, Confidence::Possible, told))
}

/// Kinds of queues (`tc qdisc`) that may split what the server's kernel puts together, before the interface counts it (`tbf_segment` and
/// `cake_enqueue` of Linux). What they hold up takes longer than the packets do, and cannot be told from these.
const SPLITTING: [&str; 2] = ["tbf", "cake"];

/// A link that has such a queue, and its kind: the one that sends most of what the slow side's machine sends.
fn may_split_packets<'a>(gap: &Gap<'a>, of_slow: &HostDemand) -> Option<(&'a str, &'a str)> {
    let sent = |link: &str| of_slow.growth.get(&format!("link.{link}.sent_packets")).copied().unwrap_or(0);
    let queues =
        gap.host_facts(gap.slow, "link.").filter_map(|(name, kind)| Some((name.strip_suffix(".qdisc")?, kind)));
    let busiest = queues.max_by_key(|(link, _)| sent(link));
    busiest.filter(|(_, kind)| SPLITTING.contains(kind))
}

/// CPU time in which packets may be sent: that of the server's processes and of interrupts, as far as the machine was busy at all.
/// Others work on the machine, too, and for each request of a slow server they have done more.
fn cpu_ns_per_op(demand: &HostDemand) -> Option<f64> {
    let busy_ns = demand.per_op("cpu.busy_ns")?;
    let of_server = demand.per_op("process.cpu_ns").zip(demand.per_op("cpu.softirq_ns"));
    Some(of_server.map_or(busy_ns, |(own_ns, interrupts_ns)| busy_ns.min(own_ns + interrupts_ns)))
}

/// The most that the further CPU time of the slow side's machine can be of the gap, or why that is not known.
fn most(gap: &Gap<'_>, reference: &View<'_>, of_slow: &HostDemand, both_ns: [f64; 2]) -> Result<f64, String> {
    let further_ns = both_ns[0] - both_ns[1];
    if gap.mode == Mode::Alone {
        return most_share_alone(gap, reference, of_slow, both_ns, further_ns);
    }
    // Among the time of the whole machine others' may be: as a part of the server's own it is the most.
    let own_ns = of_slow.per_op("process.cpu_ns");
    let share = own_ns.and_then(|own_ns| share_of_resource(gap, reference, further_ns, own_ns));
    share.ok_or_else(|| "what that is worth is not known".to_owned())
}

/// How many TLS records more the slow side's responses come in, about: by the bytes beside the bodies, of which the heads are a
/// small part where records are many. `None` where not both use TLS, or bytes are not known.
fn further_records(gap: &Gap<'_>, reference: &View<'_>) -> Option<f64> {
    let beside = |seen: &TargetObservation| Some(seen.bytes_in_per_op? - seen.body_bytes_per_op?);
    let both_tls = gap.uses_tls(gap.slow) && gap.uses_tls(gap.fast);
    both_tls.then_some((beside(reference.slow)? - beside(reference.fast)?) / RECORD_OVERHEAD_BYTES)
}

/// Mean size of the packets that a machine sent.
fn bytes_per_packet(demand: &HostDemand) -> Option<f64> {
    sent(demand).map(|(bytes, packets)| bytes / packets)
}

fn packets_per_op(demand: &HostDemand) -> Option<f64> {
    sent(demand).map(|(_, packets)| packets / demand.ops.max(1) as f64)
}

/// Bytes and packets that a machine sent; over all its interfaces but the loopback one, where there are others. `None`
/// where that is less than a packet for each op.
fn sent(demand: &HostDemand) -> Option<(f64, f64)> {
    let sum = |key: &str, loopback: bool| {
        let of_links = demand.growth.iter().filter(|(name, _)| {
            name.strip_prefix("link.")
                .and_then(|rest| rest.strip_suffix(key))
                .is_some_and(|link| (link == "lo.") == loopback)
        });
        of_links.map(|(_, growth)| *growth as f64).sum::<f64>()
    };
    let of = |loopback| {
        let (bytes, packets) = (sum("sent_bytes", loopback), sum("sent_packets", loopback));
        (packets > 0.0 && packets >= demand.ops as f64).then_some((bytes, packets))
    };
    of(false).or_else(|| of(true))
}
