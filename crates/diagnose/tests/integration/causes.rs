//! Each cause injected into a simulated world, at several strengths and sizes, as target and as baseline.

use crate::world::{Dice, Server, SlowConnections, World, named, open_loop, pair, world};
#[allow(dead_code, reason = "each test of the world uses its own part")]
use duel_diagnose::{Case, Step, catalogue, next};
use duel_model::{
    Body, Call, Confidence, Doubt, DoubtId, Explanation, Finding, Http2Plan, Metric, Nanos, PairVerdict, SECOND_NS,
    Variation, Verdict,
};

fn good() -> Server {
    Server::default()
}

/// The world and its mirror image, in which the baseline is the slow one, each under several seeds.
fn both_ways(world: World, mut check: impl FnMut(&World, &Explanation, &str)) {
    for seed in 1..=12 {
        let world = World { seed, ..world.clone() };
        check(&world, &world.explain(), "B");
        let mirror = World { seed: seed + 100, ..world }.swapped();
        check(&mirror, &mirror.explain(), "A");
    }
}

fn first(explanation: &Explanation) -> &Finding {
    &explanation.findings[0]
}

fn assert_only(world: World, cause: &str, least: Confidence, share: f64) {
    both_ways(world, |world, explanation, slow| {
        assert_eq!(named(explanation), [(cause, Some(slow))], "seed {} {explanation:#?}", world.seed);
        let finding = first(explanation);
        assert!(finding.confidence >= least, "{finding:#?}");
        assert!(finding.explains.unwrap() >= share, "{finding:#?}");
        assert!(world.budget_ns >= explanation.probes.iter().map(|outcome| outcome.probe.budget_ns).sum());
        assert!(explanation.probes.len() <= 5, "{:?}", probes(explanation));
    });
}

fn assert_unknown(world: World) {
    both_ways(world, |world, explanation, slow| {
        assert_eq!(named(explanation), [("unknown", Some(slow))], "seed {} {explanation:#?}", world.seed);
        let finding = first(explanation);
        assert_eq!((finding.confidence, finding.explains), (Confidence::Possible, None));
    });
}

fn probes(explanation: &Explanation) -> Vec<&str> {
    explanation.probes.iter().map(|outcome| outcome.probe.id.as_str()).collect()
}

