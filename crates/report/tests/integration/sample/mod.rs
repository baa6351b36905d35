//! Runs made of plain arithmetic: the same each time, in the shape that the generator gives them.

pub mod factors;

use duel_model::web::{self, failure, phase};
use duel_model::*;
use std::collections::BTreeMap;

/// How a target behaves.
#[derive(Debug, Clone)]
pub struct Server {
    pub name: String,
    pub address: String,
    /// Ok ops per slot of one second.
    pub ok: u64,
    pub failed: BTreeMap<Id, u64>,
    /// Median time of each phase, ns, with the share of ops that go through it.
    pub phases: Vec<(Phase, u64, f64)>,
    pub negotiated: Option<Facts>,
}

pub fn server(name: &str, address: &str, ok: u64, tls_ns: u64) -> Server {
    Server {
        name: name.into(),
        address: address.into(),
        ok,
        failed: BTreeMap::new(),
        phases: vec![
            (phase::CONNECT, 310_000, 1.0),
            (phase::TLS, tls_ns, 1.0),
            (phase::SEND, 21_000, 1.0),
            (phase::WAIT, 1_450_000, 1.0),
            (phase::RECEIVE, tls_ns / 3, 1.0),
        ],
        negotiated: Some(negotiated()),
    }
}

pub fn negotiated() -> Facts {
    Facts::default()
        .with(web::HTTP_VERSION, "HTTP/1.1")
        .with(web::TLS_VERSION, "1.3")
        .with(web::TLS_CIPHER, "TLS_AES_256_GCM_SHA384")
        .with(web::TLS_GROUP, "x25519")
        .with(web::TLS_ALPN, "http/1.1")
        .with(web::CERTIFICATE_KEY, "RSA-2048")
        .with(web::SERVER, "nginx/1.24.0")
        .with(web::STATUS, 200)
        .with(web::CONTENT_TYPE, "text/plain")
        .with(web::BODY_BYTES, 65_536)
        .with(web::KEEPS_ALIVE, true)
}

/// A run of `blocks` ABBA blocks, each slot about a second long.
pub fn run(servers: &[Server], blocks: u32) -> Run {
    let mut slots = Vec::new();
    let mut random = Random(17);
    for (target, server) in servers.iter().enumerate() {
        // Neither warm-up nor probes are to be summed up.
        for role in [SlotRole::Warmup, SlotRole::Probe("cipher-chacha20".into())] {
            slots.push(slot(server, target, role, 0, 0, slots.len() as u32, &mut random));
        }
    }
    for block in 0..blocks {
        let order = (0..servers.len()).map(|t| (t, 0)).chain((0..servers.len()).rev().map(|t| (t, 1)));
        for (target, repeat) in order {
            let index = slots.len() as u32;
            slots.push(slot(&servers[target], target, SlotRole::Measured, block, repeat, index, &mut random));
        }
    }
    Run {
        id: "20261120-233200-7f3a".into(),
        started_unix_ms: 1_795_217_520_000,
        plan: plan(
            servers.iter().map(|s| Target { name: s.name.clone(), address: s.address.clone(), host: None }).collect(),
        ),
        versions: Versions {
            duel: "0.1.0".into(),
            os: "Linux 6.18".into(),
            arch: "x86_64".into(),
            cpus: 4,
            tls: "rustls 0.23 with aws-lc-rs".into(),
            event_loop: "epoll".into(),
        },
        slots,
        first_contact: servers.iter().map(|s| s.negotiated.clone()).collect(),
        status: RunStatus::Complete,
        doubts: vec![],
        hosts: Vec::new(),
        explanation: None,
        waiting: None,
    }
}

pub fn plan(targets: Vec<Target>) -> Plan {
    Plan {
        targets,
        workload: WorkloadPlan::Http(Box::new(HttpPlan { keepalive: false, ..HttpPlan::default() })),
        load: LoadPlan {
            connections: 64,
            threads: 2,
            bound: Bound::Duration(10 * SECOND_NS),
            connect_timeout_ns: 5 * SECOND_NS,
            op_timeout_ns: 20 * SECOND_NS,
            busy_poll: duel_model::BusyPoll::Never,
            ..LoadPlan::default()
        },
        compare: ComparePlan { seed: 42, ..ComparePlan::default() },
        factors: vec![],
    }
}

