//! What is put before duel: a set-up, a fault in it or none, and what counts as the right answer.

use crate::kinds::web::Web;
use crate::kinds::{Kind, Pair, Trial, Verify};

/// One pair of twins and the truth about them.
#[derive(Clone)]
pub(crate) struct Case {
    /// `cause/set-up/strength`, never used again for another case.
    pub(crate) id: String,
    /// The causes at work; none for a pair of equals.
    pub(crate) truth: Vec<&'static str>,
    /// Other names that are as right, because what was injected is that as well: the cause, and the name.
    pub(crate) alternates: Vec<(&'static str, &'static str)>,
    /// Whether the truth can only be told from the servers' host; from outside, "unknown" is right, too.
    pub(crate) needs_host: bool,
    pub(crate) setup: String,
    pub(crate) strength: String,
    /// The twins, of whatever kind of work.
    pub(crate) trial: Trial,
    /// Why this case cannot be had on this machine, if it cannot.
    pub(crate) unavailable: Option<String>,
}

/// The truth about a fault that is none of the causes of its kind of work: nothing may be named in its place.
pub(crate) const NAMELESS: &str = "nameless";

/// What a fault does, as measured without duel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bite {
    pub(crate) bites: bool,
    pub(crate) figures: String,
}

impl Bite {
    /// Bites if the faulty twin's figure is so many times that of the healthy one.
    pub(crate) fn ratio(what: &str, (healthy, faulty): (f64, f64), at_least: f64) -> Bite {
        let ratio = faulty / healthy;
        Bite {
            bites: ratio >= at_least,
            figures: format!("{what}: {} against {}, {ratio:.2}x", figure(faulty), figure(healthy)),
        }
    }

    /// Bites if the faulty twin's figure exceeds that of the healthy one by so much.
    pub(crate) fn more(what: &str, (healthy, faulty): (f64, f64), at_least: f64) -> Bite {
        Bite {
            bites: faulty - healthy >= at_least,
            figures: format!("{what}: {} against {}", figure(faulty), figure(healthy)),
        }
    }

    /// Both have to hold.
    pub(crate) fn and(self, other: Bite) -> Bite {
        Bite { bites: self.bites && other.bites, figures: format!("{}; {}", self.figures, other.figures) }
    }
}

/// Three significant digits.
fn figure(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Twins as they are before one of them gets its fault.
#[derive(Clone)]
pub(crate) struct Setup<K: Kind = Web> {
    pub(crate) twin: K::Twin,
    pub(crate) load: K::Load,
    /// What is special about the path and other circumstances.
    remark: Option<String>,
}

impl<K: Kind> Setup<K> {
    pub(crate) fn new(twin: K::Twin, load: K::Load) -> Setup<K> {
        Setup { twin, load, remark: None }
    }

    /// Whatever else both twins have; `remark` names it.
    pub(crate) fn with(mut self, remark: &str, change: impl FnOnce(&mut K::Twin)) -> Setup<K> {
        change(&mut self.twin);
        self.remark = Some(match self.remark {
            Some(before) => format!("{before}-{remark}"),
            None => remark.to_owned(),
        });
        self
    }

    /// The set-up in one word, as it stands in a case's id.
    pub(crate) fn name(&self) -> String {
        let mut words = K::words_of_setup(&self.twin, &self.load);
        words.extend(self.remark.clone());
        words.join("-")
    }

    /// A case in which the faulty twin is this one, or a pair of equals.
    fn trial(&self, faulty: K::Twin, verify: Vec<Verify<K>>) -> Trial {
        Trial::of::<K>(Pair { healthy: self.twin.clone(), faulty, load: self.load.clone(), verify })
    }
}

/// A cause that can be injected.
#[derive(Clone, Copy)]
pub(crate) struct Injection<K: Kind = Web> {
    pub(crate) cause: &'static str,
    pub(crate) alternates: &'static [&'static str],
    pub(crate) needs_host: bool,
    pub(crate) verify: Verify<K>,
}

