//! A number with its interval, and the little arithmetic that is needed on such numbers.

/// An estimate and how far its interval reaches to either side.
///
/// Intervals of sums, differences and quotients come from those of the parts by the method of variance estimates
/// recovery (Zou and Donner 2008): each side of the interval is a part's own distance to its limit on that side, in
/// quadrature. With symmetric intervals that is the ordinary propagation of errors; with the skewed ones that a
/// logarithm leaves it keeps what either side knows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The estimate itself.
    pub mid: f64,
    /// How far the interval reaches below it.
    pub below: f64,
    /// How far the interval reaches above it.
    pub above: f64,
}

impl Estimate {
    /// With an interval that reaches equally far to either side.
    pub fn around(mid: f64, half: f64) -> Self {
        Self { mid, below: half, above: half }
    }

    /// Low end of the interval.
    pub fn low(self) -> f64 {
        self.mid - self.below
    }

    /// High end of the interval.
    pub fn high(self) -> f64 {
        self.mid + self.above
    }

    /// Half-width of the symmetric interval that holds this one.
    pub fn half(self) -> f64 {
        self.below.max(self.above)
    }

    /// The difference of two independent estimates.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self { mid: self.mid - other.mid, below: self.below.hypot(other.above), above: self.above.hypot(other.below) }
    }

    /// The quotient of two independent estimates to first order; `None` where the divisor may be zero or below.
    #[must_use]
    pub fn over(self, divisor: Self) -> Option<Self> {
        let mid = self.mid / divisor.mid;
        // A larger divisor brings the quotient closer to zero, from whichever side.
        let (divisor_below, divisor_above) =
            if mid >= 0.0 { (divisor.above, divisor.below) } else { (divisor.below, divisor.above) };
        let below = self.below.hypot(mid * divisor_below) / divisor.mid;
        let above = self.above.hypot(mid * divisor_above) / divisor.mid;
        let known = divisor.low() > 0.0 && [mid, below, above].iter().all(|value| value.is_finite());
        known.then_some(Self { mid, below, above })
    }

    /// What is left of one.
    #[must_use]
    pub fn complement(self) -> Self {
        Self { mid: 1.0 - self.mid, below: self.above, above: self.below }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotient_by_what_may_be_zero_is_not_known() {
        let one = Estimate::around(1.0, 0.1);
        assert_eq!(one.over(Estimate::around(0.5, 0.6)), None);
        assert_eq!(one.over(Estimate::around(-2.0, 0.1)), None);
        assert_eq!(one.over(Estimate::around(2.0, 0.0)), Some(Estimate::around(0.5, 0.05)));
    }

    #[test]
    fn differences_are_less_sure_than_their_parts() {
        let difference = Estimate::around(3.0, 0.3).minus(Estimate::around(1.0, 0.4));
        assert_eq!((difference.mid, difference.half()), (2.0, 0.5));
        assert_eq!((difference.low(), difference.high()), (1.5, 2.5));
    }

    #[test]
    fn each_side_of_an_interval_comes_from_the_sides_that_make_it() {
        let skewed = Estimate { mid: 1.0, below: 0.0, above: 0.5 };
        let difference = Estimate::around(3.0, 0.0).minus(skewed);
        assert_eq!((difference.low(), difference.high()), (1.5, 2.0));
        assert_eq!((skewed.complement().low(), skewed.complement().high()), (-0.5, 0.0));
        // 3 / 1 = 3; a divisor of up to 1.5 makes it smaller, to first order by 1.5, and none makes it larger.
        let quotient = Estimate::around(3.0, 0.0).over(skewed).unwrap();
        assert_eq!((quotient.low(), quotient.high()), (1.5, 3.0));
        let negative = Estimate::around(-3.0, 0.0).over(skewed).unwrap();
        assert_eq!((negative.low(), negative.high()), (-3.0, -1.5));
    }
}
