//! The script for hosts where nothing of ours is, run on this one.

use duel_lens::speed::{SpeedOrder, script};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Ended and reaped when dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Says that a test is skipped for want of something that `./test` sees to; where that is set to skip nothing, it fails.
#[track_caller]
fn skipped(why: &str) {
    println!("skipped: {why}");
    assert!(
        std::env::var_os("DUEL_TESTS_SKIP_NOTHING").is_none_or(|value| value != "1"),
        "nothing may be skipped: {why}"
    );
}

/// `openssl enc`, which waits for its input with libcrypto mapped, started by these words as this user; and the library.
fn server(words: &[&str], uid: u32) -> Option<(Ended, String)> {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).args(["openssl", "enc", "-base64"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).current_dir("/");
    if uid != 0 {
        command.uid(uid).gid(uid);
    }
    let Ok(child) = command.spawn() else {
        skipped(&format!("there is no {}", words[0]));
        return None;
    };
    let server = Ended(child);
    for _ in 0..200 {
        let maps = fs::read_to_string(format!("/proc/{}/maps", server.0.id())).unwrap_or_default();
        if let Some(path) =
            maps.lines().find_map(|line| Some(&line[line.find('/')?..])).filter(|p| p.contains("openssl"))
            && let Some(library) =
                maps.lines().filter_map(|line| Some(&line[line.find('/')?..])).find(|p| p.contains("libcrypto"))
        {
            assert!(!path.is_empty());
            return Some((server, library.to_owned()));
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    skipped("openssl maps no libcrypto here");
    None
}

/// A root whose server is another's must not run what that other has chosen.
#[test]
fn the_library_is_run_with_the_server_s_rights() {
    const NOBODY: u32 = 65534;
    if !rustix::process::geteuid().is_root() || Command::new("setpriv").arg("--version").output().is_err() {
        skipped("it takes root and setpriv");
        return;
    }
    let Some((server, library)) = server(&["env"], NOBODY) else { return };
    // A command of ours in the place of ldd tells who runs it. It finds nothing, so that nothing is measured.
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("told");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(folder.path().join("ldd"), format!("#!/bin/sh\n{{ id -u; id -g; id -G; }} >'{}'\n", told.display()))
        .unwrap();
    fs::set_permissions(folder.path().join("ldd"), fs::Permissions::from_mode(0o755)).unwrap();
    let order = SpeedOrder::new(library, server.0.id());
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let ran = Command::new("sh").args(["-c", &script(&order)]).env("PATH", path).output().unwrap();
    let said = String::from_utf8(ran.stdout).unwrap();
    assert!(said.contains("not-available the openssl command maps no libcrypto"), "{said}");
    assert_eq!(fs::read_to_string(&told).unwrap(), format!("{NOBODY}\n{NOBODY}\n{NOBODY}\n"));
}

#[test]
fn a_process_that_maps_another_file_is_not_measured() {
    let Some((server, library)) = server(&["env"], 0) else { return };
    let ran = Command::new("sh").args(["-c", &script(&SpeedOrder::new("/lib/libcrypto.so.0", server.0.id()))]).output();
    let said = String::from_utf8(ran.unwrap().stdout).unwrap();
    assert!(said.contains(&format!("not-available process {} maps {library}", server.0.id())), "{said}");
}

/// A root in a container may name any library as its own; it is not run by a root outside.
#[test]
fn the_library_of_a_confined_root_is_not_run() {
    if !rustix::process::geteuid().is_root() {
        skipped("it takes root");
        return;
    }
    for words in [
        &["setpriv", "--bounding-set=-sys_admin", "--"][..],
        &["unshare", "--user", "--map-root-user"],
        &["unshare", "--mount", "sh", "-c", "mount --bind / /mnt && exec chroot /mnt \"$@\"", "sh"],
    ] {
        let Some((server, library)) = server(words, 0) else { continue };
        let library = library.strip_prefix("/mnt").unwrap_or(&library);
        let ran = Command::new("sh").args(["-c", &script(&SpeedOrder::new(library, server.0.id()))]).output();
        let said = String::from_utf8(ran.unwrap().stdout).unwrap();
        assert!(said.contains("duel-lens not-available the server"), "{words:?}: {said}");
        assert!(said.contains("more rights than it has"), "{words:?}: {said}");
    }
}
