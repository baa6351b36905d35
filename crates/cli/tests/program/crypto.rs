//! Crypto libraries: real ones, broken ones, and ones whose costs are known.

use crate::common::{PATIENCE, Place, Running, measuring, wait_until};
use serde_json::Value;
use std::process::Command;

/// A comparison may stay open where others take the CPU, as compilers beside the tests do for minutes: so many are made until one does not.
const SEEDS: [&str; 8] = ["1", "2", "3", "4", "5", "6", "7", "8"];

/// A shared library of this C source.
fn library(place: &Place, name: &str, source: &str, flags: &[&str]) -> String {
    let (from, to) = (place.file(&format!("{name}.c"), source), place.path(&format!("{name}.so")));
    let built =
        Command::new("cc").args(["-O1", "-shared", "-fPIC", "-o"]).arg(&to).arg(from).args(flags).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    to.into_os_string().into_string().unwrap()
}

/// The file of the system's libcrypto, as duel has found it.
fn system_libcrypto(place: &Place) -> String {
    let document = place.json(["run", "openssl:", "-n", "1", "--no-archive"]);
    fact(&document, "crypto.library").unwrap().to_owned()
}

fn fact<'a>(document: &'a Value, name: &str) -> Option<&'a str> {
    document["targets"][0]["negotiated"][name].as_str()
}

/// The system's libcrypto with one function that first spends so many ns.
fn slowed(place: &Place, function: &str, ns: u32) -> String {
    let (parameters, passed) = match function {
        "EVP_EncryptUpdate" => ("P a, P b, P c, P d, int e", "a, b, c, d, e"),
        _ => ("P a, P b, P c, P d, P e, int f", "a, b, c, d, e, f"),
    };
    let libcrypto = system_libcrypto(place);
    let source = format!(
        "#include <dlfcn.h>\n#include <time.h>\ntypedef void *P;\n\
         static long now(void) {{ struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); \
         return t.tv_sec * 1000000000L + t.tv_nsec; }}\n\
         int {function}({parameters}) {{ static int (*real)({parameters});\n\
         if (!real) real = dlsym(dlopen(\"{libcrypto}\", RTLD_NOW | RTLD_LOCAL), \"{function}\");\n\
         long until = now() + {ns}; while (now() < until); return real({passed}); }}\n"
    );
    library(place, &format!("slow-{function}"), &source, &["-Wl,--no-as-needed", &libcrypto])
}

fn finding(document: &Value) -> &Value {
    &document["findings"][0]
}

#[test]
fn a_library_is_measured_and_what_it_is_is_told() {
    let _alone = measuring();
    let place = Place::new();
    let done = place.duel(["run", "openssl:", "--block", "16k", "-d", "300ms"]).ok();
    for part in ["ops ok", "bytes processed", "op aes-256-gcm, block 16 KiB", "1 thread", "OpenSSL"] {
        assert!(done.stdout.contains(part), "{part}: {}", done.stdout);
    }
    assert!(!done.stdout.contains("connect"), "{}", done.stdout);
    let document = place.json(["show", "last"]);
    let text = document.to_string();
    assert!(text.contains("\"bytes_per_s\"") && text.contains("crypto.version"), "{text}");
    place.duel(["rerun", "last", "-q"]).ok();
    let again = place.json(["show", "last"]);
    assert!(again["plan"] == document["plan"] && again["run"] != document["run"]);
    let counted = place.json(["run", "aws-lc:", "--op", "ed25519", "-n", "50", "-t", "2"]);
    assert_eq!(counted["targets"][0]["ops"], 50, "{counted}");
}

#[test]
fn sizes_make_a_factor() {
    let _alone = measuring();
    let place = Place::new();
    let args =
        ["openssl:", "aws-lc:", "--op", "sha256", "--block", "16,16k", "-d", "2s", "--slot", "20ms", "--seed", "1"];
    let document = place.json(args);
    let levels = document["experiment"]["factors"][0]["levels"].as_array().unwrap();
    let rate = |level: usize| {
        let figures = levels[level]["figures"].as_array().unwrap();
        figures.iter().find(|figure| figure["metric"] == "rate").unwrap()["value"].as_f64().unwrap()
    };
    // A thousand times the bytes take several times as long, whatever the machine is busy with.
    assert!(rate(0) > 3.0 * rate(1), "{levels:?}");
    let shown = place.duel(["show", "last"]).ok().stdout;
    assert!(shown.contains("Rate by block\n") && shown.contains("16 KiB"), "{shown}");
}

