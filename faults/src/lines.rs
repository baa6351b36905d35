//! Files of JSON, a value to a line, that are added to.

use anyhow::Context;
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A file, open for more lines. Nobody else adds to it meanwhile.
pub(crate) struct Lines {
    path: PathBuf,
    file: File,
}

impl Lines {
    /// Opens it, or begins it; with what each of its lines says by `parse`. What a crash has left of a last line, which
    /// nobody has read as one, is cut off.
    ///
    /// # Errors
    ///
    /// Where it cannot be opened, is being added to, or has a line in it that says nothing.
    pub(crate) fn open<T>(path: &Path, parse: fn(&str) -> Option<T>) -> anyhow::Result<(Lines, Vec<T>)> {
        let doing = || format!("could not open {}", path.display());
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(doing)?;
        }
        let file = OpenOptions::new().create(true).append(true).open(path).with_context(doing)?;
        // A process that another thread is starting holds what we had open until it has become its program.
        let deadline = Instant::now() + Duration::from_secs(2);
        while let Err(busy) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            if Instant::now() > deadline {
                return Err(busy).with_context(|| format!("somebody else adds to {}", path.display()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let text = std::fs::read_to_string(path).with_context(doing)?;
        let said = parsed(&text, parse).with_context(|| format!("{} is not added to", path.display()))?;
        file.set_len(whole_bytes(&text) as u64).with_context(doing)?;
        Ok((Lines { path: path.to_owned(), file }, said))
    }

    /// Adds a line, whole or not at all as far as the system has it so.
    pub(crate) fn add(&mut self, value: &Value) -> anyhow::Result<()> {
        let line = format!("{value}\n");
        self.file.write_all(line.as_bytes()).with_context(|| format!("could not write {}", self.path.display()))
    }
}

/// What the lines of a file say, which is left as it is. One that is not there has none.
///
/// # Errors
///
/// Where it cannot be read, or has a line in it that says nothing.
pub(crate) fn read<T>(path: &Path, parse: fn(&str) -> Option<T>) -> anyhow::Result<Vec<T>> {
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        text => {
            let text = text.with_context(|| format!("could not read {}", path.display()))?;
            parsed(&text, parse).with_context(|| path.display().to_string())
        }
    }
}

/// A line that nobody has ended was being written when its writer ended. All others have to say something.
fn parsed<T>(text: &str, parse: fn(&str) -> Option<T>) -> anyhow::Result<Vec<T>> {
    let lines = text[..whole_bytes(text)].lines().enumerate();
    lines.map(|(number, line)| parse(line).with_context(|| format!("line {} cannot be read", number + 1))).collect()
}

/// How much of a text is whole lines.
fn whole_bytes(text: &str) -> usize {
    text.rfind('\n').map_or(0, |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn number(line: &str) -> Option<u64> {
        serde_json::from_str::<Value>(line).ok()?["n"].as_u64()
    }

    #[test]
    fn only_a_last_line_may_be_cut_off_and_it_gives_way() {
        assert!(parsed("", number).unwrap().is_empty());
        assert_eq!(parsed("{\"n\":1}\n{\"n\":2}\n{\"n\"", number).unwrap(), [1, 2]);
        for broken in ["{\"n\":1}\n{\"n\"\n{\"n\":2}\n", "\n{\"n\":1}\n", "{\"m\":1}\n", "{\"n\":1}\n{\"n\"\n"] {
            assert!(parsed(broken, number).is_err(), "{broken:?}");
        }
        let path = std::env::temp_dir().join(format!("duel-faults-{}-lines-test", std::process::id()));
        let (mut lines, none) = Lines::open(&path, number).unwrap();
        assert!(none.is_empty());
        lines.add(&json!({"n": 1})).unwrap();
        assert!(Lines::open(&path, number).is_err(), "two at once");
        drop(lines);
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"n\":").unwrap();
        assert_eq!(read(&path, number).unwrap(), [1]);
        let (mut lines, one) = Lines::open(&path, number).unwrap();
        assert_eq!(one, [1]);
        lines.add(&json!({"n": 2})).unwrap();
        drop(lines);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"n\":1}\n{\"n\":2}\n");
        std::fs::write(&path, "{\"n\":1}\n{\"n\":\n{\"n\":2}\n").unwrap();
        assert!(Lines::open(&path, number).is_err());
        std::fs::remove_file(&path).unwrap();
        assert!(read(&path, number).unwrap().is_empty());
    }
}