fn slot(
    server: &Server,
    target: usize,
    role: SlotRole,
    block: u32,
    repeat: u32,
    index: u32,
    random: &mut Random,
) -> Slot {
    const INTERVAL: Nanos = 100 * MILLISECOND_NS;
    let ok = if server.ok == 0 { 0 } else { server.ok + random.below(server.ok / 50 + 1) };
    let failed: u64 = server.failed.values().sum();
    let elapsed_ns = SECOND_NS + random.below(12 * MILLISECOND_NS);
    let mut tally = Tally {
        started: ok + failed,
        ok,
        failed: server.failed.clone(),
        bytes_in: ok * 66_000,
        bytes_out: ok * 120,
        body_bytes: ok * 65_536,
        connections: ok,
        statuses: if ok > 0 { BTreeMap::from([(200, ok)]) } else { BTreeMap::new() },
        failure_examples: (web::SCHEMA.in_order(server.failed.keys().copied()).iter())
            .map(|kind| format!("{kind} after 1.2 ms"))
            .collect(),
        ..Tally::default()
    };
    if ok > 0 {
        let mut total = 0;
        for &(phase, median_ns, share) in &server.phases {
            let ops = (ok as f64 * share) as u64;
            tally.phases.insert(phase.id(), spread(median_ns, ops));
            total += (median_ns as f64 * share) as u64;
        }
        tally.response = spread(total + total / 20, ok);
        tally.service = spread(total, ok);
    }
    let intervals = (0..=(elapsed_ns / INTERVAL))
        .map(|i| {
            let whole = i < elapsed_ns / INTERVAL;
            let share = if whole { ok / 10 + random.below(ok / 100 + 1) } else { ok / 400 };
            Interval { ok: share, failed: if i % 4 == 3 { failed / 3 } else { 0 }, ..Interval::default() }
        })
        .collect();
    Slot {
        index,
        block,
        repeat,
        started_unix_ms: 1_795_217_520_000 + i64::from(index) * 1_000,
        offset_ns: u64::from(index) * SECOND_NS,
        elapsed_ns,
        tally,
        series: Series { interval_ns: INTERVAL, intervals },
        audit: GeneratorAudit {
            descriptors_open: Some(140),
            local_ports: Some(28_232),
            workers: (0..2)
                .map(|worker| WorkerAudit {
                    cpu_ns: Some(420_000_000 + worker * 30_000_000),
                    wall_ns: elapsed_ns,
                    schedule_lag: spread(4_000, ok),
                    loop_lag: spread(31_000, ok * 2),
                    silent_lanes: Some(0),
                    standstill: Standstill::default(),
                    polling_ns: 90_000_000,
                    sleeps: Some(ok / 4),
                    notice_lag: spread(3_000, ok),
                    ..WorkerAudit::default()
                })
                .collect(),
            descriptor_limit: Some(65_536),
            cpus: Some(4),
        },
        negotiated: server.negotiated.clone().map(|mut seen| {
            seen.0.retain(|name, _| name != web::STATUS && name != web::BODY_BYTES);
            seen
        }),
        ..Slot::empty(target, role)
    }
}

/// A right-skewed distribution around a median: 40 buckets from half of it to seven times.
pub fn spread(median_ns: u64, ops: u64) -> Distribution {
    if ops == 0 {
        return Distribution::default();
    }
    let mut left = ops;
    let mut buckets = Vec::new();
    let mut sum = 0_u128;
    for i in 0..40_u64 {
        // Triangular weights to the median (bucket 10), then a falling tail.
        let weight = if i <= 10 { (i + 1) as f64 / 132.0 } else { 0.072 * 0.86_f64.powi(i as i32 - 10) };
        let n = if i == 39 { left.min(1) } else { ((ops as f64 * weight) as u64).min(left) };
        let value = (median_ns as f64 * (0.5 + i as f64 * 0.05 + (i as f64 / 20.0).powi(6) * 0.09)) as u64 + i;
        left -= n;
        sum += u128::from(value) * u128::from(n);
        buckets.push((value, n));
    }
    // What rounding left over is at the median.
    buckets[10].1 += left;
    sum += u128::from(buckets[10].0) * u128::from(left);
    let used: Vec<_> = buckets.iter().filter(|(_, n)| *n > 0).collect();
    let (min, max) = (used[0].0, used[used.len() - 1].0);
    Distribution::from_buckets(buckets, sum, min, max)
}

