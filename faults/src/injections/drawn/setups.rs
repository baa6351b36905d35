//! Set-ups by chance: what both twins are before one of them gets its fault.

use super::installed;
use crate::case::Setup;
use crate::dice::Dice;
use crate::random::Installed;
use crate::twin::{Key, Path, Server, Versions};

/// Header fields that a user might type. `Accept-Encoding` is what a probe of duel's needs to vary.
pub(super) const HEADERS: [&[&str]; 6] = [
    &[],
    &[],
    &[],
    &["Accept-Encoding: gzip"],
    &["Cookie: session=0123456789abcdef0123456789abcdef; theme=dark"],
    &["User-Agent: Mozilla/5.0 (X11; Linux x86_64)", "Accept: text/html,application/xhtml+xml"],
];

/// Draws one. Sizes and connections are ratios, so each octave is as likely as the other.
pub(super) fn draw(dice: &mut Dice, installed: &Installed) -> Setup {
    let server = *dice.pick(&installed::servers(installed));
    let mut setup = Setup::of(server).bytes(dice.between(200.0, 2e6) as u64).connections(dice.whole(1, 64));
    if server != Server::Own && dice.one_in(2) {
        setup = with_tls(setup.https(), dice);
    }
    if dice.one_in(3) {
        setup = if setup.twin.tls.is_some() && dice.one_in(3) { setup.resuming() } else { setup.connecting() };
    }
    if setup.twin.tls.is_some() && server.knows_http2() && !setup.load.connect_anew && dice.one_in(2) {
        // As many requests at a time as over HTTP/1.1, on fewer connections.
        let at_a_time = setup.load.connections;
        let streams = dice.whole(1, at_a_time.min(32));
        setup = setup.connections(at_a_time / streams).http2(streams);
    }
    if dice.one_in(5) {
        let rtt_us = u64::from(dice.whole(200, 30_000));
        setup = setup.with(&format!("rtt{rtt_us}us"), |twin| twin.network.path = Path::round_trip_us(rtt_us));
    }
    if !matches!(server, Server::Ruler | Server::Own) && dice.one_in(5) {
        let bytes = dice.whole(500, 4_000);
        setup = setup.with(&format!("head-of-{bytes}"), |twin| twin.http.padding_bytes = bytes);
    }
    setup.load.headers = *dice.pick(&HEADERS);
    match setup.load.headers.first().and_then(|field| field.split(':').next()) {
        None => setup,
        Some(name) => setup.with(&format!("typed-{}", name.to_lowercase()), |_| {}),
    }
}

fn with_tls(setup: Setup, dice: &mut Dice) -> Setup {
    let keys: &[Key] = match setup.twin.server {
        Server::Ruler => &[Key::P256, Key::P256, Key::Rsa2048, Key::Rsa4096],
        _ => &[Key::P256, Key::P256, Key::Rsa2048, Key::Rsa3072],
    };
    let (key, old) = (*dice.pick(keys), dice.one_in(4));
    let mut name = format!("{key:?}").to_lowercase();
    if old {
        name += "-tls12";
    }
    setup.with(&name, |twin| {
        let tls = twin.tls_mut();
        tls.key = key;
        tls.versions = if old { Versions::Tls12 } else { Versions::Both };
    })
}
