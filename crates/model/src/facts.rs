//! What is known of a target, of what it answered and of its machine: one list of named facts, and what is declared of each.
//!
//! A name begins with what the fact is about: `tls.version`, `http.status`, `os.kernel`. It is found where it is observed;
//! all else follows from its [`Declaration`], which stands with its kind: those of the web in [`crate::web`], those of
//! machines in [`crate::machine`]. So a new fact is one declaration, and one line where it is observed.

use crate::{machine, public_address, sanitize_line, web};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Address that was connected to; where connections go to several in turn, all of them.
pub const PEER: &str = "net.peer";

/// What a fact says, safe to show. A number is of the unit that its name ends with: see [`unit`](fn@unit).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Whether it is so.
    YesNo(bool),
    /// A whole number.
    Number(u64),
    /// In words; of machines numbers, too, as they were read.
    Text(String),
    /// Several, in their order; never none.
    List(Vec<String>),
}

/// As it stands in a sentence: digits without separators, `yes` or `no`, all of a list.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::YesNo(is_so) => f.write_str(if *is_so { "yes" } else { "no" }),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::List(texts) => f.write_str(&texts.join("; ")),
        }
    }
}

macro_rules! value_from {
    ($($kind:ty => $as:expr),*) => {$(
        impl From<$kind> for Value {
            fn from(value: $kind) -> Self {
                $as(value)
            }
        }
    )*};
}

value_from!(bool => Self::YesNo, u64 => Self::Number, String => Self::Text, Vec<String> => Self::List);

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// A fact, or why it is not known. Unknown is never an empty or a zero value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Known {
    /// What was seen.
    Value(Value),
    /// Why it could not be read, in words that are safe to show.
    Unavailable(String),
}

impl Known {
    /// The value, if it is known.
    pub fn value(&self) -> Option<&Value> {
        match self {
            Self::Value(value) => Some(value),
            Self::Unavailable(_) => None,
        }
    }

    /// The value, if it is a text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Value(Value::Text(text)) => Some(text),
            _ => None,
        }
    }
}

impl<T: Into<Value>> From<T> for Known {
    fn from(value: T) -> Self {
        Self::Value(value.into())
    }
}

/// Facts by name.
///
/// One that is missing was not seen, or never asked for; [`Known::Unavailable`] was asked for in vain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<String, web::Kept>")]
pub struct Facts(pub BTreeMap<String, Known>);

impl Facts {
    /// With one fact more.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.note(name, Some(value));
        self
    }

    /// Notes what was seen, if anything was.
    pub fn note(&mut self, name: &str, value: Option<impl Into<Value>>) {
        match value.map(Into::into) {
            None => {}
            Some(Value::List(texts)) if texts.is_empty() => {}
            Some(value) => {
                self.0.insert(name.to_owned(), Known::Value(value));
            }
        }
    }

    /// The value of a fact; `None` where it is missing or unavailable.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name)?.value()
    }

    /// A fact that is a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.text()
    }

    /// A fact that is a whole number.
    pub fn count(&self, name: &str) -> Option<u64> {
        match self.value(name)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// A fact that is a number, be it written as a text.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.value(name)? {
            Value::Number(number) => Some(*number as f64),
            Value::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// Whether what a fact says is so.
    pub fn is(&self, name: &str) -> Option<bool> {
        match self.value(name)? {
            Value::YesNo(is_so) => Some(*is_so),
            _ => None,
        }
    }

    /// All texts of a fact that is a list; none where it is missing.
    pub fn list(&self, name: &str) -> &[String] {
        match self.value(name) {
            Some(Value::List(texts)) => texts,
            _ => &[],
        }
    }

    /// All facts whose name begins with `prefix`, in order.
    pub fn under<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a Known)> {
        self.0
            .range(prefix.to_owned()..)
            .take_while(move |(name, _)| name.starts_with(prefix))
            .map(|(name, known)| (name.as_str(), known))
    }

    /// These, and of `others` what these do not tell.
    #[must_use]
    pub fn or(mut self, others: Self) -> Self {
        others.0.into_iter().for_each(|(name, known)| {
            self.0.entry(name).or_insert(known);
        });
        self
    }

    /// The facts as they are kept: addresses are cut and without secrets, like all else that a server says.
    #[must_use]
    pub fn kept(mut self) -> Self {
        for (name, known) in &mut self.0 {
            if let Known::Value(Value::Text(text)) = known
                && Declaration::of(name).is_some_and(|declared| declared.is_address)
            {
                *text = sanitize_line(&public_address(text));
            }
        }
        self
    }
}

