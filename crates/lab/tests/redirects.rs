//! Redirects, followed before the load or in each op: everything that is sent goes where it belongs, as it was meant.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use duel_lab::{Lab, LabError, Watcher};
use duel_model::{
    AuthPlan, Body, Bound, ComparePlan, Factor, HttpPlan, LoadPlan, LoadShape, LoopKind, MILLISECOND_NS, Plan, Run,
    SECOND_NS, SecretSource, Target, WorkloadPlan,
};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

struct Unwatched;

impl Watcher for Unwatched {}

/// A server that notes each request and answers all alike, until the test's process ends.
struct Server {
    address: SocketAddr,
    /// Heads and bodies.
    heard: Arc<Mutex<Vec<(String, String)>>>,
}

impl Server {
    /// On an address of its own, so that it is another host than the next one.
    fn start(ip: &str, takes: Duration, answer: String) -> Self {
        let listener = TcpListener::bind((ip, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let heard: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
        let notes = Arc::clone(&heard);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (notes, answer) = (Arc::clone(&notes), answer.clone());
                stream.set_nodelay(true).unwrap();
                std::thread::spawn(move || {
                    while let Some(request) = read_request(&mut stream) {
                        notes.lock().unwrap().push(request);
                        std::thread::sleep(takes);
                        if stream.write_all(answer.as_bytes()).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { address, heard }
    }

    fn that_ends(ip: &str, takes: Duration) -> Self {
        Self::start(ip, takes, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned())
    }

    fn that_redirects(ip: &str, status: u16, to: &Self) -> Self {
        let location = format!("http://{}/end", to.address);
        let answer = format!("HTTP/1.1 {status} Go\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
        Self::start(ip, Duration::ZERO, answer)
    }

    fn heard(&self) -> usize {
        self.heard.lock().unwrap().len()
    }
}

fn read_request(stream: &mut TcpStream) -> Option<(String, String)> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).ok()?;
    Some((head, String::from_utf8(body).unwrap()))
}

fn plan(servers: &[&Server], http: HttpPlan) -> Plan {
    let target = |(index, server): (usize, &&Server)| Target {
        name: format!("T{index}"),
        address: format!("http://{}/", server.address),
        host: None,
    };
    Plan {
        targets: servers.iter().enumerate().map(target).collect(),
        workload: WorkloadPlan::Http(Box::new(http)),
        load: LoadPlan {
            connections: 2,
            threads: 1,
            kind: LoopKind::Closed { think_ns: 0 },
            bound: Bound::Ops(30),
            connect_timeout_ns: 10 * SECOND_NS,
            op_timeout_ns: 10 * SECOND_NS,
            shape: LoadShape::default(),
        },
        compare: ComparePlan {
            seed: 1,
            max_load_ns: SECOND_NS,
            slot_ns: Some(20 * MILLISECOND_NS),
            ..ComparePlan::default()
        },
        factors: vec![],
    }
}

fn run(plan: &Plan) -> Result<Run, LabError> {
    Lab::new(Arc::default()).run(plan, &mut Unwatched)
}

/// A form sent with every credential that there is.
fn with_secrets() -> HttpPlan {
    let headers = ["Authorization", "Cookie", "Proxy-Authorization", "X-Api-Key"].map(|name| (name, "secret"));
    HttpPlan {
        method: "POST".into(),
        body: Body::Text("secret".into()),
        host: Some("secret.example".into()),
        headers: headers.map(|(name, value)| (name.into(), value.into())).into(),
        max_redirects: 3,
        ..HttpPlan::default()
    }
}

fn http_of(run: &Run) -> &HttpPlan {
    let WorkloadPlan::Http(http) = &run.plan.workload else { panic!("it was http") };
    http
}

#[test]
fn what_was_meant_for_the_first_host_is_not_sent_to_the_last() {
    let last = Server::that_ends("127.0.0.2", Duration::ZERO);
    let first = Server::that_redirects("127.0.0.1", 302, &last);
    let run = run(&plan(&[&first], with_secrets())).unwrap();
    assert_eq!(run.slots.iter().map(|slot| slot.tally.ok).sum::<u64>(), 30);
    assert_eq!(first.heard(), 1, "the load goes where the redirect led");
    let heard = last.heard.lock().unwrap();
    assert!(heard.len() >= 30);
    for (head, body) in heard.iter() {
        assert!(head.starts_with("GET /end ") && !head.contains("secret") && body.is_empty(), "{head}{body}");
        assert!(head.contains(&format!("Host: {}\r\n", last.address)), "{head}");
    }
    // What is kept and shown is what was sent.
    assert_eq!(run.plan.targets[0].address, format!("http://{}/end", last.address));
    let http = http_of(&run);
    assert_eq!((http.method.as_str(), &http.body, &http.host), ("GET", &Body::None, &None));
    assert!(http.headers.is_empty() && http.max_redirects == 0, "{:?}", http.headers);
}

#[test]
fn a_bearer_token_is_left_behind_and_kept_on_the_same_host() {
    let file = std::env::temp_dir().join(format!("duel-lab-redirects-{}", std::process::id()));
    std::fs::write(&file, "token-of-mine\n").unwrap();
    let mut http = HttpPlan { max_redirects: 3, ..HttpPlan::default() };
    http.requests.auth = Some(AuthPlan::Bearer { token: SecretSource::File(file.clone()) });
    for (ip, keeps) in [("127.0.0.1", true), ("127.0.0.2", false)] {
        let last = Server::that_ends(ip, Duration::ZERO);
        let first = Server::that_redirects("127.0.0.1", 307, &last);
        let run = run(&plan(&[&first], http.clone())).unwrap();
        assert_eq!(http_of(&run).requests.auth.is_some(), keeps);
        let heard = last.heard.lock().unwrap();
        assert!(heard.len() > 1 && heard.iter().all(|(head, _)| head.contains("token-of-mine") == keeps));
    }
    std::fs::remove_file(file).unwrap();
}

#[test]
fn targets_that_redirects_leave_with_other_requests_are_not_compared() {
    let last = Server::that_ends("127.0.0.2", Duration::ZERO);
    let (redirects, answers) =
        (Server::that_redirects("127.0.0.1", 302, &last), Server::that_ends("127.0.0.1", Duration::ZERO));
    let told = run(&plan(&[&redirects, &answers], with_secrets())).unwrap_err().to_string();
    assert!(told.contains("other requests for T1 than for T0"), "{told}");
    // Without anything that is left behind, the requests are the same.
    run(&plan(&[&redirects, &answers], HttpPlan { max_redirects: 3, ..HttpPlan::default() })).unwrap();
}

#[test]
fn bodies_that_a_redirect_takes_away_are_not_varied() {
    let last = Server::that_ends("127.0.0.1", Duration::ZERO);
    let first = Server::that_redirects("127.0.0.1", 302, &last);
    let http = HttpPlan { method: "POST".into(), max_redirects: 1, ..HttpPlan::default() };
    let varied = Plan { factors: vec![Factor::BodySize(vec![10, 20])], ..plan(&[&first], http) };
    let told = run(&varied).unwrap_err().to_string();
    assert!(told.contains("makes a GET"), "{told}");
}

#[test]
fn all_treatments_follow_the_redirects_of_each_op() {
    let last = Server::that_ends("127.0.0.2", Duration::ZERO);
    let first = Server::that_redirects("127.0.0.1", 302, &last);
    let http = HttpPlan { max_redirects: 5, follows_each: true, ..HttpPlan::default() };
    let run = run(&Plan { factors: vec![Factor::Keepalive(vec![true, false])], ..plan(&[&first], http) }).unwrap();
    for treatment in 0..2 {
        let slots = run.slots.iter().filter(|slot| slot.treatment == Some(treatment));
        assert!(slots.map(|slot| slot.tally.ok).sum::<u64>() > 0);
    }
    let tally = |of: fn(&duel_model::Tally) -> u64| run.slots.iter().map(|slot| of(&slot.tally)).sum::<u64>();
    assert_eq!(tally(|tally| tally.started), tally(|tally| tally.ok));
    // And the first contact of each treatment, by which the last host was found.
    assert_eq!(last.heard() as u64, tally(|tally| tally.ok) + 2, "each op has come to the end");
}
