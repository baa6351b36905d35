//! A case viewed for one pair that differs: who is slow, by how much, and what the probes did to it.

use crate::case::Case;
use crate::cause::Standing;
use crate::gone::Gone;
use crate::path::Path;
use crate::probes::{AGAIN, ALONE, CLOSED, HOSTS, Kind, LENS, LONGER, Mode, is_https};
use crate::repeat;
use duel_model::web::phase;
use duel_model::{
    Call, DoubtId, Evidence, Facts, HostDemand, LensReading, Metric, PairVerdict, Phase, Plan, Probe,
    TargetObservation, Variation, sanitize_line, web,
};
use duel_stats::Estimate;

/// The gap between the baseline and one target.
pub(crate) struct Gap<'a> {
    pub(crate) case: Case<'a>,
    /// Index of the slow side, where causes are looked for. It is the baseline when the target is faster.
    pub(crate) slow: usize,
    /// Index of the fast side.
    pub(crate) fast: usize,
    /// What the comparison showed.
    pub(crate) comparison: View<'a>,
    /// How the gap is probed.
    pub(crate) mode: Mode,
    /// What flips are held against.
    pub(crate) reference: Reference<'a>,
}

/// What flips are held against.
#[derive(Clone)]
pub(crate) enum Reference<'a> {
    Known(View<'a>),
    /// This probe will tell.
    Wanted(Probe),
    /// There is none, because of this.
    Missing(String),
}

/// What one experiment showed of the pair, always as slow side against fast side.
#[derive(Clone)]
pub(crate) struct View<'a> {
    /// Id of the probe, or `comparison`.
    pub(crate) id: &'a str,
    /// What the sides are compared by; always the rate in probes.
    pub(crate) metric: Metric,
    /// What the probe changed; `None`: it is the comparison itself.
    pub(crate) variation: Option<Variation>,
    /// Log of how many times slower the slow side is.
    pub(crate) log: Estimate,
    /// The same as ratio, and its interval as it was reported.
    pub(crate) ratio: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) confidence: f64,
    pub(crate) slow: &'a TargetObservation,
    pub(crate) fast: &'a TargetObservation,
    /// Connections whose waiting adds up; `None` in an open loop, where they are idle in between.
    connections: Option<u32>,
}

/// What is known of a probe.
pub(crate) enum Look<'a> {
    NotAsked(Probe),
    /// Evidence that is missing, and why; never to be read as "no difference".
    Missing(String),
    Shown(View<'a>),
}

impl<'a> Look<'a> {
    pub(crate) fn shown(self) -> Option<View<'a>> {
        match self {
            Self::Shown(view) => Some(view),
            Self::NotAsked(_) | Self::Missing(_) => None,
        }
    }
}

/// What is known of what the machines do.
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and it is taken apart at once")]
pub(crate) enum DemandLook<'a> {
    NotAsked(Probe),
    /// Evidence that is missing, and why.
    Missing(String),
    Shown(Demands<'a>),
}

/// Where evidence comes from that the machines tell.
pub(crate) const ON_HOST: &str = "hosts";

/// What is known of a server's libcrypto.
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and it is taken apart at once")]
pub(crate) enum LensLook<'a> {
    NotAsked(Probe),
    /// Evidence that is missing, and why.
    Missing(String),
    Shown(&'a LensReading),
}

/// What the machines of both sides did while their target was under load, and the other was not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Demands<'a> {
    pub(crate) slow: &'a HostDemand,
    /// `None` where only the slow side's machine is read.
    pub(crate) fast: Option<&'a HostDemand>,
}

/// What is known of a flip: a probe held against the reference.
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and it is taken apart at once")]
pub(crate) enum FlipLook<'a> {
    NotAsked(Probe),
    Missing(String),
    Shown(Box<Flip<'a>>),
}

/// What a flip did to the gap.
///
/// With `r` the ratio at the reference, `r'` under the flip, and `k` the fast side's time per op under the flip over
/// that at the reference: taking from the slow side alone what the flip took from the difference leaves the ratio
/// `1 + k (r' - 1)`. A flip that makes both sides dearer (k > 1: closing connections everywhere, say) brings any two
/// times closer to each other in ratio, whatever the cause; the plain `r'` would then accuse the innocent. Where the
/// flip makes both cheaper, the plain `r'` is the stricter one. The stricter of the two counts.
pub(crate) struct Flip<'a> {
    pub(crate) kind: Kind,
    pub(crate) view: View<'a>,
    /// How much of the gap goes away.
    pub(crate) gone: Gone,
    /// The difference of the differences in log: ln(r) - ln(left).
    pub(crate) moved_log: Estimate,
    /// What goes away of the difference in time per op, in ns.
    pub(crate) moved_ns: f64,
    /// The fast side's time per op under the flip over that at the reference.
    dearer: f64,
    /// This probe, or that of its reference, was made once more.
    is_second_look: bool,
    /// The gap before it is known so widely that the share of the time comes from the ends of the intervals.
    is_wide: bool,
}

impl<'a> Gap<'a> {
    /// `None` where the pair does not differ beyond doubt.
    pub(crate) fn open(case: Case<'a>, index: usize, pair: &'a PairVerdict) -> Option<Self> {
        let (slow, fast) = match pair.call {
            Call::Slower => (index, 0),
            Call::Faster => (0, index),
            Call::Equivalent | Call::Unknown => return None,
        };
        let connections = (!case.is_open_loop()).then_some(case.plan.ops_at_a_time());
        let seen = |index: usize| case.comparison.get(index);
        let comparison = View::new("comparison", None, pair, slow == 0, seen(slow)?, seen(fast)?, connections)?;
        let mut gap = Self {
            case,
            slow,
            fast,
            comparison,
            mode: Mode::Alone,
            reference: Reference::Missing("the comparison shows no gap".to_owned()),
        };
        (gap.mode, gap.reference) = gap.find_reference();
        Some(gap)
    }

