//! Secrets are planted wherever a user or a server can put one, and looked for in everything that duel says, writes and
//! starts. What may be kept, and nowhere be shown, is told apart: addresses and bodies, without which nothing is repeated.

use crate::common::{Done, Place, Recorder, Running, free_port, wait_until};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

/// What a run needs to be repeated: kept for the user alone.
const KEPT: [&str; 5] = ["S3CR3T-query", "S3CR3T-fragment", "S3CR3T-referer", "S3CR3T-body", "S3CR3T-form"];
/// What every secret has in it.
const MARK: &str = "S3CR3T-";

/// Everything that was said so far, and by what.
#[derive(Default)]
struct Heard(Vec<(String, Vec<u8>)>);

impl Heard {
    fn of(&mut self, what: &str, bytes: impl Into<Vec<u8>>) {
        self.0.push((what.to_owned(), bytes.into()));
    }

    fn done(&mut self, what: &str, done: &Done) {
        self.of(&format!("{what} (stdout)"), done.stdout.as_bytes());
        self.of(&format!("{what} (stderr)"), done.stderr.as_bytes());
    }

    /// Fails with all places at once, so that one look tells the whole class.
    #[track_caller]
    fn has_no_secret(&self) {
        let leaks: Vec<String> = self.0.iter().flat_map(|(what, bytes)| leaks(what, bytes, &[])).collect();
        assert!(leaks.is_empty(), "{}", leaks.join("\n"));
    }
}

/// The marks in some bytes, but for those that may be there.
fn leaks(what: &str, bytes: &[u8], allowed: &[&str]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let marks = text.match_indices(MARK).map(|(at, _)| &text[at..]);
    let mut names: Vec<&str> = marks
        .map(|mark| &mark[..mark.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(mark.len())])
        .filter(|mark| !allowed.contains(mark))
        .collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(|name| format!("{what} has {name}")).collect()
}

/// `duel` with secrets in its environment.
fn command(place: &Place, args: &[&str]) -> Command {
    let mut command = place.command();
    command
        .env("DUEL_PROXY_PASSWORD", "S3CR3T-proxy")
        .env("DUEL_PASSWORD", "S3CR3T-basic")
        .env("DUEL_REDFISH_PASSWORD", "S3CR3T-redfish")
        .env("AWS_ACCESS_KEY_ID", "S3CR3T-aws-id")
        .env("AWS_SECRET_ACCESS_KEY", "S3CR3T-aws-key")
        .env("AWS_SESSION_TOKEN", "S3CR3T-aws-session")
        .env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=S3CR3T-otlp")
        .args(args);
    command
}

fn duel(place: &Place, args: &[&str]) -> Done {
    Running::start(command(place, args)).end()
}

/// A server that leads elsewhere, with secrets in where it leads, and sets a cookie.
fn leading(location: &str) -> Recorder {
    Recorder::start(format!(
        "HTTP/1.1 302 Found\r\nLocation: {location}\r\nSet-Cookie: id=S3CR3T-set-cookie\r\nServer: \
         x/?token=S3CR3T-server\r\nContent-Length: 0\r\n\r\n"
    ))
}

/// All that can be asked of the last run.
fn ask_of_the_last(place: &Place, target: &str, heard: &mut Heard) {
    let folder = place.path("svg");
    let parquet = place.path("run.parquet");
    let junit = place.path("check.xml");
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let export = |format: &'static str| ["export", "last", "-f", format].map(str::to_owned).to_vec();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    for args in [
        words(&["show", "last"]),
        words(&["show", "last", "--json"]),
        words(&["list"]),
        words(&["list", "--json"]),
        words(&["diff", "last", "last~1"]),
        words(&["diff", "last", "last~1", "--json"]),
        words(&["report", "last", "-o", "-"]),
        words(&["report", "last", "--force", "--svg", &text(&folder)]),
        words(&["check", "last", "--critical", "errors<50%", "--junit", &text(&junit)]),
        export("csv"),
        export("ndjson"),
        export("json"),
        export("junit"),
        export("highcharts"),
        [export("hgrm"), words(&["--target", target])].concat(),
        [export("parquet"), words(&["--force", "-o", &text(&parquet)])].concat(),
    ] {
        let done = duel(place, &args.iter().map(String::as_str).collect::<Vec<_>>());
        heard.done(&args.join(" "), &done);
    }
    for file in
        std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()).chain([parquet, junit])
    {
        heard.of(&format!("{}", file.display()), std::fs::read(&file).unwrap_or_default());
    }
}

