//! Bodies of requests that lie in files.

use duel_load::WorkloadError;
use duel_model::sanitize_line;
use std::io::Read;
use std::path::Path;

/// Largest request body, all of which is kept in memory.
pub(crate) const BODY_LIMIT_BYTES: u64 = 1 << 30;

/// Length of a body's file in bytes, if it is one that can be sent.
pub(crate) fn checked_length(path: &Path) -> Result<usize, WorkloadError> {
    let shown = sanitize_line(&path.to_string_lossy());
    let length = std::fs::metadata(path)
        .map_err(|error| WorkloadError(format!("cannot read the request body from {shown}: {error}")))?
        .len();
    if length > BODY_LIMIT_BYTES {
        return Err(WorkloadError(format!(
            "the request body in {shown} has {length} bytes; at most 1 GiB can be sent"
        )));
    }
    Ok(length as usize)
}

/// Appends the content of a body's file to some bytes.
pub(crate) fn read_body(path: &Path, mut bytes: Vec<u8>) -> Result<Vec<u8>, WorkloadError> {
    let shown = sanitize_line(&path.to_string_lossy());
    let error = |error: std::io::Error| WorkloadError(format!("cannot read the request body from {shown}: {error}"));
    let length = checked_length(path)?;
    // Growing step by step would need twice the memory for a moment.
    bytes.reserve_exact(length);
    let before = bytes.len();
    let file = std::fs::File::open(path).map_err(error)?;
    file.take(BODY_LIMIT_BYTES + 1).read_to_end(&mut bytes).map_err(error)?;
    if bytes.len() - before > BODY_LIMIT_BYTES as usize {
        return Err(WorkloadError(format!("the request body in {shown} is longer than 1 GiB, which is the most")));
    }
    if bytes.len() == before {
        return Err(WorkloadError(format!("the request body file {shown} is empty; leave it out to send no body")));
    }
    Ok(bytes)
}
