//! Real libraries, good and bad, in real children. This binary is its own child.
//!
//! A libcrypto built without assembly is measured as well: the one that `DUEL_NO_ASM_LIBCRYPTO` names, else what
//! `faults/build-openssl no-asm` has built, as `./test` does.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "libraries/servers.rs"]
mod servers;

use duel_lens::{Architecture, ChildCommand, LensError, LensOrder, measure};
use duel_model::{Assembly, HardwareUse, LensOp, LensReading, LensTreatment, SECOND_NS};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// The word that makes this binary a child.
const CHILD: &str = "lens-child";

fn main() {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if arguments.first().is_some_and(|word| word == CHILD) {
        duel_lens::child::main(&arguments[1..]);
    }
    // As the usual harness: a word selects, flags are none of ours.
    let word = arguments.iter().find_map(|word| word.to_str().filter(|word| !word.starts_with('-'))).unwrap_or("");
    let checks: [(&str, fn()); 20] = [
        ("the_system_s_libcrypto_is_measured_whole", the_system_s_libcrypto_is_measured_whole),
        ("a_mask_in_the_environment_is_found", a_mask_in_the_environment_is_found),
        ("a_build_without_assembly_is_found", a_build_without_assembly_is_found),
        ("the_libcrypto_of_a_process_is_found", the_libcrypto_of_a_process_is_found),
        ("a_server_without_a_mask_has_all_features", servers::a_server_without_a_mask_has_all_features),
        ("an_overwritten_mask_is_found_in_the_server", servers::an_overwritten_mask_is_found_in_the_server),
        ("a_server_whose_library_was_deleted_is_read", servers::a_server_whose_library_was_deleted_is_read),
        ("a_server_with_a_file_system_of_its_own_is_read", servers::a_server_with_a_file_system_of_its_own_is_read),
        ("what_a_confined_root_maps_is_not_run", servers::what_a_confined_root_maps_is_not_run),
        ("what_a_process_with_two_users_maps_is_not_run", servers::what_a_process_with_two_users_maps_is_not_run),
        ("paths_among_mounts_of_its_own_are_not_followed", servers::paths_among_mounts_of_its_own_are_not_followed),
        ("a_server_without_assembly_has_no_features", servers::a_server_without_assembly_has_no_features),
        ("what_is_no_library_is_told_in_words", what_is_no_library_is_told_in_words),
        ("a_library_without_evp_is_told", a_library_without_evp_is_told),
        ("a_library_that_misses_symbols_is_told", a_library_that_misses_symbols_is_told),
        ("a_library_that_crashes_harms_only_the_child", a_library_that_crashes_harms_only_the_child),
        ("a_library_that_exits_is_told", a_library_that_exits_is_told),
        ("a_library_that_hangs_is_given_up", a_library_that_hangs_is_given_up),
        ("a_child_that_never_stops_talking_is_given_up", a_child_that_never_stops_talking_is_given_up),
        ("a_child_that_is_killed_is_told", a_child_that_is_killed_is_told),
    ];
    let failed = AtomicUsize::new(0);
    let run: Vec<_> = checks.iter().filter(|(name, _)| name.contains(word)).collect();
    for (name, check) in &run {
        let ok = std::panic::catch_unwind(check).is_ok();
        println!("test {name} ... {}", if ok { "ok" } else { "FAILED" });
        failed.fetch_add(usize::from(!ok), Ordering::Relaxed);
    }
    let failed = failed.into_inner();
    println!("test result: {} passed; {failed} failed", run.len() - failed);
    std::process::exit(i32::from(failed > 0));
}

/// An order for half the usual time, with us as the child.
fn order(library: impl Into<PathBuf>) -> LensOrder {
    let child = ChildCommand { program: std::env::current_exe().unwrap(), arguments: vec![CHILD.into()] };
    LensOrder { budget_ns: 2 * SECOND_NS, ..LensOrder::new(library, child) }
}

/// Says that a check is skipped for want of something that `./test` sees to; where that is set to skip nothing, it fails.
#[track_caller]
fn skipped(why: &str) {
    println!("  skipped: {why}");
    assert!(
        std::env::var_os("DUEL_TESTS_SKIP_NOTHING").is_none_or(|value| value != "1"),
        "nothing may be skipped: {why}"
    );
}

/// Where the system keeps its libcrypto; `None`, and said, where it has none.
fn system_libcrypto() -> Option<PathBuf> {
    let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/lib64"];
    let names = ["libcrypto.so.3", "libcrypto.so.1.1"];
    let found = folders.iter().flat_map(|folder| names.map(|name| Path::new(folder).join(name))).find(|p| p.exists());
    if found.is_none() {
        skipped("there is no libcrypto in the usual folders");
    }
    found
}

