//! `http.no-sendfile`: the slow side moves its responses in small pieces: tiny buffers, or tiny TLS records.
//!
//! The kernel counts the calls by which a process reads and writes. A server that needs several times as many for the
//! same bytes pays for them in the kernel, and more so the larger the response. A slower CPU, a tracer or a long firewall
//! chain makes each call dearer and leaves their number as it is: those are excluded by the count. What the calls are
//! worth is the CPU time that the kernel spends beyond what the same work would take there, judged by the server's own
//! code: a slower CPU slows both.

use super::worth::{demands, reference, share_of_resource};
use super::{Cause, CauseEntry, Standing, Told, fit_by_host, needs_http, of_both};
use crate::gap::{Flip, Gap};
use duel_model::{Confidence, HostDemand, format_bytes, format_duration_ns};

pub(super) static ENTRY: CauseEntry = CauseEntry {
    id: "http.no-sendfile",
    description: "responses are copied through small buffers or sent in small TLS records, which takes many system calls",
};

/// From twice as many calls for the same bytes on, they are another way of sending. Less is how the pieces happened to
/// fall.
const MORE_CALLS: f64 = 2.0;

/// The largest TLS record (RFC 8446, 5.1). Whoever moves this much with each call on average cannot be doing it in small
/// pieces.
const LARGE_PIECE_BYTES: f64 = 16_384.0;

pub(super) struct NoSendfile;

impl Cause for NoSendfile {
    fn entry(&self) -> &'static CauseEntry {
        &ENTRY
    }

    fn weigh(&self, gap: &Gap<'_>) -> Result<Standing, Standing> {
        needs_http(gap)?;
        let (slow, fast) = (gap.slow_name(), gap.fast_name());
        let body = |side: usize| gap.case.comparison.get(side)?.body_bytes_per_op;
        let [body_slow, body_fast] = of_both(gap, "how large the bodies are is not known", body)?;
        if body_slow < LARGE_PIECE_BYTES / 4.0 {
            let text = format!("{slow} sends {} for each request: that is one piece", format_bytes(body_slow));
            return Err(Standing::RuledOut(gap.first_contact(text)));
        }
        let open = |text: String| Err(Standing::Undecided(gap.on_host(text, None)));
        let reference = reference(gap)?;
        let demands = demands(gap)?;
        let Some(calls_slow) = calls(demands.slow) else {
            return open(format!("how many calls {slow} reads and writes with is not known"));
        };
        let piece_bytes = body_slow / calls_slow.max(1.0);
        let on_slow = format!(
            "{slow} reads and writes {calls_slow:.0} times for each request, {} at a time on average",
            format_bytes(piece_bytes)
        );
        if piece_bytes >= LARGE_PIECE_BYTES {
            return Err(Standing::RuledOut(gap.on_host(on_slow, None)));
        }
        let Some((on_fast, calls_fast)) = demands.fast.and_then(|demand| Some((demand, calls(demand)?))) else {
            return open(format!("{on_slow}; how often {fast} does is not known"));
        };
        let counts = format!("{on_slow}, {fast} {calls_fast:.0} times");
        // For each byte, since the bodies need not be equal.
        if calls_slow / body_slow < MORE_CALLS * calls_fast / body_fast.max(1.0) {
            return Err(Standing::RuledOut(gap.on_host(counts, None)));
        }
        let (Some(by_slow), Some(by_fast)) = (cpu(demands.slow), cpu(on_fast)) else {
            return open(format!("{counts}; what the servers' processes spend is not known"));
        };
        // By how much the slow side's CPU may be slower: as its own code is. With many pieces that does more as well, so
        // too much is taken for the CPU's, never too little. What is below a twentieth is lost in ticks.
        let slower = if by_fast.user_ns > 0.05 * by_fast.all_ns() { by_slow.user_ns / by_fast.user_ns } else { 1.0 };
        let extra_ns = by_slow.system_ns - by_fast.system_ns * slower.max(1.0);
        let spent = format!(
            "the kernel spends {} of CPU on each request to {slow}, {} on each to {fast}",
            format_duration_ns(by_slow.system_ns),
            format_duration_ns(by_fast.system_ns)
        );
        let share = share_of_resource(gap, reference, extra_ns, by_slow.all_ns()).unwrap_or(0.0);
        if share < Flip::NOTEWORTHY {
            let text = format!("{counts}, but {spent}: that is not worth the gap");
            return open(text);
        }
        let told = Told {
            summary: format!(
                "{slow} sends its responses in small pieces: {counts}; {spent}. The further time is worth {:.0} % of the gap.",
                100.0 * share
            ),
            remedy: format!(
                "On {slow}: nginx `sendfile on`, `output_buffers` of 32 kB and more, and over TLS `ssl_buffer_size 16k`; \
                 Apache `EnableSendfile On` and `EnableMMAP On`; HAProxy a larger `tune.bufsize` and no small \
                 `tune.ssl.maxrecord`. `strace -c -f -p PID` for a second tells which calls they are."
            ),
            facts: vec![gap.on_host(counts, Some("cat /proc/PID/io".to_owned()))],
            further: vec![gap.on_host(spent, None)],
        };
        Ok(fit_by_host(gap, &ENTRY, Some(share), Confidence::Likely, told))
    }
}

/// Calls that read or write, per op. `sendfile` counts as both.
fn calls(demand: &HostDemand) -> Option<f64> {
    Some(demand.per_op("workers.read_calls")? + demand.per_op("workers.write_calls")?)
}

struct Cpu {
    user_ns: f64,
    system_ns: f64,
}

impl Cpu {
    fn all_ns(&self) -> f64 {
        self.user_ns + self.system_ns
    }
}

/// CPU time of the server's processes per op.
fn cpu(demand: &HostDemand) -> Option<Cpu> {
    Some(Cpu { user_ns: demand.per_op("process.user_ns")?, system_ns: demand.per_op("process.system_ns")? })
}
