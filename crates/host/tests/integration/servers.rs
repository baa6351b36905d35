//! Who serves: of several servers on one port the one that gets the connections, and nobody who only poses as it.

#![cfg(target_os = "linux")]

use crate::common::{Killed, Nginx, in_own_network, is_root, program, quiet, with_shell};
use duel_host::{HostAccess, HostWatch, Options, Server};
use duel_model::{Facts, Known};
use rustix::net::{AddressFamily, SocketType, sockopt};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Where the listener of a child process is to listen.
const LISTEN: &str = "DUEL_TEST_LISTEN";

/// A process that listens, and where.
struct Listener {
    child: Killed,
    address: SocketAddr,
}

impl Listener {
    /// In a process of this program.
    fn at(address: &str) -> Self {
        Self::of(&std::env::current_exe().unwrap(), address, &[])
    }

    /// In a process of `exe`, a copy of this program, that these words start.
    fn of(exe: &Path, address: &str, before: &[&str]) -> Self {
        let words: Vec<&str> = before.iter().copied().chain([exe.to_str().unwrap()]).collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(["--exact", "servers::listens_for_the_other_tests", "--nocapture"]);
        let mut child = Killed(command.env(LISTEN, address).stdout(Stdio::piped()).spawn().unwrap());
        let told = BufReader::new(child.0.stdout.take().unwrap()).lines().map(Result::unwrap);
        let address = told.filter_map(|line| line.rsplit_once("listens ")?.1.parse().ok()).next().unwrap();
        Self { child, address }
    }

    fn pid(&self) -> u32 {
        self.child.0.id()
    }
}

/// No test by itself: the process of a [`Listener`].
#[test]
fn listens_for_the_other_tests() {
    let Ok(address) = std::env::var(LISTEN) else { return };
    if address.starts_with('/') {
        let _listener = UnixListener::bind(&address).unwrap();
        println!("\nlistens {address}");
        std::thread::sleep(Duration::from_secs(300));
        return;
    }
    let address: SocketAddr = address.parse().unwrap();
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket(family, SocketType::STREAM, None).unwrap();
    sockopt::set_socket_reuseport(&socket, true).unwrap();
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, std::env::var_os("DUEL_TEST_V6ONLY").is_some()).unwrap();
    }
    rustix::net::bind(&socket, &address).unwrap();
    rustix::net::listen(&socket, 5).unwrap();
    let listener = TcpListener::from(socket);
    println!("\nlistens {}", listener.local_addr().unwrap());
    // Longer than any test; whoever started it kills it.
    std::thread::sleep(Duration::from_secs(300));
}

fn facts_at(server: &Server, address: Option<&str>) -> Facts {
    let options = Options { address: address.map(|address| address.parse().unwrap()), ..quiet() };
    HostWatch::open_with(&HostAccess::Local, server, &options).unwrap().facts().clone()
}

/// Who is found behind an address.
fn found_at(address: SocketAddr) -> Facts {
    facts_at(&Server::Port(address.port()), Some(&address.to_string()))
}

fn pid(facts: &Facts) -> Option<u32> {
    facts.text("process.pid").map(|pid| pid.parse().unwrap())
}

fn why_none(facts: &Facts) -> String {
    match facts.0.get("process") {
        Some(Known::Unavailable(why)) => why.clone(),
        known => panic!("{known:?}"),
    }
}

