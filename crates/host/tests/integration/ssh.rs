//! The reader over ssh, against an sshd of the test's own in a network namespace of its own.

#![cfg(target_os = "linux")]

use crate::common;
use crate::common::moving::MOVING;
use crate::common::sshd::{Sshd, with_sshd};
use crate::common::{Killed, Nginx, free_port, parents, program, quiet};
use duel_host::{HostAccess, HostWatch, Options, Server};
use duel_model::HostSpan;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Environments of the shells that sshd started for us.
fn environments_of_remote_shells() -> Vec<String> {
    let read = |pid: u32| fs::read(format!("/proc/{pid}/environ")).ok();
    parents()
        .into_iter()
        .filter(|(pid, _)| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == b"/bin/sh\0-s\0"))
        .filter_map(|(pid, _)| Some(String::from_utf8_lossy(&read(pid)?).into_owned()))
        .filter(|environment| environment.contains("SSH_CONNECTION=127.0.0.1 "))
        .collect()
}

/// All facts, but for the values of those that move.
fn stable(watch: &HostWatch) -> Vec<(String, Option<duel_model::Known>)> {
    let facts = watch.facts().0.iter();
    facts.map(|(key, known)| (key.clone(), (!MOVING.contains(&key.as_str())).then(|| known.clone()))).collect()
}

#[test]
fn a_host_over_ssh_tells_what_it_tells_here() {
    with_sshd("ssh::a_host_over_ssh_tells_what_it_tells_here", || {
        let sshd = Sshd::start();
        let Some(nginx) = program("nginx", "a_host_over_ssh_tells_what_it_tells_here") else { return };
        let nginx = Nginx::start(nginx);
        let server = Server::Port(nginx.port);
        // The user's configuration would forward the agent, X11 and a port.
        let agent = Killed(
            Command::new("ssh-agent")
                .args(["-D", "-a"])
                .arg(sshd.path().join("agent"))
                .stdout(Stdio::null())
                .spawn()
                .unwrap(),
        );
        common::wait_until("the agent listens", || sshd.path().join("agent").exists());
        let socket = sshd.path().join("agent").display().to_string();
        let taken = free_port();
        sshd.config(
            "user",
            &format!("  ForwardAgent {socket}\n  ForwardX11 yes\n  LocalForward 127.0.0.1:{taken} 127.0.0.1:1\n"),
        );

        let far = sshd.open(&server).unwrap_or_else(|error| panic!("{error}\n{}", sshd.log()));
        let near = HostWatch::open_with(&HostAccess::Local, &server, &quiet()).unwrap();
        assert_eq!(far.facts().number("process.pid"), Some(f64::from(nginx.master())));
        assert_eq!(stable(&far), stable(&near));
        // Of every subject there is something, so that the same is not the same nothing.
        let known = |prefix: &str| near.facts().under(prefix).any(|(_, known)| known.text().is_some());
        for subject in
            ["os.", "cpu.", "clock.", "memory.", "tcp.", "net.", "vm.", "mount.", "link.", "cgroup.", "process."]
        {
            assert!(known(subject), "{subject}: {:?}", near.facts());
        }

        let environments = environments_of_remote_shells();
        assert!(!environments.is_empty(), "the far shell is one of sshd's");
        for environment in environments {
            assert!(!environment.contains("SSH_AUTH_SOCK") && !environment.contains("DISPLAY"), "{environment}");
        }
        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, taken)).is_err(), "no port is forwarded");
        drop(agent);

        let (from, to) = (far.sample().unwrap(), far.sample().unwrap());
        let near_sample = near.sample().unwrap();
        assert_eq!(
            to.counters.keys().filter(|key| key.starts_with("cpu.")).count(),
            near_sample.counters.keys().filter(|key| key.starts_with("cpu.")).count()
        );
        assert!(HostSpan::between(&from, &to).growth("process.cpu_ns").is_some());
        let record = far.finish();
        assert_eq!((record.how.as_str(), record.lost), ("over ssh to far", None));
        assert!(!record.last_words.is_empty());
        // The connection goes with the watch.
        common::wait_until("no ssh is left", || {
            !parents().iter().any(|(pid, _)| {
                fs::read(format!("/proc/{pid}/cmdline"))
                    .is_ok_and(|line| line.starts_with(b"ssh\0") && line.windows(5).any(|words| words == b"\0far\0"))
            })
        });
    });
}

