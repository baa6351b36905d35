//! `tls.large-key`: a key that is dear to sign with.

use super::*;

pub(super) const INJECTION: Injection = Injection::new("tls.large-key", verify);

pub(super) fn cases() -> Vec<Case> {
    let anew = |server| Setup::of(server).https().connecting();
    let from_2048 = |server| anew(server).with("rsa2048", |twin| twin.tls_mut().key = Key::Rsa2048);
    vec![
        INJECTION.case(&anew(Server::Nginx), "rsa4096-for-p256", |twin| twin.tls_mut().key = Key::Rsa4096),
        INJECTION.case(&from_2048(Server::Nginx), "rsa4096-for-rsa2048", |twin| twin.tls_mut().key = Key::Rsa4096),
        INJECTION.case(&from_2048(Server::Apache), "rsa3072-for-rsa2048", |twin| twin.tls_mut().key = Key::Rsa3072),
        INJECTION.case(&anew(Server::HaproxyNginx), "rsa2048-for-p256", |twin| twin.tls_mut().key = Key::Rsa2048),
        INJECTION.case(&anew(Server::Ruler), "rsa4096-for-p256", |twin| twin.tls_mut().key = Key::Rsa4096),
    ]
}

/// A signature by RSA-2048 takes several times as long as one by P-256, by RSA-4096 some six times longer still.
pub(super) fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    Ok(Bite::ratio("server CPU per new connection, us", cpu_per_request(arena, &ToolLoad::connecting(8))?, 1.3))
}
