//! `net.congestion-control`: the server sends by another algorithm, on a path that loses a little.

use super::*;

pub(super) const INJECTION: Injection<Net> = Injection::new("net.congestion-control", |arena| slower(arena, 1.3));

pub(super) fn cases() -> Vec<Case> {
    let lossy = |rtt_ms: u64, streams: u32, loss_ppm: u32| {
        lossy(Setup::over(Op::BulkReverse).streams(streams).distant(rtt_ms), loss_ppm)
    };
    let cases = [
        (lossy(20, 1, 1000), "reno"),
        (lossy(40, 1, 1000), "cubic"),
        (lossy(10, 2, 5000), "reno"),
        (lossy(40, 1, 500), "reno"),
        (lossy(5, 1, 5000), "reno"),
        (lossy(15, 4, 3000), "reno"),
    ];
    let there = allowed();
    let is_there = |name: &str| there.iter().any(|one| one == name);
    cases
        .iter()
        .map(|(setup, name)| match ["bbr", name].into_iter().find(|name| !is_there(name)) {
            None => INJECTION.case(setup, name, |twin| algorithm(twin, name)),
            Some(missing) => INJECTION.unavailable(setup, name, &format!("the kernel does not let namespaces have {missing}")),
        })
        .collect()
}

/// Losses of a radio link: who takes them for congestion sends little.
pub(super) fn lossy(setup: Setup<Net>, loss_ppm: u32) -> Setup<Net> {
    setup.with(&format!("loss{loss_ppm}ppm-bbr"), |twin| {
        if let Path::Relay { to_client, .. } = &mut twin.network.path {
            to_client.loss_ppm = loss_ppm;
        }
        algorithm(twin, "bbr");
    })
}

/// Namespaces may have those alone that everybody may choose.
pub(in crate::injections) fn allowed() -> Vec<String> {
    let there = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control").unwrap_or_default();
    there.split_whitespace().map(str::to_owned).collect()
}

pub(super) fn algorithm(twin: &mut PathTwin, name: &str) {
    const SETTING: &str = "net.ipv4.tcp_congestion_control";
    twin.network.sysctls.retain(|(setting, _)| *setting != SETTING);
    twin.network.sysctls.push((SETTING, name.to_owned()));
}
