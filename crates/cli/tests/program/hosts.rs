//! Machines of targets: what they were and did in the document, and what happens when they, or their servers, go away.

// What the reader's own tests have of it.
#[cfg(target_os = "linux")]
#[path = "../../../host/tests/integration/common/child.rs"]
mod child;
#[cfg(target_os = "linux")]
#[path = "../../../host/tests/integration/common/moving.rs"]
mod moving;
#[cfg(target_os = "linux")]
#[path = "../../../host/tests/integration/common/prerequisites.rs"]
mod prerequisites;
#[cfg(target_os = "linux")]
#[path = "../../../host/tests/integration/common/sshd.rs"]
#[expect(dead_code, reason = "not every test file uses all of it")]
mod sshd;

use crate::common::{Certificate, Place, Ruler, Running, Server, free_port, measuring, nginx, wait_until};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A comparison of a ruler with a server whose machine is read, long enough to disturb it in its middle.
struct Disturbed {
    place: Place,
    _ruler: Ruler,
    server: Server,
    duel: Running,
    pid: u32,
}

impl Disturbed {
    /// Starts it, and waits until the machine is read and slots are measured.
    fn start() -> Self {
        let (place, ruler) = (Place::new(), Ruler::start(&[]));
        let server = nginx(&place, "first", "server { listen 127.0.0.1:{1} reuseport; location / { return 200 hi; } }");
        let (a, b) = (format!("a={}", ruler.url("/delay/500")), format!("b={}", server.http(1, "/")));
        let mut command = place.command();
        command.args([&a, &b]).args(["--local", "b", "-d", "12s", "-c", "2", "-t", "1", "--no-early-stop", "-q"]);
        let duel = Running::start(command);
        let pid = duel.pid();
        // The machine is read before the warm-up, which takes an eighth of the time at most.
        wait_until("load on b", || server.access_log(200).len() >= 200);
        std::thread::sleep(Duration::from_secs(3));
        Self { place, _ruler: ruler, server, duel, pid }
    }

    /// Its end: the text that it printed, and the document of the same run.
    fn end(self) -> (String, Value) {
        let text = self.duel.end().ok().stdout;
        (text, self.place.json(["show", "last"]))
    }
}

fn doubts(document: &Value) -> Vec<&str> {
    document["doubts"].as_array().unwrap().iter().map(|doubt| doubt["text"].as_str().unwrap()).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn two_servers_on_one_port_are_told_apart_by_their_addresses() {
    let place = Place::new();
    let one = nginx(&place, "one", "server { listen 127.0.0.1:{1}; location / { return 200 hi; } }");
    let port = one.port(1);
    let http = format!("server {{ listen 127.0.0.3:{port}; listen 127.0.0.1:{{2}}; location / {{ return 200 hi; }} }}");
    let _other = nginx(&place, "other", &http);
    let targets = [format!("one=http://127.0.0.1:{port}/"), format!("other=http://127.0.0.3:{port}/")];
    let mut args: Vec<&str> = targets.iter().map(String::as_str).collect();
    args.extend(["--local", "one", "--local", "other", "-d", "1s", "-c", "1", "-t", "1"]);
    let document = place.json(&args);
    for (index, name) in ["one", "other"].into_iter().enumerate() {
        let pid = std::fs::read_to_string(place.path(&format!("{name}/pid"))).unwrap();
        let facts = &document["hosts"][index]["facts"];
        assert_eq!(facts["process.pid"]["value"], pid.trim(), "{name}: {facts:#}");
        assert_eq!(facts["process.members"]["value"], pid.trim(), "{name}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_server_that_is_started_anew_has_no_rate_below_zero_and_none_of_zero() {
    let _alone = measuring();
    let mut disturbed = Disturbed::start();
    // A second one on the same port, so that there is somebody to answer when the first has gone.
    let port = disturbed.server.port(1);
    let http = format!(
        "server {{ listen 127.0.0.1:{port} reuseport; listen 127.0.0.1:{{2}}; location / {{ return 200 hi; }} }}"
    );
    let _second = nginx(&disturbed.place, "second", &http);
    disturbed.server.kill();
    let (_, document) = disturbed.end();
    assert_eq!(document["status"], "complete", "{document:#}");
    let counters = &document["hosts"][0]["comparison"]["counters"];
    assert_eq!(counters["process.cpu_ns"], json!({"per_s": null, "per_op": null, "unknown": "restarted"}));
    assert!(counters["cpu.busy_ns"]["per_s"].as_f64() > Some(0.0), "the machine is the same: {counters:#}");
    for (key, counter) in counters.as_object().unwrap() {
        assert!(counter["per_s"].as_f64().is_none_or(|rate| rate >= 0.0), "{key}: {counter}");
    }
    assert!(doubts(&document).iter().any(|text| text.contains("main process changed")), "{:?}", doubts(&document));
}

#[test]
#[cfg(target_os = "linux")]
fn a_machine_that_is_lost_is_told_and_the_rest_goes_on() {
    let _alone = measuring();
    let disturbed = Disturbed::start();
    for shell in shells_of(disturbed.pid) {
        rustix::process::kill_process(shell, rustix::process::Signal::KILL).unwrap();
    }
    let (text, document) = disturbed.end();
    assert_eq!(document["status"], "complete", "{document:#}");
    let host = &document["hosts"][0];
    assert!(host["lost"]["why"].as_str().unwrap().contains("ended"), "{host:#}");
    assert!(host["lost"]["last_heard_s"].as_f64() > Some(0.0) && host["facts"]["os.kernel"]["value"].is_string());
    let section = text.split("\n\n").find(|section| section.starts_with("b's host: lost after "));
    assert!(section.is_some_and(|section| section.lines().count() < 30), "{text}");
    assert!(doubts(&document).iter().any(|text| text.contains("not read to the end")), "{:?}", doubts(&document));
    assert_ne!(document["pairs"][0]["ratio"], Value::Null, "what was measured is judged");
}

/// The shells that a process has started.
#[cfg(target_os = "linux")]
fn shells_of(parent: u32) -> Vec<rustix::process::Pid> {
    let is_shell = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let own = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok()) == Some(parent);
        own && line == b"/bin/sh\0-s\0"
    };
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| is_shell(*pid)).map(|pid| rustix::process::Pid::from_raw(pid as i32).unwrap()).collect()
}

