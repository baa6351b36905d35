//! Classes of ops: a share of them that takes far longer than all others.

use crate::ratio::Ratio;
use duel_model::{Distribution, MICROSECOND_NS, Nanos, Slot, SlowClass};

/// Windows in which ops are counted reach from a time to one and a half times that: narrower ones are mostly noise, wider ones
/// hold a class and its valley.
const WINDOW: f64 = 1.5;
/// Windows begin at so many places for each factor of [`WINDOW`].
const STEPS: usize = 8;
/// A valley is at most as dense as this share of the densest window on either side.
const VALLEY: f64 = 0.25;
/// How many standard errors of a Poisson count the densest window on either side lies above the valley: among the hundred
/// windows of a distribution that only falls, chance makes such a valley in less than one of a hundred.
const STANDS_OUT: f64 = 4.0;
/// Fewest ops of a class: fewer have no typical time.
const FEWEST: u64 = 30;
/// Fewest slots over which what a class adds can scatter.
const FEWEST_SLOTS: u32 = 3;
/// What is shorter is a matter of clocks and of caches of the generator.
const SHORTEST_NS: Nanos = MICROSECOND_NS;
/// 2^44 ns are five hours, longer than any op: `log(2^44 / 1000) / log(1.5) * 8` windows.
const MOST_STEPS: usize = 480;

/// The ops of these slots, all of one target, that form a slow class of their own; `None` where there is none.
///
/// On the logarithm of time there has to be a clear valley with ops on either side, so that the long tail of one class is none:
/// a log-normal, an exponential and a Pareto distribution have one peak, however far they reach. Of several valleys the one
/// that parts best counts (Otsu 1979). What the class adds to the mean has to be beyond its own scatter over slots.
pub(crate) fn slow_class(slots: &[&Slot], service: &Distribution) -> Option<SlowClass> {
    let from_ns = valley(service)?;
    let (slow, others) = parted(service, from_ns);
    let others_mean = others.mean_ns()?;
    // What each slot's slow ops take beyond the others', of as many ops as the slot had.
    let (mut x, mut y, mut xx, mut xy, mut yy, mut count) = (0.0, 0.0, 0.0, 0.0, 0.0, 0);
    for slot in slots.iter().filter(|slot| !slot.tally.service.is_empty()) {
        let (slow, _) = parted(&slot.tally.service, from_ns);
        let (ops, beyond) = (slot.tally.service.count() as f64, slow.sum_ns - slow.count as f64 * others_mean);
        count += 1;
        (x, y) = (x + ops, y + beyond);
        (xx, xy, yy) = (xx + ops * ops, xy + ops * beyond, yy + beyond * beyond);
    }
    let adds = Ratio::of_sums(count, [x, y], [xx, xy, yy]).filter(|_| count >= FEWEST_SLOTS)?.interval(0.95)?;
    (adds.low() > 0.0).then(|| SlowClass {
        ops: slow.count,
        of: slow.count + others.count,
        from_ns,
        slow_ns: slow.median_ns,
        others_ns: others.median_ns,
        adds_ns: adds.mid,
        adds_half_ns: adds.half(),
    })
}

