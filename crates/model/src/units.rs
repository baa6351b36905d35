//! Durations, sizes and ratios as people type and read them.

use crate::{MICROSECOND_NS, MILLISECOND_NS, Nanos, SECOND_NS};

/// A quantity that could not be understood; says what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{typed}' is not {expected}")]
pub struct ParseUnitError {
    typed: String,
    expected: &'static str,
}

/// Parses `500ms`, `10s`, `2m`, `1.5s`, `250us`, `1h`; a bare number counts seconds.
pub fn parse_duration_ns(typed: &str) -> Result<Nanos, ParseUnitError> {
    let error =
        || ParseUnitError { typed: crate::sanitize_line(typed), expected: "a duration such as 500ms, 10s or 2m" };
    let (number, unit) = split_unit(typed).ok_or_else(error)?;
    let scale = match unit {
        "ns" => 1,
        "us" | "µs" => MICROSECOND_NS,
        "ms" => MILLISECOND_NS,
        "" | "s" => SECOND_NS,
        "m" | "min" => 60 * SECOND_NS,
        "h" => 3_600 * SECOND_NS,
        _ => return Err(error()),
    };
    let nanos = number * scale as f64;
    // A year is far beyond any plan; beyond it a typing error is likelier than an intention.
    if nanos.is_finite() && nanos <= 366.0 * 86_400.0 * SECOND_NS as f64 {
        Ok(nanos.round() as Nanos)
    } else {
        Err(error())
    }
}

/// Parses `512`, `64k`, `2MiB`, `1.5M`: `k`, `M`, `G` and their `iB` forms are powers of 1024, `kB`, `MB`, `GB` of 1000.
pub fn parse_size_bytes(typed: &str) -> Result<u64, ParseUnitError> {
    let error = || ParseUnitError { typed: crate::sanitize_line(typed), expected: "a size such as 512, 64k or 2MiB" };
    let (number, unit) = split_unit(typed).ok_or_else(error)?;
    let scale: u64 = match unit {
        "" | "B" => 1,
        "k" | "K" | "KiB" | "kiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        _ => return Err(error()),
    };
    let bytes = number * scale as f64;
    if bytes.is_finite() && bytes < (1u64 << 53) as f64 { Ok(bytes.round() as u64) } else { Err(error()) }
}

/// Parses a share of one: `2%` or `0.02`.
pub fn parse_ratio(typed: &str) -> Result<f64, ParseUnitError> {
    let error = || ParseUnitError { typed: crate::sanitize_line(typed), expected: "a share such as 2% or 0.02" };
    let (number, unit) = split_unit(typed).ok_or_else(error)?;
    match unit {
        "%" => Ok(number / 100.0),
        "" => Ok(number),
        _ => Err(error()),
    }
}

/// Parses a number of something per second: `500`, `0.5/s`; no signs, exponents or infinities.
pub(crate) fn parse_per_second(typed: &str) -> Option<f64> {
    let number = typed.strip_suffix("/s").unwrap_or(typed).trim();
    if !number.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return None;
    }
    number.parse::<f64>().ok().filter(|rate| rate.is_finite())
}

/// Three significant digits and the unit that suits: `812 ns`, `41.2 µs`, `7.60 ms`, `1.44 s`.
pub fn format_duration_ns(nanos: f64) -> String {
    // 999.5 would be printed as "1000": the next unit begins where rounding to three digits leaves the former.
    if nanos < 999.5 {
        format!("{nanos:.0} ns")
    } else if nanos < 999.5e3 {
        format!("{} µs", format_figure(nanos / 1e3))
    } else if nanos < 999.5e6 {
        format!("{} ms", format_figure(nanos / 1e6))
    } else if nanos < 120e9 {
        format!("{} s", format_figure(nanos / 1e9))
    } else {
        format!("{:.1} min", nanos / 60e9)
    }
}

/// Three significant digits and a decimal unit: `612 B`, `2.86 MB`.
pub fn format_bytes(bytes: f64) -> String {
    let (mut value, mut unit) = (bytes, "B");
    for next in ["kB", "MB", "GB", "TB", "PB"] {
        if value < 999.5 {
            break;
        }
        value /= 1e3;
        unit = next;
    }
    if unit == "B" { format!("{value:.0} B") } else { format!("{} {unit}", format_figure(value)) }
}

/// A length of time as it is typed, to the nanosecond, in the largest unit that divides it: `30s`, `1500us`, `7ns`.
pub fn typed_duration(nanos: Nanos) -> String {
    let units = [("s", SECOND_NS), ("ms", MILLISECOND_NS), ("us", MICROSECOND_NS), ("ns", 1)];
    let (unit, scale) = units.into_iter().find(|(_, scale)| nanos.is_multiple_of(*scale)).unwrap_or(("ns", 1));
    format!("{}{unit}", nanos / scale)
}