#[test]
fn a_host_that_refuses_is_said() {
    with_sshd("ssh::a_host_that_refuses_is_said", || {
        let sshd = Sshd::start();
        let error = |sshd: &Sshd| sshd.open(&Server::Unknown).unwrap_err().to_string();

        sshd.known("stranger");
        let text = error(&sshd);
        assert!(text.contains("over ssh to far") && text.contains("host key has changed"), "{text}");

        fs::write(sshd.path().join("known"), "").unwrap();
        let text = error(&sshd);
        assert!(text.contains("Host key verification failed") && text.contains("by hand"), "{text}");
        assert_eq!(fs::read_to_string(sshd.path().join("known")).unwrap(), "", "no key is learnt in passing");

        sshd.known("host");
        sshd.config("stranger", "");
        let text = error(&sshd);
        assert!(text.contains("Permission denied"), "{text}");

        sshd.config("user", "");
        let nobody = fs::read_to_string(sshd.path().join("config")).unwrap().replace("User root", "User nobody-here");
        fs::write(sshd.path().join("config"), nobody).unwrap();
        let text = error(&sshd);
        assert!(text.contains("Permission denied"), "{text}");

        sshd.config("user", "");
        let elsewhere = fs::read_to_string(sshd.path().join("config"))
            .unwrap()
            .replace(&sshd.port.to_string(), &free_port().to_string());
        fs::write(sshd.path().join("config"), elsewhere).unwrap();
        let text = error(&sshd);
        assert!(text.contains("Connection refused"), "{text}");

        let options = Options { shell: vec!["sh".into(), "-c".into(), "a;b".into()], ..sshd.options() };
        let text =
            HostWatch::open_with(&HostAccess::ssh("far").unwrap(), &Server::Unknown, &options).unwrap_err().to_string();
        assert!(text.contains("'a;b'"), "{text}");

        let options = Options { ssh_config: Some("/no/such/config".into()), ..quiet() };
        let text =
            HostWatch::open_with(&HostAccess::ssh("far").unwrap(), &Server::Unknown, &options).unwrap_err().to_string();
        assert!(text.contains("No such file"), "{text}");
    });
}

#[test]
fn a_host_on_the_way_is_held_to_the_same() {
    with_sshd("ssh::a_host_on_the_way_is_held_to_the_same", || {
        let sshd = Sshd::start();
        let learnt = sshd.path().join("learnt");
        // The host on the way is the same sshd, under a name whose key the user would take unseen.
        let hop = format!(
            "  ProxyJump hop\nHost hop\n  HostName 127.0.0.1\n  Port {}\n  User root\n  IdentityFile {}\n  IdentitiesOnly yes\n  \
             UserKnownHostsFile {}\n  StrictHostKeyChecking no\n",
            sshd.port,
            sshd.path().join("user").display(),
            learnt.display()
        );
        sshd.config("user", &hop);
        let text = sshd.open(&Server::Unknown).unwrap_err().to_string();
        assert!(text.contains("Host key verification failed"), "{text}");
        assert!(!learnt.exists(), "no key is learnt in passing");

        fs::copy(sshd.path().join("known"), &learnt).unwrap();
        let watch = sshd.open(&Server::Unknown).unwrap_or_else(|error| panic!("{error}\n{}", sshd.log()));
        assert!(watch.facts().text("os.kernel").is_some());
    });
}

