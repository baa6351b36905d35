//! A small simulated world whose truth is known: servers with costs, and a laboratory that answers probes about them.

pub mod lens;
pub mod machine;
pub mod network;

use crate::disks::{Below, Disks, Ground};
use crate::paths::Paths;
use duel_diagnose::{Case, Step, next_naming};
use duel_model::web::phase;
use duel_model::web::settings::H2_WINDOW;
use duel_model::{
    AddressRange, Arrival, Body, Bound, Call, ComparePlan, ConnectionClasses, Doubt, DoubtId, Explanation, Facts,
    Finding, HostDemand, HttpPlan, Layer, LensReading, LoadPlan, LoopKind, MILLISECOND_NS, Metric, Nanos, NotMade,
    PairVerdict, Phase, Plan, Probe, ProbeOutcome, SECOND_NS, SlowClass, Target, TargetObservation, TargetStalls,
    TlsVersion, TwinReading, Variation, Verdict, WorkloadPlan, web,
};
use std::net::IpAddr;

/// B against A, with the ratio and its interval.
pub fn pair(metric: Metric, call: Call, [ratio, low, high]: [f64; 3]) -> PairVerdict {
    PairVerdict {
        baseline: "A".to_owned(),
        target: "B".to_owned(),
        metric,
        call,
        ratio: Some(ratio),
        low: Some(low),
        high: Some(high),
        confidence: 0.95,
        slots: 24,
        by_whole: false,
    }
}

/// Addresses of a server whose name has one of either family.
const BY_IPV6: &str = "[2001:db8::7]:80";
const BY_IPV4: &str = "192.0.2.7:80";
/// Head of a request.
const REQUEST_BYTES: f64 = 120.0;
/// What the load generator itself works for each request beside its bytes.
const OUR_WORK_NS: f64 = 5e3;
/// And for each connection, with its handshake.
const OUR_CONNECTING_NS: f64 = 250e3;

