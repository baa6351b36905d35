//! Causes that the machines of servers tell, each in a simulated world beside what looks like it.

use crate::world::lens::reading_of;
use crate::world::{Dice, Server, World, named, world};
use duel_model::{Assembly, Confidence, HardwareUse, HostAccess, HostPlan, SECOND_NS, ServerPlan, Variation};
use std::collections::BTreeMap;

type Machine = Vec<(&'static str, &'static str)>;

const ASSEMBLY: &str = "process.library.libcrypto.assembly";
const VERSION: (&str, &str) = ("process.library.libcrypto.version", "OpenSSL 3.0.17 1 Jul 2025");
const NONE: (&str, &str) = (ASSEMBLY, "none: no text of OpenSSL's assembly modules is in the file");
const SOME: (&str, &str) = (ASSEMBLY, "AES for Intel AES-NI; SHA256 block transform for x86_64");

fn with(facts: &[(&'static str, &'static str)]) -> Server {
    Server { facts: Some(facts.to_vec()), ..Server::default() }
}

fn facts(facts: &[(&'static str, &'static str)]) -> Option<Machine> {
    Some(facts.to_vec())
}

#[track_caller]
fn assert_likely(world: &World, cause: &str) {
    world.both_ways(|explanation, slow| {
        let names = named(explanation);
        assert_eq!(names[0], (cause, Some(slow)), "{explanation:#?}");
        assert!(names[1..].iter().all(|(name, _)| *name == "unknown"), "{explanation:#?}");
        assert_eq!(explanation.findings[0].confidence, Confidence::Likely);
        assert!(explanation.findings[0].explains.unwrap() >= 0.25, "{explanation:#?}");
    });
}

#[track_caller]
fn assert_never(world: &World, cause: &str) {
    world.both_ways(|explanation, _| {
        assert!(explanation.findings.iter().all(|finding| finding.cause != cause), "{explanation:#?}");
    });
}

/// The same where the slow side's machine is not read.
fn slow_unread(world: &World) -> World {
    let mut unread = world.clone();
    unread.servers[1].facts = None;
    unread
}

/// Where one machine is not read, or none, nobody is accused of what only both can tell.
#[track_caller]
fn assert_never_unread(world: &World, cause: &str) {
    let slow_alone = slow_unread(world);
    let mut none = slow_alone.clone();
    let mut fast_alone = world.clone();
    none.servers[0].facts = None;
    fast_alone.servers[0].facts = None;
    for unread in [slow_alone, fast_alone, none] {
        assert_never(&unread, cause);
    }
}

fn set_up(slow: Server, fast: Server, body: f64, keepalive: bool, connections: u32) -> World {
    let mut world = World { body, ..world(&[fast, slow]) };
    world.http().keepalive = keepalive;
    world.plan.load.connections = connections;
    world
}

#[test]
fn no_asm() {
    for strength in [1.0, 4.0] {
        let slow = Server {
            aes: 6.0 * strength,
            chacha: 3.0 * strength,
            sign: 200e3 * strength,
            exchange: 800e3 * strength,
            ..with(&[VERSION, NONE])
        };
        for (body, keepalive) in [(2e6, true), (2e3, false)] {
            for connections in [1, 16] {
                let world = set_up(slow.clone(), with(&[VERSION, SOME]), body, keepalive, connections);
                assert_likely(&world, "tls.no-asm");
                assert_never_unread(&world, "tls.no-asm");
                // Its kernel is slower as well, but by far not by as much.
                let world =
                    set_up(Server { cpu: 1.7, ..slow.clone() }, with(&[VERSION, SOME]), body, keepalive, connections);
                assert_likely(&world, "tls.no-asm");
            }
        }
    }
}

#[test]
fn a_library_without_assembly_is_not_accused_of_what_it_is_not_worth() {
    let none = || with(&[VERSION, NONE]);
    let slower = [
        // Everything is slower, in the kernel too.
        Server { cpu: 4.0, ..none() },
        Server { delay: 30e6, ..none() },
        Server { per_byte: 4.0, ..none() },
        Server { cap: Some(10e6), ..none() },
        Server { round_trip: 20e6, ..none() },
    ];
    for slow in slower {
        for (body, keepalive) in [(2e6, true), (2e3, false)] {
            let world = set_up(slow.clone(), with(&[VERSION, SOME]), body, keepalive, 1);
            assert_never(&world, "tls.no-asm");
        }
    }
    let slow = Server { aes: 20.0, chacha: 6.0, exchange: 2e6, ..none() };
    for (of_slow, of_fast) in [(NONE, NONE), (SOME, SOME), (SOME, NONE)] {
        let slow = Server { facts: facts(&[VERSION, of_slow]), ..slow.clone() };
        assert_never(&set_up(slow, with(&[VERSION, of_fast]), 2e6, true, 1), "tls.no-asm");
    }
    // Another library, whose assembly would leave no such text.
    let other = ("process.library.libcrypto.version", "BoringSSL");
    let slow = Server { facts: facts(&[other, NONE]), ..slow };
    assert_never(&set_up(slow, with(&[VERSION, SOME]), 2e6, true, 1), "tls.no-asm");
    // AES alone is slow: the instructions are not used.
    let slow = Server { aes: 12.0, ..none() };
    assert_never(&set_up(slow, with(&[VERSION, SOME]), 2e6, true, 1), "tls.no-asm");
}

