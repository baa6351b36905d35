//! What is asked for, seen from the other side: lists, variables, credentials, forms, cookies; and what is refused.

use crate::common::{Asked, Done, Place, Recorder, Ruler, Running, golden, measuring, nginx};
use std::collections::BTreeMap;

/// `duel run URL -c 1 -t 1 -n N -q` and more, which has to succeed; what was asked after the first contact.
#[track_caller]
fn asked(place: &Place, recorder: &Recorder, path: &str, ops: u32, more: &[&str]) -> Vec<Asked> {
    let (url, ops) = (recorder.url(path), ops.to_string());
    place.duel([&["run", &url, "-c", "1", "-t", "1", "-n", &ops, "-q"], more].concat()).ok();
    recorder.take().split_off(1)
}

fn lines(asked: &[Asked]) -> Vec<&str> {
    asked.iter().map(Asked::line).collect()
}

fn counted<'a>(lines: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, u32> {
    lines.into_iter().fold(BTreeMap::new(), |mut counts, line| {
        *counts.entry(line.to_owned()).or_default() += 1;
        counts
    })
}

#[test]
fn a_list_goes_round_below_the_target_s_path_behind_the_first_contact() {
    let (place, recorder) = (Place::new(), Recorder::plain());
    let list = place.file("list.txt", "# three\n/a?b=c\nhttp://elsewhere.example/d#e\n\n/f%20g\n");
    let seen = asked(&place, &recorder, "/base/", 4, &["--urls", &list]);
    // The first contact has sent the first one.
    assert_eq!(lines(&seen), ["GET /base/d", "GET /base/f%20g", "GET /base/a?b=c", "GET /base/d"]);
    assert_eq!(seen[0].field("Host"), Some(recorder.url("").trim_start_matches("http://")));
    let seen = asked(&place, &recorder, "/", 1, &["--urls", &list, "-m", "PUT", "--body", "{n}", "-H", "X-A: 1"]);
    assert_eq!((seen[0].line(), seen[0].text(), seen[0].field("X-A")), ("PUT /d", "{n}", Some("1")));
}

#[test]
fn weights_hold_in_turn_and_at_random() {
    let (place, recorder) = (Place::new(), Recorder::plain());
    let list = place.file("list.txt", "3 /a\n1 /b\n");
    let counts = counted(lines(&asked(&place, &recorder, "/", 400, &["--urls", &list])));
    assert_eq!((counts["GET /a"], counts["GET /b"]), (300, 100));
    let random = ["--urls", &list, "--order", "random", "--seed", "5"];
    let first = asked(&place, &recorder, "/", 400, &random);
    assert_eq!(lines(&first), lines(&asked(&place, &recorder, "/", 400, &random)), "the seed repeats it");
    let a = counted(lines(&first))["GET /a"];
    assert!((240..360).contains(&a), "{a}");
}

/// Real servers, several workers: each address of a list equally often, on both sides of a comparison.
#[test]
fn nginx_is_asked_each_address_equally_often() {
    let place = Place::new();
    let server = nginx(&place, "nginx", "server { listen 127.0.0.1:{1}; location / { return 200 ok; } }");
    let list = place.file("list.txt", (0..50).map(|n| format!("/page/{n}\n")).collect::<String>());
    place.duel(["run", &server.http(1, "/"), "--urls", &list, "-n", "2000", "-c", "7", "-t", "3", "-q"]).ok();
    let log = std::fs::read_to_string(place.path("nginx/access.log")).unwrap();
    let asked = log.lines().filter_map(|line| line.split(' ').next_back());
    let counts = counted(asked);
    assert_eq!(counts.len(), 50);
    // The first contact has asked for one of them; workers' parts of the ops are not all the same.
    assert!(counts.values().all(|count| (39..=42).contains(count)), "{counts:?}");
}

