//! `net.address-fallback`: the first address of the name is dead, the second answers.

use super::*;

pub(super) const INJECTION: Injection = Injection::new("net.address-fallback", verify);

pub(super) fn cases() -> Vec<Case> {
    let named = |server: Server| {
        Setup::of(server).connecting().with("ipv6-first", |twin| twin.address = Address::Name { delay_ms: 0, ipv6: true })
    };
    vec![
        INJECTION.case(&named(Server::Nginx), "silent", |twin| dead(twin, "drop")),
        INJECTION.case(&named(Server::Nginx).https(), "silent", |twin| dead(twin, "drop")),
        INJECTION.case(&named(Server::HaproxyNginx), "unreachable", |twin| {
            dead(twin, "reject with icmpv6 type admin-prohibited");
        }),
    ]
}

/// Nothing gets through to the IPv6 address.
fn dead(twin: &mut Twin, how: &str) {
    twin.network.firewall = Some(format!(
        "table ip6 faults {{\n chain dead {{\n  type filter hook input priority 0; policy accept;\n  \
         meta l4proto tcp iifname \"eth0\" counter {how}\n }}\n}}\n"
    ));
}

/// curl tells which address answered: the healthy twin by IPv6, the faulty one by IPv4.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let answered = |up: &Up| -> anyhow::Result<(String, f64)> {
        let url = up.url();
        let args = ["-s", "-k", "-o", "/dev/null", "-w", "%{remote_ip} %{time_connect}", &url];
        let said = arena.client.run("curl", &args)?;
        let (address, time) = said.split_once(' ').unwrap_or_default();
        Ok((address.to_owned(), time.trim().parse().unwrap_or(f64::NAN)))
    };
    let ((by, time_s), (faulty_by, faulty_time_s)) = (answered(&arena.healthy)?, answered(&arena.faulty)?);
    Ok(Bite {
        bites: by.contains(':') && !faulty_by.contains(':'),
        figures: format!(
            "answered by {faulty_by} after {:.1} ms against {by} after {:.1} ms",
            faulty_time_s * 1e3,
            time_s * 1e3
        ),
    })
}