/// Command lines of the processes that a process has started.
fn children(of: u32, seen: &mut Vec<u8>) {
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse::<u32>().ok());
        if parent == Some(of) {
            seen.extend(std::fs::read(entry.path().join("cmdline")).unwrap_or_default());
            seen.push(b'\n');
        }
    }
}

/// All bytes of the archive as they lie there, and its runs as they are read back: slots are deflated.
/// A file of SQLite's pages, in which the beginning of a kept mark is blotted out where its rest stands on another page: at the end of a page,
/// and before the number of the page on which a long value goes on, four bytes of which the first two are zero here. What may not be kept
/// stays, and so does what is cut anywhere else.
fn with_whole_marks(mut bytes: Vec<u8>, header: usize, before_page: usize) -> Vec<u8> {
    const PAGE: usize = 4096;
    let ends: Vec<usize> =
        (1..).map(|page| header + page * (before_page + PAGE)).take_while(|&end| end <= bytes.len()).collect();
    let goes_on = (0..bytes.len().saturating_sub(1)).filter(|&at| bytes[at..at + 2] == [0, 0]);
    for end in ends.into_iter().chain(goes_on.collect::<Vec<_>>()) {
        let is_of_mark = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
        let run = bytes[..end].iter().rev().take(64).take_while(|byte| is_of_mark(byte)).count();
        let text = String::from_utf8_lossy(&bytes[end - run..end]).into_owned();
        if let Some(at) = text.rfind(MARK)
            && KEPT.iter().any(|kept| kept.len() > text[at..].len() && kept.starts_with(&text[at..]))
        {
            bytes[end - run + at..end].fill(b'x');
        }
    }
    bytes
}

#[test]
fn only_what_a_page_cuts_off_is_blotted_out() {
    let file = |text: &str| {
        let mut bytes = vec![0; 4096 - text.len()];
        bytes.extend(text.as_bytes());
        bytes.extend([0; 100]);
        leaks("it", &with_whole_marks(bytes, 0, 0), &KEPT)
    };
    assert!(file("pw=S3CR3T-que").is_empty() && file("pw=S3CR3T-").is_empty() && file("S3CR3T-body").is_empty());
    assert_eq!(file("pw=S3CR3T-que ").len(), 1);
    assert_eq!(file("pw=S3CR3T-cook").len(), 1);
    let goes_on = |text: &str| file(&format!("{text}\0\0\0\u{7}and other values"));
    assert!(goes_on("pw=S3CR3T-f").is_empty());
    assert_eq!((goes_on("pw=S3CR3T-f ").len(), goes_on("pw=S3CR3T-cook").len()), (1, 1));
}

fn archive(place: &Place) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (file, header, before_page) in [("runs.sqlite", 0, 0), ("runs.sqlite-wal", 32, 24)] {
        bytes.extend(with_whole_marks(std::fs::read(place.path(file)).unwrap_or_default(), header, before_page));
    }
    let archive = duel_archive::Archive::open_read_only(place.archive()).unwrap();
    for run in archive.list(100, 0).unwrap() {
        bytes.extend(serde_json::to_vec(&archive.load(&run.id).unwrap()).unwrap());
    }
    bytes
}

