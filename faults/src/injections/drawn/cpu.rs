//! Faults of CPU and memory.

use super::*;
use crate::injections::{fewer_cores, memory_limit, noisy_neighbour, pauses, quota, slower_cpu, traced};
use crate::twin::Companion;
use crate::world::{Limits, Quota};

fn is_free(setup: &Setup) -> bool {
    setup.is_near() && setup.twin.process.limits == Limits::default()
}

pub(super) const ALL: &[Drawable] = &[
    Drawable::new(quota::INJECTION, is_free, |twin, _, dice| {
        let period_us = u64::from(dice.whole(20, 100)) * 1000;
        let quota_us = (dice.between(0.05, 0.8) * period_us as f64).max(1_000.0) as u64;
        twin.process.limits.quota = Some(Quota { quota_us, period_us });
        format!("{quota_us}of{period_us}us")
    }),
    Drawable::new(
        fewer_cores::INJECTION,
        |setup| {
            let served = setup.is_on(&[Server::Nginx, Server::Apache, Server::Ruler]);
            served && setup.is_https() && setup.connects_in_full() && is_free(setup)
        },
        |twin, _, _| {
            twin.process.cpus = "0";
            twin.process.limits.cpus = Some("0".to_owned());
            "1of2".to_owned()
        },
    )
    // Work that is dear for the servers and cheap for the client, which shares a CPU with them.
    .after(|setup, dice| {
        let connections = dice.whole(16, 48);
        setup.connections(connections).with("rsa4096-2cpus", |twin| {
            twin.process.cpus = "0-1";
            twin.process.limits.cpus = Some("0-1".to_owned());
            twin.http.workers = 2;
            twin.tls_mut().key = Key::Rsa4096;
        })
    }),
    Drawable::new(
        slower_cpu::INJECTION,
        |setup| is_free(setup) && (setup.is_https() || setup.body_bytes() >= 50_000),
        |twin, _, dice| {
            // A quota is a millisecond at least.
            let period_us = u64::from(dice.whole(1_300, 4_000));
            twin.process.limits.quota = Some(Quota { quota_us: 1_000, period_us });
            format!("1000of{period_us}us")
        },
    ),
    Drawable::new(noisy_neighbour::INJECTION, is_free, |twin, _, dice| {
        const USUAL_SHARES: u64 = 1024;
        let spinners = dice.whole(1, 8);
        twin.process.companion = Some(Companion::Spinners(spinners));
        twin.process.limits.shares = Some(USUAL_SHARES);
        format!("{spinners}-spinners")
    })
    // Two groups play two hosts: see the injection.
    .after(|setup, _| setup.with("groups", |twin| twin.process.limits.shares = Some(262_144))),
    Drawable::new(
        traced::INJECTION,
        |setup| setup.is_near() && setup.twin.process.companion.is_none(),
        |twin, _, _| {
            twin.process.companion = Some(Companion::Tracer);
            "strace".to_owned()
        },
    )
    .needing(&["strace"]),
    Drawable::new(
        memory_limit::INJECTION,
        |setup| {
            let served = setup.is_on(&[Server::Nginx, Server::Apache]);
            served && !setup.is_https() && setup.is_kept() && is_free(setup) && setup.body_bytes() > 0
        },
        |twin, _, dice| {
            let mib = u64::from(dice.whole(28, 44));
            twin.process.limits.memory_bytes = Some(mib << 20);
            format!("{mib}M")
        },
    )
    .after(|setup, dice| {
        let bytes = u64::from(dice.whole(60, 100)) * 1_000_000;
        let connections = dice.whole(1, 2);
        setup
            .bytes(bytes)
            .connections(connections)
            .with("grouped", |twin| twin.process.limits.memory_bytes = Some(1 << 30))
    }),
    // Of all servers: what a garbage collector does, or a snapshot of a virtual machine.
    Drawable::new(
        pauses::INJECTION,
        |setup| setup.is_near() && setup.twin.process.companion.is_none(),
        |twin, _, dice| {
            let (stopped_ms, running_ms) = (dice.whole(20, 200), dice.whole(50, 400));
            pauses::pausing(twin, stopped_ms, running_ms);
            format!("pauses-{stopped_ms}ms-each-{}ms", stopped_ms + running_ms)
        },
    ),
];
