//! Fronts whose answers go through files, in a simulated world beside what looks like it.

use crate::world::{Server, World, named, world};
use duel_model::{Confidence, SECOND_NS};

const CAUSE: &str = "http.proxy-buffering";
const ANSWER: f64 = 64e3;

fn count(mut server: Server, key: &'static str, per_op: f64) -> Server {
    server.counts.retain(|(other, _)| *other != key);
    server.counts.push((key, per_op));
    server
}

/// A server whose calls move each answer so many times: written, read, and written to files on disks.
fn moving(server: Server, written: f64, read: f64, to_disk: f64) -> Server {
    let server = count(server, "workers.written_chars_bytes", written * ANSWER);
    count(count(server, "workers.read_chars_bytes", read * ANSWER), "workers.disk_written_bytes", to_disk * ANSWER)
}

/// A front that reads from the server behind it, and writes to the client.
fn front() -> Server {
    let server = Server {
        tls: false,
        fixed: 60e3,
        outside: 30e3,
        facts: Some(vec![("process.exe", "/usr/sbin/nginx"), ("process.network", "its own")]),
        all_read: true,
        counts: vec![
            ("tcp.received_segments", 5.0),
            ("ip.received_bytes", 70e3),
            ("tcp.opened", 0.0),
            ("workers.read_calls", 9.0),
            ("workers.write_calls", 7.0),
        ],
        ..Server::default()
    };
    moving(server, 1.0, 1.0, 0.0)
}

/// One that takes answers into a file first, and spends so much kernel time for that.
fn with_files(server: Server, kernel: f64) -> Server {
    moving(Server { kernel, ..server }, 2.0, 2.0, 1.05)
}

fn set_up(slow: Server, fast: Server, connections: u32) -> World {
    let mut world = World { body: ANSWER, budget_ns: 600 * SECOND_NS, ..world(&[fast, slow]) };
    world.plan.load.connections = connections;
    world
}

#[track_caller]
fn assert_alone(world: &World, confidence: Confidence) {
    world.both_ways(|explanation, slow| {
        let names = named(explanation);
        assert_eq!(names[0], (CAUSE, Some(slow)), "{explanation:#?}");
        assert!(names[1..].iter().all(|(name, _)| *name == "unknown"), "{explanation:#?}");
        assert_eq!(explanation.findings[0].confidence, confidence, "{explanation:#?}");
        assert!(explanation.findings[0].explains.unwrap() >= 0.25, "{explanation:#?}");
    });
}

#[track_caller]
fn assert_never(world: &World, what: &str) {
    world.both_ways(|explanation, _| {
        assert!(named(explanation).iter().all(|(name, _)| *name != CAUSE), "{what}: {explanation:#?}");
    });
}

#[track_caller]
fn assert_not_ruled_out(world: &World, what: &str) {
    world.both_ways(|explanation, _| {
        assert!(explanation.ruled_out.iter().all(|name| name != CAUSE), "{what}: {explanation:#?}");
    });
}

#[test]
fn answers_that_go_through_a_file_are_found() {
    for kernel in [100e3, 600e3] {
        for connections in [1, 8] {
            let world = set_up(with_files(front(), kernel), front(), connections);
            assert_alone(&world, Confidence::Likely);
            // A file in memory is none that has to be written back.
            let in_memory = moving(with_files(front(), kernel), 2.0, 2.0, 0.0);
            assert_alone(&set_up(in_memory, front(), connections), Confidence::Likely);
            for unread in [vec![0], vec![1], vec![0, 1]] {
                let mut world = world.clone();
                unread.iter().for_each(|&index| world.servers[index].facts = None);
                assert_never(&world, "not read");
                assert_not_ruled_out(&world, "not read");
            }
        }
    }
}

/// Who asks over a Unix socket is not seen to hand anything on.
#[test]
fn where_nobody_is_seen_behind_it_it_is_possible() {
    let alone = |server| count(server, "ip.received_bytes", 500.0);
    let world = set_up(with_files(alone(front()), 300e3), alone(front()), 4);
    assert_alone(&world, Confidence::Possible);
    // A proxy where the other has none.
    assert_never(&set_up(with_files(front(), 300e3), alone(front()), 4), "a hop");
}

#[test]
fn what_looks_like_answers_in_files() {
    let beside = |kernel: f64| Server { kernel, ..front() };
    let pieces = count(count(beside(300e3), "workers.read_calls", 70.0), "workers.write_calls", 130.0);
    let cases = [
        // Tiny buffers without a file, and whatever else takes kernel time, or time.
        ("tiny buffers", pieces, front(), true),
        ("kernel time", beside(300e3), front(), true),
        ("a delay", Server { delay: 5e6, ..front() }, front(), true),
        // A long log, which is not read.
        ("a log", moving(beside(300e3), 2.0, 1.0, 1.0), front(), false),
        // Both alike, and one is slow for another reason.
        ("both", with_files(front(), 600e3), with_files(front(), 100e3), false),
        // A file that takes no time, and something else that does.
        ("an upstream", Server { delay: 5e6, ..with_files(front(), 20e3) }, front(), false),
        ("a slower CPU", Server { cpu: 4.0, ..with_files(front(), 0.0) }, front(), false),
        ("far more than a file takes", with_files(front(), 80e6), front(), false),
        // The disk under the files, which may be written at leisure.
        (
            "a disk",
            count(
                count(Server { delay: 5e6, ..with_files(front(), 0.0) }, "disk.sda.writes", 1.0),
                "disk.sda.write_ns",
                5e6,
            ),
            front(),
            false,
        ),
        (
            "a tracer",
            {
                let mut server = count(with_files(front(), 600e3), "workers.voluntary_switches", 60.0);
                server.facts.get_or_insert_default().push(("process.tracer", "4711"));
                server
            },
            front(),
            false,
        ),
    ];
    for (what, slow, fast, is_acquitted) in cases {
        for connections in [1, 8] {
            let world = set_up(slow.clone(), fast.clone(), connections);
            assert_never(&world, what);
            world.both_ways(|explanation, _| {
                let is_ruled_out = explanation.ruled_out.iter().any(|name| name == CAUSE);
                assert_eq!(
                    is_ruled_out, is_acquitted,
                    "{what} over {connections}: {:#?} {:#?}",
                    explanation.findings, explanation.ruled_out
                );
            });
        }
    }
}

/// Files that are written are neither logs nor small pieces.
#[test]
fn nothing_else_is_accused_of_answers_in_files() {
    let slow = with_files(front(), 300e3);
    // Each answer is a write of the disk, at leisure, and is moved by four times as many calls.
    let slow = count(count(slow, "disk.sda.writes", 1.0), "disk.sda.write_ns", 400e3);
    let slow = count(count(slow, "workers.read_calls", 40.0), "workers.write_calls", 40.0);
    let fast = count(count(front(), "disk.sda.writes", 0.0), "disk.sda.write_ns", 0.0);
    for connections in [1, 8] {
        assert_alone(&set_up(slow.clone(), fast.clone(), connections), Confidence::Likely);
    }
}
