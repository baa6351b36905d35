//! The child: loads one library, measures it, tells its parent and exits.

use crate::departure::{self, Step};
use crate::libcrypto::{Libcrypto, exit_now};
use crate::line::{ChildFigure, Line};
use crate::memory;
use crate::work::{BLOCK_BYTES, Round, Work, wall_ns};
use duel_model::{LensIdentity, LensOp, MILLISECOND_NS, Nanos};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Fewest rounds of a figure. Two children make eight, below which the median has no interval at the confidence that is
/// asked for (see `judge`).
const FEWEST_ROUNDS: usize = 4;
/// Most rounds of a figure: what the lines may grow to.
const MOST_ROUNDS: usize = 40;
/// A round lasts this part of the child's budget, divided by the number of figures: about three rounds' time goes into
/// the warm-up, and some twenty rounds remain, of which the median is firm though others use the machine.
const ROUNDS_IN_BUDGET: u64 = 25;
/// Shortest round: 500 times what reading both clocks twice takes.
const SHORTEST_ROUND_NS: Nanos = 500_000;
/// The kernel ends a child that burns more CPU than this, should its parent be gone.
const MOST_CPU_S: u64 = 60;

/// What a child is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChildOrder {
    /// The library's file.
    pub(crate) library: PathBuf,
    pub(crate) task: Task,
}

/// What it is to do with the library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Task {
    /// Measure these operations on blocks of these sizes, bytes, for this time.
    Measure { budget_ns: Nanos, ops: Vec<LensOp>, blocks: Vec<u32> },
    /// Tell its variables.
    Variables,
}

/// The word for [`Task::Variables`].
const VARIABLES: &str = "variables";

impl ChildOrder {
    /// As the arguments that [`main`] understands.
    pub(crate) fn to_arguments(&self) -> Vec<OsString> {
        let mut arguments = vec![self.library.clone().into()];
        match &self.task {
            Task::Measure { budget_ns, ops, blocks } => {
                // Both are ours and have a form in JSON.
                let ops = ops.iter().filter_map(|op| Some(serde_json::to_value(op).ok()?.as_str()?.to_owned()));
                let blocks: Vec<String> = blocks.iter().map(u32::to_string).collect();
                arguments.push((budget_ns / MILLISECOND_NS).to_string().into());
                arguments.push(ops.collect::<Vec<String>>().join(",").into());
                arguments.push(blocks.join(",").into());
            }
            Task::Variables => arguments.push(VARIABLES.into()),
        }
        arguments
    }

    fn from_arguments(arguments: &[OsString]) -> Option<Self> {
        let (library, task) = arguments.split_first()?;
        let task = match task {
            [word] if word == VARIABLES => Task::Variables,
            [budget_ms, ops, blocks] => Task::Measure {
                budget_ns: budget_ms.to_str()?.parse::<u64>().ok()?.checked_mul(MILLISECOND_NS)?,
                ops: ops
                    .to_str()?
                    .split(',')
                    .map(|op| serde_json::from_value(op.into()).ok())
                    .collect::<Option<_>>()?,
                blocks: blocks
                    .to_str()?
                    .split(',')
                    .map(|bytes| bytes.parse().ok().filter(|bytes| BLOCK_BYTES.contains(bytes)))
                    .collect::<Option<_>>()?,
            },
            _ => return None,
        };
        Some(Self { library: library.into(), task })
    }
}

/// Does what the arguments after the command's name say, tells it on standard output in lines of JSON, and ends the
/// process with `_exit`: 0 when the order was carried out, 1 when it could not be, 2 for arguments that make no sense.
///
/// The process comes here twice, the first time to leave the terminal and the rights of who has started it.
pub fn main(arguments: &[OsString]) -> ! {
    let order = match departure::step(arguments) {
        Some(Step::First { run_as, rest }) => {
            // Comes back only where it has failed.
            tell(&Line::Failed { why: departure::depart(run_as, rest) });
            exit_now(1)
        }
        Some(Step::Second(rest)) => ChildOrder::from_arguments(rest),
        None => None,
    };
    let Some(order) = order else {
        let _ = writeln!(
            std::io::stderr(),
            "duel: lens-child is called by `duel lens`, as STEP LIBRARY BUDGET_MS OPS BLOCKS, or STEP LIBRARY {VARIABLES}"
        );
        exit_now(2)
    };
    if let Err(why) = departure::must_have_departed() {
        tell(&Line::Failed { why });
        exit_now(1)
    }
    confine();
    let done = match &order.task {
        Task::Measure { budget_ns, ops, blocks } => measure(&order.library, *budget_ns, ops, blocks),
        Task::Variables => variables(&order.library),
    };
    match done {
        Ok(()) => {
            tell(&Line::Done);
            exit_now(0)
        }
        Err(why) => {
            tell(&Line::Failed { why });
            exit_now(1)
        }
    }
}

