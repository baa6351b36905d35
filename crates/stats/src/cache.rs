//! How the rate of a database depends on the size of its cache, from the counters of one short run.
//!
//! The parameters are few, and each is measured: blocks that an op reads because they are not in the cache, device I/Os for each of
//! them, how long an op waits for an I/O, and the rest of its time. What another size changes is the first alone. It follows from how
//! often each page is asked for, which is known, by the approximation of Che, Tung and Wang (2002) for a cache that drops what was not
//! used for longest: a page is in the cache while the time since it was last asked for is below a time T that all pages share, and
//! T is where the expected number of pages fills the cache. Fricker, Robert and Roberts (2012) show why that is so exact.
//! InnoDB lets a page in at three eighths from the end of its list, and PostgreSQL goes round with a hand: with uniform keys all
//! of these are the same, with skewed ones they keep somewhat more of what is hot. How much of the cache holds such pages is what
//! makes the misses of the run come out; so a bias of the approximation at the size of the run is taken out.
//!
//! How the wait for an I/O changes with fewer of them is not known from one run. Where the device does one after the other (a cap,
//! a spindle) a shorter queue makes it shorter, where it does all at once it stays. Both are calculated, the first by mean value
//! analysis of a closed network (Reiser and Lavenberg 1980), and an interval holds both.

use duel_model::{CacheBasis, CacheModel, CachePrediction, Distribution, Ranged};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Pages that are asked for equally often.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PageGroup {
    /// How many there are.
    pub pages: f64,
    /// Share of all that is asked for that goes to them together.
    pub share: f64,
}

/// What a target showed in one slot.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CacheSlot {
    /// Ops that ended well.
    pub ops: f64,
    /// How long it took, s.
    pub elapsed_s: f64,
    /// Blocks that were read because they were not in the cache.
    pub reads: f64,
    /// I/Os of the device.
    pub ios: f64,
    /// CPU time of the server and of the client where both share CPUs, s; `None`: that is not known.
    pub cpu_s: Option<f64>,
}

/// What is known of a target whose ops ask for one page each.
#[derive(Debug, Clone)]
pub struct CacheCase {
    /// Name of the target.
    pub target: String,
    /// Size of its cache, and of a page.
    pub cache_bytes: u64,
    /// Size of a page.
    pub page_bytes: u64,
    /// Sizes that are asked about.
    pub sizes_bytes: Vec<u64>,
    /// How often pages are asked for.
    pub pages: Vec<PageGroup>,
    /// Ops that are under way at a time.
    pub connections: u32,
    /// CPUs that server and client have; `None`: that is not known.
    pub cpus: Option<f64>,
    /// How long ops took, over all slots.
    pub service: Distribution,
    /// What was measured, in the order in which it was.
    pub slots: Vec<CacheSlot>,
    /// Confidence of the intervals.
    pub confidence: f64,
}

/// Ops that find their page in memory are told from others by how long they take. Below this share of them nobody knows which these
/// are: the fastest hundredth stands for them, as it does in the 99th percentile's stead.
const FEWEST_FOUND: f64 = 0.01;
/// More than one miss for each op: it misses in upper levels of the index, too. Background reads make some percent.
const MOST_READS: f64 = 1.05;
/// Fewer misses than in one of 200 ops: with 5 ms an I/O they take less than half of an op of 50 µs. What larger caches bring is not
/// more than that, and how long an I/O takes is lost in it.
const FEWEST_READS: f64 = 0.005;
/// From one part of the run to the other misses may change by so much, in log: what they do further is the cache still filling. At a
/// tenth, a prediction that rests on them is off by as much.
const STEADY: f64 = 0.1;
/// The share of the cache that the misses speak for. Below, the cache was not full, or held much else; above, pages are fewer or
/// hotter than is known: within this, sizes of tables and of the cache agree as far as both are known.
const HELD: [f64; 2] = [0.6, 1.25];
/// Fewer I/Os for each block read: the system's own cache answers the others, and its size decides, which is not asked about.
const FEWEST_IOS: f64 = 0.9;
/// From here on blocks take more than one I/O: as in `disk.metadata-misses`.
const MORE_IOS: f64 = 1.25;
/// Fewest slots that tell of scatter.
const FEWEST_SLOTS: usize = 3;

