//! Gaps of servers that lie in the disks below them or in the paths to them, in the simulated world, and what only looks like that.

use crate::disks::{Disk, Disks, GOOD};
use crate::paths::{CLEAN, Path, Paths};
use crate::world::network::near;
use crate::world::{Dice, Server, World, named, world};
use duel_model::{Confidence, Explanation, HostAccess, HostPlan, SECOND_NS, ServerPlan, Variation};

/// Bytes that a server's device reads at once, and how many such reads there are at a time.
const BLOCK: f64 = 131_072.0;

/// A disk that takes 0.5 ms for such a read.
const DISK: Disk = Disk { call_ns: 300e3, byte_ns: 1.5, ..GOOD };

/// A server and the bytes that each of its requests reads from its disk.
#[derive(Clone)]
struct Reader {
    server: Server,
    read_bytes: f64,
    disk: Disk,
    /// How many times as long as by the disk its reads take: its own group may read less than we may.
    held_back: f64,
}

fn reader(disk: Disk) -> Reader {
    let server = Server { cores: 8.0, facts: Some(Vec::new()), all_read: true, tls: false, ..Server::default() };
    Reader { server, read_bytes: 1e6, disk, held_back: 1.0 }
}

fn a_world(slow: &Reader, fast: &Reader, seed: u64) -> World {
    let settings = [("op", "randread"), ("direct", "on"), ("block", "131072"), ("depth", "1")];
    let disks = Disks::new([fast.disk.clone(), slow.disk.clone()], &settings, seed);
    let readers = [fast, slow];
    let servers: Vec<Server> = (0..2)
        .map(|side| {
            let Reader { server, read_bytes, held_back, .. } = readers[side];
            let disk = held_back * read_bytes / BLOCK * 1e9 / disks.rate(side);
            let mut counts = server.counts.clone();
            counts.push(("workers.disk_read_bytes", *read_bytes));
            Server { disk, counts, ..server.clone() }
        })
        .collect();
    let mut world = World { body: 1e6, budget_ns: 3_600 * SECOND_NS, seed, below: Some(disks), ..world(&servers) };
    world.plan.load.connections = 4;
    for target in &mut world.plan.targets {
        target.host =
            Some(HostPlan { access: HostAccess::Local, server: ServerPlan::Port(80), process: None, redfish: None });
    }
    world
}

/// On either side, with several seeds.
fn both_ways(slow: &Reader, fast: &Reader, mut check: impl FnMut(&Explanation, &str)) {
    for seed in 1..=4 {
        let world = a_world(slow, fast, seed);
        check(&world.explain(), "B");
        check(&World { seed: seed + 100, ..world }.swapped().explain(), "A");
    }
}

const SLOW_READS: &str = "disk.slow-reads";

fn is_accused(explanation: &Explanation) -> bool {
    named(explanation).iter().any(|(cause, _)| *cause == SLOW_READS)
}

#[test]
fn a_slower_disk_below_is_named_with_what_it_does() {
    let slow = Disk { call_ns: 3e6, ..DISK };
    both_ways(&reader(slow), &reader(DISK), |explanation, side| {
        let found = &explanation.findings[0];
        assert_eq!((&*found.cause, found.target.as_deref()), (SLOW_READS, Some(side)), "{explanation:#?}");
        assert_eq!(found.confidence, Confidence::Likely);
        assert!(found.explains.unwrap() > 0.7, "{found:#?}");
        assert!(
            found.summary.contains("reads of 131 kB at random places") || found.summary.contains("128 KiB"),
            "{}",
            found.summary
        );
        let by_hand =
            found.evidence.iter().filter(|line| line.probe == "files").filter_map(|line| line.repeat.as_deref());
        assert!(by_hand.clone().all(|line| line.contains("/mnt/") && line.contains("--direct")), "{found:#?}");
        assert!(by_hand.count() > 0, "{found:#?}");
    });
}

#[test]
fn a_limit_on_duel_that_it_does_not_reach_hides_nothing() {
    let slow = Disk { call_ns: 3e6, limits: [Some(1000), None, Some(100_000_000)], ..DISK };
    both_ways(&reader(slow), &reader(DISK), |explanation, _| assert!(is_accused(explanation), "{explanation:#?}"));
}

