//! Control groups, versions 1 and 2: limits anywhere above the server hold for it.

use super::Readings;
use super::cpu::pressure;
use super::lines::{Lines, base, named, number};
use super::sheet::Sheet;
use std::collections::BTreeMap;

/// Version 1 tells "no limit" as the largest multiple of a page; no machine has 2^60 bytes.
const NO_LIMIT_BYTES: u64 = 1 << 60;

/// The path, and the strictest limits of the cgroup and all above it.
pub(super) fn facts(sheet: &mut Sheet<'_>) {
    let paths: Vec<&str> = sheet.lines("cgroup_path").filter(|line| is_path(line)).take(24).collect();
    // With only `0::PATH` all controllers are in the unified hierarchy; beside others it is commonly empty.
    match paths.as_slice() {
        [] => {}
        [only] if only.starts_with("0::") => {
            sheet.set("cgroup.version", "2");
            sheet.set("cgroup.path", &only[3..]);
        }
        several => {
            sheet.set("cgroup.version", "1");
            sheet.set("cgroup.path", several.join(" "));
        }
    }
    if sheet.value("cgroup.version").is_some() {
        let limits = Limits::of(sheet.lines("cgroup"));
        let hidden = what_is_hidden(sheet, &paths);
        let io = (!limits.io.is_empty()).then(|| limits.io.join("; "));
        for (key, limit) in [
            ("cgroup.cpu_quota_cpus", limits.cpus.map(|cpus| format!("{cpus:.3}"))),
            ("cgroup.memory_limit_bytes", limits.memory_bytes.map(|bytes| bytes.to_string())),
            ("cgroup.least_cpu_weight", limits.cpu_weight.map(|weight| format!("{weight:.1}"))),
            ("cgroup.io_limits", io),
        ] {
            let is_weight = key == "cgroup.least_cpu_weight";
            match (limit, hidden) {
                // A limit holds wherever it is found. The least weight may be that of a group that is not seen.
                (Some(_), Some(why)) if is_weight => sheet.unavailable(key, why),
                (Some(limit), _) => sheet.set(key, limit),
                // Nobody has told the group's processes apart from others.
                (None, None) if is_weight => sheet.set(key, "100.0"),
                (None, None) => sheet.set(key, "none"),
                (None, Some(why)) => sheet.unavailable(key, why),
            }
        }
        sheet.set("cgroup.cpus", limits.cpuset.unwrap_or_default());
        for ((device, what), per_s) in limits.devices {
            sheet.set(format!("cgroup.io.{device}.{what}_per_s"), per_s.to_string());
        }
    }
    sheet.promised("cgroup_path", &["cgroup.version", "cgroup.path"]);
    sheet.promised(
        "cgroup",
        &[
            "cgroup.cpu_quota_cpus",
            "cgroup.memory_limit_bytes",
            "cgroup.least_cpu_weight",
            "cgroup.io_limits",
            "cgroup.cpus",
        ],
    );
}

/// Why limits that were not found may be there all the same; `None` where all were to be seen.
fn what_is_hidden(sheet: &Sheet<'_>, paths: &[&str]) -> Option<&'static str> {
    /// The kernel's number for the namespace that shows all groups (`PROC_CGROUP_INIT_INO`). Kernels without have one such.
    const INITIAL: &str = "cgroup:[4026531835]";
    let within = sheet.lines("cgroup_path").find_map(|line| line.strip_prefix("namespace "));
    // A group that is not below our own root is shown by its way up and down again.
    let beside = paths.iter().any(|path| path.contains("/.."));
    let is_root = paths.iter().all(|path| path.ends_with(":/"));
    match () {
        () if beside || within.is_some_and(|namespace| namespace != INITIAL) => {
            Some("groups above the root of a container's namespace are not shown in it")
        }
        () if !is_root && sheet.lines("cgroup").all(|line| split(line).is_none()) => {
            Some("no group's limits are shown here")
        }
        () => None,
    }
}

/// `NUMBER:CONTROLLERS:PATH`.
fn is_path(line: &str) -> bool {
    line.split_once(':').is_some_and(|(number, rest)| number.parse::<u32>().is_ok() && rest.contains(":/"))
}

/// What limits anywhere above leave.
#[derive(Debug, Default, PartialEq)]
struct Limits<'a> {
    /// CPU time per time.
    cpus: Option<f64>,
    memory_bytes: Option<u64>,
    /// The least right to CPUs against others beside any of the groups, in the units of version 2: 100 is usual.
    cpu_weight: Option<f64>,
    /// Of the cgroup itself, which is what all above it leave.
    cpuset: Option<&'a str>,
    io: Vec<String>,
    /// What the strictest of these lets pass per second, by device and as its counter is called.
    devices: BTreeMap<(&'a str, &'static str), u64>,
}

