//! Bodies decompressed for counting, as they arrive; nothing of them is kept but what decoders look back at.
//!
//! While a body is under way its decoder holds at most a window: 32 KiB for gzip and deflate, 16 MiB for brotli and 8 MiB
//! for zstd, and tables of some MiB at worst. Windows grow with the body, and go when it ends. `windows` bounds the sum,
//! `ration` how long a worker unpacks before it looks at all else. Only codings that were `asked` for are decoded.

mod asked;
mod brotli;
pub(crate) mod ration;
mod windows;
#[cfg(feature = "zstd")]
mod zstd;

pub(crate) use asked::Asked;

use super::protocol_error::ProtocolError;
use brotli::Brotli;
use duel_load::monotonic_ns;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use std::io::{self, Write};
#[cfg(feature = "zstd")]
use zstd::Zstd;

/// Largest body after decompression. A thousandth of it is enough to make it (DEFLATE packs 1032 to 1 at best; brotli and
/// zstd far more), and a worker that unpacks measures nobody. What comes at once has a limit of its own.
const INFLATED_LIMIT_BYTES: u64 = 1 << 30;
/// How much is unpacked at a time where a decoder wants to be given room: small enough for the stack and the first cache.
const PIECE_BYTES: usize = 16 * 1024;

/// Counts the bytes of bodies after decompression.
#[derive(Debug)]
pub(crate) struct Inflate {
    coding: Coding,
    /// Bytes of the body as it came.
    taken: u64,
    asked: Asked,
}

#[derive(Debug)]
enum Coding {
    Identity(u64),
    Gzip(MultiGzDecoder<Count>),
    /// With the header of zlib, as it ought to be, or without, as some servers have it: its first byte tells.
    Deflate(Option<Deflate>),
    /// Why it is not decoded, for the user; a response without a body may have any.
    Refused(String),
    Brotli(Brotli),
    #[cfg(feature = "zstd")]
    Zstd(Option<Zstd>),
}

#[derive(Debug)]
enum Deflate {
    Zlib(ZlibDecoder<Count>),
    Raw(DeflateDecoder<Count>),
}

/// Counts what is written to it.
#[derive(Debug, Default)]
struct Count(u64);

