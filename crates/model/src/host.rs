//! What the machine of a target is and was doing: facts, samples of raw counters, and rates from pairs of samples.

use crate::{Facts, Nanos, SECOND_NS, Scatter};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Raw readings of a host at an instant. Rates are functions of two of them: see [`HostSpan`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostSample {
    /// The generator's wall clock when the sample had arrived, in ms since 1970.
    pub unix_ms: i64,
    /// The generator's monotonic clock when the sample was asked for.
    pub asked_ns: Nanos,
    /// The same clock when the sample had arrived. The host was read somewhere between the two.
    pub arrived_ns: Nanos,
    /// The host's own monotonic clock, as it began to read; `None` where it did not tell. On Linux it is counted in
    /// hundredths of a second.
    pub uptime_ns: Option<Nanos>,
    /// What only ever grows, until whatever counts it starts anew.
    pub counters: BTreeMap<String, u64>,
    /// What goes up and down. All values are finite.
    pub gauges: BTreeMap<String, f64>,
    /// Who counted: for a prefix of keys an identity, such as process ids with their start times. Counters under the
    /// prefix can be subtracted only where both samples have the same identity.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counted_by: BTreeMap<String, String>,
}

/// One line of the host's kernel log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelLine {
    /// When, on the host's own clock since it started; `None` where the line does not tell.
    pub uptime_ns: Option<Nanos>,
    /// Severity from 0 (emergency) to 7 (debug); `None` where the line does not tell.
    pub level: Option<u8>,
    /// The line, safe to show.
    pub text: String,
}

/// What a run keeps about the machine of a target.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostRecord {
    /// How the host was read, such as `on this machine` or `over ssh to web1`.
    pub how: String,
    /// What it is.
    pub facts: Facts,
    /// What it was doing, in the order of time.
    pub samples: Vec<HostSample>,
    /// The last lines of its kernel log, the oldest first; those that came while it was watched are all after
    /// [`HostRecord::watched_from_uptime_ns`].
    pub last_words: Vec<KernelLine>,
    /// The host's own clock at the first sample.
    pub watched_from_uptime_ns: Option<Nanos>,
    /// Why reading ended before it was told to; `None` where it did not.
    pub lost: Option<String>,
    /// What weakens the record, each in one sentence that is safe to show.
    pub doubts: Vec<String>,
}

/// What a target's machine did while the target, and nobody else that we know of, was under load: sums over slots.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostDemand {
    /// Ok ops.
    pub ops: u64,
    /// Time between the samples, ns.
    pub elapsed_ns: Nanos,
    /// Growth of each counter that could be subtracted in every slot.
    pub growth: BTreeMap<String, u64>,
    /// Mean of each gauge.
    pub gauges: BTreeMap<String, f64>,
    /// Spans that it was summed over.
    pub spans: u32,
    /// CPU time that the load generator itself took on the machine, ns: 0 where it runs on another one. To whoever looks
    /// at the machine's CPUs it is somebody else's work.
    #[serde(default)]
    pub generator_cpu_ns: Nanos,
    /// CPUs of the machine that the load generator may run on; empty where that is not known or all of them.
    #[serde(default)]
    pub generator_allowed: Vec<u32>,
    /// Growth of counters while a target on another machine was under load, or nobody: what goes on here without ours.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quiet_growth: BTreeMap<String, u64>,
    /// Time in which they grew by that, ns; 0 where nobody looked.
    #[serde(default)]
    pub quiet_ns: Nanos,
    /// How what it grew by scatters over slots.
    #[serde(default, skip_serializing_if = "Scatter::is_empty")]
    pub scatter: Scatter<String>,
    /// What the server's threads slept in under load.
    #[serde(default, skip_serializing_if = "Sleepers::is_empty")]
    pub sleepers: Sleepers,
    /// The same without load.
    #[serde(default, skip_serializing_if = "Sleepers::is_empty")]
    pub quiet_sleepers: Sleepers,
    /// Connections that waited to be accepted under load, elsewhere than at the server.
    #[serde(default, skip_serializing_if = "ListenQueues::is_empty")]
    pub queues: ListenQueues,
    /// The same without load.
    #[serde(default, skip_serializing_if = "ListenQueues::is_empty")]
    pub quiet_queues: ListenQueues,
}

/// What is seen of who waits at a server, while it is under load or while it is not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Looks {
    /// The server's threads.
    pub sleepers: Sleepers,
    /// Connections to what listens beside it.
    pub queues: ListenQueues,
}

