//! Networks: `duel net serve` and what is said to it, over loopback and over networks of the test's own.

use crate::common::{DUEL, Place, Running, measuring, skipped};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A `duel net serve` on loopback.
struct Serve {
    child: Child,
    at: String,
    said: BufReader<std::process::ChildStdout>,
}

impl Serve {
    fn start(place: &Place, args: &[&str]) -> Self {
        let mut command = place.command();
        command.args(["net", "serve", "--listen", "127.0.0.1:0"]).args(args);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let at = line.split_whitespace().nth(2).unwrap().trim_end_matches('.').to_owned();
        Self { child, at: format!("tcp://{at}"), said }
    }

    /// Ends it as Ctrl-C does, and answers what it says last.
    fn interrupt(mut self) -> String {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), rustix::process::Signal::INT)
            .unwrap();
        assert!(self.child.wait().unwrap().success());
        let mut last = String::new();
        self.said.read_to_string(&mut last).unwrap();
        last
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Something on loopback that takes connections and does this with each.
fn stranger(act: impl Fn(TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("tcp://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || listener.incoming().flatten().for_each(&act));
    at
}

/// The welcome of a server, as the protocol has it.
fn welcome() -> [u8; 48] {
    let mut bytes = [0; 48];
    bytes[..8].copy_from_slice(b"\x93duel\r\n\0");
    bytes[9] = 2;
    bytes
}

fn target(document: &Value) -> &Value {
    &document["targets"][0]
}

#[test]
fn each_op_is_done_and_every_byte_that_is_counted_has_come() {
    let _alone = measuring();
    let place = Place::new();
    let server = Serve::start(&place, &[]);
    for (op, bytes_per_op) in [("bulk", 131_072), ("bulk-reverse", 131_072), ("rr", 130), ("connect", 0), ("udp", 1400)]
    {
        let mut words = vec!["run", server.at.as_str(), "--op", op, "--streams", "2", "-d", "300ms", "--no-archive"];
        if op == "rr" {
            words.extend(["--block", "30", "--response", "100"]);
        }
        let document = place.json(words);
        let target = target(&document);
        let (ops, failed) = (target["ops"].as_u64().unwrap(), target["failed"].as_object().unwrap());
        assert!(ops > 0 && failed.is_empty(), "{op}: {target}");
        assert_eq!(target["bytes_in"].as_u64().unwrap(), ops * bytes_per_op, "{op}: {target}");
        assert_eq!(document["plan"]["load"]["connections"], 2, "{op}");
    }
    // Blocks that are counted are handed over one by one.
    let document =
        place.json(["run", &server.at, "--op", "bulk-reverse", "--block", "5000", "-n", "40", "--no-archive"]);
    assert_eq!((target(&document)["ops"].as_u64(), target(&document)["bytes_in"].as_u64()), (Some(40), Some(200_000)));
    let last = server.interrupt();
    assert!(last.starts_with("Served ") && last.contains(" 0 spoke something else"), "{last}");
}

#[test]
fn streams_have_a_rate_and_no_response_times() {
    let _alone = measuring();
    let place = Place::new();
    let server = Serve::start(&place, &[]);
    let at = server.at.as_str();
    let times = |document: &Value, of: &str| target(document)[of]["p99"].clone();
    for op in ["bulk", "bulk-reverse", "udp"] {
        let document = place.json(["run", at, "--op", op, "-d", "300ms"]);
        assert!(target(&document)["ops"].as_u64() > Some(0), "{op}: {document}");
        assert!(["response_ms", "service_ms"].iter().all(|of| times(&document, of).is_null()), "{op}: {document}");
        let told = place.duel(["show", "last"]).ok().stdout;
        assert!(told.contains("No response times: an op is a part of a stream"), "{op}: {told}");
        assert!(["median", "response p", "service"].iter().all(|of| !told.contains(of)), "{op}: {told}");
        let limits = ["--critical", "p99<1ns", "--warning", "rate>1/s"];
        let checked = place.duel(["check", "last"].iter().chain(&limits)).ended(3).stdout;
        assert!(checked.contains("not measured: an op is a part of a stream"), "{op}: {checked}");
    }
    // What is sent for itself is answered, and takes a time.
    for words in [&["--op", "rr", "-d", "300ms"][..], &["--op", "bulk", "-n", "40"], &["--rate", "200", "-d", "300ms"]]
    {
        let document = place.json(["run", at, "--no-archive"].iter().chain(words));
        let of_both = ["response_ms", "service_ms"].map(|of| times(&document, of).as_f64());
        assert!(of_both.iter().all(|ms| *ms > Some(0.0)), "{words:?}: {document}");
    }

    let (a, b) = (format!("A={at}"), format!("B={at}"));
    let compared = place.json([a.as_str(), &b, "--op", "bulk", "-d", "1500ms", "--slot", "50ms", "--seed", "1"]);
    let metrics: Vec<&str> =
        compared["pairs"].as_array().unwrap().iter().map(|p| p["metric"].as_str().unwrap()).collect();
    assert_eq!(metrics, ["rate"], "{compared}");
    assert!(compared["targets"][1]["response_ms"]["p50"].is_null(), "{compared}");
    let checked = place.duel(["check", "last", "--critical", "p99 slower than A by 5%"]).ended(3).stdout;
    assert!(checked.contains("not measured: an op is a part of a stream"), "{checked}");
    let differ = place.duel(["diff", "last", "last"]).ok().stdout;
    assert!(differ.contains("rate") && !differ.contains("response"), "{differ}");

    // Of a factor, those that have them do.
    let words = [&a, &b, "--op", "bulk,rr", "-d", "2s", "--slot", "50ms", "--no-archive"];
    let levels = place.json(words)["experiment"]["factors"][0]["levels"].clone();
    let medians = |level: usize| {
        let figures = levels[level]["figures"].as_array().unwrap();
        figures.iter().filter(|figure| figure["metric"] == "response_p50").count()
    };
    assert_eq!([medians(0), medians(1)], [0, 2], "{levels}");
}

#[test]
fn what_was_asked_for_is_kept_repeated_and_a_factor() {
    let _alone = measuring();
    let place = Place::new();
    let server = Serve::start(&place, &[]);
    let (a, b) = (format!("A={}", server.at), format!("B={}", server.at));
    let document = place.json([
        a.as_str(),
        &b,
        "--op",
        "rr",
        "--response",
        "1,16k",
        "--nodelay=off",
        "-c",
        "2",
        "-d",
        "2s",
        "--slot",
        "20ms",
        "--seed",
        "1",
    ]);
    assert_eq!(document["experiment"]["factors"][0]["levels"].as_array().unwrap().len(), 2);
    let shown = place.duel(["show", "last"]).ok().stdout;
    for part in ["2 streams", "nodelay off", "16 KiB"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let again =
        place.duel(["plan", "run", &server.at, "--op", "udp", "--bitrate", "2.5", "--streams", "3"]).ok().stdout;
    assert!(again.contains("bitrate") && again.contains("2.5"), "{again}");
}

#[test]
fn what_cannot_be_is_said_in_one_sentence() {
    let place = Place::new();
    let server = Serve::start(&place, &["--connections", "1"]);
    let http = stranger(|mut stream| {
        let _ = stream.read(&mut [0; 100]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    });
    let mute = stranger(std::mem::forget);
    let closes = stranger(|mut stream| drop(stream.read(&mut [0; 48])));
    let escapes = stranger(|mut stream| {
        let _ = stream.write_all(b"\x1b]0;owned\x07\x1b[2J and more than fifty bytes of that, so that it is whole");
        let _ = stream.read(&mut [0; 100]);
    });
    let newer = stranger(|mut stream| {
        let mut bytes = welcome();
        bytes[9] = 9;
        let _ = stream.read(&mut [0; 48]);
        let _ = stream.write_all(&bytes);
    });
    let nobody = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("tcp://{}", listener.local_addr().unwrap())
    };
    let held = TcpStream::connect(server.at.trim_start_matches("tcp://")).unwrap();
    let missing = format!("{}?netns=duel-no-such-namespace", server.at);
    let run = |address: &str, words: &[&str], code: i32| {
        place.duel([&["run", address, "-q", "--no-archive", "-d", "300ms"], words].concat()).refused(code)
    };
    for (address, words, code, says) in [
        (http.as_str(), &[][..], 1, "does not speak duel's protocol (its answer begins with 'HTTP/1.1 400 Bad Request"),
        (&mute, &["--connect-timeout", "200ms"], 1, "says nothing"),
        (&closes, &[], 1, "closed the connection without a word"),
        (&escapes, &[], 1, "does not speak duel's protocol"),
        (&newer, &[], 1, "speaks version 9 of the protocol, and this duel version 2"),
        (&nobody, &[], 1, "nobody listens at"),
        (&missing, &[], 1, "there is no network namespace 'duel-no-such-namespace'"),
        (&server.at, &[], 1, "has as many connections as it takes"),
        (&server.at, &["--congestion", "yeah"], 1, "no congestion control 'yeah'"),
        (&server.at, &["--mss", "20"], 2, "at least 88 bytes"),
        (&server.at, &["--op", "udp", "--rate", "10"], 1, "use --bitrate"),
        (&server.at, &["--op", "nonsense"], 2, "--op takes"),
        (&server.at, &["-c", "2", "--streams", "2"], 2, "give one of them"),
        (&server.at, &["--keepalive", "on"], 2, "means nothing to networks"),
        (&server.at, &["--netns", "B=x"], 2, "no target is called 'B'"),
        ("http://127.0.0.1:1/", &["--netns", "x"], 2, "is for networks"),
        ("http://127.0.0.1:1/", &["--streams", "2"], 2, "with --http2 only"),
        ("tcp://127.0.0.1:0", &[], 2, "no port"),
    ] {
        let said = run(address, words, code);
        assert!(said.contains(says), "{address} {words:?}: {said}");
    }
    drop(held);
    let in_use = place.duel(["net", "serve", "--listen", server.at.trim_start_matches("tcp://")]).refused(1);
    assert!(in_use.contains("is in use"), "{in_use}");
    let elsewhere = place.duel(["net", "serve", "--listen", "192.0.2.1:1"]).refused(1);
    assert!(elsewhere.contains("no address of this machine"), "{elsewhere}");
    assert!(place.duel(["net", "serve", "--listen", "here"]).refused(2).contains("takes an address and a port"));
    let unwatched = place.duel(["net", "watch", &nobody]).refused(1);
    assert!(unwatched.contains("nobody listens"), "{unwatched}");
}

#[test]
fn a_peer_that_stops_is_a_failure_that_is_counted() {
    let place = Place::new();
    // It says what it should, and then does nothing more.
    let stops = stranger(|mut stream| {
        let _ = stream.read(&mut [0; 48]);
        let _ = stream.write_all(&welcome());
        std::mem::forget(stream);
    });
    for op in ["bulk", "bulk-reverse", "rr"] {
        let words = ["run", &stops, "--op", op, "-d", "500ms", "--timeout", "150ms", "--no-archive"];
        let document = place.json_ended(words, 1);
        let failed = target(&document)["failed"]["timeout"].as_u64();
        assert!(failed >= Some(1) && target(&document)["ops"] == 0, "{op}: {document}");
    }
    // It tells of blocks that it cannot have.
    let lies = stranger(|mut stream| {
        let _ = stream.read(&mut [0; 48]);
        let _ = stream.write_all(&welcome());
        let _ = stream.write_all(&u64::MAX.to_be_bytes());
        std::mem::forget(stream);
    });
    let document = place.json_ended(["run", &lies, "-d", "300ms", "--no-archive"], 1);
    assert!(target(&document)["failed"]["nonsense"].as_u64() >= Some(1), "{document}");
    assert_eq!(target(&document)["bytes_in"], 0);
}

/// A port for datagrams that is closed, and a server that goes away while it is used: both end the run, and are said.
#[test]
fn a_server_that_is_gone_and_a_port_that_is_closed_are_said() {
    let place = Place::new();
    let closed = stranger(|mut stream| {
        let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let _ = stream.read(&mut [0; 48]);
        let mut bytes = welcome();
        bytes[12..14].copy_from_slice(&port.to_be_bytes());
        let _ = stream.write_all(&bytes);
        std::mem::forget(stream);
    });
    let document = place.json_ended(["run", &closed, "--op", "udp", "-d", "300ms", "--no-archive"], 1);
    assert!(target(&document)["failed"]["refused"].as_u64() >= Some(1), "{document}");
    for op in ["bulk", "bulk-reverse", "rr", "udp"] {
        let server = Serve::start(&place, &[]);
        let at = server.at.clone();
        let ends = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(400));
            drop(server);
        });
        // Without an end of its own, it would go on for five minutes.
        let document = place.json_ended(["run", &at, "--op", op, "-d", "5m", "--no-archive"], 1);
        ends.join().unwrap();
        assert!(document["interruption"]["target-died"].is_object(), "{op}: {document}");
    }
}

