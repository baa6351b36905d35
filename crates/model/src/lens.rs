//! The lens: what a libcrypto does on this CPU, measured in a process of its own.

use crate::Nanos;
use serde::{Deserialize, Serialize};

/// What was measured on one libcrypto, and what follows from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LensReading {
    /// The library's file.
    pub library: String,
    /// How it was measured.
    pub means: LensMeans,
    /// What the library says about itself.
    pub identity: LensIdentity,
    /// Whether it uses the CPU's AES instructions as the server runs it.
    pub hardware: HardwareUse,
    /// Whether it was built with assembly.
    pub assembly: Assembly,
    /// The CPU's features that it works with in the running server; `None` where a file was measured, and no server.
    #[serde(default)]
    pub capabilities: Option<Capabilities>,
    /// What the masks change, in the figures' order.
    pub effects: Vec<MaskEffect>,
    /// Every figure under every treatment.
    pub figures: Vec<LensFigure>,
    /// What could not be measured, and why; one sentence each.
    pub unavailable: Vec<String>,
    /// Facts beside the measurement that agree or disagree with it; proof of nothing.
    pub corroboration: Vec<String>,
    /// Commands for a shell that repeat it by hand.
    pub by_hand: Vec<String>,
}

/// How a libcrypto was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LensMeans {
    /// Loaded into a child process of ours.
    Child,
    /// By the `openssl speed` of its host.
    OpensslSpeed,
}

/// What a libcrypto says about itself; foreign text, made safe to show.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LensIdentity {
    /// Such as `OpenSSL 3.0.22 25 Aug 2026`.
    pub version: Option<String>,
    /// The compiler and its flags.
    pub compiler: Option<String>,
    /// The CPU's features as the library sees them, without any mask.
    pub cpu: Option<String>,
}

/// Whether a libcrypto uses the CPU's AES instructions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "is", content = "why")]
pub enum HardwareUse {
    /// It does, as the server runs it.
    Used,
    /// It never does, though the CPU has them.
    NotUsed,
    /// It could, but the server's environment forbids it.
    Masked,
    /// The CPU, or the virtual machine's view of it, has none.
    NotOffered,
    /// The figures do not tell; why, in one sentence.
    Unknown(String),
}

/// Whether a libcrypto was built with assembly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "is", content = "why")]
pub enum Assembly {
    /// A mask slows something down, and only assembly looks at masks.
    Present,
    /// No mask changes anything.
    Absent,
    /// The figures do not tell; why, in one sentence.
    Unknown(String),
}

/// The CPU's features that the libcrypto in a running server works with. A library decides on them once, when it is loaded,
/// so this holds whatever became of the server's environment since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "is", content = "of")]
pub enum Capabilities {
    /// All with which it works in a new process without a mask.
    Whole(CapabilityVector),
    /// Fewer: there was a mask when the server started.
    Masked(CapabilityVector),
    /// They were not read; why, in one sentence.
    NotRead(String),
}

impl Capabilities {
    /// Whether the library in the server has the CPU's instructions for AES and its authentication; `None` where that is
    /// not known.
    pub fn has_aes(&self) -> Option<bool> {
        match self {
            Self::Whole(_) => Some(true),
            Self::Masked(vector) => Some(!vector.missing.iter().any(|name| AES_FEATURES.contains(&name.as_str()))),
            Self::NotRead(_) => None,
        }
    }

    /// What was read.
    pub fn vector(&self) -> Option<&CapabilityVector> {
        match self {
            Self::Whole(vector) | Self::Masked(vector) => Some(vector),
            Self::NotRead(_) => None,
        }
    }
}

/// Without one of the first two AES-GCM is slow on x86, without one of the others on Arm.
const AES_FEATURES: [&str; 4] = ["AES-NI", "PCLMULQDQ", "AES", "PMULL"];

/// OpenSSL's set of CPU features: `OPENSSL_ia32cap_P` on x86, `OPENSSL_armcap_P` on Arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilityVector {
    /// Where it is, in bytes from where the library is loaded.
    pub offset: u64,
    /// What it holds in a new process without a mask: what the CPU offers and the library knows.
    pub whole: Vec<u32>,
    /// What it holds in the server's processes.
    pub processes: Vec<ProcessVector>,
    /// Names of the features that a process of the server lacks.
    pub missing: Vec<String>,
    /// Processes of the server that were not read, and why; one sentence each.
    pub not_read: Vec<String>,
}

/// The set of CPU features in one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessVector {
    /// The process.
    pub pid: u32,
    /// Where the set is in its memory.
    pub address: u64,
    /// What it holds.
    pub words: Vec<u32>,
}

