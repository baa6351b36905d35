//! Targets started anew: the user's command, and waiting until the target answers as it did before.

mod shell;

use crate::bench::Bench;
use crate::contact::contact;
use crate::route::Route;
use crate::watch::Watcher;
use crate::{LabError, kinds};
use duel_load::monotonic_ns;
use duel_model::{Facts, MILLISECOND_NS, Nanos, Plan, format_duration_ns, sanitize_line, without_secrets_of_command};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use shell::{Ended, Shell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Between two questions whether a target answers.
const ASK_EVERY: Duration = Duration::from_millis(20);
/// A contact asks up to three times, each time for so long: so many parts of the time that is left.
const PARTS: Nanos = 3;
/// A question is given this long at least.
const SHORTEST_QUESTION_NS: Nanos = 100 * MILLISECOND_NS;

/// What starts the targets of a plan anew.
#[derive(Debug)]
pub(crate) struct Restarts<'a> {
    plan: &'a Plan,
    /// The ways to all targets: what is started anew is to be found where it was.
    routes: Vec<Route>,
    /// What each target answered at first.
    before: Vec<Option<Facts>>,
    /// Which targets have a command, and which.
    commands: Vec<(usize, &'a str)>,
    timeout_ns: Nanos,
    random: Pcg64Mcg,
    stop: Arc<AtomicBool>,
}

impl<'a> Restarts<'a> {
    /// Of a plan, with its secrets; `None` where all targets stay as they run.
    pub(crate) fn of(
        plan: &'a Plan,
        routes: &[Route],
        before: &[Option<Facts>],
        stop: &Arc<AtomicBool>,
    ) -> Option<Self> {
        let restart = plan.compare.restart.as_ref()?;
        let named = plan.targets.iter().enumerate();
        Some(Self {
            plan,
            routes: routes.to_vec(),
            before: before.to_vec(),
            commands: named.filter_map(|(index, target)| Some((index, restart.of(&target.name)?))).collect(),
            timeout_ns: restart.timeout_ns,
            random: Pcg64Mcg::seed_from_u64(plan.compare.seed),
            stop: Arc::clone(stop),
        })
    }

    /// Starts them anew, in random order, so that none is always the one that was started last; connections to all targets are
    /// closed before and made anew. Answers how long it took. What was begun is left to itself where the user ends the run.
    pub(crate) fn start_anew(&mut self, bench: &mut Bench, watcher: &mut dyn Watcher) -> Result<Nanos, LabError> {
        let began_ns = monotonic_ns();
        // A server that ends in an orderly way waits for its connections.
        bench.hang_up();
        self.commands.shuffle(&mut self.random);
        for &(target, command) in &self.commands {
            let name = sanitize_line(&self.plan.targets[target].name);
            watcher.label(&format!("starting {name} anew"));
            self.start(target, command).map_err(|text| LabError::Target { name, text })?;
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        bench.dial_anew()?;
        Ok(monotonic_ns().saturating_sub(began_ns))
    }

    fn start(&self, target: usize, command: &str) -> Result<(), String> {
        let until = Instant::now() + Duration::from_nanos(self.timeout_ns);
        let of_system = |error: std::io::Error| format!("the command that starts it anew could not be run: {error}");
        let mut shell = Shell::start(command).map_err(of_system)?;
        let limit = format_duration_ns(self.timeout_ns as f64);
        let ended = shell.wait(until, &self.stop).map_err(of_system)?;
        let said = || told(&shell.said(), command);
        match ended {
            Ended::Well => {}
            Ended::Left => return Ok(()),
            Ended::Badly(status) => {
                return Err(format!("the command that starts it anew failed ({status}){}", said()));
            }
            Ended::Late => {
                return Err(format!(
                    "the command that starts it anew had not ended after {limit}, and was ended; a server belongs in the background \
                     ('... &'){}",
                    said()
                ));
            }
        }
        match self.wait_for(target, until) {
            Ok(()) => Ok(()),
            Err(why) => Err(format!(
                "it did not answer as before within {limit} after it was started anew: {why}; --restart-timeout gives it longer{}",
                said()
            )),
        }
    }

    /// Asks a target until it does what it did at first; else what became of the last question.
    fn wait_for(&self, target: usize, until: Instant) -> Result<(), String> {
        let kind = kinds::of(&self.plan.workload);
        loop {
            let left_ns = until.saturating_duration_since(Instant::now()).as_nanos() as Nanos;
            let mut plan = self.plan.clone();
            let patience_ns = (left_ns / PARTS).max(SHORTEST_QUESTION_NS);
            plan.load.op_timeout_ns = plan.load.op_timeout_ns.min(patience_ns);
            plan.load.connect_timeout_ns = plan.load.connect_timeout_ns.min(patience_ns);
            let route = &self.routes[target];
            let why = match contact(&plan, &route.address, Some(route), &self.stop) {
                _ if self.stop.load(Ordering::Relaxed) => return Ok(()),
                Ok(contact) => match kind.has_returned(self.before[target].as_ref(), contact.facts.as_ref()) {
                    Ok(()) => return Ok(()),
                    Err(why) => why,
                },
                Err(why) => why,
            };
            if Instant::now() >= until {
                return Err(why);
            }
            std::thread::sleep(ASK_EVERY);
        }
    }
}

/// The end of what a command said, to be told behind what went wrong; nothing where it was silent.
fn told(said: &str, command: &str) -> String {
    const MOST: usize = 200;
    let line = sanitize_line(&without_secrets_of_command(said, command).replace('\n', " | "));
    if line.is_empty() {
        return String::new();
    }
    let skipped = line.chars().count().saturating_sub(MOST);
    let end: String = line.chars().skip(skipped).collect();
    format!("; it said: '{}{end}'", if skipped > 0 { "…" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_said_is_short_safe_and_without_its_secrets() {
        assert_eq!(told("", "x"), "");
        assert_eq!(told("one\ntwo\x1b[2J", "x"), "; it said: 'one | two\u{fffd}[2J'");
        assert_eq!(told("no s3cr3t", "TOKEN=s3cr3t ./x"), "; it said: 'no [not kept]'");
        let long = told(&format!("{}end", "x".repeat(250)), "x");
        assert!(long.ends_with("end'") && long.chars().count() < 220, "{long}");
    }
}
