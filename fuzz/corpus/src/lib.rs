//! The fuzzers' corpus: inputs that once reached something new, a folder for each fuzzer, a file for each input. And, for the same tests, how reading grows with
//! what is read.

pub mod growth;

use std::path::PathBuf;

/// Calls a fuzzer's entry with each kept input of its name.
///
/// # Panics
///
/// When the entry does, after the input's name; when there is no input: a test that reads nothing cannot fail.
pub fn each(name: &str, entry: impl Fn(&[u8])) {
    let folder: PathBuf = [env!("CARGO_MANIFEST_DIR"), "inputs", name].iter().collect();
    let mut inputs: Vec<PathBuf> = std::fs::read_dir(&folder)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    inputs.sort();
    assert!(!inputs.is_empty(), "no inputs in {}", folder.display());
    for path in inputs {
        println!("{}", path.display());
        match std::fs::read(&path) {
            Ok(input) => entry(&input),
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }
}
