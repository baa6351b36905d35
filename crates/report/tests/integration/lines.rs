//! Whatever servers, users and chance put into a run: no line is wider than the terminal, and none steers it.

use crate::sample;
use duel_model::web::{failure, phase};
use duel_model::*;
use duel_report::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use unicode_width::UnicodeWidthStr;

/// Any text. Addresses are taken out: they are kept in one piece, however long.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-zA-Z_/.-]{0,90}",
        "(\u{1b}\\[31m|\u{9b}2J|\u{202e}|\u{200d}|\u{2028}|\u{fe0f}|👩|漢|e\u{301}|\n|\t| |x){0,40}",
    ]
    .prop_map(|text| text.replace("://", ":"))
}

fn figure() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![Just(None), any::<f64>().prop_map(Some), (0.1..10.0).prop_map(Some)]
}

fn times() -> impl Strategy<Value = Distribution> {
    prop_oneof![
        proptest::collection::vec(0..1_u64 << 40, 0..6).prop_map(Distribution::from_values),
        (1..1_u64 << 30, 1..5_000_u64).prop_map(|(median, n)| sample::spread(median, n)),
    ]
}

fn failure() -> impl Strategy<Value = Id> {
    prop_oneof![Just(failure::TIMEOUT.id()), Just(failure::DESCRIPTORS_EXHAUSTED.id()), Just(failure::STATUS.id())]
}

prop_compose! {
    fn tally()(
        ok in 0..1_u64 << 50,
        failed in proptest::collection::btree_map(failure(), 0..1_u64 << 50, 0..3),
        bytes_in in 0..1_u64 << 60,
        few in 0..10_u64,
        response in times(),
        service in times(),
        phase in times(),
        failure_examples in proptest::collection::vec(text(), 0..3),
    ) -> Tally {
        Tally {
            started: ok, ok, failed, bytes_in, in_flight: few, unstarted: few, resumed: few, reused: few,
            response, service, phases: BTreeMap::from([(phase::TLS.id(), phase)]), failure_examples,
            statuses: BTreeMap::from([(200, ok)]), ..Tally::default()
        }
    }
}

prop_compose! {
    fn negotiated()(texts in proptest::collection::vec(proptest::option::of(text()), 6), bytes in any::<Option<u64>>())
        -> Facts {
        let names =
            [web::HTTP_VERSION, web::TLS_CIPHER, web::SERVER, web::VIA, web::LOCATION, web::CERTIFICATE_KEY];
        let mut facts = Facts::default();
        names.into_iter().zip(texts).for_each(|(name, text)| facts.note(name, text));
        facts.note(web::CHAIN_BYTES, bytes);
        facts
    }
}

prop_compose! {
    fn slot(targets: usize)(
        target in 0..targets + 1, // one beyond: a slot that belongs to none
        role in prop_oneof![Just(SlotRole::Measured), Just(SlotRole::Warmup)],
        elapsed_ns in prop_oneof![Just(0), 1..1_u64 << 45],
        tally in tally(),
        interval_ns in prop_oneof![Just(0), 1..1_u64 << 40],
        ok in proptest::collection::vec(0..1_000_u64, 0..30),
        worker in proptest::option::of((any::<Option<u32>>(), any::<u32>(), times())),
        negotiated in proptest::option::of(negotiated()),
    ) -> Slot {
        let interval = |ok| Interval { ok, failed: ok % 3, ..Interval::default() };
        let workers = worker.into_iter().map(|(cpu, wall, lag)| WorkerAudit {
            cpu_ns: cpu.map(u64::from), wall_ns: u64::from(wall), schedule_lag: lag.clone(), loop_lag: lag, silent_lanes: None,
            ..WorkerAudit::default()
        });
        Slot {
            elapsed_ns, tally,
            series: Series { interval_ns, intervals: ok.into_iter().map(interval).collect() },
            audit: GeneratorAudit { workers: workers.collect(), ..GeneratorAudit::default() },
            negotiated,
            ..Slot::empty(target, role)
        }
    }
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![Just(Call::Slower), Just(Call::Faster), Just(Call::Equivalent), Just(Call::Unknown)]
}

