//! Where to look next, when no cause is named: what differs between the two sides of a gap. A lead accuses nobody.

use crate::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a gap leaves to be looked at.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Leads {
    /// The slow side has a class of ops that take far longer than its others, and that is worth a part of the gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_ops: Option<SlowOps>,
    /// What differs between both sides, the most telling first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
    /// What was not read, and the option that has it read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<Unread>,
}

/// Ops of one target that take far longer than its others: between the two lie hardly any.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlowClass {
    /// Ops in it.
    pub ops: u64,
    /// All ops whose time is known.
    pub of: u64,
    /// From here on an op belongs to it, ns.
    pub from_ns: Nanos,
    /// Median time of the ops in it, ns.
    pub slow_ns: Nanos,
    /// Median time of all others, ns.
    pub others_ns: Nanos,
    /// What it adds to the mean time of all ops: its share, times how much longer its mean is than that of the others, ns.
    pub adds_ns: f64,
    /// How far the 95 % interval of `adds_ns` reaches to either side, from the scatter over slots, ns.
    pub adds_half_ns: f64,
}

impl SlowClass {
    /// The share of all ops that it is.
    pub fn share(&self) -> f64 {
        self.ops as f64 / self.of.max(1) as f64
    }
}

/// A class of slow ops on the slow side of a gap.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlowOps {
    /// The probe in whose slots it was seen; `comparison`: in those of the comparison.
    pub probe: String,
    /// Name of the slow side.
    pub target: String,
    /// What was seen there.
    pub class: SlowClass,
    /// The class of slow ops that the fast side has; `None`: it has none.
    pub of_other: Option<SlowClass>,
    /// The share of the difference of mean times that goes away if slow ops take as long as the others; `None` where the
    /// means do not differ that way.
    pub share_of_gap: Option<f64>,
    /// All of it in one sentence.
    pub text: String,
}

/// What differs between both sides of a gap.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// What differs: the name of a fact or a counter, such as `net.core.somaxconn` or `process.major_faults`.
    pub name: String,
    /// What kind of thing it is.
    pub kind: DifferenceKind,
    /// What the slow side has: per op, of a counter.
    pub slow: String,
    /// What the fast side has.
    pub fast: String,
    /// The same in a sentence.
    pub text: String,
    /// How to look at it by hand, on the slow side's machine unless it is a command of duel.
    pub look: Option<String>,
}

/// What kind of thing differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DifferenceKind {
    /// Where the time of an op does not go: it is not spent on a CPU, and not waiting for one.
    Asleep,
    /// How many wait at a time, before somebody takes them up.
    Queue,
    /// A counter of time per op.
    Time,
    /// A counter of events or bytes per op.
    Count,
    /// What a server or a machine is.
    Fact,
}

/// What duel could not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// The target.
    pub target: String,
    /// What to add to the command line.
    pub option: String,
    /// The causes that it lets duel look for, which were left open without it.
    pub causes: Vec<String>,
    /// The same in a sentence.
    pub text: String,
}

/// How counters scatter over slots, by the name of the counter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scatter<K: Ord> {
    /// Slots.
    pub slots: u32,
    /// Sum of the squares of the ops of each slot.
    pub ops_squares: f64,
    /// Of each counter that was known in every slot.
    pub counters: BTreeMap<K, SlotSums>,
}

impl<K: Ord> Default for Scatter<K> {
    fn default() -> Self {
        Self { slots: 0, ops_squares: 0.0, counters: BTreeMap::new() }
    }
}

impl<K: Ord + Clone> Scatter<K> {
    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.slots == 0
    }

    /// Adds a slot with so many ops, and what each counter grew by in it. A counter that is missing in one slot is not known
    /// of all.
    pub fn add(&mut self, ops: u64, counted: &BTreeMap<K, u64>) {
        if self.slots == 0 {
            self.counters = counted.keys().map(|key| (key.clone(), SlotSums::default())).collect();
        }
        self.counters.retain(|key, sums| counted.get(key).inspect(|grown| sums.add(ops, **grown)).is_some());
        self.slots += 1;
        self.ops_squares += (ops as f64).powi(2);
    }
}

/// Sums over slots of a counter, beside the sums that its ratio is made of: they tell how sure the ratio is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SlotSums {
    /// Sum of the squares of what was counted in each slot.
    pub squares: f64,
    /// Sum of what was counted times the ops of the slot.
    pub products: f64,
}

impl SlotSums {
    /// Adds a slot with so many ops in which so much was counted.
    pub fn add(&mut self, ops: u64, counted: u64) {
        let (ops, counted) = (ops as f64, counted as f64);
        self.squares += counted * counted;
        self.products += ops * counted;
    }
}
