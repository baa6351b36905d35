//! Processors: what they are, what slows them down, and what they spend their time on.

use super::lines::{Lines, base, number};
use super::sheet::Sheet;
use super::{Context, Readings};
use std::collections::BTreeSet;

/// CPUs whose modes are kept one by one.
const MOST_CPUS: usize = 128;

/// Columns of `/proc/stat` (proc_pid_stat(5) tells them): guest time is part of user time already.
const MODES: [&str; 8] = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];

/// Model, flags, cores, frequency, mitigations, hypervisor, clock source, temperatures.
pub(super) fn facts(sheet: &mut Sheet<'_>) {
    model(sheet);
    let mut governors = Vec::new();
    for line in sheet.lines("cpu") {
        if let Some(rest) = line.strip_prefix("governors ") {
            if let Some((count, name)) = rest.split_once(' ') {
                governors.push(format!("{name} x {count}"));
            }
            continue;
        }
        let Some((path, value)) = line.split_once(':') else { continue };
        let name = base(path);
        let key = match name {
            _ if path.contains("/vulnerabilities/") => {
                sheet.set(format!("cpu.mitigations.{name}"), value);
                continue;
            }
            "online" if path.contains("/node/") => "cpu.numa_nodes",
            "online" => "cpu.online",
            "active" => "cpu.smt_active",
            "isolated" => "cpu.isolated",
            "nohz_full" => "cpu.nohz_full",
            "scaling_driver" => "cpu.frequency_driver",
            "energy_performance_preference" => "cpu.energy_preference",
            "boost" => "cpu.boost",
            "no_turbo" => "cpu.no_turbo",
            "current_clocksource" => "clock.source",
            "available_clocksource" => "clock.sources",
            "type" => "machine.hypervisor",
            "sys_vendor" => "machine.vendor",
            "product_name" => "machine.product",
            "cpuinfo_max_freq" | "cpuinfo_min_freq" | "scaling_max_freq" => {
                if let Some(khz) = number(value, 0) {
                    let key = match name {
                        "cpuinfo_max_freq" => "cpu.highest_mhz",
                        "cpuinfo_min_freq" => "cpu.lowest_mhz",
                        _ => "cpu.allowed_mhz",
                    };
                    sheet.set(key, (khz / 1000).to_string());
                }
                continue;
            }
            _ => continue,
        };
        sheet.set(key, value);
    }
    sheet.set("cpu.governor", governors.join(", "));
    sheet.promised("cpu", &["cpu.governor", "cpu.highest_mhz", "clock.source", "cpu.online", "cpu.smt_active"]);
    if sheet.text("cpu").is_some_and(|text| !text.contains("/vulnerabilities/")) {
        sheet.promised("cpu", &["cpu.mitigations"]);
    }
    hypervisor(sheet);
    temperatures(sheet);
}

/// What this machine runs on: `none` only where an x86 CPU would tell and does not, and nothing else tells either.
fn hypervisor(sheet: &mut Sheet<'_>) {
    // Xen has said so already.
    if sheet.value("machine.hypervisor").is_some() {
        return;
    }
    let of_board = [sheet.value("machine.product"), sheet.value("machine.vendor")];
    let named = by_board(of_board.map(Option::unwrap_or_default));
    match (named, sheet.value("machine.virtual")) {
        (Some(name), _) => sheet.set("machine.hypervisor", name),
        (None, Some("yes")) => sheet.set("machine.hypervisor", "a hypervisor"),
        (None, Some(_)) => sheet.set("machine.hypervisor", "none"),
        (None, None) => sheet.unavailable("machine.hypervisor", "neither the CPU nor the board tells"),
    }
}

