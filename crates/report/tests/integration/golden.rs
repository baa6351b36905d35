//! Reports of fixed runs, compared with files under `tests/golden`. `UPDATE=1 cargo test` writes them anew: read the
//! difference before it is kept.

use crate::sample::{self, doubt, leads, pair, server};
use duel_model::web::failure;
use duel_model::*;
use duel_report::*;
use std::collections::BTreeMap;
use std::path::Path;

const PLAIN: Style = Style { width: 80, color: false, unicode: true };

/// The report of a run that is kept.
fn report(run: &Run, verdict: &Verdict, style: Style) -> String {
    summary(run, verdict, Again::ShownAndRepeated, style)
}

fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{name} is not as expected; if the new text is better, run with UPDATE=1\n{text}");
}

#[test]
fn slower_with_explanation() {
    let (run, verdict) = sample::slower();
    let text = report(&run, &verdict, PLAIN) + "\n" + &explanation(&sample::explained(), PLAIN);
    golden("slower-80.txt", &text);
    let narrow = Style { width: 60, ..PLAIN };
    golden("slower-60.txt", &(report(&run, &verdict, narrow) + "\n" + &explanation(&sample::explained(), narrow)));
    let ascii = Style { width: 40, unicode: false, ..PLAIN };
    let text = report(&run, &verdict, ascii) + "\n" + &explanation(&sample::explained(), ascii);
    assert!(text.is_ascii());
    golden("slower-40-ascii.txt", &text);
    golden("slower-color.txt", &report(&run, &verdict, Style { color: true, ..PLAIN }));
}

#[test]
fn searches_and_stages_of_two_targets() {
    let (run, verdict) = sample::searched();
    golden("search-two.txt", &report(&run, &verdict, PLAIN));
    let (run, verdict) = sample::staged();
    golden("stages-two.txt", &report(&run, &verdict, PLAIN));
    let (again, verdict) = (run.clone(), Verdict { stages: vec![], ..verdict });
    assert!(report(&again, &verdict, PLAIN).contains("without an interval: that takes 6 pairs (-d 12s)"));
}

#[test]
fn three_targets() {
    let servers = [
        server("A", "https://a.example/", 4_000, 1_100_000),
        server("B", "https://b.example/", 3_980, 1_110_000),
        server("C", "https://c.example/", 5_000, 600_000),
    ];
    let verdict = Verdict {
        pairs: vec![
            pair("B", Metric::Rate, Call::Equivalent, Some([1.003, 0.996, 1.009])),
            pair("C", Metric::Rate, Call::Faster, Some([1.25, 1.21, 1.3])),
        ],
        doubts: vec![],
        ..Verdict::default()
    };
    golden("three-targets.txt", &report(&sample::run(&servers, 3), &verdict, PLAIN));
}

#[test]
fn many_targets_are_stacked() {
    let servers: Vec<_> = (1..=7)
        .map(|i| server(&format!("web-server-{i}"), &format!("http://10.0.0.{i}/"), 1_000 * i, 900_000))
        .collect();
    golden("seven-targets.txt", &report(&sample::run(&servers, 1), &Verdict::default(), PLAIN));
}

#[test]
fn unknown_ratio_after_an_interruption() {
    let servers = [server("A", "http://a.example/", 400, 1_000), server("B", "http://b.example/", 400, 1_000)];
    let mut run = sample::run(&servers, 1);
    run.status = RunStatus::Interrupted(Interruption::User);
    run.doubts = vec![doubt(DoubtId::TooFewSlots, None, "2 pairs of slots are too few for a 95 % interval")];
    let unknown = PairVerdict { slots: 4, ..pair("B", Metric::Rate, Call::Unknown, None) };
    // The same doubt comes from both sides and is told once.
    let verdict = Verdict { pairs: vec![unknown], doubts: run.doubts.clone(), ..Verdict::default() };
    golden("unknown.txt", &report(&run, &verdict, PLAIN));
}