/// A libcrypto built without assembly; `None`, and said, where there is none.
fn no_asm_libcrypto() -> Option<PathBuf> {
    let named = std::env::var_os("DUEL_NO_ASM_LIBCRYPTO").map(PathBuf::from);
    let cache = std::env::var_os("DUEL_FAULTS_CACHE").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache/duel-faults")));
    let built = cache.map(|cache| cache.join("openssl-no-asm/libcrypto.so.3"));
    let found = named.or(built).filter(|path| path.exists());
    if found.is_none() {
        skipped("no libcrypto without assembly; `faults/build-openssl no-asm` makes one");
    }
    found
}

/// As the kernel tells it, not as the lens does.
fn cpu_has_aes() -> bool {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    info.split_whitespace().any(|word| word == "aes")
}

fn rate(reading: &LensReading, op: LensOp, treatment: LensTreatment) -> f64 {
    let of_op = reading.figures.iter().filter(|figure| figure.op == op && figure.treatment == treatment);
    of_op.max_by_key(|figure| figure.block_bytes).unwrap().median_per_s
}

fn the_system_s_libcrypto_is_measured_whole() {
    let Some(library) = system_libcrypto() else { return };
    let reading = measure(&order(&library)).unwrap();
    println!("{}", duel_lens::table(&reading));
    assert!(reading.identity.version.as_ref().unwrap().starts_with("OpenSSL "), "{reading:?}");
    assert!(reading.unavailable.is_empty(), "{:?}", reading.unavailable);
    // Ten operations under four treatments, five of them at four more sizes as it is.
    assert_eq!(reading.figures.len(), 10 * 4 + 5 * 4);
    assert!(reading.figures.iter().all(|figure| figure.rounds >= 8));
    if cpu_has_aes() && Architecture::here().is_some() {
        assert_eq!((&reading.hardware, &reading.assembly), (&HardwareUse::Used, &Assembly::Present));
    }
    let kept = serde_json::to_string(&reading).unwrap();
    let again: LensReading = serde_json::from_str(&kept).unwrap();
    assert_eq!((again.hardware, again.assembly), (reading.hardware, reading.assembly));
    assert_eq!(again.figures.len(), reading.figures.len());
}

fn a_mask_in_the_environment_is_found() {
    let (Some(library), Some(architecture)) = (system_libcrypto(), Architecture::here()) else { return };
    if !cpu_has_aes() {
        println!("  skipped: this CPU has no AES instructions");
        return;
    }
    let mut order = order(&library);
    let mask = architecture.mask(LensTreatment::AesMasked).unwrap();
    order.environment.insert(architecture.variable().into(), mask.into());
    let reading = measure(&order).unwrap();
    assert_eq!(reading.hardware, HardwareUse::Masked, "{}", duel_lens::table(&reading));
    let aes = |treatment| rate(&reading, LensOp::Aes256Gcm, treatment);
    assert!(aes(LensTreatment::Whole) > 1.5 * aes(LensTreatment::AsIs));
}

fn a_build_without_assembly_is_found() {
    let Some(library) = no_asm_libcrypto() else { return };
    // With the whole budget: no difference is harder to see than a difference.
    let order = LensOrder { budget_ns: LensOrder::BUDGET_NS, ..order(library) };
    let expected = if cpu_has_aes() { HardwareUse::NotUsed } else { HardwareUse::NotOffered };
    // A neighbour who takes the CPU now and then may leave it unknown; nothing makes it wrong. How it is decided is tested
    // with the judgement.
    for _ in 0..3 {
        let reading = measure(&order).unwrap();
        println!("{}", duel_lens::table(&reading));
        match &reading.assembly {
            Assembly::Unknown(why) => assert!(why.contains("vary too much"), "{why}"),
            told => assert_eq!(*told, Assembly::Absent),
        }
        match &reading.hardware {
            HardwareUse::Unknown(why) => assert!(why.contains("may be"), "{why}"),
            told => assert_eq!(*told, expected),
        }
        if reading.assembly == Assembly::Absent && reading.hardware == expected {
            return;
        }
    }
    println!("  the machine varies too much to tell");
}