#[test]
fn a_hostile_login_shell_reaches_no_terminal() {
    with_sshd("ssh::a_hostile_login_shell_reaches_no_terminal", || {
        let garbage = "printf '\\033]0;owned\\007\\033[2J\\n' >&2; printf '\\033[2Jduel-0 + system\\nPlan9\\nduel-0 - system 0\\n'; \
            head -c 2000000 /dev/zero | tr '\\0' x; echo";
        let sshd = Sshd::start_with(garbage);
        let watch = sshd.open(&Server::Unknown).unwrap_or_else(|error| panic!("{error}\n{}", sshd.log()));
        assert!(watch.facts().text("os.kernel").is_some() && watch.sample().is_ok());
        let record = watch.finish();
        let shown = format!("{record:?}");
        assert!(!shown.contains("Plan9") && !shown.contains("\\u{1b}") && !shown.contains("owned"), "{shown}");

        // One that never comes to what it was asked for.
        let sshd = Sshd::start_with("exec yes \"$(printf '\\033[2J')duel-0 - frames 0\"");
        let options = Options { facts_timeout: Duration::from_secs(1), ..sshd.options() };
        let text =
            HostWatch::open_with(&HostAccess::ssh("far").unwrap(), &Server::Unknown, &options).unwrap_err().to_string();
        assert!(text.contains("did not answer within 1 s over ssh to far, but said: "), "{text}");
        assert!(!text.contains('\x1b') && text.len() < 2000, "{text:?}");
    });
}

#[test]
fn a_host_that_accepts_and_says_nothing_is_given_up() {
    with_sshd("ssh::a_host_that_accepts_and_says_nothing_is_given_up", || {
        let sshd = Sshd::start();
        let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let config = sshd.path().join("config");
        let text = fs::read_to_string(&config)
            .unwrap()
            .replace(&sshd.port.to_string(), &silent.local_addr().unwrap().port().to_string());
        fs::write(&config, text).unwrap();
        let options = Options { connect_timeout: Duration::from_secs(1), ..sshd.options() };
        let error =
            HostWatch::open_with(&HostAccess::ssh("far").unwrap(), &Server::Unknown, &options).unwrap_err().to_string();
        assert!(error.contains("timed out") || error.contains("no connection within"), "{error}");
    });
}

/// What a process of this test is to do, and where an sshd's client configuration is.
const CONNECTED: &str = "DUEL_TEST_CONNECTED";

/// No test by itself: a process that is connected, and waits to be killed or told to end.
#[test]
fn connects_for_the_other_tests() {
    let Some(config) = std::env::var_os(CONNECTED) else { return };
    let options = Options { ssh_config: Some(config.into()), ..quiet() };
    let watch = HostWatch::open_with(&HostAccess::ssh("far").unwrap(), &Server::Unknown, &options).unwrap();
    println!("\nconnected");
    let _ = std::io::stdin().read_line(&mut String::new());
    watch.finish();
}

#[test]
fn a_killed_one_leaves_no_connection_and_no_file() {
    with_sshd("ssh::a_killed_one_leaves_no_connection_and_no_file", || {
        let sshd = Sshd::start();
        let place = tempfile::tempdir().unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "ssh::connects_for_the_other_tests", "--nocapture"]).env("TMPDIR", place.path());
        command.env(CONNECTED, sshd.path().join("config")).env("XDG_RUNTIME_DIR", place.path());
        let mut child = Killed(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
        let told = BufReader::new(child.0.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(told.into_iter().any(|line| line == "connected"), "{}", sshd.log());
        assert!(!environments_of_remote_shells().is_empty(), "it is connected");
        drop(child);
        common::wait_until("the shell there ends with its connection", || environments_of_remote_shells().is_empty());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    });
}

#[test]
fn a_connection_that_breaks_leaves_what_there_is() {
    with_sshd("ssh::a_connection_that_breaks_leaves_what_there_is", || {
        let sshd = Sshd::start();
        let watch = sshd.open(&Server::Unknown).unwrap();
        watch.sample().unwrap();
        // All processes of the connection, but not sshd itself.
        let server = sshd.server.0.id();
        let children = common::children_of(server);
        assert!(!children.is_empty());
        for child in children {
            let pid = rustix::process::Pid::from_raw(child as i32).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
        let mut error = watch.sample();
        // The shell there may live on for a moment without its connection.
        common::wait_until("the end is noticed", || {
            error = watch.sample();
            error.is_err()
        });
        let error = error.unwrap_err().to_string();
        assert!(error.contains("over ssh to far"), "{error}");
        let record = watch.finish();
        assert!(record.lost.is_some() && !record.samples.is_empty() && record.facts.text("os.kernel").is_some());
    });
}
