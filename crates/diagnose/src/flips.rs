//! Probes that set settings of a kind of work and change nothing else: each is an entry here.

use crate::case::Case;
use duel_model::{Id, KindPlan, WorkloadPlan};
use std::collections::BTreeMap;

/// A probe that sets settings of the work, on all targets.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Settings {
    /// Its id, without the mode.
    pub(crate) id: &'static str,
    /// What it changes, in front of a colon.
    pub(crate) phrase: &'static str,
    pub(crate) question: &'static str,
    /// The settings by name, with their values.
    set: &'static [(&'static str, Value)],
}

/// A value that a probe sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    /// This one, where the plan leaves it at its default.
    Is(&'static str),
    /// A size that is far from the plan's, by [`FAR`].
    Far,
    /// The larger of the plan's size of that setting, and the one far from it.
    Larger(&'static str),
    /// The smaller of the two.
    Smaller(&'static str),
}

/// A cost of each op and one of each byte are told apart by two sizes that differ so much: the error of either is then that
/// of the measured times, and not several times as large.
const FAR: u64 = 16;
/// From here on the far size is the smaller one. It is a multiple of 16 then, as ciphers want it.
const SMALL_BYTES: u64 = 256;

/// The AES instructions hidden from the libraries.
pub(crate) static NO_AES: Settings = Settings {
    id: "no-aes",
    phrase: "with the CPU's AES instructions hidden from all targets",
    question: "Does the gap go away when no library may use the CPU's AES instructions?",
    set: &[("mask", Value::Is("aes"))],
};

/// All features of the CPU hidden from the libraries.
pub(crate) static NO_FEATURES: Settings = Settings {
    id: "no-features",
    phrase: "with all features of the CPU hidden from all targets",
    question: "Does the gap go away when no library may use features of the CPU?",
    set: &[("mask", Value::Is("all"))],
};

/// Read ahead by duel itself, whatever the system does.
pub(crate) static OWN_READ_AHEAD: Settings = Settings {
    id: "own-read-ahead",
    phrase: "with duel reading ahead on all targets",
    question: "Does the gap go away when duel itself reads ahead?",
    set: &[("read-ahead", Value::Is("own"))],
};

/// Another size of block.
pub(crate) static FAR_BLOCK: Settings = Settings {
    id: "far-block",
    phrase: "with blocks of another size",
    question: "Is the gap paid per block or per byte?",
    set: &[("block", Value::Far)],
};

/// As many bytes as in the larger block, in as many calls as it has smaller ones.
pub(crate) static MANY_CALLS: Settings = Settings {
    id: "many-calls",
    phrase: "with each block handed over in several calls",
    question: "Is the gap paid per block or per call?",
    set: &[("block", Value::Larger("block")), ("chunk", Value::Smaller("block"))],
};

impl Settings {
    /// Whether the plan leaves room for it; if not, why.
    pub(crate) fn possible(&self, case: &Case<'_>) -> Result<(), String> {
        let WorkloadPlan::Plain(kind) = &case.plan.workload else {
            return Err("the workload has no such setting".to_owned());
        };
        for (name, value) in self.set {
            let Some(param) = kind.schema.params.iter().find(|param| param.name == *name) else {
                return Err(format!("the workload has no setting {name}"));
            };
            // A size may be changed whatever it is.
            if matches!(value, Value::Is(_) | Value::Smaller(_)) && kind.get(param) != param.default {
                return Err(format!("the plan sets {name} already"));
            }
        }
        Ok(())
    }

    /// What it sets, by what the plan has set.
    pub(crate) fn variation(&self, case: &Case<'_>) -> BTreeMap<Id, String> {
        let WorkloadPlan::Plain(kind) = &case.plan.workload else { return BTreeMap::new() };
        let value = |name: &str, value: Value| match value {
            Value::Is(text) => text.to_owned(),
            Value::Far => far(size(kind, name)).to_string(),
            Value::Larger(of) => size(kind, of).max(far(size(kind, of))).to_string(),
            Value::Smaller(of) => size(kind, of).min(far(size(kind, of))).to_string(),
        };
        self.set.iter().map(|(name, set)| (Id::new(name), value(name, *set))).collect()
    }
}

fn far(bytes: u64) -> u64 {
    if bytes < SMALL_BYTES { bytes * FAR } else { bytes / FAR / 16 * 16 }
}

/// The size that a setting has; 0 where it is none.
fn size(kind: &KindPlan, name: &str) -> u64 {
    kind.schema.params.iter().find(|param| param.name == name).map_or(0, |param| kind.get(param).parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::far;

    #[test]
    fn the_far_size_is_far_and_can_be_had() {
        assert_eq!([16, 255, 256, 1000, 16_384, 1 << 20].map(far), [256, 4080, 16, 48, 1024, 65_536]);
    }
}