    /// Over one connection a gap shows without queueing, and probes are cheap. It is the reference if at least half of
    /// the log of the gap shows there; else the gap is one of concurrency, and the comparison itself is.
    fn find_reference(&self) -> (Mode, Reference<'a>) {
        let open_loop = self.case.is_open_loop();
        if !open_loop && self.case.plan.lanes() == 1 {
            return (Mode::Alone, self.reference_under_load());
        }
        match self.look_alone() {
            Look::NotAsked(probe) => return (Mode::Alone, Reference::Wanted(probe)),
            Look::Shown(view) if view.log.low() > 0.0 && view.log.mid >= 0.5 * self.comparison.log.mid => {
                return (Mode::Alone, Reference::Known(view));
            }
            Look::Shown(_) | Look::Missing(_) => {}
        }
        (Mode::Loaded, self.reference_under_load())
    }

    /// What the pair showed over one connection: where that was looked at once more, the longer one counts. Flips that were made in between are
    /// held against it, so that it has to be what it was.
    fn look_alone(&self) -> Look<'a> {
        let first = self.look(ALONE);
        let longer = ALONE.longer().filter(|longer| self.case.outcome(&longer.id(Mode::Alone)).is_some());
        match (&first, longer.map(|longer| self.look(longer))) {
            (Look::Shown(then), Some(Look::Shown(now)))
                if (then.log.low()..=then.log.high()).contains(&now.log.mid) =>
            {
                Look::Shown(now)
            }
            _ => first,
        }
    }

    /// What flips with the plan's connections are held against, whether or not the gap shows over one connection.
    pub(crate) fn reference_under_load(&self) -> Reference<'a> {
        // Probes run in a closed loop and are judged by rate: response times are no reference for them.
        let by_rate = match (self.case.is_open_loop(), self.comparison.metric) {
            (true, _) => CLOSED,
            (false, Metric::Rate) => return self.comparison_as_reference(),
            (false, Metric::ResponseP50 | Metric::ResponseP99) => AGAIN,
        };
        match self.look(by_rate) {
            Look::NotAsked(probe) => Reference::Wanted(probe),
            Look::Shown(view) if view.log.low() <= 0.0 && by_rate == CLOSED => {
                Reference::Missing("the gap does not show in a closed loop".to_owned())
            }
            // The rate may differ by something else, and by much less.
            Look::Shown(view) if by_rate == AGAIN && !self.is_seen_in(&view) => Reference::Missing(format!(
                "the gap of the medians does not show in the rate: {}: {}",
                AGAIN.phrase(),
                self.tell(&view)
            )),
            Look::Shown(view) => Reference::Known(view),
            Look::Missing(why) => Reference::Missing(why),
        }
    }

    /// Whether the comparison's gap, by whatever it was called, is that of this probe's rates: most of it is there, and all of it may be.
    fn is_seen_in(&self, now: &View<'a>) -> bool {
        let then_log = self.comparison.log.mid;
        now.log.low() > 0.0 && now.log.mid >= 0.5 * then_log && now.log.high() >= Flip::EXPLAINS * then_log
    }

    /// Leaves open what is judged by how much longer ops take in the mean, where the gap is one of the medians: what comes seldom and takes long
    /// is in the one and not in the other.
    pub(crate) fn needs_gap_of_means(&self) -> Result<(), Standing> {
        if self.by_metric(&self.comparison).is_empty() {
            return Ok(());
        }
        let text = "the medians differ, and this is judged by means".to_owned();
        Err(Standing::Undecided(self.evidence(&self.comparison, text)))
    }

    /// The comparison, if the gap is still what it was then. It may be old, and in between a cache may have become warm, or
    /// somebody else's load have ended: whatever a flip changes would seem to have taken the gap away.
    ///
    /// The comparison has more slots than a probe, so it stays the reference where both agree within the probe's interval.
    fn comparison_as_reference(&self) -> Reference<'a> {
        let then = &self.comparison;
        if let Some(why) = self.other_requests(then.slow, then.fast) {
            return Reference::Missing(why);
        }
        match self.look(AGAIN) {
            Look::Shown(now) if now.log.low() <= 0.0 || now.log.high() < Flip::EXPLAINS * then.log.mid => {
                Reference::Missing(format!("{}: {} instead of {:.2}x", AGAIN.phrase(), self.tell(&now), then.ratio))
            }
            Look::Shown(now) if !(now.log.low()..=now.log.high()).contains(&then.log.mid) => Reference::Known(now),
            Look::Shown(_) | Look::NotAsked(_) | Look::Missing(_) => Reference::Known(then.clone()),
        }
    }

    /// What would tell whether the gap is still there, before somebody is accused of it; `None` where the reference was
    /// measured by a probe. `under_load`: what rests on [`Self::reference_under_load`].
    pub(crate) fn control(&self, under_load: bool) -> Option<Look<'a>> {
        let reference = if under_load { self.reference_under_load() } else { self.reference.clone() };
        let is_comparison = matches!(reference, Reference::Known(view) if view.id == self.comparison.id);
        is_comparison.then(|| self.look(AGAIN))
    }

    pub(crate) fn known_reference(&self) -> Option<&View<'a>> {
        match &self.reference {
            Reference::Known(view) => Some(view),
            Reference::Wanted(_) | Reference::Missing(_) => None,
        }
    }

    /// What this probe showed of the pair.
    pub(crate) fn look(&self, kind: Kind) -> Look<'a> {
        self.look_at(kind, true)
    }

    /// The same where it does not matter whether all requests of a list were sent, and as often as each other.
    pub(crate) fn look_whatever_is_asked(&self, kind: Kind) -> Look<'a> {
        self.look_at(kind, false)
    }

    fn look_at(&self, kind: Kind, asks_for_the_same: bool) -> Look<'a> {
        let id = kind.id(self.mode);
        let Some(outcome) = self.case.outcome(&id) else {
            return match kind.possible(&self.case) {
                Ok(()) => Look::NotAsked(kind.probe(&self.case, self.mode)),
                Err(why) => Look::Missing(format!("{id} cannot be asked: {why}")),
            };
        };
        let missing = |why: &str| Look::Missing(format!("{id} could not be used: {}", sanitize_line(why)));
        if let Some(why) = &outcome.unavailable {
            return missing(why.told());
        }
        let (Some(slow), Some(fast)) = (outcome.targets.get(self.slow), outcome.targets.get(self.fast)) else {
            return missing("a target was not measured");
        };
        for (index, seen) in [(self.slow, slow), (self.fast, fast)] {
            let name = self.name(index);
            if seen.ok == 0 {
                return missing(&format!("no {} to {name} succeeded", self.case.plan.schema().op.one));
            }
            // Ops that fail take other time than ops that do not: beyond a few, the rate of the rest is another rate.
            // A datagram that gets lost takes no time from those that come: that is what is asked for, and it is counted.
            let lost = Path::of(seen).missing().map_or(0.0, |(lost, _)| lost);
            let failed = (seen.failed as f64 - lost).max(0.0) / (seen.ok + seen.failed) as f64;
            if failed > 0.1 {
                let ops = self.case.plan.schema().op.many;
                return missing(&format!("{:.0} % of the {ops} to {name} failed", 100.0 * failed));
            }
            if let Err(instead) = kind.took_effect(&outcome.probe.variation, seen) {
                return missing(&format!("{name} {instead}"));
            }
            // Another server behind the same name, perhaps: what differs from the comparison is then not the variation.
            let now = seen.negotiated.as_ref().and_then(|now| now.text(web::PEER));
            let chosen = outcome.probe.variation.peers.get(&index).map(ToString::to_string);
            let expected = chosen.as_deref().or_else(|| self.text(index, web::PEER));
            if let (Some(before), Some(now)) = (expected, now)
                && before != now
            {
                let whom = if chosen.is_some() { "and was to reach it" } else { "the comparison" };
                return missing(&format!("it reached {name} at {now}, {whom} at {before}"));
            }
            if let Some(besides) = self.changed_besides(kind, index, seen) {
                return missing(&format!("{name} {besides}"));
            }
        }
        // How long a round trip is does not depend on what is asked for.
        if asks_for_the_same
            && !kind.entry.is_for_times
            && let Some(why) = self.other_requests(slow, fast)
        {
            return missing(&why);
        }
        let names = [self.slow, self.fast].map(|index| Some(&self.case.plan.targets[index].name));
        // A generator that cannot keep up with the fast side makes the gap look smaller: what it is then said to be, it is
        // at least. What a flip leaves of a gap would look smaller as well, so no flip may rest on it.
        let at_least = kind.entry.shows_gap;
        let spoilt = outcome.doubts.iter().find(|doubt| {
            let fast_only = doubt.target.as_ref() == names[1];
            match doubt.id {
                DoubtId::GeneratorSaturated if at_least && fast_only => false,
                DoubtId::GeneratorSaturated | DoubtId::TargetDied => {
                    doubt.target.is_none() || names.contains(&doubt.target.as_ref())
                }
                _ => false,
            }
        });
        if let Some(doubt) = spoilt {
            return missing(&doubt.text);
        }
        let pair = outcome.pairs.iter().find(|pair| {
            pair.metric == Metric::Rate && pair.target == self.case.plan.targets[self.slow.max(self.fast)].name
        });
        // Requests at a time, where a connection carries several.
        let connections = match self.case.http() {
            Some(_) => self.case.plan.varied(&outcome.probe.variation).ops_at_a_time(),
            None => outcome.probe.variation.connections.unwrap_or(self.case.plan.lanes()),
        };
        let view = pair.and_then(|pair| {
            View::new(
                &outcome.probe.id,
                Some(outcome.probe.variation.clone()),
                pair,
                self.slow == 0,
                slow,
                fast,
                Some(connections),
            )
        });
        // What is asked of it is how long connecting takes, which a few slots tell on a long path: no ratio is needed.
        let view = view.or_else(|| {
            kind.entry.is_for_times.then(|| View {
                id: &outcome.probe.id,
                metric: Metric::Rate,
                variation: Some(outcome.probe.variation.clone()),
                log: Estimate::around(0.0, f64::INFINITY),
                ratio: 1.0,
                low: 0.0,
                high: f64::INFINITY,
                confidence: pair.map_or(0.0, |pair| pair.confidence),
                slow,
                fast,
                connections: Some(connections),
            })
        });
        view.map_or_else(|| missing("it had too few slots for an interval"), Look::Shown)
    }

    /// What this probe did to the gap.
    pub(crate) fn flip(&self, kind: Kind) -> FlipLook<'a> {
        let reference = match &self.reference {
            Reference::Known(view) => view,
            // Which probe is to be made depends on the reference.
            Reference::Wanted(probe) => return FlipLook::NotAsked(probe.clone()),
            Reference::Missing(why) => return FlipLook::Missing(why.clone()),
        };
        self.flip_against(kind, reference, self.mode)
    }

    /// The flip's probe made longer, or that of its reference over one connection, whichever interval is wider: where the flip leaves open whether
    /// it matters, an interval that is as much narrower would tell, and there is time for it and for the control behind it.
    pub(crate) fn longer(&self, flip: &Flip<'a>) -> Option<Probe> {
        let reference = self.known_reference()?;
        let narrower = |view: &View<'a>| view.narrower((LONGER as f64).sqrt());
        let of_flip = (flip.view.log.half(), flip.kind, Flip::new(flip.kind, reference, narrower(&flip.view)));
        let of_reference = (reference.id == ALONE.id(self.mode))
            .then(|| (reference.log.half(), ALONE, Flip::new(flip.kind, &narrower(reference), flip.view.clone())));
        let mut looks: Vec<_> = of_reference.into_iter().chain([of_flip]).collect();
        looks.sort_by(|(a, ..), (b, ..)| b.total_cmp(a));
        let control_ns = match self.control(false) {
            Some(Look::NotAsked(control)) => control.budget_ns,
            None | Some(Look::Shown(_) | Look::Missing(_)) => 0,
        };
        let telling = looks.into_iter().filter(|(_, _, would_be)| would_be.as_ref().is_some_and(Flip::tells));
        let mut probes = telling.filter_map(|(_, kind, _)| {
            // What it shows is shown already.
            let longer = kind.longer().filter(|longer| self.case.outcome(&longer.id(self.mode)).is_none())?;
            Some(longer.probe(&self.case, self.mode))
        });
        probes.find(|probe| probe.budget_ns + control_ns <= self.case.budget_left_ns)
    }

    /// What this probe did to the gap that shows in `reference`, with as many connections as it was made with. Where that leaves open whether
    /// it matters, and the probe was made once more, the longer one counts.
    pub(crate) fn flip_against(&self, kind: Kind, reference: &View<'a>, mode: Mode) -> FlipLook<'a> {
        let once = self.flip_once(kind, reference, mode);
        let longer = match &once {
            FlipLook::Shown(flip) if !flip.tells() => kind.longer(),
            _ => None,
        };
        let longer = longer.filter(|longer| self.case.outcome(&longer.id(self.mode)).is_some());
        match longer.map(|longer| self.flip_once(longer, reference, mode)) {
            Some(shown @ FlipLook::Shown(_)) => shown,
            _ => once,
        }
    }

    fn flip_once(&self, kind: Kind, reference: &View<'a>, mode: Mode) -> FlipLook<'a> {
        match self.look(kind) {
            Look::NotAsked(probe) => FlipLook::NotAsked(probe),
            Look::Missing(why) => FlipLook::Missing(why),
            Look::Shown(view) => match self.measured_besides(kind, reference, &view) {
                Some(besides) => FlipLook::Missing(format!("{} could not be used: {besides}", kind.id(mode))),
                None => Self::held_against(kind, reference, view, mode),
            },
        }
    }

    fn held_against(kind: Kind, reference: &View<'a>, view: View<'a>, mode: Mode) -> FlipLook<'a> {
        match Flip::new(kind, reference, view) {
            // Under load only the tightest bottleneck shows. A flip that takes work from both sides may leave both waiting
            // for something else that they share, and the gap is hidden, not gone.
            Some(flip) if mode == Mode::Loaded && flip.dearer < 0.8 => FlipLook::Missing(format!(
                "{} took work from both sides, so that another bottleneck may hide the gap",
                kind.id(mode)
            )),
            Some(flip) => FlipLook::Shown(Box::new(flip)),
            None => FlipLook::Missing(format!("{} gave no interval to hold against its reference", kind.id(mode))),
        }
    }

    /// A fact that was negotiated with a target.
    pub(crate) fn fact<T>(&self, index: usize, of: impl Fn(&'a Facts) -> Option<T>) -> Option<T> {
        self.case.fact(index, of)
    }

    /// The same of one that is a text.
    pub(crate) fn text(&self, index: usize, name: &str) -> Option<&'a str> {
        self.fact(index, |seen| seen.text(name))
    }

    /// The same of one that is a whole number.
    pub(crate) fn count(&self, index: usize, name: &str) -> Option<u64> {
        self.fact(index, |seen| seen.count(name))
    }

    /// Whether anything is known of a side's machine.
    pub(crate) fn has_host(&self, index: usize) -> bool {
        self.host(index).is_some()
    }

    fn host(&self, index: usize) -> Option<&'a Facts> {
        self.case.hosts.get(index)?.as_ref()
    }

    /// A fact of a side's machine, such as `process.traced_by`; `None` where it is not read or not known.
    pub(crate) fn host_fact(&self, index: usize, key: &str) -> Option<&'a str> {
        self.host(index)?.text(key)
    }

    /// All such facts under a prefix that are texts, by the rest of their names.
    pub(crate) fn host_facts(&self, index: usize, prefix: &'static str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let under = self.host(index).into_iter().flat_map(move |facts| facts.under(prefix));
        under.filter_map(move |(name, known)| Some((name.strip_prefix(prefix)?, known.text()?)))
    }

    /// The name of the program that serves on a side's machine.
    pub(crate) fn server_program(&self, index: usize) -> Option<&'a str> {
        self.host(index)?.server_program()
    }

    /// The same as a number.
    pub(crate) fn host_number(&self, index: usize, key: &str) -> Option<f64> {
        self.host(index)?.number(key)
    }

    /// The probe that read the machines: where it was made once more, the longer one counts.
    pub(crate) fn hosts(&self) -> Kind {
        let longer = HOSTS.longer().filter(|longer| self.case.outcome(&longer.id(self.mode)).is_some());
        longer.unwrap_or(HOSTS)
    }

    /// The same made once more and longer, where that was not done yet and there is time for it.
    pub(crate) fn longer_hosts(&self) -> Option<Probe> {
        let probe = self.hosts().longer()?.probe(&self.case, self.mode);
        (probe.budget_ns <= self.case.budget_left_ns).then_some(probe)
    }

    /// What the machines did for each op under the plan's load.
    pub(crate) fn demands(&self) -> DemandLook<'a> {
        self.demands_at(self.hosts(), true)
    }

    /// What they did for each op of a probe that reads them, whichever requests of a list were sent.
    pub(crate) fn demands_whatever_is_asked(&self, kind: Kind) -> DemandLook<'a> {
        self.demands_at(kind, false)
    }

    fn demands_at(&self, kind: Kind, asks_for_the_same: bool) -> DemandLook<'a> {
        let Some(outcome) = self.case.outcome(&kind.id(self.mode)) else {
            return match kind.possible(&self.case) {
                Ok(()) => DemandLook::NotAsked(kind.probe(&self.case, self.mode)),
                Err(why) => DemandLook::Missing(why),
            };
        };
        if let Some(why) = &outcome.unavailable {
            return DemandLook::Missing(sanitize_line(why.told()));
        }
        if asks_for_the_same
            && let (Some(slow), Some(fast)) = (outcome.targets.get(self.slow), outcome.targets.get(self.fast))
            && let Some(why) = self.other_requests(slow, fast)
        {
            return DemandLook::Missing(why);
        }
        // Slots end with their requests. What a machine did for those that were given up is in its counts as well, and where a slot has
        // few of them that is much of it.
        let has = |id: DoubtId| outcome.doubts.iter().find(|doubt| doubt.id == id);
        if let (Some(_), Some(doubt)) = (has(DoubtId::ShortSlots), has(DoubtId::Unfinished)) {
            return DemandLook::Missing(format!("machines could not be counted by: {}", sanitize_line(&doubt.text)));
        }
        let demand = |index: usize| outcome.demands.get(index).and_then(Option::as_ref).filter(|demand| demand.ops > 0);
        match demand(self.slow) {
            Some(slow) => DemandLook::Shown(Demands { slow, fast: demand(self.fast) }),
            None => DemandLook::Missing(format!("the machine of {} was not read", self.slow_name())),
        }
    }

    /// What the libcrypto of a side's server does, measured alone.
    pub(crate) fn lens(&self, index: usize) -> LensLook<'a> {
        let kind = LENS.of(index);
        match self.case.outcome(&kind.id(self.mode)) {
            None => match kind.possible(&self.case) {
                Ok(()) => {
                    let probe = kind.probe(&self.case, self.mode);
                    // What can be said without it must not wait for what is not made any more.
                    match probe.budget_ns > self.case.budget_left_ns {
                        true => LensLook::Missing("there was no time left for that".to_owned()),
                        false => LensLook::NotAsked(probe),
                    }
                }
                Err(why) => LensLook::Missing(why),
            },
            Some(outcome) => match (&outcome.lens, &outcome.unavailable) {
                (Some(reading), None) => LensLook::Shown(reading),
                (_, Some(why)) => LensLook::Missing(sanitize_line(why.told())),
                (None, None) => LensLook::Missing("it told nothing".to_owned()),
            },
        }
    }

    /// Evidence that comes from a side's machine; `repeat` is a command to be typed there.
    pub(crate) fn on_host(&self, text: String, repeat: Option<String>) -> Evidence {
        Evidence::new(ON_HOST, text, repeat)
    }

    /// Evidence from a server's libcrypto; with the command that repeats it on its machine.
    pub(crate) fn on_lens(&self, reading: &LensReading, text: String) -> Evidence {
        // Where a running server was looked into, only duel repeats all of it; else `openssl speed` does, in the second line.
        let looked_into = reading.capabilities.as_ref().is_some_and(|capabilities| capabilities.vector().is_some());
        let ours = reading.by_hand.iter().find(|line| looked_into && line.starts_with("duel lens "));
        let repeat = ours.or(reading.by_hand.get(1)).map(|line| sanitize_line(line));
        Evidence::new("lens", text, repeat)
    }

    pub(crate) fn uses_tls(&self, index: usize) -> bool {
        self.fact(index, |seen| seen.value(web::TLS_VERSION).or(seen.value(web::TLS_CIPHER))).is_some()
            || self.case.plan.targets.get(index).is_some_and(|target| is_https(&target.address))
    }

    /// Share of a side's ops that went over a connection used before, under the reference's treatment.
    pub(crate) fn reused_share(&self, index: usize) -> Option<f64> {
        let reference = self.known_reference();
        let seen = reference.map(|view| if index == self.slow { view.slow } else { view.fast });
        seen.and_then(|seen| seen.reused_share)
            .or_else(|| self.case.comparison.get(index).and_then(|seen| seen.reused_share))
    }

    pub(crate) fn name(&self, index: usize) -> String {
        self.case.plan.targets.get(index).map_or_else(String::new, |target| sanitize_line(&target.name))
    }

    pub(crate) fn slow_name(&self) -> String {
        self.name(self.slow)
    }

    pub(crate) fn fast_name(&self) -> String {
        self.name(self.fast)
    }

    /// `B 3.05x slower than A (95 % interval 2.98 to 3.12)`, `B and A equally fast (95 % interval 0.97 to 1.03)`.
    pub(crate) fn tell(&self, view: &View<'_>) -> String {
        let (slow, fast) = (self.slow_name(), self.fast_name());
        let by = self.by_metric(view);
        let percent = 100.0 * view.confidence;
        if format!("{:.2}", view.ratio) == "1.00" {
            // By nothing that two decimals show: neither is "1.00x slower".
            let View { low, high, .. } = view;
            format!("{slow} and {fast} equally fast{by} ({percent:.0} % interval {low:.2} to {high:.2})")
        } else if view.ratio >= 1.0 {
            let View { ratio, low, high, .. } = view;
            format!("{slow} {ratio:.2}x slower than {fast}{by} ({percent:.0} % interval {low:.2} to {high:.2})")
        } else {
            let (ratio, low, high) = (1.0 / view.ratio, 1.0 / view.high, 1.0 / view.low);
            format!("{slow} {ratio:.2}x faster than {fast}{by} ({percent:.0} % interval {low:.2} to {high:.2})")
        }
    }

    /// ` by its response p50`, where that is another metric than the one that targets are compared by under this load.
    pub(crate) fn by_metric(&self, view: &View<'_>) -> String {
        let is_usual = self.case.is_open_loop() || view.metric == Metric::Rate;
        if is_usual { String::new() } else { format!(" by its {}", view.metric.name()) }
    }

    /// `with ChaCha20 forced: B 1.02x slower than A (...) instead of 3.05x`.
    pub(crate) fn tell_flip(&self, flip: &Flip<'_>) -> String {
        self.tell_flip_against(flip, self.known_reference())
    }

    /// The same of a flip that is held against `reference`.
    pub(crate) fn tell_flip_against(&self, flip: &Flip<'_>, reference: Option<&View<'_>>) -> String {
        let before = reference.map_or_else(String::new, |view| format!(" instead of {:.2}x", view.ratio));
        format!("{}: {}{before}", flip.kind.phrase(), self.tell(&flip.view))
    }

    pub(crate) fn evidence(&self, view: &View<'_>, text: String) -> Evidence {
        let repeat = repeat::command(&self.case, [0, self.slow.max(self.fast)], view.variation.as_ref());
        Evidence::new(view.id, text, repeat)
    }

    /// Evidence from what the pair showed at the reference, and where there is none, in the comparison.
    pub(crate) fn at_reference(&self, text: String) -> Evidence {
        self.evidence(self.known_reference().unwrap_or(&self.comparison), text)
    }

    /// Evidence that was there before any load.
    pub(crate) fn first_contact(&self, text: String) -> Evidence {
        let repeat = repeat::contact(&self.case, [self.slow, self.fast]);
        Evidence::new("first-contact", text, repeat)
    }

    /// What was not measured, and why: there is nothing to repeat.
    pub(crate) fn not_measured(&self, text: String) -> Evidence {
        Evidence::new("first-contact", text, None)
    }

    /// What any explanation of this gap starts with: the gap, how it shows at the reference, and what failed.
    pub(crate) fn preamble(&self) -> Vec<Evidence> {
        let loaded = self.comparison.over(self.case.plan);
        let mut lines = vec![self.evidence(&self.comparison, format!("{loaded}: {}", self.tell(&self.comparison)))];
        for kind in [ALONE, AGAIN, CLOSED] {
            if let Look::Shown(view) = self.look(kind) {
                lines.push(self.evidence(&view, format!("{}: {}", kind.phrase(), self.tell(&view))));
            }
        }
        lines.extend(self.failures());
        lines
    }

    /// Failures beyond 1 %, in the comparison and in probes: they may be the story.
    fn failures(&self) -> Vec<Evidence> {
        let of_comparison = ("comparison", None, self.case.comparison);
        let of_probes = self.case.outcomes.iter();
        let of_probes =
            of_probes.map(|outcome| (&*outcome.probe.id, Some(&outcome.probe.variation), &*outcome.targets));
        let mut lines = Vec::new();
        for (id, variation, targets) in std::iter::once(of_comparison).chain(of_probes) {
            for index in [self.slow, self.fast] {
                let Some(seen) = targets.get(index) else { continue };
                let share = failed_share(seen);
                if share > 0.01 {
                    let (failed, all) = (seen.failed, seen.ok + seen.failed);
                    let text = format!(
                        "{failed} of {all} {} to {} failed ({:.1} %): what is said of speed holds for the others",
                        self.case.plan.schema().op.many,
                        self.name(index),
                        100.0 * share
                    );
                    let repeat = repeat::command(&self.case, [0, self.slow.max(self.fast)], variation);
                    lines.push(Evidence::new(id, text, repeat));
                }
            }
        }
        lines
    }
}