fn said(explanation: &Explanation) -> String {
    let lines = explanation.findings.iter().flat_map(|finding| {
        let evidence = finding.evidence.iter().map(|line| format!("[{}] {}", line.probe, line.told()));
        std::iter::once(finding.summary.clone()).chain(evidence).collect::<Vec<_>>()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn aes_unused() {
    for aes in [1.5, 3.0, 8.0, 20.0] {
        for body in [200e3, 2.86e6, 20e6] {
            for connections in [1, 16, 300] {
                for keepalive in [true, false] {
                    let mut world = World { body, ..world(&[good(), Server { aes, ..good() }]) };
                    world.budget_ns = 3_600 * SECOND_NS;
                    world.plan.load.connections = connections;
                    world.http().keepalive = keepalive;
                    assert_only(world, "tls.aes-unused", Confidence::Likely, 0.6);
                }
            }
        }
    }
}

#[test]
fn aes_unused_without_a_size_sweep() {
    for aes in [3.0, 8.0] {
        let server = Server { has_range: false, ..good() };
        assert_only(world(&[server.clone(), Server { aes, ..server }]), "tls.aes-unused", Confidence::Likely, 0.8);
    }
}

#[test]
fn aes_unused_is_never_confirmed_from_outside() {
    let explanation = World { noise: 0.0, ..world(&[good(), Server { aes: 8.0, ..good() }]) }.explain();
    assert_eq!(first(&explanation).confidence, Confidence::Likely);
    assert!(first(&explanation).summary.contains("either its TLS library does not use them or the CPU lacks them"));
    assert_eq!(probes(&explanation)[0], "alone");
}

#[test]
fn large_key() {
    for (key, sign) in [(("RSA", 4096), 5e6), (("RSA", 3072), 2e6), (("RSA", 2048), 0.6e6)] {
        for keepalive in [true, false] {
            for connections in [1, 16] {
                // Where the plan keeps connections, a server that closes them pays all the same.
                let base = Server { keeps: !keepalive, ..good() };
                let mut world = World { body: 2e3, ..world(&[base.clone(), Server { key, sign, ..base }]) };
                world.http().keepalive = keepalive;
                world.plan.load.connections = connections;
                assert_only(world, "tls.large-key", Confidence::Confirmed, 0.8);
            }
        }
    }
}

/// A gap that was one of another hour: whatever a flip changes, the gap is gone under it.
#[test]
fn a_gap_that_has_gone_since_is_nobodys_fault() {
    for connections in [1, 16] {
        let seems = Server { gzip: Some((5e3, 0.9)), keeps: false, ..good() };
        let busy = Server { delay: 40e6, ..seems.clone() };
        let mut then = World { body: 100e3, ..world(&[good(), busy]) };
        then.plan.load.connections = connections;
        let now = World { servers: vec![good(), seems], ..then.clone() };
        assert_unknown(World { later: Some(Box::new(now)), ..then });
    }
}

/// Each probe sends another part of a long list, and some of what is in it is dear: that is nobody's compression.
#[test]
fn parts_of_a_list_are_not_held_against_each_other() {
    for connections in [1, 16] {
        let seems = Server { gzip: Some((5e3, 0.9)), keeps: false, ..good() };
        let dear = Server { delay: 40e6, ..seems.clone() };
        let mut sends = World { body: 100e3, round_ops: Some(20_000), ..world(&[good(), dear]) };
        sends.plan.load.connections = connections;
        let cheap = World { servers: vec![good(), seems], ..sends.clone() };
        let flips = ["identity", "identity-loaded", "all-close", "all-close-loaded"];
        sends.elsewhere = flips.map(|id| (id.to_owned(), cheap.clone())).into();
        assert_unknown(sends.clone());
        // One that is gone through several times is the same everywhere.
        let compresses = Server { gzip: Some((5e6, 0.3)), ..good() };
        let world = World { servers: vec![good(), compresses], elsewhere: vec![], round_ops: Some(300), ..sends };
        assert_only(world, "http.compression", Confidence::Confirmed, 0.8);
    }
}

/// It has become smaller, and what is left of it is still the same fault.
#[test]
fn a_gap_that_has_changed_since_is_explained_as_it_is_now() {
    for (connections, then_ns, now_ns) in [(1, 6e6, 5e6), (16, 6e6, 5e6), (1, 5e6, 9e6)] {
        let of = |ns| Server { gzip: Some((ns, 0.3)), ..good() };
        let mut then = World { body: 100e3, ..world(&[good(), of(then_ns)]) };
        then.plan.load.connections = connections;
        let now = World { servers: vec![good(), of(now_ns)], ..then.clone() };
        assert_only(World { later: Some(Box::new(now)), ..then }, "http.compression", Confidence::Confirmed, 0.8);
    }
}

/// A look-up, or a key in a box of its own: far beyond what the key, which is the dearer one, can take.
#[test]
fn a_key_is_not_accused_of_more_than_a_signature() {
    for connections in [1, 16] {
        let base = Server { keeps: false, ..good() };
        let slow = Server { key: ("RSA", 2048), sign: 60e6, ..base.clone() };
        let mut world = World { body: 2e3, budget_ns: 3_600 * SECOND_NS, ..world(&[base, slow]) };
        world.http().keepalive = false;
        world.plan.load.connections = connections;
        both_ways(world, |_, explanation, _| {
            assert!(named(explanation).iter().all(|(cause, _)| *cause != "tls.large-key"), "{explanation:#?}");
        });
    }
}

/// A share of one in a hundred requests is most of the time where a handshake costs a hundred requests.
#[test]
fn handshakes_that_are_rare_and_dear_are_no_less_a_cause() {
    for closes_after in [20.0, 100.0] {
        for connections in [1, 16] {
            let base = Server { closes_after: Some(closes_after), ..good() };
            let slow = Server { key: ("RSA", 4096), sign: 5e6 * closes_after / 20.0, ..base.clone() };
            let mut world = World { body: 2e3, ..world(&[base, slow]) };
            world.plan.load.connections = connections;
            assert_only(world, "tls.large-key", Confidence::Confirmed, 0.8);
        }
    }
}

#[test]
fn connections_closed_after_some_requests_are_named_where_that_is_the_gap() {
    for connections in [1, 16] {
        let base = Server { key: ("RSA", 4096), sign: 2e6, ..good() };
        let slow = Server { closes_after: Some(20.0), ..base.clone() };
        let mut world = World { body: 2e3, ..world(&[base, slow]) };
        world.plan.load.connections = connections;
        both_ways(world, |_, explanation, slow| {
            let found = named(explanation);
            assert_eq!(found[0], ("http.no-keepalive", Some(slow)), "{explanation:#?}");
            assert!(found[1..].iter().all(|(cause, _)| *cause == "unknown"), "{explanation:#?}");
            let summary = &first(explanation).summary;
            assert!(summary.contains("after some 20 requests"), "{summary}");
        });
    }
}

/// OpenSSL 3.0 has no fast code for P-384: a signature takes longer than one with RSA-2048.
#[test]
fn a_long_curve_may_be_dearer_than_rsa() {
    let base = Server { keeps: false, key: ("RSA", 2048), sign: 0.6e6, ..good() };
    let slow = Server { key: ("EC", 384), sign: 1.6e6, ..base.clone() };
    let mut world = World { body: 2e3, ..world(&[base, slow]) };
    world.http().keepalive = false;
    assert_only(world, "tls.large-key", Confidence::Confirmed, 0.8);
}

#[test]
fn large_key_without_resumption() {
    let base = Server { resumes: false, ..good() };
    let mut world = World { body: 2e3, ..world(&[base.clone(), Server { key: ("RSA", 4096), sign: 5e6, ..base }]) };
    world.http().keepalive = false;
    assert_only(world, "tls.large-key", Confidence::Confirmed, 0.8);
}

/// Every handshake is a full one; with these costs on the slow side.
fn handshakes(slow: Server) -> World {
    let mut world = World { body: 2e3, ..world(&[good(), Server { key: ("RSA", 4096), ..slow }]) };
    world.http().keepalive = false;
    world.plan.load.connections = 1;
    world
}

#[test]
fn kept_connections_decide_where_a_disturbed_resumption_does_not() {
    let quiet = handshakes(Server { sign: 5e6, ..good() });
    let disturbed = World { noise: 1.2, ..quiet.clone() };
    let world = World { elsewhere: vec![("resumed".to_owned(), disturbed)], ..quiet };
    let mut by_kept = 0;
    both_ways(world, |_, explanation, slow| {
        assert!(
            named(explanation)
                .iter()
                .all(|name| [("tls.large-key", Some(slow)), ("unknown", Some(slow))].contains(name))
        );
        by_kept += i32::from(
            named(explanation) == [("tls.large-key", Some(slow))]
                && first(explanation).summary.contains("With connections kept"),
        );
    });
    assert!(by_kept >= 12, "{by_kept} of 24");
}

#[test]
fn resumption_and_kept_connections_that_contradict_each_other_leave_the_key_open() {
    let innocent = Server { delay: 30e6, ..good() };
    let with_key = Server { sign: 5e6, delay: 5e6, ..good() };
    let kept = World { elsewhere: vec![("kept".to_owned(), handshakes(innocent))], ..handshakes(with_key) };
    // The key exchange is what is slow: kept connections leave it out, resumed ones do not.
    let exchange = handshakes(Server { sign: 1e6, exchange: 3e6, ..good() });
    for world in [kept, exchange] {
        both_ways(world, |_, explanation, slow| {
            assert_eq!(named(explanation), [("unknown", Some(slow))], "{explanation:#?}");
            assert!(!explanation.ruled_out.contains(&"tls.large-key".to_owned()));
            assert!(said(explanation).contains("these do not agree"), "{}", said(explanation));
        });
    }
}

#[test]
fn a_probe_that_reached_another_server_does_not_count() {
    let peers = |last: &str| vec![Some("192.0.2.1:443".to_owned()), Some(format!("192.0.2.{last}:443"))];
    let here = World { peers: peers("2"), ..world(&[good(), Server { aes: 8.0, ..good() }]) };
    assert_only(here.clone(), "tls.aes-unused", Confidence::Likely, 0.8);
    // Behind the name there is also a server without the fault.
    let elsewhere = World { peers: peers("3"), ..world(&[good(), good()]) };
    let world = World { elsewhere: vec![("cipher-chacha20".to_owned(), elsewhere)], ..here };
    both_ways(world, |_, explanation, slow| {
        assert_eq!(named(explanation), [("unknown", Some(slow))]);
        let why = format!("it reached {slow} at 192.0.2.3:443, the comparison at 192.0.2.2:443");
        assert!(said(explanation).contains(&why), "{}", said(explanation));
    });
}

#[test]
fn no_keepalive() {
    for (tls, body) in [(true, 2e3), (true, 200e3), (false, 200.0)] {
        for round_trip in [60e3, 5e6] {
            for connections in [1, 16] {
                let base = Server { tls, round_trip, cores: 64.0, ..good() };
                let mut world = World { body, ..world(&[base.clone(), Server { keeps: false, ..base }]) };
                world.plan.load.connections = connections;
                assert_only(world, "http.no-keepalive", Confidence::Confirmed, 0.8);
            }
        }
    }
}

/// A new connection costs most in the receive phase where it starts slowly and responses are long.
#[test]
fn no_keepalive_that_costs_much_more_than_connecting() {
    let mut base = Server { round_trip: 60e3, cores: 64.0, ..good() };
    base.net.first_flight = Some(1.0);
    for connections in [1, 4] {
        let mut world = World { body: 4e6, ..world(&[base.clone(), Server { keeps: false, ..base.clone() }]) };
        world.plan.load.connections = connections;
        assert_only(world, "http.no-keepalive", Confidence::Confirmed, 0.8);
    }
}

/// Kept connections cost so little here that connecting makes a request `times` as dear.
fn strong_gap(times: f64) -> World {
    let base = Server { round_trip: 5e3, fixed: 15e3, exchange: 0.0, cores: 1e3, key: ("RSA", 2048), ..good() };
    let kept_ns = base.round_trip + base.fixed;
    let base = Server { sign: (times - 1.0) * kept_ns - 2.0 * base.round_trip, ..base };
    World { body: 1.0, ..world(&[base.clone(), Server { keeps: false, ..base }]) }
}

/// The rest is 1 + k (r' - 1), and k is as large as the gap: noise of r' must not count k-fold in its logarithm.
#[test]
fn no_keepalive_is_found_however_strong_the_gap() {
    for times in [5.0, 10.0, 20.0, 50.0, 100.0] {
        for noise in [0.005, 0.01, 0.02, 0.03] {
            let (mut found, mut confirmed, mut of) = (0, 0, 0);
            for seed in 0..200 {
                for connections in [1, 16] {
                    let mut world = World { seed, noise, ..strong_gap(times) };
                    world.plan.load.connections = connections;
                    let explanation = world.explain();
                    let finding = first(&explanation);
                    let is_it = (finding.cause.as_str(), finding.target.as_deref()) == ("http.no-keepalive", Some("B"));
                    of += 1;
                    found += i32::from(is_it);
                    confirmed += i32::from(is_it && finding.confidence == Confidence::Confirmed);
                }
            }
            println!("{times:3}x, noise {noise:.3}: found {found}, confirmed {confirmed} of {of}");
            assert_eq!(found, of, "{times}x, noise {noise}");
        }
    }
}

#[test]
fn compression() {
    for tls in [true, false] {
        for ns in [300e3, 5e6, 80e6] {
            let base = Server { tls, ..good() };
            let world = World { body: 100e3, ..world(&[base.clone(), Server { gzip: Some((ns, 0.3)), ..base }]) };
            assert_only(world, "http.compression", Confidence::Confirmed, 0.8);
        }
    }
}

#[test]
fn a_higher_level_of_compression_is_likely_at_most() {
    let of = |ns, left| Server { gzip: Some((ns, left)), ..good() };
    let world = World { body: 100e3, ..world(&[of(1e6, 0.35), of(9e6, 0.30)]) };
    both_ways(world, |_, explanation, slow| {
        assert_eq!(named(explanation), [("http.compression", Some(slow))]);
        assert_eq!(first(explanation).confidence, Confidence::Likely);
    });
    // A slower CPU that compresses to the same size is not accused.
    let slow = Server { cpu: 3.0, ..of(5e6, 0.3) };
    assert_unknown(World { body: 100e3, ..self::world(&[of(5e6, 0.3), slow]) });
}

#[test]
fn what_is_not_in_the_catalogue_is_unknown() {
    let unknowns = [
        ("rate cap", Server { cap: Some(10e6), ..good() }),
        ("delay", Server { delay: 10e6, ..good() }),
        ("far away", Server { round_trip: 20e6, ..good() }),
        ("slow CPU", Server { cpu: 2.0, ..good() }),
        ("no assembly", Server { aes: 6.0, chacha: 3.0, sign: 200e3, exchange: 800e3, ..good() }),
        ("slow ChaCha20 too", Server { aes: 20.0, chacha: 6.0, ..good() }),
        ("copies", Server { per_byte: 3.0, ..good() }),
        ("one core", Server { cores: 1.0, ..good() }),
    ];
    for (what, server) in unknowns {
        for keepalive in [true, false] {
            for tls in [true, false] {
                for connections in [1, 64] {
                    let slow = Server { tls, ..server.clone() };
                    let mut world = world(&[Server { tls, ..good() }, slow]);
                    world.http().keepalive = keepalive;
                    world.plan.load.connections = connections;
                    let unseen = ((what == "one core" || what == "delay") && connections == 1)
                        || ((what == "delay" || what == "far away") && connections > 1)
                        || (!tls && (what == "no assembly" || what == "slow ChaCha20 too"));
                    if !unseen {
                        println!("{what} keepalive {keepalive} tls {tls} connections {connections}");
                        assert_unknown(world);
                    }
                }
            }
        }
    }
    assert_unknown(World { body: 2e3, ..world(&[good(), Server { delay: 10e6, ..good() }]) });
}

#[test]
fn unknown_tells_where_the_gap_sits() {
    let explain = |server: Server, body: f64| World { body, ..world(&[good(), server]) }.explain();
    let delay = said(&explain(Server { delay: 10e6, ..good() }, 200e3));
    for part in ["in wait", "paid per request", "not depend on the cipher", "not http.compression", "not tls.large-key"]
    {
        assert!(delay.contains(part), "{part}: {delay}");
    }
    let capped = explain(Server { cap: Some(20e6), ..good() }, 2.86e6);
    let cap = said(&capped);
    for part in ["in receive", "grows with the size", "not tls.aes-unused: with ChaCha20 forced: B"] {
        assert!(cap.contains(part), "{part}: {cap}");
    }
    let way = "start `duel net serve` on these machines and add `--net-server A=tcp://a.example --net-server B=tcp://b.example`.";
    let remedy = |explanation: &Explanation| explanation.findings.last().unwrap().remedy.clone();
    assert!(remedy(&capped).contains(way), "{}", remedy(&capped));
    let mut here = World { body: 2.86e6, ..world(&[good(), Server { cap: Some(20e6), ..good() }]) };
    here.plan.targets[1].address = "https://127.0.0.1/f".to_owned();
    assert!(!remedy(&here.explain()).contains("net serve"), "there is no way to this machine");
    assert!(!remedy(&explain(Server { delay: 10e6, ..good() }, 200e3)).contains("net serve"), "a server that thinks");
    let cores = said(&explain(Server { cores: 1.0, ..good() }, 2.86e6));
    assert!(cores.contains("one of concurrency"), "{cores}");
}

#[test]
fn slow_chacha20_rules_unused_aes_out() {
    let explanation = world(&[good(), Server { aes: 20.0, chacha: 6.0, ..good() }]).explain();
    assert!(explanation.ruled_out.contains(&"tls.aes-unused".to_owned()));
    assert!(said(&explanation).contains("ChaCha20 is slow on B as well"), "{}", said(&explanation));
}

#[test]
fn both_without_aes_instructions_differ_by_something_else() {
    let base = Server { aes: 6.0, per_byte: 2.0, ..good() };
    assert_unknown(world(&[base.clone(), Server { cpu: 2.0, ..base }]));
}

/// The two probes of a cipher are made one after the other. What slows the whole machine down during one of them makes AES
/// look a little slower than ChaCha20 on the side as well that has its instructions.
#[test]
fn aes_a_little_slower_on_the_fast_side_acquits_nobody() {
    let fast = Server { aes: 0.9, chacha: 0.6, ..good() };
    for aes in [6.0, 12.0] {
        let explanation = world(&[fast.clone(), Server { aes, ..fast.clone() }]).explain();
        assert_eq!(named(&explanation)[0], ("tls.aes-unused", Some("B")), "{explanation:#?}");
    }
}

#[test]
fn an_innocent_difference_is_not_accused() {
    // The key is dearer, but the way is longer; connections are closed, but the disk is slow.
    let key = Server { key: ("RSA", 2048), sign: 600e3, round_trip: 20e6, ..good() };
    let mut far = World { body: 2e3, ..world(&[good(), key]) };
    far.http().keepalive = false;
    assert_unknown(far);
    let closing = Server { keeps: false, delay: 300e6, ..good() };
    assert_unknown(World { body: 2e3, budget_ns: 600 * SECOND_NS, ..world(&[good(), closing]) });
    let gzip = Server { gzip: Some((20e3, 0.3)), delay: 30e6, ..good() };
    assert_unknown(World { body: 2e3, ..world(&[good(), gzip]) });
}

#[test]
fn two_causes_are_both_found() {
    let cases: [(&[&str], bool, f64, Server); 4] = [
        (&["http.no-keepalive", "tls.aes-unused"], true, 200e3, Server { aes: 2.0, keeps: false, ..good() }),
        (
            &["tls.aes-unused", "tls.large-key"],
            false,
            1e6,
            Server { aes: 6.0, key: ("RSA", 4096), sign: 5e6, ..good() },
        ),
        (
            &["http.compression", "http.no-keepalive"],
            true,
            1e3,
            Server { gzip: Some((250e3, 0.3)), keeps: false, ..good() },
        ),
        (
            &["http.compression", "tls.large-key"],
            false,
            2e3,
            Server { gzip: Some((5e6, 0.3)), key: ("RSA", 4096), sign: 5e6, ..good() },
        ),
    ];
    for (causes, keepalive, body, server) in cases {
        let mut world = World { body, ..world(&[good(), server]) };
        world.http().keepalive = keepalive;
        both_ways(world, |_, explanation, slow| {
            let mut found = named(explanation);
            found.sort_unstable();
            let expected: Vec<_> = causes.iter().map(|cause| (*cause, Some(slow))).collect();
            assert_eq!(found, expected, "{explanation:#?}");
        });
    }
}

#[test]
fn a_cause_and_something_else() {
    let mut world =
        World { body: 2e3, ..world(&[good(), Server { key: ("RSA", 4096), sign: 5e6, delay: 5e6, ..good() }]) };
    world.http().keepalive = false;
    world.plan.load.connections = 1;
    both_ways(world, |_, explanation, slow| {
        assert_eq!(named(explanation), [("tls.large-key", Some(slow)), ("unknown", Some(slow))]);
        assert!(said(explanation).contains("left unexplained"));
        assert_eq!(first(explanation).confidence, Confidence::Likely);
    });
}

#[test]
fn the_same_server_twice() {
    for seed in 0..200 {
        for noise in [0.002, 0.01, 0.05] {
            let explanation = World { seed, noise, ..world(&[good(), good()]) }.explain();
            let cause = first(&explanation).cause.as_str();
            assert!(["none", "unknown"].contains(&cause), "{explanation:#?}");
            assert!(cause == "none" || noise > 0.002);
        }
    }
    let explanation = World { noise: 0.002, ..world(&[good(), good()]) }.explain();
    assert_eq!((named(&explanation), explanation.probes.len()), (vec![("none", None)], 0));
    assert_eq!(first(&explanation).confidence, Confidence::Confirmed);
}

#[test]
fn three_targets_are_explained_each() {
    let aes = Server { aes: 8.0, ..good() };
    let explanation = world(&[good(), aes.clone(), good(), Server { cap: Some(30e6), ..good() }]).explain();
    assert_eq!(named(&explanation), [("tls.aes-unused", Some("B")), ("unknown", Some("D")), ("none", Some("C"))]);
    // A slow baseline is named once, though both others are faster.
    let explanation = world(&[aes, good(), good()]).explain();
    assert_eq!(named(&explanation), [("tls.aes-unused", Some("A"))]);
}

#[test]
fn an_open_loop_is_explained_too() {
    let mut world = world(&[good(), Server { aes: 8.0, ..good() }]);
    world.plan.load.kind = open_loop(20.0);
    assert_only(world, "tls.aes-unused", Confidence::Likely, 0.8);
}

#[test]
fn a_probe_that_is_missing_is_not_a_probe_that_showed_nothing() {
    let mut world = world(&[good(), Server { aes: 8.0, ..good() }]);
    world.unavailable = vec!["cipher-chacha20".to_owned()];
    let explanation = world.explain();
    assert_eq!(named(&explanation), [("unknown", Some("B"))]);
    assert!(!explanation.ruled_out.contains(&"tls.aes-unused".to_owned()));
    assert!(said(&explanation).contains("open: tls.aes-unused"), "{}", said(&explanation));
    // A server that has no ChaCha20 fails every handshake.
    let server = Server { has_chacha: false, ..good() };
    let explanation = self::world(&[server.clone(), Server { aes: 8.0, ..server }]).explain();
    assert_eq!(named(&explanation), [("unknown", Some("B"))]);
    assert!(said(&explanation).contains("no request to B succeeded"), "{}", said(&explanation));
}

#[test]
fn without_time_it_concludes_with_what_is_there() {
    for budget_ns in [0, 3 * SECOND_NS, 5 * SECOND_NS, 9 * SECOND_NS] {
        let world = World { budget_ns, ..world(&[good(), Server { aes: 8.0, ..good() }]) };
        let explanation = world.explain();
        assert_eq!(named(&explanation), [("unknown", Some("B"))]);
        assert!(explanation.probes.len() as Nanos <= budget_ns / (4 * SECOND_NS));
        assert!(said(&explanation).contains("not made for want of time"), "{}", said(&explanation));
    }
}

#[test]
fn failures_are_told() {
    let mut slow = Server { aes: 8.0, failing: 0.05, ..good() };
    let explanation = world(&[good(), slow.clone()]).explain();
    assert_eq!(named(&explanation), [("tls.aes-unused", Some("B"))]);
    assert!(said(&explanation).contains("50 of 1050 requests to B failed (4.8 %)"), "{}", said(&explanation));
    // Where many fail, the rate of the others is not comparable.
    slow.failing = 0.5;
    let explanation = world(&[good(), slow]).explain();
    assert_eq!(named(&explanation), [("unknown", Some("B"))]);
    assert!(first(&explanation).summary.contains("33 % of the requests to B failed"), "{}", said(&explanation));
}

#[test]
fn evidence_can_be_repeated_by_hand() {
    let explanation = World { noise: 0.0, ..world(&[good(), Server { aes: 8.0, ..good() }]) }.explain();
    let of = |probe: &str| {
        let line = first(&explanation).evidence.iter().find(|line| line.probe == probe).unwrap();
        (line.text.clone(), line.repeat.clone().unwrap())
    };
    let targets = r"duel 'A=https://a.example/f?x=1&y='\''2'\''' 'B=https://b.example/f?x=1&y='\''2'\'''";
    let chacha = "--ciphers TLS_CHACHA20_POLY1305_SHA256,TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,\
                  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256";
    let (times, judging) = ("--timeout 1s --connect-timeout 1s", "-d 30s --seed 1");
    let one = |target: &str| format!("duel run {target} -c 1 -t 1 {times} -n 1 --seed 1");
    let [a, b] = [r"'A=https://a.example/f?x=1&y='\''2'\'''", r"'B=https://b.example/f?x=1&y='\''2'\'''"];
    assert_eq!(of("first-contact").1, format!("{}; {}", one(b), one(a)));
    assert_eq!(of("comparison").1, format!("{targets} -c 16 -t 1 {times} {judging}"));
    assert_eq!(of("cipher-chacha20").1, format!("{targets} -c 1 -t 1 {times} {chacha} {judging}"));
    assert_eq!(of("range-1").1, format!("{targets} -c 1 -t 1 {times} -H 'Range: bytes=0-0' {judging}"));
    let text = of("cipher-chacha20").0;
    assert!(
        text.starts_with("with ChaCha20 forced: B and A equally fast (95 % interval 1.00 to 1.00) instead of"),
        "{text}"
    );
}

#[test]
fn an_open_loop_is_repeated_at_its_rate_and_its_probes_are_not() {
    let mut world = World { noise: 0.0, ..world(&[good(), Server { aes: 8.0, ..good() }]) };
    world.plan.load.kind = open_loop(20.0);
    world.plan.load.shape.deadline_ns = Some(SECOND_NS);
    let explanation = world.explain();
    let rate = "--rate 20 --arrival poisson --deadline 1s";
    let repeated = first(&explanation).evidence.iter().filter_map(|line| Some((&line.probe, line.repeat.as_ref()?)));
    assert!(repeated.clone().count() >= 3, "{explanation:#?}");
    for (probe, command) in repeated {
        let closed = !command.contains("--rate") && !command.contains("--deadline");
        assert!(if probe == "comparison" { command.contains(rate) } else { closed }, "{probe}: {command}");
    }
}

#[test]
fn hostile_names_and_addresses_do_not_reach_a_terminal() {
    let mut world = world(&[good(), Server { aes: 8.0, ..good() }]);
    world.plan.targets[1].name = "B\x1b[2J;reboot".to_owned();
    world.plan.targets[1].address = "https://b/\x1b]0;x\x07".to_owned();
    let explanation = world.explain();
    assert_eq!(first(&explanation).cause, "tls.aes-unused");
    let finding = first(&explanation);
    assert!(!said(&explanation).contains('\x1b') && !finding.remedy.contains('\x1b'));
    assert!(finding.evidence.iter().all(|line| line.repeat.is_none()), "{finding:#?}");
}

#[test]
fn secrets_are_not_in_commands() {
    let mut world = world(&[good(), Server { aes: 8.0, ..good() }]);
    world.http().headers = vec![("Authorization".to_owned(), "Bearer 123".to_owned())];
    world.http().body = Body::None;
    let commands = format!("{:?}", world.explain().findings);
    assert!(commands.contains("Authorization: [not kept]") && !commands.contains("Bearer 123"));
}

/// What is concluded at once of pairs of A and B.
fn concluded(pairs: &[PairVerdict], doubts: Vec<Doubt>) -> Finding {
    let world = world(&[good(), good()]);
    let verdict = Verdict { pairs: pairs.to_vec(), doubts, ..Verdict::default() };
    let case = Case { budget_left_ns: 60 * SECOND_NS, ..Case::of(&world.plan, &verdict, &[], &[]) };
    match next(&case) {
        Step::Conclude(explanation) => first(&explanation).clone(),
        Step::Probe(probe) => panic!("{probe:?}"),
    }
}

#[test]
fn a_pair_that_is_equal_by_its_rate_and_not_in_the_tail_is_not_equally_fast() {
    let equal = pair(Metric::Rate, Call::Equivalent, [1.001, 0.995, 1.006]);
    let median = pair(Metric::ResponseP50, Call::Equivalent, [1.0, 0.99, 1.01]);
    let tail = pair(Metric::ResponseP99, Call::Slower, [3.017, 2.8, 3.2]);
    let finding = concluded(&[equal.clone(), median.clone(), tail.clone()], vec![]);
    assert_eq!((finding.cause.as_str(), finding.confidence), ("unknown", Confidence::Possible));
    assert_eq!(
        finding.summary,
        "B is slower by its response p99 (3.02x) than A, though by its rate it is equivalent, within 2 %: no probe tells \
         why."
    );
    assert!(finding.evidence.iter().any(|line| line.text.starts_with("response p99 of B over A: 3.017")));
    // As a tail that is shorter is told, and a rate that is open.
    let open = pair(Metric::Rate, Call::Unknown, [1.01, 0.95, 1.06]);
    let shorter = pair(Metric::ResponseP99, Call::Faster, [0.25, 0.2, 0.3]);
    let finding = concluded(&[open.clone(), shorter], vec![]);
    assert_eq!(
        finding.summary,
        "B is faster by its response p99 (4.00x) than A, though by its rate no difference was established: no probe tells \
         why."
    );
    assert!(finding.remedy.contains("what A does then"), "{finding:#?}");
    let finding = concluded(&[equal, median], vec![]);
    assert_eq!((finding.cause.as_str(), finding.confidence), ("none", Confidence::Confirmed));
    assert_eq!(finding.summary, "B and A are equally fast by their rate, within 2 %.");
    // A generator that was the bottleneck comes before what it may have made of the tail.
    let doubt =
        Doubt { id: DoubtId::GeneratorSaturated, target: None, text: "workers used 99 % of their CPU".to_owned() };
    assert!(concluded(&[open, tail], vec![doubt]).summary.contains("the generator was the bottleneck"));
}

/// Probes are judged by rates: a gap of medians that is in no rate is no matter for them.
#[test]
fn a_gap_of_medians_is_looked_into_where_the_rate_may_have_it() {
    let world = world(&[Server::default(), Server::default()]);
    let asks = |rate: PairVerdict, median: PairVerdict, doubts: &[DoubtId]| {
        let doubts = doubts.iter().map(|&id| Doubt { id, target: None, text: "of the generator".to_owned() }).collect();
        let verdict = Verdict { pairs: vec![rate, median], doubts, ..Verdict::default() };
        let seen: Vec<_> = (0..2).map(|index| world.observe(index, &Variation::default(), &mut Dice(1))).collect();
        let case = Case { budget_left_ns: 60 * SECOND_NS, ..Case::of(&world.plan, &verdict, &[None, None], &seen) };
        matches!(next(&case), Step::Probe(_))
    };
    let rate = |call, interval| pair(Metric::Rate, call, interval);
    let slower = || pair(Metric::ResponseP50, Call::Slower, [1.3, 1.2, 1.4]);
    let faster = || pair(Metric::ResponseP50, Call::Faster, [1.0 / 1.3, 1.0 / 1.4, 1.0 / 1.2]);
    assert!(asks(rate(Call::Unknown, [0.9, 0.7, 1.1]), slower(), &[]));
    assert!(asks(rate(Call::Unknown, [1.1, 0.9, 1.4]), faster(), &[]));
    assert!(!asks(rate(Call::Unknown, [1.1, 0.95, 1.4]), slower(), &[]), "at most a sixth of it");
    assert!(!asks(rate(Call::Unknown, [0.9, 0.7, 1.05]), faster(), &[]));
    assert!(!asks(rate(Call::Equivalent, [1.0, 0.99, 1.01]), slower(), &[]));
    assert!(!asks(rate(Call::Unknown, [0.9, 0.7, 1.1]), slower(), &[DoubtId::GeneratorSaturated]));
    assert!(!asks(
        rate(Call::Unknown, [0.9, 0.7, 1.1]),
        pair(Metric::ResponseP50, Call::Unknown, [1.3, 0.9, 1.6]),
        &[]
    ));
}

#[test]
fn a_pair_without_a_call_blames_no_server() {
    let pair = PairVerdict { slots: 12, ..pair(Metric::Rate, Call::Unknown, [0.9, 0.8, 1.1]) };
    let doubt = |id| Doubt { id, target: None, text: "workers used 99 % of their CPU".to_owned() };
    let conclude = |pair: &PairVerdict, doubts| concluded(std::slice::from_ref(pair), doubts);
    let finding = conclude(&pair, vec![doubt(DoubtId::GeneratorSaturated)]);
    assert_eq!(finding.cause, "unknown");
    assert!(finding.summary.contains("the generator was the bottleneck"));
    let finding = conclude(&pair, vec![]);
    assert_eq!((finding.cause.as_str(), finding.confidence), ("none", Confidence::Possible));
    // The shown interval leaves out 1, and the one that calls rest on does not.
    let apart = PairVerdict { ratio: Some(2.9), low: Some(1.39), high: Some(5.99), ..pair.clone() };
    let finding = conclude(&apart, vec![]);
    assert_eq!(finding.cause, "unknown");
    assert_eq!(
        finding.summary,
        "At 95 % B and A differ, but slower or faster is called at 99 %, for which 12 slots are too few or scatter too \
         much: too little to look for a cause."
    );
    let finding = conclude(&apart, vec![doubt(DoubtId::Errors)]);
    assert_eq!(
        finding.summary,
        "At 95 % B and A differ, but slower or faster is called at 99 %, and not where a doubt may have made the \
         difference: too little to look for a cause."
    );
    let near = PairVerdict { ratio: Some(0.985), low: Some(0.97), high: Some(0.995), ..pair.clone() };
    let finding = conclude(&near, vec![]);
    assert_eq!(finding.cause, "unknown");
    assert!(finding.summary.contains("whether by more than 2 % was not established"), "{finding:#?}");
    let finding = conclude(&PairVerdict { ratio: None, low: None, high: None, ..pair.clone() }, vec![]);
    assert_eq!(finding.cause, "unknown");
    let finding = conclude(&PairVerdict { call: Call::Slower, ..pair }, vec![]);
    assert_eq!(finding.cause, "unknown");
}

#[test]
fn the_catalogue_is_complete() {
    let ids: Vec<_> = catalogue().iter().map(|entry| entry.id).collect();
    let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "{ids:?}");
    for id in ["tls.aes-unused", "tls.large-key", "http.no-keepalive", "http.compression"] {
        assert!(ids.contains(&id), "{id}: ids are never used again");
    }
    assert!(ids.ends_with(&["none", "unknown"]), "{ids:?}");
}

/// A world with several differences at once, guilty and innocent, and what is true of it.
fn random_world(seed: u64, noise: f64) -> World {
    let mut dice = Dice(seed);
    let base = Server {
        tls: dice.chance(0.9),
        round_trip: dice.between(30e3, 30e6),
        fixed: dice.between(10e3, 5e6),
        per_byte: dice.between(0.2, 10.0),
        aes: dice.between(0.1, 0.5),
        chacha: dice.between(0.5, 1.5),
        sign: 30e3,
        cores: dice.between(1.0, 16.0),
        keeps: dice.chance(0.8),
        gzip: dice.chance(0.2).then_some((1e6, 0.35)),
        has_range: dice.chance(0.8),
        has_chacha: dice.chance(0.9),
        resumes: dice.chance(0.7),
        ..Server::default()
    };
    let mut other = base.clone();
    if dice.chance(0.3) {
        other.aes = dice.between(1.0, 20.0) * other.chacha;
    }
    if dice.chance(0.3) {
        (other.key, other.sign) = (("RSA", 4096), dice.between(0.3e6, 10e6));
    }
    if dice.chance(0.3) {
        other.keeps = false;
    }
    if dice.chance(0.3) {
        other.gzip = Some((dice.between(10e3, 50e6), dice.between(0.1, 0.9)));
    }
    if dice.chance(0.2) {
        let slower = dice.between(1.1, 10.0);
        other.chacha *= slower;
        other.aes *= slower * dice.between(1.0, 3.0);
    }
    if dice.chance(0.2) {
        other.cpu = dice.between(1.05, 5.0);
    }
    if dice.chance(0.2) {
        other.delay = dice.between(10e3, 100e6);
    }
    if dice.chance(0.2) {
        other.cap = Some(dice.between(1e6, 1e9));
    }
    if dice.chance(0.2) {
        other.round_trip *= dice.between(1.1, 20.0);
    }
    if dice.chance(0.1) {
        other.group = "secp521r1";
        other.exchange *= dice.between(2.0, 10.0);
    }
    if dice.chance(0.1) {
        other.per_byte *= dice.between(1.1, 10.0);
    }
    if dice.chance(0.1) {
        other.cores = (other.cores / 2.0).max(1.0);
    }
    let mut world = world(&[base, other]);
    world.body = dice.between(200.0, 20e6);
    world.noise = noise;
    world.seed = seed;
    world.budget_ns = 600 * SECOND_NS;
    world.plan.load.connections = [1, 4, 64, 300][dice.bits() as usize % 4];
    world.http().keepalive = dice.chance(0.6);
    if dice.chance(0.5) { world.swapped() } else { world }
}

/// Share of the gap that really goes away when the accused server is cured, in log and in time, with one connection or
/// with the plan's, whichever tells more.
fn true_share(world: &World, finding: &Finding) -> f64 {
    let [alone, loaded] = true_shares(world, finding);
    alone.max(loaded)
}

/// The same with one connection, and with the plan's.
fn true_shares(world: &World, finding: &Finding) -> [f64; 2] {
    let index = world.plan.targets.iter().position(|target| Some(&target.name) == finding.target.as_ref()).unwrap();
    let (sick, other) = (&world.servers[index], &world.servers[1 - index]);
    let mut cured = sick.clone();
    match finding.cause.as_str() {
        "tls.aes-unused" => cured.aes = other.aes,
        "tls.large-key" => (cured.key, cured.sign) = (other.key, other.sign),
        "http.no-keepalive" => cured.keeps = true,
        "http.compression" => cured.gzip = other.gzip,
        "http.larger-response" => (cured.gzip, cured.larger, cured.head) = (other.gzip, other.larger, other.head),
        "tls.slow-cipher" => cured.cipher = other.cipher,
        "tls.slow-group" => cured.exchange = sick.other_group.map_or(other.exchange, |(_, ns)| ns),
        "tls.no-resumption" => cured.resumes = true,
        "tls.extra-round-trip" => (cured.version, cured.chain) = (other.version, other.chain),
        "net.path-delay" => cured.round_trip = other.round_trip,
        "net.rate-cap" => cured.cap = other.cap,
        "http.version" => cured.http2 = other.http2,
        "http.h2-streams" => cured.max_streams = other.max_streams,
        "http.bad-backend" if sick.slow_connections.is_some_and(|slow| !slow.only_under_load) => {
            cured.slow_connections = None;
        }
        // Nothing else is wrong with a server of these worlds: to accuse it is false.
        _ => return [0.0; 2],
    }
    let share = |connections: Option<u32>| {
        let variation = duel_model::Variation { connections, ..Default::default() };
        let ns = |server: &Server| 1e9 / world.show(server, &variation).rate;
        let (sick, cured, other) = (ns(sick), ns(&cured), ns(other));
        ((sick / cured).ln() / (sick / other).ln()).max((sick - cured) / (sick - other))
    };
    [share(Some(1)), share(None)]
}

/// A random world that speaks HTTP/2, which takes either side some time and one of them perhaps much.
fn random_world_over_http2(seed: u64, noise: f64) -> World {
    let mut world = random_world(seed, noise);
    let mut dice = Dice(seed ^ 0xb2);
    // At most as much as all other work of a request that is small: HTTP/1.1 has half of it.
    let usual = dice.between(0.02, 1.0);
    for server in &mut world.servers {
        server.http2 = usual * server.fixed;
        // Without them small writes that wait for an acknowledgement cannot be excluded.
        server.net.profiles = true;
    }
    let sick = dice.chance(0.5).then(|| dice.bits() as usize % 2);
    if let Some(sick) = sick {
        world.servers[sick].http2 += dice.between(10e3, 50e6);
    }
    if dice.chance(0.1) {
        world.servers[dice.bits() as usize % 2].http1_delay = dice.between(10e3, 50e6);
    }
    if dice.chance(0.1) {
        world.servers[dice.bits() as usize % 2].closes_http1 = true;
    }
    let streams = if world.http().keepalive { [1, 1, 8][dice.bits() as usize % 3] } else { 1 };
    if dice.chance(0.2) {
        world.servers[dice.bits() as usize % 2].streams_at_a_time = 1.0;
    }
    world.http().http2 = Some(Http2Plan { streams });
    world
}

/// Most of them with servers that take few requests at a time on a connection.
fn random_world_of_streams(seed: u64, noise: f64) -> World {
    let mut world = random_world_over_http2(seed, noise);
    let mut dice = Dice(seed ^ 0x57);
    world.http().http2 = Some(Http2Plan { streams: [8, 10, 64][dice.bits() as usize % 3] });
    world.plan.load.connections = dice.between(1.0, 8.0) as u32;
    for server in &mut world.servers {
        if dice.chance(0.5) {
            server.max_streams = Some(dice.between(1.0, 100.0) as u32);
        }
        if dice.chance(0.2) {
            server.streams_at_a_time = dice.between(1.0, 64.0).round();
        }
        // Of two limits that are as good as one no measurement tells which it is.
        if (0.8..=1.25).contains(&(server.max_streams.map_or(1e9, f64::from) / server.streams_at_a_time)) {
            server.streams_at_a_time = 1e9;
        }
        // Waiting is where many at a time matter.
        if dice.chance(0.5) {
            server.round_trip = dice.between(1e6, 50e6);
        }
    }
    world
}

/// A random world in which some connections to one side, or to both, may take longer than others.
fn random_world_of_slow_connections(seed: u64, noise: f64) -> World {
    let mut world = random_world(seed, noise);
    let mut dice = Dice(seed ^ 0xbb);
    world.http().keepalive = true;
    world.plan.load.connections = world.plan.load.connections.max(8);
    world.budget_ns = 3_600 * SECOND_NS;
    let has_many_cores = dice.chance(0.7);
    for server in &mut world.servers {
        if has_many_cores {
            server.cores = 1e3;
        }
        if dice.chance(0.5) {
            let slow = SlowConnections::of(dice.between(0.05, 0.9), dice.between(10e3, 50e6));
            let is_way = dice.chance(0.2);
            server.slow_connections = Some(SlowConnections {
                connects_longer_ns: if is_way { slow.longer_ns } else { 0.0 },
                only_under_load: !is_way && dice.chance(0.3),
                ..slow
            });
        }
    }
    world
}

#[test]
fn in_random_worlds_of_slow_connections_no_backend_is_accused_wrongly() {
    assert_no_one_is_accused_wrongly(random_world_of_slow_connections, |cause| cause == "http.bad-backend", 150);
}

/// A random world of close servers with quick requests and keys that are equally dear: connecting anew makes gaps of 5x
/// to some 100x.
fn random_world_of_strong_gaps(seed: u64, noise: f64) -> World {
    let mut world = random_world(seed, noise);
    let mut dice = Dice(!seed);
    let sign = dice.between(0.1e6, 10e6);
    for server in &mut world.servers {
        (server.key, server.sign) = (("RSA", 4096), sign);
        server.fixed *= 0.05;
        server.round_trip *= 0.02;
        server.delay *= 0.02;
        server.cores = 1e3;
    }
    world.body = dice.between(200.0, 20e3);
    world.http().keepalive = dice.chance(0.8);
    world
}

/// `WORLDS=100000` looks closer: 1 of 31,137 accusations is wrong there, by chance: an interval missed the truth.
#[test]
fn in_random_worlds_no_one_is_accused_wrongly() {
    assert_no_one_is_accused_wrongly(random_world, |_| true, 1_000);
}

#[test]
fn in_random_worlds_over_http2_no_version_is_accused_wrongly() {
    assert_no_one_is_accused_wrongly(random_world_over_http2, |cause| cause == "http.version", 300);
}

#[test]
fn in_random_worlds_over_http2_no_version_is_acquitted_wrongly() {
    let (mut acquitted, mut wrong) = (0, Vec::new());
    for seed in 0..1_000 {
        let world = random_world_over_http2(seed, [0.0, 0.003, 0.01][seed as usize % 3]);
        let explanation = world.explain();
        if !explanation.ruled_out.iter().any(|cause| cause == "http.version") {
            continue;
        }
        acquitted += 1;
        let slow = explanation.findings.iter().find(|finding| finding.target.is_some());
        let Some(slow) = slow.map(|finding| Finding { cause: "http.version".to_owned(), ..finding.clone() }) else {
            continue;
        };
        // A gap is judged as it is with one connection or with the plan's, whichever is its reference.
        let [alone, loaded] = true_shares(&world, &slow);
        let share = alone.min(loaded);
        if share > 0.5 {
            wrong.push((seed, world.noise, share));
        }
    }
    println!("{acquitted} acquitted, wrong: {wrong:#?}");
    assert!(acquitted > 100, "{acquitted}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn in_random_worlds_of_few_streams_none_are_accused_or_acquitted_wrongly() {
    assert_no_one_is_accused_wrongly(random_world_of_streams, |cause| cause == "http.h2-streams", 100);
    let (mut acquitted, mut wrong) = (0, Vec::new());
    for seed in 0..1_000 {
        let world = random_world_of_streams(seed, [0.0, 0.003, 0.01][seed as usize % 3]);
        let explanation = world.explain();
        let slow = explanation.findings.iter().find(|finding| finding.target.is_some());
        if let Some(slow) = slow.filter(|_| explanation.ruled_out.iter().any(|cause| cause == "http.h2-streams")) {
            acquitted += 1;
            let share = true_share(&world, &Finding { cause: "http.h2-streams".to_owned(), ..slow.clone() });
            if share > 0.5 {
                wrong.push((seed, world.noise, share));
            }
        }
    }
    println!("{acquitted} acquitted, wrong: {wrong:#?}");
    assert!(acquitted > 100, "{acquitted}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn in_random_worlds_of_strong_gaps_no_one_is_accused_wrongly() {
    // Their noise is that of ordinary worlds, and so is the rate at which other causes are accused by chance.
    assert_no_one_is_accused_wrongly(random_world_of_strong_gaps, |cause| cause == "http.no-keepalive", 400);
}

/// In as many worlds as `WORLDS` says, or 4,000, for causes of interest; `least` accusations make it worth something.
#[track_caller]
fn assert_no_one_is_accused_wrongly(
    random_world: fn(u64, f64) -> World,
    is_of_interest: fn(&str) -> bool,
    least: usize,
) {
    let (mut accused, mut wrong, mut unknown) = (0, Vec::new(), 0);
    let worlds = std::env::var("WORLDS").map_or(4_000, |worlds| worlds.parse().unwrap());
    for seed in 0..worlds {
        let world = random_world(seed, [0.0, 0.003, 0.01, 0.03][seed as usize % 4]);
        for finding in world.explain().findings {
            match finding.cause.as_str() {
                "none" => {}
                "unknown" => unknown += 1,
                cause if !is_of_interest(cause) => {}
                _ => {
                    accused += 1;
                    let share = true_share(&world, &finding);
                    // Without noise a finding is worth its name; with noise it is at least not false.
                    if share < if world.noise == 0.0 { 0.15 } else { 0.05 } {
                        wrong.push((seed, world.noise, share, finding.cause.clone(), finding.explains));
                    }
                }
            }
        }
    }
    println!("{accused} accused, {unknown} unknown, wrong: {wrong:#?}");
    assert!(accused > least, "{accused}");
    // Without noise never; with it an interval may miss the truth. Those that accuse are wide enough to do so in one of 400
    // at most (one side of 99.5 %), and few of those that miss accuse: about one in 30,000 accusations was wrong so far.
    assert!(wrong.iter().all(|(_, noise, ..)| *noise > 0.0), "{wrong:#?}");
    assert!(wrong.len() <= 1 + accused / 10_000, "{wrong:#?}");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig {
        failure_persistence: None,
        // One in some ten thousand noisy worlds is read wrongly by chance, as intervals have it: the sample is fixed.
        rng_seed: proptest::test_runner::RngSeed::Fixed(1),
        ..Default::default()
    })]

    #[test]
    fn missing_probes_never_lead_to_a_wrong_accusation(
        seed in 10_000u64..1_000_000,
        noise in 0.0f64..0.03,
        missing in 0u32..1 << 9,
        budget_s in 0u64..90,
    ) {
        let ids = ["alone", "closed", "cipher-chacha20", "range-1", "range-half", "all-close", "kept", "resumed", "identity"];
        let mut world = random_world(seed, noise);
        world.budget_ns = budget_s * SECOND_NS;
        for (bit, id) in ids.iter().enumerate() {
            if missing >> bit & 1 == 1 {
                world.unavailable.extend([(*id).to_owned(), format!("{id}-loaded")]);
            }
        }
        for finding in world.explain().findings {
            if !["none", "unknown"].contains(&finding.cause.as_str()) {
                proptest::prop_assert!(true_share(&world, &finding) >= 0.05, "{:#?}\n{:#?}", world, finding);
            }
        }
    }
}
