//! The path between the client's namespace and a server's.

use crate::arena::CLIENT_CPU;
use crate::relay::packets::link_word;
use crate::twin::{Network, Packets, Path, Way};
use crate::world::{Folder, Launch, Namespace, Running, veth};
use anyhow::Context;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Which of the two places a server has: it decides addresses and names, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    A,
    B,
}

impl Place {
    /// The place beside it.
    pub(crate) fn other(self) -> Place {
        match self {
            Place::A => Place::B,
            Place::B => Place::A,
        }
    }

    /// As duel is told.
    pub(crate) fn target_name(self) -> &'static str {
        match self {
            Place::A => "A",
            Place::B => "B",
        }
    }

    pub(crate) fn name(self) -> String {
        format!("{}.twin.test", self.target_name().to_ascii_lowercase())
    }

    pub(crate) fn server_address(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, self.number(), 2)
    }

    pub(crate) fn server_address6(self) -> Ipv6Addr {
        Ipv6Addr::new(0xfd77, u16::from(self.number()), 0, 0, 0, 0, 0, 2)
    }

    /// The client's usual one: the system chooses it.
    pub(super) fn client_address(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, self.number(), 1)
    }

    /// Further addresses of the client, on the interface towards this place.
    fn further_client(self, number: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, 8 + self.number(), number)
    }

    fn client_address6(self) -> Ipv6Addr {
        Ipv6Addr::new(0xfd77, u16::from(self.number()), 0, 0, 0, 0, 0, 1)
    }

    fn number(self) -> u8 {
        match self {
            Place::A => 1,
            Place::B => 2,
        }
    }
}

/// All further addresses of the client, whichever interface has them.
const FURTHER_CLIENTS: &str = "10.77.8.0/22";

/// The server's interface.
const INTERFACE: &str = "eth0";

/// Lays the path, and starts the relay where there is one.
pub(crate) fn connect(
    client: &Namespace,
    server: &Namespace,
    place: Place,
    (network, server_cpus): (&Network, &str),
    folder: &Folder,
) -> anyhow::Result<Option<Running>> {
    let outer = format!("to-{}", place.target_name());
    let relay = match &network.path {
        Path::Veth => {
            veth((client, &outer), (server, INTERFACE))?;
            None
        }
        Path::Relay { to_server, to_client } => {
            let log = folder.path().join("relay.log");
            let program = std::env::current_exe()?;
            let mut relay = Launch::new(program)
                .args(["relay-packets", "--client-side", &outer, "--server-side", INTERFACE])
                .args(["--server-namespace", server.name()])
                .args(["--to-server", &link_word(to_server), "--to-client", &link_word(to_client)])
                .within(client)
                .start(&log)?;
            wait_until_ready(&mut relay, &log)?;
            Some(relay)
        }
    };
    address(client, &outer, (place.client_address(), place.server_address()), place.client_address6())?;
    address(server, INTERFACE, (place.server_address(), place.client_address()), place.server_address6())?;
    if network.further_clients > 0 {
        for number in 1..=network.further_clients {
            client.ip(&["addr", "add", &format!("{}/32", place.further_client(number)), "dev", &outer])?;
        }
        // Of both places: duel wants addresses that it can reach both targets from.
        server.ip(&["route", "add", FURTHER_CLIENTS, "dev", INTERFACE])?;
    }
    receive_on(server, INTERFACE, server_cpus)?;
    receive_on(client, &outer, CLIENT_CPU)?;
    condition(server, place, network)?;
    if network.no_offload {
        // Towards the server as well: who answers little does not notice.
        client.ip(&["link", "set", &outer, "gso_max_segs", "1"])?;
    }
    for loss in &network.losses {
        // Not on its way out of its sender: who sends is told of that, and what it then does is no retransmission.
        let (receiver, interface) = match loss.way {
            Way::ToClient => (client, outer.as_str()),
            Way::ToServer => (server, INTERFACE),
        };
        let protocol = match loss.packets {
            Packets::Tcp => "tcp",
            Packets::Udp => "udp",
        };
        receiver.firewall(&format!(
            "table inet faults-{outer}-{protocol} {{\n chain lossy {{\n  type filter hook input priority 0; policy accept;\n  \
             iifname \"{interface}\" meta l4proto {protocol} numgen random mod 1000 < {} counter drop\n }}\n}}\n",
            loss.per_mille
        ))?;
    }
    Ok(relay)
}

/// Has packets received where their receiver runs, as behind a network card. On a virtual link the sender's CPU would do
/// the receiver's work: its TCP, its firewall.
fn receive_on(namespace: &Namespace, interface: &str, cpus: &str) -> anyhow::Result<()> {
    let mask: u32 = match cpus.split_once('-') {
        None => 1 << cpus.parse::<u32>()?,
        Some((first, last)) => (first.parse::<u32>()?..=last.parse::<u32>()?).map(|cpu| 1 << cpu).sum(),
    };
    let script = format!("echo {mask:x} >/sys/class/net/{interface}/queues/rx-0/rps_cpus");
    namespace.run("sh", &["-c", &script]).map(drop).context("could not choose the CPU that packets are received on")
}

fn wait_until_ready(relay: &mut Running, log: &std::path::Path) -> anyhow::Result<()> {
    let until = Instant::now() + Duration::from_secs(10);
    while !std::fs::read_to_string(log)?.starts_with("ready") {
        relay.check()?;
        anyhow::ensure!(Instant::now() < until, "the packet relay does not get ready");
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn address(
    namespace: &Namespace,
    interface: &str,
    (own, peer): (Ipv4Addr, Ipv4Addr),
    own6: Ipv6Addr,
) -> anyhow::Result<()> {
    namespace.ip(&["addr", "add", &own.to_string(), "peer", &peer.to_string(), "dev", interface])?;
    namespace.ip(&["-6", "addr", "add", &format!("{own6}/64"), "dev", interface, "nodad"])?;
    // Packets wait in our queues, whose length we know, and not in the interface's.
    namespace.ip(&["link", "set", interface, "txqueuelen", "5000", "up"])
}

/// What is special on the server's side.
fn condition(server: &Namespace, place: Place, network: &Network) -> anyhow::Result<()> {
    for (name, value) in &network.sysctls {
        server.sysctl(name, value)?;
    }
    if let Some(mtu) = network.mtu {
        server.ip(&["link", "set", INTERFACE, "mtu", &mtu.to_string()])?;
    }
    if network.no_offload {
        server.ip(&["link", "set", INTERFACE, "gso_max_segs", "1"])?;
    }
    if let Some(segments) = network.initcwnd {
        let (own, peer) = (place.server_address().to_string(), place.client_address().to_string());
        let route = ["route", "replace", &peer, "dev", INTERFACE, "src", &own, "initcwnd", &segments.to_string()];
        server.ip(&route)?;
    }
    if let Some(rules) = &network.firewall {
        server.firewall(rules).context("could not load firewall rules")?;
    }
    if let Some(rate) = network.shaper_bit_per_s {
        let rate = format!("{rate}bit");
        let filter = ["tbf", "rate", &rate, "burst", "32k", "latency", "50ms"];
        let args: Vec<&str> = ["qdisc", "add", "dev", INTERFACE, "root"].into_iter().chain(filter).collect();
        server.run("tc", &args)?;
    }
    Ok(())
}