pub(crate) fn failed_share(seen: &TargetObservation) -> f64 {
    let all = seen.ok + seen.failed;
    if all == 0 { 0.0 } else { seen.failed as f64 / all as f64 }
}

impl<'a> View<'a> {
    /// `None` where ratio or interval are not known.
    fn new(
        id: &'a str,
        variation: Option<Variation>,
        pair: &PairVerdict,
        baseline_is_slow: bool,
        slow: &'a TargetObservation,
        fast: &'a TargetObservation,
        connections: Option<u32>,
    ) -> Option<Self> {
        let (mut ratio, mut low, mut high) = pair.slowdown()?;
        if baseline_is_slow {
            (ratio, low, high) = (1.0 / ratio, 1.0 / high, 1.0 / low);
        }
        let sane = 0.0 < low && low <= ratio && ratio <= high && high.is_finite();
        if !sane {
            return None;
        }
        let mid = ratio.ln();
        let half = (high.ln() - mid).max(mid - low.ln());
        let log = Estimate::around(mid, half);
        let (metric, confidence) = (pair.metric, pair.confidence);
        Some(Self { id, metric, variation, log, ratio, low, high, confidence, slow, fast, connections })
    }

    pub(crate) fn connections(&self) -> Option<u32> {
        self.connections
    }

