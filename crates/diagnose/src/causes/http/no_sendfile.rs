//! `http.no-sendfile`: the slow side moves its responses in small pieces: tiny buffers, or tiny TLS records.
//!
//! How many pieces there are is counted twice, and either will do:
//!
//! * by the kernel: the calls by which a process reads and writes, where those carry the response (`send` is not among
//!   them);
//! * over TLS by the bytes that come with a body beyond it, which each record adds, against those that come with its
//!   first byte alone.
//!
//! A slower CPU, a tracer or a long firewall chain makes each piece dearer and leaves their number as it is: those are
//! excluded by the count. What the pieces are worth is the CPU time that the kernel spends beyond what the same work would
//! take there, judged by the server's own code: a slower CPU slows both. Without the machine it stays unknown: possible.

use crate::cause::{Cause, CauseEntry, Cure, Standing, Told, fit_by_host, needs_http, of_both};
use crate::causes::likes;
use crate::evidence::by_hand;
use crate::evidence::machines::pid;
use crate::evidence::through_files::may_be_answers;
use crate::evidence::tls_records::RECORD_OVERHEAD_BYTES;
use crate::evidence::worth::{Cpu, CpuWorth, FurtherCpu, acquits_nobody, demands, reference, told_kernel_time};
use crate::gap::{Flip, Gap, Look, View, per_byte_share};
use crate::probes::RANGE_1;
use duel_model::{Confidence, Evidence, HostDemand, TargetObservation, TwinChange, format_bytes};

static ENTRY: CauseEntry = CauseEntry {
    id: "http.no-sendfile",
    description: "responses are copied through small buffers or sent in small TLS records, which takes many system calls",
    signature: "hosts: many times the calls (or TLS records) per response, and kernel time worth the gap",
    at_most: "likely; possible from outside",
    needs_machine: true,
};

/// From twice as many pieces for the same bytes on, it is another way of sending. Less is how they happened to fall.
const MORE_PIECES: f64 = 2.0;

/// The largest TLS record (RFC 8446, 5.1). Whoever moves this much with each call on average cannot be doing it in small
/// pieces.
const LARGE_PIECE_BYTES: f64 = 16_384.0;

