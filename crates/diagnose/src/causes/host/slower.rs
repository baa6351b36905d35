//! `cpu.slower`: the slow side's CPU takes longer for everything.
//!
//! The CPU time per op is higher by the same factor in user mode and in the kernel, for the same amount of work, and the
//! machines tell why: another model, a limit on the clock, heat. Work that one side does more of, or by dearer means,
//! falls on one mode or in other shares on both; an op that waits (for a quota, a neighbour, a distant path) uses no CPU
//! time. The same factor without a fact behind it is left open: chance, other software, or a neighbour on the other
//! thread of the same core could have made it.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host};
use crate::evidence::by_hand;
use crate::evidence::machines::{Machines, Side};
use crate::gap::{FlipLook, Gap, percent};
use crate::probes::{CHACHA20, Mode};
use duel_model::{Confidence, TargetObservation, format_duration_ns, sanitize_line, web};

static ENTRY: CauseEntry = CauseEntry {
    id: "cpu.slower",
    description: "the CPU is slower, or clocked down by heat or by a limit",
    signature: "hosts: CPU time per request is higher by one factor in both modes, with a fact that tells why",
    at_most: "told as a suspicion only",
    needs_machine: false,
};

/// Linux tells CPU times in these steps (USER_HZ, proc_pid_stat(5)), and divides them between user and system by where
/// its ticks fell: a count of independent events.
const TICK_NS: f64 = 1e7;

/// How far the factors of user and system time may lie apart, as a share of their log: what waits for memory does not
/// follow the clock, and the kernel waits for it more than a server's own code does.
const SAME_FACTOR: f64 = 0.25;

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let machines = Machines::read(gap)?;
    let (slow_side, fast_side) = machines.both(gap)?;
    let open = |text: String| Standing::Undecided(gap.on_host(text, None));
    let Some(factors) = Factors::of(slow_side, fast_side) else {
        return Err(open("the CPU time of both servers is not known".to_owned()));
    };
    let text = format!(
        "a request takes {} of CPU time on {slow}, {} on {fast}: {:.2}x in user mode, {:.2}x in the kernel",
        format_duration_ns(factors.slow_ns),
        format_duration_ns(factors.fast_ns),
        factors.user_log.exp(),
        factors.system_log.exp()
    );
    let counted = gap.on_host(text, Some(by_hand::cpu_time(gap, gap.slow)));
    let extra_ns = factors.slow_ns - factors.fast_ns;
    let worth = machines.loss_log(gap, gap.slow, factors.fast_ns / slow_side.wall_ns(), extra_ns / slow_side.wall_ns());
    let (user_log, system_log) = (factors.user_log, factors.system_log);
    let (apart, mean) = ((user_log - system_log).abs(), (user_log + system_log) / 2.0);
    let scatter = factors.scatter_log;
    if mean <= 0.0 || apart > SAME_FACTOR * mean + scatter {
        machines.worth_a_name(worth, &counted)?;
        return Err(Standing::RuledOut(counted));
    }
    let both_ns = [factors.slow_ns, factors.fast_ns];
    let share = machines.noteworthy_of_cpu(gap, worth, extra_ns, both_ns, &counted)?;
    if scatter > mean {
        return Err(open(format!("{}: too little CPU time to tell whether these are equal", counted.text)));
    }
    if let Some(more) = more_work(gap, &machines) {
        return Err(open(format!("{}; but {more}", counted.text)));
    }
    let (reasons, commands): (Vec<String>, Vec<&str>) = reasons(gap, slow_side, fast_side).into_iter().unzip();
    if reasons.is_empty() {
        return Err(open(format!(
            "{}; but the machines tell no reason why {slow}'s CPU should be slower",
            counted.text
        )));
    }
    // Another cipher does not make a CPU faster.
    if gap.mode == Mode::Alone && gap.uses_tls(gap.slow) && gap.uses_tls(gap.fast) {
        match gap.flip(CHACHA20) {
            FlipLook::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
            FlipLook::Shown(flip) if flip.moved() => {
                return Err(Standing::Undecided(gap.evidence(&flip.view, gap.tell_flip(&flip))));
            }
            FlipLook::Shown(_) | FlipLook::Missing(_) => {}
        }
    }
    let told = Told {
        summary: format!(
            "{slow}'s CPU takes {:.2}x as long for the same work, in its own code and in the kernel alike ({}). That \
             is worth about {} of the gap.",
            mean.exp(),
            reasons.join("; "),
            percent(share)
        ),
        remedy: format!(
            "On {slow}'s host compare `lscpu` and `grep MHz /proc/cpuinfo` under load with {fast}'s; `dmesg | grep -i \
             -e thermal -e throttl` tells of heat, `cat /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor` of \
             saving power. Cool it, lift the limit, or move to a faster CPU."
        ),
        facts: vec![gap.on_host(reasons.join("; "), Some(commands.join("; ")))],
        further: vec![counted],
    };
    Ok(fit_by_host(gap, &ENTRY, Some(share), Confidence::Likely, told))
}

