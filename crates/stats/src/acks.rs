//! Targets whose ops mostly wait for an acknowledgement that is delayed.
//!
//! A server that sends a response in two writes, without TCP_NODELAY, holds the second one back until the first one is acknowledged,
//! which clients delay. Where that is most of what an op takes, it is most of what is compared, too, and two servers may seem alike
//! that are not.

use crate::side::{is_measured, percent};
use duel_model::{
    Distribution, Doubt, DoubtId, HeldBack, MILLISECOND_NS, Nanos, Run, Slot, Target, format_duration_ns, sanitize_line,
};

/// For how long an acknowledgement is delayed that nothing else carries: Linux waits for 40 ms (`TCP_DELACK_MIN`), from when a segment
/// came, a little before we read it; its timer and a busy machine add some.
const DELAYED_NS: std::ops::Range<Nanos> = 35 * MILLISECOND_NS..60 * MILLISECOND_NS;
/// Below this a response came in one piece, or nearly: no acknowledgement was waited for.
const AT_ONCE_NS: Nanos = 10 * MILLISECOND_NS;
/// Share of the ops that wait so long, and share of what an op takes that this is, from which on it is told.
const MOST: f64 = 0.5;
/// Largest response, with its head: ten segments (RFC 6928) need no acknowledgement before they are sent, however long the path is. A
/// larger one may take as long because it is large.
const AT_ONCE_BYTES: f64 = 14_600.0;
/// Share of the ops that may wait for another time. A response that is slow by itself takes longer and less long, too.
const OTHERS: f64 = 0.1;

/// Of each target whose ops seem to wait for that.
pub(crate) fn doubts(run: &Run) -> Vec<Doubt> {
    let plan = &run.plan;
    let Some(held_back) = plan.schema().held_back else { return Vec::new() };
    let is_varied = plan.factors.iter().any(|factor| factor.name() == held_back.at_once.name);
    if is_varied || plan.workload.setting(held_back.at_once) == "on" {
        return Vec::new();
    }
    let of_target = |(index, target): (usize, &Target)| {
        let slots = run.slots.iter().filter(|slot| slot.target == index && is_measured(slot));
        let waits = Waits::of(slots, held_back)?;
        let (name, op) = (sanitize_line(&target.name), plan.schema().op);
        let text = format!(
            "{} of {} to {name} wait 35 to 60 ms in \"{}\", which is {} of the {} that a {} takes: about as long as a client delays an \
             acknowledgement. A server that sends a response in two writes without TCP_NODELAY waits for it. --{} shows how fast it \
             is without",
            percent(waits.share),
            op.many,
            held_back.phase.name,
            format_duration_ns(waits.mean_ns),
            format_duration_ns(waits.op_ns),
            op.one,
            held_back.at_once.name,
        );
        Some(Doubt { id: DoubtId::DelayedAcks, target: Some(target.name.clone()), text })
    };
    plan.targets.iter().enumerate().filter_map(of_target).collect()
}

/// What ops wait for, where that seems to be acknowledgements.
#[derive(Debug, PartialEq)]
struct Waits {
    /// Of the ops.
    share: f64,
    /// For each op.
    mean_ns: f64,
    /// That an op takes in all.
    op_ns: f64,
}

impl Waits {
    fn of<'a>(slots: impl Iterator<Item = &'a Slot>, held_back: HeldBack) -> Option<Self> {
        let (mut phase, mut service, mut bytes, mut ok) = (Distribution::default(), Distribution::default(), 0, 0);
        for slot in slots {
            bytes += slot.tally.bytes_in;
            ok += slot.tally.ok;
            service.merge(&slot.tally.service);
            // A slot in which nothing ended well has none.
            slot.tally.phases.get(&held_back.phase.id()).iter().for_each(|spent| phase.merge(spent));
        }
        let (delayed, others) = shares(&phase)?;
        let (mean_ns, op_ns) = (phase.mean_ns()?, service.mean_ns()?);
        let is_small = bytes as f64 <= AT_ONCE_BYTES * ok as f64;
        let is_so = is_small && delayed >= MOST && others <= OTHERS && mean_ns >= MOST * op_ns;
        is_so.then_some(Self { share: delayed, mean_ns, op_ns })
    }
}

/// Shares of values that are as long as an acknowledgement is delayed, and of those that are neither so nor short.
fn shares(phase: &Distribution) -> Option<(f64, f64)> {
    let count = |within: &dyn Fn(Nanos) -> bool| {
        phase.buckets().iter().filter(|(value, _)| within(*value)).map(|(_, count)| *count).sum::<u64>() as f64
    };
    let all = phase.count() as f64;
    let delayed = count(&|value| DELAYED_NS.contains(&value));
    let short = count(&|value| value < AT_ONCE_NS);
    (all > 0.0).then(|| (delayed / all, (all - delayed - short) / all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_model::Tally;
    use duel_model::web::{self, phase};

    fn of(receive_ms: &[u64], service_ms: u64) -> Option<Waits> {
        of_bytes(receive_ms, service_ms, 1_000)
    }

    fn of_bytes(receive_ms: &[u64], service_ms: u64, bytes: u64) -> Option<Waits> {
        let took = |values: &[u64]| Distribution::from_values(values.iter().map(|ms| ms * MILLISECOND_NS));
        let tally = Tally {
            ok: receive_ms.len() as u64,
            bytes_in: bytes * receive_ms.len() as u64,
            service: took(&vec![service_ms; receive_ms.len()]),
            phases: [(phase::RECEIVE.id(), took(receive_ms))].into(),
            ..Tally::default()
        };
        let slot = crate::fixture::slot(0, tally);
        Waits::of([&slot].into_iter(), web::SCHEMA.held_back.unwrap())
    }

    #[test]
    fn what_takes_as_long_as_an_acknowledgement_is_delayed_is_told() {
        let told = of(&[[41; 95].as_slice(), &[0; 5]].concat(), 44).unwrap();
        assert!((told.share - 0.95).abs() < 1e-9 && (told.mean_ns / 39e6 - 1.0).abs() < 0.02, "{told:?}");
    }

    #[test]
    fn what_is_slow_by_itself_is_not() {
        let spread: Vec<u64> = (20..80).collect();
        assert_eq!(of(&spread, 60), None, "as many are longer and shorter");
        assert_eq!(of(&[[41; 40].as_slice(), &[0; 60]].concat(), 44), None, "most do not wait");
        assert_eq!(of(&[41; 100], 200), None, "most of the time is something else");
        assert_eq!(of_bytes(&[41; 100], 44, 500_000), None, "so much takes as long at 100 Mbit/s");
        assert_eq!(of(&[], 0), None);
    }
}