#[test]
fn a_planted_cost_of_each_call_or_each_block_is_found_and_told_apart() {
    let _alone = measuring();
    let place = Place::new();
    // Long beside what else there is: on a busy machine it is found as well. There it takes longer, too: on a quiet one each
    // comparison stops early.
    for (function, block, what) in [("EVP_EncryptUpdate", "16", "call"), ("EVP_CipherInit_ex", "64", "block")] {
        let slow = format!("slow=openssl:{}", slowed(&place, function, 2000));
        // Where others take the CPU it may stay unknown, or what it is paid for may; nothing else may be said, however often.
        let found_out = |seed: &str| {
            let args =
                ["fast=openssl:", &slow, "--renew", "nonce", "--block", block, "-d", "12s", "--seed", seed, "--why"];
            let document = place.json(args);
            let found = finding(&document);
            if found["cause"] == "unknown" {
                return None;
            }
            assert_eq!(found["cause"], "crypto.block-overhead", "{function}: {}", document["findings"]);
            assert_eq!(found["target"], "slow");
            let summary = found["summary"].as_str().unwrap();
            if summary.starts_with("Each block or call costs slow ") {
                return None;
            }
            // There it takes longer on the clock, never less.
            let cost = summary.strip_prefix(&format!("Each {what} costs slow "));
            let us: Option<f64> = cost.and_then(|cost| cost.split_once(" µs")?.0.parse().ok());
            assert!(us.is_some_and(|us| us > 1.8), "{function}: {summary}");
            Some(document)
        };
        let document = SEEDS.iter().find_map(|seed| found_out(seed));
        let document = document.unwrap_or_else(|| panic!("{function}: not found in any comparison"));
        // Neither library is said to be innocent of what its kind of work does not have.
        let ruled_out = document["ruled_out"].to_string();
        assert!(!ruled_out.contains("http.") && ruled_out.contains("cpu.slower"), "{ruled_out}");
    }
}

#[test]
fn hidden_aes_instructions_are_found_and_a_mask_does_what_it_says() {
    let _alone = measuring();
    let place = Place::new();
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    if !cpu.split([' ', '\n']).any(|flag| flag == "aes") {
        let said = place.duel(["run", "openssl:", "--mask", "aes"]).refused(2);
        assert!(said.contains("aes"), "{said}");
        return;
    }
    let rate = |mask: &str| {
        let document = place.json(["run", "openssl:", "--mask", mask, "-d", "300ms", "--no-archive"]);
        document["targets"][0]["bytes_per_s"].as_f64().unwrap_or_else(|| panic!("{document}"))
    };
    assert!(rate("none") > 1.5 * rate("aes"));
    // A library that hides them from the system's, where nobody else has set a mask.
    let hides = "#include <stdlib.h>\n__attribute__((constructor)) static void hide(void) { \
                 setenv(\"OPENSSL_ia32cap\", \"~0x200000000000000\", 0); }\n";
    let hides = library(&place, "hides", hides, &[]);
    let masked = library(&place, "masked", "int a;", &["-Wl,--no-as-needed", &system_libcrypto(&place), &hides]);
    let slow = format!("slow=openssl:{masked}");
    // Where others take the CPU it may stay unknown, or be known widely; nothing else may be said, however often.
    let found_out = |seed: &str| {
        let document = place.json(["fast=openssl:", &slow, "-d", "12s", "--seed", seed, "--why"]);
        let cause = finding(&document)["cause"].clone();
        assert!(cause == "tls.aes-unused" || cause == "unknown", "{}", document["findings"]);
        finding(&document)["explains"].as_f64().is_some_and(|explains| cause != "unknown" && explains > 0.8)
    };
    assert!(SEEDS.iter().any(|seed| found_out(seed)), "not found in any comparison");
}

