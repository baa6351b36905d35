//! Twins of real servers that are set up otherwise. They need Linux, root and namespaces; where these are not to be had, that
//! is said, and nothing fails.
#![cfg(target_os = "linux")]

use crate::common;
use crate::common::nginx::Nginx;
use crate::common::{children, descendants, get, may_make_namespaces, sleeper, wait_until, within};
use duel_model::TwinChange;
use duel_twin::{ServerProcess, Twin, TwinOrder};
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;

fn changed(twin: &Twin) -> &str {
    twin.reading().changed.as_deref().unwrap()
}

/// The first CPU that this test may run on.
fn first_cpu() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    list.split([',', '-']).next().unwrap().to_owned()
}

/// How many processes of the twin have this title.
fn titled(twin: &Twin, title: &str) -> usize {
    let line = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    descendants(twin.network_pid()).iter().filter(|pid| line(pid).starts_with(title)).count()
}

#[test]
fn a_twin_has_more_workers_and_the_server_s_files_stay() {
    if !may_make_namespaces() {
        return;
    }
    let cpu = first_cpu();
    let main = "worker_processes 1; worker_cpu_affinity 1;";
    let nginx = Nginx::of(&["taskset", "-c", &cpu, "nginx"], main, "return 204;", &[]);
    let config = nginx.folder.path().join("nginx.conf");
    fs::set_permissions(&config, fs::Permissions::from_mode(0o600)).unwrap();
    let before = fs::read(&config).unwrap();
    let twin = nginx.twin(Some(TwinChange::MoreWorkers)).unwrap();
    // It has one for its only CPU already.
    assert_eq!(changed(&twin), "with worker_processes 4 instead of worker_processes 1, without worker_cpu_affinity 1");
    wait_until("all of its workers run", || titled(&twin, "nginx: worker") == 4);
    assert!(within(twin.network_pid(), nginx.address, get).starts_with("HTTP/1.1 204"));
    assert_eq!(fs::read(&config).unwrap(), before);
    assert_eq!(children(nginx.main.id()).len(), 1, "the running server has its one worker");
}

#[test]
fn a_twin_may_run_on_all_cpus() {
    if !may_make_namespaces() {
        return;
    }
    let all = fs::read_to_string("/sys/devices/system/cpu/online").unwrap().trim().to_owned();
    if !all.contains(['-', ',']) {
        common::skipped("there is one CPU only");
        return;
    }
    let cpu = first_cpu();
    let nginx = Nginx::of(&["taskset", "-c", &cpu, "nginx"], "", "return 204;", &[]);
    let cpus = |twin: &Twin| {
        let status = fs::read_to_string(format!("/proc/{}/status", twin.network_pid())).unwrap();
        status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_owned()
    };
    assert_eq!(cpus(&nginx.twin(None).unwrap()), cpu);
    match nginx.twin(Some(TwinChange::AllCpus)) {
        Ok(twin) => {
            assert_eq!(cpus(&twin), all);
            assert!(changed(&twin).starts_with(&format!("on the CPUs {all} instead of {cpu}, with worker_processes ")));
            assert!(!twin.reading().may_not_hold);
        }
        // This test may be confined to some of them itself.
        Err(why) => assert!(why.to_string().contains("may run on the CPUs"), "{why}"),
    }
}

