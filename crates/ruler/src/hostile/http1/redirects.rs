//! Redirects and cookies.

use super::super::act::Act::{Fill, Forever, Hear, Say, Tell, Times};
use super::super::{Expected, Family, Lie, Speaks};

pub(in super::super) const REDIRECTS: &[Lie] = &[
    // Redirects.
    lie!(
        "redirect-loop",
        "a redirect to itself",
        Failed,
        [Forever(&[Hear, Say(b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n")])],
        "--follow-each",
        "5"
    ),
    lie!(
        "redirect-ever-new",
        "each redirect leads to another path",
        Failed,
        [Forever(&[
            Hear,
            Tell("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{port}/{n}\r\nContent-Length: 0\r\n\r\n")
        ])],
        "--follow-each",
        "5"
    ),
    lie!(
        "redirect-ever-new-before",
        "the same before any load",
        Failed,
        [Forever(&[Hear, Tell("HTTP/1.1 302 Found\r\nLocation: /{n}\r\nContent-Length: 0\r\n\r\n")])],
        "--follow",
        "5"
    ),
    lie!(
        "redirect-ever-new-hosts",
        "each redirect leads to another host",
        Failed,
        [Forever(&[Hear, Tell("HTTP/1.1 302 Found\r\nLocation: http://h{n}.invalid/\r\nContent-Length: 0\r\n\r\n")])],
        "--follow-each",
        "5"
    ),
    lie!(
        "redirect-to-ftp",
        "a redirect to ftp",
        Failed,
        [Forever(&[Hear, Say(b"HTTP/1.1 302 Found\r\nLocation: ftp://127.0.0.1/\r\nContent-Length: 0\r\n\r\n")])],
        "--follow-each",
        "5"
    ),
    lie!(
        "redirect-to-a-file",
        "a redirect to a file",
        Failed,
        [Forever(&[Hear, Say(b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n")])],
        "--follow-each",
        "5"
    ),
    lie!(
        "redirect-to-a-script",
        "a redirect to a script",
        Failed,
        [Forever(&[Hear, Say(b"HTTP/1.1 302 Found\r\nLocation: javascript:alert(1)\r\nContent-Length: 0\r\n\r\n")])],
        "--follow-each",
        "5"
    ),
    lie!(
        "redirect-with-a-password",
        "a redirect with a user and a password",
        Failed,
        [Forever(&[
            Hear,
            Tell(
                "HTTP/1.1 302 Found\r\nLocation: http://u:s3cr3t@127.0.0.1:{port}/\r\nContent-Length: \
     0\r\n\r\n"
            )
        ])],
        "--follow-each",
        "5"
    ),
    lie!(
        "redirect-to-nobody",
        "a redirect to a port that nobody listens on",
        Failed,
        [Forever(&[Hear, Say(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")])],
        "--follow-each",
        "5"
    ),
    lie!(
        "redirect-to-port-zero",
        "a redirect to port 0",
        Failed,
        [Forever(&[Hear, Say(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:0/\r\nContent-Length: 0\r\n\r\n")])],
        "--follow-each",
        "5"
    ),
    lie!(
        "redirect-to-port-99999",
        "a redirect to a port that is none",
        Failed,
        [Forever(&[
            Hear,
            Say(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:99999/\r\nContent-Length: 0\r\n\r\n")
        ])],
        "--follow-each",
        "5"
    ),
    lie!(
        "redirect-to-tls-that-is-none",
        "a redirect to https on its own port, which speaks http",
        Failed,
        [Forever(&[Hear, Tell("HTTP/1.1 307 No\r\nLocation: https://127.0.0.1:{port}/\r\nContent-Length: 0\r\n\r\n")])],
        "--follow-each",
        "5"
    ),
    lie!(
        "redirect-without-location",
        "a redirect that leads nowhere",
        Either,
        [Forever(&[Hear, Say(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n")])],
        "--follow-each",
        "5"
    ),
    lie!(
        "redirect-to-nothing",
        "an empty Location",
        Either,
        [Forever(&[Hear, Say(b"HTTP/1.1 302 Found\r\nLocation:\r\nContent-Length: 0\r\n\r\n")])],
        "--follow-each",
        "5"
    ),
    lie!(
        "redirect-with-two-locations",
        "two Location fields that contradict each other",
        Either,
        [Forever(&[
            Hear,
            Tell(
                "HTTP/1.1 302 Found\r\nLocation: /a{n}\r\nLocation: http://127.0.0.1:1/\r\n\
     Content-Length: 0\r\n\r\n"
            )
        ])],
        "--follow-each",
        "5"
    ),
    lie!(
        "redirect-of-200-kilobytes",
        "a Location of 200 kB",
        Failed,
        [Forever(&[
            Hear,
            Say(b"HTTP/1.1 302 Found\r\nLocation: /"),
            Fill(b'x', 200_000),
            Say(b"\r\nContent-Length: 0\r\n\r\n")
        ])],
        "--follow-each",
        "5"
    ),
    lie!(
        "redirect-that-splits",
        "CR, LF and a field, encoded, in a Location",
        Failed,
        [Forever(&[Hear, Say(b"HTTP/1.1 302 Found\r\nLocation: /%0d%0aX:%20y\r\nContent-Length: 0\r\n\r\n")])],
        "--follow-each",
        "5"
    ),
    lie!(
        "redirect-after-a-body",
        "a redirect with a body that never ends",
        Failed,
        [Hear, Say(b"HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n"), Forever(&[Fill(b'x', 65_536)])],
        "--follow-each",
        "5"
    ),
    // Cookies.
    lie!(
        "cookies-ten-thousand",
        "ten thousand cookies at once",
        Either,
        [Forever(&[
            Hear,
            Say(b"HTTP/1.1 200 OK\r\n"),
            Times(10_000, &[Tell("Set-Cookie: {n}=1\r\n")]),
            Say(b"Content-Length: 2\r\n\r\nok")
        ])],
        "--cookies"
    ),
    lie!(
        "cookies-ever-new",
        "a thousand other cookies with each answer",
        Either,
        [Forever(&[
            Hear,
            Say(b"HTTP/1.1 200 OK\r\n"),
            Times(1000, &[Tell("Set-Cookie: {n}=abcdefghijklmnopqrstuvwxyz\r\n")]),
            Say(b"Content-Length: 2\r\n\r\nok")
        ])],
        "--cookies"
    ),
    lie!(
        "cookie-of-200-kilobytes",
        "a cookie of 200 kB",
        Either,
        [Forever(&[
            Hear,
            Say(b"HTTP/1.1 200 OK\r\nSet-Cookie: a="),
            Fill(b'x', 200_000),
            Say(b"\r\nContent-Length: 2\r\n\r\nok")
        ])],
        "--cookies"
    ),
    lie!(
        "cookie-that-splits",
        "a cookie with a bare CR and a field in it",
        Either,
        [Forever(&[Hear, Say(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\rX-Evil: c\r\nContent-Length: 2\r\n\r\nok")])],
        "--cookies"
    ),
];