#[test]
fn a_saturated_generator_leaves_a_lower_bound() {
    let servers = [server("A", "http://a.example/", 90_000, 1_000), server("B", "http://b.example/", 40_000, 1_000)];
    let verdict = Verdict {
        pairs: vec![pair("B", Metric::Rate, Call::Slower, Some([0.444, 0.438, 0.451]))],
        doubts: vec![doubt(DoubtId::GeneratorSaturated, Some("A"), "a worker used 99 % of its CPU during slots of A")],
        ..Verdict::default()
    };
    let text = report(&sample::run(&servers, 3), &verdict, PLAIN);
    assert!(text.starts_with("B is at least 2.25x slower than A (95 % interval 2.22 to 2.28, 24 slots;"), "{text}");
}

/// A run that is not kept cannot be named, and one whose targets are gone cannot be repeated.
#[test]
fn only_commands_that_work_are_offered() {
    let (run, verdict) = sample::slower();
    let offered = |again| {
        let text = summary(&run, &verdict, again, PLAIN);
        ["show", "rerun"].map(|verb| text.contains(&format!("duel {verb} {}", run.id)))
    };
    assert_eq!(offered(Again::Not), [false, false]);
    assert_eq!(offered(Again::Shown), [true, false]);
    assert_eq!(offered(Again::ShownAndRepeated), [true, true]);
}

#[test]
fn hostile_names_and_fields() {
    let mut b = server("B\x1b[31m\u{202e}evil\n\u{200b}", "https://b.example/\x1b]0;owned\x07", 900, 1_000_000);
    b.negotiated = Some(
        sample::negotiated()
            .with(web::SERVER, "nginx\x1b[2J\u{9b}31m 漢字 ".repeat(4))
            .with(web::TLS_CIPHER, "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256")
            .with(web::LOCATION, "javascript:\u{7}\t://"),
    );
    b.failed = BTreeMap::from([(failure::PROTOCOL.id(), 5)]);
    let name = "https://very-long.example/with/a/path/that/goes/on?and=on&and=on";
    let mut run = sample::run(&[server(name, name, 1_000, 1_000_000), b.clone()], 2);
    run.plan.workload = WorkloadPlan::Http(Box::new(HttpPlan {
        method: "GE\x1bT".into(),
        headers: vec![("Authorization".into(), Plan::REDACTED.into()), ("X\r\nY".into(), "z".into())],
        ..HttpPlan::default()
    }));
    let verdict = Verdict {
        pairs: vec![PairVerdict {
            baseline: name.into(),
            ..pair(&b.name, Metric::Rate, Call::Slower, Some([0.9, 0.88, 0.92]))
        }],
        doubts: vec![doubt(DoubtId::Errors, Some(&b.name), "5 of\x1b[5m 905 failed")],
        ..Verdict::default()
    };
    golden("hostile.txt", &report(&run, &verdict, PLAIN));
    let text = json_text(&run, &verdict, None);
    assert!(!text.contains(['\x1b', '\u{9b}', '\u{202e}', '\u{200b}']), "{text}");
    let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(parsed["targets"][1]["name"], b.name.as_str());
}

#[test]
fn zero_ops_and_nothing_but_failures() {
    let mut dead = server("B", "https://b.example/", 0, 1_000_000);
    dead.failed = BTreeMap::from([(failure::REFUSED.id(), 5_000)]);
    dead.negotiated = None;
    let mut run = sample::run(&[server("A", "https://a.example/", 800, 1_000_000), dead.clone()], 2);
    run.status = RunStatus::Interrupted(Interruption::TargetDied {
        target: "B".into(),
        at_ns: 12_000_000_001,
        how: "connection refused 50 times".into(),
    });
    let died = sample::headline(
        HeadlineKind::TargetDied,
        "Target died: B stopped answering after 12.0 s (connection refused 50 times); what follows was measured until then",
    );
    let pairs = vec![pair("B", Metric::Rate, Call::Unknown, None)];
    let verdict = Verdict { pairs, headlines: vec![died], ..Verdict::default() };
    golden("one-dead.txt", &report(&run, &verdict, PLAIN));

    let a = Server0::named("A");
    let mut all_dead = sample::run(&[a, dead], 2);
    golden("all-dead.txt", &report(&all_dead, &verdict, PLAIN));
    all_dead.slots.clear();
    golden("no-slots.txt", &report(&all_dead, &Verdict::default(), PLAIN));
}

