//! Runs and slots as the generator makes them, in size and shape; the same ones each time.
#![allow(dead_code, unreachable_pub, reason = "every test takes what it needs")]

use duel_model::web::{failure, phase};
use duel_model::*;
use std::collections::BTreeMap;

/// A run without slots.
pub fn empty_run(id: &str) -> Run {
    let levels = vec!["GET".into(), "HEAD".into()];
    let method = SettingLevels { schema: &web::SCHEMA, param: &web::settings::METHOD, levels };
    Run {
        id: id.to_owned(),
        started_unix_ms: 1_795_217_520_000,
        plan: Plan {
            targets: vec![target("A", "https://a.example/f"), target("Bé \u{1f980}", "https://b.example/f?x='\"--")],
            workload: WorkloadPlan::Http(Box::new(HttpPlan {
                headers: vec![("X-Odd".into(), "'; DROP TABLE runs; --".into())],
                body: Body::Text("{\"a\": \"\\u0000\u{7f}\n\"}".into()),
                connect_to: vec![ConnectTo {
                    host: "a.example".into(),
                    port: Some(443),
                    to_host: "::1".into(),
                    to_port: None,
                }],
                ..HttpPlan::default()
            })),
            load: LoadPlan {
                connections: 64,
                threads: 2,
                kind: LoopKind::Open { rate_per_s: 12_345.678_901_234_567, arrival: Arrival::Poisson },
                bound: Bound::Ops(u64::MAX),
                connect_timeout_ns: 5 * SECOND_NS,
                op_timeout_ns: 20 * SECOND_NS,
                busy_poll: duel_model::BusyPoll::Never,
                shape: duel_model::LoadShape::default(),
            },
            compare: ComparePlan { seed: u64::MAX, margin: 0.1 + 0.2, ..ComparePlan::default() },
            factors: vec![Factor::Connections(vec![1, 64]), Factor::Setting(method)],
        },
        versions: Versions {
            duel: "0.1.0".into(),
            os: "Linux 6.18".into(),
            arch: "x86_64".into(),
            cpus: 2,
            tls: "rustls 0.23 with aws-lc-rs 1.19".into(),
            event_loop: "epoll".into(),
        },
        slots: vec![],
        first_contact: vec![Some(negotiated()), None],
        status: RunStatus::Complete,
        doubts: vec![],
        hosts: Vec::new(),
        explanation: None,
        waiting: Some(Waiting {
            polling_workers: 1,
            why: WhyWaiting::Tried(vec![Some(1.1), None]),
            gave_way: true,
            sleep_costs_ns: 31_000,
            waking: Some(Waking { cost_ns: 9_000, cpus: 2, is_here: vec![true, false] }),
        }),
    }
}

/// A finished run with everything that a run can have.
pub fn rich_run(id: &str, slots: u32) -> Run {
    let mut run = empty_run(id);
    run.slots = (0..slots).map(slot).collect();
    run.status = RunStatus::Interrupted(Interruption::TargetDied {
        target: "A".into(),
        at_ns: 12_000_000_001,
        how: "connection refused 50 times".into(),
    });
    run.doubts = vec![Doubt { id: DoubtId::TargetDied, target: Some("A".into()), text: "A died at 12 s".into() }];
    run.explanation = Some(explanation());
    run.hosts = vec![None, Some(host())];
    run
}

/// What a machine may tell.
fn host() -> HostRecord {
    let known = |value: &str| Known::from(value.to_owned());
    HostRecord {
        how: "over ssh to b".into(),
        facts: Facts(BTreeMap::from([
            ("cpu.model".into(), known("Some CPU")),
            ("cpu.mhz".into(), Known::Unavailable("not told".into())),
        ])),
        samples: vec![HostSample {
            unix_ms: 1_795_217_521_000,
            counters: BTreeMap::from([("cpu.busy_ns".into(), u64::MAX)]),
            ..HostSample::default()
        }],
        last_words: vec![KernelLine { uptime_ns: Some(7), level: Some(2), text: "out of memory".into() }],
        ..HostRecord::default()
    }
}