/// What is to be expected of a target with caches of other sizes.
pub fn cache_model(case: &CacheCase) -> CacheModel {
    let model = CacheModel {
        target: case.target.clone(),
        cache_bytes: Some(case.cache_bytes),
        basis: None,
        unavailable: None,
        predictions: Vec::new(),
    };
    match Fitted::to(case, &case.slots) {
        Ok(fitted) => CacheModel { basis: Some(fitted.basis), predictions: predictions(case, &fitted), ..model },
        Err(why) => CacheModel { unavailable: Some(why), ..model },
    }
}

/// Share of what is asked for that a cache of so many pages does not hold.
pub fn miss_share(pages: &[PageGroup], capacity: f64) -> f64 {
    let asked = || pages.iter().filter(|group| group.share > 0.0 && group.pages > 0.0);
    let total: f64 = asked().map(|group| group.share).sum();
    let held =
        |time: f64| asked().map(|group| -group.pages * (-group.share / group.pages * time).exp_m1()).sum::<f64>();
    if capacity >= asked().map(|group| group.pages).sum() {
        return 0.0;
    }
    // Not below zero, and no number that is none.
    if capacity.is_nan() || capacity <= 0.0 || total <= 0.0 {
        return 1.0;
    }
    let mut most = 1.0;
    while held(most) < capacity && most < f64::MAX / 4.0 {
        most *= 2.0;
    }
    let time = bisect(0.0, most, |time| held(time) < capacity);
    asked().map(|group| group.share * (-group.share / group.pages * time).exp()).sum::<f64>() / total
}

/// The parameters that some slots give.
struct Fitted {
    basis: CacheBasis,
    rate_per_s: f64,
    /// Time of the device for one I/O, if it does one after the other, ns.
    queued_ns: f64,
    connections: u32,
}

impl Fitted {
    fn to(case: &CacheCase, slots: &[CacheSlot]) -> Result<Self, String> {
        let sum = |of: fn(&CacheSlot) -> f64| slots.iter().map(of).sum::<f64>();
        let [ops, elapsed_s, reads, ios] = [sum(|s| s.ops), sum(|s| s.elapsed_s), sum(|s| s.reads), sum(|s| s.ios)];
        let connections = f64::from(case.connections.max(1));
        if ops <= 0.0 || elapsed_s <= 0.0 || case.page_bytes == 0 || case.cache_bytes == 0 {
            return Err("no transaction ended well".to_owned());
        }
        let reads_per_op = reads / ops;
        if reads_per_op > MOST_READS {
            return Err(format!(
                "each transaction reads {reads_per_op:.2} blocks: not even the upper levels of the index stay in the cache, and how often \
                 these are asked for is not known"
            ));
        }
        if reads_per_op < FEWEST_READS {
            return Err(format!(
                "of 1,000 transactions {:.1} read a block: all that is asked for is in the cache, so a larger one brings nothing, and what \
                 a block costs was not seen",
                1e3 * reads_per_op
            ));
        }
        let ios_per_read = ios / reads;
        if ios_per_read < FEWEST_IOS {
            return Err(format!(
                "for each block that the server reads its device does {ios_per_read:.2} I/Os: the system's page cache has the others, and \
                 its size decides, too (innodb_flush_method=O_DIRECT goes past it)"
            ));
        }
        let half = |slots: &[CacheSlot]| {
            let [reads, ops] = [slots.iter().map(|s| s.reads).sum::<f64>(), slots.iter().map(|s| s.ops).sum()];
            (ops > 0.0 && reads > 0.0).then(|| reads / ops)
        };
        let (first, second) = slots.split_at(slots.len() / 2);
        if let (Some(first), Some(second)) = (half(first), half(second))
            && (first / second).ln().abs() > STEADY
        {
            return Err(format!(
                "blocks read for each transaction went from {first:.3} to {second:.3} during the run: the cache is still filling; \
                 run it once more, or longer (-d), before this"
            ));
        }
        let all: f64 = case.pages.iter().map(|group| group.pages).sum();
        let capacity = bisect(0.0, all, |capacity| miss_share(&case.pages, capacity) > reads_per_op);
        let held_share = capacity * case.page_bytes as f64 / case.cache_bytes as f64;
        if !(HELD[0]..=HELD[1]).contains(&held_share) {
            return Err(format!(
                "{reads_per_op:.3} blocks read for each transaction would take a cache of {held_share:.2} times the size that it has: it was not full, \
                 much of it is kept free (SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_free'; innodb_lru_scan_depth), it holds other things, \
                 or the size that the server tells of its tables is old (ANALYZE TABLE)"
            ));
        }
        let rate_per_s = ops / elapsed_s;
        let whole_ns = connections * 1e9 / rate_per_s;
        let found = mean_of_fastest(&case.service, (1.0 - reads_per_op).max(FEWEST_FOUND)).unwrap_or(0.0);
        let rest_ns = found.min(whole_ns);
        let ios_per_op = reads_per_op * ios_per_read;
        let io_ns = (whole_ns - rest_ns) / ios_per_op;
        let longest_ns = 1e9 / rate_per_s;
        let queued = bisect(0.0, longest_ns, |busy_ns| in_turn(case.connections, rest_ns, busy_ns) > rate_per_s);
        let cpu_s: Option<f64> = slots.iter().map(|slot| slot.cpu_s).sum();
        let cpu_bound_per_s = case.cpus.zip(cpu_s).map(|(cpus, cpu_s)| cpus * ops / cpu_s).filter(|b| b.is_finite());
        Ok(Self {
            basis: CacheBasis { reads_per_op, ios_per_read, io_ns, rest_ns, held_share, cpu_bound_per_s },
            rate_per_s,
            queued_ns: queued / ios_per_op,
            connections: case.connections,
        })
    }