/// Where the distribution parts into two classes, in ns: the middle of the valley between them.
fn valley(service: &Distribution) -> Option<Nanos> {
    let mut steps = vec![0_u64; MOST_STEPS];
    // What is shorter is left out rather than counted as if it took that long: it would make a peak that is none.
    for &(value, count) in service.buckets().iter().filter(|(value, _)| *value >= SHORTEST_NS) {
        steps[step(value)] += count;
    }
    let windows: Vec<u64> = steps.windows(STEPS).map(|window| window.iter().sum()).collect();
    // The densest window that lies wholly below, and wholly above, each of them.
    let below = running_max(windows.iter());
    let mut above = running_max(windows.iter().rev());
    above.reverse();
    // Where there are no ops at all, nothing stands out.
    let stands_out = |peak: u64, low: u64| {
        low as f64 <= VALLEY * peak as f64 && (peak - low) as f64 > STANDS_OUT * ((peak + low) as f64).sqrt()
    };
    let mut best: Option<(f64, Nanos)> = None;
    let is_valley = |at: usize| {
        let low = windows[at];
        let sides = (at.checked_sub(STEPS).map(|end| below[end]), above.get(at + STEPS));
        matches!(sides, (Some(below), Some(&above)) if stands_out(below, low) && stands_out(above, low))
    };
    let mut at = 0;
    while at < windows.len() {
        let first = at;
        while at < windows.len() && is_valley(at) {
            at += 1;
        }
        if at > first {
            // Ops are fewest in the deepest windows; of equal ones the middle is farthest from both classes.
            let lowest = windows[first..at].iter().min().copied().unwrap_or(0);
            let deepest: Vec<usize> = (first..at).filter(|at| windows[*at] == lowest).collect();
            let from_ns = begin_ns(deepest[deepest.len() / 2] + STEPS / 2);
            let parts = between_classes(service, from_ns);
            if parted(service, from_ns).0.count >= FEWEST && best.is_none_or(|(most, _)| parts > most) {
                best = Some((parts, from_ns));
            }
        }
        at += 1;
    }
    best.map(|(_, from_ns)| from_ns)
}

fn running_max<'a>(windows: impl Iterator<Item = &'a u64>) -> Vec<u64> {
    windows
        .scan(0, |most, window| {
            *most = (*most).max(*window);
            Some(*most)
        })
        .collect()
}

/// Otsu's criterion: the variance between both classes on the logarithm of time.
fn between_classes(service: &Distribution, from_ns: Nanos) -> f64 {
    let (mut counts, mut logs) = ([0.0; 2], [0.0; 2]);
    for &(value, count) in service.buckets() {
        let class = usize::from(value >= from_ns);
        counts[class] += count as f64;
        logs[class] += count as f64 * (value.max(SHORTEST_NS) as f64).ln();
    }
    let apart = logs[1] / counts[1] - logs[0] / counts[0];
    counts[0] * counts[1] * apart * apart
}

fn step(value_ns: Nanos) -> usize {
    let factor = value_ns.max(SHORTEST_NS) as f64 / SHORTEST_NS as f64;
    ((factor.ln() / WINDOW.ln() * STEPS as f64) as usize).min(MOST_STEPS - 1)
}

fn begin_ns(step: usize) -> Nanos {
    (SHORTEST_NS as f64 * WINDOW.powf(step as f64 / STEPS as f64)).round() as Nanos
}

/// Ops of one class.
struct Class {
    count: u64,
    sum_ns: f64,
    median_ns: Nanos,
}

impl Class {
    fn of(buckets: &[(Nanos, u64)]) -> Self {
        let count: u64 = buckets.iter().map(|(_, count)| count).sum();
        let mut left = count.div_ceil(2);
        let median = buckets.iter().find(|(_, count)| {
            let is_here = *count >= left;
            left = left.saturating_sub(*count);
            is_here
        });
        Self {
            count,
            sum_ns: buckets.iter().map(|&(value, count)| value as f64 * count as f64).sum(),
            median_ns: median.map_or(0, |(value, _)| *value),
        }
    }

    fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns / self.count as f64)
    }
}

