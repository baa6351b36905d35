//! The reader on this machine, held against other readings of the same.

#![cfg(target_os = "linux")]

use crate::common::{self, Killed, Nginx, busy_ns, is_root, program, quiet, with_shell};
use duel_host::{HostAccess, HostWatch, Options, Server};
use duel_model::{HostSpan, Known, Looks, Sleepers};
use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

fn open(server: &Server) -> HostWatch {
    HostWatch::open_with(&HostAccess::Local, server, &quiet()).unwrap()
}

#[test]
fn facts_agree_with_other_readings() {
    let watch = open(&Server::Unknown);
    let facts = watch.facts();
    let system = rustix::system::uname();
    assert_eq!(facts.text("os.kernel"), Some(format!("Linux {}", system.release().to_string_lossy()).as_str()));
    assert_eq!(facts.text("os.arch"), system.machine().to_str().ok());
    assert_eq!(facts.text("os.hostname"), system.nodename().to_str().ok());
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap();
    let cpus = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    assert_eq!(facts.number("cpu.cpus"), Some(cpus as f64));
    if cfg!(target_arch = "x86_64") {
        let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")).unwrap();
        assert_eq!(facts.text("cpu.model"), Some(model.trim_start_matches([' ', '\t', ':']).trim()));
        assert_eq!(
            facts.text("cpu.flags").unwrap().split(' ').any(|flag| flag == "aes"),
            std::is_x86_feature_detected!("aes")
        );
    }
    let total_bytes = rustix::system::sysinfo().totalram * u64::from(rustix::system::sysinfo().mem_unit);
    assert_eq!(facts.number("memory.total_bytes"), Some(total_bytes as f64));
    let rmem = fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").unwrap();
    let rmem: Vec<&str> = rmem.split_whitespace().collect();
    assert_eq!(facts.text("tcp.tcp_rmem"), Some(rmem.join(" ").as_str()));
    assert!(facts.text("mount./").is_some() && facts.text("link.lo.mtu_bytes").is_some());
    assert!(facts.0["process"].text().is_none(), "no server was named");
}

#[test]
fn counters_lie_between_other_readings() {
    let watch = open(&Server::Unknown);
    let outer = busy_ns();
    let from = watch.sample().unwrap();
    let inner = busy_ns();
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(300) {
        std::hint::black_box(started.elapsed());
    }
    let inner = busy_ns() - inner;
    let to = watch.sample().unwrap();
    let outer = busy_ns() - outer;
    let span = HostSpan::between(&from, &to);
    let growth = span.growth("cpu.busy_ns").unwrap();
    assert!(inner <= growth && growth <= outer, "{inner} <= {growth} <= {outer}");
    assert!(span.elapsed_ns().unwrap() >= 300_000_000, "{span:?}");
    assert!(span.growth("cpu.switches").unwrap() > 0);
    assert_eq!(span.growth("no.such.counter"), None);
    let record = watch.finish();
    assert_eq!((record.samples.len(), record.lost), (2, None));
}

#[test]
fn what_threads_sleep_in_is_seen() {
    const WAITING: usize = 5;
    let watch = open(&Server::Pid(std::process::id()));
    let lock = Mutex::new(());
    std::thread::scope(|scope| {
        let held = lock.lock().unwrap();
        let waiting: Vec<_> = (0..WAITING).map(|_| scope.spawn(|| drop(lock.lock().unwrap()))).collect();
        let mut seen = Sleepers::default();
        common::wait_until("all threads were seen to wait for the lock", || {
            seen = watch.look_who_waits().unwrap().few().sleepers;
            // Threads of other tests may wait for each other, too.
            seen.mean_without_timeout().is_some_and(|threads| threads >= WAITING as f64)
        });
        let in_futexes = seen.mean(|function| function.contains("futex")).unwrap();
        assert!(seen.looks > 1 && in_futexes >= seen.mean_without_timeout().unwrap(), "{seen:?}");
        drop(held);
        waiting.into_iter().for_each(|thread| thread.join().unwrap());
    });
    // Nobody's threads are looked at where no server is known.
    let nobody = open(&Server::Unknown).look_who_waits().unwrap().few();
    assert_eq!(nobody, Looks::default());
}