    /// The same with an interval so many times narrower.
    fn narrower(&self, times: f64) -> Self {
        let Estimate { mid, below, above } = self.log;
        Self { log: Estimate { mid, below: below / times, above: above / times }, ..self.clone() }
    }

    /// `over 8 connections`, or `streams`, whichever a lane of this plan is; `in 8 threads`.
    pub(crate) fn over(&self, plan: &Plan) -> String {
        let over = if plan.schema().lanes_are_threads() { "in" } else { "over" };
        match self.connections {
            Some(1) => format!("{over} one {}", plan.schema().lane.one),
            Some(lanes) => format!("{over} {lanes} {}s", plan.lane_noun()),
            None => "at the offered rate".to_owned(),
        }
    }

    /// Time per op of the fast side in ns: what one connection spends on each op, all of it included.
    pub(crate) fn fast_ns(&self) -> Option<f64> {
        let by_rate = || Some(f64::from(self.connections?) * 1e9 / self.fast.rate_per_s?);
        let ns = match (self.connections, self.metric) {
            // A median is compared because the mean is stalls, in part.
            (Some(_), Metric::ResponseP50 | Metric::ResponseP99) => self.fast.service_profile.quantile_ns(0.5)? as f64,
            _ => by_rate().or(self.fast.service_mean_ns)?,
        };
        (ns.is_finite() && ns > 0.0).then_some(ns)
    }

