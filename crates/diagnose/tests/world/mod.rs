//! A small simulated world whose truth is known: servers with costs, and a laboratory that answers probes about them.

use duel_diagnose::{Case, Step, next};
use duel_model::{
    Arrival, Bound, Call, CertificateKey, ComparePlan, Explanation, HostDemand, HostFacts, HttpPlan, Known, LoadPlan,
    LoopKind, Metric, Nanos, Negotiated, PairVerdict, Phase, Plan, Probe, ProbeOutcome, SECOND_NS, Target,
    TargetObservation, Variation, Verdict, WorkloadPlan,
};

/// What a server costs. Times in ns of a CPU of factor 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    pub tls: bool,
    pub version: &'static str,
    pub cipher: &'static str,
    pub group: &'static str,
    pub key: (&'static str, u32),
    pub round_trip: f64,
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
    /// Time and what is left of the size.
    pub gzip: Option<(f64, f64)>,
    /// Bytes per second of each connection.
    pub cap: Option<f64>,
    pub has_chacha: bool,
    pub has_range: bool,
    pub resumes: bool,
    pub failing: f64,
    /// CPUs' worth of time that a quota allows.
    pub quota: Option<f64>,
    /// CPUs' worth of time that others take, with or without load.
    pub others: f64,
    /// CPU time per op in the kernel, and in other processes meanwhile.
    pub kernel: f64,
    pub outside: f64,
    /// Time per op at a disk that serves one request at a time.
    pub disk: f64,
    /// What two connections at a time cost each other, as in the universal scalability law.
    pub kappa: f64,
    /// What is read of its machine, if that is read.
    pub machine: Option<Machine>,
}

/// What is read of a server's machine beside what follows from its costs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Machine {
    pub facts: Vec<(&'static str, String)>,
    /// Growth per op, added to what follows from the costs; infinite: not counted.
    pub per_op: Vec<(&'static str, f64)>,
    pub gauges: Vec<(&'static str, f64)>,
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
            gzip: None,
            cap: None,
            has_chacha: true,
            has_range: true,
            resumes: true,
            failing: 0.0,
            quota: None,
            others: 0.0,
            kernel: 0.0,
            outside: 0.0,
            disk: 0.0,
            kappa: 0.0,
            machine: None,
        }
    }
}

#[derive(Debug, Clone)]
pub struct World {
    pub servers: Vec<Server>,
    pub plan: Plan,
    pub body: f64,
    /// Standard error of the log of a ratio; 0: exact, with an interval of no width.
    pub noise: f64,
    pub seed: u64,
    pub budget_ns: Nanos,
    /// Ids of probes that cannot be made.
    pub unavailable: Vec<String>,
    /// Ids of probes that are answered by another world: disturbed ones, or ones that reach other servers.
    pub elsewhere: Vec<(String, World)>,
    /// Where each server is reached.
    pub peers: Vec<Option<String>>,
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
            },
            compare: ComparePlan::default(),
        },
        servers: servers.to_vec(),
        body: 2_860_007.0,
        noise: 0.005,
        seed: 1,
        budget_ns: 60 * SECOND_NS,
        unavailable: Vec::new(),
        elsewhere: Vec::new(),
        peers: vec![None; servers.len()],
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
    pub rate: f64,
    pub service: f64,
    /// CPU time of the server per op, and the CPUs that it would use without a quota.
    pub busy_ns: f64,
    pub wants_cpus: f64,
    phases: Vec<(Phase, f64)>,
    bytes: f64,
    new: bool,
    resumed: bool,
    cipher: Option<&'static str>,
}

impl World {
    pub fn http(&mut self) -> &mut HttpPlan {
        match &mut self.plan.workload {
            WorkloadPlan::Http(http) => http,
            WorkloadPlan::Null => unreachable!(),
        }
    }

    pub fn http_ref(&self) -> &HttpPlan {
        match &self.plan.workload {
            WorkloadPlan::Http(http) => http,
            WorkloadPlan::Null => unreachable!(),
        }
    }