#[test]
fn a_library_without_the_text_of_assembly_is_measured() {
    let slow = Server { aes: 6.0, chacha: 3.0, sign: 200e3, exchange: 800e3, ..with(&[VERSION, NONE]) };
    let unlooked = set_up(slow.clone(), with(&[VERSION, SOME]), 2e6, true, 1);
    let looked_at = |world: &World, assembly| {
        let mut world = world.clone();
        for target in &mut world.plan.targets {
            target.host = Some(HostPlan {
                access: HostAccess::Local,
                server: ServerPlan::Port(443),
                process: None,
                redfish: None,
            });
        }
        world.lenses[1] = Some(reading_of(HardwareUse::NotUsed, assembly));
        world
    };
    let absent = looked_at(&unlooked, Assembly::Absent);
    assert_likely(&absent, "tls.no-asm");
    absent.both_ways(|explanation, _| {
        let evidence = &explanation.findings[0].evidence;
        assert!(evidence.iter().any(|line| line.probe == "lens" && line.text.contains("changes anything")));
    });
    // The text was stripped, and the assembly was not.
    let present = looked_at(&unlooked, Assembly::Present);
    assert_never(&present, "tls.no-asm");
    present.both_ways(|explanation, _| assert!(explanation.ruled_out.contains(&"tls.no-asm".to_owned())));
    assert_likely(&looked_at(&unlooked, Assembly::Unknown("the figures vary".into())), "tls.no-asm");
}

#[test]
fn the_library_that_the_server_maps_is_looked_into() {
    let slow = Server { aes: 6.0, chacha: 3.0, sign: 200e3, exchange: 800e3, ..with(&[VERSION, NONE]) };
    let count_in = |path: &str| format!("strings -n 8 {path} | grep -c CRYPTOGAMS");
    for (path, command) in [
        (None, Some(count_in("/opt/own/lib/libcrypto.so.3"))),
        (Some("/srv/it's $(reboot)/libcrypto.so.3"), Some(count_in(r"'/srv/it'\''s $(reboot)/libcrypto.so.3'"))),
        // What cannot be shown whole, and what is no path.
        (Some("/srv/a\nb/libcrypto.so.3"), None),
        (Some("-e x"), None),
    ] {
        let mut facts = vec![VERSION, NONE];
        facts.extend(path.map(|path| ("process.library.libcrypto.path", path)));
        let world = set_up(Server { facts: Some(facts), ..slow.clone() }, with(&[VERSION, SOME]), 2e6, true, 1);
        let finding = world.explain_unrepeatable().findings.remove(0);
        assert_eq!(finding.cause, "tls.no-asm");
        let line = finding.evidence.iter().find(|line| line.text.contains("holds no assembly")).unwrap();
        assert_eq!(line.repeat, command);
    }
}

const FOUR_CPUS: [(&str, &str); 2] = [("process.cpus_allowed", "0-3"), ("cgroup.cpus", "0-3")];

/// Handshakes that keep a CPU busy.
fn computing(workers: f64) -> Server {
    Server { cores: 4.0, workers, sign: 5e6, key: ("RSA", 4096), ..with(&FOUR_CPUS) }
}

#[test]
fn few_workers_that_compute() {
    for (few, many) in [(1.0, 4.0), (2.0, 4.0), (1.0, 2.0)] {
        for connections in [16, 200] {
            let world = set_up(computing(few), computing(many), 2e3, false, connections);
            assert_likely(&world, "http.few-workers");
            assert_never(&slow_unread(&world), "http.few-workers");
        }
    }
}

/// Two CPUs that share a core do little more than one.
#[test]
fn an_idle_cpu_beside_a_busy_one_is_not_a_whole_one() {
    let siblings = |server: Server, cores| {
        let mut facts = server.facts.clone().unwrap();
        facts.extend([("cpu.cpus", "4"), ("cpu.cores", cores)]);
        Server { facts: Some(facts), ..server }
    };
    for (cores, least, most) in [("4", 0.8, 1.0), ("2", 0.1, 0.45)] {
        let slow = siblings(computing(2.0), cores);
        set_up(slow, computing(4.0), 2e3, false, 64).both_ways(|explanation, _| {
            let found = explanation.findings.iter().find(|finding| finding.cause == "http.few-workers");
            let share = found.and_then(|finding| finding.explains).unwrap();
            assert!((least..=most).contains(&share), "{cores} {share} {explanation:#?}");
        });
    }
}

/// One worker each, and what separates the two is what a request takes; over one connection both wait for something else.
#[test]
fn one_worker_on_both_is_not_why_one_of_them_is_slower() {
    let one = Server { delay: 80e6, ..computing(1.0) };
    let slow = Server { cpu: 2.0, ..one.clone() };
    let world = set_up(slow, one, 2e3, false, 200);
    assert_never(&world, "http.few-workers");
    let mut unread = world;
    unread.servers[0].facts = None;
    unread.both_ways(|explanation, _| {
        let found = explanation.findings.iter().find(|finding| finding.cause == "http.few-workers");
        assert!(found.is_some_and(|finding| finding.confidence == Confidence::Possible), "{explanation:#?}");
    });
}

