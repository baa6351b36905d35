//! What the fuzzers call (`fuzz/`): configurations of servers.
//!
//! Compiled for fuzzers and for unit tests only. The tests run each of them over the corpus that is kept.

pub use crate::settings::fuzzing::nginx_configuration;

#[cfg(test)]
mod tests {
    #[test]
    fn the_kept_corpus_breaks_nothing() {
        duel_corpus::each("nginx_configuration", super::nginx_configuration);
    }
}
