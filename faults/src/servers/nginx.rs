//! nginx with a configuration of its own.

use super::certificates::Identity;
use crate::twin::{Http, Tls, Versions};
use std::fmt::Write;
use std::path::Path;

/// What one `server` block needs to know.
pub(crate) struct Site<'a> {
    /// `0.0.0.0:80` and the like.
    pub(crate) listen: &'a [String],
    pub(crate) tls: Option<(&'a Tls, &'a Identity)>,
    pub(crate) http: &'a Http,
    /// Where the log goes, if there is one.
    pub(crate) log: Option<&'a Path>,
    pub(crate) serve: Serve<'a>,
}

/// What the site does with requests.
pub(crate) enum Serve<'a> {
    Files(&'a Path),
    /// Passes them on.
    PassTo(Behind<'a>),
    /// Has a script answer all of them.
    Script(Script<'a>),
}

/// A script, and the FastCGI server that executes it.
pub(crate) struct Script<'a> {
    pub(crate) address: &'a str,
    pub(crate) path: &'a Path,
    /// What it is told with each request.
    pub(crate) told: &'a [(&'a str, String)],
}

/// The server that requests are passed on to.
pub(crate) struct Behind<'a> {
    pub(crate) scheme: &'a str,
    /// `127.0.0.1:8080` and the like.
    pub(crate) address: &'a str,
    /// Whether connections to it are kept.
    pub(crate) kept: bool,
}

/// The whole configuration.
pub(crate) fn config(folder: &Path, site: &Site<'_>) -> String {
    let dir = folder.display();
    let Http { workers, keepalive, backlog, sendfile, nodelay, .. } = *site.http;
    let on = |yes| if yes { "on" } else { "off" };
    let mut server = String::new();
    for listen in site.listen {
        let ssl = if site.tls.is_some() { " ssl" } else { "" };
        let http2 = if site.http.http2 { " http2" } else { "" };
        let _ = writeln!(server, "    listen {listen}{ssl}{http2} backlog={backlog};");
    }
    if let Some(bytes) = site.http.frame_bytes {
        let _ = writeln!(server, "    http2_chunk_size {bytes};");
    }
    if let Some(streams) = site.http.most_streams {
        let _ = writeln!(server, "    http2_max_concurrent_streams {streams};");
    }
    if let Some((tls, identity)) = site.tls {
        server += &tls_directives(tls, identity);
    }
    if let Some(level) = site.http.gzip_level {
        let _ = writeln!(server, "    gzip on; gzip_comp_level {level}; gzip_min_length 100; gzip_types *;");
    }
    if let Some(bytes) = site.http.copy_bytes {
        let _ = writeln!(server, "    output_buffers 1 {bytes};");
    }
    if let Some(rate) = site.http.limit_rate {
        let _ = writeln!(server, "    limit_rate {rate};");
    }
    if site.http.disk.is_some() {
        server += "    directio 4k; output_buffers 2 128k;\n";
    }
    let mut upstream = String::new();
    let mut zone = String::new();
    if let Some(rate) = site.http.per_address_per_s {
        zone = format!("limit_req_zone $binary_remote_addr zone=clients:1m rate={rate}r/s;\n");
        // Who is too early waits, and nobody is refused.
        server += "    limit_req zone=clients burst=1000;\n";
    }
    for (name, value) in padding(site.http.padding_bytes) {
        let _ = writeln!(server, "    add_header {name} {value};");
    }
    let _ = match site.serve {
        Serve::Files(root) => writeln!(server, "    root {};", root.display()),
        Serve::PassTo(Behind { scheme, address, kept }) => {
            // As many as any case has connections: those beyond are closed after each request.
            let keep = if kept { "keepalive 64; keepalive_requests 100000000; keepalive_timeout 600;" } else { "" };
            let cache = if site.http.caches_in_vain {
                zone += &format!("proxy_cache_path {dir}/cache keys_zone=answers:1m max_size=64m;\n");
                "proxy_cache answers; proxy_cache_key $request_id; proxy_cache_valid 10m;"
            } else {
                ""
            };
            upstream = format!("upstream behind {{ server {address}; {keep} }}\n");
            writeln!(
                server,
                "    location / {{ proxy_pass {scheme}://behind; proxy_http_version 1.1; proxy_set_header Connection \"\"; \
             proxy_buffering {}; {cache} }}",
                on(nodelay)
            )
        }
        Serve::Script(ref script) => writeln!(server, "    {}", by_script(script)),
    };
    let log = site.log.map_or("off".to_owned(), |path| path.display().to_string());
    let timeout = if keepalive { 600 } else { 0 };
    format!(
        "daemon off; user root; worker_processes {workers}; pid {dir}/pid; error_log {dir}/error.log warn;\n\
         worker_rlimit_nofile 16384;\n\
         events {{ worker_connections 4096; }}\n\
         http {{\n  default_type text/html; access_log {log};\n\
         client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/fastcgi;\n\
         uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;\n\
         sendfile {}; tcp_nodelay {}; keepalive_timeout {timeout}; keepalive_requests 100000000;\n\
         {upstream}{zone}server {{\n{server}  }}\n}}\n",
        // It would go by the page cache.
        on(sendfile && site.http.disk.is_none()),
        on(nodelay),
    )
}

fn by_script(script: &Script<'_>) -> String {
    let told: String = script.told.iter().map(|(name, value)| format!("fastcgi_param {name} {value}; ")).collect();
    // What does not fit into the buffers waits at the script, and not in a file.
    format!(
        "location / {{ fastcgi_pass {}; fastcgi_param REQUEST_METHOD $request_method; \
         fastcgi_param SCRIPT_FILENAME {}; {told}fastcgi_buffers 64 16k; fastcgi_buffer_size 16k; \
         fastcgi_max_temp_file_size 0; }}",
        script.address,
        script.path.display(),
    )
}

/// Header fields that nobody needs, of so many bytes in all.
pub(crate) fn padding(bytes: u32) -> impl Iterator<Item = (String, String)> {
    /// A line of 500 bytes: `X-Padding-NN: `, the value, and the line's end.
    const VALUE: u32 = 500 - 16;
    // The last line is as long as is left, and has a value.
    (0..bytes.div_ceil(500)).map(move |n| {
        let value = (bytes - n * 500).saturating_sub(16).clamp(1, VALUE);
        (format!("X-Padding-{n:02}"), "p".repeat(value as usize))
    })
}

fn tls_directives(tls: &Tls, identity: &Identity) -> String {
    let mut text = format!(
        "    ssl_certificate {}; ssl_certificate_key {};\n    ssl_protocols {};\n",
        identity.chain.display(),
        identity.key.display(),
        match tls.versions {
            Versions::Both => "TLSv1.2 TLSv1.3",
            Versions::Tls12 => "TLSv1.2",
        }
    );
    if let Some(suites) = tls.suites12 {
        let _ = writeln!(text, "    ssl_ciphers {suites}; ssl_prefer_server_ciphers on;");
    }
    if let Some(suites) = tls.suites13 {
        let _ = writeln!(text, "    ssl_conf_command Ciphersuites {suites}; ssl_prefer_server_ciphers on;");
    }
    if let Some(groups) = tls.groups {
        let _ = writeln!(text, "    ssl_ecdh_curve {groups};");
    }
    if let Some(bytes) = tls.record_bytes {
        let _ = writeln!(text, "    ssl_buffer_size {bytes};");
    }
    text += if tls.resumption {
        "    ssl_session_tickets on; ssl_session_cache shared:tls:10m;\n"
    } else {
        "    ssl_session_tickets off; ssl_session_cache off;\n"
    };
    text
}
