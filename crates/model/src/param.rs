//! A setting of a kind of work, declared once: the command line, plan files, the line of settings, factors and what repeats a
//! run are loops over these.

use crate::{Id, parse_size_bytes, sanitize_line};
use std::collections::BTreeMap;

/// Longest text that is taken: as long as a path may be for Linux.
const MOST_TEXT_BYTES: usize = 4096;

const ASSIGNMENTS: &str = "NAME=VALUE, joined by commas, without quotes and backslashes";

/// A setting of a kind of work.
#[derive(Debug, PartialEq)]
pub struct Param {
    /// Its name: the option without dashes, the key of a plan file, the name of the factor.
    pub name: &'static str,
    /// What the help calls its value.
    pub value_name: &'static str,
    /// What it does, in one sentence.
    pub help: &'static str,
    /// What values it takes.
    pub sort: Sort,
    /// The value where none is given.
    pub default: &'static str,
}

/// The values that a setting takes. A value is kept as text, in one spelling.
#[derive(Debug, PartialEq)]
pub enum Sort {
    /// A number of bytes, with a unit or without.
    Bytes {
        /// Smallest, but for 0.
        least: u64,
        /// Largest.
        most: u64,
        /// What 0 means, where it may be 0.
        zero: &'static str,
    },
    /// A whole number.
    Count {
        /// Smallest.
        least: u64,
        /// Largest.
        most: u64,
        /// What 0 means, where it may be 0.
        zero: &'static str,
    },
    /// A number that need not be whole.
    Decimal {
        /// Smallest.
        least: f64,
        /// Largest.
        most: f64,
    },
    /// On or off. Typed without a value it is on.
    Switch,
    /// The path of a file that is read; empty: none. Whoever did not write the plan is asked before it is read.
    File,
    /// As [`Sort::File`], and what is done with its content, to go on with its path: it leaves this machine.
    Sent(&'static str),
    /// Paths of targets whose content may be overwritten, joined by commas; empty: none. Whoever did not write the plan is asked
    /// first. A kind with such a setting has paths of this machine for targets.
    Destroys,
    /// Any text in one line; empty: none.
    Text,
    /// A token of HTTP (RFC 9110, 5.6.2), such as this one.
    Token(&'static str),
    /// One of these words; what is typed may leave dashes out.
    Choice(&'static [&'static str]),
    /// Words joined by `+`, or `none`; their kind of work knows which there are.
    Words,
    /// Names in order of preference, joined by `+`.
    Ranked {
        /// Which there are; none: their kind of work knows.
        known: &'static [&'static str],
        /// What stands for no name; empty: it takes one.
        none: &'static str,
        /// Whether commas and colons part names, too, where it is typed by itself; otherwise commas part levels of a factor.
        by_commas: bool,
    },
    /// `NAME=VALUE`, joined by commas, or nothing; their kind of work knows which there are. No quotes can be in them.
    Assignments,
}

impl Param {
    /// A switch that is off where nothing is typed.
    pub const fn switch(name: &'static str, help: &'static str) -> Self {
        Self { name, value_name: "ON|OFF", help, sort: Sort::Switch, default: "off" }
    }

    /// What it is kept under.
    pub const fn id(&self) -> Id {
        Id::new(self.name)
    }