/// The hypervisor that stands in for the maker of the board (DMI), by product and vendor.
fn by_board([product, vendor]: [&str; 2]) -> Option<&'static str> {
    /// What these names begin with, in the order of systemd-detect-virt(1).
    const BOARDS: [(&str, &str); 14] = [
        ("KVM", "kvm"),
        ("OpenStack", "kvm"),
        ("KubeVirt", "kvm"),
        ("Amazon EC2", "amazon ec2"),
        ("QEMU", "qemu"),
        ("VMware", "vmware"),
        ("innotek GmbH", "virtualbox"),
        ("VirtualBox", "virtualbox"),
        ("Xen", "xen"),
        ("Bochs", "bochs"),
        ("Parallels", "parallels"),
        ("BHYVE", "bhyve"),
        ("Apple Virtualization", "apple virtualization"),
        ("Google Compute Engine", "google compute engine"),
    ];
    // Clouds let whole machines as well, whose board bears their name.
    if product.ends_with("metal") || product.contains(".metal-") {
        return None;
    }
    if vendor == "Microsoft Corporation" {
        // They make laptops, too.
        return (product == "Virtual Machine").then_some("hyper-v");
    }
    let begins = |name: &str| BOARDS.iter().find(|(start, _)| name.starts_with(start)).map(|(_, who)| *who);
    begins(product).or_else(|| begins(vendor))
}

fn model(sheet: &mut Sheet<'_>) {
    let (mut cores, mut packages, mut package) = (BTreeSet::new(), BTreeSet::new(), "0");
    let (mut slowest, mut fastest) = (f64::INFINITY, 0_f64);
    for line in sheet.lines("cpuinfo") {
        if let Some(cpus) = line.strip_prefix("cpus ") {
            sheet.set("cpu.cpus", cpus);
            continue;
        }
        if let Some(models) = line.strip_prefix("models ") {
            if models.trim().parse::<u32>().is_ok_and(|models| models > 1) {
                sheet.doubt("the host's CPUs are not all of one model".to_owned());
            }
            continue;
        }
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        match name.trim() {
            "model name" | "cpu model" => sheet.set("cpu.model", value),
            "Model" | "Hardware" => sheet.set("machine.board", value),
            "flags" | "Features" => sheet.set("cpu.flags", value),
            "bugs" => sheet.set("cpu.bugs", value),
            "microcode" => sheet.set("cpu.microcode", value),
            "cache size" => sheet.set("cpu.cache", value),
            "CPU implementer" => sheet.set("cpu.implementer", value),
            "CPU part" => sheet.set("cpu.part", value),
            "cpu MHz" => {
                if let Ok(mhz) = value.parse::<f64>() {
                    (slowest, fastest) = (slowest.min(mhz), fastest.max(mhz));
                }
            }
            "physical id" => {
                package = value;
                packages.insert(value);
            }
            "core id" => {
                cores.insert((package, value));
            }
            _ => {}
        }
    }
    if slowest.is_finite() && fastest.is_finite() {
        sheet.set("cpu.slowest_mhz", format!("{slowest:.0}"));
        sheet.set("cpu.fastest_mhz", format!("{fastest:.0}"));
    }
    if !cores.is_empty() {
        sheet.set("cpu.cores", cores.len().to_string());
        sheet.set("cpu.sockets", packages.len().to_string());
    }
    // x86 tells it among the flags; other processors do not tell.
    if let Some(flags) = sheet.value("cpu.flags") {
        let inside = flags.split(' ').any(|flag| flag == "hypervisor");
        if sheet.value("os.arch").is_some_and(|arch| arch.starts_with("x86") || arch == "i686") {
            sheet.set("machine.virtual", if inside { "yes" } else { "no" });
        }
    }
    sheet.promised(
        "cpuinfo",
        &["cpu.model", "cpu.flags", "cpu.cpus", "cpu.cores", "cpu.slowest_mhz", "cpu.fastest_mhz", "machine.virtual"],
    );
}

fn temperatures(sheet: &mut Sheet<'_>) {
    for line in sheet.lines("temperatures").take(64) {
        let mut words = line.splitn(3, ' ');
        let (Some(value), Some(chip), Some(label)) = (words.next(), words.next(), words.next()) else { continue };
        if let Ok(thousandths) = value.parse::<i64>() {
            sheet.set(format!("temperature.{chip}.{label}_celsius"), format!("{:.1}", thousandths as f64 / 1000.0));
        }
    }
    if sheet.text("temperatures").is_some_and(|text| text.trim().is_empty()) {
        sheet.unavailable("temperature", "the host has no sensors that Linux knows");
    }
}

