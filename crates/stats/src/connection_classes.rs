//! Classes of connections: some that take longer than all others, whatever goes over them.

use crate::estimate::Estimate;
use crate::ratio::Ratio;
use duel_model::{ConnectionClasses, ConnectionTimes, Slot};

/// Fewest connections of a slot: of three, one parts from the others by chance in one slot of three, which no run has enough slots for.
const FEWEST: usize = 4;
/// Chance below which connections that are alike are said to differ, over all slots of a target.
const LEVEL: f64 = 0.005;

/// Whether the connections of these slots, all of one target, are alike; `None` where they were not told apart.
///
/// In each slot the connections are parted where the means of one half of their ops leave the widest gap. Then the other half is asked: do
/// all of the upper ones lie above all of the lower ones there, too? If the connections are alike, its order is as good as any other,
/// and so it does with a chance of 1 in the number of ways to choose the upper ones. That holds whatever the distribution of times is and
/// however it changes within the slot: nothing but the order is looked at, and both halves of all connections take turns. It holds only
/// where nothing else keeps connections in an order: with one op at a time, in an order that is drawn anew. Under load alike connections may
/// keep their places in a queue for a slot, and seem to differ. Slots are
/// independent, for each has connections of its own, or times of its own. How many of them part is held against how many would by chance.
pub(crate) fn connection_classes(slots: &[&Slot]) -> Option<ConnectionClasses> {
    let slots: Vec<Vec<ConnectionTimes>> =
        slots.iter().filter(|slot| !slot.is_spoilt()).map(|slot| told_apart(slot)).collect();
    let slots: Vec<_> = slots.into_iter().filter(|connections| connections.len() >= FEWEST).collect();
    let parted: Vec<Parted> = slots.iter().map(|connections| Parted::of(connections)).collect();
    let all: Vec<&ConnectionTimes> = slots.iter().flatten().collect();
    if all.is_empty() {
        return None;
    }
    let chance = chance_of_as_many(&parted);
    let alike = ConnectionClasses {
        of: all.len() as u64,
        slow: 0,
        slow_ns: 0.0,
        others_ns: median(all.iter().map(|connection| mean_ns(connection)))?,
        chance,
        connects_longer_ns: None,
        worth_log: 0.0,
        worth_log_half: Some(0.0),
    };
    if chance > LEVEL {
        return Some(alike);
    }
    let holding = || parted.iter().filter(|parted| parted.holds);
    let upper_ns = median(holding().flat_map(|parted| parted.upper_ns.iter().copied()))?;
    let lower_ns = median(holding().flat_map(|parted| parted.lower_ns.iter().copied()))?;
    // In the middle of both, as times are held against each other.
    let from_ns = (upper_ns * lower_ns).sqrt();
    let (slow, others): (Vec<&ConnectionTimes>, Vec<_>) =
        all.into_iter().partition(|connection| mean_ns(connection) > from_ns);
    let of_class = |class: &[&ConnectionTimes]| median(class.iter().map(|connection| mean_ns(connection)));
    let (slow_ns, others_ns) = (of_class(&slow)?, of_class(&others)?);
    let connects = |class: &[&ConnectionTimes]| {
        median(class.iter().filter_map(|connection| connection.connect_ns).map(|ns| ns as f64))
    };
    let worth = slots.iter().map(|connections| worth_log(connections, from_ns, others_ns));
    let (worth_log, worth_log_half) = mean_and_half(worth);
    Some(ConnectionClasses {
        slow: slow.len() as u64,
        slow_ns,
        others_ns,
        connects_longer_ns: connects(&slow).zip(connects(&others)).map(|(slow, others)| slow - others),
        worth_log,
        worth_log_half,
        ..alike
    })
}

/// The connections of a slot that have ops in both halves.
fn told_apart(slot: &Slot) -> Vec<ConnectionTimes> {
    let all = slot.audit.workers.iter().flat_map(|worker| &worker.connections);
    all.filter(|connection| !connection.is_several && connection.ops.iter().all(|ops| *ops > 0)).copied().collect()
}

fn mean_ns(connection: &ConnectionTimes) -> f64 {
    let [ops, sum_ns] = [connection.ops, connection.sum_ns].map(|halves| halves.iter().sum::<u64>() as f64);
    sum_ns / ops.max(1.0)
}