#[test]
fn connections_that_nobody_accepts_are_counted_where_they_wait() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("behind it.sock");
    let by_path = UnixListener::bind(&path).unwrap();
    let listeners = [(); 2].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    let [arrival, behind] = listeners.each_ref().map(|listener| listener.local_addr().unwrap());
    let watch = open(&Server::Port(arrival.port()));
    let seen = || watch.look_who_waits().unwrap().few().queues;
    let [path, port] = [path.display().to_string(), format!("port {}", behind.port())];
    let quiet = seen();
    assert_eq!((quiet.mean(&path), quiet.mean(&port)), (Some(0.0), Some(0.0)), "{quiet:?}");
    let to_path: Vec<_> = (0..5).map(|_| UnixStream::connect(&path).unwrap()).collect();
    let to_port: Vec<_> = (0..6).map(|_| TcpStream::connect(behind).unwrap()).collect();
    // The server's own queue is none of what it waits for.
    let ours: Vec<_> = (0..4).map(|_| TcpStream::connect(arrival).unwrap()).collect();
    let loaded = seen();
    assert_eq!((loaded.mean(&path), loaded.mean(&port)), (Some(5.0), Some(6.0)), "{loaded:?}");
    assert_eq!(loaded.mean(&format!("port {}", arrival.port())), Some(0.0), "{loaded:?}");
    let _accepted = by_path.accept().unwrap();
    assert_eq!(seen().mean(&path), Some(4.0));
    drop((to_path, to_port, ours));
}

#[test]
fn samples_come_by_themselves_each_period() {
    let options = duel_host::Options { period: Some(Duration::from_millis(20)), ..quiet() };
    let watch = HostWatch::open_with(&HostAccess::Local, &Server::Unknown, &options).unwrap();
    let first = watch.sample().unwrap();
    let mut last = first.clone();
    // However busy the machine is, some come between two that were asked for.
    common::wait_until("samples came by themselves", || {
        std::thread::sleep(Duration::from_millis(200));
        last = watch.sample().unwrap();
        last.counters["cpu.forks"] > first.counters["cpu.forks"] + 5
    });
    let record = watch.finish();
    assert!(record.samples.len() > 4, "{}", record.samples.len());
    assert!(record.samples.windows(2).all(|pair| pair[0].arrived_ns <= pair[1].asked_ns), "in the order of time");
}

#[test]
fn nginx_is_found_by_its_port_with_workers_and_libraries() {
    let Some(nginx) = program("nginx", "nginx_is_found_by_its_port_with_workers_and_libraries") else { return };
    let nginx = Nginx::start(nginx);
    let watch = open(&Server::Port(nginx.port));
    let facts = watch.facts();
    assert_eq!(facts.number("process.pid"), Some(f64::from(nginx.master())));
    let mut members = nginx.workers();
    members.push(nginx.master());
    members.sort_unstable();
    let members: Vec<String> = members.iter().map(u32::to_string).collect();
    assert_eq!(facts.text("process.members"), Some(members.join(" ").as_str()));
    let exe = fs::read_link(format!("/proc/{}/exe", nginx.master())).unwrap();
    assert_eq!(facts.text("process.exe"), exe.to_str());
    assert!(facts.text("process.program.version").unwrap().starts_with("nginx/"));
    assert_eq!(facts.text("process.tracer"), Some("none"));
    assert!(facts.text("process.limit.open_files").is_some());
    assert!(facts.number(&format!("listen.{}.backlog", nginx.port)).is_none_or(|backlog| backlog > 0.0));
    let maps = fs::read_to_string(format!("/proc/{}/maps", nginx.workers()[0])).unwrap();
    let libcrypto =
        maps.lines().find_map(|line| line.split_whitespace().nth(5).filter(|path| path.contains("/libcrypto.so")));
    assert_eq!(facts.text("process.library.libcrypto.path"), libcrypto);
    if libcrypto.is_some() {
        assert!(facts.text("process.library.libcrypto.version").unwrap().contains("SSL"), "{facts:?}");
    }

    let from = watch.sample().unwrap();
    for _ in 0..500 {
        nginx.ask();
    }
    let to = watch.sample().unwrap();
    let span = HostSpan::between(&from, &to);
    assert!(span.growth("workers.run_ns").unwrap() > 0);
    assert!(span.per_op("workers.voluntary_switches", 500).unwrap() >= 0.5, "each request waits for its connection");
    assert!(span.growth("tcp.accepted").unwrap() >= 500);
    let busy: u64 = nginx.workers().iter().map(|pid| span.growth(&format!("thread.{pid}.run_ns")).unwrap()).sum();
    assert!(busy <= span.growth("workers.run_ns").unwrap());
    assert!(span.growth("process.cpu_ns").is_some() && to.gauges["process.count"] == 3.0);

    let kept = TcpStream::connect((Ipv4Addr::LOCALHOST, nginx.port)).unwrap();
    let sockets = watch.sockets().unwrap();
    if program("ss", "the state of connections").is_some() {
        assert!(
            sockets.contains("cwnd:") && sockets.contains(&kept.local_addr().unwrap().port().to_string()),
            "{sockets}"
        );
    }
}

