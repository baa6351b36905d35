//! A twin from its start to its end.

use crate::process::{Environment, ServerProcess};
use crate::script::{Told, script};
use crate::settings::{self, Edit, ONLINE_CPUS, Setting};
use crate::{NoTwin, libraries, logs};
use duel_model::{TwinChange, TwinReading, sanitize_line};
use duel_process::{MASK_VARIABLES, ProcessFiles, Status};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Time until a server listens. Servers of large configurations take seconds.
const PATIENCE: Duration = Duration::from_secs(20);
/// Further time for the shell to make namespaces and mounts, and to say that it has failed.
const GRACE: Duration = Duration::from_secs(10);
/// Time for everything to end by itself.
const END: Duration = Duration::from_secs(3);
/// Most memory for the files that a twin writes, and as much again for what it shares between its processes.
const MEMORY_BYTES: u64 = 256 << 20;
/// Most bytes that the script may say.
const MOST_ANSWER_BYTES: u64 = 1 << 20;

/// What is to be started.
#[derive(Debug, Clone)]
pub struct TwinOrder<'a> {
    /// The running server.
    pub server: &'a ServerProcess,
    /// What is to be different.
    pub change: Option<TwinChange>,
    /// The mask that the running server has, where its environment does not tell.
    pub mask: Option<&'a str>,
    /// Where the running server is reached. The twin is reached at the same address in its own network.
    pub address: SocketAddr,
}

/// A running twin. It ends when this is dropped, and when this process ends, however that comes about.
#[derive(Debug)]
pub struct Twin {
    /// Holds the namespaces until their first process has ended.
    keeper: Child,
    /// As long as this is open, the twin lives.
    lifeline: Option<ChildStdin>,
    reading: TwinReading,
}

/// How a twin is started: its environment, and what is to come of it.
#[derive(Debug, PartialEq, Eq)]
struct Outfit {
    environment: BTreeMap<OsString, OsString>,
    /// The libcrypto of the server, and the one that stands in its place.
    exchanged: Option<(PathBuf, PathBuf)>,
    /// What makes it set up otherwise.
    edit: Option<Edit>,
    /// CPUs that it may run on, as the kernel lists them.
    cpus: Option<String>,
    /// What differs from the server, in words.
    changed: Option<String>,
    /// The change may not take hold everywhere.
    may_not_hold: bool,
}

