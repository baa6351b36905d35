//! What a FreeBSD host is.

use crate::parse::sheet::Sheet;
use crate::parse::{Context, os};

/// Facts whose name on FreeBSD differs from ours.
const NAMES: [(&str, &str); 16] = [
    ("hw.model", "cpu.model"),
    ("hw.ncpu", "cpu.cpus"),
    ("kern.smp.cores", "cpu.cores"),
    ("hw.physmem", "memory.total_bytes"),
    ("vm.swap_total", "memory.swap_bytes"),
    ("kern.timecounter.hardware", "clock.source"),
    ("kern.timecounter.choice", "clock.sources"),
    ("kern.vm_guest", "machine.hypervisor"),
    ("dev.cpu.0.freq", "cpu.fastest_mhz"),
    ("dev.cpu.0.freq_levels", "cpu.frequency_levels"),
    ("dev.cpu.0.temperature", "temperature.cpu.0_celsius"),
    ("kern.ipc.soacceptqueue", "net.core.somaxconn"),
    ("vm.pmap.pti", "cpu.mitigations.pti"),
    ("hw.ibrs_active", "cpu.mitigations.ibrs"),
    ("hw.mds_disable_state", "cpu.mitigations.mds"),
    ("net.inet.tcp.cc.algorithm", "tcp.tcp_congestion_control"),
];

/// Everything that is told.
pub(in crate::parse) fn facts(sheet: &mut Sheet<'_>, context: &mut Context) {
    os::names(sheet);
    let mut flags = Vec::new();
    for line in sheet.lines("sysctl") {
        if line.trim_start().starts_with("Features") || line.trim_start().starts_with("Structured") {
            // Features=0x...<FPU,VME,...>
            flags.extend(
                line.split_once('<')
                    .and_then(|(_, rest)| rest.split_once('>'))
                    .map(|(names, _)| names.replace(',', " ").to_lowercase()),
            );
            continue;
        }
        let Some((name, value)) = line.split_once(": ") else { continue };
        let value = value.trim_end_matches('C').trim();
        if name == "kern.clockrate" {
            stat_clock(value, context);
        } else if let Some((_, key)) = NAMES.iter().find(|(theirs, _)| *theirs == name) {
            sheet.set(key, value);
        } else if let Some(rest) = name.strip_prefix("net.inet.tcp.") {
            sheet.set(format!("tcp.{rest}"), value);
        } else {
            sheet.set(name, value);
        }
    }
    sheet.set("cpu.flags", flags.join(" "));
    sheet.promised(
        "sysctl",
        &["cpu.model", "cpu.cpus", "memory.total_bytes", "clock.source", "machine.hypervisor", "cpu.flags"],
    );
    if let Some(disks) = sheet.lines("disks").next() {
        context.disks = disks.split_ascii_whitespace().map(str::to_owned).collect();
    }
    for line in sheet.lines("mounts").take(64) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if let [device, place, kind, options, ..] = words.as_slice()
            && place.starts_with('/')
            && !matches!(*kind, "devfs" | "procfs" | "fdescfs" | "linprocfs" | "linsysfs")
        {
            sheet.set(format!("mount.{place}"), format!("{kind} {options} {device}"));
        }
    }
    listening(sheet);
    link_states(sheet);
    if let Some(binary) = sheet.lines("binary").last().and_then(|line| line.split_once('/')) {
        sheet.set("process.exe", format!("/{}", binary.1));
    }
}

/// `{ hz = 1000, tick = 1000, profhz = 8128, stathz = 127 }`: times are counted by the last.
fn stat_clock(value: &str, context: &mut Context) {
    let hz =
        value.split_once("stathz = ").and_then(|(_, rest)| rest.split([',', ' ', '}']).next()?.parse::<u64>().ok());
    if let Some(hz) = hz.filter(|hz| (1..=1_000_000).contains(hz)) {
        context.tick_ns = 1_000_000_000 / hz;
    }
}

/// `netstat -L -a -n`: `tcp4  0/0/128  *.80`, what waits, what waits incompletely, and how much may wait.
fn listening(sheet: &mut Sheet<'_>) {
    for line in sheet.lines("listening").filter(|line| line.starts_with("tcp")).take(100) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, queue, address, ..] = words.as_slice() else { continue };
        let numbers: Vec<u64> = queue.split('/').filter_map(|part| part.parse().ok()).collect();
        if let ([waiting, _, backlog], Some((_, port))) = (numbers.as_slice(), address.rsplit_once('.')) {
            sheet.set(format!("listen.{port}.backlog"), backlog.to_string());
            sheet.set(format!("listen.{port}.waiting"), waiting.to_string());
        }
    }
}

/// `ifconfig -a`: a line for each link, and lines with a tab below it.
fn link_states(sheet: &mut Sheet<'_>) {
    let mut link = "";
    for line in sheet.lines("link_states") {
        if !line.starts_with(['\t', ' ']) {
            link = line.split(':').next().unwrap_or_default();
            if let Some((_, mtu)) = line.rsplit_once(" mtu ") {
                sheet.set(format!("link.{link}.mtu_bytes"), mtu);
            }
        } else if let Some(state) = line.trim().strip_prefix("status: ") {
            sheet.set(format!("link.{link}.state"), state);
        } else if let Some(media) = line.trim().strip_prefix("media: ") {
            sheet.set(format!("link.{link}.media"), media);
        } else if let Some(options) = line.trim().strip_prefix("options=") {
            sheet.set(format!("link.{link}.offloads"), options);
        }
    }
}
