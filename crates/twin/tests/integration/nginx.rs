//! Twins of a real nginx. They need Linux, root and namespaces; where these are not to be had, that is said, and nothing
//! fails.
#![cfg(target_os = "linux")]

use crate::common;
use crate::common::nginx::Nginx;
use crate::common::{descendants, get, may_make_namespaces, sleeper, wait_until, within};
use duel_model::TwinChange;
use duel_twin::{Environment, ServerProcess, Twin, TwinOrder};
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

#[test]
fn a_twin_serves_in_its_own_network_and_writes_nowhere() {
    if !may_make_namespaces() {
        return;
    }
    let nginx = Nginx::start("return 200 \"it is $server_addr\\n\";", &[("SOME", "thing")]);
    let (pid, log) = (nginx.file("pid"), nginx.file("access.log"));
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();

    let twin = nginx.twin(None).unwrap();
    assert!(!twin.reading().environment_known, "nginx writes its title over its environment");
    let answer = within(twin.network_pid(), nginx.address, get);
    assert!(answer.ends_with("it is 127.0.0.1\n"), "{answer}");

    // From our own network only the running server is reached; its files are as they were but for this request.
    let of_server = get(&mut TcpStream::connect(nginx.address).unwrap());
    assert!(of_server.starts_with("HTTP/1.1 200"), "{of_server}");
    wait_until("the request is logged", || nginx.file("access.log").lines().count() == log.lines().count() + 1);
    assert_eq!(nginx.file("pid"), pid);
    assert_eq!(fs::read_to_string("/proc/self/mountinfo").unwrap(), mounts);

    let processes = descendants(twin.network_pid());
    assert!(processes.len() >= 4, "shell, what waits for the program, main process, worker: {processes:?}");
    drop(twin);
    for process in processes {
        assert!(!is_alive(process), "{process} has outlived its twin");
    }
    assert_eq!(nginx.file("access.log").lines().count(), log.lines().count() + 1, "the twin has a log of its own");
}

#[test]
fn a_twin_is_started_with_one_change_or_not_at_all() {
    if !may_make_namespaces() {
        return;
    }
    let nginx = Nginx::start("return 204;", &[("OPENSSL_ia32cap", "~0x200000200000000")]);
    let why = nginx.twin(Some(TwinChange::NoMask)).unwrap_err().to_string();
    assert!(why.contains("written over its environment"), "{why}");
    let why = nginx.twin(Some(TwinChange::SystemLibcrypto)).unwrap_err().to_string();
    assert!(why.contains("system's own") || why.contains("no libcrypto"), "{why}");

    // Where the mask is known, the twin as it is has it, and the other one has not.
    let server = ServerProcess::read(nginx.main.id()).unwrap();
    let start = |change| {
        let mask = Some("~0x200000200000000");
        let order = TwinOrder { server: &server, change, mask, address: nginx.address };
        Twin::start(&order, &AtomicBool::new(false)).unwrap()
    };
    assert_eq!(start(None).reading().changed, None);
    let changed = start(Some(TwinChange::NoMask));
    assert_eq!(changed.reading().changed.as_deref(), Some("without OPENSSL_ia32cap=~0x200000200000000"));
}

#[test]
fn one_library_is_exchanged_and_what_lies_beside_it_stays() {
    if !may_make_namespaces() {
        return;
    }
    let system = Path::new("/usr/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH));
    let folder = tempfile::tempdir().unwrap();
    for name in ["libcrypto.so.3", "libz.so.1"] {
        if fs::copy(system.join(name), folder.path().join(name)).is_err() {
            common::skipped("the system's libraries lie elsewhere");
            return;
        }
    }
    let nginx = Nginx::start("return 204;", &[("LD_LIBRARY_PATH", folder.path().to_str().unwrap())]);
    let shown = |twin: &Twin| {
        let process = descendants(twin.network_pid()).into_iter().rev();
        let mut maps = process.map(|pid| fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default());
        maps.find(|maps| maps.contains("nginx")).unwrap()
    };
    let own = folder.path().join("libcrypto.so.3").display().to_string();
    let same = nginx.twin(None).unwrap();
    assert_eq!(same.reading().libcrypto.as_deref(), Some(own.as_str()));
    let inode = |maps: &str, path: &str| {
        maps.lines().find(|line| line.ends_with(path)).map(|line| line.split_whitespace().nth(4).unwrap().to_owned())
    };
    let before = shown(&same);
    drop(same);

    let changed = nginx.twin(Some(TwinChange::SystemLibcrypto)).unwrap();
    let told = changed.reading().changed.clone().unwrap();
    assert!(told.ends_with(&format!("libcrypto.so.3 in the place of {own}")), "{told}");
    assert!(changed.reading().libcrypto.as_ref().is_some_and(|path| path.ends_with("libcrypto.so.3") && *path != own));
    let after = shown(&changed);
    // The names are what they were; one file is another.
    assert_ne!(inode(&before, "/libcrypto.so.3"), inode(&after, "/libcrypto.so.3"), "{after}");
    let system_s = fs::metadata(system.join("libcrypto.so.3")).unwrap().ino().to_string();
    assert_eq!(inode(&after, "/libcrypto.so.3"), Some(system_s));
    assert_eq!(inode(&before, "/libz.so.1"), inode(&after, "/libz.so.1"));
    assert!(inode(&after, "/libz.so.1").is_some() && after.contains(folder.path().to_str().unwrap()), "{after}");
}

#[test]
fn what_does_not_start_says_why() {
    if !may_make_namespaces() {
        return;
    }
    let nginx = Nginx::start("return 204;", &[]);
    let config = nginx.folder.path().join("nginx.conf");
    fs::write(&config, "nonsense;").unwrap();
    let before = Instant::now();
    let why = nginx.twin(None).unwrap_err().to_string();
    assert!(why.contains("ended with status 1") && why.contains("nonsense"), "{why}");
    assert!(before.elapsed() < Duration::from_secs(15), "it is not waited for what has ended");
}

#[test]
fn starting_is_given_up_when_asked() {
    if !may_make_namespaces() {
        return;
    }
    // It never listens on the port that it is asked for.
    let mut server = sleeper();
    let process = ServerProcess::read(server.id()).unwrap();
    assert!(matches!(process.environment, Environment::Known(_)));
    let address = "127.0.0.1:9".parse().unwrap();
    let order = TwinOrder { server: &process, change: None, mask: None, address };
    let why = Twin::start(&order, &AtomicBool::new(true)).unwrap_err().to_string();
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(why, "interrupted");
}

fn is_alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}
