//! The server in a child process. This binary is both: with arguments it is the child, without it is the check.

// Clippy knows a test by its attribute; the helpers here are tests too.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::TcpStream;

use duel_ruler::{Child, ChildConfig, child};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    // The harness's own flags (`--nocapture`, filters) are not for the child.
    if std::env::var_os("DUEL_RULER_CHILD").is_some() {
        child::main(ChildConfig::from_args(args).expect("the check gives good words")).expect("the child can serve");
        return;
    }
    serves_and_stops();
    is_killed_on_drop();
    has_a_session_of_its_own();
    a_child_that_is_not_ready_is_an_error();
    println!("child: ok");
}

fn spawn(args: &[&str]) -> std::io::Result<Child> {
    let exe = std::env::current_exe().expect("this binary has a path");
    Child::spawn(exe, args, [("DUEL_RULER_CHILD", "1")])
}

fn serves_and_stops() {
    let pem = std::env::temp_dir().join(format!("duel-ruler-{}.pem", std::process::id()));
    let child = spawn(&["--tls", "p256", "--ca-pem", pem.to_str().expect("a temporary path is text")]).unwrap();
    assert!(std::fs::read_to_string(&pem).unwrap().contains("BEGIN CERTIFICATE"));
    std::fs::remove_file(&pem).unwrap();
    TcpStream::connect(child.addr()).unwrap();
    assert!(child.stop().unwrap().success(), "it ends in order when its standard input ends");

    let child = spawn(&["--no-keepalive"]).unwrap();
    let mut client = TcpStream::connect(child.addr()).unwrap();
    client.write_all(b"GET /size/5 HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}

fn is_killed_on_drop() {
    let child = spawn(&[]).unwrap();
    let (addr, pid) = (child.addr(), child.pid());
    drop(child);
    assert!(TcpStream::connect(addr).is_err());
    assert!(!std::path::Path::new(&format!("/proc/{pid}/exe")).exists());
}

/// Away from the terminal of its parent, and from its Ctrl-C.
fn has_a_session_of_its_own() {
    let child = spawn(&[]).unwrap();
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.pid()).unwrap()).unwrap();
    assert_eq!(rustix::process::getsid(Some(pid)), Ok(pid));
}

fn a_child_that_is_not_ready_is_an_error() {
    assert!(Child::spawn("/nonexistent", [""; 0], [("", ""); 0]).is_err());
    let error = Child::spawn("true", [""; 0], [("", ""); 0]).unwrap_err();
    assert!(error.to_string().contains("instead of"), "{error}");
}
