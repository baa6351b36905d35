//! One stretch of one treatment on one target, and everything that was counted in it.

use crate::{Distribution, Facts, Id, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The statistical unit: one stretch of load on one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Slot {
    /// Position in the run, in the order in which slots really ran.
    pub index: u32,
    /// Which of the plan's targets.
    pub target: usize,
    /// What the slot was for.
    pub role: SlotRole,
    /// Block that the slot belongs to; pairs are formed within blocks.
    pub block: u32,
    /// Position of this slot among its target's slots of the same block (0 or 1 in an ABBA block).
    pub repeat: u32,
    /// The turns that it was run in, between those of the other targets: all figures are those of all turns, without the time between
    /// them. Empty where it was run in one go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<Turn>,
    /// Which treatment of the plan it was under; `None` in a run without factors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub treatment: Option<u32>,
    /// Which start of the targets that are started anew it belongs to, counted from 0; `None` where none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<u32>,
    /// Start on the wall clock, in ms since 1970.
    pub started_unix_ms: i64,
    /// Start in ns since the start of the run, on the monotonic clock.
    pub offset_ns: Nanos,
    /// From the slot's start until it was over: in a closed loop the end of its last op, so that
    /// `ok / elapsed_ns` is the rate without a cut through ops in flight; of stragglers what they cost (method/measuring.md).
    pub elapsed_ns: Nanos,
    /// Ops per second that an open loop offered; `None` in a closed loop, and where stages changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_per_s: Option<f64>,
    /// What was counted.
    pub tally: Tally,
    /// The same over time.
    pub series: Series,
    /// What the generator found out about itself.
    pub audit: GeneratorAudit,
    /// What connections negotiated, as last seen; `None` where no connection was made or nothing was negotiated.
    pub negotiated: Option<Facts>,
    /// When the target answered for the last time, in ns since the slot's start, if it then stopped answering for good: it
    /// did not answer either when it was asked once more after the slot. `elapsed_ns` is then the time that it lived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub died_ns: Option<Nanos>,
}

/// Share of a slot's time that the generator may have stood still for: as many ops as the 99th percentile leaves out. All
/// ops that are under way meet a standstill, so above that the 99th percentile is the generator's own.
const MOST_STANDSTILL: f64 = 0.01;

impl Slot {
    /// One of the first block, in which nothing was done in no time.
    pub fn empty(target: usize, role: SlotRole) -> Self {
        Self {
            index: 0,
            target,
            role,
            block: 0,
            repeat: 0,
            turns: Vec::new(),
            treatment: None,
            start: None,
            started_unix_ms: 0,
            offset_ns: 0,
            elapsed_ns: 0,
            offered_per_s: None,
            tally: Tally::default(),
            series: Series::default(),
            audit: GeneratorAudit::default(),
            negotiated: None,
            died_ns: None,
        }
    }

    /// For how long the generator itself stood still in this slot. Workers mostly stand still together, so it is that of the
    /// worker which did so for longest.
    pub fn standstill(&self) -> Standstill {
        self.audit.workers.iter().map(|worker| worker.standstill).max_by_key(|still| still.total_ns).unwrap_or_default()
    }

    /// For how long the target stood still in this slot, for all connections at once: no longer than the worker has seen that saw
    /// least of it. `None` where a worker did not look.
    pub fn target_stalls(&self) -> Option<Standstill> {
        let seen: Option<Vec<Standstill>> = self.audit.workers.iter().map(|worker| worker.target_stalls).collect();
        seen?.into_iter().min_by_key(|stalls| stalls.total_ns)
    }

    /// Whether the slot shows the generator rather than the target, because the generator stood still for too much of it.
    /// Such a slot is not judged.
    pub fn is_spoilt(&self) -> bool {
        self.standstill().total_ns as f64 > MOST_STANDSTILL * self.elapsed_ns as f64
    }

    /// When it was over, in ns since the start of the run: where it was run in turns, its last one.
    pub fn end_ns(&self) -> Nanos {
        let last_ns = self.turns.last().map(|turn| turn.offset_ns.saturating_add(turn.elapsed_ns));
        self.offset_ns.saturating_add(last_ns.unwrap_or(self.elapsed_ns))
    }

    /// How long its target was under load for it: longer than [`Slot::elapsed_ns`] by its run-up, and by what is waited for stragglers
    /// beyond their part. That is none of the slot's time, and all of it the user's.
    pub fn under_load_ns(&self) -> Nanos {
        let of_worker = |worker: &WorkerAudit| worker.run_up_ns.saturating_add(worker.wall_ns);
        self.audit.workers.iter().map(of_worker).max().unwrap_or(0).max(self.elapsed_ns)
    }

    /// Leaves out the response times of ops that have none. Their service times stay: by them is told how long load has to last and
    /// whether a stream was held up, and they are shown nowhere.
    pub fn forget_response_times(&mut self) {
        self.tally.response = Distribution::default();
        for interval in &mut self.series.intervals {
            (interval.response_sum_ns, interval.response_max_ns) = (0, 0);
        }
    }

    /// Successful ops per second, `None` when the slot took no time.
    pub fn rate_per_s(&self) -> Option<f64> {
        (self.elapsed_ns > 0).then(|| self.tally.ok as f64 * 1e9 / self.elapsed_ns as f64)
    }
}

/// One of the turns that a slot was run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Start, since the slot's start.
    pub offset_ns: Nanos,
    /// Ops that ended well.
    pub ok: u64,
    /// As [`Slot::elapsed_ns`].
    pub elapsed_ns: Nanos,
}

