//! A number with its interval, and the little arithmetic that is needed on such numbers.

/// An estimate and the half-width of its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) mid: f64,
    pub(crate) half: f64,
}

impl Estimate {
    pub(crate) fn low(self) -> f64 {
        self.mid - self.half
    }

    pub(crate) fn high(self) -> f64 {
        self.mid + self.half
    }

    /// The difference of two independent estimates: half-widths add in quadrature, as standard errors do.
    pub(crate) fn minus(self, other: Self) -> Self {
        Self { mid: self.mid - other.mid, half: self.half.hypot(other.half) }
    }

    /// The quotient of two independent estimates to first order; `None` where the divisor may be zero or below.
    pub(crate) fn over(self, divisor: Self) -> Option<Self> {
        let mid = self.mid / divisor.mid;
        let half = self.half.hypot(mid * divisor.half) / divisor.mid;
        (divisor.low() > 0.0 && mid.is_finite() && half.is_finite()).then_some(Self { mid, half })
    }

    /// What is left of one.
    pub(crate) fn complement(self) -> Self {
        Self { mid: 1.0 - self.mid, half: self.half }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotient_by_what_may_be_zero_is_not_known() {
        let one = Estimate { mid: 1.0, half: 0.1 };
        assert_eq!(one.over(Estimate { mid: 0.5, half: 0.6 }), None);
        assert_eq!(one.over(Estimate { mid: -2.0, half: 0.1 }), None);
        let half = one.over(Estimate { mid: 2.0, half: 0.0 }).unwrap();
        assert_eq!((half.mid, half.half), (0.5, 0.05));
    }

    #[test]
    fn differences_are_less_sure_than_their_parts() {
        let difference = Estimate { mid: 3.0, half: 0.3 }.minus(Estimate { mid: 1.0, half: 0.4 });
        assert_eq!((difference.mid, difference.half), (2.0, 0.5));
        assert_eq!((difference.low(), difference.high()), (1.5, 2.5));
    }
}