#[test]
fn what_has_to_be_told_first() {
    let (run, mut verdict) = sample::slower();
    verdict.headlines = vec![
        sample::headline(HeadlineKind::Failing, "B fails 20 % of its requests (status 503)"),
        sample::headline(HeadlineKind::RateNotReached, "B answers 911/s of the 2,000/s that were asked for (46 %)"),
    ];
    golden("failing.txt", &report(&run, &verdict, PLAIN));
}

/// A server that answers nothing.
struct Server0;

impl Server0 {
    fn named(name: &str) -> sample::Server {
        let mut dead = server(name, "https://a.example/", 0, 1_000_000);
        dead.failed = BTreeMap::from([(failure::CONNECT_TIMEOUT.id(), 7), (failure::REFUSED.id(), 1)]);
        dead
    }
}

#[test]
fn single_target() {
    let mut one = server("https://a.example/f", "https://a.example/f", 4_115, 1_100_000);
    one.phases[0].2 = 0.1;
    one.phases[1].2 = 0.1;
    one.failed = BTreeMap::from([(failure::STATUS.id(), 3)]);
    let run = sample::run(&[one], 4);
    golden("single.txt", &report(&run, &Verdict::default(), PLAIN));
    let mut dead = sample::run(&[Server0::named("A")], 1);
    golden("single-dead.txt", &report(&dead, &Verdict::default(), PLAIN));
    dead.slots.clear();
    dead.first_contact.clear();
    golden("single-no-slots.txt", &report(&dead, &Verdict::default(), PLAIN));
}

#[test]
fn explanations_without_a_cause() {
    let finding = |cause: &str, summary: &str| Finding {
        cause: cause.into(),
        target: None,
        confidence: Confidence::Possible,
        explains: None,
        summary: summary.into(),
        evidence: vec![],
        remedy: String::new(),
        leads: Leads::default(),
    };
    let of = |finding| Explanation { findings: vec![finding], ..Explanation::default() };
    let unknown = finding("unknown", "No cause of the catalogue fits; 97 % of the gap sits in waiting for the server.");
    let unknown = Finding { leads: leads(), ..unknown };
    let none = finding("none", "There is no gap to explain: the targets are equivalent.");
    let text = [of(unknown), of(none), Explanation::default()].map(|e| explanation(&e, PLAIN)).join("---\n");
    golden("no-cause.txt", &text);
}

#[test]
fn documents() {
    let (run, verdict) = sample::slower();
    golden("slower.json", &json_text(&run, &verdict, Some(&sample::explained())));
    let mut empty = run;
    empty.slots.clear();
    empty.first_contact = vec![None, None];
    let unknown =
        Verdict { pairs: vec![pair("B", Metric::Rate, Call::Unknown, None)], doubts: vec![], ..Verdict::default() };
    golden("no-slots.json", &json_text(&empty, &unknown, None));
}

