//! Values as they are typed: times, lists, and ranges of numbers.

use crate::outcome::Usage;
use crate::usage;
use duel_model::{Factor, Nanos, Param, Plan, Schema, SettingLevels, kinds, parse_duration_ns, sanitize_line};

/// More of them only get in each other's way.
pub(crate) const MOST_THREADS: u32 = 1024;

/// A duration.
pub(crate) fn time(option: &str, typed: &str) -> Result<Nanos, Usage> {
    parse_duration_ns(typed).map_err(|_| Usage(usage::takes(option, usage::TIME, typed)))
}

/// A duration that has to be above zero.
pub(crate) fn positive(option: &str, typed: &str) -> Result<Nanos, Usage> {
    match time(option, typed)? {
        0 => Err(Usage(format!("{option} has to be longer than 0"))),
        nanos => Ok(nanos),
    }
}

/// Connections as typed: one number, or the levels of a factor.
pub(crate) fn connections(typed: &str) -> Result<Vec<u32>, Usage> {
    let levels =
        numbers("--connections", usage::CONNECTIONS, typed, |text| text.parse::<u32>().ok(), |n| n.checked_mul(2))?;
    if levels.contains(&0) {
        let which = if levels.len() > 1 { format!(" in '{}'", sanitize_line(typed)) } else { String::new() };
        return Err(Usage(format!("-c 0{which}: without connections nothing can be sent; use at least 1")));
    }
    Ok(levels)
}

/// Threads as typed: one number, or of a list, where it may be one, the first.
pub(crate) fn threads(typed: &str, may_be_list: bool) -> Result<u32, Usage> {
    let levels = numbers("--threads", usage::THREADS, typed, |text| text.parse::<u32>().ok(), |n| n.checked_mul(2))?;
    if levels.len() > 1 && !may_be_list {
        return Err(Usage(usage::takes("--threads", usage::THREADS, typed)));
    }
    if let Some(many) = levels.iter().find(|level| **level > MOST_THREADS) {
        return Err(Usage(format!("-t {many}: more than {MOST_THREADS} threads only get in each other's way")));
    }
    Ok(levels[0])
}

/// Rates as typed.
pub(crate) fn rates(typed: &str) -> Result<Vec<f64>, Usage> {
    let parse = |text: &str| text.parse::<f64>().ok();
    let levels = numbers("--rate", usage::RATE, typed, parse, |rate| Some(rate * 2.0))?;
    match levels.iter().find(|rate| !(rate.is_finite() && **rate > 0.0 && **rate <= 1e7)) {
        None => Ok(levels),
        Some(rate) => {
            let wanted = format!("{}, above 0 and at most 10 million", usage::RATE);
            Err(Usage(usage::takes("--rate", &wanted, &rate.to_string())))
        }
    }
}

/// A factor by its name, as it was typed with this option.
pub(super) fn factor(option: &str, name: &str, levels: &str, schema: &'static Schema) -> Result<Factor, Usage> {
    let texts = || each(option, "levels", levels, |text| Some(text.to_owned()));
    Ok(match name {
        "connections" => Factor::Connections(connections(levels)?),
        "rate" => Factor::Rate(rates(levels)?),
        "path" => Factor::Path(each(option, "paths, which begin with /", levels, |text| {
            text.starts_with('/').then(|| text.to_owned())
        })?),
        other if let Some((schema, param)) = setting(other.trim(), schema) => {
            if !param.can_vary() {
                return Err(Usage(format!("{option}: '{}' cannot be varied", param.name)));
            }
            let levels = if param.takes_lists(levels) {
                param.levels(levels).map_err(Usage)?
            } else {
                // Commas part levels here; words of one level are joined by +.
                texts()?.iter().map(|level| param.read(level)).collect::<Result<_, _>>().map_err(Usage)?
            };
            Factor::Setting(SettingLevels { schema, param, levels })
        }
        other => {
            return Err(Usage(format!(
                "--vary: '{}' is nothing that can be varied; {} can",
                sanitize_line(other),
                Factor::names(schema).collect::<Vec<_>>().join(", ")
            )));
        }
    })
}

/// A setting by its name: of this kind of work, or else of another, for which it means something.
fn setting(name: &str, schema: &'static Schema) -> Option<(&'static Schema, &'static Param)> {
    schema.param(name).map(|param| (schema, param)).or_else(|| kinds::params(name).next())
}

/// Levels that are not numbers; an error names the one that is none.
fn each<T>(option: &str, wanted: &str, typed: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, Usage> {
    let level = |text: &str| {
        let text = text.trim();
        parse(text).filter(|_| !text.is_empty()).ok_or_else(|| not_a_level(option, wanted, text, typed))
    };
    typed.split(',').map(level).collect()
}

/// Numbers, and ranges `A..B` of them: A, its doubles below B, and B.
fn numbers<T: Copy + PartialOrd>(
    option: &str,
    wanted: &str,
    typed: &str,
    parse: impl Fn(&str) -> Option<T>,
    doubled: impl Fn(T) -> Option<T>,
) -> Result<Vec<T>, Usage> {
    let mut levels = Vec::new();
    for text in typed.split(',').map(str::trim) {
        let wrong = || not_a_level(option, wanted, text, typed);
        let Some((first, last)) = text.split_once("..") else {
            levels.push(parse(text).ok_or_else(wrong)?);
            continue;
        };
        let (first, last) = (parse(first.trim()).ok_or_else(wrong)?, parse(last.trim()).ok_or_else(wrong)?);
        let grows = doubled(first).is_some_and(|double| double > first);
        if !grows || first >= last {
            return Err(Usage(format!(
                "{option}: '{}' is no range; 8..64 stands for 8,16,32,64 and begins above 0",
                sanitize_line(text)
            )));
        }
        let doubles = std::iter::successors(Some(first), |&level| doubled(level)).take_while(|level| *level < last);
        // Each double is at least twice as large: even of the smallest fractions there are no more than these.
        levels.extend(doubles.take(Plan::MOST_TREATMENTS + 1).chain([last]));
    }
    Ok(levels)
}

fn not_a_level(option: &str, wanted: &str, level: &str, typed: &str) -> Usage {
    let within = if level == typed { String::new() } else { format!(" in '{}'", sanitize_line(typed)) };
    Usage(format!("{}{within} (see duel --help)", usage::takes(option, wanted, level)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_begin_and_end_where_they_say_and_double_between(first in 1..1000_u32, more in 1..100_000_u32) {
            let last = first + more;
            let levels = connections(&format!("{first}..{last}")).unwrap();
            prop_assert_eq!((levels[0], *levels.last().unwrap()), (first, last));
            prop_assert!(levels.windows(2).all(|pair| pair[0] < pair[1] && pair[1] <= 2 * pair[0]));
        }

        #[test]
        fn nothing_typed_makes_it_panic(typed in "[0-9.,+ek]{0,20}|.{0,20}") {
            let _ = (connections(&typed), rates(&typed));
            for name in Factor::names(&duel_model::web::SCHEMA) {
                let _ = factor("--vary", name, &typed, &duel_model::web::SCHEMA);
            }
        }
    }
}
