//! TLS: what is forced is what is negotiated, what is negotiated is what is told, and refusals explain themselves.

use crate::common::{
    self, PATIENCE, PATIENCE_NS, Tiny, assert_agrees, assert_all_failed, assert_all_ok, plain, read_head, run,
};
use duel_http::HttpFactory;
use duel_model::web::{CertificateKey, failure};
use duel_model::{Facts, HttpPlan, TlsPlan, TlsVersion, web};
use duel_ruler::hostile::{Liar, by_name};
use duel_ruler::{Ciphers, Config, KeyKind, Ruler, Tls, TlsIdentity, Versions};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

static P256: LazyLock<TlsIdentity> = LazyLock::new(|| TlsIdentity::self_signed(KeyKind::P256).unwrap());
static RSA: LazyLock<TlsIdentity> = LazyLock::new(|| TlsIdentity::self_signed(KeyKind::Rsa2048).unwrap());

fn https(tls: Tls) -> Ruler {
    Ruler::start(Config::https(tls)).unwrap()
}

fn file_of(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("duel-work-tls-{}-{name}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path
}

fn plan(tls: TlsPlan) -> HttpPlan {
    HttpPlan { tls: TlsPlan { verify: false, ..tls }, keepalive: false, ..HttpPlan::default() }
}

/// Six requests over six connections, verified by the server's own certificate unless the plan says otherwise.
fn negotiated(ruler: &Ruler, tls: TlsPlan) -> Facts {
    let record = run(&plan(tls), &ruler.url("/size/3000"), 2, 6);
    assert_all_ok(&record, 6);
    assert_agrees(ruler, &record);
    record.negotiated.unwrap()
}

/// Why a plan cannot be used.
fn refused(tls: TlsPlan) -> String {
    let plan = HttpPlan { tls, ..HttpPlan::default() };
    HttpFactory::prepare(&plan, "https://127.0.0.1:1/", PATIENCE_NS).unwrap_err().to_string()
}

#[test]
fn versions() {
    for (server, offered, expected) in [
        (Versions::Both, vec![TlsVersion::V1_2, TlsVersion::V1_3], "1.3"),
        (Versions::Both, vec![TlsVersion::V1_2], "1.2"),
        (Versions::Both, vec![TlsVersion::V1_3], "1.3"),
        (Versions::Tls12, vec![TlsVersion::V1_2, TlsVersion::V1_3], "1.2"),
        (Versions::Tls13, vec![TlsVersion::V1_2, TlsVersion::V1_3], "1.3"),
    ] {
        let ruler = https(Tls { versions: server, ..Tls::new(P256.clone()) });
        let seen = negotiated(&ruler, TlsPlan { versions: offered, ..TlsPlan::default() });
        assert_eq!(seen.text(web::TLS_VERSION), Some(expected));
        assert_eq!(seen.text(web::TLS_ALPN), Some("http/1.1"));
    }
    for (server, offered) in [(Versions::Tls12, TlsVersion::V1_3), (Versions::Tls13, TlsVersion::V1_2)] {
        let ruler = https(Tls { versions: server, ..Tls::new(P256.clone()) });
        let tls = TlsPlan { versions: vec![offered], ..TlsPlan::default() };
        let record = run(&plan(tls), &ruler.url("/"), 2, 6);
        assert_all_failed(&record, 6, failure::TLS, "none of the TLS versions that were offered");
        assert_eq!(record.tally.connections, 6);
    }
    assert!(refused(TlsPlan { versions: vec![], ..TlsPlan::default() }).contains("do not fit together"));
}

#[test]
fn every_cipher_suite_can_be_forced() {
    let (ecdsa, rsa) = (https(Tls::new(P256.clone())), https(Tls::new(RSA.clone())));
    let mut before = [0, 0];
    for (suite, version) in [
        ("TLS_AES_128_GCM_SHA256", "1.3"),
        ("TLS_AES_256_GCM_SHA384", "1.3"),
        ("TLS_CHACHA20_POLY1305_SHA256", "1.3"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "1.2"),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "1.2"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "1.2"),
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "1.2"),
        ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "1.2"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "1.2"),
    ] {
        let is_rsa = usize::from(suite.contains("_RSA_"));
        let ruler = [&ecdsa, &rsa][is_rsa];
        // Also as rustls spells it, and in lower case.
        for name in [suite.to_owned(), suite.replace("TLS_AES", "TLS13_AES").to_lowercase()] {
            let versions = vec![if version == "1.3" { TlsVersion::V1_3 } else { TlsVersion::V1_2 }];
            let tls = TlsPlan { ciphers: vec![name], versions, ..TlsPlan::default() };
            let record = run(&plan(tls), &ruler.url("/size/100000"), 2, 4);
            assert_all_ok(&record, 4);
            assert_eq!(record.tally.body_bytes, 400_000);
            let seen = record.negotiated.unwrap();
            assert_eq!((seen.text(web::TLS_CIPHER), seen.text(web::TLS_VERSION)), (Some(suite), Some(version)));
            let truth = ruler.settled(PATIENCE);
            assert_eq!(truth.handshakes_full - before[is_rsa], 4);
            before[is_rsa] = truth.handshakes_full;
        }
    }
    let error = refused(TlsPlan { ciphers: vec!["RC4-\x1b[31mMD5".into()], ..TlsPlan::default() });
    assert!(error.contains("is no known cipher suite; known are TLS_AES_") && !error.contains('\x1b'), "{error}");
}