/// Machines in the document: facts, what they did for each request, their last words.
#[test]
fn machines_in_the_document() {
    let (run, verdict) = sample::watched();
    let mut explained = sample::why();
    let ms = |ms: u64| ms * MILLISECOND_NS;
    let demand = HostDemand {
        ops: 400,
        elapsed_ns: ms(2_000),
        growth: [("cpu.busy_ns".to_owned(), ms(1_000)), ("cpu.1.user_ns".to_owned(), ms(400))].into(),
        gauges: [("cpu.running".to_owned(), 1.5)].into(),
        spans: 4,
        ..HostDemand::default()
    };
    explained.probes[0].demands = vec![Some(demand), None];
    let document: serde_json::Value = serde_json::from_str(&json_text(&run, &verdict, Some(&explained))).unwrap();
    let parts = [("hosts", &document["hosts"]), ("probes[0].hosts", &document["probes"][0]["hosts"])];
    golden("hosts.json", &safe_json(&BTreeMap::from(parts)));

    let [a, b] = [&document["hosts"][0]["comparison"], &document["hosts"][1]["comparison"]];
    let ok = |target: usize, until_ms: u64| -> u64 {
        let ends_ms = |slot: &Slot| (slot.offset_ns + slot.elapsed_ns).div_ceil(MILLISECOND_NS);
        let is_in = |slot: &&Slot| slot.target == target && slot.offset_ns >= ms(3_900) && ends_ms(slot) <= until_ms;
        run.slots.iter().filter(is_in).map(|slot| slot.tally.ok).sum()
    };
    assert_eq!((a["ops"].as_u64(), b["ops"].as_u64()), (Some(ok(0, 28_200)), Some(ok(1, 15_300))));
    assert_eq!((&a["counters"]["cpu.busy_ns"]["per_s"], &a["elapsed_s"]), (&1e9.into(), &24.3.into()));
    // What the machine did in a run-up it did for its ops.
    let mut with_run_up = run.clone();
    with_run_up
        .slots
        .iter_mut()
        .filter(|slot| slot.target == 0)
        .for_each(|slot| slot.tally.ok_in_run_up = slot.tally.ok);
    let document: serde_json::Value =
        serde_json::from_str(&json_text(&with_run_up, &verdict, Some(&explained))).unwrap();
    assert_eq!(document["hosts"][0]["comparison"]["ops"].as_u64(), Some(2 * ok(0, 28_200)));
    assert_eq!(
        b["counters"]["process.cpu_ns"],
        serde_json::json!({"per_s": null, "per_op": null, "unknown": "restarted"})
    );
    assert_eq!(b["counters"]["tcp.retransmitted_segments"]["unknown"], "not read any more", "missing is not zero");
    assert_eq!(a["counters"]["tcp.retransmitted_segments"]["per_op"], 0.0, "and zero is known");
}

/// The generator's wall clock was set while it measured: which samples lie around the slots is not known.
#[test]
fn a_wall_clock_that_was_set_leaves_no_figures() {
    let (mut run, verdict) = sample::watched();
    let record = run.hosts[0].as_mut().unwrap();
    record.samples.last_mut().unwrap().unix_ms += 60_000;
    let document = |run: &Run| -> serde_json::Value { serde_json::from_str(&json_text(run, &verdict, None)).unwrap() };
    assert_eq!(document(&run)["hosts"][0]["comparison"], serde_json::Value::Null);
    // The host's own clock alone jumped: rates are not known, what requests cost is.
    let (mut run, _) = sample::watched();
    run.hosts[0].as_mut().unwrap().samples.last_mut().unwrap().uptime_ns = Some(1);
    let work = document(&run)["hosts"][0]["comparison"].clone();
    assert_eq!((&work["elapsed_s"], &work["counters"]["cpu.busy_ns"]["per_s"]), (&().into(), &().into()));
    assert!(work["counters"]["cpu.busy_ns"]["per_op"].as_f64() > Some(0.0));
    // Read once, or never while it was measured.
    for kept in [0, 1] {
        run.hosts[0].as_mut().unwrap().samples.truncate(kept);
        assert_eq!(document(&run)["hosts"][0]["comparison"], serde_json::Value::Null);
    }
}

