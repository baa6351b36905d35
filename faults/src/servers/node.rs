//! Node.js with a server of one file: what an application in a language with an event loop is like.

use super::certificates::Identity;
use super::nginx::padding;
use crate::twin::{Tls, Twin, Versions};
use serde_json::{Value, json};
use std::path::Path;

/// The program. It takes its settings as one word of JSON.
pub(super) const SERVER: &str = include_str!("node.js");

/// The settings of [`SERVER`]. `listen` is an address and a port, `file` what it serves.
pub(super) fn settings(listen: &str, tls: Option<(&Tls, &Identity)>, twin: &Twin, file: &Path) -> String {
    let (host, port) = listen.rsplit_once(':').unwrap_or((listen, "80"));
    let padding: Vec<[String; 2]> = padding(twin.http.padding_bytes).map(|(name, value)| [name, value]).collect();
    let tls = tls.map_or(Value::Null, |(tls, identity)| {
        json!({
            "key": identity.key, "cert": identity.chain, "group": tls.groups,
            "latest": match tls.versions { Versions::Both => "TLSv1.3", Versions::Tls12 => "TLSv1.2" },
        })
    });
    json!({
        "host": host, "port": port.parse::<u16>().unwrap_or(80), "file": file, "padding": padding, "tls": tls,
        "keepalive": twin.http.keepalive, "backlog": twin.http.backlog, "gzip": twin.http.gzip_level,
        "handler": twin.http.handler.word(),
    })
    .to_string()
}