    /// Ops per second with so many blocks read for each and so many I/Os for each of these: where the device does one after the other,
    /// and where it does all at once.
    fn rates_per_s(&self, reads_per_op: f64, ios_per_read: f64) -> [f64; 2] {
        let ios = reads_per_op * ios_per_read;
        let queued = in_turn(self.connections, self.basis.rest_ns, ios * self.queued_ns);
        let at_once = f64::from(self.connections) * 1e9 / (self.basis.rest_ns + ios * self.basis.io_ns);
        let bound = self.basis.cpu_bound_per_s.unwrap_or(f64::INFINITY).max(self.rate_per_s);
        [queued.min(bound), at_once.min(bound)]
    }
}

/// One question: a size, or one I/O for each block.
#[derive(Clone, Copy)]
struct Asked {
    cache_bytes: Option<u64>,
}

impl Asked {
    fn reads_per_op(self, case: &CacheCase, basis: &CacheBasis) -> f64 {
        match self.cache_bytes {
            None => basis.reads_per_op,
            Some(bytes) => {
                // What else is in it, and what is kept free, does not grow with it: InnoDB keeps `innodb_lru_scan_depth` pages free,
                // 24 MiB of any pool. Of pools of 64, 96, 128 and 192 MiB the misses spoke for all but 24, 23, 22 and 19 MiB.
                let others_bytes = (1.0 - basis.held_share) * case.cache_bytes as f64;
                miss_share(&case.pages, (bytes as f64 - others_bytes) / case.page_bytes as f64)
            }
        }
    }

    fn rates_per_s(self, case: &CacheCase, fitted: &Fitted) -> [f64; 2] {
        let ios_per_read = if self.cache_bytes.is_some() { fitted.basis.ios_per_read } else { 1.0 };
        fitted.rates_per_s(self.reads_per_op(case, &fitted.basis), ios_per_read)
    }
}

