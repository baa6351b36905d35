//! Which probe next, and when it is enough.

use crate::case::{Case, Step};
use crate::cause::{Cause, CauseEntry, Fit, Standing};
use crate::causes::{self, likes, names};
use crate::evidence::below;
use crate::gap::{Flip, Gap, Look, Reference, percent};
use crate::probes::{AGAIN, Kind};
use crate::{none, unknown};
use duel_model::{Confidence, Evidence, Explanation, Finding, Layer, Probe};

/// The next step of a diagnosis: a probe to make, or the explanation.
///
/// Ends after a bounded number of probes, for no probe is asked for twice and there are finitely many.
pub fn next(case: &Case<'_>) -> Step {
    next_naming(case, causes::is_proven)
}

/// The same, naming the causes that `may_be_named` holds for, by what [`unproven`](crate::unproven) calls them; those that fit and are not among them are
/// told as suspicions. For the fault bench and for tests, which hold every cause against real and simulated faults.
pub fn next_naming(case: &Case<'_>, may_be_named: fn(&str) -> bool) -> Step {
    let trials = trials(case, may_be_named);
    match best_probe(case, &trials).or_else(|| probe_below(case, &trials, may_be_named)) {
        Some(probe) => Step::Probe(probe),
        None => Step::Conclude(conclude(case, &trials, may_be_named)),
    }
}

fn trials<'a>(case: &Case<'a>, may_be_named: fn(&str) -> bool) -> Vec<Trial<'a>> {
    let gaps = case.main_pairs().filter_map(|(index, pair)| Gap::open(*case, index, pair));
    gaps.map(|gap| Trial::new(gap, may_be_named)).collect()
}

/// A gap and how each cause stands, in the catalogue's order.
struct Trial<'a> {
    gap: Gap<'a>,
    causes: Vec<&'static Cause>,
    standings: Vec<Standing>,
    may_be_named: fn(&str) -> bool,
}

impl<'a> Trial<'a> {
    fn new(gap: Gap<'a>, may_be_named: fn(&str) -> bool) -> Self {
        let stand = |cause: &&Cause| match cause.examine(&gap) {
            // A server that was seen without the cause, and without the gap, is proof enough in its own case.
            Standing::Fits(fit) if !fit.shown_on_twin && !may_be_named(cause.to_be_proven()) => {
                let text =
                    format!("suspected, but this cause has not been proven on enough servers: {}", fit.finding.summary);
                Standing::Suspected(gap.evidence(&gap.comparison, text))
            }
            Standing::Fits(fit) if !fit.is_counted && !fit.shown_on_twin => after_control(&gap, fit),
            standing => standing,
        };
        let causes = causes::suiting(&gap.case);
        let mut standings: Vec<Standing> = causes.iter().map(stand).collect();
        keep_within_the_gap(&gap, &causes, &mut standings);
        take_back_what_flips_tell(&gap, &causes, &mut standings);
        Self { gap, causes, standings, may_be_named }
    }

    fn fits(&self) -> impl Iterator<Item = &Fit> {
        self.standings.iter().filter_map(Standing::fit)
    }

    /// Share of the log of the gap that is left when all causes that fit are taken away together.
    ///
    /// Times add up where shares of a log do not: two causes of 3 ms each that turn 1 ms into 7 ms move 29 % of the log
    /// alone, and all of it together. Where one cause alone explains more (as one that multiplies), that counts.
    fn share_left(&self) -> f64 {
        self.share_left_by(&self.fits().collect::<Vec<_>>())
    }

    fn share_left_by(&self, fits: &[&Fit]) -> f64 {
        let by_one = fits.iter().filter_map(|fit| fit.finding.explains).fold(0.0, f64::max);
        let Some(reference) = self.gap.known_reference() else { return 1.0 - by_one };
        let Some(fast_ns) = reference.fast_ns() else { return 1.0 - by_one };
        let moved_ns: f64 = fits.iter().map(|fit| fit.moved_ns).sum();
        let ratio_left = (reference.ratio - moved_ns / fast_ns).max(1.0);
        let together = ratio_left.ln() / reference.log.mid;
        if fits.len() > 1 { together.min(1.0 - by_one) } else { 1.0 - by_one }
    }

