//! Two builds of OpenSSL from the same sources, with and without assembly.

use std::path::{Path, PathBuf};

/// Part of the path of the library that has no assembly.
pub(crate) const WITHOUT_ASSEMBLY: &str = "openssl-no-asm";
const WITH_ASSEMBLY: &str = "openssl-asm";

/// The folders with `libcrypto.so.3` and `libssl.so.3`, with and without assembly.
///
/// # Errors
///
/// Why they are not there, as a sentence.
pub(crate) fn builds() -> Result<(PathBuf, PathBuf), String> {
    let (with, without) = (folder().join(WITH_ASSEMBLY), folder().join(WITHOUT_ASSEMBLY));
    let is_built = |path: &Path| path.join("libcrypto.so.3").exists() && path.join("libssl.so.3").exists();
    if is_built(&with) && is_built(&without) {
        return Ok((with, without));
    }
    Err("no OpenSSL without assembly has been built here: faults/build-openssl does it, in some minutes".to_owned())
}

/// `$DUEL_FAULTS_CACHE`, else a folder of the user's cache.
fn folder() -> PathBuf {
    let cache = std::env::var_os("DUEL_FAULTS_CACHE").map(PathBuf::from);
    cache.unwrap_or_else(|| {
        let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("/root"), PathBuf::from);
        home.join(".cache/duel-faults")
    })
}
