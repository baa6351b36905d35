//! What a server may encrypt with.

use crate::gap::Gap;
use duel_model::sanitize_line;

/// What else than libcrypto may carry the slow side's TLS: programs map that for other purposes, too.
pub(crate) fn other_tls_library(gap: &Gap<'_>) -> Option<String> {
    let fact = |key: &str| gap.host_fact(gap.slow, key);
    for library in ["libgnutls", "libwolfssl", "libnss3", "libssl3", "libmbedtls"] {
        if fact(&format!("process.library.{library}.path")).is_some() {
            return Some(library.to_owned());
        }
    }
    let version = fact("process.program.version");
    let built_in = version.filter(|version| ["BoringSSL", "AWS-LC"].iter().any(|name| version.contains(name)));
    built_in.or_else(|| fact("process.program.go")).map(|version| format!("{} in its program", sanitize_line(version)))
}