#[test]
fn limits_are_found_in_what_is_included_too() {
    if !may_make_namespaces() {
        return;
    }
    let nginx = Nginx::of(&["nginx"], "", "root DIR; include DIR/sites/*.inc;", &[]);
    let why = |nginx: &Nginx| nginx.twin(Some(TwinChange::NoLimits)).unwrap_err().to_string();
    let sites = nginx.folder.path().join("sites");
    assert!(why(&nginx).contains("sets no limit"), "{}", why(&nginx));
    fs::write(nginx.folder.path().join("elsewhere"), "limit_rate 1k;").unwrap();
    symlink("../elsewhere", sites.join("limits.inc")).unwrap();
    fs::write(nginx.folder.path().join("f"), vec![b'x'; 100_000]).unwrap();
    // The running server knows nothing of its new limit; its twins read it.
    let twin = nginx.twin(Some(TwinChange::NoLimits)).unwrap();
    assert_eq!(changed(&twin), "without limit_rate 1k");
    // With its limit it would take 100 s.
    let answer = within(twin.network_pid(), nginx.address, |stream| {
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        use std::io::{Read, Write};
        stream.write_all(b"GET /f HTTP/1.1\r\nHost: twin\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer.len()
    });
    assert!(answer > 100_000, "{answer}");
    drop(twin);
    fs::remove_file(nginx.folder.path().join("elsewhere")).unwrap();
    assert!(why(&nginx).contains("cannot read") && why(&nginx).contains("limits.inc"), "{}", why(&nginx));
    fs::write(nginx.folder.path().join("elsewhere"), "a {").unwrap();
    assert!(why(&nginx).contains("is not understood"), "{}", why(&nginx));
}

#[test]
fn responses_are_sent_in_large_pieces() {
    if !may_make_namespaces() {
        return;
    }
    let location = "output_buffers 1 1k; return 204;";
    let nginx = Nginx::of(&["nginx"], "worker_processes 1;", location, &[]);
    let twin = nginx.twin(Some(TwinChange::LargePieces)).unwrap();
    assert_eq!(changed(&twin), "with output_buffers 2 32k instead of output_buffers 1 1k, with sendfile on");
    assert!(within(twin.network_pid(), nginx.address, get).starts_with("HTTP/1.1 204"));
}

#[test]
fn a_program_that_is_not_known_is_not_set_otherwise() {
    if !may_make_namespaces() {
        return;
    }
    let mut server = sleeper();
    let process = ServerProcess::read(server.id()).unwrap();
    let address = "127.0.0.1:9".parse().unwrap();
    let order = TwinOrder { server: &process, change: Some(TwinChange::MoreWorkers), mask: None, address };
    let why = Twin::start(&order, &AtomicBool::new(false)).unwrap_err().to_string();
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(why.contains("only nginx and Apache can be"), "{why}");
}

/// A server that ends with this.
struct Apache(Child);

impl Drop for Apache {
    fn drop(&mut self) {
        let _ = rustix::process::kill_process(rustix::process::Pid::from_child(&self.0), rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

/// A private Apache with a single thread.
fn apache(folder: &std::path::Path, address: SocketAddr) -> Apache {
    let dir = folder.display();
    let config = format!(
        "ServerRoot {dir}\nServerName localhost\nListen {address}\nPidFile {dir}/pid\nErrorLog {dir}/error.log\n\
         LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so\n\
         LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so\n\
         User www-data\nGroup www-data\nDocumentRoot {dir}\nServerLimit 1\nThreadsPerChild 1\nMaxRequestWorkers 1\n"
    );
    fs::write(folder.join("apache.conf"), config).unwrap();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new("apache2");
    command.args(["-D", "FOREGROUND", "-f"]).arg(folder.join("apache.conf"));
    let server = Apache(command.env_clear().env("PATH", "/usr/sbin:/usr/bin").stdin(Stdio::null()).spawn().unwrap());
    wait_until("Apache listens", || TcpStream::connect(address).is_ok());
    server
}

#[test]
fn a_twin_of_apache_has_more_workers() {
    if !may_make_namespaces() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = apache(folder.path(), address);
    let process = ServerProcess::read(server.0.id()).unwrap();
    let start = |change| {
        let order = TwinOrder { server: &process, change, mask: None, address };
        Twin::start(&order, &AtomicBool::new(false))
    };
    let threads = |twin: &Twin| {
        let count = |pid: u32| fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
        descendants(twin.network_pid()).into_iter().map(count).sum::<usize>()
    };
    let twin = start(Some(TwinChange::MoreWorkers)).unwrap();
    assert!(changed(&twin).starts_with("with ServerLimit 256 "), "{}", changed(&twin));
    // Four processes, each with its worker and two more threads.
    wait_until("its workers run", || threads(&twin) >= 4 * 3);
    assert!(twin.reading().may_not_hold);
    assert!(within(twin.network_pid(), address, get).starts_with("HTTP/1.1 "));
    drop(twin);
    drop(start(Some(TwinChange::LargePieces)).unwrap());
    let why = start(Some(TwinChange::NoLimits)).unwrap_err().to_string();
    assert!(why.contains("filters"), "{why}");
}
