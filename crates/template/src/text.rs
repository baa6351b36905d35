//! Files of requests, statements and values as texts. They come from anywhere, so their size is bounded.

use duel_load::WorkloadError;
use duel_model::sanitize_line;
use std::path::Path;

/// Largest file of requests, statements or values; browsers' recordings of long sessions have tens of megabytes.
pub const FILE_LIMIT_BYTES: u64 = 256 << 20;
/// The text of a bounded file, and the file's name, safe to show. A byte order mark is left out.
///
/// # Errors
///
/// It cannot be read, is too long, or is no text.
pub fn read_text(path: &Path) -> Result<(String, String), WorkloadError> {
    let name = sanitize_line(&path.to_string_lossy());
    let error = |error: std::io::Error| WorkloadError(format!("cannot read {name}: {error}"));
    let mut text = Vec::new();
    let file = std::fs::File::open(path).map_err(error)?;
    std::io::Read::read_to_end(&mut std::io::Read::take(file, FILE_LIMIT_BYTES + 1), &mut text).map_err(error)?;
    if text.len() as u64 > FILE_LIMIT_BYTES {
        return Err(WorkloadError(format!("{name} has more than {} MiB, which is the most", FILE_LIMIT_BYTES >> 20)));
    }
    let mut text = String::from_utf8(text).map_err(|error| {
        let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|&&b| b == b'\n').count();
        WorkloadError(format!("{name}, line {line}: it is no text (UTF-8)"))
    })?;
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok((name, text))
}
