//! From text to facts and counters: pure functions that survive any text, a file for each subject.

mod audit;
mod cgroup;
mod cpu;
mod disk;
mod firewall;
mod freebsd;
mod library;
mod lines;
mod listen_queues;
mod memory;
mod network;
mod os;
mod process;
mod sheet;
mod sleepers;

use crate::access::{Options, Server};
use crate::frames::Frame;
use duel_model::{Facts, ProcessIdentity};
use lines::Lines;
pub(crate) use listen_queues::listen_queues;
pub(crate) use sheet::Readings;
use sheet::Sheet;
pub(crate) use sleepers::sleepers;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// What has to be known of a host to understand its samples; found in its facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Context {
    system: System,
    proc_root: String,
    sys_root: String,
    /// Length of a clock tick.
    tick_ns: u64,
    page_bytes: u64,
    /// Whole disks, so that their partitions are not counted again; empty where they are not known.
    disks: BTreeSet<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum System {
    Linux,
    FreeBsd,
    Other,
}

/// The server that is looked for, and where connections to it go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sought<'a> {
    server: &'a Server,
    address: Option<SocketAddr>,
}

impl<'a> Sought<'a> {
    pub(crate) fn new(server: &'a Server, options: &Options) -> Self {
        Self { server, address: options.address }
    }

    fn is_nobody(&self) -> bool {
        *self.server == Server::Unknown
    }

    /// The port that it is found by.
    fn port(&self) -> Option<u16> {
        let port = self.server.port()?;
        Some(self.address.map_or(port, |address| address.port()))
    }

    /// Where it should listen, in words.
    fn place(&self) -> String {
        match (self.address, self.server.port()) {
            (Some(address), _) => address.to_string(),
            (None, Some(port)) => format!("TCP port {port}"),
            (None, None) => "any socket".to_owned(),
        }
    }

    fn described(&self) -> String {
        self.server.described()
    }
}

/// Who serves now, as the search for the server found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Serving {
    /// The server's main process; `None` where there is none or not only one.
    pub pid: Option<u32>,
    /// What tells it from another process that is given its id later.
    pub identity: Option<ProcessIdentity>,
    /// Whether it or one of its descendants holds a socket on which connections arrive; `None`: not known.
    pub listens: Option<bool>,
}

/// Who serves, from the section of a search.
pub(crate) fn serving(text: &str) -> Serving {
    let found = process::Found::of(text);
    Serving { pid: found.pid(), identity: found.identity(), listens: found.serves() }
}

/// Facts of a host, what its samples need, and what weakens them.
pub(crate) struct Found {
    pub(crate) facts: Facts,
    pub(crate) context: Context,
    pub(crate) doubts: Vec<String>,
}

/// All facts from the frames of a host.
pub(crate) fn facts(frames: &[Frame], sought: &Sought<'_>, proc_root: &str, sys_root: &str) -> Found {
    let mut sheet = Sheet::new(frames);
    let system = match sheet.text("system").map(str::trim) {
        Some("Linux") => System::Linux,
        Some("FreeBSD") => System::FreeBsd,
        _ => System::Other,
    };
    let mut context = Context {
        system,
        proc_root: proc_root.to_owned(),
        sys_root: sys_root.to_owned(),
        tick_ns: 10_000_000,
        page_bytes: 4096,
        disks: BTreeSet::new(),
    };
    os::clocks(&mut sheet, &mut context);
    match system {
        System::Linux => {
            os::facts(&mut sheet);
            cpu::facts(&mut sheet);
            memory::facts(&mut sheet);
            disk::facts(&mut sheet, &mut context);
            network::facts(&mut sheet);
            firewall::facts(&mut sheet);
            audit::facts(&mut sheet);
            process::facts(&mut sheet, sought, &context);
            library::facts(&mut sheet);
            cgroup::facts(&mut sheet);
        }
        System::FreeBsd => {
            freebsd::facts(&mut sheet, &mut context);
            firewall::facts(&mut sheet);
            process::which(&mut sheet, sought);
            library::facts(&mut sheet);
        }
        System::Other => {
            let name = sheet.text("system").unwrap_or("it").trim().to_owned();
            sheet.doubt(format!("the host runs {name}; only Linux and FreeBSD can be read"));
        }
    }
    for frame in frames.iter().filter(|frame| frame.truncated) {
        sheet.doubt(format!("of the host's {} only the first part was read", frame.name));
    }
    let (facts, doubts) = sheet.finish();
    Found { facts, context, doubts }
}

/// The counters in the text of a sample.
pub(crate) fn sample(text: &str, context: &Context) -> Readings {
    let lines = Lines::of(text, context);
    let mut readings = Readings::default();
    match context.system {
        System::Linux => {
            cpu::sample(&lines, context, &mut readings);
            memory::sample(&lines, context, &mut readings);
            disk::sample(&lines, context, &mut readings);
            network::sample(&lines, context, &mut readings);
            process::sample(&lines, context, &mut readings);
            cgroup::sample(&lines, &mut readings);
        }
        System::FreeBsd => freebsd::sample(&lines, context, &mut readings),
        System::Other => {}
    }
    readings
}

#[cfg(test)]
mod tests_support {
    use super::*;
    use crate::frames::Frame;

    pub(super) fn any_context(system: System) -> Context {
        Context {
            system,
            proc_root: "/proc".into(),
            sys_root: "/sys".into(),
            tick_ns: 10_000_000,
            page_bytes: 4096,
            disks: BTreeSet::new(),
        }
    }

