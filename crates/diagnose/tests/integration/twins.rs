//! Private twins in a simulated world: what they prove, what they do not, and that nobody asks for them unasked.

use crate::world::{Server, World, named, world};
#[allow(dead_code, reason = "each test of the world uses its own part")]
use duel_model::{Confidence, Evidence, Explanation, Finding, HostAccess, HostPlan, ServerPlan, TwinReading};

/// A server whose AES is slow, beside a good one.
fn slow_aes() -> World {
    let mut world = world(&[Server::default(), Server { aes: 8.0, ..Server::default() }]);
    world.plan.targets[1].host =
        Some(HostPlan { access: HostAccess::Local, server: ServerPlan::Pid(1), process: None, redfish: None });
    world.twins = vec![false, true];
    world
}

/// The world with B's server replaced.
fn with_b(world: &World, server: Server) -> World {
    World { servers: vec![world.servers[0].clone(), server], elsewhere: Vec::new(), ..world.clone() }
}

/// `world`, in which the twin as it is and the changed one answer like these servers.
fn with_twins(world: World, same: Option<Server>, changed: Option<Server>) -> World {
    let mut world = world;
    for (id, server) in [("twin-of-1", same), ("twin-of-1-no-mask", changed)] {
        match server {
            Some(server) => world.elsewhere.push((id.to_owned(), with_b(&world, server))),
            None => world.unavailable.push(id.to_owned()),
        }
    }
    world
}

fn aes(finding: &Explanation) -> &Finding {
    assert_eq!(named(finding), [("tls.aes-unused", Some("B"))], "{finding:#?}");
    &finding.findings[0]
}

fn twins_told(finding: &Finding) -> String {
    let lines = finding.evidence.iter().filter(|line| line.probe.starts_with("twin"));
    lines.map(Evidence::told).collect::<Vec<_>>().join("\n")
}

fn asked(explanation: &Explanation) -> Vec<&str> {
    explanation.probes.iter().map(|outcome| outcome.probe.id.as_str()).collect()
}

#[test]
fn a_twin_without_the_cause_and_without_the_gap_confirms_it() {
    let slow = slow_aes();
    let world = with_twins(slow.clone(), Some(slow.servers[1].clone()), Some(Server::default()));
    let explanation = world.explain();
    let finding = aes(&explanation);
    assert_eq!(finding.confidence, Confidence::Confirmed, "{finding:#?}");
    assert!(twins_told(finding).contains("without a mask on CPU features: B"), "{}", twins_told(finding));
    // No option of ours makes a twin by itself: the whole is repeated.
    let of_twins = finding.evidence.iter().filter(|line| line.probe.starts_with("twin"));
    let whole = finding.evidence.iter().find(|line| line.probe == "comparison").unwrap().repeat.clone().unwrap();
    let expected = format!("{whole} --local B --why --may-start-twin=B");
    assert!(of_twins.clone().count() == 2 && of_twins.into_iter().all(|line| line.repeat.as_ref() == Some(&expected)));
}

#[test]
fn nobody_asks_for_a_twin_that_is_not_allowed() {
    for twins in [vec![], vec![true, false]] {
        let world = World { twins, ..slow_aes() };
        let explanation = world.explain();
        assert!(asked(&explanation).iter().all(|id| !id.starts_with("twin")), "{:?}", asked(&explanation));
        assert_eq!(aes(&explanation).confidence, Confidence::Likely);
    }
}

#[test]
fn a_twin_as_it_is_that_shows_no_gap_proves_nothing_and_is_told() {
    let world = with_twins(slow_aes(), Some(Server::default()), Some(Server::default()));
    let explanation = world.explain();
    let finding = aes(&explanation);
    assert_eq!(finding.confidence, Confidence::Likely);
    let told = twins_told(finding);
    assert!(told.contains("clean environment") && told.contains("matters"), "{told}");
}

#[test]
fn a_twin_that_shows_half_of_the_gap_proves_nothing() {
    let world = with_twins(slow_aes(), Some(Server { aes: 2.5, ..Server::default() }), Some(Server::default()));
    let explanation = world.explain();
    assert_eq!(aes(&explanation).confidence, Confidence::Likely);
    assert!(twins_told(aes(&explanation)).contains("nothing follows from twins"), "{explanation:#?}");
}

