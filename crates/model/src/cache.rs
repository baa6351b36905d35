//! What a database is expected to do with a cache of another size.

use crate::Ranged;
use serde::{Deserialize, Serialize};

/// The cache model of one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CacheModel {
    /// Name of the target.
    pub target: String,
    /// Size of the cache in the run, where it is known.
    pub cache_bytes: Option<u64>,
    /// What the predictions rest on; `None`: there are none, for the reason that follows.
    pub basis: Option<CacheBasis>,
    /// Why nothing is predicted, in one sentence without a full stop.
    pub unavailable: Option<String>,
    /// One for each size that was asked for, and one for blocks that take one I/O each where they take more.
    pub predictions: Vec<CachePrediction>,
}

/// The parameters of the model, as they were measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CacheBasis {
    /// Blocks that an op reads because they are not in the cache.
    pub reads_per_op: f64,
    /// Device I/Os for each of these blocks: above one where the file system reads its metadata, or a block lies in pieces.
    pub ios_per_read: f64,
    /// How long an op waits for one I/O, in ns.
    pub io_ns: f64,
    /// The rest of an op's time, in ns.
    pub rest_ns: f64,
    /// Share of the cache that holds the blocks that are asked for, as the misses have it.
    pub held_share: f64,
    /// Ops per second that the CPUs allow by what an op takes of them; `None`: that is not known.
    pub cpu_bound_per_s: Option<f64>,
}

/// What is expected.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CachePrediction {
    /// With a cache of this size; `None`: with the one it has, and one I/O for each block.
    pub cache_bytes: Option<u64>,
    /// Blocks that an op would read.
    pub reads_per_op: f64,
    /// Ok ops per second.
    pub rate_per_s: Ranged,
    /// The same over that of the run.
    pub ratio: Ranged,
}