#[test]
fn both_sides_of_a_comparison_are_asked_the_same() {
    let _alone = measuring();
    let (place, a, b) = (Place::new(), Recorder::plain(), Recorder::plain());
    let list = place.file("list.txt", (0..30).map(|n| format!("{} /{n}?{{uuid}}\n", n % 4 + 1)).collect::<String>());
    let (first, second) = (format!("a={}", a.url("/")), format!("b={}", b.url("/base")));
    let list = ["--urls", &list, "--order", "random", "--template", "--seed", "3"];
    place.duel([&[&first, &second, "-d", "1s", "-c", "1", "-t", "1", "-q"], &list[..]].concat()).ok();
    let asked_a: Vec<String> = lines(&a.take()).into_iter().map(|line| line.replacen('/', "/base/", 1)).collect();
    let asked_b = b.take();
    assert!(asked_a.len() > 50 && asked_b.len() > 50);
    assert!(asked_a.iter().zip(lines(&asked_b)).take(50).all(|(a, b)| a == b), "{:?}", &asked_a[..5]);
}

#[test]
fn vegeta_s_targets() {
    let (place, recorder) = (Place::new(), Recorder::plain());
    let file = place.file(
        "targets.json",
        "{\"method\":\"GET\",\"url\":\"http://h/first\"}\n\
         {\"method\":\"POST\",\"url\":\"http://h/x\",\"header\":{\"X-Id\":[\"7\"]},\"body\":\"eyJhIjogezF9fQ==\"}\n\
         {\"method\":\"HEAD\",\"url\":\"http://h/y\"}\n",
    );
    let seen = asked(&place, &recorder, "/", 1, &["--request-file", &file]);
    assert_eq!((seen[0].line(), seen[0].field("X-Id"), seen[0].text()), ("POST /x", Some("7"), "{\"a\": {1}}"));
    // A response to HEAD has no body, whatever it announces, and the next one is not taken for it.
    let ruler = Ruler::start(&[]);
    let run = place.json_ended(["run", &ruler.url("/"), "--request-file", &file, "-n", "40", "-c", "2"], 1);
    assert_eq!(run["targets"][0]["statuses"]["404"], 40, "{run}");
}

#[test]
fn vegeta_s_own_text() {
    let (place, recorder) = (Place::new(), Recorder::plain());
    let body = place.file("body.txt", "from a file");
    let text = format!("GET http://h/small\n\nPOST http://h/post\nX-A: two\n@{body}\n\nGET http://h/last\n");
    let file = place.file("targets.txt", &text);
    let seen = asked(&place, &recorder, "/", 3, &["--request-file", &file, "--request-format", "vegeta"]);
    let mut lines_seen = lines(&seen);
    lines_seen.sort();
    assert_eq!(lines_seen, ["GET /last", "GET /small", "POST /post"]);
    let post = seen.iter().find(|request| request.line().starts_with("POST")).unwrap();
    assert_eq!((post.text(), post.field("X-A")), ("from a file", Some("two")));
    // As an editor's file all of it would be one request with a body.
    let url = recorder.url("/");
    let refused = place.duel(["run", &url, "-n", "1", "--request-file", &file, "--request-format", "http"]);
    assert!(refused.stderr.contains("line 3: this looks like another request"), "{}", refused.stderr);
    assert!(recorder.take().is_empty());
}

#[test]
fn an_editor_s_file() {
    let (place, recorder) = (Place::new(), Recorder::plain());
    place.file("body.json", "{\"from\": \"file\"}");
    let file = place.file(
        "api.http",
        "@id = 7\n### one\nPUT http://h/things/{{id}}\nContent-Type: application/json\n\n< ./body.json\n\n### two\n/list\n",
    );
    let seen = asked(&place, &recorder, "/", 2, &["--request-file", &file]);
    assert_eq!(lines(&seen), ["GET /list", "PUT /things/7"]);
    assert_eq!((seen[1].text(), seen[1].field("Content-Type")), ("{\"from\": \"file\"}", Some("application/json")));
}