/// How the connections of a slot part.
struct Parted {
    /// The half that was not asked where to part them parts them there, too.
    holds: bool,
    /// The chance of that where all are alike.
    by_chance: f64,
    /// Means of the upper ones, and of the lower ones.
    upper_ns: Vec<f64>,
    lower_ns: Vec<f64>,
}

impl Parted {
    fn of(connections: &[ConnectionTimes]) -> Self {
        let half = |connection: &ConnectionTimes, half: usize| connection.mean_ns(half).unwrap_or(0.0).max(1.0);
        let mut sorted: Vec<&ConnectionTimes> = connections.iter().collect();
        sorted.sort_by(|a, b| half(a, 0).total_cmp(&half(b, 0)));
        let gap = |place: &usize| half(sorted[*place], 0) / half(sorted[*place - 1], 0);
        let place = (1..sorted.len()).max_by(|a, b| gap(a).total_cmp(&gap(b))).unwrap_or(1);
        let (lower, upper) = sorted.split_at(place);
        let highest = lower.iter().map(|connection| half(connection, 1)).fold(0.0, f64::max);
        let lowest = upper.iter().map(|connection| half(connection, 1)).fold(f64::INFINITY, f64::min);
        let means = |class: &[&ConnectionTimes]| class.iter().map(|connection| mean_ns(connection)).collect();
        Self {
            holds: lowest > highest,
            by_chance: 1.0 / ways(sorted.len(), place),
            upper_ns: means(upper),
            lower_ns: means(lower),
        }
    }
}

/// In how many ways so many of all can be chosen.
fn ways(all: usize, chosen: usize) -> f64 {
    (0..chosen).map(|place| (all - place) as f64 / (place + 1) as f64).product()
}

/// The chance that at least as many slots part as do, where all connections are alike: each slot has a chance of its own.
fn chance_of_as_many(parted: &[Parted]) -> f64 {
    let seen = parted.iter().filter(|parted| parted.holds).count();
    // The chance of each number of slots, one slot added after the other.
    let mut chances = vec![1.0];
    for Parted { by_chance, .. } in parted {
        let mut next = vec![0.0; chances.len() + 1];
        for (count, chance) in chances.iter().enumerate() {
            next[count] += chance * (1.0 - by_chance);
            next[count + 1] += chance * by_chance;
        }
        chances = next;
    }
    chances[seen..].iter().sum::<f64>().min(1.0)
}

/// Log of how many times as many ops a slot would have if its slow connections took as long as the others: each is busy all the time,
/// so the longer one takes the fewer it has.
fn worth_log(connections: &[ConnectionTimes], from_ns: f64, others_ns: f64) -> f64 {
    let of_one = |connection: &ConnectionTimes| match mean_ns(connection) {
        ns if ns > from_ns => others_ns / ns,
        _ => 1.0,
    };
    let done: f64 = connections.iter().map(of_one).sum();
    (connections.len() as f64 / done).ln()
}

