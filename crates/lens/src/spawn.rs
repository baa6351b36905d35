//! One child: started, listened to, and ended in its time whatever its library does.

use crate::child::{ChildOrder, Task};
use crate::departure::{first_step, set_aside};
use crate::line::{ChildFigure, Line};
use crate::memory::{Part, from_hex};
use crate::order::{LensError, LensOrder};
use duel_model::{LensIdentity, LensOp, Nanos, sanitize_line};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Most bytes that a child may say: the most variables that it tells take two million, all figures at their most rounds
/// fifty thousand.
const MOST_OUTPUT_BYTES: u64 = 4 << 20;

/// What one child told.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ChildReading {
    pub(crate) identity: LensIdentity,
    pub(crate) figures: Vec<ChildFigure>,
    pub(crate) absent: Vec<(LensOp, String)>,
    pub(crate) variables: Vec<Part>,
}

/// Measures in this environment, on blocks of these sizes, for `budget_ns` and a grace.
pub(crate) fn run(
    order: &LensOrder,
    environment: &BTreeMap<OsString, OsString>,
    budget_ns: Nanos,
    blocks: &[u32],
) -> Result<ChildReading, LensError> {
    let task = Task::Measure { budget_ns, ops: order.ops.clone(), blocks: blocks.to_vec() };
    told_by_child(order, environment, task, budget_ns)
}

/// The library's variables after it was loaded in this environment.
pub(crate) fn variables(order: &LensOrder, environment: &BTreeMap<OsString, OsString>) -> Result<Vec<Part>, LensError> {
    Ok(told_by_child(order, environment, Task::Variables, 0)?.variables)
}

fn told_by_child(
    order: &LensOrder,
    environment: &BTreeMap<OsString, OsString>,
    task: Task,
    budget_ns: Nanos,
) -> Result<ChildReading, LensError> {
    let path = shown(order);
    let (stdin, library) = handed_over(order)?;
    let mut command = Command::new(&order.child.program);
    command
        .args(&order.child.arguments)
        .args(first_step(order.run_as))
        .args(ChildOrder { library, task }.to_arguments())
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (set_aside(name), value)))
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    // It becomes the leader of a session of its own, so that Ctrl-C does not come to it: that is for the parent, which then
    // ends its children in its own time.
    let child = command.spawn().map_err(|error| LensError::NotStarted { path: path.clone(), error })?;
    let patience = Duration::from_nanos(budget_ns.saturating_add(order.grace_ns));
    let (output, status) = listened_to(Reaped(child), patience)
        .map_err(|error| LensError::NotStarted { path: path.clone(), error })?
        .ok_or_else(|| LensError::Hung { path: path.clone(), after_ms: patience.as_millis() as u64 })?;
    understood(&path, &output, status)
}

/// The library's name, safe to show.
pub(crate) fn shown(order: &LensOrder) -> String {
    sanitize_line(&order.library.to_string_lossy())
}

/// The child's standard input, and the path at which the child finds the library: a file that was opened for a process comes
/// with the child's standard input.
fn handed_over(order: &LensOrder) -> Result<(Stdio, PathBuf), LensError> {
    let Some(opened) = &order.opened else { return Ok((Stdio::null(), order.library.clone())) };
    let file = opened.try_clone().map_err(|error| LensError::Unreadable { path: shown(order), error })?;
    Ok((file.into(), "/proc/self/fd/0".into()))
}