/// What is measured of a libcrypto.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LensOp {
    /// AES-128-GCM, a record sealed.
    Aes128Gcm,
    /// AES-256-GCM, a record sealed.
    Aes256Gcm,
    /// ChaCha20-Poly1305, a record sealed.
    Chacha20Poly1305,
    /// AES-256-CBC, a record encrypted, without a MAC.
    Aes256Cbc,
    /// SHA-256 of a block.
    Sha256,
    /// RSA signature, 2048 bits.
    Rsa2048Sign,
    /// RSA signature, 4096 bits.
    Rsa4096Sign,
    /// ECDSA signature on P-256.
    EcdsaP256Sign,
    /// Key agreement on X25519.
    X25519Derive,
    /// Key agreement on P-256.
    EcdhP256Derive,
}

impl LensOp {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 10] = [
        Self::Aes128Gcm,
        Self::Aes256Gcm,
        Self::Chacha20Poly1305,
        Self::Aes256Cbc,
        Self::Sha256,
        Self::Rsa2048Sign,
        Self::Rsa4096Sign,
        Self::EcdsaP256Sign,
        Self::X25519Derive,
        Self::EcdhP256Derive,
    ];

    /// As reports show it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aes128Gcm => "AES-128-GCM",
            Self::Aes256Gcm => "AES-256-GCM",
            Self::Chacha20Poly1305 => "ChaCha20-Poly1305",
            Self::Aes256Cbc => "AES-256-CBC",
            Self::Sha256 => "SHA-256",
            Self::Rsa2048Sign => "RSA-2048 sign",
            Self::Rsa4096Sign => "RSA-4096 sign",
            Self::EcdsaP256Sign => "ECDSA P-256 sign",
            Self::X25519Derive => "X25519",
            Self::EcdhP256Derive => "ECDH P-256",
        }
    }

    /// Whether it works on blocks, so that its figures are bytes per second; the others are operations per second.
    pub fn is_bulk(self) -> bool {
        matches!(self, Self::Aes128Gcm | Self::Aes256Gcm | Self::Chacha20Poly1305 | Self::Aes256Cbc | Self::Sha256)
    }
}

/// The environment under which a libcrypto is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LensTreatment {
    /// The server's own.
    AsIs,
    /// Without any mask: the whole hardware.
    Whole,
    /// Without the instructions for AES and its authentication.
    AesMasked,
    /// Without every CPU feature that a mask can take.
    AllMasked,
}

impl LensTreatment {
    /// All of them, in the order in which they are measured and shown.
    pub const ALL: [Self; 4] = [Self::AsIs, Self::Whole, Self::AesMasked, Self::AllMasked];

    /// As reports show it.
    pub fn name(self) -> &'static str {
        match self {
            Self::AsIs => "started anew",
            Self::Whole => "no mask",
            Self::AesMasked => "AES masked",
            Self::AllMasked => "all masked",
        }
    }
}

/// One figure of one libcrypto under one treatment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LensFigure {
    /// What was measured.
    pub op: LensOp,
    /// Block size, bytes; `None` where the operation has none.
    pub block_bytes: Option<u32>,
    /// Under which environment.
    pub treatment: LensTreatment,
    /// Median over all rounds: bytes per second of CPU time for [bulk](LensOp::is_bulk) operations, else operations
    /// per second.
    pub median_per_s: f64,
    /// Distance between the first and third quartile of the rounds, as a share of the median.
    pub spread: f64,
    /// Rounds behind it.
    pub rounds: u32,
    /// CPU time of all rounds, ns.
    pub cpu_ns: Nanos,
    /// Monotonic time of all rounds, ns; much more than `cpu_ns` where the CPU was wanted by others.
    pub wall_ns: Nanos,
}

/// What the masks change for one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MaskEffect {
    /// The operation.
    pub op: LensOp,
    /// Block size, bytes; the largest measured.
    pub block_bytes: Option<u32>,
    /// How many times faster without any mask than as it is.
    pub environment: Option<Gain>,
    /// How many times faster as it is than with AES masked: what the environment leaves of the instructions.
    pub left: Option<Gain>,
    /// How many times faster without any mask than with AES masked.
    pub aes_mask: Option<Gain>,
    /// How many times faster without any mask than with everything masked.
    pub full_mask: Option<Gain>,
    /// How many times the same treatment differed from itself between two processes, at most; 1 is no difference.
    pub noise: Option<f64>,
}

/// A ratio of two rates with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// Ratio of the medians.
    pub ratio: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
}
