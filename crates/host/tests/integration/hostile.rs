//! A server's owner who puts something else in the place of what is read.

#![cfg(target_os = "linux")]

use crate::common::{self, Killed, is_root, program, quiet, wait_until, with_shell};
use duel_host::{HostAccess, HostWatch, Options, Server};
use duel_model::{Facts, Known};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const VERSION: &str = "process.library.libz.version";

/// A process of nobody among mounts of its own that executes what it maps of a libz of its own.
struct Mapper {
    process: Killed,
    folder: tempfile::TempDir,
}

impl Mapper {
    fn start(python: PathBuf) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["", "lib", "link", "pipe"] {
            fs::create_dir_all(at(name)).unwrap();
            fs::set_permissions(at(name), Permissions::from_mode(0o755)).unwrap();
        }
        fs::write(at("lib/libz.so.1"), " deflate 1.2.3 Copyright 2000 \n").unwrap();
        // Only root may read it.
        fs::write(at("secret"), " deflate 6.6.6 Copyright 2000 \n").unwrap();
        fs::set_permissions(at("secret"), Permissions::from_mode(0o600)).unwrap();
        // What is put over the library's folder later.
        symlink(at("secret"), at("link/libz.so.1")).unwrap();
        make_pipe(&at("pipe/libz.so.1"));
        let script = "import mmap, time\nlibrary = open('lib/libz.so.1', 'rb')\n\
            kept = mmap.mmap(library.fileno(), 0, prot=mmap.PROT_READ | mmap.PROT_EXEC)\n\
            time.sleep(300)";
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(python)
            .args(["-c", script])
            .current_dir(folder.path())
            .stdin(Stdio::null());
        let mapper = Self { process: Killed(command.spawn().unwrap()), folder };
        let maps = format!("/proc/{}/maps", mapper.process.0.id());
        // With its folder: Python may map the system's own zlib long before.
        let library = mapper.folder.path().join("lib/libz.so.1");
        let library = library.to_str().unwrap();
        wait_until("the library is mapped", || fs::read_to_string(&maps).is_ok_and(|maps| maps.contains(library)));
        mapper
    }

    /// Puts a folder over the library's, among the process's own mounts, as the root of a container may. The mapping's name
    /// stays as it was.
    fn put_over(&self, name: &str) {
        let mut command = Command::new("nsenter");
        command.arg(format!("--mount=/proc/{}/ns/mnt", self.process.0.id())).args(["mount", "--bind"]);
        let done = command.arg(self.folder.path().join(name)).arg(self.folder.path().join("lib")).status();
        assert!(done.unwrap().success());
    }

    fn facts(&self, options: &Options) -> Facts {
        let server = Server::Pid(self.process.0.id());
        HostWatch::open_with(&HostAccess::Local, &server, options).unwrap().facts().clone()
    }
}

fn make_pipe(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
}

#[test]
fn what_was_put_in_a_library_s_place_is_neither_waited_for_nor_read() {
    const TEST: &str = "hostile::what_was_put_in_a_library_s_place_is_neither_waited_for_nor_read";
    let (true, Some(python), Some(setpriv)) = (is_root(TEST), program("python3", TEST), program("setpriv", TEST))
    else {
        return;
    };
    let mapper = Mapper::start(python);
    let setpriv = setpriv.to_str().unwrap();
    let as_nobody = with_shell(&[setpriv, "--reuid=65534", "--regid=65534", "--clear-groups", "/bin/sh", "-s"]);
    // A root in a container has to go by names, too.
    let weak_root = with_shell(&[setpriv, "--bounding-set=-sys_admin,-checkpoint_restore", "/bin/sh", "-s"]);
    let version = |options: &Options| mapper.facts(options).0.get(VERSION).cloned();
    let mapped = Some(Known::from("zlib 1.2.3".to_owned()));
    for options in [&quiet(), &as_nobody, &weak_root] {
        assert_eq!(version(options), mapped, "{:?}", options.shell);
    }

    mapper.put_over("link");
    assert_eq!(version(&quiet()), mapped, "root reads the mapping itself");
    for options in [&as_nobody, &weak_root] {
        let version = version(options);
        assert!(matches!(version, Some(Known::Unavailable(_))), "{:?}: {version:?}", options.shell);
    }

    mapper.put_over("pipe");
    assert_eq!(version(&quiet()), mapped, "root reads the mapping itself");
    for options in [&as_nobody, &weak_root] {
        let version = version(options);
        assert!(matches!(version, Some(Known::Unavailable(_))), "{:?}: {version:?}", options.shell);
    }
}

