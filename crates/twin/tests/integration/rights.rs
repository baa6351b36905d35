//! What a twin may do, and what of its server's runs with whose rights: at a small server that tells what it sees. They need
//! Linux, root, namespaces and python3; where these are not to be had, that is said, and nothing fails.
#![cfg(target_os = "linux")]

use crate::common::{children, get, may_make_namespaces, skipped, wait_until, within};
use duel_twin::{NoTwin, ServerProcess, Twin, TwinOrder};
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;

const NOBODY: u32 = 65534;
const PYTHON: &str = "/usr/bin/python3";

/// Tells what it is and sees to whoever connects. The first line of its log is longer than what is copied into a twin.
const SERVER: &str = r#"
import os, resource, socket, stat, sys
folder, port = sys.argv[1], int(sys.argv[2])
log = open(folder + "/log", "a")
listener = socket.create_server(("127.0.0.1", port))
def may_write(path):
    try: os.close(os.open(path, os.O_WRONLY)); return "yes"
    except OSError as error: return error.strerror
def connects(path):
    try: socket.socket(socket.AF_UNIX).connect(path); return "yes"
    except OSError as error: return error.strerror
def opens_terminal():
    path = folder + "/terminal"
    try: os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(5, 0))
    except FileExistsError: pass
    except OSError as error: return "no node: " + error.strerror
    return may_write(path)
def status(name):
    return [line.split(None, 1)[1].strip() for line in open("/proc/self/status") if line.startswith(name + ":")][0]
def same(one, other):
    return (os.stat(one).st_dev, os.stat(one).st_ino) == (os.stat(other).st_dev, os.stat(other).st_ino)
while True:
    connection, _ = listener.accept()
    connection.recv(4096)
    told = {
        "uid": os.getuid(), "groups": sorted(os.getgroups()), "capabilities": status("CapEff"),
        "gains nothing": status("NoNewPrivs"), "umask": status("Umask"), "nice": os.nice(0),
        "descriptors": resource.getrlimit(resource.RLIMIT_NOFILE), "core": resource.getrlimit(resource.RLIMIT_CORE),
        "environment": sorted(os.environ.items()), "descriptors open": sorted(os.listdir("/proc/self/fd"))[:-1],
        "log": os.stat(folder + "/log").st_size, "socket": connects(folder + "/socket"),
        "bound socket": connects(folder + "/bound"),
        "root": os.getuid() != 0 or same("/proc/1/root", "/"),
        "switch": may_write("/proc/sys/vm/drop_caches"), "trigger": may_write("/proc/sysrq-trigger"),
        "switch of its network": may_write("/proc/sys/net/ipv4/ip_forward"),
        "terminal": opens_terminal(), "device of a terminal": may_write("/dev/tty"),
    }
    connection.sendall("".join("%s: %s\n" % item for item in told.items()).encode())
    connection.close()
"#;

/// A server, and the folder that it may write to. It ends when dropped.
struct Server {
    process: Child,
    folder: tempfile::TempDir,
    address: SocketAddr,
}

