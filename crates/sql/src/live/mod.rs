//! Against a real PostgreSQL of the tests' own, and SQLite.

pub(crate) mod bulk;
pub(crate) mod cancel;
mod copy;
mod listener;
pub(crate) mod script;
mod server;
mod sqlite;
mod tests;
pub(crate) mod views;

use crate::schema::SCHEMA;
use crate::{Existing, Progress, Sql};
use duel_load::{PlainKind, Prepared, SlotOrder, SlotRecord, WorkloadError};
use duel_model::{
    Bound, BusyPoll, ComparePlan, Id, KindPlan, LoadPlan, LoadShape, LoopKind, MILLISECOND_NS, Plan, SECOND_NS, Target,
    WorkloadPlan,
};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The settings of a kind, from pairs.
fn kind(settings: &[(&str, &str)]) -> KindPlan {
    let mut kind = KindPlan::of(&SCHEMA);
    for (name, value) in settings {
        let param = SCHEMA.params.iter().find(|param| param.name == *name).unwrap();
        kind.settings.insert(param.id(), param.read(value).unwrap());
    }
    kind
}

fn plan(address: &str, lanes: u32, kind: &KindPlan) -> Plan {
    Plan {
        targets: vec![Target { name: "A".into(), address: address.into(), host: None }],
        workload: WorkloadPlan::Plain(kind.clone()),
        load: LoadPlan {
            connections: lanes,
            threads: 2,
            kind: LoopKind::Closed { think_ns: 0 },
            bound: Bound::Duration(SECOND_NS),
            connect_timeout_ns: 30 * SECOND_NS,
            op_timeout_ns: 30 * SECOND_NS,
            busy_poll: BusyPoll::Never,
            shape: LoadShape::default(),
        },
        compare: ComparePlan::default(),
        factors: Vec::new(),
    }
}

/// Makes a target ready.
pub(crate) fn ready(address: &str, lanes: u32, settings: &[(&str, &str)]) -> Result<Prepared, WorkloadError> {
    let kind = kind(settings);
    let address = Sql.without_secrets(address)?;
    Sql.prepare(&plan(&address, lanes, &kind), &kind, &address)
}

fn order(ops: Option<u64>, duration_ns: Option<u64>) -> SlotOrder {
    SlotOrder { duration_ns, ops, ..SlotOrder::of(LoopKind::Closed { think_ns: 0 }, 30 * SECOND_NS) }
}

/// Loads a target with so many ops.
pub(crate) fn load(prepared: &Prepared, lanes: u32, ops: u64) -> SlotRecord {
    let mut session = prepared.opens.session(lanes, 2, Arc::default()).unwrap();
    session.run_slot(&order(Some(ops), None), &mut |_| ControlFlow::Continue(())).unwrap()
}

/// Loads a target for a while.
fn load_for(prepared: &Prepared, lanes: u32, ms: u64) -> SlotRecord {
    let mut session = prepared.opens.session(lanes, 2, Arc::default()).unwrap();
    session.run_slot(&order(None, Some(ms * MILLISECOND_NS)), &mut |_| ControlFlow::Continue(())).unwrap()
}

fn counted(record: &SlotRecord, name: &'static str) -> u64 {
    record.tally.counted.get(&Id::new(name)).copied().unwrap_or(0)
}

pub(crate) fn fill(address: &str, tables: u32, rows: u64, existing: Existing) -> Result<crate::Filled, WorkloadError> {
    crate::prepare(address, tables, rows, existing, &Progress::default())
}
