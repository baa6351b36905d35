//! Accepting, refusing, dying.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use crate::common::{connect, get, plain, read_one, settled, taken_apart};
use duel_ruler::{Config, Listen, PAGE, Ruler};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn a_thousand_at_once() {
    const COUNT: usize = 1000;
    // Both ends are in this process, and the usual soft limit is 1024.
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    let ruler = plain();
    let mut streams: Vec<TcpStream> = (0..COUNT).map(|_| connect(ruler.addr())).collect();
    for stream in &mut streams {
        stream.write_all(b"GET /size/10 HTTP/1.1\r\n\r\n").unwrap();
    }
    for stream in &mut streams {
        assert_eq!(read_one(stream).body.len(), 10);
    }
    let truth = settled(&ruler);
    assert_eq!((truth.connections, truth.connections_open, truth.responses), (1000, 1000, 1000));
    drop(streams);
    assert_eq!(ruler.stop().connections_open, 0);
}

#[test]
fn accept_then_close() {
    let ruler = Ruler::start(Config { accept_then_close: true, ..Config::default() }).unwrap();
    for _ in 0..3 {
        let mut stream = connect(ruler.addr());
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    }
    let truth = settled(&ruler);
    assert_eq!((truth.connections, truth.connections_open, truth.requests), (3, 0, 0));
}

#[test]
fn refuse_after_is_the_end() {
    let ruler = Ruler::start(Config { refuse_after: Some(3), ..Config::default() }).unwrap();
    let mut idle = connect(ruler.addr());
    let mut stream = connect(ruler.addr());
    for _ in 0..3 {
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!(read_one(&mut stream).body, PAGE);
    }
    // All connections end, by whichever means the kernel has at hand.
    let mut rest = Vec::new();
    let _ = stream.write_all(b"GET / HTTP/1.1\r\n\r\n");
    let _ = stream.read_to_end(&mut rest);
    let _ = idle.read_to_end(&mut rest);
    assert!(rest.is_empty());
    // The listener closes before the connections do.
    assert_eq!(TcpStream::connect(ruler.addr()).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert_eq!(settled(&ruler).responses, 3);
}

#[test]
fn a_drop_leaves_nothing() {
    let ruler = plain();
    let addr = ruler.addr();
    let mut stream = connect(addr);
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    read_one(&mut stream);
    drop(ruler);
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    assert!(TcpStream::connect(addr).is_err());
}

#[test]
fn a_unix_socket() {
    let path = std::env::temp_dir().join(format!("duel-ruler-{}.sock", std::process::id()));
    let config = || Config { listen: Listen::Unix(path.clone()), ..Config::default() };
    let ruler = Ruler::start(config()).unwrap();
    assert_eq!(ruler.socket_path(), Some(path.as_path()));
    assert_eq!(ruler.url("/x"), "http://localhost/x");
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n").unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    assert_eq!(taken_apart(&all).body, PAGE);
    let told = Ruler::start(config()).err().unwrap().to_string();
    assert!(told.contains("could not bind the Unix socket"), "{told}");
    drop(ruler);
    assert!(!path.exists());
}

#[test]
fn only_the_latest_requests_are_remembered() {
    let ruler = Ruler::start(Config { remember: 2, ..Config::default() }).unwrap();
    for micros in [0, 1, 2000, 3000] {
        get(ruler.addr(), &format!("/delay/{micros}"));
        settled(&ruler);
    }
    let truth = settled(&ruler);
    assert_eq!((truth.served.len(), truth.forgotten, truth.responses), (2, 2, 4));
    assert!(truth.served[0].service.as_micros() >= 2000 && truth.served[1].service.as_micros() >= 3000);
}
