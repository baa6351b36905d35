//! `faults random`: set-ups and faults by chance, each looked at once.
//!
//! The hand-made cases are those that the diagnosis was mended on. What it is worth on others, only others tell.

mod built;
mod draw;
mod installed;
mod kept;
mod kind;
mod looked;
mod stage;
mod table;
mod tally;

use crate::score::duel::{Duel, How};
use crate::score::judge::{self, Outcome};
use crate::score::stamp;
use crate::score::terms::Terms;
use crate::world::{Interrupted, Stop, World};
use clap::Args;
pub(crate) use draw::Draw;
#[cfg(test)]
pub(crate) use draw::{Sort, causes, double, draw};
pub(crate) use installed::Installed;
use kept::Kept;
use kind::Registered;
#[cfg(test)]
pub(crate) use kind::catalogue;
pub(crate) use kind::{Decoy, Drawable, DrawnKind, Merged, kept};
use looked::{Key, Looked};
use std::io::Write;
use std::path::{Path, PathBuf};

/// What is drawn, and where the looks go.
#[derive(Args, Clone, Debug)]
pub(crate) struct RandomFlags {
    /// Of which kind of work
    #[arg(long, default_value = kind::ALL[0].name, value_parser = Registered::parser())]
    kind: Registered,
    /// Where chance begins; take one after the last change of the diagnosis
    #[arg(long)]
    seed: u64,
    /// How many draws
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    count: u32,
    /// The number of the first draw
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    from: u32,
    /// Go on with what was not looked at yet by this commit
    #[arg(long)]
    resume: bool,
    /// Show the draws, and do nothing
    #[arg(long, conflicts_with_all = ["resume", "check"])]
    list: bool,
    /// Inject and verify, but do not ask duel: that is no look
    #[arg(long, conflicts_with = "resume")]
    check: bool,
    /// The duel that looks [default: beside this program]
    #[arg(long, value_name = "PATH")]
    duel: Option<PathBuf>,
    /// The looks: lines are appended and never replaced
    #[arg(long, value_name = "FILE", default_value = "faults/draws.jsonl")]
    results: PathBuf,
    /// The table
    #[arg(long, value_name = "FILE", default_value = "faults/SCORE.md")]
    out: PathBuf,
    /// The results of the hand-made cases, for the table's second part
    #[arg(long, value_name = "FILE", default_value = "faults/results.jsonl")]
    hand_made: PathBuf,
    /// Folder for duel's JSON documents and its archive
    #[arg(long, value_name = "FOLDER", default_value = "target/faults")]
    raw: PathBuf,
}

/// Draws, and lets duel look at each draw once.
pub(crate) fn random(flags: &RandomFlags) -> anyhow::Result<()> {
    let installed = (flags.kind.installed)();
    if flags.list {
        return list(flags, &installed);
    }
    if flags.check {
        return check(flags, &installed);
    }
    let commit = stamp::commit();
    anyhow::ensure!(
        !commit.is_empty() && !commit.contains(' '),
        "a look counts for a commit, and the work tree is none ({commit}): commit first, or verify alone with --check"
    );
    let mut kept = Kept::open(&flags.results)?;
    let looked = look_at_all(flags, &installed, &commit, &mut kept);
    // Also after an interruption: what was looked at is shown.
    crate::score::rewrite(&flags.out, &flags.hand_made, &table::text(kept.looks()))?;
    println!("{} holds the table", flags.out.display());
    looked
}

/// The draws of a file as a part of `SCORE.md`.
///
/// # Errors
///
/// Where the file has lines that are no draws. One that is not there has none.
pub(crate) fn part_of_page(path: &Path) -> anyhow::Result<String> {
    Ok(table::text(&kept::read(path)?))
}

fn numbers(flags: &RandomFlags) -> std::ops::Range<u32> {
    flags.from..flags.from + flags.count
}

