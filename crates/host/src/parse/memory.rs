//! Memory: how much, and what is read again for want of it.

use super::lines::{Lines, base, named};
use super::sheet::Sheet;
use super::{Context, Readings};

/// Size, swap, huge pages, and the kernel's settings.
pub(super) fn facts(sheet: &mut Sheet<'_>) {
    for line in sheet.lines("memory") {
        let Some((path, rest)) = line.split_once(':') else { continue };
        match base(path) {
            "meminfo" => {
                for (name, key) in [
                    ("MemTotal", "memory.total_bytes"),
                    ("MemAvailable", "memory.available_bytes"),
                    ("SwapTotal", "memory.swap_bytes"),
                    ("Hugetlb", "memory.huge_pages_bytes"),
                ] {
                    if let Some(bytes) = named(&[rest], name).and_then(|kib| kib.checked_mul(1024)) {
                        sheet.set(key, bytes.to_string());
                    }
                }
            }
            "enabled" => sheet.set("memory.transparent_huge_pages", chosen(rest)),
            "defrag" => sheet.set("memory.transparent_huge_pages_defrag", chosen(rest)),
            _ => {}
        }
    }
    sheet.promised("memory", &["memory.total_bytes", "memory.swap_bytes", "memory.transparent_huge_pages"]);
    for line in sheet.lines("sysctl") {
        let Some((path, value)) = line.split_once(':') else { continue };
        let Some((_, name)) = path.split_once("/sys/") else { continue };
        let key = match name.strip_prefix("net/ipv4/tcp_") {
            // Keys of hosts with and without a name that changes now and then; nobody's speed depends on them.
            Some("fastopen_key") => continue,
            Some(rest) => format!("tcp.tcp_{rest}"),
            None => name.replace('/', "."),
        };
        sheet.set(key, value.split_ascii_whitespace().collect::<Vec<_>>().join(" "));
    }
    sheet.promised(
        "sysctl",
        &["tcp.tcp_rmem", "tcp.tcp_wmem", "tcp.tcp_congestion_control", "net.core.somaxconn", "vm.swappiness"],
    );
}

/// Of `always [madvise] never` the chosen one.
pub(super) fn chosen(list: &str) -> &str {
    list.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(list, |(chosen, _)| chosen)
}

/// Faults, refaults, reclaim, swap, and what memory is used for.
pub(super) fn sample(lines: &Lines<'_>, context: &Context, readings: &mut Readings) {
    let vmstat = lines.file("/vmstat");
    for (name, key) in [
        ("pgfault", "memory.faults"),
        ("pgmajfault", "memory.major_faults"),
        ("workingset_refault_file", "memory.refaults_file"),
        ("workingset_refault_anon", "memory.refaults_anon"),
        ("workingset_refault", "memory.refaults_file"),
        ("oom_kill", "memory.oom_kills"),
        ("compact_stall", "memory.compaction_stalls"),
        ("thp_fault_alloc", "memory.huge_faults"),
        ("pgscan_direct", "memory.scanned_directly_pages"),
        ("pgsteal_direct", "memory.reclaimed_directly_pages"),
        ("balloon_inflate", "memory.balloon_inflations"),
    ] {
        readings.count(key, named(vmstat, name));
    }
    for (name, key, unit_bytes) in [
        ("pswpin", "memory.swapped_in_bytes", context.page_bytes),
        ("pswpout", "memory.swapped_out_bytes", context.page_bytes),
        // These two are counted in KiB (Documentation/admin-guide/sysctl of the kernel's vmstat.c: "in kilobytes").
        ("pgpgin", "memory.paged_in_bytes", 1024),
        ("pgpgout", "memory.paged_out_bytes", 1024),
    ] {
        readings.count(key, named(vmstat, name).and_then(|count| count.checked_mul(unit_bytes)));
    }
    let meminfo = lines.file("/meminfo");
    for (name, key) in [
        ("MemFree", "memory.free_bytes"),
        ("MemAvailable", "memory.available_bytes"),
        ("Cached", "memory.cached_bytes"),
        ("Dirty", "memory.dirty_bytes"),
        ("Writeback", "memory.writeback_bytes"),
        ("Slab", "memory.slab_bytes"),
        ("SwapFree", "memory.swap_free_bytes"),
    ] {
        readings.gauge(key, named(meminfo, name).map(|kib| kib as f64 * 1024.0));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests_support::readings;
    use super::chosen;

    #[test]
    fn faults_and_bytes() {
        let readings = readings(
            "/proc/vmstat:pgfault 5\n/proc/vmstat:pgmajfault 2\n/proc/vmstat:pswpin 3\n/proc/meminfo:Dirty:  7 kB\n",
        );
        assert_eq!((readings.counters["memory.faults"], readings.counters["memory.major_faults"]), (5, 2));
        assert_eq!(readings.counters["memory.swapped_in_bytes"], 12_288);
        assert_eq!(readings.counters.get("memory.oom_kills"), None);
        assert_eq!(readings.gauges["memory.dirty_bytes"], 7168.0);
        assert_eq!((chosen("always [madvise] never"), chosen("none")), ("madvise", "none"));
    }
}
