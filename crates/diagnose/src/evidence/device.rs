//! What the devices under both sides did, by the system's counters of them.

use crate::cause::{Standing, shown_flip};
use crate::gap::{Flip, Gap, Look, View, percent};
use crate::probes::{DEEPER, Kind, LARGER_BLOCK, SMALLER_FILE};
use duel_model::{Evidence, Id, TargetObservation, WorkloadPlan, format_bytes, format_count};

/// What a device did for each op.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PerOp {
    pub(crate) reads: f64,
    pub(crate) writes: f64,
    pub(crate) read_bytes: f64,
    pub(crate) bytes: f64,
}

impl PerOp {
    /// `None`: its counters are not known, or no op was done.
    pub(crate) fn of(seen: &TargetObservation) -> Option<Self> {
        let counted = |name: &'static str| seen.counted_per_op.get(&Id::new(name)).copied();
        let read_bytes = counted("device-read-bytes")?;
        Some(Self {
            reads: counted("device-reads")?,
            writes: counted("device-writes")?,
            read_bytes,
            bytes: read_bytes + counted("device-written-bytes")?,
        })
    }

    pub(crate) fn ios(self) -> f64 {
        self.reads + self.writes
    }
}

/// What a plan of files and devices has set.
pub(crate) fn setting<'a>(gap: &Gap<'a>, name: &str) -> Option<&'a str> {
    let WorkloadPlan::Plain(kind) = &gap.case.plan.workload else { return None };
    Some(kind.get(kind.schema.param(name)?))
}

/// What the devices of the slow and the fast side did for each op of an experiment.
pub(crate) fn of_view(gap: &Gap<'_>, view: &View<'_>) -> Result<[PerOp; 2], Standing> {
    match [view.slow, view.fast].map(PerOp::of) {
        [Some(slow), Some(fast)] => Ok([slow, fast]),
        _ => Err(Standing::Undecided(gap.not_measured("what the devices did is not known of both".to_owned()))),
    }
}

/// What the slow side's device does per second, and how that answers to larger blocks and to more ops in flight. A device that has
/// no cap does more of something with either: bytes with larger blocks, ops with more of them in flight.
pub(crate) struct Answers<'a> {
    pub(crate) ios: Answer,
    pub(crate) bytes: Answer,
    /// At larger blocks and with more ops in flight.
    pub(crate) views: [View<'a>; 2],
    /// What the slow side's device did for each op at the reference.
    done: PerOp,
}

/// A rate of the device, per second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    pub(crate) at_reference: f64,
    pub(crate) at_larger_blocks: f64,
    pub(crate) in_flight: f64,
    /// What the fast side's device does more of it per second, as a share of the log of the gap.
    share: f64,
}

/// How a rate stands to the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Same,
    More,
    Less,
}

/// Up to half as much more a rate is the same: a throttle lets through what was saved up while others had their turn, so that short slots
/// scatter (a cap of 500 calls per second gave 569 in a comparison and 450 in a probe). What is not capped moves by more than that: blocks
/// are 16 times as large, and 8 times as many are in flight.
const SAME: f64 = 1.5;
/// A device does at least so much of what its group may do, if that is what holds it back (450 of 500: see [`SAME`]).
pub(crate) const AT_THE_LIMIT: f64 = 0.85;
/// Of this share of its calls it is said that they are all.
const NEARLY_ALL: f64 = 0.9;
/// From here on nearly each op reaches the device.
const REACHES: f64 = 0.5;
/// So few calls in all of an experiment are held back by no cap: the lowest that are set let many times as many pass in each second.
const HARDLY_ANY: f64 = 10.0;
/// The same of bytes: a tenth of what the lowest caps that are set, 1 MB/s, let pass in each second.
const HARDLY_ANY_BYTES: f64 = 1e5;
/// Larger blocks have to reach the device as larger calls, by more than two rates scatter: else calls and bytes are not told apart.
/// Read-ahead and write-back make calls of their own sizes, and what is too large for one call is cut (256 KiB to some MiB).
const GROWN: f64 = SAME * SAME;