    /// Time per op of the slow side in ns, by the pair's ratio (which is sharper than two separate rates).
    pub(crate) fn slow_ns(&self) -> Option<f64> {
        Some(self.fast_ns()? * self.ratio)
    }

    /// How much more time an op takes on the slow side, in ns.
    ///
    /// `T (r - 1)`. Half of the ratio's variance is taken for that of T: a ratio of two sides that scatter alike.
    pub(crate) fn difference_ns(&self) -> Option<Estimate> {
        let fast_ns = self.fast_ns()?;
        let half = self.log.half();
        let by_ratio = self.ratio * half;
        let by_time = (self.ratio - 1.0) * half * std::f64::consts::FRAC_1_SQRT_2;
        Some(Estimate::around(fast_ns * (self.ratio - 1.0), fast_ns * by_ratio.hypot(by_time)))
    }
}

impl<'a> Flip<'a> {
    /// A contribution counts from a quarter of the gap on. Intervals of a short probe are a few percent wide, twice as
    /// wide in a difference of differences, and divided by a gap that may be 1.3x: what is smaller than a quarter is
    /// within what two such intervals leave open.
    pub(crate) const NOTEWORTHY: f64 = 0.25;
    /// From here on a cause explains the gap.
    pub(crate) const EXPLAINS: f64 = 0.8;
    /// Times per op of two probes that are the same within their scatter, one over the other.
    const AS_BEFORE: f64 = 1.1;

