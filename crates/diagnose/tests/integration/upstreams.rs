//! Fronts whose upstream is the problem, in a simulated world beside what looks like it.

use crate::world::network::Net;
use crate::world::{Server, World, named, world};
use duel_model::{Confidence, SECOND_NS};

/// A front and the server behind it, on a machine that is read whole and has CPUs to spare.
fn front(exe: &'static str) -> Server {
    Server {
        tls: false,
        fixed: 60e3,
        delay: 40e3,
        outside: 30e3,
        cores: 8.0,
        facts: Some(vec![("process.exe", exe), ("process.network", "its own")]),
        all_read: true,
        // Our request and its acknowledgement; the one that is passed on, and its answer of 2.3 kB.
        counts: vec![("tcp.received_segments", 5.0), ("ip.received_bytes", 2_900.0), ("tcp.opened", 0.0)],
        net: Net { profiles: true, ..Net::default() },
        ..Server::default()
    }
}

const NGINX: &str = "/usr/sbin/nginx";

fn count(mut server: Server, key: &'static str, per_op: f64) -> Server {
    server.counts.retain(|(other, _)| *other != key);
    server.counts.push((key, per_op));
    server
}

fn fact(mut server: Server, key: &'static str, value: &'static str) -> Server {
    let facts = server.facts.get_or_insert_default();
    facts.retain(|(other, _)| *other != key);
    facts.push((key, value));
    server
}

/// One that answers by itself.
fn alone(exe: &'static str) -> Server {
    let server = Server { outside: 0.0, delay: 0.0, ..front(exe) };
    count(count(server, "tcp.received_segments", 2.0), "ip.received_bytes", 220.0)
}

/// It connects anew: the front and who is behind it compute longer for that, and a connection has seven segments.
fn connecting(server: Server) -> Server {
    let server = Server { fixed: server.fixed + 40e3, outside: server.outside + 30e3, ..server };
    let server = count(count(server, "tcp.received_segments", 10.0), "ip.received_bytes", 3_300.0);
    count(server, "tcp.opened", 1.0)
}

/// Sleeping longer, in as many turns.
fn waiting(server: Server, ns: f64) -> Server {
    Server { delay: server.delay + ns, ..server }
}

fn set_up(slow: Server, fast: Server, keepalive: bool, connections: u32) -> World {
    let mut world = World { body: 2e3, budget_ns: 600 * SECOND_NS, ..world(&[fast, slow]) };
    world.http().keepalive = keepalive;
    world.plan.load.connections = connections;
    world
}

#[track_caller]
fn assert_alone(world: &World, cause: &str, confidence: Confidence) {
    world.both_ways(|explanation, slow| {
        let names = named(explanation);
        assert_eq!(names[0], (cause, Some(slow)), "{explanation:#?}");
        assert!(names[1..].iter().all(|(name, _)| *name == "unknown"), "{explanation:#?}");
        assert_eq!(explanation.findings[0].confidence, confidence, "{explanation:#?}");
    });
}

/// Neither cause is named, nor is it ruled out where it is at work.
#[track_caller]
fn assert_never(world: &World, cause: &str) {
    world.both_ways(|explanation, _| {
        assert!(named(explanation).iter().all(|(name, _)| *name != cause), "{explanation:#?}");
    });
}

#[track_caller]
fn assert_not_ruled_out(world: &World, cause: &str) {
    world.both_ways(|explanation, _| {
        assert!(explanation.ruled_out.iter().all(|name| name != cause), "{explanation:#?}");
    });
}

const CONNECTS: &str = "http.upstream-no-keepalive";
const SLOW: &str = "http.slow-upstream";

#[test]
fn a_front_that_connects_anew_behind_it_is_found() {
    for exe in [NGINX, "/usr/sbin/haproxy", "/opt/own/gateway"] {
        for (keepalive, connections) in [(true, 1), (true, 4), (false, 4)] {
            let world = set_up(connecting(front(exe)), front(exe), keepalive, connections);
            assert_alone(&world, CONNECTS, Confidence::Likely);
            // Machines that are not read tell nothing.
            for unread in [vec![0], vec![1], vec![0, 1]] {
                let mut world = world.clone();
                unread.iter().for_each(|&index| world.servers[index].facts = None);
                assert_never(&world, CONNECTS);
                assert_not_ruled_out(&world, CONNECTS);
            }
        }
    }
}

