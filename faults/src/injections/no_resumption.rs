//! `tls.no-resumption`: neither tickets nor a session cache.

use super::*;

pub(super) const INJECTION: Injection = Injection::new("tls.no-resumption", verify);

pub(super) fn cases() -> Vec<Case> {
    // With a key of some price, or a handshake saved would hardly be noticed.
    let resumed = |server, key| {
        Setup::of(server).https().resuming().with(&format!("{key:?}").to_lowercase(), |twin| twin.tls_mut().key = key)
    };
    let off = |twin: &mut Twin| twin.tls_mut().resumption = false;
    vec![
        INJECTION.case(&resumed(Server::Nginx, Key::Rsa2048), "off", off),
        INJECTION.case(&resumed(Server::Nginx, Key::Rsa4096).bytes(10_000), "off", off),
        INJECTION.case(&resumed(Server::Apache, Key::Rsa2048), "off", off),
        INJECTION.case(&resumed(Server::HaproxyNginx, Key::Rsa2048), "off", off),
        INJECTION.case(&resumed(Server::Ruler, Key::Rsa2048), "off", off),
    ]
}

/// How many of the five connections that `openssl s_client -reconnect` makes after the first are resumed.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let resumed = |up: &Up| -> anyhow::Result<f64> {
        let to = format!("{}:443", up.place().server_address());
        let said = arena.client.run("openssl", &["s_client", "-connect", &to, "-tls1_2", "-reconnect"])?;
        Ok(said.lines().filter(|line| line.starts_with("Reused")).count() as f64)
    };
    let (healthy, faulty) = (resumed(&arena.healthy)?, resumed(&arena.faulty)?);
    Ok(Bite { bites: healthy >= 4.0 && faulty == 0.0, figures: format!("resumed of 5: {faulty} against {healthy}") })
}