/// A server that ends at the first request which differs from those that it was asked before.
struct Fragile {
    address: SocketAddr,
    is_gone: Arc<AtomicBool>,
}

impl Fragile {
    fn start(delay: Duration) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (is_gone, usual) = (Arc::new(AtomicBool::new(false)), Arc::new(OnceLock::new()));
        let gone = Arc::clone(&is_gone);
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if gone.load(Ordering::SeqCst) {
                    // With it the listener goes: whoever connects from now on is refused.
                    return;
                }
                let (gone, usual) = (Arc::clone(&gone), Arc::clone(&usual));
                std::thread::spawn(move || {
                    let _ = answer(stream, delay, &usual, &gone);
                    if gone.load(Ordering::SeqCst) {
                        // Wakes whoever accepts.
                        let _ = TcpStream::connect(address);
                    }
                });
            }
        });
        Self { address, is_gone }
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        self.is_gone.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

/// Answers requests until one is not like the first.
fn answer(mut stream: TcpStream, delay: Duration, usual: &OnceLock<Vec<u8>>, gone: &AtomicBool) -> std::io::Result<()> {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        if usual.get_or_init(|| head.clone()) != &head {
            gone.store(true, Ordering::SeqCst);
        }
        if gone.load(Ordering::SeqCst) {
            return Ok(());
        }
        // Large, and slow in between, so that it is asked whether the gap is paid per byte: by a request for one byte.
        let body = vec![b'x'; 200_000];
        stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes())?;
        let (first, second) = body.split_at(body.len() / 2);
        stream.write_all(first)?;
        std::thread::sleep(delay);
        stream.write_all(second)?;
    }
}

#[test]
fn a_probe_that_ends_the_server_is_told_and_what_is_known_is_reported() {
    let _alone = measuring();
    let place = Place::new();
    let [good, bad] = [1, 6].map(|ms| Fragile::start(Duration::from_millis(ms)));
    let (a, b) = (format!("good=http://{}/", good.address), format!("bad=http://{}/", bad.address));
    let document = place.json([&a, &b, "-d", "2s", "-c", "2", "-t", "1", "--why", "--why-budget", "24s"]);
    assert_eq!((&document["status"], &document["explained"]), (&"complete".into(), &true.into()));
    assert_eq!(document["pairs"][0]["call"], "slower");
    let probes = document["probes"].as_array().unwrap();
    let (failed, made): (Vec<&Value>, Vec<&Value>) = probes.iter().partition(|probe| probe["unavailable"].is_string());
    assert!(!failed.is_empty() && !made.is_empty(), "{probes:#?}");
    for probe in &failed {
        assert_eq!((&probe["pairs"], &probe["targets"]), (&json!([]), &json!([])), "nothing is made up: {probe:#}");
    }
    assert!(bad.is_gone.load(Ordering::SeqCst) || good.is_gone.load(Ordering::SeqCst));
    assert!(!document["findings"].as_array().unwrap().is_empty());
    let text = place.duel(["show", "last"]).ok().stdout;
    assert!(text.contains("Not probed: ") && text.contains("bad is ") && text.contains("slower than good"), "{text}");
}

/// A program of this name that `duel` finds before the real one.
fn fake(place: &Place, name: &str, script: &str) -> String {
    let path = place.file(&format!("bin/{name}"), script);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let folder = place.path("bin");
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default())
}