#[test]
fn the_last_words_of_a_machine_that_was_lost() {
    let (mut run, verdict) = sample::watched();
    let style = Style { width: 60, ..PLAIN };
    let section = |run: &Run| {
        let text = report(run, &verdict, style);
        assert!(!text.contains('\x1b'), "{text}");
        text.split("\n\n").filter(|section| section.contains("'s host: ")).collect::<Vec<_>>().join("\n\n")
    };
    let lost = section(&run);
    assert!(lost.starts_with("B's host: lost after 15.3 s: the host did not answer"), "{lost}");
    golden("last-words.txt", &(lost + "\n"));

    run.hosts[1].as_mut().unwrap().last_words.clear();
    assert!(section(&run).contains("no line of its kernel's log was read"), "{}", section(&run));

    // Its machine is there, and its kernel has ended the server.
    let (mut run, _) = sample::watched();
    let record = run.hosts[1].as_mut().unwrap();
    record.lost = None;
    assert_eq!(section(&run), "", "all is well");
    run.status = RunStatus::Interrupted(Interruption::TargetDied { target: "B".into(), at_ns: 1, how: String::new() });
    let died = section(&run);
    assert!(died.contains("not lost, when B stopped answering") && died.contains("[524.000] line 29"), "{died}");
    run.hosts[1].as_mut().unwrap().watched_from_uptime_ns = Some(u64::MAX);
    assert_eq!(section(&run), "", "what the kernel said before is not about it");
}

/// What `--why` prints, and the same in the document, from a run that holds its explanation as the archive gives it back.
#[test]
fn why() {
    let (mut run, verdict) = sample::slower();
    run.explanation = Some(sample::why());
    let explained = run.explanation.as_ref().unwrap();
    golden("why.txt", &explanation(explained, PLAIN));
    let document: serde_json::Value = serde_json::from_str(&json_text(&run, &verdict, Some(explained))).unwrap();
    assert_eq!(document["explained"], true);
    let parts = ["findings", "ruled_out", "probes"].map(|part| (part, &document[part]));
    golden("why.json", &safe_json(&BTreeMap::from(parts)));
}

#[test]
fn lists() {
    let row = |id: &str, kind, targets: &[&str], status, slots| RunRow {
        id: id.into(),
        kind,
        started_unix_ms: 1_795_217_520_000,
        targets: targets.iter().map(|&t| t.to_owned()).collect(),
        status,
        slots,
        has_explanation: slots > 10,
    };
    let died = Interruption::TargetDied { target: "A".into(), at_ns: 1, how: String::new() };
    let rows = [
        row(
            "20261120-233200-7f3a",
            RunKind::Compare,
            &["ubuntu=https://a.example/", "freebsd=https://b.example/"],
            RunStatus::Complete,
            24,
        ),
        row(
            "20261120-233300-0001",
            RunKind::Run,
            &["https://a.example/a-long-path"],
            RunStatus::Interrupted(Interruption::User),
            3,
        ),
        row(
            "20261120-233400-ffff",
            RunKind::Factors,
            &["https://a/", "https://b/", "https://c/"],
            RunStatus::Interrupted(died),
            1_204,
        ),
    ];
    let text = [80, 120, 40].map(|width| list(&rows, Style { width, ..PLAIN })).join("---\n");
    golden("list.txt", &(text + "---\n" + &list(&[], PLAIN)));
}

#[test]
fn differences_between_runs() {
    let (first, verdict) = sample::slower();
    let servers = [
        server("A", "https://ubuntu.example/64k", 4_300, 1_050_000),
        server("C", "https://other.example/64k", 1_000, 1_000_000),
    ];
    let mut second = sample::run(&servers, 2);
    second.id = "20261121-080000-0815".into();
    second.started_unix_ms += 30_480_000;
    second.plan.load.connections = 128;
    second.versions.duel = "0.2.0".into();
    second.status = RunStatus::Interrupted(Interruption::User);
    let other =
        Verdict { pairs: vec![pair("C", Metric::Rate, Call::Unknown, None)], doubts: vec![], ..Verdict::default() };
    golden("diff.txt", &diff((&first, &verdict), (&second, &other), PLAIN));
}

