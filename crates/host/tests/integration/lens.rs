//! The lens's script on another machine: through a real ssh, at a real nginx.

#![cfg(target_os = "linux")]

use crate::common::sshd::{Sshd, with_sshd};
use crate::common::{Nginx, program, quiet};
use duel_host::{HostAccess, HostWatch, Server};
use duel_lens::speed::{SpeedOrder, reading, script, seconds};
use duel_model::{Assembly, Capabilities, HardwareUse, LensMeans};
use std::path::PathBuf;
use std::time::Duration;

/// The order for a server, as its machine tells of it.
fn order(watch: &HostWatch) -> SpeedOrder {
    let facts = watch.facts();
    let pid = facts.number("process.pid").unwrap() as u32;
    SpeedOrder::new(facts.text("process.library.libcrypto.path").unwrap(), pid)
}

fn cpu_has_aes() -> bool {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    info.split_whitespace().any(|word| word == "aes")
}

#[test]
fn a_libcrypto_is_measured_over_ssh() {
    const TEST: &str = "lens::a_libcrypto_is_measured_over_ssh";
    with_sshd(TEST, || {
        let (Some(nginx), Some(_), Some(_)) = (program("nginx", TEST), program("openssl", TEST), program("ldd", TEST))
        else {
            return;
        };
        let sshd = Sshd::start();
        let nginx = Nginx::start(nginx);
        let watch = sshd.open(&Server::Port(nginx.port)).unwrap_or_else(|error| panic!("{error}\n{}", sshd.log()));
        let measured = |order: &SpeedOrder| {
            let printed = watch.run(&script(order), Duration::from_secs(seconds(order) + 60)).unwrap();
            let reading = reading(order, &printed).unwrap_or_else(|why| panic!("{why}\n{printed}"));
            println!("{}", duel_lens::table(&reading));
            reading
        };
        let mut order = order(&watch);
        let whole = measured(&order);
        assert_eq!(whole.means, LensMeans::OpensslSpeed);
        assert!(matches!(whole.capabilities, Some(Capabilities::NotRead(_))));
        if cfg!(target_arch = "x86_64") && cpu_has_aes() {
            assert_eq!((whole.hardware, whole.assembly), (HardwareUse::Used, Assembly::Present));
            order.environment.insert("OPENSSL_ia32cap".into(), "~0x200000200000000".into());
            assert_eq!(measured(&order).hardware, HardwareUse::Masked);
        }
        // The conversation goes on, and the host is read as before.
        assert!(watch.sample().is_ok());
        assert_eq!(watch.finish().lost, None);
    });
}

#[test]
fn a_build_without_assembly_is_found_over_ssh() {
    const TEST: &str = "lens::a_build_without_assembly_is_found_over_ssh";
    let cache = std::env::var_os("DUEL_FAULTS_CACHE").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache/duel-faults")));
    let folder = cache.unwrap_or_default().join("openssl-no-asm");
    if !folder.join("libcrypto.so.3").exists() {
        println!("skipped {TEST}: `faults/build-openssl` has built no libcrypto without assembly");
        return;
    }
    with_sshd(TEST, || {
        let Some(nginx) = program("nginx", TEST) else { return };
        let sshd = Sshd::start();
        let nginx = Nginx::start_with(nginx, &[("LD_LIBRARY_PATH", folder.display().to_string())]);
        let watch = sshd.open(&Server::Port(nginx.port)).unwrap();
        let order = order(&watch);
        assert!(order.library.contains("openssl-no-asm"), "{}", order.library);
        let expected = if cpu_has_aes() { HardwareUse::NotUsed } else { HardwareUse::NotOffered };
        // A neighbour who takes the CPU now and then may leave it unknown; nothing makes it wrong. How it is decided is tested
        // with the judgement.
        for _ in 0..3 {
            let printed = watch.run(&script(&order), Duration::from_secs(seconds(&order) + 60)).unwrap();
            let reading = reading(&order, &printed).unwrap_or_else(|why| panic!("{why}\n{printed}"));
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
    });
}

#[test]
fn lines_run_apart_from_the_reader_and_cannot_end_it() {
    let watch = HostWatch::open_with(&HostAccess::Local, &Server::Unknown, &quiet()).unwrap();
    let run = |script: &str| watch.run(script, Duration::from_secs(20)).unwrap().trim_end().to_owned();
    assert_eq!(run("printf '%s\\n' 'a  \\b'\ncase x in\nx) echo \"$#\" >/dev/null; echo \\$M;;\nesac"), "a  \\b\n$M");
    assert_eq!(run("PROC=/nowhere; M=forged; trap - EXIT; cat; exit 3"), "");
    assert!(run("this is ( no shell").contains("yntax error"));
    assert_eq!(run("printf 'esc\\033[2J'"), "esc\u{fffd}[2J");
    assert_eq!(run("while read -r line; do echo never; done"), "", "it cannot take the requests for its input");
    assert!(watch.sample().unwrap().uptime_ns.is_some());
    assert_eq!(watch.finish().lost, None);
}

#[test]
fn lines_that_hang_are_given_up() {
    let watch = HostWatch::open_with(&HostAccess::Local, &Server::Unknown, &quiet()).unwrap();
    let error = watch.run("sleep 1000", Duration::from_millis(300)).unwrap_err().to_string();
    assert!(error.contains("did not answer within 0.3 s"), "{error}");
    assert!(watch.sample().is_err());
    assert!(watch.finish().lost.is_some());
}
