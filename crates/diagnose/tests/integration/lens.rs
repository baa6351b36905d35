//! What the lens adds: it confirms, it acquits, and what it cannot tell leaves things as they were.

use crate::world::lens::reading_of;
use crate::world::{Server, World, named, world};
use duel_model::{
    Assembly, Capabilities, CapabilityVector, Confidence, Evidence, Explanation, Finding, HardwareUse, HostAccess,
    HostPlan, LensReading, ProcessVector, ServerPlan,
};

fn first(explanation: &Explanation) -> &Finding {
    &explanation.findings[0]
}

/// All evidence.
fn said(explanation: &Explanation) -> String {
    let evidence = explanation.findings.iter().flat_map(|finding| &finding.evidence);
    evidence.map(Evidence::told).collect::<Vec<_>>().join("\n")
}

fn reading(hardware: HardwareUse, capabilities: Option<Capabilities>) -> LensReading {
    LensReading { capabilities, ..reading_of(hardware, Assembly::Present) }
}

fn vector(missing: &[&str]) -> CapabilityVector {
    let process = |pid| ProcessVector { pid, address: 1, words: vec![1; 4] };
    CapabilityVector {
        offset: 1,
        whole: vec![3; 4],
        processes: vec![process(7), process(8)],
        missing: missing.iter().map(|name| (*name).to_owned()).collect(),
        not_read: Vec::new(),
    }
}

fn masked() -> Option<Capabilities> {
    Some(Capabilities::Masked(vector(&["AES-NI", "PCLMULQDQ"])))
}

fn whole() -> Option<Capabilities> {
    Some(Capabilities::Whole(vector(&[])))
}

/// B encrypts AES slowly, and its machine is reached like this.
fn slow(access: HostAccess, reading: LensReading) -> World {
    let mut world = World { noise: 0.0, ..world(&[Server::default(), Server { aes: 8.0, ..Server::default() }]) };
    world.plan.targets[1].host = Some(HostPlan { access, server: ServerPlan::Port(443), process: None, redfish: None });
    world.lenses = vec![None, Some(reading)];
    world
}

/// What is found, whichever side is the baseline.
#[track_caller]
fn both_ways(world: &World, check: impl Fn(&Explanation, &str)) {
    check(&world.explain(), "B");
    check(&world.clone().swapped().explain(), "A");
}

#[test]
fn a_mask_in_the_running_server_confirms() {
    both_ways(&slow(HostAccess::Local, reading(HardwareUse::Masked, masked())), |explanation, slow| {
        let found = first(explanation);
        assert_eq!(named(explanation), [("tls.aes-unused", Some(slow))]);
        assert_eq!(found.confidence, Confidence::Confirmed, "{found:#?}");
        assert!(found.summary.contains("masked (OPENSSL_ia32cap or its like) when the server started"), "{found:#?}");
        assert!(found.remedy.contains("without OPENSSL_ia32cap"), "{}", found.remedy);
        let evidence = found.evidence.iter().find(|line| line.text.contains("processes 7, 8")).unwrap();
        assert!(evidence.text.contains("AES-NI, PCLMULQDQ"), "{}", evidence.text);
        assert_eq!(evidence.repeat.as_deref(), Some("duel lens 7"));
    });
}

