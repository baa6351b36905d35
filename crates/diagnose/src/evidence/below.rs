//! The gap that work of another kind shows in a layer below the targets, beside the gap that is to be explained.

use crate::case::Case;
use crate::cause::Standing;
use crate::evidence::device::{PerOp, setting};
use crate::gap::Gap;
use crate::probes::{FILES, Mode};
use duel_model::{Call, Confidence, Evidence, Finding, Probe, format_bytes, format_count, sanitize_line};

/// Nearly each read has to reach the device: what memory answers tells nothing of it.
const REACHES: f64 = 0.5;
/// So many times as many reads of the device for one of ours: two pieces in half of all are this.
const MORE_PER_READ: f64 = 1.5;

/// What reading a side's file does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Reads {
    pub(crate) bytes_per_s: f64,
    /// Of ours, per second, each of so many bytes, so many at a time.
    per_s: f64,
    bytes: f64,
    at_a_time: u32,
    /// Of the device, for one of ours.
    of_device: f64,
}

impl Reads {
    /// Both sides' in a sentence, slow side first.
    pub(crate) fn compared([slow, fast]: [Self; 2], [slow_name, fast_name]: [&str; 2]) -> String {
        let per_s = |reads: Self| format_count(reads.per_s.round() as u64);
        let at_a_time = if slow.at_a_time > 1 { format!(", {} at a time", slow.at_a_time) } else { String::new() };
        let mut text = format!(
            "Of reads of {} at random places{at_a_time}, {slow_name}'s file takes {} per second, {fast_name}'s {}.",
            format_bytes(slow.bytes),
            per_s(slow),
            per_s(fast)
        );
        if slow.of_device > MORE_PER_READ * fast.of_device {
            text.push_str(&format!(
                " For each of them {slow_name}'s device is read {:.1} times, {fast_name}'s {:.1} times.",
                slow.of_device, fast.of_device
            ));
        }
        text
    }
}

/// The gap of the same pair in the layer below, the same side being slow. Wants the probe that shows it.
pub(crate) fn nested<'a>(gap: &Gap<'a>) -> Result<Gap<'a>, Standing> {
    let open = |why: String| Standing::Undecided(gap.not_measured(why));
    let Some(below) = gap.case.below else {
        // Whatever has become of it, it was asked for once.
        return Err(match gap.case.outcome(&FILES.id(gap.mode)) {
            Some(outcome) => {
                let why = outcome.unavailable.as_deref().unwrap_or("it told nothing");
                open(format!("the servers' files could not be read: {}", sanitize_line(why)))
            }
            None => match FILES.possible(&gap.case) {
                Ok(()) => Standing::Wants(vec![FILES.probe(&gap.case, gap.mode)]),
                Err(why) => open(why),
            },
        });
    };
    let pair = below.main_pairs().find(|(index, _)| *index == gap.slow.max(gap.fast));
    let (index, pair) = pair.ok_or_else(|| open("how the servers' files are read is not known of both".to_owned()))?;
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    match Gap::open(*below, index, pair) {
        Some(nested) if nested.slow == gap.slow => Ok(nested),
        Some(_) => Err(open(format!("duel reads {slow}'s file faster than {fast}'s"))),
        None if pair.call == Call::Equivalent => Err(open(format!(
            "duel reads the files of {slow} and {fast} equally fast: what the servers themselves may read is not seen so"
        ))),
        None => Err(open(format!("whether duel reads {slow}'s file more slowly than {fast}'s is not sure"))),
    }
}

/// What was read on either side, slow side first.
pub(crate) fn reads(gap: &Gap<'_>, below: &Gap<'_>) -> Result<[Reads; 2], Standing> {
    let open = |why: String| Standing::Undecided(gap.not_measured(why));
    let bytes = setting(below, "block").and_then(|bytes| bytes.parse::<f64>().ok());
    let at_a_time = below.case.plan.lanes();
    let view = &below.comparison;
    let [slow, fast] = [(gap.slow, view.slow), (gap.fast, view.fast)].map(|(side, seen)| {
        let (Some(bytes), Some(per_s), Some(done)) = (bytes, seen.rate_per_s, PerOp::of(seen)) else {
            return Err(open(format!("what the device under {} did is not known", gap.name(side))));
        };
        if done.reads < REACHES {
            return Err(open(format!(
                "of 100 reads of {}'s file {:.0} reach its device",
                gap.name(side),
                100.0 * done.reads
            )));
        }
        Ok(Reads { bytes_per_s: per_s * bytes, per_s, bytes, at_a_time, of_device: done.reads })
    });
    Ok([slow?, fast?])
}

/// Evidence from the layer below.
pub(crate) fn told_below(below: &Gap<'_>, text: String) -> Evidence {
    outward(below.evidence(&below.comparison, text))
}

/// Stands before the ids that probes have in the layer below.
const WITHIN: &str = "files.";

/// A probe that the layer below asks for, as it is asked for from above.
pub(crate) fn asked_from_above(probe: Probe, case: &Case<'_>) -> Probe {
    let below = FILES.probe(case, Mode::Alone).below;
    Probe { id: format!("{WITHIN}{}", probe.id), below, ..probe }
}

/// A probe that was asked for from above, as the layer below knows it; `None`: it is no such probe, or the one that shows that layer first.
pub fn as_below(probe: &Probe) -> Option<Probe> {
    let id = probe.id.strip_prefix(WITHIN).filter(|_| probe.below.is_some())?;
    Some(Probe { id: id.to_owned(), below: None, ..probe.clone() })
}

/// What a finding of the layer below adds to the one that says that it is slower.
pub(crate) fn deepen(finding: &mut Finding, below: &Finding) {
    let cause = sanitize_line(&below.cause);
    let stands = match below.confidence {
        Confidence::Possible => "possible",
        Confidence::Likely => "likely",
        Confidence::Confirmed => "confirmed",
    };
    finding.summary.push_str(&format!(" Of the files alone {cause} is {stands}: {}", below.summary));
    finding.remedy = format!("{} {}", below.remedy, finding.remedy);
    // What the first look there showed is told above.
    finding.evidence.extend(below.evidence.iter().filter(|line| line.probe != "comparison").cloned().map(outward));
}

/// A line of the layer below, with the name that its probe has above.
fn outward(line: Evidence) -> Evidence {
    let probe = match &*line.probe {
        "comparison" | "first-contact" => FILES.id(Mode::Alone),
        other => format!("{WITHIN}{other}"),
    };
    Evidence { probe, about: None, ..line }
}
