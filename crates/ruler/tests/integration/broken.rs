//! Answers that are wrong on purpose.

use std::io::{ErrorKind, Read, Write};

use crate::common::{connect, get, plain, raw, settled};
use duel_ruler::{Ending, Kind, payload};

#[test]
fn early_close_sends_nothing() {
    let ruler = plain();
    assert!(raw(ruler.addr(), "GET /early-close HTTP/1.1").is_empty());
    let truth = settled(&ruler);
    assert_eq!((truth.requests, truth.responses, truth.broken, truth.http_bytes_sent), (1, 0, 1, 0));
    assert_eq!((truth.served[0].kind, truth.served[0].ending), (Kind::EarlyClose, Ending::Broken));
}

#[test]
fn reset_is_a_reset() {
    let ruler = plain();
    let mut stream = connect(ruler.addr());
    stream.write_all(b"GET /reset HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn a_short_body_ends_in_order() {
    let ruler = plain();
    let answer = get(ruler.addr(), "/short-body");
    assert_eq!(answer.header("Content-Length"), Some("1000"));
    assert_eq!(answer.body, payload(0, 500));
}

#[test]
fn garbage_is_no_http() {
    let ruler = plain();
    let all = raw(ruler.addr(), "GET /garbage HTTP/1.1");
    assert!(!all.is_empty() && !all.starts_with(b"HTTP"));
}

#[test]
fn framing_that_is_wrong() {
    let ruler = plain();
    let answer = get(ruler.addr(), "/negative-length");
    assert_eq!((answer.header("Content-Length"), answer.body.as_slice()), (Some("-1"), b"hello".as_slice()));

    let answer = get(ruler.addr(), "/two-lengths");
    assert_eq!(answer.head.matches("Content-Length: ").count(), 2);
    assert!(answer.head.contains("Content-Length: 5\r\n") && answer.head.contains("Content-Length: 7\r\n"));
    assert_eq!(answer.body.len(), 7);

    let answer = get(ruler.addr(), "/bad-chunk");
    assert_eq!((answer.header("Transfer-Encoding"), answer.header("Content-Length")), (Some("chunked"), None));
    assert!(answer.body.starts_with(b"5\r\nhello\r\nzz\r\n"));
    assert_eq!(settled(&ruler).broken, 3);
}

#[test]
fn never_waits_for_the_client() {
    let ruler = plain();
    let mut stream = connect(ruler.addr());
    stream.write_all(b"GET /never HTTP/1.1\r\n\r\n").unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_millis(50))).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    while ruler.truth().in_flight == 0 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    drop(stream);
    let truth = settled(&ruler);
    assert_eq!((truth.broken, truth.http_bytes_sent), (1, 0));
}

#[test]
fn endless_headers_end_with_the_client() {
    let ruler = plain();
    let mut stream = connect(ruler.addr());
    stream.write_all(b"GET /endless-headers HTTP/1.1\r\n\r\n").unwrap();
    let mut all = vec![0; 3_000_000];
    stream.read_exact(&mut all).unwrap();
    assert!(all.starts_with(b"HTTP/1.1 200 OK\r\n") && !all.windows(4).any(|four| four == b"\r\n\r\n"));
    drop(stream);
    assert_eq!(settled(&ruler).broken, 1);
}

#[test]
fn a_client_that_goes_away_is_counted_as_such() {
    let ruler = plain();
    let mut stream = connect(ruler.addr());
    stream.write_all(b"GET /size/1000000000 HTTP/1.1\r\n\r\n").unwrap();
    stream.read_exact(&mut [0; 1000]).unwrap();
    drop(stream);
    let truth = settled(&ruler);
    assert_eq!((truth.abandoned, truth.served[0].ending), (1, Ending::Abandoned));
    assert!(truth.http_bytes_sent < 1_000_000_000);
}