#[test]
fn a_worker_that_is_traced_and_has_limits_of_its_own_is_seen() {
    let test = "local::a_worker_that_is_traced_and_has_limits_of_its_own_is_seen";
    let (Some(nginx), Some(strace)) = (program("nginx", test), program("strace", test)) else { return };
    if !is_root(test) {
        return;
    }
    let nginx = Nginx::start(nginx);
    let worker = nginx.workers()[1];
    let open = || open(&Server::Port(nginx.port)).facts().clone();
    let before = open();
    assert_eq!((before.text("process.tracer"), before.text("process.traced")), (Some("none"), Some("none")));
    assert_eq!(before.text("process.workers_limit.open_files"), Some("777 (at most 777)"));
    assert_eq!(before.under("process.workers_limit.").count(), 1, "only what differs: {before:?}");

    let strace = Command::new(strace).args(["-q", "-o", "/dev/null", "-p", &worker.to_string()]).spawn().unwrap();
    let strace = Killed(strace);
    let status = || fs::read_to_string(format!("/proc/{worker}/status")).unwrap();
    let traced = format!("TracerPid:\t{}\n", strace.0.id());
    common::wait_until("strace is attached", || status().contains(&traced));
    let facts = open();
    assert_eq!(facts.number("process.tracer"), Some(f64::from(strace.0.id())));
    assert_eq!(facts.number("process.traced"), Some(f64::from(worker)), "the first process is not traced");
}

#[test]
fn a_server_that_was_started_anew_has_other_counters() {
    let Some(nginx) = program("nginx", "a_server_that_was_started_anew_has_other_counters") else { return };
    let mut nginx = Nginx::start(nginx);
    let watch = open(&Server::Port(nginx.port));
    let from = watch.sample().unwrap();
    nginx.stop();
    let dead = watch.sample().unwrap();
    assert_eq!(HostSpan::between(&from, &dead).growth("process.cpu_ns"), None);
    nginx.run();
    // It is looked for with every fifth sample.
    let mut to = watch.sample().unwrap();
    for _ in 0..5 {
        to = watch.sample().unwrap();
    }
    assert!(to.counters.contains_key("process.cpu_ns"), "it was found again");
    let span = HostSpan::between(&from, &to);
    assert_eq!((span.growth("process.cpu_ns"), span.growth("workers.run_ns")), (None, None));
    assert_eq!(span.why_unknown("process.cpu_ns"), Some("restarted"));
    for same in ["cpu.busy_ns", "tcp.accepted"] {
        assert!(span.growth(same).is_some(), "the host and its network are the same: {same}");
    }
    let record = watch.finish();
    assert!(record.doubts.iter().any(|doubt| doubt.contains("main process changed 1 times")), "{:?}", record.doubts);
}

