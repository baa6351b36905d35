//! Servers that read from disk what they are asked for the first time.

use crate::world::{FirstReads, Server, World, named, world};
use duel_model::{Confidence, Explanation, SECOND_NS, Stands};

const COLD: &str = "mem.cold-cache";

/// A server of whose machine everything is read, and which has all that it serves in memory.
fn warm() -> Server {
    Server {
        cores: 8.0,
        facts: Some(vec![("mount./", "ext4 rw,relatime /dev/sda1")]),
        all_read: true,
        first_reads: Some(FirstReads::default()),
        ..Server::default()
    }
}

fn reading(ns: f64, bytes: f64) -> FirstReads {
    FirstReads { ns, bytes, ..FirstReads::default() }
}

/// One that has nothing of it in memory.
fn cold() -> Server {
    Server { first_reads: Some(reading(2e6, 65e3)), ..warm() }
}

fn with(mut server: Server, counts: &[(&'static str, f64)]) -> Server {
    server.counts.extend(counts);
    server
}

/// Each request asks for something else.
fn set_up(slow: &Server, fast: &Server, connections: u32) -> World {
    let mut world = World { body: 65e3, budget_ns: 3_600 * SECOND_NS, ..world(&[fast.clone(), slow.clone()]) };
    world.plan.load.connections = connections;
    world.http().requests.is_template = true;
    world
}

fn is_named(explanation: &Explanation) -> bool {
    named(explanation).iter().any(|(found, _)| *found == COLD)
}

fn is_ruled_out(explanation: &Explanation) -> bool {
    explanation.ruled_out.iter().any(|ruled_out| ruled_out == COLD)
}

/// Neither accused nor acquitted; answers what is said of it.
#[track_caller]
fn left_open(explanation: &Explanation) -> String {
    assert!(!is_named(explanation) && !is_ruled_out(explanation), "{explanation:#?}");
    let lines = explanation.findings.iter().flat_map(|finding| &finding.evidence);
    let of_it = |about: &duel_model::AboutCause| about.cause == COLD && about.stands == Stands::Open;
    let said: Vec<_> =
        lines.filter(|line| line.about.as_ref().is_some_and(of_it)).map(|line| line.text.clone()).collect();
    said.join("; ")
}

#[test]
fn what_is_read_at_first_use_is_named() {
    for ns in [300e3, 2e6, 30e6] {
        for connections in [1, 16, 64] {
            let slow = Server { first_reads: Some(reading(ns, 65e3)), ..warm() };
            set_up(&slow, &warm(), connections).both_ways(|explanation, side| {
                assert_eq!(named(explanation)[0], (COLD, Some(side)), "{explanation:#?}");
                let finding = &explanation.findings[0];
                assert_eq!(finding.confidence, Confidence::Likely, "{explanation:#?}");
                assert!(finding.explains.unwrap() > 0.8, "{explanation:#?}");
            });
        }
    }
}

/// What is left beside it is no part of it.
#[test]
fn beside_something_else_it_is_told_its_share() {
    let slow = Server { delay: 1e6, ..cold() };
    set_up(&slow, &warm(), 1).both_ways(|explanation, side| {
        assert_eq!(named(explanation)[0], (COLD, Some(side)), "{explanation:#?}");
        let share = explanation.findings[0].explains.unwrap();
        assert!((0.2..0.8).contains(&share), "{explanation:#?}");
    });
}

/// No probe sends each request of a long list several times, so that no flip can be held against the comparison.
#[test]
fn a_list_that_is_not_gone_through_is_enough() {
    let world = World { round_ops: Some(100_000), ..set_up(&cold(), &warm(), 16) };
    world.both_ways(|explanation, side| {
        assert_eq!(named(explanation)[0], (COLD, Some(side)), "{explanation:#?}");
        assert_eq!(explanation.findings[0].confidence, Confidence::Likely, "{explanation:#?}");
    });
}

/// The gap may have ended by itself, or all has been read by then.
#[test]
fn a_gap_that_does_not_come_back_leaves_it_possible() {
    let over = set_up(&warm(), &warm(), 16);
    let world = World { round_ops: Some(100_000), ..set_up(&cold(), &warm(), 16) };
    World { elsewhere: vec![("again".to_owned(), over)], ..world }.both_ways(|explanation, side| {
        assert_eq!(named(explanation)[0], (COLD, Some(side)), "{explanation:#?}");
        assert_eq!(explanation.findings[0].confidence, Confidence::Possible, "{explanation:#?}");
    });
}

/// What its machine receives for a request: that one, or also so many bytes of an answer to what it asks itself.
fn receiving(server: Server, answer_bytes: f64) -> Server {
    let segments = 2.0 + answer_bytes / 1448.0;
    let bytes = 220.0 + answer_bytes + 52.0 * (segments - 2.0);
    with(server, &[("tcp.received_segments", segments), ("ip.received_bytes", bytes), ("tcp.opened", 0.0)])
}

#[test]
fn who_reads_nothing_is_acquitted() {
    let slow = receiving(Server { delay: 3e6, ..warm() }, 0.0);
    let warm = || receiving(warm(), 0.0);
    for differ in [true, false] {
        let mut world = set_up(&slow, &warm(), 16);
        world.http().requests.is_template = differ;
        world.both_ways(|explanation, _| {
            assert!(is_ruled_out(explanation), "{explanation:#?}");
            assert!(explanation.probes.iter().all(|outcome| outcome.probe.id != "same-few"), "{explanation:#?}");
        });
    }
    // What another server reads that is asked by it, on another machine, would not be seen; nor that it asks one, where nobody counts.
    let asking = receiving(Server { delay: 3e6, ..self::warm() }, 66e3);
    for unseen in [asking, Server { delay: 3e6, ..self::warm() }] {
        set_up(&unseen, &warm(), 16).both_ways(|explanation, _| {
            assert!(left_open(explanation).contains("another server"), "{explanation:#?}");
        });
    }
    // Nor what a file system reads that is another program, or is not known.
    let mounted = |facts| Server { facts: Some(facts), ..slow.clone() };
    for facts in [vec![("mount./srv", "fuse.sshfs ro me@files:/srv")], vec![("mount./srv", "virtiofs rw srv")], vec![]]
    {
        set_up(&mounted(facts), &warm(), 16).both_ways(|explanation, _| {
            assert!(left_open(explanation).contains("file systems are mounted"), "{explanation:#?}");
        });
    }
    // What is read for it by somebody else would not be seen.
    let behind = with(slow, &[("disk.sda.read_ns", 2e6)]);
    set_up(&behind, &warm(), 16).both_ways(|explanation, _| {
        assert!(left_open(explanation).contains("for others"), "{explanation:#?}");
    });
}

/// Orders are placed once.
#[test]
fn requests_that_may_write_are_not_sent_again() {
    let mut world = set_up(&cold(), &warm(), 16);
    world.http().method = "POST".to_owned();
    world.both_ways(|explanation, _| {
        left_open(explanation);
        assert!(explanation.probes.iter().all(|outcome| outcome.probe.id != "same-few"), "{explanation:#?}");
    });
}

#[test]
fn who_does_not_count_what_is_read_is_neither_accused_nor_acquitted() {
    for (slow, fast) in [
        (cold(), Server { first_reads: None, ..warm() }),
        (Server { uncounted: vec!["workers.disk_read_bytes"], ..cold() }, warm()),
        (cold(), Server { facts: None, ..warm() }),
        (Server { facts: None, ..cold() }, warm()),
    ] {
        set_up(&slow, &fast, 16).both_ways(|explanation, _| {
            left_open(explanation);
        });
    }
}

/// Past the page cache, or thrown out of it at once.
#[test]
fn what_is_read_again_and_again_is_no_first_use() {
    let slow = Server { first_reads: Some(FirstReads { again: true, ..reading(2e6, 65e3) }), ..warm() };
    set_up(&slow, &warm(), 16).both_ways(|explanation, _| {
        assert!(left_open(explanation).contains("does not stay in memory"), "{explanation:#?}");
    });
    // Nor is it where all requests ask for the same.
    let mut world = set_up(&slow, &warm(), 16);
    world.http().requests.is_template = false;
    world.both_ways(|explanation, _| {
        assert!(left_open(explanation).contains("does not stay in memory"), "{explanation:#?}");
    });
}

/// A few requests fit into a small memory as well.
#[test]
fn memory_that_is_too_small_is_no_cold_cache() {
    let pages = 65e3 / 4096.0;
    let limited = with(cold(), &[("memory.refaults_file", 2.0 * pages), ("cgroup.memory_limit_hits", 1.0)]);
    set_up(&limited, &warm(), 16).both_ways(|explanation, side| {
        assert_eq!(named(explanation)[0], ("mem.limit", Some(side)), "{explanation:#?}");
        assert!(!is_named(explanation), "{explanation:#?}");
    });
    let short = [("memory.refaults_file", pages), ("memory.reclaimed_directly_pages", pages)];
    set_up(&with(cold(), &short), &warm(), 16).both_ways(|explanation, _| {
        assert!(!is_named(explanation), "{explanation:#?}");
    });
    // Whether it is short is not known where nobody counts what comes back.
    let unknown = Server { uncounted: vec!["memory.refaults_file"], ..cold() };
    set_up(&unknown, &warm(), 16).both_ways(|explanation, _| {
        assert!(left_open(explanation).contains("not known"), "{explanation:#?}");
    });
}

/// A backup of last night has thrown all of it out, and memory is not short now; or it is full of what is old.
#[test]
fn pages_that_come_back_or_are_taken_away_alone_are_no_want_of_memory() {
    let pages = 65e3 / 4096.0;
    let come_back = [("memory.refaults_file", pages), ("memory.reclaimed_directly_pages", 0.0)];
    for counts in [&come_back[..], &[("memory.reclaimed_directly_pages", pages)]] {
        set_up(&with(cold(), counts), &warm(), 16).both_ways(|explanation, side| {
            assert_eq!(named(explanation)[0], (COLD, Some(side)), "{explanation:#?}");
        });
    }
}

#[test]
fn a_slower_device_under_a_twin_that_is_as_cold_is_something_else() {
    let fast = Server { first_reads: Some(reading(100e3, 65e3)), ..warm() };
    set_up(&cold(), &fast, 16).both_ways(|explanation, _| assert!(!is_named(explanation), "{explanation:#?}"));
    // Something of it was read by chance before.
    let fast = Server { first_reads: Some(reading(100e3, 40e3)), ..warm() };
    set_up(&cold(), &fast, 16).both_ways(|explanation, _| {
        assert!(left_open(explanation).contains("neither has it in memory"), "{explanation:#?}");
    });
}

#[test]
fn answers_of_another_size_are_something_else() {
    let larger = Server { larger: 2.0, ..cold() };
    set_up(&larger, &warm(), 16).both_ways(|explanation, _| assert!(!is_named(explanation), "{explanation:#?}"));
}

/// What the server itself keeps is no page of a file.
#[test]
fn a_cache_that_is_filled_without_reading_is_something_else() {
    let slow = Server { first_reads: Some(reading(2e6, 0.0)), ..warm() };
    set_up(&slow, &warm(), 16).both_ways(|explanation, _| assert!(!is_named(explanation), "{explanation:#?}"));
}

/// Both may wait for something that they share then, which hides no more than what the slow side takes.
#[test]
fn a_fast_side_that_gets_faster_too_hides_a_small_gap_and_not_a_large_one() {
    let fast = Server { first_reads: Some(reading(300e3, 0.0)), ..warm() };
    for (ns, is_found) in [(30e6, true), (600e3, false)] {
        let slow = Server { first_reads: Some(reading(ns, 65e3)), ..warm() };
        set_up(&slow, &fast, 1).both_ways(|explanation, side| {
            if is_found {
                assert_eq!(named(explanation)[0], (COLD, Some(side)), "{explanation:#?}");
            } else {
                left_open(explanation);
            }
        });
    }
}

#[test]
fn reads_that_take_too_little_time_are_not_what_goes_away() {
    let slow = Server { first_reads: Some(FirstReads { unseen: 0.9, ..reading(2e6, 65e3) }), ..warm() };
    set_up(&slow, &warm(), 16).both_ways(|explanation, _| {
        assert!(left_open(explanation).contains("something else goes away"), "{explanation:#?}");
    });
    // The disk's time lacks what a limit on reads holds back; that its threads sleep for it was seen.
    let held_back = Server { asleep: vec![("folio_wait_bit_common", 1.0, 0.0)], ..slow };
    let fast = Server { asleep: vec![("ep_poll", 1.0, 1.0)], ..warm() };
    set_up(&held_back, &fast, 16).both_ways(|explanation, side| {
        assert_eq!(named(explanation)[0], (COLD, Some(side)), "{explanation:#?}");
    });
}

#[test]
fn reads_that_take_no_time_beside_something_else_are_ruled_out() {
    let slow = Server { delay: 3e6, first_reads: Some(reading(1e3, 4096.0)), ..warm() };
    set_up(&slow, &warm(), 1).both_ways(|explanation, _| assert!(is_ruled_out(explanation), "{explanation:#?}"));
}
