//! `tls.slow-cipher`: the server insists on a suite that is slower on this CPU.

use super::*;
use crate::twin::Ciphers;

pub(super) const INJECTION: Injection = Injection::new("tls.slow-cipher", verify);

pub(super) fn cases() -> Vec<Case> {
    let bulk = |server| Setup::of(server).https().bytes(500_000).connections(4);
    let version_12 = |server| bulk(server).with("tls12", |twin| twin.tls_mut().versions = Versions::Tls12);
    let chacha = |twin: &mut Twin| twin.tls_mut().suites13 = Some(Ciphers::CHACHA20);
    let chacha_12 = |twin: &mut Twin| twin.tls_mut().suites12 = Some("ECDHE-ECDSA-CHACHA20-POLY1305");
    vec![
        INJECTION.case(&bulk(Server::Nginx), "chacha20", chacha),
        INJECTION.case(&version_12(Server::Nginx).bytes(100_000), "chacha20", chacha_12),
        INJECTION.case(&bulk(Server::Apache), "chacha20", chacha),
        INJECTION.case(&bulk(Server::HaproxyNginx), "chacha20", chacha),
        INJECTION.case(&bulk(Server::Ruler), "chacha20", chacha),
    ]
}

/// With AES instructions, ChaCha20-Poly1305 takes about twice the CPU time of AES-GCM per byte.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    Ok(Bite::ratio("server CPU per request, us", cpu_per_request(arena, &ToolLoad::over(4))?, 1.15))
}