/// What a slot was for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlotRole {
    /// Warm-up: kept, shown, not judged.
    Warmup,
    /// Judged.
    Measured,
    /// An attempt at a rate, in the search for the highest one that keeps a promise.
    Search,
    /// An attempt at a rate that is to tell two targets apart whose highest rates were found.
    HeadToHead,
    /// Part of the probe of this id.
    Probe(String),
}

/// Counts and distributions of a slot. Invariant: `started == ok + failed + in_flight`, and what became due is `started +
/// unstarted + shed`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Ops that were started.
    pub started: u64,
    /// Ops that ended well.
    pub ok: u64,
    /// Ops that failed, by kind; kinds that did not occur are absent.
    pub failed: BTreeMap<Id, u64>,
    /// Ops that ended well before the slot's time, while streams came up to speed: they are no part of `ok`, nor of `started`. What the
    /// target's machine does is read around both.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ok_in_run_up: u64,
    /// Those that failed then: they are no part of `failed`, nor of `started`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failed_in_run_up: BTreeMap<Id, u64>,
    /// Ops started and not ended when the slot was over.
    pub in_flight: u64,
    /// Ops that became due in the slot's time and were never started, because no connection was free.
    pub unstarted: u64,
    /// Ops that became due and were not sent, because their deadline had passed before a connection was free.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub shed: u64,
    /// Bytes read from connections (headers, and TLS overhead where there is TLS).
    pub bytes_in: u64,
    /// Bytes written to connections.
    pub bytes_out: u64,
    /// Bytes of response bodies as transferred, chunk framing left out.
    pub body_bytes: u64,
    /// Those of them that came with ops that failed: the body of an error is no part of what ok ops brought.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_body_bytes: u64,
    /// The same after decompression; `None` where nothing was decompressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inflated_bytes: Option<u64>,
    /// Connections that were established.
    pub connections: u64,
    /// Connections whose TLS session was resumed.
    pub resumed: u64,
    /// Ops that went over a connection that had carried one before.
    pub reused: u64,
    /// How often requests were sent again within their ops, because the server had not looked at them, or had closed the
    /// connection that it had kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resent: u64,
    /// How often more came on a connection than the response that it carried; it was closed then.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub surplus: u64,
    /// What the kind of work counts beside, by the names of its counters; what did not occur is absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counted: BTreeMap<Id, u64>,
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// End minus due time: of ok ops, and the time waited of those that timed out, that were still in flight after a
    /// full grace, that were never started, or that were shed (their deadline).
    pub response: Distribution,
    /// End minus start, of the same ops but those never started or shed.
    pub service: Distribution,
    /// How long ops that were started had waited, from their due time on, for a connection to be free; of open loops alone. It is
    /// in `response` and not in `service`.
    #[serde(default, skip_serializing_if = "Distribution::is_empty")]
    pub queue: Distribution,
    /// Parts of the ops in `service`, the phase in which one was given up included; a phase that an op did not go through
    /// is not recorded for it.
    pub phases: BTreeMap<Id, Distribution>,
    /// The first few failures in words, safe to show.
    pub failure_examples: Vec<String>,
    /// The same by the stage in which ops were due, where there are stages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageTally>,
}

