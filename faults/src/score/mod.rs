//! `faults score`: injects, verifies, lets duel look, and counts how often it is right.

pub(crate) mod duel;
pub(crate) mod judge;
mod keep;
pub(crate) mod stamp;
mod table;
pub(crate) mod terms;
mod totals;
mod wilson;

use crate::case::Case;
use crate::select::select;
use crate::servers::Place;
use crate::world::{Interrupted, Stop, World};
use clap::Args;
use duel::{Duel, How};
use judge::Outcome;
use keep::{Kept, Scored};
use std::path::{Path, PathBuf};
pub(crate) use table::cell;
use terms::Terms;
pub(crate) use totals::share;

/// What is scored, and where the results go.
#[derive(Args, Clone, Debug)]
pub(crate) struct ScoreFlags {
    /// Causes, cases, or beginnings of a case, separated by commas; all without
    #[arg(long, value_delimiter = ',', value_name = "ID,..")]
    only: Vec<String>,
    /// How often each case is put before duel
    #[arg(long, default_value_t = 1)]
    rounds: u32,
    /// The duel to be scored [default: beside this program]
    #[arg(long, value_name = "PATH")]
    duel: Option<PathBuf>,
    /// The table
    #[arg(long, value_name = "FILE", default_value = "faults/SCORE.md")]
    out: PathBuf,
    /// The draws of `faults random`, for the table's first part
    #[arg(long, value_name = "FILE", default_value = "faults/draws.jsonl")]
    draws: PathBuf,
    /// Folder for duel's JSON documents, its archive and the results
    #[arg(long, value_name = "FOLDER", default_value = "target/faults")]
    raw: PathBuf,
    /// Go on from the results in this file (FOLDER/results.jsonl of an earlier score), and add to them
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Do not let duel look at the servers' hosts
    #[arg(long)]
    outside: bool,
    /// Let duel name causes that are not proven yet: shows which ones can be
    #[arg(long)]
    suspects: bool,
    /// Let duel start private twins of the servers: shows what they confirm
    #[arg(long, conflicts_with = "outside")]
    twins: bool,
    /// Let duel make private copies of the databases, as its own leads ask for: shows what they confirm
    #[arg(long, conflicts_with = "outside")]
    copies: bool,
    /// Load time of the comparison, in seconds
    #[arg(long, default_value_t = 20)]
    seconds: u32,
    /// Load time for finding the cause, in seconds
    #[arg(long, default_value_t = 60)]
    why_seconds: u32,
    /// Write the table from the results there are, and measure nothing
    #[arg(long, requires = "resume")]
    table_only: bool,
}

/// Puts all cases before duel, one after the other, and writes the table.
pub(crate) fn score(flags: &ScoreFlags) -> anyhow::Result<()> {
    let cases = select(&flags.only)?;
    let mut kept =
        Kept::open(flags.resume.clone().unwrap_or_else(|| flags.raw.join("results.jsonl")), flags.resume.is_some())?;
    if !flags.table_only {
        terms::ensure_same(flags, kept.results())?;
    }
    let measured = if flags.table_only { Ok(()) } else { measure(flags, &cases, &mut kept) };
    // Also after an interruption: what was measured is shown.
    table::write(&flags.out, &cases, kept.results(), &crate::random::part_of_page(&flags.draws)?)?;
    println!("{} holds the table", flags.out.display());
    measured
}

/// Writes the table anew from the results of the hand-made cases in this file, with this part of draws before them. A file
/// that is not there has none.
pub(crate) fn rewrite(out: &Path, results: &Path, draws: &str) -> anyhow::Result<()> {
    let cases = select(&[])?;
    table::write(out, &cases, &keep::read(results)?, draws)
}

fn measure(flags: &ScoreFlags, cases: &[Case], kept: &mut Kept) -> anyhow::Result<()> {
    let world = World::new(Stop::on_signals()?)?;
    let how = How { raw: flags.raw.clone(), seconds: flags.seconds, why_seconds: flags.why_seconds };
    let duel = Duel::find(flags.duel.as_deref(), how)?;
    let possible: Vec<&Case> = cases.iter().filter(|case| case.unavailable.is_none()).collect();
    let commit = stamp::commit();
    let total = possible.len() * flags.rounds as usize;
    let mut number = 0;
    for round in 1..=flags.rounds {
        for case in &possible {
            number += 1;
            if kept.has(&case.id, round) {
                continue;
            }
            let terms = Terms::of(flags, case.trial.kind());
            let result = one(&world, &duel, case, round, terms)?;
            let result = Scored { terms: Some(terms), commit: commit.clone(), date: stamp::date(), ..result };
            println!("{number}/{total} {} {}", case.id, result.line());
            kept.add(result)?;
        }
    }
    Ok(())
}

/// One case in one round. What goes wrong is a result, too; only an interruption ends all.
fn one(world: &World, duel: &Duel, case: &Case, round: u32, terms: Terms) -> anyhow::Result<Scored> {
    let faulty_place = faulty_place(&case.id, round);
    let mut result = Scored::new(case, round, faulty_place.target_name());
    match try_one(world, duel, case, &mut result, faulty_place, terms) {
        Ok(()) => {}
        Err(error) if error.is::<Interrupted>() => return Err(error),
        Err(error) => {
            result.outcome = Outcome::Failed;
            result.remark = format!("{error:#}");
        }
    }
    Ok(result)
}

fn try_one(
    world: &World,
    duel: &Duel,
    case: &Case,
    result: &mut Scored,
    faulty_place: Place,
    terms: Terms,
) -> anyhow::Result<()> {
    let stage = case.trial.start(world, faulty_place, duel.program())?;
    let bite = stage.verify()?;
    result.verified = bite.figures;
    if !bite.bites {
        result.outcome = Outcome::NotVerified;
        return Ok(());
    }
    world.go_on()?;
    let said = duel.look(world, &*stage, &document_name(case, result.round), terms)?;
    result.file = said.file;
    match said.answer {
        Ok(document) => {
            let judged = judge::judge(&document, case, faulty_place.target_name());
            result.outcome = judged.outcome;
            result.said = judged.said;
            result.call = judged.call;
            result.right = judged.right;
            result.wrongly_blamed = Some(judged.wrongly_blamed);
            result.wrongly_ruled_out = judged.wrongly_ruled_out;
            result.seconds = said.seconds_to_finding;
        }
        Err(words) => {
            result.outcome = Outcome::NoAnswer;
            result.remark = words;
        }
    }
    Ok(())
}

fn document_name(case: &Case, round: u32) -> String {
    format!("{}.{round}", case.id.replace('/', "_"))
}

/// Either side by turns, and not the same for all cases: duel must not be right because the second target always is.
fn faulty_place(id: &str, round: u32) -> Place {
    let sum: u32 = id.bytes().map(u32::from).sum();
    if (sum + round).is_multiple_of(2) { Place::A } else { Place::B }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faulty_side_changes_from_round_to_round_and_from_case_to_case() {
        assert_ne!(faulty_place("a", 1), faulty_place("a", 2));
        let cases = crate::injections::cases();
        let first = cases.iter().filter(|case| faulty_place(&case.id, 1) == Place::A).count();
        assert!(first * 3 > cases.len() && first * 3 < cases.len() * 2, "{first} of {}", cases.len());
    }
}