impl Answer {
    pub(crate) fn by_blocks(self) -> Change {
        change(self.at_larger_blocks / self.at_reference)
    }

    pub(crate) fn by_depth(self) -> Change {
        change(self.in_flight / self.at_reference)
    }

    /// That the fast side's device does so much more of it per second as the gap is wide. Where it does not, the gap is made before
    /// ops reach the devices: one side reads ahead, or moves more for each op.
    pub(crate) fn makes_gap(self, gap: &Gap<'_>, what: &str) -> Result<(), Standing> {
        let more = format!("{} of the gap", percent(self.share));
        let text = format!(
            "that {}'s device does more {what} per second than {}'s is {more}",
            gap.fast_name(),
            gap.slow_name()
        );
        match self.share {
            share if share >= Flip::EXPLAINS => Ok(()),
            share if share < Flip::NOTEWORTHY => Err(Standing::RuledOut(gap.at_reference(text))),
            _ => Err(Standing::Undecided(gap.at_reference(text))),
        }
    }
}

fn change(ratio: f64) -> Change {
    match ratio {
        ratio if ratio > SAME => Change::More,
        ratio if ratio < 1.0 / SAME => Change::Less,
        // What is not a number is no proof that anything stayed the same.
        ratio if ratio.is_finite() => Change::Same,
        _ => Change::Less,
    }
}

impl<'a> Answers<'a> {
    /// What was seen of the slow side; or what is missing.
    pub(crate) fn of(gap: &Gap<'a>) -> Result<Self, Standing> {
        let open = |why: &str| Standing::Undecided(gap.not_measured(why.to_owned()));
        let reference = gap.known_reference().ok_or_else(|| open("there is no reference"))?;
        let [slow, fast] = of_view(gap, reference)?;
        if slow.ios() < REACHES {
            let ops = reference.slow.ok as f64;
            let (calls, bytes) = (slow.ios() * ops, slow.bytes * ops);
            let text = format!("for {ops:.0} ops on {} its device was called {calls:.0} times", gap.slow_name());
            return Err(if calls < HARDLY_ANY && bytes < HARDLY_ANY_BYTES {
                Standing::RuledOut(gap.at_reference(text))
            } else {
                // Neighbours that were gathered into one call wait for it as well, and so does each op behind one that was not in memory.
                Standing::Undecided(
                    gap.at_reference(format!("{text}; whether it may do more is told past the page cache (--direct)")),
                )
            });
        }
        let looks = [LARGER_BLOCK, DEEPER].map(|kind| shown(gap, kind));
        let wanted: Vec<_> = looks.iter().filter_map(|look| look.as_ref().err().and_then(wants)).collect();
        if !wanted.is_empty() {
            return Err(Standing::Wants(wanted));
        }
        let [larger, deeper] = looks;
        let (larger, deeper) = (larger?, deeper?);
        let per_s = |view: &View<'_>| Some((view.slow.rate_per_s?, PerOp::of(view.slow)?));
        let (Some(here), Some(there), Some(many)) = (per_s(reference), per_s(&larger), per_s(&deeper)) else {
            return Err(open("what the slow side's device did is not known in each experiment"));
        };
        let grown = (there.1.bytes / there.1.ios()) / (here.1.bytes / here.1.ios());
        if grown.is_nan() || grown < GROWN {
            let text =
                format!("larger blocks reach {}'s device in calls that are {grown:.1} times as large", gap.slow_name());
            return Err(Standing::Undecided(gap.evidence(&larger, text)));
        }
        let answer = |of: fn(PerOp) -> f64| {
            let [at_reference, at_larger_blocks, in_flight] = [here, there, many].map(|(rate, done)| rate * of(done));
            // The pair's ratio is sharper than two separate rates.
            let share = 1.0 + (of(fast) / of(slow)).ln() / reference.log.mid;
            Answer { at_reference, at_larger_blocks, in_flight, share }
        };
        let (ios, bytes) = (answer(PerOp::ios), answer(|done| done.bytes));
        Ok(Self { ios, bytes, views: [larger, deeper], done: slow })
    }