#[test]
fn servers_on_one_port_are_told_apart_by_their_addresses() {
    let one = Listener::at("127.0.0.2:0");
    let port = one.address.port();
    let other = Listener::at(&format!("127.0.0.3:{port}"));
    for listener in [&one, &other] {
        let facts = found_at(listener.address);
        assert_eq!(pid(&facts), Some(listener.pid()), "{facts:?}");
        assert_eq!(facts.text("process.members"), Some(listener.pid().to_string().as_str()), "no sum of strangers");
        assert_eq!(facts.text("process.listens_on"), Some(listener.address.to_string().as_str()));
    }
    let nobody = why_none(&found_at(format!("127.0.0.4:{port}").parse().unwrap()));
    assert!(nobody.contains(&format!("no process here listens on 127.0.0.4:{port}")), "{nobody}");

    // Where the address is not known both may be it, and none is taken.
    let watch = HostWatch::open_with(&HostAccess::Local, &Server::Port(port), &quiet()).unwrap();
    let why = why_none(watch.facts());
    assert!(why.contains("2 processes that are not one server"), "{why}");
    assert!([&one, &other].iter().all(|listener| why.contains(&listener.pid().to_string())), "{why}");
    assert!(!watch.sample().unwrap().counters.contains_key("process.cpu_ns"));
    assert!(watch.finish().doubts.iter().any(|doubt| doubt.contains("not one server")));
}

#[test]
fn an_address_of_its_own_goes_before_all_addresses() {
    let all = Listener::at("0.0.0.0:0");
    let port = all.address.port();
    let one = Listener::at(&format!("127.0.0.2:{port}"));
    let of_ipv6 = Listener::at(&format!("[::1]:{port}"));
    let found = |ip: &str| pid(&found_at(SocketAddr::new(ip.parse().unwrap(), port)));
    assert_eq!(found("127.0.0.2"), Some(one.pid()));
    assert_eq!(found("::ffff:127.0.0.2"), Some(one.pid()));
    assert_eq!(found("127.0.0.3"), Some(all.pid()));
    assert_eq!(found("0.0.0.0"), Some(all.pid()));
    assert_eq!(found("::1"), Some(of_ipv6.pid()));
    // No address of this machine (RFC 5737): whoever answers there is somewhere else.
    let elsewhere = found_at(SocketAddr::new([192, 0, 2, 7].into(), port));
    assert!(why_none(&elsewhere).contains("no network of this machine"), "{elsewhere:?}");
}

#[test]
fn all_addresses_of_ipv6_may_be_those_of_ipv4_too() {
    let both = Listener::at("[::]:0");
    let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), both.address.port());
    assert_eq!(pid(&found_at(address)), Some(both.pid()));
}

#[test]
fn copies_of_one_program_that_share_an_address_are_one_server_without_a_main_process() {
    let one = Listener::at("127.0.0.2:0");
    let address = one.address.to_string();
    let other = Listener::at(&address);
    let options = Options { address: Some(one.address), ..quiet() };
    let watch = HostWatch::open_with(&HostAccess::Local, &Server::Port(1), &options).unwrap();
    let facts = watch.facts();
    assert!(pid(facts).is_none() && facts.text("process.command_line").is_none(), "{facts:?}");
    assert_eq!(facts.text("process.count"), Some("2"));
    assert!(watch.sample().unwrap().counters.contains_key("process.cpu_ns"), "its load is shared by both");
    assert_eq!(watch.server().unwrap().pid, None);
    drop((other, watch));

    // Another program beside it may be anything.
    let folder = tempfile::tempdir().unwrap();
    let copy: PathBuf = folder.path().join("copy");
    fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let _other = Listener::of(&copy, &address, &[]);
    let facts = found_at(one.address);
    assert!(why_none(&facts).contains("2 processes that are not one server"), "{facts:?}");
}

#[test]
fn a_server_in_another_network_is_found_by_its_address() {
    let test = "servers::a_server_in_another_network_is_found_by_its_address";
    if !is_root(test) || ["unshare", "ip"].iter().any(|name| program(name, test).is_none()) {
        return;
    }
    let here = Listener::at("127.0.0.2:0");
    // Of the block for documentation (RFC 5737), so no address of this machine.
    let address = format!("192.0.2.77:{}", here.address.port());
    let script = "ip link set lo up && ip addr add 192.0.2.77/32 dev lo && exec \"$0\" \"$@\"";
    let there = Listener::of(&std::env::current_exe().unwrap(), &address, &["unshare", "--net", "sh", "-c", script]);
    let facts = found_at(there.address);
    assert_eq!(pid(&facts), Some(there.pid()), "{facts:?}");
    assert_eq!(facts.text("process.network"), Some("its own"));
    // And one that was named serves there.
    let facts = facts_at(&Server::Pid(there.pid()), Some(&address));
    assert_eq!(facts.text("process.listens_on"), Some(address.as_str()));
}

