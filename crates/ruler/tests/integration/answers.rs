//! Answers whose bytes are told: each path does what the table says.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use crate::common::{ask, connect, get, plain, raw, read_one, settled, taken_apart};
use duel_ruler::{Config, FILE_LEN, Kind, PAGE, Ruler, payload};

#[test]
fn the_page() {
    let ruler = plain();
    let answer = get(ruler.addr(), "/?query=ignored");
    assert_eq!((answer.status, answer.body.len()), (200, 612));
    assert_eq!(answer.body, PAGE);
    assert_eq!(answer.header("Content-Length"), Some("612"));
    assert_eq!(get(ruler.addr(), "/no-such-path").status, 404);
    let truth = settled(&ruler);
    assert_eq!((truth.connections, truth.requests, truth.responses), (2, 2, 2));
    assert_eq!(truth.requests_by_kind[&Kind::NotFound], 1);
    assert_eq!(truth.responses_by_status.into_iter().collect::<Vec<_>>(), [(200, 1), (404, 1)]);
}

#[test]
fn sizes_and_bytes_sent() {
    let ruler = plain();
    let mut bytes = 0;
    for len in [0, 1, 16_384, 16_385, 65_536, 1_048_577, 5_000_000] {
        let all = raw(ruler.addr(), &format!("GET /size/{len} HTTP/1.1"));
        bytes += all.len() as u64;
        let answer = taken_apart(&all);
        assert_eq!(answer.header("Content-Length"), Some(len.to_string().as_str()));
        assert!(answer.body == payload(0, len), "the body of /size/{len}");
    }
    let truth = settled(&ruler);
    assert_eq!((truth.http_bytes_sent, truth.wire_bytes_sent), (bytes, bytes));
    assert!(get(ruler.addr(), "/file").body == payload(0, FILE_LEN as usize));
}

#[test]
fn ranges() {
    let ruler = plain();
    let part = |range: &str| ask(ruler.addr(), &format!("GET /size/1000000 HTTP/1.1\r\nRange: {range}"));
    let answer = part("bytes=100-199");
    assert_eq!((answer.status, answer.header("Content-Range")), (206, Some("bytes 100-199/1000000")));
    assert!(answer.body == payload(100, 100));
    let answer = part("bytes=500000-");
    assert_eq!(answer.header("Content-Range"), Some("bytes 500000-999999/1000000"));
    assert!(answer.body == payload(500_000, 500_000));
    assert!(part("bytes=-7").body == payload(999_993, 7));
    let answer = part("bytes=1000000-");
    assert_eq!((answer.status, answer.header("Content-Range")), (416, Some("bytes */1000000")));
    assert_eq!(part("bytes=0-1,5-6").status, 200);
}

#[test]
fn head_has_the_same_head_and_no_body() {
    let ruler = plain();
    for path in [
        "/",
        "/size/100000",
        "/chunked/5000",
        "/until-close/5",
        "/delay/10",
        "/drip/3/10",
        "/slow-head/10",
        "/huge-headers/70",
        "/errors/0",
        "/status/404",
        "/redirect/x",
        "/escape",
        "/gzip",
        "/rate/1000000/5",
        "/nowhere",
    ] {
        let head = ask(ruler.addr(), &format!("HEAD {path} HTTP/1.1\r\nHost: ruler"));
        assert_eq!(head.head, get(ruler.addr(), path).head, "{path}");
        assert!(head.body.is_empty(), "{path}");
    }
}

#[test]
fn chunks_have_extensions_and_a_trailer() {
    let ruler = plain();
    for len in [0, 1, 16_384, 100_000] {
        let answer = get(ruler.addr(), &format!("/chunked/{len}"));
        assert_eq!(answer.header("Transfer-Encoding"), Some("chunked"));
        assert_eq!(answer.header("Content-Length"), None);
        let (mut rest, mut body) = (answer.body.as_slice(), Vec::new());
        loop {
            let end = rest.windows(2).position(|two| two == b"\r\n").unwrap();
            let (size, extension) = std::str::from_utf8(&rest[..end]).unwrap().split_once(';').unwrap();
            assert!(!extension.is_empty());
            let size = usize::from_str_radix(size, 16).unwrap();
            rest = &rest[end + 2..];
            if size == 0 {
                break;
            }
            body.extend_from_slice(&rest[..size]);
            assert_eq!(&rest[size..size + 2], b"\r\n");
            rest = &rest[size + 2..];
        }
        assert_eq!(rest, b"X-Duel-Trailer: end\r\n\r\n");
        assert!(body == payload(0, len));
    }
}

