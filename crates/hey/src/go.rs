//! How Go programs read their command line: flags, numbers and durations (packages `flag`, `strconv`, `time`).

use duel_model::{MICROSECOND_NS, MILLISECOND_NS, Nanos, SECOND_NS};

/// What stands next on a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    /// `-name`, `--name`, `-name=value`, `--name=value`.
    Flag { name: String, value: Option<String> },
    /// What is no flag, and ends the flags: everything from here on. A `--` before it is left out.
    Rest(usize),
}

/// The word at `at`; an error says what is wrong with it.
pub(crate) fn word(arguments: &[String], at: usize) -> Result<Word, String> {
    let Some(typed) = arguments.get(at) else { return Ok(Word::Rest(at)) };
    let Some(one_dash) = typed.strip_prefix('-').filter(|name| !name.is_empty()) else { return Ok(Word::Rest(at)) };
    let name = one_dash.strip_prefix('-').unwrap_or(one_dash);
    if one_dash == "-" {
        return Ok(Word::Rest(at + 1));
    }
    if name.starts_with(['-', '=']) {
        return Err(format!("bad flag syntax: {typed}"));
    }
    Ok(match name.split_once('=') {
        Some((name, value)) => Word::Flag { name: name.to_owned(), value: Some(value.to_owned()) },
        None => Word::Flag { name: name.to_owned(), value: None },
    })
}

/// A boolean as `strconv.ParseBool` reads it.
pub(crate) fn boolean(typed: &str) -> Option<bool> {
    match typed {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// A whole number with an optional sign and base (`0x`, `0o`, `0b`, or a leading 0), as `flag.Int` reads it.
pub(crate) fn whole(typed: &str) -> Option<i64> {
    let (is_negative, digits) = match typed.strip_prefix(['-', '+']) {
        Some(digits) => (typed.starts_with('-'), digits),
        None => (false, typed),
    };
    let lower = digits.to_ascii_lowercase();
    let (base, digits) = [("0x", 16), ("0o", 8), ("0b", 2)]
        .into_iter()
        .find_map(|(prefix, base)| Some((base, lower.strip_prefix(prefix)?)))
        .or_else(|| Some((8, lower.strip_prefix('0').filter(|digits| !digits.is_empty())?)))
        .unwrap_or((10, &lower));
    // `from_str_radix` takes a second sign.
    if digits.starts_with(['-', '+']) {
        return None;
    }
    let sign = if is_negative { "-" } else { "" };
    i64::from_str_radix(&format!("{sign}{digits}"), base).ok()
}

/// A finite number as `flag.Float64` reads it.
pub(crate) fn number(typed: &str) -> Option<f64> {
    typed.parse::<f64>().ok().filter(|number| number.is_finite())
}

/// A duration such as `1m30s`, `1.5h` or `300ms`; only 0 needs no unit. Negative ones are read as 0, since all that they
/// are used for here is not to be there.
pub(crate) fn duration_ns(typed: &str) -> Option<Nanos> {
    let (is_negative, mut rest) = match typed.strip_prefix(['-', '+']) {
        Some(rest) => (typed.starts_with('-'), rest),
        None => (false, typed),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut sum_ns = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (count, from_unit) = rest.split_at(digits);
        let count: f64 = count.parse().ok()?;
        let unit = from_unit.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(from_unit.len());
        let (unit, behind) = from_unit.split_at(unit);
        sum_ns += count * scale_ns(unit)? as f64;
        rest = behind;
    }
    // Go's durations end at 292 years as well.
    (sum_ns <= i64::MAX as f64).then_some(if is_negative { 0 } else { sum_ns.round() as Nanos })
}

fn scale_ns(unit: &str) -> Option<Nanos> {
    Some(match unit {
        "ns" => 1,
        // The micro sign and the Greek letter.
        "us" | "\u{b5}s" | "\u{3bc}s" => MICROSECOND_NS,
        "ms" => MILLISECOND_NS,
        "s" => SECOND_NS,
        "m" => 60 * SECOND_NS,
        "h" => 3_600 * SECOND_NS,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(typed: &str) -> Result<Word, String> {
        let arguments: Vec<String> = typed.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        word(&arguments, 0)
    }

    fn flag(name: &str, value: Option<&str>) -> Result<Word, String> {
        Ok(Word::Flag { name: name.into(), value: value.map(str::to_owned) })
    }

    #[test]
    fn flags_have_one_dash_or_two_and_a_value_behind_the_first_equals_sign() {
        assert_eq!(words("-n"), flag("n", None));
        assert_eq!(words("--n"), flag("n", None));
        assert_eq!(words("-n=5"), flag("n", Some("5")));
        assert_eq!(words("--H=a=b"), flag("H", Some("a=b")));
        assert_eq!(words("-disable-keepalive=false"), flag("disable-keepalive", Some("false")));
        assert_eq!(words("-d="), flag("d", Some("")));
    }

    #[test]
    fn what_is_no_flag_ends_them() {
        assert_eq!(words("http://h/ -n"), Ok(Word::Rest(0)));
        assert_eq!(words("-"), Ok(Word::Rest(0)));
        assert_eq!(words("-- -n"), Ok(Word::Rest(1)));
        assert_eq!(words(""), Ok(Word::Rest(0)));
        for wrong in ["---n", "-=5", "--=5"] {
            assert_eq!(words(wrong), Err(format!("bad flag syntax: {wrong}")));
        }
    }

    #[test]
    fn whole_numbers_have_bases() {
        for (typed, value) in
            [("5", 5), ("+5", 5), ("-3", -3), ("0", 0), ("0x1F", 31), ("0b11", 3), ("0o17", 15), ("017", 15)]
        {
            assert_eq!(whole(typed), Some(value), "{typed}");
        }
        for wrong in ["", "x", "1.5", "--5", "+-5", "0x-5", "09", "5 ", "99999999999999999999", "1e3"] {
            assert_eq!(whole(wrong), None, "{wrong}");
        }
        assert_eq!(whole("-9223372036854775808"), Some(i64::MIN));
    }

    #[test]
    fn durations_are_sums_of_parts_with_units() {
        for (typed, value) in [
            ("10s", 10 * SECOND_NS),
            ("3m", 180 * SECOND_NS),
            ("1h15m30.5s", 4_530 * SECOND_NS + SECOND_NS / 2),
            ("1.5h", 5_400 * SECOND_NS),
            ("300ms", 300 * MILLISECOND_NS),
            ("7us", 7_000),
            ("7µs", 7_000),
            ("12ns", 12),
            ("0", 0),
            ("-5s", 0),
            (".5s", SECOND_NS / 2),
        ] {
            assert_eq!(duration_ns(typed), Some(value), "{typed}");
        }
        for wrong in ["", "10", "s", "-", "1d", "10 s", "1.5.5s", "5s3", "9999999h", "."] {
            assert_eq!(duration_ns(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn booleans_are_those_of_go() {
        assert_eq!(
            (boolean("T"), boolean("false"), boolean("yes"), boolean("")),
            (Some(true), Some(false), None, None)
        );
        assert_eq!((number("0.5"), number("1e3"), number("inf"), number("NaN")), (Some(0.5), Some(1e3), None, None));
    }
}
