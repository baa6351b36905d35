//! lighttpd with a configuration of its own.

use super::certificates::Identity;
use super::nginx::padding;
use crate::twin::{Http, Tls, Versions};
use std::fmt::Write;
use std::path::Path;

/// What the configuration needs to know.
pub(crate) struct Site<'a> {
    /// `0.0.0.0:80` and the like.
    pub(crate) listen: &'a [String],
    pub(crate) tls: Option<(&'a Tls, &'a Identity)>,
    pub(crate) http: &'a Http,
    pub(crate) root: &'a Path,
}

/// Whether it is here with the modules that it is asked for. Debian has them in packages of their own.
pub(crate) fn is_installed() -> bool {
    let has = |module: &str| Path::new("/usr/lib/lighttpd").join(module).is_file();
    crate::world::is_installed("lighttpd") && has("mod_openssl.so") && has("mod_deflate.so")
}

/// The whole configuration.
pub(crate) fn config(folder: &Path, site: &Site<'_>) -> String {
    /// The most that it counts to. A connection is made anew after so many.
    const MANY_REQUESTS: u32 = 65_535;
    let dir = folder.display();
    let http = site.http;
    let mut text = format!(
        "server.modules = (\"mod_setenv\", \"mod_openssl\", \"mod_deflate\")\n\
         server.document-root = \"{}\"\nserver.errorlog = \"{dir}/error.log\"\nserver.upload-dirs = (\"{dir}\")\n\
         server.max-fds = 16384\nserver.listen-backlog = {}\nserver.max-keep-alive-idle = 600\n\
         server.max-keep-alive-requests = {}\nserver.feature-flags = (\"server.h2proto\" => \"{}\")\n\
         mimetype.assign = (\".html\" => \"text/html\")\n",
        site.root.display(),
        http.backlog,
        // None at all: each connection is closed after its first.
        if http.keepalive { MANY_REQUESTS } else { 0 },
        if http.http2 { "enable" } else { "disable" },
    );
    if http.workers > 1 {
        let _ = writeln!(text, "server.max-worker = {}", http.workers);
    }
    let fields: Vec<String> =
        padding(http.padding_bytes).map(|(name, value)| format!("\"{name}\" => \"{value}\"")).collect();
    if !fields.is_empty() {
        let _ = writeln!(text, "setenv.set-response-header = ({})", fields.join(", "));
    }
    if let Some(level) = http.gzip_level {
        let _ = writeln!(
            text,
            "deflate.mimetypes = (\"text/html\")\ndeflate.allowed-encodings = (\"gzip\")\ndeflate.compression-level = {level}"
        );
    }
    if let Some((tls, identity)) = site.tls {
        text += &tls_directives(tls, identity);
    }
    let tls = if site.tls.is_some() { "ssl.engine = \"enable\"" } else { "" };
    for (number, listen) in site.listen.iter().enumerate() {
        let (host, port) = listen.rsplit_once(':').unwrap_or((listen, "80"));
        let _ = match number {
            0 => writeln!(text, "server.bind = \"{host}\"\nserver.port = {port}\n{tls}"),
            _ => writeln!(text, "$SERVER[\"socket\"] == \"{listen}\" {{ {tls} }}"),
        };
    }
    text
}

fn tls_directives(tls: &Tls, identity: &Identity) -> String {
    let latest = match tls.versions {
        Versions::Both => "TLSv1.3",
        Versions::Tls12 => "TLSv1.2",
    };
    let mut words = vec![("MinProtocol", "TLSv1.2"), ("MaxProtocol", latest)];
    words.extend(tls.suites12.map(|suites| ("CipherString", suites)));
    words.extend(tls.suites13.map(|suites| ("Ciphersuites", suites)));
    words.extend(tls.groups.map(|groups| ("Groups", groups)));
    if !tls.resumption {
        // A cache of sessions it has not.
        words.push(("Options", "-SessionTicket"));
    }
    let words: Vec<String> = words.into_iter().map(|(name, value)| format!("\"{name}\" => \"{value}\"")).collect();
    format!(
        "ssl.pemfile = \"{}\"\nssl.privkey = \"{}\"\nssl.openssl.ssl-conf-cmd = ({})\n",
        identity.chain.display(),
        identity.key.display(),
        words.join(", ")
    )
}