impl Twin {
    /// Starts a twin and waits until it listens on the port of its server, or until `stop` is set.
    ///
    /// # Errors
    ///
    /// Why there is no twin: a program or a right that is missing here, a change that cannot be made, a server that
    /// does not start anew, or one that then has a library from elsewhere than the server.
    pub fn start(order: &TwinOrder<'_>, stop: &AtomicBool) -> Result<Self, NoTwin> {
        if !cfg!(target_os = "linux") {
            return Err(NoTwin::new("a twin needs the namespaces of Linux"));
        }
        if !rustix::process::geteuid().is_root() {
            return Err(NoTwin::new("a twin needs namespaces and mounts of its own, which only root may make"));
        }
        let outfit = outfit(order, stop)?;
        let logs = logs::large_logs(order.server.pid, MEMORY_BYTES)?;
        let mut keeper = command(order.server, outfit.cpus.as_deref()).spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => NoTwin::new("setsid (util-linux) is not there"),
            _ => NoTwin::new(format!("cannot start setsid: {error}")),
        })?;
        let answers = keeper.stdout.take().map(listen);
        let complaints = keeper.stderr.take().map(listen);
        let lifeline = keeper.stdin.take();
        let reading = TwinReading {
            environment_known: matches!(order.server.environment, Environment::Known(_)),
            changed: outfit.changed.clone(),
            libcrypto: None,
            may_not_hold: outfit.may_not_hold,
            is_reached_otherwise: has_own_network(order.server),
            ..TwinReading::default()
        };
        // From here on dropping ends it.
        let mut twin = Self { keeper, lifeline, reading };
        let sent =
            twin.lifeline.as_mut().map(|line| line.write_all(&told(order, &outfit, &logs)).and_then(|()| line.flush()));
        let mapped = answers.map_or(Err(None), |answers| twin.until_ready(&answers, stop));
        match (mapped, sent) {
            (Ok(mapped), Some(Ok(()))) => {
                on_its_cpus(twin.keeper.id(), order, &outfit)?;
                twin.reading.libcrypto = checked(&mapped, order.server, &outfit)?;
                Ok(twin)
            }
            (Err(Some(why)), _) => Err(NoTwin::new(why)),
            // Its shell has ended without a word of its own: what the programs before it have said.
            _ => {
                let said = complaints.and_then(|lines| lines.recv_timeout(Duration::from_millis(500)).ok());
                let said = said.map_or_else(|| "unshare has ended".to_owned(), |line| sanitize_line(&line));
                Err(NoTwin::new(format!("namespaces of its own are not to be had here: {said}")))
            }
        }
    }

    /// The process by whose `/proc/PID/ns/net` its network can be entered.
    pub fn network_pid(&self) -> u32 {
        self.keeper.id()
    }

    /// What it was started as, and what it maps.
    pub fn reading(&self) -> &TwinReading {
        &self.reading
    }

    /// The files that it executes, once it listens; why it does not, as far as anybody told.
    fn until_ready(&self, answers: &Receiver<String>, stop: &AtomicBool) -> Result<Vec<PathBuf>, Option<String>> {
        let deadline = Instant::now() + PATIENCE + GRACE;
        let mut mapped = Vec::new();
        loop {
            match answers.recv_timeout(Duration::from_millis(50)) {
                Ok(line) => match line.split_once(' ').unwrap_or((&line, "")) {
                    ("ready", "") => return Ok(mapped),
                    ("maps", path) => mapped.push(PathBuf::from(path)),
                    ("failed", why) => return Err(Some(sanitize_line(why))),
                    _ => return Err(Some("its shell said something else than it should".to_owned())),
                },
                Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                    return Err(Some("interrupted".to_owned()));
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                Err(RecvTimeoutError::Timeout) => return Err(Some("it took too long to start".to_owned())),
                Err(RecvTimeoutError::Disconnected) => return Err(None),
            }
        }
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        let deadline = Instant::now() + END;
        while Instant::now() < deadline {
            match self.keeper.try_wait() {
                Ok(None) => thread::sleep(Duration::from_millis(5)),
                // The first process of the twin has ended, and the kernel has waited for all others.
                Ok(Some(_)) | Err(_) => return,
            }
        }
        // `unshare --kill-child` takes the twin's first process with it.
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}

/// The command that becomes the keeper: in a session of its own, on these CPUs, among the server's mounts, in new namespaces.
///
/// The session comes first: whoever has a terminal can type into it, and what the server's owner has chosen is started below.
/// The keeper ends with us, whatever it is doing, and process 1 of the twin with the keeper.
fn command(server: &ServerProcess, cpus: Option<&str>) -> Command {
    let mut words: Vec<OsString> = ["setsid", "setpriv", "--pdeathsig=KILL", "--"].map(OsString::from).into();
    if let Some(cpus) = cpus {
        words.extend(["taskset", "-c", cpus].map(OsString::from));
    }
    if server.has_own_mounts {
        words.extend(["nsenter".into(), mounts_of(server), "--".into()]);
    }
    let unshare = ["unshare", "--net", "--mount", "--ipc", "--pid", "--fork", "--kill-child", "--", "/bin/sh", "-s"];
    words.extend(unshare.map(OsString::from));
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .env_clear()
        .env("PATH", "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // No process group of its own: `setsid` would have to leave its leader behind, whose number is the keeper's. In the new
    // session Ctrl-C does not come to it: that is for us, who then end it in our own time.
    command
}

/// The mounts of a server, by the process that is held and not by its number.
fn mounts_of(server: &ServerProcess) -> OsString {
    let mut word = OsString::from("--mount=");
    word.push(server.files().path("ns/mnt"));
    word
}

/// The script for this order.
fn told(order: &TwinOrder<'_>, outfit: &Outfit, logs: &[PathBuf]) -> Vec<u8> {
    let server = order.server;
    let mut arguments = vec![server.program.as_os_str()];
    let own = outfit.edit.as_ref().map_or(&server.arguments, |edit| &edit.arguments);
    arguments.extend(own.iter().map(OsString::as_os_str));
    let ip = order.address.ip();
    let prefix = if ip.is_ipv4() { 32 } else { 128 };
    script(&Told {
        arguments,
        executable: server.executable.as_os_str(),
        environment: outfit.environment.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())).collect(),
        folder: server.folder.as_os_str(),
        umask: server.umask.map_or_else(String::new, |bits| format!("{bits:04o}")),
        rights: server.rights.clone(),
        address: if ip.is_loopback() { String::new() } else { format!("{ip}/{prefix}") },
        port: order.address.port(),
        exchanged: outfit.exchanged.as_ref().map(|(own, found)| (own.as_os_str(), found.as_os_str())),
        edited: outfit.edit.as_ref().map_or(&[], |edit| &edit.files),
        logs: logs.iter().map(|path| path.as_os_str()).collect(),
        patience: PATIENCE.as_millis() as u32 / 100,
        memory_bytes: MEMORY_BYTES,
    })
}

