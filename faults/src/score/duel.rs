//! The program that is scored, run as a user would.

use super::ScoreFlags;
use crate::arena::wait_for;
use crate::case::Case;
use crate::kinds::Stage;
use crate::world::{World, beside};
use anyhow::Context;
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Where it is and how it is called.
pub(super) struct Duel {
    program: PathBuf,
    raw: PathBuf,
    seconds: u32,
    why_seconds: u32,
    /// Whether it can look at the host of a target, and is to.
    local: bool,
    /// Whether it is to name causes that are not proven yet.
    suspects: bool,
    /// Whether it may start private twins.
    twins: bool,
}

/// What it said.
pub(super) struct Said {
    /// Its document, or its last words where it ended with an error.
    pub(super) answer: Result<Value, String>,
    /// From the end of the comparison to the end of duel, to a second; `None` where the comparison's end was not seen.
    pub(super) seconds_to_finding: Option<f64>,
    /// The document, in the raw folder.
    pub(super) file: String,
}

impl Duel {
    /// The program asked for, or the one beside this one.
    pub(super) fn find(flags: &ScoreFlags) -> anyhow::Result<Duel> {
        let program = match &flags.duel {
            Some(path) => path.clone(),
            None => beside("duel")?,
        };
        let program = program
            .canonicalize()
            .with_context(|| format!("duel is not at {}; build it, or name it by --duel", program.display()))?;
        let help = Command::new(&program).arg("--help").stdin(Stdio::null()).output()?;
        let knows_local = String::from_utf8_lossy(&help.stdout).contains("--local");
        std::fs::create_dir_all(&flags.raw)?;
        Ok(Duel {
            program,
            raw: flags.raw.canonicalize()?,
            seconds: flags.seconds,
            why_seconds: flags.why_seconds,
            local: knows_local && !flags.outside,
            suspects: flags.suspects,
            twins: flags.twins,
        })
    }

    /// The program.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Lets it compare the twins and look for the cause.
    pub(super) fn look(&self, world: &World, stage: &dyn Stage, case: &Case, round: u32) -> anyhow::Result<Said> {
        let name = format!("{}.{round}", case.id.replace('/', "_"));
        let (document, progress) = (self.raw.join(format!("{name}.json")), self.raw.join(format!("{name}.progress")));
        let mut child = stage
            .duel(&self.program, self.local)
            .args(self.words())
            .command()
            .stdin(Stdio::null())
            .stdout(File::create(&document)?)
            .stderr(Stdio::piped())
            .spawn()
            .context("could not start duel")?;
        let stderr = child.stderr.take().context("duel has no standard error")?;
        // On a thread: lines are stamped when they come, while this one waits for the end.
        let watcher = std::thread::spawn(move || Progress::read(stderr));
        let status = wait_for(world, &mut child)?;
        let ended = Instant::now();
        let seen = watcher.join().map_err(|_| anyhow::anyhow!("the reader of duel's progress panicked"))?;
        std::fs::write(progress, &seen.text)?;
        let text = std::fs::read_to_string(&document)?;
        let read: Result<Value, _> = serde_json::from_str(&text);
        let answer = match read {
            // A fault may make requests fail, which duel tells by its exit code too.
            Ok(read) if status.success() || (status.code() == Some(1) && read["status"] == "complete") => Ok(read),
            Err(error) if status.success() => Err(format!("its document is no JSON: {error}")),
            _ => Err(format!("it ended with {status}: {}", seen.last_line())),
        };
        Ok(Said {
            answer,
            seconds_to_finding: seen.measured.map(|at| ended.saturating_duration_since(at).as_secs_f64()),
            file: file_name(&document),
        })
    }

    /// What is the same of every kind of work.
    fn words(&self) -> Vec<String> {
        let text = |word: &str| word.to_owned();
        let mut words = vec![text("--why"), text("--json")];
        words.extend([
            text("-d"),
            format!("{}s", self.seconds),
            text("--why-budget"),
            format!("{}s", self.why_seconds),
        ]);
        words.extend([text("--archive"), self.raw.join("runs.sqlite").display().to_string()]);
        if self.suspects {
            words.push(text("--name-suspects"));
        }
        if self.twins {
            words.push(text("--may-start-twin"));
        }
        words
    }
}

/// duel's progress, and when it was last seen measuring.
struct Progress {
    text: String,
    measured: Option<Instant>,
}

impl Progress {
    /// Reads to the end; keeps as much as anybody would look at.
    fn read(stderr: impl std::io::Read) -> Progress {
        const KEPT_BYTES: usize = 1 << 20;
        let mut progress = Progress { text: String::new(), measured: None };
        for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            if is_measuring(&line) {
                progress.measured = Some(Instant::now());
            }
            if progress.text.len() < KEPT_BYTES {
                progress.text += &line;
                progress.text.push('\n');
            }
        }
        progress
    }

    fn last_line(&self) -> &str {
        self.text.lines().next_back().unwrap_or("it said nothing")
    }
}

/// A line such as `0:05 of 0:30, measuring; A ...`.
fn is_measuring(line: &str) -> bool {
    line.split(';').next().is_some_and(|head| head.ends_with(", measuring"))
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_comparison_is_the_last_line_that_measures() {
        assert!(is_measuring("0:05 of 0:30, measuring; A* 5/s, p99 1 ms, 0 failed; B -, p99 -, 0 failed"));
        assert!(!is_measuring("0:01 of 0:30, warming up; A* 5/s"));
        assert!(!is_measuring("0:35, measuring with ChaCha20; A* 5/s"));
        let seen = Progress::read("0:05, measuring; A\n0:06, is it AES?; A\nduel: gave up\n".as_bytes());
        assert!(seen.measured.is_some());
        assert_eq!(seen.last_line(), "duel: gave up");
    }
}