/// Connections that waited to be accepted, in some looks at all sockets that listen in a server's network, but for those on which our
/// requests arrive: connections to what the server asks in turn, among others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenQueues {
    /// Looks in which the kernel told of them.
    pub looks: u32,
    /// Connections that waited at each, summed over the looks, by the path of a Unix socket or `port 9000`. Empty queues are left out.
    pub waiting: BTreeMap<String, u64>,
    /// Looks by how many connections waited at all of them together. Older archives have none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub looks_by_waiting: BTreeMap<u64, u32>,
}

impl ListenQueues {
    fn is_empty(&self) -> bool {
        self.looks == 0
    }

    /// Adds other looks at the same network.
    pub fn add(&mut self, more: &Self) {
        self.looks += more.looks;
        for (socket, waiting) in &more.waiting {
            let sum = self.waiting.entry(socket.clone()).or_default();
            *sum = sum.saturating_add(*waiting);
        }
        for (waiting, looks) in &more.looks_by_waiting {
            *self.looks_by_waiting.entry(*waiting).or_default() += looks;
        }
    }

    /// How many waited at all of them together in the middle look, the higher one of two; `None` where single looks are not known.
    ///
    /// Some looks see the end of a slot, where no request follows those that are answered. They lower a mean, and not a median.
    pub fn median(&self) -> Option<u64> {
        let looks: u32 = self.looks_by_waiting.values().sum();
        let mut left = looks / 2;
        self.looks_by_waiting.iter().find_map(|(waiting, looks)| {
            let is_here = left < *looks;
            left = left.saturating_sub(*looks);
            is_here.then_some(*waiting)
        })
    }

    /// How many waited at such a socket at a time; `None` where nobody looked.
    pub fn mean(&self, socket: &str) -> Option<f64> {
        let waiting = self.waiting.get(socket).copied().unwrap_or(0);
        (self.looks > 0).then(|| waiting as f64 / f64::from(self.looks))
    }
}

/// What a server's threads slept in, in some looks at all of them: functions of the kernel, as it calls them (`wchan` of proc(5)).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sleepers {
    /// Looks in which the kernel told of all threads.
    pub looks: u32,
    /// Threads that slept in each function, summed over the looks.
    pub threads: BTreeMap<String, u64>,
    /// Those of them that slept in a futex without a time-out, and so until another thread wakes them.
    pub without_timeout: u64,
    /// Looks in which the kernel told of system calls as well; without any nothing is known of logs.
    #[serde(default)]
    pub looks_at_calls: u32,
    /// Those of them in which a thread slept in a write or a flush of the log of a database.
    #[serde(default)]
    pub looks_at_logs: u32,
    /// Threads that did, summed over the looks.
    #[serde(default)]
    pub in_logs: u64,
    /// Threads that slept in a futex without a time-out in these looks.
    #[serde(default)]
    pub without_timeout_beside_logs: u64,
}

impl Sleepers {
    fn is_empty(&self) -> bool {
        self.looks == 0
    }

    /// Adds other looks at the same server.
    pub fn add(&mut self, more: &Self) {
        self.looks += more.looks;
        self.without_timeout += more.without_timeout;
        self.looks_at_calls += more.looks_at_calls;
        self.looks_at_logs += more.looks_at_logs;
        self.in_logs += more.in_logs;
        self.without_timeout_beside_logs += more.without_timeout_beside_logs;
        for (function, threads) in &more.threads {
            *self.threads.entry(function.clone()).or_default() += threads;
        }
    }

    /// How many slept until another thread wakes them, at a time; `None` where nobody looked.
    pub fn mean_without_timeout(&self) -> Option<f64> {
        (self.looks > 0).then(|| self.without_timeout as f64 / f64::from(self.looks))
    }

    /// How many slept in such functions at a time; `None` where nobody looked.
    pub fn mean(&self, is_such: impl Fn(&str) -> bool) -> Option<f64> {
        let threads: u64 =
            self.threads.iter().filter(|(function, _)| is_such(function)).map(|(_, threads)| threads).sum();
        (self.looks > 0).then(|| threads as f64 / f64::from(self.looks))
    }
}