/// What stands where a figure is not known.
pub const UNKNOWN_FIGURE: &str = "-";

/// A count with separated thousands: `12,345`.
pub fn format_count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Three significant digits; from 1,000 on all digits before the point: nobody reads `1.23e3`. `-` where it is no number.
pub fn format_figure(value: f64) -> String {
    if !value.is_finite() {
        return UNKNOWN_FIGURE.to_owned();
    }
    if value < 0.0 {
        return format!("-{}", format_figure(-value));
    }
    if value >= 1e15 {
        return format!("{value:.2e}");
    }
    if value >= 999.5 {
        return format_count(value.round() as u64);
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    if value < 1e-6 {
        return format!("{value:.2e}");
    }
    // 0.9995 would be printed as "1.000": the next step begins where rounding leaves the former.
    let mut decimals = 2;
    let mut edge = 9.995;
    while decimals > 0 && value >= edge {
        decimals -= 1;
        edge *= 10.0;
    }
    let mut edge = 0.9995;
    while decimals >= 2 && value < edge {
        decimals += 1;
        edge /= 10.0;
    }
    format!("{value:.decimals$}")
}

/// A ratio: three digits, and near one three decimals, since there the question is how near.
pub fn format_ratio(ratio: f64) -> String {
    if (0.5..2.0).contains(&ratio) { format!("{ratio:.3}") } else { format_figure(ratio) }
}

/// Splits `1.5ms` into 1.5 and `ms`; refuses signs, exponents, infinities and empty numbers.
fn split_unit(typed: &str) -> Option<(f64, &str)> {
    let typed = typed.trim();
    let end = typed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(typed.len());
    let (number, unit) = typed.split_at(end);
    let number = number.parse::<f64>().ok()?;
    Some((number, unit.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_as_people_type_them() {
        for (typed, nanos) in [
            ("500ms", 500_000_000),
            ("10s", 10_000_000_000),
            ("2m", 120_000_000_000),
            ("1.5s", 1_500_000_000),
            ("250us", 250_000),
            ("3", 3_000_000_000),
            ("0", 0),
        ] {
            assert_eq!(parse_duration_ns(typed), Ok(nanos), "{typed}");
        }
        for typed in ["", "s", "-1s", "1e3s", "10 parsecs", "inf", "nan", "999999999h"] {
            assert!(parse_duration_ns(typed).is_err(), "{typed}");
        }
    }

    #[test]
    fn sizes_and_shares() {
        assert_eq!(parse_size_bytes("64k"), Ok(65_536));
        assert_eq!(parse_size_bytes("2MiB"), Ok(2 << 20));
        assert_eq!(parse_size_bytes("3MB"), Ok(3_000_000));
        assert!(parse_size_bytes("3 bananas").is_err());
        assert_eq!(parse_ratio("2%"), Ok(0.02));
        assert_eq!(parse_ratio("0.05"), Ok(0.05));
    }

    #[test]
    fn times_as_they_are_typed() {
        for (ns, typed) in [
            (30_000_000_000, "30s"),
            (90_000_000_000, "90s"),
            (1_500_000, "1500us"),
            (250_000_000, "250ms"),
            (7, "7ns"),
        ] {
            assert_eq!(typed_duration(ns), typed);
            assert_eq!(parse_duration_ns(typed), Ok(ns));
        }
    }

    #[test]
    fn figures_keep_three_digits_across_unit_changes() {
        for (nanos, text) in [
            (812.0, "812 ns"),
            (999.6, "1.00 µs"),
            (41_234.0, "41.2 µs"),
            (999_600.0, "1.00 ms"),
            (7_600_000.0, "7.60 ms"),
            (1.44e9, "1.44 s"),
        ] {
            assert_eq!(format_duration_ns(nanos), text);
        }
        assert_eq!(format_bytes(2_860_007.0), "2.86 MB");
        assert_eq!(format_bytes(999.9), "1.00 kB");
    }

    #[test]
    fn three_digits_across_all_sizes() {
        for (value, text) in [
            (0.0, "0"),
            (3.0449, "3.04"),
            (9.996, "10.0"),
            (12.345, "12.3"),
            (99.96, "100"),
            (999.7, "1,000"),
            (12_345.6, "12,346"),
            (0.3289, "0.329"),
            (0.99951, "1.00"),
            (0.0999, "0.0999"),
            (0.012_34, "0.0123"),
            (1e-9, "1.00e-9"),
            (1e30, "1.00e30"),
            (-1.5, "-1.50"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(format_figure(value), text, "{value}");
        }
    }

    #[test]
    fn ratios_near_one_show_how_near() {
        for (ratio, text) in [(0.4999, "0.500"), (1.0, "1.000"), (1.2345, "1.234"), (2.0, "2.00"), (11_607.0, "11,607")]
        {
            assert_eq!(format_ratio(ratio), text, "{ratio}");
        }
    }
}