    /// A value as it is kept, from what was typed.
    ///
    /// # Errors
    ///
    /// What values it takes, and what it got: a sentence for the user.
    pub fn read(&self, typed: &str) -> Result<String, String> {
        let typed = typed.trim();
        let wrong = |takes: &str| format!("--{} takes {takes}; got '{}'", self.name, sanitize_line(typed));
        let of = |choices: &[&str]| {
            let plain = |text: &str| text.replace(['-', '_'], "").to_ascii_lowercase();
            let choice = choices.iter().find(|choice| plain(choice) == plain(typed));
            let takes = || choices.join(if choices.len() == 2 { " or " } else { ", " });
            choice.map(|choice| (*choice).to_owned()).ok_or_else(|| wrong(&takes()))
        };
        let fits = |number: u64, least: u64, most: u64, zero: &str| {
            (least..=most).contains(&number) || (number == 0 && !zero.is_empty())
        };
        match &self.sort {
            Sort::Bytes { least, most, zero } => {
                let bytes = parse_size_bytes(typed).ok().filter(|&bytes| fits(bytes, *least, *most, zero));
                let takes = || format!("a size from {least} to {most} bytes, such as 64 or 16k");
                bytes.map(|bytes| bytes.to_string()).ok_or_else(|| wrong(&takes()))
            }
            Sort::Count { least, most, zero } => {
                let count = typed.parse::<u64>().ok().filter(|&count| fits(count, *least, *most, zero));
                count
                    .map(|count| count.to_string())
                    .ok_or_else(|| wrong(&format!("a whole number from {least} to {most}")))
            }
            Sort::Decimal { least, most } => {
                let number = typed.parse::<f64>().ok().filter(|number| (*least..=*most).contains(number));
                number
                    .map(|number| number.to_string())
                    .ok_or_else(|| wrong(&format!("a number from {least} to {most}")))
            }
            Sort::Switch => of(match typed {
                // As switches without a declaration are typed.
                "true" => return Ok("on".to_owned()),
                "false" => return Ok("off".to_owned()),
                _ => &["on", "off"],
            }),
            Sort::File | Sort::Sent(_) | Sort::Destroys | Sort::Text => {
                let is_line = typed.len() <= MOST_TEXT_BYTES && !typed.chars().any(char::is_control);
                let takes = if self.sort == Sort::Text { "a text in one line" } else { "the path of a file" };
                if is_line { Ok(typed.to_owned()) } else { Err(wrong(takes)) }
            }
            Sort::Token(example) => {
                let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
                let is_token = !typed.is_empty() && typed.bytes().all(is_part);
                if is_token { Ok(typed.to_owned()) } else { Err(wrong(&format!("a word such as {example}"))) }
            }
            Sort::Choice(choices) => of(choices),
            Sort::Assignments => {
                let mut read = BTreeMap::new();
                for text in typed.split(',').filter(|text| !text.trim().is_empty()) {
                    let (name, value) = assignment(text).ok_or_else(|| wrong(ASSIGNMENTS))?;
                    if read.insert(name.to_ascii_lowercase(), value.to_owned()).is_some() {
                        return Err(wrong("each name once"));
                    }
                }
                Ok(read.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(","))
            }
            Sort::Ranked { known, none, by_commas } => {
                // A parameter of a name may stand behind a blank: `br; q=0.5`.
                let typed = typed.replace("; ", ";");
                let parts = typed.split(|c| c == '+' || (*by_commas && matches!(c, ',' | ':'))).map(str::trim);
                let names: Vec<&str> = parts.filter(|name| !["", none].contains(name)).collect();
                let is_known = |name: &&str| known.is_empty() || known.contains(name);
                let are_names = names.iter().all(|name| is_known(name) && name.bytes().all(|b| b.is_ascii_graphic()));
                match names.as_slice() {
                    [] if !none.is_empty() => Ok((*none).to_owned()),
                    [_, ..] if are_names => Ok(names.join("+")),
                    _ if known.is_empty() => Err(wrong("names joined by +")),
                    _ => Err(wrong(&format!("one or several of {} joined by +", known.join(" and ")))),
                }
            }
            Sort::Words => {
                let mut words: Vec<String> =
                    typed.split(['+', ',']).map(|word| word.trim().to_ascii_lowercase()).collect();
                words.sort();
                words.dedup();
                let is_word = |word: &String| word.bytes().all(|b| b.is_ascii_alphanumeric()) && !word.is_empty();
                if words.iter().all(is_word) { Ok(words.join("+")) } else { Err(wrong("words joined by +, or none")) }
            }
        }
    }