/// The mean, and the half width of its 95 % interval.
fn mean_and_half(values: impl Iterator<Item = f64>) -> (f64, Option<f64>) {
    let values: Vec<f64> = values.collect();
    let (count, sum) = (values.len() as f64, values.iter().sum::<f64>());
    let squares = values.iter().map(|value| value * value).sum();
    let ratio = Ratio::of_sums(values.len() as u32, [count, sum], [count, sum, squares]);
    let half = ratio.and_then(|ratio| ratio.interval(0.95)).map(Estimate::half);
    (sum / count.max(1.0), half)
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len() % 2 == 1 { upper } else { f64::midpoint(values[middle - 1], upper) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use duel_model::{Tally, WorkerAudit};
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    /// Slots of so many connections, whose ops take what `time_ns` says of slot, connection and op.
    fn slots(count: u32, lanes: usize, ops: u64, mut time_ns: impl FnMut(u32, usize, u64) -> f64) -> Vec<Slot> {
        let mut of_slot = |index: u32| {
            let mut connections = vec![ConnectionTimes::default(); lanes];
            for op in 0..ops {
                for (lane, connection) in connections.iter_mut().enumerate() {
                    connection.took(time_ns(index, lane, op) as u64);
                }
            }
            let mut slot = fixture::slot(index, Tally { ok: ops * lanes as u64, ..Tally::default() });
            slot.audit.workers = vec![WorkerAudit { connections, ..WorkerAudit::default() }];
            slot
        };
        (0..count).map(&mut of_slot).collect()
    }

    fn classes(slots: &[Slot]) -> Option<ConnectionClasses> {
        connection_classes(&slots.iter().collect::<Vec<_>>())
    }

    /// Times with a long tail.
    fn scattered(random: &mut Pcg64Mcg) -> f64 {
        1e6 * (1.0 / (1.0 - random.random::<f64>())).powf(0.4)
    }

    #[test]
    fn connections_that_lead_to_a_slow_server_are_found_with_their_number_and_height() {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        // Every third one, and in each slot others.
        let slow = |slot: u32, lane: usize| (slot as usize + lane).is_multiple_of(3);
        let seen = classes(&slots(16, 8, 6, |slot, lane, _| {
            scattered(&mut random) + if slow(slot, lane) { 50e6 } else { 0.0 }
        }))
        .unwrap();
        let (of, expected) = (16 * 8, (0..16).flat_map(|slot| (0..8).map(move |lane| slow(slot, lane))));
        assert_eq!((seen.of, seen.slow), (of, expected.filter(|slow| *slow).count() as u64), "{seen:?}");
        assert!(seen.chance < 1e-6 && (50e6..56e6).contains(&seen.slow_ns) && seen.others_ns < 4e6, "{seen:?}");
        // A third of the connections does next to nothing: what is left of the rate is two thirds.
        assert!((seen.worth_log - 1.5f64.ln()).abs() < 0.1 && seen.worth_log_half.unwrap() < 0.1, "{seen:?}");
    }

    #[test]
    fn connections_that_are_alike_part_by_chance_as_seldom_as_is_said() {
        const RUNS: usize = 4_000;
        // Of a slot and an op.
        type Time = fn(&mut Pcg64Mcg, u32, u64) -> f64;
        let kinds: [(&str, Time); 3] = [
            ("a long tail", |random, _, _| scattered(random)),
            // Some requests are slow, whatever connection they go over.
            ("a share of slow requests", |random, _, _| {
                if random.random::<f64>() < 0.2 { 50e6 } else { 1e6 + random.random::<f64>() }
            }),
            // Each slot is another time, and each round within it.
            ("drift", |random, slot, op| {
                1e6 * f64::from(slot + 1) * (op + 1) as f64 * (1.0 + 0.01 * random.random::<f64>())
            }),
        ];
        for (name, time_ns) in kinds {
            let mut random = Pcg64Mcg::seed_from_u64(7);
            let is_found = |_: &usize| {
                let slots = slots(10, 6, 4, |slot, _, op| time_ns(&mut random, slot, op));
                classes(&slots).unwrap().slow > 0
            };
            let found = (0..RUNS).filter(is_found).count();
            // 20 are expected at most; more than 36 would be three and a half standard errors above.
            assert!(found as f64 <= LEVEL * RUNS as f64 + 16.0, "{name}: {found} of {RUNS}");
        }
    }

    #[test]
    fn what_was_not_told_apart_is_not_alike() {
        let few = slots(16, 3, 6, |_, lane, _| if lane == 0 { 5e7 } else { 1e6 });
        assert_eq!(classes(&few), None);
        let one_op_each = slots(16, 8, 1, |_, _, _| 1e6);
        assert_eq!(classes(&one_op_each), None);
        let mut lost = slots(16, 8, 6, |_, _, _| 1e6);
        lost.iter_mut().flat_map(|slot| &mut slot.audit.workers[0].connections).for_each(|seen| seen.is_several = true);
        assert_eq!(classes(&lost), None);
        let mut random = Pcg64Mcg::seed_from_u64(3);
        let alike = classes(&slots(16, 8, 6, |_, _, _| scattered(&mut random))).unwrap();
        assert_eq!((alike.of, alike.slow, alike.worth_log), (128, 0, 0.0));
    }

    #[test]
    fn how_much_longer_connecting_takes_is_told() {
        let mut slots = slots(8, 8, 6, |_, lane, _| if lane < 2 { 21e6 } else { 1e6 });
        for slot in &mut slots {
            for (lane, seen) in slot.audit.workers[0].connections.iter_mut().enumerate() {
                seen.connect_ns = Some(if lane < 2 { 20_500_000 } else { 500_000 });
            }
        }
        assert_eq!(classes(&slots).unwrap().connects_longer_ns, Some(20e6));
    }
}
