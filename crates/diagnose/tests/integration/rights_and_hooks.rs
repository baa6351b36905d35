//! What a server may do on its machine: how much right to CPUs it has against others, and what its system calls go through.

use crate::world::machine::UNAVAILABLE;
use crate::world::{Server, World, named, world};
use duel_model::{Confidence, Explanation, SECOND_NS};

type Facts<'a> = &'a [(&'static str, &'static str)];
type Counts<'a> = &'a [(&'static str, f64)];

/// A server on one machine with all others, of which everything is read.
fn good() -> Server {
    let counts = vec![("process.minor_faults", 0.5), ("tcp.sent_segments", 2.0)];
    let facts = vec![("os.boot_id", "5f-a"), ("process.network", "the host's")];
    Server { cores: 4.0, facts: Some(facts), all_read: true, counts, ..Server::default() }
}

fn with(mut server: Server, facts: Facts<'_>, counts: Counts<'_>) -> Server {
    server.facts.get_or_insert_default().extend(facts);
    // The first of a name counts.
    server.counts.retain(|(key, _)| counts.iter().all(|(other, _)| key != other));
    server.counts.extend(counts);
    server
}

fn set_up(slow: &Server, fast: &Server, connections: u32) -> World {
    let mut world = World { body: 2e3, budget_ns: 3_600 * SECOND_NS, ..world(&[fast.clone(), slow.clone()]) };
    world.plan.load.connections = connections;
    world
}

fn is_named(explanation: &Explanation, cause: &str) -> bool {
    named(explanation).iter().any(|(found, _)| *found == cause)
}

fn is_ruled_out(explanation: &Explanation, cause: &str) -> bool {
    explanation.ruled_out.iter().any(|ruled_out| ruled_out == cause)
}

const HOOKS: &str = "cpu.security-hooks";
const EIGHT_FILTERS: (&str, &str) = ("process.seccomp_filters", "8");

/// Each of its system calls takes longer.
fn filtered() -> Server {
    with(Server { kernel: 300e3, ..good() }, &[EIGHT_FILTERS], &[])
}

#[test]
fn filters_that_make_system_calls_dear_are_named() {
    for kernel in [60e3, 300e3, 5e6] {
        for connections in [1, 32] {
            set_up(&Server { kernel, ..filtered() }, &good(), connections).both_ways(|explanation, slow| {
                assert_eq!(named(explanation)[0], (HOOKS, Some(slow)), "{explanation:#?}");
                assert_eq!(explanation.findings[0].confidence, Confidence::Likely, "{explanation:#?}");
                assert!(!is_named(explanation, "cpu.slow-clock"), "{explanation:#?}");
            });
        }
    }
    // More filters than the other one has, too.
    let fewer = with(good(), &[("process.seccomp_filters", "1")], &[]);
    set_up(&filtered(), &fewer, 32).both_ways(|explanation, slow| {
        assert_eq!(named(explanation)[0], (HOOKS, Some(slow)), "{explanation:#?}");
    });
}

#[test]
fn what_else_two_machines_or_networks_differ_in_makes_filters_possible_at_most() {
    let elsewhere = [("os.boot_id", "5f-b"), ("process.network", "its own"), ("process.network", UNAVAILABLE)];
    for (key, value) in elsewhere {
        let facts = good().facts.into_iter().flatten().filter(|(known, _)| *known != key);
        let apart = Server { facts: Some(facts.chain([EIGHT_FILTERS, (key, value)]).collect()), ..filtered() };
        set_up(&apart, &good(), 32).both_ways(|explanation, slow| {
            assert_eq!(named(explanation)[0], (HOOKS, Some(slow)), "{explanation:#?}");
            assert_eq!(explanation.findings[0].confidence, Confidence::Possible, "{explanation:#?}");
        });
    }
    let audited = |rules| with(Server { kernel: 300e3, ..good() }, &[("audit.system_call_rules", rules)], &[]);
    let none = with(good(), &[("audit.system_call_rules", "0")], &[]);
    set_up(&audited("12"), &none, 32).both_ways(|explanation, slow| {
        assert_eq!(named(explanation)[0], (HOOKS, Some(slow)), "{explanation:#?}");
        assert_eq!(explanation.findings[0].confidence, Confidence::Possible, "{explanation:#?}");
    });
}

/// Containers have filters that cost nothing to speak of, and are slow by something else.
#[test]
fn what_looks_like_filters_is_not_blamed_on_them() {
    let beside =
        |server: Server, facts: Facts<'_>, counts: Counts<'_>| with(with(server, &[EIGHT_FILTERS], &[]), facts, counts);
    let kernel = || Server { kernel: 300e3, ..good() };
    let traced = [("workers.voluntary_switches", 30.0), ("cpu.switches", 60.0)];
    let look_alikes = [
        ("waits", beside(Server { delay: 5e6, ..good() }, &[], &[])),
        ("computes", beside(Server { fixed: 900e3, ..good() }, &[], &[])),
        ("a slower CPU", beside(Server { cpu: 3.0, ..good() }, &[("cpu.model", "Slow CPU")], &[])),
        ("a tracer", beside(Server { outside: 500e3, ..kernel() }, &[("process.tracer", "815")], &traced)),
        ("a slow clock", beside(kernel(), &[("clock.source", "hpet")], &[])),
        ("more calls", beside(kernel(), &[], &[("workers.read_calls", 40.0)])),
        ("more switches", beside(kernel(), &[], &[("workers.voluntary_switches", 20.0)])),
        ("more faults", beside(kernel(), &[], &[("process.minor_faults", 300.0)])),
        ("smaller segments", beside(kernel(), &[], &[("tcp.sent_segments", 30.0)])),
        ("interrupts", beside(kernel(), &[], &[("cpu.softirq_ns", 250e3)])),
    ];
    for (what, slow) in look_alikes {
        for connections in [1, 32] {
            set_up(&slow, &good(), connections).both_ways(|explanation, _| {
                assert!(!is_named(explanation, HOOKS), "{what} {explanation:#?}");
            });
        }
    }
    // As many on either side.
    let both = with(good(), &[EIGHT_FILTERS], &[]);
    set_up(&filtered(), &both, 32).both_ways(|explanation, _| {
        assert!(!is_named(explanation, HOOKS), "{explanation:#?}");
    });
}

#[test]
fn filters_are_ruled_out_by_kernel_time_alone() {
    // Security modules and eBPF programs make calls dear, too, and nobody reads them.
    let nothing_known = Server { kernel: 300e3, ..good() };
    let unread = with(Server { kernel: 300e3, ..good() }, &[("process.seccomp_filters", UNAVAILABLE)], &[]);
    let uncounted = |key: &'static str| Server { uncounted: vec![key], ..filtered() };
    let keys =
        ["workers.read_calls", "process.minor_faults", "tcp.sent_segments", "cpu.softirq_ns", "process.system_ns"];
    for slow in [nothing_known, unread].into_iter().chain(keys.map(uncounted)) {
        set_up(&slow, &good(), 32).both_ways(|explanation, _| {
            assert!(!is_named(explanation, HOOKS) && !is_ruled_out(explanation, HOOKS), "{explanation:#?}");
        });
    }
    let slow = with(Server { delay: 5e6, ..good() }, &[EIGHT_FILTERS], &[]);
    set_up(&slow, &good(), 1).both_ways(|explanation, _| {
        assert!(is_ruled_out(explanation, HOOKS), "{explanation:#?}");
    });
}

const PRIORITY: &str = "cpu.priority";
const NEIGHBOUR: &str = "cpu.noisy-neighbour";
const NICE: (&str, &str) = ("process.highest_nice", "15");

/// A request waits for so long for CPUs on which others run.
fn beside_others(others: f64, waits: f64, facts: Facts<'_>) -> Server {
    let server = Server { fixed: 60e3, delay: 300e3 + waits, others, ..good() };
    with(server, facts, &[("workers.wait_ns", waits)])
}

#[test]
fn a_server_that_was_put_behind_the_neighbour_of_both_has_a_low_priority() {
    for low in [NICE, ("process.policies", "idle"), ("cgroup.least_cpu_weight", "10.0")] {
        for waits in [200e3, 2e6] {
            let world = set_up(&beside_others(2.0, waits, &[low]), &beside_others(2.0, 10e3, &[]), 1);
            world.both_ways(|explanation, slow| {
                assert_eq!(named(explanation)[0], (PRIORITY, Some(slow)), "{low:?} {explanation:#?}");
                assert_eq!(explanation.findings[0].confidence, Confidence::Likely, "{explanation:#?}");
                assert!(!is_named(explanation, NEIGHBOUR) && !is_ruled_out(explanation, NEIGHBOUR), "{explanation:#?}");
            });
        }
    }
    // Neighbours of two machines need not be alike.
    let elsewhere = with(beside_others(2.0, 2e6, &[NICE]), &[("os.boot_id", "5f-b")], &[]);
    set_up(&elsewhere, &beside_others(2.0, 10e3, &[]), 1).both_ways(|explanation, slow| {
        assert_eq!(named(explanation)[0], (PRIORITY, Some(slow)), "{explanation:#?}");
        assert_eq!(explanation.findings[0].confidence, Confidence::Possible, "{explanation:#?}");
    });
}

#[test]
fn without_a_lower_priority_or_a_neighbour_of_both_it_is_the_neighbour() {
    let (waits, light) = (2e6, || beside_others(2.0, 10e3, &[]));
    let rich = ("cgroup.least_cpu_weight", "25600.0");
    let alone = with(beside_others(0.0, 0.0, &[]), &[("os.boot_id", "5f-b")], &[]);
    let pairs = [
        ("equal rights", beside_others(2.0, waits, &[]), light()),
        ("both are nice", beside_others(2.0, waits, &[NICE]), with(light(), &[NICE], &[])),
        ("the fast one is nice", beside_others(2.0, waits, &[]), with(light(), &[NICE], &[])),
        ("the fast one has more than usual", beside_others(2.0, waits, &[]), with(light(), &[rich], &[])),
        ("nobody beside the fast one", beside_others(2.0, waits, &[NICE]), alone),
        ("not known", beside_others(2.0, waits, &[("process.policies", UNAVAILABLE)]), light()),
    ];
    for (what, slow, fast) in pairs {
        let apart = |server: Server, group| with(server, &[("cgroup.path", group)], &[]);
        set_up(&apart(slow, "/a"), &apart(fast, "/b"), 1).both_ways(|explanation, side| {
            assert_eq!(named(explanation)[0], (NEIGHBOUR, Some(side)), "{what} {explanation:#?}");
            assert!(
                !is_named(explanation, PRIORITY) && !is_ruled_out(explanation, PRIORITY),
                "{what} {explanation:#?}"
            );
        });
    }
}

#[test]
fn a_low_priority_that_nobody_makes_use_of_is_ruled_out() {
    let nice = with(Server { delay: 5e6, ..good() }, &[NICE], &[("workers.wait_ns", 1e3)]);
    set_up(&nice, &good(), 1).both_ways(|explanation, _| {
        assert!(is_ruled_out(explanation, PRIORITY), "{explanation:#?}");
    });
    let held_back = with(beside_others(2.0, 2e6, &[NICE]), &[("cgroup.cpu_quota_cpus", UNAVAILABLE)], &[]);
    set_up(&held_back, &beside_others(2.0, 10e3, &[]), 1).both_ways(|explanation, _| {
        assert!(!is_named(explanation, PRIORITY) && !is_ruled_out(explanation, PRIORITY), "{explanation:#?}");
    });
}