#[test]
fn few_workers_that_wait() {
    for (places, processes) in [(4.0, "5"), (8.0, "8")] {
        let base = Server { delay: 5e6, cores: 4.0, places: 64.0, ..with(&FOUR_CPUS) };
        let with_count: Machine = [&FOUR_CPUS[..], &[("process.count", processes)]].concat();
        let slow = Server { places, facts: Some(with_count), ..base.clone() };
        let world = set_up(slow.clone(), base.clone(), 2e3, true, 64);
        // A limit on requests lets as many through as some count of a few, by chance.
        let expected = if places < 8.0 { Confidence::Possible } else { Confidence::Likely };
        world.both_ways(|explanation, slow| {
            assert_eq!(named(explanation)[0], ("http.few-workers", Some(slow)), "{explanation:#?}");
            assert_eq!(explanation.findings[0].confidence, expected, "{explanation:#?}");
            assert!(explanation.findings[0].explains.unwrap() >= 0.25, "{explanation:#?}");
        });
        assert_never(&slow_unread(&world), "http.few-workers");
        // It has another number of workers: something else limits it, which may be a limit on rate.
        let with_count: Machine = [&FOUR_CPUS[..], &[("process.count", "33")]].concat();
        let slow = Server { places: 12.0, facts: Some(with_count), ..slow };
        set_up(slow, base, 2e3, true, 64).both_ways(|explanation, slow| {
            assert_eq!(named(explanation), [("http.few-workers", Some(slow)), ("unknown", Some(slow))]);
        });
    }
}

#[test]
fn what_looks_like_few_workers() {
    // Fewer CPUs: none is idle.
    let slow = Server { cores: 1.0, facts: facts(&[("process.cpus_allowed", "0")]), ..computing(4.0) };
    assert_never(&set_up(slow, computing(4.0), 2e3, false, 64), "http.few-workers");
    // As the cgroup has it, whatever the process says.
    let slow = Server { cores: 1.0, facts: facts(&[FOUR_CPUS[0], ("cgroup.cpus", "0")]), ..computing(4.0) };
    assert_never(&set_up(slow, computing(4.0), 2e3, false, 64), "http.few-workers");
    // A quota: threads are held back.
    let slow = Server { counts: vec![("cgroup.throttled_ns", 3e6)], ..computing(1.0) };
    assert_never(&set_up(slow, computing(4.0), 2e3, false, 64), "http.few-workers");
    // A slower CPU shows with one connection.
    let slow = Server { cpu: 3.0, ..computing(4.0) };
    assert_never(&set_up(slow, computing(4.0), 2e3, false, 64), "http.few-workers");
    // Somebody else uses the CPUs that the server could use.
    let busy = [("cpu.1.busy_ns", 5.2e6), ("cpu.2.busy_ns", 5.2e6), ("cpu.3.busy_ns", 5.2e6), ("cpu.0.busy_ns", 5.2e6)];
    let slow = Server { counts: busy.to_vec(), ..computing(1.0) };
    let world = set_up(slow, computing(4.0), 2e3, false, 64);
    assert_never(&world, "http.few-workers");
    // With CPUs of its own it might do more with more workers: that is not excluded, nor where who is busy is not known.
    let mut unknown = world.clone();
    unknown.servers[1].uncounted = vec!["process.cpu_ns"];
    for world in [world, unknown] {
        world.both_ways(|explanation, _| {
            assert!(!explanation.ruled_out.contains(&"http.few-workers".to_owned()), "{explanation:#?}");
        });
    }
    // Nor where none of its workers is busy all the time, for others are on its CPUs.
    let waits = Server { places: 4.0, delay: 5e6, cores: 4.0, others: 3.9, ..with(&FOUR_CPUS) };
    let world = set_up(
        Server { counts: busy.to_vec(), ..waits.clone() },
        Server { places: 64.0, others: 0.0, ..waits },
        2e3,
        true,
        64,
    );
    world.both_ways(|explanation, _| {
        assert!(!explanation.ruled_out.contains(&"http.few-workers".to_owned()), "{explanation:#?}");
    });
    // One at a time, as behind a lock.
    let one: Machine = [&FOUR_CPUS[..], &[("process.count", "1")]].concat();
    let base = Server { delay: 5e6, cores: 4.0, ..with(&FOUR_CPUS) };
    let slow = Server { places: 1.0, facts: Some(one), ..base.clone() };
    assert_never(&set_up(slow, base, 2e3, true, 64), "http.few-workers");
}

fn calls(each: f64) -> Vec<(&'static str, f64)> {
    vec![("workers.read_calls", each), ("workers.write_calls", each), ("workers.written_chars_bytes", 500e3)]
}

#[test]
fn no_sendfile() {
    for tls in [false, true] {
        for (per_byte, each) in [(3.0, 500.0), (1.5, 125.0)] {
            for connections in [1, 16] {
                let fast = Server { tls, counts: calls(16.0), ..with(&[]) };
                let slow = Server { per_byte, counts: calls(each), ..fast.clone() };
                let world = set_up(slow, fast, 500e3, true, connections);
                assert_likely(&world, "http.no-sendfile");
                assert_never_unread(&world, "http.no-sendfile");
            }
        }
    }
}

#[test]
fn small_records() {
    for (per_byte, record) in [(3.0, 1024.0), (1.5, 4096.0)] {
        for connections in [1, 16] {
            // By calls that are not counted.
            let fast = with(&[]);
            let slow = Server { per_byte, record, ..fast.clone() };
            let world = set_up(slow, fast, 500e3, true, connections);
            assert_likely(&world, "http.no-sendfile");
            slow_unread(&world).both_ways(|explanation, slow| {
                let finding = explanation.findings.iter().find(|finding| finding.cause == "http.no-sendfile").unwrap();
                assert_eq!((finding.confidence, finding.target.as_deref()), (Confidence::Possible, Some(slow)));
            });
        }
    }
    // A larger head is no record.
    let slow = Server { head: 20e3, per_byte: 3.0, ..with(&[]) };
    assert_never(&set_up(slow, with(&[]), 500e3, true, 1), "http.no-sendfile");
}