impl Server {
    /// Started by these words, which run what follows them, as this user and with this environment.
    fn start(words: &[&str], uid: u32, environment: &[(&str, &Path)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        fs::write(folder.path().join("server.py"), SERVER).unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg(PYTHON).arg(folder.path().join("server.py")).arg(folder.path());
        command.arg(address.port().to_string()).current_dir(folder.path()).stdin(Stdio::null());
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").envs(environment.iter().copied());
        if uid != 0 {
            command.uid(uid).gid(uid);
        }
        let mut server = Self { process: command.spawn().unwrap(), folder, address };
        server.wait();
        server
    }

    /// Until it has opened its log, right before it listens, and is the last of the programs that lead to it.
    fn wait(&mut self) {
        let log = self.path("log");
        wait_until("the server starts", || log.exists() || self.process.try_wait().unwrap().is_some());
        assert!(self.process.try_wait().unwrap().is_none(), "the server has ended");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn twin(&self) -> Result<Twin, NoTwin> {
        let server = ServerProcess::read(self.process.id())?;
        let order = TwinOrder { server: &server, change: None, mask: None, address: self.address };
        Twin::start(&order, &AtomicBool::new(false))
    }

    /// What its twin tells.
    fn told_by_twin(&self) -> Told {
        let twin = self.twin().unwrap();
        Told(within(twin.network_pid(), self.address, get))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for child in children(self.process.id()) {
            let pid = i32::try_from(child).ok().and_then(rustix::process::Pid::from_raw);
            let _ = pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::KILL));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Lines of what a server tells.
struct Told(String);

impl Told {
    #[track_caller]
    fn of(&self, name: &str) -> &str {
        let line = self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.unwrap_or_else(|| panic!("no {name} in {}", self.0))
    }
}

#[track_caller]
fn applies() -> bool {
    if !Path::new(PYTHON).exists() {
        skipped("there is no python3");
        return false;
    }
    may_make_namespaces()
}

/// A library that writes, when it is loaded, to this file who has loaded it.
fn telltale(folder: &Path) -> Option<PathBuf> {
    let (source, library) = (folder.join("telltale.c"), folder.join("telltale.so"));
    let code = format!(
        "#include <stdio.h>\n#include <unistd.h>\n__attribute__((constructor)) static void tell(void) {{\n\
         FILE *told = fopen(\"{}/told\", \"a\"); if (told) {{ fprintf(told, \"%d\\n\", geteuid()); fclose(told); }} }}\n",
        folder.display()
    );
    fs::write(&source, code).unwrap();
    let made = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    if !made.is_ok_and(|made| made.success()) {
        skipped("there is no C compiler");
        return None;
    }
    Some(library)
}

#[test]
fn what_a_server_s_owner_has_chosen_is_run_with_the_owner_s_rights() {
    if !applies() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let Some(library) = telltale(folder.path()) else { return };
    let told = folder.path().join("told");
    let server = Server::start(&["env"], NOBODY, &[("LD_PRELOAD", &library), ("LD_AUDIT", Path::new("/nowhere.so"))]);
    fs::remove_file(&told).unwrap();
    let twin = server.twin().unwrap();
    // Among the files that the twin sees, as its first process does.
    let root = format!("/proc/{}/root", children(twin.network_pid())[0]);
    let loaded = fs::read_to_string(format!("{root}{}", told.display())).unwrap();
    assert!(!loaded.is_empty() && loaded.lines().all(|uid| uid == NOBODY.to_string()), "loaded by {loaded:?}");
    assert!(!told.exists(), "what a twin writes is seen by nobody");

    let said = Told(within(twin.network_pid(), server.address, get));
    assert_eq!((said.of("uid"), said.of("groups")), ("65534", "[]"));
    assert_eq!((said.of("capabilities"), said.of("gains nothing")), ("0000000000000000", "1"));
    assert!(said.of("environment").contains("telltale.so"), "it has the environment all the same");
}

#[test]
fn a_twin_has_the_environment_limits_and_priority_of_its_server() {
    if !applies() {
        return;
    }
    let words =
        ["prlimit", "--nofile=123:456", "--core=0:7", "nice", "-n", "3", "sh", "-c", "umask 0037; exec \"$@\"", "sh"];
    let environment = [("UID", "7"), ("PPID", "8"), ("SECRET", "it's $HOME"), ("PWD", "/x")];
    let environment = environment.map(|(name, value)| (name, Path::new(value)));
    let server = Server::start(&words, 0, &environment);
    // As it is, since a shell stands before the server here.
    let own = fs::read_to_string(format!("/proc/{}/environ", server.process.id())).unwrap();
    let told = server.told_by_twin();
    assert_eq!((told.of("descriptors"), told.of("core")), ("(123, 456)", "(0, 7)"));
    // `nice` adds to what whoever runs the tests has.
    let nice = (rustix::process::getpriority_process(None).unwrap() + 3).to_string();
    assert_eq!((told.of("nice"), told.of("umask"), told.of("gains nothing")), (nice.as_str(), "0037", "0"));
    let mut expected: Vec<String> = own
        .split_terminator('\0')
        .map(|entry| {
            let (name, value) = entry.split_once('=').unwrap();
            if value.contains('\'') { format!("('{name}', \"{value}\")") } else { format!("('{name}', '{value}')") }
        })
        .collect();
    expected.sort();
    // Python may add a variable for the encoding.
    let found = told.of("environment");
    for entry in &expected {
        assert!(found.contains(entry.as_str()), "{entry} in {found}");
    }
    assert_eq!(
        found.matches("('").count(),
        expected.len() + usize::from(found.contains("LC_CTYPE") && !own.contains("LC_CTYPE"))
    );
    // Standard streams, log, listener, connection: nothing of the shell that has started it.
    let open = told.of("descriptors open");
    assert!(open.contains("'5'") && !["'6'", "'7'", "'8'"].iter().any(|shell_s| open.contains(shell_s)), "{open}");
}

#[test]
fn a_root_s_twin_moves_no_switch_of_the_machine_and_finds_no_way_out() {
    if !applies() {
        return;
    }
    // A socket that is a mount point itself, as containers get them.
    let words = ["unshare", "--mount", "sh", "-c", ": >bound && mount --bind socket bound && exec \"$@\"", "sh"];
    let outside = tempfile::tempdir().unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(outside.path().join("socket")).unwrap();
    let link = format!("ln -s {} socket; ", outside.path().join("socket").display());
    let command = link + words[4];
    let server = Server::start(&[words[0], words[1], words[2], words[3], &command, words[5]], 0, &[]);
    let told = server.told_by_twin();
    assert_eq!(told.of("switch"), "Read-only file system");
    // Not every kernel has this one.
    assert!(["Read-only file system", "No such file or directory"].contains(&told.of("trigger")), "{}", told.0);
    assert_eq!((told.of("switch of its network"), told.of("root")), ("yes", "True"));
    assert_eq!(told.of("socket"), "Connection refused");
    assert_eq!(told.of("bound socket"), "Connection refused");
}

/// Runs the test of this name again, alone, on a terminal of its own. There it does `body`.
fn on_a_terminal(test: &str, body: impl FnOnce()) {
    const INSIDE: &str = "DUEL_TEST_ON_A_TERMINAL";
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let spawn = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let mut command = Command::new(PYTHON);
    command.args(["-c", spawn]).arg(std::env::current_exe().unwrap()).args(["--exact", test, "--nocapture"]);
    let output = command.env(INSIDE, "1").stdin(Stdio::null()).output().unwrap();
    let told = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
}

#[test]
fn a_twin_has_no_terminal() {
    if !applies() {
        return;
    }
    on_a_terminal("rights::a_twin_has_no_terminal", || {
        fs::File::open("/dev/tty").expect("this process has one");
        let server = Server::start(&["env"], 0, &[]);
        let told = server.told_by_twin();
        // Not even one that root makes a node for.
        assert_eq!(told.of("terminal"), "No such device or address");
        assert_eq!(told.of("device of a terminal"), "No such file or directory");
    });
}

/// What a process of this test is to have a twin of: number and address.
const HAS_A_TWIN: &str = "DUEL_TEST_HAS_A_TWIN";

/// No test by itself: a process that has a twin, and waits to be killed.
#[test]
fn has_a_twin_for_the_other_tests() {
    let Ok(of) = std::env::var(HAS_A_TWIN) else { return };
    let (pid, address) = of.split_once(' ').unwrap();
    let server = ServerProcess::read(pid.parse().unwrap()).unwrap();
    let order = TwinOrder { server: &server, change: None, mask: None, address: address.parse().unwrap() };
    let twin = Twin::start(&order, &AtomicBool::new(false)).unwrap();
    println!("\nkeeper {}", twin.network_pid());
    // Longer than any test; whoever started it kills it.
    std::thread::sleep(std::time::Duration::from_secs(300));
}

#[test]
fn a_twin_that_does_not_see_its_end_ends_with_who_has_started_it() {
    use std::io::{BufRead, BufReader};
    if !applies() {
        return;
    }
    let server = Server::start(&["env"], 0, &[]);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "rights::has_a_twin_for_the_other_tests", "--nocapture"]);
    command.env(HAS_A_TWIN, format!("{} {}", server.process.id(), server.address));
    let mut starter = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let told = BufReader::new(starter.stdout.take().unwrap()).lines().map(Result::unwrap);
    let keeper = told.filter_map(|line| line.strip_prefix("keeper ")?.parse().ok()).next();
    let keeper: u32 = keeper.expect("there is a twin");
    let first = children(keeper)[0];
    // As where a file system that it mounts does not answer: it does not see the end of its input, since there is none.
    let _input = fs::File::options().write(true).open(format!("/proc/{keeper}/fd/0")).unwrap();
    starter.kill().unwrap();
    starter.wait().unwrap();
    let is_there = |pid: u32| Path::new(&format!("/proc/{pid}")).exists();
    wait_until("the twin is gone", || !is_there(keeper) && !is_there(first));
    assert!(is_there(server.process.id()));
}

#[test]
fn a_large_log_is_not_copied() {
    if !applies() {
        return;
    }
    let server = Server::start(&["env"], 0, &[]);
    // A hole, larger than the memory that a twin has for all that it writes.
    fs::File::options().write(true).open(server.path("log")).unwrap().set_len(1 << 30).unwrap();
    assert_eq!(server.told_by_twin().of("log"), "0");
    assert_eq!(fs::metadata(server.path("log")).unwrap().len(), 1 << 30, "the server's own is as it was");
}

#[test]
fn confined_servers_have_no_twin() {
    if !applies() {
        return;
    }
    for (words, part) in [
        (&["setpriv", "--bounding-set=-sys_admin", "--"][..], "fewer capabilities"),
        (&["unshare", "--user", "--map-root-user"], "user namespace"),
        (&["setpriv", "--ruid=65534", "--"], "several user or group ids"),
        (&["unshare", "--mount", "sh", "-c", "mount --bind / /mnt && exec chroot /mnt \"$@\"", "sh"], "root folder"),
    ] {
        let server = Server::start(words, 0, &[]);
        let why = server.twin().unwrap_err().to_string();
        assert!(why.contains("not available here") && why.contains(part), "{words:?}: {why}");
    }
}

#[test]
fn a_server_with_other_mounts_but_our_programs_has_a_twin() {
    if !applies() {
        return;
    }
    // As in `ip netns exec`: another network, and a file mounted over another.
    let script = "mount --bind /etc/hostname /etc/hosts && ip link set lo up && exec \"$@\"";
    let server = Server::start(&["unshare", "--mount", "--net", "sh", "-c", script, "sh"], 0, &[]);
    assert_eq!(server.told_by_twin().of("uid"), "0");
}

#[test]
fn programs_that_lie_over_ours_are_not_run_by_root() {
    if !applies() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (evil, ran) = (folder.path().join("evil"), folder.path().join("ran"));
    fs::write(&evil, format!("#!/bin/sh\n: >{}\n", ran.display())).unwrap();
    fs::set_permissions(&evil, fs::Permissions::from_mode(0o755)).unwrap();
    for over in ["/usr/bin/cat", "/usr/bin/chmod"] {
        let script = format!("mount --bind {} {over} && exec \"$@\"", evil.display());
        let server = Server::start(&["unshare", "--mount", "sh", "-c", &script, "sh"], 0, &[]);
        let why = server.twin().unwrap_err().to_string();
        assert!(why.contains("among the server's own mounts there is another") && why.contains(over), "{why}");
        assert!(!ran.exists());
    }
}

#[test]
fn a_supervisor_is_not_taken_for_the_server_that_it_has_started() {
    if !applies() {
        return;
    }
    let supervisor = "import subprocess, sys; subprocess.run(sys.argv[1:])";
    let server = Server::start(&[PYTHON, "-c", supervisor], 0, &[]);
    let started = children(server.process.id())[0];
    assert_eq!(ServerProcess::read(started).unwrap().pid, started);
}

#[test]
fn a_worker_leads_to_the_process_that_it_is_a_copy_of() {
    if !applies() {
        return;
    }
    let copies = "import os, sys, time\nif os.fork() == 0: open(sys.argv[3] + '/log', 'w')\ntime.sleep(600)";
    let server = Server::start(&[PYTHON, "-c", copies], 0, &[]);
    let worker = children(server.process.id())[0];
    assert_eq!(ServerProcess::read(worker).unwrap().pid, server.process.id());
}