#[test]
fn a_forced_cipher_without_its_version_says_so() {
    // The suite is of TLS 1.3, and both versions are allowed: one that has no suite is no offer, and no error.
    let ruler = https(Tls::new(P256.clone()));
    let tls = TlsPlan { ciphers: vec!["TLS_AES_128_GCM_SHA256".into()], ..TlsPlan::default() };
    let outcome = HttpFactory::prepare(&plan(tls), &ruler.url("/"), PATIENCE_NS);
    assert!(outcome.is_ok(), "{outcome:?}");
    let tls = TlsPlan {
        ciphers: vec!["TLS_AES_128_GCM_SHA256".into()],
        versions: vec![TlsVersion::V1_2],
        ..TlsPlan::default()
    };
    assert!(refused(tls).contains("do not fit together"));
}

#[test]
fn every_group_can_be_forced() {
    let ruler = https(Tls::new(P256.clone()));
    let mut handshakes = 0;
    for group in ["x25519", "secp256r1", "secp384r1", "x25519mlkem768"] {
        let tls = TlsPlan { groups: vec![group.into()], versions: vec![TlsVersion::V1_3], ..TlsPlan::default() };
        let record = run(&plan(tls), &ruler.url("/"), 1, 2);
        assert_all_ok(&record, 2);
        assert_eq!(record.negotiated.unwrap().text(web::TLS_GROUP), Some(group));
        handshakes += 2;
        assert_eq!(ruler.settled(PATIENCE).handshakes_full, handshakes);
    }
    let seen = run(&plan(TlsPlan::default()), &ruler.url("/"), 1, 1).negotiated.unwrap();
    assert_eq!(seen.text(web::TLS_GROUP), Some("x25519"), "the first of the defaults");
    assert!(refused(TlsPlan { groups: vec!["x448".into()], ..TlsPlan::default() }).contains("no known key exchange"));
}

#[test]
fn alpn() {
    let ruler = https(Tls::new(P256.clone()));
    let offers =
        |names: &[&str]| TlsPlan { alpn: names.iter().map(|&name| name.into()).collect(), ..TlsPlan::default() };
    for (offered, chosen) in
        [(&["http/1.1"][..], Some("http/1.1")), (&["h2", "http/1.1"], Some("http/1.1")), (&[], None)]
    {
        let record = run(&plan(offers(offered)), &ruler.url("/"), 1, 2);
        assert_all_ok(&record, 2);
        assert_eq!(record.negotiated.unwrap().text(web::TLS_ALPN), chosen);
    }
    let record = run(&plan(offers(&["h2"])), &ruler.url("/"), 1, 2);
    assert_all_failed(&record, 2, failure::TLS, "NoApplicationProtocol");
}

