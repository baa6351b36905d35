//! Links, routes, listen queues, TCP.

use super::lines::{Lines, number};
use super::sheet::Sheet;
use super::{Context, Readings};
use std::collections::{BTreeMap, BTreeSet};

/// Links that are kept one by one.
const MOST_LINKS: usize = 64;

/// Offloads that decide how many packets and how much work a byte takes.
const OFFLOADS: [&str; 7] = [
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
    "generic-receive-offload",
    "large-receive-offload",
    "tx-checksumming",
    "rx-checksumming",
    "tls-hw-tx-offload",
];

/// Links with speed, state, offloads and queues; routes that are not like others; listen queues.
pub(super) fn facts(sheet: &mut Sheet<'_>) {
    let mut interrupts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in sheet.lines("links") {
        let Some((path, value)) = line.split_once(':') else { continue };
        let Some((_, rest)) = path.split_once("/net/") else { continue };
        let Some((link, name)) = rest.split_once('/') else { continue };
        match name {
            "operstate" => sheet.set(format!("link.{link}.state"), value),
            // -1 is what virtual links and those that are down tell.
            "speed" if value.trim() == "-1" => {
                sheet.unavailable(format!("link.{link}.speed_mbps"), "the link has no speed");
            }
            "speed" => sheet.set(format!("link.{link}.speed_mbps"), value),
            "mtu" => sheet.set(format!("link.{link}.mtu_bytes"), value),
            "interrupts" => interrupts.entry(link).or_default().push(value.trim()),
            _ => sheet.set(format!("link.{link}.{name}"), value),
        }
    }
    for (link, lists) in interrupts {
        // On which ones they are may change by the minute, by themselves; on how many hardly does.
        if let Some(cpus) = different_cpus(&lists) {
            sheet.set(format!("link.{link}.interrupt_cpus"), cpus.to_string());
        }
    }
    sheet.promised("links", &["link.lo.state"]);
    let mut offloads: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for line in sheet.lines("offloads") {
        let Some((link, rest)) = line.split_once(' ') else { continue };
        if let Some((name, state)) = rest.trim().split_once(": ")
            && OFFLOADS.contains(&name)
        {
            offloads.entry(link).or_default().push(format!("{name} {}", state.trim_end_matches(" [fixed]")));
        }
    }
    for (link, states) in &offloads {
        sheet.set(format!("link.{link}.offloads"), states.join(", "));
    }
    if offloads.is_empty() {
        sheet.promised("offloads", &["link.offloads"]);
    }
    routes(sheet);
    listening(sheet);
}

/// How many CPUs such lists name: `0-3,8`. `None` where one of them is no list.
fn different_cpus(lists: &[&str]) -> Option<usize> {
    /// More than any machine has (`NR_CPUS` of Linux is 8192 at most).
    const MOST_CPUS: u32 = 8192;
    let mut cpus = BTreeSet::new();
    for part in lists.iter().flat_map(|list| list.split(',')) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last >= MOST_CPUS {
            return None;
        }
        cpus.extend(first..=last);
    }
    (!cpus.is_empty()).then_some(cpus.len())
}

fn routes(sheet: &mut Sheet<'_>) {
    let mut special = Vec::new();
    for line in sheet.lines("routes") {
        if let Some(rest) = line.strip_prefix("default ") {
            sheet.set("route.default", rest);
        }
        if let Some(rest) = line.strip_prefix("qdisc ") {
            // qdisc KIND HANDLE: dev LINK root ...
            let mut words = rest.split_ascii_whitespace();
            let (kind, link) = (words.next(), words.skip_while(|word| *word != "dev").nth(1));
            if let (Some(kind), Some(link)) = (kind, link)
                && rest.contains(" root")
            {
                sheet.set(format!("link.{link}.qdisc"), kind);
            }
        } else if ["initcwnd", "initrwnd", "quickack", "rto_min", " mtu ", "cwnd", "advmss", "congctl"]
            .iter()
            .any(|word| line.contains(word))
            && special.len() < 16
        {
            special.push(line.trim());
        }
    }
    if !special.is_empty() {
        sheet.set("route.special", special.join("; "));
    } else if sheet.text("routes").is_some_and(|text| !text.starts_with("duel: ")) {
        sheet.set("route.special", "none");
    }
    sheet.promised("routes", &["route.default", "route.special"]);
}

