//! Twins of what is mostly found: nginx, Apache and HAProxy, started as root, with workers that are nobody in particular.
//! They need Linux, root, namespaces and these servers; where these are not to be had, that is said, and nothing fails.
#![cfg(target_os = "linux")]

use crate::common::{children, get, may_make_namespaces, skipped, wait_until, within};
use duel_twin::{NoTwin, ServerProcess, Twin, TwinOrder};
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;

/// The user of workers on Debian; where it is missing, nobody.
fn user() -> &'static str {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    if users.lines().any(|line| line.starts_with("www-data:")) { "www-data" } else { "nobody" }
}

/// A server with a main process and workers. It ends when dropped.
struct Server {
    main: Child,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Server {
    /// Started with the configuration that `config` makes of a folder, an address and a user; `None`, and said, where the
    /// program is not there.
    fn start(program: &[&str], config: impl Fn(&str, SocketAddr, &str) -> String) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(folder.path().join("index.html"), "it is me\n").unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let file = folder.path().join("conf");
        fs::write(&file, config(folder.path().to_str().unwrap(), address, user())).unwrap();
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).arg(&file).env_clear().env("PATH", "/usr/sbin:/usr/bin").current_dir("/");
        let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let Ok(main) = started else {
            skipped(&format!("there is no {}", program[0]));
            return None;
        };
        let server = Self { main, address, _folder: folder };
        wait_until("the server listens", || TcpStream::connect(address).is_ok());
        wait_until("it has a worker", || !children(server.main.id()).is_empty());
        Some(server)
    }

    /// A twin, found by each of its workers, answers as the server does.
    fn has_a_twin(&self) {
        let expected = get(&mut TcpStream::connect(self.address).unwrap());
        assert!(expected.starts_with("HTTP/1.1 200"), "{expected}");
        for worker in children(self.main.id()) {
            // A process tells no arguments while it executes itself anew, so its worker leads nowhere for that moment.
            wait_until("the worker leads to the main process", || {
                once_started(|| ServerProcess::read(worker)).pid == self.main.id()
            });
        }
        let twin = once_started(|| {
            let server = ServerProcess::read(self.main.id())?;
            let order = TwinOrder { server: &server, change: None, mask: None, address: self.address };
            Twin::start(&order, &AtomicBool::new(false))
        });
        let body = |answer: &str| answer.split_once("\r\n\r\n").unwrap().1.to_owned();
        let mut answer = String::new();
        wait_until("the twin answers", || {
            answer = within(twin.network_pid(), self.address, get);
            !answer.is_empty()
        });
        assert_eq!(body(&answer), body(&expected));
    }
}

/// What `look` finds, tried again for as long as it is told that the server is still starting. A server answers before it has
/// started: HAProxy's main process executes itself anew once its worker runs, and a worker gives up root's rights.
fn once_started<T>(mut look: impl FnMut() -> Result<T, NoTwin>) -> T {
    let mut found = None;
    wait_until("the server has started", || {
        let result = look();
        let is_starting =
            matches!(&result, Err(why) if why.to_string().contains("try again when the server has started"));
        found = (!is_starting).then_some(result);
        found.is_some()
    });
    found.unwrap().unwrap()
}

impl Drop for Server {
    fn drop(&mut self) {
        // The main process ends its workers, if it is asked to.
        let pid = rustix::process::Pid::from_child(&self.main);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.main.wait();
    }
}

fn applies() -> bool {
    may_make_namespaces()
}

#[test]
fn nginx_with_workers_of_another_user_has_a_twin() {
    if !applies() {
        return;
    }
    let nginx = Server::start(&["nginx", "-e", "/dev/null", "-c"], |folder, address, user| {
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {folder}/{kind};"))
            .concat();
        format!(
            "daemon off; user {user}; worker_processes 2; pid {folder}/pid; events {{}}\n\
             http {{ access_log {folder}/log; {temporary} server {{ listen {address}; root {folder}; }} }}\n"
        )
    });
    if let Some(nginx) = nginx {
        nginx.has_a_twin();
    }
}

#[test]
fn apache_with_workers_of_another_user_has_a_twin() {
    if !applies() {
        return;
    }
    let apache = Server::start(&["apache2", "-DFOREGROUND", "-f"], |folder, address, user| {
        let modules: String = ["mpm_event", "authz_core", "dir"]
            .map(|name| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"))
            .concat();
        let group = if user == "nobody" { "nogroup" } else { user };
        format!(
            "ServerRoot {folder}\nServerName twin\nPidFile {folder}/pid\nErrorLog {folder}/error\nListen {address}\n\
             DefaultRuntimeDir {folder}\n{modules}User {user}\nGroup {group}\nDocumentRoot {folder}\n\
             DirectoryIndex index.html\nStartServers 2\n"
        )
    });
    if let Some(apache) = apache {
        apache.has_a_twin();
    }
}

#[test]
fn haproxy_with_a_worker_of_another_user_has_a_twin_also_after_a_reload() {
    if !applies() {
        return;
    }
    let haproxy = Server::start(&["haproxy", "-W", "-f"], |_, address, user| {
        format!(
            "global\n user {user}\ndefaults\n mode http\n timeout client 5s\n timeout server 5s\n timeout connect 5s\n\
             frontend twin\n bind {address}\n http-request return status 200 content-type text/plain string ok\n"
        )
    });
    let Some(haproxy) = haproxy else { return };
    haproxy.has_a_twin();

    let before = children(haproxy.main.id());
    let pid = rustix::process::Pid::from_child(&haproxy.main);
    rustix::process::kill_process(pid, rustix::process::Signal::USR2).unwrap();
    wait_until("another worker has taken over", || {
        let now = children(haproxy.main.id());
        !now.is_empty() && now.iter().all(|worker| !before.contains(worker))
    });
    wait_until("the reloaded server answers", || {
        TcpStream::connect(haproxy.address).is_ok_and(|mut stream| !get(&mut stream).is_empty())
    });
    haproxy.has_a_twin();
}
