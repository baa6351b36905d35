//! Probes that set declared settings of the work, on all targets, and change nothing else.

use super::{Entry, FLIP, Kind};
use crate::case::Case;
use duel_model::{Id, KindPlan, WorkloadPlan};
use std::collections::BTreeMap;

pub(crate) const NO_AES: Kind = Kind::new(&Entry {
    id: "no-aes",
    phrase: "with the CPU's AES instructions hidden from all targets",
    question: "Does the gap go away when no library may use the CPU's AES instructions?",
    sets: &[("mask", Value::Is("aes"))],
    ..FLIP
});

pub(crate) const NO_FEATURES: Kind = Kind::new(&Entry {
    id: "no-features",
    phrase: "with all features of the CPU hidden from all targets",
    question: "Does the gap go away when no library may use features of the CPU?",
    sets: &[("mask", Value::Is("all"))],
    ..FLIP
});

pub(crate) const OWN_READ_AHEAD: Kind = Kind::new(&Entry {
    id: "own-read-ahead",
    phrase: "with duel reading ahead on all targets",
    question: "Does the gap go away when duel itself reads ahead?",
    sets: &[("read-ahead", Value::Is("own"))],
    ..FLIP
});

pub(crate) const FAR_BLOCK: Kind = Kind::new(&Entry {
    id: "far-block",
    phrase: "with blocks of another size",
    question: "Is the gap paid per block or per byte?",
    sets: &[("block", Value::Far)],
    ..FLIP
});

/// As many bytes as in the larger block, in as many calls as it has smaller ones.
pub(crate) const MANY_CALLS: Kind = Kind::new(&Entry {
    id: "many-calls",
    phrase: "with each block handed over in several calls",
    question: "Is the gap paid per block or per call?",
    sets: &[("block", Value::Larger("block")), ("chunk", Value::Smaller("block"))],
    ..FLIP
});

/// A value that a probe sets.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value {
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

/// Whether the plan leaves room for these settings; if not, why.
pub(super) fn can_be_set(sets: &[(&str, Value)], case: &Case<'_>) -> Result<(), String> {
    for (name, value) in sets {
        let WorkloadPlan::Plain(plan) = &case.plan.workload else {
            return Err("the workload has no such setting".to_owned());
        };
        let Some(param) = plan.schema.param(name) else { return Err(format!("the workload has no setting {name}")) };
        // A size may be changed whatever it is.
        if matches!(value, Value::Is(_) | Value::Smaller(_)) && plan.get(param) != param.default {
            return Err(format!("the plan sets {name} already"));
        }
    }
    Ok(())
}

/// The settings with their values, by what the plan has set.
pub(super) fn values(sets: &[(&'static str, Value)], case: &Case<'_>) -> BTreeMap<Id, String> {
    let WorkloadPlan::Plain(plan) = &case.plan.workload else { return BTreeMap::new() };
    sets.iter().map(|(name, value)| (Id::new(name), value.of(plan, name))).collect()
}

impl Value {
    fn of(self, plan: &KindPlan, name: &str) -> String {
        let both = |name: &str| [size(plan, name), far(size(plan, name))];
        match self {
            Self::Is(text) => return text.to_owned(),
            Self::Far => far(size(plan, name)),
            Self::Larger(of) => both(of).into_iter().fold(0, u64::max),
            Self::Smaller(of) => both(of).into_iter().fold(u64::MAX, u64::min),
        }
        .to_string()
    }
}

fn far(bytes: u64) -> u64 {
    if bytes < SMALL_BYTES { bytes * FAR } else { bytes / FAR / 16 * 16 }
}

/// The size that a setting has; 0 where it is none.
fn size(plan: &KindPlan, name: &str) -> u64 {
    plan.schema.param(name).map_or(0, |param| plan.get(param).parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::far;

    #[test]
    fn the_far_size_is_far_and_can_be_had() {
        assert_eq!([16, 255, 256, 1000, 16_384, 1 << 20].map(far), [256, 4080, 16, 48, 1024, 65_536]);
    }
}