#[test]
fn a_browser_s_recording() {
    let (place, recorder) = (Place::new(), Recorder::plain());
    let entry = |url: &str| {
        format!(
            r#"{{"request":{{"method":"GET","url":"{url}","headers":[{{"name":"Host","value":"x"}},{{"name":"Cookie","value":"s=1"}}]}}}}"#
        )
    };
    let entries = ["https://a/1", "https://cdn/2", "https://a/3"].map(entry).join(",");
    let file = place.file("page.har", format!("{{\"log\":{{\"entries\":[{entries}]}}}}"));
    let url = recorder.url("/");
    let done = place.duel(["run", &url, "-c", "1", "-n", "2", "--har", &file]).ok();
    assert!(done.stderr.contains("1 of 3 requests go to other hosts than https://a"), "{}", done.stderr);
    let seen = recorder.take();
    assert_eq!(lines(&seen), ["GET /1", "GET /3", "GET /1"]);
    assert_eq!(seen[1].field("Cookie"), Some("s=1"));
    assert_ne!(seen[1].field("Host"), Some("x"));
}

#[test]
fn variables_are_counted_drawn_and_read() {
    let (place, recorder) = (Place::new(), Recorder::plain());
    let data = place.file("users.csv", "name,id\nAda Lovelace,a/1\n\"Bob \"\"B\"\"\",2\n");
    let body = "{\"who\": {\"name\": \"{name}\"}, \"n\": {n}, \"r\": {rand:3..4}, \"u\": \"{uuid}\"}";
    let args = ["-m", "POST", "--data", &data, "--body", body, "-H", "X-Name: {name}", "-H", "X-U: {uuid}"];
    let seen = asked(&place, &recorder, "/users/{id}?n={n}", 3, &args);
    // The first contact has taken number 0 and the first row.
    assert_eq!(lines(&seen), ["POST /users/2?n=1", "POST /users/a%2F1?n=2", "POST /users/2?n=3"]);
    assert_eq!(seen[1].field("X-Name"), Some("Ada Lovelace"));
    let uuid = seen[0].field("X-U").unwrap();
    let said: Vec<&str> = seen[0].text().split(['3', '4']).collect();
    assert!(seen[0].text().contains(&format!("\"u\": \"{uuid}\"}}")) && !said.is_empty(), "{}", seen[0].text());
    assert!(seen[0].text().starts_with("{\"who\": {\"name\": \"Bob \"B\"\"}, \"n\": 1, \"r\": "));
    assert_ne!(seen[1].field("X-U"), Some(uuid));
    // Over several workers no number is given twice.
    let url = recorder.url("/{n}");
    place.duel(["run", &url, "--template", "-n", "500", "-c", "5", "-t", "3", "-q"]).ok();
    let numbers = counted(lines(&recorder.take()));
    assert!(numbers.len() == 501 && numbers.values().all(|&count| count == 1));
}

/// What may change something is sent once for each row and UUID, the first contact's among them, and its sender is told.
#[test]
fn nothing_is_sent_twice_before_the_list_is_through() {
    let (place, recorder) = (Place::new(), Recorder::plain());
    let data = place.file("rows.csv", format!("row\n{}", (0..12).map(|n| format!("{n}\n")).collect::<String>()));
    let url = recorder.url("/{row}");
    let args = ["run", &url, "-m", "POST", "--data", &data, "--body", "{uuid}", "-c", "1", "-t", "1", "-n", "11"];
    let done = place.duel(args).ok();
    assert!(done.stderr.contains("before the load each target is sent one request"), "{}", done.stderr);
    let seen = recorder.take();
    let (rows, uuids) = (counted(lines(&seen)), counted(seen.iter().map(Asked::text)));
    assert_eq!((seen.len(), rows.len(), uuids.len()), (12, 12, 12), "{rows:?} {uuids:?}");
    // A list as long as the number of requests is sent as a whole in what is measured, by however many workers.
    place.duel(["run", &url, "-m", "POST", "--data", &data, "-c", "5", "-t", "3", "-n", "12", "-q"]).ok();
    assert_eq!(counted(lines(&recorder.take().split_off(1))).len(), 12);
    let quiet = place.duel(["run", &recorder.url("/"), "-n", "1"]).ok();
    assert!(!quiet.stderr.contains("before the load"), "{}", quiet.stderr);
}