fn list(flags: &RandomFlags, installed: &Installed) -> anyhow::Result<()> {
    let mut text = format!("installed: {}\n", installed.names().join(", "));
    for number in numbers(flags) {
        let Draw { sort, case, faulty, .. } = (flags.kind.draw)(flags.seed, number, installed)?;
        text += &format!("{number} {} {} on {}\n", sort.name(), case.id, faulty.target_name());
    }
    match std::io::stdout().write_all(text.as_bytes()) {
        // Who reads has seen enough, as `head` does.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

fn check(flags: &RandomFlags, installed: &Installed) -> anyhow::Result<()> {
    let world = World::new(Stop::on_signals()?)?;
    let duel = crate::world::beside("duel")?;
    for number in numbers(flags) {
        world.go_on()?;
        let draw = (flags.kind.draw)(flags.seed, number, installed)?;
        let verdict = match (flags.kind.start)(&world, &draw, &duel).and_then(|stage| stage.verify()) {
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => format!("FAILED: {error:#}"),
            Ok(bite) if bite.bites => format!("as drawn: {}", bite.figures),
            Ok(bite) => format!("NOT AS DRAWN: {}", bite.figures),
        };
        println!("{number} {} {}\n    {verdict}", draw.sort.name(), draw.case.id);
    }
    Ok(())
}

/// The same for all draws: hosts are looked at, no private twins or copies, and only causes that are proven.
const TERMS: Terms = Terms { outside: false, suspects: false, twins: false, copies: false };

fn look_at_all(flags: &RandomFlags, installed: &Installed, commit: &str, kept: &mut Kept) -> anyhow::Result<()> {
    let installed_names = installed.names().to_vec();
    let key = |number| Key {
        kind: flags.kind.name.to_owned(),
        seed: flags.seed,
        number,
        commit: commit.to_owned(),
        installed: installed_names.clone(),
    };
    let done: Vec<u32> = numbers(flags).filter(|number| kept.is_done(&key(*number))).collect();
    anyhow::ensure!(
        flags.resume || done.is_empty(),
        "{} of these draws have been looked at with commit {commit}; --resume goes on with the others",
        done.len()
    );
    let world = World::new(Stop::on_signals()?)?;
    let how = How { raw: flags.raw.clone(), seconds: 20, why_seconds: 60 };
    let duel = Duel::find(flags.duel.as_deref(), how)?;
    built::ensure_of_work_tree(&[duel.program(), &std::env::current_exe()?])?;
    for number in numbers(flags).filter(|number| !done.contains(number)) {
        let draw = (flags.kind.draw)(flags.seed, number, installed)?;
        let mut look = Looked::new(key(number), &draw, stamp::date());
        if let Err(error) = look_at(flags.kind, &world, &duel, &draw, &mut look) {
            if error.is::<Interrupted>() {
                return Err(error);
            }
            look.outcome = Outcome::Failed;
            look.remark = format!("{error:#}");
        }
        println!("{number} {} {}: {}, said {:?}", look.sort.name(), draw.case.id, look.outcome.name(), look.said);
        kept.add(look)?;
    }
    Ok(())
}

fn look_at(kind: Registered, world: &World, duel: &Duel, draw: &Draw, look: &mut Looked) -> anyhow::Result<()> {
    world.go_on()?;
    let stage = (kind.start)(world, draw, duel.program())?;
    let bite = stage.verify()?;
    look.verified = bite.figures;
    if !bite.bites {
        look.outcome = Outcome::NotVerified;
        return Ok(());
    }
    world.go_on()?;
    look.load_average = load_average();
    let Key { seed, number, commit, .. } = &look.key;
    let name = format!("draw-{}-{seed}-{number}-{commit}", kind.name);
    let said = duel.look(world, &*stage, &name, TERMS)?;
    look.file = said.file;
    match said.answer {
        Ok(document) => {
            look.take(judge::judge(&document, &draw.case, draw.faulty.target_name()), &document);
            look.seconds = said.seconds_to_finding;
        }
        Err(words) => {
            look.outcome = Outcome::NoAnswer;
            look.remark = words;
        }
    }
    Ok(())
}

/// Of the last minute.
fn load_average() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}
