//! Axes: from values to places, and where the ticks are.

/// An axis with its unit in the label.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    /// What is shown, with its unit.
    pub(crate) label: String,
    scale: Scale,
    from: f64,
    to: f64,
    /// Ticks that were asked for, in place of round numbers.
    at: Option<Vec<(f64, String)>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Scale {
    Linear,
    Log,
    /// Values are counts of nines: 1 is 90 %, 2 is 99 %.
    Nines,
    /// Values are places of these categories: 0 is the first.
    Categories(Vec<String>),
}

impl Axis {
    /// From zero to the largest value.
    pub(crate) fn from_zero(label: impl Into<String>, largest: f64) -> Self {
        let to = if largest.is_finite() && largest > 0.0 { largest } else { 1.0 };
        Self { label: label.into(), scale: Scale::Linear, from: 0.0, to, at: None }
    }

    /// Equal factors take equal room. `None` without two ends above zero.
    pub(crate) fn log(label: impl Into<String>, smallest: f64, largest: f64) -> Option<Self> {
        if !(smallest > 0.0 && largest >= smallest && largest.is_finite()) {
            return None;
        }
        // Beyond twelve decades from one on either side nothing was measured; what is there lies at the end.
        let (smallest, largest) = (smallest.clamp(1e-12, 1e12), largest.clamp(1e-12, 1e12));
        // A little room, so that nothing lies on the frame, and a range where all values are one.
        let room = (largest / smallest).powf(0.04).max(1.005);
        Some(Self { label: label.into(), scale: Scale::Log, from: smallest / room, to: largest * room, at: None })
    }

    /// Percentiles by their distance to 100 %: each further nine takes the same room.
    pub(crate) fn nines(label: impl Into<String>, largest: f64) -> Self {
        Self { label: label.into(), scale: Scale::Nines, from: 0.0, to: largest.max(1.0), at: None }
    }

    /// Categories side by side, in their order.
    pub(crate) fn categories(label: impl Into<String>, names: Vec<String>) -> Self {
        let to = names.len() as f64 - 0.5;
        Self { label: label.into(), scale: Scale::Categories(names), from: -0.5, to, at: None }
    }

    /// With ticks at these values instead of round ones.
    pub(crate) fn with_ticks_at(mut self, ticks: Vec<(f64, String)>) -> Self {
        self.at = Some(ticks);
        self
    }

    /// Adds some room above the largest value.
    pub(crate) fn with_headroom(mut self) -> Self {
        self.to += (self.to - self.from) * 0.05;
        self
    }

    /// Where a value lies: 0 at the beginning, 1 at the end. Values beyond lie at the ends.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let at = match &self.scale {
            Scale::Linear | Scale::Nines | Scale::Categories(_) => (value - self.from) / (self.to - self.from),
            Scale::Log if value > 0.0 => (value / self.from).ln() / (self.to / self.from).ln(),
            Scale::Log => 0.0,
        };
        if at.is_finite() { at.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// About `count` ticks with their texts.
    pub(crate) fn ticks(&self, count: usize) -> Vec<(f64, String)> {
        if let Some(ticks) = &self.at {
            return ticks.clone();
        }
        match &self.scale {
            // All of them: the drawing leaves out texts that have no room.
            Scale::Categories(names) => names.iter().enumerate().map(|(i, name)| (i as f64, name.clone())).collect(),
            Scale::Linear => self.linear_ticks(count),
            Scale::Log => self.log_ticks(count),
            Scale::Nines => self.nines_ticks(count),
        }
    }

    fn linear_ticks(&self, count: usize) -> Vec<(f64, String)> {
        let step = nice_step((self.to - self.from) / count.max(1) as f64);
        let first = (self.from / step - 1e-9).ceil() as i64;
        let last = (self.to / step + 1e-9).floor() as i64;
        (first..=last).map(|i| (i as f64 * step, text(i as f64 * step, step))).collect()
    }

    fn log_ticks(&self, count: usize) -> Vec<(f64, String)> {
        let decades = (self.to / self.from).log10();
        // Within less than half a decade round numbers lie closer together than 1, 2 and 5 do.
        if decades < 0.5 {
            return self.linear_ticks(count);
        }
        let mantissas: &[u32] = match count as f64 / decades {
            per_decade if per_decade >= 5.0 => &[1, 2, 3, 5, 7],
            per_decade if per_decade >= 2.5 => &[1, 2, 5],
            per_decade if per_decade >= 1.6 => &[1, 3],
            _ => &[1],
        };
        let every = if decades > count as f64 { (decades / count as f64).ceil() as i32 } else { 1 };
        let exponents = (self.from.log10().floor() as i32)..=(self.to.log10().ceil() as i32);
        exponents
            .filter(|exponent| exponent.rem_euclid(every) == 0)
            .flat_map(|exponent| mantissas.iter().map(move |m| (exponent, m)))
            // Parsing gives the number nearest to the decimal one, which is printed short.
            .filter_map(|(exponent, mantissa)| format!("{mantissa}e{exponent}").parse::<f64>().ok())
            .filter(|value| (self.from..=self.to).contains(value))
            .map(|value| (value, text(value, value)))
            .collect()
    }

    fn nines_ticks(&self, count: usize) -> Vec<(f64, String)> {
        let half = 2.0_f64.log10();
        let whole = (1..=self.to.floor() as u32).map(|nines| (f64::from(nines), percentile(nines)));
        let ticks: Vec<_> = [(0.0, "0".to_owned()), (half, "50".to_owned())].into_iter().chain(whole).collect();
        // Longer texts further up: where there is little room, 50 gives way first.
        if ticks.len() > count { ticks.into_iter().filter(|(at, _)| *at != half).collect() } else { ticks }
    }
}

