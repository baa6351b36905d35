//! What the kernel calls the ops.

use crate::ops::{Class, Op};

/// An op as the kernel's interface has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Algorithm {
    /// `skcipher`, `aead` or `hash`: the type of a socket.
    pub(crate) kind: &'static str,
    /// Such as `cbc(aes)`.
    pub(crate) name: &'static str,
    pub(crate) key_bytes: usize,
    pub(crate) iv_bytes: usize,
    /// Bytes of a digest.
    pub(crate) digest_bytes: usize,
}

impl Algorithm {
    /// `None`: kernels give programs no such op.
    pub(crate) fn of(op: &Op) -> Option<Self> {
        let bits = || op.name.split('-').nth(1)?.parse::<usize>().ok();
        let cipher = |kind, name, iv_bytes, keys| {
            Some(Self { kind, name, key_bytes: keys * bits()? / 8, iv_bytes, digest_bytes: 0 })
        };
        let digest = |name, digest_bytes| Some(Self { kind: "hash", name, key_bytes: 0, iv_bytes: 0, digest_bytes });
        match (op.class, op.name) {
            (Class::Cipher { .. }, name) if name.ends_with("-cbc") => cipher("skcipher", "cbc(aes)", 16, 1),
            (Class::Cipher { .. }, name) if name.ends_with("-ctr") => cipher("skcipher", "ctr(aes)", 16, 1),
            (Class::Cipher { .. }, name) if name.ends_with("-xts") => cipher("skcipher", "xts(aes)", 16, 2),
            (Class::Aead, "chacha20-poly1305") => Some(Self {
                kind: "aead",
                name: "rfc7539(chacha20,poly1305)",
                key_bytes: 32,
                iv_bytes: 12,
                digest_bytes: 0,
            }),
            (Class::Aead, _) => cipher("aead", "gcm(aes)", 12, 1),
            (Class::Digest, "md5") => digest("md5", 16),
            (Class::Digest, "sha1") => digest("sha1", 20),
            (Class::Digest, "sha224") => digest("sha224", 28),
            (Class::Digest, "sha256") => digest("sha256", 32),
            (Class::Digest, "sha384") => digest("sha384", 48),
            (Class::Digest, "sha512") => digest("sha512", 64),
            (Class::Digest, "sha3-256") => digest("sha3-256", 32),
            (Class::Digest, "sha3-512") => digest("sha3-512", 64),
            (Class::Digest, "blake2b512") => digest("blake2b-512", 64),
            (Class::Digest, "blake2s256") => digest("blake2s-256", 32),
            _ => None,
        }
    }

    /// The same with another cipher of the kernel in the place of `aes`, as templates are written; `None`: it has no such place.
    pub(crate) fn with_cipher(&self, cipher: &str) -> Option<String> {
        let mode = self.name.strip_suffix("(aes)")?;
        Some(match mode {
            "gcm" => format!("gcm_base(ctr({cipher}),ghash)"),
            mode => format!("{mode}({cipher})"),
        })
    }
}

/// Whether the kernel can do an op in blocks and calls of these sizes; `chunk_bytes` 0: one call.
///
/// # Errors
///
/// What it can do, as a sentence for the user.
pub(crate) fn fits(op: &Op, block_bytes: u32, chunk_bytes: u32, renew: &str) -> Result<(), String> {
    let name = op.name;
    if Algorithm::of(op).is_none() {
        return Err(format!(
            "kernel: has ciphers and digests alone, as kernels give them to programs; {name} is neither"
        ));
    }
    if op.class == Class::Aead && op.renews(renew) == "nothing" {
        return Err(format!(
            "kernel: does {name} message by message, each with a nonce and a tag; give --renew nonce (or key)"
        ));
    }
    let is_chunked = chunk_bytes > 0 && chunk_bytes < block_bytes;
    if matches!(op.class, Class::Cipher { .. }) && is_chunked && !chunk_bytes.is_multiple_of(16) {
        return Err(format!("kernel: works on multiples of 16 bytes between two calls; --chunk {chunk_bytes} is none"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops;

    #[test]
    fn every_cipher_and_digest_has_its_name_and_sizes() {
        for name in ops::NAMES {
            let op = ops::of_name(name).unwrap();
            let algorithm = Algorithm::of(op);
            let is_the_kernels = matches!(op.class, Class::Cipher { .. } | Class::Aead | Class::Digest);
            assert_eq!(algorithm.is_some(), is_the_kernels, "{name}");
        }
        let of = |name| Algorithm::of(ops::of_name(name).unwrap()).unwrap();
        assert_eq!(of("aes-192-ctr").key_bytes, 24);
        assert_eq!(of("aes-256-xts").key_bytes, 64);
        assert_eq!(of("aes-256-cbc").with_cipher("aes-generic").unwrap(), "cbc(aes-generic)");
        assert_eq!(of("sha256").with_cipher("aes-generic"), None);
    }

    #[test]
    fn what_a_kernel_does_not_do_is_said() {
        let said = |name, block, chunk, renew| fits(ops::of_name(name).unwrap(), block, chunk, renew).unwrap_err();
        assert!(said("rsa-2048", 64, 0, "speed").contains("rsa-2048 is neither"));
        assert!(said("random", 64, 0, "speed").contains("random is neither"));
        assert!(said("chacha20-poly1305", 64, 0, "speed").contains("--renew nonce"));
        assert!(said("aes-256-gcm", 64, 0, "nothing").contains("--renew nonce"));
        assert!(said("aes-256-ctr", 64, 5, "speed").contains("--chunk 5"));
        let gcm = ops::of_name("aes-256-gcm").unwrap();
        assert_eq!(fits(gcm, 17, 5, "speed"), Ok(()));
    }
}