/// What diagnosis may find.
pub fn explanation() -> Explanation {
    let pair = PairVerdict {
        baseline: "A".into(),
        target: "Bé \u{1f980}".into(),
        metric: Metric::Rate,
        call: Call::Slower,
        ratio: Some(1.0 / 3.0),
        low: Some(f64::MIN_POSITIVE),
        high: Some(0.338_888_888_888_888_9),
        confidence: 0.95,
        slots: 24,
        by_whole: false,
    };
    let probe = Probe {
        id: "cipher-chacha20".into(),
        question: "Does the gap depend on AES?".into(),
        variation: Variation {
            ciphers: Some(vec!["TLS_CHACHA20_POLY1305_SHA256".into()]),
            accept_encoding: Some(Some("identity".into())),
            ..Variation::default()
        },
        budget_ns: 8 * SECOND_NS,
        takes_all: false,
        reads_hosts: false,
        lens_of: None,
        below: None,
    };
    let outcome = ProbeOutcome {
        pairs: vec![pair],
        targets: vec![TargetObservation {
            name: "A".into(),
            ok: 70_001,
            rate_per_s: Some(7_000.1),
            phase_mean_ns: BTreeMap::from([(phase::TLS.id(), 1.0 / 7.0), (phase::WAIT.id(), 81_234.5)]),
            ..TargetObservation::default()
        }],
        ..ProbeOutcome::of(probe)
    };
    Explanation {
        findings: vec![Finding {
            cause: "tls.aes-unused".into(),
            target: Some("Bé \u{1f980}".into()),
            confidence: Confidence::Confirmed,
            explains: Some(0.94),
            summary: "nginx on B does not use the AES instructions".into(),
            evidence: vec![Evidence::new(
                "cipher-chacha20",
                "the gap is gone",
                Some("duel A B --cipher TLS_CHACHA20_POLY1305_SHA256".into()),
            )],
            remedy: "link another libcrypto".into(),
            leads: Leads::default(),
        }],
        ruled_out: vec!["http.compression".into()],
        probes: vec![outcome],
    }
}

