//! Servers that note what they hear, and a plan of load on them.

use duel_lab::{Lab, LabError, Watcher};
use duel_model::{Bound, ComparePlan, HttpPlan, LoadPlan, MILLISECOND_NS, Plan, Run, SECOND_NS, Target, WorkloadPlan};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub struct Unwatched;

impl Watcher for Unwatched {}

/// A server that notes each request and answers all alike, until the test's process ends.
pub struct Server {
    pub address: SocketAddr,
    /// Heads and bodies.
    pub heard: Arc<Mutex<Vec<(String, String)>>>,
}

/// An answer without a body.
pub const EMPTY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

impl Server {
    /// On an address of its own, so that it is another host than the next one.
    pub fn start(ip: &str, takes: Duration, answer: String) -> Self {
        Self::that_takes(ip, move |_| takes, answer)
    }

    /// One whose requests take so long, by how many it has heard.
    pub fn that_takes(ip: &str, takes: impl Fn(usize) -> Duration + Send + Sync + 'static, answer: String) -> Self {
        let listener = TcpListener::bind((ip, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let heard: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
        let (notes, takes) = (Arc::clone(&heard), Arc::new(takes));
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (notes, takes, answer) = (Arc::clone(&notes), Arc::clone(&takes), answer.clone());
                stream.set_nodelay(true).unwrap();
                std::thread::spawn(move || {
                    while let Some(request) = read_request(&mut stream) {
                        let heard = {
                            let mut notes = notes.lock().unwrap();
                            notes.push(request);
                            notes.len()
                        };
                        std::thread::sleep(takes(heard));
                        if stream.write_all(answer.as_bytes()).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { address, heard }
    }

    pub fn that_ends(ip: &str, takes: Duration) -> Self {
        Self::start(ip, takes, EMPTY.to_owned())
    }

    pub fn that_redirects(ip: &str, status: u16, to: &Self) -> Self {
        let location = format!("http://{}/end", to.address);
        let answer = format!("HTTP/1.1 {status} Go\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
        Self::start(ip, Duration::ZERO, answer)
    }

    pub fn heard(&self) -> usize {
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

pub fn plan(servers: &[&Server], http: HttpPlan) -> Plan {
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
            bound: Bound::Ops(30),
            op_timeout_ns: 10 * SECOND_NS,
            busy_poll: duel_model::BusyPoll::Never,
            ..LoadPlan::default()
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

pub fn run(plan: &Plan) -> Result<Run, LabError> {
    Lab::new(Arc::default()).run(plan, &mut Unwatched)
}
