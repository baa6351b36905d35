//! `cpu.security-hooks`: what is attached to the slow side's system calls makes each of them dearer.
//!
//! A filter of system calls (seccomp) and rules of the kernel's audit are gone through at each call, in the kernel: a request
//! takes more CPU time there, and no more in the server's own code. That is so with many other things, and each of them leaves
//! another mark: more calls (counted), a tracer (a fact, and its stops), a slow clock (a fact), a chain of filter rules or
//! more packets (interrupts and segments), a slower CPU (user time is higher too), pages (faults). Where one of these marks
//! cannot be looked at, the cause is left open.
//!
//! That a filter is attached is no sign that it costs anything: containers have one, and for calls that it lets pass whatever
//! their arguments are, Linux asks it once (the bitmap of kernel/seccomp.c, since 5.11). Calls are not all counted either: those
//! that send and receive are none of `/proc/PID/io`. Security modules and eBPF programs can do the same; what they cost can be
//! seen as well, but not that it is they, so nothing is accused of it.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host, shown_look};
use crate::causes::likes::held_against;
use crate::evidence::hooks::Hooks;
use crate::evidence::machines::{Machines, Side, is_same_fact};
use crate::evidence::worth::reference;
use crate::evidence::{by_hand, clock};
use crate::gap::{Gap, per_byte_share};
use crate::probes::{RANGE_1, SMALLEST_SWEEP_BYTES};
use duel_model::{Confidence, format_duration_ns};

static ENTRY: CauseEntry = CauseEntry {
    id: "cpu.security-hooks",
    description: "a filter of system calls (seccomp) or rules of the audit make each system call dearer",
    signature: "hosts: more filters or rules are attached, and more kernel time per request, whatever its size, \
                without more time in the server's own code, calls, switches, page faults, segments or time in interrupts",
    at_most: "told as a suspicion only",
    needs_machine: true,
};

/// What was counted grows with chance and with background by less than that; half of a call, of a switch or of a segment more
/// for each request is none of it.
const CLEARLY_MORE: f64 = 1.25;
const FURTHER: f64 = 0.5;

pub(super) static CAUSE: Cause = Cause { reads_server_alone: true, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let machines = Machines::read(gap)?;
    let (slow_side, fast_side) = machines.both(gap)?;
    let open = |text: String| Standing::Undecided(gap.on_host(text, None));
    let times = |side: &Side<'_>| Some((side.per_op("process.user_ns")?, side.per_op("process.system_ns")?));
    let Some(((user, system), (fast_user, fast_system))) = times(slow_side).zip(times(fast_side)) else {
        return Err(open("the CPU time of both servers is not known".to_owned()));
    };
    let text = format!(
        "a request takes {} of kernel time on {slow} and {} on {fast}; in the server's own code {} and {}",
        format_duration_ns(system),
        format_duration_ns(fast_system),
        format_duration_ns(user),
        format_duration_ns(fast_user)
    );
    let counted = gap.on_host(text, Some(by_hand::cpu_time(gap, gap.slow)));
    let extra_ns = system - fast_system;
    let wall_ns = slow_side.wall_ns();
    let worth = machines.loss_log(gap, gap.slow, (user + system - extra_ns) / wall_ns, extra_ns / wall_ns);
    let both_ns = [user + system, fast_user + fast_system];
    let share = machines.noteworthy_of_cpu(gap, worth, extra_ns, both_ns, &counted)?;

    let Some((of_slow, of_fast)) = Hooks::of(gap, gap.slow).zip(Hooks::of(gap, gap.fast)) else {
        return Err(open(format!("{}; but what is attached to system calls is not known of both", counted.text)));
    };
    let fact = gap.on_host(
        format!("to {slow}'s system calls are attached {}, to {fast}'s {}", of_slow.tell(), of_fast.tell()),
        Some(by_hand::hooks(gap, gap.slow)),
    );
    if !of_slow.more_than(&of_fast) {
        return Err(open(format!(
            "{}; but no more is attached than to {fast}'s, as far as filters and audit rules go ({}); security modules \
             and eBPF programs are not read",
            counted.text, fact.text
        )));
    }
    // Whatever makes the server's own code slower makes the kernel's as many times as slow, and that may be most of a request.
    let slower = (user / fast_user).max(1.0);
    if user - fast_user > extra_ns / 2.0 || system - slower * fast_system < extra_ns / 2.0 {
        return Err(open(format!("{}: there it takes longer as well", counted.text)));
    }
    paid_per_request(gap)?;
    if let Some(other) = marks_of_others(slow_side, fast_side, extra_ns) {
        return Err(open(format!("{}, and {}; but {other}", fact.text, counted.text)));
    }
    // That is a cause of its own, which cannot tell the two apart either.
    if clock::source(gap, gap.slow).is_none_or(clock::is_slow) {
        return Err(open(format!("{}; but {slow}'s clock may be slow to read as well", counted.text)));
    }
    for other in held_against(gap, &ENTRY) {
        other.map_err(|against| against.settles(|id| open(format!("{}; but that may be {id}", counted.text))))?;
    }
    // Two machines differ in more than that, and so do a container and what is in none: in the network that packets go through.
    let is_alike = is_same_fact(gap, "os.boot_id") && is_same_fact(gap, "process.network");
    let confidence =
        if is_alike && of_slow.filters > of_fast.filters { Confidence::Likely } else { Confidence::Possible };
    let told = Told {
        summary: format!(
            "{slow}'s system calls go through {}, {fast}'s through {}; a request costs {} more time in the kernel, and \
             no more calls. That is worth {}.",
            of_slow.tell(),
            of_fast.tell(),
            format_duration_ns(extra_ns),
            machines.about(share)
        ),
        remedy: format!(
            "On {slow}'s host see who attached them: `{}`; `systemctl cat` of the service tells of `SystemCallFilter=`, \
             `docker inspect` of a profile of seccomp. Start the server once without it where nobody else can reach it, \
             and compare again. A filter that looks at arguments is gone through at each call: let it do so for rare calls \
             only.",
            by_hand::hooks(gap, gap.slow)
        ),
        facts: vec![fact],
        further: vec![counted],
    };
    Ok(fit_by_host(gap, &ENTRY, Some(share), confidence, told))
}

