//! What a child of ours does: it loads a library, or goes to the kernel, and works as its orders say, by the protocol that `child_process` describes.

use crate::child_process::{hex, unhex};
use crate::engine::{Engine, Renews, Task};
use crate::kernel;
use crate::library::Library;
use crate::ops;
use duel_process::MASK_VARIABLES;
use rustix::time::{ClockId, clock_gettime};
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, Write};
use std::path::Path;

/// Who does the ops.
enum Source {
    Library(Library),
    /// The kernel, and which of its implementations.
    Kernel(Option<String>),
}

/// What is ready to do them.
enum Doer<'l> {
    Library(&'l Library, Engine<'l>, Task),
    Kernel(kernel::Engine),
}

/// Works until its input ends. The arguments are `openssl`, `openssl PATH`, `aws-lc`, `kernel` or `kernel DRIVER`.
pub fn main(arguments: &[OsString]) -> ! {
    die_with_parent();
    std::process::exit(i32::from(work(arguments).is_err()))
}

/// A parent that was killed cannot end its children. One whose library hangs does not see the end of its input either.
fn die_with_parent() {
    #[cfg(target_os = "linux")]
    {
        let parent = rustix::process::getppid();
        let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
        if rustix::process::getppid() != parent {
            std::process::exit(0);
        }
    }
}

fn work(arguments: &[OsString]) -> std::io::Result<()> {
    // A library may print; our answers go where it cannot.
    let mut answers = File::from(rustix::io::dup(std::io::stdout())?);
    let nowhere = File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&nowhere)?;
    let source = match (arguments.first().and_then(|word| word.to_str()), arguments.get(1)) {
        (Some("openssl"), path) => Library::open(path.map(Path::new)).map(Source::Library),
        (Some("aws-lc"), _) => Ok(Source::Library(Library::BuiltIn)),
        (Some("kernel"), driver) => Ok(Source::Kernel(driver.map(|name| name.to_string_lossy().into_owned()))),
        _ => Err("it was started without a library".to_owned()),
    };
    let mut doer = None;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let answer = match &source {
            Err(why) => format!("cannot {}", one_line(why)),
            Ok(source) => answered(source, &mut doer, &line),
        };
        answers.write_all(format!("{answer}\n").as_bytes())?;
    }
    Ok(())
}

fn answered<'l>(source: &'l Source, doer: &mut Option<Doer<'l>>, line: &str) -> String {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let done = match (word, doer) {
        ("work", doer) => begin(source, rest).map(|made| format!("{}ready", facts(doer.insert(made)))),
        ("run", Some(doer)) => {
            let done = rest.parse().map_err(|_| "that is no number".to_owned()).and_then(|count| match doer {
                Doer::Library(_, engine, _) => run(count, |count| engine.ops(count)),
                Doer::Kernel(engine) => run(count, |count| (0..count).try_for_each(|_| engine.op())),
            });
            return done.unwrap_or_else(|why| format!("failed {}", one_line(&why)));
        }
        ("answer", Some(doer)) => answer(doer, rest),
        ("run" | "answer", None) => Err("there is nothing to do".to_owned()),
        _ => Err("that is no order".to_owned()),
    };
    done.unwrap_or_else(|why| format!("cannot {}", one_line(&why)))
}

fn begin<'l>(source: &'l Source, rest: &str) -> Result<Doer<'l>, String> {
    let mut words = rest.split(' ');
    let name = words.next().unwrap_or_default();
    let op = ops::of_name(name).ok_or_else(|| format!("there is no op '{name}'"))?;
    let mut task = Task { op, block: 16_384, chunk: usize::MAX, decrypt: false, renews: Renews::Nothing };
    for word in words {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let bytes =
            || value.parse::<usize>().ok().filter(|bytes| (1..=1 << 20).contains(bytes)).ok_or("a size is wrong");
        match name {
            "block" => task.block = bytes()?,
            "chunk" => task.chunk = bytes()?,
            "direction" => task.decrypt = value == "decrypt",
            "renew" => {
                task.renews = match value {
                    "nonce" => Renews::Nonce,
                    "key" => Renews::Key,
                    _ => Renews::Nothing,
                }
            }
            _ => {}
        }
    }
    if task.renews == Renews::Nothing && op.name.ends_with("-xts") {
        // A call is a data unit, and each has its own tweak.
        task.renews = Renews::Nonce;
    }
    Ok(match source {
        Source::Library(library) => Doer::Library(library, Engine::new(library, task)?, task),
        Source::Kernel(driver) => Doer::Kernel(kernel::opened(task, driver.as_deref())?),
    })
}

fn answer(doer: &mut Doer<'_>, rest: &str) -> Result<String, String> {
    let parts: Option<Vec<Vec<u8>>> = rest.split(' ').map(unhex).collect();
    let Some([key, iv, aad, input]) = parts.as_deref() else { return Err("that is no order".to_owned()) };
    let answer = match doer {
        Doer::Library(library, _, task) => Engine::answer(library, *task, key, iv, aad, input),
        Doer::Kernel(engine) => engine.answer(key, iv, aad, input),
    };
    Ok(format!("answer {}", hex(&answer?)))
}

fn run(count: u64, ops: impl FnOnce(u64) -> Result<(), String>) -> Result<String, String> {
    let (cpu_before_ns, start_ns) = (now_ns(ClockId::ThreadCPUTime), now_ns(ClockId::Monotonic));
    ops(count)?;
    let (end_ns, cpu_ns) = (now_ns(ClockId::Monotonic), now_ns(ClockId::ThreadCPUTime));
    Ok(format!("done {start_ns} {end_ns} {}", cpu_ns.saturating_sub(cpu_before_ns)))
}

/// What does the ops, as lines of facts.
fn facts(doer: &Doer<'_>) -> String {
    let library = match doer {
        Doer::Library(library, ..) => library,
        Doer::Kernel(engine) => {
            let line = |(name, text): (_, String)| format!("fact {name} {}\n", one_line(&text));
            return engine.facts().into_iter().map(line).collect();
        }
    };
    let version = library.version().map(|version| format!("fact version {}\n", one_line(&version)));
    let compiler = library.compiler().map(|compiler| format!("fact compiler {}\n", one_line(&compiler)));
    let path = match library {
        Library::BuiltIn => Some("part of duel".to_owned()),
        Library::Loaded(_) => mapped(),
    };
    let path = path.map(|path| format!("fact library {}\n", one_line(&path)));
    let cpu = library.cpu().map(|cpu| format!("fact cpu {}\n", one_line(&cpu)));
    // Set by duel or by who started it: it hides features of the CPU from the library in either case.
    let set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let mask = MASK_VARIABLES.iter().find(|name| set(name));
    let mask = mask.map(|name| {
        let value = std::env::var_os(name).unwrap_or_default();
        format!("fact mask {name}={}\n", one_line(&value.to_string_lossy()))
    });
    [version, compiler, cpu, path, mask].into_iter().flatten().collect()
}

/// The file of the libcrypto that this process maps, where the system tells.
fn mapped() -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let paths = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
    paths
        .into_iter()
        .find(|path| path.rsplit('/').next().is_some_and(|name| name.contains("crypto")))
        .map(str::to_owned)
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

fn now_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    // Neither clock is ever negative.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