#[test]
fn the_cause_of_the_slower_disk_is_told_with_it() {
    let pieces = Disk { most_bytes: 32_768.0, ..DISK };
    for (disk, told) in [
        (Disk { bytes_per_s: 30e6, ..DISK }, "disk.bandwidth-cap is likely"),
        (Disk { calls_per_s: 300.0, ..DISK }, "disk.iops-cap is likely"),
        (pieces, "device is read 4.0 times"),
    ] {
        both_ways(&reader(disk), &reader(DISK), |explanation, side| {
            let found = &explanation.findings[0];
            assert_eq!((&*found.cause, found.target.as_deref()), (SLOW_READS, Some(side)), "{explanation:#?}");
            assert!(found.summary.contains(told), "{told}: {}", found.summary);
        });
    }
}

#[test]
fn what_is_no_matter_of_the_disks_is_not_laid_to_them() {
    let slow_disk = Disk { call_ns: 3e6, ..DISK };
    let computes = |disk: &Disk, read_bytes: f64| Reader {
        server: Server { fixed: 30e6, ..reader(DISK).server },
        read_bytes,
        ..reader(disk.clone())
    };
    let reads_more = Reader { read_bytes: 5e6, ..reader(DISK) };
    let held_back = Reader { held_back: 6.0, ..reader(DISK) };
    let with = |holes: f64, unit_bytes: f64| reader(Disk { holes, unit_bytes, ..DISK });
    let duel_may = |calls_per_s: f64, bytes_per_s: f64, limits: [Option<u64>; 3]| {
        reader(Disk { calls_per_s, bytes_per_s, limits, ..DISK })
    };
    let infinite = f64::INFINITY;
    for (what, slow, fast) in [
        ("equal disks, and the CPU", computes(&DISK, 1e6), reader(DISK)),
        (
            "a slower disk, of which nothing is read",
            computes(&slow_disk, 0.0),
            Reader { read_bytes: 0.0, ..reader(DISK) },
        ),
        (
            "a slower disk, of which little is read",
            computes(&slow_disk, 1e5),
            Reader { read_bytes: 1e5, ..reader(DISK) },
        ),
        ("more reads of an equal disk", reads_more, reader(DISK)),
        ("a server that may read less than duel", held_back, reader(DISK)),
        ("holes in the fast side's file", reader(DISK), with(0.4, 4096.0)),
        ("holes in both, and more in the fast side's", with(0.05, 4096.0), with(0.4, 4096.0)),
        ("more bytes of the device for each read", with(0.0, 400e3), reader(DISK)),
        ("a limit on duel's reads", duel_may(300.0, infinite, [Some(300), None, None]), reader(DISK)),
        (
            "a limit on the bytes that duel reads",
            duel_may(infinite, 30e6, [None, None, Some(30_000_000)]),
            reader(DISK),
        ),
    ] {
        both_ways(&slow, &fast, |explanation, _| {
            assert!(!is_accused(explanation), "{what}: {explanation:#?}");
            let is_acquitted = explanation.ruled_out.iter().any(|cause| cause == SLOW_READS);
            assert_eq!(is_acquitted, slow.read_bytes == 0.0, "{what}: {explanation:#?}");
        });
    }
}

#[test]
fn without_the_machines_or_the_files_nothing_is_said_of_them() {
    let slow = Disk { call_ns: 3e6, ..DISK };
    for change in [
        (|world: &mut World| world.below = None) as fn(&mut World),
        |world| world.plan.targets[0].host = None,
        |world| world.servers[0].facts = None,
        |world| world.servers[1].uncounted.push("workers.disk_read_bytes"),
    ] {
        let mut world = a_world(&reader(slow.clone()), &reader(DISK), 3);
        change(&mut world);
        let explanation = world.explain();
        assert!(!is_accused(&explanation), "{explanation:#?}");
        assert!(explanation.ruled_out.iter().all(|cause| cause != SLOW_READS), "{explanation:#?}");
    }
}