#[test]
fn credentials_come_from_files_and_the_environment_and_are_not_kept() {
    const SECRET: &str = "open sesame";
    let (place, recorder) = (Place::new(), Recorder::plain());
    let file = place.file("secret", format!("{SECRET}\n"));
    let seen = asked(&place, &recorder, "/", 1, &["--user", "Aladdin", "--password-file", &file]);
    assert_eq!(seen[0].field("Authorization"), Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="));
    let seen = asked(&place, &recorder, "/", 1, &["--bearer-file", &file]);
    assert_eq!(seen[0].field("Authorization"), Some("Bearer open sesame"));
    let signed = |service: &str| {
        let mut command = place.command();
        command.args(["run", &recorder.url("/a%20b?x=1"), "-c", "1", "-n", "1", "-q", "-m", "POST", "--body", "hi"]);
        command.args(["--aws-sigv4", &format!("eu-west-1:{service}")]);
        command.env("AWS_ACCESS_KEY_ID", "AKID").env("AWS_SECRET_ACCESS_KEY", SECRET).env("AWS_SESSION_TOKEN", "tok");
        Running::start(command).end().ok();
        recorder.take().pop().unwrap()
    };
    let request = signed("s3");
    let authorization = request.field("Authorization").unwrap();
    assert!(authorization.starts_with("AWS4-HMAC-SHA256 Credential=AKID/20"), "{authorization}");
    let fields = "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token, ";
    assert!(
        authorization.contains("/eu-west-1/s3/aws4_request, ") && authorization.contains(fields),
        "{authorization}"
    );
    let hash_of_hi = "8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4";
    assert_eq!(request.field("X-Amz-Content-Sha256"), Some(hash_of_hi));
    assert!(signed("execute-api").field("X-Amz-Content-Sha256").is_none());
    // A signature that was recorded is not sent beside ours.
    let recorded =
        r#"{"method":"GET","url":"/","header":{"X-Amz-Date":["old"],"authorization":["old"],"X-Kept":["1"]}}"#;
    let list = place.file("list.json", recorded);
    let mut command = place.command();
    command.args(["run", &recorder.url("/"), "-c", "1", "-n", "1", "-q", "--request-file", &list]);
    command.args(["--aws-sigv4", "eu-west-1:s3"]);
    command.env("AWS_ACCESS_KEY_ID", "AKID").env("AWS_SECRET_ACCESS_KEY", SECRET);
    Running::start(command).end().ok();
    let sent = recorder.take().pop().unwrap().head;
    assert!(!sent.contains("old") && sent.contains("X-Kept: 1"), "{sent}");
    assert_eq!((sent.matches("uthorization: ").count(), sent.matches("X-Amz-Date: ").count()), (1, 1), "{sent}");
    let kept = std::fs::read(place.archive()).unwrap();
    for secret in [SECRET, "QWxhZGRpbjpvcGVuIHNlc2FtZQ"] {
        assert!(!kept.windows(secret.len()).any(|bytes| bytes == secret.as_bytes()), "{secret} is in the archive");
    }
}

#[test]
fn a_run_with_credentials_can_be_repeated() {
    let (place, recorder) = (Place::new(), Recorder::plain());
    let (token, list) = (place.file("token", "abc"), place.file("list", "/a\n/b\n"));
    asked(&place, &recorder, "/", 2, &["--bearer-file", &token, "--urls", &list]);
    place.duel(["rerun", "last", "-q"]).ok();
    let seen = recorder.take();
    assert_eq!(lines(&seen), ["GET /a", "GET /b", "GET /a"]);
    assert!(seen.iter().all(|asked| asked.field("Authorization") == Some("Bearer abc")));
}

#[test]
fn forms() {
    let (place, recorder) = (Place::new(), Recorder::plain());
    let file = place.file("up.txt", "content");
    let value = format!("password=<{file}");
    let seen = asked(&place, &recorder, "/", 1, &["--field", "a b=1&2", "--field", &value]);
    assert_eq!((seen[0].line(), seen[0].text()), ("POST /", "a+b=1%262&password=content"));
    assert_eq!(seen[0].field("Content-Type"), Some("application/x-www-form-urlencoded"));
    let seen = asked(&place, &recorder, "/", 1, &["--form", "a=1", "--form", &format!("f=@{file}"), "-m", "PUT"]);
    let boundary = seen[0].field("Content-Type").unwrap().strip_prefix("multipart/form-data; boundary=").unwrap();
    let expected = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--{boundary}\r\nContent-Disposition: \
         form-data; name=\"f\"; filename=\"up.txt\"\r\nContent-Type: application/octet-stream\r\n\r\ncontent\r\n\
         --{boundary}--\r\n"
    );
    assert_eq!((seen[0].line(), seen[0].text()), ("PUT /", expected.as_str()));
}

