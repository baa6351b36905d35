//! Servers and shells of the tests' own.

mod child;
#[cfg(target_os = "linux")]
pub(crate) mod far;
pub(crate) mod moving;
mod prerequisites;
#[cfg(target_os = "linux")]
pub(crate) mod sshd;

pub(crate) use child::Killed;
pub(crate) use prerequisites::{in_own_network, is_root, program};

use duel_host::Options;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Options without samples that nobody asked for, so that a test knows which there are.
pub(crate) fn quiet() -> Options {
    Options { period: None, ..Options::default() }
}

/// Options with another local shell.
pub(crate) fn with_shell(words: &[&str]) -> Options {
    Options { shell: words.iter().map(|word| (*word).to_owned()).collect(), ..quiet() }
}

/// Waits until something is so; panics after 20 s, which no machine should need.
pub(crate) fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !so() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// A private nginx with two workers, which may open fewer files than their master.
pub(crate) struct Nginx {
    pub(crate) port: u16,
    folder: TempDir,
    child: Option<Child>,
    program: PathBuf,
    environment: Vec<(&'static str, String)>,
}

impl Nginx {
    pub(crate) fn start(program: PathBuf) -> Self {
        Self::start_with(program, &[])
    }

    /// With these variables in its environment.
    pub(crate) fn start_with(program: PathBuf, environment: &[(&'static str, String)]) -> Self {
        let environment = environment.to_vec();
        let folder = tempfile::tempdir().unwrap();
        let mut nginx = Self { port: free_port(), folder, child: None, program, environment };
        let folder = nginx.folder.path().display();
        let config = format!(
            "daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 2; worker_rlimit_nofile 777; events {{}}\n\
             http {{ access_log off; client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;\n\
             uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;\n\
             server {{ listen 127.0.0.1:{} reuseport; location / {{ return 200 hi; }} }} }}",
            nginx.port
        );
        fs::write(nginx.folder.path().join("nginx.conf"), config).unwrap();
        nginx.run();
        nginx
    }

    pub(crate) fn run(&mut self) {
        let config = self.folder.path().join("nginx.conf");
        let mut command = Command::new(&self.program);
        command.arg("-c").arg(config).envs(self.environment.iter().map(|(name, value)| (name, value)));
        let child = command.stderr(Stdio::null()).spawn().unwrap();
        self.child = Some(child);
        wait_until("nginx listens", || TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok());
        wait_until("nginx has two workers", || self.workers().len() == 2);
    }

    pub(crate) fn master(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Ids of its workers, found by their parent.
    pub(crate) fn workers(&self) -> Vec<u32> {
        children_of(self.master())
    }

    pub(crate) fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // SIGTERM, so that the master ends its workers.
            if let Some(pid) = rustix::process::Pid::from_raw(child.id() as i32) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            }
            let _ = child.wait();
        }
    }

    /// One request and its answer.
    pub(crate) fn ask(&self) {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("hi"), "{answer}");
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        self.stop();
    }
}

/// All processes and their parents.
pub(crate) fn parents() -> Vec<(u32, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let Some((_, rest)) = stat.rsplit_once(") ") else { continue };
        if let Some(parent) = rest.split(' ').nth(1).and_then(|parent| parent.parse().ok()) {
            found.push((pid, parent));
        }
    }
    found
}

/// Ids of a process's children, in order.
pub(crate) fn children_of(pid: u32) -> Vec<u32> {
    let mut children: Vec<u32> =
        parents().into_iter().filter(|(_, parent)| *parent == pid).map(|(pid, _)| pid).collect();
    children.sort_unstable();
    children
}

/// The sum of a CPU's modes that are neither idle nor waiting, in ns, read without duel.
pub(crate) fn busy_ns() -> u64 {
    let stat = fs::read_to_string("/proc/stat").unwrap();
    let ticks: Vec<u64> =
        stat.lines().next().unwrap().split_whitespace().skip(1).map(|word| word.parse().unwrap()).collect();
    let ticks_per_s = Command::new("getconf").arg("CLK_TCK").output().unwrap().stdout;
    let tick_ns = 1_000_000_000 / String::from_utf8(ticks_per_s).unwrap().trim().parse::<u64>().unwrap();
    (ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6] + ticks[7]) * tick_ns
}