fn metric() -> impl Strategy<Value = Metric> {
    prop_oneof![Just(Metric::Rate), Just(Metric::ResponseP50), Just(Metric::ResponseP99)]
}

prop_compose! {
    fn host()(
        lost in proptest::option::of(text()),
        lines in proptest::collection::vec((any::<Option<u64>>(), text()), 0..14),
        facts in proptest::collection::vec((text(), text(), any::<bool>()), 0..6),
        samples in proptest::collection::vec((any::<i64>(), any::<u64>(), any::<u64>(), text()), 0..4),
        how in text(),
    ) -> HostRecord {
        let known = |(key, text, is_known)| (key, if is_known { Known::from(text) } else { Known::Unavailable(text) });
        let sample = |(unix_ms, asked_ns, arrived_ns, key): (i64, u64, u64, String)| HostSample {
            unix_ms: unix_ms / 2, asked_ns, arrived_ns, counters: [(key.clone(), arrived_ns)].into(),
            gauges: [(key, 1.0)].into(), ..HostSample::default()
        };
        HostRecord {
            how, facts: Facts(facts.into_iter().map(known).collect()), samples: samples.into_iter().map(sample).collect(),
            last_words: lines.into_iter().map(|(uptime_ns, text)| KernelLine { uptime_ns, level: Some(3), text }).collect(),
            watched_from_uptime_ns: Some(0), lost, ..HostRecord::default()
        }
    }
}

prop_compose! {
    fn run()(names in proptest::collection::vec(text(), 1..6))(
        slots in proptest::collection::vec(slot(names.len()), 0..8),
        first_contact in proptest::collection::vec(proptest::option::of(negotiated()), 0..4),
        method in text(),
        header in text(),
        how in text(),
        status in 0..4_u8,
        connections in any::<u32>(),
        rate_per_s in any::<f64>(),
        hosts in proptest::collection::vec(proptest::option::of(host()), 0..4),
        names in Just(names),
    ) -> Run {
        let targets = names.iter().map(|name| Target { name: name.clone(), address: format!("http:x{name}"), host: None });
        let mut run = Run { slots, first_contact, hosts, ..sample::run(&[], 0) };
        run.plan.targets = targets.collect();
        run.plan.workload = WorkloadPlan::Http(Box::new(HttpPlan {
            method, headers: vec![(header, Plan::REDACTED.into())], ..HttpPlan::default()
        }));
        run.plan.load.connections = connections;
        run.plan.load.kind = LoopKind::Open { rate_per_s, arrival: Arrival::Poisson };
        run.status = match status {
            0 => RunStatus::Complete,
            1 => RunStatus::Interrupted(Interruption::User),
            2 => RunStatus::Interrupted(Interruption::Unfinished),
            _ => RunStatus::Interrupted(Interruption::TargetDied { target: how.clone(), at_ns: 1, how }),
        };
        run
    }
}

prop_compose! {
    fn verdict(names: Vec<String>)(
        pairs in proptest::collection::vec((metric(), call(), figure(), figure(), figure(), any::<u32>()), 0..6),
        doubts in proptest::collection::vec(text(), 0..3),
        names in Just(names),
    ) -> Verdict {
        let name = |i: usize| names[i % names.len()].clone();
        Verdict {
            pairs: pairs.into_iter().enumerate().map(|(i, (metric, call, ratio, low, high, slots))| PairVerdict {
                baseline: name(0), target: name(i), metric, call, ratio, low, high, confidence: 0.95, slots, by_whole: false,
            }).collect(),
            doubts: doubts.into_iter().enumerate().map(|(i, text)| Doubt {
                id: DoubtId::GeneratorSaturated, target: (i > 0).then(|| name(i)), text,
            }).collect(),
            ..Verdict::default()
        }
    }
}

