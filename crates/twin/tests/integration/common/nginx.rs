//! A real nginx of its own.

use super::{children, wait_until};
use duel_model::TwinChange;
use duel_twin::{NoTwin, ServerProcess, Twin, TwinOrder};
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;

/// A private nginx with a main process and workers. Its main process has no terminal and no parent but us.
pub(crate) struct Nginx {
    pub(crate) main: Child,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) address: SocketAddr,
}

impl Nginx {
    /// With one worker.
    pub(crate) fn start(location: &str, envs: &[(&str, &str)]) -> Self {
        Self::of(&["nginx"], "worker_processes 1;", location, envs)
    }

    /// `command` is what starts nginx, `main` what its configuration begins with. In `location`, `DIR` is its folder.
    pub(crate) fn of(command: &[&str], main: &str, location: &str, envs: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let dir = folder.path().display();
        let location = location.replace("DIR", &dir.to_string());
        let config = format!(
            "daemon off; user root; {main} pid {dir}/pid; error_log {dir}/error.log warn;\n\
             events {{ worker_connections 64; }}\n\
             http {{ access_log {dir}/access.log; client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;\n\
             fastcgi_temp_path {dir}/fastcgi; uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;\n\
             include {dir}/sites/*.conf;\n\
             server {{ listen {address}; location / {{ {location} }} }} }}\n"
        );
        fs::write(folder.path().join("nginx.conf"), config).unwrap();
        fs::create_dir(folder.path().join("sites")).unwrap();
        let mut started = Command::new(command[0]);
        started.args(&command[1..]);
        started.arg("-e").arg(folder.path().join("error.log")).arg("-c").arg(folder.path().join("nginx.conf"));
        started.env_clear().env("PATH", "/usr/sbin:/usr/bin").envs(envs.iter().copied()).stdin(Stdio::null());
        let main = started.spawn().unwrap();
        let nginx = Self { main, folder, address };
        wait_until("nginx listens", || TcpStream::connect(address).is_ok());
        // Until its worker runs the main process may still show its own arguments.
        wait_until("nginx has a worker", || !children(nginx.main.id()).is_empty());
        nginx
    }

    pub(crate) fn twin(&self, change: Option<TwinChange>) -> Result<Twin, NoTwin> {
        // As the lab finds it: by the worker, which holds the socket as well.
        let server = ServerProcess::read(children(self.main.id())[0])?;
        assert_eq!(server.pid, self.main.id(), "the main process was started, not its worker");
        let order = TwinOrder { server: &server, change, mask: None, address: self.address };
        Twin::start(&order, &AtomicBool::new(false))
    }

    pub(crate) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // The main process ends its worker, if it is asked to.
        let pid = rustix::process::Pid::from_child(&self.main);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.main.wait();
    }
}