    /// The levels of a list as it was typed. `A..B` of sizes and whole numbers stands for A, its doubles below B, and B.
    ///
    /// # Errors
    ///
    /// As [`Param::read`].
    pub fn levels(&self, typed: &str) -> Result<Vec<String>, String> {
        let mut levels = Vec::new();
        for text in typed.split(',') {
            let has_ranges = matches!(self.sort, Sort::Bytes { .. } | Sort::Count { .. });
            let Some((first, last)) = text.split_once("..").filter(|_| has_ranges) else {
                levels.push(self.read(text)?);
                continue;
            };
            let read = |text: &str| Ok::<u64, String>(self.read(text)?.parse().unwrap_or(0));
            let (first, last) = (read(first)?, read(last)?);
            if first == 0 || first > last {
                return Err(format!(
                    "--{}: '{}' is no range; 16..128 stands for 16,32,64,128 and begins above 0",
                    self.name,
                    sanitize_line(text)
                ));
            }
            let doubles = std::iter::successors(Some(first), |level| level.checked_mul(2));
            levels.extend(doubles.take_while(|level| *level < last).chain([last]).map(|level| level.to_string()));
        }
        Ok(levels)
    }

    /// Whether it may be typed without a value, which switches it on.
    pub fn is_switch(&self) -> bool {
        self.sort == Sort::Switch
    }

    /// A kept value as it is typed.
    pub fn typed(&self, kept: &str) -> String {
        kept.replace('+', if matches!(self.sort, Sort::Ranked { by_commas: true, .. }) { "," } else { "+" })
    }

    /// Whether it can be varied: paths that are read or overwritten cannot, so that who is asked for one is told all of them. What
    /// may have commas in it cannot be told from a list.
    pub fn can_vary(&self) -> bool {
        !matches!(self.sort, Sort::File | Sort::Sent(_) | Sort::Destroys | Sort::Assignments | Sort::Text)
    }

    /// Whether commas in what was typed part levels of a factor. Words of one value may be typed with commas, too; but who has
    /// among them what stands for none of them wants to compare.
    pub fn takes_lists(&self, typed: &str) -> bool {
        let is_list = match &self.sort {
            Sort::Words => false,
            Sort::Ranked { none, by_commas: true, .. } => {
                let mut names = typed.split(',').map(str::trim);
                !none.is_empty() && typed.contains(',') && names.any(|name| name == *none)
            }
            _ => true,
        };
        is_list && self.can_vary()
    }

    /// A kept value as it is read: sizes with their unit.
    pub fn label(&self, kept: &str) -> String {
        match (&self.sort, kept.parse::<u64>()) {
            (Sort::Bytes { zero, .. } | Sort::Count { zero, .. }, Ok(0)) if !zero.is_empty() => (*zero).to_owned(),
            // As it is typed: such sizes are powers of 2, and 1.02 kB would be no longer one.
            (Sort::Bytes { .. }, Ok(bytes)) if bytes > 0 && bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
            (Sort::Bytes { .. }, Ok(bytes)) if bytes > 0 && bytes % (1 << 10) == 0 => format!("{} KiB", bytes >> 10),
            (Sort::Bytes { .. }, Ok(bytes)) => format!("{bytes} B"),
            _ if kept.is_empty() => "none".to_owned(),
            _ => sanitize_line(kept),
        }
    }

    /// A kept value as a number, where values are numbers.
    pub fn number(&self, kept: &str) -> Option<f64> {
        let is_number = matches!(self.sort, Sort::Bytes { .. } | Sort::Count { .. } | Sort::Decimal { .. });
        is_number.then(|| kept.parse().ok()).flatten()
    }
}

