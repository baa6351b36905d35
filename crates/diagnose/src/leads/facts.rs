//! Facts in which both sides differ, by how near they are to where the gap sits.

use super::Ranked;
use crate::evidence::by_hand;
use crate::evidence::db_settings::differing_undeclared;
use crate::evidence::machines::pid;
use crate::gap::{Flip, Gap, differences_in};
use crate::probes::{ALL_CLOSE, GROUP, Kind, SUITE, TLS_12};
use crate::repeat;
use duel_model::web::{self, phase};
use duel_model::{Compared, Declaration, Difference, DifferenceKind, Facts, Value, sanitize_line};
use std::collections::BTreeSet;

/// How telling an option is that only one of the servers was started with: other facts of its process follow from it.
const TOLD_TO: f64 = 0.65;
/// How telling a fact is that is near to the phase in which the gap sits, one of the server itself, and any other.
const NEAR: f64 = 0.6;
const OF_SERVER: f64 = 0.4;
const ANY: f64 = 0.2;

/// Longer texts are told by what is not in both.
const LONG: usize = 60;

/// What the targets tell of themselves, then what their machines are.
pub(super) fn differing(gap: &Gap<'_>) -> Vec<Ranked> {
    let near = near_to(gap);
    let weight = |difference: &Difference| {
        let name = &difference.name;
        let begins = |list: &[&str]| list.iter().any(|begin| name.starts_with(begin));
        if name == COMMAND_LINE {
            // Any two servers were started with different files and folders.
            if has_own_option(difference) { TOLD_TO } else { ANY }
        } else if THREADS.contains(&&**name) && !may_matter(gap, difference) {
            ANY
        } else if begins(near) {
            NEAR
        } else if begins(&OF_ITSELF) {
            OF_SERVER
        } else {
            ANY
        }
    };
    let ranked = |difference: Difference| Ranked { weight: weight(&difference), difference };
    told_by_targets(gap).chain(settings_undeclared(gap)).chain(told_by_machines(gap)).map(ranked).collect()
}

const COMMAND_LINE: &str = "process.command_line";

/// Whether one of the command lines has an option that the other one has not, with or without a value.
fn has_own_option(difference: &Difference) -> bool {
    let options = |line: &str| -> BTreeSet<String> {
        let words = line.split_whitespace().filter(|word| word.starts_with('-') && word.len() > 1);
        words.map(|word| word.split('=').next().unwrap_or(word).to_owned()).collect()
    };
    options(&difference.slow) != options(&difference.fast)
}

/// Numbers of threads: many servers start and end some as they are needed.
const THREADS: [&str; 2] = ["process.threads", "process.all_threads"];

/// Whether one of the numbers is so much larger that it can be a noteworthy part of the gap: with as many times the threads at most as
/// many times the work is done.
fn may_matter(gap: &Gap<'_>, difference: &Difference) -> bool {
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| *number > 0.0);
    let both = number(&difference.slow).zip(number(&difference.fast));
    both.is_none_or(|(slow, fast)| (slow / fast).ln().abs() >= Flip::NOTEWORTHY * gap.comparison.log.mid)
}

/// Facts of a server, of its process and of what it is given.
const OF_ITSELF: [&str; 6] = ["process.", "cgroup.", "http.", "tls.", "sql.", "crypto."];

