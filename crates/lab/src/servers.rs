//! Which process is a target's server: the one that gets the connections that are made to the target, and none else.
//!
//! Several servers may listen on one port of a machine, each on an address of its own; a process may end, and its id may be given
//! to another one. Whatever is read of the wrong process would accuse the wrong cause, so doubt ends the search.

use crate::hosts::Hosts;
use crate::kinds;
use duel_host::{HostError, Server, Serving};
use duel_load::LeadsTo;
use duel_model::{
    Facts, HostAccess, HostPlan, Known, PEER, Plan, ProcessIdentity, ServerPlan, Target, WorkloadPlan, sanitize_line,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// What connections to each target are made to, as its first answer (or any later one) told; `None` where it is not known, or
/// where it is no address of the target's server.
pub(crate) fn peers<'a>(plan: &Plan, negotiated: impl Fn(usize) -> Option<&'a Facts>) -> Vec<Option<SocketAddr>> {
    let leads_to_servers = kinds::of(&plan.workload).leads_to(&plan.workload) == LeadsTo::Server;
    let peer = |index| negotiated(index)?.text(PEER)?.parse().ok();
    (0..plan.targets.len()).map(|index| if leads_to_servers { peer(index) } else { None }).collect()
}

/// The port that a target's server listens on, as far as its address tells.
pub fn server_port(workload: &WorkloadPlan, target: &Target) -> Option<u16> {
    kinds::of(workload).server_port(&target.address)
}

/// The port of this machine that a target's server listens on, where its address says so and connections are made to none else.
pub fn port_on_this_machine(workload: &WorkloadPlan, target: &Target) -> Option<u16> {
    let is_led_elsewhere = matches!(kinds::of(workload).leads_to(workload), LeadsTo::UnixSocket | LeadsTo::Proxy);
    server_port(workload, target).filter(|_| names_this_machine(target) && !is_led_elsewhere)
}

/// Whether a target's address names this machine: by loopback, or by a number that the machine has. What a name stands for is known
/// when it is looked up, and not before.
pub(crate) fn names_this_machine(target: &Target) -> bool {
    let is_own_number = || target.machine().and_then(|name| name.parse().ok()).is_some_and(is_own);
    target.is_on_loopback() || is_own_number()
}

/// Whether this machine has the address: it can be bound to. Nothing is sent.
///
/// Where `ip_nonlocal_bind` is set, as on machines that may take over each other's addresses, any address can be bound to. There the
/// address has to be the one that datagrams to it go out from as well; of several addresses in one network that is said of the first.
pub(crate) fn is_own(address: IpAddr) -> bool {
    let can_be_bound = UdpSocket::bind((address, 0)).is_ok();
    can_be_bound && (address.is_loopback() || !binds_to_any(address) || goes_out_from_itself(address))
}

fn binds_to_any(address: IpAddr) -> bool {
    let family = if address.is_ipv4() { "ipv4" } else { "ipv6" };
    let setting = std::fs::read_to_string(format!("/proc/sys/net/{family}/ip_nonlocal_bind"));
    setting.is_ok_and(|setting| setting.trim() != "0")
}

