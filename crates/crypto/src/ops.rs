//! The ops of crypto work: their names, and what they are.

/// What an op is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// A cipher whose blocks are multiples of so many bytes.
    Cipher {
        /// Bytes.
        multiple_bytes: u32,
    },
    /// A cipher that makes a tag of 16 bytes.
    Aead,
    /// A digest: each op is a message.
    Digest,
    /// A signature.
    Sign,
    /// A signature verified.
    Verify,
    /// A shared secret.
    Agree,
    /// Random bytes.
    Random,
}

/// An op.
#[derive(Debug, PartialEq, Eq)]
pub struct Op {
    /// Its name, as it is typed.
    pub name: &'static str,
    /// What it is.
    pub class: Class,
    /// The function of OpenSSL that tells its algorithm, or the name of its key.
    pub(crate) function: &'static str,
}

impl Op {
    /// Whether an op works on a block of bytes: bytes per second are a figure of it.
    pub fn has_bytes(&self) -> bool {
        matches!(self.class, Class::Cipher { .. } | Class::Aead | Class::Digest | Class::Random)
    }

    /// Whether it is a cipher, with a key and a direction.
    pub fn is_cipher(&self) -> bool {
        matches!(self.class, Class::Cipher { .. } | Class::Aead)
    }

    /// What each op sets up, where `--renew` says this. `openssl speed -evp` (3.0) gives a GCM cipher a key and a nonce in each op
    /// and ends the message; of all others, ChaCha20-Poly1305 too, it measures one stream.
    pub fn renews<'a>(&self, renew: &'a str) -> &'a str {
        match (renew, self.class) {
            ("speed", Class::Aead) if self.name.ends_with("-gcm") => "key",
            ("speed", _) => "nothing",
            (renew, _) => renew,
        }
    }
}

macro_rules! ops {
    ($($name:literal, $class:expr, $function:literal;)+) => {
        /// The names of all.
        pub const NAMES: &[&str] = &[$($name),+];
        const OPS: &[Op] = &[$(Op { name: $name, class: $class, function: $function }),+];
    };
}

const STREAM: Class = Class::Cipher { multiple_bytes: 1 };
const BLOCKS: Class = Class::Cipher { multiple_bytes: 16 };

ops! {
    "aes-128-cbc", BLOCKS, "EVP_aes_128_cbc";
    "aes-192-cbc", BLOCKS, "EVP_aes_192_cbc";
    "aes-256-cbc", BLOCKS, "EVP_aes_256_cbc";
    "aes-128-ctr", STREAM, "EVP_aes_128_ctr";
    "aes-192-ctr", STREAM, "EVP_aes_192_ctr";
    "aes-256-ctr", STREAM, "EVP_aes_256_ctr";
    "aes-128-gcm", Class::Aead, "EVP_aes_128_gcm";
    "aes-192-gcm", Class::Aead, "EVP_aes_192_gcm";
    "aes-256-gcm", Class::Aead, "EVP_aes_256_gcm";
    "aes-128-xts", BLOCKS, "EVP_aes_128_xts";
    "aes-256-xts", BLOCKS, "EVP_aes_256_xts";
    "chacha20-poly1305", Class::Aead, "EVP_chacha20_poly1305";
    "md5", Class::Digest, "EVP_md5";
    "sha1", Class::Digest, "EVP_sha1";
    "sha224", Class::Digest, "EVP_sha224";
    "sha256", Class::Digest, "EVP_sha256";
    "sha384", Class::Digest, "EVP_sha384";
    "sha512", Class::Digest, "EVP_sha512";
    "sha3-256", Class::Digest, "EVP_sha3_256";
    "sha3-512", Class::Digest, "EVP_sha3_512";
    "blake2b512", Class::Digest, "EVP_blake2b512";
    "blake2s256", Class::Digest, "EVP_blake2s256";
    "rsa-2048", Class::Sign, "rsa-2048";
    "rsa-2048-verify", Class::Verify, "rsa-2048";
    "rsa-3072", Class::Sign, "rsa-3072";
    "rsa-3072-verify", Class::Verify, "rsa-3072";
    "rsa-4096", Class::Sign, "rsa-4096";
    "rsa-4096-verify", Class::Verify, "rsa-4096";
    "ecdsa-p256", Class::Sign, "ecdsa-p256";
    "ecdsa-p256-verify", Class::Verify, "ecdsa-p256";
    "ecdsa-p384", Class::Sign, "ecdsa-p384";
    "ecdsa-p384-verify", Class::Verify, "ecdsa-p384";
    "ed25519", Class::Sign, "ed25519";
    "ed25519-verify", Class::Verify, "ed25519";
    "x25519", Class::Agree, "x25519";
    "random", Class::Random, "";
}

/// An op by its name.
pub fn of_name(name: &str) -> Option<&'static Op> {
    OPS.iter().find(|op| op.name == name)
}

/// Whether an op can be done in blocks and calls of these sizes; `chunk_bytes` 0: one call.
///
/// # Errors
///
/// What fits, as a sentence for the user.
pub fn fits(name: &str, block_bytes: u32, chunk_bytes: u32, renew: &str) -> Result<(), String> {
    let op = of_name(name).ok_or_else(|| format!("there is no op '{name}'"))?;
    if !op.is_cipher() && !matches!(renew, "speed" | "nothing") {
        return Err(format!("--renew {renew} is for ciphers; {name} is none"));
    }
    if let Class::Cipher { multiple_bytes } = op.class
        && !block_bytes.is_multiple_of(multiple_bytes)
    {
        return Err(format!("{name} works on multiples of {multiple_bytes} bytes; --block {block_bytes} is none"));
    }
    let is_chunked = chunk_bytes > 0 && chunk_bytes < block_bytes;
    if !is_chunked {
        return Ok(());
    }
    match op.class {
        Class::Cipher { .. } if name.ends_with("-xts") => {
            Err(format!("{name} takes a block in one call; leave --chunk out"))
        }
        Class::Cipher { multiple_bytes } if !chunk_bytes.is_multiple_of(multiple_bytes) => {
            Err(format!("{name} works on multiples of {multiple_bytes} bytes; --chunk {chunk_bytes} is none"))
        }
        _ if !op.has_bytes() || op.class == Class::Random => {
            Err(format!("{name} takes no data in parts; leave --chunk out"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_said() {
        assert_eq!(fits("aes-256-gcm", 17, 5, "nonce"), Ok(()));
        assert_eq!(fits("aes-256-cbc", 64, 16, "nothing"), Ok(()));
        for (name, block, chunk, renew, says) in [
            ("aes-256-cbc", 17, 0, "nothing", "multiples of 16"),
            ("aes-256-cbc", 64, 8, "nothing", "--chunk 8"),
            ("aes-128-xts", 64, 16, "nothing", "one call"),
            ("sha256", 64, 0, "key", "for ciphers"),
            ("sha256", 64, 0, "nonce", "for ciphers"),
            ("random", 64, 8, "nothing", "in parts"),
            ("rot13", 64, 0, "nothing", "no op"),
        ] {
            let said = fits(name, block, chunk, renew).unwrap_err();
            assert!(said.contains(says), "{said}");
        }
    }
}
