//! What the libcrypto within a running server holds: at real servers, one of which overwrites its environment.

use super::{CHILD, cpu_has_aes, no_asm_libcrypto, skipped, system_libcrypto};
use duel_lens::{Architecture, ChildCommand, LensOrder, measure};
use duel_model::{Assembly, Capabilities, CapabilityVector, HardwareUse, LensOp, LensReading, SECOND_NS};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// The mask of the fault bench: it takes AES-NI and PCLMULQDQ, and with them all of the second half.
const MASK: (&str, &str) = ("OPENSSL_ia32cap", "~0x200000200000000");

/// Whether masks and features are known here; says that the check is skipped otherwise.
fn applies() -> bool {
    let applies = cfg!(target_os = "linux") && Architecture::here() == Some(Architecture::X86) && cpu_has_aes();
    if !applies {
        println!("  skipped: it takes Linux on x86, and a CPU with AES instructions");
    }
    applies
}

/// A process that is ended and reaped when dropped.
struct Server {
    child: Child,
    _folder: Option<tempfile::TempDir>,
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGTERM, so that a master ends its workers.
        if let Some(pid) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

impl Server {
    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Until it maps this library and has so many children.
    fn settled(self, children: usize) -> Self {
        for _ in 0..500 {
            let maps = fs::read_to_string(format!("/proc/{}/maps", self.pid())).unwrap_or_default();
            if maps.contains("libcrypto") && children_of(self.pid()) >= children {
                return self;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("the server did not start");
    }
}

fn children_of(pid: u32) -> usize {
    let told = Command::new("pgrep").args(["-c", "-P", &pid.to_string()]).output().unwrap();
    String::from_utf8_lossy(&told.stdout).trim().parse().unwrap_or(0)
}

/// A private nginx with two workers; `None`, and said, where there is none.
fn nginx(environment: &[(&str, &str)]) -> Option<Server> {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let at = folder.path().display();
    let config = format!(
        "daemon off; pid {at}/pid; error_log {at}/error.log; worker_processes 2; events {{}}\n\
         http {{ access_log off; client_body_temp_path {at}/a; proxy_temp_path {at}/b; fastcgi_temp_path {at}/c;\n\
         uwsgi_temp_path {at}/d; scgi_temp_path {at}/e; server {{ listen unix:{}; }} }}",
        socket.display()
    );
    fs::write(folder.path().join("nginx.conf"), config).unwrap();
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let started = Command::new("nginx")
        .env("PATH", path)
        .arg("-c")
        .arg(folder.path().join("nginx.conf"))
        .envs(environment.iter().copied())
        .stderr(Stdio::null())
        .spawn();
    let Ok(child) = started else {
        skipped("there is no nginx");
        return None;
    };
    Some(Server { child, _folder: Some(folder) }.settled(2))
}

/// `openssl enc`, which waits for its input, started by these words.
fn openssl(words: &[&str], environment: &[(&str, &str)]) -> Option<Server> {
    let started = Command::new(words[0])
        .args(&words[1..])
        .args(["openssl", "enc", "-base64"])
        // Cargo sets one for tests.
        .env_remove("LD_LIBRARY_PATH")
        .envs(environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(child) = started else {
        skipped(&format!("there is no {}", words[0]));
        return None;
    };
    Some(Server { child, _folder: None }.settled(0))
}

fn order(pid: u32) -> LensOrder {
    let child = ChildCommand { program: std::env::current_exe().unwrap(), arguments: vec![CHILD.into()] };
    let order = duel_lens::of_process(pid, child).unwrap();
    LensOrder { budget_ns: SECOND_NS, ops: vec![LensOp::Aes256Gcm, LensOp::Chacha20Poly1305], ..order }
}

fn reading(pid: u32) -> LensReading {
    let reading = measure(&order(pid)).unwrap();
    println!("{}", duel_lens::table(&reading));
    reading
}

#[track_caller]
fn vector(reading: &LensReading) -> &CapabilityVector {
    reading.capabilities.as_ref().and_then(Capabilities::vector).unwrap_or_else(|| panic!("{:?}", reading.capabilities))
}

pub(crate) fn a_server_without_a_mask_has_all_features() {
    if !applies() {
        return;
    }
    let Some(nginx) = nginx(&[]) else { return };
    let reading = reading(nginx.pid());
    assert!(matches!(reading.capabilities, Some(Capabilities::Whole(_))), "{:?}", reading.capabilities);
    assert_eq!(reading.hardware, HardwareUse::Used);
    // The master and its workers.
    assert_eq!(vector(&reading).processes.len(), 3);
    assert!(vector(&reading).processes.iter().all(|process| process.words == vector(&reading).whole));
    let kept = serde_json::to_string(&reading).unwrap();
    assert_eq!(serde_json::from_str::<LensReading>(&kept).unwrap().capabilities, reading.capabilities);
}

pub(crate) fn an_overwritten_mask_is_found_in_the_server() {
    if !applies() {
        return;
    }
    let Some(nginx) = nginx(&[MASK]) else { return };
    // What makes it hard: the mask can no longer be read.
    assert!(!order(nginx.pid()).environment.contains_key(std::ffi::OsStr::new(MASK.0)));
    let reading = reading(nginx.pid());
    assert_eq!(reading.hardware, HardwareUse::Masked);
    assert!(matches!(reading.capabilities, Some(Capabilities::Masked(_))), "{:?}", reading.capabilities);
    let vector = vector(&reading);
    for name in ["AES-NI", "PCLMULQDQ"] {
        assert!(vector.missing.iter().any(|missing| missing == name), "{:?}", vector.missing);
    }
    assert_eq!(vector.processes.len(), 3);
    assert!(vector.processes.iter().all(|process| process.words[1] == vector.whole[1] & !0x0200_0002));
    // The command for doing it by hand reads the same, without duel.
    let command = reading.by_hand.iter().find(|line| line.starts_with("dd ")).unwrap();
    let told = Command::new("sh").args(["-c", command]).output().unwrap();
    let words: Vec<u32> = String::from_utf8(told.stdout)
        .unwrap()
        .split_whitespace()
        .map(|word| u32::from_str_radix(word, 16).unwrap())
        .collect();
    assert_eq!(words, vector.processes[0].words);
}

pub(crate) fn a_server_whose_library_was_deleted_is_read() {
    let (true, Some(library)) = (applies(), system_libcrypto()) else { return };
    if !rustix::process::geteuid().is_root() {
        skipped("it takes root to open a deleted file");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join(library.file_name().unwrap());
    fs::copy(&library, &copy).unwrap();
    let search = folder.path().to_str().unwrap();
    let Some(server) = openssl(&["env"], &[MASK, ("LD_LIBRARY_PATH", search)]) else { return };
    fs::remove_file(&copy).unwrap();
    // Another file has its name now.
    fs::write(&copy, "another").unwrap();
    let reading = reading(server.pid());
    assert_eq!(Path::new(&reading.library), copy);
    assert_eq!(vector(&reading).missing[..2], ["AES-NI", "PCLMULQDQ"]);
}

pub(crate) fn a_server_with_a_file_system_of_its_own_is_read() {
    let (true, Some(library)) = (applies(), system_libcrypto()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    fs::copy(&library, &copy).unwrap();
    let script = format!("mount --bind {} {} && exec \"$@\"", copy.display(), library.display());
    let can = Command::new("unshare").args(["-m", "sh", "-c", &script, "sh", "true"]).output();
    if !can.is_ok_and(|can| can.status.success()) {
        skipped("no mount namespaces here");
        return;
    }
    let Some(server) = openssl(&["unshare", "-m", "sh", "-c", &script, "sh"], &[MASK]) else { return };
    let order = order(server.pid());
    // By that name there is another file here.
    let identity = |file: fs::Metadata| (file.dev(), file.ino());
    let opened = identity(order.opened.as_ref().unwrap().metadata().unwrap());
    assert_eq!(opened, identity(fs::metadata(&copy).unwrap()));
    assert_ne!(opened, identity(fs::metadata(&library).unwrap()));
    let reading = reading(server.pid());
    assert_eq!(vector(&reading).missing[..2], ["AES-NI", "PCLMULQDQ"]);
    assert_eq!(reading.hardware, HardwareUse::Masked);
}

/// What is said of a server that is started by these words, with this in its environment.
fn refusal(words: &[&str], environment: &[(&str, &str)]) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        skipped("it takes root");
        return None;
    }
    let can = Command::new(words[0]).args(&words[1..]).arg("true").output();
    if !can.is_ok_and(|can| can.status.success()) {
        skipped(&format!("{} cannot be had here", words.join(" ")));
        return None;
    }
    let server = openssl(words, environment)?;
    let child = ChildCommand { program: std::env::current_exe().unwrap(), arguments: vec![CHILD.into()] };
    Some(duel_lens::of_process(server.pid(), child).unwrap_err().to_string())
}

pub(crate) fn what_a_confined_root_maps_is_not_run() {
    for words in [
        &["setpriv", "--bounding-set=-sys_admin", "--"][..],
        &["unshare", "--user", "--map-root-user"],
        &["unshare", "--mount", "sh", "-c", "mount --bind / /mnt && exec chroot /mnt \"$@\"", "sh"],
    ] {
        let Some(why) = refusal(words, &[]) else { continue };
        assert!(why.contains("not available here") && why.contains("more rights than it has"), "{words:?}: {why}");
    }
}

pub(crate) fn what_a_process_with_two_users_maps_is_not_run() {
    // As a setuid program has them: whose choice its library is cannot be told.
    let Some(why) = refusal(&["setpriv", "--ruid=65534", "--"], &[]) else { return };
    assert!(why.contains("several user or group ids"), "{why}");
}

pub(crate) fn paths_among_mounts_of_its_own_are_not_followed() {
    let Some(library) = system_libcrypto() else { return };
    let search = library.parent().unwrap().to_str().unwrap();
    let Some(why) = refusal(&["unshare", "--mount"], &[("LD_LIBRARY_PATH", search)]) else { return };
    assert!(why.contains("LD_LIBRARY_PATH in the environment") && why.contains("mounts of its own"), "{why}");
}

pub(crate) fn a_server_without_assembly_has_no_features() {
    let (true, Some(library)) = (applies(), no_asm_libcrypto()) else { return };
    let search = library.parent().unwrap().to_str().unwrap().to_owned();
    let Some(nginx) = nginx(&[("LD_LIBRARY_PATH", &search)]) else { return };
    let reading = measure(&LensOrder { budget_ns: LensOrder::BUDGET_NS, ..order(nginx.pid()) }).unwrap();
    println!("{}", duel_lens::table(&reading));
    let Some(Capabilities::NotRead(why)) = &reading.capabilities else { panic!("{:?}", reading.capabilities) };
    assert!(why.contains("built without assembly"), "{why}");
    assert_eq!((reading.hardware, reading.assembly), (HardwareUse::NotUsed, Assembly::Absent));
}
