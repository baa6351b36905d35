//! The program that is scored, run as a user would.

use super::terms::Terms;
use crate::arena::wait_for;
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
pub(crate) struct Duel {
    program: PathBuf,
    how: How,
    /// Whether it can look at the host of a target.
    knows_local: bool,
}

/// How it is asked.
#[derive(Clone, Debug)]
pub(crate) struct How {
    /// Folder for its documents and its archive.
    pub(crate) raw: PathBuf,
    /// Load time of the comparison.
    pub(crate) seconds: u32,
    /// Load time for finding the cause.
    pub(crate) why_seconds: u32,
}

/// What a copy of a database may take: many times of what the tables here have.
const MOST_COPIED: &str = "2GB";

/// What it said.
pub(crate) struct Said {
    /// Its document, or its last words where it ended with an error.
    pub(crate) answer: Result<Value, String>,
    /// From the end of the comparison to the end of duel, to a second; `None` where the comparison's end was not seen.
    pub(crate) seconds_to_finding: Option<f64>,
    /// The document, in the raw folder.
    pub(crate) file: String,
}

impl Duel {
    /// The program asked for, or the one beside this one.
    pub(crate) fn find(program: Option<&Path>, how: How) -> anyhow::Result<Duel> {
        let program = match program {
            Some(path) => path.to_owned(),
            None => beside("duel")?,
        };
        let program = program
            .canonicalize()
            .with_context(|| format!("duel is not at {}; build it, or name it by --duel", program.display()))?;
        let help = Command::new(&program).arg("--help").stdin(Stdio::null()).output()?;
        let knows_local = String::from_utf8_lossy(&help.stdout).contains("--local");
        std::fs::create_dir_all(&how.raw)?;
        let how = How { raw: how.raw.canonicalize()?, ..how };
        Ok(Duel { program, how, knows_local })
    }

    /// The program.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Lets it compare the twins and look for the cause. `name` is that of its document.
    pub(crate) fn look(&self, world: &World, stage: &dyn Stage, name: &str, terms: Terms) -> anyhow::Result<Said> {
        let raw = &self.how.raw;
        let (document, progress) = (raw.join(format!("{name}.json")), raw.join(format!("{name}.progress")));
        let mut child = stage
            .duel(&self.program, self.knows_local && !terms.outside)
            .args(self.how.words(terms))
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
}

impl How {
    /// What is the same of every kind of work, and what is allowed.
    fn words(&self, terms: Terms) -> Vec<String> {
        let text = |word: &str| word.to_owned();
        let mut words = vec![text("--why"), text("--json")];
        words.extend([
            text("-d"),
            format!("{}s", self.seconds),
            text("--why-budget"),
            format!("{}s", self.why_seconds),
        ]);
        words.extend([text("--archive"), self.raw.join("runs.sqlite").display().to_string()]);
        words.extend(terms.suspects.then(|| text("--name-suspects")));
        words.extend(terms.twins.then(|| text("--may-start-twin")));
        if terms.copies {
            words.extend(["--may-copy-database", MOST_COPIED].map(text));
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
    fn duel_is_told_what_it_may_do_and_nothing_else() {
        let how = How { raw: PathBuf::from("/raw"), seconds: 10, why_seconds: 60 };
        let plain = Terms { outside: false, suspects: false, twins: false, copies: false };
        let always = "--why --json -d 10s --why-budget 60s --archive /raw/runs.sqlite";
        let told = |terms: Terms| how.words(terms).join(" ");
        assert_eq!(told(plain), always);
        assert_eq!(told(Terms { copies: true, ..plain }), format!("{always} --may-copy-database 2GB"));
        let all = Terms { suspects: true, twins: true, copies: true, ..plain };
        assert_eq!(told(all), format!("{always} --name-suspects --may-start-twin --may-copy-database 2GB"));
    }

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