/// Counts of the ops that were due in one stage. Invariant: `due == ok + failed + in_flight + unstarted + shed`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StageTally {
    /// Ops that became due.
    pub due: u64,
    /// Ops that ended well, whenever that was.
    pub ok: u64,
    /// Ops that failed.
    pub failed: u64,
    /// Ops started and not ended when the slot was over.
    pub in_flight: u64,
    /// Ops never started, because no connection was free.
    pub unstarted: u64,
    /// Ops not sent, because their deadline had passed.
    pub shed: u64,
    /// Ops that ended well in the stage's time, whenever they were due: its throughput.
    pub ended_ok: u64,
    /// As [`Tally::response`].
    pub response: Distribution,
}

impl StageTally {
    /// Adds everything of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.due += other.due;
        self.ok += other.ok;
        self.failed += other.failed;
        self.in_flight += other.in_flight;
        self.unstarted += other.unstarted;
        self.shed += other.shed;
        self.ended_ok += other.ended_ok;
        self.response.merge(&other.response);
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Tally {
    /// Most examples of failures that are kept.
    pub const FAILURE_EXAMPLES: usize = 4;

    /// Failed ops of all kinds.
    pub fn failed_total(&self) -> u64 {
        self.failed.values().sum()
    }

    /// Ops that became due.
    pub fn due(&self) -> u64 {
        self.started + self.unstarted + self.shed
    }

    /// Whether its ops have no response times: they are parts of streams.
    pub fn is_streamed(&self) -> bool {
        self.ok > 0 && self.response.is_empty()
    }

    /// Service times as they may be told: of ops that have response times.
    pub fn told_service(&self) -> &Distribution {
        if self.is_streamed() { &self.response } else { &self.service }
    }

    /// Bytes of body for each op that ended well; `None` where none did.
    pub fn body_bytes_per_ok(&self) -> Option<f64> {
        (self.ok > 0).then(|| self.body_bytes.saturating_sub(self.failed_body_bytes) as f64 / self.ok as f64)
    }

    /// Adds everything of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.started += other.started;
        self.ok += other.ok;
        for (&kind, count) in &other.failed {
            *self.failed.entry(kind).or_default() += count;
        }
        self.ok_in_run_up += other.ok_in_run_up;
        for (&kind, count) in &other.failed_in_run_up {
            *self.failed_in_run_up.entry(kind).or_default() += count;
        }
        self.in_flight += other.in_flight;
        self.unstarted += other.unstarted;
        self.shed += other.shed;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.body_bytes += other.body_bytes;
        self.failed_body_bytes += other.failed_body_bytes;
        if let Some(bytes) = other.inflated_bytes {
            *self.inflated_bytes.get_or_insert(0) += bytes;
        }
        self.connections += other.connections;
        self.resumed += other.resumed;
        self.reused += other.reused;
        self.resent += other.resent;
        self.surplus += other.surplus;
        for (&counter, count) in &other.counted {
            // Some are what a server says.
            let sum = self.counted.entry(counter).or_default();
            *sum = sum.saturating_add(*count);
        }
        for (&status, count) in &other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.queue.merge(&other.queue);
        for (&phase, distribution) in &other.phases {
            self.phases.entry(phase).or_default().merge(distribution);
        }
        for example in &other.failure_examples {
            if self.failure_examples.len() < Self::FAILURE_EXAMPLES && !self.failure_examples.contains(example) {
                self.failure_examples.push(example.clone());
            }
        }
        if self.stages.len() < other.stages.len() {
            self.stages.resize(other.stages.len(), StageTally::default());
        }
        for (mine, theirs) in self.stages.iter_mut().zip(&other.stages) {
            mine.merge(theirs);
        }
    }
}

/// Counts by interval of time, of equal length, from the slot's start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Length of an interval.
    pub interval_ns: Nanos,
    /// The intervals; ops count where they ended.
    pub intervals: Vec<Interval>,
}

/// What ended in one interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// Ok ops.
    pub ok: u64,
    /// Failed ops.
    pub failed: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Sum of response times of ok ops, ns.
    pub response_sum_ns: u64,
    /// Longest response time, ns; 0 when no op ended.
    pub response_max_ns: Nanos,
}

impl Interval {
    /// Adds another interval's counts.
    pub fn merge(&mut self, other: &Self) {
        self.ok += other.ok;
        self.failed += other.failed;
        self.bytes_in += other.bytes_in;
        self.response_sum_ns = self.response_sum_ns.saturating_add(other.response_sum_ns);
        self.response_max_ns = self.response_max_ns.max(other.response_max_ns);
    }
}