#[test]
fn a_change_that_moves_nothing_confirms_nothing() {
    let slow = slow_aes();
    let same = slow.servers[1].clone();
    let explanation = with_twins(slow, Some(same.clone()), Some(same)).explain();
    assert_eq!(aes(&explanation).confidence, Confidence::Likely);
}

#[test]
fn what_cannot_be_made_is_told() {
    let explanation = with_twins(slow_aes(), None, None).explain();
    assert_eq!(aes(&explanation).confidence, Confidence::Likely);
    assert!(twins_told(aes(&explanation)).contains("B refused"));

    let mut behind_ssh = slow_aes();
    behind_ssh.plan.targets[1].host = Some(HostPlan {
        access: HostAccess::Ssh("b".to_owned()),
        server: ServerPlan::Pid(1),
        process: None,
        redfish: None,
    });
    let explanation = behind_ssh.explain();
    assert!(twins_told(aes(&explanation)).contains("run duel on that machine"), "{explanation:#?}");
    assert!(asked(&explanation).iter().all(|id| !id.starts_with("twin")));
}

#[test]
fn a_library_without_assembly_is_proven_by_its_exchange() {
    const VERSION: (&str, &str) = ("process.library.libcrypto.version", "OpenSSL 3.0.22 25 Aug 2026");
    const ASSEMBLY: &str = "process.library.libcrypto.assembly";
    let told = |assembly| Some(vec![VERSION, (ASSEMBLY, assembly)]);
    let good = Server { facts: told("AES for Intel AES-NI"), ..Server::default() };
    let slow = Server { aes: 24.0, chacha: 12.0, sign: 800e3, facts: told("none: nothing"), ..Server::default() };
    let mut world = world(&[good.clone(), slow.clone()]);
    world.plan.targets[1].host =
        Some(HostPlan { access: HostAccess::Local, server: ServerPlan::Pid(1), process: None, redfish: None });
    world.twins = vec![false, true];
    for (changed, confidence) in [(&good, Confidence::Confirmed), (&slow, Confidence::Likely)] {
        let mut world = world.clone();
        world.elsewhere.push(("twin-of-1".to_owned(), with_b(&world, slow.clone())));
        world.elsewhere.push(("twin-of-1-system-libcrypto".to_owned(), with_b(&world, changed.clone())));
        let explanation = world.explain();
        let found = explanation.findings.iter().find(|finding| finding.cause == "tls.no-asm");
        match (found, confidence) {
            (Some(finding), Confidence::Confirmed) => {
                assert_eq!(finding.confidence, Confidence::Confirmed, "{finding:#?}");
                assert!(finding.summary.contains("started anew on the system's own libcrypto"), "{}", finding.summary);
            }
            // With another library it is as slow: something else is.
            (None, Confidence::Likely) => assert!(explanation.ruled_out.contains(&"tls.no-asm".to_owned())),
            (found, _) => panic!("{found:#?} {explanation:#?}"),
        }
    }
}

/// One worker that computes all the time, beside four.
fn one_worker() -> World {
    let facts = vec![("process.cpus_allowed", "0-3"), ("cgroup.cpus", "0-3")];
    let fast =
        Server { cores: 4.0, workers: 4.0, sign: 5e6, key: ("RSA", 4096), facts: Some(facts), ..Server::default() };
    let mut world = World { body: 2e3, ..world(&[fast.clone(), Server { workers: 1.0, ..fast }]) };
    world.http().keepalive = false;
    world.plan.load.connections = 64;
    world.plan.targets[1].host =
        Some(HostPlan { access: HostAccess::Local, server: ServerPlan::Pid(1), process: None, redfish: None });
    world.twins = vec![false, true];
    world
}

/// `world`, in which the twins of a setting, over all connections, are these.
fn with_twins_under_load(mut world: World, setting: &str, same: &Server, changed: Option<&Server>) -> World {
    world.elsewhere.push(("twin-of-1-loaded".to_owned(), with_b(&world, same.clone())));
    let id = format!("twin-of-1-{setting}-loaded");
    match changed {
        Some(server) => world.elsewhere.push((id, with_b(&world, server.clone()))),
        None => world.unavailable.push(id),
    }
    world
}