pub fn pair(target: &str, metric: Metric, call: Call, figures: Option<[f64; 3]>) -> PairVerdict {
    PairVerdict {
        baseline: "A".into(),
        target: target.into(),
        metric,
        call,
        ratio: figures.map(|f| f[0]),
        low: figures.map(|f| f[1]),
        high: figures.map(|f| f[2]),
        confidence: 0.95,
        slots: 24,
        by_whole: false,
    }
}

pub fn doubt(id: DoubtId, target: Option<&str>, text: &str) -> Doubt {
    Doubt { id, target: target.map(str::to_owned), text: text.into() }
}

/// A is three times as fast as B, because TLS is.
pub fn slower() -> (Run, Verdict) {
    let mut b = server("B", "https://freebsd.example/64k", 1_353, 9_300_000);
    b.negotiated = Some(negotiated().with(web::SERVER, "nginx/1.26.2"));
    b.failed = BTreeMap::from([(failure::TIMEOUT.id(), 1), (failure::RESET.id(), 2)]);
    let run = run(&[server("A", "https://ubuntu.example/64k", 4_115, 1_100_000), b], 6);
    let verdict = Verdict {
        pairs: vec![
            pair("B", Metric::Rate, Call::Slower, Some([1.0 / 3.04, 1.0 / 3.11, 1.0 / 2.97])),
            pair("B", Metric::ResponseP50, Call::Slower, Some([4.31, 4.22, 4.4])),
            pair("B", Metric::ResponseP99, Call::Slower, Some([4.29, 4.01, 4.52])),
        ],
        doubts: vec![
            doubt(DoubtId::Errors, Some("B"), "36 of 16,478 requests to B failed (0.2 %)"),
            doubt(
                DoubtId::DifferentNegotiation,
                None,
                "the targets do not name the same server software, which is no proof that the software differs in \
                 anything else, but worth a look before the machines are blamed",
            ),
        ],
        ..Verdict::default()
    };
    (run, verdict)
}

/// What is told of B first.
pub fn headline(kind: HeadlineKind, text: &str) -> Headline {
    Headline { kind, target: "B".into(), share: (kind != HeadlineKind::TargetDied).then_some(0.2), text: text.into() }
}

/// A keeps its promise up to 1,000 per second, and B up to 400.
pub fn searched() -> (Run, Verdict) {
    let names = [("A", "https://ubuntu.example/64k", 1_000.0), ("B", "https://freebsd.example/64k", 400.0)];
    let servers = names.map(|(name, address, _)| server(name, address, 900, 2_000_000));
    let mut run = run(&servers, 0);
    run.plan.load.kind = LoopKind::Open { rate_per_s: 0.0, arrival: Arrival::Constant };
    run.plan.load.bound = Bound::Duration(200 * SECOND_NS);
    let promises = Promise::parse_all("p99<200ms,errors<0.1%").unwrap_or_default();
    run.plan.load.shape.search = Some(SearchPlan { promises: promises.clone(), precision: SearchPlan::PRECISION });
    let mut random = Random(5);
    let mut searches = Vec::new();
    for (target, (_, _, capacity)) in names.into_iter().enumerate() {
        let mut attempts = Vec::new();
        for share in [0.9, 1.125, 1.006, 1.02, 1.02, 1.0, 1.0] {
            let (index, rate_per_s) = (run.slots.len() as u32, capacity * share);
            let mut slot =
                slot(&servers[target], target, SlotRole::Search, attempts.len() as u32, 0, index, &mut random);
            slot.offered_per_s = Some(rate_per_s);
            let is_kept = share <= 1.006;
            slot.tally.response =
                spread(if is_kept { (4e6 / (1.1 - share)) as u64 } else { 400_000_000 }, slot.tally.ok);
            let figure = slot.tally.response.quantile_ns(0.99).map(|ns| ns as f64);
            attempts.push(Attempt {
                slot: index,
                rate_per_s,
                outcome: if is_kept { AttemptOutcome::Kept } else { AttemptOutcome::Broken },
                figures: vec![figure, Some(0.0)],
                broken: if is_kept { vec![] } else { vec![0] },
                backlog_growth: Some((share - 1.0_f64).max(0.0)),
                fell_behind: !is_kept,
            });
            run.slots.push(slot);
        }
        searches.push(RateSearch {
            target,
            promises: promises.clone(),
            attempts,
            kept_per_s: Some(1.006 * capacity),
            broken_per_s: Some(1.02 * capacity),
            end: SearchEnd::Found,
        });
    }
    let heads = HeadToHead { rate_per_s: 640.6, baseline_alone: 8, target_alone: 0, alike: 1 };
    let contests = vec![Contest {
        baseline: "A".into(),
        target: "B".into(),
        call: Call::Slower,
        ratio: Some(0.4),
        low: Some(0.394_5),
        high: Some(0.405_6),
        head_to_head: Some(heads),
    }];
    (run, Verdict { searches, contests, ..Verdict::default() })
}