#[test]
fn resumption_only_when_it_is_wanted() {
    for version in [TlsVersion::V1_2, TlsVersion::V1_3] {
        for (wanted, offered) in [(true, true), (true, false), (false, true)] {
            let ruler = https(Tls { resumption: offered, ..Tls::new(P256.clone()) });
            let tls = TlsPlan { resumption: wanted, versions: vec![version], ..TlsPlan::default() };
            let record = run(&plan(tls), &ruler.url("/"), 1, 20);
            assert_all_ok(&record, 20);
            let truth = assert_agrees(&ruler, &record);
            assert_eq!(truth.handshakes_resumed, record.tally.resumed, "{version:?} {wanted} {offered}");
            assert_eq!(truth.handshakes_full, 20 - record.tally.resumed);
            // One after the other, each can resume what its predecessor left.
            assert_eq!(record.tally.resumed, if wanted && offered { 19 } else { 0 }, "{version:?} {wanted} {offered}");
        }
    }
}

#[test]
fn resumption_over_many_connections() {
    let ruler = https(Tls::new(P256.clone()));
    let tls = TlsPlan { resumption: true, ..TlsPlan::default() };
    let record = run(&plan(tls), &ruler.url("/"), 16, 200);
    assert_all_ok(&record, 200);
    let truth = assert_agrees(&ruler, &record);
    assert_eq!((truth.handshakes_resumed, truth.handshakes_full), (record.tally.resumed, 200 - record.tally.resumed));
    assert!(record.tally.resumed >= 100, "{}", record.tally.resumed);
}

#[test]
fn the_certificates_key_is_told() {
    for (kind, algorithm, bits) in
        [(KeyKind::P256, "EC", 256), (KeyKind::Rsa2048, "RSA", 2048), (KeyKind::Rsa4096, "RSA", 4096)]
    {
        let identity = TlsIdentity::self_signed(kind).unwrap();
        let ruler = https(Tls::new(identity.clone()));
        let seen = negotiated(&ruler, TlsPlan::default());
        let key = CertificateKey::of(&seen).unwrap();
        assert_eq!((key.algorithm.as_str(), key.bits), (algorithm, Some(bits)));
        assert_eq!(seen.count(web::CHAIN_BYTES), Some(identity.ca_der().len() as u64));
    }
}

#[test]
fn a_certificate_longer_than_a_record() {
    // Its message spans several TLS records, which arrive in any pieces.
    let names: Vec<String> = (0..1_500).map(|number| format!("host-{number}.duel.example")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).chain(["127.0.0.1"]).collect();
    let identity = TlsIdentity::named(KeyKind::P256, &names).unwrap();
    assert!(identity.ca_der().len() > 2 * 16_384);
    for version in [TlsVersion::V1_2, TlsVersion::V1_3] {
        let ruler = https(Tls::new(identity.clone()));
        let tls = TlsPlan {
            ca_file: Some(file_of(&format!("long-{version:?}.pem"), identity.ca_pem())),
            versions: vec![version],
            ..TlsPlan::default()
        };
        let plan = HttpPlan { tls, keepalive: false, ..HttpPlan::default() };
        // Straight, and through somebody who hands on a few bytes at a time.
        let record = run(&plan, &ruler.url("/size/50000"), 2, 6);
        assert_all_ok(&record, 6);
        let (to, slow) = (ruler.addr(), 1_001);
        let relay = Tiny::start(move |_, stream| {
            relay(&stream, to, |bytes, out| {
                for piece in bytes.chunks(slow) {
                    let _ = out.write_all(piece);
                }
            });
        });
        let record = run(&plan, &relay.url("/size/50000").replace("http", "https"), 2, 6);
        assert_all_ok(&record, 6);
        assert_eq!(record.negotiated.unwrap().count(web::CHAIN_BYTES), Some(identity.ca_der().len() as u64));
    }
}

