//! `cpu.traced`: a tracer stops the slow side's processes at each of their system calls.
//!
//! The kernel tells who traces a process. A tracer that is attached need not cost anything (a debugger that waits for a
//! breakpoint does not), so its stops are looked for: each takes the CPU from the server and gives it back, and so does
//! the tracer that looks at it. What looks alike in the counters (contended locks, dear system calls) has no tracer.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host};
use crate::evidence::by_hand;
use crate::evidence::machines::{Machines, Side, pid, worth_log};
use crate::gap::{Flip, Gap};
use duel_model::{Confidence, format_duration_ns};

static ENTRY: CauseEntry = CauseEntry {
    id: "cpu.traced",
    description: "a tracer (strace, a debugger, a profiler) stops the server's processes at their system calls",
    signature: "hosts: a tracer is attached, and switches per request show its stops",
    at_most: "likely; possible without the counters, and where a request makes hardly more switches than without",
    needs_machine: true,
};

/// A request takes one system call to read it and one to answer it at least, and a traced call stops twice, before and
/// after (ptrace(2), PTRACE_SYSCALL). Fewer stops than that are not those of a tracer of system calls.
const LEAST_STOPS: f64 = 4.0;
/// Some of them take the place of switches that the server made anyway, when it waited: then fewer are further ones, and
/// something else may make as many.
const LEAST_FURTHER_STOPS: f64 = 2.0;

pub(super) static CAUSE: Cause = Cause { reads_server_alone: true, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let tracer = |side: usize| gap.host_fact(side, "process.tracer");
    let open = |text: String| Standing::Undecided(gap.on_host(text, None));
    match tracer(gap.slow) {
        None => return Err(open(format!("whether {slow} is traced is not known"))),
        // Each of several processes can be traced for itself. Before `process.traced` was told, the first alone was
        // looked at.
        Some("none")
            if gap.host_fact(gap.slow, "process.traced") != Some("none")
                && gap.host_number(gap.slow, "process.count").is_none_or(|count| count > 1.0) =>
        {
            return Err(open(format!("nobody traces the first of {slow}'s processes; the others were not looked at")));
        }
        Some("none") => {
            let text = format!("nobody traces {slow}");
            return Err(Standing::RuledOut(gap.on_host(text, Some(by_hand::tracers(gap, gap.slow)))));
        }
        Some(_) => {}
    }
    if tracer(gap.fast).is_some_and(|tracer| tracer != "none") {
        return Err(open(format!("both {slow} and {fast} are traced")));
    }
    let tracer = tracer(gap.slow).and_then(|tracer| tracer.parse::<u32>().ok());
    let tracer = tracer.map_or_else(|| "another process".to_owned(), |tracer| format!("process {tracer}"));

    let machines = Machines::read(gap)?;
    let traced = traced(gap).unwrap_or_else(|| pid(gap, gap.slow));
    let fact = gap.on_host(
        format!("{slow}'s process is traced by {tracer}"),
        Some(format!("grep TracerPid /proc/{traced}/status")),
    );
    let told = |worth: String, further| Told {
        summary: format!("{slow} is traced by {tracer}, which stops it at its system calls.{worth}"),
        remedy: format!(
            "On {slow}'s host: `ps -o pid,user,args -p $(awk '/TracerPid/ {{print $2}}' /proc/{traced}/status)` tells who \
             it is. End the tracer (strace, gdb, a profiler or a security agent), or let it watch fewer system \
             calls, and compare again."
        ),
        facts: vec![fact.clone()],
        further,
    };
    let Some(fast_side) = &machines.fast else {
        return Ok(fit_by_host(gap, &ENTRY, None, Confidence::Possible, told(String::new(), vec![])));
    };
    let Some((of_slow, of_fast, counted)) = stops(&machines.slow, fast_side) else {
        return Ok(fit_by_host(gap, &ENTRY, None, Confidence::Possible, told(String::new(), vec![])));
    };
    let text = format!("{counted} per request: {of_slow:.1} on {slow}, {of_fast:.1} on {fast}");
    if of_slow < LEAST_STOPS || of_slow - of_fast < LEAST_FURTHER_STOPS {
        let text = format!("{} but does not stop it; {text}", fact.text);
        return Err(Standing::RuledOut(gap.on_host(text, Some(by_hand::switches(gap, gap.slow)))));
    }
    let switches = gap.on_host(text, Some(by_hand::switches(gap, gap.slow)));
    let Some((extra_ns, worth)) = cost(&machines.slow, fast_side) else {
        return Ok(fit_by_host(gap, &ENTRY, None, Confidence::Possible, told(String::new(), vec![switches])));
    };
    let share = machines.share(worth);
    let text = format!(
        "beside {slow}'s own code a request takes {} more CPU time than on {fast}: in the kernel and in other processes",
        format_duration_ns(extra_ns.max(0.0))
    );
    let further = vec![switches, gap.on_host(text, Some(by_hand::all_cpu_time(gap, gap.slow)))];
    // Tracer and server run by turns, perhaps on two CPUs that sleep in between: more is lost than is counted.
    if share < Flip::NOTEWORTHY || of_slow - of_fast < LEAST_STOPS {
        return Ok(fit_by_host(gap, &ENTRY, None, Confidence::Possible, told(String::new(), further)));
    }
    let worth = format!(" That is worth {}.", machines.about(share));
    Ok(fit_by_host(gap, &ENTRY, Some(share), Confidence::Likely, told(worth, further)))
}

/// The first of the slow side's processes that is traced.
fn traced(gap: &Gap<'_>) -> Option<String> {
    let first = gap.host_fact(gap.slow, "process.traced")?.split(' ').next()?;
    Some(first.parse::<u32>().ok()?.to_string())
}

/// Stops per request on both sides at most, and what was counted. A stop is one voluntary switch of the server, or two
/// switches on its machine: to the tracer and back.
fn stops(slow: &Side<'_>, fast: &Side<'_>) -> Option<(f64, f64, &'static str)> {
    let of = |key: &str, switches: f64| Some((slow.per_op(key)? / switches, fast.per_op(key)? / switches));
    let own = of("workers.voluntary_switches", 1.0)
        .map(|(slow, fast)| (slow, fast, "times that the server's processes stopped"));
    own.or_else(|| of("cpu.switches", 2.0).map(|(slow, fast)| (slow, fast, "pairs of switches on the machine")))
}

/// CPU time per request beyond the server's own code that the slow side's machine spends more, ns, and its worth.
fn cost(slow: &Side<'_>, fast: &Side<'_>) -> Option<(f64, f64)> {
    // The load generator's time is no tracer's, and how much of it an op takes depends on how many it waits for at once.
    let beside =
        |side: &Side<'_>| Some(side.per_op("cpu.busy_ns")? - side.per_op("process.user_ns")? - side.generator_ns());
    let extra_ns = beside(slow)? - beside(fast)?;
    let lost = extra_ns / slow.wall_ns();
    Some((extra_ns, worth_log(slow.cpus("cpu.busy_ns")? - lost, lost)))
}
