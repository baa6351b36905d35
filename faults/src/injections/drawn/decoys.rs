//! Differences that do no harm: whatever is blamed on them is wrong. Those that cost a little are drawn on set-ups where
//! that is far below duel's margin of 2 %, by how they are made. Of every draw it is measured that they cost less than 5 %, which is
//! what tools can tell beside other work.

use super::*;
use crate::twin::{Companion, Log};

/// Responses beside which a line of the head or of a log is nothing.
fn is_large(setup: &Setup) -> bool {
    setup.body_bytes() >= 50_000
}

pub(crate) const ALL: &[Decoy] = &[
    Decoy {
        fits: |setup| is_large(setup) && !setup.is_on(&[Server::Ruler, Server::Own]),
        differ: |twin, dice| {
            let bytes = dice.whole(30, 200);
            twin.http.padding_bytes += bytes;
            format!("head-plus-{bytes}")
        },
    },
    // Over kept connections nobody signs any more.
    Decoy {
        fits: |setup| setup.is_kept() && setup.key().is_some_and(|key| key == Key::P256) && is_large(setup),
        differ: |twin, dice| {
            let key = *dice.pick(&[Key::Rsa2048, Key::Rsa4096]);
            twin.tls_mut().key = key;
            format!("{key:?}-of-kept-connections").to_lowercase()
        },
    },
    Decoy {
        fits: |setup| setup.is_kept() && setup.is_https() && setup.is_on(&PACKAGED),
        differ: |twin, _| {
            twin.tls_mut().resumption = false;
            "no-resumption-of-kept-connections".to_owned()
        },
    },
    Decoy {
        fits: |setup| is_large(setup) && setup.is_on(&[Server::Nginx, Server::Apache, Server::NginxPhp]),
        differ: |twin, _| {
            twin.http.log = Log::Nowhere;
            "log-to-dev-null".to_owned()
        },
    },
    Decoy {
        fits: |_| true,
        differ: |twin, _| {
            twin.process.companion = Some(Companion::Sleeper);
            "a-process-that-sleeps".to_owned()
        },
    },
    Decoy {
        fits: |setup| setup.is_on(&PACKAGED),
        differ: |twin, dice| {
            twin.http.backlog = dice.whole(512, 2048);
            format!("backlog{}", twin.http.backlog)
        },
    },
    // The kernel hands the segments of many packets over in one piece, of whatever size they are.
    Decoy {
        fits: |setup| setup.is_near() && setup.body_bytes() > 0,
        differ: |twin, dice| {
            let mtu = dice.whole(1300, 1490);
            twin.network.mtu = Some(mtu);
            format!("mtu{mtu}")
        },
    },
];
