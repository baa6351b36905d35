//! `tls.aes-unused`: the TLS library is told that the CPU has no AES instructions.

use super::*;

pub(super) const INJECTION: Injection = Injection::new("tls.aes-unused", verify);

/// Clears AES-NI and PCLMULQDQ in the first word, VAES and VPCLMULQDQ in the second: what is left is SSSE3 code.
const NO_AES: &str = "~0x200000200000000:~0x60000000000";
/// Clears SSSE3 (bit 41 of the first word) as well, so that tables are left.
const NO_SSSE3: &str = "~0x220020200000000:~0x60000000000";

pub(super) fn cases() -> Vec<Case> {
    let bulk = |server| Setup::of(server).https().bytes(200_000).connections(4);
    vec![
        INJECTION.case(&bulk(Server::Nginx), "no-aes", |twin| mask(twin, NO_AES)),
        INJECTION.case(&bulk(Server::Nginx).bytes(1_000_000), "tables", |twin| mask(twin, NO_SSSE3)),
        INJECTION.case(&bulk(Server::Apache).bytes(64_000), "no-aes", |twin| mask(twin, NO_AES)),
        INJECTION.case(&bulk(Server::HaproxyNginx), "no-aes", |twin| mask(twin, NO_AES)),
        INJECTION.case(&bulk(Server::Ruler), "no-aes", |twin| mask(twin, NO_AES)),
        INJECTION.case(&bulk(Server::Nginx).connecting(), "no-aes", |twin| mask(twin, NO_AES)),
    ]
}

/// The mask alone, for other files.
pub(super) fn without_aes(twin: &mut Twin) {
    mask(twin, NO_AES);
}

fn mask(twin: &mut Twin, words: &str) {
    twin.process.env.push(("OPENSSL_ia32cap".to_owned(), words.to_owned()));
}

/// AES-GCM by software costs several times as much per byte; bodies here are large enough for that to show.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    Ok(Bite::ratio("server CPU per request, us", cpu_per_request(arena, &ToolLoad::over(4))?, 1.3))
}
