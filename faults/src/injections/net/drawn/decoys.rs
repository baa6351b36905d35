//! Differences that do no harm.

use super::*;

pub(super) const ALL: &[Decoy<Net>] = &[
    Decoy {
        fits: |_| true,
        differ: |twin, _| {
            twin.process.companion = Some(Companion::Sleeper);
            "a-process-that-sleeps".to_owned()
        },
    },
    // Settings of connections that rest, or have ended.
    Decoy {
        fits: |_| true,
        differ: |twin, dice| {
            let (name, from, to) =
                *dice.pick(&[("net.ipv4.tcp_keepalive_time", 600, 7_000), ("net.ipv4.tcp_fin_timeout", 10, 50)]);
            let value = dice.whole(from, to);
            twin.network.sysctls.push((name, value.to_string()));
            format!("{}-{value}", name.rsplit('.').next().unwrap_or(name))
        },
    },
    // Some rules that do not concern it.
    Decoy {
        fits: |setup| !setup.is_near(),
        differ: |twin, dice| {
            let rules = dice.whole(2, 12);
            filter_chain::chain(&mut twin.network, rules, &["input"]);
            format!("{rules}-rules")
        },
    },
    // Packets that are smaller than any MTU.
    Decoy {
        fits: |setup| setup.sends(&[Op::Exchange, Op::Connect]) && setup.is_near(),
        differ: |twin, dice| {
            let mtu = dice.whole(1_300, 1_490);
            twin.network.mtu = Some(mtu);
            format!("mtu{mtu}")
        },
    },
    // Buffers that one byte at a time does not fill.
    Decoy {
        fits: |setup| setup.sends(&[Op::Exchange, Op::Connect]),
        differ: |twin, dice| {
            let kib = dice.whole(64, 1_024);
            small_window::sends(twin, u64::from(kib));
            format!("wmem{kib}k")
        },
    },
];