    /// How much wider than reported an interval is read before somebody is accused. A diagnosis looks at up to ten flips
    /// and takes what moved; at 95 % each, chance alone would move one in three times. Bonferroni: 99.5 % each, which
    /// is 2.81 standard errors instead of 1.96.
    pub(crate) const MANY_LOOKS: f64 = 2.81 / 1.96;
    /// The same of a flip that was made once more: twice as many chances, so 99.75 % each.
    const MORE_LOOKS: f64 = 3.02 / 1.96;

    /// `None` where one of them gives no interval to hold against the other.
    pub(crate) fn new(kind: Kind, reference: &View<'a>, view: View<'a>) -> Option<Self> {
        let (before_ns, after_ns) = (reference.fast_ns()?, view.fast_ns()?);
        let dearer = after_ns / before_ns;
        // The factor comes from two rates that were measured at different times.
        let dearer_half = reference.log.half().hypot(view.log.half()) * std::f64::consts::FRAC_1_SQRT_2;
        let left = log_left(view.ratio, view.log, dearer, dearer_half);
        let (before, after) = (reference.difference_ns()?, view.difference_ns()?);
        let usual = after.over(before);
        let is_wide = usual.is_none();
        let time_left = usual.or_else(|| time_left([reference, &view], dearer, dearer_half))?;
        let slow_is_as_before = (dearer * view.ratio / reference.ratio) < Self::AS_BEFORE;
        let of_fast_alone = (slow_is_as_before && dearer > Self::AS_BEFORE)
            .then(|| view.log.over(reference.log).map(Estimate::complement))
            .flatten();
        Some(Self {
            kind,
            gone: Gone::new(left.over(reference.log)?.complement(), time_left.complement(), of_fast_alone),
            moved_log: reference.log.minus(left),
            moved_ns: before.mid - after.mid,
            dearer,
            is_second_look: kind.is_longer
                || ALONE.longer().is_some_and(|longer| reference.id == longer.id(Mode::Alone)),
            is_wide,
            view,
        })
    }

