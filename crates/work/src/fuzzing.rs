//! What the fuzzers call (`fuzz/`): each takes any bytes, and panics where a rule is broken that holds for all of them.
//!
//! Compiled for fuzzers and for unit tests only. The tests run each of them over the corpus that is kept.

use crate::http::fuzzing as http;
use crate::requests::fuzzing as requests;

pub use http::{cookies, h2_connection, hpack, http1_response, inflate, redirect, tls_records};
pub use requests::request_files;

#[cfg(test)]
mod tests {
    use duel_corpus::each;

    #[test]
    fn the_kept_corpus_breaks_nothing() {
        each("http1_response", super::http1_response);
        each("h2_connection", super::h2_connection);
        each("hpack", super::hpack);
        each("inflate", super::inflate);
        each("tls_records", super::tls_records);
        each("cookies", super::cookies);
        each("redirect", super::redirect);
        each("request_files", super::request_files);
    }
}
