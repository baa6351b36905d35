//! What the fuzzers call (`fuzz/`): each takes any bytes, and panics where a rule is broken that holds for all of them.
//!
//! Compiled for fuzzers and for unit tests only. The tests run each of them over the corpus that is kept.

use super::h2::connection::Connection;
use super::h2::hpack;
use super::inflate::Inflate;
use crate::http1::response::{ResponseReader, Truncated};
use crate::link::tls::TlsClient;
use crate::redirects::manner::Trail;
use crate::requests::cookies::Jar;
pub use crate::requests::fuzzing::request_files;
use duel_model::{HttpPlan, TlsPlan};
use std::sync::LazyLock;

/// How a response ended, as far as it must not depend on how its bytes were cut.
#[derive(Debug, PartialEq)]
enum Outcome {
    Broken,
    Read { consumed: usize, complete: bool, status: Option<u16>, body_bytes: u64, at_end: Result<(), Truncated> },
}

fn outcome(pieces: &[&[u8]], to_head_request: bool) -> Outcome {
    let mut reader = ResponseReader::new(to_head_request);
    reader.begin(true);
    let (mut consumed, mut complete) = (0, false);
    for piece in pieces {
        let Ok(fed) = reader.feed(piece) else { return Outcome::Broken };
        assert!(fed.consumed <= piece.len());
        assert!(fed.complete || fed.consumed == piece.len(), "what is not complete takes all");
        consumed += fed.consumed;
        complete = fed.complete;
        if complete {
            break;
        }
    }
    let body_bytes = reader.body_bytes();
    assert!(body_bytes <= consumed as u64, "no more body than bytes");
    let at_end = reader.closed();
    Outcome::Read { consumed, complete, status: reader.head().map(|head| head.status), body_bytes, at_end }
}

/// An HTTP/1.1 response ends the same way however its bytes are cut.
pub fn http1_response(data: &[u8]) {
    let to_head_request = data.first().is_some_and(|first| first & 0x80 != 0);
    let (pieces, whole) = pieces(data);
    let at_once = outcome(&[whole], to_head_request);
    let in_pieces = outcome(&pieces, to_head_request);
    assert_eq!(at_once, in_pieces, "a response depends on how it was cut");
}

/// An HTTP/2 connection takes anything, and what waits to be sent stays in proportion to what came.
pub fn h2_connection(data: &[u8]) {
    const PLACES: usize = 3;
    let decompress = data.first().is_some_and(|first| first & 0x80 != 0);
    let (pieces, whole) = pieces(data);
    let mut connection = Connection::new(PLACES, 1 << 16, decompress);
    let mut block = Vec::new();
    hpack::encode(b":method", b"GET", &mut block);
    // A SETTINGS frame without settings: the server has introduced itself.
    let _ = connection.feed(&[0, 0, 0, 4, 0, 0, 0, 0, 0], 0);
    let mut sent = 0;
    for (turn, piece) in pieces.iter().enumerate() {
        for place in 0..PLACES {
            if connection.has_room() && !connection.is_active(place) && !connection.is_spent() {
                connection.open(place, &block, if place == 0 { 1000 } else { 0 }, false, true);
            }
        }
        sent += connection.outgoing(|_| &[b'x'; 1000][..]).len();
        connection.outgoing(|_| &[b'x'; 1000][..]).clear();
        let fed = connection.feed(piece, 1 + turn as u64);
        while let Some((place, _)) = connection.next_end() {
            assert!(place < PLACES);
            assert!(connection.response(place).body_bytes() <= whole.len() as u64, "no more body than bytes");
            let _ = connection.response_mut(place).inflated_bytes();
        }
        if fed.is_err() {
            break;
        }
        connection.cancel(turn % PLACES);
    }
    sent += connection.outgoing(|_| &[b'x'; 1000][..]).len();
    // Preface and requests, bodies of 1,000 bytes, and for each frame of 9 bytes an answer of at most 17.
    assert!(sent <= 4096 + pieces.len() * 4096 + 4 * whole.len(), "{sent} bytes answer {}", whole.len());
}

/// A header block gives fields or an error, and no more than its limit.
pub fn hpack(data: &[u8]) {
    let mut decoder = hpack::Decoder::new();
    for block in data.chunks(64) {
        let mut fields = 0_usize;
        if decoder.decode(block, |_, _| fields += 1).is_err() {
            return;
        }
        assert!(fields <= block.len(), "a field takes a byte at least");
    }
}