/// The ops from this time on, and all others.
fn parted(service: &Distribution, from_ns: Nanos) -> (Class, Class) {
    let buckets = service.buckets();
    let (others, slow) = buckets.split_at(buckets.partition_point(|(value, _)| *value < from_ns));
    (Class::of(slow), Class::of(others))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use duel_model::Tally;
    use rand::{RngExt, SeedableRng};

    type Dice = rand_pcg::Pcg64;
    /// Draws a time of an op, in ms.
    type Draw = fn(&mut Dice) -> f64;

    fn slots(times_ns: &[Nanos], many: usize) -> Vec<Slot> {
        let slot = |(index, times): (usize, &[Nanos])| {
            let service = Distribution::from_values(times.iter().copied());
            fixture::slot(index as u32, Tally { service, ..Tally::default() })
        };
        times_ns.chunks(times_ns.len() / many).enumerate().map(slot).collect()
    }

    fn class_of(times_ns: &[Nanos], many: usize) -> Option<SlowClass> {
        let slots = slots(times_ns, many);
        slow_class(&slots.iter().collect::<Vec<_>>(), &Distribution::from_values(times_ns.iter().copied()))
    }

    fn normal(dice: &mut Dice) -> f64 {
        let (u, v): (f64, f64) = (1.0 - dice.random::<f64>(), dice.random());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    fn exponential(dice: &mut Dice) -> f64 {
        -(1.0 - dice.random::<f64>()).ln()
    }

    #[test]
    fn a_long_tail_is_no_class_of_its_own() {
        let shapes: [(&str, Draw); 8] = [
            ("narrow log-normal", |dice| (0.05 * normal(dice)).exp()),
            ("log-normal", |dice| (0.5 * normal(dice)).exp()),
            ("wide log-normal", |dice| (1.5 * normal(dice)).exp()),
            ("exponential", exponential),
            ("exponential behind a floor", |dice| 1.0 + 0.3 * exponential(dice)),
            ("Pareto", |dice| (1.0 - dice.random::<f64>()).powf(-1.0 / 1.5)),
            ("Pareto without a mean", |dice| (1.0 - dice.random::<f64>()).powf(-1.0)),
            ("Weibull with a heavy tail", |dice| exponential(dice).powf(2.0)),
        ];
        for (shape, draw) in shapes {
            for (seed, ops) in [(1, 300), (2, 3_000), (3, 30_000), (4, 3_000), (5, 30_000)] {
                let mut dice = Dice::seed_from_u64(seed);
                let times: Vec<Nanos> = (0..ops).map(|_| (1e6 * draw(&mut dice)) as Nanos).collect();
                assert_eq!(class_of(&times, 10), None, "{shape}, {ops} ops, seed {seed}");
            }
        }
    }

    #[test]
    fn a_share_of_slow_ops_is_found_with_what_it_adds() {
        for (seed, share, factor) in [(1, 0.01, 50.0), (2, 0.05, 8.0), (3, 0.3, 4.0), (4, 0.7, 10.0), (5, 0.02, 300.0)]
        {
            let mut dice = Dice::seed_from_u64(seed);
            let mut draw = || {
                let slow = if dice.random::<f64>() < share { factor } else { 1.0 };
                (1e6 * slow * (0.15 * normal(&mut dice)).exp()) as Nanos
            };
            let times: Vec<Nanos> = (0..8_000).map(|_| draw()).collect();
            let class = class_of(&times, 10).unwrap_or_else(|| panic!("{share} of {factor}"));
            let near = |is: f64, should: f64, within: f64| assert!((is / should - 1.0).abs() < within, "{class:?}");
            near(class.share(), share, 0.3);
            near(class.slow_ns as f64, 1e6 * factor, 0.1);
            near(class.others_ns as f64, 1e6, 0.1);
            let adds_ns = share * (factor - 1.0) * 1e6 * (0.15f64.powi(2) / 2.0).exp();
            assert!((class.adds_ns - adds_ns).abs() < 3.0 * class.adds_half_ns, "{class:?} instead of {adds_ns}");
            assert_eq!(class.of, 8_000);
        }
    }

    #[test]
    fn few_slow_ops_and_those_of_one_slot_alone_are_no_class() {
        let mixed = |slow: usize| -> Vec<Nanos> {
            (0..4_000).map(|op| if op < slow { 50_000_000 } else { 1_000_000 + op as Nanos }).collect()
        };
        assert_eq!(class_of(&mixed(29), 10), None, "too few");
        assert_eq!(class_of(&mixed(200), 10), None, "all of them in the first slot: that may have been chance");
        assert_eq!(class_of(&mixed(2_000), 2), None, "two slots");
        assert_eq!(class_of(&[0, 0, 1, 2, 3], 5), None);
    }
}
