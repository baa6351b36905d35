//! The cache model of each target, where the user asked for it: what `sql` knows of the work, and what slots have counted.

use duel_model::{CacheModel, Facts, KindPlan, LoopKind, Plan, Run, Slot, SlotRole, Tally, WorkloadPlan};
use duel_sql::counter;
use duel_stats::{CacheCase, CacheSlot, PageGroup, cache_model};

/// Whether sizes are asked about.
pub(crate) fn is_asked(plan: &Plan) -> bool {
    asked(plan).is_some()
}

fn asked(plan: &Plan) -> Option<(&KindPlan, Vec<u64>)> {
    let WorkloadPlan::Plain(kind) = &plan.workload else { return None };
    let sizes_bytes = (kind.schema == &duel_sql::SCHEMA).then(|| duel_sql::cache_sizes(kind).ok())??;
    (!sizes_bytes.is_empty()).then_some((kind, sizes_bytes))
}

/// One for each target; none where nobody asked.
pub(crate) fn models(run: &Run) -> Vec<CacheModel> {
    let Some((kind, sizes_bytes)) = asked(&run.plan) else { return Vec::new() };
    let of_target = |(place, target): (usize, &duel_model::Target)| {
        let facts = run.first_contact.get(place).and_then(Option::as_ref);
        match case(run, kind, place, facts, sizes_bytes.clone()) {
            Ok(case) => cache_model(&case),
            Err(why) => CacheModel {
                target: target.name.clone(),
                cache_bytes: facts.and_then(|facts| bytes(facts, POOL)),
                basis: None,
                unavailable: Some(why),
                predictions: Vec::new(),
            },
        }
    };
    run.plan.targets.iter().enumerate().map(of_target).collect()
}

const POOL: &str = "sql.buffer_pool_bytes";

/// A size that is told; 0 is none.
fn bytes(facts: &Facts, name: &str) -> Option<u64> {
    facts.number(name).filter(|&bytes| bytes >= 1.0).map(|bytes| bytes as u64)
}

/// What the model is told of a target; or what is missing, and how it is to be had.
fn case(
    run: &Run,
    kind: &KindPlan,
    place: usize,
    facts: Option<&Facts>,
    sizes_bytes: Vec<u64>,
) -> Result<CacheCase, String> {
    if !run.plan.factors.is_empty() || !run.plan.load.shape.stages.is_empty() {
        return Err("it takes a run whose load stays the same, and here something is varied".to_owned());
    }
    if run.plan.load.kind != (LoopKind::Closed { think_ns: 0 }) {
        return Err(
            "it says what a server can do, and here a rate or a think time holds it back (without --rate it does)"
                .to_owned(),
        );
    }
    let facts = facts.ok_or("the server told nothing of itself")?;
    let number = |name: &str| bytes(facts, name);
    let cache_bytes = number(POOL).ok_or(
        "only MySQL and MariaDB have a cache of their own that is all there is (PostgreSQL reads through the system's)",
    )?;
    let (rows_bytes, page_bytes) = number("sql.rows_bytes")
        .zip(number("sql.page_bytes"))
        .ok_or("the server does not tell how large its tables are")?;
    let tables = kind.get(&duel_sql::TABLES).parse().unwrap_or(1);
    let pages = duel_sql::page_shares(kind, tables, rows_bytes as f64 / page_bytes as f64)?;
    let own = |slot: &&Slot| slot.role == SlotRole::Measured && slot.target == place && !slot.is_spoilt();
    let measured: Vec<&Slot> = run.slots.iter().filter(own).collect();
    let mut tally = Tally::default();
    measured.iter().for_each(|slot| tally.merge(&slot.tally));
    if tally.failed_total() > 0 {
        return Err("transactions failed, and what these read is in its counts".to_owned());
    }
    let of_slot = |slot: &&Slot| {
        let counted = |counter: duel_model::Counter| slot.tally.counted.get(&counter.id()).map(|&count| count as f64);
        let others = counted(counter::SERVER_OTHERS_QUERIES).unwrap_or(0.0);
        if others > OTHERS * slot.tally.ok as f64 {
            return Err("other clients worked on the server meanwhile, and what these read is in its counts".to_owned());
        }
        let reads = counted(counter::SERVER_READS).ok_or("the server does not tell how many blocks it reads")?;
        let ios = counted(counter::SERVER_DEVICE_READS).ok_or(
            "how often the device is read is not known: for that duel has to run on the server's machine, as root or as the server's user, \
             and the file system has to lie on one device (those of btrfs, ZFS and memory do not)",
        )?;
        let workers = &slot.audit.workers;
        let ours_ns: Option<u64> = workers.iter().map(|worker| worker.cpu_ns).sum();
        let cpu_ns = counted(counter::SERVER_CPU_NS).zip(ours_ns).map(|(theirs, ours)| theirs + ours as f64);
        let elapsed_s = slot.elapsed_ns as f64 / 1e9;
        Ok::<_, String>(CacheSlot {
            ops: slot.tally.ok as f64,
            elapsed_s,
            reads,
            ios,
            cpu_s: cpu_ns.map(|ns| ns / 1e9),
        })
    };
    Ok(CacheCase {
        target: run.plan.targets[place].name.clone(),
        cache_bytes,
        page_bytes,
        sizes_bytes,
        pages: pages.into_iter().map(|(pages, share)| PageGroup { pages, share }).collect(),
        connections: run.plan.load.connections,
        cpus: facts.number("sql.cpus"),
        service: tally.service.clone(),
        slots: measured.iter().map(of_slot).collect::<Result<_, _>>()?,
        confidence: run.plan.compare.confidence,
    })
}

/// Others' statements for each transaction of ours: at a twentieth, what they read may be as many blocks as the tolerance of the model.
const OTHERS: f64 = 0.05;
