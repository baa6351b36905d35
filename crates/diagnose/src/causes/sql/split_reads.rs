//! `disk.split-reads`: for a block of the database the slow side's device is read several times.
//!
//! Both servers read as many blocks for each transaction, and under them one device is read several times as often: the blocks of its
//! file do not lie beside each other, or the file system reads where they lie first. That is what the gap is made of where both devices
//! do about as many reads a second. What looks like it: a smaller memory for blocks, with which the server itself reads more of them; a
//! slower device, which does fewer reads a second; and others who read from the device, for its reads are counted whoever asked.

use super::KINDS;
use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host};
use crate::evidence::database::{counted, same_system};
use crate::gap::{Flip, Gap, percent};
use duel_model::Confidence;

static ENTRY: CauseEntry = CauseEntry {
    id: "disk.split-reads",
    description: "for one block of the database its device is read several times: the file lies in pieces, or the file system \
                  reads first where it lies",
    signature: "as many blocks are read for each transaction, at least 1.5 times as many reads of the device for each block, and \
                the devices do about as many reads a second",
    at_most: "likely",
    needs_machine: false,
};

/// A read of a block for each twenty transactions: with fewer of them other things decide how long a transaction takes.
const FEWEST_READS: f64 = 0.05;
/// So many times as many reads of the device for a block. What lies in one piece takes one; two pieces in half of all blocks are this.
const MORE_PER_BLOCK: f64 = 1.5;
/// By so much blocks and rates may differ and be alike: two caches of one size that fill by chance, two devices under one cap.
const ALIKE: f64 = 1.25;

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    gap.needs_gap_of_means()?;
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    same_system(gap)?;
    let [slow_reads, fast_reads] = counted(gap, "server-device-reads", "how often their devices are read")?;
    let told = format!(
        "for each transaction the device under {slow} is read {slow_reads:.3} times, under {fast} {fast_reads:.3} times"
    );
    if slow_reads <= fast_reads {
        return Err(Standing::RuledOut(gap.evidence(&gap.comparison, told)));
    }
    let open = |text: String| Err(Standing::Undecided(gap.evidence(&gap.comparison, text)));
    let [slow_blocks, fast_blocks] = counted(gap, "server-reads", "how many blocks they read")?;
    let told = format!("{told}; the servers themselves read {slow_blocks:.3} and {fast_blocks:.3} blocks");
    if slow_blocks.min(fast_blocks) < FEWEST_READS || fast_reads <= 0.0 {
        return open(told);
    }
    if slow_blocks > ALIKE * fast_blocks {
        return open(format!("{told}, which is more by itself"));
    }
    if slow_reads / slow_blocks < MORE_PER_BLOCK * fast_reads / fast_blocks {
        return open(told);
    }
    let view = &gap.comparison;
    let (Some(slow_rate), Some(fast_rate)) = (view.slow.rate_per_s, view.fast.rate_per_s) else {
        return open(format!("{told}; how many transactions they do is not known"));
    };
    let [slow_per_s, fast_per_s] = [slow_rate * slow_reads, fast_rate * fast_reads];
    let at = format!("{slow_per_s:.0} reads a second there, {fast_per_s:.0} here");
    if slow_per_s > ALIKE * fast_per_s || fast_per_s > ALIKE * slow_per_s {
        return open(format!("{told}; but the devices are not both at what they can do: {at}"));
    }
    // At one rate of reads a transaction takes as much longer as it takes more of them.
    let share = (slow_reads / fast_reads).ln() / view.log.mid;
    if share < Flip::NOTEWORTHY {
        return open(format!("{told}: {} of the gap", percent(share)));
    }
    let share = share.min(1.0);
    let summary = format!(
        "A block of the database takes several reads of the device under {slow}: {told}. Both devices do about as many reads \
         ({at}); that is {} of the gap.",
        percent(share)
    );
    let remedy = format!(
        "Look whether the files under {slow} lie in pieces (`filefrag -v` tells; copying them anew, or dumping and loading, joins \
         them), whether blocks of the file system are smaller than those of the database, and whether its own metadata fits into the \
         memory that it has (`slabtop`, a larger cache of the file system)."
    );
    let facts = vec![gap.evidence(&gap.comparison, told)];
    Ok(fit_by_host(gap, &ENTRY, Some(share), Confidence::Likely, Told { summary, remedy, facts, further: Vec::new() }))
}
