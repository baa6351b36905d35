//! Ways of logging in: what is answered to a server's challenge.

use super::ed25519;
use super::handshake::NONCE_BYTES;
use super::packets::broken;
use crate::failure::LOGIN;
use crate::wire::SqlFailure;
use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use aws_lc_rs::rsa::{OAEP_SHA1_MGF1SHA1, OaepPublicEncryptingKey, PublicEncryptingKey};
use duel_model::sanitize_line;
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;

/// A way of logging in that is known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plugin {
    /// SHA-1 of the password and of the challenge: MariaDB's default, and that of MySQL before 8.
    Native,
    /// SHA-256 of them, and where the server has forgotten the password, the password itself: the default of MySQL since 8.
    CachingSha2,
    /// A signature by a key that is made of the password: MariaDB.
    Ed25519,
    /// Nothing: the server asks the system who is at the other end of the socket.
    Socket,
}

/// Their names.
const NAMES: [(&str, Plugin); 5] = [
    ("mysql_native_password", Plugin::Native),
    ("caching_sha2_password", Plugin::CachingSha2),
    ("client_ed25519", Plugin::Ed25519),
    ("auth_socket", Plugin::Socket),
    ("unix_socket", Plugin::Socket),
];

impl Plugin {
    /// The one of this name.
    pub(super) fn named(name: &[u8]) -> Option<Self> {
        NAMES.iter().find(|(known, _)| known.as_bytes() == name).map(|&(_, plugin)| plugin)
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        NAMES.iter().find(|&&(_, plugin)| plugin == self).map_or("", |&(name, _)| name)
    }

    /// What it answers to a challenge.
    pub(super) fn answer(self, password: &str, challenge: &[u8]) -> Result<Vec<u8>, SqlFailure> {
        let nonce = |bytes| challenge.get(..bytes).ok_or_else(|| broken("the server's challenge is too short"));
        Ok(match self {
            Self::Socket => Vec::new(),
            Self::Ed25519 => ed25519::sign(password.as_bytes(), nonce(ed25519::NONCE_BYTES)?).to_vec(),
            Self::Native | Self::CachingSha2 if password.is_empty() => Vec::new(),
            Self::Native => native(password, nonce(NONCE_BYTES)?),
            Self::CachingSha2 => caching_sha2(password, nonce(NONCE_BYTES)?),
        })
    }
}

/// A server that asks for a way that is not known here. One that would have the password itself from everybody is refused, too:
/// whoever has taken the server's place would have it then.
pub(super) fn unknown(name: &[u8]) -> SqlFailure {
    let name = sanitize_line(&String::from_utf8_lossy(name));
    let known: Vec<&str> = NAMES.iter().map(|&(name, _)| name).collect();
    // From 9.0 on, who asks for a user that does not exist is not to find that out.
    let may_be_nobody =
        if name == "sha256_password" { " (which MySQL may say of a user that it does not have)" } else { "" };
    SqlFailure::new(
        LOGIN,
        format!("the server wants this user to log in by {name}{may_be_nobody}; duel knows {}", known.join(", ")),
    )
}

/// SHA1(password) XOR SHA1(nonce, SHA1(SHA1(password)))
fn native(password: &str, nonce: &[u8]) -> Vec<u8> {
    let once = digest(&SHA1_FOR_LEGACY_USE_ONLY, password.as_bytes());
    let twice = digest(&SHA1_FOR_LEGACY_USE_ONLY, once.as_ref());
    let mask = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[nonce, twice.as_ref()].concat());
    xor(once.as_ref(), mask.as_ref())
}

/// SHA256(password) XOR SHA256(SHA256(SHA256(password)), nonce)
fn caching_sha2(password: &str, nonce: &[u8]) -> Vec<u8> {
    let once = digest(&SHA256, password.as_bytes());
    let twice = digest(&SHA256, once.as_ref());
    let mask = digest(&SHA256, &[twice.as_ref(), nonce].concat());
    xor(once.as_ref(), mask.as_ref())
}

/// The password as it goes through TLS or to this machine.
pub(super) fn clear(password: &str) -> Vec<u8> {
    [password.as_bytes(), &[0]].concat()
}

/// The password as it goes to a MySQL server of this machine by TCP without TLS: for its key alone, which it has sent as PEM.
pub(super) fn encrypted(password: &str, challenge: &[u8], key: &[u8]) -> Result<Vec<u8>, SqlFailure> {
    let unusable = || broken("the key that the server sent for the password cannot be used");
    let nonce = challenge.get(..NONCE_BYTES).ok_or_else(|| broken("the server's challenge is too short"))?;
    let hidden: Vec<u8> = clear(password).iter().zip(nonce.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
    let key = SubjectPublicKeyInfoDer::from_pem_slice(key).map_err(|_| unusable())?;
    let key = PublicEncryptingKey::from_der(&key).map_err(|_| unusable())?;
    let key = OaepPublicEncryptingKey::new(key).map_err(|_| unusable())?;
    let mut sealed = vec![0; key.ciphertext_size()];
    // A password of more than some two hundred bytes has no room in it.
    let length = key.encrypt(&OAEP_SHA1_MGF1SHA1, &hidden, &mut sealed, None).map_err(|_| unusable())?.len();
    sealed.truncate(length);
    Ok(sealed)
}

fn xor(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}
