//! Apache with a configuration of its own.

use super::certificates::Identity;
use super::nginx::padding;
use crate::twin::{Http, Tls, Versions};
use std::fmt::Write;
use std::path::Path;

/// What the configuration needs to know.
pub(crate) struct Site<'a> {
    pub(crate) listen: &'a [String],
    pub(crate) tls: Option<(&'a Tls, &'a Identity)>,
    pub(crate) http: &'a Http,
    pub(crate) log: Option<&'a Path>,
    pub(crate) root: &'a Path,
}

/// The whole configuration. One process with as many threads as there may be connections: `workers` counts processes.
pub(crate) fn config(folder: &Path, site: &Site<'_>) -> String {
    const MODULES: [&str; 8] =
        ["mpm_event", "authz_core", "ssl", "socache_shmcb", "deflate", "filter", "mime", "headers"];
    let dir = folder.display();
    let root = site.root.display();
    let mut text = String::new();
    for module in MODULES {
        let _ = writeln!(text, "LoadModule {module}_module /usr/lib/apache2/modules/mod_{module}.so");
    }
    // Apache refuses to serve as root.
    let _ = writeln!(
        text,
        "User www-data\nGroup www-data\nServerRoot {dir}\nDefaultRuntimeDir {dir}\nServerName localhost\n\
         PidFile {dir}/pid\nMutex posixsem\nErrorLog {dir}/error.log\nTypesConfig /dev/null\nAddType text/html .html\n\
         MaxKeepAliveRequests 0\nKeepAliveTimeout 600\nThreadsPerChild 64\nListenBackLog {}\nTimeout 60\n\
         StartServers {workers}\nServerLimit {workers}\nMaxRequestWorkers {}\n\
         MinSpareThreads 1\nMaxSpareThreads {}\n\
         DocumentRoot {root}\n<Directory {root}>\nRequire all granted\n</Directory>",
        site.http.backlog,
        64 * site.http.workers,
        64 * (site.http.workers + 1),
        workers = site.http.workers,
    );
    for listen in site.listen {
        let _ = writeln!(text, "Listen {listen}");
    }
    if site.http.http2 {
        text += "LoadModule http2_module /usr/lib/apache2/modules/mod_http2.so\nProtocols h2 http/1.1\n";
    }
    if let Some(streams) = site.http.most_streams {
        let _ = writeln!(text, "H2MaxSessionStreams {streams}");
    }
    let on = |yes| if yes { "On" } else { "Off" };
    let _ = writeln!(text, "KeepAlive {}\nEnableSendfile {}", on(site.http.keepalive), on(site.http.sendfile));
    // Without sendfile Apache maps files, which costs as little; copying needs both off.
    let _ = writeln!(text, "EnableMMAP {}", on(site.http.sendfile));
    if let Some(bytes) = site.http.copy_bytes {
        let _ = writeln!(text, "ReadBufferSize {bytes}\nFlushMaxThreshold {bytes}");
    }
    if let Some(level) = site.http.gzip_level {
        let _ = writeln!(text, "SetOutputFilter DEFLATE\nDeflateCompressionLevel {level}");
    }
    for (name, value) in padding(site.http.padding_bytes) {
        let _ = writeln!(text, "Header set {name} {value}");
    }
    if let Some(log) = site.log {
        let _ = writeln!(text, "LogFormat \"%h %t %r %>s %B\" bench\nCustomLog {} bench", log.display());
    }
    if let Some((tls, identity)) = site.tls {
        text += &tls_directives(tls, identity);
    }
    text
}

fn tls_directives(tls: &Tls, identity: &Identity) -> String {
    let mut text = format!(
        "SSLEngine on\nSSLCertificateFile {}\nSSLCertificateKeyFile {}\nSSLProtocol {}\n",
        identity.chain.display(),
        identity.key.display(),
        match tls.versions {
            Versions::Both => "-all +TLSv1.2 +TLSv1.3",
            Versions::Tls12 => "-all +TLSv1.2",
        }
    );
    if tls.suites12.is_some() || tls.suites13.is_some() {
        text += "SSLHonorCipherOrder on\n";
    }
    if let Some(suites) = tls.suites12 {
        let _ = writeln!(text, "SSLCipherSuite {suites}");
    }
    if let Some(suites) = tls.suites13 {
        let _ = writeln!(text, "SSLCipherSuite TLSv1.3 {suites}");
    }
    if let Some(groups) = tls.groups {
        let _ = writeln!(text, "SSLOpenSSLConfCmd Curves {groups}");
    }
    text += if tls.resumption {
        "SSLSessionTickets on\nSSLSessionCache shmcb:sessions(512000)\n"
    } else {
        // TLS 1.3 resumes by tickets of the library even so, unless there are to be none.
        "SSLSessionTickets off\nSSLSessionCache none\nSSLOpenSSLConfCmd NumTickets 0\n"
    };
    text
}