prop_compose! {
    fn reason()(
        causes in proptest::collection::vec((text(), text(), figure(), text()), 0..3),
        ruled_out in proptest::collection::vec(text(), 0..5),
    ) -> Explanation {
        let finding = |(cause, summary, explains, evidence): (String, String, Option<f64>, String)| Finding {
            cause, target: Some(summary.clone()), confidence: Confidence::Likely, explains, remedy: summary.clone(),
            evidence: vec![Evidence::new(summary.clone(), evidence, Some("duel\x1b x".into()))],
            summary,
            leads: Leads::default(),
        };
        Explanation { findings: causes.into_iter().map(finding).collect(), ruled_out, probes: vec![] }
    }
}

fn case() -> impl Strategy<Value = (Run, Verdict, Explanation)> {
    run().prop_flat_map(|run| {
        let names = run.plan.targets.iter().map(|t| t.name.clone()).collect();
        (Just(run), verdict(names), reason())
    })
}

fn style() -> impl Strategy<Value = Style> {
    (0..130_usize, any::<bool>(), any::<bool>()).prop_map(|(width, color, unicode)| Style { width, color, unicode })
}

/// Fails on a line that is too wide or holds a character that steers a terminal, other than our own colours.
fn check(text: &str, style: Style) -> Result<(), TestCaseError> {
    for line in text.lines() {
        let mut line = line.to_owned();
        if style.color {
            for code in ["\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[2m", "\x1b[0m"] {
                line = line.replace(code, "");
            }
        }
        prop_assert!(!line.chars().any(char::is_control), "{line:?}");
        prop_assert!(!line.contains(['\u{202e}', '\u{200d}', '\u{2028}', '\u{fe0f}']), "{line:?}");
        prop_assert!(line.width() <= style.width.max(40), "{} columns of {}: {line}", line.width(), style.width);
        prop_assert!(style.unicode || line.is_ascii(), "{line:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn reports_fit_and_steer_nothing((run, verdict, reason) in case(), style in style()) {
        check(&summary(&run, &verdict, Again::ShownAndRepeated, style), style)?;
        check(&explanation(&reason, style), style)?;
        check(&diff((&run, &verdict), (&sample::slower().0, &verdict), style).replace("https://", ""), style)?;
        let machines: Vec<(&str, &Facts)> =
            run.hosts.iter().flatten().map(|host| (host.how.as_str(), &host.facts)).collect();
        check(&facts(&machines, true, style), style)?;
        let json = json_text(&run, &verdict, Some(&reason));
        prop_assert!(!json.chars().any(|c| c != '\n' && c.is_control()), "{json}");
        let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(parsed["targets"][0]["name"].as_str(), Some(run.plan.targets[0].name.as_str()));
    }

    #[test]
    fn progress_and_lists_fit(
        names in proptest::collection::vec(text(), 0..5),
        label in text(),
        elapsed_ns in any::<u64>(),
        started_unix_ms in any::<i64>(),
        rate_per_s in figure(),
        share_done in any::<f64>(),
        style in style(),
    ) {
        let row = RunRow {
            id: "20261120-233200-7f3a".into(), started_unix_ms: started_unix_ms / 1_000_000, kind: duel_model::RunKind::Compare, targets: names.clone(),
            status: RunStatus::Complete, slots: 3, has_explanation: true,
        };
        check(&list(&[row], style), style)?;
        let targets: Vec<TargetProgress> = names.into_iter().map(|name| TargetProgress {
            name, ops_ok: 1 << 50, rate_per_s, p99_ns: Some(elapsed_ns), failed: 3, share_done, active: true,
        }).collect();
        let frame = ProgressFrame {
            elapsed_ns, total_ns: Some(elapsed_ns), search: None, label: label.clone(), targets, call_so_far: Some(label),
        };
        let lines = progress_terminal(&frame, style);
        prop_assert_eq!(lines.len(), frame.targets.len() + 1);
        check(&lines.join("\n"), style)?;
        let plain = progress_plain(&frame);
        prop_assert!(!plain.chars().any(char::is_control), "{plain:?}");
    }
}