#[test]
fn what_cannot_be_done_is_told_in_one_sentence() {
    let place = Place::new();
    let text = place.file("text.so", "not a library");
    let other = library(&place, "other", "int other(void) { return 1; }", &[]);
    let crashes = "#include <stdlib.h>\n__attribute__((constructor)) static void c(void) { abort(); }";
    let crashes = library(&place, "crashes", crashes, &[]);
    let exits = library(
        &place,
        "exits",
        "#include <stdlib.h>\n__attribute__((constructor)) static void c(void) { exit(3); }",
        &[],
    );
    let target = |path: &str| format!("openssl:{path}");
    let chatters = format!("exec:sh {}", place.file("chatters.sh", "echo '\u{1b}[2Jhello'; cat > /dev/null\n"));
    let secret = place.file("secret.so", "");
    std::fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    let [text, other, crashes, exits, secret] = [&text, &other, &crashes, &exits, &secret].map(|path| target(path));
    for (words, says) in [
        (vec!["run", &*text], "file too short"),
        (vec!["run", &*other], "has no EVP_aes_256_gcm"),
        (vec!["run", &*crashes], "signal 6 (abort)"),
        (vec!["run", &*exits], "exit code 3"),
        (vec!["run", &*secret], ""),
        (vec!["run", "openssl:/nowhere/libcrypto.so"], "No such file"),
        (vec!["run", "exec:false"], "exit code 1"),
        (vec!["run", "exec:"], "needs a command"),
        (vec!["run", &*chatters], "no answer"),
        (vec!["run", "exec:yes ready"], "instead of an answer"),
        (vec!["run", "openssl:", "--op", "rot13"], "aes-256-gcm"),
        (vec!["run", "openssl:", "--op", "aes-256-cbc", "--block", "17"], "multiples of 16"),
        (vec!["run", "openssl:", "--op", "aes-256-xts", "--chunk", "16"], "one call"),
        (vec!["run", "openssl:", "--op", "sha256", "--renew", "key"], "for ciphers"),
        (vec!["run", "openssl:", "--mask", "mmx7"], "no feature that can be hidden"),
        (vec!["run", "exec:cat", "--mask", "aes"], "--mask works for openssl:"),
        (vec!["run", "aws-lc:", "--op", "aes-128-xts"], "aes-128-xts"),
        (vec!["run", "kernel:", "--op", "rsa-2048"], "rsa-2048 is neither"),
        (vec!["run", "kernel:", "--op", "chacha20-poly1305"], "--renew nonce"),
        (vec!["run", "kernel:", "--op", "aes-256-ctr", "--chunk", "5"], "multiples of 16"),
        (vec!["run", "kernel:", "--mask", "aes"], "--mask works for openssl:"),
        (vec!["run", "kernel:no-such-driver"], if has_af_alg() { "no no-such-driver" } else { "not available here" }),
        (vec!["run", "openssl:", "--insecure"], "--insecure means nothing"),
        (vec!["run", "openssl:", "-H", "A: b"], "--header means nothing"),
        (vec!["run", "openssl:", "--vary", "tls=1.2,1.3"], "no meaning"),
        (vec!["run", "http://127.0.0.1:1/", "--op", "sha256"], "it is for crypto libraries"),
        (vec!["openssl:", "http://127.0.0.1:1/"], "the same work"),
        (vec!["null:", "http://127.0.0.1:1/"], "the same work"),
        (vec!["run", "openssl:", "-c", "2", "-t", "3"], "-c and -t"),
        (vec!["run", "openssl:", "-c", "100000"], "more than 1024"),
        (vec!["run", "openssl:", "-c", "1,100000"], "more than 1024"),
        (vec!["run", "openssl:", "--block", "2MiB"], "from 1 to 1048576 bytes"),
    ] {
        let done = place.duel(&words);
        assert!(matches!(done.code, Some(1 | 2)), "{words:?}: {:?} {}", done.code, done.stderr);
        assert_eq!(done.stdout, "", "{words:?}");
        assert!(done.sentence().contains(says) && !done.stderr.contains('\u{1b}'), "{words:?}: {}", done.stderr);
    }
}

/// Whether this machine's kernel gives its crypto to programs.
fn has_af_alg() -> bool {
    // AF_ALG of linux/socket.h.
    let family = rustix::net::AddressFamily::from_raw(38);
    rustix::net::socket(family, rustix::net::SocketType::SEQPACKET, None).is_ok()
}