#[test]
fn a_pipe_that_comes_into_a_file_s_place_at_the_last_moment_is_not_waited_for() {
    const TEST: &str = "hostile::a_pipe_that_comes_into_a_file_s_place_at_the_last_moment_is_not_waited_for";
    if program("timeout", TEST).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pipe");
    make_pipe(&file);
    // As if it had been a file when it was looked at: what opens it has no other look before.
    let common = include_str!("../../src/script/common.sh")
        .replace("    [ -f \"$1\" ] || { echo 'duel: the file cannot be read'", "    : || { echo ''");
    let script = format!("STRINGS=x\n{common}\nread_once {0}\nread_once {0}\necho ended\n", file.display());
    let output = Command::new("/bin/sh").args(["-c", &script]).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("cannot be read within") && said.contains("left out") && said.ends_with("ended\n"), "{said}");
}

#[test]
fn the_shell_here_has_a_session_of_its_own() {
    const TEST: &str = "hostile::the_shell_here_has_a_session_of_its_own";
    if program("setsid", TEST).is_none() {
        return;
    }
    let watch = HostWatch::open_with(&HostAccess::Local, &Server::Unknown, &quiet()).unwrap();
    let is_shell = |pid: &u32| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == b"/bin/sh\0-s\0");
    let shells: Vec<u32> = common::children_of(std::process::id()).into_iter().filter(is_shell).collect();
    assert!(!shells.is_empty());
    for shell in shells {
        let pid = rustix::process::Pid::from_raw(shell as i32).unwrap();
        assert_eq!(rustix::process::getsid(Some(pid)), Ok(pid));
    }
    drop(watch);
}

#[test]
fn links_are_not_read_from_what_a_server_s_owner_calls_sys() {
    const TEST: &str = "hostile::links_are_not_read_from_what_a_server_s_owner_calls_sys";
    if !is_root(TEST) || ["unshare", "nsenter", "mount"].iter().any(|name| program(name, TEST).is_none()) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    fs::write(&secret, "a secret\n").unwrap();
    let ready = folder.path().join("ready");
    let script = format!(
        "mount -t tmpfs none /sys && mkdir -p /sys/class/net/lo && ln -s {} /sys/class/net/lo/operstate && \
         mkfifo /sys/class/net/lo/mtu && : >{} && exec sleep 300",
        secret.display(),
        ready.display()
    );
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "sh", "-c", &script]).stdin(Stdio::null()).stderr(Stdio::null());
    let server = Killed(command.spawn().unwrap());
    wait_until("it has a /sys of its own", || ready.exists());
    let server = Server::Pid(server.0.id());
    let watch = HostWatch::open_with(&HostAccess::Local, &server, &quiet()).unwrap();
    let facts = watch.facts();
    assert_eq!(facts.text("link.lo.state"), Some("down"), "{facts:?}");
    assert_eq!(facts.number("link.lo.mtu_bytes"), Some(65536.0));
    assert!(!format!("{facts:?}").contains("a secret"), "{facts:?}");
}

/// GNU sed runs what is found by a pattern with the flag `e`, and a link's owner chooses its name.
#[test]
fn the_name_of_a_link_is_no_program() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let done = at("done");
    for link in ["eth7", "a;|e;#", "*", "-x"] {
        fs::create_dir_all(at("class/net").join(link).join("device")).unwrap();
    }
    fs::create_dir(at("bin")).unwrap();
    let ethtool = format!("#!/bin/sh\necho 'tcp-segmentation-offload: on; touch {}'\n", done.display());
    fs::write(at("bin/ethtool"), ethtool).unwrap();
    fs::set_permissions(at("bin/ethtool"), Permissions::from_mode(0o755)).unwrap();
    let path = format!("PATH={}:/usr/sbin:/usr/bin:/sbin:/bin", at("bin").display());
    let shell = ["/usr/bin/env", &path, "/bin/sh", "-s"].map(str::to_owned).to_vec();
    let options = Options { shell, sys_root: folder.path().to_str().unwrap().to_owned(), ..quiet() };
    let watch = HostWatch::open_with(&HostAccess::Local, &Server::Unknown, &options).unwrap();
    let told = format!("{:?}", watch.facts());
    assert!(told.contains("link.eth7."), "the other link is read: {told}");
    assert!(!done.exists(), "the name was run");
}
