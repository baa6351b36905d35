//! Which processes make a twin, on which ports of its namespace.

use super::certificates::Identity;
use super::{Serve, Up, apache, content, haproxy, java, lighttpd, nginx, node, php};
use crate::twin::{Address, Ciphers, Front, Handler, Key, Log, Network, Process, Server, Tls, Twin, Versions};
use crate::world::{Cgroup, Launch, Limits, Throttle, Volume, World, log_volume, succeed};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where the server listens when something stands before it.
pub(crate) const BEHIND_PORT: u16 = 8080;
/// Where the relay to the last server of a balancer listens.
const RELAY_PORT: u16 = 8082;
/// Where the backend of [`Server::HaproxyNginx`], [`Server::HaproxyRuler`] and [`Server::NginxPhp`] listens.
const BACKEND_PORT: u16 = 8081;

impl Serve for Twin {
    fn name(&self) -> &'static str {
        self.server.name()
    }

    fn process(&self) -> &Process {
        &self.process
    }

    fn network(&self) -> &Network {
        &self.network
    }

    fn address(&self) -> Address {
        self.address.clone()
    }

    fn ports(&self) -> Vec<u16> {
        let mut ports = vec![self.port()];
        if self.front.is_some() {
            ports.push(BEHIND_PORT);
        }
        if matches!(self.front, Some(Front::Balancer { .. })) {
            ports.push(RELAY_PORT);
        }
        let is_pair = matches!(self.server, Server::HaproxyNginx | Server::HaproxyRuler | Server::NginxPhp);
        if is_pair && !self.http.asks_by_path {
            ports.push(BACKEND_PORT);
        }
        ports
    }

    fn start(world: &World, up: &mut Up) -> anyhow::Result<()> {
        up.disk = match (&up.twin.http.disk, up.twin.http.log) {
            (Some(plan), _) => Some(Volume::new(world, plan)?),
            (None, Log::OnDisk { synchronous }) => Some(log_volume(world, synchronous)?),
            (None, Log::Off | Log::Nowhere) => None,
        };
        content::place(up.root(), &up.twin)?;
        if let (Some(volume), false) = (&up.disk, up.twin.http.disk_throttle == Throttle::default()) {
            let devices = vec![(volume.device_number()?, up.twin.http.disk_throttle)];
            up.cgroup = Some(Cgroup::new(world, &Limits { devices, ..up.twin.process.limits.clone() })?);
        }
        start(up)
    }
}

impl Up {
    /// The folder that it serves files of.
    pub(crate) fn root(&self) -> &Path {
        let disk = self.disk.as_ref().filter(|_| self.twin.http.disk.is_some());
        disk.map_or(self.folder.path(), Volume::path)
    }

