//! The parent: children in mirrored order, then the judgement.

use crate::judge::{Circumstances, judge};
use crate::mask::{self, Architecture};
use crate::order::{LensError, LensOrder};
use crate::rates::Sample;
use crate::spawn::{self, ChildReading};
use crate::work::BLOCK_BYTES;
use crate::{by_hand, capabilities, elf};
use duel_model::{Capabilities, LensIdentity, LensMeans, LensReading, LensTreatment};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// A full TLS record, the last of [`BLOCK_BYTES`].
const LARGEST: &[u32] = BLOCK_BYTES.split_at(BLOCK_BYTES.len() - 1).1;

/// Every treatment once, and once more in the reverse order: what drifts evenly hits all alike, and each treatment has a
/// second process to tell how much it differs from itself.
fn treatments() -> impl ExactSizeIterator<Item = LensTreatment> {
    let all = LensTreatment::ALL;
    let mut order = all.to_vec();
    order.extend(all.iter().rev());
    order.into_iter()
}

/// A turn of all treatments takes this part of the budget.
const TURNS_IN_BUDGET: u64 = 2;
/// Most turns. On a machine that is busy with other work a turn may tell nothing, and the next one may. Each is judged by
/// itself; the differences that are looked for are so much larger than the limits that looking four times does not make one
/// up.
const MOST_TURNS: usize = 4;

/// Measures a libcrypto in child processes, and judges what they found. Takes half of the budget where one turn tells
/// everything, and at most twice the budget.
///
/// # Errors
///
/// When the library cannot be read, loaded, or measured as the server runs it or without a mask. What fails under a mask
/// only is told in [`LensReading::unavailable`].
pub fn measure(order: &LensOrder) -> Result<LensReading, LensError> {
    look_at(order)?;
    let architecture = Architecture::here();
    let offer = mask::offer();
    let capabilities = capabilities::of_server(order, architecture);
    let mut turn = 0;
    loop {
        turn += 1;
        let heard = turn_of(order, architecture)?;
        let judgement = judge(
            &heard.samples,
            &Circumstances {
                cpu_has_aes: offer.map(|offer| offer.aes),
                cpu_has_vectors: offer.map(|offer| offer.vectors),
                environment_masks: mask::is_set(&order.environment),
                server_has_aes: capabilities.as_ref().and_then(Capabilities::has_aes),
                masks_known: architecture.is_some(),
                identity: heard.identity.clone(),
            },
        );
        if judgement.is_decided() || turn == MOST_TURNS {
            return Ok(LensReading {
                library: spawn::shown(order),
                means: LensMeans::Child,
                identity: heard.identity,
                hardware: judgement.hardware,
                assembly: judgement.assembly,
                by_hand: by_hand::lines(order, capabilities.as_ref(), architecture),
                capabilities,
                effects: judgement.effects,
                figures: judgement.figures,
                unavailable: heard.unavailable,
                corroboration: judgement.corroboration,
            });
        }
    }
}

/// What the children of one turn told.
#[derive(Default)]
struct Heard {
    identity: LensIdentity,
    samples: Vec<Sample>,
    unavailable: Vec<String>,
}

fn turn_of(order: &LensOrder, architecture: Option<Architecture>) -> Result<Heard, LensError> {
    let mut heard = Heard::default();
    let mut failed = Vec::new();
    let each_ns = order.budget_ns / TURNS_IN_BUDGET / treatments().len() as u64;
    for treatment in treatments() {
        let is_mask = matches!(treatment, LensTreatment::AesMasked | LensTreatment::AllMasked);
        if failed.contains(&treatment) || (is_mask && architecture.is_none()) {
            continue;
        }
        let environment = mask::environment(&order.environment, treatment, architecture);
        // How the rate grows with the size is asked of the server's environment alone; masks are judged at the largest.
        let blocks = if treatment == LensTreatment::AsIs { &BLOCK_BYTES[..] } else { LARGEST };
        match spawn::run(order, &environment, each_ns, blocks) {
            Ok(reading) => {
                if treatment == LensTreatment::Whole {
                    heard.identity = reading.identity.clone();
                }
                for (op, why) in &reading.absent {
                    say_once(&mut heard.unavailable, format!("{}: {why}", op.name()));
                }
                heard.samples.extend(of_child(reading, treatment));
            }
            Err(error) if is_mask => {
                say_once(&mut heard.unavailable, format!("{}: {error}", treatment.name()));
                failed.push(treatment);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(heard)
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
    // Before it is opened: opening a pipe would wait for its other end.
    if order.opened.is_none() {
        let unreadable = |error| LensError::Unreadable { path: path.clone(), error };
        if !std::fs::metadata(&order.library).map_err(unreadable)?.is_file() {
            return Err(LensError::NotALibrary { path, what: "is not a file".into() });
        }
    }
    let head =
        beginning(order, elf::HEAD_BYTES).map_err(|error| LensError::Unreadable { path: path.clone(), error })?;
    let (class, machine) = elf::here();
    match elf::fault(&head, class, machine) {
        // macOS has another format, and its loader says what is wrong.
        Some(what) if cfg!(not(target_vendor = "apple")) => Err(LensError::NotALibrary { path, what }),
        _ => Ok(()),
    }
}

/// The first bytes of the library's file, at most so many.
pub(crate) fn beginning(order: &LensOrder, most_bytes: usize) -> io::Result<Vec<u8>> {
    let mut head = vec![0; most_bytes];
    let opened = match &order.opened {
        Some(opened) => Arc::clone(opened),
        None => Arc::new(File::open(&order.library)?),
    };
    let mut filled = 0;
    // Not from where the last reader stopped: all share one place in the file.
    while let Some(rest) = head.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match opened.read_at(rest, filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    head.truncate(filled);
    Ok(head)
}
