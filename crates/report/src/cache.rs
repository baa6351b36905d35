//! What targets are expected to do with caches of other sizes.

use crate::experiment::bracketed;
use crate::figures::{duration, rate, three_digits};
use crate::table::{Align, Row, Table};
use crate::text::clean;
use duel_model::{CacheBasis, CacheModel, CachePrediction, Verdict, format_bytes};

/// For each target a title, a table where there is one, and what has to be said with it.
pub(crate) fn parts(verdict: &Verdict) -> Vec<(String, Option<Table>, Vec<String>)> {
    verdict.caches.iter().map(part).collect()
}

fn part(model: &CacheModel) -> (String, Option<Table>, Vec<String>) {
    let target = clean(&model.target);
    let title = format!("Cache model of {target}: the rate with a cache of another size, calculated from this run");
    let Some(basis) = &model.basis else {
        let why = model.unavailable.as_deref().map(clean).unwrap_or_default();
        return (title, None, vec![format!("Not available: {why}.")]);
    };
    let now = model.cache_bytes.map(size).unwrap_or_default();
    let label = |of: &CachePrediction| of.cache_bytes.map_or_else(|| "one I/O for each block".to_owned(), size);
    let row = |of: &CachePrediction| {
        let cells = vec![
            three_digits(of.reads_per_op),
            bracketed(&of.rate_per_s, rate),
            bracketed(&of.ratio, |x| format!("{}x", three_digits(x))),
        ];
        Row::new(label(of), cells)
    };
    let table = Table {
        corner: "cache".to_owned(),
        heads: ["blocks read each", "rate", "against now"].map(str::to_owned).to_vec(),
        rows: model.predictions.iter().map(row).collect(),
        align: Align::Right,
    };
    let mut notes = vec![measured(&target, &now, basis), ASSUMED.to_owned()];
    if model.predictions.iter().any(|of| of.rate_per_s.low.is_none() && of.rate_per_s.high.is_none()) {
        notes.push("Without an interval: there were fewer than three slots, as in a run that was ended early or counts requests (-n).".to_owned());
    }
    (title, Some(table), notes)
}

fn measured(target: &str, now: &str, basis: &CacheBasis) -> String {
    let bound = match basis.cpu_bound_per_s {
        Some(per_s) => format!("the CPUs allow {}", rate(per_s)),
        None => "what the CPUs allow is not known".to_owned(),
    };
    format!(
        "Measured with {now}: {target} reads {} blocks for each transaction, its device is read {} times for each block, a transaction waits {} \
         for each of these and takes {} besides; {bound}. By the misses, {} of the cache holds these tables; the rest is taken not to grow with it.",
        three_digits(basis.reads_per_op),
        three_digits(basis.ios_per_read),
        duration(basis.io_ns),
        duration(basis.rest_ns),
        crate::figures::percent(basis.held_share)
    )
}

/// What the model takes for granted, and what would make it wrong.
const ASSUMED: &str = "It takes for granted that keys stay as they are drawn now, that the cache is full and drops what was not used for \
                       longest, that all that reads the device is this load, and that each block costs as many I/Os as now. Intervals hold the \
                       scatter of the slots, and devices that do one I/O after the other as well as those that do all at once. It is wrong where \
                       the memory for a larger cache is taken from the system's own, where a larger part of the device is slower, and where \
                       something else than I/Os and CPUs limits.";

/// As sizes of caches are typed.
fn size(bytes: u64) -> String {
    match bytes {
        bytes if bytes > 0 && bytes % (1 << 30) == 0 => format!("{} GiB", bytes >> 30),
        bytes if bytes > 0 && bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        bytes => format_bytes(bytes as f64),
    }
}