#[test]
fn a_worker_that_is_replaced_leaves_what_it_spent_to_its_master() {
    let Some(nginx) = program("nginx", "a_worker_that_is_replaced_leaves_what_it_spent_to_its_master") else { return };
    let nginx = Nginx::start(nginx);
    let watch = open(&Server::Port(nginx.port));
    let from = watch.sample().unwrap();
    let old = nginx.workers();
    let worker = rustix::process::Pid::from_raw(old[0] as i32).unwrap();
    rustix::process::kill_process(worker, rustix::process::Signal::TERM).unwrap();
    common::wait_until("a new worker", || nginx.workers().len() == 2 && nginx.workers() != old);
    watch.sample().unwrap();
    let to = watch.sample().unwrap();
    let span = HostSpan::between(&from, &to);
    assert!(span.growth("process.cpu_ns").is_some(), "{:?} {:?}", from.counted_by, to.counted_by);
    assert_eq!(span.growth("workers.run_ns"), None, "these are not inherited");
    assert!(!to.counters.contains_key(&format!("worker.{}.cpu_ns", old[0])));
}

#[test]
fn an_unprivileged_reader_says_what_it_may_not_see() {
    let test = "local::an_unprivileged_reader_says_what_it_may_not_see";
    let (Some(nginx), Some(setpriv)) = (program("nginx", test), program("setpriv", test)) else { return };
    if !is_root(test) {
        return;
    }
    // Not nobody, as whom the workers of nginx run.
    let nginx = Nginx::start(nginx);
    let setpriv = setpriv.to_str().unwrap().to_owned();
    let options = with_shell(&[&setpriv, "--reuid=65533", "--regid=65533", "--clear-groups", "/bin/sh", "-s"]);
    let watch = HostWatch::open_with(&HostAccess::Local, &Server::Port(nginx.port), &options).unwrap();
    let why = format!("{:?}", watch.facts().0["process"]);
    assert!(why.contains("cannot be seen by user 65533"), "{why}");
    let from = watch.sample().unwrap();
    let to = watch.sample().unwrap();
    assert_eq!(HostSpan::between(&from, &to).growth("process.cpu_ns"), None);
    assert!(HostSpan::between(&from, &to).growth("cpu.busy_ns").is_some());

    // By its id it is seen, as far as anybody may see it.
    let watch = HostWatch::open_with(&HostAccess::Local, &Server::Pid(nginx.master()), &options).unwrap();
    let facts = watch.facts();
    assert_eq!(facts.number("process.pid"), Some(f64::from(nginx.master())));
    for key in ["process.environment", "process.libraries", "process.exe", "process.descriptors"] {
        assert!(facts.0[key].text().is_none(), "{key}: {:?}", facts.0[key]);
    }
    let from = watch.sample().unwrap();
    let to = watch.sample().unwrap();
    let span = HostSpan::between(&from, &to);
    assert!(span.growth("process.cpu_ns").is_some());
    assert_eq!(span.growth("workers.read_calls"), None, "/proc/PID/io is for the owner");
}

#[test]
fn a_library_that_was_replaced_on_disk_is_read_from_memory() {
    let test = "local::a_library_that_was_replaced_on_disk_is_read_from_memory";
    if !is_root(test) {
        return;
    }
    let own = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];
    let Some(library) =
        own.iter().map(|folder| format!("{folder}/libcrypto.so.3")).find(|path| fs::exists(path).unwrap())
    else {
        println!("skipped {test}: no libcrypto.so.3 here");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("libcrypto.so.3");
    fs::copy(&library, &copy).unwrap();
    let mut sleeper = Command::new("sleep");
    sleeper
        .arg("1000")
        .env("LD_PRELOAD", &copy)
        .env("MALLOC_ARENA_MAX", "1")
        .env("MALLOC_TOKEN", "hunter2")
        .env("OTHER", "hunter2");
    let sleeper = Killed(sleeper.spawn().unwrap());
    common::wait_until("the library is mapped", || {
        fs::read_to_string(format!("/proc/{}/maps", sleeper.0.id())).unwrap().contains("libcrypto.so.3")
    });
    fs::remove_file(&copy).unwrap();
    fs::write(&copy, "OpenSSL 9.9.9 1 Jan 2099 is not what runs").unwrap();

    let watch = open(&Server::Pid(sleeper.0.id()));
    let facts = watch.facts();
    assert_eq!(facts.text("process.library.libcrypto.path"), copy.to_str());
    assert!(
        facts.text("process.library.libcrypto.replaced").is_some_and(|replaced| replaced.starts_with("yes")),
        "{facts:?}"
    );
    let version = facts.text("process.library.libcrypto.version").unwrap();
    assert!(version.starts_with("OpenSSL 3."), "{version}");
    assert_eq!(facts.text("process.environment.LD_PRELOAD"), copy.to_str());
    assert_eq!(facts.text("process.environment.MALLOC_ARENA_MAX"), Some("1"));
    assert!(!format!("{facts:?}").contains("hunter2"), "only what is known to matter leaves the host");
}