/// Whoever hands a response on reads and writes it once more: the further pieces are the hop's.
#[test]
fn a_hop_is_not_accused_of_small_pieces_besides() {
    let moving = |exe, each: f64, segments: f64, bytes: f64| {
        let counts = [("tcp.received_segments", segments), ("ip.received_bytes", bytes)];
        Server { tls: false, counts: [calls(each), counts.to_vec()].concat(), ..with(&[("process.exe", exe)]) }
    };
    for (per_byte, others) in [(1.5, 200e3), (3.0, 400e3)] {
        let fast = moving("/usr/bin/node", 16.0, 20.0, 2e3);
        let hop = Server { per_byte, outside: others, ..moving("/usr/sbin/nginx", 125.0, 60.0, 505e3) };
        set_up(hop, fast.clone(), 500e3, true, 4).both_ways(|explanation, slow| {
            let named = named(explanation);
            assert!(named.contains(&("net.extra-hop", Some(slow))), "{explanation:#?}");
            assert!(named.iter().all(|(cause, _)| *cause != "http.no-sendfile"), "{explanation:#?}");
        });
        // The same server without anybody behind it.
        let alone = Server { per_byte, ..moving("/usr/sbin/nginx", 125.0, 20.0, 2e3) };
        assert_likely(&set_up(alone, fast, 500e3, true, 4), "http.no-sendfile");
    }
}

#[test]
fn what_looks_like_small_pieces() {
    let fast = || Server { counts: calls(16.0), ..with(&[]) };
    // As many calls, each of them dearer: a tracer, a firewall, a slower CPU.
    let slower = [
        Server { per_byte: 4.0, ..fast() },
        Server { cpu: 4.0, ..fast() },
        Server { fixed: 3e6, ..fast() },
        // More calls, and something else that is slow.
        Server { cap: Some(10e6), counts: calls(200.0), ..fast() },
        Server { delay: 20e6, counts: calls(200.0), ..fast() },
        Server { aes: 5.0, counts: calls(200.0), ..fast() },
        Server { cpu: 4.0, counts: calls(200.0), ..fast() },
    ];
    for slow in slower {
        assert_never(&set_up(slow, fast(), 500e3, true, 1), "http.no-sendfile");
    }
    // The same bytes for each call, and more bytes.
    let slow = Server { larger: 4.0, counts: calls(64.0), ..fast() };
    assert_never(&set_up(slow, fast(), 500e3, true, 1), "http.no-sendfile");
}

/// Each request waits so long for the disk, which does as many writes for it.
fn logging(wait_ns: f64, writes: f64, by_server: f64) -> Server {
    Server {
        delay: wait_ns,
        counts: vec![
            ("disk.sda.writes", writes),
            ("disk.sda.write_ns", 0.6 * wait_ns),
            ("disk.sda.flushes", writes),
            ("disk.sda.flush_ns", 0.4 * wait_ns),
            ("workers.disk_written_bytes", by_server),
        ],
        ..with(&[("mount./var/log", "ext4 rw,relatime,sync /dev/sda1")])
    }
}

#[test]
fn sync_logging() {
    for wait_ns in [100e3, 8e6] {
        for connections in [1, 8] {
            let quiet = Server { delay: 0.0, ..logging(0.0, 0.001, 200.0) };
            let world = set_up(logging(wait_ns, 1.0, 4096.0), quiet, 2e3, true, connections);
            assert_likely(&world, "http.sync-logging");
            world.both_ways(|explanation, _| {
                assert!(
                    explanation.findings[0].summary.contains("/var/log is mounted with `sync`"),
                    "{explanation:#?}"
                );
            });
            assert_never_unread(&world, "http.sync-logging");
            // A small answer, beside which the page of a line is large, of a server whose calls are counted.
            let counted = |mut server: Server| {
                server.counts.extend([("workers.written_chars_bytes", 950.0), ("workers.read_chars_bytes", 0.0)]);
                server
            };
            let quiet = Server { delay: 0.0, ..logging(0.0, 0.001, 200.0) };
            let slow = counted(logging(wait_ns, 1.0, 4096.0));
            assert_likely(&set_up(slow, counted(quiet), 612.0, true, connections), "http.sync-logging");
        }
    }
}