/// What it computes longer for both kinds of connections is not all of those behind it.
#[test]
fn a_front_that_closes_ours_as_well_connects_for_half_of_the_cpu_time() {
    let explains = |slow: Server| {
        let explanation = set_up(slow, front(NGINX), true, 1).explain();
        let finding = explanation.findings.iter().find(|finding| finding.cause == CONNECTS);
        finding.and_then(|finding| finding.explains).unwrap_or(0.0)
    };
    let slow = || connecting(front(NGINX));
    let (keeps, closes) = (explains(slow()), explains(Server { keeps: false, ..slow() }));
    // Of 130 us that a request takes longer then, 60 are the way to connect and 70 are computed.
    assert!(keeps > 0.5 && closes < 0.35, "{closes} of {keeps}");
}

/// Closing ours everywhere leaves the gap where those behind it are most of it. That is no proof that closing does not matter.
#[test]
fn a_front_that_may_close_those_behind_it_as_well_is_not_acquitted_of_closing() {
    let id = "http.no-keepalive";
    let closing = |server: Server| Server { keeps: false, ..server };
    let dear = Server { round_trip: 20e3, ..front(NGINX) };
    // Our connection is cheap, and the one behind takes a millisecond.
    let slow = closing(waiting(connecting(dear.clone()), 1e6));
    assert_not_ruled_out(&set_up(slow.clone(), dear.clone(), true, 1), id);
    let mut unread = set_up(slow, dear.clone(), true, 1);
    unread.servers[1].facts = None;
    assert_not_ruled_out(&unread, id);
    // Who opens none takes the millisecond for something else.
    set_up(closing(waiting(dear.clone(), 1e6)), dear, true, 1).both_ways(|explanation, _| {
        assert!(explanation.ruled_out.iter().any(|name| name == id), "{explanation:#?}");
    });
}

/// On a virtual machine that is idle in between, two more wake-ups take longer than what is computed.
#[test]
fn where_connecting_takes_longer_than_it_computes_it_is_possible() {
    let base = Server { round_trip: 100e3, ..front(NGINX) };
    let slow = Server { fixed: base.fixed + 5e3, outside: base.outside + 5e3, ..connecting(base.clone()) };
    assert_alone(&set_up(waiting(slow.clone(), 90e3), base.clone(), true, 1), CONNECTS, Confidence::Possible);
    // What is behind it takes longer than that.
    let world = set_up(waiting(slow, 5e6), base, true, 1);
    assert_never(&world, CONNECTS);
    assert_not_ruled_out(&world, CONNECTS);
}

/// With TLS behind it a connection costs many times what one without does. First seen on HAProxy before a server over TLS.
#[test]
fn a_front_that_shakes_hands_behind_it_may_compute_as_long_as_a_handshake_takes() {
    let base = Server { tls: true, ..front(NGINX) };
    let slow = connecting(base.clone());
    let tls = Server { fixed: slow.fixed + 150e3, outside: slow.outside + 150e3, ..slow.clone() };
    let with_bytes = |server: &Server, bytes| count(server.clone(), "ip.received_bytes", bytes);
    assert_alone(&set_up(with_bytes(&tls, 5_500.0), base.clone(), true, 1), CONNECTS, Confidence::Likely);
    // Hardly more bytes than a connection without TLS has: it computes for something else, and so it does where it takes far longer.
    let dear = Server { fixed: slow.fixed + 20e6, ..slow.clone() };
    for (server, bytes) in [(&tls, 3_300.0), (&dear, 3_300.0), (&dear, 5_500.0)] {
        assert_never(&set_up(with_bytes(server, bytes), base.clone(), true, 1), CONNECTS);
    }
    // A larger answer is no handshake.
    let larger = Server { fixed: slow.fixed + 1e6, larger: 1.5, ..slow.clone() };
    assert_never(&set_up(with_bytes(&larger, 4_300.0), base.clone(), true, 1), CONNECTS);
    // What is behind it computes for something else.
    let computes_behind = Server { outside: slow.outside + 20e6, ..slow };
    assert_never(&set_up(with_bytes(&computes_behind, 5_500.0), base, true, 1), CONNECTS);
}

