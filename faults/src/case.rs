//! What is put before duel: a set-up, a fault in it or none, and what counts as the right answer.

use crate::arena::Arena;
use crate::twin::{Content, Server, Tls, Twin};

/// One pair of twins and the truth about them.
#[derive(Clone)]
pub(crate) struct Case {
    /// `cause/set-up/strength`, never used again for another case.
    pub(crate) id: String,
    /// The causes at work; none for a pair of equals.
    pub(crate) truth: Vec<&'static str>,
    /// Other names that are as right, because what was injected is that as well.
    pub(crate) alternates: Vec<&'static str>,
    /// Whether the truth can only be told from the servers' host; from outside, "unknown" is right, too.
    pub(crate) needs_host: bool,
    pub(crate) setup: String,
    pub(crate) strength: String,
    pub(crate) healthy: Twin,
    pub(crate) faulty: Twin,
    pub(crate) load: Load,
    /// Each verifies one of the faults, by other means than duel.
    pub(crate) verify: Vec<Verify>,
    /// Why this case cannot be had on this machine, if it cannot.
    pub(crate) unavailable: Option<String>,
}

/// Looks whether a fault bites.
pub(crate) type Verify = fn(&Arena) -> anyhow::Result<Bite>;

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

/// The load that duel is told to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) connections: u32,
    pub(crate) connect_anew: bool,
    pub(crate) resumption: bool,
}

/// Twins as they are before one of them gets its fault.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) twin: Twin,
    pub(crate) load: Load,
    /// What is special about the path and other circumstances.
    remark: Option<String>,
}

impl Setup {
    /// 612 bytes over HTTP and 16 kept connections.
    pub(crate) fn of(server: Server) -> Setup {
        let load = Load { connections: 16, connect_anew: false, resumption: false };
        Setup { twin: Twin::healthy(server), load, remark: None }
    }

    pub(crate) fn https(mut self) -> Setup {
        self.twin.tls = Some(Tls::default());
        self
    }

    pub(crate) fn bytes(mut self, bytes: u64) -> Setup {
        self.twin.content = Content::Text { bytes };
        self
    }

    pub(crate) fn path(mut self, path: &str) -> Setup {
        self.twin.content = Content::Path(path.to_owned());
        self
    }

    pub(crate) fn connections(mut self, connections: u32) -> Setup {
        self.load.connections = connections;
        self
    }

    /// A new connection for each request.
    pub(crate) fn connecting(mut self) -> Setup {
        self.load.connect_anew = true;
        self
    }

    /// New connections resume TLS sessions.
    pub(crate) fn resuming(mut self) -> Setup {
        self.load.resumption = true;
        self.connecting()
    }

    /// Whatever else both twins have; `remark` names it.
    pub(crate) fn with(mut self, remark: &str, change: impl FnOnce(&mut Twin)) -> Setup {
        change(&mut self.twin);
        self.remark = Some(match self.remark {
            Some(before) => format!("{before}-{remark}"),
            None => remark.to_owned(),
        });
        self
    }

    /// The set-up in one word, as it stands in a case's id.
    pub(crate) fn name(&self) -> String {
        let what = match &self.twin.content {
            Content::Text { bytes } => size(*bytes),
            Content::Path(path) => path.trim_start_matches('/').replace('/', "-"),
        };
        let connections = match (self.load.connect_anew, self.load.resumption) {
            (false, _) => "kept",
            (true, false) => "anew",
            (true, true) => "resumed",
        };
        let mut words = vec![
            self.twin.server.name().to_owned(),
            self.twin.scheme().to_owned(),
            what,
            format!("c{}", self.load.connections),
            connections.to_owned(),
        ];
        words.extend(self.remark.clone());
        words.join("-")
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes}B"),
        1000..1_000_000 => format!("{}k", bytes / 1000),
        _ => format!("{}M", bytes / 1_000_000),
    }
}

/// A cause that can be injected.
#[derive(Clone, Copy)]
pub(crate) struct Injection {
    pub(crate) cause: &'static str,
    pub(crate) alternates: &'static [&'static str],
    pub(crate) needs_host: bool,
    pub(crate) verify: Verify,
}

impl Injection {
    /// One that can be told from outside.
    pub(crate) const fn new(cause: &'static str, verify: Verify) -> Injection {
        Injection { cause, alternates: &[], needs_host: false, verify }
    }

    /// One that can only be told from the host.
    pub(crate) const fn on_host(cause: &'static str, verify: Verify) -> Injection {
        Injection { needs_host: true, ..Injection::new(cause, verify) }
    }

    /// Names that are as right.
    pub(crate) const fn or(self, alternates: &'static [&'static str]) -> Injection {
        Injection { alternates, ..self }
    }

    /// A case of this fault alone.
    pub(crate) fn case(&self, setup: &Setup, strength: &str, inject: impl FnOnce(&mut Twin)) -> Case {
        let mut faulty = setup.twin.clone();
        inject(&mut faulty);
        Case {
            id: format!("{}/{}/{strength}", self.cause, setup.name()),
            truth: vec![self.cause],
            alternates: self.alternates.to_vec(),
            needs_host: self.needs_host,
            setup: setup.name(),
            strength: strength.to_owned(),
            healthy: setup.twin.clone(),
            faulty,
            load: setup.load,
            verify: vec![self.verify],
            unavailable: None,
        }
    }

    /// A case that cannot be had here.
    pub(crate) fn unavailable(&self, setup: &Setup, strength: &str, why: &str) -> Case {
        Case { unavailable: Some(why.to_owned()), ..self.case(setup, strength, |_| {}) }
    }
}

impl Case {
    /// Puts a second fault on the faulty twin.
    pub(crate) fn and(mut self, other: &Injection, strength: &str, inject: impl FnOnce(&mut Twin)) -> Case {
        inject(&mut self.faulty);
        self.truth.push(other.cause);
        self.alternates.extend(other.alternates);
        self.needs_host |= other.needs_host;
        self.strength = format!("{}+{strength}", self.strength);
        self.id = format!("{}/{}/{}", self.truth.join("+"), self.setup, self.strength);
        self.verify.push(other.verify);
        self
    }

    /// Equals: the same twice.
    pub(crate) fn equals(setup: &Setup) -> Case {
        Case {
            id: format!("none/{}/a-a", setup.name()),
            truth: Vec::new(),
            alternates: Vec::new(),
            needs_host: false,
            setup: setup.name(),
            strength: "a-a".to_owned(),
            healthy: setup.twin.clone(),
            faulty: setup.twin.clone(),
            load: setup.load,
            verify: Vec::new(),
            unavailable: None,
        }
    }

    /// The truth in one word.
    pub(crate) fn cause(&self) -> String {
        if self.truth.is_empty() { "none".to_owned() } else { self.truth.join("+") }
    }

    /// Whether duel's name for a cause is right.
    pub(crate) fn accepts(&self, cause: &str) -> bool {
        self.truth.iter().chain(&self.alternates).any(|right| *right == cause)
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