#[test]
fn what_looks_like_sync_logging() {
    let quiet = || Server { delay: 0.0, ..logging(0.0, 0.001, 200.0) };
    let wait = 8e6;
    // Waiting for something else, while the disk hardly writes.
    assert_never(&set_up(Server { delay: wait, ..quiet() }, quiet(), 2e3, true, 1), "http.sync-logging");
    // Writing at leisure.
    assert_never(
        &set_up(Server { delay: wait, ..logging(0.0, 0.01, 200.0) }, quiet(), 2e3, true, 1),
        "http.sync-logging",
    );
    // Somebody else writes.
    assert_never(&set_up(logging(wait, 1.0, 0.0), quiet(), 2e3, true, 1), "http.sync-logging");
    // Both write alike, and one is slow for another reason.
    let slow = Server { fixed: 5e6, ..logging(wait, 1.0, 4096.0) };
    assert_never(&set_up(slow, logging(wait, 1.0, 4096.0), 2e3, true, 1), "http.sync-logging");
    // A quick disk is not worth a slow answer.
    let slow = Server { delay: wait, ..logging(20e3, 1.0, 4096.0) };
    assert_never(&set_up(slow, quiet(), 2e3, true, 1), "http.sync-logging");
    // Somebody else writes to the disk of both, which is busy with that most of the time, and one is slow for another reason: of so many
    // writes three times as many fall on each of its requests. Both servers log at leisure.
    let beside = |delay_ns: f64, writes: f64, boot_id: &'static str| {
        let facts = Some(vec![("os.boot_id", boot_id)]);
        Server { delay: delay_ns, facts, ..logging(0.8 * delay_ns, writes, 26.0) }
    };
    assert_never(&set_up(beside(9e6, 3.0, "5e3b"), beside(3e6, 1.0, "5e3b"), 2e3, true, 1), "http.sync-logging");
    // Of another machine that cannot be told from what the other one's disk does.
    assert_likely(&set_up(beside(9e6, 3.0, "5e3b"), beside(3e6, 1.0, "77aa"), 2e3, true, 1), "http.sync-logging");
    // A request that is there to write.
    let mut world = set_up(logging(wait, 1.0, 4096.0), quiet(), 2e3, true, 1);
    world.http().method = "POST".to_owned();
    assert_never(&world, "http.sync-logging");
}

/// A server, or what stands in front of it, whose process and others take so much CPU for each request.
fn listening(exe: &'static str, server_ns: f64, others_ns: f64, segments: f64) -> Server {
    Server {
        tls: false,
        fixed: server_ns + others_ns,
        counts: vec![
            ("process.cpu_ns", server_ns),
            ("cpu.busy_ns", server_ns + others_ns),
            ("tcp.received_segments", segments),
            // Two segments for the client's request and its acknowledgement; the others carry it and its answer of 2 kB.
            ("ip.received_bytes", 230.0 + 1000.0 * (segments - 2.0)),
        ],
        ..with(&[("process.exe", exe)])
    }
}

#[test]
fn extra_hop() {
    for (hop_ns, round_trip) in [(60e3, 60e3), (400e3, 300e3)] {
        for connections in [1, 16] {
            let near = |server: Server| Server { round_trip, ..server };
            let fast = near(listening("/usr/sbin/nginx", 40e3, 5e3, 2.0));
            let proxied = near(listening("/usr/sbin/haproxy (deleted)", hop_ns, 45e3, 5.0));
            let world = set_up(proxied, fast, 2e3, true, connections);
            assert_likely(&world, "net.extra-hop");
            assert_never_unread(&world, "net.extra-hop");
            let fast = near(listening("/usr/sbin/apache2", 40e3, 5e3, 2.0));
            let front = near(listening("/usr/sbin/nginx", hop_ns, 45e3, 5.0));
            let mut world = set_up(front, fast, 2e3, true, connections);
            assert_likely(&world, "net.extra-hop");
            // What others send each other there comes in bursts.
            let busy = Server { bursts: 30.0, ..near(listening("/usr/sbin/nginx", hop_ns, 45e3, 5.0)) };
            assert_never(
                &set_up(busy, near(listening("/usr/sbin/nginx", 40e3, 5e3, 2.0)), 2e3, true, connections),
                "net.extra-hop",
            );
            // Of a request to a slot, some of which are given up, the counts hold as much that is of no request that counts.
            (world.short_slots, world.gives_up) = (true, true);
            assert_never(&world, "net.extra-hop");
        }
    }
}

/// Where stalls on either side leave open whether the rates differ, the gap of the medians is looked into.
#[test]
fn a_gap_of_the_medians_is_explained() {
    let fast = listening("/usr/sbin/nginx", 40e3, 5e3, 2.0);
    let proxied = listening("/usr/sbin/haproxy", 400e3, 45e3, 5.0);
    for connections in [1, 16] {
        let mut world = set_up(proxied.clone(), fast.clone(), 2e3, true, connections);
        world.rate_is_open = true;
        assert_likely(&world, "net.extra-hop");
        world.both_ways(|explanation, _| {
            let told = explanation.findings.iter().flat_map(|finding| &finding.evidence);
            let of_comparison = told.filter(|line| line.probe == "comparison").map(|line| &line.text);
            assert!(of_comparison.clone().any(|text| text.contains("by its response p50 (")), "{explanation:#?}");
        });
        // By medians that are equal nothing is looked into, nor where there is no gap when probes are made.
        let equal = World { servers: vec![fast.clone(), fast.clone()], ..world.clone() };
        equal.both_ways(|explanation, _| {
            assert!(named(explanation).iter().all(|(cause, _)| *cause == "none"), "{explanation:#?}");
        });
        // A rate that differs by less is another gap.
        let mut by_little = World { rate_is_open: false, ..equal.clone() };
        by_little.servers[1].fixed *= 1.15;
        let gone = World { later: Some(Box::new(by_little)), ..world.clone() };
        gone.both_ways(|explanation, _| {
            assert!(named(explanation).iter().all(|(cause, _)| *cause == "unknown"), "{explanation:#?}");
        });
        let gone = World { later: Some(Box::new(World { rate_is_open: false, ..equal })), ..world };
        gone.both_ways(|explanation, _| {
            assert!(named(explanation).iter().all(|(cause, _)| *cause == "unknown"), "{explanation:#?}");
        });
    }
}

