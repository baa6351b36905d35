//! Where `unknown` says to look, in the simulated world: at what was planted, and at nothing that only seems to differ.

use crate::world::{Server, World, named, world};
use duel_model::{DifferenceKind, Leads, SECOND_NS};

/// A server whose machine is read.
fn good() -> Server {
    Server { cores: 8.0, facts: Some(Vec::new()), all_read: true, tls: false, ..Server::default() }
}

/// One that sleeps for 10 ms in each request, over one connection: no cause of the catalogue.
fn sleeping(server: Server) -> Server {
    Server { delay: 10e6, ..server }
}

/// The leads of the gap between both, on either side, under several seeds.
fn leads(fast: &Server, slow: &Server, mut check: impl FnMut(&Leads, &str)) {
    let mut world = World { body: 2e3, budget_ns: 600 * SECOND_NS, ..world(&[fast.clone(), slow.clone()]) };
    world.plan.load.connections = 1;
    for seed in 1..=4 {
        let world = World { seed, ..world.clone() };
        for (world, slow) in [(world.clone(), "B"), (world.swapped(), "A")] {
            let explanation = world.explain();
            assert_eq!(named(&explanation), [("unknown", Some(slow))], "{explanation:#?}");
            check(&explanation.findings[0].leads, slow);
        }
    }
}

fn names(leads: &Leads) -> Vec<&str> {
    leads.differences.iter().map(|differs| &*differs.name).collect()
}

#[test]
fn a_share_of_slow_requests_is_told_with_what_it_is_of_the_gap() {
    let slow = Server { slow_ops: Some((0.05, 50e6)), delay: 0.05 * 50e6, ..good() };
    leads(&good(), &slow, |leads, slow| {
        let told = leads.slow_ops.as_ref().unwrap();
        assert_eq!(told.target, slow);
        assert!(told.share_of_gap.is_some_and(|share| (0.8..=1.2).contains(&share)), "{told:?}");
        let share = format!("5.0 % of the requests to {slow} take ");
        assert!(told.text.starts_with("over one connection: ") && told.text.contains(&share), "{told:?}");
        assert!(told.text.ends_with("has no such class"), "{told:?}");
    });
    // Both have it alike: the gap is made by something else.
    let fast = Server { slow_ops: Some((0.05, 50e6)), delay: 0.05 * 50e6, ..good() };
    leads(&fast, &Server { delay: 0.05 * 50e6 + 10e6, ..fast.clone() }, |leads, _| assert_eq!(leads.slow_ops, None));
}

#[test]
fn a_counter_that_can_be_the_gap_goes_before_all_others() {
    let counts = |forks: f64, timeouts: f64| vec![("cpu.forks", forks), ("tcp.timeouts", timeouts)];
    let slow = Server { counts: counts(1.0, 0.0001), ..sleeping(good()) };
    leads(&Server { counts: counts(0.0, 0.0), ..good() }, &slow, |leads, slow| {
        let first = &leads.differences[0];
        assert_eq!((&*first.name, first.kind, &*first.fast), ("cpu.forks", DifferenceKind::Count, "0"), "{leads:#?}");
        assert!(first.look.as_deref().is_some_and(|look| look.contains("clone")), "{first:?}");
        assert!(first.text.contains(&format!("1.00 per request on {slow}")), "{first:?}");
        // A timeout in ten thousand requests would have to take 100 s to be the gap.
        let place = |name: &str| names(leads).iter().position(|other| *other == name);
        assert!(place("tcp.timeouts").is_none_or(|place| place > 1), "{leads:#?}");
    });
}

#[test]
fn threads_that_sleep_are_told_and_threads_that_compute_are_not() {
    leads(&good(), &sleeping(good()), |leads, slow| {
        let first = &leads.differences[0];
        assert_eq!((&*first.name, first.kind), ("process.asleep", DifferenceKind::Asleep), "{leads:#?}");
        assert!(first.text.starts_with(&format!("{slow} takes hardly more of ")), "{first:?}");
    });
    let computing = Server { fixed: 40e3 + 2e6, ..good() };
    leads(&good(), &computing, |leads, _| {
        // Half of it is spent in the kernel.
        let mut first: Vec<_> = leads.differences[..2].iter().map(|differs| (&*differs.name, differs.kind)).collect();
        first.sort_unstable_by_key(|(name, _)| *name);
        let time = DifferenceKind::Time;
        assert_eq!(first, [("process.system_ns", time), ("process.user_ns", time)], "{leads:#?}");
        assert!(leads.differences[0].text.contains("of the gap at most"), "{leads:#?}");
        assert!(!names(leads).contains(&"process.asleep"), "{leads:#?}");
    });
}

#[test]
fn what_a_machine_does_all_the_time_is_no_lead_although_a_slow_request_has_more_of_it() {
    let busy =
        |server: Server| Server { background: vec![("cpu.forks", 500.0), ("memory.refaults_file", 50.0)], ..server };
    leads(&busy(good()), &busy(sleeping(good())), |leads, _| {
        assert!(!names(leads).iter().any(|name| ["cpu.forks", "memory.refaults_file"].contains(name)), "{leads:#?}");
    });
}

