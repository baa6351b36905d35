//! `cpu.slow-clock`: asking for the time is dear on the slow side's machine.
//!
//! Linux reads most clock sources in user mode. Some it has to ask a chip on the board for, by a system call and some
//! microseconds of waiting, and it asks for each packet and each timer too. Then system time per op is higher while user
//! time is not. What looks alike: more system calls (counted), a tracer (a fact), a slower CPU (user time is higher
//! too).

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host, of_both};
use crate::evidence::hooks::Hooks;
use crate::evidence::machines::{Machines, Side};
use crate::evidence::{by_hand, clock};
use crate::gap::{Gap, percent};
use duel_model::{Confidence, format_duration_ns, sanitize_line};

static ENTRY: CauseEntry = CauseEntry {
    id: "cpu.slow-clock",
    description: "the machine's clock source is slow, and each look at the time costs microseconds",
    signature: "hosts: a slow clock source, and more kernel time per request",
    at_most: "told as a suspicion only",
    needs_machine: false,
};

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let source = |side: usize| clock::source(gap, side);
    let [of_slow, of_fast] = of_both(gap, "the clock sources of both machines are not known", source)?;
    let fact = gap.on_host(
        format!("{slow}'s clock source is {}, {fast}'s {}", sanitize_line(of_slow), sanitize_line(of_fast)),
        Some("cat /sys/devices/system/clocksource/clocksource0/current_clocksource".to_owned()),
    );
    if !clock::is_slow(of_slow) || clock::is_slow(of_fast) {
        return Err(Standing::RuledOut(fact));
    }
    let machines = Machines::read(gap)?;
    let (slow_side, fast_side) = machines.both(gap)?;
    let open = |text: String| Standing::Undecided(gap.on_host(text, None));
    let times = |side: &Side<'_>| Some((side.per_op("process.user_ns")?, side.per_op("process.system_ns")?));
    let Some(((user, system), (fast_user, fast_system))) = times(slow_side).zip(times(fast_side)) else {
        return Err(open("the CPU time of both servers is not known".to_owned()));
    };
    let text = format!(
        "a request takes {} of system time on {slow} and {} on {fast}; of user time {} and {}",
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
    // A slow clock costs the server's own code nothing: reading it has become a system call.
    if user - fast_user > extra_ns / 2.0 {
        return Err(open(format!("{}: user time is higher as well", counted.text)));
    }
    if gap.host_fact(gap.slow, "process.tracer").is_some_and(|tracer| tracer != "none") {
        return Err(open(format!("{}; but {slow} is traced as well", fact.text)));
    }
    // More is attached to each of its system calls, which makes each of them dearer as well.
    if let Some((of_slow, of_fast)) = Hooks::of(gap, gap.slow).zip(Hooks::of(gap, gap.fast))
        && of_slow.more_than(&of_fast)
    {
        let text = format!("{}; but its system calls go through {}, too", fact.text, of_slow.tell());
        return Err(open(text));
    }
    let calls = |key: &str| Some((slow_side.per_op(key)?, fast_side.per_op(key)?));
    if let Some(((reads, fast_reads), (writes, fast_writes))) =
        calls("workers.read_calls").zip(calls("workers.write_calls"))
        && reads + writes > 1.25 * (fast_reads + fast_writes) + 0.5
    {
        let text = format!(
            "{slow} reads and writes {:.1} times per request, {fast} {:.1} times: that costs system time too",
            reads + writes,
            fast_reads + fast_writes
        );
        return Err(open(text));
    }
    let told = Told {
        summary: format!(
            "{slow}'s machine takes its time from {}, which is slow to read, and {fast}'s from {}; a request costs {} \
             more system time. That is worth about {} of the gap.",
            sanitize_line(of_slow),
            sanitize_line(of_fast),
            format_duration_ns(extra_ns),
            percent(share)
        ),
        remedy: format!(
            "On {slow}'s host `cat /sys/devices/system/clocksource/clocksource0/available_clocksource` tells what there \
             is, and `dmesg | grep -i -e clocksource -e tsc` why it was not taken. If `tsc` (or `kvm-clock`) is there, \
             write its name into `current_clocksource` beside it and compare again."
        ),
        facts: vec![fact],
        further: vec![counted],
    };
    // Looks at the clock are not counted, so other dear system calls are not excluded by a figure of their own.
    Ok(fit_by_host(gap, &ENTRY, Some(share), Confidence::Likely, told))
}