/// Time per CPU and mode, switches, queue, pressure, frequency, heat.
pub(super) fn sample(lines: &Lines<'_>, context: &Context, readings: &mut Readings) {
    let uptime = lines.first("/uptime").and_then(|line| line.split_ascii_whitespace().next()?.parse::<f64>().ok());
    readings.uptime_ns = uptime
        .filter(|seconds| (0.0..1e10).contains(seconds))
        .map(|seconds| (seconds * 100.0).round() as u64 * 10_000_000);
    for line in lines.file("/stat") {
        let mut words = line.split_ascii_whitespace();
        let Some(name) = words.next() else { continue };
        match name {
            "ctxt" => readings.count("cpu.switches", number(line, 1)),
            "processes" => readings.count("cpu.forks", number(line, 1)),
            "procs_running" => readings.gauge("cpu.running", number(line, 1).map(|n| n as f64)),
            "procs_blocked" => readings.gauge("cpu.blocked", number(line, 1).map(|n| n as f64)),
            _ => {
                let Some(cpu) = name.strip_prefix("cpu") else { continue };
                let prefix = match cpu.parse::<usize>() {
                    Ok(number) if number < MOST_CPUS => format!("cpu.{number}."),
                    Err(_) if cpu.is_empty() => "cpu.".to_owned(),
                    _ => continue,
                };
                let times: Vec<u64> = words
                    .map_while(|word| word.parse::<u64>().ok()?.checked_mul(context.tick_ns))
                    .take(MODES.len())
                    .collect();
                modes(&prefix, &times, readings);
            }
        }
    }
    if let Some(load) = lines.first("/loadavg") {
        for (n, key) in ["load.1m", "load.5m", "load.15m"].iter().enumerate() {
            readings.gauge(key, load.split_ascii_whitespace().nth(n).and_then(|word| word.parse().ok()));
        }
    }
    for subject in ["cpu", "memory", "io"] {
        pressure(lines.file(&format!("/pressure/{subject}")), &format!("pressure.{subject}"), readings);
    }
    let (mut throttled, mut any) = (0_u64, false);
    for (path, values) in lines.ending("core_throttle_count") {
        if path.ends_with("/thermal_throttle/")
            && let Some(count) = values.first().and_then(|line| number(line, 0))
        {
            (throttled, any) = (throttled.saturating_add(count), true);
        }
    }
    readings.count("cpu.heat_throttles", any.then_some(throttled));
    for (path, values) in lines.ending("/cpufreq/scaling_cur_freq") {
        let mhz = values.first().and_then(|line| number(line, 0)).map(|khz| khz as f64 / 1000.0);
        readings.gauge(format!("{}.mhz", base(path).replacen("cpu", "cpu.", 1)), mhz);
    }
    let heat = lines.ending("_input").into_iter().filter_map(|(_, values)| values.first()?.trim().parse::<f64>().ok());
    readings.gauge("cpu.hottest_celsius", heat.reduce(f64::max).map(|thousandths| thousandths / 1000.0));
}

/// The modes of one line of `/proc/stat`. Busy is what is neither idle nor waiting.
fn modes(prefix: &str, times: &[u64], readings: &mut Readings) {
    // Kernels since 2.6.11 have all of them; half a line is none.
    if times.len() < MODES.len() {
        return;
    }
    for (mode, time) in MODES.iter().zip(times) {
        readings.count(format!("{prefix}{mode}_ns"), Some(*time));
    }
    let idle = |mode: &&str| matches!(*mode, "idle" | "iowait");
    let busy = MODES
        .iter()
        .zip(times)
        .filter(|(mode, _)| !idle(mode))
        .try_fold(0_u64, |sum, (_, time)| sum.checked_add(*time));
    readings.count(format!("{prefix}busy_ns"), busy);
}

