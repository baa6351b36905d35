//! `duel crypto`: compare the crypto libraries that this machine has.

use super::compare::CompareFlags;
use crate::flags::LoadFlags;
use clap::Args;

/// What this machine has without being told where.
const LIBRARIES: [&str; 2] = ["system=openssl:", "aws-lc=aws-lc:"];
/// What TLS spends its time with: records of either cipher, hashes, a signature of either sort, a key agreement.
const OPS: &str = "aes-256-gcm,chacha20-poly1305,sha256,rsa-2048,ecdsa-p256,x25519";

/// Options of the comparison; those of the load stand beside them.
#[derive(Args, Clone)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct CryptoFlags {
    #[command(flatten)]
    compare: CompareFlags,
    #[command(flatten)]
    load: LoadFlags,
}

const AFTER_HELP: &str = "\
It is the comparison of these libraries over these ops, as by:
  duel system=openssl: aws-lc=aws-lc: --op aes-256-gcm,chacha20-poly1305,sha256,rsa-2048,ecdsa-p256,x25519

Examples:
  duel crypto                                    what this machine has, over a short list of ops: most of a minute
  duel crypto --op aes-256-gcm --block 16..16k   one op, in many sizes
  duel crypto openssl: openssl:./libcrypto.so.3  two libraries of your own choice
  duel crypto --op aes-256-gcm --why             one op, and why one library is faster";

impl CryptoFlags {
    /// The comparison that is meant: libraries and ops that were not typed are those of this machine and the short list.
    /// A cause is looked for of one op.
    pub(crate) fn comparison(self) -> (CompareFlags, LoadFlags) {
        let Self { mut compare, mut load } = self;
        if compare.targets.is_empty() {
            compare.targets = LIBRARIES.map(str::to_owned).to_vec();
        }
        if !compare.why {
            load.settings.offer(&duel_crypto::OP, OPS);
        }
        (compare, load)
    }
}