#[test]
fn facts_are_told_behind_what_can_be_the_gap_and_not_where_they_differ_by_nature() {
    let with =
        |server: Server, facts: &[(&'static str, &'static str)]| Server { facts: Some(facts.to_vec()), ..server };
    let slow = with(
        sleeping(good()),
        &[("process.nice", "10"), ("vm.swappiness", "60"), ("os.uptime_s", "5"), ("memory.total_bytes", "1001")],
    );
    let fast = with(
        good(),
        &[("process.nice", "0"), ("vm.swappiness", "10"), ("os.uptime_s", "9"), ("memory.total_bytes", "1000")],
    );
    leads(&fast, &slow, |leads, slow| {
        let facts: Vec<&str> = leads
            .differences
            .iter()
            .filter(|differs| differs.kind == DifferenceKind::Fact)
            .map(|differs| &*differs.name)
            .collect();
        // The gap is in wait, where the server's own process is near.
        assert_eq!(facts, ["process.nice", "vm.swappiness"], "{leads:#?}");
        assert_eq!(names(leads)[0], "process.asleep", "{leads:#?}");
        let swappiness = leads.differences.iter().find(|differs| differs.name == "vm.swappiness").unwrap();
        assert_eq!(swappiness.look.as_deref(), Some("sysctl vm.swappiness"));
        assert!(swappiness.text.contains(&format!("60 on {slow}")), "{swappiness:?}");
    });
    // What a server was told to do goes before what follows from it, and files that differ go last.
    let started = |line: &'static str, threads: &'static str| {
        let facts = [("process.command_line", line), ("process.threads", threads), ("process.all_threads", threads)];
        facts.into_iter().chain([("vm.swappiness", "10")]).collect::<Vec<_>>()
    };
    let places = |slow_line: &'static str| {
        let mut found = Vec::new();
        leads(
            &with(good(), &started("java -cp a App", "14")),
            &with(sleeping(good()), &started(slow_line, "3")),
            |leads, _| {
                let names = leads.differences.iter().filter(|differs| differs.kind == DifferenceKind::Fact);
                found = names.map(|differs| differs.name.clone()).collect();
            },
        );
        found
    };
    assert_eq!(places("java -Xint -cp b App"), ["process.command_line", "process.threads"]);
    assert_eq!(places("java -cp b App"), ["process.threads", "process.command_line"]);
    // As many threads as that may be there at one moment and not at the next: they go behind whatever else is near.
    let many = |server, threads, user| {
        with(server, &[("process.threads", threads), ("process.all_threads", threads), ("process.user", user)])
    };
    leads(&many(good(), "35", "www"), &many(sleeping(good()), "34", "root"), |leads, _| {
        let facts = leads.differences.iter().filter(|differs| differs.kind == DifferenceKind::Fact);
        let names: Vec<_> = facts.map(|differs| &*differs.name).collect();
        assert_eq!(names, ["process.user", "process.threads"], "{leads:#?}");
    });
    // A limit of the server's group, and how to see it; of one process the same priority is not told twice.
    let limited = [
        ("cgroup.io_limits", "blkio.throttle.read_iops_device 254:0 100"),
        ("process.nice", "5"),
        ("process.highest_nice", "5"),
    ];
    let free = [("cgroup.io_limits", "none"), ("process.nice", "0"), ("process.highest_nice", "0")];
    leads(&with(good(), &free), &with(sleeping(good()), &limited), |leads, _| {
        let io = leads.differences.iter().find(|differs| differs.name == "cgroup.io_limits").unwrap();
        assert!(io.look.as_deref().is_some_and(|look| look.contains("io.max")), "{io:?}");
        assert!(
            names(leads).contains(&"process.nice") && !names(leads).contains(&"process.highest_nice"),
            "{leads:#?}"
        );
    });
    // On one machine there is one swappiness, whatever two readings said.
    let boot = |mut server: Server| {
        server.facts.get_or_insert_default().push(("os.boot_id", "7"));
        server
    };
    leads(&boot(fast), &boot(slow), |leads, _| assert!(!names(leads).contains(&"vm.swappiness"), "{leads:#?}"));
    // But each network namespace has buffers of its own.
    let buffers = |server, most| boot(with(server, &[("tcp.tcp_rmem", most)]));
    let [small, large] = ["4096 8192 65536", "4096 131072 6291456"];
    leads(&buffers(good(), large), &buffers(sleeping(good()), small), |leads, _| {
        let buffers = leads.differences.iter().find(|differs| differs.name == "tcp.tcp_rmem").unwrap();
        assert_eq!(buffers.look.as_deref(), Some("sysctl net.ipv4.tcp_rmem"), "{leads:#?}");
    });
}

#[test]
fn the_option_that_lets_duel_look_is_told_where_a_machine_was_not_read() {
    let unread = |server: Server| Server { facts: None, all_read: false, ..server };
    leads(&unread(good()), &unread(sleeping(good())), |leads, slow| {
        let first = &leads.unread[0];
        // The slow server keeps its address on either side.
        assert!(first.option.starts_with(&format!("--ssh {slow}=b.example ")), "{first:?}");
        assert!(!first.causes.is_empty() && first.text.contains(&first.causes[0]), "{first:?}");
        assert_eq!(leads.unread.len(), 2);
        assert!(names(leads).is_empty(), "{leads:#?}");
    });
    leads(&good(), &sleeping(good()), |leads, _| assert!(leads.unread.is_empty(), "{leads:#?}"));
}
