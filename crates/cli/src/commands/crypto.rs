//! `duel crypto`: compare the crypto libraries that this machine has.

use super::compare::{self, CompareFlags};
use crate::load::LoadFlags;
use crate::outcome::{self, Outcome};
use crate::output::OutputFlags;
use clap::Args;

/// What this machine has without being told where.
const LIBRARIES: [&str; 2] = ["system=openssl:", "aws-lc=aws-lc:"];
/// What only some machines have, and what does only some of the ops.
const KERNEL: &str = "kernel:";
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
The kernel's own crypto (kernel=kernel:) is compared, too, where this kernel gives it to programs and does all of the ops; \
else a line says why not.

What is told of each op, beside ops per second: bytes per second, where it works on bytes (the figure of openssl speed, there in \
thousands), CPU time for each op and for each byte, and whether the difference is more than noise. An op works on --block bytes \
(16 KiB), in one thread (-t).

As openssl speed:
  openssl speed -evp aes-256-gcm -bytes 16384    duel crypto --op aes-256-gcm
  openssl speed sha256 (16 B to 16 KiB)          duel crypto --op sha256 --block 16,64,256,1k,8k,16k
  openssl speed -multi 4 rsa2048                 duel crypto --op rsa-2048,rsa-2048-verify -t 4
  openssl speed -decrypt -evp aes-256-cbc        duel crypto --op aes-256-cbc --direction decrypt
  OPENSSL_ia32cap=~0x200000000000000 openssl speed ...    duel run openssl: --mask aes

Examples:
  duel crypto                                    what this machine has, over a short list of ops: most of a minute
  duel crypto --op aes-256-gcm --block 16..16k   one op, in many sizes
  duel crypto --op aes-256-cbc,sha256            what the kernel can do as well
  duel crypto openssl: openssl:./libcrypto.so.3  two libraries of your own choice
  duel crypto --op aes-256-gcm --why             one op, and why one library is faster";

impl CryptoFlags {
    /// The comparison that is meant: libraries and ops that were not typed are those of this machine and the short list.
    /// A cause is looked for of one op. And whether the libraries are this machine's, so that the kernel may join them.
    pub(crate) fn comparison(self) -> (CompareFlags, LoadFlags, bool) {
        let Self { mut compare, mut load } = self;
        if !compare.why {
            load.settings.offer(&duel_crypto::OP, OPS);
        }
        let are_ours = compare.targets.is_empty();
        if are_ours {
            compare.targets = LIBRARIES.map(str::to_owned).to_vec();
        }
        (compare, load, are_ours)
    }
}

/// Compares the libraries of this machine, and the kernel where it can do the same.
pub(crate) fn crypto(mut compare: CompareFlags, load: &LoadFlags, output: &OutputFlags) -> anyhow::Result<Outcome> {
    let (plan, _) = compare::plan(&compare, load)?;
    match duel_crypto::lacks(&plan, KERNEL) {
        None => compare.targets.push(format!("kernel={KERNEL}")),
        Some(_) if output.quiet => {}
        Some(why) => outcome::say(&format!("kernel: is left out: {why}")),
    }
    compare::compare(&compare, load, output)
}