    /// Whether more probes are not worth their time. What is possible at most explains nothing yet, and what was counted
    /// may have counted the same time twice: of such causes only the largest helps to end the search.
    fn is_settled(&self) -> bool {
        if self.fits().any(|fit| fit.hides_rest) {
            return true;
        }
        let (counted, mut firm): (Vec<&Fit>, Vec<&Fit>) = self.fits().partition(|fit| fit.is_counted);
        let share = |fit: &&Fit| fit.finding.explains.unwrap_or(0.0);
        let likely = counted.into_iter().filter(|fit| fit.finding.confidence >= Confidence::Likely);
        firm.extend(likely.max_by(|a, b| share(a).total_cmp(&share(b))));
        !firm.is_empty() && self.share_left_by(&firm) <= 1.0 - Flip::EXPLAINS + f64::EPSILON
    }

    /// Whether a cause may be behind one that fits and was not confirmed.
    fn is_asked_for(&self, other: &Cause) -> bool {
        self.causes.iter().zip(&self.standings).any(|(cause, standing)| {
            let unconfirmed = standing.fit().is_some_and(|fit| fit.finding.confidence < Confidence::Confirmed);
            unconfirmed && likes::asks_for(cause.entry, other.entry)
        })
    }

    fn is_explained(&self) -> bool {
        self.fits().any(|fit| fit.hides_rest)
            || self.fits().next().is_some() && self.share_left() <= 1.0 - Flip::EXPLAINS + f64::EPSILON
    }
}

/// A cause that a flip has shown, once the gap was seen to be what it was in the comparison. Where there is no time left to
/// look, it is possible at most.
fn after_control(gap: &Gap<'_>, mut fit: Box<Fit>) -> Standing {
    let why = match gap.control(fit.is_under_load) {
        None | Some(Look::Shown(_)) => return Standing::Fits(fit),
        Some(Look::NotAsked(probe)) if probe.budget_ns <= gap.case.budget_left_ns => {
            return Standing::Wants(vec![probe]);
        }
        Some(Look::NotAsked(_)) => "there was no time left to look".to_owned(),
        Some(Look::Missing(why)) => why,
    };
    let text = format!("not shown: that the gap was still there when the cause was taken away ({why})");
    // What was not measured cannot be repeated.
    fit.finding.evidence.push(Evidence::new("comparison", text, None));
    fit.finding.confidence = fit.finding.confidence.min(Confidence::Possible);
    Standing::Fits(fit)
}

/// Takes back causes that were only counted and have no room beside one that a flip confirmed: together they would be more
/// than the whole gap, so the time that was counted is part of what the flip took away, or does not matter. And those that
/// rest on nothing but what a limit for each client looks like, where that was shown.
fn keep_within_the_gap(gap: &Gap<'_>, causes: &[&Cause], standings: &mut [Standing]) {
    let confirmed = standings.iter().zip(causes).filter_map(|(standing, cause)| match standing {
        Standing::Fits(fit)
            if !fit.is_counted && (fit.finding.confidence == Confidence::Confirmed || fit.hides_rest) =>
        {
            Some((fit.finding.explains?, *cause))
        }
        _ => None,
    });
    let Some((share, shown)) = confirmed.max_by(|(a, _), (b, _)| a.total_cmp(b)) else { return };
    for (standing, cause) in standings.iter_mut().zip(causes) {
        let gives_way = likes::gives_way(cause.entry, shown.entry);
        if let Standing::Fits(fit) = standing
            && fit.finding.confidence < Confidence::Confirmed
            && (gives_way || fit.is_counted && fit.finding.explains.is_some_and(|counted| counted + share > 1.0))
        {
            let text = format!(
                "{} But {} was shown to make {} of the gap, which leaves no room for that",
                fit.finding.summary,
                shown.entry.id,
                percent(share)
            );
            *standing = Standing::Undecided(gap.on_host(text, None));
        }
    }
}