impl<K: Kind> Injection<K> {
    /// One that can be told from outside.
    pub(crate) const fn new(cause: &'static str, verify: Verify<K>) -> Injection<K> {
        Injection { cause, alternates: &[], needs_host: false, verify }
    }

    /// One that can only be told from the host.
    pub(crate) const fn on_host(cause: &'static str, verify: Verify<K>) -> Injection<K> {
        Injection { needs_host: true, ..Injection::new(cause, verify) }
    }

    /// Names that are as right.
    pub(crate) const fn or(self, alternates: &'static [&'static str]) -> Injection<K> {
        Injection { alternates, ..self }
    }

    /// A case of this fault alone.
    pub(crate) fn case(&self, setup: &Setup<K>, strength: &str, inject: impl FnOnce(&mut K::Twin)) -> Case {
        let mut faulty = setup.twin.clone();
        inject(&mut faulty);
        Case {
            id: format!("{}/{}/{strength}", self.cause, setup.name()),
            truth: vec![self.cause],
            alternates: self.alternates.iter().map(|name| (self.cause, *name)).collect(),
            needs_host: self.needs_host,
            setup: setup.name(),
            strength: strength.to_owned(),
            trial: setup.trial(faulty, vec![self.verify]),
            unavailable: None,
        }
    }

    /// A case that cannot be had here.
    pub(crate) fn unavailable(&self, setup: &Setup<K>, strength: &str, why: &str) -> Case {
        Case { unavailable: Some(why.to_owned()), ..self.case(setup, strength, |_| {}) }
    }
}

impl Case {
    /// Puts a second fault on the faulty twin.
    ///
    /// # Panics
    ///
    /// Where it is a fault of another kind of work.
    #[expect(clippy::expect_used, reason = "a mistake in the catalogue of cases, which a test goes through")]
    pub(crate) fn and<K: Kind>(
        mut self,
        other: &Injection<K>,
        strength: &str,
        inject: impl FnOnce(&mut K::Twin),
    ) -> Case {
        let pair = self.trial.pair_mut::<K>().expect("two faults of one case are of one kind of work");
        inject(&mut pair.faulty);
        pair.verify.push(other.verify);
        self.truth.push(other.cause);
        self.alternates.extend(other.alternates.iter().map(|name| (other.cause, *name)));
        self.needs_host |= other.needs_host;
        self.strength = format!("{}+{strength}", self.strength);
        self.id = format!("{}/{}/{}", self.truth.join("+"), self.setup, self.strength);
        self
    }

    /// Equals: the same twice.
    pub(crate) fn equals<K: Kind>(setup: &Setup<K>) -> Case {
        Case {
            id: format!("none/{}/a-a", setup.name()),
            truth: Vec::new(),
            alternates: Vec::new(),
            needs_host: false,
            setup: setup.name(),
            strength: "a-a".to_owned(),
            trial: setup.trial(setup.twin.clone(), Vec::new()),
            unavailable: None,
        }
    }

    /// The truth in one word.
    pub(crate) fn cause(&self) -> String {
        if self.truth.is_empty() { "none".to_owned() } else { self.truth.join("+") }
    }

    /// Whether duel's name for a cause is right.
    pub(crate) fn accepts(&self, cause: &str) -> bool {
        self.faults_called(cause).next().is_some()
    }

    /// The faults that have this name, by the first of their names.
    pub(crate) fn faults_called(&self, name: &str) -> impl Iterator<Item = &'static str> {
        let own = self.truth.iter().copied().map(|fault| (fault, fault));
        own.chain(self.alternates.iter().copied()).filter(move |(_, known)| *known == name).map(|(fault, _)| fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bites_say_what_was_measured() {
        let bite = Bite::ratio("time, ms", (2.0, 5.0), 1.5);
        assert_eq!((bite.bites, bite.figures.as_str()), (true, "time, ms: 5.00 against 2.00, 2.50x"));
        assert!(!bite.and(Bite::more("overflows", (0.0, 0.0), 1.0)).bites);
        assert!(!Bite::ratio("nothing", (0.0, 0.0), 1.5).bites);
    }
}
