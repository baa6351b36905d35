//! What probes of a diagnosis send.

use crate::common::{Server, Unwatched, plan, run};
use duel_lab::{DiagnosisPlan, Lab, judge};
use duel_model::{HostAccess, HostPlan, HttpPlan, MILLISECOND_NS, RequestsPlan, SECOND_NS, ServerPlan};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// What a cache has not seen in the comparison it has not seen in a probe either.
#[test]
fn no_probe_sends_a_unique_address_again() {
    let (fast, slow) = (
        Server::that_ends("127.0.0.1", Duration::from_millis(1)),
        Server::that_ends("127.0.0.1", Duration::from_millis(30)),
    );
    let requests = RequestsPlan { is_template: true, ..RequestsPlan::default() };
    let mut plan = plan(&[&fast, &slow], HttpPlan { requests, ..HttpPlan::default() });
    plan.load.threads = 2;
    (plan.compare.max_load_ns, plan.compare.slot_ns) = (8 * SECOND_NS, Some(100 * MILLISECOND_NS));
    plan.targets.iter_mut().for_each(|target| target.address.push_str("{n}?{uuid}"));
    let mut compared = run(&plan).unwrap();
    let diagnosis = DiagnosisPlan {
        budget_ns: 13 * SECOND_NS,
        names_suspects: false,
        may_start_twin: Vec::new(),
        most_copied_bytes: None,
        net_servers: Vec::new(),
    };
    Lab::new(Arc::default()).explain(&mut compared, &plan, diagnosis, &mut Unwatched).unwrap();
    let probes = compared.explanation.clone().unwrap().probes;
    assert!(!probes.is_empty(), "{:#?}", judge(&compared));
    for server in [&fast, &slow] {
        let mut sent: BTreeMap<String, usize> = BTreeMap::new();
        for (head, _) in server.heard.lock().unwrap().iter() {
            let target = head.split(' ').nth(1).unwrap();
            for part in target.trim_start_matches('/').split('?') {
                *sent.entry(part.to_owned()).or_default() += 1;
            }
        }
        // First contacts are not measured: of the comparison, on the way there again, and of each probe.
        let first = sent.get("0").copied().unwrap();
        assert!(first <= probes.len() + 2, "{first} of {probes:#?}");
        let again: Vec<_> = sent.iter().filter(|(_, times)| **times > 1).collect();
        let twice = again.len();
        assert!(twice <= 2, "{twice} were sent twice: {again:?}");
    }
}

/// What others send on a server's machine is not what requests to it take there.
#[test]
fn packets_of_others_are_no_part_of_what_a_request_takes() {
    let (fast, slow) = (
        Server::that_ends("127.0.0.1", Duration::from_millis(1)),
        Server::that_ends("127.0.0.1", Duration::from_millis(30)),
    );
    let mut plan = plan(&[&fast, &slow], HttpPlan::default());
    (plan.compare.max_load_ns, plan.compare.slot_ns) = (4 * SECOND_NS, Some(100 * MILLISECOND_NS));
    for target in &mut plan.targets {
        target.host = Some(HostPlan {
            access: HostAccess::Local,
            server: ServerPlan::Pid(std::process::id()),
            process: None,
            redfish: None,
        });
    }
    let chatter = Chatter::start();
    let mut compared = run(&plan).unwrap();
    let diagnosis = DiagnosisPlan {
        budget_ns: 20 * SECOND_NS,
        names_suspects: false,
        may_start_twin: Vec::new(),
        most_copied_bytes: None,
        net_servers: Vec::new(),
    };
    Lab::new(Arc::default()).explain(&mut compared, &plan, diagnosis, &mut Unwatched).unwrap();
    drop(chatter);
    let probes = &compared.explanation.as_ref().unwrap().probes;
    let hosts = probes.iter().find(|outcome| outcome.probe.id == "hosts").unwrap_or_else(|| panic!("{probes:#?}"));
    let demand = hosts.demands[1].as_ref().unwrap();
    let all = demand.growth["tcp.received_segments"] as f64 / demand.ops as f64;
    assert!(all > 20.0, "{all} segments of all for each request");
    assert_eq!(demand.per_op("tcp.received_segments"), None, "most of {all} are others'");
    assert!(demand.per_op("cpu.busy_ns").is_some());
}

/// Two threads that send each other a byte, over and over, some thousand times a second.
struct Chatter {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Chatter {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut theirs = listener.accept().unwrap().0;
        let answers = std::thread::spawn(move || {
            let mut byte = [0];
            while theirs.read_exact(&mut byte).and_then(|()| theirs.write_all(&byte)).is_ok() {}
        });
        let is_over = Arc::clone(&stop);
        let asks = std::thread::spawn(move || {
            let mut byte = [0];
            while !is_over.load(Ordering::Relaxed) {
                ours.write_all(&byte).unwrap();
                ours.read_exact(&mut byte).unwrap();
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        Self { stop, threads: vec![asks, answers] }
    }
}

impl Drop for Chatter {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