impl Count {
    fn add(&mut self, bytes: usize) -> io::Result<()> {
        self.0 += bytes as u64;
        if !ration::unpacked(bytes as u64) {
            return Err(io::Error::other(
                "more than 64 MiB come out of what arrived at once, as of a decompression bomb; leave --decompress out to \
                 measure it as it is sent",
            ));
        }
        if self.0 > INFLATED_LIMIT_BYTES {
            return Err(io::Error::other("it has more than 1 GiB when decompressed"));
        }
        Ok(())
    }
}

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.add(bytes.len()).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Inflate {
    pub(crate) fn new() -> Self {
        Self { coding: Coding::Identity(0), taken: 0, asked: Asked::ANY }
    }

    /// The responses to come answer requests that ask for these codings.
    pub(crate) fn expect(&mut self, asked: Asked) {
        self.asked = asked;
    }

    /// A body of this `Content-Encoding` begins.
    #[inline(never)]
    pub(crate) fn begin(&mut self, encoding: Option<&[u8]>) {
        self.taken = 0;
        let encoding = applied(encoding.unwrap_or_default());
        self.coding = match encoding.as_slice() {
            b"" => Coding::Identity(0),
            known @ (b"gzip" | b"x-gzip" | b"deflate" | b"br" | b"zstd") if !self.asked.has(known) => {
                Coding::Refused(format!(
                    "the response's Content-Encoding is '{0}', which the request did not ask for (it asked for: {1}), so \
                     that it is not decompressed; ask for it with --encoding {0}, or leave --decompress out",
                    String::from_utf8_lossy(known),
                    self.asked
                ))
            }
            b"gzip" | b"x-gzip" => Coding::Gzip(MultiGzDecoder::new(Count::default())),
            b"deflate" => Coding::Deflate(None),
            b"br" => Coding::Brotli(Brotli::new()),
            #[cfg(feature = "zstd")]
            b"zstd" => Coding::Zstd(None),
            #[cfg(not(feature = "zstd"))]
            b"zstd" => Coding::Refused(
                "the response's Content-Encoding is 'zstd', and this build of duel has no zstd; ask for another coding \
                 (--encoding br,gzip), or build duel with --features zstd"
                    .to_owned(),
            ),
            other => Coding::Refused(format!(
                "the response's Content-Encoding is '{}', which is not decompressed here; br, deflate, gzip and zstd are, \
                 one at a time",
                duel_model::sanitize_line(&String::from_utf8_lossy(other))
            )),
        };
    }

    /// Takes the next bytes of the body.
    #[inline(never)]
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<(), ProtocolError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.taken += bytes.len() as u64;
        if let Coding::Identity(count) = &mut self.coding {
            *count += bytes.len() as u64;
            return Ok(());
        }
        let begin_ns = monotonic_ns();
        let result = self.decode(bytes);
        ration::spend(monotonic_ns().saturating_sub(begin_ns));
        if result.is_err() {
            self.give_up();
        }
        result
    }

    /// The body will not end: what its decoder held is given back.
    #[cold]
    pub(crate) fn give_up(&mut self) {
        self.coding = Coding::Identity(0);
    }

    fn decode(&mut self, bytes: &[u8]) -> Result<(), ProtocolError> {
        match &mut self.coding {
            Coding::Identity(_) => Ok(()),
            Coding::Gzip(decoder) => decoder.write_all(bytes),
            Coding::Deflate(decoder) => {
                // The first byte of zlib's header names the method 8 and a window of at most 2^15 (RFC 1950, 2.2).
                let is_zlib = bytes[0] & 0x0f == 8 && bytes[0] >> 4 <= 7;
                let decoder = decoder.get_or_insert_with(|| match is_zlib {
                    true => Deflate::Zlib(ZlibDecoder::new(Count::default())),
                    false => Deflate::Raw(DeflateDecoder::new(Count::default())),
                });
                match decoder {
                    Deflate::Zlib(decoder) => decoder.write_all(bytes),
                    Deflate::Raw(decoder) => decoder.write_all(bytes),
                }
            }
            Coding::Refused(why) => return Err(ProtocolError(std::mem::take(why))),
            Coding::Brotli(decoder) => decoder.take(bytes),
            #[cfg(feature = "zstd")]
            Coding::Zstd(Some(decoder)) => decoder.take(bytes),
            #[cfg(feature = "zstd")]
            Coding::Zstd(none) => Zstd::new().and_then(|decoder| none.insert(decoder).take(bytes)),
        }
        .map_err(|error| broken(&error))
    }

    /// The body has ended: its size after decompression. What the decoder held is given back, since a connection may be kept
    /// for long.
    pub(crate) fn finish(&mut self) -> Result<u64, ProtocolError> {
        let coding = std::mem::replace(&mut self.coding, Coding::Identity(0));
        if self.taken == 0 {
            return Ok(0);
        }
        let finished = match coding {
            Coding::Identity(count) => return Ok(count),
            Coding::Gzip(mut decoder) => decoder.try_finish().map(|()| decoder.get_ref().0),
            Coding::Deflate(None) | Coding::Refused(_) => return Ok(0),
            Coding::Deflate(Some(Deflate::Zlib(mut decoder))) => decoder.try_finish().map(|()| decoder.get_ref().0),
            Coding::Deflate(Some(Deflate::Raw(mut decoder))) => decoder.try_finish().map(|()| decoder.get_ref().0),
            Coding::Brotli(decoder) => decoder.finish(),
            #[cfg(feature = "zstd")]
            Coding::Zstd(None) => return Ok(0),
            #[cfg(feature = "zstd")]
            Coding::Zstd(Some(decoder)) => decoder.finish(),
        };
        finished.map_err(|error| broken(&error))
    }
}

/// The codings of a list that were applied, in lower case. Empty elements say nothing (RFC 9110, 5.6.1.2), nor do `identity`
/// and `none`: the latter is no coding that anybody has registered, but servers send it, and curl reads it so.
fn applied(encoding: &[u8]) -> Vec<u8> {
    let codings = encoding.split(|&b| b == b',').map(|coding| coding.trim_ascii().to_ascii_lowercase());
    let applied = codings.filter(|coding| !matches!(coding.as_slice(), b"" | b"identity" | b"none"));
    applied.reduce(|list, coding| [&list[..], b", ", &coding].concat()).unwrap_or_default()
}