impl HostDemand {
    /// Adds a span in which so many ops ended well. A span whose time is not known is left out as a whole.
    pub fn add(&mut self, span: &HostSpan<'_>, ops: u64) {
        let Some(elapsed_ns) = span.elapsed_ns() else { return };
        let growths: BTreeMap<String, u64> = span.growths().map(|(key, growth)| (key.to_owned(), growth)).collect();
        let gauges = span.to.gauges.keys().filter_map(|key| Some((key.clone(), span.gauge(key)?)));
        self.scatter.add(ops, &growths);
        if self.spans == 0 {
            self.growth = growths;
            self.gauges = gauges.collect();
        } else {
            // What was not known once is not known of the sum.
            self.growth.retain(|key, sum| match growths.get(key) {
                Some(growth) => {
                    *sum += growth;
                    true
                }
                None => false,
            });
            let (spans, gauges) = (f64::from(self.spans), gauges.collect::<BTreeMap<_, _>>());
            self.gauges.retain(|key, mean| match gauges.get(key) {
                Some(value) => {
                    *mean = (*mean * spans + value) / (spans + 1.0);
                    true
                }
                None => false,
            });
        }
        self.ops += ops;
        self.elapsed_ns += elapsed_ns;
        self.spans += 1;
    }

    /// Adds a span in which the machine had none of our load, as far as such counters tell it.
    pub fn add_quiet(&mut self, span: &HostSpan<'_>, tells: impl Fn(&str) -> bool) {
        let Some(elapsed_ns) = span.elapsed_ns() else { return };
        let growths = span.growths().filter(|(key, _)| tells(key)).map(|(key, growth)| (key.to_owned(), growth));
        if self.quiet_ns == 0 {
            self.quiet_growth = growths.collect();
        } else {
            let growths: BTreeMap<String, u64> = growths.collect();
            self.quiet_growth.retain(|key, sum| growths.get(key).inspect(|growth| *sum += **growth).is_some());
        }
        self.quiet_ns += elapsed_ns;
    }

    /// CPU time per op that neither the server nor the load generator took, ns, nor the hypervisor. Interrupts are among it:
    /// most kernels count them for whom they interrupt as well, so they cannot be told apart.
    pub fn others_cpu_per_op(&self) -> Option<f64> {
        let ours = self.generator_cpu_ns as f64 / self.ops.max(1) as f64;
        // A hypervisor that does not tell, and a machine without one, count nothing.
        let withheld = self.per_op("cpu.steal_ns").unwrap_or(0.0);
        Some((self.per_op("cpu.busy_ns")? - withheld - self.per_op("process.cpu_ns")? - ours).max(0.0))
    }

    /// Growth of a counter per op (for times: the service demand, ns); `None` where it is not known.
    ///
    /// Of a counter of the whole machine, that is without what it grew by when there was none of our load, as far as that was
    /// looked at. Where this is more than half of the growth, what is left is as much chance as load, and not known.
    pub fn per_op(&self, key: &str) -> Option<f64> {
        let growth = *self.growth.get(key)? as f64;
        let background = self.background(key).unwrap_or(0.0);
        (self.ops > 0 && background <= 0.5 * growth).then(|| (growth - background) / self.ops as f64)
    }

    /// What a counter of the whole machine would have grown by without our load; `None` where nobody looked.
    fn background(&self, key: &str) -> Option<f64> {
        // A process's own, and those of single CPUs, which tell who runs there, are not cleared of anything.
        let of_one_cpu = key.strip_prefix("cpu.").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        let of_machine = ["cpu.", "tcp.", "ip.", "memory.", "disk.", "link."].iter().any(|part| key.starts_with(part));
        if self.quiet_ns == 0 || of_one_cpu || !of_machine {
            return None;
        }
        Some(*self.quiet_growth.get(key)? as f64 / self.quiet_ns as f64 * self.elapsed_ns as f64)
    }

    /// Growth of a counter per second.
    pub fn per_second(&self, key: &str) -> Option<f64> {
        let growth = *self.growth.get(key)? as f64;
        (self.elapsed_ns > 0).then(|| growth * SECOND_NS as f64 / self.elapsed_ns as f64)
    }

    /// Share of the time that a counter of ns took: 1 is one CPU all the time.
    pub fn share_of_time(&self, key: &str) -> Option<f64> {
        Some(self.per_second(key)? / SECOND_NS as f64)
    }
}

/// The stretch of time between two samples of one host.
///
/// Every figure is `None` where it is not known: never zero for want of a reading.
#[derive(Debug, Clone, Copy)]
pub struct HostSpan<'a> {
    from: &'a HostSample,
    to: &'a HostSample,
}