#[test]
fn what_a_hostile_ssh_says_reaches_no_terminal_and_no_shell() {
    let place = Place::new();
    let trap = place.path("trapped");
    // The words of a host that was reached, as ssh writes them into the log that it is told.
    let script = format!(
        "#!/bin/sh\nlog=/dev/stderr\nwhile [ $# -gt 0 ]; do [ \"$1\" = -E ] && log=$2; shift; done\n\
         {{ printf 'evil \\033]0;owned\\007 \\033[2J \\302\\233 $(touch {trap}) `touch {trap}`; touch {trap}\\n'\n\
         head -c 300000 /dev/zero | tr '\\0' x; echo; }} >\"$log\"\nexit 255\n",
        trap = trap.display()
    );
    let path = fake(&place, "ssh", &script);
    let mut command = place.command();
    command.args(["facts", "far"]).env("PATH", &path);
    let said = Running::start(command).end().refused(1);
    assert!(said.starts_with("far: cannot start a shell over ssh to far: ") && said.contains("evil"), "{said}");
    assert!(!trap.exists(), "nothing that it says is carried out");

    // Beside a machine that could be read, it is told in the document as well.
    let mut command = place.command();
    command.args(["facts", "here=local", "far", "--json"]).env("PATH", &path);
    let document = Running::start(command).end().ended(1).json();
    assert_eq!(document["schema"], "duel/1");
    let [here, far] = &document["hosts"].as_array().unwrap()[..] else { panic!("{document:#}") };
    assert_eq!((&here["name"], &far["name"]), (&json!("here"), &json!("far")));
    assert!(here["facts"]["os.kernel"]["value"].is_string() && here["error"].is_null(), "{here:#}");
    assert!(here["doubts"].is_array() && far["doubts"] == json!([]), "{document:#}");
    assert!(far["facts"].is_null() && far["error"].as_str().unwrap().contains("cannot start a shell"), "{far:#}");

    // In a comparison it is a doubt, and everything else goes on.
    let _alone = measuring();
    let ruler = Ruler::start(&[]);
    let (a, b) = (format!("a={}", ruler.url("/")), format!("b={}", ruler.url("/")));
    let mut command = place.command();
    command.args([&a, &b]).args(["--ssh", "b=far", "-d", "1s", "-c", "2", "-t", "1", "--json", "-q"]).env("PATH", path);
    let document = Running::start(command).end().ok().json();
    assert!(doubts(&document).iter().any(|text| text.starts_with("the host of b: cannot start a shell")));
    assert_eq!(document["hosts"], json!([]), "what was not read is not there");
}

/// A management controller that knows one user.
fn controller(place: &Place) -> Server {
    let certificate = Certificate::new(place, "bmc", "ec");
    let resources = [
        ("Chassis", r#"{"Members": [{"@odata.id": "/redfish/v1/Chassis/1"}]}"#),
        ("Chassis/1", r#"{"Thermal": {"@odata.id": "/redfish/v1/Chassis/1/Thermal"}}"#),
        (
            "Chassis/1/Thermal",
            r#"{"Fans": [{"Name": "Fan 1", "Reading": 2100, "ReadingUnits": "RPM"}],
                "Temperatures": [{"Name": "CPU1 Temp", "ReadingCelsius": 62.5}]}"#,
        ),
    ];
    let locations: String = resources
        .map(|(path, body)| format!("location = /redfish/v1/{path} {{ if ($http_authorization != \"Basic cm9vdDpodW50ZXIy\") {{ return 401; }} return 200 '{body}'; }}\n"))
        .concat();
    nginx(place, "bmc", &format!("{}\nserver {{ listen 127.0.0.1:{{1}} ssl;\n{locations} }}", certificate.nginx()))
}

#[test]
fn a_management_controller_is_asked_before_and_after_and_its_password_stays_here() {
    let _alone = measuring();
    let place = Place::new();
    let (bmc, ruler) = (controller(&place), Ruler::start(&[]));
    let address = format!("local=https://root@127.0.0.1:{}", bmc.port(1));
    let facts = |more: &[&str], password: Option<&str>| {
        let mut command = place.command();
        command.args(["facts", "--redfish", &address]).args(more);
        if let Some(password) = password {
            command.env("DUEL_REDFISH_PASSWORD", password);
        }
        Running::start(command).end()
    };
    let said = facts(&["--redfish-insecure"], None).refused(2);
    assert!(said.contains("there is no password for root: set DUEL_REDFISH_PASSWORD, or name a file"), "{said}");
    let text = facts(&["--redfish-insecure"], Some("hunter2")).ok().stdout;
    assert!(text.contains("redfish.fan.Fan_1.rpm") && text.contains("2100") && !text.contains("hunter2"), "{text}");
    let text = facts(&["--redfish-insecure"], Some("wrong-hunter2")).ok().stdout;
    assert!(text.contains("does not accept the user or the password") && !text.contains("hunter2"), "{text}");
    let text = facts(&[], Some("hunter2")).ok().stdout;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // Where the system has no authorities, it cannot be verified for that reason.
    assert!(text.contains("verif") && !text.contains("2100") && !text.contains("hunter2"), "{text}");

    let file = place.file("secret/password", "hunter2\n");
    let (a, b) = (format!("a={}", ruler.url("/")), format!("b={}", ruler.url("/")));
    let (address, file) = (address.replacen("local", "a", 1), format!("a={file}"));
    let load = ["--local", "a", "-d", "1s", "-c", "2", "-t", "1"];
    let redfish = ["--redfish", &address, "--redfish-password-file", &file, "--redfish-insecure"];
    let document = place.json([&[a.as_str(), &b][..], &load, &redfish].concat());
    let facts = &document["hosts"][0]["facts"];
    assert_eq!(facts["redfish.fan.Fan_1.rpm"], json!({"value": "2100", "unit": "rpm"}));
    assert_eq!(facts["redfish.after.temperature.CPU1_Temp.c"], json!({"value": "62.5", "unit": "°C"}));
    assert!(!document.to_string().contains("hunter2") && document["plan"].to_string().contains("password_file"));
    for file in std::fs::read_dir(place.root()).unwrap().flatten().filter(|entry| entry.path().is_file()) {
        let bytes = std::fs::read(file.path()).unwrap();
        for secret in ["hunter2", "cm9vdDpodW50ZXIy"] {
            let is_there = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!is_there, "{secret} in {:?}", file.path());
        }
    }
    // It is repeated with the password from where it was.
    let again = place.json(["rerun", "last"]);
    assert_eq!(again["hosts"][0]["facts"]["redfish.fan.Fan_1.rpm"]["value"], "2100");
}