/// `ss -l -t -n`: of a listening socket the first number is what waits to be accepted, the second how much may.
fn listening(sheet: &mut Sheet<'_>) {
    let mut ports: BTreeMap<u16, (u64, u64, Vec<&str>)> = BTreeMap::new();
    for line in sheet.lines("listening") {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [state, waiting, backlog, address, ..] = words.as_slice() else { continue };
        let (Ok(waiting), Ok(backlog)) = (waiting.parse::<u64>(), backlog.parse::<u64>()) else { continue };
        let Some((address, port)) = address.rsplit_once(':') else { continue };
        if let Ok(port) = port.parse::<u16>()
            && *state == "LISTEN"
        {
            let entry = ports.entry(port).or_insert((0, u64::MAX, Vec::new()));
            // The shortest queue of a port is the one that overflows.
            *entry = (entry.0.max(waiting), entry.1.min(backlog), std::mem::take(&mut entry.2));
            if !entry.2.contains(&address) {
                entry.2.push(address);
            }
        }
    }
    for (port, (waiting, backlog, addresses)) in ports.into_iter().take(100) {
        sheet.set(format!("listen.{port}.backlog"), backlog.to_string());
        sheet.set(format!("listen.{port}.waiting"), waiting.to_string());
        sheet.set(format!("listen.{port}.addresses"), addresses.into_iter().take(16).collect::<Vec<_>>().join(" "));
    }
    if sheet.text("listening").is_none_or(|text| !text.contains("State")) {
        sheet.promised("listening", &["listen"]);
    }
}

/// Names in `/proc/net/snmp` and `netstat`, and ours.
const TCP: [(&str, &str, &str); 33] = [
    ("Tcp", "ActiveOpens", "tcp.opened"),
    ("Tcp", "PassiveOpens", "tcp.accepted"),
    ("Tcp", "AttemptFails", "tcp.failed_attempts"),
    ("Tcp", "EstabResets", "tcp.resets"),
    ("Tcp", "InSegs", "tcp.received_segments"),
    ("Tcp", "OutSegs", "tcp.sent_segments"),
    ("Tcp", "RetransSegs", "tcp.retransmitted_segments"),
    ("Tcp", "InErrs", "tcp.bad_segments"),
    ("Tcp", "OutRsts", "tcp.sent_resets"),
    ("TcpExt", "ListenOverflows", "tcp.listen_overflows"),
    ("TcpExt", "ListenDrops", "tcp.listen_drops"),
    ("TcpExt", "TCPTimeouts", "tcp.timeouts"),
    ("TcpExt", "TCPLostRetransmit", "tcp.lost_retransmits"),
    ("TcpExt", "TCPFastRetrans", "tcp.fast_retransmits"),
    ("TcpExt", "TCPSlowStartRetrans", "tcp.slow_start_retransmits"),
    ("TcpExt", "TCPSpuriousRTOs", "tcp.spurious_timeouts"),
    ("TcpExt", "TCPSynRetrans", "tcp.retransmitted_syns"),
    ("TcpExt", "TCPLossProbes", "tcp.loss_probes"),
    ("TcpExt", "TCPDSACKRecv", "tcp.duplicate_acknowledgements"),
    ("TcpExt", "TCPBacklogDrop", "tcp.backlog_drops"),
    ("TcpExt", "TCPRcvQDrop", "tcp.receive_queue_drops"),
    ("TcpExt", "TCPReqQFullDoCookies", "tcp.syn_queue_full_cookies"),
    ("TcpExt", "TCPReqQFullDrop", "tcp.syn_queue_full_drops"),
    ("TcpExt", "SyncookiesSent", "tcp.sent_cookies"),
    ("TcpExt", "PruneCalled", "tcp.receive_prunes"),
    ("TcpExt", "TCPAbortOnMemory", "tcp.aborts_for_memory"),
    ("TcpExt", "TCPAbortOnTimeout", "tcp.aborts_for_timeout"),
    ("TcpExt", "TCPFromZeroWindowAdv", "tcp.windows_opened"),
    ("TcpExt", "TCPToZeroWindowAdv", "tcp.windows_closed"),
    ("TcpExt", "DelayedACKs", "tcp.delayed_acknowledgements"),
    ("TcpExt", "TCPAutoCorking", "tcp.corked_sends"),
    ("IpExt", "InOctets", "ip.received_bytes"),
    ("IpExt", "OutOctets", "ip.sent_bytes"),
];