fn broken(error: &io::Error) -> ProtocolError {
    ProtocolError(format!("the response's body cannot be decompressed: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use proptest::prelude::*;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    #[cfg(feature = "zstd")]
    const HAS_ZSTD: bool = true;
    #[cfg(not(feature = "zstd"))]
    const HAS_ZSTD: bool = false;

    /// 200 lines, as the reference implementations of brotli (quality 11) and zstd (level 19) pack them.
    const PAGE_BR: &[u8] = include_bytes!("../../tests/data/page.txt.br");
    const PAGE_ZST: &[u8] = include_bytes!("../../tests/data/page.txt.zst");
    /// 1,100 MiB of zeros.
    const ZEROS_BR: &[u8] = include_bytes!("../../tests/data/zeros.br");

    /// Held by tests whose decoders take much memory: of that there is so much for all of them.
    static LARGE_WINDOWS: Mutex<()> = Mutex::new(());

    fn alone() -> MutexGuard<'static, ()> {
        LARGE_WINDOWS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As if what comes next were brought by an event of its own.
    fn next_event() {
        ration::turn_begins();
        assert!(ration::admits(&mut 0));
    }

    fn page() -> String {
        (0..200).map(|n| format!("line {n} of a page that is sent packed\n")).collect()
    }

    fn count(encoding: &str, bytes: &[u8], step: usize) -> Result<u64, ProtocolError> {
        next_event();
        let mut inflate = Inflate::new();
        inflate.begin(Some(encoding.as_bytes()));
        bytes.chunks(step.max(1)).try_for_each(|piece| inflate.take(piece))?;
        inflate.finish()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn each_coding_in_pieces_of_any_size() {
        let plain: Vec<u8> = (0..5000u32).map(|n| (n / 7) as u8).collect();
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
        zlib.write_all(&plain).unwrap();
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::best());
        raw.write_all(&plain).unwrap();
        let two_members = [gzip(&plain[..100]), gzip(&plain[100..])].concat();
        for (encoding, bytes) in [
            ("GZIP", gzip(&plain)),
            ("x-gzip", two_members),
            ("deflate", zlib.finish().unwrap()),
            ("deflate", raw.finish().unwrap()),
            ("identity", plain.clone()),
            ("none", plain.clone()),
            (" ,None, identity,", plain.clone()),
            ("identity, GZIP ,", gzip(&plain)),
        ] {
            for step in [1, 7, bytes.len()] {
                assert_eq!(count(encoding, &bytes, step), Ok(plain.len() as u64), "{encoding} in pieces of {step}");
            }
        }
        for encoding in ["gzip", "deflate", "br", "zstd"] {
            assert_eq!(count(encoding, b"", 1), Ok(0), "a body without a byte, as HEAD has it");
        }
    }

    #[test]
    fn what_reference_implementations_pack_is_counted() {
        let frames = [PAGE_ZST, PAGE_ZST].concat();
        let packed = [("br", PAGE_BR, 1), ("BR", PAGE_BR, 1), ("zstd", PAGE_ZST, 1), ("zstd", &frames, 2)];
        for (encoding, bytes, times) in packed.into_iter().filter(|(encoding, ..)| HAS_ZSTD || *encoding != "zstd") {
            for step in [1, 7, bytes.len()] {
                let expected = times * page().len() as u64;
                assert_eq!(count(encoding, bytes, step), Ok(expected), "{encoding} in pieces of {step}");
            }
        }
    }

    #[test]
    fn what_is_cut_or_broken_is_refused() {
        let whole = gzip(b"hello hello hello hello");
        for bytes in [&whole[..whole.len() - 1], &whole[..5], b"no gzip at all, but long enough"] {
            let error = count("gzip", bytes, 3).unwrap_err();
            assert!(error.0.contains("cannot be decompressed"), "{error}");
        }
        let mut wrong_sum = whole.clone();
        let at = wrong_sum.len() - 6;
        wrong_sum[at] ^= 1;
        assert!(count("gzip", &wrong_sum, 100).is_err());
        assert_eq!(count("compress", b"", 1), Ok(0), "where there is no body, nothing has to be unpacked");
        let packed = [("br", PAGE_BR), ("zstd", PAGE_ZST)];
        for (encoding, whole) in packed.into_iter().filter(|(encoding, _)| HAS_ZSTD || *encoding != "zstd") {
            for cut in 1..whole.len() {
                let error = count(encoding, &whole[..cut], 5).unwrap_err();
                assert!(error.0.contains("ends early"), "{encoding}, {cut} of {} bytes: {error}", whole.len());
            }
            let longer = [whole, b"more"].concat();
            assert!(count(encoding, &longer, 5).is_err(), "{encoding}: what follows is no part of it");
            assert!(count(encoding, b"<html>as it was</html>", 5).is_err());
        }
        let mut wrong_sum = PAGE_ZST.to_vec();
        *wrong_sum.last_mut().unwrap() ^= 1;
        let error = count("zstd", &wrong_sum, 100).unwrap_err();
        assert!(error.0.contains(if HAS_ZSTD { "checksum" } else { "this build of duel has no zstd" }), "{error}");
    }

    #[test]
    fn what_was_not_asked_for_is_not_decompressed() {
        let zipped = gzip(b"hello");
        for (asked, encoding, bytes) in
            [("gzip", "br", PAGE_BR), ("br, gzip;q=0", "x-gzip", &zipped), ("", "zstd", PAGE_ZST)]
        {
            let mut inflate = Inflate::new();
            inflate.expect(Asked::of(format!("GET / HTTP/1.1\r\nAccept-Encoding: {asked}\r\n\r\n").as_bytes()));
            inflate.begin(Some(encoding.as_bytes()));
            let error = inflate.take(bytes).unwrap_err();
            assert!(error.0.contains(&format!("'{encoding}', which the request did not ask for")), "{error}");
            inflate.begin(Some(encoding.as_bytes()));
            assert_eq!(inflate.finish(), Ok(0), "where there is no body, nothing has to be unpacked");
        }
    }

    #[test]
    fn what_is_not_decompressed_is_named() {
        for encoding in ["compress", "gzip, br", "dcb", "\u{1b}[31m"] {
            let error = count(encoding, b"x", 1).unwrap_err();
            assert!(error.0.contains("br, deflate, gzip and zstd are") && !error.0.contains('\u{1b}'), "{error}");
        }
    }

    #[test]
    fn a_bomb_is_given_up() {
        // 64 MiB of zeros make 64 KiB; so many members make more than the limit.
        let bomb = gzip(&vec![0; 64 << 20]).repeat(17);
        let mut inflate = Inflate::new();
        inflate.begin(Some(b"gzip"));
        // With the most that an event may bring: what a read and an unfinished record and frame are together.
        let error = bomb.chunks(3 * ration::READ_BYTES).find_map(|piece| {
            next_event();
            inflate.take(piece).err()
        });
        let error = error.expect("it is limited");
        assert!(error.0.contains("1 GiB"), "gzip cannot make so much of a read that it meets the other limit: {error}");
    }

    #[test]
    fn what_comes_at_once_has_a_limit() {
        let _alone = alone();
        assert!(ZEROS_BR.len() < 4096);
        let bombs = [("br", ZEROS_BR.to_vec()), ("zstd", repeated(23, 9000))];
        for (encoding, bomb) in bombs.into_iter().filter(|(encoding, _)| HAS_ZSTD || *encoding != "zstd") {
            let error = count(encoding, &bomb, 16 * 1024).unwrap_err();
            assert!(error.0.contains("more than 64 MiB come out of what arrived at once"), "{encoding}: {error}");
        }
        // Bodies of several streams, which one read may bring, have it together.
        next_event();
        let bodies = (0..100).find_map(|_| {
            let mut inflate = Inflate::new();
            inflate.begin(Some(b"gzip"));
            inflate.take(&gzip(&[0; 1 << 20])).err()
        });
        assert!(bodies.is_some_and(|error| error.0.contains("at once")));
    }

    /// As a server may have it that stalls within each of its bodies.
    #[test]
    fn all_bodies_under_way_together_hold_so_much_memory() {
        let _alone = alone();
        let stalled = || {
            next_event();
            let mut brotli = Brotli::new();
            // Up to its limit it goes on; then it has the largest window.
            let error = brotli.take(ZEROS_BR).unwrap_err().to_string();
            if error.contains("at once") { Ok(brotli) } else { Err(error) }
        };
        let (mut held, mut refused) = (Vec::new(), String::new());
        for _ in 0..50 {
            match stalled() {
                Ok(brotli) => held.push(brotli),
                Err(error) => refused = error,
            }
        }
        // Tests beside this one may hold a little.
        assert!((10..=windows::LIMIT_BYTES >> 24).contains(&held.len()), "{}", held.len());
        assert!(refused.contains("more than 256 MiB") && refused.contains("--encoding gzip"), "{refused}");
        held.clear();
        assert!(stalled().is_ok(), "what is given back is there for others");
    }

    #[cfg(feature = "zstd")]
    #[test]
    fn windows_of_zstd_count_like_those_of_brotli() {
        let _alone = alone();
        // Its last block is missing.
        let frame = repeated(23, 65);
        let begin = &frame[..frame.len() - 4];
        let (mut held, mut refused) = (Vec::new(), 0);
        for _ in 0..50 {
            next_event();
            let mut zstd = Zstd::new().unwrap();
            match zstd.take(begin) {
                Ok(()) => held.push(zstd),
                Err(error) => refused += u32::from(error.to_string().contains("more than 256 MiB")),
            }
        }
        assert!((20..=windows::LIMIT_BYTES >> 23).contains(&held.len()), "{}", held.len());
        assert_eq!(held.len() as u32 + refused, 50);
    }

    /// A zstd frame of blocks that say "128 KiB of this byte", with a window of so many bits.
    fn repeated(window_log: u8, blocks: u32) -> Vec<u8> {
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, (window_log - 10) << 3];
        for block in 0..blocks {
            let is_last = u32::from(block + 1 == blocks);
            let header = ((128 * 1024) << 3) | (1 << 1) | is_last;
            frame.extend_from_slice(&header.to_le_bytes()[..3]);
            frame.push(b'x');
        }
        frame
    }

    #[test]
    fn windows_are_no_larger_than_http_has_them() {
        let _alone = alone();
        if HAS_ZSTD {
            assert_eq!(count("zstd", &repeated(23, 100), 1000), Ok(100 * 128 * 1024));
            let error = count("zstd", &repeated(24, 100), 1000).unwrap_err();
            assert!(error.0.contains("more than 8 MiB"), "{error}");
        }
        // The header of a brotli stream with a large window, of 2^30 bytes.
        let error = count("br", &[0x11, 30, 0, 0, 0, 0], 1000).unwrap_err();
        assert!(error.0.contains("not brotli"), "{error}");
    }

    #[test]
    fn what_a_decoder_holds_is_bounded() {
        let _alone = alone();
        next_event();
        #[cfg(feature = "zstd")]
        {
            let mut zstd = Zstd::new().unwrap();
            zstd.take(&repeated(23, 400)).unwrap();
            assert!(zstd.held_bytes() < 9 << 20, "{}", zstd.held_bytes());
            next_event();
        }
        let mut brotli = Brotli::new();
        // Up to the limit, it goes on.
        let _ = brotli.take(ZEROS_BR);
        assert_eq!(brotli.window_bytes(), 16 << 20);
        next_event();
        let mut small = Brotli::new();
        small.take(PAGE_BR).unwrap();
        assert!(small.window_bytes() <= 16 << 10, "{}", small.window_bytes());
    }

    proptest! {
        #[test]
        fn any_bytes_are_counted_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), step in 1usize..50) {
            for encoding in ["gzip", "deflate", "br", "zstd"] {
                let _ = count(encoding, &bytes, step);
            }
        }

        #[test]
        fn damage_is_counted_or_refused(at in 0usize..10_000, flip in 1u8.., step in 1usize..50) {
            for (encoding, whole) in [("br", PAGE_BR), ("zstd", PAGE_ZST)] {
                let mut bytes = whole.to_vec();
                bytes[at % whole.len()] ^= flip;
                let _ = count(encoding, &bytes, step);
            }
        }
    }
}