    pub(super) fn frame(name: &str, text: String) -> Frame {
        Frame { name: name.to_owned(), status: Some(0), text, truncated: false }
    }

    /// What a sample of Linux says.
    pub(super) fn readings(text: &str) -> Readings {
        sample(text, &any_context(System::Linux))
    }

    /// The server on port 80, whatever its address.
    pub(super) const PORT_80: Sought<'_> = Sought { server: &Server::Port(80), address: None };

    /// What these sections of Linux say about a server on port 80.
    pub(super) fn facts_of(sections: &[(&str, &str)]) -> Facts {
        let mut frames = vec![frame("system", "Linux\n".into())];
        frames.extend(sections.iter().map(|(name, text)| frame(name, (*text).to_owned())));
        facts(&frames, &PORT_80, "/proc", "/sys").facts
    }
}

#[cfg(test)]
mod tests {
    use super::tests_support::{PORT_80, any_context, frame};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// Lines in the shape of real ones, with anything for values: no parser may panic, overflow or invent infinity.
        #[test]
        fn any_sample_is_survived(
            lines in prop::collection::vec((0_usize..SHAPES.len(), prop::collection::vec("[0-9]{1,22}|-?[0-9.e]{1,9}|[a-z:()/%-]{1,9}|.{0,3}", 0..24)), 0..60),
            freebsd in any::<bool>(),
        ) {
            let text: String = lines.iter().map(|(shape, words)| format!("{}{}\n", SHAPES[*shape], words.join(" "))).collect();
            let readings = sample(&text, &any_context(if freebsd { System::FreeBsd } else { System::Linux }));
            prop_assert!(readings.gauges.values().all(|value| value.is_finite()));
        }

        #[test]
        fn any_facts_are_survived(
            sections in prop::collection::vec((0_usize..SECTIONS.len(), prop::collection::vec((0_usize..SHAPES.len(), ".{0,40}"), 0..12)), 0..30),
            freebsd in any::<bool>(),
        ) {
            let mut frames = vec![frame("system", if freebsd { "FreeBSD" } else { "Linux" }.to_owned())];
            for (section, lines) in &sections {
                let text = lines.iter().map(|(shape, line)| format!("{}{line}\n", SHAPES[*shape])).collect();
                frames.push(frame(SECTIONS[*section], text));
            }
            let facts = facts(&frames, &PORT_80, "/proc", "/sys");
            for (key, known) in &facts.facts.0 {
                let shown = format!("{key} {known:?}");
                prop_assert!(!shown.contains(['\x1b', '\u{9b}', '\u{202e}', '\n']), "{:?}", shown);
            }
        }
    }

    const SECTIONS: &[&str] = &[
        "clocks",
        "os",
        "cpuinfo",
        "cpu",
        "temperatures",
        "memory",
        "sysctl",
        "mounts",
        "disks",
        "links",
        "offloads",
        "routes",
        "listening",
        "firewall",
        "audit",
        "server",
        "process",
        "arguments",
        "environment",
        "limits",
        "other_limits",
        "tracers",
        "workers",
        "maps",
        "library /lib/libcrypto.so.3",
        "cgroup_path",
        "cgroup",
        "binary",
        "swap",
        "link_states",
    ];

    const SHAPES: &[&str] = &[
        "",
        "/proc/stat:cpu ",
        "/proc/stat:cpu3 ",
        "/proc/stat:ctxt ",
        "/proc/uptime:",
        "/proc/loadavg:",
        "/proc/vmstat:pgfault ",
        "/proc/meminfo:Dirty: ",
        "/proc/diskstats:8 0 sda ",
        "/proc/net/dev: eth0: ",
        "/proc/net/snmp:Tcp: ",
        "/proc/net/netstat:TcpExt: ",
        "/proc/net/snmp6:Ip6InOctets ",
        "/proc/net/sockstat:TCP: ",
        "/proc/net/softnet_stat:",
        "/proc/pressure/cpu:some ",
        "/proc/7/stat:7 (x y) S ",
        "/proc/7/status:VmRSS: ",
        "/proc/7/status:Threads: ",
        "/proc/7/io:rchar: ",
        "/proc/7/task/8/schedstat:",
        "/sys/fs/cgroup/a:b/cpu.stat:",
        "/sys/fs/cgroup/cpu.pressure:some ",
        "members:",
        "roots:",
        "tasks:",
        "sysctl:kern.cp_time: ",
        "sysctl:kern.cp_times: ",
        "vmstat:",
        "tcp:",
        "links:em0 1500 <Link#1> ",
        "disks:ada0 ",
        "procstat:7 nginx user time ",
        "started:7 ",
        "string OpenSSL ",
        "socket ",
        "stranger ",
        "arrival ",
        "serves ",
        "started ",
        "boot ",
        "members ",
        "roots ",
        "user ",
        "deleted ",
        "processor: ",
        "flags\t: ",
        "LISTEN 0 ",
        "default via ",
        "hw.model: ",
        "Max open files ",
        "/proc/7/status:TracerPid: ",
        "clk_tck ",
        "page_bytes ",
        "governors ",
        "duel: ",
        "7f00-7f01 /usr/lib/",
        "/sys/class/net/eth0/mtu:",
        "/sys/block/sda/size:",
        "7 (x) S ",
        "/sys/fs/cgroup/x/cpu.max:",
        "/sys/fs/cgroup/x/memory.max:",
        "uptime ",
        "command_line ",
        "exe ",
        "pid ",
    ];
}