/// In a namespace of the test's own, where `far` is this machine for whoever uses ssh.
#[test]
#[cfg(target_os = "linux")]
fn a_machine_over_ssh_has_the_facts_that_it_has_here() {
    const TEST: &str = "hosts::a_machine_over_ssh_has_the_facts_that_it_has_here";
    sshd::with_sshd(TEST, || {
        let (place, sshd) = (Place::new(), sshd::Sshd::start());
        // The program takes the system's configuration, as for any user. Nobody outside sees this one.
        let mounted = std::process::Command::new("mount").args(["-t", "tmpfs", "tmpfs", "/etc/ssh"]).status().unwrap();
        assert!(mounted.success());
        std::fs::copy(sshd.path().join("config"), "/etc/ssh/ssh_config").unwrap();

        let document = place.json(["facts", "here=local", "there=far"]);
        let hosts = document["hosts"].as_array().unwrap();
        assert!(hosts[0]["name"] == "here" && hosts[1]["name"] == "there", "{document:#}");
        let [here, there] = [0, 1].map(|host: usize| hosts[host]["facts"].as_object().unwrap());
        assert!(here["os.kernel"]["value"].is_string() && here.len() > 50, "{here:#?}");
        let is_stable = |key: &str| !moving::MOVING.contains(&key);
        let stable = |facts: &serde_json::Map<String, Value>| -> Vec<(String, Value)> {
            let facts = facts.iter().filter(|(key, _)| is_stable(key));
            facts.map(|(key, known)| (key.clone(), known.clone())).collect()
        };
        assert_eq!(stable(here), stable(there));

        // As text: only facts that differ are shown, before what no machine told.
        let text = place.duel(["facts", "here=local", "there=far"]).ok().stdout;
        let text = text.split("Not available:").next().unwrap();
        let shown: Vec<&str> =
            here.keys().map(String::as_str).filter(|key| is_stable(key) && text.contains(key)).collect();
        assert!(shown.is_empty(), "{shown:?} differ: {text}");

        // And of targets of a comparison, one of whose hosts is read over ssh.
        let ruler = Ruler::start(&[]);
        let targets = ["near", "far"].map(|name| format!("{name}={}", ruler.url("/")));
        let more = ["--local", "near", "--ssh", "far=far", "-d", "1s", "-c", "1", "-t", "1"];
        let document = place.json(targets.iter().map(String::as_str).chain(more));
        let hosts = document["hosts"].as_array().unwrap();
        let facts = |host: usize| stable(hosts[host]["facts"].as_object().unwrap());
        assert_eq!(facts(0), facts(1), "{document:#}");
        assert!(hosts[1]["comparison"]["counters"]["cpu.busy_ns"]["per_s"].as_f64() > Some(0.0), "{document:#}");
        assert!(hosts[1].to_string().contains("over ssh to far"), "{:#}", hosts[1]);
    });
}