/// Resolution of the host's own clock that a disagreement of the clocks has to exceed: Linux tells its uptime in
/// hundredths of a second, and either end may be off by one.
const UPTIME_STEP_NS: u64 = 20_000_000;

/// How far two honest clocks may run apart: 500 parts in a million is the most by which NTP slews a clock (RFC 5905),
/// doubled for a clock on either side.
const CLOCK_DRIFT: f64 = 1e-3;

impl<'a> HostSpan<'a> {
    /// From one sample to a later one of the same host.
    pub fn between(from: &'a HostSample, to: &'a HostSample) -> Self {
        Self { from, to }
    }

    /// How long it was, in ns; `None` where a clock jumped, the host slept or was started anew, or no time passed.
    ///
    /// The generator's clock is exact but does not know when in a round trip the host was read; the host's is of its own
    /// time but coarse. The finer one is used, and they have to agree as far as both are able to.
    pub fn elapsed_ns(&self) -> Option<u64> {
        let trip_ns = |sample: &HostSample| sample.arrived_ns.checked_sub(sample.asked_ns);
        let middle_ns = |sample: &HostSample, trip_ns: u64| sample.asked_ns + trip_ns / 2;
        let (trip_from, trip_to) = (trip_ns(self.from)?, trip_ns(self.to)?);
        let ours = middle_ns(self.to, trip_to).checked_sub(middle_ns(self.from, trip_from))?;
        let blur = (trip_from / 2).saturating_add(trip_to / 2);
        let elapsed = match (self.from.uptime_ns, self.to.uptime_ns) {
            (Some(from), Some(to)) => {
                let theirs = to.checked_sub(from)?;
                let allowed = blur.saturating_add(UPTIME_STEP_NS).saturating_add((ours as f64 * CLOCK_DRIFT) as u64);
                if ours.abs_diff(theirs) > allowed {
                    return None;
                }
                if blur <= UPTIME_STEP_NS / 2 { ours } else { theirs }
            }
            _ => ours,
        };
        (elapsed > 0).then_some(elapsed)
    }

    /// By how much a counter grew; `None` where either sample lacks it, it went backwards, or somebody else counted.
    pub fn growth(&self, key: &str) -> Option<u64> {
        if !self.same_counter(key) {
            return None;
        }
        self.to.counters.get(key)?.checked_sub(*self.from.counters.get(key)?)
    }