/// Devices that are read at most; machines with containers have a hundred loop devices, which come first.
const MOST_DEVICES: usize = 256;

/// What is limited for a device, by the names of version 1, by those of both kinds of lines of version 2, and as its counter is called.
const OF_DEVICES: [[&str; 4]; 4] = [
    ["blkio.throttle.read_bps_device", "rbps", "rbytes", "read_bytes"],
    ["blkio.throttle.write_bps_device", "wbps", "wbytes", "written_bytes"],
    ["blkio.throttle.read_iops_device", "riops", "rios", "reads"],
    ["blkio.throttle.write_iops_device", "wiops", "wios", "writes"],
];

/// `MAJOR:MINOR` before the first blank, and what comes behind.
fn of_device(line: &str) -> Option<(&str, &str)> {
    let (device, rest) = line.trim().split_once(' ')?;
    let (major, minor) = device.split_once(':')?;
    let is_number = |text: &str| (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(major) && is_number(minor)).then_some((device, rest.trim()))
}

/// The number behind `NAME=`, which is none where it is `max`.
fn assigned(line: &str, name: &str) -> Option<u64> {
    line.split_ascii_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}

impl<'a> Limits<'a> {
    /// From lines `PATH:VALUE`, folders from the top downwards.
    fn of(lines: impl Iterator<Item = &'a str>) -> Self {
        let mut limits = Self::default();
        let mut quotas_us: BTreeMap<&str, u64> = BTreeMap::new();
        for line in lines {
            let Some((path, value)) = split(line) else { continue };
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
            let share = |quota_us: Option<u64>, period_us: Option<u64>| {
                Some(quota_us? as f64 / period_us.filter(|period_us| *period_us > 0)? as f64)
            };
            match name {
                "cpu.max" => limits.cpus = least(limits.cpus, share(number(value, 0), number(value, 1)), f64::min),
                // -1 is no limit, and no number.
                "cpu.cfs_quota_us" => quotas_us.extend(number(value, 0).map(|quota_us| (folder, quota_us))),
                "cpu.cfs_period_us" => {
                    let quota_us = quotas_us.get(folder).copied();
                    limits.cpus = least(limits.cpus, share(quota_us, number(value, 0)), f64::min);
                }
                "cpu.weight" => limits.cpu_weight = least(limits.cpu_weight, weight(value), f64::min),
                // The root has no others beside it.
                "cpu.shares" if group_of(folder, "cpu") != Some("") => {
                    let weight = weight(value).map(|shares| shares * 100.0 / 1024.0);
                    limits.cpu_weight = least(limits.cpu_weight, weight, f64::min);
                }
                "memory.max" | "memory.high" | "memory.limit_in_bytes" => {
                    let bytes = number(value, 0).filter(|bytes| *bytes < NO_LIMIT_BYTES);
                    limits.memory_bytes = least(limits.memory_bytes, bytes, u64::min);
                }
                "cpuset.cpus.effective" | "cpuset.effective_cpus" => limits.cpuset = Some(value.trim()),
                _ if name == "io.max" || name.starts_with("blkio.throttle.") => {
                    if limits.io.len() < 32 {
                        limits.io.push(format!("{name} {}", value.trim()));
                    }
                    if limits.devices.len() < MOST_DEVICES {
                        limits.limit_device(name, value);
                    }
                }
                _ => {}
            }
        }
        limits
    }

    fn limit_device(&mut self, file: &str, value: &'a str) {
        let Some((device, rest)) = of_device(value) else { return };
        for [of_version_1, of_version_2, _, what] in OF_DEVICES {
            let per_s = match file {
                "io.max" => assigned(rest, of_version_2),
                _ if file == of_version_1 => number(rest, 0),
                _ => None,
            };
            if let Some(per_s) = per_s.filter(|per_s| *per_s > 0) {
                let strictest = self.devices.entry((device, what)).or_insert(per_s);
                *strictest = per_s.min(*strictest);
            }
        }
    }
}