/// Time in which some or all tasks waited (Documentation/accounting/psi.rst): `some avg10=... total=MICROSECONDS`.
pub(super) fn pressure(lines: &[&str], prefix: &str, readings: &mut Readings) {
    for line in lines {
        let Some((kind, rest)) = line.split_once(' ') else { continue };
        if matches!(kind, "some" | "full") {
            let total = rest.rsplit_once("total=").and_then(|(_, total)| total.trim().parse::<u64>().ok());
            readings.count(format!("{prefix}.{kind}_ns"), total.and_then(|us| us.checked_mul(1000)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests_support::{facts_of, readings};
    use duel_model::Known;

    #[test]
    fn what_a_machine_runs_on() {
        let of = |arch: &str, flags: &str, board: &str| {
            let cpuinfo = format!("model name\t: Some CPU\n{flags}\n");
            let facts =
                facts_of(&[("os", &format!("6.1.0\n#1 SMP\n{arch}\nweb1\n")), ("cpuinfo", &cpuinfo), ("cpu", board)]);
            facts.0.get("machine.hypervisor").cloned()
        };
        let board = |vendor: &str, product: &str| {
            format!("/sys/class/dmi/id/sys_vendor:{vendor}\n/sys/class/dmi/id/product_name:{product}\n")
        };
        let (guest, metal) = ("flags\t\t: fpu sse2 hypervisor", "flags\t\t: fpu sse2");
        for (arch, flags, board, expected) in [
            ("x86_64", guest, board("QEMU", "Standard PC (Q35 + ICH9, 2009)"), "qemu"),
            ("x86_64", guest, board("Red Hat", "KVM"), "kvm"),
            ("x86_64", guest, board("VMware, Inc.", "VMware7,1"), "vmware"),
            ("x86_64", guest, board("Microsoft Corporation", "Virtual Machine"), "hyper-v"),
            ("x86_64", guest, board("Amazon EC2", "t3.micro"), "amazon ec2"),
            ("x86_64", guest, board("Nobody", "Known"), "a hypervisor"),
            ("x86_64", guest, String::new(), "a hypervisor"),
            ("x86_64", guest, "/sys/hypervisor/type:xen\n".to_owned(), "xen"),
            ("x86_64", metal, String::new(), "none"),
            ("x86_64", metal, board("Amazon EC2", "m5.metal"), "none"),
            ("x86_64", metal, board("Amazon EC2", "c7i.metal-24xl"), "none"),
            ("x86_64", metal, board("Microsoft Corporation", "Surface Laptop"), "none"),
            // One that hides from programs, but not on the board.
            ("x86_64", metal, board("QEMU", "Standard PC"), "qemu"),
            ("aarch64", "Features\t: fp asimd", board("QEMU", "QEMU Virtual Machine"), "qemu"),
        ] {
            let known = of(arch, flags, &board);
            assert_eq!(known, Some(Known::from(expected.to_owned())), "{arch} {flags} {board}");
        }
        // Arm CPUs do not tell, and where nothing is read, nothing is known.
        for (arch, flags) in [("aarch64", "Features\t: fp asimd"), ("x86_64", "")] {
            assert!(matches!(of(arch, flags, ""), Some(Known::Unavailable(_))), "{arch}");
        }
    }

    #[test]
    fn modes_are_nanoseconds() {
        let text = "/proc/uptime:123.45 99.0\n/proc/stat:cpu  10 1 2 100 5 1 1 3 7 0\n/proc/stat:cpu1 10 1 2 100 5 1 1 3 7 0\n\
            /proc/stat:cpu2 10 1\n/proc/stat:ctxt 42\n/proc/loadavg:0.50 0.25 0.10 1/2 3\n\
            /proc/pressure/cpu:some avg10=1.29 avg60=2.90 avg300=3.63 total=45\n";
        let readings = readings(text);
        assert_eq!(readings.uptime_ns, Some(123_450_000_000));
        assert_eq!(readings.counters["cpu.busy_ns"], 180_000_000);
        assert_eq!(readings.counters["cpu.1.steal_ns"], 30_000_000);
        assert_eq!(readings.counters.get("cpu.2.user_ns"), None, "half a line is none");
        assert_eq!((readings.counters["cpu.switches"], readings.counters["pressure.cpu.some_ns"]), (42, 45_000));
        assert_eq!(readings.gauges["load.1m"], 0.5);
    }

    #[test]
    fn heat_and_frequency() {
        let text = "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count:3\n\
            /sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count:4\n\
            /sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq:1800000\n\
            /sys/class/hwmon/hwmon1/temp1_input:45000\n/sys/class/hwmon/hwmon1/temp2_input:51500\n";
        let readings = readings(text);
        assert_eq!(readings.counters["cpu.heat_throttles"], 7);
        assert_eq!((readings.gauges["cpu.0.mhz"], readings.gauges["cpu.hottest_celsius"]), (1800.0, 51.5));
    }
}
