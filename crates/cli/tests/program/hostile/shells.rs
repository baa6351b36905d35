//! Machines behind ssh that lie: one sshd whose keys each lead to another lie, or another program in place of `ssh`.

use super::honest_run;
use super::meeting::{Manner, Meeting};
use crate::common::{Place, Ruler, free_port, skipped, wait_until};
use duel_ruler::hostile::ssh::{LIES, Place as Where, SshLie};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

/// An sshd of the test's own, which a key leads to each lie.
struct Sshd {
    place: Place,
    port: u16,
    process: Child,
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Its processes are its own: with it end all that it started.
const ALONE: [&str; 7] = ["--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc"];
/// sshd wants a folder of this name, which is given to it alone.
const SCRIPT: &str = "mount -t tmpfs tmpfs /run && mkdir /run/sshd && exec /usr/sbin/sshd -D -e -f \"$1\"";

impl Sshd {
    fn start() -> Self {
        let place = Place::new();
        let path = |name: &str| place.path(name).display().to_string();
        let key = |name: &str| {
            let made =
                Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path(name)).status();
            assert!(made.unwrap().success());
            std::fs::read_to_string(path(&format!("{name}.pub"))).unwrap()
        };
        let port = free_port();
        place.file("known", format!("[127.0.0.1]:{port} {}", key("host")));
        let mut authorized = String::new();
        for (number, lie) in LIES.iter().enumerate().filter(|(_, lie)| lie.place == Where::Command) {
            let script = place.file(&format!("lie{number}.sh"), lie.script);
            authorized.push_str(&format!("command=\"exec /bin/sh {script}\" {}", key(&format!("key{number}"))));
        }
        place.file("authorized", authorized);
        let config = place.file(
            "sshd_config",
            format!(
                "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPermitRootLogin yes\nUsePAM no\n\
                 StrictModes no\nPidFile none\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nMaxStartups 100\n",
                path("host"),
                path("authorized")
            ),
        );
        let log = std::fs::File::create(place.path("sshd.log")).unwrap();
        let process = Command::new("unshare")
            .args(ALONE)
            .args(["sh", "-c", SCRIPT, "sh", &config])
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let sshd = Self { place, port, process };
        wait_until("sshd listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        sshd
    }

    /// What stands in place of `ssh`: the real one, led to this sshd.
    fn client(&self, number: usize) -> String {
        let path = |name: &str| self.place.path(name).display().to_string();
        format!(
            "#!/bin/sh\nexec /usr/bin/ssh -o Port={} -o User=root -o IdentityFile={} -o IdentitiesOnly=yes \
             -o UserKnownHostsFile={} -o GlobalKnownHostsFile=/dev/null \"$@\"\n",
            self.port,
            path(&format!("key{number}")),
            path("known")
        )
    }
}

/// A meeting with each; only those in place of `ssh` where sshd takes rights that the test does not have.
pub(crate) fn meetings(honest: &Ruler) -> Vec<Meeting> {
    let has = |program: &str| std::path::Path::new(program).exists();
    let can = rustix::process::geteuid().is_root() && has("/usr/sbin/sshd") && has("/usr/bin/ssh");
    if !can {
        skipped("machines behind ssh that lie take root and an sshd");
    }
    let sshd = can.then(|| Arc::new(Sshd::start()));
    let script = |number: usize, lie: &SshLie| match lie.place {
        Where::Client => Some(format!("#!/bin/sh\n{}\n", lie.script)),
        Where::Command => sshd.as_ref().map(|sshd| sshd.client(number)),
    };
    LIES.iter()
        .enumerate()
        .filter_map(|(number, lie)| {
            let script = script(number, lie)?;
            let words = honest_run(honest, &["--ssh".to_owned(), "A=127.0.0.1".to_owned()]);
            let liars = sshd.iter().cloned().map(Box::new).collect();
            let meeting = Meeting::new(lie.name, lie.does, lie.expected, Manner::Beside, words, liars);
            let program = meeting.file("bin/ssh", &script);
            std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
            let folder = program.trim_end_matches("/ssh").to_owned();
            Some(meeting.with_programs_of(&folder))
        })
        .collect()
}
