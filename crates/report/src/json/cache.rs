//! Cache models.

use super::digits;
use super::experiment::RangedDocument;
use duel_model::{CacheModel, CachePrediction};
use serde::Serialize;

/// What a target is expected to do with caches of other sizes. `unavailable` says why nothing is.
#[derive(Debug, Serialize)]
pub(super) struct CacheDocument<'a> {
    target: &'a str,
    cache_bytes: Option<u64>,
    unavailable: Option<&'a str>,
    /// Measured: the parameters of the model.
    reads_per_op: Option<f64>,
    ios_per_read: Option<f64>,
    io_ns: Option<f64>,
    rest_ns: Option<f64>,
    held_share: Option<f64>,
    cpu_bound_per_s: Option<f64>,
    predictions: Vec<PredictionDocument>,
}

#[derive(Debug, Serialize)]
struct PredictionDocument {
    /// `null`: the size of now, and one I/O for each block.
    cache_bytes: Option<u64>,
    reads_per_op: Option<f64>,
    rate_per_s: RangedDocument,
    /// Over the rate of the run.
    ratio: RangedDocument,
}

impl<'a> CacheDocument<'a> {
    pub(super) fn of(model: &'a CacheModel) -> Self {
        let of = |value: Option<f64>| value.and_then(|value| digits(value, 6));
        let basis = model.basis.as_ref();
        Self {
            target: &model.target,
            cache_bytes: model.cache_bytes,
            unavailable: model.unavailable.as_deref(),
            reads_per_op: of(basis.map(|basis| basis.reads_per_op)),
            ios_per_read: of(basis.map(|basis| basis.ios_per_read)),
            io_ns: of(basis.map(|basis| basis.io_ns)),
            rest_ns: of(basis.map(|basis| basis.rest_ns)),
            held_share: of(basis.map(|basis| basis.held_share)),
            cpu_bound_per_s: of(basis.and_then(|basis| basis.cpu_bound_per_s)),
            predictions: model.predictions.iter().map(PredictionDocument::of).collect(),
        }
    }
}

impl PredictionDocument {
    fn of(prediction: &CachePrediction) -> Self {
        Self {
            cache_bytes: prediction.cache_bytes,
            reads_per_op: digits(prediction.reads_per_op, 6),
            rate_per_s: RangedDocument::of(&prediction.rate_per_s),
            ratio: RangedDocument::of(&prediction.ratio),
        }
    }
}