    /// Where a file of this name may lie that is none of what is served.
    pub(crate) fn scratch(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The file that is served.
    pub(crate) fn file(&self) -> PathBuf {
        self.root().join(content::FILE)
    }
}

/// Starts everything but the companion, from the back to the front.
fn start(up: &mut Up) -> anyhow::Result<()> {
    let twin = up.twin.clone();
    twin.possible().map_err(anyhow::Error::msg)?;
    let folder = up.folder.path().to_owned();
    let identity = match &twin.tls {
        Some(tls) => Some(Identity::make(&folder, tls)?),
        None => None,
    };
    let tls = twin.tls.as_ref().zip(identity.as_ref());
    let public = public_listens(&twin, twin.port());
    let behind = [format!("127.0.0.1:{BEHIND_PORT}")];
    let listens: &[String] = if twin.front.is_some() { &behind } else { &public };
    match twin.server {
        Server::Nginx => start_nginx(up, "server", listens, tls, &twin)?,
        Server::Apache => start_apache(up, listens, tls, &twin)?,
        Server::Ruler => start_ruler(up, &listens[0], &twin)?,
        Server::Own => start_own(up, &listens[0], &twin)?,
        Server::Node => start_node(up, &listens[0], tls, &twin)?,
        Server::Lighttpd => start_lighttpd(up, listens, tls, &twin)?,
        Server::NginxPhp => start_nginx_php(up, listens, tls, &twin)?,
        Server::Java => start_java(up, &listens[0], tls, &twin)?,
        Server::HaproxyNginx | Server::HaproxyRuler => start_haproxy_pair(up, listens, tls, &twin)?,
    }
    match twin.front {
        Some(front) => start_front(up, front, &public, tls, &twin),
        None => Ok(()),
    }
}

fn public_listens(twin: &Twin, port: u16) -> Vec<String> {
    let mut listens = vec![format!("0.0.0.0:{port}")];
    if let Address::Name { ipv6: true, .. } = twin.address {
        listens.push(format!("[::]:{port}"));
    }
    listens
}

fn log_path(up: &Up) -> Option<std::path::PathBuf> {
    match up.twin.http.log {
        Log::Off => None,
        Log::Nowhere => Some("/dev/null".into()),
        Log::OnDisk { .. } => up.disk.as_ref().map(|disk| disk.path().join("access.log")),
    }
}

fn launch_nginx(up: &mut Up, name: &str, site: &nginx::Site<'_>) -> anyhow::Result<()> {
    let folder = up.folder.path().join(name);
    std::fs::create_dir(&folder)?;
    let config = folder.join("nginx.conf");
    std::fs::write(&config, nginx::config(&folder, site))?;
    let launch = Launch::new("nginx").args([
        "-p".as_ref(),
        folder.as_os_str(),
        "-e".as_ref(),
        folder.join("error.log").as_os_str(),
        "-c".as_ref(),
        config.as_os_str(),
    ]);
    up.run(name, launch)
}

fn start_nginx(
    up: &mut Up,
    name: &str,
    listen: &[String],
    tls: Option<(&Tls, &Identity)>,
    twin: &Twin,
) -> anyhow::Result<()> {
    let root = up.root().to_owned();
    let log = log_path(up);
    let serve = nginx::Serve::Files(&root);
    launch_nginx(up, name, &nginx::Site { listen, tls, http: &twin.http, log: log.as_deref(), serve })
}

fn start_apache(up: &mut Up, listen: &[String], tls: Option<(&Tls, &Identity)>, twin: &Twin) -> anyhow::Result<()> {
    let root = up.folder.path().to_owned();
    let folder = root.join("server");
    std::fs::create_dir(&folder)?;
    let log = log_path(up);
    let site = apache::Site { listen, tls, http: &twin.http, log: log.as_deref(), root: &root };
    let config = folder.join("apache.conf");
    std::fs::write(&config, apache::config(&folder, &site))?;
    let launch = Launch::new("apache2").args(["-DFOREGROUND".as_ref(), "-f".as_ref(), config.as_os_str()]);
    up.run("server", launch)
}

fn start_ruler(up: &mut Up, listen: &str, twin: &Twin) -> anyhow::Result<()> {
    let mut launch = Launch::new(std::env::current_exe()?).args(["ruler", "--", "--listen", listen]);
    if let Some(tls) = &twin.tls {
        launch = launch.args(["--tls", ruler_key(tls.key)?]);
        if !tls.resumption {
            launch = launch.args(["--no-resumption"]);
        }
        match tls.versions {
            Versions::Both => {}
            Versions::Tls12 => launch = launch.args(["--tls12"]),
        }
        if tls.suites13 == Some(Ciphers::CHACHA20) {
            launch = launch.args(["--cipher", "chacha20"]);
        }
    }
    if !twin.http.keepalive {
        launch = launch.args(["--no-keepalive"]);
    }
    up.run("server", launch)
}

fn ruler_key(key: Key) -> anyhow::Result<&'static str> {
    Ok(match key {
        Key::P256 => "p256",
        Key::Rsa2048 => "rsa2048",
        Key::Rsa4096 => "rsa4096",
        Key::Rsa3072 => bail!("the ruler has no key of 3072 bits"),
    })
}

