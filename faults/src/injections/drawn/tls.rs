//! Faults of TLS.

use super::*;
use crate::injections::{
    JAVA_OPTIONS, aes_unused, extra_round_trip, large_key, no_asm, no_resumption, slow_cipher, slow_group,
};
use crate::openssl;
use crate::twin::{Ciphers, Versions};

pub(super) const ALL: &[Drawable] = &[
    Drawable::new(
        aes_unused::INJECTION,
        |setup| setup.is_https() && setup.body_bytes() >= 50_000 && setup.is_near(),
        |twin, _, dice| {
            if twin.server == Server::Java {
                twin.process.env.push((JAVA_OPTIONS.to_owned(), "-XX:-UseAES".to_owned()));
                return "no-aes-of-java".to_owned();
            }
            // As in the hand-made cases: without the instructions for AES, or without SSSE3 as well.
            let (name, words) = *dice.pick(&[
                ("no-aes", "~0x200000200000000:~0x60000000000"),
                ("tables", "~0x220020200000000:~0x60000000000"),
            ]);
            twin.process.env.push(("OPENSSL_ia32cap".to_owned(), words.to_owned()));
            name.to_owned()
        },
    ),
    Drawable::new(
        no_asm::INJECTION,
        |setup| setup.is_https() && setup.is_near() && setup.is_on(&PACKAGED) && setup.twin.process.env.is_empty(),
        |twin, _, _| {
            if let Ok((_, without)) = openssl::builds() {
                twin.process.env = vec![("LD_LIBRARY_PATH".to_owned(), without.display().to_string())];
            }
            "no-asm".to_owned()
        },
    )
    .needing(&["openssl-no-asm"])
    .after(|setup, _| match openssl::builds() {
        Ok((with, _)) => setup.with("own-openssl", |twin| {
            twin.process.env = vec![("LD_LIBRARY_PATH".to_owned(), with.display().to_string())];
        }),
        Err(_) => setup,
    }),
    Drawable::new(
        slow_cipher::INJECTION,
        |setup| {
            let serves = setup.is_on(&PACKAGED) || setup.is_on(&[Server::Ruler]);
            serves && setup.is_https() && setup.body_bytes() >= 100_000 && setup.is_near()
        },
        |twin, _, _| {
            let tls = twin.tls_mut();
            match (tls.versions, tls.key) {
                (Versions::Both, _) => tls.suites13 = Some(Ciphers::CHACHA20),
                (Versions::Tls12, Key::P256) => tls.suites12 = Some("ECDHE-ECDSA-CHACHA20-POLY1305"),
                (Versions::Tls12, _) => tls.suites12 = Some("ECDHE-RSA-CHACHA20-POLY1305"),
            }
            "chacha20".to_owned()
        },
    )
    // An older CPU, as in the hand-made cases: newer ones have vectors that make ChaCha20 as fast as AES.
    .after(|setup, _| {
        setup.with("no-avx2", |twin| twin.process.env.push(("OPENSSL_ia32cap".to_owned(), ":0".to_owned())))
    }),
    Drawable::new(
        large_key::INJECTION,
        |setup| setup.connects_in_full() && setup.is_near() && setup.key().is_some_and(|key| key != Key::Rsa4096),
        |twin, _, dice| {
            let all: &[Key] = match (twin.server, twin.tls_mut().key) {
                (Server::Ruler, Key::P256) => &[Key::Rsa2048, Key::Rsa4096],
                (Server::Ruler, _) | (_, Key::Rsa3072) => &[Key::Rsa4096],
                (_, Key::P256) => &[Key::Rsa2048, Key::Rsa3072, Key::Rsa4096],
                (_, _) => &[Key::Rsa3072, Key::Rsa4096],
            };
            let key = *dice.pick(all);
            twin.tls_mut().key = key;
            format!("{key:?}").to_lowercase()
        },
    ),
    Drawable::new(
        slow_group::INJECTION,
        |setup| {
            let serves = setup.is_on(&PACKAGED) || setup.is_on(&[Server::Node, Server::Java]);
            serves && setup.is_https() && setup.connects_in_full() && setup.is_near()
        },
        |twin, _, _| {
            twin.tls_mut().groups = Some("secp384r1");
            "secp384r1".to_owned()
        },
    ),
    Drawable::new(
        no_resumption::INJECTION,
        |setup| {
            let serves = setup.is_on(&PACKAGED) || setup.is_on(&[Server::Ruler]);
            let dear = setup.key().is_some_and(|key| key != Key::P256);
            serves && dear && setup.load.connect_anew && setup.load.resumption && setup.is_near()
        },
        |twin, _, _| {
            twin.tls_mut().resumption = false;
            "off".to_owned()
        },
    ),
    Drawable::new(
        extra_round_trip::INJECTION,
        |setup| {
            let free = setup.twin.tls.as_ref().is_some_and(|tls| tls.versions == Versions::Both);
            free && setup.connects_in_full() && setup.is_literal()
        },
        |twin, _, dice| {
            if twin.server != Server::Ruler && dice.one_in(3) {
                // More than the ten segments of a first flight.
                let bytes = dice.whole(18_000, 60_000);
                twin.tls_mut().chain_bytes = bytes as usize;
                return format!("chain{}k", bytes / 1000);
            }
            twin.tls_mut().versions = Versions::Tls12;
            "tls12".to_owned()
        },
    )
    .after(|setup, dice| distant(setup, dice, (3_000, 60_000))),
];
