//! `tls.slow-group`: a key exchange that is dear.

use super::*;

pub(super) const INJECTION: Injection = Injection::new("tls.slow-group", verify);

pub(super) fn cases() -> Vec<Case> {
    let anew = |server| Setup::of(server).https().connecting();
    let slow = |twin: &mut Twin| twin.tls_mut().groups = Some("secp384r1");
    vec![
        INJECTION.case(&anew(Server::Nginx), "secp384r1", slow),
        INJECTION.case(&anew(Server::Apache).bytes(5000), "secp384r1", slow),
        INJECTION.case(&anew(Server::HaproxyNginx), "secp384r1", slow),
        INJECTION.unavailable(
            &anew(Server::Nginx),
            "secp521r1",
            "duel offers no group slower than secp384r1, so the two would have none in common",
        ),
    ]
}

/// OpenSSL has no fast code for P-384 as it has for X25519 and P-256.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    Ok(Bite::ratio("server CPU per new connection, us", cpu_per_request(arena, &ToolLoad::connecting(8))?, 1.3))
}