fn weight(value: &str) -> Option<f64> {
    number(value, 0).map(|weight| weight as f64)
}

fn least<T: Copy>(one: Option<T>, other: Option<T>, min: fn(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(min(one, other)),
        (one, other) => one.or(other),
    }
}

/// Parts `PATH:VALUE` at the first colon behind a file's name; a folder's name may hold colons.
fn split(line: &str) -> Option<(&str, &str)> {
    let known = |path: &str| {
        ["cpu.", "cpuset.", "memory.", "io.", "blkio.", "pids."].iter().any(|start| base(path).starts_with(start))
    };
    let at = line.match_indices(':').map(|(at, _)| at).find(|&at| known(&line[..at]))?;
    Some((&line[..at], &line[at + 1..]))
}

/// Throttling, CPU, memory and pressure of the server's cgroup.
pub(super) fn sample(lines: &Lines<'_>, readings: &mut Readings) {
    let folders = lines.ending("/cpu.stat");
    // Each level throttles for itself, so what the server suffers is the sum. The times of several levels may overlap.
    let sum = |name: &str, unit: u64| {
        let values = folders.iter().filter_map(|(_, lines)| named(lines, name));
        values.map(|value| value.checked_mul(unit)).reduce(|sum, value| sum?.checked_add(value?)).flatten()
    };
    readings.count("cgroup.cpu_periods", sum("nr_periods", 1));
    readings.count("cgroup.throttled_periods", sum("nr_throttled", 1));
    // Version 2 counts microseconds, version 1 nanoseconds.
    readings.count("cgroup.throttled_ns", sum("throttled_usec", 1000).or_else(|| sum("throttled_time", 1)));
    // Version 1 has a file of this name too, without these.
    let with_usage: Vec<_> =
        folders.iter().copied().filter(|(_, lines)| named(lines, "usage_usec").is_some()).collect();
    if let Some((_, own)) = deepest(&with_usage) {
        for (name, key) in
            [("usage_usec", "cgroup.cpu_ns"), ("user_usec", "cgroup.user_ns"), ("system_usec", "cgroup.system_ns")]
        {
            readings.count(key, named(own, name).and_then(|us| us.checked_mul(1000)));
        }
    }
    let own = |file: &str| {
        let found = lines.ending(file);
        deepest(&found).map(|(_, lines)| lines)
    };
    // Version 1 may keep the time in another tree than the quota: that of another group there is not what a quota left.
    let usage = deepest(&lines.ending("/cpuacct.usage"));
    if let Some((folder, usage)) = usage
        && let Some((limited, _)) = deepest(&folders)
        && group_of(folder, "cpuacct").is_some_and(|group| group_of(limited, "cpu") == Some(group))
    {
        readings.count("cgroup.cpu_ns", usage.first().and_then(|line| number(line, 0)));
    }
    let memory = own("/memory.current").or_else(|| own("/memory.usage_in_bytes"));
    readings.gauge("cgroup.memory_bytes", memory.and_then(|lines| Some(number(lines.first()?, 0)? as f64)));
    if let Some(events) = own("/memory.events") {
        for (name, key) in [
            ("high", "cgroup.memory_high_events"),
            ("max", "cgroup.memory_limit_hits"),
            ("oom_kill", "cgroup.oom_kills"),
        ] {
            readings.count(key, named(events, name));
        }
    }
    if let Some(hits) = own("/memory.failcnt") {
        readings.count("cgroup.memory_limit_hits", hits.first().and_then(|line| number(line, 0)));
    }
    devices(&own, readings);
    for subject in ["cpu", "memory", "io"] {
        if let Some(lines) = own(&format!("/{subject}.pressure")) {
            pressure(lines, &format!("cgroup.pressure.{subject}"), readings);
        }
    }
}

/// What the server's group has had each device do: of version 1 only where something is throttled.
fn devices<'a>(own: &impl Fn(&str) -> Option<&'a [&'a str]>, readings: &mut Readings) {
    for line in own("/io.stat").unwrap_or_default().iter().take(MOST_DEVICES) {
        let Some((device, rest)) = of_device(line) else { continue };
        for [_, _, name, what] in OF_DEVICES {
            readings.count(format!("cgroup.io.{device}.{what}"), assigned(rest, name));
        }
    }
    for (file, read, written) in [
        ("/blkio.throttle.io_service_bytes_recursive", "read_bytes", "written_bytes"),
        ("/blkio.throttle.io_serviced_recursive", "reads", "writes"),
    ] {
        // Each device has six lines.
        for line in own(file).unwrap_or_default().iter().take(6 * MOST_DEVICES) {
            let Some((device, rest)) = of_device(line) else { continue };
            let what = match rest.split_once(' ') {
                Some(("Read", _)) => read,
                Some(("Write", _)) => written,
                _ => continue,
            };
            readings.count(format!("cgroup.io.{device}.{what}"), number(rest, 1));
        }
    }
}

