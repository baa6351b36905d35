//! Servers whose control groups may have disks do only so much, in a simulated world beside what looks like it.

use crate::world::{Server, World, named, world};
use duel_model::{Confidence, SECOND_NS};

const CAUSE: &str = "disk.group-limit";
/// What a request has the disk read.
const READ: f64 = 1e6;

/// A server that reads past its cache for each request, and takes so long for that.
fn reading(read_ns: f64) -> Server {
    Server {
        tls: false,
        delay: read_ns,
        facts: Some(vec![("process.exe", "/usr/sbin/nginx"), ("cgroup.io_limits", "none")]),
        all_read: true,
        counts: vec![("workers.disk_read_bytes", READ), ("workers.read_chars_bytes", READ)],
        ..Server::default()
    }
}

/// The same under a limit of 20 MB/s, of which its group is seen to read so much for each request.
fn limited(server: Server, what: &'static str, limit: &'static str, per_op: f64) -> Server {
    let mut server = server;
    let facts = server.facts.get_or_insert_default();
    facts.retain(|(key, _)| *key != "cgroup.io_limits");
    facts.push(("cgroup.io_limits", "io.max 7:3 rbps=20000000 wbps=max riops=max wiops=max"));
    let (fact, counter) = match what {
        "read" => ("cgroup.io.7:3.read_bytes_per_s", "cgroup.io.7:3.read_bytes"),
        "reads" => ("cgroup.io.7:3.reads_per_s", "cgroup.io.7:3.reads"),
        _ => ("cgroup.io.7:3.written_bytes_per_s", "cgroup.io.7:3.written_bytes"),
    };
    facts.push((fact, limit));
    server.counts.push((counter, per_op));
    server
}

/// The time of 1 MB at 20 MB/s, nearly: a part of each request is spent otherwise.
const HELD_BACK_NS: f64 = 50e6;

fn set_up(slow: Server, fast: Server) -> World {
    let mut world = World { body: READ, budget_ns: 600 * SECOND_NS, ..world(&[fast, slow]) };
    world.plan.load.connections = 1;
    world
}

fn count(mut server: Server, key: &'static str, per_op: f64) -> Server {
    server.counts.retain(|(other, _)| *other != key);
    server.counts.push((key, per_op));
    server
}

#[track_caller]
fn assert_named(world: &World, confidence: Confidence) {
    world.both_ways(|explanation, slow| {
        let names = named(explanation);
        assert_eq!(names[0], (CAUSE, Some(slow)), "{:#?}", explanation.findings);
        assert!(names[1..].iter().all(|(name, _)| *name == "unknown"), "{:#?}", explanation.findings);
        assert_eq!(explanation.findings[0].confidence, confidence, "{:#?}", explanation.findings);
    });
}

#[track_caller]
fn assert_not_named(world: &World, what: &str, is_acquitted: bool) {
    world.both_ways(|explanation, _| {
        let findings = &explanation.findings;
        assert!(named(explanation).iter().all(|(name, _)| *name != CAUSE), "{what}: {findings:#?}");
        let is_ruled_out = explanation.ruled_out.iter().any(|name| name == CAUSE);
        assert_eq!(is_ruled_out, is_acquitted, "{what}: {findings:#?}");
    });
}

#[test]
fn a_limit_of_the_group_that_is_reached_is_found() {
    for (what, limit, per_op) in [("read", "20000000", READ), ("reads", "200", 10.0)] {
        let slow = limited(reading(HELD_BACK_NS), what, limit, per_op);
        let world = set_up(slow.clone(), reading(0.5e6));
        assert_named(&world, Confidence::Likely);
        world.both_ways(|explanation, _| {
            let summary = &explanation.findings[0].summary;
            assert!(summary.contains("device 7:3"), "{summary}");
        });
        // A limit that is far away holds nobody back.
        let far = limited(reading(0.5e6), what, "5000000000", per_op);
        assert_named(&set_up(slow.clone(), far), Confidence::Likely);
        // Who reads more for each request reaches it for that.
        let less = count(reading(0.5e6), "workers.disk_read_bytes", 0.1 * READ);
        assert_not_named(&set_up(slow.clone(), less), "reads more", false);
        // A limit that both have is no difference, whoever reaches it.
        let same = limited(reading(0.5e6), what, limit, 0.1 * per_op);
        assert_not_named(&set_up(slow.clone(), same), "both have it", false);
        for unread in [vec![1], vec![0, 1]] {
            let mut world = world.clone();
            unread.iter().for_each(|&index| world.servers[index].facts = None);
            assert_not_named(&world, "not read", false);
        }
    }
    // What is written may be at leisure.
    let slow = limited(reading(HELD_BACK_NS), "written", "20000000", READ);
    assert_named(&set_up(slow, reading(0.5e6)), Confidence::Possible);
}

#[test]
fn what_looks_like_a_limit_of_the_group() {
    let slow = || reading(HELD_BACK_NS);
    let unknown = |server: Server| {
        let mut server = server;
        server.facts.get_or_insert_default().retain(|(key, _)| *key != "cgroup.io_limits");
        server
    };
    let cases = [
        ("no limit", slow(), reading(0.5e6), true),
        ("not known whether there is one", unknown(slow()), reading(0.5e6), false),
        ("far below it, unless others use it up", limited(slow(), "read", "900000000", READ), reading(0.5e6), false),
        ("two thirds of it", limited(slow(), "read", "30000000", READ), reading(0.5e6), false),
        (
            "nobody counts",
            {
                let mut server = limited(slow(), "read", "20000000", READ);
                server.counts.pop();
                server
            },
            reading(0.5e6),
            false,
        ),
        ("both", limited(slow(), "read", "20000000", READ), limited(reading(25e6), "read", "40000000", READ), false),
    ];
    for (what, slow, fast, is_acquitted) in cases {
        assert_not_named(&set_up(slow, fast), what, is_acquitted);
    }
    // What goes on without load as well is none of the load's.
    let scanned = Server {
        background: vec![("cgroup.io.7:3.read_bytes", 20e6)],
        seen_in_silence: true,
        ..limited(slow(), "read", "20000000", 0.0)
    };
    assert_not_named(&set_up(scanned, reading(0.5e6)), "a scan", false);
}
