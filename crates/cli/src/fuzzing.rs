//! What the fuzzers call (`fuzz/`): plans that somebody else wrote, and what collectors of figures answer.
//!
//! Compiled for fuzzers and for unit tests only. The tests run each of them over the corpus that is kept.

pub use crate::plan_file::fuzzing::plan_file;
pub use crate::telemetry::otlp::fuzzing::otlp_answer;

#[cfg(test)]
mod tests {
    use duel_corpus::each;

    #[test]
    fn the_kept_corpus_breaks_nothing() {
        each("plan_file", super::plan_file);
        each("otlp_answer", super::otlp_answer);
    }
}