#[test]
fn command_lines_cannot_forge_frames_or_reach_the_terminal() {
    let mut hostile = Command::new("sleep");
    hostile.arg0("evil\x1b[2J\nduel-0000 - arguments 0\n--password=hunter2").arg("1000");
    let hostile = Killed(hostile.stdout(Stdio::null()).spawn().unwrap());
    common::wait_until("it runs", || {
        fs::read(format!("/proc/{}/cmdline", hostile.0.id())).unwrap().starts_with(b"evil")
    });
    let watch = open(&Server::Pid(hostile.0.id()));
    let line = watch.facts().text("process.command_line").unwrap();
    assert!(line.contains("evil") && line.contains("duel-0000 - arguments 0"), "{line:?}");
    assert!(!line.contains(['\x1b', '\n']) && !line.contains("hunter2"), "{line:?}");
}

#[test]
fn a_server_in_a_network_of_its_own_is_told_apart() {
    let test = "local::a_server_in_a_network_of_its_own_is_told_apart";
    let Some(unshare) = program("unshare", test) else { return };
    if !is_root(test) {
        return;
    }
    let script = "echo 4096 16384 77777 >/proc/sys/net/ipv4/tcp_wmem; exec sleep 1000";
    let sleeper = Killed(Command::new(unshare).args(["-n", "sh", "-c", script]).spawn().unwrap());
    common::wait_until("it has its network", || {
        fs::read_to_string(format!("/proc/{}/comm", sleeper.0.id())).unwrap().trim() == "sleep"
    });
    let watch = open(&Server::Pid(sleeper.0.id()));
    let facts = watch.facts();
    assert_eq!(facts.text("process.network"), Some("its own"));
    if program("nsenter", test).is_some() {
        assert_eq!(facts.text("tcp.tcp_wmem"), Some("4096 16384 77777"), "{facts:?}");
        assert!(!format!("{facts:?}").contains("link.eth"), "links are those of its network, if any");
    }
    assert_eq!(watch.sample().unwrap().counters["tcp.accepted"], 0, "nobody ever connected there");
}

#[test]
fn firewall_rules_are_counted() {
    let test = "local::firewall_rules_are_counted";
    let Some(nft) = program("nft", test) else { return };
    common::in_own_network(test, || {
        let mut rules = "table ip t {\n set s { type ipv4_addr; elements = { 192.0.2.1, 192.0.2.2 } }\n map m { type inet_service : verdict; }\n\
             chain c { type filter hook input priority 0; policy accept;\n comment \"no rule\"\n"
            .to_owned();
        for port in 1..=50 {
            rules.push_str(&format!("tcp dport {port} counter drop\n"));
        }
        rules.push_str("tcp dport vmap { 22 : accept, 23 : drop }\nip saddr @s accept comment \"{ # handle 1\"\n}\n}\ntable ip6 u {\nchain d {\ntcp dport 1 drop\n}\n}\n");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rules");
        fs::write(&file, rules).unwrap();
        let loaded = Command::new(nft).arg("-f").arg(&file).output().unwrap();
        if !loaded.status.success() {
            let why = String::from_utf8_lossy(&loaded.stderr).into_owned();
            assert!(!why.contains("syntax error"), "{why}");
            println!("skipped {test}: {why}");
            return;
        }
        assert_eq!(open(&Server::Unknown).facts().number("firewall.nft_rules"), Some(53.0));
    });
}