#[test]
fn verification() {
    let verified = |identity: &TlsIdentity, ca_file: Option<PathBuf>, server_name: Option<&str>| {
        let ruler = https(Tls::new(identity.clone()));
        let tls = TlsPlan { ca_file, server_name: server_name.map(str::to_owned), ..TlsPlan::default() };
        let record = run(&HttpPlan { tls, ..HttpPlan::default() }, &ruler.url("/"), 2, 6);
        if record.tally.ok == 0 {
            assert_eq!(record.tally.connections, 6);
            assert_eq!(ruler.settled(PATIENCE).requests, 0, "nothing is asked of a server that is not trusted");
        }
        record
    };
    let ca = Some(file_of("good.pem", P256.ca_pem()));
    assert_all_ok(&verified(&P256, ca.clone(), None), 6);
    assert_all_ok(&verified(&P256, ca.clone(), Some("localhost")), 6);
    let rsa = Some(file_of("rsa.pem", RSA.ca_pem()));
    assert_all_ok(&verified(&RSA, rsa.clone(), None), 6);
    // Trusting somebody else: of another name, or of the same name with another key, of the same kind or not.
    let key = rcgen::KeyPair::generate().unwrap();
    let mut other = rcgen::CertificateParams::new(vec!["127.0.0.1".into()]).unwrap();
    other.distinguished_name.push(rcgen::DnType::CommonName, "somebody else");
    let other = Some(file_of("other.pem", &other.self_signed(&key).unwrap().pem()));
    assert_all_failed(&verified(&P256, other, None), 6, failure::TLS, "unknown authority");
    let twin = TlsIdentity::self_signed(KeyKind::P256).unwrap();
    let twin = Some(file_of("twin.pem", twin.ca_pem()));
    for ca in [rsa, twin] {
        assert_all_failed(&verified(&P256, ca, None), 6, failure::TLS, "not signed by the trusted authority");
    }
    // Or those of the system.
    if !rustls_native_certs::load_native_certs().certs.is_empty() {
        assert_all_failed(&verified(&P256, None, None), 6, failure::TLS, "unknown authority");
    }
    let record = verified(&P256, ca, Some("elsewhere.example"));
    assert_all_failed(&record, 6, failure::TLS, "certificate is for another name");
    let expired = TlsIdentity::expired(KeyKind::P256).unwrap();
    let record = verified(&expired, Some(file_of("expired.pem", expired.ca_pem())), None);
    assert_all_failed(&record, 6, failure::TLS, "certificate has expired");
    let named = TlsIdentity::named(KeyKind::P256, &["duel.example"]).unwrap();
    let ca = Some(file_of("named.pem", named.ca_pem()));
    assert_all_failed(&verified(&named, ca.clone(), None), 6, failure::TLS, "--server-name NAME");
    assert_all_ok(&verified(&named, ca, Some("duel.example")), 6);
}

#[test]
fn what_cannot_be_prepared_says_why() {
    let file = |path: &str| Some(PathBuf::from(path));
    for (tls, part) in [
        (TlsPlan { ca_file: file("/nowhere.pem"), ..TlsPlan::default() }, "cannot read certificates from /nowhere.pem"),
        (TlsPlan { ca_file: Some(file_of("none.pem", "hello")), ..TlsPlan::default() }, "holds no PEM certificate"),
        (TlsPlan { verify: false, client_cert_file: file("/x"), ..TlsPlan::default() }, "both its chain"),
        (TlsPlan { verify: false, client_key_file: file("/x"), ..TlsPlan::default() }, "both its chain"),
        (
            TlsPlan {
                verify: false,
                client_cert_file: Some(file_of("client.pem", P256.ca_pem())),
                client_key_file: file("/nowhere.key"),
                ..TlsPlan::default()
            },
            "cannot read a private key from /nowhere.key",
        ),
        (
            TlsPlan { verify: false, server_name: Some("no name".into()), ..TlsPlan::default() },
            "cannot be a TLS server name",
        ),
    ] {
        let error = refused(tls);
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn client_certificates() {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["client".into()]).unwrap().self_signed(&key).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier =
        rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build();
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.unwrap())
        .with_single_cert(vec![certificate.der().clone()], private_key(&key))
        .unwrap();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let config = Arc::new(config);
    let server = Tiny::start(move |_, stream| {
        let session = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut stream = rustls::StreamOwned::new(session, stream);
        while common::answer(&mut stream) {}
        common::end_in_order(&mut stream.sock);
    });
    let url = server.url("/").replace("http", "https");
    for version in [TlsVersion::V1_2, TlsVersion::V1_3] {
        let without = TlsPlan { versions: vec![version], ..TlsPlan::default() };
        let record = run(&plan(without.clone()), &url, 2, 6);
        assert_all_failed(&record, 6, failure::TLS, "with the alert CertificateRequired");
        let with = TlsPlan {
            client_cert_file: Some(file_of(&format!("mutual-{version:?}.pem"), &certificate.pem())),
            client_key_file: Some(file_of(&format!("mutual-{version:?}.key"), &key.serialize_pem())),
            ..without
        };
        assert_all_ok(&run(&plan(with), &url, 2, 6), 6);
    }
}