/// CPU time per op on both sides, and the logs of the ratios.
struct Factors {
    slow_ns: f64,
    fast_ns: f64,
    user_log: f64,
    system_log: f64,
    /// 95 % half-width of the difference of the two logs, from the ticks that were counted.
    scatter_log: f64,
}

impl Factors {
    fn of(slow: &Side<'_>, fast: &Side<'_>) -> Option<Self> {
        let time = |side: &Side<'_>, key: &str| side.per_op(key).filter(|ns| *ns > 0.0);
        let times = [
            (slow, "process.user_ns"),
            (slow, "process.system_ns"),
            (fast, "process.user_ns"),
            (fast, "process.system_ns"),
        ];
        let [slow_user, slow_system, fast_user, fast_system] = times.map(|(side, key)| time(side, key));
        let variance: f64 = times.iter().map(|(side, key)| Some(TICK_NS / side.total(key)?)).sum::<Option<f64>>()?;
        Some(Self {
            slow_ns: slow_user? + slow_system?,
            fast_ns: fast_user? + fast_system?,
            user_log: (slow_user? / fast_user?).ln(),
            system_log: (slow_system? / fast_system?).ln(),
            scatter_log: 1.96 * variance.sqrt(),
        })
    }
}

/// Why the slow side's CPU time per op would be higher on the same CPU.
fn more_work(gap: &Gap<'_>, machines: &Machines<'_>) -> Option<String> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let differ = |of: fn(&TargetObservation) -> Option<f64>, scale: f64| {
        let (slow, fast) = (of(machines.view.slow)?, of(machines.view.fast)?);
        Some((slow - fast).abs() > scale * fast.abs().max(slow.abs()))
    };
    // A cost per byte or per connection falls on both modes.
    let margin = gap.case.plan.compare.margin.max(0.02);
    if differ(|seen| seen.bytes_in_per_op, margin) == Some(true) {
        return Some(format!("{slow} and {fast} do not send as many bytes"));
    }
    if differ(|seen| seen.reused_share, 0.1) == Some(true) || differ(|seen| seen.resumed_share, 0.1) == Some(true) {
        return Some("connections are not kept, or sessions not resumed, alike".to_owned());
    }
    let agreed = [web::TLS_CIPHER, web::TLS_GROUP, web::TLS_VERSION, web::CERTIFICATE_KEY];
    let negotiated = |side| gap.fact(side, |seen| Some(agreed.map(|name| seen.value(name))));
    if negotiated(gap.slow) != negotiated(gap.fast) {
        return Some("they negotiate different ciphers, groups or keys".to_owned());
    }
    let calls = |side: &Side<'_>| Some(side.per_op("workers.read_calls")? + side.per_op("workers.write_calls")?);
    if let (Some(slow_calls), Some(fast_calls)) = (calls(&machines.slow), machines.fast.as_ref().and_then(calls))
        && slow_calls > 1.25 * fast_calls + 0.5
    {
        return Some(format!(
            "{slow} reads and writes {slow_calls:.1} times per request, {fast} {fast_calls:.1} times"
        ));
    }
    None
}

/// What the machines tell of a slower CPU, each with the command that shows it.
fn reasons(gap: &Gap<'_>, slow_side: &Side<'_>, fast_side: &Side<'_>) -> Vec<(String, &'static str)> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let mut reasons = Vec::new();
    for (key, what, command) in [
        ("cpu.model", "CPU", "grep -m 1 'model name' /proc/cpuinfo"),
        ("cpu.governor", "frequency governor", "sort -u /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"),
        ("cpu.no_turbo", "no_turbo", "cat /sys/devices/system/cpu/intel_pstate/no_turbo"),
        ("cpu.boost", "boost", "cat /sys/devices/system/cpu/cpufreq/boost"),
    ] {
        if let (Some(of_slow), Some(of_fast)) = (gap.host_fact(gap.slow, key), gap.host_fact(gap.fast, key))
            && of_slow != of_fast
        {
            let text = format!("{what}: {} against {}", sanitize_line(of_slow), sanitize_line(of_fast));
            reasons.push((text, command));
        }
    }
    for (key, what, command) in [
        ("cpu.allowed_mhz", "highest clock allowed", "sort -nu /sys/devices/system/cpu/cpu*/cpufreq/scaling_max_freq"),
        ("cpu.highest_mhz", "highest clock", "sort -nu /sys/devices/system/cpu/cpu*/cpufreq/cpuinfo_max_freq"),
    ] {
        if let (Some(of_slow), Some(of_fast)) = (gap.host_number(gap.slow, key), gap.host_number(gap.fast, key))
            && of_slow < of_fast
        {
            reasons.push((format!("{what}: {of_slow:.0} against {of_fast:.0} MHz"), command));
        }
    }
    let heat = |side: &Side<'_>| side.per_op("cpu.heat_throttles").map(|per_op| per_op > 0.0);
    if heat(slow_side) == Some(true) && heat(fast_side) != Some(true) {
        let text = format!("{slow}'s CPU throttled itself for heat under load, {fast}'s did not");
        reasons.push((text, "grep . /sys/devices/system/cpu/cpu*/thermal_throttle/*_throttle_count"));
    }
    reasons
}
