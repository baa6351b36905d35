//! What is read of a simulated server's machine: facts, and counters around some slots of load.

use super::{REQUEST_BYTES, Server, Shown};
use duel_model::{Facts, HostDemand, Known, ListenQueues, Nanos, Scatter, Sleepers};
use std::collections::BTreeMap;

/// Load, and the time between the samples: some of that is silence and reading.
const LOAD_S: f64 = 10.0;
const BETWEEN_SAMPLES_S: f64 = 10.5;
/// Time in which the machine was looked at without load.
const SILENCE_S: f64 = 9.0;

/// What a TCP segment has besides what it carries.
const SEGMENT_HEAD_BYTES: f64 = 52.0;

/// The value of a fact that was asked for in vain.
pub const UNAVAILABLE: &str = "(not permitted)";

/// The libcrypto that a server maps, where its version is known.
pub const LIBRARY: &str = "/opt/own/lib/libcrypto.so.3";

/// CPUs that count for themselves.
fn cpus(server: &Server) -> u32 {
    server.cores.ceil().clamp(1.0, 64.0) as u32
}

/// What is known of a server's machine.
pub fn facts(server: &Server) -> Option<Facts> {
    let given = server.facts.as_ref()?.iter().map(|&(key, value)| (key, value.to_owned()));
    let mut usual = Vec::new();
    if server.all_read {
        let quota = server.quota.map_or_else(|| "none".to_owned(), |cpus| format!("{cpus:.3}"));
        usual.extend([
            ("process.tracer", "none".to_owned()),
            ("process.count", "1".to_owned()),
            ("process.pid", "4711".to_owned()),
            ("process.seccomp_filters", "0".to_owned()),
            ("process.highest_nice", "0".to_owned()),
            ("process.policies", "normal".to_owned()),
            ("cgroup.least_cpu_weight", "100.0".to_owned()),
            ("process.cpus_allowed", format!("0-{}", cpus(server) - 1)),
            ("cpu.online", "0-127".to_owned()),
            ("cpu.model", "Some CPU".to_owned()),
            ("clock.source", "tsc".to_owned()),
            ("cgroup.cpu_quota_cpus", quota),
            ("cgroup.memory_limit_bytes", "none".to_owned()),
        ]);
    }
    // Who tells what the library is tells where it lies.
    if server.facts.iter().flatten().any(|(key, _)| *key == "process.library.libcrypto.version") {
        usual.push(("process.library.libcrypto.path", LIBRARY.to_owned()));
    }
    let known = |(key, value): (&str, String)| {
        let known =
            if value == UNAVAILABLE { Known::Unavailable("not permitted".to_owned()) } else { Known::from(value) };
        (key.to_owned(), known)
    };
    Some(Facts(usual.into_iter().chain(given).map(known).collect()))
}