#[test]
fn secrets_reach_no_output_whatever_they_are_a_part_of() {
    let (place, mut heard) = (Place::new(), Heard::default());
    let pad = "y".repeat(200_000);
    let server = leading(&format!("https://u:S3CR3T-location@h/?token=S3CR3T-token&x={pad}#id_token=S3CR3T-id"));
    let (collector, proxy) = (Recorder::plain(), Recorder::plain());
    let fields =
        place.file("fields", "X-Api-Key: S3CR3T-api\nCookie: a=S3CR3T-cookie\nAuthorization: Bearer S3CR3T-auth\n");
    let fields = format!("@{fields}");
    let address = |name: &str| {
        format!(
            "{name}={}",
            server.url(
                "/f?id=7&api_key=S3CR3T-query&next=http%3A%2F%2Fh%2F%3Fsig%3DS3CR3T-query#access_token=S3CR3T-fragment"
            )
        )
    };
    let (a, b) = (address("a"), address("b"));
    let request = [
        "-m",
        "POST",
        "--body",
        "{\"pw\":\"S3CR3T-body\"}",
        "-H",
        &fields,
        "-H",
        "Referer: http://h/?pw=S3CR3T-referer",
    ];
    let port = free_port().to_string();
    let collector_url = collector.url("/v1/metrics");
    let load = ["-c", "1", "-t", "1", "--local", "a", "--metrics", &port, "--otlp", &collector_url];

    // A comparison with its diagnosis, looked at while it goes on.
    let compare = [
        &[a.as_str(), &b, "-d", "2s", "--slot", "50ms", "--why", "--why-budget", "2s", "--json"],
        &request[..],
        &load[..],
    ]
    .concat();
    let mut running = Running::start(command(&place, &compare));
    let (mut started, mut page) = (Vec::new(), Vec::new());
    while !running.is_over() {
        children(running.pid(), &mut started);
        if let Ok(mut stream) = TcpStream::connect(format!("127.0.0.1:{port}")) {
            let _ = stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n");
            let _ = stream.read_to_end(&mut page);
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let done = running.end().ok();
    let document = done.json();
    heard.done("compare", &done);
    assert!(!started.is_empty() && String::from_utf8_lossy(&page).contains("duel_"), "they were seen");
    heard.of("the command line of a child", started);
    heard.of("the page of metrics", page);
    let pushed: Vec<u8> = collector.take().into_iter().flat_map(|asked| asked.body).collect();
    assert!(String::from_utf8_lossy(&pushed).contains("duel."), "figures were pushed");
    heard.of("what was pushed", pushed);
    assert!(
        server.take().iter().all(|asked| asked.head.contains("S3CR3T-query") && asked.text().contains("S3CR3T-body"))
    );
    ask_of_the_last(&place, "a", &mut heard);

    // On one target: credentials of each kind, through a proxy, and a form.
    let token = place.file("token", "S3CR3T-bearer\n");
    let through = proxy.url("").replace("http://", "http://me@");
    let url = server.url("/?id=7&sig=S3CR3T-query");
    for args in [
        &["--bearer-file", &token, "--proxy", &through][..],
        &["--user", "me", "--field", "note=S3CR3T-form"],
        &["--aws-sigv4", "eu-central-1:s3", "--progress-log"],
        &["--follow-each", "2"],
        &["--follow", "2"],
        &["--vary", "path=/x?token=S3CR3T-query,/y?token=S3CR3T-query"],
    ] {
        let args = [&["run", &url, "-n", "5", "-c", "1"], args].concat();
        heard.done(&args.join(" "), &duel(&place, &args));
        ask_of_the_last(&place, "A", &mut heard);
    }
    assert!(proxy.take()[0].field("Proxy-Authorization").is_some(), "it was sent");
    let target = leading("http://u:S3CR3T-location@127.0.0.1/");
    for follow in ["--follow", "--follow-each"] {
        let done = duel(&place, &["run", &target.url("/"), "-n", "3", "-c", "1", follow, "1"]);
        assert_ne!(done.code, Some(0), "a password in a redirect is not followed");
        heard.done(follow, &done);
    }
    ask_of_the_last(&place, "A", &mut heard);

    // Words that cannot be meant, and plan files.
    for args in [
        &["run", "https://u:S3CR3T-user@h/"][..],
        &["run", "https://u:S3CR3T/user@h/", "--json"],
        &["run", "ftp://h/?token=S3CR3T-query"],
        &["run", "http://127.0.0.1:1/?token=S3CR3T-query", "--json"],
        &["check", "http://127.0.0.1:1/?token=S3CR3T-query", "--critical", "errors<1%"],
        &["plan", "run", "http://h/?token=S3CR3T-query#pw=S3CR3T-fragment", "-H", "Cookie: S3CR3T-cookie"],
    ] {
        heard.done(&args.join(" "), &duel(&place, args));
    }
    heard.has_no_secret();

    let location = document["targets"][0]["negotiated"]["location"].as_str().unwrap();
    assert!(
        location.starts_with("https://[left out]@h/?token=[left out]&x=yyy") && location.ends_with('…'),
        "{location}"
    );
    let kept = archive(&place);
    let leaks = leaks("the archive", &kept, &KEPT);
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
    assert!(!String::from_utf8_lossy(&kept).contains(&"y".repeat(400)), "what a server says is kept cut");
}

#[test]
fn a_plan_file_in_which_a_secret_was_left_out_is_not_carried_out_without_it() {
    let (place, server) = (Place::new(), Recorder::plain());
    let url = server.url("/?token=S3CR3T-query");
    let plan = duel(&place, &["plan", "run", &url, "-n", "2", "-c", "1"]).ok().stdout;
    let file = place.file("plan.toml", &plan);
    let sentence = duel(&place, &["run", "--plan", &file]).refused(2);
    assert!(sentence.contains("the address of A") && sentence.contains("[left out]"), "{sentence}");
    wait_until("nothing was sent", || server.take().is_empty());
    let whole = place.file("whole.toml", plan.replace("[left out]", "S3CR3T-query"));
    duel(&place, &["run", "--plan", &whole, "-q"]).ok();
    assert!(server.take()[0].head.contains("S3CR3T-query"));
}