fn the_libcrypto_of_a_process_is_found() {
    let Some(library) = system_libcrypto() else { return };
    // `openssl enc` waits for its input, with libcrypto mapped.
    let started = Command::new("openssl")
        .args(["enc", "-base64"])
        .env("OPENSSL_ia32cap", "~0x0")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn();
    let Ok(mut server) = started else {
        skipped("there is no openssl command");
        return;
    };
    // Until it has mapped its libraries.
    for _ in 0..100 {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", server.id())).unwrap_or_default();
        if maps.contains("libcrypto") {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    let child = order(&library).child;
    let found = duel_lens::of_process(server.id(), child.clone());
    let reading = found.and_then(|found| {
        assert_eq!(found.environment[&OsString::from("OPENSSL_ia32cap")], "~0x0");
        assert!(found.opened.is_some());
        measure(&LensOrder { budget_ns: SECOND_NS, ops: vec![LensOp::Aes256Gcm], ..found })
    });
    let _ = server.kill();
    let _ = server.wait();
    let reading = reading.unwrap();
    assert_eq!(Path::new(&reading.library).file_name(), library.file_name());
    assert_eq!(reading.figures.len(), 4 + 4);
    assert!(duel_lens::of_process(std::process::id(), child.clone()).unwrap_err().to_string().contains("no libcrypto"));
    // The largest process id there can be is 2^22.
    assert!(duel_lens::of_process(1 << 30, child).unwrap_err().to_string().contains("there is no process"));
}

fn what_is_no_library_is_told_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    };
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let foreign = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\xff\x7f";
    // Its head is right and the rest is missing: the loader's own words.
    let mut torn = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    torn.truncate(100);
    for (path, words) in [
        (file("text.so", b"#!/bin/sh\necho hello\n"), "is not a library"),
        (file("empty.so", b""), "is not a library"),
        (file("foreign.so", foreign), "for another kind of CPU"),
        (file("torn.so", &torn), "cannot be measured"),
        (folder.path().to_owned(), "is not a file"),
        (pipe, "is not a file"),
        (folder.path().join("nosuch.so"), "cannot read"),
    ] {
        let error = measure(&order(&path)).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains(path.to_str().unwrap()), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

/// A library made of this C source.
fn library(folder: &tempfile::TempDir, source: &str) -> PathBuf {
    let (c, so) = (folder.path().join("made.c"), folder.path().join("libcrypto.so.3"));
    std::fs::write(&c, source).unwrap();
    let made = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&so).arg(&c).status().unwrap();
    assert!(made.success());
    so
}

/// What becomes of a library with this source.
fn error_of(source: &str) -> LensError {
    let folder = tempfile::tempdir().unwrap();
    let error = measure(&order(library(&folder, source))).unwrap_err();
    assert!(!error.to_string().contains('\n'), "{error}");
    error
}

fn a_library_without_evp_is_told() {
    let error = error_of("int nothing(void) { return 0; }");
    assert!(error.to_string().contains("it is no libcrypto"), "{error}");
}

fn a_library_that_misses_symbols_is_told() {
    let error = error_of("extern int nowhere(void); int here(void) { return nowhere(); }");
    assert!(error.to_string().contains("it misses symbols"), "{error}");
}

fn a_library_that_crashes_harms_only_the_child() {
    let error = error_of("__attribute__((constructor)) static void crash(void) { *(volatile int *)0 = 1; }");
    assert!(matches!(error, LensError::Crashed { signal: 11, .. }), "{error}");
    let error = error_of("#include <stdlib.h>\n__attribute__((constructor)) static void crash(void) { abort(); }");
    assert!(matches!(error, LensError::Crashed { signal: 6, .. }), "{error}");
}

fn a_library_that_exits_is_told() {
    let error = error_of("#include <unistd.h>\n__attribute__((constructor)) static void leave(void) { _exit(0); }");
    assert!(error.to_string().contains("before all was measured"), "{error}");
}

fn a_library_that_hangs_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let source = "__attribute__((constructor)) static void hang(void) { for (volatile int i = 0;; i++) ; }";
    let order = LensOrder { grace_ns: SECOND_NS / 2, ..order(library(&folder, source)) };
    let error = measure(&order).unwrap_err();
    assert!(matches!(error, LensError::Hung { .. }), "{error}");
}

fn a_child_that_never_stops_talking_is_given_up() {
    let Some(library) = system_libcrypto() else { return };
    let child = ChildCommand { program: "/bin/sh".into(), arguments: ["-c", "exec yes"].map(Into::into).to_vec() };
    let order = LensOrder { child, environment: [("PATH".into(), "/usr/bin:/bin".into())].into(), ..order(library) };
    let error = measure(&order).unwrap_err();
    assert!(matches!(error, LensError::Nonsense { .. } | LensError::Crashed { .. }), "{error}");
}

fn a_child_that_is_killed_is_told() {
    let Some(library) = system_libcrypto() else { return };
    let child = ChildCommand { program: "/bin/sh".into(), arguments: ["-c", "kill -9 $$"].map(Into::into).to_vec() };
    let error = measure(&LensOrder { child, ..order(library) }).unwrap_err();
    assert!(matches!(error, LensError::Crashed { signal: 9, .. }), "{error}");
}