/// Beginnings of the facts that are near to the phase in which most of the gap is.
fn near_to(gap: &Gap<'_>) -> &'static [&'static str] {
    let schema = gap.case.plan.schema();
    match schema.kind {
        "sql" => return &["sql."],
        "disk" => return &["disk.", "mount."],
        "crypto" => return &["crypto.", "cpu."],
        "net" => return &["net.", "tcp.", "link.", "firewall."],
        // Phases of other kinds may have the name and the place of one of the web.
        _ if *schema != web::SCHEMA => return &[],
        _ => {}
    }
    let view = gap.known_reference().unwrap_or(&gap.comparison);
    let most = differences_in(view, schema.phases).into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
    match most {
        Some((phase::CONNECT, _)) => &["net.", "tcp.", "listen.", "link.", "firewall."],
        Some((phase::TLS, _)) => &["tls.", "process.library.", "process.environment", "cpu."],
        Some((phase::SEND | phase::RECEIVE, _)) => &["tls.", "tcp.", "net.", "link.", "process.library."],
        Some((phase::WAIT, _)) => &["process.", "cgroup.", "http."],
        Some(_) | None => &[],
    }
}

/// What was negotiated and answered, except for what belongs to one answer.
fn told_by_targets<'a>(gap: &'a Gap<'_>) -> impl Iterator<Item = Difference> + 'a {
    let lasting = gap
        .case
        .plan
        .schema()
        .facts
        .iter()
        .filter(|of| of.label.is_some() && !of.is_of_answer && !of.is_address && of.compared == Compared::Whole);
    lasting.filter_map(move |of| {
        let told = |side: usize| gap.fact(side, |seen| seen.value(of.name).map(Value::to_string));
        let values = [told(gap.slow)?, told(gap.fast)?];
        let look = flip(gap, of.name).or_else(|| repeat::contact(&gap.case, [gap.slow, gap.fast]));
        difference(gap, of.name, of.label.unwrap_or(of.noun), values, look)
    })
}

/// Settings of databases that have no fact of their own.
fn settings_undeclared(gap: &Gap<'_>) -> impl Iterator<Item = Difference> {
    differing_undeclared(gap).into_iter().filter_map(|one| {
        let look = repeat::contact(&gap.case, [gap.slow, gap.fast]);
        difference(gap, &format!("sql.set.{}", one.name), one.name, one.values(), look)
    })
}

/// The command that compares both with the same of it on all targets, where there is a probe for that.
fn flip(gap: &Gap<'_>, name: &str) -> Option<String> {
    let kind: Kind = match name {
        web::TLS_CIPHER => SUITE.of(gap.fast),
        web::TLS_GROUP => GROUP.of(gap.fast),
        web::TLS_VERSION => TLS_12,
        web::KEEPS_ALIVE => ALL_CLOSE,
        _ => return None,
    };
    kind.possible(&gap.case).ok()?;
    let variation = kind.probe(&gap.case, gap.mode).variation;
    repeat::command(&gap.case, [0, gap.slow.max(gap.fast)], Some(&variation))
}

/// Facts of all of a server's processes that are also told of its first one: the same twice, where there are no others.
const OF_ALL_PROCESSES: [(&str, &str); 3] = [
    ("process.all_threads", "process.threads"),
    ("process.highest_nice", "process.nice"),
    ("process.policies", "process.policy"),
];

/// Facts of a server and of the network namespace that it runs in, of which one machine may have many.
const OF_ITS_OWN: [&str; 6] = ["process.", "cgroup.", "tcp.", "net.", "route.special", "firewall."];

/// What both machines are, except for what differs by nature; of one machine only what belongs to the servers and their namespaces.
fn told_by_machines<'a>(gap: &'a Gap<'_>) -> impl Iterator<Item = Difference> + 'a {
    let facts = |side: usize| gap.case.hosts.get(side).and_then(Option::as_ref);
    let both = facts(gap.slow).zip(facts(gap.fast));
    let boot = |side: usize| gap.host_fact(side, "os.boot_id");
    let is_one_machine = boot(gap.slow).is_some() && boot(gap.slow) == boot(gap.fast);
    both.into_iter().flat_map(move |(slow, fast)| {
        slow.0.iter().filter_map(move |(name, known)| {
            let is_of_machine = !OF_ITS_OWN.iter().any(|begin| name.starts_with(begin));
            let is_told_already = OF_ALL_PROCESSES.iter().any(|(of_all, of_first)| {
                name == of_all && [slow, fast].into_iter().all(|side| side.value(name) == side.value(of_first))
            });
            // What `cgroup.io_limits` tells in one.
            let is_part = name.starts_with("cgroup.io.");
            if is_told_already
                || is_part
                || is_one_machine && is_of_machine
                || Declaration::of(name).is_some_and(|of| of.compared == Compared::Never)
            {
                return None;
            }
            let values = [known.value()?, fast.value(name)?];
            if is_nearly_the_same(gap, slow, fast, name) {
                return None;
            }
            difference(gap, name, name, values.map(Value::to_string), look(gap, name))
        })
    })
}

/// Numbers that differ by less than what is told of targets, and texts that differ only in the number of a process.
fn is_nearly_the_same(gap: &Gap<'_>, slow: &Facts, fast: &Facts, name: &str) -> bool {
    if let (Some(slow), Some(fast)) = (slow.number(name), fast.number(name)) {
        return slow == fast || slow * fast > 0.0 && (slow / fast).ln().abs() <= gap.case.margin_log();
    }
    // Each server has a port and processes of its own, and tells of them in its command line.
    let without_own = |side: usize, facts: &Facts| {
        let own = |number: &str| number == pid(gap, side) || Some(number) == port(gap, side).as_deref();
        let text = facts.value(name).map(Value::to_string).unwrap_or_default();
        let parts = text.split_inclusive(|c: char| !c.is_ascii_digit());
        let kept = |part: &str| {
            let digits = part.trim_end_matches(|c: char| !c.is_ascii_digit());
            if own(digits) { part.replacen(digits, "#", 1) } else { part.to_owned() }
        };
        parts.map(kept).collect::<String>()
    };
    without_own(gap.slow, slow) == without_own(gap.fast, fast)
}

/// The port of a side's address.
fn port(gap: &Gap<'_>, side: usize) -> Option<String> {
    let address = &gap.case.plan.targets.get(side)?.address;
    let authority = address.split_once("://").map_or(&**address, |(_, rest)| rest).split('/').next()?;
    let (_, port) = authority.rsplit_once(':')?;
    port.parse::<u16>().ok().map(|port| port.to_string())
}

fn difference(gap: &Gap<'_>, name: &str, label: &str, values: [String; 2], look: Option<String>) -> Option<Difference> {
    let [slow, fast] = values.map(|value| sanitize_line(&value));
    if slow == fast {
        return None;
    }
    let is_long = slow.len().max(fast.len()) > LONG;
    let (slow, fast) = if is_long || name == COMMAND_LINE { apart(&slow, &fast)? } else { (slow, fast) };
    let text = format!("{}: {slow} on {}, {fast} on {}", sanitize_line(label), gap.slow_name(), gap.fast_name());
    Some(Difference { name: sanitize_line(name), kind: DifferenceKind::Fact, slow, fast, text, look })
}

/// Of long texts the words that are in one of them alone; `None` where they have the same words in another order.
fn apart(slow: &str, fast: &str) -> Option<(String, String)> {
    let words = |text: &'_ str| -> BTreeSet<String> { text.split_whitespace().map(str::to_owned).collect() };
    let (of_slow, of_fast) = (words(slow), words(fast));
    let own = |mine: &BTreeSet<String>, others: &BTreeSet<String>| {
        let own: Vec<&str> = mine.difference(others).map(String::as_str).collect();
        let text = if own.is_empty() { "nothing else".to_owned() } else { own.join(" ") };
        match text.char_indices().nth(LONG) {
            Some((end, _)) => format!("{}...", &text[..end]),
            None => text,
        }
    };
    (of_slow != of_fast).then(|| (own(&of_slow, &of_fast), own(&of_fast, &of_slow)))
}

/// How to look at a fact of a machine. What it is called comes from that machine: it is used only where it is a plain word.
fn look(gap: &Gap<'_>, name: &str) -> Option<String> {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    let pid = pid(gap, gap.slow);
    let (first, rest) = name.split_once('.')?;
    Some(match first {
        "net" | "vm" | "fs" | "kernel" if is_plain => format!("sysctl {name}"),
        "tcp" if is_plain && rest.starts_with("tcp_") => format!("sysctl net.ipv4.{rest}"),
        "process" => match rest.split('.').next()? {
            "library" | "libraries" => format!("grep -F .so /proc/{pid}/maps"),
            "limit" => format!("cat /proc/{pid}/limits"),
            "nice" | "highest_nice" | "policy" | "policies" => by_hand::priority(gap, gap.slow),
            "seccomp" | "seccomp_filters" => by_hand::hooks(gap, gap.slow),
            "environment" => format!("tr '\\0' '\\n' </proc/{pid}/environ"),
            "command_line" => format!("tr '\\0' ' ' </proc/{pid}/cmdline"),
            _ => format!("cat /proc/{pid}/status"),
        },
        "cgroup" if rest.starts_with("memory") => by_hand::memory_limit(gap, gap.slow),
        "cgroup" if rest.starts_with("io_") => by_hand::io_limits(gap, gap.slow),
        "cgroup" if rest.starts_with("least_cpu_weight") => by_hand::priority(gap, gap.slow),
        "cgroup" => by_hand::quota(gap, gap.slow),
        "audit" => "auditctl -l".to_owned(),
        "cpu" if rest.starts_with("mitigations") => "grep . /sys/devices/system/cpu/vulnerabilities/*".to_owned(),
        "cpu" => "lscpu".to_owned(),
        "memory" if rest.starts_with("transparent_huge") => "grep . /sys/kernel/mm/transparent_hugepage/*".to_owned(),
        "memory" => "cat /proc/meminfo".to_owned(),
        "disk" => "lsblk -O".to_owned(),
        "mount" => "findmnt".to_owned(),
        "link" if rest.ends_with(".interrupt_cpus") => {
            "cat /proc/interrupts; grep . /proc/irq/*/effective_affinity_list".to_owned()
        }
        "link" => "ip -d link".to_owned(),
        "listen" => "ss -lnt".to_owned(),
        "os" => "uname -a; cat /proc/cmdline".to_owned(),
        _ => return None,
    })
}
