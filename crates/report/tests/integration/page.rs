//! The page: what it says, that nothing foreign gets into its markup, and that secrets stay out.

use crate::sample::{self, doubt, pair, server};
use duel_model::web::failure;
use duel_model::*;
use duel_report::{Command, Layout, charts, page};
use proptest::prelude::*;

fn explained() -> (Run, Verdict) {
    let (mut run, verdict) = sample::slower();
    run.explanation = Some(sample::why());
    (run, verdict)
}

fn command(typed: &str) -> Command {
    Command { purpose: "Repeat it".into(), typed: typed.into() }
}

/// Every element that is opened is closed in its turn, and every attribute is quoted. Panics with the place.
fn check_markup(html: &str) {
    const VOID: [&str; 3] = ["meta", "br", "!DOCTYPE"];
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        // Rules of a style sheet are no markup.
        let end = rest.find('>').unwrap_or_else(|| panic!("unclosed tag: {}", &rest[..rest.len().min(80)]));
        let tag = &rest[..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "wrong end before {}", &rest[..rest.len().min(80)]);
            continue;
        }
        let name = tag.split_whitespace().next().unwrap().trim_end_matches('/');
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '!'), "odd tag <{tag}>");
        assert_eq!(tag.matches('"').count() % 2, 0, "odd quotes in <{tag}>");
        assert!(!tag.contains(" on"), "an event handler in <{tag}>");
        if !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
}

/// Identifiers that other elements refer to are there, once.
fn check_ids(html: &str) {
    let ids: Vec<&str> = html.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    let unique: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(unique.len(), ids.len(), "{ids:?}");
    for reference in html.split("aria-labelledby=\"").skip(1) {
        for id in reference.split('"').next().unwrap().split(' ') {
            assert!(unique.contains(&id), "{id} is nowhere");
        }
    }
}

#[test]
fn it_says_what_was_found_and_needs_nothing_else() {
    let (run, verdict) = explained();
    let html = page(&run, &verdict, &[command("duel rerun 20261120-233200-7f3a")]);
    check_markup(&html);
    check_ids(&html);
    for text in [
        "B is 3.04x slower than A (95 % interval 2.97 to 3.11, 24 slots)",
        "36 of 16,478 requests to B failed (0.2 %)",
        "Cause: tls.aes-unused on B (confirmed, explains 99.7 % of the gap)",
        "B answers a request for one byte with all of them",
        "duel rerun 20261120-233200-7f3a",
        "TLS_AES_256_GCM_SHA384",
        "Linux 6.18",
        "seed 42",
    ] {
        assert!(html.contains(text), "{text} is not there");
    }
    for id in ["verdict", "probes", "progress", "rate", "latency", "percentiles", "phases"] {
        assert!(html.contains(&format!("<figure id=\"chart-{id}\">")), "no chart {id}");
    }
    for outside in ["http-equiv=\"refresh\"", "<script", "<link", "<img", "<iframe", "@import", "url(", "src=", "href="]
    {
        assert!(!html.contains(outside), "{outside}");
    }
}

#[test]
fn texts_of_servers_and_users_stay_texts() {
    let evil = "\"><script>alert(1)</script><img src=x onerror=alert(1)>'&amp;\u{1b}[31m\u{202e}";
    let mut b = server(&format!("B{evil}"), &format!("https://b.example/{evil}"), 900, 1_000_000);
    b.negotiated = Some(sample::negotiated().with(web::SERVER, evil).with(web::LOCATION, evil));
    b.failed = std::collections::BTreeMap::from([(failure::PROTOCOL.id(), 5)]);
    let mut run = sample::run(&[server("A", "https://a.example/", 1_000, 1_000_000), b.clone()], 5);
    for slot in &mut run.slots {
        slot.tally.failure_examples = vec![evil.to_owned()];
    }
    let mut facts = Facts::default();
    facts.0.insert(evil.to_owned(), Known::from(evil.to_owned()));
    facts.0.insert(format!("{evil}2"), Known::Unavailable(evil.to_owned()));
    run.hosts = vec![
        None,
        Some(HostRecord {
            how: evil.into(),
            facts,
            lost: Some(evil.into()),
            doubts: vec![evil.into()],
            last_words: vec![KernelLine { uptime_ns: Some(9), level: None, text: evil.into() }],
            watched_from_uptime_ns: Some(1),
            ..HostRecord::default()
        }),
    ];
    let mut explanation = sample::why();
    for finding in &mut explanation.findings {
        finding.summary = evil.into();
        finding.cause = evil.into();
        finding.remedy = evil.into();
        finding.evidence.push(Evidence::new(evil, evil, Some(evil.into())));
    }
    explanation.ruled_out.push(evil.into());
    run.explanation = Some(explanation);
    run.id = evil.into();
    run.versions.os = evil.into();
    let verdict = Verdict {
        pairs: vec![pair(&b.name, Metric::Rate, Call::Slower, Some([0.9, 0.88, 0.92]))],
        doubts: vec![doubt(DoubtId::Errors, Some(evil), evil)],
        ..Verdict::default()
    };
    let html = page(&run, &verdict, &[command(evil)]);
    check_markup(&html);
    check_ids(&html);
    assert!(!html.contains("<script") && !html.contains("<img") && !html.contains(['\u{1b}', '\u{202e}']));
    for chart in charts(&run, &verdict) {
        let svg = chart.svg(Layout::Wide);
        check_markup(&svg);
        assert!(!svg.contains("<script"), "{svg}");
    }
}