/// A name and its value. What could end a literal of SQL is none.
fn assignment(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once('=').map(|(name, value)| (name.trim(), value.trim()))?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.'));
    let is_value = !value.is_empty() && value.bytes().all(|b| matches!(b, b' '..=b'~') && !br#"'"\`;"#.contains(&b));
    (is_name && is_value && text.len() <= MOST_TEXT_BYTES).then_some((name, value))
}

/// What [`Sort::Assignments`] holds, from its kept spelling.
pub fn assignments(kept: &str) -> impl Iterator<Item = (&str, &str)> {
    kept.split(',').filter_map(assignment)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Param = Param {
        name: "size",
        value_name: "BYTES",
        help: "",
        sort: Sort::Bytes { least: 1, most: 1 << 20, zero: "" },
        default: "1024",
    };
    const WAY: Param =
        Param { name: "way", value_name: "WAY", help: "", sort: Sort::Choice(&["there", "back"]), default: "there" };
    const SOME: Param = Param { name: "some", value_name: "WORDS", help: "", sort: Sort::Words, default: "none" };

    #[test]
    fn values_are_kept_in_one_spelling() {
        assert_eq!(SIZE.read("16k").as_deref(), Ok("16384"));
        assert_eq!(WAY.read("Back").as_deref(), Ok("back"));
        assert_eq!(SOME.read("vaes, aes,aes").as_deref(), Ok("aes+vaes"));
        assert_eq!((SIZE.label("16384").as_str(), SIZE.number("16384")), ("16 KiB", Some(16_384.0)));
        assert_eq!(["1000", "1048576", "0"].map(|kept| SIZE.label(kept)), ["1000 B", "1 MiB", "0 B"]);
        for (param, typed, says) in [
            (&SIZE, "0", "from 1 to"),
            (&SIZE, "2MiB", "from 1 to"),
            (&SIZE, "x\u{1b}[2J", "got 'x"),
            (&WAY, "up", "there or back"),
            (&SOME, "a;b", "joined by +"),
        ] {
            let said = param.read(typed).unwrap_err();
            assert!(said.contains(says) && !said.contains('\u{1b}'), "{said}");
        }
    }

    #[test]
    fn ranked_names_keep_their_order_and_commas_part_them_where_they_may() {
        let ranked = |none: &'static str, by_commas: bool| Param {
            name: "ranked",
            sort: Sort::Ranked { known: &[], none, by_commas },
            ..SOME
        };
        let (listed, varied) = (ranked("all", true), ranked("", false));
        assert_eq!(listed.read(" b,a :c+").as_deref(), Ok("b+a+c"));
        assert_eq!(["", "all", ","].map(|typed| listed.read(typed).unwrap()), ["all"; 3]);
        assert_eq!((listed.typed("b+a").as_str(), varied.typed("b+a").as_str()), ("b,a", "b+a"));
        assert!(listed.can_vary() && !listed.takes_lists("a,b") && listed.takes_lists("all, a"));
        assert!(!ranked("", true).takes_lists("a,,b") && !listed.takes_lists("all"));
        assert_eq!(listed.read("b; q=0.5, a;q=1").as_deref(), Ok("b;q=0.5+a;q=1"));
        assert_eq!(varied.levels("b+a, c").unwrap(), ["b+a", "c"]);
        for wrong in ["", "+", "a b", "a\u{1b}"] {
            assert!(varied.read(wrong).is_err(), "{wrong:?}");
        }
        let known = Param { sort: Sort::Ranked { known: &["1", "2"], none: "", by_commas: false }, ..varied };
        assert_eq!(known.read("2+1").as_deref(), Ok("2+1"));
        assert!(known.read("2+3").unwrap_err().contains("1 and 2 joined by +"));
    }

    #[test]
    fn assignments_are_kept_in_one_order_and_hold_nothing_that_ends_a_literal() {
        let set = Param { name: "set", value_name: "", help: "", sort: Sort::Assignments, default: "" };
        let kept = set.read(" work_mem = 64MB, JIT=off").unwrap();
        assert_eq!(kept, "jit=off,work_mem=64MB");
        assert_eq!(assignments(&kept).collect::<Vec<_>>(), [("jit", "off"), ("work_mem", "64MB")]);
        assert_eq!((set.read("").as_deref(), set.label("").as_str()), (Ok(""), "none"));
        for wrong in
            ["jit", "jit=", "=on", "a b=1", "a='x'", "a=x\\y", "a=x;y", "a=1,a=2", "a=\u{1b}", "1a=2", "a=\u{e9}"]
        {
            assert!(set.read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ranges_double_and_end_where_they_say() {
        assert_eq!(SIZE.levels("16..100").unwrap(), ["16", "32", "64", "100"]);
        assert_eq!(SIZE.levels("1k,4k").unwrap(), ["1024", "4096"]);
        assert_eq!(SIZE.levels("16..16").unwrap(), ["16"]);
        assert!(SIZE.levels("100..16").unwrap_err().contains("no range"));
        assert_eq!(WAY.levels("there,back").unwrap(), ["there", "back"]);
    }
}
