//! Disks and file systems.

use super::lines::{Lines, base, number};
use super::memory::chosen;
use super::sheet::Sheet;
use super::{Context, Readings};

/// `/proc/diskstats` counts in sectors of 512 bytes, whatever the disk's are (Documentation/block/stat.rst).
const SECTOR_BYTES: u64 = 512;

/// File systems that hold no data of a server.
const NO_DATA: [&str; 22] = [
    "proc",
    "sysfs",
    "cgroup",
    "cgroup2",
    "devpts",
    "devtmpfs",
    "securityfs",
    "pstore",
    "bpf",
    "debugfs",
    "tracefs",
    "mqueue",
    "hugetlbfs",
    "configfs",
    "fusectl",
    "autofs",
    "binfmt_misc",
    "rpc_pipefs",
    "nsfs",
    "efivarfs",
    "squashfs",
    "ramfs",
];

/// Disks with their queues, and mounts.
pub(super) fn facts(sheet: &mut Sheet<'_>, context: &mut Context) {
    for line in sheet.lines("disks") {
        let Some((path, value)) = line.split_once(':') else { continue };
        let Some((_, rest)) = path.split_once("/block/") else { continue };
        let Some((disk, _)) = rest.split_once('/') else { continue };
        context.disks.insert(disk.to_owned());
        match base(path) {
            "size" => {
                if let Some(bytes) = number(value, 0).and_then(|sectors| sectors.checked_mul(SECTOR_BYTES)) {
                    sheet.set(format!("disk.{disk}.size_bytes"), bytes.to_string());
                }
            }
            "scheduler" => sheet.set(format!("disk.{disk}.scheduler"), chosen(value)),
            "read_ahead_kb" => sheet.set(format!("disk.{disk}.read_ahead_kib"), value),
            name @ ("logical_block_size" | "physical_block_size") => {
                sheet.set(format!("disk.{disk}.{}_bytes", name.trim_end_matches("_size")), value);
            }
            name => sheet.set(format!("disk.{disk}.{name}"), value),
        }
    }
    if context.disks.is_empty() {
        sheet.promised("disks", &["disk"]);
    }
    let mut count = 0;
    for line in sheet.lines("mounts") {
        let mut words = line.split_ascii_whitespace();
        let (Some(device), Some(place), Some(kind), Some(options)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        if place.starts_with('/') && !NO_DATA.contains(&kind) && count < 64 {
            count += 1;
            sheet.set(format!("mount.{place}"), format!("{kind} {options} {device}"));
        }
    }
    if count == 0 {
        sheet.promised("mounts", &["mount"]);
    }
}

/// Operations, bytes and times of each disk that has done anything.
pub(super) fn sample(lines: &Lines<'_>, context: &Context, readings: &mut Readings) {
    for line in lines.file("/diskstats") {
        let mut words = line.split_ascii_whitespace().skip(2);
        let Some(name) = words.next() else { continue };
        if !context.disks.is_empty() && !context.disks.contains(name)
            || name.starts_with("loop")
            || name.starts_with("ram")
        {
            continue;
        }
        let values: Vec<Option<u64>> = words.map(|word| word.parse().ok()).collect();
        // Documentation/admin-guide/iostats.rst, fields 1 to 17.
        let field = |n: usize| values.get(n - 1).copied().flatten();
        if field(1).unwrap_or(0) == 0 && field(5).unwrap_or(0) == 0 {
            continue;
        }
        for (n, key, unit) in [
            (1, "reads", 1),
            (3, "read_bytes", SECTOR_BYTES),
            (4, "read_ns", 1_000_000),
            (5, "writes", 1),
            (7, "written_bytes", SECTOR_BYTES),
            (8, "write_ns", 1_000_000),
            (10, "busy_ns", 1_000_000),
            (11, "queue_ns", 1_000_000),
            (16, "flushes", 1),
            (17, "flush_ns", 1_000_000),
        ] {
            readings.count(format!("disk.{name}.{key}"), field(n).and_then(|value| value.checked_mul(unit)));
        }
        readings.gauge(format!("disk.{name}.in_flight"), field(9).map(|value| value as f64));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests_support::readings;

    #[test]
    fn old_and_new_kernels() {
        let readings = readings(
            "/proc/diskstats: 8 0 sda 10 0 100 7 20 0 200 9 1 11 13 0 0 0 0 5 6\n/proc/diskstats: 8 16 sdb 10 0 100 7 20 0 200 9 1 11 13\n\
             /proc/diskstats: 7 0 loop0 10 0 100 7 20 0 200 9 1 11 13\n/proc/diskstats: 8 32 sdc 0 0 0 0 0 0 0 0 0 0 0\n",
        );
        assert_eq!(
            (readings.counters["disk.sda.read_bytes"], readings.counters["disk.sda.flush_ns"]),
            (51_200, 6_000_000)
        );
        assert_eq!(readings.counters.get("disk.sdb.flushes"), None);
        assert!(!readings.counters.keys().any(|key| key.contains("loop") || key.contains("sdc")));
    }
}
