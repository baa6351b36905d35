//! Private twins: a server started anew beside the running one, so that something about its process can be changed.

use serde::{Deserialize, Serialize};

/// A target's server replaced by a private twin of it: the same program, arguments and configuration, in namespaces of
/// its own on the server's machine. The running server is left alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TwinPlan {
    /// Index of the target.
    pub of: usize,
    /// What is changed; `None`: nothing, which tells whether a new process shows the gap at all.
    pub change: Option<TwinChange>,
    /// The mask on CPU features that the running server is known to have although its environment cannot be read, in
    /// the form of `OPENSSL_ia32cap`. The twin is started with it.
    #[serde(default)]
    pub mask: Option<String>,
    /// Of a database: the copy of its data that the twin works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<CopyPlan>,
}

/// A private copy of a database's data with a server of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyPlan {
    /// Bytes that the copy may have when it is made.
    pub most_bytes: u64,
    /// The setting that is changed; `None`: none, which tells whether a copy shows the gap at all.
    pub set: Option<CopySetting>,
    /// Its tables are written anew before load: in the order of their keys, and without dead rows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rewrites_tables: bool,
}

/// A setting in which a copy differs from its server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopySetting {
    /// The fact that tells it.
    pub fact: String,
    /// What the server calls it.
    pub name: String,
    /// What it is set to.
    pub value: String,
}

/// The one thing in which a twin differs from its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TwinChange {
    /// No mask on CPU features in its environment (`OPENSSL_ia32cap` and its like).
    NoMask,
    /// The system's own libcrypto instead of one from elsewhere.
    SystemLibcrypto,
    /// All CPUs of the machine instead of those that the server may run on.
    AllCpus,
    /// More workers, by the program's own setting.
    MoreWorkers,
    /// Responses sent in large pieces, by the program's own settings.
    LargePieces,
    /// None of the program's own limits on how much it sends and how often it answers.
    NoLimits,
}

impl TwinChange {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::NoMask, Self::SystemLibcrypto, Self::AllCpus, Self::MoreWorkers, Self::LargePieces, Self::NoLimits];

    /// As ids of probes have it.
    pub fn id(self) -> &'static str {
        match self {
            Self::NoMask => "no-mask",
            Self::SystemLibcrypto => "system-libcrypto",
            Self::AllCpus => "all-cpus",
            Self::MoreWorkers => "more-workers",
            Self::LargePieces => "large-pieces",
            Self::NoLimits => "no-limits",
        }
    }
}

/// What a twin was, once it served.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TwinReading {
    /// Whether the server's environment could be read. If not, the twin got a clean one, and what else is known.
    pub environment_known: bool,
    /// What differs from the running server, in words; `None` where nothing was to be changed.
    pub changed: Option<String>,
    /// The libcrypto that it maps.
    pub libcrypto: Option<String>,
    /// The change may not have taken hold everywhere, so that a gap that stays speaks less against the cause.
    #[serde(default)]
    pub may_not_hold: bool,
    /// It is reached over a loopback interface or a Unix socket, and its server is not, or it lies on another disk: what that costs
    /// differs.
    #[serde(default)]
    pub is_reached_otherwise: bool,
    /// A copy was still reading tables into its memory when that was given up: how much of them it had is not known.
    #[serde(default)]
    pub warming_was_cut: bool,
    /// Names of settings of the server that it was started without, although the server has them otherwise than it was built.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Why it came to an end while it was still wanted, in words; `None`: it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}