/// A body is decompressed or refused; the size of a small one does not depend on how it was cut.
pub fn inflate(data: &[u8]) {
    const CODINGS: [&[u8]; 6] = [b"gzip", b"deflate", b"br", b"zstd", b"identity", b"other"];
    let coding = CODINGS[usize::from(data.first().copied().unwrap_or(0) >> 3) % CODINGS.len()];
    let (pieces, whole) = pieces(data);
    let size = |pieces: &[&[u8]]| {
        let mut inflate = Inflate::new();
        inflate.begin(Some(coding));
        pieces.iter().try_for_each(|piece| inflate.take(piece)).and_then(|()| inflate.finish()).ok()
    };
    let (at_once, in_pieces) = (size(&[whole]), size(&pieces));
    // What is unpacked at a time has a limit, which only a large body meets.
    let is_small = |size: Option<u64>| size.is_some_and(|size| size < 16 << 20);
    if is_small(at_once) || is_small(in_pieces) {
        assert_eq!(at_once, in_pieces, "a size depends on how the body was cut");
    }
}

static CLIENT: LazyLock<TlsClient> = LazyLock::new(|| {
    let plan = TlsPlan { verify: false, ..TlsPlan::default() };
    TlsClient::build(&plan, "a.example", false).expect("the defaults make a client")
});

/// A server's records during a handshake that it did not take part in, cut anyhow.
pub fn tls_records(data: &[u8]) {
    let (pieces, whole) = pieces(data);
    let Ok(mut stream) = CLIENT.connect() else { return };
    let (mut out, mut plain) = (Vec::new(), 0);
    let mut scratch = vec![0; whole.len() + 64];
    for piece in pieces {
        // What is no whole record yet is kept by the stream, and put before the next piece.
        let kept = stream.incoming.len();
        let filled = kept + piece.len();
        scratch[kept..filled].copy_from_slice(piece);
        let mut sink = |bytes: &[u8]| {
            plain += bytes.len();
            Ok(())
        };
        if stream.take(&mut scratch, filled, &mut out, &mut sink).is_err() {
            break;
        }
    }
    assert!(plain == 0 && !stream.is_established(), "nobody agreed on keys");
    assert!(out.len() < 64 * 1024, "a client says hello, and that is all");
}

/// Cookies are taken or left; what is sent back holds no line end.
pub fn cookies(data: &[u8]) {
    let mut jar = Jar::default();
    let (pieces, _) = pieces(data);
    for (turn, head) in pieces.iter().enumerate() {
        jar.take(head, b"/a/b", turn % 2 == 0);
        let mut field = Vec::new();
        jar.push_field(b"/a/b/c", &mut field);
        if let Some(line) = field.strip_suffix(b"\r\n") {
            assert!(!line.contains(&b'\r') && !line.contains(&b'\n') && !line.contains(&0), "a second line");
        }
    }
}

/// A redirect leads to an address of HTTP, or nowhere.
pub fn redirect(data: &[u8]) {
    static PLAN: LazyLock<HttpPlan> = LazyLock::new(HttpPlan::default);
    let Ok(location) = std::str::from_utf8(data) else { return };
    let trail = Trail::from("http://a.example:8080/x/y?z#f").expect("it is an address");
    if let Ok(next) = trail.redirected(&PLAN, 302, location) {
        assert!(["http://", "https://"].iter().any(|scheme| next.address().starts_with(scheme)), "{}", next.address());
        let _ = next.redirected(&PLAN, 307, location);
    }
}

/// Cuts bytes into pieces whose lengths are given by the first of them, and gives the rest whole as well.
fn pieces(data: &[u8]) -> (Vec<&[u8]>, &[u8]) {
    let Some((&count, rest)) = data.split_first() else { return (Vec::new(), data) };
    let count = usize::from(count & 7).min(rest.len());
    let (lengths, whole) = rest.split_at(count);
    let mut left = whole;
    let mut pieces = Vec::new();
    for &length in lengths {
        let (piece, behind) = left.split_at(usize::from(length).min(left.len()));
        pieces.push(piece);
        left = behind;
    }
    pieces.push(left);
    (pieces, whole)
}

#[cfg(test)]
mod tests {
    use duel_corpus::each;

    #[test]
    fn the_kept_corpus_breaks_nothing() {
        each("http1_response", super::http1_response);
        each("h2_connection", super::h2_connection);
        each("hpack", super::hpack);
        each("inflate", super::inflate);
        each("tls_records", super::tls_records);
        each("cookies", crate::fuzzing::cookies);
        each("redirect", super::redirect);
        each("request_files", super::request_files);
    }
}