/// Any program may be a relay. So may it be an application that asks another server for its data, which the other side's has by itself.
#[test]
fn a_program_that_hands_on_and_is_no_known_proxy_is_not_accused() {
    let listening = |exe, cpu_ns: f64, others_ns: f64, segments: f64| {
        let mut server = listening(exe, cpu_ns, others_ns, segments);
        server.facts.get_or_insert_default().push(("process.network", "its own"));
        server.counts.push(("tcp.opened", 0.0));
        server
    };
    let fast = listening("/usr/sbin/nginx", 40e3, 5e3, 2.0);
    for segments in [4.0, 5.0, 9.0] {
        let relay = listening("/opt/bin/relay", 100e3, 45e3, segments);
        assert_never(&set_up(relay, fast.clone(), 2e3, true, 16), "net.extra-hop");
    }
    // But it is told.
    set_up(listening("/opt/bin/relay", 100e3, 45e3, 5.0), fast, 2e3, true, 16).both_ways(|explanation, _| {
        let told = explanation.findings.iter().flat_map(|finding| &finding.evidence);
        assert!(
            told.clone().any(|line| line.text.contains("it is a relay, or asks another server")),
            "{explanation:#?}"
        );
    });
}

/// A front that has no quota, is not traced and reads no file says nothing of those that it hands requests on to.
#[test]
fn what_a_front_does_rules_out_nothing_of_who_is_behind_it() {
    const OF_THE_SERVER: [&str; 4] = ["cpu.quota", "cpu.traced", "cpu.fewer-cores", "disk.slow-reads"];
    let facts = [
        ("process.network", "its own"),
        ("process.tracer", "none"),
        ("process.traced", "none"),
        ("process.cpus_allowed", "0-3"),
        ("cgroup.cpu_quota_cpus", "none"),
    ];
    let server = |exe, cpu_ns: f64, others_ns: f64, segments: f64| {
        let mut server = listening(exe, cpu_ns, others_ns, segments);
        server.facts.get_or_insert_default().extend(facts);
        server.counts.push(("workers.disk_read_bytes", 0.0));
        server
    };
    let counting = |mut server: Server, key, per_op: f64| {
        server.counts.retain(|(other, _)| *other != key);
        server.counts.push((key, per_op));
        server
    };
    let fast = server("/usr/sbin/nginx", 40e3, 5e3, 2.0);
    let slow = server("/usr/sbin/nginx", 400e3, 5e3, 2.0);
    let front = server("/usr/sbin/nginx", 400e3, 45e3, 5.0);
    // By IPv6 the heads of segments are longer, and what is asked of others there counts as well.
    let by_ipv6 = counting(counting(slow.clone(), "ip.received_bytes", 270.0), "ip.received_ipv6_packets", 2.0);
    let front_by_ipv6 = counting(front.clone(), "ip.received_ipv6_packets", 5.0);
    // The answer is as large as those of TLS are beside handshakes; what comes back from behind is in the clear.
    let over_tls = |server: &Server| Server { tls: true, chain: 4_000, ..server.clone() };
    // Some of the interrupts are the server's and ours.
    let by_socket = counting(server("/usr/sbin/nginx", 40e3, 30e3, 2.0), "cpu.softirq_ns", 25e3);
    let beside_others = server("/opt/bin/server", 40e3, 405e3, 2.0);
    let uncounted = Server { uncounted: vec!["ip.received_bytes"], ..slow.clone() };
    for (what, slow, fast, kept, is_left_open) in [
        ("alone", slow.clone(), fast.clone(), true, false),
        ("front", front.clone(), fast.clone(), true, true),
        ("alone over IPv6", by_ipv6, fast.clone(), true, false),
        ("front over IPv6", front_by_ipv6, fast.clone(), true, true),
        ("front over TLS, new connections", over_tls(&front), over_tls(&fast), false, true),
        ("front over a Unix socket", by_socket, fast.clone(), true, true),
        ("in between", counting(slow.clone(), "ip.received_bytes", 1_700.0), fast.clone(), true, true),
        ("a little data", counting(slow.clone(), "ip.received_bytes", 330.0), fast.clone(), true, true),
        ("others beside it", beside_others, fast.clone(), true, false),
        ("not counted", uncounted, fast, true, true),
    ] {
        set_up(slow, fast, 2e3, kept, 16).both_ways(|explanation, _| {
            for id in OF_THE_SERVER {
                let is_ruled_out = explanation.ruled_out.iter().any(|other| other == id);
                assert_eq!(is_ruled_out, !is_left_open, "{what}, {id}: {explanation:#?}");
                assert!(named(explanation).iter().all(|(cause, _)| *cause != id), "{what}, {id}: {explanation:#?}");
            }
        });
    }
}

/// On a virtual machine that is idle in between, waking up two more processes takes longer than what they compute.
#[test]
fn a_proxy_that_costs_little_cpu_is_possible_where_the_gap_is_one_more_exchange() {
    let fast = Server { delay: 60e3, ..listening("/usr/sbin/nginx", 40e3, 5e3, 2.0) };
    let hop = |exe, delay| Server { delay, ..listening(exe, 24e3, 26e3, 5.0) };
    set_up(hop("/usr/sbin/haproxy", 140e3), fast.clone(), 2e3, true, 1).both_ways(|explanation, slow| {
        let finding = explanation.findings.iter().find(|finding| finding.cause == "net.extra-hop").unwrap();
        assert_eq!((finding.confidence, finding.target.as_deref()), (Confidence::Possible, Some(slow)));
        assert_eq!(finding.explains, None);
    });
    // What is behind the proxy takes longer than that; and an nginx may do all of it by itself.
    for slow in [hop("/usr/sbin/haproxy", 600e3), hop("/usr/sbin/nginx", 140e3)] {
        assert_never(&set_up(slow, fast.clone(), 2e3, true, 1), "net.extra-hop");
    }
}