#[test]
fn secrets_stay_at_home() {
    let (mut run, verdict) = explained();
    run.plan.targets[1].address = "https://b.example/f?user=7&api_key=K3YK3Y&sig=S1GS1G".into();
    run.plan.workload = WorkloadPlan::Http(Box::new(HttpPlan {
        headers: vec![("Authorization".into(), "Bearer T0K3N".into()), ("Accept".into(), "*/*".into())],
        body: Body::Text("{\"password\":\"it's P4SS\"}".into()),
        ..HttpPlan::default()
    }));
    let typed = "duel A=https://a.example/ 'B=https://b.example/f?user=7&api_key=K3YK3Y&sig=S1GS1G' --body \
                 '{\"password\":\"it'\\''s P4SS\"}' -c 4";
    if let Some(explanation) = &mut run.explanation {
        explanation.findings[0].evidence[0].repeat = Some(typed.to_owned());
        explanation.findings[0].summary = "asked for https://b.example/f?user=7&api_key=K3YK3Y&sig=S1GS1G".into();
    }
    let html = page(&run, &verdict, &[command(typed)]);
    for secret in ["K3YK3Y", "S1GS1G", "T0K3N", "P4SS"] {
        assert!(!html.contains(secret), "{secret} is on the page");
    }
    assert!(html.contains("user=7") && html.contains("api_key=[left out]"), "the rest stays");
}

#[test]
fn secrets_that_a_server_has_said_stay_at_home_too() {
    let (mut run, verdict) = explained();
    let location = "https://b.example/f?id=7&X-Amz-Signature=S1GS1G#access_token=T0K3N";
    for seen in run.first_contact.iter_mut().flatten() {
        seen.note(web::LOCATION, Some(location));
    }
    let long = format!("https://b.example/{}?sig=S1GS1G{}", "f".repeat(250), "g".repeat(100));
    for slot in &mut run.slots {
        slot.tally.failed = [(failure::STATUS.id(), 1)].into();
        slot.tally.failure_examples =
            vec![format!("the redirect to '{location}' leads nowhere"), format!("no answer from {long}")];
    }
    let html = page(&run, &verdict, &[]);
    assert!(html.contains("id=7&amp;X-Amz-Signature=[left out]#access_token=[left out]"), "what is public stays");
    for secret in ["S1GS1G", "T0K3N"] {
        assert!(!html.contains(secret), "{secret} is on the page");
    }
}

#[test]
fn a_big_run_makes_a_small_page() {
    let names = ["one", "two", "three", "four"];
    let servers: Vec<_> =
        names.iter().map(|name| server(name, &format!("https://{name}.example/"), 12_500, 900_000)).collect();
    // 100 blocks of 8 slots: 10 million requests.
    let run = sample::run(&servers, 100);
    let metrics = [Metric::Rate, Metric::ResponseP50, Metric::ResponseP99];
    let pairs =
        names[1..].iter().flat_map(|name| metrics.map(|m| pair(name, m, Call::Slower, Some([0.9, 0.88, 0.92]))));
    let verdict = Verdict { pairs: pairs.collect(), doubts: vec![], ..Verdict::default() };
    let html = page(&run, &verdict, &[]);
    assert!(html.len() < 1_000_000, "{} bytes", html.len());
    check_ids(&html);
}

#[test]
fn runs_without_anything_to_show_have_a_page_all_the_same() {
    let (mut run, verdict) = sample::slower();
    run.slots.clear();
    run.first_contact.clear();
    check_markup(&page(&run, &verdict, &[]));
    check_markup(&page(&run, &Verdict::default(), &[]));
    run.plan.targets.truncate(1);
    check_markup(&page(&run, &Verdict::default(), &[]));
    run.plan.targets.clear();
    check_markup(&page(&run, &Verdict::default(), &[]));
    assert!(charts(&run, &Verdict::default()).is_empty());

    let mut dead = server("B", "https://b.example/", 0, 1_000_000);
    dead.failed = std::collections::BTreeMap::from([(failure::REFUSED.id(), 5_000)]);
    let run = sample::run(&[dead], 1);
    let html = page(&run, &Verdict::default(), &[]);
    assert!(html.contains("No request ended well"), "{html}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever the figures are, everything drawn lies on the drawing and is a number.
    #[test]
    fn drawings_hold_numbers_only(
        ok in proptest::collection::vec(0..2_000_000_u64, 1..4),
        tls_ns in 1..1_u64 << 44,
        blocks in 0..12_u32,
        figures in proptest::collection::vec(proptest::option::of((any::<f64>(), any::<f64>(), any::<f64>())), 0..4),
    ) {
        let servers: Vec<_> =
            ok.iter().enumerate().map(|(i, &ok)| server(&format!("T{i}"), "http://t/", ok, tls_ns)).collect();
        let run = sample::run(&servers, blocks);
        let pairs = figures.iter().map(|f| pair("T1", Metric::Rate, Call::Unknown, f.map(|(a, b, c)| [a, b, c])));
        let verdict = Verdict { pairs: pairs.collect(), doubts: vec![], ..Verdict::default() };
        for chart in charts(&run, &verdict) {
            for layout in [Layout::Wide, Layout::Narrow] {
                let svg = chart.svg(layout);
                check_markup(&svg);
                for bad in ["NaN", "inf"] {
                    prop_assert!(!svg.contains(&format!("\"{bad}")) && !svg.contains(&format!(" {bad} ")), "{}", svg);
                }
            }
        }
        check_markup(&page(&run, &verdict, &[]));
    }
}