#[test]
fn the_kernels_crypto_is_measured_or_it_is_told_why_not() {
    let _alone = measuring();
    let place = Place::new();
    let words = ["run", "kernel:", "--op", "sha256", "--chunk", "1k", "-d", "200ms"];
    if has_af_alg() {
        let document = place.json(words);
        assert!(fact(&document, "crypto.version").unwrap().starts_with("Linux "), "{document}");
        assert!(fact(&document, "crypto.driver").unwrap().contains("sha256"), "{document}");
    } else {
        let said = place.duel(words).refused(1);
        assert!(said.contains("not available here: this kernel has no AF_ALG sockets"), "{said}");
    }
    // Among the libraries of this machine it is compared, or a line says why not.
    let done = place.duel(["crypto", "--op", "aes-256-cbc", "-d", "2s", "--no-archive"]).ok();
    assert_eq!(done.stdout.contains("kernel: kernel:"), has_af_alg(), "{}", done.stdout);
    assert_eq!(done.stderr.contains("kernel: is left out: not available here"), !has_af_alg(), "{}", done.stderr);
    let done = place.duel(["crypto", "--op", "aes-256-cbc,x25519", "-d", "4s", "--no-archive"]).ok();
    assert!(done.stderr.contains("kernel: is left out"), "{}", done.stderr);
}

#[test]
fn cpu_time_is_told_for_each_op_and_byte() {
    let _alone = measuring();
    let place = Place::new();
    let document = place.json(["run", "openssl:", "--op", "sha256", "-d", "300ms"]);
    let target = &document["targets"][0];
    let per = |what: &str| target[what]["cpu_ns"].as_f64().unwrap_or_else(|| panic!("{target}"));
    let (per_op, per_byte) = (per("counters_per_op"), per("counters_per_byte"));
    assert!(per_byte > 0.0 && (per_op / per_byte / 16_384.0 - 1.0).abs() < 1e-4, "{target}");
    // The thread that works does not use more time than there is, but for the clocks' steps.
    assert!(per_op < 1.1e9 / target["rate_per_s"].as_f64().unwrap(), "{target}");
    let shown = place.duel(["show", "last"]).ok().stdout;
    assert!(shown.contains("CPU time per op") && shown.contains("CPU time per byte"), "{shown}");
    let shown = place.duel(["run", "openssl:", "--op", "sha256,x25519", "-d", "1s"]).ok().stdout;
    for part in ["Bytes processed by op", "CPU time per op by op", "CPU time per byte by op", "OpenSSL"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

/// A child that answers by a script of `sh`: `$1` is what it says to each order but the first.
fn script(place: &Place, says: &str) -> String {
    place.file("child.sh", format!("read line; echo ready; while read line; do {says}; done\n"))
}

#[test]
fn a_wrong_answer_is_a_failure_however_fast() {
    let place = Place::new();
    let script = script(&place, "echo answer 00");
    let said = place.duel(["run", &format!("exec:sh {script}")]).refused(1);
    assert!(said.contains("aes-256-gcm") && said.contains("wrong"), "{said}");
}

#[test]
fn a_child_goes_with_duel_however_that_ends() {
    let place = Place::new();
    let mut command = place.command();
    command.args(["run", "openssl:", "-d", "60s", "-q", "-t", "2", "--no-archive"]);
    let running = Running::start(command);
    let children = |parent: u32| {
        let list = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
        let of_threads = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        let of_threads = of_threads.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
        let all: Vec<u32> = of_threads
            .chain([list])
            .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
            .collect();
        all
    };
    let pid = running.pid();
    wait_until("two children work", || children(pid).len() >= 2);
    let left = children(pid);
    running.signal(rustix::process::Signal::KILL);
    let is_there = |pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains("crypto-child"))
    };
    wait_until("they are gone", || !left.iter().any(is_there));
    assert!(running.end().code.is_none());
}

#[test]
fn a_mask_in_the_environment_is_told() {
    let place = Place::new();
    let mut command = place.command();
    command.args(["run", "openssl:", "-n", "1", "--json", "--no-archive"]).env("OPENSSL_ia32cap", "~0x0:~0x0");
    let document: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    assert_eq!(fact(&document, "crypto.mask"), Some("OPENSSL_ia32cap=~0x0:~0x0"));
    let document = place.json(["run", "openssl:", "-n", "1", "--no-archive"]);
    assert_eq!(fact(&document, "crypto.mask"), None);
}