/// Takes back causes that are not confirmed where a flip shows what they come from, and moves about as much: it is the same time.
fn take_back_what_flips_tell(gap: &Gap<'_>, causes: &[&Cause], standings: &mut [Standing]) {
    /// What a cause is worth and what a flip moved is the same time up to this factor: both scatter.
    const AS_MUCH: f64 = 1.5;
    let of_flips: Vec<(&CauseEntry, f64)> = standings
        .iter()
        .zip(causes)
        .filter_map(|(standing, cause)| Some((cause.entry, standing.fit()?)))
        .filter(|(_, fit)| !fit.is_counted && fit.finding.confidence >= Confidence::Likely)
        .map(|(entry, fit)| (entry, fit.moved_ns))
        .collect();
    for (standing, cause) in standings.iter_mut().zip(causes) {
        let Standing::Fits(fit) = standing else { continue };
        let tells = |(shown, moved_ns): &&(&CauseEntry, f64)| {
            likes::asks_for(cause.entry, shown) && fit.moved_ns <= AS_MUCH * moved_ns
        };
        if fit.finding.confidence < Confidence::Confirmed
            && let Some((shown, _)) = of_flips.iter().find(tells)
        {
            let text = format!("{} But that is what {} was shown to take away", fit.finding.summary, shown.id);
            *standing = Standing::Undecided(gap.on_host(text, None));
        }
    }
}

/// The probe that separates the most causes still standing, over all gaps, per second of its budget.
///
/// One that only places a gap which may stay unexplained counts a quarter: it accuses and acquits nobody. A cause that asks
/// last counts little more than that.
fn best_probe(case: &Case<'_>, trials: &[Trial<'_>]) -> Option<Probe> {
    const PLACING: f64 = 0.25;
    const LAST: f64 = 0.3;
    /// A probe that is made once more comes after all that were not made yet.
    const LONGER: f64 = 0.01;
    /// A cause is as good as found, and the answer may end the search.
    const CONTROL: f64 = 1e3;
    let mut wanted: Vec<(Probe, f64)> = Vec::new();
    let mut want = |probe: &Probe, weight: f64| {
        let affordable = probe.budget_ns <= case.budget_left_ns && case.outcome(&probe.id).is_none();
        match wanted.iter_mut().find(|(other, _)| other.id == probe.id) {
            Some((_, sum)) => *sum += weight,
            None if affordable => wanted.push((probe.clone(), weight)),
            None => {}
        }
    };
    for trial in trials {
        match &trial.gap.reference {
            // Without it no other probe can be read.
            Reference::Wanted(probe) => want(probe, 1e6),
            Reference::Missing(_) => {
                let asking = trial.causes.iter().zip(&trial.standings).filter(|(cause, _)| cause.needs_no_reference);
                for (_, standing) in asking {
                    if let Standing::Wants(probes) = standing {
                        probes.iter().for_each(|probe| want(probe, PLACING));
                    }
                }
            }
            Reference::Known(_) => {
                let is_settled = trial.is_settled();
                for (cause, standing) in trial.causes.iter().zip(&trial.standings) {
                    if is_settled && !trial.is_asked_for(cause) {
                        continue;
                    }
                    // What can only be suspected in the end accuses and acquits nobody either.
                    let usual = match (trial.may_be_named)(cause.to_be_proven()) {
                        true if cause.asks_last => LAST,
                        true => 1.0,
                        false => PLACING,
                    };
                    let weight = |probe: &Probe| match () {
                        () if probe.id == AGAIN.id(trial.gap.mode) => CONTROL,
                        () if probe.takes_all => LONGER,
                        () => usual,
                    };
                    if let Standing::Wants(probes) = standing {
                        probes.iter().for_each(|probe| want(probe, weight(probe)));
                    }
                }
                if !is_settled {
                    unknown::wants(&trial.gap).iter().for_each(|probe| want(probe, PLACING));
                }
            }
        }
    }
    let value = |(probe, weight): &(Probe, f64)| weight / probe.budget_ns.max(1) as f64;
    wanted.sort_by(|a, b| {
        value(b)
            .total_cmp(&value(a))
            .then_with(|| Kind::order(&a.0.id).cmp(&Kind::order(&b.0.id)))
            .then_with(|| a.0.id.cmp(&b.0.id))
    });
    wanted.into_iter().map(|(probe, _)| probe).next()
}

