//! FreeBSD: what `sysctl`, `vmstat`, `netstat`, `iostat` and `procstat` print.
//!
//! Written from their manual pages and sources (sysctl(8), vmstat(8), netstat(1), iostat(8), procstat(1)) and tested on
//! samples in that form, not yet on a running FreeBSD.

mod counters;
mod facts;

pub(super) use counters::sample;
pub(super) use facts::facts;

#[cfg(test)]
mod tests {
    use crate::frames::Frame;
    use crate::parse::tests_support::PORT_80;
    use crate::parse::{facts, sample};
    use duel_model::HostSample;

    /// In the form that the manual pages of FreeBSD 14 show; not recorded from a running one.
    fn frames() -> Vec<Frame> {
        [
            ("system", "FreeBSD\n"),
            ("clocks", "clk_tck 128\npage_bytes 4096\nunix_s 1763600000\n"),
            ("os", "14.1-RELEASE\nFreeBSD 14.1-RELEASE releng/14.1 GENERIC\namd64\nweb1.example\nID=freebsd\nPRETTY_NAME=\"FreeBSD 14.1-RELEASE\"\n"),
            ("sysctl", include_str!("../../../tests/freebsd/sysctl.txt")),
            ("disks", "ada0 nda0\n"),
            ("mounts", "/dev/ada0p2\t\t/\t\tufs\trw\t\t1 1\ndevfs\t\t\t/dev\t\tdevfs\trw\t\t0 0\n"),
            ("listening", "Current listen queue sizes (qlen/incqlen/maxqlen)\nProto Listen                           Local Address         \ntcp4  2/0/511                          *.80                  \n"),
            ("link_states", "em0: flags=8863<UP,BROADCAST> metric 0 mtu 1500\n\toptions=4e504bb<RXCSUM,TXCSUM,TSO4>\n\tmedia: Ethernet autoselect (1000baseT <full-duplex>)\n\tstatus: active\n"),
            ("firewall", "pf 12\nipfw 0\nipl 0\n"),
            ("server", "roots 812\nmembers 812 813\n"),
            ("binary", "  PID COMM                OSREL PATH\n  812 nginx             1401000 /usr/local/sbin/nginx\n"),
            ("arguments", "nginx:\nmaster\nprocess\n/usr/local/sbin/nginx\n"),
            ("environment", ""),
            ("maps", include_str!("../../../tests/freebsd/procstat-v.txt")),
            ("library /usr/lib/libcrypto.so.30", "bytes 5000000\nstring OpenSSL 3.0.13 30 Jan 2024\n"),
        ]
        .into_iter()
        .map(|(name, text)| Frame { name: name.to_owned(), status: Some(0), text: text.to_owned(), truncated: false })
        .collect()
    }

    #[test]
    fn facts_of_a_host() {
        let found = facts(&frames(), &PORT_80, "/proc", "/sys");
        let value = |key: &str| found.facts.text(key);
        assert_eq!(value("os.kernel"), Some("FreeBSD 14.1-RELEASE"));
        assert_eq!(
            (value("cpu.cpus"), value("clock.source"), value("machine.hypervisor")),
            (Some("2"), Some("TSC-low"), Some("kvm"))
        );
        assert!(value("cpu.flags").unwrap().contains("aesni"));
        assert_eq!((value("listen.80.backlog"), value("listen.80.waiting")), (Some("511"), Some("2")));
        assert_eq!((value("link.em0.state"), value("firewall.pf_rules")), (Some("active"), Some("12")));
        assert_eq!((value("process.exe"), value("process.count")), (Some("/usr/local/sbin/nginx"), Some("2")));
        assert_eq!(value("process.library.libcrypto.path"), Some("/usr/lib/libcrypto.so.30"));
        assert_eq!(value("process.library.libcrypto.version"), Some("OpenSSL 3.0.13 30 Jan 2024"));
        assert_eq!((value("mount./"), value("tcp.recvspace")), (Some("ufs rw /dev/ada0p2"), Some("65536")));
        assert_eq!(found.doubts, [] as [String; 0]);
        assert_eq!(found.context.tick_ns, 1_000_000_000 / 127);
    }

    #[test]
    fn counters_of_a_host() {
        let context = facts(&frames(), &PORT_80, "/proc", "/sys").context;
        let readings = sample(include_str!("../../../tests/freebsd/sample.txt"), &context);
        let tick = 1_000_000_000 / 127;
        assert_eq!(readings.counters["cpu.user_ns"], 12_345 * tick);
        assert_eq!(readings.counters["cpu.1.idle_ns"], 900_500 * tick);
        assert_eq!(readings.counters["cpu.switches"], 987_654);
        assert_eq!(
            (readings.counters["tcp.retransmitted_segments"], readings.counters["tcp.listen_overflows"]),
            (17, 3)
        );
        assert_eq!(
            (readings.counters["link.em0.received_bytes"], readings.counters["link.lo0.sent_bytes"]),
            (123_456_789, 5000)
        );
        assert_eq!(
            (readings.counters["disk.ada0.reads"], readings.counters["disk.ada0.busy_ns"]),
            (1000, 12_500_000_000)
        );
        assert_eq!(readings.counters["process.user_ns"], 1_234_567_000 + 2_000_000_000);
        assert_eq!(readings.counters["workers.voluntary_switches"], 300);
        assert_eq!(readings.gauges["load.1m"], 0.1);
        let kept = HostSample { counters: readings.counters, ..HostSample::default() };
        assert!(kept.counters.len() > 30);
    }
}