/// The network's counters are those of the machine, where our own connections are counted as well.
#[test]
fn our_own_connections_are_none_of_the_front() {
    let shared = |server: Server, opened: f64, connections: f64| {
        let server = fact(Server { generator: 20e3, ..server }, "process.network", "the host's");
        let bytes = 2.0 * 2_500.0 + 52.0 * 10.0 + 420.0 * connections;
        count(count(count(server, "tcp.received_segments", 10.0), "ip.received_bytes", bytes), "tcp.opened", opened)
    };
    let keeps = |server| shared(server, 0.03, 0.0);
    assert_alone(
        &set_up(shared(connecting(front(NGINX)), 1.03, 1.0), keeps(front(NGINX)), true, 1),
        CONNECTS,
        Confidence::Likely,
    );
    // It closes ours, and keeps those behind it.
    let closes = Server { keeps: false, ..shared(front(NGINX), 1.0, 1.0) };
    assert_never(&set_up(closes, keeps(front(NGINX)), true, 1), CONNECTS);
}

#[test]
fn what_looks_like_a_front_that_connects_anew() {
    let base = || front(NGINX);
    let dear = || Server { fixed: 160e3, ..base() };
    let cases = [
        // Our connections are closed.
        (Server { keeps: false, ..base() }, base()),
        // It is slower for another reason, and both connect, or neither does.
        (dear(), base()),
        (connecting(dear()), connecting(base())),
        (waiting(connecting(base()), 3e6), connecting(base())),
        // Somebody connects now and then, whoever is asked; requests take longer.
        (count(waiting(base(), 20e6), "tcp.opened", 2.0), count(base(), "tcp.opened", 0.02)),
        // A further hop, which connects anew to the only server of the other side.
        (connecting(base()), alone(NGINX)),
        (connecting(front("/usr/sbin/haproxy")), alone("/usr/sbin/apache2")),
        // Few workers, and a lock.
        (Server { workers: 1.0, ..base() }, base()),
        (Server { kappa: 0.1, ..base() }, base()),
        (Server { round_trip: 5e6, ..base() }, base()),
    ];
    for (slow, fast) in cases {
        for connections in [1, 16] {
            assert_never(&set_up(slow.clone(), fast.clone(), true, connections), CONNECTS);
        }
    }
}

/// The segments of a connection, with TLS those of certificates, are no answer that is carried once more.
#[test]
fn a_front_that_connects_anew_is_no_further_hop() {
    for bytes in [3_300.0, 6_500.0] {
        let slow = count(connecting(front(NGINX)), "ip.received_bytes", bytes);
        let mut world = set_up(slow, front(NGINX), true, 1);
        world.body = 300.0;
        assert_never(&world, "net.extra-hop");
    }
}

#[test]
fn a_slow_server_behind_a_front_is_found() {
    for exe in [NGINX, "/usr/sbin/haproxy", "/opt/own/gateway"] {
        for connections in [1, 4, 16] {
            for ns in [400e3, 20e6] {
                let world = set_up(waiting(front(exe), ns), front(exe), true, connections);
                let at_most = if connections == 1 { Confidence::Likely } else { Confidence::Possible };
                assert_alone(&world, SLOW, at_most);
                for unread in [vec![0], vec![1], vec![0, 1]] {
                    let mut world = world.clone();
                    unread.iter().for_each(|&index| world.servers[index].facts = None);
                    assert_never(&world, SLOW);
                    assert_not_ruled_out(&world, SLOW);
                }
            }
        }
    }
}

