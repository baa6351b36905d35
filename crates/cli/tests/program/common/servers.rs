//! Real servers, each with a configuration of its own below a test's folder.

use super::{DUEL, Place, free_port};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server that has not opened its ports by then never will.
const START: Duration = Duration::from_secs(15);

/// A running nginx, Apache or HAProxy: one process that has to be ended, and a few ports.
#[derive(Debug)]
pub(crate) struct Server {
    process: Child,
    ports: [u16; 3],
    folder: PathBuf,
}

impl Server {
    /// One of its ports, as `{1}`, `{2}` and `{3}` in its configuration.
    pub(crate) fn port(&self, number: usize) -> u16 {
        self.ports[number - 1]
    }

    pub(crate) fn http(&self, number: usize, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port(number))
    }

    pub(crate) fn https(&self, number: usize, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.port(number))
    }

    /// The lines of the server's own log of requests, once there are so many, or no more will come.
    pub(crate) fn access_log(&self, expected: usize) -> Vec<String> {
        let until = Instant::now() + Duration::from_secs(5);
        loop {
            let text = std::fs::read_to_string(self.folder.join("access.log")).unwrap_or_default();
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            if lines.len() >= expected || Instant::now() > until {
                return lines;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Starts it with ports that are free; tries others if somebody was quicker. `{dir}` is its folder.
    fn start(place: &Place, name: &str, template: &str, command: &dyn Fn(&str) -> Command) -> Self {
        let folder = place.path(name);
        std::fs::create_dir_all(&folder).unwrap();
        let mut said = String::new();
        for _ in 0..5 {
            let ports = [free_port(), free_port(), free_port()];
            let mut config = template.replace("{dir}", folder.to_str().unwrap());
            let mut used = Vec::new();
            for (number, port) in ports.iter().enumerate() {
                let mark = format!("{{{}}}", number + 1);
                if config.contains(&mark) {
                    config = config.replace(&mark, &port.to_string());
                    used.push(*port);
                }
            }
            let config = place.file(&format!("{name}/config"), config);
            let log = std::fs::File::create(folder.join("console.log")).unwrap();
            let process = command(&config)
                .stdin(Stdio::null())
                .stdout(log.try_clone().unwrap())
                .stderr(log)
                .spawn()
                .unwrap_or_else(|error| panic!("{name}: {error}; ./test installs the servers that tests need"));
            let mut server = Self { process, ports, folder: folder.clone() };
            if server.is_ready(&used) {
                return server;
            }
            drop(server);
            said = ["console.log", "error.log"]
                .iter()
                .map(|log| std::fs::read_to_string(folder.join(log)).unwrap_or_default())
                .collect();
        }
        panic!("{name} did not start: {said}");
    }

    fn is_ready(&mut self, ports: &[u16]) -> bool {
        let until = Instant::now() + START;
        while Instant::now() < until {
            if self.process.try_wait().unwrap().is_some() {
                return false;
            }
            if ports.iter().all(|&port| TcpStream::connect(("127.0.0.1", port)).is_ok()) {
                // Who answered could be somebody else, if this one could not bind and is about to give up.
                std::thread::sleep(Duration::from_millis(20));
                return self.process.try_wait().unwrap().is_none();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The command of a server, which the kernel ends with this process where `setpriv` can ask for that. It replaces
/// itself, so that the pid is the server's.
fn child(program: &str) -> Command {
    const SETPRIV: &str = "/usr/bin/setpriv";
    if !std::path::Path::new(SETPRIV).exists() {
        return Command::new(program);
    }
    let mut command = Command::new(SETPRIV);
    command.args(["--pdeathsig", "KILL", "--", program]);
    command
}

/// nginx as a single process, with `http` in its http block.
///
/// Requests are logged by status, bytes of body, connection and requests on it so far.
pub(crate) fn nginx(place: &Place, name: &str, http: &str) -> Server {
    nginx_with(place, name, http, &[])
}

/// As [`nginx`], with environment variables.
pub(crate) fn nginx_with(place: &Place, name: &str, http: &str, envs: &[(&str, &str)]) -> Server {
    let template = format!(
        "daemon off; master_process off; pid {{dir}}/pid; error_log {{dir}}/error.log warn;\n\
         events {{ worker_connections 2048; }}\n\
         http {{\n\
         default_type application/octet-stream;\n\
         log_format counts '$status $body_bytes_sent $connection $connection_requests $request_method $uri';\n\
         access_log {{dir}}/access.log counts;\n\
         client_body_temp_path {{dir}}/client; proxy_temp_path {{dir}}/proxy; fastcgi_temp_path {{dir}}/fastcgi;\n\
         uwsgi_temp_path {{dir}}/uwsgi; scgi_temp_path {{dir}}/scgi;\n\
         keepalive_requests 1000000;\n\
         {http}\n}}\n"
    );
    let folder = place.path(name);
    Server::start(place, name, &template, &|config| {
        let mut command = child("nginx");
        command.arg("-p").arg(&folder).arg("-e").arg(folder.join("error.log")).args(["-c", config]);
        command.envs(envs.iter().copied());
        command
    })
}

/// Apache in one process, with `directives` after what every such server needs.
pub(crate) fn apache(place: &Place, name: &str, directives: &str) -> Server {
    apache_with(place, name, directives, &[])
}

/// As [`apache`], with further modules.
pub(crate) fn apache_with(place: &Place, name: &str, directives: &str, further: &[&str]) -> Server {
    let ever = ["mpm_event", "authz_core", "ssl", "socache_shmcb", "deflate", "filter", "mime", "headers"];
    let modules: String = ever
        .iter()
        .chain(further)
        .map(|module| format!("LoadModule {module}_module /usr/lib/apache2/modules/mod_{module}.so\n"))
        .collect();
    place.file(&format!("{name}/types"), "text/html html\ntext/plain txt\n");
    let is_root = rustix::process::geteuid().is_root();
    let user = if is_root { "User www-data\nGroup www-data\n" } else { "" };
    let template = format!(
        "{modules}{user}ServerRoot {{dir}}\nDefaultRuntimeDir {{dir}}\nServerName localhost\nPidFile {{dir}}/pid\n\
         Mutex posixsem\nErrorLog {{dir}}/error.log\nTypesConfig {{dir}}/types\n\
         LogFormat \"%>s %B %m %U\" counts\nCustomLog {{dir}}/access.log counts\n\
         MaxKeepAliveRequests 0\nThreadsPerChild 64\nMaxRequestWorkers 64\nStartServers 1\n\
         <Directory />\nRequire all granted\n</Directory>\n{directives}\n"
    );
    Server::start(place, name, &template, &|config| {
        let mut command = child("apache2");
        command.args(["-X", "-f", config]);
        command
    })
}

/// HAProxy in one process, with `sections` after the defaults.
pub(crate) fn haproxy(place: &Place, name: &str, sections: &str) -> Server {
    let template = format!(
        "global\n  maxconn 1000\n  nbthread 1\ndefaults\n  mode http\n  timeout connect 10s\n  timeout client 60s\n  \
         timeout server 60s\n{sections}\n"
    );
    Server::start(place, name, &template, &|config| {
        let mut command = child("haproxy");
        command.args(["-db", "-f", config]);
        command
    })
}

/// The ruler as a child of this process.
#[derive(Debug)]
pub(crate) struct Ruler(duel_ruler::Child, bool);

impl Ruler {
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_with(args, &[])
    }

    pub(crate) fn start_with(args: &[&str], envs: &[(&str, &str)]) -> Self {
        let all = ["ruler"].into_iter().chain(args.iter().copied());
        let child = duel_ruler::Child::spawn(DUEL, all, envs.iter().copied()).unwrap();
        Self(child, args.contains(&"--tls"))
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", if self.1 { "https" } else { "http" }, self.0.addr())
    }

    pub(crate) fn port(&self) -> u16 {
        self.0.addr().port()
    }
}

/// A key and its self-signed certificate, as files.
#[derive(Debug)]
pub(crate) struct Certificate {
    pub(crate) key: String,
    pub(crate) certificate: String,
}

impl Certificate {
    /// For `127.0.0.1` and `localhost`; `key` as openssl calls it: `rsa:2048`, or `ec` for P-256.
    pub(crate) fn new(place: &Place, name: &str, key: &str) -> Self {
        Self::named(place, name, key, "IP:127.0.0.1,DNS:localhost")
    }

    /// For other names, as openssl writes them.
    pub(crate) fn named(place: &Place, name: &str, key: &str, names: &str) -> Self {
        let path = |end: &str| place.path(&format!("{name}.{end}")).to_str().unwrap().to_owned();
        let made = Self { key: path("key"), certificate: path("pem") };
        let curve = ["-pkeyopt", "ec_paramgen_curve:prime256v1"];
        let output = Command::new("openssl")
            .args(["req", "-x509", "-nodes", "-days", "30", "-subj", "/CN=duel test", "-newkey", key])
            .args(curve.iter().filter(|_| key == "ec"))
            .args(["-addext", &format!("subjectAltName={names}")])
            .args(["-keyout", &made.key, "-out", &made.certificate])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        made
    }

    /// nginx's directives for it.
    pub(crate) fn nginx(&self) -> String {
        format!("ssl_certificate {}; ssl_certificate_key {};", self.certificate, self.key)
    }
}