#[test]
fn until_close_tells_no_length() {
    let ruler = plain();
    let mut stream = connect(ruler.addr());
    stream.write_all(b"GET /until-close/70000 HTTP/1.1\r\n\r\n").unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    let answer = taken_apart(&all);
    assert_eq!((answer.header("Content-Length"), answer.header("Connection")), (None, Some("close")));
    assert!(answer.body == payload(0, 70_000));
}

#[test]
fn statuses() {
    let ruler = plain();
    for code in [200, 201, 204, 205, 304, 404, 418, 500, 503, 599] {
        let answer = get(ruler.addr(), &format!("/status/{code}"));
        assert_eq!(answer.status, code);
        assert_eq!(answer.body.is_empty(), [204, 205, 304].contains(&code), "{code}");
        assert_eq!(answer.header("Content-Length").is_none(), [204, 304].contains(&code), "{code}");
    }
    let truth = settled(&ruler);
    assert_eq!(truth.responses_by_status[&418], 1);
}

#[test]
fn errors_are_exactly_so_many_percent() {
    let ruler = plain();
    let addr = ruler.addr();
    let failed: usize = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(move || {
                    let mut stream = connect(addr);
                    let ask = |_| {
                        stream.write_all(b"GET /errors/7 HTTP/1.1\r\n\r\n").unwrap();
                        read_one(&mut stream).status
                    };
                    (0..50).map(ask).filter(|&status| status == 500).count()
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    assert_eq!(failed, 14, "7 percent of 200, over whatever connections");
    assert_eq!(settled(&ruler).responses_by_status[&500], 14);
    assert_eq!(get(addr, "/errors/100").status, 500);
    assert_eq!(get(addr, "/errors/0").status, 200);
}

#[test]
fn a_redirect() {
    let ruler = plain();
    let answer = get(ruler.addr(), "/redirect/size/5");
    assert_eq!((answer.status, answer.header("Location")), (302, Some("/size/5")));
}

#[test]
fn huge_headers_are_exactly_that_much_larger() {
    let ruler = plain();
    let small = get(ruler.addr(), "/huge-headers/0");
    for kib in [1, 63, 64, 200] {
        let huge = get(ruler.addr(), &format!("/huge-headers/{kib}"));
        assert_eq!(huge.head.len() - small.head.len(), kib * 1024);
        assert_eq!(huge.body, b"huge\n");
    }
}

#[test]
fn interim_answers_come_before_the_final_one() {
    let ruler = plain();
    let all = raw(ruler.addr(), "GET /interim/3 HTTP/1.1");
    let text = String::from_utf8(all).unwrap();
    let statuses: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("HTTP/1.1 ")).map(|s| &s[..3]).collect();
    assert_eq!(statuses, ["100", "103", "100", "200"]);
    assert!(text.ends_with(std::str::from_utf8(PAGE).unwrap()));
}

#[test]
fn gzip_only_if_accepted() {
    let ruler = plain();
    let identity = get(ruler.addr(), "/gzip/5000");
    assert_eq!((identity.header("Content-Encoding"), identity.body.as_slice()), (None, PAGE.as_slice()));
    assert!(settled(&ruler).burnt.is_zero());
    let zipped = ask(ruler.addr(), "GET /gzip/5000 HTTP/1.1\r\nAccept-Encoding: deflate, gzip");
    assert_eq!(zipped.header("Content-Encoding"), Some("gzip"));
    assert!(zipped.body.len() < PAGE.len());
    assert_eq!(settled(&ruler).burnt.as_micros(), 5000);

    // Whether it is valid gzip is for gzip to say, where there is one.
    let Ok(mut gzip) = Command::new("gzip").arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() else {
        return;
    };
    gzip.stdin.take().unwrap().write_all(&zipped.body).unwrap();
    assert_eq!(gzip.wait_with_output().unwrap().stdout, PAGE);
}

#[test]
fn the_head_is_echoed() {
    let ruler = plain();
    let head = "GET /header-echo?a=b HTTP/1.1\r\nHost: ruler\r\nX-Odd: \u{e9}";
    let answer = ask(ruler.addr(), head);
    assert_eq!(answer.body, format!("{head}\r\nConnection: close\r\n\r\n").as_bytes());
}

#[test]
fn escapes_in_reason_header_and_body() {
    let ruler = plain();
    let answer = get(ruler.addr(), "/escape");
    assert!(answer.head.lines().next().unwrap().contains('\x1b'));
    assert!(answer.header("X-Escape").unwrap().contains("\x1b]0;"));
    assert!(answer.body.contains(&0x1b));
}

#[test]
fn the_truth_over_http() {
    let ruler = plain();
    get(ruler.addr(), "/size/5");
    settled(&ruler);
    let answer = get(ruler.addr(), "/truth");
    let json = String::from_utf8(answer.body).unwrap();
    assert!(json.contains("\"connections\":2,") && json.contains("\"responses_by_kind\":{\"size\":1}"), "{json}");
}

#[test]
fn a_kept_connection_in_every_manner() {
    let ruler = plain();
    let mut stream = connect(ruler.addr());
    // Byte by byte.
    for byte in b"GET /size/3 HTTP/1.1\r\nHost: x\r\n\r\n" {
        stream.write_all(&[*byte]).unwrap();
    }
    assert_eq!(read_one(&mut stream).body, payload(0, 3));
    // Pipelined, with a body in between that looks like a request.
    let body = "GET /errors/100 HTTP/1.1\r\n\r\n";
    let pipelined = format!(
        "POST /size/4 HTTP/1.1\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n{body}GET /size/5 HTTP/1.1\r\n\r\n",
        body.len()
    );
    stream.write_all(pipelined.as_bytes()).unwrap();
    assert_eq!(read_one(&mut stream).body, payload(0, 4));
    assert_eq!(read_one(&mut stream).body, payload(0, 5));
    // A body larger than any buffer, and a request right behind it.
    stream.write_all(b"PUT /header-echo HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n").unwrap();
    let mut rest = vec![b'x'; 1_000_000];
    rest.extend_from_slice(b"GET /size/6 HTTP/1.1\r\n\r\n");
    stream.write_all(&rest).unwrap();
    assert!(read_one(&mut stream).body.starts_with(b"PUT /header-echo"));
    assert_eq!(read_one(&mut stream).body, payload(0, 6));
    // A long head, longer than the first buffer.
    stream.write_all(format!("GET /size/7 HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(40_000)).as_bytes()).unwrap();
    assert_eq!(read_one(&mut stream).body, payload(0, 7));
    // Very many pipelined at once: leftovers straddle every boundary of the buffer.
    let many: String = (0..2000).map(|at| format!("GET /size/{at} HTTP/1.1\r\n\r\n")).collect();
    let mut reader = stream.try_clone().unwrap();
    let writer = std::thread::spawn(move || stream.write_all(many.as_bytes()).unwrap());
    for at in 0..2000 {
        assert_eq!(read_one(&mut reader).body.len(), at);
    }
    writer.join().unwrap();
    let truth = settled(&ruler);
    assert_eq!((truth.connections, truth.connections_open, truth.responses), (1, 1, 2006));
}

#[test]
fn http_1_0_and_keepalive_off() {
    let ruler = plain();
    let mut stream = connect(ruler.addr());
    stream.write_all(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").unwrap();
    assert_eq!(read_one(&mut stream).header("Connection"), Some("keep-alive"));
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    assert_eq!(read_one(&mut stream).header("Connection"), Some("close"));
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);

    let ruler = Ruler::start(Config { keepalive: false, ..Config::default() }).unwrap();
    let mut stream = connect(ruler.addr());
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!(read_one(&mut stream).header("Connection"), Some("close"));
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
}

#[test]
fn malformed_requests_are_refused() {
    let ruler = plain();
    let refused = |text: &[u8]| {
        let mut stream = connect(ruler.addr());
        stream.write_all(text).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        taken_apart(&all).status
    };
    assert_eq!(refused(b"nonsense\r\n\r\n"), 400);
    assert_eq!(refused(b"\x16\x03\x01\x02\x00\x01"), 400);
    assert_eq!(refused(b"GET / HTTP/1.1\r\nContent-Length: 1, 2\r\n\r\n"), 400);
    assert_eq!(refused(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 411);
    assert_eq!(refused(format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(70_000)).as_bytes()), 431);
    let truth = settled(&ruler);
    assert_eq!((truth.malformed, truth.requests), (5, 0));
}
