//! The same server over TLS, asked by a rustls client.

use crate::common;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{connect, read_one, settled, taken_apart};
use duel_ruler::{Ciphers, Config, FILE_LEN, Handicap, KeyKind, Ruler, Tls, TlsIdentity, Versions, payload};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, HandshakeKind, ProtocolVersion, RootCertStore, StreamOwned};

type Stream = StreamOwned<ClientConnection, TcpStream>;

fn start(tls: Tls) -> Ruler {
    Ruler::start(Config::https(tls)).unwrap()
}

fn p256() -> Tls {
    Tls::new(TlsIdentity::self_signed(KeyKind::P256).unwrap())
}

/// Trusts this identity and nothing else; remembers sessions.
fn client(identity: &TlsIdentity) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(identity.ca_der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Arc::new(config)
}

fn open(ruler: &Ruler, config: &Arc<ClientConfig>) -> Stream {
    let connection = ClientConnection::new(Arc::clone(config), ServerName::try_from("localhost").unwrap()).unwrap();
    StreamOwned::new(connection, connect(ruler.addr()))
}

fn get(stream: &mut Stream, path: &str) -> common::Answer {
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).unwrap();
    read_one(stream)
}

#[test]
fn small_and_large_bodies() {
    let tls = p256();
    let config = client(&tls.identity);
    let ruler = start(tls);
    let mut stream = open(&ruler, &config);
    for len in [0, 1, 16_384, 300_000] {
        assert!(get(&mut stream, &format!("/size/{len}")).body == payload(0, len));
    }
    assert!(get(&mut stream, "/file").body == payload(0, FILE_LEN as usize));
    assert_eq!(stream.conn.alpn_protocol(), Some(b"http/1.1".as_slice()));
    let truth = settled(&ruler);
    assert_eq!((truth.handshakes_full, truth.handshakes_resumed, truth.responses), (1, 0, 5));
    assert!(truth.wire_bytes_sent > truth.http_bytes_sent);
    assert!(ruler.url("/x").starts_with("https://127.0.0.1:"));
}

#[test]
fn every_key() {
    for kind in [KeyKind::P256, KeyKind::Rsa2048, KeyKind::Rsa4096] {
        let tls = Tls::new(TlsIdentity::self_signed(kind).unwrap());
        assert!(tls.identity.ca_pem().starts_with("-----BEGIN CERTIFICATE-----"));
        let config = client(&tls.identity);
        let ruler = start(tls);
        assert_eq!(get(&mut open(&ruler, &config), "/").status, 200, "{kind:?}");
    }
}

#[test]
fn resumption_on_and_off() {
    for versions in [Versions::Tls12, Versions::Tls13] {
        for resumption in [true, false] {
            let tls = Tls { resumption, versions, ..p256() };
            let config = client(&tls.identity);
            let ruler = start(tls);
            let mut last = None;
            for _ in 0..4 {
                let mut stream = open(&ruler, &config);
                get(&mut stream, "/");
                last = stream.conn.handshake_kind();
            }
            let truth = settled(&ruler);
            let expected = if resumption { (1, 3, HandshakeKind::Resumed) } else { (4, 0, HandshakeKind::Full) };
            assert_eq!(
                (truth.handshakes_full, truth.handshakes_resumed, last.unwrap()),
                expected,
                "{versions:?}, resumption {resumption}"
            );
        }
    }
}

#[test]
fn versions_and_ciphers() {
    for (versions, expected) in [
        (Versions::Tls12, ProtocolVersion::TLSv1_2),
        (Versions::Tls13, ProtocolVersion::TLSv1_3),
        (Versions::Both, ProtocolVersion::TLSv1_3),
    ] {
        for (ciphers, name) in
            [(Ciphers::Aes128Gcm, "AES_128_GCM"), (Ciphers::Aes256Gcm, "AES_256_GCM"), (Ciphers::ChaCha20, "CHACHA20")]
        {
            let tls = Tls { versions, ciphers, ..p256() };
            let config = client(&tls.identity);
            let ruler = start(tls);
            let mut stream = open(&ruler, &config);
            get(&mut stream, "/");
            assert_eq!(stream.conn.protocol_version(), Some(expected));
            let suite = stream.conn.negotiated_cipher_suite().unwrap().suite();
            assert!(suite.as_str().unwrap().contains(name), "{suite:?}");
        }
    }
}

/// The client's error; the server counts a failed handshake.
fn refused(identity: TlsIdentity, trusted: &TlsIdentity) -> String {
    let config = client(trusted);
    let ruler = start(Tls::new(identity));
    let mut stream = open(&ruler, &config);
    let error = stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap_err().to_string();
    drop(stream);
    while ruler.truth().handshakes_failed == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!((ruler.truth().handshakes_full, ruler.truth().requests), (0, 0));
    error
}

#[test]
fn certificates_that_must_be_refused() {
    let expired = TlsIdentity::expired(KeyKind::P256).unwrap();
    assert!(refused(expired.clone(), &expired).contains("expired"));
    let elsewhere = TlsIdentity::named(KeyKind::P256, &["elsewhere.example"]).unwrap();
    assert!(refused(elsewhere.clone(), &elsewhere).contains("not valid for name"));
    let unknown = TlsIdentity::self_signed(KeyKind::P256).unwrap();
    assert!(refused(unknown, &expired).contains("invalid peer certificate"));
}

#[test]
fn plain_http_to_the_tls_port() {
    let ruler = start(p256());
    let mut stream = connect(ruler.addr());
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    assert!(!all.starts_with(b"HTTP"));
    while ruler.truth().handshakes_failed == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn ends_that_are_meant_and_ends_that_are_not() {
    let tls = p256();
    let config = client(&tls.identity);
    let ruler = start(tls);
    let end = |path: &str| {
        let mut stream = open(&ruler, &config);
        stream.write_all(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
        let mut all = Vec::new();
        let end = stream.read_to_end(&mut all).map_err(|error| error.kind());
        (all, end)
    };
    let (all, closed) = end("/until-close/100000");
    assert!(closed.is_ok() && taken_apart(&all).body == payload(0, 100_000), "{closed:?}");
    let (all, closed) = end("/short-body");
    assert!(closed.is_ok() && taken_apart(&all).body.len() == 500);
    // Not a byte of TLS either, so the client cannot take it for an end that is meant.
    let (all, closed) = end("/early-close");
    assert!(all.is_empty());
    assert_eq!(closed, Err(ErrorKind::UnexpectedEof));
    let (all, closed) = end("/reset");
    assert!(all.is_empty() && closed.is_err());
}

#[test]
fn the_handshake_handicap_is_for_full_ones_only() {
    let tls = p256();
    let config = client(&tls.identity);
    let handicap = Handicap { burn_per_handshake: Duration::from_millis(2), ..Handicap::default() };
    let ruler = Ruler::start(Config { handicap, ..Config::https(tls) }).unwrap();
    for _ in 0..3 {
        get(&mut open(&ruler, &config), "/");
    }
    let truth = settled(&ruler);
    assert_eq!((truth.handshakes_full, truth.handshakes_resumed), (1, 2));
    assert_eq!(truth.burnt, Duration::from_millis(2));
}