/// `90`, `99`, `99.9`, `99.99`.
fn percentile(nines: u32) -> String {
    match nines {
        0 => "0".to_owned(),
        1 => "90".to_owned(),
        2 => "99".to_owned(),
        more => format!("99.{}", "9".repeat(more as usize - 2)),
    }
}

/// The next larger of 1, 2, 2.5 and 5 times a power of ten.
fn nice_step(rough: f64) -> f64 {
    let power = 10.0_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0].into_iter().find(|factor| factor * power >= rough * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

/// A tick's text, with as many decimals as its step needs.
fn text(value: f64, step: f64) -> String {
    let (value, step, suffix) = match value.abs().max(step) {
        size if size >= 1e9 => (value / 1e9, step / 1e9, "G"),
        size if size >= 1e6 => (value / 1e6, step / 1e6, "M"),
        size if size >= 1e4 => (value / 1e3, step / 1e3, "k"),
        _ => (value, step, ""),
    };
    let mut decimals = 0;
    let mut scaled = step.abs();
    while decimals < 9 && (scaled - scaled.round()).abs() > 1e-6 * scaled {
        scaled *= 10.0;
        decimals += 1;
    }
    let number = format!("{value:.decimals$}");
    let number = if number.trim_start_matches('-').bytes().all(|b| b == b'0' || b == b'.') { "0" } else { &number };
    if number == "0" { "0".to_owned() } else { format!("{number}{suffix}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis, count: usize) -> Vec<String> {
        axis.ticks(count).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(texts(&Axis::from_zero("s", 7.765), 5), ["0", "2", "4", "6"]);
        assert_eq!(texts(&Axis::from_zero("s", 0.9), 5), ["0", "0.2", "0.4", "0.6", "0.8"]);
        assert_eq!(texts(&Axis::from_zero("requests", 3_000_000.0), 3), ["0", "1M", "2M", "3M"]);
        assert_eq!(texts(&Axis::from_zero("requests", 60_000.0), 3), ["0", "20k", "40k", "60k"]);
        assert_eq!(texts(&Axis::log("ms", 0.4, 120.0).unwrap(), 5), ["1", "3", "10", "30", "100"]);
        assert_eq!(texts(&Axis::log("x", 0.98, 1.03).unwrap(), 4), ["0.98", "1.00", "1.02"]);
        assert_eq!(texts(&Axis::nines("percentile", 3.2), 6), ["0", "50", "90", "99", "99.9"]);
    }

    #[test]
    fn places_are_within_the_axis() {
        let axis = Axis::log("ms", 1.0, 100.0).unwrap();
        assert!((axis.place(10.0) - 0.5).abs() < 1e-9);
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert!((0.0..=1.0).contains(&axis.place(value)), "{value}");
        }
        assert!(Axis::log("x", 1e-300, 1e300).unwrap().ticks(5).len() <= 10);
        assert!(Axis::log("ms", 0.0, 1.0).is_none() && Axis::log("ms", 2.0, 1.0).is_none());
        assert!(Axis::log("ms", 5.0, 5.0).is_some());
    }

    proptest::proptest! {
        #[test]
        fn any_range_has_a_few_ticks(exponent in -9.0..12.0_f64, ratio in 1.0..1e9_f64, count in 2_usize..9) {
            let smallest = 10.0_f64.powf(exponent);
            for axis in [Axis::from_zero("", smallest * ratio), Axis::log("", smallest, smallest * ratio).unwrap()] {
                let ticks = axis.ticks(count);
                proptest::prop_assert!(ticks.len() <= 3 * count, "{} ticks of {count}", ticks.len());
                let texts: std::collections::BTreeSet<_> = ticks.iter().map(|(_, text)| text).collect();
                proptest::prop_assert_eq!(texts.len(), ticks.len(), "{:?}", ticks);
            }
        }
    }
}
