//! What each target showed, merged over its slots.

use crate::slow_class::slow_class;
use duel_model::{Id, Profile, Scatter, Slot, Tally, Target, TargetObservation};

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
        counted_per_op: tally.counted.iter().filter_map(|(&id, &n)| Some((id, share(n, tally.ok)?))).collect(),
        scatter,
        slow_class: slow_class(slots, &tally.service),
        reused_share: share(tally.reused, tally.started),
        resumed_share: share(tally.resumed, tally.connections),
        negotiated: slots.iter().rev().find_map(|slot| slot.negotiated.clone()),
    }
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
}
