//! `disk.group-limit`: the control group of the slow side's server may have a device do so much per second, and that is what it does.
//!
//! The limits are told by the machine (blkio.throttle, io.max; those of groups above hold as well), and so is what the group has each device
//! do. A server that reads for its requests at the limit is held back by it: without it more would be read. What that would be is
//! hidden behind it, so no share of the gap is told. What looks like it:
//!
//! * a slow device without a limit, or files that lie badly (`disk.slow-reads`): there is no limit, or less than it is done;
//! * writing: it may be at leisure, while no request waits; possible at most;
//! * a server that reads more for each request than the other one (`mem.limit`, `mem.cold-cache`): it reaches a limit by that; left open.
//!   Where that is not known, it is possible at most;
//! * a limit that holds the fast side's server back as well, or that both have: it is no difference;
//! * a limit of a group above that others use up: what the server's own group does stays below it, and it is left open.
//!
//! Nothing outside takes it away, so it is likely at most. It is ruled out without limits alone.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host, needs_http};
use crate::evidence::by_hand;
use crate::evidence::device::AT_THE_LIMIT;
use crate::evidence::io_limits::Limit;
use crate::evidence::machines::Machines;
use crate::evidence::worth::reference;
use crate::gap::Gap;
use duel_model::{Confidence, format_bytes};

static ENTRY: CauseEntry = CauseEntry {
    id: "disk.group-limit",
    description: "a limit of the server's control group on what a disk does for it (blkio.throttle, io.max) is reached",
    signature: "hosts: the slow side's group may read or write no more per second than it does under load, and the fast side's is not \
                held back so",
    at_most: "likely; possible for what is written, and where it is not known that both read as much for each request",
    needs_machine: true,
};

/// A throttle lets through what was saved up meanwhile; over seconds nobody does more than this. A group that seems to is counted in another way than it is limited.
const MOST_OF_LIMIT: f64 = 1.3;
/// Two equal servers read as much for a request, but for what their caches happened to keep.
const AS_MUCH: f64 = 1.5;

pub(super) static CAUSE: Cause = Cause { reads_server_alone: true, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    needs_http(gap)?;
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    reference(gap)?;
    let machines = Machines::read(gap)?;
    let on_host = |text: String| gap.on_host(text, Some(by_hand::io_limits(gap, gap.slow)));
    let open = |text: String| Standing::Undecided(on_host(text));
    let limits = Limit::all(gap, gap.slow, &machines.slow)
        .ok_or_else(|| open(format!("what {slow}'s control group may have disks do is not known")))?;
    let told = |limits: &[Limit]| limits.iter().map(Limit::told).collect::<Vec<_>>().join(", ");
    if limits.is_empty() {
        return Err(Standing::RuledOut(on_host(format!(
            "{slow}'s control group has no limit of what disks do for it"
        ))));
    }
    let facts = format!("{slow}'s control group may have {}", told(&limits));
    let is_reached = |limit: &Limit| limit.used().is_some_and(|used| (AT_THE_LIMIT..=MOST_OF_LIMIT).contains(&used));
    let Some(limit) = limits.iter().filter(|limit| is_reached(limit)).max_by_key(|limit| limit.is_of_reads()) else {
        // Not even where little of it is used: of a limit of a group above, others may use the rest.
        return Err(open(format!("{facts}: that it is reached is not seen")));
    };
    let fast_limits = match &machines.fast {
        Some(side) => Limit::all(gap, gap.fast, side),
        None => None,
    };
    let nearly_reached = |limit: &Limit| limit.used().is_none_or(|used| used >= AT_THE_LIMIT);
    if let Some(limits) = &fast_limits
        && limits.iter().any(nearly_reached)
    {
        return Err(open(format!("{facts}; and {fast}'s {}: that may hold it back as well", told(limits))));
    }
    // A limit that both have is no difference between them.
    if let Some(same) = fast_limits.iter().flatten().find(|other| other.is_as_strict_as(limit)) {
        return Err(open(format!("{facts}; and {fast}'s {}: that is no difference", told(std::slice::from_ref(same)))));
    }
    let read = |side: &crate::evidence::machines::Side<'_>| side.per_op("workers.disk_read_bytes");
    let reads = read(&machines.slow).zip(machines.fast.as_ref().and_then(read));
    let alike = reads.is_some_and(|(slow, fast)| slow <= AS_MUCH * fast);
    if limit.is_of_reads() && reads.is_some() && !alike {
        return Err(open(format!(
            "{facts}; but it reads more for each request than {fast}'s server, and reaches the limit by that"
        )));
    }
    let is_likely = limit.is_of_reads() && alike && fast_limits.is_some();
    let facts = match reads.filter(|_| limit.is_of_reads()) {
        Some((by_slow, by_fast)) => format!(
            "{facts}; for each request {slow}'s server reads {} from disks, {fast}'s {}",
            format_bytes(by_slow),
            format_bytes(by_fast)
        ),
        None => facts,
    };
    let told = Told {
        summary: format!(
            "{slow}'s control group holds it back: it may have {}. How fast {slow} would be without the limit is not known.",
            limit.told()
        ),
        remedy: format!(
            "Raise or remove the limit of {slow}'s control group or of the one above that has it: systemd `IOReadBandwidthMax=`, \
             `IOReadIOPSMax=`, `IOWriteBandwidthMax=` and `IOWriteIOPSMax=` of the unit or its slice, Docker `--device-read-bps` and so \
             on, `io.max` or `blkio.throttle.*_device` elsewhere. Or let {slow} read less: more memory for its files, no `directio`."
        ),
        facts: vec![on_host(facts)],
        further: Vec::new(),
    };
    let confidence = if is_likely { Confidence::Likely } else { Confidence::Possible };
    Ok(fit_by_host(gap, &ENTRY, None, confidence, told).with(|fit| fit.hides_rest = true))
}
