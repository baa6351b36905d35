//! Fuzzers' entry to files of requests; see `crate::fuzzing`.

use super::{har, http_file, list, vegeta};
use duel_template::Columns;
use std::path::Path;

/// A file in any of the forms gives requests or a flaw, and no more of them than asked for.
pub fn request_files(data: &[u8]) {
    const MOST: usize = 20;
    let Some((form, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let read = match form % 5 {
        0 => list::read(text, MOST),
        1 => vegeta::read(text, MOST),
        2 => http_file::read(text, Path::new(""), MOST),
        3 => har::read(text, MOST),
        _ => {
            let columns = Columns::of(vec!["a".to_owned(), "b c".to_owned()]).expect("two names");
            let _ = duel_template::parse(text, &columns);
            return;
        }
    };
    if let Ok(entries) = read {
        assert!(entries.len() <= MOST);
    }
}