#[test]
fn what_looks_like_a_slow_server_behind_a_front() {
    let base = || front(NGINX);
    let sleepy = |sleeps| count(waiting(base(), 5e6), "workers.voluntary_switches", sleeps);
    let cases = [
        // A server that sleeps inside of its own process, with nobody behind it on either side, or on one.
        (waiting(alone(NGINX), 5e6), alone(NGINX)),
        (waiting(alone(NGINX), 5e6), base()),
        // A front that waits for something of its own, which it goes to sleep for.
        (sleepy(3.0), base()),
        // One that is woken for several requests at once, so that nothing tells.
        (sleepy(0.3), base()),
        // It computes longer, or waits for a CPU.
        (Server { fixed: 1e6, ..base() }, base()),
        (count(waiting(base(), 5e6), "workers.wait_ns", 3e6), base()),
        // Somebody else uses its CPUs, or a quota holds it back, or its disk is what is slow.
        (Server { others: 7.5, ..base() }, base()),
        (Server { quota: Some(0.3), ..base() }, base()),
        (Server { disk: 5e6, ..base() }, base()),
        // The way is longer, segments get lost, acknowledgements wait, a client may not do more.
        (Server { round_trip: 5e6, ..base() }, base()),
        (Server { per_address: Some(100.0), ..base() }, base()),
        (Server { dislikes_us: 5e6, ..base() }, base()),
        // A proxy where the other has none.
        (waiting(front("/usr/sbin/haproxy"), 5e6), alone(NGINX)),
        (waiting(base(), 400e3), alone("/usr/sbin/apache2")),
        // Our connections are closed; it connects anew; few are served at a time; a lock.
        (Server { keeps: false, ..base() }, base()),
        (connecting(base()), base()),
        (Server { workers: 1.0, ..base() }, base()),
        (Server { places: 2.0, ..base() }, base()),
        (Server { kappa: 0.1, ..base() }, base()),
    ];
    for (number, (slow, fast)) in cases.into_iter().enumerate() {
        for connections in [1, 16] {
            println!("{number} over {connections}");
            assert_never(&set_up(slow.clone(), fast.clone(), true, connections), SLOW);
        }
    }
}

/// Bodies of requests arrive as answers do: ours, and once more where they are handed on.
#[test]
fn bodies_of_requests_are_no_answers() {
    const BODY_BYTES: f64 = 10e3;
    let bodies = |server: Server, times: f64| {
        let bytes = server.counts.iter().find(|(key, _)| *key == "ip.received_bytes").map_or(0.0, |(_, bytes)| *bytes);
        count(server, "ip.received_bytes", bytes + times * BODY_BYTES)
    };
    let posting = |slow, fast| {
        let mut world = set_up(slow, fast, true, 1);
        world.http().method = "POST".to_owned();
        world.http().body = duel_model::Body::Generated(BODY_BYTES as u64);
        world
    };
    let fast = bodies(front(NGINX), 2.0);
    assert_alone(&posting(bodies(connecting(front(NGINX)), 2.0), fast.clone()), CONNECTS, Confidence::Likely);
    assert_alone(&posting(bodies(waiting(front(NGINX), 5e6), 2.0), fast), SLOW, Confidence::Likely);
    let alone = bodies(alone(NGINX), 1.0);
    let connects = count(Server { fixed: 130e3, ..alone.clone() }, "tcp.opened", 1.0);
    for (slow, cause) in [(connects, CONNECTS), (waiting(alone.clone(), 5e6), SLOW)] {
        assert_never(&posting(slow, alone.clone()), cause);
    }
}

/// A pool of workers behind a front, of which so many are served at a time, and the queue before it.
fn pool(places: f64, waiting: f64) -> Server {
    Server {
        places,
        delay: 5e6,
        queues: Some(vec![(POOL, waiting, 0.0), ("/run/dbus/socket", 2.0, 2.0)]),
        disk: 1e3,
        ..front(NGINX)
    }
}

const POOL: &str = "/run/php/fpm.sock";

#[test]
fn a_pool_behind_a_front_that_is_too_small() {
    for (places, of_fast, connections) in [(1.0, 8.0, 12), (2.0, 32.0, 16), (4.0, 64.0, 32), (1.0, 4.0, 64)] {
        let waiting = |places: f64| (f64::from(connections) - places).max(0.0);
        let (slow, fast) = (pool(places, waiting(places)), pool(of_fast, waiting(of_fast)));
        let world = set_up(slow, fast, true, connections);
        assert_alone(&world, "http.upstream-workers", Confidence::Likely);
        world.both_ways(|explanation, _| {
            let summary = &explanation.findings[0].summary;
            assert!(summary.contains(POOL), "{summary}");
        });
    }
}

