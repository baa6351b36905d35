//! What the shell over there printed.

use super::{BLOCK_BYTES, MARK, OPS, tag};
use crate::mask::Architecture;
use crate::rates::Sample;
use duel_model::{LensIdentity, LensOp, LensTreatment, SECOND_NS, sanitize, sanitize_line};

/// Lines that are read: a hundred times those of a whole measurement.
const MOST_LINES: usize = 20_000;

/// Everything that was understood.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) not_available: Option<String>,
    pub(super) identity: LensIdentity,
    pub(super) architecture: Option<Architecture>,
    pub(super) has_aes: Option<bool>,
    pub(super) has_vectors: Option<bool>,
    pub(super) samples: Vec<Sample>,
    /// The script came to its end.
    pub(super) done: bool,
}

/// Reads the output; what is not ours, such as a greeting, is passed over.
pub(super) fn heard(output: &str) -> Heard {
    let mut heard = Heard::default();
    let mut current: Option<(LensTreatment, LensOp)> = None;
    let mut sizes = String::new();
    for line in output.lines().take(MOST_LINES) {
        let line = line.trim_end();
        if let Some(said) = line.strip_prefix(MARK).and_then(|said| said.strip_prefix(' ')) {
            current = figure(said);
            sizes.clear();
            heard.take(said);
        } else if let Some(head) = line.strip_prefix("+H:") {
            head.clone_into(&mut sizes);
        } else if let (Some((treatment, op)), Some(rates)) = (current, line.strip_prefix("+F:"))
            && let Some(per_s) = rate(&sizes, rates)
        {
            heard.samples.push(Sample {
                op,
                block_bytes: Some(BLOCK_BYTES),
                treatment,
                rounds_per_s: vec![per_s],
                // `openssl speed` counts CPU time, and does not tell how long it waited.
                cpu_ns: SECOND_NS,
                wall_ns: SECOND_NS,
            });
            current = None;
        }
    }
    heard
}

impl Heard {
    /// A line of our script's own.
    fn take(&mut self, said: &str) {
        let (word, rest) = said.split_once(' ').unwrap_or((said, ""));
        // What openssl cannot tell it leaves empty, or says so in words.
        let text = || Some(sanitize(rest).replace(['\n', '\t'], " ")).filter(|t| !t.is_empty() && !t.contains("N/A"));
        match (word, rest) {
            ("not-available", _) => self.not_available = Some(sanitize_line(rest)),
            ("version", _) => self.identity.version = text(),
            ("compiler", _) => self.identity.compiler = text(),
            ("cpu", _) => self.identity.cpu = text(),
            ("has", "aes") => self.has_aes = Some(true),
            ("lacks", "aes") => self.has_aes = Some(false),
            ("has", "vectors") => self.has_vectors = Some(true),
            ("lacks", "vectors") => self.has_vectors = Some(false),
            ("masks", _) => {
                self.architecture = [Architecture::X86, Architecture::Arm].into_iter().find(|a| a.variable() == rest);
            }
            ("done", _) => self.done = true,
            _ => {}
        }
    }
}

/// `figure TREATMENT CIPHER`: what the next rate is of.
fn figure(said: &str) -> Option<(LensTreatment, LensOp)> {
    let (treatment, cipher) = said.strip_prefix("figure ")?.split_once(' ')?;
    let treatment = LensTreatment::ALL.into_iter().find(|&known| tag(known) == treatment)?;
    let (op, _) = OPS.into_iter().find(|(_, known)| *known == cipher)?;
    Some((treatment, op))
}

/// The bytes per second of our block size. `openssl speed -mr` prints `+H:SIZE:SIZE...` and then
/// `+F:NUMBER:NAME:RATE:RATE...`, a rate for each size. A name has no colon.
fn rate(sizes: &str, rates: &str) -> Option<f64> {
    let column = sizes.split(':').position(|size| size.parse() == Ok(BLOCK_BYTES))?;
    let per_s: f64 = rates.split(':').nth(2 + column)?.parse().ok()?;
    (per_s.is_finite() && per_s > 0.0).then_some(per_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As OpenSSL 3.0.22 printed it.
    #[test]
    fn machine_readable_speed() {
        let sizes = "16:64:256:1024:8192:16384";
        let rates =
            "25:ChaCha20-Poly1305:107014605.13:334209920.00:1140931047.62:2076121600.00:2177940723.81:2240492019.51";
        assert_eq!(rate(sizes, rates), Some(2240492019.51));
        assert_eq!(rate("16384", "25:AES-256-GCM:2247506707.69"), Some(2247506707.69));
        for (sizes, rates) in
            [("", "25:x:1"), ("16384", "25:x"), ("16384", "25:x:nan"), ("16", "25:x:1"), ("16384", "25:x:0")]
        {
            assert_eq!(rate(sizes, rates), None, "{sizes} {rates}");
        }
    }

    proptest! {
        #[test]
        fn no_output_makes_it_stumble(
            output in "(duel-lens (figure whole aes-256-gcm|version |done|has aes)|\\+[HF]:|16384|[0-9.e-]{0,4}|:|\n|\\PC){0,60}"
        ) {
            for sample in heard(&output).samples {
                prop_assert!(sample.rounds_per_s.iter().all(|rate| rate.is_finite() && *rate > 0.0));
            }
        }
    }
}