#[test]
fn a_server_is_not_held_up_by_strangers() {
    let _alone = measuring();
    let place = Place::new();
    let server = Serve::start(&place, &["--connections", "4"]);
    let at = server.at.trim_start_matches("tcp://");
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"SSH-2.0-x\r\n", &[0; 100], b"\x93duel\r\n\0\0\x02\xff"] {
        let mut stream = TcpStream::connect(at).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let _ = stream.write_all(garbage);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        // Whoever is no client of ours is told nothing.
        assert!(answer.is_empty(), "{garbage:?}: {answer:?}");
    }
    let document = place.json(["run", &server.at, "--op", "connect", "-n", "200", "--streams", "2", "--no-archive"]);
    assert_eq!(target(&document)["ops"], 200, "{document}");
    let last = server.interrupt();
    assert!(last.contains("4 spoke something else or said nothing"), "{last}");
}

/// Runs a script of the shell in networks of its own, which end with it. `srv` and `cli` are joined by a pair of interfaces, 10.9.0.1
/// and 10.9.0.2, without offloads; the first has a server. `None`: this machine or user may not.
fn in_networks(place: &Place, script: &str) -> Option<String> {
    const BEGIN: &str = "set -e; mkdir -p /run/netns; mount -t tmpfs none /run/netns; ip link set lo up
        for n in srv cli; do ip netns add $n; ip -n $n link set lo up; done
        ip link add v1 netns srv type veth peer name v0 netns cli
        ip -n srv link set v1 gso_max_segs 1; ip -n cli link set v0 gso_max_segs 1
        ip -n srv addr add 10.9.0.1/24 dev v1; ip -n cli addr add 10.9.0.2/24 dev v0
        ip -n srv link set v1 up; ip -n cli link set v0 up
        ip netns exec srv \"$DUEL\" net serve --listen 10.9.0.1:3835 > serve.txt &
        for i in $(seq 200); do grep -q Listening serve.txt && break; sleep 0.05; done\n";
    let mut may = Command::new("unshare");
    may.args(["-nm", "sh", "-c", "mkdir -p /run/netns && mount -t tmpfs none /run/netns && ip netns add x"]);
    if !may_run(&mut may) {
        skipped("no network namespaces here");
        return None;
    }
    let script = format!("{BEGIN}{script}");
    let mut command = place.command_within(&["unshare", "-nmpf", "--mount-proc", "--kill-child", "sh", "-c", &script]);
    command.env("DUEL", DUEL);
    Some(Running::start(command).end().ok().stdout)
}