/// A folder in front of the usual ones with these programs, each with what it does, and the shell that finds them there.
fn with_programs(programs: &[(&str, &str)]) -> (tempfile::TempDir, Options) {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    for (name, says) in programs {
        let file = folder.path().join(name);
        fs::write(&file, format!("#!/bin/sh\n{says}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let command = format!("PATH='{}':$PATH exec /bin/sh -s", folder.path().display());
    (folder, with_shell(&["/bin/sh", "-c", &command]))
}

#[test]
fn legacy_filter_rules_are_counted_or_not_known_but_never_zero() {
    // The kernel's list of tables has no size, however many there are; so has this file of the kernel, which is not empty.
    let proc = tempfile::tempdir().unwrap();
    fs::create_dir(proc.path().join("net")).unwrap();
    std::os::unix::fs::symlink("/proc/sys/kernel/ostype", proc.path().join("net/ip_tables_names")).unwrap();
    fs::write(proc.path().join("net/ip6_tables_names"), "").unwrap();
    let rules = |programs: &[(&str, &str)]| {
        let (folder, options) = with_programs(programs);
        let options = Options { proc_root: proc.path().display().to_string(), ..options };
        let watch = HostWatch::open_with(&HostAccess::Local, &Server::Unknown, &options).unwrap();
        drop(folder);
        let facts = watch.facts();
        assert_eq!(facts.number("firewall.ip6tables_rules"), Some(0.0), "no table, no rule: {facts:?}");
        facts.0.get("firewall.iptables_rules").cloned()
    };
    let three = "case $1 in -V) echo 'iptables-save v1.8.9 (legacy)' ;; *) echo '*filter'; for n in 1 2 3; do echo \"-A INPUT -s 198.18.0.$n/32 -j DROP\"; done ;; esac";
    assert_eq!(rules(&[("iptables-legacy-save", three)]), Some(Known::from("3".to_owned())));
    // Where there is a real one of the better name, one that is of no use stands before it.
    let useless = ("iptables-legacy-save", "echo 'iptables-save v1.8.9 (nf_tables)'");
    assert_eq!(rules(&[useless, ("iptables-save", three)]), Some(Known::from("3".to_owned())));
    let unknown = |known: Option<Known>| matches!(known, Some(Known::Unavailable(_)));
    assert!(unknown(rules(&[("iptables-legacy-save", "echo 'Permission denied' >&2; exit 1")])));
    assert!(unknown(rules(&[useless, ("iptables-save", useless.1)])), "both tell of nft's tables");
}

#[test]
fn legacy_filter_rules_of_the_kernel_are_counted() {
    let test = "local::legacy_filter_rules_of_the_kernel_are_counted";
    let Some(iptables) = program("iptables-legacy", test) else { return };
    common::in_own_network(test, || {
        for port in ["1", "2", "3"] {
            let rule = ["-A", "INPUT", "-p", "tcp", "--dport", port, "-j", "DROP"];
            let set = Command::new(&iptables).args(rule).output().unwrap();
            if !set.status.success() {
                println!("skipped {test}: {}", String::from_utf8_lossy(&set.stderr));
                return;
            }
        }
        assert_eq!(open(&Server::Unknown).facts().number("firewall.iptables_rules"), Some(3.0));
    });
}

/// A cgroup of version 1, removed when dropped, after its processes have ended.
struct Cgroup(std::path::PathBuf);

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The kernel lets go of the last process a moment after it was reaped.
        common::wait_until("the cgroup is empty", || fs::remove_dir(&self.0).is_ok());
    }
}

#[test]
fn a_cpu_quota_and_its_throttling_are_seen() {
    let test = "local::a_cpu_quota_and_its_throttling_are_seen";
    if !is_root(test) {
        return;
    }
    let folder = std::path::PathBuf::from(format!("/sys/fs/cgroup/cpu/duel-test-{}", std::process::id()));
    if let Err(error) = fs::create_dir(&folder) {
        println!("skipped {test}: no cgroup of version 1 can be made here: {error}");
        return;
    }
    let cgroup = Cgroup(folder);
    fs::write(cgroup.0.join("cpu.cfs_period_us"), "10000").unwrap();
    fs::write(cgroup.0.join("cpu.cfs_quota_us"), "2500").unwrap();
    let spinner = Killed(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap());
    fs::write(cgroup.0.join("cgroup.procs"), spinner.0.id().to_string()).unwrap();
    let watch = open(&Server::Pid(spinner.0.id()));
    assert_eq!(watch.facts().text("cgroup.cpu_quota_cpus"), Some("0.250"));
    let throttled = || {
        let stat = fs::read_to_string(cgroup.0.join("cpu.stat")).unwrap();
        stat.lines().find_map(|line| line.strip_prefix("nr_throttled ")?.parse::<u64>().ok()).unwrap()
    };
    let before = throttled();
    let from = watch.sample().unwrap();
    let inner = throttled();
    common::wait_until("it is throttled", || throttled() > inner + 5);
    let inner = throttled() - inner;
    let to = watch.sample().unwrap();
    let outer = throttled() - before;
    let span = HostSpan::between(&from, &to);
    let growth = span.growth("cgroup.throttled_periods").unwrap();
    assert!(inner <= growth && growth <= outer, "{inner} <= {growth} <= {outer}");
    assert!(span.growth("cgroup.throttled_ns").unwrap() > 0);
    let share = span.share_of_time("process.cpu_ns").unwrap();
    assert!(share < 0.9, "a quarter of a CPU, whatever else the machine does: {share}");
}

#[test]
fn the_last_lines_of_the_kernels_log_are_kept() {
    if !is_root("the_last_lines_of_the_kernels_log_are_kept") {
        return;
    }
    let watch = open(&Server::Unknown);
    let words = format!("duel test {} says goodbye", std::process::id());
    // Without its end a line may be continued, and nobody is shown it until then.
    if let Err(error) = fs::write("/dev/kmsg", format!("{words} \x1b[2J\n")) {
        println!("skipped the_last_lines_of_the_kernels_log_are_kept: no line can be written to /dev/kmsg: {error}");
        return;
    }
    let first = watch.sample().unwrap();
    let record = watch.finish();
    let line = record.last_words.iter().find(|line| line.text.contains(&words));
    let line = line.unwrap_or_else(|| panic!("{:?} {:?}", record.last_words, record.doubts));
    assert!(line.uptime_ns.unwrap() <= first.uptime_ns.unwrap() + 1_000_000_000);
    assert!(!line.text.contains('\x1b') && record.last_words.len() <= 120);
    assert_eq!(record.watched_from_uptime_ns, first.uptime_ns);
}

#[test]
fn every_posix_shell_gives_the_same_facts() {
    let test = "local::every_posix_shell_gives_the_same_facts";
    let reference = open(&Server::Unknown);
    let stable = |watch: &HostWatch| {
        let mut facts = watch.facts().0.clone();
        facts.retain(|key, _| {
            ![
                "clock.unix_s",
                "os.uptime_s",
                "memory.available_bytes",
                "cpu.slowest_mhz",
                "cpu.fastest_mhz",
                "fs.file-nr",
            ]
            .contains(&key.as_str())
        });
        facts.retain(|key, _| {
            !key.starts_with("listen.")
                && !key.starts_with("link.")
                && !key.starts_with("net.netfilter")
                && !key.starts_with("mount.")
        });
        facts
    };
    let mut tried = 0;
    for words in
        [&["dash", "-s"][..], &["bash", "--posix", "-s"], &["busybox", "sh", "-s"], &["mksh", "-s"], &["yash", "-s"]]
    {
        let Some(path) = program(words[0], test) else { continue };
        let words: Vec<&str> = [path.to_str().unwrap()].into_iter().chain(words[1..].iter().copied()).collect();
        let watch = HostWatch::open_with(&HostAccess::Local, &Server::Unknown, &with_shell(&words)).unwrap();
        assert_eq!(stable(&watch), stable(&reference), "{words:?}");
        let keys = |watch: &HostWatch| {
            watch.sample().unwrap().counters.into_keys().filter(|key| key.starts_with("cpu.")).collect::<Vec<_>>()
        };
        assert_eq!(keys(&watch), keys(&reference), "{words:?}");
        tried += 1;
    }
    assert!(tried > 0);
}

#[test]
fn nothing_is_left_running() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let command = format!("echo $$ >{}; exec /bin/sh -s", file.display());
    let watch =
        HostWatch::open_with(&HostAccess::Local, &Server::Unknown, &with_shell(&["/bin/sh", "-c", &command])).unwrap();
    watch.sample().unwrap();
    let group: i32 = fs::read_to_string(&file).unwrap().trim().parse().unwrap();
    drop(watch);
    let group = rustix::process::Pid::from_raw(group).unwrap();
    common::wait_until("the whole group is gone", || rustix::process::test_kill_process_group(group).is_err());
}
