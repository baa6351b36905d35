//! Compressed bodies.

use super::super::act::Act::{Fill, Forever, Hear, Made, Say};
use super::super::bombs;
use super::super::{Expected, Family, Lie, Speaks};

pub(in super::super) const CODINGS: &[Lie] = &[
    // Codings of bodies.
    lie!(
        "gzip-that-is-none",
        "a body that is said to be gzip, and is not",
        Failed,
        [Forever(&[Hear, Made(bombs::named_gzip_and_plain)])],
        "--decompress"
    ),
    lie!(
        "brotli-that-is-none",
        "a body that is said to be brotli, and is not",
        Failed,
        [Forever(&[Hear, Made(bombs::named_brotli_and_plain)])],
        "--decompress",
        "--encoding",
        "br"
    ),
    lie!(
        "zstd-that-is-none",
        "a body that is said to be zstd, and is not",
        Failed,
        [Forever(&[Hear, Made(bombs::named_zstd_and_plain)])],
        "--decompress",
        "--encoding",
        "zstd"
    ),
    lie!(
        "deflate-of-garbage",
        "garbage behind a header of zlib",
        Failed,
        [Forever(&[Hear, Made(bombs::named_deflate_and_garbage)])],
        "--decompress",
        "--encoding",
        "deflate"
    ),
    lie!(
        "gzip-in-order",
        "a gzip body as it ought to be, so that the others fail for what is wrong with them",
        Ok,
        [Forever(&[Hear, Made(bombs::gzip_right)])],
        "--decompress"
    ),
    lie!(
        "gzip-with-a-wrong-check",
        "a gzip body whose check sum is wrong",
        Failed,
        [Forever(&[Hear, Made(bombs::gzip_wrong_check)])],
        "--decompress"
    ),
    lie!(
        "gzip-without-its-end",
        "a gzip body without its end",
        Failed,
        [Forever(&[Hear, Made(bombs::gzip_without_end)])],
        "--decompress"
    ),
    lie!(
        "gzip-with-garbage-behind",
        "a gzip body with garbage behind it",
        Failed,
        [Forever(&[Hear, Made(bombs::gzip_with_garbage_behind)])],
        "--decompress"
    ),
    lie!(
        "gzip-of-many-members",
        "ten thousand gzip bodies in one",
        Either,
        [Forever(&[Hear, Made(bombs::gzip_of_many_members)])],
        "--decompress"
    ),
    lie!(
        "gzip-far-back",
        "a gzip body that refers to before its beginning",
        Failed,
        [Forever(&[Hear, Made(bombs::gzip_far_back)])],
        "--decompress"
    ),
    lie!(
        "gzip-with-an-endless-name",
        "a file name without end in the header of gzip",
        Failed,
        [
            Hear,
            Say(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"),
            Made(bombs::gzip_endless_name),
            Forever(&[Fill(b'x', 65_536)])
        ],
        "--decompress"
    ),
    lie!(
        "gzip-bomb",
        "gzip of zeros without end",
        Failed,
        [
            Hear,
            Say(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"),
            Made(bombs::gzip_begin),
            Forever(&[Made(bombs::gzip_flood)])
        ],
        "--decompress"
    ),
    lie!(
        "brotli-bomb",
        "brotli of zeros without end",
        Failed,
        [
            Hear,
            Say(b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n"),
            Made(bombs::brotli_begin),
            Forever(&[Made(bombs::brotli_flood)])
        ],
        "--decompress",
        "--encoding",
        "br"
    ),
    lie!(
        "zstd-bomb",
        "zstd of zeros without end",
        Failed,
        [
            Hear,
            Say(b"HTTP/1.1 200 OK\r\nContent-Encoding: zstd\r\n\r\n"),
            Made(bombs::zstd_begin),
            Forever(&[Made(bombs::zstd_flood)])
        ],
        "--decompress",
        "--encoding",
        "zstd"
    ),
    lie!(
        "zstd-huge-window",
        "zstd that wants terabytes to be remembered",
        Failed,
        [Forever(&[Hear, Made(bombs::zstd_huge_window)])],
        "--decompress",
        "--encoding",
        "zstd"
    ),
    lie!(
        "codings-nested",
        "a coding within a coding, a thousand times",
        Failed,
        [Forever(&[Hear, Made(bombs::thousand_codings)])],
        "--decompress"
    ),
];