fn may_run(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

#[test]
fn the_overhead_that_is_told_is_what_the_interface_counts() {
    let _alone = measuring();
    let place = Place::new();
    let script = "count() { ip netns exec cli cat /proc/net/dev | sed -n 's/^ *v0: *//p'; }
        count; \"$DUEL\" run tcp://10.9.0.1 --netns cli -n 300 --line-rate 10000 --json -q --no-archive; count";
    let Some(said) = in_networks(&place, script) else { return };
    let lines: Vec<&str> = said.lines().collect();
    // Bytes and packets sent: the ninth and the tenth number.
    let counted =
        |line: &str| -> Vec<f64> { line.split_whitespace().skip(8).take(2).map(|n| n.parse().unwrap()).collect() };
    let (before, after) = (counted(lines[0]), counted(lines[lines.len() - 1]));
    let document: Value = serde_json::from_str(&lines[1..lines.len() - 1].join("\n")).unwrap();
    let (bytes, packets) = (after[0] - before[0], after[1] - before[1]);
    // The interface counts addresses and type; check, preamble and gap are on a wire besides.
    let wire = bytes + packets * (4.0 + 8.0 + 12.0);
    let expected = 100.0 * 300.0 * 131_072.0 / wire;
    let target = target(&document);
    let told: f64 = target["negotiated"]["link.payload_percent"].as_str().unwrap().parse().unwrap();
    assert!((told / expected - 1.0).abs() < 0.001, "{told} is told, {expected} was counted: {target}");
    let line = |name: &str| target["line"][name].as_f64().unwrap();
    let sum = line("payload_percent") + line("overhead_percent") + line("idle_percent");
    assert!((sum - 100.0).abs() < 0.001 && line("overhead_percent") > 0.0, "{target}");
    assert_eq!(
        (&target["negotiated"]["link.frame_bytes"], &target["negotiated"]["path.mtu_bytes"]),
        (&1538.into(), &1500.into())
    );
}

#[test]
fn datagrams_that_a_filter_drops_are_lost_and_counted() {
    let _alone = measuring();
    let place = Place::new();
    let script = "ip netns exec srv nft -f - <<'END'
table ip t { chain c { type filter hook input priority 0; ip protocol udp numgen inc mod 10 0 drop; }; }
END
        \"$DUEL\" run tcp://10.9.0.1 --netns cli --op udp --bitrate 5 -d 1s --json -q --no-archive || true";
    let has_nft = Command::new("nft").arg("--version").output().is_ok();
    let Some(said) = has_nft.then(|| in_networks(&place, script)).flatten() else { return };
    let document: Value = serde_json::from_str(&said).unwrap();
    let count = |name: &str| target(&document)["counters"][name].as_u64().unwrap();
    let (sent, lost) = (count("datagrams_sent"), count("datagrams_lost"));
    // Each tenth, whatever the rate.
    assert!(sent > 100 && lost.abs_diff(sent / 10) <= 2, "{lost} of {sent}: {document}");
    assert!(target(&document)["failed"]["datagram-lost"].as_u64().unwrap() <= lost);
}

/// A web server behind a filter that drops one request of 100, and one that takes as long by itself.
#[test]
fn requests_that_a_filter_drops_are_told_from_those_that_a_server_answers_late() {
    let place = Place::new();
    let script = "cat >server.py <<'END'
import http.server, time
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        time.sleep(0.3 if self.path == '/late' else 0)
        self.send_response(200)
        self.send_header('Content-Length', '0')
        self.end_headers()
    def log_message(self, *words):
        pass
http.server.ThreadingHTTPServer(('10.9.0.1', 8080), Answer).serve_forever()
END
        ip netns exec srv python3 server.py & W=$!
        for i in $(seq 200); do ip netns exec cli \"$DUEL\" run http://10.9.0.1:8080/ -n 1 -q --no-archive >/dev/null 2>&1 && break; sleep 0.05; done
        ip netns exec cli \"$DUEL\" run http://10.9.0.1:8080/late -c 2 -n 4 --json -q --no-archive
        ip netns exec srv nft -f - <<'END'
table ip t { chain c { type filter hook input priority 0; tcp dport 8080 ip length > 100 numgen inc mod 100 50 drop; }; }
END
        ip netns exec cli \"$DUEL\" run http://10.9.0.1:8080/ -c 2 -n 300 --json -q --no-archive; kill $W";
    let has_all = ["nft", "python3"].iter().all(|program| Command::new(program).arg("--version").output().is_ok());
    let Some(said) = has_all.then(|| in_networks(&place, script)).flatten() else { return };
    let told: Vec<Value> = serde_json::Deserializer::from_str(&said)
        .into_iter()
        .collect::<Result<_, _>>()
        .unwrap_or_else(|_| panic!("{said}"));
    let late: Vec<Option<u64>> = told.iter().map(|told| target(told)["counters"]["tcp_sent_again"].as_u64()).collect();
    // What is sent again is counted by the filter, too.
    let is_told = |late: &Vec<Option<u64>>| matches!(late[..], [Some(0), Some(2..=4)]);
    assert!(is_told(&late), "{late:?}: {said}");
}

/// Datagrams, since at a rate of their own it does not matter how fast the machine is.
#[test]
fn two_paths_are_compared_from_namespaces_of_their_own_and_a_cap_on_one_is_found() {
    let _alone = measuring();
    let place = Place::new();
    let script = "ip netns add far; ip -n far link set lo up; ip link add w1 netns srv type veth peer name w0 netns far
        ip -n srv addr add 10.9.1.1/24 dev w1; ip -n far addr add 10.9.1.2/24 dev w0
        ip -n srv link set w1 up; ip -n far link set w0 up
        ip netns exec srv \"$DUEL\" net serve --listen 10.9.1.1:3835 > far.txt &
        for i in $(seq 200); do grep -q Listening far.txt && break; sleep 0.05; done
        tc -n far qdisc add dev w0 root tbf rate 6mbit burst 5k latency 10ms
        \"$DUEL\" near=tcp://10.9.0.1 far=tcp://10.9.1.1 --netns near=cli,far=far --op udp -d 6s --seed 1 --why --json -q";
    let Some(said) = in_networks(&place, script) else { return };
    let document: Value = serde_json::from_str(&said).unwrap();
    let rate = document["pairs"].as_array().unwrap().iter().find(|pair| pair["metric"] == "rate").unwrap();
    assert_eq!(rate["call"], "slower", "{rate}");
    let far = &document["targets"][1];
    // 6 Mbit/s are what a bucket lets through, of headers too, and what it holds at first.
    let mbps = far["bytes_per_s"].as_f64().unwrap() * 8.0 / 1e6;
    assert!(mbps < 6.5, "{mbps}: {far}");
    assert_eq!(
        (&far["address"], &far["negotiated"]["path.interface"]),
        (&"tcp://10.9.1.1:3835?netns=far".into(), &"w0".into())
    );
    let first = &document["findings"][0];
    assert_eq!((&first["cause"], &first["target"]), (&"net.rate-cap".into(), &"far".into()), "{first}");
}

/// Two web servers whose machines nobody reads, one at the end of a path that loses segments: their own connections tell too little of what a
/// server sends again, and another program at the same ends does.
#[test]
fn a_path_that_loses_what_servers_send_is_found_by_exchanges_with_another_program() {
    let _alone = measuring();
    let serve = |namespace: &str, address: &str| {
        format!(
            "mkdir {namespace}; head -c 60000 /dev/urandom >{namespace}/file
             cat >{namespace}.conf <<END
             daemon on; worker_processes 1; pid $PWD/{namespace}.pid; error_log $PWD/{namespace}.log; user root;
             events {{ worker_connections 64; }}
             http {{
                 access_log off;
                 client_body_temp_path $PWD/{namespace}-1; proxy_temp_path $PWD/{namespace}-2; fastcgi_temp_path $PWD/{namespace}-3;
                 uwsgi_temp_path $PWD/{namespace}-4; scgi_temp_path $PWD/{namespace}-5;
                 server {{ listen {address}:80; root $PWD/{namespace}; }}
             }}
END
             ip netns exec {namespace} nginx -c $PWD/{namespace}.conf\n"
        )
    };
    let script = "ip netns add far; ip -n far link set lo up; ip link add w1 netns far type veth peer name w0 netns cli
        ip -n far addr add 10.9.1.1/24 dev w1; ip -n cli addr add 10.9.1.2/24 dev w0
        ip -n far link set w1 up gso_max_segs 1; ip -n cli link set w0 up
        ip netns exec far \"$DUEL\" net serve --listen 10.9.1.1:3835 > far.txt &
        for i in $(seq 200); do grep -q Listening far.txt && break; sleep 0.05; done
        ip netns exec cli nft -f - <<'END'
table ip t { chain c { type filter hook input priority 0; ip saddr 10.9.1.1 ip length > 500 numgen random mod 100 < 3 drop; }; }
END\n"
        .to_owned()
        + &serve("srv", "10.9.0.1")
        + &serve("far", "10.9.1.1")
        + "ip netns exec cli \"$DUEL\" near=http://10.9.0.1/file far=http://10.9.1.1/file -c 1 -d 6s --seed 1 --why --why-budget 40s -q \
           --net-server near=tcp://10.9.0.1 --net-server far=tcp://10.9.1.1 --json";
    let has_all = ["nft", "nginx"].iter().all(|program| Command::new(program).arg("-v").output().is_ok());
    if !has_all {
        return skipped("it takes nginx and nft");
    }
    let place = Place::new();
    let Some(said) = in_networks(&place, &script) else { return };
    let document: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
    // A machine that gives us hardly any time makes `unknown`, or no difference, the right answer.
    let findings = document["findings"].as_array().unwrap();
    let is_known =
        |found: &Value| ["net.slow-path", "net.loss", "unknown", "none"].iter().any(|id| found["cause"] == *id);
    assert!(findings.iter().all(|found| is_known(found) && found["target"] != "near"), "{findings:#?}");
    for found in findings.iter().filter(|found| found["cause"] == "net.slow-path") {
        let summary = found["summary"].as_str().unwrap();
        assert!(summary.contains("for another program as well"), "{summary}");
        let by_hand = found["evidence"].to_string();
        assert!(by_hand.contains("far=tcp://10.9.1.1") && by_hand.contains("bulk-reverse"), "{by_hand}");
    }
    let Some(path) = document["probes"].as_array().unwrap().iter().find(|probe| probe["id"] == "path") else { return };
    assert!(path["unavailable"].is_null(), "{path}");
    let rate = path["pairs"].as_array().unwrap().iter().find(|pair| pair["metric"] == "rate").unwrap();
    assert!(rate["ratio"].as_f64().unwrap() < 1.0, "3 % of the segments get lost: {rate}");
}

#[test]
fn a_net_server_that_does_not_answer_is_told_before_any_load() {
    let place = Place::new();
    let server = Serve::start(&place, &[]);
    let mute = stranger(drop);
    let ask = |other: &str, words: &[&str]| {
        let (a, b) = (format!("A={}", server.at), format!("B={other}"));
        let both = ["A=http://127.0.0.1:1/", "B=http://127.0.0.1:2/", "--net-server", &a, "--net-server", &b];
        place.duel([&both[..], words].concat())
    };
    let said = ask(&mute, &["--why"]).refused(1);
    assert!(said.starts_with("--net-server B: ") && said.contains("is it duel net serve?"), "{said}");
    let said = ask(&server.at, &[]).refused(2);
    assert!(said.contains("--net-server has a meaning with --why only"), "{said}");
    let own = format!("A={}", server.at);
    let said = place.duel([&own, &server.at.replace("tcp://", "B=tcp://"), "--why", "--net-server", &own]).refused(2);
    assert!(said.contains("--net-server B=tcp://HOST:PORT is missing"), "{said}");
}

/// What `net watch` told of a link that was down between two commands, held against the times before and after each: first the
/// four of them in a line, then its document.
fn told_as_it_was(said: &str) {
    let (times, document) = said.split_once('\n').unwrap();
    let times: Vec<f64> = times.split(' ').map(|ns| ns.parse::<f64>().unwrap() / 1e6).collect();
    let document: Value = serde_json::from_str(document).unwrap();
    let gaps = document["gaps"].as_array().unwrap();
    // On a busy machine there may be others, of our own making.
    let longest = gaps.iter().max_by_key(|gap| gap["silence_ms"].as_f64().unwrap() as u64).unwrap();
    let (silence, own) = (longest["silence_ms"].as_f64().unwrap(), longest["own_ms"].as_f64().unwrap());
    let (least, most) = (times[2] - times[1], times[3] - times[0]);
    assert!(silence >= least - 5.0, "{silence} ms, down for {least} to {most} ms: {document}");
    assert!(silence <= most + own + 5.0, "{silence} ms, down for {least} to {most} ms: {document}");
    let at = longest["at_unix_ms"].as_f64().unwrap();
    assert!(at >= times[0] - own - 10.0 && at <= times[1] + 10.0, "{at}: {times:?} {document}");
    assert!(document["came_back"].as_u64() > Some(500), "{document}");
}

#[test]
fn a_link_that_was_down_is_told_of_for_as_long_as_it_was() {
    let _alone = measuring();
    let place = Place::new();
    // A filter drops everything from one command to another, whose times bound how long.
    let script = "ip netns exec srv nft -f - <<'END'
table ip t { chain c { type filter hook input priority 0; }; }
END
        ip netns exec cli \"$DUEL\" net watch tcp://10.9.0.1 -d 3s --json > watch.json & w=$!
        sleep 1; a=$(date +%s%N); ip netns exec srv nft add rule ip t c drop; b=$(date +%s%N)
        sleep 0.3; c=$(date +%s%N); ip netns exec srv nft flush chain ip t c; d=$(date +%s%N)
        wait $w; echo $a $b $c $d; cat watch.json";
    if Command::new("nft").arg("--version").output().is_err() {
        return skipped("no nft here");
    }
    let Some(said) = in_networks(&place, script) else { return };
    told_as_it_was(&said);
}

#[test]
fn a_link_of_a_pair_that_failed_is_told_of_until_the_other_one_carries() {
    let _alone = measuring();
    let place = Place::new();
    // Addresses that belong to neither link. One is taken down; 0.2 s later both ends take the other one, as a routing daemon would.
    let script = "ip link add w1 netns srv type veth peer name w0 netns cli
        ip -n srv link set w1 up; ip -n cli link set w0 up
        ip -n srv addr add 10.9.9.1/32 dev lo; ip -n cli addr add 10.9.9.2/32 dev lo
        ip -n srv route add 10.9.9.2 dev v1 src 10.9.9.1; ip -n cli route add 10.9.9.1 dev v0 src 10.9.9.2
        ip netns exec srv \"$DUEL\" net serve --listen 10.9.9.1:3835 > pair.txt &
        for i in $(seq 200); do grep -q Listening pair.txt && break; sleep 0.05; done
        \"$DUEL\" net watch tcp://10.9.9.1 --netns cli -d 3s --json > watch.json & w=$!
        sleep 1; a=$(date +%s%N); ip -n cli link set v0 down; b=$(date +%s%N)
        sleep 0.2; ip -n srv route replace 10.9.9.2 dev w1 src 10.9.9.1
        c=$(date +%s%N); ip -n cli route replace 10.9.9.1 dev w0 src 10.9.9.2; d=$(date +%s%N)
        wait $w; echo $a $b $c $d; cat watch.json";
    let Some(said) = in_networks(&place, script) else { return };
    told_as_it_was(&said);
}

/// Connecting and saying hello takes short packets, which pass; blocks do not, and nobody says so.
#[test]
fn a_path_that_swallows_long_packets_ends_in_a_timeout() {
    let place = Place::new();
    let script = "ip netns exec srv nft -f - <<'END'
table ip t { chain c { type filter hook prerouting priority 0; ip length > 1000 drop; }; }
END
        \"$DUEL\" run tcp://10.9.0.1 --netns cli -d 500ms --timeout 400ms --json -q --no-archive || true";
    if Command::new("nft").arg("--version").output().is_err() {
        return skipped("no nft here");
    }
    let Some(said) = in_networks(&place, script) else { return };
    let document: Value = serde_json::from_str(&said).unwrap();
    assert!(target(&document)["failed"]["timeout"].as_u64() >= Some(1) && target(&document)["ops"] == 0, "{document}");
}