    /// Why the growth of a counter is not known, in words; `None` where it is known.
    pub fn why_unknown(&self, key: &str) -> Option<&'static str> {
        match (self.from.counters.get(key), self.to.counters.get(key)) {
            (None, None) => Some("not read"),
            (None, Some(_)) => Some("not read before"),
            (Some(_), None) => Some("not read any more"),
            (Some(_), Some(_)) if !self.same_counter(key) => Some("restarted"),
            (Some(from), Some(to)) if to < from => Some("restarted: it went backwards"),
            (Some(_), Some(_)) => None,
        }
    }

    /// How fast a counter grew.
    pub fn per_second(&self, key: &str) -> Option<f64> {
        Some(self.growth(key)? as f64 * SECOND_NS as f64 / self.elapsed_ns()? as f64)
    }

    /// Growth of a counter for each of `ops` operations that were done in the span (for times: the service demand);
    /// `None` also without any op.
    pub fn per_op(&self, key: &str, ops: u64) -> Option<f64> {
        let growth = self.growth(key)?;
        (ops > 0).then(|| growth as f64 / ops as f64)
    }

    /// Share of the time that a counter of ns took: 1 is one CPU (or one device) all the time.
    pub fn share_of_time(&self, key: &str) -> Option<f64> {
        Some(self.growth(key)? as f64 / self.elapsed_ns()? as f64)
    }

    /// Mean of a gauge's values at both ends.
    pub fn gauge(&self, key: &str) -> Option<f64> {
        Some((self.from.gauges.get(key)? + self.to.gauges.get(key)?) / 2.0)
    }

    /// All counters that can be subtracted, with their growth, in the order of their keys.
    pub fn growths(&self) -> impl Iterator<Item = (&'a str, u64)> + '_ {
        let to = self.to;
        to.counters.keys().filter_map(|key| Some((key.as_str(), self.growth(key)?)))
    }

    fn same_counter(&self, key: &str) -> bool {
        let counters = |sample: &'a HostSample| sample.counted_by.iter().filter(|(prefix, _)| key.starts_with(*prefix));
        counters(self.from).eq(counters(self.to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Known;

    fn sample(at_ms: u64, uptime_ms: u64, counters: &[(&str, u64)]) -> HostSample {
        HostSample {
            asked_ns: at_ms * 1_000_000,
            arrived_ns: at_ms * 1_000_000 + 2_000_000,
            uptime_ns: Some(uptime_ms * 1_000_000),
            counters: counters.iter().map(|&(key, value)| (key.to_owned(), value)).collect(),
            ..HostSample::default()
        }
    }

    #[test]
    fn rates_and_demands() {
        let from = sample(1000, 50_000, &[("cpu.busy_ns", 10), ("gone", 1)]);
        let to = sample(3000, 52_000, &[("cpu.busy_ns", 1_000_000_010), ("new", 5)]);
        let span = HostSpan::between(&from, &to);
        assert_eq!(span.elapsed_ns(), Some(2_000_000_000));
        assert_eq!(span.growth("cpu.busy_ns"), Some(1_000_000_000));
        assert_eq!(span.per_second("cpu.busy_ns"), Some(5e8));
        assert_eq!(span.share_of_time("cpu.busy_ns"), Some(0.5));
        assert_eq!(span.per_op("cpu.busy_ns", 1000), Some(1e6));
        assert_eq!(span.per_op("cpu.busy_ns", 0), None, "no op has no demand");
        assert_eq!((span.growth("gone"), span.growth("new"), span.growth("never")), (None, None, None));
        assert_eq!(
            ["gone", "new", "never", "cpu.busy_ns"].map(|key| span.why_unknown(key)),
            [Some("not read any more"), Some("not read before"), Some("not read"), None]
        );
        assert_eq!(span.growths().collect::<Vec<_>>(), [("cpu.busy_ns", 1_000_000_000)]);
    }

    #[test]
    fn a_counter_that_went_backwards_is_not_known() {
        let (from, to) = (sample(0, 0, &[("x", 10)]), sample(1000, 1000, &[("x", 9)]));
        let span = HostSpan::between(&from, &to);
        assert_eq!((span.growth("x"), span.per_second("x"), span.per_op("x", 5)), (None, None, None));
        assert_eq!(span.why_unknown("x"), Some("restarted: it went backwards"));
    }

    #[test]
    fn a_clock_that_jumped_leaves_no_rate_but_a_demand() {
        let from = sample(1000, 50_000, &[("x", 0)]);
        for uptime_ms in [49_000, 0, 51_100, 50_900, 1 << 40] {
            let to = sample(2000, uptime_ms, &[("x", 100)]);
            let span = HostSpan::between(&from, &to);
            assert_eq!(span.elapsed_ns(), None, "{uptime_ms}");
            assert_eq!(span.per_second("x"), None);
            assert_eq!(span.per_op("x", 10), Some(10.0), "ops need no clock");
        }
        let to = sample(2000, 51_010, &[("x", 100)]);
        assert_eq!(
            HostSpan::between(&from, &to).elapsed_ns(),
            Some(1_000_000_000),
            "a step of the host's coarse clock"
        );
        assert_eq!(HostSpan::between(&to, &from).elapsed_ns(), None, "backwards");
        assert_eq!(HostSpan::between(&from, &from).elapsed_ns(), None, "no time");
    }

    #[test]
    fn a_distant_host_is_timed_by_its_own_clock() {
        let from = HostSample { arrived_ns: 1_400_000_000, ..sample(1000, 50_000, &[]) };
        let to = HostSample { arrived_ns: 2_100_000_000, ..sample(2000, 51_110, &[]) };
        assert_eq!(HostSpan::between(&from, &to).elapsed_ns(), Some(1_110_000_000));
        let blind = HostSample { uptime_ns: None, ..to };
        assert_eq!(HostSpan::between(&from, &blind).elapsed_ns(), Some(850_000_000));
    }

    #[test]
    fn counters_of_somebody_else_are_not_subtracted() {
        let by = |pid: &str| BTreeMap::from([("process.".to_owned(), pid.to_owned())]);
        let from = HostSample { counted_by: by("12:7"), ..sample(0, 0, &[("process.cpu_ns", 1), ("cpu.busy_ns", 1)]) };
        let to =
            HostSample { counted_by: by("13:9"), ..sample(1000, 1000, &[("process.cpu_ns", 5), ("cpu.busy_ns", 5)]) };
        let span = HostSpan::between(&from, &to);
        assert_eq!((span.growth("process.cpu_ns"), span.growth("cpu.busy_ns")), (None, Some(4)));
        assert_eq!((span.why_unknown("process.cpu_ns"), span.why_unknown("cpu.busy_ns")), (Some("restarted"), None));
        let nobody = HostSample { counted_by: BTreeMap::new(), ..to };
        assert_eq!(HostSpan::between(&from, &nobody).growth("process.cpu_ns"), None);
    }

    #[test]
    fn what_was_kept_is_read_back() {
        let record = HostRecord {
            facts: Facts(BTreeMap::from([
                ("cpu.model".to_owned(), "Some CPU".into()),
                ("cpu.mhz".to_owned(), Known::Unavailable("no such file".to_owned())),
            ])),
            samples: vec![HostSample {
                gauges: BTreeMap::from([("load.1m".to_owned(), 0.0), ("temperature".to_owned(), 41.5)]),
                ..sample(1, 1, &[("x", u64::MAX)])
            }],
            ..HostRecord::default()
        };
        let kept = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<HostRecord>(&kept).unwrap(), record, "{kept}");
    }

    #[test]
    fn what_goes_on_without_load_is_no_demand_of_it() {
        let keys = ["tcp.retransmitted_segments", "process.cpu_ns", "cpu.0.busy_ns", "link.eth0.sent_bytes"];
        let at = |ms: u64, counts: [u64; 4]| {
            let counts: Vec<_> = keys.into_iter().zip(counts).collect();
            sample(ms, ms, &counts)
        };
        let mut demand = HostDemand::default();
        demand.add(&HostSpan::between(&at(0, [0; 4]), &at(2_000, [100, 100, 100, 100])), 10);
        assert_eq!(demand.per_op(keys[0]), Some(10.0), "nobody looked at it without load");
        demand.add_quiet(&HostSpan::between(&at(2_000, [0; 4]), &at(2_500, [5, 20, 20, 15])), |_| true);
        demand.add_quiet(&HostSpan::between(&at(3_000, [0; 4]), &at(3_500, [5, 20, 20, 15])), |_| true);
        // 10 in a second of silence are 20 in the two of load.
        assert_eq!(demand.per_op(keys[0]), Some(8.0));
        assert_eq!(
            (demand.per_op(keys[1]), demand.per_op(keys[2])),
            (Some(10.0), Some(10.0)),
            "its own, and one CPU's"
        );
        assert_eq!(demand.per_op(keys[3]), None, "more than half of it goes on anyhow");
        let mut told_by_links = HostDemand { quiet_ns: 0, quiet_growth: BTreeMap::new(), ..demand.clone() };
        let quiet = (at(2_000, [0; 4]), at(2_500, [5, 20, 20, 2]));
        told_by_links.add_quiet(&HostSpan::between(&quiet.0, &quiet.1), |key| key.starts_with("link."));
        assert_eq!((told_by_links.per_op(keys[0]), told_by_links.per_op(keys[3])), (Some(10.0), Some(9.2)));
        let kept = serde_json::to_string(&demand).unwrap();
        assert_eq!(serde_json::from_str::<HostDemand>(&kept).unwrap(), demand);
    }

    #[test]
    fn demands_add_up_and_forget_what_was_not_known_once() {
        let samples = [
            sample(0, 0, &[("x", 0), ("y", 0)]),
            sample(1000, 1000, &[("x", 10), ("y", 5)]),
            sample(3000, 3000, &[("x", 40)]),
        ];
        let mut demand = HostDemand::default();
        assert_eq!((demand.per_op("x"), demand.per_second("x")), (None, None));
        demand.add(&HostSpan::between(&samples[0], &samples[1]), 5);
        assert_eq!((demand.per_op("x"), demand.per_op("y")), (Some(2.0), Some(1.0)));
        demand.add(&HostSpan::between(&samples[1], &samples[2]), 15);
        assert_eq!((demand.per_op("x"), demand.per_op("y")), (Some(2.0), None));
        assert_eq!((demand.ops, demand.elapsed_ns, demand.spans), (20, 3_000_000_000, 2));
        let expected = 40.0 / 3.0;
        assert!((demand.per_second("x").unwrap() - expected).abs() < 1e-9);
        demand.add(&HostSpan::between(&samples[2], &samples[1]), 15);
        assert_eq!(demand.spans, 2, "time that runs backwards is no span");
    }
}