/// Small packets bring as many segments as a hop does: acknowledgements, which carry nothing.
#[test]
fn acknowledgements_are_no_further_hop() {
    let fast = listening("/usr/sbin/nginx", 40e3, 5e3, 2.0);
    let mut slow = listening("/usr/sbin/nginx", 60e3, 45e3, 60.0);
    slow.counts.retain(|(key, _)| *key != "ip.received_bytes");
    slow.counts.push(("ip.received_bytes", 60.0 * 52.0));
    for body in [20e3, 500e3] {
        assert_never(&set_up(slow.clone(), fast.clone(), body, true, 1), "net.extra-hop");
    }
}

/// Both sides have their answers from a server behind them, and those of one are larger.
#[test]
fn a_larger_answer_that_both_are_handed_is_no_further_hop() {
    let front = |times: f64, others_ns: f64| {
        let mut front = listening("/usr/sbin/nginx", 40e3, others_ns, 4.0);
        front.counts.retain(|(key, _)| !key.ends_with("received_segments") && !key.ends_with("received_bytes"));
        let answer = 12e3 * times;
        front.counts.extend([("tcp.received_segments", 4.0 + times), ("ip.received_bytes", 600.0 + answer)]);
        Server { larger: times, ..front }
    };
    for times in [2.0, 17.0] {
        assert_never(&set_up(front(times, 400e3), front(1.0, 100e3), 12e3, true, 1), "net.extra-hop");
    }
}

#[test]
fn what_looks_like_a_further_hop() {
    let fast = || listening("/usr/sbin/nginx", 40e3, 5e3, 2.0);
    let mut stolen = listening("/usr/sbin/haproxy", 60e3, 55e3, 2.0);
    stolen.counts.push(("cpu.steal_ns", 50e3));
    let cases = [
        // Slower for another reason, without and with a neighbour that uses CPU time of its own.
        Server { delay: 5e6, ..fast() },
        listening("/usr/sbin/nginx", 400e3, 5e3, 2.0),
        listening("/usr/sbin/nginx", 40e3, 400e3, 2.0),
        // A proxy, and something else that is slow.
        Server { delay: 20e6, ..listening("/usr/sbin/haproxy", 30e3, 40e3, 5.0) },
        Server { cap: Some(100e3), ..listening("/usr/sbin/haproxy", 30e3, 40e3, 5.0) },
        Server { cpu: 4.0, ..fast() },
        // A cache and a balancer that answer by themselves, and take longer for that; the hypervisor withholds CPU time.
        listening("/usr/sbin/varnishd", 70e3, 5e3, 2.0),
        stolen,
    ];
    for slow in cases {
        assert_never(&set_up(slow, fast(), 2e3, true, 1), "net.extra-hop");
    }
    // What is behind a Unix socket is not seen to be handed on; others work for it.
    let socket = listening("/usr/sbin/haproxy", 70e3, 45e3, 2.0);
    set_up(socket, fast(), 2e3, true, 1).both_ways(|explanation, slow| {
        let finding = explanation.findings.iter().find(|finding| finding.cause == "net.extra-hop").unwrap();
        assert_eq!((finding.confidence, finding.target.as_deref()), (Confidence::Possible, Some(slow)));
    });
    // Both have one.
    let both = |delay| Server { delay, ..listening("/usr/sbin/haproxy", 60e3, 45e3, 5.0) };
    assert_never(&set_up(both(500e3), both(0.0), 2e3, true, 1), "net.extra-hop");
}

#[test]
fn from_outside_a_via_field_is_possible_at_most() {
    let base = Server { tls: false, ..Server::default() };
    let slow = Server { via: Some("1.1 proxy"), delay: 300e3, ..base.clone() };
    set_up(slow.clone(), base.clone(), 2e3, true, 1).both_ways(|explanation, slow| {
        let finding = explanation.findings.iter().find(|finding| finding.cause == "net.extra-hop").unwrap();
        assert_eq!((finding.confidence, finding.target.as_deref()), (Confidence::Possible, Some(slow)));
        assert_eq!(finding.explains, None);
    });
    // The way is longer, or both have one, or connecting is what is slow.
    assert_never(&set_up(Server { round_trip: 9e6, ..slow.clone() }, base.clone(), 2e3, false, 1), "net.extra-hop");
    let both = Server { via: Some("1.1 proxy"), ..base };
    assert_never(&set_up(slow, both, 2e3, true, 1), "net.extra-hop");
}

/// Makes of the slow server, seeing the fast one and what else delays it, one without the cause.
type Cure = fn(&mut Server, &Server, f64);

