//! The samples that are kept of a host, bounded in number and in bytes whatever it says.

use duel_model::HostSample;

/// Samples that are kept: some 20 minutes, one each second. Of a longer run every second one goes, and again.
const MOST_KEPT: usize = 1200;

/// What they may take, in bytes of [`size`]. A machine with 128 CPUs and as many threads has 2,000 counters, which are 150 kB
/// a sample and 180 MB in 20 minutes: nothing of that goes. With the facts it stays below the 256 MiB that an archive keeps
/// of a host.
const MOST_BYTES: usize = 192 << 20;

/// Samples in the order of time.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    kept: Vec<HostSample>,
    bytes: usize,
    /// How often every second one went.
    thinned: u32,
    /// Whether that was ever because of their size.
    are_large: bool,
}

impl Samples {
    /// Adds one. Every second one goes when there are too many, or when they take too much.
    pub(crate) fn keep(&mut self, sample: HostSample) {
        self.keep_within(sample, MOST_BYTES);
    }

    fn keep_within(&mut self, sample: HostSample, most_bytes: usize) {
        self.bytes += size(&sample);
        self.kept.push(sample);
        let is_too_much = self.bytes > most_bytes && self.kept.len() > 1;
        self.are_large |= is_too_much;
        if is_too_much || self.kept.len() >= MOST_KEPT {
            let mut index = 0;
            self.kept.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.kept.shrink_to_fit();
            self.bytes = self.kept.iter().map(size).sum();
            self.thinned = self.thinned.saturating_add(1);
        }
    }

    /// How much further apart samples are to be taken than in the beginning.
    pub(crate) fn every(&self) -> u32 {
        1_u32.checked_shl(self.thinned).unwrap_or(u32::MAX)
    }

    /// All of them, and what weakens them.
    pub(crate) fn finish(self) -> (Vec<HostSample>, Option<String>) {
        let doubt = self.are_large.then(|| {
            format!("its samples are large, so only {} of them were kept, further and further apart", self.kept.len())
        });
        (self.kept, doubt)
    }
}

/// What a sample takes, rather too much than too little: in memory a key has its characters, the words that lead to it and
/// its place in the map; in JSON it may have a backslash before each character, and 20 digits follow.
fn size(sample: &HostSample) -> usize {
    const ENTRY: usize = 40;
    let key = |key: &String| 2 * key.len() + ENTRY;
    sample.counters.keys().map(key).sum::<usize>()
        + sample.gauges.keys().map(key).sum::<usize>()
        + sample.counted_by.iter().map(|(prefix, who)| key(prefix) + key(who)).sum::<usize>()
        + 200
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As large as the longest answer of a host can make it.
    fn large(unix_ms: i64) -> HostSample {
        let key = |n: usize| format!("{n:\"<160}");
        HostSample {
            unix_ms,
            counters: (0..100).map(|n| (key(n), u64::MAX)).collect(),
            gauges: (0..100).map(|n| (key(n), 1.0 / 3.0)).collect(),
            counted_by: (0..100).map(|n| (key(n), "\\".repeat(120))).collect(),
            ..HostSample::default()
        }
    }

    #[test]
    fn however_large_samples_are_they_take_no_more_than_their_budget() {
        const BUDGET: usize = 2 << 20;
        let mut samples = Samples::default();
        for n in 0..500 {
            samples.keep_within(large(n), BUDGET);
            assert!(samples.bytes <= BUDGET);
        }
        assert!(samples.every() > 1);
        let (kept, doubt) = samples.finish();
        assert!(serde_json::to_vec(&kept).unwrap().len() <= BUDGET, "the measure is never too small");
        assert!(kept.len() > 1 && kept[0].unix_ms == 0, "from the beginning on");
        assert!(doubt.unwrap().contains(&format!("only {} of them were kept", kept.len())));
    }

    #[test]
    fn many_samples_of_a_common_size_are_thinned_without_a_word() {
        let mut samples = Samples::default();
        for unix_ms in 0..5000 {
            samples.keep(HostSample { unix_ms, ..HostSample::default() });
        }
        let every = i64::from(samples.every());
        let (kept, doubt) = samples.finish();
        assert!(kept.len() < MOST_KEPT && every > 1);
        assert_eq!(doubt, None);
    }
}