/// Both went through three stages twice; B falls behind in the second of them.
pub fn staged() -> (Run, Verdict) {
    let servers = [
        server("A", "https://ubuntu.example/64k", 900, 2_000_000),
        server("B", "https://freebsd.example/64k", 700, 9_000_000),
    ];
    let mut run = run(&servers, 2);
    let stages = Stage::parse_all("300ms@500,400ms@500..1500,300ms@500").unwrap_or_default();
    run.plan.load.kind = LoopKind::Open { rate_per_s: Stage::mean_of(&stages), arrival: Arrival::Constant };
    run.plan.compare.max_load_ns = 4 * SECOND_NS;
    for slot in run.slots.iter_mut().filter(|slot| slot.role == SlotRole::Measured) {
        let is_slow = slot.target == 1;
        let tally = |due: u64, behind: u64| StageTally {
            due,
            ok: due - behind,
            ended_ok: due - behind,
            unstarted: behind,
            response: spread(if is_slow { 18_000_000 } else { 4_000_000 } * (1 + behind / 10), due - behind),
            ..StageTally::default()
        };
        slot.tally.stages = vec![tally(150, 0), tally(400, if is_slow { 90 } else { 0 }), tally(150, 0)];
        for (place, interval) in slot.series.intervals.iter_mut().enumerate() {
            let mean_ns = if is_slow { 18_000_000 } else { 4_000_000 } * (1 + place as u64 % 5);
            (interval.response_sum_ns, interval.response_max_ns) = (interval.ok * mean_ns, 3 * mean_ns);
        }
    }
    let contrasts = (0..3).flat_map(|stage| {
        [(Metric::Rate, 0.9), (Metric::ResponseP50, 4.5), (Metric::ResponseP99, 6.0)].map(|(metric, ratio)| {
            StageContrast {
                baseline: "A".into(),
                target: "B".into(),
                stage,
                metric,
                ratio: Some(ratio),
                low: Some(0.96 * ratio),
                high: Some(1.04 * ratio),
                confidence: 0.95,
                pairs: 6,
            }
        })
    });
    let stages_compared = contrasts.collect();
    run.plan.load.shape.stages = stages;
    let pairs = vec![pair("B", Metric::ResponseP50, Call::Slower, Some([4.5, 4.3, 4.7]))];
    (run, Verdict { pairs, stages: stages_compared, ..Verdict::default() })
}

/// [`slower`] with the machines of both: A's was read to the end, B's was lost on the way.
pub fn watched() -> (Run, Verdict) {
    let (mut run, verdict) = slower();
    let a = machine(&[3_900, 9_000, 14_000, 19_000, 24_000, 28_200]);
    let mut b = machine(&[3_900, 9_000, 15_300]);
    b.how = "over ssh to b".into();
    b.facts.0.insert("cpu.model".into(), "Other\u{1b}[2J CPU".into());
    // Its server was started anew on the way, and one counter is not read any more.
    b.samples[2].counted_by.insert("process.".into(), "99@7".into());
    b.samples[2].counters.remove("tcp.retransmitted_segments");
    b.lost = Some("the host did not answer within 10 s over ssh to b".into());
    b.last_words = (0..30_u64)
        .map(|n| KernelLine {
            uptime_ns: (n != 20).then_some((495 + n) * SECOND_NS),
            level: Some(if n == 29 { 1 } else { 6 }),
            text: format!(
                "line {n} of the kernel\u{1b}[31m's log, which is as long as such lines are, {}",
                "on and ".repeat(n as usize % 4)
            ),
        })
        .collect();
    run.hosts = vec![Some(a), Some(b)];
    (run, verdict)
}

