//! `tls.slow-cipher`: the server insists on a suite that is slower on this CPU.

use super::*;
use crate::twin::Ciphers;

pub(super) const INJECTION: Injection = Injection::new("tls.slow-cipher", verify);

pub(super) fn cases() -> Vec<Case> {
    let bulk = |server| Setup::of(server).https().bytes(1_000_000).connections(4);
    // Vector instructions of the last ten years make ChaCha20 nearly as fast as AES; older CPUs lack them.
    let older = |setup: Setup| {
        setup.with("no-avx2", |twin| {
            twin.process.env.push(("OPENSSL_ia32cap".to_owned(), NO_SECOND_WORD.to_owned()));
        })
    };
    let version_12 = |setup: Setup| setup.with("tls12", |twin| twin.tls_mut().versions = Versions::Tls12);
    let chacha = |twin: &mut Twin| twin.tls_mut().suites13 = Some(Ciphers::CHACHA20);
    let chacha_12 = |twin: &mut Twin| twin.tls_mut().suites12 = Some("ECDHE-ECDSA-CHACHA20-POLY1305");
    vec![
        INJECTION.case(&bulk(Server::Nginx), "chacha20", chacha),
        INJECTION.case(&older(bulk(Server::Nginx)).bytes(300_000), "chacha20", chacha),
        INJECTION.case(&version_12(older(bulk(Server::Nginx))), "chacha20", chacha_12),
        INJECTION.case(&older(bulk(Server::Apache)), "chacha20", chacha),
        INJECTION.case(&older(bulk(Server::HaproxyNginx)), "chacha20", chacha),
        INJECTION.case(&bulk(Server::Ruler), "chacha20", chacha),
    ]
}

/// CPUID leaf 7 as if there were nothing in it: no AVX2, AVX-512, VAES, SHA. AES-NI is in the first word, and stays.
const NO_SECOND_WORD: &str = ":0";

/// The suites differ, and the one of the faulty twin takes more CPU time.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let chacha = |up: &Up| -> anyhow::Result<f64> {
        let to = format!("{}:443", up.place().server_address());
        let said = arena.client.run("openssl", &["s_client", "-connect", &to])?;
        Ok(if said.lines().any(|line| line.contains("Cipher is") && line.contains("CHACHA20")) { 1.0 } else { 0.0 })
    };
    let suites = Bite::more("ChaCha20 negotiated", (chacha(&arena.healthy)?, chacha(&arena.faulty)?), 1.0);
    // Well above duel's margin of 2 %.
    Ok(suites.and(Bite::ratio("server CPU per request, us", cpu_per_request(arena, &ToolLoad::over(4))?, 1.08)))
}
