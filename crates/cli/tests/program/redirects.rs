//! Redirects: `--follow` and `--follow-each` go to the same places, and refuse the same.

use crate::common::{Place, Recorder, Ruler};

#[test]
fn what_may_be_followed_before_measuring_may_be_followed_in_each_request() {
    let there = Ruler::start(&[]);
    let port = there.url("").rsplit(':').next().unwrap().trim_end_matches('/').to_owned();
    for (location, is_followed) in [
        (format!("http://127.0.0.1:{port}/size/7"), true),
        (format!("http://localhost:{port}/size/7#part"), true),
        (format!("HTTP://127.0.0.1:{port}/size/7?x=a b\u{e9}"), true),
        (format!("//127.0.0.1:{port}/size/7"), true),
        (format!("http://user:password@127.0.0.1:{port}/size/7"), false),
        (format!("//user@127.0.0.1:{port}/size/7"), false),
        (format!("ftp://127.0.0.1:{port}/size/7"), false),
        ("http://127.0.0.1:0/".to_owned(), false),
        ("http://".to_owned(), false),
        ("javascript:alert(1)".to_owned(), false),
        // Round and round.
        ("/again".to_owned(), false),
    ] {
        let answer = format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
        let here = Recorder::start(answer);
        let url = here.url("/");
        let follows = |option: &str| {
            let place = Place::new();
            let args = ["run", &url, "-n", "3", "-c", "1", "-q", "--json", option, "2"];
            let done = place.duel(args);
            let document = done.json();
            let ok = document["targets"][0]["ops"] == 3;
            assert_eq!(ok, done.code == Some(0), "{location} {option}: {document:#}");
            if !ok && !location.starts_with('/') {
                let said = format!("{}{}", document["error"], document["targets"][0]["failure_examples"]);
                assert!(said.contains("leads nowhere"), "{location} {option}: {said}");
                assert!(!said.contains("user:password"), "{said}");
            }
            ok
        };
        assert_eq!((follows("--follow"), follows("--follow-each")), (is_followed, is_followed), "{location}");
    }
}