    pub fn show(&self, server: &Server, variation: &Variation) -> Shown {
        let http = self.http_ref();
        let connections = f64::from(variation.connections.unwrap_or(self.plan.load.connections));
        let accepts = variation.accept_encoding.as_ref().unwrap_or(&http.accept_encoding).is_some();
        let gzip = server.gzip.filter(|_| accepts);
        let new = !(variation.keepalive.unwrap_or(http.keepalive) && server.keeps);
        let resumed = variation.resumption.unwrap_or(http.tls.resumption) && server.resumes && new && server.tls;
        let forced = variation.ciphers.is_some();
        let cipher = server.tls.then_some(if forced { "TLS_CHACHA20_POLY1305_SHA256" } else { server.cipher });
        let mut bytes = match variation.range_bytes {
            Some(range) if server.has_range && gzip.is_none() => range as f64,
            _ => self.body,
        };
        let mut fixed = server.fixed;
        if let Some((ns, left)) = gzip {
            bytes *= left;
            fixed += ns;
        }
        let per_byte = server.per_byte
            + match cipher {
                Some(cipher) if cipher.contains("AES") => server.aes,
                Some(_) => server.chacha,
                None => 0.0,
            };
        let handshake = if new && server.tls { server.exchange + if resumed { 0.0 } else { server.sign } } else { 0.0 };
        let mut phases = Vec::new();
        if new {
            phases.push((Phase::Connect, server.round_trip));
            if server.tls {
                phases.push((Phase::Tls, server.round_trip + server.cpu * handshake));
            }
        }
        let elsewhere = server.outside + server.disk;
        fixed += server.kernel;
        phases.push((Phase::Wait, server.round_trip + server.delay + server.cpu * fixed + elsewhere));
        let sending = server.cpu * bytes * per_byte;
        phases.push((Phase::Receive, sending.max(server.cap.map_or(0.0, |cap| bytes / cap * 1e9))));
        let alone_ns: f64 = phases.iter().map(|(_, ns)| ns).sum();
        let busy_ns = server.cpu * (handshake + fixed + bytes * per_byte);
        let cores = server.cores - server.others;
        let by_disk = if server.disk > 0.0 { 1e9 / server.disk } else { f64::INFINITY };
        // A server and who runs on its behalf take turns on its CPUs.
        let free = (connections * 1e9 / alone_ns).min(cores * 1e9 / (busy_ns + server.outside)).min(by_disk)
            / (1.0 + server.kappa * connections * (connections - 1.0));
        let wants_cpus = free * busy_ns / 1e9;
        let rate = free.min(server.quota.map_or(f64::INFINITY, |quota| quota * 1e9 / busy_ns));
        let stretch = connections * 1e9 / rate / alone_ns;
        phases.iter_mut().for_each(|(_, ns)| *ns *= stretch);
        Shown { alone_ns, rate, service: alone_ns * stretch, busy_ns, wants_cpus, phases, bytes, new, resumed, cipher }
    }

    fn observe(&self, index: usize, variation: &Variation, dice: &mut Dice) -> TargetObservation {
        let server = &self.servers[index];
        let shown = self.show(server, variation);
        let scatter = (self.noise * dice.normal()).exp();
        let ok = 1_000;
        let refused = variation.ciphers.is_some() && server.tls && !server.has_chacha;
        let encoded = server.gzip.is_some()
            && variation.accept_encoding.as_ref().unwrap_or(&self.http_ref().accept_encoding).is_some();
        TargetObservation {
            name: self.plan.targets[index].name.clone(),
            ok: if refused { 0 } else { ok },
            failed: if refused { ok } else { (ok as f64 * server.failing) as u64 },
            rate_per_s: (!refused).then_some(shown.rate * scatter),
            service_mean_ns: (!refused).then_some(shown.service / scatter),
            phase_mean_ns: shown.phases.into_iter().collect(),
            body_bytes_per_op: Some(shown.bytes),
            bytes_in_per_op: Some(shown.bytes + 300.0),
            reused_share: Some(if shown.new { 0.0 } else { 0.97 }),
            resumed_share: Some(if shown.resumed { 0.95 } else { 0.0 }),
            negotiated: Some(Negotiated {
                tls: server.tls.then(|| server.version.to_owned()),
                cipher: shown.cipher.map(str::to_owned),
                group: server.tls.then(|| server.group.to_owned()),
                certificate_key: server
                    .tls
                    .then(|| CertificateKey { algorithm: server.key.0.to_owned(), bits: Some(server.key.1) }),
                content_encoding: encoded.then(|| "gzip".to_owned()),
                keeps_alive: Some(!shown.new),
                body_bytes: Some(shown.bytes as u64),
                peer: self.peers[index].clone(),
                ..Negotiated::default()
            }),
            ..TargetObservation::default()
        }
    }

