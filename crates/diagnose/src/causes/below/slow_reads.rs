//! `disk.slow-reads`: what the slow side's server waits for is that its files are read, and they are read more slowly whoever reads them.
//!
//! The machines tell how many bytes each op has its server read from disks. Then duel reads the servers' own files itself, past the page
//! cache, in pieces as large and as many at a time as their devices read for the servers. What a byte takes so, times the bytes of an op, is
//! what reading is worth of the gap. What looks like it: a server that reads more for each op (then its files are read as fast), one that
//! computes longer (then it reads little, or nothing), a file that is not on its device as a whole (holes, caches: then the device reads
//! less than duel), and control groups: one whose server may read less than duel may (then its files are read as fast by duel), and one
//! that holds duel itself back. All of these are left open.

use super::BUSY;
use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host};
use crate::evidence::below::{nested, told_below};
use crate::evidence::by_hand;
use crate::evidence::file_reads::{Reads, held_back, reads};
use crate::evidence::worth::share_of_log;
use crate::gap::{DemandLook, Flip, Gap, percent};
use duel_model::{Confidence, Layer, format_bytes, format_duration_ns};

static ENTRY: CauseEntry = CauseEntry {
    id: "disk.slow-reads",
    description: "the files of the server are read more slowly, whoever reads them: it is the file system or the device under them",
    signature: "hosts: its processes read from disks for each op; duel reads the files that both servers have open, and is slower on the \
                slow side's; the time that the op's bytes take so is worth the gap",
    at_most: "likely",
    needs_machine: true,
};

/// At fewer bytes for each op a page is read once in 4,096 ops: that is not what an op waits for.
const LEAST_BYTES: f64 = 1.0;
/// The reads of an op cannot take longer than the op, but for what a throttle that saves up lets scatter. What does is read otherwise than
/// the server reads it (in order, or fewer at a time), and measures something else.
const MOST_OF_OP: f64 = 1.5;
/// The work of servers.
const KINDS: &[&str] = &["http", "sql"];

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, reads_server_alone: true, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let op = gap.case.plan.schema().op.one;
    let demands = match gap.demands() {
        DemandLook::Shown(demands) => demands,
        DemandLook::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
        DemandLook::Missing(why) => return Err(Standing::Undecided(gap.not_measured(why))),
    };
    let on_host = |text: String| gap.on_host(text, Some(by_hand::calls(gap, gap.slow)));
    let bytes = |demand: Option<&duel_model::HostDemand>| demand?.per_op("workers.disk_read_bytes");
    let Some(slow_bytes) = bytes(Some(demands.slow)) else {
        return Err(Standing::Undecided(on_host(format!("what {slow} reads from disks is not known"))));
    };
    if slow_bytes < LEAST_BYTES {
        let text = format!("for each {op} {slow} reads {} from disks", format_bytes(slow_bytes));
        return Err(Standing::RuledOut(on_host(text)));
    }
    let Some(fast_bytes) = bytes(demands.fast) else {
        return Err(Standing::Undecided(on_host(format!("what {fast} reads from disks is not known"))));
    };
    let read = format!(
        "for each {op} {slow} reads {} from disks, {fast} {}",
        format_bytes(slow_bytes),
        format_bytes(fast_bytes)
    );
    let below = nested(gap, Layer::Files)?;
    let [of_slow, of_fast] = reads(gap, &below)?;
    if let Some(text) = held_back(gap, &below, of_slow) {
        return Err(Standing::Undecided(told_below(&below, Layer::Files, text)));
    }
    let Some(view) = gap.known_reference() else {
        return Err(Standing::Undecided(gap.not_measured("there is no reference".to_owned())));
    };
    // Over one connection the reads of an op are a part of it. Under load ops wait for those of others as well.
    let lanes = f64::from(view.connections().unwrap_or(1));
    let taken_ns = |bytes: f64, reads: Reads| lanes * bytes * 1e9 / reads.bytes_per_s;
    let [slow_ns, fast_ns] = [taken_ns(slow_bytes, of_slow), taken_ns(fast_bytes, of_fast)];
    let over = view.over(gap.case.plan);
    let worth = format!(
        "{read}: as duel reads them, that takes {} there and {} here {over}",
        format_duration_ns(slow_ns),
        format_duration_ns(fast_ns)
    );
    let Some(whole_ns) = view.slow_ns() else {
        return Err(Standing::Undecided(gap.not_measured(format!("how long the {op} takes is not known"))));
    };
    if slow_ns > MOST_OF_OP * whole_ns {
        let text = format!("{worth}, which is longer than the whole {op} takes: the server reads otherwise");
        return Err(Standing::Undecided(told_below(&below, Layer::Files, text)));
    }
    if lanes > 1.0 && slow_ns < BUSY * whole_ns {
        let text = format!(
            "{worth}, and the {op} takes {}: the device is not what all wait for",
            format_duration_ns(whole_ns)
        );
        return Err(Standing::Undecided(told_below(&below, Layer::Files, text)));
    }
    let share = share_of_log(view, slow_ns - fast_ns).unwrap_or(0.0);
    if share < Flip::NOTEWORTHY {
        let text = format!("{worth}: {} of the gap", percent(share));
        return Err(Standing::Undecided(told_below(&below, Layer::Files, text)));
    }
    let summary = format!(
        "The files of {slow} are read more slowly, whoever reads them. {} That is {} of the gap.",
        Reads::compared([of_slow, of_fast], [&slow, &fast]),
        percent(share)
    );
    let remedy = format!(
        "Compare both files alone, as in the line above, and with `--why`: it asks the device. Look at what lies under {slow}'s files \
         (`findmnt -T FILE`, `lsblk`), whether they lie in pieces (`filefrag -v FILE`), and for limits on the device; a larger cache \
         of the server or of the system has it read less."
    );
    let facts = vec![
        on_host(read),
        told_below(&below, Layer::Files, format!("duel reading the same files: {}", below.tell(&below.comparison))),
    ];
    let told = Told { summary, remedy, facts, further: vec![told_below(&below, Layer::Files, worth)] };
    Ok(fit_by_host(gap, &ENTRY, Some(share), Confidence::Likely, told).with(|fit| fit.below = Some(Layer::Files)))
}
