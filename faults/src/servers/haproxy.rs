//! HAProxy with a configuration of its own.

use super::certificates::Identity;
use super::network::Place;
use super::nginx::padding;
use crate::twin::{Balanced, Http, Tls, Versions};
use std::fmt::Write;

/// What the configuration needs to know.
pub(crate) struct Site<'a> {
    pub(crate) listen: &'a [String],
    pub(crate) tls: Option<(&'a Tls, &'a Identity)>,
    pub(crate) http: &'a Http,
    /// Address and port of the server behind it, and whether that one speaks TLS.
    pub(crate) backend: &'a str,
    pub(crate) backend_tls: bool,
    /// Whether connections to the server behind it are kept.
    pub(crate) backend_kept: bool,
    /// Requests that the server behind it gets at a time.
    pub(crate) backend_requests: Option<u32>,
}

/// The whole configuration.
pub(crate) fn config(site: &Site<'_>) -> String {
    // Fields are added in the room that is kept free in the buffer of an answer. By default that is 1 kB, which padding outgrows: an answer whose
    // body has filled the rest already becomes a 500.
    let mut global = "global\n  maxconn 4000\n  nbthread 1\n  tune.maxrewrite 8192\n".to_owned();
    let mut bind = String::new();
    if let Some((tls, identity)) = site.tls {
        let protocols = if site.http.http2 { " alpn h2,http/1.1" } else { "" };
        bind = format!(" ssl crt {}{}{protocols}", identity.both.display(), tls_words(tls));
        if let Some(bytes) = tls.record_bytes {
            let _ = writeln!(global, "  tune.ssl.maxrecord {bytes}");
        }
        if !tls.resumption {
            global += "  tune.ssl.cachesize 0\n";
        }
    }
    if let Some(streams) = site.http.most_streams {
        let _ = writeln!(global, "  tune.h2.max-concurrent-streams {streams}");
    }
    if let Some(bytes) = site.http.stream_window_bytes {
        let _ = writeln!(global, "  tune.h2.initial-window-size {bytes}");
    }
    let mut frontend = String::new();
    for listen in site.listen {
        let _ = writeln!(frontend, "  bind {listen}{bind} backlog {}", site.http.backlog);
    }
    if !site.http.keepalive {
        frontend += "  option httpclose\n";
    }
    if site.http.gzip_level.is_some() {
        frontend += "  compression algo gzip\n  compression type text/html\n";
    }
    for (name, value) in padding(site.http.padding_bytes) {
        let _ = writeln!(frontend, "  http-response set-header {name} {value}");
    }
    if !site.backend_kept {
        frontend += "  option http-server-close\n";
    }
    let mut for_usual = String::new();
    let backend_tls = if site.backend_tls { " ssl verify none" } else { "" };
    let requests = site.backend_requests.map_or(String::new(), |n| format!(" maxconn {n}"));
    if let Some(at_a_time) = site.http.usual_client_at_a_time {
        let [a, b] = [Place::A, Place::B].map(Place::client_address);
        let _ = writeln!(frontend, "  use_backend for-usual if {{ src {a} {b} }}");
        for_usual = format!("backend for-usual\n  server one {}{backend_tls} maxconn {at_a_time}\n", site.backend);
    }
    format!(
        "{global}defaults\n  mode http\n  http-reuse always\n  timeout connect 10s\n  timeout client 60s\n  \
         timeout server 60s\n  timeout queue 60s\n  timeout http-keep-alive 600s\n\
         frontend front\n{frontend}  default_backend behind\n\
         backend behind\n  server one {}{backend_tls}{requests}\n{for_usual}",
        site.backend
    )
}

/// One that hands out connections, or requests, to these servers in turn. What is in a connection it does not look at, so TLS goes through.
pub(crate) fn balancer(by: Balanced, listen: &[String], servers: &[String]) -> String {
    let mode = match by {
        Balanced::Connections => "tcp",
        // A connection of its own to each server for each of ours.
        Balanced::Requests => "http\n  option http-keep-alive\n  http-reuse always",
    };
    let binds: String = listen.iter().map(|listen| format!("  bind {listen} backlog 4096\n")).collect();
    let servers: String =
        servers.iter().enumerate().map(|(number, server)| format!("  server s{number} {server}\n")).collect();
    format!(
        "global\n  maxconn 4000\n  nbthread 1\ndefaults\n  mode {mode}\n  timeout connect 10s\n  timeout client 600s\n  \
         timeout server 600s\nfrontend front\n{binds}  default_backend behind\nbackend behind\n  balance roundrobin\n{servers}"
    )
}

fn tls_words(tls: &Tls) -> String {
    let mut words = String::new();
    match tls.versions {
        Versions::Both => words += " ssl-min-ver TLSv1.2",
        Versions::Tls12 => words += " ssl-min-ver TLSv1.2 ssl-max-ver TLSv1.2",
    }
    if let Some(suites) = tls.suites12 {
        let _ = write!(words, " ciphers {suites}");
    }
    if let Some(suites) = tls.suites13 {
        let _ = write!(words, " ciphersuites {suites}");
    }
    if let Some(groups) = tls.groups {
        let _ = write!(words, " curves {groups}");
    }
    if !tls.resumption {
        words += " no-tls-tickets";
    }
    words
}