/// What a server's machine did.
pub fn demand(server: &Server, shown: &Shown) -> HostDemand {
    let ops = shown.rate * LOAD_S;
    let cpus = cpus(server);
    let threads = server.workers.clamp(1.0, f64::from(cpus)).round();
    let mut growth = BTreeMap::new();
    count_cpu_time(server, shown, ops, &mut growth);
    let busy_ns = shown.user_ns + shown.system_ns;
    for thread in 0..threads as u32 {
        growth.insert(format!("thread.{}.run_ns", 100 + thread), ops * busy_ns / threads);
    }
    let mut gauges = BTreeMap::from([("process.threads".to_owned(), threads)]);
    if server.all_read {
        count_the_rest(server, shown, ops, &mut growth);
        count_waiting(server, shown, threads, &mut growth);
        gauges.insert("cpu.running".to_owned(), 1.0 + server.others + server.crowded);
    }
    // A request and what acknowledges its answer; nobody is asked for that.
    growth.insert("tcp.received_segments".to_owned(), 2.0 * ops);
    growth.insert("ip.received_bytes".to_owned(), (2.0 * SEGMENT_HEAD_BYTES + REQUEST_BYTES) * ops);
    for (key, per_op) in &server.counts {
        growth.insert((*key).to_owned(), per_op * ops);
    }
    growth.retain(|key, _| !server.uncounted.contains(&key.as_str()));
    for (key, per_s) in &server.background {
        *growth.entry((*key).to_owned()).or_default() += per_s * BETWEEN_SAMPLES_S;
    }
    let growth: BTreeMap<String, u64> = growth.into_iter().map(|(key, value)| (key, value.round() as u64)).collect();
    let mut scatter = Scatter::default();
    for factor in [0.97, 1.02, 1.01, 0.99, 1.03, 0.98] {
        let in_bursts = 1.0 + server.bursts * (factor - 1.0);
        let of_slot = |(key, value): (&String, &u64)| {
            let is_of_packets = key.starts_with("tcp.") || key.starts_with("ip.");
            let factor = if is_of_packets { in_bursts } else { factor };
            (key.clone(), (*value as f64 * factor / 6.0).round() as u64)
        };
        scatter.add((ops / 6.0).round() as u64, &growth.iter().map(of_slot).collect());
    }
    let in_silence = server.background.iter().map(|(key, per_s)| ((*key).to_owned(), (per_s * SILENCE_S) as u64));
    HostDemand {
        ops: ops.round() as u64,
        elapsed_ns: (BETWEEN_SAMPLES_S * 1e9) as Nanos,
        growth,
        scatter,
        gauges,
        spans: 6,
        generator_cpu_ns: (ops * server.generator) as Nanos,
        generator_allowed: Vec::new(),
        quiet_growth: if server.seen_in_silence { in_silence.collect() } else { BTreeMap::new() },
        quiet_ns: if server.seen_in_silence { (SILENCE_S * 1e9) as Nanos } else { 0 },
        sleepers: sleepers(server, |(_, loaded, _)| *loaded),
        quiet_sleepers: sleepers(server, |(.., quiet)| *quiet),
        queues: queues(server, |(_, loaded, _)| *loaded),
        quiet_queues: queues(server, |(.., quiet)| *quiet),
    }
}

/// Looks at who waits, in six slots.
const LOOKS: u32 = 18;