#[test]
fn cookies_belong_to_a_connection() {
    let place = Place::new();
    let answer =
        "HTTP/1.1 200 OK\r\nSet-Cookie: id=7; Path=/\r\nSet-Cookie: gone=1; Max-Age=0\r\nContent-Length: 0\r\n\r\n";
    let recorder = Recorder::start(answer);
    let seen = asked(&place, &recorder, "/", 6, &["--cookies"]);
    let cookies: Vec<_> = seen.iter().map(|asked| asked.field("Cookie")).collect();
    assert_eq!(cookies, [None, Some("id=7"), Some("id=7"), Some("id=7"), Some("id=7"), Some("id=7")]);
    let seen = asked(&place, &recorder, "/", 3, &["--cookies", "--no-keepalive"]);
    assert!(seen.iter().all(|asked| asked.field("Cookie").is_none()), "they end with their connection");
    let seen = asked(&place, &recorder, "/", 3, &[]);
    assert!(seen.iter().all(|asked| asked.field("Cookie").is_none()), "nobody asked for them");
}

#[test]
fn redirects_of_each_request_are_followed_and_carry_cookies() {
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let url = ruler.url("/redirect/redirect/size/10");
    let run = place.json(["run", &url, "-n", "5", "-c", "1", "--follow-each", "3"]);
    assert_eq!(run["targets"][0]["statuses"], serde_json::json!({"200": 5}));
    let done = place.duel(["run", &url, "-n", "5", "-c", "1", "--follow-each", "1", "-q"]).ended(1);
    assert!(done.sentence().contains("stopped after 1 redirects"), "{}", done.stderr);

    let front = Place::new();
    let server = nginx(
        &front,
        "nginx",
        "server { listen 127.0.0.1:{1}; location /a { add_header Set-Cookie seen=1; return 302 /b; }
         location /b { if ($http_cookie != 'seen=1') { return 403; } return 200 ok; } }",
    );
    let url = server.http(1, "/a");
    let args = ["run", &url, "-n", "5", "-c", "1", "--follow-each", "3"];
    assert_eq!(place.json_ended(args, 1)["targets"][0]["statuses"], serde_json::json!({"403": 5}));
    let run = place.json([&args[..], &["--cookies"]].concat());
    assert_eq!(run["targets"][0]["statuses"], serde_json::json!({"200": 5}));
}

#[test]
fn compressed_responses_are_counted_both_ways() {
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let run = place.json(["run", &ruler.url("/gzip"), "-n", "10", "-c", "2", "--decompress"]);
    let target = &run["targets"][0];
    assert_eq!((&target["ops"], &target["inflated_bytes"]), (&10.into(), &6120.into()));
    assert!(target["body_bytes"].as_u64().unwrap() < 6120);
    let run = place.json(["run", &ruler.url("/gzip"), "-n", "10", "-c", "2"]);
    assert!(run["targets"][0]["inflated_bytes"].is_null());
    let broken = Recorder::start("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 7\r\n\r\nno gzip");
    let done = place.duel(["run", &broken.url("/"), "-n", "3", "-c", "1", "-q", "--decompress"]).ended(1);
    assert!(done.sentence().contains("cannot be decompressed"), "{}", done.stderr);
    place.duel(["run", &broken.url("/"), "-n", "3", "-c", "1", "-q"]).ok();
}