#[test]
fn in_random_worlds_a_disk_is_accused_by_what_it_is_worth() {
    let mut dice = Dice(20_261_125);
    let (mut found, mut wanted) = (0, 0);
    for number in 0..200 {
        let factor = dice.between(1.0, 8.0);
        let read_bytes = dice.between(1e4, 2e6);
        let slow = Reader {
            server: Server { fixed: dice.between(20e3, 20e6), ..reader(DISK).server },
            read_bytes,
            ..reader(Disk { call_ns: factor * DISK.call_ns, byte_ns: factor * DISK.byte_ns, ..DISK })
        };
        let fast = Reader {
            server: Server { fixed: dice.between(20e3, 20e6), ..reader(DISK).server },
            read_bytes,
            ..reader(DISK)
        };
        let world = a_world(&slow, &fast, number);
        let explanation = world.explain();
        // What taking the disk away does to the gap, by the world itself.
        let of = |world: &World, side: usize| world.show(&world.servers[side], &Variation::default()).rate;
        let rate = |reader: &Reader, disk: &Disk| {
            of(&a_world(&Reader { disk: disk.clone(), ..reader.clone() }, &fast, number), 1)
        };
        let gap = (of(&world, 0) / rate(&slow, &slow.disk)).ln();
        let worth = (rate(&slow, &DISK) / rate(&slow, &slow.disk)).ln() / gap;
        if is_accused(&explanation) {
            assert!(gap > 0.0 && worth > 0.1, "{number}: worth {worth:.2} of {gap:.2}: {explanation:#?}");
        }
        if gap > 0.1 && (0.5..1.5).contains(&worth) {
            wanted += 1;
            found += usize::from(is_accused(&explanation));
        }
    }
    println!("{found} of {wanted}");
    assert!(wanted > 20 && found * 10 >= wanted * 8, "{found} of {wanted}");
}

const SLOW_PATH: &str = "net.slow-path";

/// What a server's answers have, by its own connections and by exchanges.
const ANSWER: f64 = 200e3;

/// Servers at the ends of these paths, of which their own connections tell no more than that answers take longer; beside that each takes
/// so long by itself.
fn at_ends([one, other]: [Path; 2], own_ns: [f64; 2], connections: u32) -> World {
    let paths = [Path { peer: "10.0.0.1:3835", ..one }, Path { peer: "10.0.0.2:3835", ..other }];
    let answer = (ANSWER as u64).to_string();
    let settings = [("op", "bulk-reverse"), ("ahead", "off"), ("block", answer.as_str())];
    // The gap shows over one connection, and is held there.
    let paths = Paths::new(["A", "B"], paths, &settings, 1);
    let takes_ns = paths.op_ns();
    let server =
        |side: usize| Server { delay: own_ns[side] + takes_ns[side], cores: 64.0, tls: false, ..Server::default() };
    let mut world =
        World { body: ANSWER, budget_ns: 600 * SECOND_NS, paths: Some(paths), ..world(&[server(0), server(1)]) };
    world.plan.load.connections = connections;
    world.peers = ["10.0.0.1:443", "10.0.0.2:443"].map(|peer| Some(peer.to_owned())).into();
    world
}

#[test]
fn a_slower_path_is_named_with_what_makes_it_slow() {
    for connections in [1, 8] {
        let world = at_ends([CLEAN, Path { trip_s: 40e-3, ..CLEAN }], [1e5, 1e5], connections);
        world.both_ways(|explanation, side| {
            let found = &explanation.findings[0];
            assert_eq!((&*found.cause, found.target.as_deref()), (SLOW_PATH, Some(side)), "{explanation:#?}");
            assert_eq!(found.confidence, Confidence::Likely, "{found:#?}");
            assert!(found.explains.unwrap() > 0.7, "{found:#?}");
            assert!(found.summary.contains("net.path-delay is likely"), "{found:#?}");
        });
    }
}