/// TCP's counters, those of the links, and what the receiving softirq had to drop or put off.
pub(super) fn sample(lines: &Lines<'_>, _context: &Context, readings: &mut Readings) {
    // The server's own network, if it has one: then the path holds a process id, and another server has other counters.
    let own = |name: &str| lines.ending(name).into_iter().next().map_or(&[][..], |(_, lines)| lines);
    if lines.ending("/net/snmp").iter().any(|(process, _)| !process.is_empty()) {
        for prefix in ["tcp.", "ip.", "link."] {
            readings.counted_by(prefix, lines.first("roots").unwrap_or_default());
        }
    }
    let mut tables = columns(own("/net/snmp"));
    tables.extend(columns(own("/net/netstat")));
    let by_ipv6: BTreeMap<&str, u64> = own("/net/snmp6").iter().filter_map(|line| named_count(line)).collect();
    for (table, column, key) in TCP {
        let by_ipv4 = tables.get(&(table, column)).copied();
        // Of bytes each family counts its own; of segments both count together. Without IPv6 there is no such file.
        let further = match key {
            "ip.received_bytes" => by_ipv6.get("Ip6InOctets"),
            "ip.sent_bytes" => by_ipv6.get("Ip6OutOctets"),
            _ => None,
        };
        readings.count(key, by_ipv4.map(|count| count + further.unwrap_or(&0)));
    }
    readings.count("ip.received_ipv6_packets", by_ipv6.get("Ip6InReceives").copied());
    readings.gauge("tcp.established", tables.get(&("Tcp", "CurrEstab")).map(|&count| count as f64));
    for line in own("/net/sockstat") {
        // TCP: inuse 5 orphan 0 tw 2 alloc 7 mem 1
        if let Some(rest) = line.strip_prefix("TCP: ") {
            let words: Vec<&str> = rest.split_ascii_whitespace().collect();
            for pair in words.chunks_exact(2) {
                let key = match pair[0] {
                    "inuse" => "tcp.in_use",
                    "orphan" => "tcp.orphans",
                    "tw" => "tcp.time_wait",
                    "mem" => "tcp.memory_pages",
                    _ => continue,
                };
                readings.gauge(key, pair[1].parse().ok());
            }
        }
    }
    links(own("/net/dev"), readings);
    let softnet = own("/net/softnet_stat");
    // Hexadecimal columns for each CPU: processed, dropped, time squeezed (net/core/net-procfs.c).
    for (n, key) in [(0, "net.softnet_processed"), (1, "net.softnet_dropped"), (2, "net.softnet_squeezed")] {
        let values = softnet.iter().map(|line| u64::from_str_radix(line.split_ascii_whitespace().nth(n)?, 16).ok());
        let sum = values.sum::<Option<u64>>();
        readings.count(key, sum.filter(|_| !softnet.is_empty()));
    }
    let tracked = lines.first("/sys/net/netfilter/nf_conntrack_count").and_then(|line| number(line, 0));
    readings.gauge("net.tracked_connections", tracked.map(|count| count as f64));
}

/// `Ip6InReceives                       4602`
fn named_count<'a>(line: &&'a str) -> Option<(&'a str, u64)> {
    let (name, count) = line.split_once(char::is_whitespace)?;
    Some((name, count.trim().parse().ok()?))
}

/// Pairs of lines, `NAME: COLUMN ...` and `NAME: VALUE ...`.
fn columns<'a>(lines: &[&'a str]) -> BTreeMap<(&'a str, &'a str), u64> {
    let mut table = BTreeMap::new();
    for pair in lines.chunks_exact(2) {
        let (Some((name, heads)), Some((again, values))) = (pair[0].split_once(':'), pair[1].split_once(':')) else {
            continue;
        };
        if name == again {
            for (head, value) in heads.split_ascii_whitespace().zip(values.split_ascii_whitespace()) {
                // Some columns are signed, such as MaxConn -1; they are no counters.
                if let Ok(value) = value.parse() {
                    table.insert((name, head), value);
                }
            }
        }
    }
    table
}

fn links(lines: &[&str], readings: &mut Readings) {
    let mut count = 0;
    for line in lines {
        let Some((link, values)) = line.trim_start().split_once(':') else { continue };
        let values: Vec<Option<u64>> = values.split_ascii_whitespace().map(|word| word.parse().ok()).collect();
        if values.len() < 16 || values.iter().all(|value| *value == Some(0)) || count == MOST_LINKS {
            continue;
        }
        count += 1;
        for (n, key) in [
            (0, "received_bytes"),
            (1, "received_packets"),
            (2, "receive_errors"),
            (3, "receive_drops"),
            (8, "sent_bytes"),
            (9, "sent_packets"),
            (10, "send_errors"),
            (11, "send_drops"),
        ] {
            readings.count(format!("link.{link}.{key}"), values[n]);
        }
    }
}

