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

/// OpenSSL's client keeps what it got on one connection, and offers it on the next, in both versions of TLS.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let resumed = |up: &Up| -> anyhow::Result<f64> {
        let mut count = 0.0;
        for version in ["-tls1_2", "-tls1_3"] {
            // TLS 1.3 sends tickets after the handshake, so the client has to listen for a moment.
            let script = "f=$(mktemp) && c=\"openssl s_client $2 -connect $1\" && (sleep 0.5 | $c -sess_out $f) \
                          >/dev/null 2>&1; $c -sess_in $f </dev/null 2>/dev/null; rm -f $f";
            let to = format!("{}:443", up.place().server_address());
            let said = arena.client.run("sh", &["-c", script, "sh", &to, version])?;
            count += f64::from(said.lines().any(|line| line.starts_with("Reused,")));
        }
        Ok(count)
    };
    let (healthy, faulty) = (resumed(&arena.healthy)?, resumed(&arena.faulty)?);
    Ok(Bite {
        bites: healthy == 2.0 && faulty == 0.0,
        figures: format!("versions of TLS that resume: {faulty} against {healthy}"),
    })
}