#[test]
fn where_nothing_tells_what_makes_a_path_slow_it_is_possible_at_most() {
    // As where its machine has no time for any program; what caps and losses do to long exchanges is told by blocks alone.
    let losses = Path { lost: 0.03, ..CLEAN };
    for far in [Path { packet_s: 400e-6, ..CLEAN }, Path { cap: 2e6, ..CLEAN }, losses] {
        at_ends([CLEAN, far], [1e5, 1e5], 1).both_ways(|explanation, side| {
            let found = explanation.findings.iter().find(|found| found.cause == SLOW_PATH).unwrap();
            assert_eq!(found.confidence, Confidence::Possible, "{explanation:#?}");
            assert_eq!(found.target.as_deref(), Some(side));
        });
    }
}

#[test]
fn a_program_that_answers_elsewhere_says_nothing_of_the_path() {
    let world = at_ends([CLEAN, Path { trip_s: 40e-3, ..CLEAN }], [1e5, 1e5], 1);
    // Behind a balancer, say.
    for peers in [[Some("10.0.0.1:443"), Some("10.0.0.9:443")], [Some("10.0.0.1:443"), None]] {
        let peers = peers.map(|peer| peer.map(str::to_owned)).into();
        World { peers, ..world.clone() }.both_ways(|explanation, _| {
            assert!(named(explanation).iter().all(|(cause, _)| *cause != SLOW_PATH), "{explanation:#?}");
        });
    }
}

#[test]
fn what_is_no_matter_of_the_path_is_not_laid_to_it() {
    let far = Path { trip_s: 6e-3, ..CLEAN };
    for connections in [1, 8] {
        for (what, paths, own_ns) in [
            ("a slow server on an equal path", [CLEAN, CLEAN], [1e5, 40e6]),
            ("a slow server on the quicker path", [far.clone(), CLEAN], [1e5, 90e6]),
            ("a slow server, and a path that makes little of it", [CLEAN, far.clone()], [1e6, 300e6]),
        ] {
            at_ends(paths, own_ns, connections).both_ways(|explanation, _| {
                assert!(named(explanation).iter().all(|(cause, _)| *cause != SLOW_PATH), "{what}: {explanation:#?}");
                // What is done to one port alone is not seen by another.
                assert!(explanation.ruled_out.iter().all(|cause| cause != SLOW_PATH), "{what}: {explanation:#?}");
            });
        }
    }
}

#[test]
fn a_path_is_measured_alone_only_where_a_program_answers_at_its_end() {
    let mut world = at_ends([CLEAN, Path { trip_s: 40e-3, ..CLEAN }], [1e5, 1e5], 1);
    world.paths = None;
    world.both_ways(|explanation, _| {
        assert!(explanation.probes.iter().all(|outcome| outcome.probe.below.is_none()), "{explanation:#?}");
        assert!(named(explanation).iter().all(|(cause, _)| *cause != SLOW_PATH), "{explanation:#?}");
    });
}

#[test]
fn what_servers_connections_tell_of_the_path_is_told_before_what_exchanges_do() {
    let far = Path { trip_s: 40e-3, ..CLEAN };
    let mut world = at_ends([CLEAN, far.clone()], [1e5, 1e5], 8);
    for (server, path) in world.servers.iter_mut().zip([CLEAN, far]) {
        *server = Server { round_trip: path.trip_s * 1e9, tls: false, ..near() };
    }
    world.both_ways(|explanation, side| {
        let causes = named(explanation);
        assert_eq!(causes[0], ("net.path-delay", Some(side)), "{explanation:#?}");
        assert!(causes.iter().all(|(cause, _)| *cause != SLOW_PATH), "{explanation:#?}");
    });
}

#[test]
fn a_machine_without_time_for_either_program_is_no_slow_path() {
    for connections in [1, 8] {
        let late = at_ends([CLEAN, Path { late_s: 20e-3, ..CLEAN }], [1e5, 1e5], connections);
        late.both_ways(|explanation, _| {
            assert!(named(explanation).iter().all(|(cause, _)| *cause != SLOW_PATH), "{explanation:#?}");
            let mut told = explanation.findings.iter().flat_map(|found| &found.evidence);
            let text = "a machine without time for it would look so";
            assert!(told.any(|line| line.told().contains(text)), "{explanation:#?}");
        });
    }
}
