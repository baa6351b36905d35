//! How sure a share is.

/// The interval of Wilson (1927) for a share at 95 %: the shares for which so many hits of so many trials are not
/// surprising. Unlike the textbook's "plus or minus" it stays within 0 and 1, and is not empty where all or nothing hit.
pub(crate) fn interval(hits: usize, trials: usize) -> Option<(f64, f64)> {
    /// The 97.5 % point of the normal distribution.
    const Z: f64 = 1.959_963_984_540_054;
    if trials == 0 {
        return None;
    }
    let (n, share) = (trials as f64, hits as f64 / trials as f64);
    let middle = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    Some(((middle - half).max(0.0), (middle + half).min(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures of R's `binom::binom.wilson`.
    #[test]
    fn as_published() {
        for (hits, trials, low, high) in
            [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (81, 263, 0.2553, 0.3662)]
        {
            let (l, h) = interval(hits, trials).unwrap();
            assert!((l - low).abs() < 1e-4 && (h - high).abs() < 1e-4, "{hits}/{trials}: {l} {h}");
        }
        assert_eq!(interval(0, 0), None);
    }
}
