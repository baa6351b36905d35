//! The parent: children in mirrored order, then the judgement.

use crate::judge::{Circumstances, Sample, judge};
use crate::mask::{self, Architecture};
use crate::order::{LensError, LensOrder};
use crate::spawn::{self, ChildReading};
use crate::{by_hand, elf};
use duel_model::{LensIdentity, LensMeans, LensReading, LensTreatment};
use std::fs::File;
use std::io::Read;

/// Every treatment once, and once more in the reverse order: what drifts evenly hits all alike, and each treatment has a
/// second process to tell how much it differs from itself.
fn treatments() -> impl ExactSizeIterator<Item = LensTreatment> {
    let all = LensTreatment::ALL;
    let mut order = all.to_vec();
    order.extend(all.iter().rev());
    order.into_iter()
}

/// Measures a libcrypto in child processes, and judges what they found.
///
/// # Errors
///
/// When the library cannot be read, loaded, or measured as the server runs it or without a mask. What fails under a mask
/// only is told in [`LensReading::unavailable`].
pub fn measure(order: &LensOrder) -> Result<LensReading, LensError> {
    look_at(order)?;
    let architecture = Architecture::here();
    let mut identity = LensIdentity::default();
    let mut samples = Vec::new();
    let mut unavailable = Vec::new();
    let mut failed = Vec::new();
    let each_ns = order.budget_ns / treatments().len() as u64;
    for treatment in treatments() {
        let is_mask = matches!(treatment, LensTreatment::AesMasked | LensTreatment::AllMasked);
        if failed.contains(&treatment) || (is_mask && architecture.is_none()) {
            continue;
        }
        let environment = mask::environment(&order.environment, treatment, architecture);
        match spawn::run(order, &environment, each_ns) {
            Ok(reading) => {
                if treatment == LensTreatment::Whole {
                    identity = reading.identity.clone();
                }
                for (op, why) in &reading.absent {
                    say_once(&mut unavailable, format!("{}: {why}", op.name()));
                }
                samples.extend(of_child(reading, treatment));
            }
            Err(error) if is_mask => {
                say_once(&mut unavailable, format!("{}: {error}", treatment.name()));
                failed.push(treatment);
            }
            Err(error) => return Err(error),
        }
    }
    let offer = mask::offer();
    let judgement = judge(
        &samples,
        &Circumstances {
            cpu_has_aes: offer.map(|offer| offer.aes),
            cpu_has_vectors: offer.map(|offer| offer.vectors),
            masks_known: architecture.is_some(),
            identity: identity.clone(),
        },
    );
    Ok(LensReading {
        library: spawn::shown(order),
        means: LensMeans::Child,
        identity,
        hardware: judgement.hardware,
        assembly: judgement.assembly,
        effects: judgement.effects,
        figures: judgement.figures,
        unavailable,
        corroboration: judgement.corroboration,
        by_hand: by_hand::lines(&order.library, &order.environment, architecture),
    })
}

fn of_child(reading: ChildReading, treatment: LensTreatment) -> impl Iterator<Item = Sample> {
    reading.figures.into_iter().map(move |figure| Sample {
        op: figure.op,
        block_bytes: figure.block_bytes,
        treatment,
        rounds_per_s: figure.rounds_per_s,
        cpu_ns: figure.cpu_ns,
        wall_ns: figure.wall_ns,
    })
}

fn say_once(said: &mut Vec<String>, sentence: String) {
    if !said.contains(&sentence) {
        said.push(sentence);
    }
}

/// Looks at the file before any process is started: most mistakes can be told better than the loader would.
fn look_at(order: &LensOrder) -> Result<(), LensError> {
    let path = spawn::shown(order);
    let place = order.open_at.as_ref().unwrap_or(&order.library);
    let unreadable = |error| LensError::Unreadable { path: path.clone(), error };
    // Before it is opened: opening a pipe would wait for its other end.
    if !std::fs::metadata(place).map_err(unreadable)?.is_file() {
        return Err(LensError::NotALibrary { path, what: "is not a file".into() });
    }
    let file = File::open(place).map_err(unreadable)?;
    let mut head = Vec::new();
    file.take(elf::HEAD_BYTES as u64).read_to_end(&mut head).map_err(unreadable)?;
    let (class, machine) = elf::here();
    match elf::fault(&head, class, machine) {
        // macOS has another format, and its loader says what is wrong.
        Some(what) if cfg!(not(target_vendor = "apple")) => Err(LensError::NotALibrary { path, what }),
        _ => Ok(()),
    }
}