impl Series {
    /// Makes intervals twice as long by joining neighbours: how memory stays bounded however long a slot is.
    pub fn coarsen(&mut self) {
        self.intervals = self
            .intervals
            .chunks(2)
            .map(|pair| {
                let mut joined = pair[0];
                if let Some(second) = pair.get(1) {
                    joined.merge(second);
                }
                joined
            })
            .collect();
        self.interval_ns *= 2;
    }

    /// Adds another series that started at the same instant; the coarser interval length of the two is kept.
    pub fn merge(&mut self, other: &Self) {
        if other.intervals.is_empty() {
            return;
        }
        if self.intervals.is_empty() {
            *self = other.clone();
            return;
        }
        let mut other = other.clone();
        while self.interval_ns < other.interval_ns {
            self.coarsen();
        }
        while other.interval_ns < self.interval_ns {
            other.coarsen();
        }
        if self.intervals.len() < other.intervals.len() {
            self.intervals.resize(other.intervals.len(), Interval::default());
        }
        for (mine, theirs) in self.intervals.iter_mut().zip(&other.intervals) {
            mine.merge(theirs);
        }
    }
}

/// What the generator found out about itself in a slot.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorAudit {
    /// One entry for each worker.
    pub workers: Vec<WorkerAudit>,
    /// Descriptors that the process may open.
    pub descriptor_limit: Option<u64>,
    /// Descriptors open at the slot's end; `None` where the system does not tell.
    #[serde(default)]
    pub descriptors_open: Option<u64>,
    /// Local ports that connections to the target can use at a time, those of each pair of a local and a remote address
    /// together; `None` where the system does not tell.
    #[serde(default)]
    pub local_ports: Option<u32>,
    /// CPUs that the workers could run on; `None` where that is not known.
    pub cpus: Option<u32>,
}

/// What one worker found out about itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerAudit {
    /// CPU time (user and system) of the worker's thread within the slot; `None` where the system does not tell.
    pub cpu_ns: Option<Nanos>,
    /// Wall time over which `cpu_ns` was counted.
    pub wall_ns: Nanos,
    /// Load before that, while streams came up to speed: it is in none of the slot's figures.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub run_up_ns: Nanos,
    /// How late a connection that was free started its op: our own lateness, not the server's.
    pub schedule_lag: Distribution,
    /// How long each turn of the event loop took: an event may have waited that long before it was seen.
    pub loop_lag: Distribution,
    /// Lanes that began an op in this slot and heard of no end of any: connections, or streams of one, that got no answer at
    /// all. `None` where a run was kept before this was counted.
    #[serde(default)]
    pub silent_lanes: Option<u32>,
    /// For how long the worker stood still.
    #[serde(default, skip_serializing_if = "Standstill::is_none")]
    pub standstill: Standstill,
    /// Time that the worker stayed awake with nothing to do, as busy polling has it; a part of `cpu_ns`.
    #[serde(default)]
    pub polling_ns: Nanos,
    /// Of a worker that polls and gives way: time in which others had the CPU while it polled, or, where the kernel counts that and
    /// it is more, while it wanted to run at all.
    #[serde(default)]
    pub taken_ns: Nanos,
    /// Others wanted the CPU, so the worker has polled for a part of the slot only.
    #[serde(default)]
    pub gave_way: bool,
    /// Time in which the worker wanted a CPU and others had it, beyond what waking up from its sleeps takes; `None` where the
    /// system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ns: Option<Nanos>,
    /// How often the worker slept because it waited; `None` where that is not known.
    #[serde(default)]
    pub sleeps: Option<u64>,
    /// How much later than it had arrived the end of an op was noticed: empty where the system does not tell. Response times
    /// end at the arrival where it is known, so this is no part of them.
    #[serde(default)]
    pub notice_lag: Distribution,
    /// The worker does the ops itself, as calls that block or an embedded database have it: its CPU time is the target's as much
    /// as ours, and that it is busy says nothing of the generator.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub works_itself: bool,
    /// Times in which none of its ops ended although several connections waited, which then got their answers together: the target
    /// stood still. Of a worker with one connection: the time of ops that took far longer than they usually do. `None` where that
    /// was not looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_stalls: Option<Standstill>,
    /// What the first of its connections took, in their order; empty where connections are not told apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<ConnectionTimes>,
}

/// What the ops of one connection took. Those that made it are left out, for what they took is mostly that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionTimes {
    /// Ops that ended well, in two halves that took turns: what one half shows of a connection can be held against the other.
    pub ops: [u64; 2],
    /// Their service times, ns.
    pub sum_ns: [u64; 2],
    /// How long connecting took when it was made, in this slot or before, without a handshake; `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_ns: Option<Nanos>,
    /// It was made in this slot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_new: bool,
    /// It was lost, and another one took its place: nothing holds for either.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_several: bool,
}