/// In a `/run` of its own: nothing stays behind, and no service of the machine is in the way.
#[test]
fn a_service_is_found_by_the_file_with_its_process_id() {
    const TEST: &str = "servers::a_service_is_found_by_the_file_with_its_process_id";
    let Some(nginx) = program("nginx", TEST) else { return };
    in_own_network(TEST, || {
        let nginx = Nginx::start(nginx);
        for file in ["/run/duel-test.pid", "/run/duel-test/duel-test.pid"] {
            let file = Path::new(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, format!("{}\n", nginx.master())).unwrap();
            for name in ["duel-test", "duel-test.service"] {
                let service = Server::service(name).unwrap();
                let watch = HostWatch::open_with(&HostAccess::Local, &service, &quiet()).unwrap();
                let facts = watch.facts();
                assert_eq!(pid(facts), Some(nginx.master()), "{name} by {}: {facts:?}", file.display());
                assert_eq!(facts.text("process.count"), Some("3"), "its workers belong to it");
                assert!(watch.sample().unwrap().counters.contains_key("process.cpu_ns"));
                assert_eq!(watch.server().unwrap().pid, Some(nginx.master()));
            }
            fs::remove_file(file).unwrap();
            assert!(
                why_none(&facts_at(&Server::service("duel-test").unwrap(), None)).contains("no running main process")
            );
        }
    });
}

#[test]
fn a_process_that_was_named_and_does_not_serve_is_said() {
    let (one, other) = (Listener::at("127.0.0.2:0"), Listener::at("127.0.0.2:0"));
    let options = Options { address: Some(one.address), ..quiet() };
    let watch = HostWatch::open_with(&HostAccess::Local, &Server::Pid(other.pid()), &options).unwrap();
    assert_eq!(pid(watch.facts()), Some(other.pid()), "it is the user's word");
    assert_eq!(watch.server().unwrap().listens, Some(false));
    let doubts = watch.finish().doubts;
    assert!(doubts.iter().any(|doubt| doubt.contains("does not listen on")), "{doubts:?}");

    let watch = HostWatch::open_with(&HostAccess::Local, &Server::Pid(one.pid()), &options).unwrap();
    assert_eq!(watch.server().unwrap().listens, Some(true));
}

#[test]
fn a_server_that_was_named_and_listens_on_a_unix_socket_alone_does_not_listen_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "servers::listens_for_the_other_tests", "--nocapture"]);
    command.env(LISTEN, folder.path().join("socket")).stdout(Stdio::piped());
    let mut child = Killed(command.spawn().unwrap());
    let mut told = BufReader::new(child.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(told.any(|line| line.starts_with("listens ")));
    let watch = HostWatch::open_with(&HostAccess::Local, &Server::Pid(child.0.id()), &quiet()).unwrap();
    assert_eq!(watch.server().unwrap().listens, Some(true));
    assert_eq!(watch.facts().text("process.listens_on"), Some("any socket"));
    let doubts = watch.finish().doubts;
    assert!(!doubts.iter().any(|doubt| doubt.contains("listens nowhere")), "{doubts:?}");

    let idle = Killed(Command::new("sleep").arg("300").spawn().unwrap());
    let watch = HostWatch::open_with(&HostAccess::Local, &Server::Pid(idle.0.id()), &quiet()).unwrap();
    assert_eq!(watch.server().unwrap().listens, Some(false));
}