/// What a server costs. Times in ns of a CPU of factor 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    pub tls: bool,
    pub version: &'static str,
    pub cipher: &'static str,
    pub group: &'static str,
    pub key: (&'static str, u32),
    pub round_trip: f64,
    /// The same server by another address of its name, where it has one: it is reached by IPv6, and this one is IPv4.
    pub other_way: Option<Box<Server>>,
    /// Waiting per request that uses no CPU.
    pub delay: f64,
    pub fixed: f64,
    /// Per byte whatever the cipher, our own share included.
    pub per_byte: f64,
    pub aes: f64,
    pub chacha: f64,
    pub sign: f64,
    pub exchange: f64,
    pub cpu: f64,
    pub cores: f64,
    pub keeps: bool,
    /// Requests after which it closes a connection that it keeps.
    pub closes_after: Option<f64>,
    /// Time and what is left of the size.
    pub gzip: Option<(f64, f64)>,
    /// Bytes per second of each connection.
    pub cap: Option<f64>,
    pub has_chacha: bool,
    pub has_range: bool,
    pub resumes: bool,
    pub failing: f64,
    /// Requests per second that one client address is let do; others wait.
    pub per_address: Option<f64>,
    /// Waiting per request that only comes to our usual address.
    pub dislikes_us: f64,
    /// Takes AES suites even if it chooses another one.
    pub has_aes: bool,
    /// A certificate that it shows to who asks for a suite of TLS 1.2 that names its algorithm, and what it signs with.
    pub other_key: Option<((&'static str, u32), f64)>,
    /// A group that it takes besides the one that it chooses, and what an exchange over it costs.
    pub other_group: Option<(&'static str, f64)>,
    /// Takes TLS 1.2, whose full handshake needs a round trip more.
    pub has_12: bool,
    /// Bytes of the certificate chain: beyond 14 kB a full handshake needs a round trip more.
    pub chain: u64,
    /// Bytes of the head of a response.
    pub head: f64,
    /// How many times the world's body it sends.
    pub larger: f64,
    /// Bytes of a TLS record.
    pub record: f64,
    pub via: Option<&'static str>,
    /// Threads of the server: at most so many CPUs are used.
    pub workers: f64,
    /// Requests that are served at a time.
    pub places: f64,
    /// CPUs' worth of time that a quota allows.
    pub quota: Option<f64>,
    /// CPUs' worth of time that others take, with or without load.
    pub others: f64,
    /// Share of it that the kernel counts as interrupts, for they hit whoever runs.
    pub others_interrupted: f64,
    /// Share of its own CPU time that the kernel counts as interrupts, and for the process all the same.
    pub interrupts_charged: f64,
    /// How many times as long as it runs it waits for its CPUs, which others keep busy.
    pub crowded: f64,
    /// CPUs' worth of time that the hypervisor withholds under load.
    pub stolen: f64,
    /// CPU time per op in the kernel, and in other processes meanwhile.
    pub kernel: f64,
    pub outside: f64,
    /// CPU time per op of the load generator, where it runs on the server's own machine.
    pub generator: f64,
    /// CPU time per op of the load generator beyond what each request and its bytes take it, wherever it runs.
    pub our_work: f64,
    /// Time per op at a disk that serves one request at a time.
    pub disk: f64,
    /// What it reads of what it is asked for the first time; `None`: nobody counts what it reads.
    pub first_reads: Option<FirstReads>,
    /// What two connections at a time cost each other, as in the universal scalability law.
    pub kappa: f64,
    /// What its machine tells; `None`: not read.
    pub facts: Option<Vec<(&'static str, &'static str)>>,
    /// Whether all of its machine is read: also the facts and counters of its CPUs, control group, memory and disk that
    /// follow from what is said here.
    pub all_read: bool,
    /// Counters per op; those that follow from its costs do not count beside them.
    pub counts: Vec<(&'static str, f64)>,
    /// Counters that its kernel does not have.
    pub uncounted: Vec<&'static str>,
    /// Counters per second that go on without load, and whether they are seen then.
    pub background: Vec<(&'static str, f64)>,
    pub seen_in_silence: bool,
    /// How many times as much as anything else the packets on its machine differ from slot to slot.
    pub bursts: f64,
    /// Kernel functions in which its threads sleep, and how many do under load and without; empty: nobody looked.
    pub asleep: Vec<(&'static str, f64, f64)>,
    /// Sockets that listen beside it, and how many connections wait there under load and without; `None`: nobody looked.
    pub queues: Option<Vec<(&'static str, f64, f64)>>,
    /// The share of its ops that form a slow class, and how much longer they take; the mean of that is to be in its delay.
    pub slow_ops: Option<(f64, f64)>,
    /// CPU time per op that HTTP/2 takes beyond HTTP/1.1.
    pub http2: f64,
    /// Waiting per op that only HTTP/1.1 knows.
    pub http1_delay: f64,
    /// Closes connections of HTTP/1.1, whatever it does with those of HTTP/2.
    pub closes_http1: bool,
    /// Requests of one connection that it serves at a time.
    pub streams_at_a_time: f64,
    /// Requests of one connection that it says it takes at a time; `None`: it does not say.
    pub max_streams: Option<u32>,
    /// Bytes of a request that it takes ahead of its leave, over HTTP/2.
    pub stream_window: Option<u64>,
    /// What it calls itself over HTTP/1.1, where another program answers there.
    pub http1_program: Option<&'static str>,
    /// The share of the time in which all of it stands still.
    pub pauses: f64,
    /// The share in which it is seen to, where something else stops it.
    pub seems_to_pause: f64,
    /// Some of its connections are slower than the others.
    pub slow_connections: Option<SlowConnections>,
    pub net: network::Net,
}

/// What a server does for a request for what it was not asked for before.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FirstReads {
    /// Time, which goes by at its disk if it reads anything.
    pub ns: f64,
    /// Bytes that it reads.
    pub bytes: f64,
    /// The share of that time that the disk is not seen to be busy.
    pub unseen: f64,
    /// It does all that for what it was asked for before, too.
    pub again: bool,
}

/// A share of a server's connections whose requests take longer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowConnections {
    pub share: f64,
    pub longer_ns: f64,
    /// How much longer connecting takes for them.
    pub connects_longer_ns: f64,
    /// They wait for each other: with one request at a time they are like the others.
    pub only_under_load: bool,
}

impl SlowConnections {
    /// Behind one of several servers.
    pub fn of(share: f64, longer_ns: f64) -> Self {
        Self { share, longer_ns, connects_longer_ns: 0.0, only_under_load: false }
    }

    /// How much longer an op takes on average, where the others take `ns`.
    fn mean_longer_ns(&self, ns: f64, connections: f64, one_at_a_time: bool) -> f64 {
        match () {
            () if self.only_under_load && (one_at_a_time || connections == 1.0) => 0.0,
            // Each has as many of them.
            () if one_at_a_time || connections == 1.0 => self.share * self.longer_ns,
            // The longer they take the fewer there are.
            () => 1.0 / ((1.0 - self.share) / ns + self.share / (ns + self.longer_ns)) - ns,
        }
    }

    /// What is seen of so many connections; with four and more they are told apart.
    fn seen(&self, others_ns: f64, one_at_a_time: bool) -> ConnectionClasses {
        let of = 96;
        let differs = !(self.only_under_load && one_at_a_time);
        let worth_log = -(1.0 - self.share + self.share * others_ns / (others_ns + self.longer_ns)).ln();
        ConnectionClasses {
            of,
            slow: if differs { (self.share * of as f64).round() as u64 } else { 0 },
            slow_ns: if differs { others_ns + self.longer_ns } else { 0.0 },
            others_ns,
            chance: if differs { 1e-12 } else { 0.5 },
            connects_longer_ns: differs.then_some(self.connects_longer_ns),
            worth_log: if differs { worth_log } else { 0.0 },
            worth_log_half: Some(if differs { 0.1 * worth_log } else { 0.0 }),
        }
    }
}

impl Default for Server {
    fn default() -> Self {
        Self {
            tls: true,
            version: "1.3",
            cipher: "TLS13_AES_256_GCM_SHA384",
            group: "x25519",
            key: ("EC", 256),
            round_trip: 60e3,
            other_way: None,
            delay: 0.0,
            fixed: 40e3,
            per_byte: 0.4,
            aes: 0.25,
            chacha: 0.6,
            sign: 30e3,
            exchange: 100e3,
            cpu: 1.0,
            cores: 2.0,
            keeps: true,
            closes_after: None,
            gzip: None,
            cap: None,
            has_chacha: true,
            has_range: true,
            resumes: true,
            failing: 0.0,
            per_address: None,
            dislikes_us: 0.0,
            has_aes: true,
            other_key: None,
            other_group: None,
            has_12: true,
            chain: 2_000,
            head: 300.0,
            larger: 1.0,
            record: 16_384.0,
            via: None,
            workers: 1e9,
            places: 1e9,
            quota: None,
            others: 0.0,
            others_interrupted: 0.0,
            interrupts_charged: 0.0,
            crowded: 0.0,
            stolen: 0.0,
            kernel: 0.0,
            outside: 0.0,
            generator: 0.0,
            our_work: 0.0,
            disk: 0.0,
            first_reads: None,
            kappa: 0.0,
            facts: None,
            all_read: false,
            counts: Vec::new(),
            uncounted: Vec::new(),
            background: Vec::new(),
            seen_in_silence: false,
            bursts: 1.0,
            asleep: Vec::new(),
            queues: None,
            slow_ops: None,
            http2: 0.0,
            http1_delay: 0.0,
            closes_http1: false,
            streams_at_a_time: 1e9,
            max_streams: Some(128),
            stream_window: None,
            http1_program: None,
            pauses: 0.0,
            seems_to_pause: 0.0,
            slow_connections: None,
            net: network::Net::default(),
        }
    }
}

#[derive(Debug, Clone)]
pub struct World {
    pub servers: Vec<Server>,
    pub plan: Plan,
    pub body: f64,
    /// What each byte takes the load generator itself, of the time that it takes a server to have it received, ns; `None`: not counted.
    pub our_byte_ns: Option<f64>,
    /// Standard error of the log of a ratio; 0: exact, with an interval of no width.
    pub noise: f64,
    pub seed: u64,
    pub budget_ns: Nanos,
    /// Ids of probes that cannot be made.
    pub unavailable: Vec<String>,
    /// Ids of probes that are answered by another world: disturbed ones, or ones that reach other servers.
    pub elsewhere: Vec<(String, World)>,
    /// Stalls came to either side in the comparison: whether the rates differ is open, and the medians are called.
    pub rate_is_open: bool,
    /// What has become of it when the probes are made.
    pub later: Option<Box<World>>,
    /// What the lens shows of each server's libcrypto.
    pub lenses: Vec<Option<LensReading>>,
    /// Of which servers twins may be started.
    pub twins: Vec<bool>,
    /// What is told of each twin.
    pub of_twins: Option<TwinReading>,
    /// Other addresses that probes can be made from; else why there is none.
    pub sources: Result<Vec<IpAddr>, String>,
    /// Where each server is reached.
    pub peers: Vec<Option<String>>,
    /// The targets' names were looked up and have addresses of one family, but for those with another way.
    pub names_have_ipv4_only: bool,
    /// Requests that differ, of which each slot sends some; a server's costs are those of all of them.
    pub round_ops: Option<u64>,
    /// A slot holds hardly more requests than connections; at its end they wait for the last one.
    pub short_slots: bool,
    /// Some requests are given up at the end of their slot.
    pub gives_up: bool,
    /// What lies below the servers, where files of theirs can be read.
    pub below: Option<Disks>,
    /// The paths to them, where another program answers on their machines.
    pub paths: Option<Paths>,
}

/// Two servers under a plan of ours.
pub fn world(servers: &[Server]) -> World {
    let http = HttpPlan { keepalive: true, ..HttpPlan::default() };
    let name = |index: usize| char::from(b'A' + index as u8).to_string();
    World {
        plan: Plan {
            targets: servers
                .iter()
                .enumerate()
                .map(|(index, server)| Target {
                    host: None,
                    name: name(index),
                    address: format!(
                        "http{}://{}.example/f?x=1&y='2'",
                        if server.tls { "s" } else { "" },
                        name(index).to_lowercase()
                    ),
                })
                .collect(),
            workload: WorkloadPlan::Http(Box::new(http)),
            load: LoadPlan {
                connections: 16,
                threads: 1,
                kind: LoopKind::Closed { think_ns: 0 },
                bound: Bound::Duration(SECOND_NS),
                connect_timeout_ns: SECOND_NS,
                op_timeout_ns: SECOND_NS,
                busy_poll: duel_model::BusyPoll::Auto,
                shape: duel_model::LoadShape::default(),
            },
            compare: ComparePlan::default(),
            factors: vec![],
        },
        our_byte_ns: Some(0.1),
        servers: servers.to_vec(),
        body: 2_860_007.0,
        noise: 0.005,
        seed: 1,
        budget_ns: 60 * SECOND_NS,
        unavailable: Vec::new(),
        elsewhere: Vec::new(),
        rate_is_open: false,
        later: None,
        lenses: vec![None; servers.len()],
        twins: Vec::new(),
        of_twins: None,
        sources: Ok((1..=16).map(|host| IpAddr::from([127, 0, 1, host])).collect()),
        peers: vec![None; servers.len()],
        names_have_ipv4_only: false,
        round_ops: None,
        short_slots: false,
        gives_up: false,
        below: None,
        paths: None,
    }
}

/// SplitMix64: enough for noise, and no dependency.
pub struct Dice(pub u64);

impl Dice {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        // Even in log: small and large strengths alike.
        (low.ln() + self.unit() * (high.ln() - low.ln())).exp()
    }

    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    pub fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.unit()).ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// One server under one treatment.
pub struct Shown {
    pub alone_ns: f64,
    /// The same over a connection that is none of the slow ones.
    others_ns: f64,
    pub rate: f64,
    pub service: f64,
    /// CPUs that the server would use without a quota.
    wants_cpus: f64,
    phases: Vec<(Phase, f64)>,
    bytes: f64,
    new: bool,
    reused: f64,
    resumed: bool,
    is_part: bool,
    tls: Option<Agreed>,
    refused: bool,
    /// CPU time in the server's own code and in the kernel.
    user_ns: f64,
    system_ns: f64,
    /// What its disk is seen to do for each request, and what the server reads of it.
    disk_ns: f64,
    read_bytes: f64,
}

/// What a TLS handshake came to.
struct Agreed {
    version: &'static str,
    cipher: String,
    group: String,
    exchange: f64,
    key: (&'static str, u32),
    sign: f64,
}

impl Server {
    /// What it agrees to; `None` where the client offers nothing that it takes.
    fn agree(&self, variation: &Variation) -> Option<Agreed> {
        let version = match variation.versions.as_deref() {
            Some([TlsVersion::V1_2]) if !self.has_12 => return None,
            Some([TlsVersion::V1_2]) => "1.2",
            _ => self.version,
        };
        let takes = |suite: &&String| {
            **suite == self.cipher || if suite.contains("CHACHA20") { self.has_chacha } else { self.has_aes }
        };
        let cipher = match &variation.ciphers {
            Some(suites) => suites.iter().find(takes)?.clone(),
            None => self.cipher.to_owned(),
        };
        let own = || Some((self.group, self.exchange));
        let (group, exchange) = match variation.groups.as_deref() {
            Some([group, ..]) if group == self.group => own()?,
            Some([group, ..]) => self.other_group.filter(|(name, _)| name == group)?,
            _ => own()?,
        };
        // A certificate's curve has to be among the client's groups.
        let lacks =
            |curve: &str| variation.groups.as_ref().is_some_and(|groups| groups.iter().all(|group| group != curve));
        if version == "1.2" && self.key == ("EC", 256) && lacks("secp256r1") {
            return None;
        }
        let signs = if cipher.contains("_ECDSA_") { "EC" } else { "RSA" };
        let other = self.other_key.filter(|(key, _)| cipher.contains("_WITH_") && key.0 == signs);
        let (key, sign) = other.unwrap_or((self.key, self.sign));
        Some(Agreed { version, cipher, group: group.to_owned(), exchange, key, sign })
    }
}

impl World {
    pub fn http(&mut self) -> &mut HttpPlan {
        match &mut self.plan.workload {
            WorkloadPlan::Http(http) => http,
            WorkloadPlan::Plain(_) => unreachable!(),
        }
    }

    pub fn http_ref(&self) -> &HttpPlan {
        match &self.plan.workload {
            WorkloadPlan::Http(http) => http,
            WorkloadPlan::Plain(_) => unreachable!(),
        }
    }

    fn request_bytes(&self) -> f64 {
        match self.http_ref().body {
            Body::Generated(bytes) => bytes as f64,
            _ => 0.0,
        }
    }

    pub fn show(&self, server: &Server, variation: &Variation) -> Shown {
        let http = self.http_ref();
        let varied = self.plan.varied(variation);
        // As many as there are requests under way.
        let connections = f64::from(varied.lanes());
        let http2 = matches!(&varied.workload, WorkloadPlan::Http(http) if http.http2.is_some());
        let accepts = variation.accept_encoding.as_ref().unwrap_or(&http.accept_encoding).is_some();
        let gzip = server.gzip.filter(|_| accepts);
        let keeps = server.keeps && (http2 || !server.closes_http1);
        let new = !(variation.keepalive.unwrap_or(http.keepalive) && keeps);
        let share_new = if new { 1.0 } else { server.closes_after.map_or(0.0, f64::recip) };
        let connects = share_new > 0.0;
        let resumed = variation.resumption.unwrap_or(http.tls.resumption) && server.resumes && connects && server.tls;
        let tls = if server.tls { server.agree(variation) } else { None };
        let refused = server.tls && tls.is_none();
        let whole = self.body * server.larger;
        let mut bytes = match variation.range_bytes {
            Some(range) if server.has_range && gzip.is_none() => whole.min(range as f64),
            _ => whole,
        };
        let mut fixed = server.fixed + if http2 { server.http2 } else { 0.0 };
        if let Some((ns, left)) = gzip {
            bytes *= left;
            fixed += ns;
        }
        let encrypting = match &tls {
            Some(agreed) if agreed.cipher.contains("AES") => server.aes,
            Some(_) => server.chacha,
            None => 0.0,
        };
        let per_byte = server.per_byte + encrypting;
        // A head of the usual size is part of what a request costs anyhow.
        let sent = bytes + (server.head - 300.0).max(0.0);
        let exchange = tls.as_ref().map_or(0.0, |agreed| agreed.exchange);
        let sign = tls.as_ref().filter(|_| !resumed).map_or(0.0, |agreed| agreed.sign);
        let one_handshake = exchange + sign;
        let handshake = share_new * one_handshake;
        // What it computes takes as long as this, by the wall clock.
        let cpu = server.cpu * (1.0 + server.crowded);
        let mut phases = Vec::new();
        if connects {
            phases.push((phase::CONNECT, share_new * server.round_trip));
            if let Some(agreed) = &tls {
                let trips =
                    1 + u8::from(!resumed && agreed.version == "1.2") + u8::from(!resumed && server.chain > 14_000);
                phases.push((phase::TLS, share_new * f64::from(trips) * server.round_trip + cpu * handshake));
            }
        }
        let reads = server.first_reads.filter(|reads| !variation.same_few || reads.again).unwrap_or_default();
        let disk = server.disk + if reads.bytes > 0.0 { reads.ns } else { 0.0 };
        let elsewhere = server.outside + server.disk + reads.ns;
        let disliked = if variation.sources.is_none() { server.dislikes_us } else { 0.0 };
        let delay = server.delay + if http2 { 0.0 } else { server.http1_delay };
        let wait = delay + disliked + cpu * (fixed + server.kernel) + elsewhere;
        let leave_ns = |bytes: f64, window: f64| ((bytes - 1.0) / window).floor().max(0.0) * server.round_trip;
        if http2 && let Some(window) = server.stream_window {
            phases.push((phase::SEND, leave_ns(self.request_bytes(), window as f64)));
        }
        phases.push((phase::WAIT, server.round_trip + wait));
        let sending = cpu * sent * per_byte;
        let capped = sending.max(server.cap.map_or(0.0, |cap| sent / cap * 1e9));
        // All responses of a connection share its window.
        let window = http2.then(|| match &varied.workload {
            WorkloadPlan::Http(http) => http.number(&H2_WINDOW) as f64 / f64::from(http.streams()),
            WorkloadPlan::Plain(_) => unreachable!(),
        });
        phases.push((phase::RECEIVE, capped.max(window.map_or(0.0, |window| leave_ns(bytes, window)))));
        // And so they do that of TCP.
        let streams = match &varied.workload {
            WorkloadPlan::Http(http) if http2 => f64::from(http.streams()),
            _ => 1.0,
        };
        server.net.delay(server, &mut phases, (bytes, streams), new, variation);
        server.net.stall(&mut phases, connections, variation);
        let others_ns: f64 = phases.iter().map(|(_, ns)| ns).sum();
        if let Some(slow) = server.slow_connections {
            phases.push((phase::WAIT, slow.mean_longer_ns(others_ns, connections, variation.one_at_a_time)));
        }
        let alone_ns: f64 = phases.iter().map(|(_, ns)| ns).sum();
        let user_ns = server.cpu * (handshake + fixed / 2.0 + sent * encrypting);
        let system_ns = server.cpu * (fixed / 2.0 + server.kernel + sent * server.per_byte)
            + server.net.work_ns(new, bytes, variation);
        let busy_ns = user_ns + system_ns;
        let streams = server.max_streams.filter(|_| http2).map_or(1e9, f64::from).min(server.streams_at_a_time);
        let under_way = if variation.one_at_a_time { 1.0 } else { connections };
        let places = under_way.min(server.places).min(f64::from(varied.load.connections) * streams);
        // A server, who runs on its behalf, and who asks it take turns on its CPUs.
        let cpus = server.cores - server.others - server.stolen;
        let takes_ns = busy_ns * (1.0 + server.crowded);
        let by_cpus =
            (cpus * 1e9 / (takes_ns + server.outside + server.generator)).min(server.workers * 1e9 / takes_ns);
        let by_disk = if disk > 0.0 { 1e9 / disk } else { f64::INFINITY };
        let free = (1.0 - server.pauses) * (places * 1e9 / alone_ns).min(by_cpus).min(by_disk)
            / (1.0 + server.kappa * connections * (connections - 1.0));
        let wants_cpus = free * busy_ns / 1e9;
        let uncapped = free.min(server.quota.map_or(f64::INFINITY, |quota| quota * 1e9 / busy_ns));
        let capped = server.net.total_cap.map_or(uncapped, |cap| uncapped.min(cap / bytes));
        let addresses = variation.sources.as_ref().map_or(1, |ranges| ranges.iter().map(AddressRange::count).sum());
        let limit = server.per_address.map(|rate| rate * connections.min(addresses as f64));
        let rate = limit.map_or(capped, |limit| capped.min(limit));
        let stretch = connections * 1e9 / uncapped / alone_ns;
        phases.iter_mut().for_each(|(_, ns)| *ns *= stretch);
        // What waits for a cap waits while it receives.
        let held_ns = connections * 1e9 / capped - connections * 1e9 / uncapped;
        phases.iter_mut().filter(|(phase, _)| *phase == phase::RECEIVE).for_each(|(_, ns)| *ns += held_ns);
        // And what waits for its address's turn waits for the answer.
        let held_ns = connections * 1e9 / rate - connections * 1e9 / capped;
        phases.iter_mut().filter(|(phase, _)| *phase == phase::WAIT).for_each(|(_, ns)| *ns += held_ns);
        let stretch = connections * 1e9 / rate / alone_ns;
        let service = alone_ns * stretch;
        // A probe connects before it measures: a part of what it counts is that.
        let reused = if new { 0.0 } else { 0.97 - share_new };
        Shown {
            alone_ns,
            others_ns,
            rate,
            service,
            wants_cpus,
            phases,
            bytes,
            new,
            reused,
            resumed,
            is_part: bytes < whole && gzip.is_none(),
            tls,
            refused,
            user_ns,
            system_ns,
            disk_ns: if reads.bytes > 0.0 { disk - reads.unseen * reads.ns } else { disk },
            read_bytes: reads.bytes,
        }
    }

    /// A server by the address that is used.
    fn reached(&self, index: usize, variation: &Variation) -> &Server {
        let server = &self.servers[index];
        server.other_way.as_deref().filter(|_| variation.peers.contains_key(&index)).unwrap_or(server)
    }

    pub fn observe(&self, index: usize, variation: &Variation, dice: &mut Dice) -> TargetObservation {
        let server = self.reached(index, variation);
        let shown = self.show(server, variation);
        let scatter = (self.noise * dice.normal()).exp();
        let ok = 1_000;
        let refused = shown.refused;
        let agreed = shown.tls.as_ref();
        let varied = self.plan.varied(variation);
        let connections = f64::from(varied.lanes());
        let http2 = matches!(&varied.workload, WorkloadPlan::Http(http) if http.http2.is_some());
        let (phase_profile, service_profile) = server.net.profiles(server, &shown.phases, connections, variation);
        let waiting_at_ends = if self.short_slots && connections > 1.0 { 0.8 } else { 1.0 };
        let encoded = server.gzip.is_some()
            && variation.accept_encoding.as_ref().unwrap_or(&self.http_ref().accept_encoding).is_some();
        let mut facts = Facts::default()
            .with(web::HTTP_VERSION, if http2 { "HTTP/2" } else { "HTTP/1.1" })
            .with(web::STATUS, if shown.is_part { 206 } else { 200 })
            .with(web::KEEPS_ALIVE, !shown.new)
            .with(web::BODY_BYTES, shown.bytes as u64)
            .with(web::DEAD_ADDRESSES, server.net.dead.clone());
        if let Some(agreed) = agreed {
            facts = facts
                .with(web::TLS_VERSION, agreed.version)
                .with(web::TLS_CIPHER, &*agreed.cipher)
                .with(web::TLS_GROUP, &*agreed.group)
                .with(web::CERTIFICATE_KEY, format!("{}-{}", agreed.key.0, agreed.key.1));
        }
        facts.note(web::CHAIN_BYTES, server.tls.then_some(server.chain));
        facts.note(web::VIA, server.via);
        facts.note(web::MAX_STREAMS, server.max_streams.filter(|_| http2).map(u64::from));
        facts.note(web::STREAM_WINDOW_BYTES, server.stream_window.filter(|_| http2));
        facts.note(web::SERVER, server.http1_program.filter(|_| !http2));
        facts.note(web::CONTENT_ENCODING, encoded.then_some("gzip"));
        let two_ways = self.servers[index].other_way.is_some();
        let used = variation.peers.get(&index).map(ToString::to_string);
        let usual = || if two_ways { Some(BY_IPV6.to_owned()) } else { self.peers[index].clone() };
        facts.note(web::PEER, used.or_else(usual));
        facts.note(web::OTHER_FAMILY, two_ways.then_some(BY_IPV4));
        facts.note(web::ONLY_FAMILY, (self.names_have_ipv4_only && !two_ways).then_some("IPv4"));
        facts.note(web::SEGMENT_BYTES, server.net.seen_segment(variation).map(u64::from));
        facts.note(web::LOOKUP_NS, server.net.lookup_ns);
        facts.note(web::DEAD_ADDRESSES_NS, (!server.net.dead.is_empty()).then_some(3 * SECOND_NS));
        let bytes_in = shown.bytes
            + server.head
            + if server.tls { 22.0 * shown.bytes / server.record } else { 0.0 }
            // A handshake that resumes a session brings no certificates.
            + if server.tls && !shown.resumed { (1.0 - shown.reused) * server.chain as f64 } else { 0.0 };
        TargetObservation {
            counted_per_op: Some(server.net.sent_again(connections, variation))
                .filter(|share| *share > 0.0)
                .map(|share| (web::counter::SENT_AGAIN.id(), share))
                .into_iter()
                .collect(),
            name: self.plan.targets[index].name.clone(),
            ok: if refused { 0 } else { ok },
            failed: if refused { ok } else { (ok as f64 * server.failing) as u64 },
            rate_per_s: (!refused).then_some(shown.rate * waiting_at_ends * scatter),
            service_mean_ns: (!refused).then_some(shown.service / scatter),
            phase_mean_ns: shown.phases.iter().map(|&(phase, ns)| (phase.id(), ns)).collect(),
            phase_profile,
            service_profile,
            body_bytes_per_op: Some(shown.bytes),
            bytes_in_per_op: Some(bytes_in),
            bytes_out_per_op: Some(REQUEST_BYTES + self.request_bytes()),
            generator_work_ns_per_op: self.our_byte_ns.map(|byte_ns| {
                OUR_WORK_NS + server.our_work + byte_ns * bytes_in + (1.0 - shown.reused) * OUR_CONNECTING_NS
            }),
            reused_share: Some(shown.reused),
            resumed_share: Some(if shown.resumed { 0.95 } else { 0.0 }),
            negotiated: Some(facts),
            slow_class: server.slow_ops.map(|(share, longer_ns)| SlowClass {
                ops: (share * ok as f64) as u64,
                of: ok,
                from_ns: (shown.service + longer_ns / 2.0) as Nanos,
                slow_ns: (shown.service + longer_ns) as Nanos,
                others_ns: shown.service as Nanos,
                adds_ns: share * longer_ns,
                adds_half_ns: 0.1 * share * longer_ns,
            }),
            connection_classes: (connections >= 4.0 && !http2 && !shown.new).then(|| {
                let slow = server
                    .slow_connections
                    .unwrap_or(SlowConnections { only_under_load: true, ..SlowConnections::of(0.0, 0.0) });
                slow.seen(shown.others_ns, variation.one_at_a_time || server.slow_connections.is_none())
            }),
            stalls: Some(stalls(self.stands_still(server, &shown, variation))),
            ..TargetObservation::default()
        }
    }

    /// The share of the time in which a server is seen to stand still: no longer than what stops it takes.
    fn stands_still(&self, server: &Server, shown: &Shown, variation: &Variation) -> f64 {
        let free = Server {
            quota: None,
            others: 0.0,
            stolen: 0.0,
            disk: 0.0,
            per_address: None,
            pauses: 0.0,
            ..server.clone()
        };
        let lost = 1.0 - shown.rate / self.show(&free, variation).rate;
        (server.pauses + server.seems_to_pause).min(lost).max(server.pauses)
    }

    fn pairs(&self, variation: &Variation, metric: Metric, dice: &mut Dice) -> Vec<PairVerdict> {
        let of = |index: usize| {
            let shown = self.show(self.reached(index, variation), variation);
            if metric == Metric::Rate { shown.rate } else { shown.alone_ns }
        };
        (1..self.servers.len())
            .map(|index| {
                let ratio = of(index) / of(0) * (self.noise * dice.normal()).exp();
                let half = 1.96 * self.noise * dice.between(0.8, 1.3);
                let (low, high) = (ratio * (-half).exp(), ratio * half.exp());
                let margin = 1.0 + self.plan.compare.margin;
                let more = if metric == Metric::Rate { Call::Faster } else { Call::Slower };
                let less = if metric == Metric::Rate { Call::Slower } else { Call::Faster };
                let call = match () {
                    () if low > margin => more,
                    () if high < 1.0 / margin => less,
                    () if low > 1.0 / margin && high < margin => Call::Equivalent,
                    () => Call::Unknown,
                };
                PairVerdict {
                    baseline: self.plan.targets[0].name.clone(),
                    target: self.plan.targets[index].name.clone(),
                    ..pair(metric, call, [ratio, low, high])
                }
            })
            .collect()
    }

    fn answer(&self, probe: Probe, dice: &mut Dice) -> ProbeOutcome {
        let once = probe.id.replace("-longer", "");
        let seen = self.elsewhere.iter().find_map(|(id, other)| (*id == once).then_some(other)).unwrap_or(self);
        if once == probe.id {
            return seen.answer_once(probe, dice);
        }
        // As much narrower as three times the slots make it.
        World { noise: seen.noise / 3f64.sqrt(), ..seen.clone() }.answer_once(probe, dice)
    }

    fn answer_once(&self, probe: Probe, dice: &mut Dice) -> ProbeOutcome {
        if let Some(later) = &self.later {
            return later.answer(probe, dice);
        }
        if self.unavailable.contains(&probe.id) || probe.below.is_some() {
            let unavailable = Some(NotMade::Because("B refused".to_owned()));
            return ProbeOutcome { unavailable, ..ProbeOutcome::of(probe) };
        }
        if let Some(target) = probe.lens_of {
            let lens = self.lenses.get(target).cloned().flatten();
            let unavailable = lens.is_none().then(|| NotMade::Because("it could not be loaded".to_owned()));
            return ProbeOutcome { lens, unavailable, ..ProbeOutcome::of(probe) };
        }
        let targets = (0..self.servers.len()).map(|index| self.observe(index, &probe.variation, dice)).collect();
        let pairs = self.pairs(&probe.variation, Metric::Rate, dice);
        let demands = if probe.reads_hosts {
            let of = |index| self.demand(self.reached(index, &probe.variation), &probe.variation);
            (0..self.servers.len()).map(of).collect()
        } else {
            vec![]
        };
        let doubt = |id, text: &str| Doubt { id, target: None, text: text.to_owned() };
        let doubts = [
            self.short_slots.then(|| doubt(DoubtId::ShortSlots, "1.0 requests in a slot")),
            self.gives_up.then(|| doubt(DoubtId::Unfinished, "9 requests were given up")),
        ];
        let doubts = doubts.into_iter().flatten().collect();
        let twin = self.of_twins.clone().filter(|_| probe.variation.twin.is_some());
        ProbeOutcome { targets, pairs, demands, twin, doubts, ..ProbeOutcome::of(probe) }
    }

    /// What a server's machine does in some slots.
    fn demand(&self, server: &Server, variation: &Variation) -> Option<HostDemand> {
        server.facts.as_ref()?;
        Some(machine::demand(server, &self.show(server, variation)))
    }

    pub fn verdict(&self, dice: &mut Dice) -> Verdict {
        let none = Variation::default();
        let open = matches!(self.plan.load.kind, LoopKind::Open { .. });
        let mut pairs = Vec::new();
        if open || self.rate_is_open {
            pairs.extend(self.pairs(&none, Metric::ResponseP50, dice));
        }
        pairs.extend(self.pairs(&none, Metric::Rate, dice));
        if self.rate_is_open {
            for pair in pairs.iter_mut().filter(|pair| pair.metric == Metric::Rate) {
                (pair.call, pair.low, pair.high) = (
                    Call::Unknown,
                    pair.ratio.map(|ratio| ratio.min(1.0) * 0.7),
                    pair.ratio.map(|ratio| ratio.max(1.0) * 1.3),
                );
            }
        }
        if open {
            // An offered rate that all of them sustain.
            for pair in pairs.iter_mut().filter(|pair| pair.metric == Metric::Rate) {
                (pair.call, pair.ratio, pair.low, pair.high) = (Call::Equivalent, Some(1.0), Some(1.0), Some(1.0));
            }
        }
        Verdict { pairs, ..Verdict::default() }
    }

    /// The loop of the laboratory; also holds every promise that holds for all worlds.
    pub fn explain(&self) -> Explanation {
        let explanation = self.explain_unrepeatable();
        explanation.findings.iter().for_each(|finding| self.assert_repeatable(finding));
        for finding in &explanation.findings {
            // What a line break in the source leaves behind.
            let texts = finding.evidence.iter().map(|line| &line.text).chain([&finding.summary, &finding.remedy]);
            texts.for_each(|text| assert!(!text.contains("  "), "{text}"));
        }
        explanation
    }

    /// The same where a machine tells what no command can be made of.
    pub fn explain_unrepeatable(&self) -> Explanation {
        let mut dice = Dice(self.seed);
        let verdict = self.verdict(&mut dice);
        let comparison: Vec<_> =
            (0..self.servers.len()).map(|index| self.observe(index, &Variation::default(), &mut dice)).collect();
        let first_contact: Vec<_> = comparison.iter().map(|seen| seen.negotiated.clone()).collect();
        let hosts: Vec<Option<Facts>> = self.servers.iter().map(machine::facts).collect();
        let mut outcomes: Vec<ProbeOutcome> = Vec::new();
        let mut below: Vec<Below<'_>> = Vec::new();
        let mut budget_left_ns = self.budget_ns;
        loop {
            let layers: Vec<_> = below.iter().map(|below| below.case(budget_left_ns)).collect();
            let case = Case {
                hosts: &hosts,
                twins: &self.twins,
                sources: self.sources.as_deref().map_err(String::as_str),
                round_ops: self.round_ops,
                outcomes: &outcomes,
                has_net_servers: self.paths.is_some(),
                below: &layers,
                budget_left_ns,
                ..Case::of(&self.plan, &verdict, &first_contact, &comparison)
            };
            let step = next_naming(&case, |_| true);
            assert_eq!(step, next_naming(&case, |_| true), "the same case, another answer");
            match step {
                Step::Conclude(explanation) => {
                    assert!(!explanation.findings.is_empty());
                    assert_eq!(explanation.probes, outcomes);
                    for finding in &explanation.findings {
                        assert!(!explanation.ruled_out.contains(&finding.cause), "{finding:#?}");
                        assert!(finding.explains.is_none_or(|share| (0.0..=1.0).contains(&share)), "{finding:#?}");
                        assert!(!finding.summary.is_empty() && !finding.remedy.is_empty());
                        assert!(!finding.evidence.is_empty(), "{finding:#?}");
                        let texts = || finding.evidence.iter().map(|line| &line.text).chain([&finding.summary]);
                        assert!(texts().all(|text| !text.contains("NaN") && !text.contains("inf")), "{finding:#?}");
                    }
                    return explanation;
                }
                Step::Probe(probe) => {
                    assert!(outcomes.iter().all(|outcome| outcome.probe.id != probe.id), "{} asked twice", probe.id);
                    assert!(probe.budget_ns <= budget_left_ns, "{} overdraws", probe.id);
                    assert!(outcomes.len() < 25, "no end");
                    budget_left_ns -= probe.budget_ns;
                    // Noise of its own for each probe: what is asked before, and by whom, does not change what it shows.
                    let mut dice = Dice(
                        self.seed ^ probe.id.bytes().fold(0u64, |sum, byte| sum.wrapping_mul(257) + u64::from(byte)),
                    );
                    let ground: Option<&dyn Ground> = match probe.below {
                        Some(Layer::Files) => self.below.as_ref().map(|disks| disks as _),
                        Some(Layer::Path) => self.paths.as_ref().map(|paths| paths as _),
                        None => None,
                    };
                    let outcome = match ground {
                        Some(ground) => Below::answer(&mut below, ground, probe, &mut dice),
                        None => self.answer(probe, &mut dice),
                    };
                    outcomes.push(outcome);
                }
            }
        }
    }

    /// The world and its mirror image, under several seeds and with time for all probes; the slow one is B, then A.
    #[track_caller]
    pub fn both_ways(&self, check: impl FnMut(&Explanation, &str)) {
        self.both_ways_under(6, check);
    }

    /// The same under so many seeds.
    #[track_caller]
    pub fn both_ways_under(&self, seeds: u64, mut check: impl FnMut(&Explanation, &str)) {
        let budget_ns = self.budget_ns.max(600 * SECOND_NS);
        for seed in 1..=seeds {
            let world = Self { seed, budget_ns, ..self.clone() };
            check(&world.explain(), "B");
            check(&Self { seed: seed + 100, ..world }.swapped().explain(), "A");
        }
    }

    /// Each evidence line of a cause that is named tells how to repeat it, unless it tells what was not measured.
    fn assert_repeatable(&self, finding: &Finding) {
        // Where a plan cannot be typed, nothing of it can.
        if finding.cause == "unknown" || self.plan.command().is_none() {
            return;
        }
        for line in &finding.evidence {
            let measured =
                !line.text.starts_with("not shown") && !line.text.starts_with("its libcrypto was not measured alone");
            assert!(line.repeat.is_some() == measured, "{}: {line:#?}", finding.cause);
            assert!(line.repeat.iter().all(|command| !command.contains(char::is_control)), "{line:#?}");
        }
    }

    pub fn swapped(mut self) -> Self {
        self.servers.reverse();
        self.peers.reverse();
        self.lenses.reverse();
        self.below.iter_mut().for_each(Disks::swap);
        self.paths.iter_mut().for_each(Paths::swap);
        self.later = self.later.map(|later| Box::new(later.swapped()));
        self.elsewhere = self.elsewhere.into_iter().map(|(id, world)| (id, world.swapped())).collect();
        let reached: Vec<_> =
            self.plan.targets.iter().rev().map(|target| (target.address.clone(), target.host.clone())).collect();
        for (target, (address, host)) in self.plan.targets.iter_mut().zip(reached) {
            (target.address, target.host) = (address, host);
        }
        self
    }
}

/// Cause and target of the findings, the best first.
pub fn named(explanation: &Explanation) -> Vec<(&str, Option<&str>)> {
    explanation.findings.iter().map(|finding| (finding.cause.as_str(), finding.target.as_deref())).collect()
}

pub fn open_loop(rate_per_s: f64) -> LoopKind {
    LoopKind::Open { rate_per_s, arrival: Arrival::Poisson }
}

/// Seen in 10 s of load, 60 ms each.
fn stalls(share: f64) -> TargetStalls {
    let (longest_ns, watched_ns) = (60 * MILLISECOND_NS, 10 * SECOND_NS);
    let count = (share * watched_ns as f64 / longest_ns as f64).ceil() as u64;
    TargetStalls {
        count,
        longest_ns: if count > 0 { longest_ns } else { 0 },
        watched_ns,
        share,
        share_half: 0.1 * share,
    }
}