/// The group that a folder of version 1 is, below where this controller is mounted: `/sys/fs/cgroup/cpu,cpuacct/a/b` is `a/b`.
fn group_of<'a>(folder: &'a str, controller: &str) -> Option<&'a str> {
    let mut rest = folder;
    while let Some((name, below)) = rest.split_once('/') {
        if name.split(',').any(|mounted| mounted == controller) {
            return Some(below);
        }
        rest = below;
    }
    rest.split(',').any(|mounted| mounted == controller).then_some("")
}

/// The server's own folder among those above it.
fn deepest<'a, 'b>(folders: &[(&'a str, &'b [&'a str])]) -> Option<(&'a str, &'b [&'a str])> {
    folders.iter().copied().max_by_key(|(folder, _)| folder.len())
}

#[cfg(test)]
mod tests {
    use super::super::tests_support::{facts_of, readings};

    #[test]
    fn version_2() {
        let facts = facts_of(&[
            ("cgroup_path", "0::/system.slice/nginx.service\n"),
            (
                "cgroup",
                "/sys/fs/cgroup/system.slice/cpu.max:max 100000\n/sys/fs/cgroup/system.slice/memory.max:1000\n\
              /sys/fs/cgroup/system.slice/nginx.service/cpu.max:50000 100000\n/sys/fs/cgroup/system.slice/nginx.service/memory.max:max\n\
              /sys/fs/cgroup/system.slice/nginx.service/cpuset.cpus.effective:0-1\n",
            ),
        ]);
        let value = |key: &str| facts.text(&format!("cgroup.{key}"));
        assert_eq!((value("version"), value("path")), (Some("2"), Some("/system.slice/nginx.service")));
        assert_eq!((value("cpu_quota_cpus"), value("memory_limit_bytes")), (Some("0.500"), Some("1000")));
        assert_eq!((value("cpus"), value("io_limits")), (Some("0-1"), Some("none")));
        let readings = readings(
            "/sys/fs/cgroup/cpu.stat:usage_usec 100\n/sys/fs/cgroup/a:b/cpu.stat:usage_usec 7\n/sys/fs/cgroup/a:b/cpu.stat:nr_throttled 3\n\
             /sys/fs/cgroup/a:b/cpu.stat:throttled_usec 5\n/sys/fs/cgroup/a:b/memory.events:oom_kill 2\n\
             /sys/fs/cgroup/a:b/cpu.pressure:some avg10=0 total=9\n/sys/fs/cgroup/cpu.pressure:some avg10=0 total=99\n",
        );
        assert_eq!((readings.counters["cgroup.cpu_ns"], readings.counters["cgroup.throttled_ns"]), (7000, 5000));
        assert_eq!(
            (readings.counters["cgroup.oom_kills"], readings.counters["cgroup.pressure.cpu.some_ns"]),
            (2, 9000)
        );
    }

    #[test]
    fn version_1() {
        let facts = facts_of(&[
            ("cgroup_path", "4:memory:/x\n1:cpu:/q\n0::/\n"),
            (
                "cgroup",
                "/sys/fs/cgroup/cpu/cpu.cfs_quota_us:-1\n/sys/fs/cgroup/cpu/cpu.cfs_period_us:100000\n\
              /sys/fs/cgroup/cpu/q/cpu.cfs_quota_us:150000\n/sys/fs/cgroup/cpu/q/cpu.cfs_period_us:100000\n\
              /sys/fs/cgroup/memory/x/memory.limit_in_bytes:9223372036854771712\n\
              /sys/fs/cgroup/blkio/x/blkio.throttle.read_iops_device:254:0 100\n",
            ),
        ]);
        let value = |key: &str| facts.text(&format!("cgroup.{key}"));
        assert_eq!(
            (value("version"), value("cpu_quota_cpus"), value("memory_limit_bytes")),
            (Some("1"), Some("1.500"), Some("none"))
        );
        assert_eq!(value("io_limits"), Some("blkio.throttle.read_iops_device 254:0 100"));
        let readings = readings(
            "/sys/fs/cgroup/cpu/cpu.stat:nr_throttled 1\n/sys/fs/cgroup/cpu/q/cpu.stat:nr_throttled 2\n\
             /sys/fs/cgroup/cpu/q/cpu.stat:throttled_time 70\n/sys/fs/cgroup/cpuacct/q/cpuacct.usage:55\n\
             /sys/fs/cgroup/memory/x/memory.failcnt:4\n/sys/fs/cgroup/memory/x/memory.usage_in_bytes:4096\n",
        );
        assert_eq!((readings.counters["cgroup.throttled_periods"], readings.counters["cgroup.throttled_ns"]), (3, 70));
        assert_eq!((readings.counters["cgroup.cpu_ns"], readings.counters["cgroup.memory_limit_hits"]), (55, 4));
        assert_eq!(readings.gauges["cgroup.memory_bytes"], 4096.0);
    }

    #[test]
    fn time_of_another_group_is_not_what_a_quota_left() {
        let counted = |sample: &str| readings(sample).counters.get("cgroup.cpu_ns").copied();
        let quota = "/sys/fs/cgroup/cpu/cpu.stat:nr_throttled 0\n/sys/fs/cgroup/cpu/q/cpu.stat:throttled_time 70\n";
        assert_eq!(counted(&format!("{quota}/sys/fs/cgroup/cpuacct/cpuacct.usage:99\n")), None, "of the whole machine");
        assert_eq!(counted(&format!("{quota}/sys/fs/cgroup/cpuacct/other/cpuacct.usage:99\n")), None);
        assert_eq!(counted(&format!("{quota}/sys/fs/cgroup/cpuacct/q/cpuacct.usage:9\n")), Some(9));
        let mounted_together = "/sys/fs/cgroup/cpu,cpuacct/q/r/cpu.stat:throttled_time 70\n\
                                /sys/fs/cgroup/cpu,cpuacct/q/r/cpuacct.usage:9\n";
        assert_eq!(counted(mounted_together), Some(9));
    }

    #[test]
    fn groups_above_a_namespace_may_have_limits() {
        let quota = |path: &str, limits: &str| {
            let facts = facts_of(&[("cgroup_path", path), ("cgroup", limits)]);
            facts.text("cgroup.cpu_quota_cpus").map(str::to_owned)
        };
        let initial = "namespace cgroup:[4026531835]\n";
        let unlimited = "/sys/fs/cgroup/x/cpu.max:max 100000\n";
        assert_eq!(quota(&format!("0::/x\n{initial}"), unlimited).as_deref(), Some("none"));
        assert_eq!(quota(&format!("0::/\n{initial}"), "").as_deref(), Some("none"), "the root has no limits");
        assert_eq!(quota("0::/x\nnamespace cgroup:[4026532700]\n", unlimited), None, "within a container");
        assert_eq!(quota("0::/../y\nnamespace cgroup:[4026532700]\n", ""), None, "another container");
        assert_eq!(quota(&format!("0::/x\n{initial}"), ""), None, "nothing is mounted");
        let limited = "/sys/fs/cgroup/cpu.max:50000 100000\n";
        assert_eq!(quota("0::/\nnamespace cgroup:[4026532700]\n", limited).as_deref(), Some("0.500"));
    }

    #[test]
    fn the_least_weight_of_any_group_above_is_told_in_one_unit() {
        let weight = |path: &str, limits: &str| {
            let facts = facts_of(&[("cgroup_path", path), ("cgroup", limits)]);
            facts.text("cgroup.least_cpu_weight").map(str::to_owned)
        };
        let slices = "/sys/fs/cgroup/a/cpu.weight:20\n/sys/fs/cgroup/a/b/cpu.weight:100\n";
        assert_eq!(weight("0::/a/b\n", slices).as_deref(), Some("20.0"));
        let shares = "/sys/fs/cgroup/cpu,cpuacct/cpu.shares:1024\n/sys/fs/cgroup/cpu,cpuacct/a/cpu.shares:262144\n";
        assert_eq!(weight("2:cpu,cpuacct:/a\n1:memory:/\n", shares).as_deref(), Some("25600.0"));
        let little = "/sys/fs/cgroup/cpu/cpu.shares:1024\n/sys/fs/cgroup/cpu/a/cpu.shares:2\n";
        assert_eq!(weight("2:cpu:/a\n1:memory:/\n", little).as_deref(), Some("0.2"));
        assert_eq!(weight("2:cpu:/\n1:memory:/\n", "/sys/fs/cgroup/cpu/cpu.shares:1024\n").as_deref(), Some("100.0"));
        for seen in ["", "/sys/fs/cgroup/x/cpu.weight:100\n"] {
            assert_eq!(weight("0::/x\nnamespace cgroup:[4026532700]\n", seen), None, "within a container");
        }
    }

    #[test]
    fn the_strictest_limit_of_a_device_is_told_beside_what_the_group_has_it_do() {
        let facts = |limits: &str| facts_of(&[("cgroup_path", "0::/a/b\n"), ("cgroup", limits)]);
        let of_version_2 = facts(
            "/sys/fs/cgroup/a/io.max:8:0 rbps=2000000 wbps=max riops=max wiops=50\n\
             /sys/fs/cgroup/a/b/io.max:8:0 rbps=3000000 wbps=max riops=max wiops=max\n\
             /sys/fs/cgroup/a/b/io.max:8:16 rbps=max wbps=7 riops=max wiops=max\n",
        );
        let value = |key: &str| of_version_2.text(&format!("cgroup.io.{key}_per_s")).map(str::to_owned);
        let told = ["8:0.read_bytes", "8:0.writes", "8:16.written_bytes", "8:0.reads"].map(value);
        assert_eq!(told.each_ref().map(Option::as_deref), [Some("2000000"), Some("50"), Some("7"), None]);
        let of_version_1 = facts(
            "/sys/fs/cgroup/blkio/a/blkio.throttle.read_iops_device:254:0 100\n\
             /sys/fs/cgroup/blkio/a/b/blkio.throttle.read_iops_device:254:0 90\n\
             /sys/fs/cgroup/blkio/a/b/blkio.throttle.write_bps_device:254:0 4096\n\
             /sys/fs/cgroup/blkio/a/b/blkio.throttle.write_bps_device:../x 4096\n",
        );
        assert_eq!(of_version_1.text("cgroup.io.254:0.reads_per_s"), Some("90"));
        assert_eq!(of_version_1.text("cgroup.io.254:0.written_bytes_per_s"), Some("4096"));
        assert_eq!(of_version_1.under("cgroup.io.").count(), 2);
        let of_version_2 = readings(
            "/sys/fs/cgroup/io.stat:8:0 rbytes=9 wbytes=9 rios=9 wios=9 dbytes=0 dios=0\n\
             /sys/fs/cgroup/a/io.stat:8:0 rbytes=4096 wbytes=512 rios=2 wios=1 dbytes=0 dios=0\n",
        );
        let counted =
            |readings: &super::Readings, key: &str| readings.counters.get(&format!("cgroup.io.{key}")).copied();
        assert_eq!(
            ["8:0.read_bytes", "8:0.written_bytes", "8:0.reads", "8:0.writes"].map(|key| counted(&of_version_2, key)),
            [Some(4096), Some(512), Some(2), Some(1)]
        );
        let of_version_1 = readings(
            "/sys/fs/cgroup/blkio/a/blkio.throttle.io_service_bytes_recursive:7:3 Read 4096\n\
             /sys/fs/cgroup/blkio/a/blkio.throttle.io_service_bytes_recursive:7:3 Total 4096\n\
             /sys/fs/cgroup/blkio/a/blkio.throttle.io_serviced_recursive:7:3 Write 6\n\
             /sys/fs/cgroup/blkio/a/blkio.throttle.io_serviced_recursive:Total 6\n",
        );
        assert_eq!(counted(&of_version_1, "7:3.read_bytes"), Some(4096));
        assert_eq!((counted(&of_version_1, "7:3.writes"), counted(&of_version_1, "7:3.reads")), (Some(6), None));
    }

    #[test]
    fn no_cgroups_are_not_no_limits() {
        let facts = facts_of(&[
            ("cgroup_path", "head: cannot open '/proc/self/cgroup': No such file or directory\n"),
            ("cgroup", ""),
        ]);
        assert!(facts.0["cgroup.cpu_quota_cpus"].text().is_none());
    }
}