impl ConnectionTimes {
    /// An op that made the connection, for which it waited so long.
    pub fn connected(&mut self, connect_ns: Nanos) {
        self.is_several |= self.is_new || self.ops != [0, 0];
        self.connect_ns = Some(connect_ns);
        self.is_new = true;
    }

    /// The same connection at the begin of the next slot, in which nothing went over it yet.
    #[must_use]
    pub fn kept(&self) -> Self {
        Self { connect_ns: self.connect_ns, ..Self::default() }
    }

    /// An op went over it.
    pub fn took(&mut self, service_ns: Nanos) {
        let half = usize::from(self.ops[0] > self.ops[1]);
        self.ops[half] += 1;
        self.sum_ns[half] = self.sum_ns[half].saturating_add(service_ns);
    }

    /// Mean time of the ops of a half; `None` where it has none.
    pub fn mean_ns(&self, half: usize) -> Option<f64> {
        (self.ops[half] > 0).then(|| self.sum_ns[half] as f64 / self.ops[half] as f64)
    }

    /// Adds what went over the same lane later.
    pub fn append(&mut self, later: &Self) {
        self.is_several |= later.is_several || later.is_new && (self.is_new || self.ops != [0, 0]);
        self.is_new |= later.is_new;
        self.connect_ns = later.connect_ns.or(self.connect_ns);
        // Each turn begins with its first half. The halves take turns over all of them.
        let swapped = usize::from(self.ops[0] > self.ops[1]);
        for half in 0..2 {
            self.ops[half ^ swapped] += later.ops[half];
            self.sum_ns[half ^ swapped] = self.sum_ns[half ^ swapped].saturating_add(later.sum_ns[half]);
        }
    }
}

/// Times in which somebody did not run although it had to. Of a worker of the generator: its process was stopped, its machine was
/// suspended, or others had its CPUs. What it did not see meanwhile looks as if the target had been slow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standstill {
    /// How often that was.
    pub count: u64,
    /// All of them together.
    pub total_ns: Nanos,
    /// The longest of them.
    pub longest_ns: Nanos,
}

impl Standstill {
    /// Whether there was none.
    pub fn is_none(&self) -> bool {
        self.count == 0
    }

    /// Adds one that took so long.
    pub fn add(&mut self, gap_ns: Nanos) {
        self.merge(&Self { count: 1, total_ns: gap_ns, longest_ns: gap_ns });
    }

    /// Adds those of another time.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

impl WorkerAudit {
    /// CPU time of work: what was used while there was nothing to do is not in it.
    pub fn work_ns(&self) -> Option<Nanos> {
        Some(self.cpu_ns?.saturating_sub(self.polling_ns))
    }

    /// Share of the slot in which the worker was at work on its CPU.
    pub fn utilisation(&self) -> Option<f64> {
        (self.wall_ns > 0).then_some(self.work_ns()? as f64 / self.wall_ns as f64)
    }

    /// Share of the slot in which it wanted a CPU and others had it.
    pub fn waited(&self) -> Option<f64> {
        (self.wall_ns > 0).then_some(self.waited_ns? as f64 / self.wall_ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_of_different_resolution_merge_without_losing_an_op() {
        let interval = |ok| Interval { ok, ..Interval::default() };
        let mut fine = Series { interval_ns: 100, intervals: vec![interval(1), interval(2), interval(3)] };
        let coarse = Series { interval_ns: 200, intervals: vec![interval(10), interval(20), interval(30)] };
        fine.merge(&coarse);
        assert_eq!(fine.interval_ns, 200);
        assert_eq!(fine.intervals.iter().map(|i| i.ok).collect::<Vec<_>>(), [13, 23, 30]);
    }

    #[test]
    fn a_tally_that_was_kept_before_there_were_schemas_reads_as_it_was_written() {
        let kept: serde_json::Value = serde_json::from_str(include_str!("kept_tally.json")).unwrap();
        let tally: Tally = serde_json::from_value(kept.clone()).unwrap();
        assert_eq!(tally.failed[&crate::web::failure::STATUS.id()], 7);
        assert!(crate::web::SCHEMA.phases.iter().skip(3).all(|phase| tally.phases.contains_key(&phase.id())));
        assert_eq!(serde_json::to_value(tally).unwrap(), kept);
    }
}
