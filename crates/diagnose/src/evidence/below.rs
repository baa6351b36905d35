//! The gap that work of another kind shows in a layer below the targets, beside the gap that is to be explained.

use crate::cause::Standing;
use crate::gap::{Flip, Gap};
use crate::probes::{FILES, Kind, Mode, PATH};
use duel_model::{Call, Confidence, Evidence, Finding, Layer, NotMade, Probe, sanitize_line};

/// How a layer is asked for and told.
struct Below {
    /// The probe that shows it first.
    first: Kind,
    /// Stands before the ids that its further probes have in the layer above.
    within: &'static str,
    /// What could not be done, where it could not.
    not_done: &'static str,
    /// Of what a cause that is found there is one.
    alone: &'static str,
    /// How the slow side and the fast one compare there, where that side is not slower there beyond doubt.
    compared: fn(Compared, &str, &str) -> String,
}

/// How the slow side does in the layer below.
#[derive(Clone, Copy)]
enum Compared {
    Faster,
    Equal,
    NotSure,
    NotKnown,
}

static FILES_BELOW: Below = Below {
    first: FILES,
    within: "files.",
    not_done: "the servers' files could not be read",
    alone: "Of the files alone",
    compared: |how, slow, fast| match how {
        Compared::Faster => format!("duel reads {slow}'s file faster than {fast}'s"),
        Compared::Equal => format!(
            "duel reads the files of {slow} and {fast} equally fast: what the servers themselves may read is not seen so"
        ),
        Compared::NotSure => format!("whether duel reads {slow}'s file more slowly than {fast}'s is not sure"),
        Compared::NotKnown => "how the servers' files are read is not known of both".to_owned(),
    },
};

static PATH_BELOW: Below = Below {
    first: PATH,
    within: "path.",
    not_done: "the paths alone could not be measured",
    alone: "Of the path alone",
    compared: |how, slow, fast| match how {
        Compared::Faster => format!("exchanges with `duel net serve` are faster on the path to {slow} than to {fast}"),
        Compared::Equal => format!(
            "exchanges with `duel net serve` are equally fast on the paths to {slow} and {fast}: what is done to the server's port \
             alone is not seen so"
        ),
        Compared::NotSure => {
            format!(
                "whether exchanges with `duel net serve` are slower on the path to {slow} than to {fast} is not sure"
            )
        }
        Compared::NotKnown => "how exchanges with `duel net serve` go is not known of both paths".to_owned(),
    },
};

fn below(layer: Layer) -> &'static Below {
    match layer {
        Layer::Files => &FILES_BELOW,
        Layer::Path => &PATH_BELOW,
    }
}

/// The gap of the same pair in a layer below, the same side being slow. Wants the probe that shows it.
pub(crate) fn nested<'a>(gap: &Gap<'a>, layer: Layer) -> Result<Gap<'a>, Standing> {
    let open = |why: String| Standing::Undecided(gap.not_measured(why));
    let told = below(layer);
    let Some(below) = gap.case.layer(layer) else {
        // Whatever has become of it, it was asked for once.
        return Err(match gap.case.outcome(&told.first.id(gap.mode)) {
            Some(outcome) => {
                let why = outcome.unavailable.as_ref().map_or("it told nothing", NotMade::told);
                open(format!("{}: {}", told.not_done, sanitize_line(why)))
            }
            None => match told.first.possible(&gap.case) {
                Ok(()) => Standing::Wants(vec![told.first.probe(&gap.case, gap.mode)]),
                Err(why) => open(why),
            },
        });
    };
    let compared = |how: Compared| open((told.compared)(how, &gap.slow_name(), &gap.fast_name()));
    let pair = below.main_pairs().find(|(index, _)| *index == gap.slow.max(gap.fast));
    let (index, pair) = pair.ok_or_else(|| compared(Compared::NotKnown))?;
    // What lies below is judged by its rates.
    if pair.metric != below.main_metric() {
        return Err(compared(Compared::NotSure));
    }
    match Gap::open(*below, index, pair) {
        Some(nested) if nested.slow == gap.slow => Ok(nested),
        Some(_) => Err(compared(Compared::Faster)),
        None if pair.call == Call::Equivalent => Err(compared(Compared::Equal)),
        None => Err(compared(Compared::NotSure)),
    }
}

/// Evidence from a layer below.
pub(crate) fn told_below(below: &Gap<'_>, layer: Layer, text: String) -> Evidence {
    outward(below.evidence(&below.comparison, text), layer)
}

/// A probe that a layer below asks for, as it is asked for from above.
pub(crate) fn asked_from_above(layer: Layer, probe: Probe) -> Probe {
    Probe { id: format!("{}{}", below(layer).within, probe.id), below: Some(layer), ..probe }
}

/// A probe that was asked for from above, as the layer below knows it; `None`: it is no such probe, or the one that shows that layer first.
pub fn as_below(probe: &Probe) -> Option<Probe> {
    let id = probe.id.strip_prefix(below(probe.below?).within)?;
    Some(Probe { id: id.to_owned(), below: None, ..probe.clone() })
}

/// What a finding of a layer below adds to the one that says that it is slower. Where that one by itself is possible at most, it is likely
/// for the part that the finding makes of the difference there.
pub(crate) fn deepen(finding: &mut Finding, layer: Layer, found: &Finding) {
    let cause = sanitize_line(&found.cause);
    let stands = match found.confidence {
        Confidence::Possible => "possible",
        Confidence::Likely => "likely",
        Confidence::Confirmed => "confirmed",
    };
    finding.summary.push_str(&format!(" {} {cause} is {stands}: {}", below(layer).alone, found.summary));
    finding.remedy = format!("{} {}", found.remedy, finding.remedy);
    let part = finding.explains.zip(found.explains).map(|(whole, part)| whole * part);
    if finding.confidence < Confidence::Likely && part.is_some_and(|part| part >= Flip::NOTEWORTHY) {
        (finding.confidence, finding.explains) = (Confidence::Likely, part);
    }
    // What the first look there showed is told above.
    let further = found.evidence.iter().filter(|line| line.probe != "comparison").cloned();
    finding.evidence.extend(further.map(|line| outward(line, layer)));
}

/// A line of a layer below, with the name that its probe has above.
fn outward(line: Evidence, layer: Layer) -> Evidence {
    let told = below(layer);
    let probe = match &*line.probe {
        "comparison" | "first-contact" => told.first.id(Mode::Alone),
        other => format!("{}{other}", told.within),
    };
    Evidence { probe, about: None, ..line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_layer_is_told_by_itself_and_shown_by_a_probe_of_its_own() {
        for layer in [Layer::Files, Layer::Path] {
            let told = below(layer);
            assert_eq!(told.first.entry.below, Some(layer));
            assert!(!told.first.id(Mode::Alone).starts_with(told.within), "else it would pass for a further one");
        }
    }
}