    fn pairs(&self, variation: &Variation, metric: Metric, dice: &mut Dice) -> Vec<PairVerdict> {
        let of = |index: usize| {
            let shown = self.show(&self.servers[index], variation);
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
                    metric,
                    call,
                    ratio: Some(ratio),
                    low: Some(low),
                    high: Some(high),
                    confidence: 0.95,
                    slots: 24,
                }
            })
            .collect()
    }

    fn answer(&self, probe: Probe, dice: &mut Dice) -> ProbeOutcome {
        if let Some((_, other)) = self.elsewhere.iter().find(|(id, _)| *id == probe.id) {
            return other.answer(probe, dice);
        }
        if self.unavailable.contains(&probe.id) {
            let unavailable = Some("B refused".to_owned());
            return ProbeOutcome {
                probe,
                pairs: vec![],
                targets: vec![],
                demands: vec![],
                doubts: vec![],
                unavailable,
            };
        }
        let targets = (0..self.servers.len()).map(|index| self.observe(index, &probe.variation, dice)).collect();
        let pairs = self.pairs(&probe.variation, Metric::Rate, dice);
        let demands = if probe.reads_hosts {
            self.servers.iter().map(|server| self.demand(server, &probe.variation)).collect()
        } else {
            vec![]
        };
        ProbeOutcome { targets, pairs, demands, doubts: vec![], unavailable: None, probe }
    }

    /// What is known of each machine.
    fn hosts(&self) -> Vec<Option<HostFacts>> {
        let facts = |server: &Server| {
            let machine = server.machine.as_ref()?;
            let quota = server.quota.map_or_else(|| "none".to_owned(), |cpus| format!("{cpus:.3}"));
            let last = server.cores.ceil() as u32 - 1;
            let mut facts = HostFacts::default();
            let usual = [
                ("process.tracer", "none".to_owned()),
                ("process.count", "1".to_owned()),
                ("process.pid", "4711".to_owned()),
                ("process.cpus_allowed", format!("0-{last}")),
                ("cpu.online", "0-127".to_owned()),
                ("cpu.model", "Some CPU".to_owned()),
                ("clock.source", "tsc".to_owned()),
                ("cgroup.cpu_quota_cpus", quota),
                ("cgroup.memory_limit_bytes", "none".to_owned()),
            ];
            for (key, value) in usual.into_iter().chain(machine.facts.iter().cloned()) {
                facts.0.insert(key.to_owned(), Known::Value(value));
            }
            Some(facts)
        };
        self.servers.iter().map(facts).collect()
    }

    /// What a server's machine did in ten seconds of load and half a second of reading.
    fn demand(&self, server: &Server, variation: &Variation) -> Option<HostDemand> {
        let machine = server.machine.as_ref()?;
        let shown = self.show(server, variation);
        let (load_s, all_s) = (10.0, 10.5);
        let ops = shown.rate * load_s;
        let kernel_ns = server.cpu * server.kernel;
        let system_ns = 0.4 * (shown.busy_ns - kernel_ns) + kernel_ns;
        let user_ns = shown.busy_ns - system_ns;
        let run = shown.rate * shown.busy_ns / 1e9;
        let cpus = server.cores.ceil();
        let mut growth = std::collections::BTreeMap::new();
        let mut count = |key: &str, value: f64| {
            *growth.entry(key.to_owned()).or_insert(0.0) += value;
        };
        for cpu in 0..cpus as u32 {
            count(
                &format!("cpu.{cpu}.user_ns"),
                (ops * (user_ns + server.outside) + server.others * 1e9 * all_s) / cpus,
            );
            count(&format!("cpu.{cpu}.system_ns"), ops * system_ns / cpus);
            count(&format!("cpu.{cpu}.nice_ns"), 0.0);
            count(&format!("cpu.{cpu}.steal_ns"), 0.0);
            let busy_ns = ops * (shown.busy_ns + server.outside) + server.others * 1e9 * all_s;
            count(&format!("cpu.{cpu}.busy_ns"), busy_ns / cpus);
            count("cpu.busy_ns", busy_ns / cpus);
        }
        count("cpu.switches", 4.0 * ops);
        count("process.user_ns", ops * user_ns);
        count("process.system_ns", ops * system_ns);
        count("process.cpu_ns", ops * shown.busy_ns);
        count("process.major_faults", 0.0);
        count("cgroup.cpu_ns", ops * shown.busy_ns);
        // It stands still for as much of the time as it runs less than it would.
        let still = if shown.wants_cpus > 0.0 { 1.0 - run / shown.wants_cpus } else { 0.0 };
        let held_back_ns = still.max(0.0) * shown.wants_cpus.max(1.0) * 1e9 * load_s;
        count("cgroup.throttled_ns", held_back_ns);
        // Eight threads wait while the group is held back; and one for each CPU that somebody else keeps from it, the more
        // often the closer it comes to what is left.
        let left = (server.cores - server.others).max(1e-9);
        let waits = server.others * (40.0 * (run / left) - 39.0).clamp(0.0, 1.0);
        count("workers.wait_ns", 8.0 * held_back_ns + waits * 1e9 * load_s);
        for thread in 0..cpus as u32 {
            count(&format!("thread.{}.run_ns", 4711 + thread), ops * shown.busy_ns / cpus);
        }
        count("workers.voluntary_switches", 2.0 * ops);
        count("workers.read_calls", 2.0 * ops);
        count("workers.write_calls", ops);
        count("memory.refaults_file", 0.0);
        count("memory.swapped_in_bytes", 0.0);
        count("cgroup.memory_limit_hits", 0.0);
        count("disk.sda.busy_ns", server.disk * ops);
        for (key, per_op) in &machine.per_op {
            count(key, per_op * ops);
        }
        growth.retain(|_, value| value.is_finite());
        let running = 1.0 + server.others;
        let gauges =
            [("cpu.running", running), ("process.threads", 8.0)].into_iter().chain(machine.gauges.iter().copied());
        Some(HostDemand {
            ops: ops.round() as u64,
            elapsed_ns: (all_s * 1e9) as Nanos,
            growth: growth.into_iter().map(|(key, value)| (key, value.round() as u64)).collect(),
            gauges: gauges.map(|(key, value)| (key.to_owned(), value)).collect(),
            spans: 6,
        })
    }

    pub fn verdict(&self, dice: &mut Dice) -> Verdict {
        let none = Variation::default();
        let open = matches!(self.plan.load.kind, LoopKind::Open { .. });
        let mut pairs = if open { self.pairs(&none, Metric::ResponseP50, dice) } else { Vec::new() };
        pairs.extend(self.pairs(&none, Metric::Rate, dice));
        if open {
            // An offered rate that all of them sustain.
            for pair in pairs.iter_mut().filter(|pair| pair.metric == Metric::Rate) {
                (pair.call, pair.ratio, pair.low, pair.high) = (Call::Equivalent, Some(1.0), Some(1.0), Some(1.0));
            }
        }
        Verdict { pairs, doubts: Vec::new() }
    }

    /// The loop of the laboratory; also holds every promise that holds for all worlds.
    pub fn explain(&self) -> Explanation {
        let mut dice = Dice(self.seed);
        let verdict = self.verdict(&mut dice);
        let comparison: Vec<_> =
            (0..self.servers.len()).map(|index| self.observe(index, &Variation::default(), &mut dice)).collect();
        let first_contact: Vec<_> = comparison.iter().map(|seen| seen.negotiated.clone()).collect();
        let hosts = self.hosts();
        let mut outcomes: Vec<ProbeOutcome> = Vec::new();
        let mut budget_left_ns = self.budget_ns;
        loop {
            let case = Case {
                plan: &self.plan,
                verdict: &verdict,
                first_contact: &first_contact,
                comparison: &comparison,
                hosts: &hosts,
                outcomes: &outcomes,
                budget_left_ns,
            };
            let step = next(&case);
            assert_eq!(step, next(&case), "the same case, another answer");
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
                    assert!(outcomes.len() < 20, "no end");
                    budget_left_ns -= probe.budget_ns;
                    outcomes.push(self.answer(probe, &mut dice));
                }
            }
        }
    }

    pub fn swapped(mut self) -> Self {
        self.servers.reverse();
        self.peers.reverse();
        self.elsewhere = self.elsewhere.into_iter().map(|(id, world)| (id, world.swapped())).collect();
        let addresses: Vec<_> = self.plan.targets.iter().rev().map(|target| target.address.clone()).collect();
        for (target, address) in self.plan.targets.iter_mut().zip(addresses) {
            target.address = address;
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