#[test]
fn what_looks_like_a_small_pool_behind_a_front() {
    let fast = pool(64.0, 0.0);
    let others = [
        ("a lock within a large pool", pool(1.0, 0.0)),
        ("a lock within a pool of four", pool(1.0, 12.0)),
        ("a lock within a pool of two", pool(1.0, 14.0)),
        ("few workers of the server itself", Server { queues: Some(Vec::new()), ..pool(2.0, 0.0) }),
        ("nobody looked", Server { queues: None, ..pool(1.0, 0.0) }),
        ("who waits does so without load, too", Server { queues: Some(vec![(POOL, 15.0, 15.0)]), ..pool(1.0, 0.0) }),
        ("a disk that all wait for", Server { disk: 4.9e6, ..pool(1.0, 15.0) }),
        ("CPUs that others fill", Server { others: 7.9, ..pool(1.0, 15.0) }),
        ("a slower server", Server { delay: 40e6, ..pool(64.0, 0.0) }),
    ];
    for (what, slow) in others {
        let world = set_up(slow, fast.clone(), true, 16);
        world.both_ways(|explanation, _| {
            let says = |cause: &str| cause == "http.upstream-workers";
            assert!(named(explanation).iter().all(|(cause, _)| !says(cause)), "{what}: {explanation:#?}");
            let may_be = what != "a slower server";
            assert!(!may_be || !explanation.ruled_out.iter().any(|cause| says(cause)), "{what}: {explanation:#?}");
        });
    }
    // As many wait beside the fast side.
    assert_never(&set_up(pool(1.0, 15.0), pool(64.0, 15.0), true, 16), "http.upstream-workers");
    // With one connection nobody waits for another one.
    assert_never(&set_up(pool(1.0, 0.0), pool(64.0, 0.0), true, 1), "http.upstream-workers");
}

#[test]
fn what_fills_the_cpus_of_both_is_not_what_one_of_them_waits_for() {
    let busy = |server: Server| Server { others: 7.9, ..server };
    let (slow, fast) = (busy(pool(1.0, 15.0)), busy(pool(64.0, 0.0)));
    assert_never(&set_up(slow.clone(), fast.clone(), true, 16), "http.upstream-workers");
    let here = |server: Server| fact(server, "os.boot_id", "5e3b");
    assert_alone(
        &set_up(here(slow.clone()), here(fast.clone()), true, 16),
        "http.upstream-workers",
        Confidence::Likely,
    );
    // Each of them on CPUs of its own.
    let on = |server: Server, cpus: &'static str| fact(here(server), "process.cpus_allowed", cpus);
    assert_never(&set_up(on(slow, "0-3"), on(fast, "4-7"), true, 16), "http.upstream-workers");
}

/// A front has as many workers as are served behind it, by chance.
#[test]
fn a_front_is_not_taken_for_the_pool_behind_it() {
    for connections in [12, 32] {
        let of_two = |server: Server| fact(server, "process.count", "3");
        let slow = of_two(pool(2.0, f64::from(connections) - 2.0));
        let world = set_up(slow, of_two(pool(64.0, 0.0)), true, connections);
        assert_never(&world, "http.few-workers");
        world.both_ways(|explanation, _| {
            assert!(!explanation.ruled_out.iter().any(|cause| cause == "http.few-workers"), "{explanation:#?}");
        });
    }
}

#[test]
fn connections_that_wait_behind_a_server_are_a_lead_where_no_cause_is_named() {
    // A lock within a pool of four.
    set_up(pool(1.0, 12.0), pool(64.0, 0.0), true, 16).both_ways(|explanation, _| {
        let leads = &explanation.findings.last().unwrap().leads;
        let lead = leads.differences.iter().position(|differs| differs.name == "listen_queues.waiting");
        assert!(lead.is_some_and(|place| place < 2), "{leads:#?}");
        assert!(leads.differences[lead.unwrap()].text.contains(POOL), "{leads:#?}");
    });
}
