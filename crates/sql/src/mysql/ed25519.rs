//! MariaDB's `ed25519`: the challenge is signed by a key that is made of the password.
//!
//! It is Ed25519 (RFC 8032, 5.1.6) with one difference: the secret is a password of any length, where the standard has 32 bytes. So a
//! library's signature by a seed is of no use; what follows the first hash is as in the standard.

use aws_lc_rs::digest::{SHA512, digest};
use curve25519_dalek::scalar::clamp_integer;
use curve25519_dalek::{EdwardsPoint, Scalar};

/// Bytes of a challenge.
pub(super) const NONCE_BYTES: usize = 32;

/// The signature of `message`.
pub(super) fn sign(password: &[u8], message: &[u8]) -> [u8; 64] {
    let (secret, prefix) = halves(&[password]);
    let secret = Scalar::from_bytes_mod_order(clamp_integer(secret));
    let public = EdwardsPoint::mul_base(&secret).compress();
    let once = wide(&[&prefix, message]);
    let commitment = EdwardsPoint::mul_base(&once).compress();
    let challenge = wide(&[commitment.as_bytes(), public.as_bytes(), message]);
    let proof = once + challenge * secret;
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(commitment.as_bytes());
    signature[32..].copy_from_slice(proof.as_bytes());
    signature
}

/// A number of 512 bits, reduced.
fn wide(parts: &[&[u8]]) -> Scalar {
    let (low, high) = halves(parts);
    let mut bytes = [0; 64];
    bytes[..32].copy_from_slice(&low);
    bytes[32..].copy_from_slice(&high);
    Scalar::from_bytes_mod_order_wide(&bytes)
}

fn halves(parts: &[&[u8]]) -> ([u8; 32], [u8; 32]) {
    let hash = digest(&SHA512, &parts.concat());
    let (mut low, mut high) = ([0; 32], [0; 32]);
    low.copy_from_slice(&hash.as_ref()[..32]);
    high.copy_from_slice(&hash.as_ref()[32..]);
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::signature::Ed25519KeyPair;

    #[test]
    fn a_password_of_32_bytes_signs_as_the_standard_does() {
        for seed in [*b"0123456789abcdef0123456789abcdef", [0xFF; 32], [0; 32]] {
            let pair = Ed25519KeyPair::from_seed_unchecked(&seed).unwrap();
            assert_eq!(sign(&seed, b"a message")[..], *pair.sign(b"a message").as_ref());
        }
    }
}