/// All that is done with a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Declaration {
    /// Its name. Of machines a part of it may be any text: `*`, once.
    pub name: &'static str,
    /// What tables call it; `None` where they leave it out, or call it by its name.
    pub label: Option<&'static str>,
    /// What sentences call it.
    pub noun: &'static str,
    /// Whether it is of one answer, not of the server or of the connection: other requests may have others.
    pub is_of_answer: bool,
    /// Whether targets in which it differs make a doubt: it costs something on both ends of the wire.
    pub is_doubted: bool,
    /// Whether a probe has to find it as the comparison did, unless the probe was made to change it.
    pub is_held: bool,
    /// Whether a twin has to tell the same as its server.
    pub is_of_twins: bool,
    /// Whether it is an address that a server named: what is secret in it is not kept.
    pub is_address: bool,
    /// How tables tell what differs.
    pub compared: Compared,
    /// The number that says that there is no bound.
    pub unbounded: Option<u64>,
    /// What it says of a line that the bytes of ops go over: reports tell how much of it was used.
    pub line: Option<Line>,
}

/// What a fact says of a line that the bytes of ops go over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// How much it carries, in Mbit/s.
    Rate,
    /// How much of what it carries are bytes of ops, in per cent; the rest is what carrying them takes.
    PayloadPercent,
}

/// How tables tell what differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// By all of it.
    Whole,
    /// Without the port: that another one was asked for is no finding, that a name led to another machine may be one.
    WithoutPort,
    /// Not at all: it is another one each time that it is read, or on each machine, and says nothing about a difference.
    Never,
}

impl Declaration {
    /// What all kinds declare, in the order of tables and sentences.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        crate::kinds::known().flat_map(|schema| schema.facts).chain(machine::FACTS)
    }

    /// What is declared of a fact; `None` for most of those of machines, which are by their name what they are.
    pub fn of(name: &str) -> Option<&'static Self> {
        Self::all().find(|declared| match declared.name.split_once('*') {
            None => declared.name == name,
            Some((begin, end)) => {
                name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end)
            }
        })
    }

    /// One that tables leave out.
    pub const fn unlisted(name: &'static str) -> Self {
        Self {
            name,
            label: None,
            noun: name,
            is_of_answer: false,
            is_doubted: false,
            is_held: false,
            is_of_twins: false,
            is_address: false,
            compared: Compared::Whole,
            unbounded: None,
            line: None,
        }
    }

    /// One that tables have a row for.
    pub const fn listed(name: &'static str, label: &'static str) -> Self {
        Self { label: Some(label), noun: label, ..Self::unlisted(name) }
    }
}

/// The unit that the last word of a fact's name tells.
pub fn unit(name: &str) -> Option<&'static str> {
    const UNITS: [(&str, &str); 13] = [
        ("bytes", "bytes"),
        ("kib", "KiB"),
        ("pages", "pages"),
        ("ns", "ns"),
        ("us", "us"),
        ("s", "s"),
        ("mhz", "MHz"),
        ("mbps", "Mbit/s"),
        ("celsius", "°C"),
        ("c", "°C"),
        ("rpm", "rpm"),
        ("percent", "%"),
        ("watts", "W"),
    ];
    let word = name.rsplit(['.', '_']).next()?;
    UNITS.iter().find(|(end, _)| *end == word).map(|(_, unit)| *unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_found_by_prefix() {
        let facts = ["a.x", "ab.y", "a.y", "b"].iter().fold(Facts::default(), |facts, name| facts.with(name, "1"));
        assert_eq!(facts.under("a.").map(|(name, _)| name).collect::<Vec<_>>(), ["a.x", "a.y"]);
        assert_eq!((facts.number("b"), facts.number("c")), (Some(1.0), None));
    }

    #[test]
    fn a_value_is_read_back_as_what_it_was() {
        let facts = Facts::default()
            .with("a.text", "12")
            .with("a.number", u64::MAX)
            .with("a.is", false)
            .with("a.list", vec!["x".to_owned()])
            .with("a.none", Vec::new());
        let kept = serde_json::to_string(&facts).unwrap();
        assert_eq!(serde_json::from_str::<Facts>(&kept).unwrap(), facts, "{kept}");
        assert_eq!((facts.number("a.text"), facts.count("a.text")), (Some(12.0), None));
        assert_eq!((facts.is("a.is"), facts.list("a.list").len(), facts.value("a.none")), (Some(false), 1, None));
    }

    #[test]
    fn a_fact_is_declared_once() {
        let mut names: Vec<&str> = Declaration::all().map(|declared| declared.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        assert_eq!(Declaration::of("listen.80.waiting").map(|declared| declared.compared), Some(Compared::Never));
        assert_eq!(Declaration::of("listen.waiting"), None);
    }

    #[test]
    fn units_are_those_that_names_end_with() {
        for (name, expected) in [
            ("memory.total_bytes", Some("bytes")),
            ("cpu.slowest_mhz", Some("MHz")),
            ("os.uptime_s", Some("s")),
            ("redfish.temperature.CPU1.c", Some("°C")),
            ("redfish.fan.Fan_1.rpm", Some("rpm")),
            ("cpu.model", None),
            ("os.arch", None),
            ("", None),
        ] {
            assert_eq!(unit(name), expected, "{name}");
        }
    }
}
