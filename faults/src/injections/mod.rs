//! The faults: a file for each cause says how it is injected, in which set-ups, at which strengths, and how to see that
//! it bites without asking duel.

mod disk;
mod doubles;
pub(crate) mod drawn;
mod net;
mod none;
mod sql;
mod unproven;

macro_rules! causes {
    ($($module:ident),* $(,)?) => {
        $(mod $module;)*

        /// Every case, in the catalogue's order of causes.
        pub(crate) fn cases() -> Vec<Case> {
            let mut cases = none::cases();
            $(cases.extend($module::cases());)*
            cases.extend(doubles::cases());
            cases.extend(net::cases());
            cases.extend(disk::cases());
            cases.extend(sql::cases());
            cases
        }
    };
}

causes!(
    aes_unused,
    no_asm,
    slow_cipher,
    large_key,
    slow_group,
    no_resumption,
    extra_round_trip,
    path_delay,
    small_window,
    loss,
    rate_cap,
    delayed_ack,
    backlog_overflow,
    slow_path,
    small_mtu,
    initcwnd,
    idle_restart,
    congestion_control,
    filter_chain,
    client_limit,
    extra_hop,
    slow_names,
    address_fallback,
    address_family,
    no_keepalive,
    upstream_no_keepalive,
    slow_upstream,
    upstream_workers,
    proxy_buffering,
    few_workers,
    compression,
    no_sendfile,
    sync_logging,
    larger_response,
    version,
    h2_streams,
    h2_window,
    quota,
    fewer_cores,
    slower_cpu,
    noisy_neighbour,
    priority,
    traced,
    security_hooks,
    slow_clock,
    memory_limit,
    cold_cache,
    slow_reads,
    group_limit,
    lock_contention,
    pauses,
    bad_backend,
);

use crate::arena::Arena;
use crate::case::{Bite, Case, Injection, Setup};
use crate::kinds::web::{H2load, Requests, ToolLoad};
use crate::servers::Up;
use crate::twin::{Address, Companion, Front, Key, Log, Path, Server, Twin, Versions};
pub(crate) use unproven::UNPROVEN;

/// Where Java's virtual machine looks for words of whoever cannot change its command line.
pub(crate) const JAVA_OPTIONS: &str = "JAVA_TOOL_OPTIONS";

/// Server CPU time per request under load, in microseconds, healthy and faulty.
fn cpu_per_request(arena: &Arena, load: &ToolLoad) -> anyhow::Result<(f64, f64)> {
    arena.by_turns(|up| Ok(arena.client.load(up, load)?.server_cpu_us))
}

/// Time per request under load, in milliseconds.
fn ms_per_request(arena: &Arena, load: &ToolLoad) -> anyhow::Result<(f64, f64)> {
    arena.by_turns(|up| Ok(1e3 / arena.client.load(up, load)?.per_s))
}

/// Bytes that the server's processes have had read from disks.
fn disk_bytes(up: &Up) -> anyhow::Result<f64> {
    let mut sum = 0.0;
    for pid in up.pids()? {
        let io = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        let line = io.lines().find_map(|line| line.strip_prefix("read_bytes: "));
        sum += line.and_then(|bytes| bytes.parse::<f64>().ok()).unwrap_or(0.0);
    }
    Ok(sum)
}

/// A counter of the kernel's in the server's namespace, as `nstat` calls it, and how much it grows by `doing`.
fn growth(up: &Up, counter: &str, doing: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let read = || -> anyhow::Result<f64> {
        let text = up.namespace().run("nstat", &["-asz", counter])?;
        let row = text.lines().find(|line| line.starts_with(counter)).unwrap_or_default();
        Ok(row.split_whitespace().nth(1).and_then(|value| value.parse().ok()).unwrap_or(0.0))
    };
    let before = read()?;
    doing()?;
    Ok(read()? - before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_case_has_an_id_of_its_own() {
        let cases = cases();
        let ids: BTreeSet<&str> = cases.iter().map(|case| case.id.as_str()).collect();
        assert_eq!(ids.len(), cases.len());
        assert!(ids.iter().all(|id| !id.contains(char::is_whitespace)));
    }

    #[test]
    fn twins_differ_where_there_is_a_fault_and_only_there() {
        for case in cases() {
            let (differ, verified) = case.trial.differ_and_verify();
            let expected = !case.truth.is_empty() && case.unavailable.is_none();
            assert_eq!(differ, expected, "{}", case.id);
            assert_eq!(verified, case.truth.len(), "{}", case.id);
        }
    }
}