/// What a server whose environment is lost is given in any case: where programs are found.
const CLEAN: (&str, &str) = ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";

/// The server's own environment, as far as it is known, with the change done to it.
fn outfit(order: &TwinOrder<'_>, stop: &AtomicBool) -> Result<Outfit, NoTwin> {
    let server = order.server;
    let environment = match &server.environment {
        Environment::Known(environment) => environment.clone(),
        Environment::Overwritten => {
            let mut environment = BTreeMap::from([(CLEAN.0.into(), CLEAN.1.into())]);
            // What it maps tells where it was told to look.
            if let Some(path) = libraries::path_of(&server.mapped) {
                environment.insert(LIBRARY_PATH.into(), path);
            }
            if let Some(mask) = order.mask {
                environment.insert(MASK_VARIABLES[0].into(), mask.into());
            }
            environment
        }
    };
    let mut outfit = Outfit {
        environment,
        exchanged: None,
        edit: None,
        cpus: server.cpus.clone(),
        changed: None,
        may_not_hold: false,
    };
    let Some(change) = order.change else { return Ok(outfit) };
    outfit.changed = Some(match change {
        TwinChange::NoMask => unmask(&mut outfit.environment, &server.environment)?,
        TwinChange::SystemLibcrypto => {
            let (own, found) = another_libcrypto(server)?;
            let told = format!("{} in the place of {}", shown(&found), shown(&own));
            outfit.exchanged = Some((own, found));
            told
        }
        TwinChange::AllCpus => {
            let (all, told) = all_cpus(server)?;
            outfit.cpus = Some(all);
            // More CPUs are no use to workers that are too few for them.
            match outfit.set(server, Setting::WorkersForAllCpus, stop) {
                Ok(workers) if workers.is_empty() => told,
                Ok(workers) => format!("{told}, {workers}"),
                Err(_) => {
                    outfit.may_not_hold = true;
                    told
                }
            }
        }
        TwinChange::MoreWorkers => outfit.set(server, Setting::MoreWorkers, stop)?,
        TwinChange::LargePieces => outfit.set(server, Setting::LargePieces, stop)?,
        TwinChange::NoLimits => outfit.set(server, Setting::NoLimits, stop)?,
    });
    Ok(outfit)
}

impl Outfit {
    /// Sets it up otherwise, and tells how.
    fn set(&mut self, server: &ServerProcess, setting: Setting, stop: &AtomicBool) -> Result<String, NoTwin> {
        let edit = settings::edit(server, setting, stop)?;
        self.may_not_hold = edit.may_not_hold;
        Ok(self.edit.insert(edit).told.clone())
    }
}

/// The server's libcrypto, and the system's own that can stand in its place.
fn another_libcrypto(server: &ServerProcess) -> Result<(PathBuf, PathBuf), NoTwin> {
    let own = server.mapped.iter().find(|mapping| mapping.is_libcrypto());
    let own = own.ok_or_else(|| NoTwin::new("the server maps no libcrypto that could be exchanged"))?.path.clone();
    let found = libraries::the_system_s(&own, &server.files().inside(Path::new("/")), &server.files().path("exe"));
    Ok((own, found.map_err(NoTwin::new)?))
}