#[test]
fn the_instructions_in_the_running_server_acquit() {
    both_ways(&slow(HostAccess::Local, reading(HardwareUse::Used, whole())), |explanation, _| {
        assert!(named(explanation).iter().all(|(cause, _)| *cause != "tls.aes-unused"), "{explanation:#?}");
        assert!(explanation.ruled_out.contains(&"tls.aes-unused".to_owned()), "{}", said(explanation));
        assert!(said(explanation).contains("in the running server too"), "{}", said(explanation));
    });
    // Some features are masked, and not those for AES.
    let narrow = Some(Capabilities::Masked(vector(&["VAES"])));
    both_ways(&slow(HostAccess::Local, reading(HardwareUse::Used, narrow)), |explanation, _| {
        assert!(explanation.ruled_out.contains(&"tls.aes-unused".to_owned()), "{}", said(explanation));
    });
    let unsure = HardwareUse::Unknown("the figures vary".into());
    both_ways(&slow(HostAccess::Local, reading(unsure, whole())), |explanation, _| {
        assert!(named(explanation).iter().all(|(cause, _)| *cause != "tls.aes-unused"), "{explanation:#?}");
        assert!(!explanation.ruled_out.contains(&"tls.aes-unused".to_owned()));
    });
}

/// A program may map libcrypto for something else than TLS.
#[test]
fn a_libcrypto_beside_another_tls_library_acquits_nobody() {
    for other in [("process.library.libgnutls.path", "/lib/libgnutls.so.30"), ("process.program.go", "go1.22.1")] {
        let mut world = slow(HostAccess::Local, reading(HardwareUse::Used, whole()));
        world.servers[1].facts = Some(vec![other]);
        both_ways(&world, |explanation, _| {
            assert!(named(explanation).iter().all(|(cause, _)| *cause != "tls.aes-unused"), "{explanation:#?}");
            assert!(!explanation.ruled_out.contains(&"tls.aes-unused".to_owned()), "{}", said(explanation));
        });
    }
}

#[test]
fn a_library_that_is_sound_elsewhere_neither_confirms_nor_acquits() {
    let not_read = Some(Capabilities::NotRead("may not read its memory".into()));
    for (access, capabilities) in
        [(HostAccess::Local, None), (HostAccess::Local, not_read.clone()), (HostAccess::Ssh("web".into()), not_read)]
    {
        both_ways(&slow(access, reading(HardwareUse::Used, capabilities)), |explanation, slow| {
            assert_eq!(named(explanation), [("tls.aes-unused", Some(slow))]);
            assert_eq!(first(explanation).confidence, Confidence::Likely);
        });
    }
}

#[test]
fn a_library_that_never_uses_them_confirms_whatever_the_server_holds() {
    for (access, capabilities) in [(HostAccess::Local, whole()), (HostAccess::Ssh("web".into()), None)] {
        both_ways(&slow(access, reading(HardwareUse::NotUsed, capabilities)), |explanation, slow| {
            assert_eq!(named(explanation), [("tls.aes-unused", Some(slow))]);
            assert_eq!(first(explanation).confidence, Confidence::Confirmed);
            assert!(first(explanation).summary.contains("never uses them"));
        });
    }
}

#[test]
fn no_lens_no_change() {
    let mut unlooked = slow(HostAccess::Local, reading(HardwareUse::Masked, masked()));
    unlooked.lenses = vec![None, None];
    both_ways(&unlooked, |explanation, slow| {
        assert_eq!(named(explanation), [("tls.aes-unused", Some(slow))]);
        assert_eq!(first(explanation).confidence, Confidence::Likely);
        assert!(said(explanation).contains("was not measured alone: it could not be loaded"));
    });
}

/// A server that has written over its environment: the twin as it is gets the mask that the server works with.
#[test]
fn a_twin_is_started_with_the_mask_that_was_read() {
    for (capabilities, mask) in [(masked(), Some("~0x200000002:~0x200000002")), (whole(), None)] {
        let mut world = slow(HostAccess::Local, reading(HardwareUse::Masked, capabilities));
        world.twins = vec![false, true];
        let explanation = world.explain();
        let twins = explanation.probes.iter().filter_map(|outcome| outcome.probe.variation.twin.as_ref());
        let masks: Vec<_> = twins.map(|twin| twin.mask.as_deref()).collect();
        assert!(masks.iter().all(|read| *read == mask), "{masks:?}");
        assert!(mask.is_none() || !masks.is_empty(), "{explanation:#?}");
    }
}
