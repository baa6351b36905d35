//! What the fuzzers call (`fuzz/`): what the kernel tells of a process, parts of which its owner chose.
//!
//! Compiled for fuzzers and for unit tests only. The tests run each of them over the corpus that is kept.

use crate::{Status, libcryptos, mappings, start_of, variables};

/// Mappings with their paths, an environment, a status.
pub fn process_files(data: &[u8]) {
    let mapped = mappings(data);
    for library in libcryptos(data) {
        assert!(library.is_libcrypto());
        let _ = start_of(&mapped, &library.file);
    }
    for (name, value) in variables(data) {
        assert!(!name.contains(&0) && !value.contains(&0) && !name.contains(&b'='));
    }
    let _ = Status::parse(data).is_root();
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_kept_corpus_breaks_nothing() {
        duel_corpus::each("process_files", super::process_files);
    }
}