#[test]
fn progress() {
    let target = |name: &str, rate_per_s, share_done, active| TargetProgress {
        name: name.into(),
        ops_ok: 16_406,
        rate_per_s,
        p99_ns: Some(15_400_000),
        failed: u64::from(active) * 3,
        share_done,
        active,
    };
    let mut frame = ProgressFrame {
        elapsed_ns: 12_340_000_000,
        total_ns: Some(30 * SECOND_NS),
        search: None,
        label: "measuring".into(),
        targets: vec![target("ubuntu", Some(4_115.2), 0.4, false), target("freebsd", Some(1_353.4), 0.55, true)],
        call_so_far: Some("freebsd 3.04x slower so far".into()),
    };
    let mut text = String::new();
    for width in [80, 60, 40] {
        text += &(progress_terminal(&frame, Style { width, ..PLAIN }).join("\n") + "\n---\n");
    }
    text += &(progress_terminal(&frame, Style { width: 80, color: true, unicode: false }).join("\n") + "\n---\n");
    text += &(progress_plain(&frame) + "\n---\n");
    frame.total_ns = None;
    frame.label = "Does the gap depend on AES\x1b?".into();
    frame.call_so_far = None;
    frame.targets[1] = TargetProgress { p99_ns: None, ..target("freebsd", None, 0.0, true) };
    text += &(progress_terminal(&frame, PLAIN).join("\n") + "\n---\n" + &progress_plain(&frame) + "\n---\n");
    frame.total_ns = Some(6 * SECOND_NS);
    frame.search = Some((12_340_000_000, 60 * SECOND_NS));
    text += &(progress_terminal(&frame, PLAIN).join("\n") + "\n---\n" + &progress_plain(&frame) + "\n");
    golden("progress.txt", &text);
}

#[test]
fn where_there_are_no_response_times_none_is_told() {
    let (mut run, mut verdict) = sample::slower();
    run.slots.iter_mut().for_each(Slot::forget_response_times);
    verdict.pairs.truncate(1);
    golden("streams.txt", &report(&run, &verdict, PLAIN));
    let page = duel_report::page(&run, &verdict, &[]);
    assert!(page.contains("No response times: an op is a part of a stream"));
    for of_times in ["Response time over", "Distribution of response times", "by phase"] {
        assert!(!page.contains(of_times), "{of_times}");
    }
    let document: serde_json::Value = serde_json::from_str(&json_text(&run, &verdict, None)).unwrap();
    for times in ["response_ms", "service_ms"] {
        let figures = document["targets"][1][times].as_object().unwrap();
        assert!(figures.values().all(serde_json::Value::is_null), "{times}: {figures:?}");
    }
    // A single one has a sentence of its own.
    run.plan.targets.truncate(1);
    run.slots.retain(|slot| slot.target == 0);
    let text = report(&run, &Verdict::default(), PLAIN);
    assert!(text.contains("requests ok in") && !text.contains("median"), "{text}");
}

#[test]
fn requests_without_an_answer_are_told_wherever_their_times_are() {
    let mut run = sample::run(&[server("A", "https://a.example/f", 4_115, 1_100_000)], 1);
    let tally = &mut run.slots.iter_mut().find(|slot| slot.role == SlotRole::Measured).unwrap().tally;
    let waited = duel_model::Distribution::from_values(std::iter::repeat_n(50_000_000, 12));
    tally.response.merge(&waited);
    (tally.shed, tally.in_flight) = (10, 2);
    let text = report(&run, &Verdict::default(), PLAIN).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("with 12 unanswered ones"), "{text}");
    assert!(text.contains("2 without an answer (time waited) and 10 never sent (their deadline) too"), "{text}");
    let page = duel_report::page(&run, &Verdict::default(), &[]);
    assert!(page.contains("2 without an answer (time waited) and 10 never sent (their deadline) too"));
}
