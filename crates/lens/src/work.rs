//! The operations as work that can be repeated and timed.

use crate::libcrypto::{Hasher, KeyWorker, Libcrypto, Sealer};
use duel_model::{LensOp, Nanos};
use rustix::time::{ClockId, clock_gettime};

/// Sizes of blocks, bytes: those of `openssl speed`, up to the largest TLS record.
pub(crate) const BLOCK_BYTES: [u32; 5] = [16, 256, 1024, 8192, 16384];

const RSA_2048: &[u8] = include_bytes!("keys/rsa2048.der");
const RSA_4096: &[u8] = include_bytes!("keys/rsa4096.der");
const P256: &[u8] = include_bytes!("keys/p256.der");
const X25519: &[u8] = include_bytes!("keys/x25519.der");

/// An operation ready to be repeated.
pub(crate) struct Work<'l> {
    pub(crate) op: LensOp,
    pub(crate) block_bytes: Option<u32>,
    doer: Doer<'l>,
    /// How often it is repeated in a round; found by [`Work::calibrate`].
    times: u32,
}

enum Doer<'l> {
    Seal(Sealer<'l>),
    Hash(Hasher<'l>),
    Key(KeyWorker<'l>),
}

/// Time that a round took.
#[derive(Clone, Copy)]
pub(crate) struct Round {
    pub(crate) per_s: f64,
    pub(crate) cpu_ns: Nanos,
    pub(crate) wall_ns: Nanos,
}

impl<'l> Work<'l> {
    /// Everything that is to be done for one operation: one piece of work for each of these sizes of
    /// blocks, bytes.
    pub(crate) fn all(library: &'l Libcrypto, op: LensOp, blocks: &[u32]) -> Result<Vec<Self>, String> {
        let key = |doer: Result<KeyWorker<'l>, String>| {
            Ok(vec![Work { op, block_bytes: None, doer: Doer::Key(doer?), times: 1 }])
        };
        match op {
            LensOp::Rsa2048Sign => return key(KeyWorker::signer(library, RSA_2048)),
            LensOp::Rsa4096Sign => return key(KeyWorker::signer(library, RSA_4096)),
            LensOp::EcdsaP256Sign => return key(KeyWorker::signer(library, P256)),
            LensOp::X25519Derive => return key(KeyWorker::deriver(library, X25519)),
            LensOp::EcdhP256Derive => return key(KeyWorker::deriver(library, P256)),
            _ => {}
        }
        let doer = |bytes| {
            Ok::<_, String>(match op {
                LensOp::Aes128Gcm => Doer::Seal(Sealer::new(library, "EVP_aes_128_gcm", true, bytes)?),
                LensOp::Aes256Gcm => Doer::Seal(Sealer::new(library, "EVP_aes_256_gcm", true, bytes)?),
                LensOp::Chacha20Poly1305 => Doer::Seal(Sealer::new(library, "EVP_chacha20_poly1305", true, bytes)?),
                LensOp::Aes256Cbc => Doer::Seal(Sealer::new(library, "EVP_aes_256_cbc", false, bytes)?),
                _ => Doer::Hash(Hasher::new(library, bytes)?),
            })
        };
        blocks.iter().map(|&bytes| Ok(Work { op, block_bytes: Some(bytes), doer: doer(bytes)?, times: 1 })).collect()
    }

    /// Warms up, and finds how many repetitions take about `round_ns`; at least one.
    pub(crate) fn calibrate(&mut self, round_ns: Nanos) -> Result<(), String> {
        // Once for what the first call sets up: tables, fetched algorithms, blinding.
        self.repeat()?;
        loop {
            let before = cpu_ns();
            self.repeat()?;
            let took_ns = cpu_ns().saturating_sub(before).max(1);
            // From half a round on the rule of three is good enough; before that overhead may deceive it.
            if took_ns >= round_ns / 2 || self.times >= 1 << 24 {
                let fitting = f64::from(self.times) * round_ns as f64 / took_ns as f64;
                self.times = (fitting as u32).max(1);
                return Ok(());
            }
            self.times *= 2;
        }
    }

    /// One round on the thread's CPU clock: what others do with the CPU meanwhile does not count.
    pub(crate) fn round(&mut self) -> Result<Round, String> {
        let (cpu_before, wall_before) = (cpu_ns(), wall_ns());
        self.repeat()?;
        let (cpu_ns, wall_ns) = (cpu_ns().saturating_sub(cpu_before).max(1), wall_ns().saturating_sub(wall_before));
        let amount = f64::from(self.times) * f64::from(self.block_bytes.unwrap_or(1));
        Ok(Round { per_s: amount * 1e9 / cpu_ns as f64, cpu_ns, wall_ns })
    }

    fn repeat(&mut self) -> Result<(), String> {
        for _ in 0..self.times {
            match &mut self.doer {
                Doer::Seal(sealer) => sealer.seal()?,
                Doer::Hash(hasher) => hasher.hash()?,
                Doer::Key(worker) => worker.work()?,
            }
        }
        Ok(())
    }
}

fn cpu_ns() -> Nanos {
    read(ClockId::ThreadCPUTime)
}

/// Monotonic.
pub(crate) fn wall_ns() -> Nanos {
    read(ClockId::Monotonic)
}

fn read(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    // Neither clock is ever negative.
    time.tv_sec as Nanos * duel_model::SECOND_NS + time.tv_nsec as Nanos
}