    /// The flip moved the gap: beyond its intervals, and by a share worth a name.
    pub(crate) fn moved(&self) -> bool {
        // What is left bounds this side of the interval. Widening it in log is more than widening `r'` would do, since
        // `ln(1 + k (r' - 1))` grows ever more slowly with `ln r'`.
        let looks = if self.is_second_look { Self::MORE_LOOKS } else { Self::MANY_LOOKS };
        let beyond_chance = |moved: Estimate| moved.mid > looks * moved.below;
        self.gone.is_noteworthy() && beyond_chance(self.moved_log) && beyond_chance(self.gone.of_time())
    }

    /// What the flip can have moved at most is not worth a name.
    pub(crate) fn is_negligible(&self) -> bool {
        self.gone.is_negligible()
    }

    /// It does not leave open whether it matters.
    pub(crate) fn tells(&self) -> bool {
        self.moved() || self.is_negligible()
    }

    /// At least 80 % of the log of the gap moved, and more than half of it beyond the interval. A share of a gap that is known widely is
    /// known too widely for that: errors of a quotient are propagated at the estimate, where the divisor's is small.
    pub(crate) fn confirms(&self) -> bool {
        self.moved() && !self.is_wide && self.gone.explains() && self.gone.is_most()
    }

    /// Whether the change makes the fast side so much dearer, in time per op, as is a noteworthy part of the gap. What it takes
    /// away is then what the slow side pays already, and not only what it spares it.
    pub(crate) fn costs_the_fast_side(&self, reference: &View<'_>) -> bool {
        let (Some(slow_ns), Some(fast_ns)) = (reference.slow_ns(), reference.fast_ns()) else { return false };
        fast_ns * (self.dearer - 1.0) >= Self::NOTEWORTHY * (slow_ns - fast_ns)
    }

    /// `94 %`, never beyond the whole.
    pub(crate) fn percent(&self) -> String {
        percent(self.gone.share())
    }
}

