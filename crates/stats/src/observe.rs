//! What each target showed, merged over its slots.

use crate::connection_classes::connection_classes;
use crate::ratio::Ratio;
use crate::slow_class::slow_class;
use duel_model::{
    Id, Nanos, Profile, Scatter, Slot, Standstill, Tally, Target, TargetObservation, TargetStalls, WorkerAudit,
};

/// One observation for each target, in the order given, over all its slots (whatever their role: the caller selects).
///
/// Rates are sums over sums (ok ops per second of load, not the mean of slot rates), so that a long slot counts for
/// what it is. Figures per op are per *ok* op: what a failed op read or waited is part of the price of the ok ones,
/// except for phases and bodies, which only ok ops record. Whatever has nothing to divide by is `None`, never zero.
pub fn observe<'a>(slots: impl IntoIterator<Item = &'a Slot>, targets: &[Target]) -> Vec<TargetObservation> {
    let mut slots: Vec<&Slot> = slots.into_iter().collect();
    slots.sort_by_key(|slot| slot.index);
    targets
        .iter()
        .enumerate()
        .map(|(place, target)| {
            let own: Vec<&Slot> = slots.iter().copied().filter(|slot| slot.target == place).collect();
            observe_one(&own, target)
        })
        .collect()
}

fn observe_one(slots: &[&Slot], target: &Target) -> TargetObservation {
    let (mut tally, mut scatter) = (Tally::default(), Scatter::default());
    for slot in slots {
        tally.merge(&slot.tally);
    }
    for slot in slots.iter().filter(|_| !tally.counted.is_empty()) {
        // What did not occur in a slot is absent there, and was zero; what the target counts was not read there.
        let counted = |id: Id| {
            let known = slot.tally.counted.get(&id).copied();
            Some((id, if id.is_of_server() { known? } else { known.unwrap_or(0) }))
        };
        scatter.add(slot.tally.ok, &tally.counted.keys().copied().filter_map(counted).collect());
    }
    let elapsed_ns: u128 = slots.iter().map(|slot| u128::from(slot.elapsed_ns)).sum();
    TargetObservation {
        name: target.name.clone(),
        ok: tally.ok,
        failed: tally.failed_total(),
        rate_per_s: (elapsed_ns > 0).then(|| tally.ok as f64 * 1e9 / elapsed_ns as f64),
        service_mean_ns: tally.service.mean_ns(),
        phase_mean_ns: tally
            .phases
            .iter()
            // By as many as have a service time: those that were given up have one, and have phases.
            .filter_map(|(&phase, spent)| Some((phase, per(spent.sum_ns as f64, tally.service.count())?)))
            .collect(),
        phase_profile: tally.phases.iter().map(|(&phase, spent)| (phase, Profile::of(spent))).collect(),
        service_profile: Profile::of(&tally.service),
        body_bytes_per_op: tally.body_bytes_per_ok(),
        bytes_in_per_op: share(tally.bytes_in, tally.ok),
        bytes_out_per_op: share(tally.bytes_out, tally.ok),
        generator_work_ns_per_op: work_ns(slots).and_then(|ns| share(ns, tally.ok)),
        counted_per_op: tally.counted.iter().filter_map(|(&id, &n)| Some((id, share(n, tally.ok)?))).collect(),
        scatter,
        slow_class: slow_class(slots, tally.told_service()),
        stalls: stalls(slots),
        connection_classes: connection_classes(slots),
        reused_share: share(tally.reused, tally.started),
        resumed_share: share(tally.resumed, tally.connections),
        negotiated: slots.iter().rev().find_map(|slot| slot.negotiated.clone()),
    }
}

/// What all workers worked, unless they do the ops themselves: then it is the target's work as much as ours.
fn work_ns(slots: &[&Slot]) -> Option<Nanos> {
    let workers = || slots.iter().flat_map(|slot| &slot.audit.workers);
    let of_all: Option<Nanos> = workers().map(WorkerAudit::work_ns).sum();
    of_all.filter(|_| workers().next().is_some() && !workers().any(|worker| worker.works_itself))
}