#[test]
fn a_library_that_hangs_is_given_up() {
    let place = Place::new();
    let script = place.file("hangs.sh", "read line; sleep 1000\n");
    let begun = std::time::Instant::now();
    let said = place.duel(["run", &format!("exec:sh {script}")]).refused(1);
    assert!(said.contains("did not answer in time"), "{said}");
    assert!(begun.elapsed() < PATIENCE);
    let library = library(
        &place,
        "hangs",
        "#include <unistd.h>\n__attribute__((constructor)) static void c(void) { for (;;) pause(); }",
        &[],
    );
    let said = place.duel(["run", &format!("openssl:{library}")]).refused(1);
    assert!(said.contains("did not answer in time"), "{said}");
    let script = [script, library];
    // The command's own children are ended, too.
    let is_left = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        processes
            .filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok())
            .any(|line| script.iter().any(|file| line.contains(file)))
    };
    wait_until("nothing is left", || !is_left());
}

#[test]
fn an_archive_of_somebody_else_runs_nothing_unasked() {
    let _alone = measuring();
    let place = Place::new();
    place.duel(["run", &format!("x=openssl:{}", system_libcrypto(&place)), "-n", "1"]).ok();
    place.duel(["run", "openssl:", "-n", "1"]).ok();
    let foreign = place.path("foreign.sqlite");
    std::fs::rename(place.archive(), &foreign).unwrap();
    let runs = place.json(["list", "--archive", foreign.to_str().unwrap()]);
    let mut asked: Vec<bool> = Vec::new();
    for run in runs["runs"].as_array().or_else(|| runs.as_array()).unwrap() {
        let id = run["run"].as_str().or_else(|| run["id"].as_str()).unwrap();
        let done = place.duel(["rerun", id, "--archive", foreign.to_str().unwrap(), "-q"]);
        asked.push(done.code == Some(2) && done.stderr.contains("--trust-archive"));
        assert_eq!(asked.last() == Some(&true), done.stderr.contains("run openssl:/"), "{}", done.stderr);
    }
    asked.sort_unstable();
    assert_eq!(asked, [false, true], "a path is asked about, the system's own library is not");
}

#[test]
fn the_cost_of_a_call_is_told_from_that_of_a_block() {
    let _alone = measuring();
    let place = Place::new();
    // Far above what else differs, so that it is found on a machine that others use, too.
    for (function, paid_for) in [("EVP_EncryptUpdate", "a call"), ("EVP_CipherInit_ex", "a block")] {
        let slow = slowed(&place, function, 2000);
        let document = place.json([
            "openssl:",
            &format!("openssl:{slow}"),
            "--renew",
            "nonce",
            "--block",
            "256,4k",
            "--chunk",
            "64,256,0",
            "-d",
            "12s",
            "--no-archive",
        ]);
        let costs = &document["experiment"]["costs"]["differences"][0]["costs"];
        let found: Vec<(&str, f64)> = costs
            .as_array()
            .unwrap_or_else(|| panic!("{document:#}"))
            .iter()
            .map(|cost| (cost["paid_for"].as_str().unwrap(), cost["ns"]["value"].as_f64().unwrap()))
            .collect();
        let largest = found.iter().max_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(b.0))).unwrap();
        assert_eq!(largest.0, paid_for, "{found:?}");
        // The loop overshoots by a look at the clock. What others took of the CPU is in the costs, too: in all of them alike.
        let all = |of: fn(&Value) -> f64| document["targets"].as_array().unwrap().iter().map(of).sum::<f64>();
        let cpu_ns = all(|target| target["counters"]["cpu_ns"].as_f64().unwrap());
        let share = cpu_ns / 1e9 / all(|target| target["elapsed_s"].as_f64().unwrap());
        assert!((1500.0..3500.0).contains(&(largest.1 * share)), "{found:?}, share of the CPU {share}");
    }
}

#[test]
fn the_libraries_of_this_machine_are_compared_without_being_named() {
    let _alone = measuring();
    let place = Place::new();
    let document = place.json(["crypto", "--no-archive", "-d", "6s"]);
    let names: Vec<&str> =
        document["targets"].as_array().unwrap().iter().map(|target| target["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["system", "aws-lc"]);
    let levels = document["experiment"]["factors"][0]["levels"].as_array().unwrap();
    assert!(levels.len() > 4 && levels[0]["level"] == "aes-256-gcm", "{levels:?}");
    // What is typed goes first.
    let document = place.json(["crypto", "one=openssl:", "two=openssl:", "--op", "x25519", "--no-archive", "-d", "2s"]);
    assert_eq!(document["targets"][0]["name"], "one");
    assert!(document["experiment"].is_null(), "{}", document["experiment"]);
}