/// What was seen to wait beside it.
fn queues(server: &Server, connections: fn(&(&'static str, f64, f64)) -> f64) -> ListenQueues {
    let Some(queues) = &server.queues else { return ListenQueues::default() };
    let seen = |of: &(&'static str, f64, f64)| (of.0.to_owned(), (f64::from(LOOKS) * connections(of)).round() as u64);
    ListenQueues {
        looks: LOOKS,
        waiting: queues.iter().map(seen).filter(|(_, waiting)| *waiting > 0).collect(),
        ..ListenQueues::default()
    }
}

/// Where threads of these worlds sleep until another one wakes them.
pub const UNTIMED: &str = "futex_wait_queue";

/// What its threads were seen to sleep in.
fn sleepers(server: &Server, threads: fn(&(&'static str, f64, f64)) -> f64) -> Sleepers {
    let seen = |of: &(&'static str, f64, f64)| (of.0.to_owned(), (f64::from(LOOKS) * threads(of)).round() as u64);
    let threads: BTreeMap<String, u64> = server.asleep.iter().map(seen).collect();
    Sleepers {
        looks: if server.asleep.is_empty() { 0 } else { LOOKS },
        without_timeout: threads.get(UNTIMED).copied().unwrap_or(0),
        threads,
        ..Sleepers::default()
    }
}

/// Who ran, and in which mode: evenly on all CPUs.
fn count_cpu_time(server: &Server, shown: &Shown, ops: f64, growth: &mut BTreeMap<String, f64>) {
    let cpus = cpus(server);
    let mut count = |key: String, value: f64| growth.insert(key, value);
    let (user_ns, system_ns) = (ops * shown.user_ns, ops * shown.system_ns);
    let by_crowd_ns = if server.crowded > 0.0 {
        (server.cores * 1e9 * BETWEEN_SAMPLES_S - user_ns - system_ns).max(0.0)
    } else {
        0.0
    };
    let others_ns = ops * (server.outside + server.generator) + server.others * 1e9 * BETWEEN_SAMPLES_S + by_crowd_ns;
    let interrupted_ns = server.others_interrupted * others_ns;
    let charged_ns = server.interrupts_charged * (user_ns + system_ns);
    let stolen_ns = server.stolen * 1e9 * LOAD_S;
    let busy_ns = user_ns + system_ns + others_ns + stolen_ns;
    // The kernel counts what it does in interrupts for whom it interrupts as well.
    let softirq_ns = ops * server.net.filtering_ns(shown.new) + interrupted_ns + charged_ns;
    for cpu in 0..cpus {
        let cpus = f64::from(cpus);
        count(format!("cpu.{cpu}.busy_ns"), busy_ns / cpus);
        if server.all_read {
            let own = 1.0 - server.interrupts_charged;
            count(format!("cpu.{cpu}.user_ns"), (own * user_ns + others_ns - interrupted_ns) / cpus);
            count(format!("cpu.{cpu}.system_ns"), own * system_ns / cpus);
            count(format!("cpu.{cpu}.softirq_ns"), softirq_ns / cpus);
            count(format!("cpu.{cpu}.irq_ns"), 0.0);
            count(format!("cpu.{cpu}.nice_ns"), 0.0);
            count(format!("cpu.{cpu}.steal_ns"), stolen_ns / cpus);
        }
    }
    count("cpu.busy_ns".to_owned(), busy_ns);
    count("cpu.softirq_ns".to_owned(), softirq_ns);
    count("cpu.irq_ns".to_owned(), 0.0);
    count("cpu.steal_ns".to_owned(), stolen_ns);
    count("process.user_ns".to_owned(), user_ns);
    count("process.system_ns".to_owned(), system_ns);
    count("process.cpu_ns".to_owned(), user_ns + system_ns);
}

/// How long threads wanted to run and did not.
fn count_waiting(server: &Server, shown: &Shown, threads: f64, growth: &mut BTreeMap<String, f64>) {
    let run = shown.rate * (shown.user_ns + shown.system_ns) / 1e9;
    // It stands still for as much of the time as it runs less than it would.
    let still = if shown.wants_cpus > 0.0 { 1.0 - run / shown.wants_cpus } else { 0.0 };
    let held_back_ns = still.max(0.0) * shown.wants_cpus.max(1.0) * 1e9 * LOAD_S;
    growth.insert("cgroup.throttled_ns".to_owned(), held_back_ns);
    // All threads wait while the group is held back; and one for each CPU that somebody else keeps from it, the more often
    // the closer it comes to what is left.
    let by_generator = shown.rate * server.generator / 1e9;
    let left = (server.cores - server.others - server.stolen - by_generator).max(1e-9);
    let waits = (server.others + by_generator) * (40.0 * (run / left) - 39.0).clamp(0.0, 1.0);
    let in_crowd_ns = server.crowded * run * 1e9 * LOAD_S;
    growth.insert("workers.wait_ns".to_owned(), threads * held_back_ns + waits * 1e9 * LOAD_S + in_crowd_ns);
    // Woken up twice for each request, and put aside whenever a slice is over.
    const SLICE_NS: f64 = 3e6;
    let ops = shown.rate * LOAD_S;
    let put_aside = if server.crowded > 0.0 { ops * (shown.user_ns + shown.system_ns) / SLICE_NS } else { 0.0 };
    growth.insert("workers.involuntary_switches".to_owned(), put_aside);
    growth.insert("workers.turns".to_owned(), 2.0 * ops + put_aside);
}

fn count_the_rest(server: &Server, shown: &Shown, ops: f64, growth: &mut BTreeMap<String, f64>) {
    let per_op = [
        ("cpu.switches", 4.0),
        ("process.major_faults", 0.0),
        ("cgroup.cpu_ns", shown.user_ns + shown.system_ns),
        ("workers.voluntary_switches", 2.0),
        ("workers.read_calls", 2.0),
        ("workers.write_calls", 1.0),
        ("memory.refaults_file", 0.0),
        ("memory.swapped_in_bytes", 0.0),
        ("cgroup.memory_limit_hits", 0.0),
        ("disk.sda.busy_ns", shown.disk_ns),
        ("disk.sda.read_ns", shown.disk_ns),
        ("disk.sda.reads", shown.disk_ns / 1e5),
    ];
    if server.first_reads.is_some() {
        growth.insert("workers.disk_read_bytes".to_owned(), shown.read_bytes * ops);
    }
    growth.extend(per_op.map(|(key, per_op)| (key.to_owned(), per_op * ops)));
}