fn predictions(case: &CacheCase, fitted: &Fitted) -> Vec<CachePrediction> {
    // Without each slot in turn.
    let without: Vec<Fitted> = match case.slots.len() {
        0..FEWEST_SLOTS => Vec::new(),
        many => (0..many)
            .filter_map(|left_out| {
                let mut slots = case.slots.clone();
                slots.remove(left_out);
                Fitted::to(case, &slots).ok()
            })
            .collect(),
    };
    let is_scatter_known = without.len() == case.slots.len() && !without.is_empty();
    let mut asked: Vec<Asked> = case.sizes_bytes.iter().map(|&bytes| Asked { cache_bytes: Some(bytes) }).collect();
    if fitted.basis.ios_per_read >= MORE_IOS {
        asked.push(Asked { cache_bytes: None });
    }
    let each = asked.into_iter().map(|asked| {
        let rates = asked.rates_per_s(case, fitted);
        let bound = fitted.basis.cpu_bound_per_s.map_or(f64::INFINITY, |bound| bound.max(fitted.rate_per_s));
        // Whatever limits beyond the I/Os was not seen at work: more than it says may be possible, since an op that reads nothing takes
        // less CPU; where it is not known, less.
        let is_bound = rates[0].max(rates[1]) >= bound;
        let is_unbounded = fitted.basis.cpu_bound_per_s.is_none()
            && asked.reads_per_op(case, &fitted.basis) * fitted.basis.io_ns < fitted.basis.rest_ns;
        let ranged = |unit: &dyn Fn(&Fitted) -> f64| {
            let value = rates.map(|rate| (rate / unit(fitted)).ln());
            let mid = f64::midpoint(value[0], value[1]);
            let half = |place: usize| {
                let logs = without.iter().map(|of| (asked.rates_per_s(case, of)[place] / unit(of)).ln());
                half_width(&logs.collect::<Vec<_>>(), case.confidence)
            };
            let halves = if is_scatter_known { half(0).zip(half(1)) } else { None };
            let ends = halves.map(|(first, second)| {
                [(value[0] - first).min(value[1] - second), (value[0] + first).max(value[1] + second)].map(f64::exp)
            });
            Ranged {
                value: mid.exp(),
                low: ends.map(|ends| ends[0]).filter(|_| !is_unbounded),
                high: ends.map(|ends| ends[1]).filter(|_| !is_bound),
            }
        };
        CachePrediction {
            cache_bytes: asked.cache_bytes,
            reads_per_op: asked.reads_per_op(case, &fitted.basis),
            rate_per_s: ranged(&|_| 1.0),
            ratio: ranged(&|of| of.rate_per_s),
        }
    });
    each.collect()
}

/// How far an interval reaches to either side, from the values without each of the slots (Tukey's jackknife).
fn half_width(values: &[f64], confidence: f64) -> Option<f64> {
    let many = values.len() as f64;
    let mean = values.iter().sum::<f64>() / many;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() * (many - 1.0) / many;
    let student = StudentsT::new(0.0, 1.0, many - 1.0).ok()?;
    let half = student.inverse_cdf(f64::midpoint(1.0, confidence)) * variance.sqrt();
    half.is_finite().then_some(half)
}

/// Ops per second of so many connections whose ops take a time of their own, and one that only one of them can have at a time.
fn in_turn(connections: u32, rest_ns: f64, busy_ns: f64) -> f64 {
    let (mut waiting, mut per_ns) = (0.0, 0.0);
    for many in 1..=connections.max(1) {
        let through_ns = busy_ns * (1.0 + waiting);
        per_ns = f64::from(many) / (rest_ns + through_ns);
        waiting = per_ns * through_ns;
    }
    per_ns * 1e9
}

/// The mean of this share of the values, the lowest.
fn mean_of_fastest(times: &Distribution, share: f64) -> Option<f64> {
    let wanted = share.clamp(0.0, 1.0) * times.count() as f64;
    let (mut taken, mut sum_ns) = (0.0, 0.0);
    for &(ns, count) in times.buckets() {
        let more = (count as f64).min(wanted - taken);
        sum_ns += more * ns as f64;
        taken += more;
        if taken >= wanted {
            break;
        }
    }
    (taken > 0.0).then(|| sum_ns / taken)
}

