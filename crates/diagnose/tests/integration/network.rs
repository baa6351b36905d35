//! Causes in the network, each in a simulated world beside what looks like it.

use crate::world::machine::UNAVAILABLE;
use crate::world::network::{Net, Stall, near};
use crate::world::{Dice, Server, World, named, open_loop, world};
use duel_model::web::phase;
use duel_model::{Confidence, Evidence, HostAccess, HostPlan, SECOND_NS, ServerPlan, Variation};
use std::collections::BTreeMap;

fn over(base: &Server, net: impl FnOnce(&mut Net)) -> Server {
    let mut server = base.clone();
    net(&mut server.net);
    server
}

/// The same with a machine that is read.
fn read(server: Server, facts: &[(&'static str, &'static str)], counts: &[(&'static str, f64)]) -> Server {
    let mut all = vec![("cpu.cpus", "4")];
    all.extend(facts);
    Server { facts: Some(all), counts: counts.to_vec(), ..server }
}

const QUIET: [(&str, f64); 6] = [
    ("tcp.sent_segments", 8.0),
    ("tcp.received_segments", 8.0),
    ("tcp.retransmitted_segments", 0.0),
    ("tcp.listen_overflows", 0.0),
    ("tcp.listen_drops", 0.0),
    ("workers.disk_read_bytes", 0.0),
];

/// What counters show instead of what is usual.
fn counts(differ: &[(&'static str, f64)]) -> Vec<(&'static str, f64)> {
    let mut counts = QUIET.to_vec();
    for (key, value) in differ {
        counts.retain(|(known, _)| known != key);
        counts.push((key, *value));
    }
    counts
}

fn pair(fast: Server, slow: Server, body: f64, connections: u32, keepalive: bool) -> World {
    let mut world = World { body, ..world(&[fast, slow]) };
    world.plan.load.connections = connections;
    world.http().keepalive = keepalive;
    world
}

#[track_caller]
fn assert_only(world: &World, cause: &str, confidence: Confidence, share: f64) {
    world.both_ways(|explanation, slow| {
        assert_eq!(named(explanation), [(cause, Some(slow))], "{explanation:#?}");
        let finding = &explanation.findings[0];
        assert_eq!(finding.confidence, confidence, "{explanation:#?}");
        assert!(finding.explains.unwrap() >= share, "{explanation:#?}");
    });
}

#[track_caller]
fn assert_never(world: &World, causes: &[&str]) {
    world.both_ways(|explanation, _| {
        assert!(explanation.findings.iter().all(|finding| !causes.contains(&&*finding.cause)), "{explanation:#?}");
    });
}

#[track_caller]
fn assert_unknown(world: &World) {
    world.both_ways(|explanation, slow| assert_eq!(named(explanation), [("unknown", Some(slow))], "{explanation:#?}"));
}

/// How fast bytes flow is not seen where there are hardly any; and what fits into any window waits for none.
#[test]
fn what_is_too_small_to_tell_is_left_open() {
    for (larger, fits) in [(1.0, true), (8.0, false)] {
        let base = Server { tls: false, ..Server::default() };
        let world = pair(base.clone(), Server { delay: 5e6, larger, ..base }, 900.0, 1, true);
        world.both_ways(|explanation, _| {
            let out = |cause: &str| explanation.ruled_out.iter().any(|id| id == cause);
            assert!(!out("net.rate-cap"), "{explanation:#?}");
            assert_eq!(out("net.small-window"), fits, "{explanation:#?}");
        });
    }
}

#[test]
fn path_delay() {
    for delay in [0.6e6, 5e6, 30e6] {
        for (body, connections, keepalive) in
            [(600.0, 1, true), (600.0, 16, true), (100e3, 16, true), (600.0, 16, false), (12e3, 4, false)]
        {
            for tls in [false, true] {
                let near = Server { tls, ..near() };
                let far = Server { round_trip: near.round_trip + delay, ..near.clone() };
                assert_only(&pair(near, far, body, connections, keepalive), "net.path-delay", Confidence::Likely, 0.8);
            }
        }
    }
}

#[test]
fn a_short_delay_is_a_path_only_where_load_hides_it() {
    let near = Server { cores: 2.0, ..near() };
    let far = Server { round_trip: near.round_trip + 200e3, ..near.clone() };
    assert_only(&pair(near.clone(), far.clone(), 600.0, 8, true), "net.path-delay", Confidence::Likely, 0.8);
    assert_unknown(&pair(near, far, 600.0, 1, true));
}

#[test]
fn what_is_slow_elsewhere_is_no_path() {
    let slower = Server { cpu: 6.0, ..near() };
    let proxied = Server { delay: 3e6, ..near() };
    // A slow or busy CPU also handles packets late.
    let works = Server { round_trip: 110e3, cpu: 4.0, ..near() };
    // Only the first packet is late: a guard against floods, say.
    let guarded = over(&near(), |net| net.stalls.push(Stall::of(phase::CONNECT, 0.9, 3e6)));
    for slow in [slower, proxied, works, guarded] {
        for (connections, keepalive) in [(1, true), (16, true), (16, false)] {
            assert_never(&pair(near(), slow.clone(), 600.0, connections, keepalive), &["net.path-delay"]);
        }
    }
    let without_times = Server { net: Net::default(), ..near() };
    let far = Server { round_trip: 20e6, ..without_times.clone() };
    assert_never(&pair(without_times, far, 600.0, 16, true), &["net.path-delay"]);
}

#[test]
fn filter_chain() {
    for (rules, filter) in [("10000", 150e3), ("20000", 500e3)] {
        for (connections, keepalive) in [(1, true), (16, true), (16, false)] {
            let busy = [
                ("tcp.sent_segments", if keepalive { 1.0 } else { 4.0 }),
                ("tcp.received_segments", if keepalive { 1.0 } else { 4.0 }),
            ];
            let slow = over(&near(), |net| net.filter = filter);
            let slow = read(slow, &[("firewall.nft_rules", rules)], &counts(&busy));
            let fast = read(near(), &[("firewall.nft_rules", "12")], &counts(&busy));
            let world = pair(fast.clone(), slow.clone(), 600.0, connections, keepalive);
            assert_only(&world, "net.filter-chain", Confidence::Likely, 0.6);
            // Without a look at the machine nobody is accused, and with as many rules on both neither.
            let unread = Server { facts: None, ..slow.clone() };
            assert_never(&pair(fast.clone(), unread, 600.0, connections, keepalive), &["net.filter-chain"]);
            let same = Server { facts: slow.facts.clone(), ..fast };
            assert_never(&pair(same, slow, 600.0, connections, keepalive), &["net.filter-chain"]);
        }
    }
    // Many rules that are never passed, and a server that is slow otherwise.
    let idle = read(Server { delay: 2e6, ..near() }, &[("firewall.nft_rules", "10000")], &QUIET);
    let fast = read(near(), &[("firewall.nft_rules", "0")], &QUIET);
    assert_never(&pair(fast.clone(), idle, 600.0, 16, true), &["net.filter-chain", "net.path-delay"]);
    // A way that is longer than any number of rules makes it.
    let far = read(Server { round_trip: 20e6, ..near() }, &[("firewall.nft_rules", "10000")], &QUIET);
    assert_only(&pair(fast, far, 600.0, 16, true), "net.path-delay", Confidence::Likely, 0.8);
}

#[test]
fn a_longer_way_to_a_machine_with_many_rules_is_no_filtering() {
    let rules = ("firewall.iptables_rules", "12000");
    // A node with other guests, whose CPUs and interrupts are busy with other things for as long as a request takes.
    let busy = |busy_ns: f64| counts(&[("cpu.busy_ns", busy_ns), ("tcp.received_segments", 1.0)]);
    let fast = read(near(), &[("firewall.iptables_rules", "0")], &busy(80e3));
    for connections in [1, 16] {
        let zone = Server { round_trip: near().round_trip + 600e3, ..near() };
        let slow = read(zone, &[rules], &busy(2e6));
        let world = pair(fast.clone(), slow.clone(), 600.0, connections, true);
        assert_never(&world, &["net.filter-chain"]);
        // Where the other machine is not read, nobody knows whether it works less.
        let unread = Server { facts: None, ..fast.clone() };
        let filtered =
            read(over(&near(), |net| net.filter = 300e3), &[rules], &counts(&[("tcp.received_segments", 1.0)]));
        assert_never(&pair(unread, filtered.clone(), 600.0, connections, true), &["net.filter-chain"]);
        let read_too = pair(read(near(), &[], &QUIET), filtered, 600.0, connections, true);
        assert_only(&read_too, "net.filter-chain", Confidence::Likely, 0.6);
    }
}

#[track_caller]
fn assert_not_ruled_out(world: &World, cause: &str) {
    world.both_ways(|explanation, _| {
        assert!(explanation.ruled_out.iter().all(|id| id != cause), "{explanation:#?}");
    });
}

#[test]
fn filter_rules_that_may_not_be_counted_are_not_none() {
    let filtered = over(&near(), |net| net.filter = 150e3);
    let fast = read(near(), &[("firewall.nft_rules", "12")], &QUIET);
    let slow = |facts: &[(&'static str, &'static str)]| read(filtered.clone(), facts, &QUIET);
    let apart = ("process.network", "its own");
    for facts in [
        // An ordinary user may not look at the rules of nft, and the files of the older tables are not there.
        &[("firewall.nft_rules", UNAVAILABLE), ("firewall.iptables_rules", "0"), ("firewall.ip6tables_rules", "0")][..],
        // Those of the container were counted, those of the machine that forwards to it were not.
        &[apart, ("firewall.nft_rules", "0")],
        &[apart, ("firewall.nft_rules", "0"), ("firewall.machine.nft_rules", UNAVAILABLE)],
    ] {
        let world = pair(fast.clone(), slow(facts), 600.0, 1, true);
        assert_never(&world, &["net.filter-chain"]);
        assert_not_ruled_out(&world, "net.filter-chain");
    }
    let forwarded = slow(&[apart, ("firewall.nft_rules", "0"), ("firewall.machine.iptables_rules", "10000")]);
    assert_only(&pair(fast, forwarded, 600.0, 1, true), "net.filter-chain", Confidence::Likely, 0.6);
}

#[test]
fn delayed_acknowledgements() {
    for (share, ns) in [(1.0, 40e6), (0.3, 41e6), (0.5, 200e6)] {
        for phase in [phase::WAIT, phase::RECEIVE] {
            for connections in [1, 16] {
                let nagle = over(&near(), |net| {
                    net.stalls.push(Stall { ends_by_quick_ack: true, ..Stall::of(phase, share, ns) });
                });
                let world = pair(near(), nagle, 1_200.0, connections, true);
                assert_only(&world, "net.delayed-ack", Confidence::Confirmed, 0.8);
                // As long, but for another reason.
                let slow = over(&near(), |net| net.stalls.push(Stall::of(phase, share, ns)));
                assert_never(&pair(near(), slow, 1_200.0, connections, true), &["net.delayed-ack"]);
            }
        }
    }
}

/// Behind a proxy it is the proxy that acknowledges, and other systems cannot be told to do so at once.
#[test]
fn acknowledgements_that_are_not_ours_to_send_acquit_nobody() {
    // Ours change nothing.
    let nagle = over(&near(), |net| net.stalls.push(Stall::of(phase::WAIT, 1.0, 40e6)));
    let mut proxied = pair(near(), nagle.clone(), 1_200.0, 1, true);
    proxied.http().proxy = Some(duel_model::ProxyPlan { host: "proxy".into(), port: 3128 });
    let mut elsewhere = pair(near(), nagle, 1_200.0, 1, true);
    elsewhere.unavailable.push("quick-ack".to_owned());
    for world in [proxied, elsewhere] {
        assert_not_ruled_out(&world, "net.delayed-ack");
        assert_never(&world, &["net.delayed-ack"]);
    }
}

#[test]
fn packets_that_nothing_puts_together_are_counted_on_machines() {
    for (packets, cpu_ns) in [(300.0, 900e3), (100.0, 2e6)] {
        let sent = |packets: f64, cpu_ns: f64| {
            let mut counted = counts(&[("link.eth0.sent_bytes", 450e3), ("link.eth0.sent_packets", packets)]);
            counted.push(("cpu.busy_ns", cpu_ns));
            counted
        };
        let fast = read(near(), &[], &sent(10.0, 300e3));
        let slow = read(Server { fixed: near().fixed + cpu_ns, ..near() }, &[], &sent(packets, 300e3 + cpu_ns));
        pair(fast.clone(), slow.clone(), 400e3, 1, true).both_ways(|explanation, slow| {
            let finding = explanation.findings.iter().find(|finding| finding.cause == "net.small-mtu").unwrap();
            assert_eq!((finding.target.as_deref(), finding.confidence), (Some(slow), Confidence::Possible));
        });
        // To receive them takes us longer, too. Where that is not known, it may be what the gap consists of.
        let little = |our_work: f64| {
            let delay = near().delay + our_work;
            let cpu_ns = 0.1 * cpu_ns;
            let server = Server { fixed: near().fixed + cpu_ns, delay, our_work, ..near() };
            read(server, &[], &sent(packets, 300e3 + cpu_ns))
        };
        let ours = pair(fast.clone(), little(cpu_ns), 400e3, 1, true);
        ours.both_ways(|explanation, slow| {
            assert!(named(explanation).contains(&("net.small-mtu", Some(slow))), "{explanation:#?}");
        });
        assert_not_ruled_out(&World { our_byte_ns: None, ..ours }, "net.small-mtu");
        // A queue that shapes splits packets, and what it holds up takes longer than they do.
        for (kind, is_told) in [("tbf", false), ("cake", false), ("fq_codel", true)] {
            let mut slow = slow.clone();
            slow.facts.get_or_insert_default().push(("link.eth0.qdisc", kind));
            pair(fast.clone(), slow, 400e3, 1, true).both_ways(|explanation, _| {
                let of = |id: &String| id == "net.small-mtu";
                assert_eq!(explanation.findings.iter().any(|finding| of(&finding.cause)), is_told, "{explanation:#?}");
                assert!(!explanation.ruled_out.iter().any(of), "{explanation:#?}");
            });
        }
        // As many packets on both, or no CPU time for them.
        let same = Server { counts: sent(packets, 300e3), ..fast.clone() };
        let idle = Server { counts: sent(packets, 300e3), ..slow.clone() };
        for (fast, slow) in [(same, slow.clone()), (fast.clone(), idle)] {
            assert_never(&pair(fast, slow, 400e3, 1, true), &["net.small-mtu"]);
        }
        // Others sent the packets, and used the CPU.
        let others = Server { delay: cpu_ns, counts: sent(packets, 300e3 + cpu_ns), ..fast.clone() };
        assert_never(&pair(fast.clone(), others, 400e3, 1, true), &["net.small-mtu"]);
        // What others, or nobody knows who, kept waiting takes longer than its CPU time is.
        let little = Server { delay: 20e6, counts: sent(packets, 500e3), ..slow.clone() };
        let waited = |ns: f64| {
            let mut waited = with_no_quota(little.clone());
            waited.counts.push(("workers.wait_ns", ns));
            waited
        };
        let is_out = |slow: Server, expected: bool| {
            pair(fast.clone(), slow, 400e3, 1, true).both_ways(|explanation, _| {
                let out = explanation.ruled_out.iter().any(|id| id == "net.small-mtu");
                assert_eq!(out, expected, "{explanation:#?}");
            });
        };
        is_out(waited(0.0), true);
        is_out(waited(19e6), false);
        is_out(Server { uncounted: vec!["cpu.busy_ns"], ..waited(0.0) }, false);
        is_out(Server { uncounted: vec!["workers.wait_ns", "cpu.steal_ns"], ..waited(0.0) }, false);
    }
}

/// Small records go in small packets, whoever sends them; by some servers' calls nobody counts how many there are.
#[test]
fn small_records_are_no_small_packets() {
    let sent = |packets: f64, cpu_ns: f64| {
        let mut counted = counts(&[("link.eth0.sent_bytes", 450e3), ("link.eth0.sent_packets", packets)]);
        counted.push(("cpu.busy_ns", cpu_ns));
        counted
    };
    let near = Server { tls: true, ..near() };
    for record in [1024.0, 1900.0] {
        let packets = 400e3 / record;
        let fast = read(near.clone(), &[], &sent(30.0, 300e3));
        let costly = |record: f64| Server { fixed: near.fixed + 900e3, record, ..near.clone() };
        let slow = |record: f64| read(costly(record), &[], &sent(packets, 1_200e3));
        assert_never(&pair(fast.clone(), slow(record), 400e3, 1, true), &["net.small-mtu"]);
        assert_not_ruled_out(&pair(fast.clone(), slow(record), 400e3, 1, true), "net.small-mtu");
        pair(fast, slow(16_384.0), 400e3, 1, true).both_ways(|explanation, slow| {
            assert!(named(explanation).contains(&("net.small-mtu", Some(slow))), "{explanation:#?}");
        });
    }
}

/// A longer way may be the part of a gap that shows over one connection, where a limit makes more of it under load.
#[test]
fn what_shows_a_part_of_the_gap_over_one_connection_is_not_ruled_out_by_the_rest() {
    let far = Server { round_trip: near().round_trip + 400e3, per_address: Some(6e3), ..near() };
    let world = pair(near(), far, 600.0, 64, true);
    assert_not_ruled_out(&world, "net.path-delay");
}

fn with_no_quota(mut server: Server) -> Server {
    server.facts.get_or_insert_default().push(("cgroup.cpu_quota_cpus", "none"));
    server
}

#[test]
fn small_segments() {
    for (segment, per_packet, body) in [(524, 3e3, 500e3), (244, 1e3, 200e3)] {
        for connections in [1, 4] {
            let fast = over(&near(), |net| net.per_packet = per_packet);
            let slow = over(&fast, |net| net.segment = Some(segment));
            let world = pair(fast.clone(), slow.clone(), body, connections, true);
            assert_only(&world, "net.small-mtu", Confidence::Confirmed, 0.8);
            // Small segments that cost nothing, beside a slow server.
            let innocent = Server { delay: 20e6, ..over(&near(), |net| net.segment = Some(segment)) };
            assert_never(&pair(near(), innocent, body, connections, true), &["net.small-mtu"]);
        }
    }
    // A response that takes one segment either way.
    let small = Server { delay: 2e6, ..over(&near(), |net| net.segment = Some(524)) };
    assert_never(&pair(near(), small, 100.0, 4, true), &["net.small-mtu"]);
}

/// Ops that wait for what was lost.
fn lossy(base: &Server, share: f64, syns: f64) -> Server {
    over(base, |net| {
        net.stalls.push(Stall::of(phase::RECEIVE, share, 205e6));
        net.stalls.push(Stall::of(phase::CONNECT, syns, 1_000e6));
    })
}

#[test]
fn loss() {
    for share in [0.01, 0.1] {
        for (body, connections, keepalive) in [(20e3, 16, true), (600.0, 1, true), (20e3, 16, false)] {
            let again = counts(&[("tcp.retransmitted_segments", share)]);
            let slow = read(lossy(&near(), share, 0.0), &[], &again);
            let world = pair(read(near(), &[], &QUIET), slow.clone(), body, connections, keepalive);
            assert_only(&world, "net.loss", Confidence::Likely, 0.7);
            // As long, and nothing is sent again: a quota, swapping, collection of garbage.
            let stalls = read(slow, &[], &QUIET);
            assert_never(&pair(read(near(), &[], &QUIET), stalls, body, connections, keepalive), &["net.loss"]);
        }
    }
    // A quota that bites stops requests for as long, and segments are sent again meanwhile.
    let held_back = counts(&[("tcp.retransmitted_segments", 0.01), ("cgroup.throttled_ns", 2.05e6)]);
    let quota = read(lossy(&near(), 0.01, 0.0), &[], &held_back);
    assert_never(&pair(read(near(), &[], &QUIET), quota, 20e3, 16, true), &["net.loss"]);
    // All of a server stands still now and then, and segments are sent again meanwhile.
    for (share, lost) in [(0.3, 0.0003), (0.35, 0.001)] {
        let again = counts(&[("tcp.retransmitted_segments", lost)]);
        let stops = |share| Server { pauses: share, ..read(lossy(&near(), lost, 0.0), &[], &again) };
        assert_never(&pair(read(near(), &[], &QUIET), stops(share), 20e3, 16, true), &["net.loss"]);
        assert_only(&pair(read(near(), &[], &QUIET), stops(0.0), 20e3, 16, true), "net.loss", Confidence::Likely, 0.5);
    }
    // Long responses of which no part can be had: a cap that drops what exceeds it does the same, and several connections carry no more.
    let again = counts(&[("tcp.retransmitted_segments", 0.1)]);
    let whole = |server: Server| Server { has_range: false, ..server };
    let slow = whole(read(lossy(&near(), 0.1, 0.0), &[], &again));
    for connections in [1, 16] {
        let world = pair(whole(read(near(), &[], &QUIET)), slow.clone(), 20e3, connections, true);
        assert_only(&world, "net.loss", Confidence::Possible, 0.7);
    }
    let capped = Server { places: 1.0, ..slow };
    assert_never(&pair(whole(read(near(), &[], &QUIET)), capped, 20e3, 16, true), &["net.loss"]);
    // Some loss, and a server that is slow for another reason.
    let busy = read(Server { delay: 10e6, ..near() }, &[], &counts(&[("tcp.retransmitted_segments", 0.02)]));
    assert_never(&pair(read(near(), &[], &QUIET), busy, 600.0, 16, true), &["net.loss"]);
}

#[test]
fn what_others_lose_on_the_machine_is_not_what_our_requests_wait_for() {
    // Three in ten requests miss a cache, and other visitors' segments are sent again: one for each 25 requests of ours.
    for (misses, ns) in [(0.3, 20e6), (0.6, 5e6)] {
        let cold = over(&near(), |net| net.stalls.push(Stall::of(phase::WAIT, misses, ns)));
        for per_op in [0.04, 0.1] {
            let slow = read(cold.clone(), &[], &counts(&[("tcp.retransmitted_segments", per_op)]));
            assert_never(&pair(read(near(), &[], &QUIET), slow, 600.0, 16, true), &["net.loss"]);
        }
    }
    // Others' segments take as long as a few of our own would, and go on while we are silent.
    let few = over(&near(), |net| net.stalls.push(Stall::of(phase::WAIT, 0.02, 205e6)));
    let loss = ("tcp.retransmitted_segments", 100.0);
    let among_others =
        |seen| Server { background: vec![loss], seen_in_silence: seen, ..read(few.clone(), &[], &QUIET) };
    let fast = || read(near(), &[], &QUIET);
    assert_never(&pair(fast(), among_others(true), 600.0, 16, true), &["net.loss"]);
    // Without a look at the silence they pass for ours.
    assert_only(&pair(fast(), among_others(false), 600.0, 16, true), "net.loss", Confidence::Likely, 0.2);
    // Ours among them.
    let ours = counts(&[("tcp.retransmitted_segments", 0.1)]);
    let slow = read(lossy(&near(), 0.1, 0.0), &[], &ours);
    let among_few = Server { background: vec![("tcp.retransmitted_segments", 5.0)], seen_in_silence: true, ..slow };
    assert_only(&pair(fast(), among_few, 600.0, 16, true), "net.loss", Confidence::Likely, 0.7);
    // Whether the other machine sends as much again is not known.
    let slow = read(lossy(&near(), 0.05, 0.0), &[], &counts(&[("tcp.retransmitted_segments", 0.05)]));
    assert_only(&pair(near(), slow, 600.0, 16, true), "net.loss", Confidence::Possible, 0.7);
}

#[test]
fn loss_from_outside_by_connections_that_had_to_ask_twice() {
    for share in [0.01, 0.03] {
        let world = pair(near(), lossy(&near(), share, share), 20e3, 1, false);
        assert_only(&world, "net.loss", Confidence::Likely, 0.8);
    }
    // Stalls of data alone may be anything.
    assert_never(&pair(near(), lossy(&near(), 0.1, 0.0), 20e3, 16, false), &["net.loss", "net.backlog-overflow"]);
}

#[test]
fn loss_of_requests_that_tcp_at_our_end_sent_again() {
    let late = |stall: Stall| over(&near(), |net| net.stalls.push(stall));
    let lost = Stall { sent_again: true, ..Stall::of(phase::WAIT, 0.01, 205e6) };
    for connections in [1, 16] {
        assert_only(&pair(near(), late(lost.clone()), 600.0, connections, true), "net.loss", Confidence::Likely, 0.7);
        // As late, and nothing left since the request: the server took its time.
        let slow = late(Stall { sent_again: false, ..lost.clone() });
        assert_never(&pair(near(), slow, 600.0, connections, true), &["net.loss"]);
        // Most of it has another reason.
        let both = over(&late(lost.clone()), |net| net.stalls.push(Stall::of(phase::WAIT, 0.1, 205e6)));
        assert_never(&pair(near(), both, 600.0, connections, true), &["net.loss"]);
    }
    // The fast side loses as many.
    let both = pair(late(lost.clone()), Server { delay: 20e6, ..late(lost.clone()) }, 600.0, 16, true);
    assert_never(&both, &["net.loss"]);
    // New connections to a server whose queue may be full: nobody has looked.
    let queued = late(Stall { from_connections: 8.0, ..lost });
    assert_never(&pair(near(), queued, 600.0, 16, false), &["net.loss"]);
}

fn overflowing(share: f64) -> Server {
    over(&near(), |net| {
        for (phase, ns) in [(phase::CONNECT, 1_010e6), (phase::WAIT, 210e6)] {
            net.stalls.push(Stall { from_connections: 8.0, ..Stall::of(phase, share, ns) });
        }
    })
}

#[test]
fn backlog_overflow() {
    for (share, connections) in [(0.02, 64), (0.3, 64), (0.1, 300)] {
        let facts = [("listen.80.backlog", "1")];
        let counted = counts(&[("tcp.listen_overflows", share), ("tcp.listen_drops", share)]);
        let slow = read(overflowing(share), &facts, &counted);
        let fast = read(near(), &[], &QUIET);
        let world = pair(fast.clone(), slow.clone(), 600.0, connections, false);
        assert_only(&world, "net.backlog-overflow", Confidence::Likely, 0.8);
        world.both_ways(|explanation, _| {
            assert!(explanation.findings[0].summary.contains("(it holds 1)"), "{explanation:#?}");
        });
        let outside = pair(near(), overflowing(share), 600.0, connections, false);
        assert_only(&outside, "net.backlog-overflow", Confidence::Possible, 0.8);
        // Lost packets are not for many connections only.
        let lost = read(lossy(&near(), share, share), &facts, &counts(&[("tcp.retransmitted_segments", 2.0 * share)]));
        assert_never(&pair(fast, lost, 600.0, connections, false), &["net.backlog-overflow"]);
    }
}

/// Two at once: what shows over one connection says nothing of a queue that only many overflow.
#[test]
fn a_queue_overflows_beside_what_shows_over_one_connection() {
    let busy = [("tcp.received_segments", 4.0), ("tcp.sent_segments", 4.0)];
    let rules = |count| ("firewall.nft_rules", count);
    let fast = read(near(), &[rules("12")], &counts(&busy));
    for (filter, share) in [(150e3, 0.003), (500e3, 0.01)] {
        let filtered = over(&overflowing(share), |net| net.filter = filter);
        let overflows = [busy[0], busy[1], ("tcp.listen_overflows", share), ("tcp.listen_drops", share)];
        let slow = read(filtered, &[rules("10000"), ("listen.80.backlog", "1")], &counts(&overflows));
        let world = pair(fast.clone(), slow.clone(), 600.0, 32, false);
        world.both_ways(|explanation, slow| {
            let named = named(explanation);
            for cause in ["net.filter-chain", "net.backlog-overflow"] {
                assert!(named.contains(&(cause, Some(slow))), "{cause}: {explanation:#?}");
            }
        });
        // Where overflows are not counted, stalls of connecting do not acquit it.
        let uncounted = Server { uncounted: vec!["tcp.listen_overflows"], ..slow };
        assert_not_ruled_out(&pair(fast.clone(), uncounted, 600.0, 32, false), "net.backlog-overflow");
    }
    // Without stalls nothing overflows, whatever else there is.
    let filtered = read(over(&near(), |net| net.filter = 500e3), &[rules("10000")], &counts(&busy));
    pair(fast, filtered, 600.0, 32, false).both_ways(|explanation, _| {
        assert!(explanation.ruled_out.iter().any(|id| id == "net.backlog-overflow"), "{explanation:#?}");
    });
}

#[test]
fn a_few_overflows_are_not_all_of_an_overloaded_servers_queueing() {
    // Half of the requests queue for 300 ms, and two in a thousand overflow, as they do where too much is asked.
    let overloaded = over(&near(), |net| {
        net.stalls.push(Stall { from_connections: 8.0, ..Stall::of(phase::WAIT, 0.5, 300e6) });
    });
    let few = counts(&[("tcp.listen_overflows", 0.002), ("tcp.listen_drops", 0.002)]);
    let slow = read(overloaded.clone(), &[("listen.80.backlog", "511")], &few);
    let world = pair(read(near(), &[], &QUIET), slow, 600.0, 300, false);
    assert_never(&world, &["net.backlog-overflow"]);
    // As many as explain it, and the other side's machine is not read.
    let many = counts(&[("tcp.listen_overflows", 0.3), ("tcp.listen_drops", 0.3)]);
    let slow = read(overflowing(0.3), &[("listen.80.backlog", "1")], &many);
    assert_only(&pair(near(), slow, 600.0, 64, false), "net.backlog-overflow", Confidence::Possible, 0.8);
}

#[test]
fn rate_cap() {
    for cap in [5e6, 20e6] {
        for (body, connections) in [(500e3, 1), (500e3, 4), (1e6, 16)] {
            let fast = read(near(), &[], &QUIET);
            let each = Server { cap: Some(cap), ..fast.clone() };
            assert_only(&pair(fast.clone(), each, body, connections, true), "net.rate-cap", Confidence::Likely, 0.7);
            let total = over(&fast, |net| net.total_cap = Some(cap));
            assert_only(&pair(fast, total, body, connections, true), "net.rate-cap", Confidence::Likely, 0.7);
        }
    }
}

/// A twin without limits tells whether the server caps itself; one that has no gap as it is, that something around it does.
#[test]
fn whose_a_cap_is() {
    let fast = read(near(), &[], &QUIET);
    let capped = Server { cap: Some(20e6), ..fast.clone() };
    let mut world = pair(fast.clone(), capped.clone(), 500e3, 4, true);
    world.plan.targets[1].host =
        Some(HostPlan { access: HostAccess::Local, server: ServerPlan::Pid(1), process: None, redfish: None });
    world.twins = vec![false, true];
    let twins = |same: &Server, changed: Option<&Server>| {
        let of = |server: &Server| World { servers: vec![fast.clone(), server.clone()], ..world.clone() };
        let mut world = world.clone();
        world.elsewhere.push(("twin-of-1".to_owned(), of(same)));
        match changed {
            Some(changed) => world.elsewhere.push(("twin-of-1-no-limits".to_owned(), of(changed))),
            None => world.unavailable.push("twin-of-1-no-limits".to_owned()),
        }
        world.explain().findings.remove(0)
    };
    let of_server = twins(&capped, Some(&fast));
    assert_eq!((&*of_server.cause, of_server.confidence), ("net.rate-cap", Confidence::Confirmed), "{of_server:#?}");
    let of_path = twins(&fast, None);
    assert_eq!((&*of_path.cause, of_path.confidence), ("net.rate-cap", Confidence::Likely), "{of_path:#?}");
    let around = |line: &Evidence| line.probe == "twin-of-1" && line.text.contains("the path to it");
    assert!(of_path.evidence.iter().any(around), "{of_path:#?}");
}

#[test]
fn bytes_that_are_dear_are_not_capped() {
    let fast = read(near(), &[], &QUIET);
    let dear = Server { per_byte: 20.0, ..fast.clone() };
    let from_disk = Server { counts: counts(&[("workers.disk_read_bytes", 500e3)]), cap: Some(2e6), ..fast.clone() };
    for connections in [1, 4, 16] {
        for slow in [dear.clone(), from_disk.clone(), Server { facts: None, cap: Some(2e6), ..fast.clone() }] {
            let world = pair(fast.clone(), slow, 500e3, connections, true);
            assert_never(&world, &["net.rate-cap", "net.small-window", "net.loss"]);
        }
    }
}

/// One CPU that somebody else keeps busy holds bytes up as evenly as a cap does.
#[test]
fn bytes_that_another_process_makes_are_not_capped() {
    let (body, made_per_s) = (1e6, 100e6);
    let busy_ns = body / made_per_s * 1e9;
    let fast = read(near(), &[("process.cpus_allowed", "0-3"), ("cpu.online", "0-3")], &QUIET);
    for busy in [
        // A backend behind a front that is idle itself.
        &[("cpu.busy_ns", busy_ns)][..],
        // A CPU that takes the interrupts of the only queue of the network.
        &[("cpu.2.busy_ns", busy_ns)],
    ] {
        let mut slow = over(&fast, |net| net.total_cap = Some(made_per_s));
        assert_only(&pair(fast.clone(), slow.clone(), body, 8, true), "net.rate-cap", Confidence::Likely, 0.7);
        slow.counts = counts(busy);
        assert_never(&pair(fast.clone(), slow, body, 8, true), &["net.rate-cap"]);
    }
    // Under load, where the gap does not show over one connection: nobody can be asked for a small part of the response.
    let without_ranges = |server: &Server| Server { has_range: false, ..server.clone() };
    let capped = over(&fast, |net| net.total_cap = Some(3e9));
    let world = pair(without_ranges(&fast), without_ranges(&capped), body, 64, true);
    assert_never(&world, &["net.rate-cap"]);
}

/// The largest send buffer, as the kernel tells it.
const SMALL: (&str, &str) = ("tcp.tcp_wmem", "4096 16384 131072");
const LARGE: (&str, &str) = ("tcp.tcp_wmem", "4096 16384 4194304");

#[test]
fn small_window() {
    for round_trip in [10e6, 40e6] {
        for (body, connections) in [(1e6, 2), (500e3, 1), (1e6, 8)] {
            let base = Server { round_trip, ..near() };
            let fast = read(over(&base, |net| net.window = Some(2e6)), &[LARGE], &QUIET);
            let slow = read(over(&base, |net| net.window = Some(64e3)), &[SMALL], &QUIET);
            let world = pair(fast.clone(), slow.clone(), body, connections, true);
            assert_only(&world, "net.small-window", Confidence::Likely, 0.7);
            let short = World { short_slots: true, ..world };
            assert_only(&short, "net.small-window", Confidence::Likely, 0.7);
            // A cap of each connection flows alike. Ample buffers tell it, small ones on both sides leave it open.
            let capped = |facts| Server { cap: Some(64e3 / round_trip * 1e9), ..read(base.clone(), &[facts], &QUIET) };
            // A buffer that the server chose is not read, so it is possible only.
            let capped_or_chosen = pair(fast.clone(), capped(LARGE), body, connections, true);
            assert_only(&capped_or_chosen, "net.rate-cap", Confidence::Possible, 0.7);
            assert_not_ruled_out(&capped_or_chosen, "net.small-window");
            // A bad line keeps what is under way small, evenly, and gains from several connections as well.
            let mut lossy = capped(LARGE);
            lossy.counts = counts(&[("tcp.retransmitted_segments", 3.0)]);
            assert_never(&pair(fast.clone(), lossy, body, connections, true), &["net.rate-cap", "net.small-window"]);
            let (fast, slow) = (read(base.clone(), &[SMALL], &QUIET), capped(SMALL));
            assert_never(&pair(fast, slow, body, connections, true), &["net.small-window", "net.rate-cap"]);
        }
    }
    // Of two connections with 25 requests each, as many bytes flow as each window lets through.
    let base = Server { round_trip: 10e6, ..near() };
    let fast = read(over(&base, |net| net.window = Some(2e6)), &[LARGE], &QUIET);
    let slow = read(over(&base, |net| net.window = Some(64e3)), &[SMALL], &QUIET);
    let mut world = pair(fast, slow, 1e6, 2, true);
    world.http().http2 = Some(duel_model::Http2Plan { streams: 25 });
    assert_never(&world, &["net.rate-cap"]);
    assert_not_ruled_out(&world, "net.small-window");
    world.plan.load.connections = 1;
    assert_never(&world, &["net.rate-cap"]);
    // Further away: windows are as large.
    let window =
        |round_trip| read(Server { round_trip, ..over(&near(), |net| net.window = Some(64e3)) }, &[SMALL], &QUIET);
    let fast = read(window(10e6), &[LARGE], &QUIET);
    assert_never(&pair(fast, window(40e6), 1e6, 2, true), &["net.small-window", "net.rate-cap"]);
}

/// A larger response takes more flights, with ten segments in the first one as well.
#[test]
fn a_larger_response_is_no_small_first_flight() {
    for connections in [1, 8] {
        let base = over(&Server { round_trip: 80e6, ..near() }, |net| net.first_flight = Some(10.0));
        let slow = Server { larger: 4.0, has_range: false, ..base.clone() };
        let world = pair(base, slow, 10e3, connections, false);
        assert_never(&world, &["net.initcwnd"]);
    }
}

/// What kept connections save is more than the flights: the signature is the key's.
#[test]
fn a_small_first_flight_is_told_what_it_is_worth() {
    let base = over(&Server { round_trip: 20e6, tls: true, ..near() }, |net| net.first_flight = Some(10.0));
    let small = over(&base, |net| net.first_flight = Some(5.0));
    let slow = Server { key: ("RSA", 4096), sign: 30e6, ..small };
    pair(base, slow, 12e3, 1, false).both_ways(|explanation, _| {
        let told = explanation.findings.iter().find(|finding| finding.cause == "net.initcwnd");
        assert!(told.is_some_and(|finding| finding.explains.unwrap() < 0.6), "{explanation:#?}");
    });
}

#[test]
fn first_flight() {
    for (round_trip, first, body) in [(10e6, 1.0, 12e3), (40e6, 2.0, 12e3), (20e6, 3.0, 30e3)] {
        for connections in [1, 8] {
            let base = Server { round_trip, ..near() };
            let (fast, slow) =
                (over(&base, |net| net.first_flight = Some(10.0)), over(&base, |net| net.first_flight = Some(first)));
            let outside = pair(fast.clone(), slow.clone(), body, connections, false);
            assert_only(&outside, "net.initcwnd", Confidence::Likely, 0.8);
            let set = read(slow.clone(), &[("route.special", "default via 10.0.0.1 dev eth0 initcwnd 2")], &QUIET);
            let usual = read(fast.clone(), &[("route.special", "none")], &QUIET);
            assert_only(&pair(usual, set, body, connections, false), "net.initcwnd", Confidence::Likely, 0.8);
            // What takes as long and goes away with new connections as well, or does not sit in receiving.
            let work = Server { delay: 2.0 * round_trip, ..fast.clone() };
            assert_never(&pair(fast.clone(), work, body, connections, false), &["net.initcwnd"]);
            let windowed = over(&fast, |net| net.window = Some(4e3));
            assert_never(&pair(fast, windowed, body, connections, false), &["net.initcwnd"]);
        }
    }
}

/// Over TLS flights are waited for, since a record is read as a whole. Acknowledgements that are sent at once let connections
/// grow sooner, and that is not what holds a server back.
#[test]
fn first_flight_of_a_record() {
    for (round_trip, first) in [(40e6, 2.0), (60e6, 1.0)] {
        for connections in [1, 8] {
            let base = Server { round_trip, tls: true, ..near() };
            let fast = over(&base, |net| net.first_flight = Some(10.0));
            let slow = over(&base, |net| {
                net.first_flight = Some(first);
                net.by_quick_ack = 0.3;
            });
            let outside = pair(fast.clone(), slow.clone(), 12e3, connections, false);
            assert_only(&outside, "net.initcwnd", Confidence::Likely, 0.6);
            let set = read(slow.clone(), &[("route.special", "default via 10.0.0.1 dev eth0 initcwnd 2")], &QUIET);
            let usual = read(fast.clone(), &[("route.special", "none")], &QUIET);
            assert_only(
                &pair(usual.clone(), set.clone(), 12e3, connections, false),
                "net.initcwnd",
                Confidence::Likely,
                0.8,
            );
            // As many round trips of work, which are waited for with a single byte too, on a route that is set for others.
            let work = Server { delay: 2.0 * round_trip, facts: set.facts.clone(), ..fast.clone() };
            assert_never(&pair(usual, work, 12e3, connections, false), &["net.initcwnd", "net.delayed-ack"]);
        }
    }
}

/// `fast` and `slow` at a rate at which connections rest for `rest_ms`; without pauses, as probes are made, no connection begins anew.
fn with_pauses(fast: &Server, slow: &Server, body: f64, connections: u32, rest_ms: f64) -> World {
    let without = |server: &Server| over(server, |net| net.after_pause = None);
    let busy = pair(without(fast), without(slow), body, connections, true);
    let mut world = pair(fast.clone(), slow.clone(), body, connections, true);
    world.plan.load.kind = open_loop(f64::from(connections) * 1e3 / rest_ms);
    let probes = ["alone", "closed", "hosts", "hosts-loaded", "trip", "all-close", "range-1", "range-half", "other"];
    world.elsewhere = probes.map(|id| (id.to_owned(), busy.clone())).to_vec();
    world
}

const ANEW: (&str, &str) = ("tcp.tcp_slow_start_after_idle", "1");
const GOES_ON: (&str, &str) = ("tcp.tcp_slow_start_after_idle", "0");
const CUBIC: (&str, &str) = ("tcp.tcp_congestion_control", "cubic");
const BBR: (&str, &str) = ("tcp.tcp_congestion_control", "bbr");
const USUAL_ROUTES: (&str, &str) = ("route.special", "none");

#[test]
fn connections_that_begin_anew_after_pauses() {
    for (round_trip, body) in [(20e6, 60e3), (40e6, 300e3)] {
        for connections in [1, 8] {
            // Of eight connections, the times of connecting tell how long the way is; of one that is asked.
            let base = over(&Server { round_trip, ..near() }, |net| net.few_connects = connections == 1);
            let begins = over(&base, |net| net.after_pause = Some(10.0));
            let slow = read(begins.clone(), &[ANEW, CUBIC, USUAL_ROUTES], &QUIET);
            for settings in [[GOES_ON, CUBIC, USUAL_ROUTES], [ANEW, BBR, USUAL_ROUTES]] {
                let fast = read(base.clone(), &settings, &QUIET);
                let world = with_pauses(&fast, &slow, body, connections, 1_000.0);
                assert_only(&world, "net.idle-restart", Confidence::Likely, 0.7);
                // At a rate at which no connection rests for long it is something else.
                assert_never(&with_pauses(&fast, &slow, body, connections, 1.0), &["net.idle-restart"]);
                // What takes as long is not in receiving, or does not go away without pauses.
                let work = Server { delay: 2.0 * round_trip, facts: slow.facts.clone(), ..fast.clone() };
                assert_never(&with_pauses(&fast, &work, body, connections, 1_000.0), &["net.idle-restart"]);
                let windowed = Server { facts: slow.facts.clone(), ..over(&fast, |net| net.window = Some(16e3)) };
                assert_never(&with_pauses(&fast, &windowed, body, connections, 1_000.0), &["net.idle-restart"]);
                // A server that wakes up slowly takes longer to answer, and not to send.
                let mut asleep = with_pauses(&fast, &work, body, connections, 1_000.0);
                let awake = pair(fast.clone(), fast.clone(), body, connections, true);
                asleep.elsewhere.iter_mut().for_each(|(_, world)| *world = awake.clone());
                assert_never(&asleep, &["net.idle-restart"]);
            }
            // Settings that are the same, not known, or the other way round accuse nobody.
            let same = read(base.clone(), &[ANEW, CUBIC, USUAL_ROUTES], &QUIET);
            assert_never(&with_pauses(&same, &slow, body, connections, 1_000.0), &["net.idle-restart"]);
            let goes_on = read(begins.clone(), &[GOES_ON, CUBIC, USUAL_ROUTES], &QUIET);
            assert_never(&with_pauses(&same, &goes_on, body, connections, 1_000.0), &["net.idle-restart"]);
            let routed = read(begins.clone(), &[ANEW, CUBIC, ("route.special", "default congctl reno")], &QUIET);
            let fast = read(base.clone(), &[GOES_ON, CUBIC, USUAL_ROUTES], &QUIET);
            assert_never(&with_pauses(&fast, &routed, body, connections, 1_000.0), &["net.idle-restart"]);
            let unread = Server { facts: None, ..slow.clone() };
            assert_never(&with_pauses(&fast, &unread, body, connections, 1_000.0), &["net.idle-restart"]);
        }
    }
}

/// Machines where no segment fewer than this share is sent again, of 700 for each request.
fn losing(share: f64) -> Vec<(&'static str, f64)> {
    counts(&[("tcp.sent_segments", 700.0), ("tcp.retransmitted_segments", 700.0 * share)])
}

const RENO: (&str, &str) = ("tcp.tcp_congestion_control", "reno");

#[test]
fn congestion_control_of_a_server() {
    for (round_trip, share, segments, slower) in
        [(20e6, 1e-3, 40.0, RENO), (40e6, 5e-3, 15.0, CUBIC), (10e6, 5e-3, 20.0, RENO)]
    {
        for connections in [1, 4] {
            let base = Server { round_trip, all_read: true, ..near() };
            let held = over(&base, |net| net.window_segments = Some(segments));
            let told = |server: &Server, algorithm, losses: &[(&'static str, f64)]| {
                read(server.clone(), &[algorithm, USUAL_ROUTES, LARGE], losses)
            };
            let (fast, slow) = (told(&base, BBR, &losing(share)), told(&held, slower, &losing(share)));
            let world = |fast: &Server, slow: &Server| pair(fast.clone(), slow.clone(), 1e6, connections, true);
            assert_only(&world(&fast, &slow), "net.congestion-control", Confidence::Likely, 0.8);
            // Where it may not be named it is told as a suspicion, and nobody else is accused.
            let never = |fast: &Server, slow: &Server| assert_never(&world(fast, slow), &["net.congestion-control"]);
            // The same algorithm, one that is not known, and routes that name another one.
            never(&told(&base, slower, &losing(share)), &slow);
            never(&Server { facts: None, ..fast.clone() }, &slow);
            let routed = [slower, ("route.special", "default via 10.0.0.1 dev eth0 congctl reno"), LARGE];
            never(&fast, &read(held.clone(), &routed, &losing(share)));
            // More gets lost of the slow side's, or nothing of either: that, or something else, is why.
            never(&told(&base, BBR, &losing(share / 5.0)), &slow);
            never(&told(&base, BBR, &QUIET), &told(&held, slower, &QUIET));
            // As many bytes under way, by a window or a cap, beside losses that leave as many segments: a third of a segment changes nothing.
            let bytes = segments * 1448.0;
            let windowed = over(&base, |net| net.window = Some(bytes));
            let capped = Server { cap: Some(bytes / round_trip * 1e9), ..base.clone() };
            for other in [windowed, capped] {
                let other = told(&other, slower, &losing(share));
                assert_never(&world(&fast, &other), &["net.congestion-control", "net.rate-cap"]);
            }
            // Far fewer segments than the losses leave.
            never(&fast, &told(&over(&base, |net| net.window_segments = Some(segments / 8.0)), slower, &losing(share)));
        }
    }
}

/// After a pause a kept connection may send as few segments at first as a new one.
#[test]
fn pauses_do_not_acquit_small_first_flights() {
    let base = Server { round_trip: 40e6, ..near() };
    let small = over(&base, |net| net.after_pause = Some(2.0));
    let world = with_pauses(&base, &small, 30e3, 4, 1_000.0);
    world.both_ways(|explanation, _| {
        assert!(!explanation.ruled_out.iter().any(|id| id == "net.initcwnd"), "{explanation:#?}");
    });
}

#[test]
fn names_and_dead_addresses_are_told_beside_the_verdict() {
    let quick = over(&near(), |net| net.lookup_ns = Some(700_000));
    for (lookup_ns, confidence) in [(60_000_000, Confidence::Possible), (5_000_000_000, Confidence::Likely)] {
        let slow = over(&near(), |net| net.lookup_ns = Some(lookup_ns));
        pair(quick.clone(), slow, 600.0, 4, false).both_ways(|explanation, slow| {
            assert_eq!(named(explanation), [("dns.slow", Some(slow)), ("none", None)], "{explanation:#?}");
            let finding = &explanation.findings[0];
            assert_eq!((finding.confidence, finding.explains), (confidence, None));
        });
    }
    let dead = over(&quick, |net| net.dead = vec!["[2001:db8::1]:80: timed out\x1b[2J".to_owned()]);
    pair(quick.clone(), dead.clone(), 600.0, 4, false).both_ways(|explanation, slow| {
        assert_eq!(named(explanation), [("net.address-fallback", Some(slow)), ("none", None)], "{explanation:#?}");
        assert!(!format!("{:?}", explanation.findings).contains("\\u{1b}"), "{explanation:#?}");
    });
    // Through a proxy it is the proxy's name and addresses that were tried.
    let mut proxied = pair(quick.clone(), dead.clone(), 600.0, 4, false);
    proxied.http().proxy = Some(duel_model::ProxyPlan { host: "proxy".into(), port: 3128 });
    proxied.both_ways(|explanation, _| assert_eq!(named(explanation), [("none", None)], "{explanation:#?}"));
    // Beside a gap, too.
    let far = Server { round_trip: 20e6, ..dead };
    pair(quick.clone(), far, 600.0, 4, false).both_ways(|explanation, slow| {
        assert_eq!(
            named(explanation),
            [("net.path-delay", Some(slow)), ("net.address-fallback", Some(slow))],
            "{explanation:#?}"
        );
    });
    // All look-ups alike, or short ones, or none at all, are nobody's fault.
    let tens = over(&near(), |net| net.lookup_ns = Some(80_000_000));
    for (fast, slow) in
        [(tens.clone(), tens), (quick.clone(), over(&near(), |net| net.lookup_ns = Some(20_000_000))), (quick, near())]
    {
        pair(fast, slow, 600.0, 4, false).both_ways(|explanation, _| {
            assert_eq!(named(explanation), [("none", None)], "{explanation:#?}");
        });
    }
}

/// Two servers with several differences at once, guilty and innocent, and how each cause of the slow one is cured.
fn random_world(seed: u64, noise: f64) -> (World, Vec<Vec<(&'static str, Server)>>) {
    let mut dice = Dice(seed);
    let keepalive = dice.chance(0.5);
    let segment = if dice.chance(0.8) { 1448 } else { 8948 };
    let base = Server {
        tls: dice.chance(0.3),
        round_trip: dice.between(30e3, 40e6),
        fixed: dice.between(10e3, 3e6),
        cores: dice.between(1.0, 32.0).round(),
        cap: dice.chance(0.1).then(|| dice.between(2e6, 200e6)),
        net: Net {
            profiles: dice.chance(0.95),
            segment: Some(segment),
            per_packet: dice.between(50.0, 3e3),
            filter: if dice.chance(0.1) { dice.between(10e3, 300e3) } else { 0.0 },
            window: Some(dice.between(64e3, 4e6)),
            first_flight: Some(10.0),
            ..Net::default()
        },
        ..Server::default()
    };
    let body = dice.between(100.0, 2e6);
    let reads = dice.chance(0.7);
    let per_op = |packets: f64| if keepalive { 1.0 + packets } else { 4.0 + packets };
    let packets = (body / f64::from(segment)).ceil();
    let mut tallies =
        vec![counts(&[("tcp.sent_segments", per_op(packets)), ("tcp.received_segments", per_op(0.0))]); 2];
    let mut facts: Vec<Vec<(&'static str, &'static str)>> =
        vec![vec![LARGE, ("firewall.nft_rules", "10"), ("route.special", "none")]; 2];
    let mut servers = vec![base.clone(), base];
    // What each cure is, as a function of the server: the others stay.
    type Cure = fn(&mut Server);
    let mut cures: Vec<Vec<(&'static str, Cure)>> = vec![Vec::new(); 2];
    for side in [0, 1] {
        let server = &mut servers[side];
        if dice.chance(0.15) {
            server.cpu *= dice.between(1.05, 8.0);
        }
        if dice.chance(0.2) {
            server.delay += dice.between(50e3, 50e6);
        }
        if dice.chance(0.15) {
            server.per_byte *= dice.between(1.1, 30.0);
        }
        if dice.chance(0.1) {
            // Stalls of another kind.
            let ns = dice.between(20e6, 800e6);
            server.net.stalls.push(Stall::of(phase::WAIT, dice.between(0.005, 0.5), ns));
        }
        if side == 0 {
            continue;
        }
        if dice.chance(0.2) {
            server.round_trip += dice.between(100e3, 50e6);
            cures[side].push(("net.path-delay", |_| {}));
        }
        if dice.chance(0.15) {
            let stall = Stall { ends_by_quick_ack: true, ..Stall::of(phase::RECEIVE, dice.between(0.02, 1.0), 41e6) };
            server.net.stalls.push(stall);
            cures[side].push(("net.delayed-ack", |server| server.net.stalls.retain(|stall| !stall.ends_by_quick_ack)));
        }
        if dice.chance(0.15) {
            server.net.segment = Some(524);
            cures[side].push(("net.small-mtu", |_| {}));
        }
        if dice.chance(0.15) {
            let share = dice.between(0.001, 0.2);
            server.net.stalls.push(Stall::of(phase::RECEIVE, share, 207e6));
            if !keepalive {
                server.net.stalls.push(Stall::of(phase::CONNECT, share / 2.0, 1_007e6));
            }
            tallies[side].retain(|(key, _)| *key != "tcp.retransmitted_segments");
            tallies[side].push(("tcp.retransmitted_segments", 1.5 * share));
            cures[side].push(("net.loss", |server| {
                server.net.stalls.retain(|stall| stall.ns != 207e6 && stall.ns != 1_007e6);
            }));
        }
        if !keepalive && dice.chance(0.15) {
            let share = dice.between(0.005, 0.3);
            server.net.stalls.push(Stall { from_connections: 8.0, ..Stall::of(phase::CONNECT, share, 1_013e6) });
            tallies[side].retain(|(key, _)| *key != "tcp.listen_overflows");
            tallies[side].push(("tcp.listen_overflows", share));
            cures[side].push(("net.backlog-overflow", |server| server.net.stalls.retain(|stall| stall.ns != 1_013e6)));
        }
        if dice.chance(0.15) {
            let cap = dice.between(1e6, 100e6);
            if dice.chance(0.5) {
                server.net.total_cap = Some(cap);
            } else {
                server.cap = Some(cap);
            }
            cures[side].push(("net.rate-cap", |server| (server.cap, server.net.total_cap) = (None, None)));
        }
        if dice.chance(0.15) {
            server.net.window = Some(64e3);
            facts[side].retain(|fact| *fact != LARGE);
            facts[side].push(SMALL);
            cures[side].push(("net.small-window", |_| {}));
        }
        if dice.chance(0.15) {
            server.net.first_flight = Some(dice.between(1.0, 4.0).floor());
            if dice.chance(0.5) {
                facts[side].retain(|(key, _)| *key != "route.special");
                facts[side].push(("route.special", "default via 10.0.0.1 dev eth0 initcwnd 1"));
            }
            cures[side].push(("net.initcwnd", |server| server.net.first_flight = Some(10.0)));
        }
        if dice.chance(0.15) {
            server.net.filter += dice.between(10e3, 500e3);
            facts[side].retain(|(key, _)| *key != "firewall.nft_rules");
            facts[side].push(("firewall.nft_rules", "10000"));
            cures[side].push(("net.filter-chain", |_| {}));
        }
    }
    let fast = servers[0].clone();
    let cured = cures.iter().zip(&servers).map(|(cures, sick)| {
        let cure = |&(cause, cure): &(&'static str, Cure)| {
            let mut server = sick.clone();
            cure(&mut server);
            match cause {
                "net.path-delay" => server.round_trip = fast.round_trip,
                "net.small-mtu" => server.net.segment = fast.net.segment,
                "net.small-window" => server.net.window = fast.net.window,
                "net.filter-chain" => server.net.filter = fast.net.filter,
                "net.rate-cap" => server.cap = fast.cap,
                _ => {}
            }
            (cause, server)
        };
        cures.iter().map(cure).collect::<Vec<_>>()
    });
    let cured: Vec<Vec<_>> = cured.collect();
    if reads {
        for side in [0, 1] {
            servers[side] = read(servers[side].clone(), &facts[side], &tallies[side]);
        }
    }
    let [first, second]: [Server; 2] = servers.try_into().unwrap();
    let connections = [1, 4, 16, 64][(dice.unit() * 4.0) as usize];
    let mut world = pair(first, second, body, connections, keepalive);
    (world.seed, world.noise, world.budget_ns) = (seed, noise, 300 * SECOND_NS);
    (world, cured)
}

/// The largest share of the gap that goes away with this cure, over one connection or under the plan's load.
fn true_share(world: &World, sick: &Server, cured: &Server, other: &Server) -> f64 {
    let share = |connections: Option<u32>| {
        let ns = |server: &Server| 1.0 / world.show(server, &Variation { connections, ..Variation::default() }).rate;
        let gap = (ns(sick) / ns(other)).ln();
        if gap <= 0.0 { 0.0 } else { 1.0 - (ns(cured) / ns(other)).ln().max(0.0) / gap }
    };
    share(Some(1)).max(share(None))
}

#[test]
fn in_random_networks_no_one_is_accused_wrongly() {
    let worlds = std::env::var("WORLDS").ok().and_then(|worlds| worlds.parse().ok()).unwrap_or(3_000);
    let (mut accused, mut wrong) = (BTreeMap::<String, u32>::new(), Vec::new());
    for seed in 0..worlds {
        let (world, cured) = random_world(seed, [0.0, 0.003, 0.01, 0.03][seed as usize % 4]);
        for finding in world.explain().findings {
            if !finding.cause.starts_with("net.") {
                continue;
            }
            let index =
                world.plan.targets.iter().position(|target| Some(&target.name) == finding.target.as_ref()).unwrap();
            let cure = cured[index].iter().find(|(cause, _)| *cause == finding.cause);
            let share = cure
                .map_or(0.0, |(_, cured)| true_share(&world, &world.servers[index], cured, &world.servers[1 - index]));
            *accused.entry(finding.cause.clone()).or_default() += 1;
            if share < 0.15 {
                let figures = format!("{share:.2} instead of {:?}", finding.explains);
                wrong.push(format!("{seed}: {} {figures}: {}", finding.cause, finding.summary));
            }
        }
    }
    println!("{accused:?}, {} wrong", wrong.len());
    // Three of some 900 are known: stalls by delayed acknowledgements beside slow start pass for a cap of a connection, and
    // a longer way beside a chain of rules and dear bytes for the chain.
    let all: u32 = accused.values().sum();
    assert!(200 * wrong.len() <= all as usize, "{wrong:#?}");
    assert!(accused.len() == 9 && accused.values().all(|&count| count >= 5), "{accused:?}");
}