#[test]
fn a_server_that_was_started_anew_is_another_one() {
    let one = Listener::at("127.0.0.2:0");
    let address = one.address;
    let options = Options { address: Some(address), ..quiet() };
    let watch = HostWatch::open_with(&HostAccess::Local, &Server::Port(address.port()), &options).unwrap();
    let before = watch.server().unwrap();
    assert_eq!(before.pid, Some(one.pid()));
    assert_eq!(before.identity, duel_model::ProcessIdentity::of_server(watch.facts()));
    assert!(before.identity.is_some() && before.listens == Some(true), "{before:?}");
    drop(one);
    assert_eq!(watch.server().unwrap().pid, None);
    let other = Listener::at(&address.to_string());
    let after = watch.server().unwrap();
    assert_eq!(after.pid, Some(other.pid()));
    assert_ne!(after.identity, before.identity);
}

#[test]
fn the_name_of_an_open_file_does_not_make_a_server() {
    let server = Listener::at("127.0.0.2:0");
    let socket = fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap().find_map(|entry| {
        let target = fs::read_link(entry.unwrap().path()).ok()?.to_str()?.to_owned();
        target.starts_with("socket:[").then_some(target)
    });
    let socket = socket.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let forged = [format!("x -> {socket}"), format!("x\nlrwx------ 1 root root 64 Nov 21 10:00 0 -> {socket}")];
    let forgers: Vec<Killed> = forged
        .iter()
        .map(|name| {
            let file = fs::File::create(folder.path().join(name)).unwrap();
            Killed(Command::new("sleep").arg("1000").stdin(file).spawn().unwrap())
        })
        .collect();
    for forger in &forgers {
        let listed = Command::new("ls").args(["-l", &format!("/proc/{}/fd", forger.0.id())]).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert!(
            listed.lines().any(|line| line.ends_with(&format!("0 -> {socket}")) || line.ends_with(&socket)),
            "{listed}"
        );
    }
    let facts = found_at(server.address);
    assert_eq!(facts.text("process.members"), Some(server.pid().to_string().as_str()), "{facts:?}");
}

#[test]
fn freebsd_is_asked_for_the_address_too() {
    let folder = tempfile::tempdir().unwrap();
    let tools = [
        ("uname", "echo FreeBSD"),
        ("sockstat", include_str!("../freebsd/sockstat.txt")),
        ("ifconfig", include_str!("../freebsd/ifconfig.txt")),
        ("ps", include_str!("../freebsd/ps.txt")),
        ("procstat", "echo \"  $2 nginx 1401000 /usr/local/sbin/nginx\""),
        ("sysctl", "case $2 in kern.boot_id) echo 5f-a ;; *) exit 1 ;; esac"),
    ];
    for (name, text) in tools {
        let path = folder.path().join(name);
        let is_output = name.ends_with("stat") && name != "procstat" || name == "ifconfig";
        let script = if is_output { format!("cat <<'END'\n{text}END\n") } else { text.to_owned() };
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let start = format!("PATH={}:$PATH; export PATH; exec /bin/sh -s", folder.path().display());
    let found = |ip: &str| {
        let address = SocketAddr::new(ip.parse().unwrap(), 443);
        let options = Options { address: Some(address), ..with_shell(&["/bin/sh", "-c", &start]) };
        let facts = HostWatch::open_with(&HostAccess::Local, &Server::Port(443), &options).unwrap().facts().clone();
        pid(&facts).ok_or_else(|| why_none(&facts))
    };
    assert_eq!(found("192.0.2.10"), Ok(812));
    assert_eq!(found("192.0.2.11"), Ok(912));
    assert_eq!(found("192.0.2.12"), Ok(1012), "all addresses of IPv4");
    assert_eq!(found("2001:db8::10"), Ok(1112), "all addresses of both");
    assert!(found("192.0.2.99").unwrap_err().contains("no network of this machine"));
}