fn start_own(up: &mut Up, listen: &str, twin: &Twin) -> anyhow::Result<()> {
    let mut launch = Launch::new(std::env::current_exe()?).args(["own", "--listen", listen]);
    if !twin.http.nodelay {
        launch = launch.args(["--nagle"]);
    }
    if let Some(count) = twin.http.at_a_time {
        launch = launch.args(["--at-a-time", &count.to_string()]);
    }
    if twin.http.shared_lock {
        launch = launch.args(["--shared-lock"]);
    }
    if twin.http.handler != Handler::Plain {
        launch = launch.args(["--handler", &twin.http.handler.word()]);
    }
    up.run("server", launch)
}

fn start_node(up: &mut Up, listen: &str, tls: Option<(&Tls, &Identity)>, twin: &Twin) -> anyhow::Result<()> {
    let folder = up.folder.path().to_owned();
    let script = folder.join("server.js");
    std::fs::write(&script, node::SERVER)?;
    let file = folder.join("f.html");
    let settings = node::settings(listen, tls, twin, &file);
    up.run("server", Launch::new("node").args([script.into_os_string(), settings.into()]))
}

fn start_lighttpd(up: &mut Up, listen: &[String], tls: Option<(&Tls, &Identity)>, twin: &Twin) -> anyhow::Result<()> {
    let root = up.folder.path().to_owned();
    let folder = root.join("server");
    std::fs::create_dir(&folder)?;
    let config = folder.join("lighttpd.conf");
    let site = lighttpd::Site { listen, tls, http: &twin.http, root: &root };
    std::fs::write(&config, lighttpd::config(&folder, &site))?;
    up.run("server", Launch::new("lighttpd").args(["-D".as_ref(), "-f".as_ref(), config.as_os_str()]))
}

fn start_nginx_php(up: &mut Up, listen: &[String], tls: Option<(&Tls, &Identity)>, twin: &Twin) -> anyhow::Result<()> {
    let folder = up.folder.path().to_owned();
    let (script, config) = (folder.join("page.php"), folder.join("fpm.conf"));
    let path = folder.join("fpm.sock");
    let (listen_at, address) = match twin.http.asks_by_path {
        true => (path.display().to_string(), format!("unix:{}", path.display())),
        false => (format!("127.0.0.1:{BACKEND_PORT}"), format!("127.0.0.1:{BACKEND_PORT}")),
    };
    std::fs::write(&script, php::PAGE)?;
    std::fs::write(&config, php::config(&folder, &listen_at, twin.http.at_a_time))?;
    let program = php::program().context("PHP-FPM is not installed")?;
    // Without the machine's php.ini, in the foreground, and as root like nginx here.
    let launch = Launch::new(program).args(["-n", "-F", "-R", "-y"]).args([config.as_os_str()]);
    up.run("backend", launch)?;
    // Of a port that is not open yet the client would be told; here nginx would answer that nobody is there.
    if twin.http.asks_by_path {
        wait_for(&path)?;
    }
    let told = php::told(&up.file(), twin.http.handler);
    let log = log_path(up);
    let serve = nginx::Serve::Script(nginx::Script { address: &address, path: &script, told: &told });
    launch_nginx(up, "server", &nginx::Site { listen, tls, http: &twin.http, log: log.as_deref(), serve })
}