/// Killed and reaped when dropped.
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// All that a child says until it has ended; `None` when its time was over before that.
fn listened_to(mut child: Reaped, patience: Duration) -> io::Result<Option<(Vec<u8>, ExitStatus)>> {
    const POLL: Duration = Duration::from_millis(5);
    let deadline = Instant::now() + patience;
    let stdout = child.0.stdout.take().ok_or_else(|| io::Error::other("it has no standard output"))?;
    // On a thread: a pipe cannot be read with a timeout. It ends with the child.
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().name("lens-child".into()).spawn(move || {
        let mut output = Vec::new();
        let read = stdout.take(MOST_OUTPUT_BYTES).read_to_end(&mut output);
        let _ = sender.send(read.map(|_| output));
    })?;
    let output = match receiver.recv_timeout(patience) {
        Ok(output) => output?,
        Err(_) => return Ok(None),
    };
    // Its output is closed, or longer than it may be: then nobody reads it any more, and it ends or hangs.
    loop {
        if let Some(status) = child.0.try_wait()? {
            return Ok(Some((output, status)));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        thread::sleep(POLL);
    }
}

/// What the lines and the exit status mean.
fn understood(path: &str, output: &[u8], status: ExitStatus) -> Result<ChildReading, LensError> {
    let path = path.to_owned();
    if let Some(signal) = status.signal() {
        return Err(LensError::Crashed { path, signal });
    }
    let mut reading = ChildReading::default();
    for line in output.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        match serde_json::from_slice(line) {
            Ok(Line::Library(identity)) => reading.identity = safe(identity),
            Ok(Line::Absent { op, why }) => {
                if reading.absent.iter().all(|(known, _)| *known != op) {
                    reading.absent.push((op, sanitize_line(&why)));
                }
            }
            Ok(Line::Figure(figure)) => reading.figures.push(figure),
            Ok(Line::Variables { from, hex }) => {
                let bytes = from_hex(&hex).ok_or_else(|| LensError::Nonsense {
                    path: path.clone(),
                    what: "told variables that are no hexadecimal digits".into(),
                })?;
                reading.variables.push(Part { from, bytes });
            }
            Ok(Line::Failed { why }) => return Err(LensError::Unusable { why: plain(&why, &path), path }),
            Ok(Line::Done) if status.success() => return Ok(reading),
            Ok(Line::Done) => break,
            Err(_) => {
                let line = sanitize_line(&String::from_utf8_lossy(line));
                return Err(LensError::Nonsense { path, what: format!("said {line:?} instead of a figure") });
            }
        }
    }
    let what = match status.code() {
        Some(code) => format!("ended with exit code {code} before all was measured"),
        None => "ended before all was measured".into(),
    };
    Err(LensError::Nonsense { path, what })
}

/// The loader's words with what they mean in front, and without the path that the sentence has already.
fn plain(why: &str, path: &str) -> String {
    let why = sanitize_line(why);
    let words =
        why.strip_prefix(&format!("{path}: ")).or_else(|| why.strip_prefix("/proc/self/fd/0: ")).unwrap_or(&why);
    let meaning = if words.contains("ld-musl") || words.contains("libc.musl") {
        "it is linked against musl, and this duel is not: "
    } else if words.contains("GLIBC_") {
        "it wants a newer C library than this duel runs with: "
    } else if words.contains("Dynamic loading not supported") {
        "this duel is linked statically and can load no library: "
    } else if words.contains("undefined symbol") {
        "it misses symbols: "
    } else {
        ""
    };
    format!("{meaning}{words}")
}

fn safe(identity: LensIdentity) -> LensIdentity {
    // Compilers' flags are longer than a line; what comes after is cut where it is shown.
    let safe = |text: Option<String>| text.map(|text| duel_model::sanitize(&text).replace(['\n', '\t'], " "));
    LensIdentity { version: safe(identity.version), compiler: safe(identity.compiler), cpu: safe(identity.cpu) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exit(code: i32) -> ExitStatus {
        ExitStatus::from_raw(code << 8)
    }

    #[test]
    fn only_a_child_that_told_all_is_believed() {
        let library = r#"{"library":{"version":"OpenSSL \u001b[2J","compiler":null,"cpu":null}}"#;
        let figure = r#"{"figure":{"op":"sha256","block_bytes":16,"rounds_per_s":[1.0],"cpu_ns":1,"wall_ns":1}}"#;
        let all = format!("{library}\n{figure}\n\"done\"\n");
        let reading = understood("x", all.as_bytes(), exit(0)).unwrap();
        assert_eq!(reading.figures.len(), 1);
        assert_eq!(reading.identity.version.as_deref(), Some("OpenSSL \u{fffd}[2J"));
        let said = |text: &str, status| understood("x", text.as_bytes(), status).unwrap_err().to_string();
        assert!(said(&format!("{library}\n{figure}\n"), exit(0)).contains("before all was measured"));
        assert!(said(&all, exit(3)).contains("exit code 3"));
        assert!(said(&all, ExitStatus::from_raw(11)).contains("signal 11 (bad memory access)"));
        assert!(said("hello\x1b\n", exit(0)).contains("said \"hello\u{fffd}\""));
        let failed = r#"{"failed":{"why":"x: libc.musl-x86_64.so.1: cannot open shared object file"}}"#;
        let variables =
            understood("x", b"{\"variables\":{\"from\":16,\"hex\":\"00ff\"}}\n\"done\"\n", exit(0)).unwrap().variables;
        assert_eq!(variables, [Part { from: 16, bytes: vec![0, 255] }]);
        assert!(said(r#"{"variables":{"from":16,"hex":"0g"}}"#, exit(0)).contains("no hexadecimal digits"));
        assert!(said(failed, exit(1)).contains("x cannot be measured: it is linked against musl"));
    }

    proptest! {
        #[test]
        fn no_output_makes_it_stumble(output in proptest::collection::vec(any::<u8>(), 0..300), status in any::<u16>()) {
            let _ = understood("x", &output, ExitStatus::from_raw(i32::from(status)));
        }
    }
}