#[test]
fn brotli_and_zstd_of_a_real_server_are_counted_both_ways() {
    const PLAIN_BYTES: u64 = 7_690;
    let place = Place::new();
    let packed: &[(&str, &[u8])] = &[
        ("br", include_bytes!("../../../http/tests/data/page.txt.br")),
        #[cfg(feature = "zstd")]
        ("zstd", include_bytes!("../../../http/tests/data/page.txt.zst")),
    ];
    let mut locations = String::new();
    for &(coding, bytes) in packed {
        place.file(&format!("files/{coding}"), bytes);
        place.file(&format!("files/cut-{coding}"), &bytes[..bytes.len() - 1]);
        place.file(&format!("files/garbage-{coding}"), "<html>not packed at all</html>");
        locations += &format!("location ~ {coding}$ {{ add_header Content-Encoding {coding}; }} ");
    }
    place.file("files/unknown", "x");
    let root = place.path("files");
    let server = nginx(
        &place,
        "nginx",
        &format!(
            "server {{ listen 127.0.0.1:{{1}}; root {}; {locations} location /unknown {{ add_header Content-Encoding \
             compress; }} }}",
            root.display()
        ),
    );
    for &(coding, bytes) in packed {
        let url = server.http(1, &format!("/{coding}"));
        let args = ["run", &url, "-n", "20", "-c", "2", "--encoding", coding];
        let target = &place.json([&args[..], &["--decompress"]].concat())["targets"][0];
        let sizes = (target["body_bytes"].as_u64(), target["inflated_bytes"].as_u64());
        assert_eq!(sizes, (Some(20 * bytes.len() as u64), Some(20 * PLAIN_BYTES)), "{coding}");
        for (kind, said) in [("cut", "ends early"), ("garbage", "cannot be decompressed")] {
            let url = server.http(1, &format!("/{kind}-{coding}"));
            let args = ["run", &url, "-n", "3", "-c", "1", "-q", "--decompress"];
            let done = place.duel([&args[..], &["--encoding", coding]].concat()).ended(1);
            assert!(done.sentence().contains(said), "{kind} {coding}: {}", done.stderr);
            let done = place.duel(args).ended(1);
            assert!(done.sentence().contains("did not ask for"), "{kind} {coding}: {}", done.stderr);
        }
    }
    let url = server.http(1, "/unknown");
    let done = place.duel(["run", &url, "-n", "3", "-c", "1", "-q", "--decompress"]).ended(1);
    assert!(done.sentence().contains("'compress', which is not decompressed here"), "{}", done.stderr);
}

