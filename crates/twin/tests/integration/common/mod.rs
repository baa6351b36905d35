//! What tests of twins have in common.

#[allow(dead_code, reason = "each test uses its own part")]
pub(crate) mod nginx;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Nothing here takes longer, even where the machine is busy with other things.
const PATIENCE: Duration = Duration::from_secs(60);

/// Says that a test is skipped for want of something that `./test` sees to; where that is set to skip nothing, it fails.
#[track_caller]
pub(crate) fn skipped(why: &str) {
    eprintln!("skipped: {why}");
    assert!(
        std::env::var_os("DUEL_TESTS_SKIP_NOTHING").is_none_or(|value| value != "1"),
        "nothing may be skipped: {why}"
    );
}

/// Whether namespaces can be made here.
#[track_caller]
pub(crate) fn may_make_namespaces() -> bool {
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--pid", "--fork", "true"]).stderr(Stdio::null());
    let may = command.status().is_ok_and(|status| status.success());
    if !may {
        skipped("no namespaces can be made here");
    }
    may
}

/// Connects in the network of a process.
pub(crate) fn within<T: Send>(pid: u32, address: SocketAddr, act: impl FnOnce(&mut TcpStream) -> T + Send) -> T {
    use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
    std::thread::scope(|scope| {
        let inside = scope.spawn(|| {
            let network = fs::File::open(format!("/proc/{pid}/ns/net")).unwrap();
            move_into_link_name_space(rustix::fd::AsFd::as_fd(&network), Some(LinkNameSpaceType::Network)).unwrap();
            act(&mut TcpStream::connect(address).unwrap())
        });
        inside.join().unwrap()
    })
}

/// What the server says to a request.
pub(crate) fn get(stream: &mut TcpStream) -> String {
    stream.write_all(b"GET / HTTP/1.1\r\nHost: twin\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Processes that this one has started.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// Those, and those that these have started.
#[allow(dead_code, reason = "each test uses its own part")]
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    children(pid).into_iter().flat_map(|child| [vec![child], descendants(child)].concat()).collect()
}

/// A program that listens nowhere, for a minute.
#[allow(dead_code, reason = "each test uses its own part")]
pub(crate) fn sleeper() -> std::process::Child {
    let sleeper = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
    // Between fork and exec a process tells nothing.
    let comm = format!("/proc/{}/comm", sleeper.id());
    wait_until("it sleeps", || fs::read_to_string(&comm).unwrap() == "sleep\n");
    sleeper
}

/// Waits, and fails where it does not come about.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
