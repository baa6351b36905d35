//! `faults list` and `faults check`.

use crate::case::{Bite, Case};
use crate::select::select;
use crate::servers::Place;
use crate::world::{Interrupted, Stop, World, beside};
use std::io::Write;
use std::process::ExitCode;

/// Prints a line for each case.
pub(crate) fn list(ids: &[String]) -> anyhow::Result<()> {
    let cases = select(ids)?;
    let mut text = String::new();
    for case in &cases {
        text.push_str(&format!("{}\n", case.id));
        if let Some(why) = &case.unavailable {
            text.push_str(&format!("    not available here: {why}\n"));
        }
    }
    let there = cases.iter().filter(|case| case.unavailable.is_none()).count();
    text.push_str(&format!("{} cases, {there} of them available here\n", cases.len()));
    match std::io::stdout().write_all(text.as_bytes()) {
        // Who reads has seen enough, as `head` does.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Injects and verifies; prints a line for each case.
pub(crate) fn check(ids: &[String]) -> anyhow::Result<ExitCode> {
    let world = World::new(Stop::on_signals()?)?;
    let (mut bite, mut fail) = (0, 0);
    for case in select(ids)? {
        let verdict = match &case.unavailable {
            Some(why) => format!("not available here: {why}"),
            None => match verify(&world, &case) {
                Ok(seen) if seen.bites => {
                    bite += 1;
                    format!("bites: {}", seen.figures)
                }
                Ok(seen) => {
                    fail += 1;
                    format!("DOES NOT BITE: {}", seen.figures)
                }
                Err(error) if error.is::<Interrupted>() => return Err(error),
                Err(error) => {
                    fail += 1;
                    format!("FAILED: {error:#}")
                }
            },
        };
        println!("{}\n    {verdict}", case.id);
    }
    println!("{bite} verified, {fail} not");
    Ok(if fail == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn verify(world: &World, case: &Case) -> anyhow::Result<Bite> {
    case.trial.start(world, Place::B, &beside("duel")?)?.verify()
}