/// Largest resident memory of a run, in kB.
fn peak_kb(place: &Place, args: &[&str]) -> u64 {
    let mut command = place.command();
    command.args(args);
    let mut running = Running::start(command);
    let mut peak = 0;
    while !running.is_over() {
        let status = std::fs::read_to_string(format!("/proc/{}/status", running.pid())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kb = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        peak = peak.max(kb.unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    running.end().ok();
    peak
}

#[cfg(target_os = "linux")]
#[test]
fn memory_does_not_grow_with_requests() {
    let _alone = measuring();
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let list =
        place.file("list", (0..20_000).map(|n| format!("/size/{}?item={{n}}&list={n}\n", n % 7)).collect::<String>());
    let run = |ops: &str, more: &[&str]| {
        let url = ruler.url("/");
        peak_kb(&place, &[&["run", &url, "-n", ops, "-c", "4", "-q", "--urls", &list, "--no-archive"], more].concat())
    };
    for more in [&[][..], &["--template", "--cookies"]] {
        let (few, many) = (run("2000", more), run("40000", more));
        assert!(many as f64 <= few as f64 * 1.1, "{more:?}: {few} kB, then {many} kB");
    }
}

/// What is refused, as a reader sees it.
#[test]
fn bad_input_is_refused_in_clear_sentences() {
    let place = Place::new();
    for (name, text) in [
        ("two-hosts.txt", "http://a.example/\n/x\nhttp://b.example/y\n"),
        ("no-address.txt", "/ok\nwww.example.org\n"),
        ("weights.txt", "0 /\n"),
        ("spaces.txt", "3 /a b\n"),
        ("empty.txt", "# nothing\n\n"),
        ("targets.json", "{\"method\":\"GET\",\"url\":\"/\"}\n{\"method\":\"GET\"\n"),
        ("method.json", "{\"method\":\"GET /x\",\"url\":\"/\"}\n"),
        ("header.json", "{\"method\":\"GET\",\"url\":\"/\",\"header\":{\"X\":[\"a\\r\\nEvil: 1\"]}}\n"),
        ("base64.json", "{\"method\":\"GET\",\"url\":\"/\",\"body\":\"%\"}\n"),
        ("variable.http", "GET /{{host}}\n"),
        ("missing-body.http", "POST /\n\n< ./nothing.json\n"),
        ("page.har", "{\"log\": {}}"),
        ("requests.toml", ""),
        ("short.csv", "a,b\n1,2\n3\n"),
        ("no-rows.csv", "a,b\n"),
        ("line-end.csv", "a\n\"x\ny\"\n"),
        ("good.csv", "id,name\n1,x\n"),
        ("list.txt", "/a\n/{nmae}\n"),
        ("control", "a\tb\n"),
    ] {
        place.file(name, text);
    }
    place.file("latin1.txt", b"/a\n/\xe9\n");
    let commands: &[&[&str]] = &[
        &["--urls", "nothing.txt"],
        &["--urls", "two-hosts.txt"],
        &["--urls", "no-address.txt"],
        &["--urls", "weights.txt"],
        &["--urls", "spaces.txt"],
        &["--urls", "empty.txt"],
        &["--urls", "latin1.txt"],
        &["--request-file", "targets.json"],
        &["--request-file", "method.json"],
        &["--request-file", "header.json"],
        &["--request-file", "base64.json"],
        &["--request-file", "variable.http"],
        &["--request-file", "missing-body.http"],
        &["--request-file", "requests.toml"],
        &["--har", "page.har"],
        &["--urls", "a", "--har", "b"],
        &["--order", "random"],
        &["--data", "short.csv"],
        &["--data", "no-rows.csv"],
        &["--data", "line-end.csv", "-H", "X: {a}"],
        &["--urls", "list.txt", "--data", "good.csv"],
        &["--template", "-H", "X: {rand:9..1}"],
        &["--template", "--field", "a=1"],
        &["--user", "me:s3cr3t"],
        &["--user", "me"],
        &["--user", "me", "--password-file", "nothing"],
        &["--bearer-file", "control"],
        &["--bearer-file", "control", "-H", "Authorization: x"],
        &["--aws-sigv4", "s3"],
        &["--aws-sigv4", "eu-west-1:s3"],
        &["--field", "password=s3cr3t"],
        &["--form", "s3cr3t"],
        &["--form", "f=@nothing"],
        &["--cookies", "-H", "Cookie: a=1"],
        &["--follow-each", "0"],
        &["--follow-each", "2", "--urls", "list.txt"],
        &["--follow-each", "x"],
        &["--request-file", "targets.json", "--body", "x"],
    ];
    let mut text = String::new();
    for args in commands {
        let done: Done = place.duel([&["run", "http://127.0.0.1:9/"], *args].concat()).ended(2);
        assert!(!done.stderr.contains("s3cr3t") && done.stdout.is_empty(), "{args:?}: {}", done.stderr);
        text += &format!("$ duel run URL {}\n! {}\n", args.join(" "), done.sentence());
    }
    let done = place.duel(["run", "http://127.0.0.1:9/?x=1", "--urls", "list.txt"]).ended(2);
    text += &format!("$ duel run URL?x=1 --urls list.txt\n! {}\n", done.sentence());
    golden("request-errors.txt", &text);
}