/// Where what holds at the low end ceases to.
fn bisect(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    // Each round halves what is left, and a double has 53 digits.
    for _ in 0..60 {
        let mid = f64::midpoint(low, high);
        if holds(mid) { low = mid } else { high = mid }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;
    use std::collections::{BTreeMap, HashMap};

    const PAGE: u64 = 16384;

    /// Pages asked for alike, and pages of which a fifth is asked for four times in five.
    fn uniform(pages: u32) -> Vec<PageGroup> {
        vec![PageGroup { pages: f64::from(pages), share: 1.0 }]
    }

    fn skewed(pages: u32) -> Vec<PageGroup> {
        let hot = f64::from(pages / 5);
        vec![PageGroup { pages: hot, share: 0.8 }, PageGroup { pages: f64::from(pages) - hot, share: 0.2 }]
    }

    fn draw(groups: &[PageGroup], rng: &mut Pcg64) -> u32 {
        let (mut place, mut first) = (rng.random::<f64>(), 0.0);
        for group in groups {
            if place < group.share {
                return (first + rng.random::<f64>() * group.pages) as u32;
            }
            (place, first) = (place - group.share, first + group.pages);
        }
        first as u32 - 1
    }

    /// A cache that drops what was not used for longest, page by page.
    #[derive(Default)]
    struct Lru {
        used: HashMap<u32, u64>,
        order: BTreeMap<u64, u32>,
        clock: u64,
    }

    impl Lru {
        fn misses(&mut self, page: u32, capacity: usize) -> bool {
            self.clock += 1;
            let before = self.used.insert(page, self.clock);
            if let Some(before) = before {
                self.order.remove(&before);
            }
            self.order.insert(self.clock, page);
            if self.order.len() > capacity
                && let Some((_, oldest)) = self.order.pop_first()
            {
                self.used.remove(&oldest);
            }
            before.is_none()
        }
    }

    /// A device that does one I/O after the other, or as many as come.
    #[derive(Clone, Copy, PartialEq)]
    enum Device {
        InTurn,
        AtOnce,
    }

    const CONNECTIONS: u32 = 8;
    const IO_S: f64 = 0.001;
    const REST_S: f64 = 0.0001;

    /// Ops of some connections in order of time, each for a page, through a cache before a device with two I/Os for each block.
    fn simulated(groups: &[PageGroup], capacity: usize, device: Device, seed: u64) -> (Vec<CacheSlot>, Distribution) {
        let mut rng = Pcg64::seed_from_u64(seed);
        let mut cache = Lru::default();
        for _ in 0..60_000 {
            cache.misses(draw(groups, &mut rng), capacity);
        }
        let mut ready_s = vec![0.0_f64; CONNECTIONS as usize];
        let (mut free_s, mut slots, mut times) = (0.0_f64, Vec::new(), Vec::new());
        let mut ended_s = 0.0;
        for _ in 0..10 {
            let (mut reads, began_s) = (0.0, ended_s);
            for _ in 0..3_000 {
                let connection = (0..ready_s.len()).min_by(|&a, &b| ready_s[a].total_cmp(&ready_s[b])).unwrap();
                let start_s = ready_s[connection];
                let mut now_s = start_s + REST_S * (0.5 + rng.random::<f64>());
                if cache.misses(draw(groups, &mut rng), capacity) {
                    reads += 1.0;
                    let io_s = 2.0 * IO_S * (0.9 + 0.2 * rng.random::<f64>());
                    now_s = io_s + if device == Device::InTurn { now_s.max(free_s) } else { now_s };
                    free_s = now_s;
                }
                times.push(((now_s - start_s) * 1e9) as u64);
                ready_s[connection] = now_s;
            }
            ended_s = ready_s.iter().copied().fold(f64::INFINITY, f64::min);
            let elapsed_s = ended_s - began_s;
            slots.push(CacheSlot { ops: 3_000.0, elapsed_s, reads, ios: 2.0 * reads, cpu_s: Some(3_000.0 * 1e-5) });
        }
        (slots, Distribution::from_values(times))
    }

    fn case(groups: &[PageGroup], pages: u64, sizes: &[u64], of: (Vec<CacheSlot>, Distribution)) -> CacheCase {
        CacheCase {
            target: "a".to_owned(),
            cache_bytes: pages * PAGE,
            page_bytes: PAGE,
            sizes_bytes: sizes.iter().map(|pages| pages * PAGE).collect(),
            pages: groups.to_vec(),
            connections: CONNECTIONS,
            cpus: Some(2.0),
            service: of.1,
            slots: of.0,
            confidence: 0.95,
        }
    }

    fn rate(slots: &[CacheSlot]) -> f64 {
        slots.iter().map(|slot| slot.ops).sum::<f64>() / slots.iter().map(|slot| slot.elapsed_s).sum::<f64>()
    }

    #[test]
    fn shares_of_misses_are_those_of_a_cache_that_is_simulated() {
        for groups in [uniform(4000), skewed(4000)] {
            for capacity in [200, 1000, 2500, 3900] {
                let (mut cache, mut rng, mut misses) = (Lru::default(), Pcg64::seed_from_u64(3), 0);
                for draws in 0..200_000 {
                    let missed = cache.misses(draw(&groups, &mut rng), capacity);
                    misses += u32::from(missed && draws >= 50_000);
                }
                let (seen, expected) = (f64::from(misses) / 150_000.0, miss_share(&groups, capacity as f64));
                assert!((seen - expected).abs() < 0.01, "{groups:?} {capacity}: {seen} {expected}");
            }
            assert_eq!(miss_share(&groups, 4000.0), 0.0);
            assert_eq!(miss_share(&groups, 0.0), 1.0);
        }
        assert!((miss_share(&uniform(1000), 250.0) - 0.75).abs() < 1e-9);
    }

    #[test]
    fn rates_with_other_sizes_are_those_that_are_simulated_with_them() {
        for groups in [uniform(4000), skewed(4000)] {
            for device in [Device::InTurn, Device::AtOnce] {
                let sizes = [400, 1600, 2400];
                let model = cache_model(&case(&groups, 800, &sizes, simulated(&groups, 800, device, 1)));
                let basis = model.basis.unwrap();
                assert!((basis.ios_per_read - 2.0).abs() < 1e-9 && (0.9..1.1).contains(&basis.held_share), "{basis:?}");
                assert!((basis.rest_ns / (REST_S * 1e9) - 1.0).abs() < 0.3, "{basis:?}");
                for (pages, prediction) in sizes.into_iter().zip(&model.predictions) {
                    let truth = rate(&simulated(&groups, pages as usize, device, 2).0);
                    let Ranged { value, low, high } = prediction.rate_per_s;
                    assert!((value / truth - 1.0).abs() < 0.15, "{pages}: {value} for {truth}");
                    let (low, high) = (low.unwrap(), high.unwrap_or(f64::INFINITY));
                    // Another run of it scatters as well.
                    assert!((low * 0.97..high * 1.03).contains(&truth), "{pages}: {low} to {high} for {truth}");
                }
            }
        }
    }

    #[test]
    fn blocks_that_would_take_one_io_each_are_predicted_where_they_take_more() {
        let groups = uniform(4000);
        let case = case(&groups, 800, &[], simulated(&groups, 800, Device::InTurn, 1));
        let model = cache_model(&case);
        let [only] = model.predictions.as_slice() else { panic!("{model:?}") };
        // All that takes time is the device, and it has half as much to do.
        assert!((only.ratio.value - 2.0).abs() < 0.1, "{only:?}");
        let mut once = case.clone();
        once.slots.iter_mut().for_each(|slot| slot.ios = slot.reads);
        assert_eq!(cache_model(&once).predictions, []);
    }

    #[test]
    fn what_the_model_does_not_describe_is_not_predicted() {
        let groups = uniform(4000);
        let good = case(&groups, 800, &[1600], simulated(&groups, 800, Device::InTurn, 1));
        let why = |change: &dyn Fn(&mut CacheCase)| {
            let mut case = good.clone();
            change(&mut case);
            let model = cache_model(&case);
            assert!(model.predictions.is_empty() && model.basis.is_none());
            model.unavailable.unwrap()
        };
        assert!(why(&|case| case.slots.iter_mut().for_each(|slot| slot.reads *= 2.0)).contains("upper levels"));
        assert!(why(&|case| case.slots.iter_mut().for_each(|slot| slot.reads = 0.0)).contains("in the cache"));
        assert!(why(&|case| case.slots.iter_mut().for_each(|slot| slot.ios /= 10.0)).contains("page cache"));
        assert!(why(&|case| case.slots[..5].iter_mut().for_each(|slot| slot.reads *= 1.2)).contains("still filling"));
        assert!(why(&|case| case.cache_bytes *= 3).contains("was not full"));
        assert!(why(&|case| case.slots.clear()).contains("no transaction"));
    }

    #[test]
    fn limits_that_were_not_seen_at_work_leave_an_end_open() {
        let groups = uniform(4000);
        let of = |cpus: Option<f64>, cpu_s: Option<f64>| {
            let mut case = case(&groups, 800, &[4800], simulated(&groups, 800, Device::InTurn, 1));
            case.cpus = cpus;
            case.slots.iter_mut().for_each(|slot| slot.cpu_s = cpu_s);
            cache_model(&case).predictions[0].rate_per_s
        };
        // All is in memory then. An op takes 2 ms of CPU: 1,000 each second on two.
        let bound = of(Some(2.0), Some(6.0));
        assert!((bound.value / 1000.0 - 1.0).abs() < 1e-6 && bound.high.is_none() && bound.low.is_some(), "{bound:?}");
        let unknown = of(None, None);
        assert!(unknown.low.is_none() && unknown.high.is_some(), "{unknown:?}");
        let few = case(&groups, 800, &[1600], simulated(&groups, 800, Device::InTurn, 1));
        let few = CacheCase { slots: few.slots[..2].to_vec(), ..few };
        assert_eq!(cache_model(&few).predictions[0].ratio.low, None, "two slots tell of no scatter");
    }
}
