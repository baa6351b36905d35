//! A library's variables, read out of the process that has loaded it (Linux).

use crate::libcrypto::Libcrypto;
use crate::segments::{HEADERS_BYTES, layout};
use duel_process::{ProcessFiles, mappings, start_of};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Most bytes of variables that are read: forty times those of OpenSSL 3.0.
const MOST_BYTES: u64 = 1 << 20;

/// Some of a library's variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// Where they are, relative to where the library is loaded, bytes.
    pub(crate) from: u64,
    pub(crate) bytes: Vec<u8>,
}

/// Every function of libcrypto will do to find it in memory; this one has been in all of them.
const SOME_FUNCTION: &str = "EVP_EncryptUpdate";

/// The variables of a library in this process, as its constructors left them.
pub(crate) fn variables(library: &Libcrypto, file: &Path) -> Result<Vec<Part>, String> {
    let inside = library.address(SOME_FUNCTION)?;
    let told = |what: &str, error: std::io::Error| format!("cannot read {what}: {error}");
    let mut head = Vec::new();
    File::open(file)
        .and_then(|file| file.take(HEADERS_BYTES as u64).read_to_end(&mut head))
        .map_err(|error| told("the library's file", error))?;
    let layout = layout(&head).ok_or("its program headers make no sense")?;
    let bytes: u64 = layout.variables.iter().map(|range| range.end - range.start).sum();
    if bytes > MOST_BYTES {
        return Err(format!("it has {bytes} bytes of variables, too many to look through"));
    }
    let maps = ProcessFiles::of(std::process::id()).bytes("maps").map_err(|error| told("the mappings", error))?;
    let mappings = mappings(&maps);
    let own = mappings.iter().find(|mapping| (mapping.start..mapping.end).contains(&inside));
    let own = own.ok_or("it is not among the mapped files")?;
    let base = start_of(&mappings, &own.file)?.wrapping_sub(layout.first);
    let memory = File::open("/proc/self/mem").map_err(|error| told("its memory", error))?;
    layout
        .variables
        .into_iter()
        .map(|range| {
            let mut bytes = vec![0; (range.end - range.start) as usize];
            let at = base.wrapping_add(range.start);
            memory.read_exact_at(&mut bytes, at).map_err(|error| told("its memory", error))?;
            Ok(Part { from: range.start, bytes })
        })
        .collect()
}

/// As the child prints it and the parent reads it.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// `None` of anything that [`to_hex`] does not print.
pub(crate) fn from_hex(hex: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| Some(char::from(byte).to_digit(16)? as u8);
    let pairs = hex.as_bytes().chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn hex_is_read_back(bytes: Vec<u8>, text in "[0-9a-fx]{0,5}") {
            prop_assert_eq!(from_hex(&to_hex(&bytes)), Some(bytes));
            let _ = from_hex(&text);
        }
    }
}