/// Whether the server lives in a network of its own; then all that is told of the network is of that one.
pub(super) fn own_network(sheet: &mut Sheet<'_>) {
    let find = |name: &str| {
        sheet.lines("process").find_map(|line| line.strip_prefix(name)).filter(|net| net.starts_with("net:["))
    };
    match (find("net "), find("our_net ")) {
        (Some(theirs), Some(ours)) if theirs == ours => sheet.set("process.network", "the host's"),
        (Some(_), Some(_)) => sheet.set("process.network", "its own"),
        _ => sheet.unavailable("process.network", "no permission to look"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests_support::{facts_of, readings};

    #[test]
    fn tcp_counters_have_names() {
        let readings = readings(
            "/proc/net/snmp:Tcp: MaxConn RetransSegs CurrEstab\n/proc/net/snmp:Tcp: -1 7 3\n\
             /proc/net/netstat:TcpExt: ListenOverflows ListenDrops\n/proc/net/netstat:TcpExt: 5 6\n\
             /proc/net/netstat:IpExt: InOctets OutOctets\n/proc/net/netstat:IpExt: 1000 2000\n\
             /proc/net/snmp6:Ip6InReceives                   \t3\n/proc/net/snmp6:Ip6InOctets                     \t300\n\
             /proc/net/sockstat:TCP: inuse 5 orphan 0 tw 2 alloc 7 mem 1\n\
             /proc/net/dev:  eth0: 100 2 0 1 0 0 0 0 200 3 0 0 0 0 0 0\n/proc/net/dev:  idle: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
             /proc/net/softnet_stat:0000000a 00000001 00000002 00\n/proc/net/softnet_stat:00000010 00000000 00000000 00\n",
        );
        assert_eq!(
            (readings.counters["tcp.retransmitted_segments"], readings.counters["tcp.listen_overflows"]),
            (7, 5)
        );
        let bytes = ["ip.received_bytes", "ip.sent_bytes", "ip.received_ipv6_packets"];
        assert_eq!(bytes.map(|key| readings.counters[key]), [1300, 2000, 3], "those of both families");
        assert_eq!((readings.gauges["tcp.established"], readings.gauges["tcp.time_wait"]), (3.0, 2.0));
        assert_eq!((readings.counters["link.eth0.sent_bytes"], readings.counters["link.eth0.receive_drops"]), (200, 1));
        assert_eq!((readings.counters["net.softnet_processed"], readings.counters["net.softnet_dropped"]), (26, 1));
        assert!(!readings.counters.keys().any(|key| key.contains("idle")));
    }

    #[test]
    fn a_network_of_the_servers_own_is_read_by_its_process() {
        let readings = readings("roots:77\n/proc/77/net/snmp:Tcp: RetransSegs\n/proc/77/net/snmp:Tcp: 9\n");
        assert_eq!(readings.counters["tcp.retransmitted_segments"], 9);
        assert_eq!(readings.counted_by["tcp."], "77", "whoever comes after it has a network and counters of its own");
    }

    #[test]
    fn listen_queues_links_and_routes() {
        let facts = facts_of(&[
            (
                "listening",
                "State  Recv-Q Send-Q Local Address:Port Peer Address:Port\nLISTEN 3 511 0.0.0.0:8080 0.0.0.0:*\nLISTEN 0 128 [::]:8080 [::]:*\n",
            ),
            (
                "links",
                "/sys/class/net/eth0/speed:1000\n/sys/class/net/eth0/mtu:1500\n/sys/class/net/lo/speed:-1\n/sys/class/net/eth0/rx_queues:4\n/sys/class/net/eth0/interrupts:0\n/sys/class/net/eth0/interrupts:2-3,0\n/sys/class/net/eth1/interrupts:0-9999\n/sys/class/net/eth2/interrupts:\n",
            ),
            (
                "routes",
                "default via 10.0.0.1 dev eth0\n10.0.0.0/8 dev eth0 initcwnd 1\nqdisc fq_codel 0: dev eth0 root refcnt 2\n",
            ),
            (
                "offloads",
                "eth0 Features for eth0:\neth0 tcp-segmentation-offload: off\neth0 tx-checksumming: on [fixed]\n",
            ),
        ]);
        assert_eq!((facts.text("listen.8080.backlog"), facts.text("listen.8080.waiting")), (Some("128"), Some("3")));
        assert_eq!((facts.text("link.eth0.speed_mbps"), facts.text("link.lo.speed_mbps")), (Some("1000"), None));
        assert_eq!((facts.text("link.eth0.qdisc"), facts.text("link.eth0.rx_queues")), (Some("fq_codel"), Some("4")));
        let interrupted = ["eth0", "eth1", "eth2"].map(|link| facts.text(&format!("link.{link}.interrupt_cpus")));
        assert_eq!(interrupted, [Some("3"), None, None]);
        assert_eq!(facts.text("link.eth0.offloads"), Some("tcp-segmentation-offload off, tx-checksumming on"));
        assert!(facts.text("route.special").unwrap().contains("initcwnd 1"));
    }
}