/// A library may crash, hang, or outlive the parent: none of it may leave anything behind.
fn confine() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let limit = |most| Rlimit { current: Some(most), maximum: Some(most) };
    // What cannot be limited stays bounded by the parent's patience.
    let _ = setrlimit(Resource::Core, limit(0));
    let _ = setrlimit(Resource::Cpu, limit(MOST_CPU_S));
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
        if departure::nobody_listens() {
            // The parent has ended before it could be told to take us with it.
            exit_now(1);
        }
        // Nothing that it starts gets more rights than it has.
        let _ = rustix::thread::set_no_new_privs(true);
    }
}

/// Before anything of the library is called: it decides on the CPU's features when it is loaded.
fn variables(file: &Path) -> Result<(), String> {
    let library = Libcrypto::open(file)?;
    for part in memory::variables(&library, file)? {
        tell(&Line::Variables { from: part.from, hex: memory::to_hex(&part.bytes) });
    }
    Ok(())
}

fn measure(file: &Path, budget_ns: Nanos, ops: &[LensOp], blocks: &[u32]) -> Result<(), String> {
    let deadline_ns = wall_ns() + budget_ns;
    let library = Libcrypto::open(file)?;
    tell(&Line::Library(identity(&library)));
    let mut all: Vec<Work<'_>> = Vec::new();
    for &op in ops {
        match Work::all(&library, op, blocks) {
            Ok(work) => all.extend(work),
            Err(why) => tell(&Line::Absent { op, why }),
        }
    }
    if all.is_empty() {
        return Err("it offers none of the EVP functions that are measured, so it is no libcrypto".into());
    }
    let round_ns = (budget_ns / ROUNDS_IN_BUDGET / all.len() as u64).max(SHORTEST_ROUND_NS);
    let mut able = Vec::new();
    for mut work in all {
        match work.calibrate(round_ns) {
            Ok(()) => able.push((work, Vec::new())),
            // One line for each operation, though it may have failed for each size.
            Err(why) => tell(&Line::Absent { op: work.op, why }),
        }
    }
    if able.is_empty() {
        return Err("none of its ciphers and keys works".into());
    }
    rounds(&mut able, deadline_ns)?;
    for (work, rounds) in able {
        tell(&Line::Figure(ChildFigure {
            op: work.op,
            block_bytes: work.block_bytes,
            rounds_per_s: rounds.iter().map(|round| round.per_s).collect(),
            cpu_ns: rounds.iter().map(|round| round.cpu_ns).sum(),
            wall_ns: rounds.iter().map(|round| round.wall_ns).sum(),
        }));
    }
    Ok(())
}

/// A round of each, again and again: a CPU that changes its speed meanwhile changes it for all of them.
fn rounds(able: &mut [(Work<'_>, Vec<Round>)], deadline_ns: Nanos) -> Result<(), String> {
    for turn in 0..MOST_ROUNDS {
        if turn >= FEWEST_ROUNDS && wall_ns() >= deadline_ns {
            break;
        }
        for (work, rounds) in &mut *able {
            rounds.push(work.round().map_err(|why| format!("{} worked at first, then: {why}", work.op.name()))?);
        }
    }
    Ok(())
}

/// `OpenSSL_version` came with 1.1.0, with other numbers than `SSLeay_version`; `OPENSSL_info` with 3.0.
fn identity(library: &Libcrypto) -> LensIdentity {
    const CPU_SETTINGS: i32 = 1008;
    let text = |function, what| library.text(function, what).map(|text| text.chars().take(LONGEST_TEXT).collect());
    LensIdentity {
        version: text("OpenSSL_version", 0).or_else(|| text("SSLeay_version", 0)),
        compiler: text("OpenSSL_version", 1).or_else(|| text("SSLeay_version", 2)),
        cpu: text("OPENSSL_info", CPU_SETTINGS),
    }
}

/// Characters of a text that are passed on; compilers' flags are the longest.
const LONGEST_TEXT: usize = 4000;

/// A parent that has gone away needs no answer.
fn tell(line: &Line) {
    if let Ok(json) = serde_json::to_string(line) {
        let mut stdout = std::io::stdout().lock();
        if writeln!(stdout, "{json}").and_then(|()| stdout.flush()).is_err() {
            exit_now(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_survives_the_command_line() {
        let measure =
            Task::Measure { budget_ns: 500 * MILLISECOND_NS, ops: LensOp::ALL.to_vec(), blocks: BLOCK_BYTES.to_vec() };
        for task in [measure, Task::Variables] {
            let order = ChildOrder { library: "/a b/libcrypto.so.3".into(), task };
            assert_eq!(ChildOrder::from_arguments(&order.to_arguments()), Some(order));
        }
        for wrong in [
            &[][..],
            &["x"],
            &["x", "y"],
            &["x", "y", "sha256"],
            &["x", "5", "nothing"],
            &["x", "18446744073709551615", "sha256"],
        ] {
            let wrong: Vec<OsString> = wrong.iter().map(OsString::from).collect();
            assert_eq!(ChildOrder::from_arguments(&wrong), None);
        }
    }
}