fn goes_out_from_itself(address: IpAddr) -> bool {
    let anywhere: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let from = UdpSocket::bind((anywhere, 0)).and_then(|socket| {
        // Any port: datagrams have no connection.
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    from.is_ok_and(|from| from.ip() == address)
}

/// Programs that take connections and hand all that comes on them on, to a server on another machine or in a namespace of its own.
/// What they are and do says nothing about it.
const FORWARDERS: [&str; 12] = [
    "autossh",
    "docker-proxy",
    "gvproxy",
    "kubectl",
    "ncat",
    "pasta",
    "rootlessport",
    "slirp4netns",
    "socat",
    "ssh",
    "sshd",
    "sshd-session",
];

/// Why the process that was found by its port is not the server, if it is not.
pub(crate) fn hands_on(host: &HostPlan, facts: &Facts) -> Option<String> {
    let program = facts.server_program().filter(|_| matches!(host.server, ServerPlan::Port(_)))?;
    FORWARDERS.contains(&program).then(|| {
        format!("{program} listens there and hands connections on; where the server runs on this machine, --pid or --service names it")
    })
}

/// Whether a target is reached by a Unix socket of its address, and so is on this machine, as far as its server is not behind somebody who
/// hands connections on.
pub fn is_behind_socket(workload: &WorkloadPlan, target: &Target) -> bool {
    kinds::of(workload).socket(&target.address).is_some()
}

/// The process behind the Unix socket of a target's address, where none was named and the machine is this one; `None`: there is nobody to
/// be found so. Errors are sentences.
pub(crate) fn behind_socket(plan: &Plan, target: &Target) -> Option<Result<u32, String>> {
    let host = target.host.as_ref()?;
    let is_sought = host.server == ServerPlan::Unknown && host.access == HostAccess::Local;
    (is_sought && is_behind_socket(&plan.workload, target)).then(|| {
        let found = kinds::of(&plan.workload).listener(plan, &target.address);
        found.map_err(|why| {
            format!(
                "its server's process is not known: {why}; where it runs on this machine, --pid or --service names it"
            )
        })
    })
}

/// Whom to look for on a target's machine.
pub(crate) fn server(host: &HostPlan, workload: &WorkloadPlan) -> Result<Server, HostError> {
    let by_unix_socket = kinds::of(workload).leads_to(workload) == LeadsTo::UnixSocket;
    match &host.server {
        ServerPlan::Unknown => Ok(Server::Unknown),
        // Whoever listens on the port of the address is somebody else.
        ServerPlan::Port(_) if by_unix_socket => Ok(Server::Unknown),
        ServerPlan::Port(port) => Ok(Server::Port(*port)),
        ServerPlan::Pid(pid) => Ok(Server::Pid(*pid)),
        ServerPlan::Service(name) => Server::service(name),
    }
}

/// Why the process with the plan's id is not the one that the plan meant, if it is not.
pub(crate) fn not_meant(host: &HostPlan, facts: &Facts) -> Option<String> {
    let (ServerPlan::Pid(pid), Some(meant)) = (&host.server, &host.process) else { return None };
    let is_meant = ProcessIdentity::of_server(facts).as_ref() == Some(meant);
    (!is_meant).then(|| {
        format!(
            "process {pid} has ended since the plan was made, and the id may be another one's by now; --pid names the server \
             again"
        )
    })
}

/// Notes which processes the ids of a plan meant, so that they are not taken for others later.
pub(crate) fn note_processes(plan: &mut Plan, hosts: &Hosts) {
    for (target, facts) in plan.targets.iter_mut().zip(hosts.facts()) {
        if let (Some(host), Some(facts)) = (&mut target.host, facts)
            && matches!(host.server, ServerPlan::Pid(_))
        {
            host.process = ProcessIdentity::of_server(&facts);
        }
    }
}

/// The plan with what its run noted of processes.
pub(crate) fn with_noted_processes(plan: &Plan, noted: &Plan) -> Plan {
    let mut plan = plan.clone();
    for (target, noted) in plan.targets.iter_mut().zip(&noted.targets) {
        if let (Some(host), Some(noted)) = (&mut target.host, &noted.host)
            && host.server == noted.server
        {
            host.process.clone_from(&noted.process);
        }
    }
    plan
}

/// What weakens probes where another process serves than served in the comparison: it may have been started with something
/// else, or from another file.
pub(crate) fn started_anew(then: &Facts, now: &Facts) -> Option<&'static str> {
    let who = |facts| Some((pid(facts).ok()?, ProcessIdentity::of_server(facts)?));
    (who(then)? != who(now)?)
        .then_some("its server was started anew since the comparison: what is probed now may not be what was compared")
}

/// Takes ids of processes from the plan of an earlier run that did not note which processes they meant: for each the name of
/// its target, and a sentence for the user.
pub fn forget_unproven_ids(plan: &mut Plan) -> Vec<(String, String)> {
    let mut forgotten = Vec::new();
    for target in &mut plan.targets {
        if let Some(host) = &mut target.host
            && let ServerPlan::Pid(pid) = host.server
            && host.process.is_none()
        {
            host.server = ServerPlan::Unknown;
            let name = sanitize_line(&target.name);
            let why = format!(
                "which process {pid} was, the server of {name}, the run did not note; --pid {name}=PID names it again"
            );
            forgotten.push((target.name.clone(), why));
        }
    }
    forgotten
}

/// The process of a target's server, asked for right before something acts on it: it is the one that the facts tell of, and
/// holds a socket on which connections to the target arrive. Errors are sentences.
pub(crate) fn still_serving(hosts: &Hosts, target: usize) -> Result<u32, String> {
    let facts = hosts.facts().into_iter().nth(target).flatten().ok_or("the machine is not read")?;
    let pid = pid(&facts)?;
    same(pid, ProcessIdentity::of_server(&facts).as_ref(), &hosts.server(target)?)?;
    Ok(pid)
}

fn pid(facts: &Facts) -> Result<u32, String> {
    let why = || {
        let why = ["process.pid", "process"].into_iter().find_map(|key| match facts.0.get(key) {
            Some(Known::Unavailable(why)) => Some(format!(": {why}")),
            _ => None,
        });
        format!("the server's process is not known{}", why.unwrap_or_default())
    };
    let pid = facts.number("process.pid").ok_or_else(why)?;
    if pid >= 1.0 && pid <= f64::from(u32::MAX) && pid.fract() == 0.0 { Ok(pid as u32) } else { Err(why()) }
}

/// Whether who serves now is the process that the facts told of.
fn same(pid: u32, then: Option<&ProcessIdentity>, now: &Serving) -> Result<(), String> {
    if now.pid != Some(pid) {
        return Err(match now.pid {
            Some(other) => format!("the server was process {pid}, and now it is process {other}"),
            None => format!("process {pid} is not the server any more"),
        });
    }
    match (then, &now.identity) {
        (Some(then), Some(now)) if then == now => {}
        (Some(_), Some(_)) => return Err(format!("process {pid} has ended, and another one has its id")),
        _ => return Err(format!("whether process {pid} is still the same one is not known")),
    }
    match now.listens {
        Some(true) => Ok(()),
        Some(false) => {
            Err(format!("process {pid} does not listen where connections to the target go: another one is its server"))
        }
        None => Err(format!("whether process {pid} gets the connections to the target cannot be seen")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_model::{ComparePlan, HttpPlan, LoadPlan, ProxyPlan, Target};

    /// A plan on one target, whose server is this very process.
    fn plan(process: Option<ProcessIdentity>) -> Plan {
        let server = ServerPlan::Pid(std::process::id());
        let host = Some(HostPlan { access: HostAccess::Local, server, process, redfish: None });
        Plan {
            targets: vec![Target { name: "A".into(), address: "http://127.0.0.1:9/".into(), host }],
            workload: WorkloadPlan::Http(Box::default()),
            load: LoadPlan::default(),
            compare: ComparePlan::default(),
            factors: vec![],
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_id_is_believed_only_as_long_as_its_process_is_the_one_that_was_meant() {
        let mut first = plan(None);
        let hosts = Hosts::watch(&first, &[]);
        note_processes(&mut first, &hosts);
        let meant = first.targets[0].host.as_ref().unwrap().process.clone().unwrap();

        let (_, doubts) = Hosts::watch(&plan(Some(meant.clone())), &[]).finish(&first, false);
        assert!(!doubts.iter().any(|doubt| doubt.text.contains("has ended")), "{doubts:?}");
        for other in [ProcessIdentity::new(&meant.boot, "1"), ProcessIdentity::new("another boot", &meant.started)] {
            let hosts = Hosts::watch(&plan(other), &[]);
            assert!(hosts.facts()[0].as_ref().unwrap().value("process.pid").is_none());
            let why = still_serving(&hosts, 0).unwrap_err();
            assert!(why.contains("process is not known"), "{why}");
            let (records, doubts) = hosts.finish(&first, false);
            assert!(records[0].as_ref().unwrap().facts.text("os.kernel").is_some(), "the machine is read all the same");
            assert!(doubts.iter().any(|doubt| doubt.text.contains("has ended since the plan was made")), "{doubts:?}");
        }
    }

    #[test]
    fn own_addresses_are_known() {
        let is_own = |address: &str| is_own(address.parse().unwrap());
        assert!(is_own("127.0.0.1"));
        // Addresses of documents (RFC 5737, RFC 3849) are nobody's.
        assert!(!is_own("192.0.2.1") && !is_own("2001:db8::1"));
        // That towards all others, where there is a way there.
        let out = UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.connect("192.0.2.1:9").map(|()| socket));
        let Ok(own) = out.and_then(|socket| socket.local_addr()) else { return };
        assert!(super::is_own(own.ip()) && goes_out_from_itself(own.ip()), "{own}");
        assert!(!goes_out_from_itself("192.0.2.1".parse().unwrap()), "whatever may be bound to");
        let target = |host: &str| Target { name: "A".into(), address: format!("http://{host}:81/"), host: None };
        let http = WorkloadPlan::Http(Box::default());
        assert_eq!(port_on_this_machine(&http, &target(&own.ip().to_string())), Some(81));
        assert_eq!(port_on_this_machine(&http, &target("192.0.2.1")), None);
        assert_eq!(port_on_this_machine(&http, &target("a.example")), None, "names are not looked up for that");
    }

    #[test]
    fn who_hands_connections_on_is_not_the_server_unless_it_was_named() {
        let of = |server: ServerPlan, exe: &str| {
            let facts = Facts([("process.exe".to_owned(), Known::from(exe.to_owned()))].into());
            let host = HostPlan { server, ..plan(None).targets.remove(0).host.unwrap() };
            hands_on(&host, &facts)
        };
        assert!(of(ServerPlan::Port(80), "/usr/bin/ssh").unwrap().starts_with("ssh listens there"));
        assert!(of(ServerPlan::Port(80), "/usr/libexec/docker/docker-proxy (deleted)").is_some());
        assert_eq!(of(ServerPlan::Port(80), "/usr/sbin/nginx"), None);
        assert_eq!(of(ServerPlan::Pid(7), "/usr/sbin/sshd"), None);
    }

    #[test]
    fn ids_of_runs_that_noted_no_process_are_forgotten() {
        let mut unproven = plan(None);
        let forgotten = forget_unproven_ids(&mut unproven);
        assert!(forgotten[0].1.contains("--pid A=PID") && forgotten[0].0 == "A", "{forgotten:?}");
        assert_eq!(unproven.targets[0].host.as_ref().unwrap().server, ServerPlan::Unknown);
        let mut proven = plan(ProcessIdentity::new("b", "1"));
        assert_eq!(forget_unproven_ids(&mut proven), []);
        // What was noted by a run holds for the plan that was run.
        assert_eq!(with_noted_processes(&plan(None), &proven), proven);
    }

    #[test]
    fn an_address_tells_the_server_only_where_connections_end_at_it() {
        let negotiated = Facts::default().with(PEER, "127.0.0.2:443");
        let with = |http: HttpPlan| {
            let plan = Plan { workload: WorkloadPlan::Http(Box::new(http)), ..plan(None) };
            peers(&plan, |_| Some(&negotiated))[0]
        };
        assert_eq!(with(HttpPlan::default()), Some("127.0.0.2:443".parse().unwrap()));
        let proxy = Some(ProxyPlan { host: "proxy".into(), port: 3128 });
        assert_eq!(with(HttpPlan { proxy, ..HttpPlan::default() }), None);
        let unix_socket = Some("/run/x.sock".into());
        let by_path = HttpPlan { unix_socket, ..HttpPlan::default() };
        assert_eq!(with(by_path.clone()), None);
        let by_port = HostPlan { server: ServerPlan::Port(80), ..plan(None).targets.remove(0).host.unwrap() };
        assert_eq!(server(&by_port, &WorkloadPlan::Http(Box::new(by_path))).unwrap(), Server::Unknown);
        assert_eq!(server(&by_port, &WorkloadPlan::Http(Box::default())).unwrap(), Server::Port(80));
    }

    #[test]
    fn a_server_that_was_started_anew_since_the_comparison_is_said() {
        let facts = |pid: &str, started: &str, boot: &str| {
            let told = [("process.pid", pid), ("process.started", started), ("os.boot_id", boot)];
            Facts(told.into_iter().map(|(key, value)| (key.to_owned(), Known::from(value.to_owned()))).collect())
        };
        let then = facts("7", "500", "b");
        assert_eq!(started_anew(&then, &facts("7", "500", "b")), None);
        for other in [facts("8", "500", "b"), facts("7", "501", "b"), facts("7", "500", "c")] {
            assert!(started_anew(&then, &other).is_some(), "{other:?}");
        }
        assert_eq!(started_anew(&then, &Facts::default()), None, "it is not known");
    }

    #[test]
    fn only_a_number_of_a_process_is_one() {
        let told = |value: Known| Facts([("process.pid".to_owned(), value)].into());
        assert_eq!(pid(&told("42".into())), Ok(42));
        for wrong in ["0", "-1", "nan", "1e300", "x", "1.5"] {
            assert!(pid(&told(wrong.into())).is_err(), "{wrong}");
        }
        let why = pid(&told(Known::Unavailable("2 processes share it".into()))).unwrap_err();
        assert!(why.ends_with("not known: 2 processes share it"), "{why}");
    }

    #[test]
    fn a_process_is_the_server_only_as_long_as_it_is_the_same_and_listens() {
        let identity = |started: &str| ProcessIdentity::new("boot", started);
        let now = |pid, started: &str, listens| Serving { pid, identity: identity(started), listens };
        let then = identity("500");
        let is = |now: Serving| same(7, then.as_ref(), &now);
        assert_eq!(is(now(Some(7), "500", Some(true))), Ok(()));
        assert!(is(now(Some(8), "500", Some(true))).unwrap_err().contains("now it is process 8"));
        assert!(is(now(None, "", None)).unwrap_err().contains("not the server any more"));
        assert!(is(now(Some(7), "501", Some(true))).unwrap_err().contains("another one has its id"));
        assert!(is(now(Some(7), "500", Some(false))).unwrap_err().contains("another one is its server"));
        assert!(is(now(Some(7), "500", None)).unwrap_err().contains("cannot be seen"));
        assert!(same(7, None, &now(Some(7), "500", Some(true))).unwrap_err().contains("not known"));
    }
}