pub(super) static CAUSE: Cause =
    Cause { cure: Some(Cure { change: TwinChange::LargePieces, may_lie_outside: false }), ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    needs_http(gap)?;
    let slow = gap.slow_name();
    let body = |side: usize| gap.case.comparison.get(side)?.body_bytes_per_op;
    let [body_slow, body_fast] = of_both(gap, "how large the bodies are is not known", body)?;
    if body_slow < LARGE_PIECE_BYTES / 4.0 {
        let text = format!("{slow} sends {} for each request: that is one piece", format_bytes(body_slow));
        return Err(Standing::RuledOut(gap.evidence(&gap.comparison, text)));
    }
    let reference = reference(gap)?;
    let by_calls = demands(gap).map(|demands| (demands, Pieces::by_calls(&demands, [body_slow, body_fast])));
    // Wanted, if it can be had: both counts are worth more than one.
    if let Err(Standing::Wants(probes)) = by_calls {
        return Err(Standing::Wants(probes));
    }
    let pieces = match &by_calls {
        Ok((_, Some(pieces))) => *pieces,
        _ => Pieces::by_records(gap, reference)?,
    };
    let counts = pieces.told(gap, [body_slow, body_fast]);
    let open = |text: String| Err(Standing::Undecided(gap.on_host(text, None)));
    // For each byte, since the bodies need not be equal.
    let small = body_slow / pieces.of_slow.max(1.0) < LARGE_PIECE_BYTES;
    if !small || pieces.of_slow / body_slow < MORE_PIECES * pieces.of_fast / body_fast.max(1.0) {
        return Err(Standing::RuledOut(pieces.counted(gap, counts)));
    }
    needs_no_hop(gap, &counts)?;
    let Ok((demands, _)) = by_calls else { return Ok(from_outside(gap, reference, counts)) };
    if let Some(text) = may_be_answers(gap, &demands) {
        return open(text);
    }
    let Some(on_fast) = demands.fast else { return Ok(from_outside(gap, reference, counts)) };
    let (Some(by_slow), Some(by_fast)) = (Cpu::of(demands.slow), Cpu::of(on_fast)) else {
        return open(format!("{counts}; what the servers' processes spend is not known"));
    };
    // By how much the slow side's CPU may be slower: as its own code is. With many pieces that does more as well, so
    // too much is taken for the CPU's, never too little. What is below a twentieth is lost in ticks.
    let by_user_time = if by_fast.user_ns > 0.05 * by_fast.all_ns() { by_slow.user_ns / by_fast.user_ns } else { 1.0 };
    let slower = if by_user_time > 1.0 { by_user_time.min(by_first_byte(gap, &by_fast)?) } else { 1.0 };
    let further = FurtherCpu {
        least_ns: by_slow.system_ns - by_fast.system_ns * slower,
        most_ns: by_slow.system_ns - by_fast.system_ns,
    };
    let worth = CpuWorth::of(gap, reference, &demands, [&by_slow, &by_fast], further);
    let spent = told_kernel_time(gap, &demands, [&by_slow, &by_fast]);
    // What else goes with small pieces is not counted, such as waiting for the other side oftener.
    let share = worth.noteworthy(gap.on_host(format!("{counts}, but {spent}"), None)).map_err(acquits_nobody)?;
    let told = Told {
        summary: format!(
            "{slow} sends its responses in small pieces: {counts}; {spent}. The further time{} is worth {:.0} % of the gap.",
            worth.and_waiting(),
            100.0 * share
        ),
        remedy: format!(
            "On {slow}: nginx `sendfile on`, `output_buffers` of 32 kB and more, and over TLS `ssl_buffer_size 16k`; \
             Apache `EnableSendfile On` and `EnableMMAP On`; HAProxy a larger `tune.bufsize` and no small \
             `tune.ssl.maxrecord`. `strace -c -f -p {}` for a second tells which calls they are.",
            pid(gap, gap.slow)
        ),
        facts: vec![pieces.counted(gap, counts)],
        further: vec![gap.on_host(spent, Some(by_hand::cpu_time(gap, gap.slow)))],
    };
    Ok(fit_by_host(gap, &ENTRY, Some(share), Confidence::Likely, told))
}

/// By how much the slow side's CPU may be slower at most, judged by the first byte of a response: that is one piece on
/// either side. It tells where what the CPUs do is a good part of the time, and not a distant path.
fn by_first_byte(gap: &Gap<'_>, on_fast: &Cpu) -> Result<f64, Standing> {
    /// Times the CPU time of a whole response.
    const NEAR: f64 = 3.0;
    match gap.look(RANGE_1) {
        Look::NotAsked(probe) => Err(Standing::Wants(vec![probe])),
        Look::Shown(first) if first.fast_ns().is_some_and(|ns| ns <= NEAR * on_fast.all_ns()) => {
            Ok(first.log.high().exp().max(1.0))
        }
        Look::Shown(_) | Look::Missing(_) => Ok(f64::INFINITY),
    }
}

/// Leaves it open where another program was seen to hand the responses on.
///
/// Whoever hands on reads and writes each byte once more, in pieces of its own buffers, and the kernel works for that: the
/// further pieces and their time are what the hop costs, and the server behind it may send in any pieces.
fn needs_no_hop(gap: &Gap<'_>, counts: &str) -> Result<(), Standing> {
    let open = |_: &str| {
        let text = format!("{counts}; but that may be the hop's, which moves each byte once more");
        Standing::Undecided(gap.on_host(text, None))
    };
    likes::held_against(gap, &ENTRY).try_for_each(|like| like.map(drop).map_err(|against| against.settles(open)))
}

