//! Keys and certificates, made on the fly.

use crate::twin::{Key, Tls};
use anyhow::Context;
use rcgen::{CertificateParams, DnType, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, RsaKeySize, date_time_ymd};
use std::path::{Path, PathBuf};

/// A private key and its certificate chain as PEM files, and both in one file for servers that want it so.
pub(crate) struct Identity {
    pub(crate) key: PathBuf,
    pub(crate) chain: PathBuf,
    pub(crate) both: PathBuf,
}

impl Identity {
    /// A self-signed certificate for whatever name, with as many superfluous ones behind it as `tls` asks for.
    pub(crate) fn make(folder: &Path, tls: &Tls) -> anyhow::Result<Identity> {
        let key = generate(tls.key)?;
        let mut chain = certificate(&key, "twin")?;
        if tls.chain_bytes > 0 {
            // Their key does not matter to anybody.
            let filler = generate(Key::P256)?;
            let one = certificate(&filler, &"x".repeat(1000))?;
            while der_bytes(&chain) < tls.chain_bytes {
                chain += &one;
            }
        }
        let identity =
            Identity { key: folder.join("key.pem"), chain: folder.join("chain.pem"), both: folder.join("both.pem") };
        std::fs::write(&identity.key, key.serialize_pem())?;
        std::fs::write(&identity.both, chain.clone() + &key.serialize_pem())?;
        std::fs::write(&identity.chain, chain)?;
        Ok(identity)
    }
}

fn generate(kind: Key) -> anyhow::Result<KeyPair> {
    match kind {
        Key::P256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
        Key::Rsa2048 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048),
        Key::Rsa3072 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_3072),
        Key::Rsa4096 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_4096),
    }
    .context("could not generate a private key")
}

fn certificate(key: &KeyPair, organisation: &str) -> anyhow::Result<String> {
    let mut params = CertificateParams::new(["localhost".to_owned()])?;
    params.distinguished_name.push(DnType::CommonName, "duel faults");
    params.distinguished_name.push(DnType::OrganizationName, organisation);
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2099, 1, 1);
    Ok(params.self_signed(key)?.pem())
}

/// How many bytes travel: base64 takes four characters for three of them.
fn der_bytes(pem: &str) -> usize {
    pem.lines().filter(|line| !line.starts_with("-----")).map(|line| line.trim().len() * 3 / 4).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_gets_as_long_as_it_is_asked_to_be() {
        let folder = std::env::temp_dir().join(format!("duel-faults-{}-chain-test", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let length = |chain_bytes| {
            let identity = Identity::make(&folder, &Tls { chain_bytes, ..Tls::default() }).unwrap();
            der_bytes(&std::fs::read_to_string(identity.chain).unwrap())
        };
        assert!(length(0) < 1000);
        let long = length(15_000);
        std::fs::remove_dir_all(&folder).unwrap();
        assert!((15_000..18_000).contains(&long), "{long}");
    }
}
