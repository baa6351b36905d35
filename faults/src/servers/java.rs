//! The server that comes with Java, with a fixed pool of threads: what an application in a language with a virtual machine is
//! like.

use super::certificates::Identity;
use super::nginx::padding;
use crate::twin::{Tls, Twin, Versions};
use std::path::Path;

/// The program. It takes its settings as words such as `threads=64`.
pub(super) const SERVER: &str = include_str!("Server.java");

/// Threads of the pool: as many as any case has connections.
const THREADS: u32 = 64;

/// What the virtual machine is told.
pub(super) fn machine(tls: Option<&Tls>, twin: &Twin) -> Vec<String> {
    let mut words = vec![
        "-Xmx256m".to_owned(),
        // It would leave files in /tmp.
        "-XX:-UsePerfData".to_owned(),
        // Off by default, so that the body waits for the client's acknowledgement of the head.
        format!("-Dsun.net.httpserver.nodelay={}", twin.http.nodelay),
        "-Dsun.net.httpserver.idleInterval=600".to_owned(),
    ];
    words.extend(tls.and_then(|tls| tls.groups).map(|groups| format!("-Djdk.tls.namedGroups={groups}")));
    words
}

/// The settings of [`SERVER`]. `listen` is an address and a port, `file` what it serves.
pub(super) fn settings(listen: &str, tls: Option<(&Tls, &Identity)>, twin: &Twin, file: &Path) -> Vec<String> {
    let http = &twin.http;
    let mut words = vec![
        format!("listen={listen}"),
        format!("file={}", file.display()),
        format!("threads={}", http.at_a_time.unwrap_or(THREADS)),
        format!("keepalive={}", http.keepalive),
        format!("backlog={}", http.backlog),
        format!("handler={}", http.handler.word()),
    ];
    words.extend(http.gzip_level.map(|level| format!("gzip={level}")));
    words.extend(padding(http.padding_bytes).map(|(name, value)| format!("field={name}: {value}")));
    if let Some((tls, identity)) = tls {
        let versions = match tls.versions {
            Versions::Both => "TLSv1.2,TLSv1.3",
            Versions::Tls12 => "TLSv1.2",
        };
        words.push(format!("key={}", identity.key.display()));
        words.push(format!("chain={}", identity.chain.display()));
        words.push(format!("versions={versions}"));
    }
    words
}
