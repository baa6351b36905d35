//! Bodies decompressed for counting, as they arrive; nothing of them is kept.

use super::response::ProtocolError;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use std::io::{self, Write};

/// Largest body after decompression. A thousandth of it is enough to make it (DEFLATE packs 1032 to 1 at best), and a
/// worker that unpacks measures nobody.
const INFLATED_LIMIT_BYTES: u64 = 1 << 30;

/// Counts the bytes of bodies after decompression.
#[derive(Debug)]
pub(crate) struct Inflate {
    coding: Coding,
    /// Bytes of the body as it came.
    taken: u64,
}

#[derive(Debug)]
enum Coding {
    Identity(u64),
    Gzip(MultiGzDecoder<Count>),
    /// With the header of zlib, as it ought to be, or without, as some servers have it: its first byte tells.
    Deflate(Option<Deflate>),
    /// What it is called; a response without a body may have any.
    Unknown(String),
}

#[derive(Debug)]
enum Deflate {
    Zlib(ZlibDecoder<Count>),
    Raw(DeflateDecoder<Count>),
}

/// Counts what is written to it.
#[derive(Debug, Default)]
struct Count(u64);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        if self.0 > INFLATED_LIMIT_BYTES {
            return Err(io::Error::other("it has more than 1 GiB when decompressed"));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Inflate {
    pub(crate) fn new() -> Self {
        Self { coding: Coding::Identity(0), taken: 0 }
    }

    /// A body of this `Content-Encoding` begins.
    #[inline(never)]
    pub(crate) fn begin(&mut self, encoding: Option<&[u8]>) {
        self.taken = 0;
        self.coding = match encoding.unwrap_or(b"identity").to_ascii_lowercase().as_slice() {
            b"identity" | b"" => Coding::Identity(0),
            b"gzip" | b"x-gzip" => Coding::Gzip(MultiGzDecoder::new(Count::default())),
            b"deflate" => Coding::Deflate(None),
            other => Coding::Unknown(duel_model::sanitize_line(&String::from_utf8_lossy(other))),
        };
    }

    /// Takes the next bytes of the body.
    #[inline(never)]
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<(), ProtocolError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.taken += bytes.len() as u64;
        match &mut self.coding {
            Coding::Identity(count) => {
                *count += bytes.len() as u64;
                Ok(())
            }
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
            Coding::Unknown(name) => {
                return Err(ProtocolError(format!(
                    "the response's Content-Encoding is '{name}', which is not decompressed here; gzip and deflate are"
                )));
            }
        }
        .map_err(|error| broken(&error))
    }

    /// The body has ended: its size after decompression.
    pub(crate) fn finish(&mut self) -> Result<u64, ProtocolError> {
        if self.taken == 0 {
            return Ok(0);
        }
        let finished = match &mut self.coding {
            Coding::Identity(count) => return Ok(*count),
            Coding::Gzip(decoder) => decoder.try_finish().map(|()| decoder.get_ref().0),
            Coding::Deflate(None) | Coding::Unknown(_) => return Ok(0),
            Coding::Deflate(Some(Deflate::Zlib(decoder))) => decoder.try_finish().map(|()| decoder.get_ref().0),
            Coding::Deflate(Some(Deflate::Raw(decoder))) => decoder.try_finish().map(|()| decoder.get_ref().0),
        };
        finished.map_err(|error| broken(&error))
    }
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

    fn count(encoding: &str, bytes: &[u8], step: usize) -> Result<u64, ProtocolError> {
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
        ] {
            for step in [1, 7, bytes.len()] {
                assert_eq!(count(encoding, &bytes, step), Ok(plain.len() as u64), "{encoding} in pieces of {step}");
            }
        }
        assert_eq!(count("gzip", b"", 1), Ok(0));
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
        assert!(count("br", b"x", 1).unwrap_err().0.contains("'br'"));
        assert_eq!(count("br", b"", 1), Ok(0), "where there is no body, nothing has to be unpacked");
    }

    #[test]
    fn a_bomb_is_given_up() {
        // 64 MiB of zeros make 64 KiB; so many members would make more than the limit.
        let member = gzip(&vec![0; 64 << 20]);
        let mut inflate = Inflate::new();
        inflate.begin(Some(b"gzip"));
        let error = (0..17).find_map(|_| inflate.take(&member).err()).expect("it is limited");
        assert!(error.0.contains("1 GiB"), "{error}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_counted_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), step in 1usize..50) {
            for encoding in ["gzip", "deflate"] {
                let _ = count(encoding, &bytes, step);
            }
        }
    }
}
