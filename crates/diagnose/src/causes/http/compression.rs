//! `http.compression`: the slow side spends its time on compressing responses.
//!
//! Seen in `Content-Encoding`; shown by asking all targets not to compress. Where the fast side does not compress, that
//! is the proof. Where both do, a slower CPU compresses more slowly too, and the flip takes work from both: then nothing
//! is said unless the settings differ (another encoding, or a smaller output, as a higher level has it) and the whole
//! gap goes away, as it would not on a slower CPU, which is slow without compression as well; and it is likely at most.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit, moved_little, needs_http, of_both, shown_flip};
use crate::gap::Gap;
use crate::probes::{IDENTITY, Mode};
use duel_model::{Confidence, format_bytes, sanitize_line, web};

static ENTRY: CauseEntry = CauseEntry {
    id: "http.compression",
    description: "the server compresses each response while it is asked for, and that takes longer than sending it plain",
    signature: "the slow side compresses; the gap goes away without",
    at_most: "confirmed; likely where both compress",
    needs_machine: false,
};

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    needs_http(gap)?;
    let unknown = "what the responses are encoded with is not known";
    let [of_slow, of_fast] = of_both(gap, unknown, |side| encoding(gap, side))?;
    let Some(of_slow) = of_slow else {
        let whose = if of_fast.is_none() { "the responses are".to_owned() } else { format!("{slow}'s are") };
        return Err(Standing::RuledOut(gap.first_contact(format!("{whose} not compressed"))));
    };
    let sizes = [gap.slow, gap.fast].map(|side| gap.case.comparison.get(side).and_then(|seen| seen.body_bytes_per_op));
    let both = of_fast.is_some();
    if of_fast == Some(of_slow) {
        match sizes {
            // Outputs of the same settings on the same content agree to the byte; half a percent is for a date.
            [Some(slow_bytes), Some(fast_bytes)] if slow_bytes < 0.995 * fast_bytes => {}
            _ => {
                let text = format!("both compress with {}, {slow} no further than {fast}", sanitize_line(of_slow));
                return Err(Standing::Undecided(gap.first_contact(text)));
            }
        }
    }
    let flip = shown_flip(gap, IDENTITY)?;
    if !flip.moved() {
        return Err(moved_little(gap, &flip));
    }
    if both && (!flip.confirms() || gap.mode == Mode::Loaded) {
        let text = format!("{}: a slower CPU could show like that as well", gap.tell_flip(&flip));
        return Err(Standing::Undecided(gap.evidence(&flip.view, text)));
    }
    let shown = |encoding: Option<&str>, bytes: Option<f64>| {
        let size = bytes.map_or_else(String::new, |bytes| format!(" ({})", format_bytes(bytes)));
        format!("{}{size}", encoding.map_or_else(|| "uncompressed".to_owned(), sanitize_line))
    };
    let (slow_sends, fast_sends) = (shown(Some(of_slow), sizes[0]), shown(of_fast, sizes[1]));
    let confidence = if flip.confirms() && !both { Confidence::Confirmed } else { Confidence::Likely };
    let told = Told {
        summary: format!(
            "{slow} spends its time on compressing responses: it sends {slow_sends}, {fast} {fast_sends}. Without \
             compression, {} of the gap is gone.",
            flip.percent()
        ),
        remedy: format!(
            "On {slow}: compress once instead of each time (nginx `gzip_static on` with .gz files beside the \
             originals, or a cache), lower the level (`gzip_comp_level 1`), and leave out what does not shrink \
             (`gzip_types`, `gzip_min_length`)."
        ),
        facts: vec![gap.evidence(&gap.comparison, format!("{slow} sends {slow_sends}, {fast} {fast_sends}"))],
        further: Vec::new(),
    };
    Ok(fit(gap, &ENTRY, &flip, confidence, told))
}

/// What a side's responses are compressed with; the outer `None`: not known.
fn encoding<'a>(gap: &Gap<'a>, side: usize) -> Option<Option<&'a str>> {
    let told = gap.text(side, web::CONTENT_ENCODING);
    // No field was seen. That means "not compressed" only if a response was seen at all.
    let seen = || gap.fact(side, |seen| seen.value(web::STATUS).or(seen.value(web::BODY_BYTES))).is_some();
    match told {
        Some(encoding) => Some(Some(encoding).filter(|encoding| *encoding != "identity")),
        None => seen().then_some(None),
    }
}