#[test]
fn a_setting_that_takes_the_gap_away_confirms_its_cause() {
    let world = one_worker();
    let [good, slow] = [0, 1].map(|index| world.servers[index].clone());
    let explanation = with_twins_under_load(world, "more-workers", &slow, Some(&good)).explain();
    assert_eq!(named(&explanation), [("http.few-workers", Some("B"))], "{explanation:#?}");
    let finding = &explanation.findings[0];
    assert_eq!(finding.confidence, Confidence::Confirmed, "{finding:#?}");
    assert!(finding.explains.unwrap() >= 0.8 && twins_told(finding).contains("with more workers: B"), "{finding:#?}");
    assert!(
        finding.summary.contains(" A twin shows that it is this: with its server started anew with more workers, "),
        "{finding:#?}"
    );
}

/// What cannot be afforded any more keeps no cause waiting, so that it would not be named at all.
#[test]
fn where_there_is_no_time_for_twins_its_cause_is_what_it_was() {
    let world = one_worker();
    let [good, slow] = [0, 1].map(|index| world.servers[index].clone());
    let world = with_twins_under_load(world, "more-workers", &slow, Some(&good));
    let spent: u64 = {
        let explanation = World { twins: Vec::new(), ..world.clone() }.explain();
        explanation.probes.iter().map(|outcome| outcome.probe.budget_ns).sum()
    };
    for left_ns in [0, 1_000_000_000, 7_000_000_000] {
        let explanation = World { budget_ns: spent + left_ns, ..world.clone() }.explain();
        assert_eq!(named(&explanation)[0], ("http.few-workers", Some("B")), "{explanation:#?}");
        assert_eq!(explanation.findings[0].confidence, Confidence::Likely);
        assert!(twins_told(&explanation.findings[0]).contains("no time left for twins"), "{explanation:#?}");
    }
}

#[test]
fn a_setting_that_cannot_be_made_leaves_its_cause_what_it_is() {
    let world = one_worker();
    let slow = world.servers[1].clone();
    let explanation = with_twins_under_load(world, "more-workers", &slow, None).explain();
    assert_eq!(named(&explanation)[0], ("http.few-workers", Some("B")), "{explanation:#?}");
    assert_eq!(explanation.findings[0].confidence, Confidence::Likely);
    assert!(twins_told(&explanation.findings[0]).contains("the change could not be made"), "{explanation:#?}");
}

#[test]
fn a_setting_that_moves_nothing_speaks_against_its_cause() {
    let world = one_worker();
    let [good, slow] = [0, 1].map(|index| world.servers[index].clone());
    for (same, changed) in [
        (&slow, &slow),
        // A twin as it is has none of the gap, so it is not how the server is set up.
        (&good, &good),
    ] {
        let explanation = with_twins_under_load(world.clone(), "more-workers", same, Some(changed)).explain();
        let cause = &explanation.findings[0].cause;
        assert_eq!(cause, "unknown", "{explanation:#?}");
        let told = explanation.findings[0].evidence.iter().any(|line| {
            line.probe.starts_with("twin") && line.told().contains("http.few-workers") && line.text.contains("But with")
        });
        assert!(told, "{explanation:#?}");
    }
}

/// What the way costs differs, or whether the change took hold is not known: then a gap that stays, or is gone from a twin as
/// it is, speaks against nobody.
#[test]
fn twins_that_are_not_what_they_should_be_take_nothing_back() {
    let world = one_worker();
    let [good, slow] = [0, 1].map(|index| world.servers[index].clone());
    let otherwise = TwinReading { is_reached_otherwise: true, ..TwinReading::default() };
    let not_held = TwinReading { may_not_hold: true, ..TwinReading::default() };
    for (reading, same, said) in [
        (otherwise, &good, "over a loopback interface and its server is not"),
        (not_held, &slow, "took hold everywhere"),
    ] {
        let mut world = with_twins_under_load(world.clone(), "more-workers", same, Some(same));
        world.elsewhere.iter_mut().for_each(|(_, other)| other.of_twins = Some(reading.clone()));
        let explanation = world.explain();
        assert_eq!(named(&explanation)[0], ("http.few-workers", Some("B")), "{explanation:#?}");
        assert_eq!(explanation.findings[0].confidence, Confidence::Likely);
        assert!(twins_told(&explanation.findings[0]).contains(said), "{explanation:#?}");
    }
}