/// A filter is gone through for each call, however many bytes that moves: what a large response takes longer has other reasons, unless it
/// takes more calls as well, and then it is left open.
fn paid_per_request(gap: &Gap<'_>) -> Result<(), Standing> {
    if gap.case.smallest_body_bytes().is_none_or(|bytes| bytes < SMALLEST_SWEEP_BYTES) {
        return Ok(());
    }
    let reference = reference(gap)?;
    let first_byte = shown_look(gap, RANGE_1)?;
    if per_byte_share(reference, &first_byte).is_some_and(|share| share.high() < 0.5) {
        return Ok(());
    }
    let text =
        format!("{}: {}; that it is not paid for each byte is not shown", RANGE_1.phrase(), gap.tell(&first_byte));
    Err(Standing::Undecided(gap.evidence(&first_byte, text)))
}

/// What else would make as much kernel time: more calls, switches, faults, packets or interrupts; or that one of these was not
/// counted.
fn marks_of_others(slow: &Side<'_>, fast: &Side<'_>, extra_ns: f64) -> Option<String> {
    let sum = |side: &Side<'_>, keys: &[&str]| keys.iter().map(|key| side.per_op(key)).sum::<Option<f64>>();
    let both = |keys: &[&str]| Some((sum(slow, keys)?, sum(fast, keys)?));
    let counts: [(&str, &[&[&str]]); 4] = [
        ("calls that read and write", &[&["workers.read_calls", "workers.write_calls"]]),
        // Of servers of several threads only turns are counted.
        ("switches", &[&["workers.voluntary_switches"], &["workers.turns"]]),
        ("page faults", &[&["process.minor_faults", "process.major_faults"]]),
        ("segments sent", &[&["tcp.sent_segments"]]),
    ];
    for (noun, any_of) in counts {
        let Some((of_slow, of_fast)) = any_of.iter().find_map(|keys| both(keys)) else {
            return Some(format!("how many {noun} a request takes is not known of both"));
        };
        if of_slow > CLEARLY_MORE * of_fast + FURTHER {
            return Some(format!("a request takes {of_slow:.1} {noun}, and {of_fast:.1} on the fast side"));
        }
    }
    let Some((of_slow, of_fast)) = both(&["cpu.softirq_ns", "cpu.irq_ns"]) else {
        return Some("the time in interrupts is not known of both".to_owned());
    };
    (of_slow - of_fast > extra_ns / 2.0).then(|| {
        let further = format_duration_ns(of_slow - of_fast);
        format!("the machine also spends {further} more in interrupts for each request")
    })
}
