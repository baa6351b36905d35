//! Servers that lie do as their entries say, to whom they say it, and end when they are told.

use duel_ruler::hostile::{Act, Expected, Family, Liar, Lie, Speaks, by_name};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

fn lie(name: &str) -> &'static Lie {
    by_name(name).unwrap()
}

/// A new connection on which one request was sent.
fn asked(liar: &Liar) -> TcpStream {
    let mut stream = TcpStream::connect(liar.addr()).unwrap();
    // Longer than any machine makes a test wait: a liar that keeps silent by mistake fails the test.
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: liar\r\n\r\n").unwrap();
    stream
}

/// What comes until there are so many bytes, or the end.
fn heard(stream: &mut TcpStream, bytes: usize) -> String {
    let mut heard = vec![0; bytes];
    let mut at = 0;
    while at < bytes {
        match stream.read(&mut heard[at..]).unwrap() {
            0 => break,
            read => at += read,
        }
    }
    String::from_utf8_lossy(&heard[..at]).into_owned()
}

#[test]
fn the_first_connection_that_asks_is_served_honestly_and_no_other() {
    let liar = Liar::start(lie("http1/length-negative"), 1).unwrap();
    // One that only tries whether somebody is there does not count.
    drop(TcpStream::connect(liar.addr()).unwrap());
    std::thread::sleep(Duration::from_millis(200));
    let mut first = asked(&liar);
    assert!(heard(&mut first, 40).ends_with("\r\nContent-Length: 2\r\n\r\nok"));
    first.write_all(b"HEAD / HTTP/1.1\r\n\r\n").unwrap();
    assert!(heard(&mut first, 38).ends_with("\r\nContent-Length: 2\r\n\r\n"), "it stays honest, and knows HEAD");
    assert!(heard(&mut asked(&liar), 44).ends_with("\r\nContent-Length: -1\r\n\r\nhello"));
}

#[test]
fn resets_are_resets_and_ends_are_ends() {
    let liar = Liar::start(lie("http1/resets-after-the-request"), 0).unwrap();
    assert_eq!(asked(&liar).read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    let liar = Liar::start(lie("http1/closes-after-the-request"), 0).unwrap();
    assert_eq!(asked(&liar).read(&mut [0]).unwrap(), 0);
    let liar = Liar::start(lie("http1/echoes"), 0).unwrap();
    assert_eq!(heard(&mut asked(&liar), 30), "GET / HTTP/1.1\r\nHost: liar\r\n\r\n");
}

#[test]
fn what_is_told_has_the_port_and_ever_new_numbers() {
    let liar = Liar::start(lie("http1/redirect-ever-new"), 0).unwrap();
    let port = liar.addr().port();
    for number in 0..2 {
        let told = heard(&mut asked(&liar), 60);
        assert!(told.contains(&format!("Location: http://127.0.0.1:{port}/{number}\r\n")), "{told}");
    }
}

#[test]
fn drips_are_never_early() {
    const SLOW: Lie = Lie {
        name: "http1/for-this-test",
        family: Family::Http1,
        does: "three bytes, 50 ms before each",
        speaks: Speaks::Http,
        asks: &[],
        acts: &[Act::Hear, Act::Drip(b"abc", 50), Act::Close],
        expected: Expected::Failed,
    };
    let liar = Liar::start(&SLOW, 0).unwrap();
    let began = Instant::now();
    assert_eq!(heard(&mut asked(&liar), 4), "abc");
    assert!(began.elapsed() >= Duration::from_millis(150));
}

#[test]
fn it_ends_with_its_owner_even_within_an_endless_lie() {
    let liar = Liar::start(lie("http1/body-endless"), 0).unwrap();
    let mut stream = asked(&liar);
    assert!(heard(&mut stream, 100_000).ends_with('x'));
    let address = liar.addr();
    drop(liar);
    assert_eq!(TcpStream::connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    // Its end may be a reset: it has not read all that there was.
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
}