fn private_key(key: &rcgen::KeyPair) -> rustls::pki_types::PrivateKeyDer<'static> {
    rustls::pki_types::PrivatePkcs8KeyDer::from(key.serialize_der()).into()
}

#[test]
fn a_server_that_shares_no_cipher() {
    let ruler = https(Tls { ciphers: Ciphers::ChaCha20, ..Tls::new(P256.clone()) });
    let aes = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"];
    let tls = TlsPlan { ciphers: aes.map(str::to_owned).to_vec(), ..TlsPlan::default() };
    let record = run(&plan(tls), &ruler.url("/"), 2, 6);
    assert_all_failed(&record, 6, failure::TLS, "refused the TLS handshake with the alert HandshakeFailure");
    assert_eq!(ruler.settled(PATIENCE).requests, 0);
    assert!(negotiated_cipher(&ruler).contains("CHACHA20"));
}

fn negotiated_cipher(ruler: &Ruler) -> String {
    run(&plan(TlsPlan::default()), &ruler.url("/"), 1, 1).negotiated.unwrap().text(web::TLS_CIPHER).unwrap().to_owned()
}

#[test]
fn the_wrong_protocol_on_a_port() {
    let ruler = https(Tls::new(P256.clone()));
    let url = ruler.url("/").replace("https", "http");
    let record = run(&HttpPlan::default(), &url, 2, 6);
    assert_all_failed(&record, 6, failure::PROTOCOL, "this port speaks https");
    let ruler = plain();
    let url = ruler.url("/").replace("http", "https");
    let record = run(&plan(TlsPlan::default()), &url, 2, 6);
    assert_all_failed(&record, 6, failure::TLS, "not TLS; if the server speaks plain HTTP on this port, use http://");
}

/// Hands on what the client sends, and passes what the server sends through `back`.
fn relay(client: &TcpStream, to: std::net::SocketAddr, mut back: impl FnMut(&[u8], &mut TcpStream)) {
    let server = TcpStream::connect(to).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = std::io::copy(&mut &*client, &mut &server);
            let _ = server.shutdown(Shutdown::Write);
        });
        let mut buffer = vec![0; 65_536];
        let mut out = client.try_clone().unwrap();
        while let Ok(count @ 1..) = (&server).read(&mut buffer) {
            back(&buffer[..count], &mut out);
        }
        let _ = client.shutdown(Shutdown::Write);
    });
}