/// The CPUs of the machine, and in which words the server's are fewer.
fn all_cpus(server: &ServerProcess) -> Result<(String, String), NoTwin> {
    let all = fs::read_to_string(ONLINE_CPUS);
    let all = all.map_err(|error| NoTwin::new(format!("which CPUs the machine has is not told: {error}")))?;
    let all = sanitize_line(all.trim());
    match &server.cpus {
        Some(own) if *own == all => Err(NoTwin::new("the server may run on all CPUs already")),
        Some(own) => Ok((all.clone(), format!("on the CPUs {all} instead of {}", sanitize_line(own)))),
        None => Err(NoTwin::new("on which CPUs the server may run is not known")),
    }
}

fn shown(path: &Path) -> String {
    sanitize_line(&path.to_string_lossy())
}

/// Takes all masks away, and tells which.
fn unmask(environment: &mut BTreeMap<OsString, OsString>, known: &Environment) -> Result<String, NoTwin> {
    let gone: Vec<String> = MASK_VARIABLES
        .iter()
        .filter_map(|name| Some(format!("{name}={}", environment.remove(OsStr::new(name))?.to_string_lossy())))
        .collect();
    match (gone.is_empty(), known) {
        (false, _) => Ok(format!("without {}", sanitize_line(&gone.join(" ")))),
        (true, Environment::Known(_)) => Err(NoTwin::new("the server's environment has no mask to take away")),
        (true, Environment::Overwritten) => {
            Err(NoTwin::new("the server has written over its environment, so a mask in it cannot be taken away"))
        }
    }
}

/// The libcrypto of a twin that maps what its server maps, from the same places, except for what was exchanged, which lies
/// in the same place too. A libcrypto may be loaded late; where one was exchanged, it has to be there.
fn checked(mapped: &[PathBuf], server: &ServerProcess, outfit: &Outfit) -> Result<Option<String>, NoTwin> {
    if let Some((of_twin, of_server)) = libraries::from_elsewhere(mapped, &server.mapped) {
        return Err(NoTwin::new(format!("it maps {} where {} was expected", shown(of_twin), shown(of_server))));
    }
    match &outfit.exchanged {
        Some((own, found)) if mapped.contains(own) => Ok(Some(shown(found))),
        Some((own, _)) => Err(NoTwin::new(format!("it does not map what was put in the place of {}", shown(own)))),
        None => {
            let is_libcrypto =
                |path: &&PathBuf| server.mapped.iter().any(|mapping| mapping.is_libcrypto() && mapping.path == **path);
            Ok(mapped.iter().find(is_libcrypto).map(|path| shown(path)))
        }
    }
}

/// Whether a server is in another network than we are; where that is not told it counts as if it were.
fn has_own_network(server: &ServerProcess) -> bool {
    let network = |files: &ProcessFiles| files.link("ns/net", "the network").ok();
    let (theirs, ours) = (network(server.files()), network(&ProcessFiles::of(std::process::id())));
    theirs.is_none() || theirs != ours
}

/// Refuses a twin that was to run on further CPUs and may not: this process itself may be confined to some.
fn on_its_cpus(keeper: u32, order: &TwinOrder<'_>, outfit: &Outfit) -> Result<(), NoTwin> {
    if order.change != Some(TwinChange::AllCpus) {
        return Ok(());
    }
    let status = ProcessFiles::of(keeper).read("status", "the CPUs").map_err(|error| NoTwin::new(error.to_string()))?;
    let has = Status::parse(&status).cpus;
    if has == outfit.cpus {
        return Ok(());
    }
    let shown = |list: &Option<String>| list.as_deref().map_or_else(|| "unknown ones".to_owned(), sanitize_line);
    Err(NoTwin::new(format!(
        "what duel starts may run on the CPUs {} only, not on {}",
        shown(&has),
        shown(&outfit.cpus)
    )))
}

/// Lines as they come, on a thread: a pipe cannot be read with a timeout. It ends with the pipe.
fn listen(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    let lines = BufReader::new(pipe.take(MOST_ANSWER_BYTES)).split(b'\n');
    let spawned = thread::Builder::new().name("duel-twin".into()).spawn(move || {
        for line in lines.map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    // Without the thread the channel is closed, which reads as an end without a word.
    drop(spawned);
    receiver
}