/// Waits for a file that somebody makes.
fn wait_for(path: &Path) -> anyhow::Result<()> {
    let until = Instant::now() + Duration::from_secs(20);
    while !path.exists() {
        anyhow::ensure!(Instant::now() < until, "{} does not appear", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn start_java(up: &mut Up, listen: &str, tls: Option<(&Tls, &Identity)>, twin: &Twin) -> anyhow::Result<()> {
    let folder = up.folder.path().to_owned();
    let source = folder.join("Server.java");
    std::fs::write(&source, java::SERVER)?;
    // Beforehand, where none of the limits of the server holds.
    succeed("javac", &["-J-XX:-UsePerfData", "-d", &folder.to_string_lossy(), &source.to_string_lossy()])?;
    let launch = Launch::new("java")
        .args(java::machine(tls.map(|(tls, _)| tls), twin))
        .args(["-cp".as_ref(), folder.as_os_str(), "Server".as_ref()])
        .args(java::settings(listen, tls, twin, &up.file()));
    up.run("server", launch)
}

fn start_haproxy_pair(
    up: &mut Up,
    listen: &[String],
    tls: Option<(&Tls, &Identity)>,
    twin: &Twin,
) -> anyhow::Result<()> {
    let backend = format!("127.0.0.1:{BACKEND_PORT}");
    if twin.server == Server::HaproxyNginx {
        // The fault is HAProxy's alone.
        let plain = Twin::healthy(Server::Nginx);
        let mut backend_twin = twin.clone();
        backend_twin.http = crate::twin::Http { sendfile: twin.http.sendfile, ..plain.http };
        start_nginx(up, "backend", std::slice::from_ref(&backend), None, &backend_twin)?;
    } else {
        let launch = Launch::new(std::env::current_exe()?).args(["ruler", "--", "--listen", &backend]);
        up.run("backend", launch)?;
    }
    let site = haproxy::Site {
        listen,
        tls,
        http: &twin.http,
        backend: &backend,
        backend_tls: false,
        backend_kept: true,
        backend_requests: twin.http.at_a_time,
    };
    launch_haproxy(up, "server", &site)
}

fn launch_haproxy(up: &mut Up, name: &str, site: &haproxy::Site<'_>) -> anyhow::Result<()> {
    let config = up.folder.path().join(format!("{name}.cfg"));
    std::fs::write(&config, haproxy::config(site))?;
    up.run(name, Launch::new("haproxy").args(["-db".as_ref(), "-f".as_ref(), config.as_os_str()]))
}

/// A front speaks what the server would speak, and speaks it with the server, too.
fn start_front(
    up: &mut Up,
    front: Front,
    listen: &[String],
    tls: Option<(&Tls, &Identity)>,
    twin: &Twin,
) -> anyhow::Result<()> {
    let behind = format!("127.0.0.1:{BEHIND_PORT}");
    match front {
        Front::Haproxy { keeps } => {
            let http = crate::twin::Http::default();
            let site = haproxy::Site {
                listen,
                tls,
                http: &http,
                backend: &behind,
                backend_tls: tls.is_some(),
                backend_kept: keeps,
                backend_requests: None,
            };
            launch_haproxy(up, "front", &site)
        }
        Front::Nginx { keeps } => {
            let &crate::twin::Http { nodelay, caches_in_vain, .. } = &twin.http;
            let http = crate::twin::Http { nodelay, caches_in_vain, ..crate::twin::Http::default() };
            let behind = nginx::Behind { scheme: twin.scheme(), address: &behind, kept: keeps };
            let site = nginx::Site { listen, tls, http: &http, log: None, serve: nginx::Serve::PassTo(behind) };
            launch_nginx(up, "front", &site)
        }
        Front::Stream { rate_per_connection, rate_total, delay_us } => {
            let mut launch = stream_relay(&listen[0], &behind, delay_us, rate_per_connection)?;
            if let Some(rate) = rate_total {
                launch = launch.args(["--rate-total", &rate.to_string()]);
            }
            up.run("front", launch)
        }
        Front::Balancer { by, servers, last } => {
            let relay = format!("127.0.0.1:{RELAY_PORT}");
            // It passes bytes on in either direction.
            up.run("relay", stream_relay(&relay, &behind, last.longer_us / 2, last.rate)?)?;
            let mut all = vec![behind; servers.saturating_sub(1) as usize];
            all.push(relay);
            let config = up.folder.path().join("front.cfg");
            std::fs::write(&config, haproxy::balancer(by, listen, &all))?;
            up.run("front", Launch::new("haproxy").args(["-db".as_ref(), "-f".as_ref(), config.as_os_str()]))
        }
    }
}

fn stream_relay(listen: &str, to: &str, delay_us: u64, rate_per_connection: Option<u64>) -> anyhow::Result<Launch> {
    let launch = Launch::new(std::env::current_exe().context("where is this program?")?)
        .args(["relay-stream", "--listen", listen, "--to", to])
        .args(["--delay-us", &delay_us.to_string()]);
    Ok(match rate_per_connection {
        Some(rate) => launch.args(["--rate-per-connection", &rate.to_string()]),
        None => launch,
    })
}