/// Log of the ratio that a flip leaves, see [`Flip`]; `log` is that of `ratio` with its interval.
///
/// The noise of `r'` is multiplied by `k` in the rest `k (r' - 1)` and by no more than that in its interval: the ends of
/// the rest are found first (those of `r'` itself, and the uncertainty of `k` in quadrature), and their logarithm is
/// taken then. To propagate the error through the logarithm at the estimate instead would take the slope there, which
/// is `k` where nothing is left, for the whole interval: with `k` = 50 a flip under which the sides differ by 1.00x +- 4 %
/// would seem to leave up to `e^(50 * 0.04)` = 7.4x, where it leaves `1 + 50 * 0.04` = 3x at most.
fn log_left(ratio: f64, log: Estimate, dearer: f64, dearer_half: f64) -> Estimate {
    let strict = dearer.max(1.0);
    let rest = strict * (ratio - 1.0);
    let by_factor = if dearer > 1.0 { rest.max(0.0) * dearer_half } else { 0.0 };
    let below = (strict * ratio * -(-log.below).exp_m1()).hypot(by_factor);
    let above = (strict * ratio * log.above.exp_m1()).hypot(by_factor);
    // Where the slow side has become the faster one, the plain ratio says less of it, and is the stricter one.
    let mid = if rest > 0.0 { rest.ln_1p() } else { log.mid };
    let low = if rest > below { (rest - below).ln_1p() } else { log.low().min(0.0) };
    let high = if rest + above > 0.0 { (rest + above).ln_1p() } else { log.high() };
    Estimate { mid, below: (mid - low).max(0.0), above: (high - mid).max(0.0) }
}

/// Share of the extra time per op that a flip leaves, where the gap before it is known beyond doubt, but so widely that errors which are
/// propagated at the estimate reach beyond none: 6x within 2.7x and 13x is no less than 2.7x. So the ends of the intervals count.
fn time_left(views: [&View<'_>; 2], dearer: f64, dearer_half: f64) -> Option<Estimate> {
    let [whole, rest] = views.map(|view| Estimate {
        mid: view.ratio - 1.0,
        below: view.ratio * -(-view.log.below).exp_m1(),
        above: view.ratio * view.log.above.exp_m1(),
    });
    let by_factor = rest.mid * dearer_half.exp_m1();
    let left = Estimate {
        mid: dearer * rest.mid,
        below: dearer * rest.below.hypot(by_factor),
        above: dearer * rest.above.hypot(by_factor),
    };
    left.over(whole)
}

/// A share in percent, within 0 and 100.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share.clamp(0.0, 1.0))
}

/// Time per request in one phase: slow side minus fast side, for all phases of the web that either side went through.
pub(crate) fn phase_differences(view: &View<'_>) -> Vec<(Phase, f64)> {
    differences_in(view, phase::ALL)
}

/// Time per op in one phase: slow side minus fast side, for all of these phases that either side went through.
pub(crate) fn differences_in(view: &View<'_>, phases: &[Phase]) -> Vec<(Phase, f64)> {
    let of = |seen: &TargetObservation, phase: Phase| seen.phase_mean_ns.get(&phase.id()).copied();
    let both = phases.iter().copied().filter_map(|phase| {
        let (slow, fast) = (of(view.slow, phase), of(view.fast, phase));
        let difference = slow.unwrap_or(0.0) - fast.unwrap_or(0.0);
        (slow.is_some() || fast.is_some()).then_some((phase, difference)).filter(|(_, ns)| ns.is_finite())
    });
    both.collect()
}

/// The same for phases of any kind of work, by their names.
pub(crate) fn phase_share_of(view: &View<'_>, names: &[&'static str]) -> Option<f64> {
    let sum = |seen: &TargetObservation, named: bool| -> f64 {
        let of = |id: &duel_model::Id| !named || names.iter().any(|name| duel_model::Id::new(name) == *id);
        seen.phase_mean_ns.iter().filter(|(id, _)| of(id)).map(|(_, ns)| ns).sum()
    };
    let [whole_ns, there_ns] = [false, true].map(|named| sum(view.slow, named) - sum(view.fast, named));
    (whole_ns > 0.0).then(|| there_ns / whole_ns)
}

/// The share of what the slow side takes longer that is in some phases. `None` where phases show no difference.
pub(crate) fn phase_share(view: &View<'_>, phases: &[Phase]) -> Option<f64> {
    let differences = phase_differences(view);
    let whole_ns: f64 = differences.iter().map(|(_, ns)| ns).sum();
    let there_ns: f64 = differences.iter().filter(|(phase, _)| phases.contains(phase)).map(|(_, ns)| ns).sum();
    (whole_ns > 0.0).then(|| there_ns / whole_ns)
}

/// Share of the difference in time per op that is paid per byte.
pub(crate) fn per_byte_share(reference: &View<'_>, first_byte: &View<'_>) -> Option<Estimate> {
    Some(first_byte.difference_ns()?.over(reference.difference_ns()?)?.complement())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_strong_gap_is_bounded_by_the_ends_of_its_interval() {
        // 1.00x +- 4 % under a flip that makes the fast side 50 times as dear.
        let left = log_left(1.0, Estimate::around(0.0, 0.04), 50.0, 0.03);
        assert_eq!(left.mid, 0.0);
        assert!((left.high() - (50.0 * 0.04f64.exp_m1()).ln_1p()).abs() < 1e-12, "{left:?}");
        assert_eq!(left.low(), -0.04);
    }

    #[test]
    fn without_a_dearer_flip_the_plain_ratio_is_left() {
        for ratio in [0.5f64, 1.0, 3.0] {
            let log = Estimate::around(ratio.ln(), 0.1);
            let left = log_left(ratio, log, 0.7, 0.1);
            for (is, should) in [(left.low(), log.low()), (left.mid, log.mid), (left.high(), log.high())] {
                assert!((is - should).abs() < 1e-12, "{ratio}: {left:?}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_left_is_never_less_than_the_plain_ratio_says(
            log in -1.0f64..3.0,
            half in 0.0f64..1.5,
            dearer in 0.1f64..100.0,
            dearer_half in 0.0f64..1.0,
        ) {
            let plain = Estimate::around(log, half);
            let left = log_left(log.exp(), plain, dearer, dearer_half);
            proptest::prop_assert!(left.below >= 0.0 && left.above.is_finite());
            proptest::prop_assert!(left.mid >= plain.mid - 1e-9 && left.high() >= plain.high() - 1e-9, "{left:?}");
        }
    }
}
