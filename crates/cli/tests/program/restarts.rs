//! `--restart`: servers that are started anew in the course of a comparison.

use crate::common::{Place, Running, free_port, measuring, wait_until};
use duel_ruler::{Config, Ruler};
use rustix::process::{Pid, Signal};

const BAD_USAGE: i32 = 2;
const COULD_NOT_RUN: i32 = 1;
const INTERRUPTED: i32 = 130;
const LOAD: [&str; 9] = ["-c", "2", "-t", "1", "--slot", "20ms", "-d", "2s", "--no-early-stop"];

/// These words, and a short load.
fn loaded(words: &[&str]) -> Vec<String> {
    words.iter().chain(&LOAD).map(ToString::to_string).collect()
}

/// A tiny server that says when it was started, and ends the one before it. It is ended with its owner.
struct Daemon {
    place: Place,
    port: u16,
}

impl Daemon {
    fn new() -> Self {
        let place = Place::new();
        place.file(
            "server.py",
            r#"
import os, socketserver, sys
class Answers(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True
    def handle(self):
        while True:
            line = self.rfile.readline()
            if not line: return
            while line.strip(): line = self.rfile.readline()
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
server = Server(("127.0.0.1", int(sys.argv[1])), Answers)
open("pid", "w").write(str(os.getpid()))
open("starts", "a").write("x")
server.serve_forever()
"#,
        );
        Self { place, port: free_port() }
    }

    /// What starts it anew. It goes on when the shell that started it has ended.
    fn command(&self) -> String {
        let folder = self.place.root().display();
        format!(
            "cd {folder}; kill $(cat pid) 2>/dev/null; rm -f pid; python3 server.py {} & while ! test -s {folder}/pid; do sleep 0.02; done",
            self.port
        )
    }

    fn start(&self) {
        let status = std::process::Command::new("sh").args(["-c", &self.command()]).status().unwrap();
        assert!(status.success());
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(std::fs::read_to_string(self.place.path("pid")).ok()?.trim().parse().ok()?)
    }

    fn starts(&self) -> usize {
        std::fs::read_to_string(self.place.path("starts")).map_or(0, |starts| starts.len())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(pid) = self.pid() {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

#[test]
fn both_servers_are_started_anew_and_live_on() {
    let (_alone, place, a, b) = (measuring(), Place::new(), Daemon::new(), Daemon::new());
    [&a, &b].iter().for_each(|daemon| daemon.start());
    let (restart_a, restart_b) = (format!("A={}", a.command()), format!("B={}", b.command()));
    let args = loaded(&[&*a.url(), &b.url(), "--restart", &restart_a, "--restart", &restart_b]);
    let document = place.json(args);
    let starts = document["starts"].as_u64().unwrap();
    assert!(starts >= 8, "{document}");
    // Each of them is one, beside that before the run; a last one may have had no time for its blocks.
    for daemon in [&a, &b] {
        let seen = daemon.starts() as u64 - 1;
        assert!(seen == starts || seen == starts + 1, "{seen} starts, of which {starts} were measured");
        rustix::process::test_kill_process(daemon.pid().unwrap()).expect("the last one lives on");
    }
    for target in document["targets"].as_array().unwrap() {
        assert_eq!(target["failed"].as_object().map(serde_json::Map::len), Some(0), "{target}");
    }
    let text = place.duel(["show", "last"]).ok().stdout;
    assert!(text.contains(&format!("This is over {starts} starts of A and B: ")), "{text}");
    assert!(!text.contains("--restart"), "the option is not offered to who has used it: {text}");
    // The command may hold what is nobody's business, and stands in no output.
    for shown in [&text, &document.to_string()] {
        assert!(!shown.contains("server.py"), "{shown}");
    }
    // A repetition says what it would run before it does, also of a run of one's own.
    let before = a.starts();
    let sentence = place.duel(["rerun", "last", "-q"]).refused(BAD_USAGE);
    assert!(sentence.contains("RUN THE COMMAND") && sentence.contains("--trust-archive"), "{sentence}");
    assert_eq!(a.starts(), before);
    place.duel(["rerun", "last", "-q", "--trust-archive"]).ok();
    assert!(a.starts() >= before + 8);
}

#[test]
fn a_restart_that_fails_hangs_or_brings_nobody_back_ends_the_run_with_a_sentence() {
    let (place, ruler) = (Place::new(), Ruler::start(Config::default()).unwrap());
    let url = ruler.url("/");
    let failing = |command: &str| {
        let restart = format!("B={command}");
        let args = loaded(&[&*url, &url, "--restart", &restart, "--restart-timeout", "500ms", "-q"]);
        place.duel(args).refused(COULD_NOT_RUN)
    };
    let said = failing("echo no such unit >&2; TOKEN=s3cr3t; exit 5");
    assert!(
        said.contains("B: the command that starts it anew failed (exit status: 5); it said: 'no such unit'"),
        "{said}"
    );
    assert!(!said.contains("s3cr3t"), "{said}");
    let said = failing("sleep 600");
    assert!(said.contains("had not ended after 500 ms") && said.contains("in the background"), "{said}");
    // One that answered before, and is gone behind its command.
    let daemon = Daemon::new();
    daemon.start();
    let restart = format!("B=kill $(cat {})", daemon.place.path("pid").display());
    let args = loaded(&[&*url, &daemon.url(), "--restart", &restart, "--restart-timeout", "500ms", "-q"]);
    let said = place.duel(args).refused(COULD_NOT_RUN);
    assert!(said.contains("it did not answer as before within 500 ms"), "{said}");
}

#[test]
fn what_was_measured_before_a_restart_that_fails_is_kept_with_a_doubt() {
    let (_alone, place, daemon) = (measuring(), Place::new(), Daemon::new());
    let ruler = Ruler::start(Config::default()).unwrap();
    daemon.start();
    let counter = place.path("third");
    let restart =
        format!("B=echo x >>{0}; test $(wc -l <{0}) -lt 3 || exit 1; {1}", counter.display(), daemon.command());
    let args = loaded(&[&*ruler.url("/"), &daemon.url(), "--restart", &restart]);
    let document = place.json_ended(args, COULD_NOT_RUN);
    assert_eq!((&document["status"], &document["starts"]), (&"interrupted".into(), &2.into()), "{document}");
    let doubts = document["doubts"].to_string();
    assert!(doubts.contains("the run broke off: B: the command that starts it anew failed"), "{doubts}");
    assert!(doubts.contains("2 starts; a verdict at 95 % takes 8"), "{doubts}");
    assert_eq!(document["pairs"][0]["call"], "unknown");
}

#[test]
fn who_ends_the_run_within_a_restart_keeps_what_there_is_and_the_command_goes_on() {
    let (_alone, place, daemon) = (measuring(), Place::new(), Daemon::new());
    let ruler = Ruler::start(Config::default()).unwrap();
    daemon.start();
    let (counter, done) = (place.path("count"), place.path("done"));
    let restart = format!(
        "B={2}; echo x >>{0}; test $(wc -l <{0}) -lt 2 || {{ sleep 1; touch {1}; }}",
        counter.display(),
        done.display(),
        daemon.command()
    );
    let mut command = place.command();
    command.args(loaded(&[&*ruler.url("/"), &daemon.url(), "--restart", &restart, "-q"]));
    let running = Running::start(command);
    wait_until("the second start", || std::fs::read_to_string(&counter).is_ok_and(|lines| lines.lines().count() >= 2));
    running.signal(Signal::INT);
    running.end().ended(INTERRUPTED);
    let document = place.json_ended(["show", "last"], 0);
    assert_eq!((&document["interruption"], &document["starts"]), (&"user".into(), &1.into()), "{document}");
    assert!(document["targets"][1]["ops"].as_u64() > Some(0));
    wait_until("the command's own end", || done.exists());
}

#[test]
fn combinations_without_a_meaning_are_refused() {
    let place = Place::new();
    let refused = |args: &[&str]| {
        let args = [&["A=http://127.0.0.1:9/", "http://127.0.0.1:9/", "--restart", "A=touch never"][..], args].concat();
        place.duel(args).refused(BAD_USAGE)
    };
    for (args, part) in [
        (&["--why"][..], "--why probes processes as they run"),
        (&["-c", "1,2"], "leave the factors out"),
        (&["--find-rate", "p99<50ms"], "leave --stages and --find-rate out"),
        (&["--stages", "1s@10"], "leave --stages and --find-rate out"),
        (&["--local", "A", "--pid", "A=1"], "--restart starts A anew"),
        (&["--restart", "A=x"], "told about twice"),
        (&["--restart-timeout", "0"], "--restart-timeout"),
    ] {
        let said = refused(args);
        assert!(said.contains(part), "{said}");
    }
    let said = place.duel(["openssl:", "openssl:", "--restart", "A=touch never"]).refused(BAD_USAGE);
    assert!(said.contains("--restart is for web servers"), "{said}");
    assert!(!place.path("never").exists(), "nothing was run");
}

#[test]
fn secrets_of_a_command_are_not_kept_and_a_repetition_asks_for_them() {
    let (_alone, place) = (measuring(), Place::new());
    let ruler = Ruler::start(Config::default()).unwrap();
    let url = ruler.url("/");
    let restart = "B=MY_TOKEN=s3cr3t true";
    place.duel(loaded(&[&*url, &url, "--restart", restart, "-q"])).ok();
    let archive = std::fs::read(place.archive()).unwrap();
    assert!(!archive.windows(6).any(|bytes| bytes == b"s3cr3t"), "it is in the archive");
    let said = place.duel(["rerun", "last", "-q", "--trust-archive"]).refused(BAD_USAGE);
    assert!(said.contains("start B anew were not kept whole"), "{said}");
    // Whoever types the command is not asked whether it is to be run, and does not read it again.
    let again = place.duel(["rerun", "last", "--restart", restart]).ok();
    assert!(!again.stderr.contains("s3cr3t") && !again.stdout.contains("s3cr3t"), "{}", again.stderr);
    let plan = place.duel(["plan", &url, &url, "--restart", restart]).ok().stdout;
    assert!(plan.contains("restart = [\"B=MY_TOKEN=[not kept] true\"]") && !plan.contains("s3cr3t"), "{plan}");
}