/// Several differences at once, guilty and innocent, and the slow server cured of each cause that it has.
fn random_world(seed: u64, noise: f64) -> (World, BTreeMap<&'static str, Server>) {
    let mut dice = Dice(seed);
    let machine: Machine = [&FOUR_CPUS[..], &[VERSION, SOME, ("process.exe", "/usr/sbin/nginx")]].concat();
    let base = Server {
        tls: dice.chance(0.7),
        round_trip: dice.between(30e3, 3e6),
        fixed: dice.between(20e3, 1e6),
        per_byte: dice.between(0.2, 3.0),
        sign: dice.between(30e3, 3e6),
        cores: 4.0,
        facts: Some(machine.clone()),
        ..Server::default()
    };
    let mut slow = base.clone();
    if dice.chance(0.3) {
        slow.cpu = dice.between(1.05, 4.0);
    }
    let delay = if dice.chance(0.3) { dice.between(10e3, 20e6) } else { 0.0 };
    slow.delay = delay;
    if dice.chance(0.2) {
        slow.cores = 2.0;
        slow.facts = Some([&[("process.cpus_allowed", "0-1")][..], &machine[2..]].concat());
    }
    let mut counts: Vec<(&str, f64)> = Vec::new();
    let mut cures: Vec<(&'static str, Cure)> = Vec::new();
    if dice.chance(0.3) {
        let slower = dice.between(1.2, 5.0);
        (slow.aes, slow.chacha) = (slow.aes * slower * 3.0, slow.chacha * slower);
        (slow.sign, slow.exchange) = (slow.sign * slower, slow.exchange * slower);
        let mut facts = slow.facts.take().unwrap();
        facts.retain(|(key, _)| *key != ASSEMBLY);
        slow.facts = Some([&facts[..], &[NONE]].concat());
        cures.push(("tls.no-asm", |cured, other, _| {
            (cured.aes, cured.chacha, cured.sign, cured.exchange) =
                (other.aes, other.chacha, other.sign, other.exchange);
        }));
    }
    let body = dice.between(1e3, 2e6);
    let mut pieces = 16.0;
    if dice.chance(0.3) {
        slow.per_byte *= dice.between(1.1, 6.0);
        pieces *= dice.between(2.5, 30.0);
        cures.push(("http.no-sendfile", |cured, other, _| cured.per_byte = other.per_byte));
    } else if cures.is_empty() && dice.chance(0.2) {
        // Not both: what a cap hides of the CPU's time is not known to anybody.
        slow.cap = Some(dice.between(3e6, 1e9));
    }
    let carried = ("workers.written_chars_bytes", body);
    counts.extend([("workers.read_calls", pieces), ("workers.write_calls", pieces), carried]);
    let fast_counts = [("workers.read_calls", 16.0), ("workers.write_calls", 16.0), carried];
    let quiet = [("disk.sda.writes", 0.01), ("disk.sda.write_ns", 20.0), ("workers.disk_written_bytes", 200.0)];
    let mut fast = Server { counts: [&fast_counts[..], &quiet[..]].concat(), ..base };
    if dice.chance(0.3) {
        let wait_ns = dice.between(5e3, 10e6);
        slow.delay += wait_ns;
        counts.extend([
            ("disk.sda.writes", 1.0),
            ("disk.sda.write_ns", wait_ns),
            ("workers.disk_written_bytes", 4096.0),
        ]);
        cures.push(("http.sync-logging", |cured, _, delay| cured.delay = delay));
    } else {
        counts.extend(quiet);
    }
    if dice.chance(0.4) {
        slow.workers = if dice.chance(0.5) { 1.0 } else { 2.0 };
        cures.push(("http.few-workers", |cured, other, _| cured.workers = other.workers));
    }
    slow.counts = counts;
    fast.workers = 4.0;
    slow.workers = slow.workers.min(4.0);
    let cured = cures.into_iter().map(|(cause, cure)| {
        let mut cured = slow.clone();
        cure(&mut cured, &fast, delay);
        (cause, cured)
    });
    let cured = cured.collect();
    let connections = [1, 8, 64][dice.bits() as usize % 3];
    let mut world = set_up(slow, fast, body, dice.chance(0.5), connections);
    (world.noise, world.seed, world.budget_ns) = (noise, seed, 600 * SECOND_NS);
    (world, cured)
}

#[test]
fn in_random_worlds_no_one_is_accused_wrongly() {
    let ours = ["tls.no-asm", "http.no-sendfile", "http.sync-logging", "http.few-workers", "net.extra-hop"];
    let (mut accused, mut wrong) = (BTreeMap::<String, usize>::new(), Vec::new());
    let worlds: u64 = std::env::var("WORLDS").map_or(3_000, |worlds| worlds.parse().unwrap());
    for seed in 0..worlds {
        let (world, cured) = random_world(seed, [0.0, 0.003, 0.01, 0.03][seed as usize % 4]);
        for finding in world.explain().findings {
            if finding.confidence < Confidence::Likely || !ours.contains(&finding.cause.as_str()) {
                continue;
            }
            *accused.entry(finding.cause.clone()).or_default() += 1;
            let share = |connections: Option<u32>| {
                let variation = Variation { connections, ..Variation::default() };
                let ns = |server: &Server| 1e9 / world.show(server, &variation).rate;
                let is_slow = finding.target.as_deref() == Some("B");
                let cured = is_slow.then(|| cured.get(finding.cause.as_str())).flatten();
                let (sick, other) = (ns(&world.servers[1]), ns(&world.servers[0]));
                let cured = cured.map_or(sick, ns);
                ((sick / cured).ln() / (sick / other).ln()).max((sick - cured) / (sick - other))
            };
            let share = share(Some(1)).max(share(None));
            if share < if world.noise == 0.0 { 0.15 } else { 0.05 } {
                wrong.push((seed, world.noise, share, finding.cause.clone(), finding.explains));
            }
        }
    }
    println!("accused {accused:#?}, wrong {}: {wrong:?}", wrong.len());
    assert!(accused.len() == 4 && accused.values().all(|&count| count >= 20), "{accused:?}");
    assert!(wrong.iter().all(|(_, noise, ..)| *noise > 0.0), "{wrong:?}");
    assert!(wrong.len() <= 1 + worlds as usize / 10_000, "{wrong:?}");
}