/// What a layer below that is slower asks next: why it is. That comes last, for it changes nothing of what is found above.
fn probe_below(case: &Case<'_>, trials: &[Trial<'_>], may_be_named: fn(&str) -> bool) -> Option<Probe> {
    let is_slower = |layer: Layer| trials.iter().flat_map(Trial::fits).any(|fit| fit.below == Some(layer));
    let asks = |(layer, below): &(Layer, Case<'_>)| match next_naming(below, may_be_named) {
        Step::Probe(probe) => Some(below::asked_from_above(*layer, probe)),
        Step::Conclude(_) => None,
    };
    case.below.iter().filter(|(layer, _)| is_slower(*layer)).find_map(asks)
}

/// A finding, with the cause that was found in the layer below, where it says that this is slower.
fn deepened(fit: &Fit, below: &[(Layer, Vec<Finding>)]) -> Finding {
    let mut finding = fit.finding.clone();
    let names_cause = |found: &&Finding| {
        let is_cause = found.cause != unknown::ENTRY.id && found.cause != none::ENTRY.id;
        is_cause && found.target == finding.target && found.confidence >= Confidence::Likely
    };
    if let Some((layer, found)) = below.iter().find(|(layer, _)| fit.below == Some(*layer))
        && let Some(found) = found.iter().find(names_cause)
    {
        below::deepen(&mut finding, *layer, found);
    }
    finding
}

fn conclude(case: &Case<'_>, trials: &[Trial<'_>], may_be_named: fn(&str) -> bool) -> Explanation {
    let of_layer = |(layer, below): &(Layer, Case<'_>)| {
        (*layer, conclude(below, &self::trials(below, may_be_named), may_be_named).findings)
    };
    let below: Vec<_> = case.below.iter().map(of_layer).collect();
    let mut named: Vec<Finding> = Vec::new();
    let mut unnamed = Vec::new();
    for trial in trials {
        for fit in trial.fits() {
            let finding = deepened(fit, &below);
            // A slow baseline is found anew against each target.
            let same = |other: &&mut Finding| other.cause == finding.cause && other.target == finding.target;
            match named.iter_mut().find(same) {
                Some(known) => merge(known, &finding),
                None => named.push(finding),
            }
        }
        let left = trial.share_left();
        let left_log = left * trial.gap.known_reference().unwrap_or(&trial.gap.comparison).log.mid;
        let beyond_margin = left_log > case.margin_log() || trial.fits().next().is_none();
        if !trial.is_explained() && beyond_margin {
            unnamed.push(unknown::finding(&trial.gap, &trial.causes, &trial.standings, left));
        }
    }
    named.sort_by(|a, b| b.explains.unwrap_or(0.0).total_cmp(&a.explains.unwrap_or(0.0)));
    let differing: Vec<_> = trials.iter().map(|trial| trial.gap.slow.max(trial.gap.fast)).collect();
    let equal = case.main_pairs().filter(|(index, _)| !differing.contains(index));
    let mut findings = named;
    // What clients go through before they are connected is in no gap: it has no share, and it is something found.
    findings.extend(names::findings(case));
    findings.extend(unnamed);
    findings.extend(equal.map(|(index, pair)| none::finding(case, index, pair)));

    let excluded = |index: usize| {
        !trials.is_empty() && trials.iter().all(|trial| matches!(trial.standings[index], Standing::RuledOut(_)))
    };
    let suiting = causes::suiting(case);
    let ruled_out = suiting.iter().enumerate().filter(|(index, _)| excluded(*index));
    Explanation {
        findings,
        ruled_out: ruled_out.map(|(_, cause)| cause.entry.id.to_owned()).collect(),
        probes: case.outcomes.to_vec(),
    }
}

/// The stronger finding with the evidence of both.
fn merge(known: &mut Finding, other: &Finding) {
    let mut evidence = std::mem::take(&mut known.evidence);
    evidence.extend(other.evidence.iter().filter(|line| !evidence.contains(line)).cloned().collect::<Vec<_>>());
    if (other.confidence, other.explains.unwrap_or(0.0)) > (known.confidence, known.explains.unwrap_or(0.0)) {
        *known = other.clone();
    }
    known.evidence = evidence;
}
