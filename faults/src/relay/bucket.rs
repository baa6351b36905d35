//! A token bucket.

/// Bytes that may pass, filled at a steady rate up to a limit. Times are nanoseconds since any one instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    bytes_per_s: u64,
    burst_bytes: u64,
    /// When the bucket would be full, if nothing were taken from now on. One number holds the whole state, exactly:
    /// the fill at `now` is the burst minus what flows in until then.
    full_at_ns: u64,
}

impl Bucket {
    /// A full bucket. A rate of 0 counts as 1 byte per second, so that every wait has an end.
    pub(crate) fn new(bytes_per_s: u64, burst_bytes: u64) -> Bucket {
        Bucket { bytes_per_s: bytes_per_s.max(1), burst_bytes, full_at_ns: 0 }
    }

    /// Takes bytes at once and returns when they may pass: now, or when the debt is paid. So what is asked for later
    /// passes later, and the long-term rate holds however large the pieces are.
    pub(crate) fn take(&mut self, bytes: u64, now_ns: u64) -> u64 {
        self.full_at_ns = self.full_at_ns.max(now_ns).saturating_add(self.time_for(bytes));
        self.full_at_ns.saturating_sub(self.time_for(self.burst_bytes)).max(now_ns)
    }

    fn time_for(&self, bytes: u64) -> u64 {
        let ns = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_s);
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_full_bucket_lets_a_burst_pass_at_once_and_the_rest_at_its_rate() {
        let mut bucket = Bucket::new(1000, 500);
        assert_eq!(bucket.take(500, 0), 0);
        assert_eq!(bucket.take(100, 0), SECOND / 10);
        assert_eq!(bucket.take(900, 0), SECOND);
    }

    #[test]
    fn it_fills_up_to_its_burst_and_no_further() {
        let mut bucket = Bucket::new(1000, 500);
        assert_eq!(bucket.take(500, 0), 0);
        // A quarter of a second later 250 bytes have flowed in.
        assert_eq!(bucket.take(250, SECOND / 4), SECOND / 4);
        assert_eq!(bucket.take(1, SECOND / 4), SECOND / 4 + SECOND / 1000);
        // Years later it holds 500 bytes still.
        let later = 1_000_000 * SECOND;
        assert_eq!(bucket.take(500, later), later);
        assert_eq!(bucket.take(1000, later), later + SECOND);
    }

    #[test]
    fn the_rate_holds_over_time_whatever_the_pieces() {
        for piece in [1, 7, 1500, 100_000] {
            let mut bucket = Bucket::new(1_000_000, 3000);
            let (mut now, mut passed) = (0, 0_u64);
            while passed < 3_000_000 {
                now = bucket.take(piece, now);
                passed += piece;
            }
            let fair = (passed - 3000) * 1000;
            let slack = 1000 * piece;
            assert!(now + slack >= fair && now <= fair + slack, "{piece}: {now} against {fair}");
        }
    }

    #[test]
    fn huge_figures_do_not_overflow() {
        let mut bucket = Bucket::new(0, u64::MAX);
        assert_eq!(bucket.take(u64::MAX, 5), 5);
        let mut bucket = Bucket::new(1, 0);
        assert_eq!(bucket.take(u64::MAX, u64::MAX - 1), u64::MAX);
    }
}
