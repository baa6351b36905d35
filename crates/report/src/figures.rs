//! Numbers as they are read: three significant digits, the same unit where figures are compared, `-` for unknown.

use duel_model::Nanos;
pub(crate) use duel_model::{
    UNKNOWN_FIGURE as UNKNOWN, format_count as count, format_figure as three_digits, format_ratio as near_one,
};

/// As [`three_digits`], `-` where the figure is not known.
pub(crate) fn maybe(value: Option<f64>, format: impl Fn(f64) -> String) -> String {
    value.filter(|v| v.is_finite()).map_or_else(|| UNKNOWN.to_owned(), format)
}

/// Ops per second.
pub(crate) fn rate(per_s: f64) -> String {
    format!("{}/s", three_digits(per_s))
}

/// Bytes per second.
pub(crate) fn byte_rate(per_s: f64) -> String {
    format!("{}/s", duel_model::format_bytes(per_s))
}

/// A share as per cent. Nearly nothing is not shown as nothing, nearly all not as all.
pub(crate) fn percent(share: f64) -> String {
    if !share.is_finite() {
        return UNKNOWN.to_owned();
    }
    let percent = share * 100.0;
    let magnitude = percent.abs();
    if (magnitude > 0.0 && magnitude < 0.95) || (magnitude > 99.0 && magnitude < 100.0) {
        if magnitude < 0.05 {
            return "<0.1 %".to_owned();
        }
        if magnitude > 99.9 {
            return ">99.9 %".to_owned();
        }
        return format!("{percent:.1} %");
    }
    format!("{percent:.0} %")
}

/// A parameter given as a share, with as many digits as it was given: `2 %`, `99.9 %`.
pub(crate) fn exact_percent(share: f64) -> String {
    let percent = (share * 100.0 * 1e6).round() / 1e6;
    format!("{percent} %")
}

/// A part of a whole as per cent.
pub(crate) fn part(part: u64, whole: u64) -> String {
    if whole == 0 { UNKNOWN.to_owned() } else { percent(part as f64 / whole as f64) }
}

/// A length of time by itself, in the unit that suits it.
pub(crate) fn duration(ns: f64) -> String {
    if ns.is_finite() { duel_model::format_duration_ns(ns.max(0.0)) } else { UNKNOWN.to_owned() }
}

/// A length of time that was set, not measured: as it would be typed, `30 s` instead of `30.0 s`.
pub(crate) fn set_duration(ns: Nanos) -> String {
    let text = duration(ns as f64);
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// A length of time that a clock shows, in whole seconds.
pub(crate) fn clock(ns: Nanos) -> String {
    let seconds = ns / duel_model::SECOND_NS;
    if seconds < 120 { format!("{seconds} s") } else { format!("{} min {} s", seconds / 60, seconds % 60) }
}

/// The unit of figures that are compared with one another: `812 µs` beside `1.20 ms` is read wrongly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeUnit {
    ns: u32,
    pub(crate) name: &'static str,
}

impl TimeUnit {
    /// The unit in which the smallest of these lengths still has a digit or two, and none has needless zeros.
    pub(crate) fn suiting(values_ns: impl IntoIterator<Item = f64>) -> Self {
        let smallest = values_ns.into_iter().filter(|v| v.is_finite() && *v > 0.0).fold(f64::INFINITY, f64::min);
        match smallest {
            v if v < 100.0 => Self { ns: 1, name: "ns" },
            v if v < 100e3 => Self { ns: 1_000, name: "µs" },
            v if v < 10e9 => Self { ns: 1_000_000, name: "ms" },
            v if v.is_finite() => Self { ns: 1_000_000_000, name: "s" },
            _ => Self { ns: 1_000_000, name: "ms" },
        }
    }

    /// A length in this unit, without its name.
    pub(crate) fn value(self, ns: f64) -> f64 {
        ns / f64::from(self.ns)
    }

    /// A length in this unit, with its name.
    pub(crate) fn show(self, ns: f64) -> String {
        format!("{} {}", three_digits(self.value(ns)), self.name)
    }
}