/// A machine that was read at these times, in ms since the run began.
fn machine(at_ms: &[u64]) -> HostRecord {
    let known = |value: &str| Known::from(value.to_owned());
    let facts = [
        ("cpu.model", known("Some CPU")),
        ("memory.total_bytes", known("8589934592")),
        ("cgroup.memory_limit_bytes", known("none")),
        ("cpu.governor", Known::Unavailable("the host does not tell".into())),
        ("redfish.temperature.CPU1.c", known("41")),
        ("redfish.after.temperature.CPU1.c", known("62.5")),
    ];
    let sample = |&ms: &u64| HostSample {
        unix_ms: 1_795_217_520_000 + ms as i64,
        asked_ns: 7 * SECOND_NS + ms * MILLISECOND_NS - 2_000_000,
        arrived_ns: 7 * SECOND_NS + ms * MILLISECOND_NS,
        uptime_ns: Some(500 * SECOND_NS + ms * MILLISECOND_NS),
        counters: [
            ("cpu.busy_ns", 1_000_000 * ms),
            ("cpu.0.user_ns", 500_000 * ms),
            ("process.cpu_ns", 700_000 * ms),
            ("tcp.retransmitted_segments", 5),
            ("thread.12.run_ns", 600_000 * ms),
            ("worker.12.cpu_ns", 600_000 * ms),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into(),
        gauges: [("load.1m", ms as f64 / 1e4), ("cpu.0.mhz", 2000.0)]
            .map(|(key, value)| (key.to_owned(), value))
            .into(),
        counted_by: [("process.", "12@7"), ("thread.12.", "7")]
            .map(|(key, who)| (key.to_owned(), who.to_owned()))
            .into(),
    };
    HostRecord {
        how: "on this machine".into(),
        facts: Facts(facts.map(|(key, known)| (key.to_owned(), known)).into()),
        samples: at_ms.iter().map(sample).collect(),
        watched_from_uptime_ns: Some(503 * SECOND_NS),
        ..HostRecord::default()
    }
}

fn probe(id: &str, question: &str, variation: Variation) -> Probe {
    Probe {
        id: id.into(),
        question: question.into(),
        variation,
        budget_ns: 8 * SECOND_NS,
        takes_all: false,
        reads_hosts: false,
        lens_of: None,
        below: None,
    }
}

/// Why B of [`slower`] is slower.
pub fn explained() -> Explanation {
    let outcome = |id: &str, question: &str, unavailable: Option<&str>| ProbeOutcome {
        unavailable: unavailable.map(|why| NotMade::Because(why.to_owned())),
        ..ProbeOutcome::of(probe(id, question, Variation::default()))
    };
    Explanation {
        findings: vec![
            Finding {
                cause: "tls.aes-unused".into(),
                target: Some("B".into()),
                confidence: Confidence::Likely,
                explains: Some(0.97),
                summary: "B encrypts AES without the processor's AES instructions: with ChaCha20, which does not need \
                          them, the gap is gone."
                    .into(),
                evidence: vec![
                    Evidence::new(
                        "comparison",
                        "89 % of the gap sits in the TLS handshake and in receiving, which grow with the bytes encrypted",
                        None,
                    ),
                    Evidence::new(
                        "cipher-chacha20",
                        "with TLS_CHACHA20_POLY1305_SHA256 B is 1.03x slower instead of 3.04x",
                        Some(
                            "duel A=https://ubuntu.example/64k B=https://freebsd.example/64k --cipher \
                             TLS_CHACHA20_POLY1305_SHA256"
                                .into(),
                        ),
                    ),
                ],
                remedy: "See which libcrypto the server process on B maps, and whether OPENSSL_ia32cap hides the AES \
                         instructions from it."
                    .into(),
                leads: Leads::default(),
            },
            Finding {
                cause: "http.chunked".into(),
                target: None,
                confidence: Confidence::Possible,
                explains: None,
                summary: "Both answer in chunks.".into(),
                evidence: vec![],
                remedy: String::new(),
                leads: Leads::default(),
            },
        ],
        ruled_out: [
            "http.compression",
            "net.latency",
            "tls.certificate-size",
            "tls.no-resumption",
            "http.no-keepalive",
        ]
        .map(str::to_owned)
        .to_vec(),
        probes: vec![
            outcome("cipher-chacha20", "Does the gap depend on AES?", None),
            outcome("range-1k", "Does the gap grow with the size?", Some("B does not honour Range")),
        ],
    }
}

/// Leads of each kind, and more of them than are shown.
pub fn leads() -> Leads {
    let class = SlowClass {
        ops: 51,
        of: 1_000,
        from_ns: 7_600_000,
        slow_ns: 51_200_000,
        others_ns: 1_050_000,
        adds_ns: 2_557_650.0,
        adds_half_ns: 210_000.0,
    };
    let text =
        "over one connection: 5.1 % of the requests to B take 51.2 ms (the others 1.05 ms) and add 2.56 ms to the mean";
    let slow_ops = SlowOps {
        probe: "alone".into(),
        target: "B".into(),
        class,
        of_other: None,
        share_of_gap: Some(0.98),
        text: text.into(),
    };
    let differs = |name: &str, kind, slow: &str, fast: &str, look: Option<&str>| Difference {
        name: name.into(),
        kind,
        slow: slow.into(),
        fast: fast.into(),
        text: format!("{name}: {slow} on B, {fast} on A"),
        look: look.map(str::to_owned),
    };
    let fact = |name: &str| differs(name, DifferenceKind::Fact, "yes <b>", "no", None);
    Leads {
        slow_ops: Some(slow_ops),
        differences: vec![
            differs(
                "process.asleep",
                DifferenceKind::Asleep,
                "20 \u{b5}s",
                "19 \u{b5}s",
                Some("timeout 10 strace -c -f -w -p 71"),
            ),
            differs("process.user_ns", DifferenceKind::Time, "2 ms", "1 ms", Some("perf top -p 71")),
            differs("process.major_faults", DifferenceKind::Count, "1", "0", None),
            fact("vm.swappiness"),
            fact("os.kernel"),
            fact("os.arch"),
            fact("cpu.model"),
        ],
        unread: vec![Unread {
            target: "A".into(),
            option: "--ssh A=ubuntu.example".into(),
            causes: vec!["http.few-workers".into()],
            text:
                "the machine of A was not read: with --ssh A=ubuntu.example duel could have looked for http.few-workers"
                    .into(),
        }],
    }
}

/// What `--why` answers, with a probe of each kind: one that was made, with pairs, observations, a doubt and a command,
/// and one that could not be; and a finding of each confidence.
pub fn why() -> Explanation {
    let variation = Variation { ciphers: Some(vec!["TLS_CHACHA20_POLY1305_SHA256".into()]), ..Variation::default() };
    let observation = |target: &str, service_mean_ns: f64| TargetObservation {
        name: target.into(),
        ok: 400,
        service_mean_ns: Some(service_mean_ns),
        ..TargetObservation::default()
    };
    let made = ProbeOutcome {
        pairs: vec![pair("B", Metric::Rate, Call::Equivalent, Some([0.998, 0.991, 1.006]))],
        targets: vec![observation("A", 11_000_000.0), observation("B", 11_022_000.0)],
        doubts: vec![doubt(DoubtId::GeneratorSaturated, None, "with ChaCha20 a worker used 97 % of its CPU")],
        ..ProbeOutcome::of(probe("cipher-chacha20", "Does the gap depend on AES?", variation))
    };
    let variation = Variation { range_bytes: Some(1), ..Variation::default() };
    let not_made = ProbeOutcome {
        unavailable: Some(NotMade::Because("B answers a request for one byte with all of them".into())),
        ..ProbeOutcome::of(probe("range-1", "Is the gap paid per byte?", variation))
    };
    let finding = |cause: &str, confidence, explains, evidence| Finding {
        cause: cause.into(),
        target: Some("B".into()),
        confidence,
        explains,
        summary: format!("What {cause} means for B, in a sentence that is long enough to be broken into two lines."),
        evidence,
        remedy: "What to try next.".into(),
        leads: Leads::default(),
    };
    let evidence =
        |probe: &str, text: &str, repeat: Option<&str>| Evidence::new(probe, text, repeat.map(str::to_owned));
    Explanation {
        findings: vec![
            finding(
                "tls.aes-unused",
                Confidence::Confirmed,
                Some(0.997),
                vec![
                    evidence("first-contact", "both negotiate TLS_AES_256_GCM_SHA384", None),
                    evidence(
                        "cipher-chacha20",
                        "with ChaCha20 forced: B and A equally fast (95 % interval 0.99 to 1.01) instead of 3.04x",
                        Some(
                            "duel A=https://ubuntu.example/64k B=https://freebsd.example/64k -c 64 --ciphers TLS_CHACHA20_POLY1305_SHA256",
                        ),
                    ),
                ],
            ),
            finding("tls.large-key", Confidence::Likely, None, vec![]),
            finding("http.compression", Confidence::Possible, Some(0.04), vec![]),
            Finding { leads: leads(), ..finding("unknown", Confidence::Possible, None, vec![]) },
        ],
        ruled_out: vec!["http.no-keepalive".into()],
        probes: vec![made, not_made],
    }
}

/// Splitmix64: the same numbers each time, on each machine.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit.max(1)
    }
}