/// Of the slots in which they were looked for.
fn stalls(slots: &[&Slot]) -> Option<TargetStalls> {
    let (mut all, mut watched, mut count) = (Standstill::default(), 0.0, 0);
    let [mut xx, mut xy, mut yy] = [0.0; 3];
    for slot in slots.iter().filter(|slot| !slot.is_spoilt()) {
        let Some(seen) = slot.target_stalls() else { continue };
        let (x, y) = (slot.elapsed_ns as f64, seen.total_ns as f64);
        all.merge(&seen);
        (watched, count) = (watched + x, count + 1);
        (xx, xy, yy) = (xx + x * x, xy + x * y, yy + y * y);
    }
    let share = Ratio::of_sums(count, [watched, all.total_ns as f64], [xx, xy, yy])?.interval(0.95)?;
    Some(TargetStalls {
        count: all.count,
        longest_ns: all.longest_ns,
        watched_ns: watched as Nanos,
        share: share.mid,
        share_half: share.half(),
    })
}

fn per(sum: f64, count: u64) -> Option<f64> {
    (count > 0).then(|| sum / count as f64)
}

/// `part / whole`, unknown when there is no whole.
pub(crate) fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn what_a_target_counts_is_not_zero_where_it_was_not_read() {
        let (ours, of_server) = (Id::new("retries"), Id::new("server-reads"));
        let slot = |index: u32, counted: &[(Id, u64)]| {
            fixture::slot(index, Tally { ok: 10, counted: counted.iter().copied().collect(), ..Tally::default() })
        };
        let slots = [slot(0, &[(ours, 3), (of_server, 4)]), slot(1, &[])];
        let seen = observe_one(
            &slots.iter().collect::<Vec<_>>(),
            &Target { name: "A".into(), address: "null:".into(), host: None },
        );
        assert_eq!(seen.scatter.counters.keys().copied().collect::<Vec<_>>(), [ours]);
        assert_eq!(seen.scatter.slots, 2);
    }

    #[test]
    fn our_work_is_known_where_each_worker_tells_and_none_does_the_ops_itself() {
        let worker = |cpu_ns: Option<u64>, works_itself: bool| WorkerAudit {
            cpu_ns,
            polling_ns: 300,
            works_itself,
            ..WorkerAudit::default()
        };
        let of = |workers: Vec<WorkerAudit>| {
            let mut slot = fixture::slot(0, Tally { ok: 10, ..Tally::default() });
            slot.audit.workers = workers;
            observe_one(&[&slot], &Target { name: "A".into(), address: "null:".into(), host: None })
                .generator_work_ns_per_op
        };
        assert_eq!(of(vec![worker(Some(1_300), false), worker(Some(800), false)]), Some(150.0));
        assert_eq!(of(vec![worker(Some(1_300), false), worker(None, false)]), None);
        assert_eq!(of(vec![worker(Some(1_300), true)]), None);
        assert_eq!(of(Vec::new()), None);
    }

    #[test]
    fn stalls_are_those_of_slots_in_which_they_were_looked_for() {
        let slot = |index: u32, stalled_ns: Option<u64>| {
            let mut slot = fixture::slot(index, Tally::default());
            slot.elapsed_ns = 1_000;
            // Of two workers, the one that saw less of it.
            slot.audit.workers = [0, 7]
                .map(|more_ns| duel_model::WorkerAudit {
                    target_stalls: stalled_ns.map(|ns| Standstill {
                        count: 1,
                        total_ns: ns + more_ns,
                        longest_ns: ns + more_ns,
                    }),
                    ..Default::default()
                })
                .into();
            slot
        };
        let of = |slots: &[Slot]| stalls(&slots.iter().collect::<Vec<_>>());
        let seen = of(&[slot(0, Some(100)), slot(1, Some(300)), slot(2, None), slot(3, Some(200))]).unwrap();
        assert_eq!((seen.count, seen.longest_ns, seen.watched_ns), (3, 300, 3_000));
        // By hand: residuals -100, 100, 0; the root of 2 * 3/2 hundreds over 3,000; t of two is 4.303.
        assert!((seen.share - 0.2).abs() < 1e-12 && (seen.share_half - 4.303 * 3f64.sqrt() / 30.0).abs() < 1e-3);
        assert_eq!((of(&[slot(0, None), slot(1, None)]), of(&[slot(0, Some(1))])), (None, None));
    }
}