/// The end of a body that only the end of the connection tells must be announced by TLS; somebody on the way who cuts
/// the connection must not pass for the server.
#[test]
fn an_end_that_tls_does_not_announce_is_a_cut() {
    for version in [TlsVersion::V1_2, TlsVersion::V1_3] {
        let ruler = https(Tls::new(P256.clone()));
        let to = ruler.addr();
        // Hands on whole records, but no alert: in TLS 1.3 an encrypted one is told by its length.
        let cutter = Tiny::start(move |_, stream| {
            let mut pending = Vec::new();
            relay(&stream, to, |bytes, out| {
                pending.extend_from_slice(bytes);
                while pending.len() >= 5 {
                    let length = 5 + usize::from(pending[3]) * 256 + usize::from(pending[4]);
                    if pending.len() < length {
                        break;
                    }
                    let record: Vec<u8> = pending.drain(..length).collect();
                    if record[0] != 21 && !(record[0] == 23 && record.len() == 24) {
                        let _ = out.write_all(&record);
                    }
                }
            });
        });
        let tls = TlsPlan { versions: vec![version], ..TlsPlan::default() };
        let url = cutter.url("/until-close/50000").replace("http", "https");
        let record = run(&plan(tls.clone()), &url, 2, 6);
        assert_all_failed(&record, 6, failure::SHORT_BODY, "after 50000 body bytes without a TLS closure alert");
        // With a length there is no doubt.
        let url = cutter.url("/size/50000").replace("http", "https");
        assert_all_ok(&run(&plan(tls), &url, 2, 6), 6);
    }
}

fn server_config() -> Arc<rustls::ServerConfig> {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["localhost".into()]).unwrap().self_signed(&key).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private_key(&key))
        .unwrap();
    Arc::new(config)
}

/// A server says with its answer that it will close, but only in TLS: the next request goes over a new connection.
#[test]
fn a_closure_alert_behind_the_answer_ends_the_connection() {
    for method in ["GET", "POST"] {
        let config = server_config();
        let server = Tiny::start(move |_, stream| {
            let session = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut tls = rustls::StreamOwned::new(session, stream);
            if common::read_request(&mut tls).is_none() {
                return;
            }
            // Both in one piece.
            tls.conn.writer().write_all(common::OK).unwrap();
            tls.conn.send_close_notify();
            let mut bytes = Vec::new();
            while tls.conn.wants_write() {
                tls.conn.write_tls(&mut bytes).unwrap();
            }
            tls.sock.write_all(&bytes).unwrap();
            common::end_in_order(&mut tls.sock);
        });
        let plan = HttpPlan { keepalive: true, method: method.into(), ..plan(TlsPlan::default()) };
        let record = run(&plan, &server.url("/").replace("http", "https"), 2, 20);
        assert_all_ok(&record, 20);
        assert_eq!((record.tally.connections, record.tally.reused), (20, 0));
    }
}

/// A server takes leave while the handshake is not over: that is no answer, also if the lane has had one before.
#[test]
fn a_closure_alert_within_the_handshake_is_no_answer() {
    let config = server_config();
    let server = Tiny::start(move |number, mut stream| {
        let mut tls = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
        if number == 1 {
            let mut tls = rustls::StreamOwned::new(tls, stream);
            read_head(&mut tls);
            tls.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok").unwrap();
            return;
        }
        tls.read_tls(&mut stream).unwrap();
        tls.process_new_packets().unwrap();
        tls.send_close_notify();
        let mut bytes = Vec::new();
        while tls.wants_write() {
            tls.write_tls(&mut bytes).unwrap();
        }
        stream.write_all(&bytes).unwrap();
        common::end_in_order(&mut stream);
    });
    let tls = TlsPlan { versions: vec![TlsVersion::V1_3], ..TlsPlan::default() };
    let record = run(&plan(tls), &server.url("/").replace("http", "https"), 1, 5);
    assert_eq!((record.tally.ok, record.tally.failed_total()), (1, 4), "{:?}", record.tally);
    assert_eq!(record.tally.statuses, [(200, 1)].into());
}

#[test]
fn more_session_tickets_than_there_is_room_for_are_told_and_are_not_taken_for_the_end() {
    // Two thousand of them, some 300 kB.
    let liar = Liar::start(by_name("tls/many-tickets").unwrap(), 0).unwrap();
    let record = run(&plan(TlsPlan::default()), &liar.url(), 2, 4);
    assert_all_failed(&record, 4, failure::TLS, "session tickets");
}