    /// The limit that control groups set on what the slow side's device does of this per second, by the facts that tell those of reads
    /// and of writes. `None` where there is none, where the device both reads and writes, or where it does not keep to the limit: what
    /// holds it back then is something else.
    pub(crate) fn limit(&self, gap: &Gap<'_>, answer: Answer, [of_reads, of_writes]: [&str; 2]) -> Option<u64> {
        let is_all = |part: f64| part >= NEARLY_ALL * self.done.ios();
        let name = match self.done {
            PerOp { reads, .. } if is_all(reads) => of_reads,
            PerOp { writes, .. } if is_all(writes) => of_writes,
            _ => return None,
        };
        let limit = gap.count(gap.slow, name)?;
        // A device that does less by itself is held back by something else; a group lets through what it has saved up.
        let [here, larger, many] =
            [answer.at_reference, answer.at_larger_blocks, answer.in_flight].map(|per_s| per_s / limit as f64);
        // Calls in flight may be merged on their way, behind what counts them: they are fewer then.
        let keeps = [here, larger].iter().all(|share| (AT_THE_LIMIT..=SAME).contains(share)) && many <= SAME;
        keeps.then_some(limit)
    }

    /// What was seen, as evidence.
    pub(crate) fn told(&self, gap: &Gap<'a>) -> [Evidence; 2] {
        let slow = gap.slow_name();
        let ios = |per_s: f64| format_count(per_s.round().max(0.0) as u64);
        let line = |how: &str, ios_per_s: f64, bytes_per_s: f64| {
            format!(
                "{how}: {slow}'s device does {} calls and {} per second, instead of {} and {}",
                ios(ios_per_s),
                format_bytes(bytes_per_s),
                ios(self.ios.at_reference),
                format_bytes(self.bytes.at_reference)
            )
        };
        [
            gap.evidence(
                &self.views[0],
                line(LARGER_BLOCK.phrase(), self.ios.at_larger_blocks, self.bytes.at_larger_blocks),
            ),
            gap.evidence(&self.views[1], line(DEEPER.phrase(), self.ios.in_flight, self.bytes.in_flight)),
        ]
    }
}

/// That the time does not go into the way from one place to another: a disk with mechanics does as many calls per second with larger
/// blocks and with more ops in flight, too. Within a small part of it ops take less time then.
pub(crate) fn without_seeks(gap: &Gap<'_>) -> Result<(), Standing> {
    let has_mechanics = gap.fact(gap.slow, |facts| facts.is("disk.is_rotational")) != Some(false);
    if !has_mechanics || !setting(gap, "op").is_some_and(|op| op.starts_with("rand")) {
        return Ok(());
    }
    let flip = shown_flip(gap, SMALLER_FILE)?;
    if flip.is_negligible() {
        return Ok(());
    }
    let text = format!("{}: it may be the way from one place to another that takes the time", gap.tell_flip(&flip));
    Err(Standing::Undecided(gap.evidence(&flip.view, text)))
}

/// What a probe showed that is not held against the gap.
fn shown<'a>(gap: &Gap<'a>, kind: Kind) -> Result<View<'a>, Standing> {
    match gap.look(kind) {
        Look::Shown(view) => Ok(view),
        Look::NotAsked(probe) => Err(Standing::Wants(vec![probe])),
        Look::Missing(why) => Err(Standing::Undecided(gap.not_measured(why))),
    }
}

fn wants(standing: &Standing) -> Option<duel_model::Probe> {
    match standing {
        Standing::Wants(probes) => probes.first().cloned(),
        _ => None,
    }
}