/// Lengths that stand beside one another: in one unit, as far as all of them can be read in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lengths {
    /// `None`: each in the unit that suits it.
    unit: Option<TimeUnit>,
}

impl Lengths {
    /// For these lengths: the largest sets the unit, so that `1.15 s` is not told as `1,149,948 µs`.
    pub(crate) fn beside(values_ns: impl IntoIterator<Item = f64>) -> Self {
        let known = values_ns.into_iter().filter(|v| v.is_finite() && *v > 0.0);
        let (smallest, largest) = known.fold((f64::INFINITY, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
        let unit = match largest {
            v if v < 999.5 => TimeUnit { ns: 1, name: "ns" },
            v if v < 999.5e3 => TimeUnit { ns: 1_000, name: "µs" },
            v if v < 999.5e6 => TimeUnit { ns: 1_000_000, name: "ms" },
            _ => TimeUnit { ns: 1_000_000_000, name: "s" },
        };
        // `0.0440 s` is read worse than `44.0 ms`, and a length of minutes by itself.
        let is_one = unit.value(smallest) >= 0.1 && largest < 100e9;
        Self { unit: is_one.then_some(unit) }
    }

    /// One of them, with its unit.
    pub(crate) fn show(self, ns: f64) -> String {
        self.unit.map_or_else(|| duration(ns), |unit| unit.show(ns))
    }
}

/// A horizontal bar of a share of `width`, to an eighth of a column.
pub(crate) fn bar(share: f64, width: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let eighths = (share * width as f64 * 8.0).round() as usize;
    // What is there is seen, however small.
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    format!("{}{}", "█".repeat(eighths / 8), PARTS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_never_round_to_nothing_or_to_all() {
        for (share, text) in [
            (0.0, "0 %"),
            (0.0001, "<0.1 %"),
            (0.004, "0.4 %"),
            (0.97, "97 %"),
            (0.995, "99.5 %"),
            (0.999_99, ">99.9 %"),
            (1.0, "100 %"),
            (1.2, "120 %"),
            (-0.3, "-30 %"),
        ] {
            assert_eq!(percent(share), text, "{share}");
        }
        assert_eq!(
            [set_duration(30_000_000_000), set_duration(1_500_000), set_duration(600_000_000_000)],
            ["30 s", "1.5 ms", "10 min"]
        );
        assert_eq!(exact_percent(0.02), "2 %");
        assert_eq!(exact_percent(0.999), "99.9 %");
    }

    #[test]
    fn compared_lengths_share_a_unit() {
        let unit = TimeUnit::suiting([812e3, 1.2e6, 1.44e9]);
        assert_eq!([unit.show(812e3), unit.show(1.2e6), unit.show(1.44e9)], ["0.812 ms", "1.20 ms", "1,440 ms"]);
        assert_eq!(TimeUnit::suiting([]).name, "ms");
    }

    #[test]
    fn the_largest_of_some_lengths_sets_their_unit() {
        let shown = |ns: &[f64]| {
            let lengths = Lengths::beside(ns.iter().copied());
            ns.iter().map(|&ns| lengths.show(ns)).collect::<Vec<_>>()
        };
        assert_eq!(shown(&[812e3, 1.2e6]), ["0.812 ms", "1.20 ms"]);
        assert_eq!(shown(&[1_149_948e3]), ["1.15 s"]);
        assert_eq!(shown(&[44e6, 1.001e9]), ["44.0 ms", "1.00 s"]);
        // Too far apart for one unit.
        assert_eq!(shown(&[52.7e3, 1.149_948e9]), ["52.7 µs", "1.15 s"]);
        assert_eq!(shown(&[0.0, 85.0]), ["0 ns", "85.0 ns"]);
    }

    #[test]
    fn bars_show_what_is_there() {
        assert_eq!([bar(0.5, 4), bar(1e-9, 4), bar(0.0, 4), bar(2.0, 2)], ["██", "▏", "", "██"]);
    }
}