/// A slot of about 5,000 ops over kept-alive connections on two workers.
pub fn slot(index: u32) -> Slot {
    let random = &mut Random(u64::from(index) * 7919 + 1);
    let ops = 5_000;
    let phases = [(phase::CONNECT, 64, 90_000.0), (phase::TLS, 64, 900_000.0), (phase::SEND, ops, 6_000.0)];
    let phases = phases.into_iter().chain([(phase::WAIT, ops, 310_000.0), (phase::RECEIVE, ops, 21_000.0)]);
    let mut tally = Tally {
        started: 5_003,
        ok: ops,
        failed: BTreeMap::from([(failure::TIMEOUT.id(), 1), (failure::STATUS.id(), 1)]),
        ok_in_run_up: 2_100,
        failed_in_run_up: BTreeMap::from([(failure::RESET.id(), 3)]),
        in_flight: 1,
        bytes_in: (1 << 40) + 7,
        statuses: BTreeMap::from([(200, ops), (503, 1)]),
        response: distribution(random, ops, 380_000.0),
        service: distribution(random, ops, 340_000.0),
        phases: phases.map(|(phase, n, median)| (phase.id(), distribution(random, n, median))).collect(),
        failure_examples: vec!["status 503 after 1.2 ms".into()],
        ..Tally::default()
    };
    // Beyond what fits into 64 bits, as a sum over a very long slot may be.
    tally.response.sum_ns = u128::from(u64::MAX) * 3;
    let worker = |random: &mut Random| WorkerAudit {
        cpu_ns: Some(412_345_678),
        wall_ns: 1_000_000_123,
        run_up_ns: 400_000_001,
        schedule_lag: distribution(random, ops / 2, 2_000.0),
        loop_lag: distribution(random, ops, 11_000.0),
        polling_ns: 40_000_000,
        taken_ns: 1_000_000,
        gave_way: true,
        waited_ns: Some(2_000_000),
        sleeps: Some(random.next() % 1_000),
        notice_lag: distribution(random, ops, 3_000.0),
        silent_lanes: Some(2),
        works_itself: true,
        standstill: Standstill { count: 1, total_ns: 61_000_000, longest_ns: 61_000_000 },
        target_stalls: Some(Standstill { count: 2, total_ns: 90_000_000, longest_ns: 60_000_000 }),
        connections: vec![
            ConnectionTimes {
                ops: [3, 2],
                sum_ns: [1_234_567, 987_654],
                connect_ns: Some(81_000),
                is_new: true,
                is_several: false,
            },
            ConnectionTimes { is_several: true, ..ConnectionTimes::default() },
        ],
    };
    let interval = |random: &mut Random| Interval {
        ok: 400 + random.next() % 200,
        failed: 0,
        bytes_in: 400_000 + random.next() % 100_000,
        response_sum_ns: 19_000_000 + random.next() % 1_000_000,
        response_max_ns: 900_000 + random.next() % 1_000_000,
    };
    Slot {
        index,
        target: (index % 2) as usize,
        role: match index % 5 {
            0 => SlotRole::Warmup,
            4 => SlotRole::Probe("cipher-chacha20".into()),
            _ => SlotRole::Measured,
        },
        block: index / 4,
        repeat: index % 4 / 2,
        turns: Vec::new(),
        treatment: (index % 5 < 4).then_some(index % 4),
        start: None,
        started_unix_ms: 1_795_217_520_000 + i64::from(index) * 1_001,
        offset_ns: u64::from(index) * 1_001_000_777,
        elapsed_ns: 1_000_345_678,
        offered_per_s: None,
        tally,
        series: Series { interval_ns: 100_000_000, intervals: (0..10).map(|_| interval(random)).collect() },
        audit: GeneratorAudit {
            descriptors_open: Some(140),
            local_ports: None,
            workers: vec![worker(random), worker(random)],
            descriptor_limit: Some(1024),
            cpus: None,
        },
        negotiated: Some(negotiated()),
        died_ns: (index % 7 == 6).then_some(900_000_123),
    }
}

fn target(name: &str, address: &str) -> Target {
    Target { name: name.into(), address: address.into(), host: None }
}

fn negotiated() -> Facts {
    Facts::default()
        .with(web::HTTP_VERSION, "HTTP/1.1")
        .with(web::TLS_VERSION, "1.3")
        .with(web::TLS_CIPHER, "TLS_AES_256_GCM_SHA384")
        .with(web::TLS_GROUP, "x25519")
        .with(web::CERTIFICATE_KEY, "EC-256")
        .with(web::SERVER, "nginx")
        .with(web::KEEPS_ALIVE, true)
        .with(web::STATUS, 200)
        .with(web::BODY_BYTES, 10_240)
        .with(web::PEER, "[2001:db8::1]:443")
}

/// Log-normal times, in buckets as an HDR histogram of 3 significant digits has them.
fn distribution(random: &mut Random, count: u64, median_ns: f64) -> Distribution {
    let mut buckets = BTreeMap::<u64, u64>::new();
    let (mut sum, mut min, mut max) = (0, u64::MAX, 0);
    for _ in 0..count {
        let value = (median_ns * (0.4 * random.normal()).exp()) as u64;
        let unit = 1u64 << value.max(1).ilog2().saturating_sub(10);
        *buckets.entry(value / unit * unit + unit - 1).or_default() += 1;
        (sum, min, max) = (sum + u128::from(value), min.min(value), max.max(value));
    }
    Distribution::from_buckets(buckets, sum, min, max)
}

/// Marsaglia's xorshift: good enough for shapes, and always the same.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// The sum of twelve uniform numbers has variance 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| (self.next() >> 11) as f64 / (1u64 << 53) as f64).sum::<f64>() - 6.0
    }
}