/// Small records and a gap that is paid per byte: what the records are worth of it is not known.
fn from_outside(gap: &Gap<'_>, reference: &View<'_>, counts: String) -> Standing {
    let share = match gap.look(RANGE_1) {
        Look::Shown(first_byte) => per_byte_share(reference, &first_byte),
        Look::NotAsked(probe) => return Standing::Wants(vec![probe]),
        Look::Missing(_) => None,
    };
    if share.is_none_or(|share| share.low() < Flip::EXPLAINS) {
        let text = format!("{counts}, but whether the gap is paid per byte is not known");
        return Standing::Undecided(gap.evidence(reference, text));
    }
    let slow = gap.slow_name();
    let told = Told {
        summary: format!(
            "{slow} sends its responses in small pieces, and that may be what makes each byte dearer: {counts}. How much of \
             the gap that is cannot be told from outside."
        ),
        remedy: format!(
            "Raise the size of {slow}'s TLS records (nginx `ssl_buffer_size 16k`, HAProxy without a small \
             `tune.ssl.maxrecord`) and buffers, and compare again; or let duel read both machines."
        ),
        facts: vec![gap.evidence(reference, counts)],
        further: Vec::new(),
    };
    fit_by_host(gap, &ENTRY, None, Confidence::Possible, told)
}

/// In how many pieces responses are moved, per op.
#[derive(Clone, Copy)]
struct Pieces {
    of_slow: f64,
    of_fast: f64,
    by: By,
}

/// What is counted for a piece.
#[derive(Clone, Copy)]
enum By {
    Calls,
    Records,
}

impl Pieces {
    /// Calls that read or write; `sendfile` counts as both. `None` where not both machines tell, or those calls do not
    /// carry the responses.
    fn by_calls(demands: &crate::gap::Demands<'_>, bodies: [f64; 2]) -> Option<Self> {
        let calls = |demand: &HostDemand, body_bytes: f64| {
            let carried = demand.per_op("workers.written_chars_bytes")? >= 0.5 * body_bytes;
            let calls = demand.per_op("workers.read_calls")? + demand.per_op("workers.write_calls")?;
            carried.then_some(calls)
        };
        let (of_slow, of_fast) = (calls(demands.slow, bodies[0])?, calls(demands.fast?, bodies[1])?);
        Some(Self { of_slow, of_fast, by: By::Calls })
    }

    /// TLS records, by what comes beside the body: with all of it, less what comes with its first byte.
    fn by_records(gap: &Gap<'_>, reference: &View<'_>) -> Result<Self, Standing> {
        let open = |text: String| Standing::Undecided(gap.not_measured(text));
        if !gap.uses_tls(gap.slow) || !gap.uses_tls(gap.fast) {
            return Err(open("in how many pieces responses are moved is not known".to_owned()));
        }
        if gap.case.http().is_some_and(|http| http.http2.is_some()) {
            return Err(open(
                "beside the bodies come heads of HTTP/2's frames, so that TLS records cannot be counted".to_owned(),
            ));
        }
        let first_byte = match gap.look(RANGE_1) {
            Look::Shown(view) => view,
            Look::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
            Look::Missing(why) => {
                return Err(open(format!("in how many pieces responses are moved is not known: {why}")));
            }
        };
        let beside = |seen: &TargetObservation| Some(seen.bytes_in_per_op? - seen.body_bytes_per_op?);
        let records = |all: &TargetObservation, first: &TargetObservation| {
            Some(((beside(all)? - beside(first)?) / RECORD_OVERHEAD_BYTES).max(1.0))
        };
        let of_slow = records(reference.slow, first_byte.slow);
        let of_fast = records(reference.fast, first_byte.fast);
        let both = of_slow.zip(of_fast).map(|(of_slow, of_fast)| Self { of_slow, of_fast, by: By::Records });
        both.ok_or_else(|| open("how many bytes come beside the bodies is not known".to_owned()))
    }

    /// The evidence that tells it.
    fn counted(&self, gap: &Gap<'_>, told: String) -> Evidence {
        match self.by {
            By::Calls => gap.on_host(told, Some(by_hand::calls(gap, gap.slow))),
            By::Records => gap.at_reference(told),
        }
    }

    fn told(&self, gap: &Gap<'_>, bodies: [f64; 2]) -> String {
        let what = match self.by {
            By::Calls => "calls that read or write",
            By::Records => "TLS records",
        };
        let of = |name: String, pieces: f64, body: f64| {
            format!("{name} moves a response in about {pieces:.0} {what} of {}", format_bytes(body / pieces.max(1.0)))
        };
        let slow = of(gap.slow_name(), self.of_slow, bodies[0]);
        format!("{slow}; {}", of(gap.fast_name(), self.of_fast, bodies[1]))
    }
}
