//! A cause, and how it stands against the evidence.

use crate::evidence::fronts::unless_handed_on;
use crate::gap::{Flip, FlipLook, Gap, Look, View, percent};
use crate::probes::Kind;
use crate::twins::{self, Twins};
use duel_model::{Confidence, Evidence, Finding, HttpPlan, Layer, Leads, Probe, TwinChange};

/// A cause, to be held against a gap.
pub(crate) struct Cause {
    /// Its id and description.
    pub(crate) entry: &'static CauseEntry,
    /// How it stands, given what is known so far; `Err` where that settles it before its own judgement.
    pub(crate) weigh: fn(&Gap<'_>) -> Result<Standing, Standing>,
    /// The kinds of work that it can be a cause of.
    pub(crate) kinds: &'static [&'static str],
    /// What takes it away from a twin of the slow side's server, where something does and `weigh` leaves it to
    /// [`Self::examine`] to look at twins.
    pub(crate) cure: Option<Cure>,
    /// Whether it asks only when all other causes have: it is seldom the cause, and nothing but its own probes tells.
    pub(crate) asks_last: bool,
    /// Whether it asks though there is no reference for flips: that the gap does not show in probes is part of what it looks for.
    pub(crate) needs_no_reference: bool,
    /// Whether what rules it out is of the server's own processes and groups. Of those that a server hands requests on to they tell nothing.
    pub(crate) reads_server_alone: bool,
}

impl Cause {
    /// A cause of web servers.
    pub(crate) const fn of(entry: &'static CauseEntry, weigh: fn(&Gap<'_>) -> Result<Standing, Standing>) -> Self {
        Self {
            entry,
            weigh,
            kinds: WEB,
            cure: None,
            asks_last: false,
            needs_no_reference: false,
            reads_server_alone: false,
        }
    }

    /// What tells whether it may be named: its id. Of a cause that another kind of work has as well, where real faults have shown it, the kind
    /// is told with it.
    pub(crate) fn to_be_proven(&self) -> &'static str {
        match (self.entry.id, self.kinds) {
            ("net.congestion-control", kinds) if kinds == WEB => "net.congestion-control of web",
            (id, _) => id,
        }
    }

    /// How it stands by its own judgement.
    pub(crate) fn standing(&self, gap: &Gap<'_>) -> Standing {
        (self.weigh)(gap).unwrap_or_else(|settled| settled)
    }

    /// The same, and by what twins show, where one may be started. For a server that hands requests on, it is not ruled out by what that one
    /// does alone: causes that look like it ask for its own judgement, and say by themselves that whom a server asks may do the same.
    pub(crate) fn examine(&self, gap: &Gap<'_>) -> Standing {
        match (self.standing(gap), self.cure) {
            (Standing::Fits(fit), Some(cure)) if fit.finding.confidence < Confidence::Confirmed => {
                on_twins(gap, fit, cure)
            }
            (standing, _) if self.reads_server_alone => unless_handed_on(gap, standing),
            (standing, _) => standing,
        }
    }
}

/// The work of causes that say nothing else. Work that does nothing is among it: what slows its generator slows a web server's.
const WEB: &[&str] = &["http", "null"];

/// What takes a cause away from a twin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cure {
    pub(crate) change: TwinChange,
    /// The cause may lie around the server as well, where a twin does not have it either: on the path, for example.
    pub(crate) may_lie_outside: bool,
}

/// How a cause stands against the evidence.
pub(crate) enum Standing {
    /// The evidence excludes it as a cause of this gap.
    RuledOut(Evidence),
    /// Something of it was seen, and too little to be named. Other causes may count on that; but nobody is told that it is ruled out. Causes
    /// go by it that count what happens, and see it on the slow side alone; what a flip moves a little is ruled out.
    Minor(Evidence),
    /// These probes, in any order, would tell more.
    Wants(Vec<Probe>),
    /// Its signature fits.
    Fits(Box<Fit>),
    /// No probe would tell more, and neither does the evidence at hand.
    Undecided(Evidence),
    /// Its signature fits, and it may not be named.
    Suspected(Evidence),
}

impl Standing {
    /// The same; where it fits, with more said of that.
    pub(crate) fn with(mut self, say: impl FnOnce(&mut Fit)) -> Self {
        if let Self::Fits(fit) = &mut self {
            say(fit);
        }
        self
    }

    pub(crate) fn fit(&self) -> Option<&Fit> {
        match self {
            Self::Fits(fit) => Some(fit),
            Self::RuledOut(_) | Self::Minor(_) | Self::Wants(_) | Self::Undecided(_) | Self::Suspected(_) => None,
        }
    }
}

/// A cause whose signature fits.
pub(crate) struct Fit {
    pub(crate) finding: Finding,
    /// Time per op that the slow side would save without it, ns.
    pub(crate) moved_ns: f64,
    /// It rests on what was counted, and nothing was taken away.
    pub(crate) is_counted: bool,
    /// The server itself was seen without the gap, started anew with nothing but the cause taken away.
    pub(crate) shown_on_twin: bool,
    /// It rests on the gap under the plan's load, even where the gap's own reference is over one connection.
    pub(crate) is_under_load: bool,
    /// With it weakened as far as it could be it still held the slow side up: what the rest of the gap is made of is hidden
    /// behind it.
    pub(crate) hides_rest: bool,
    /// The layer below that it says is slower, of which more can be asked there.
    pub(crate) below: Option<Layer>,
}

impl Fit {
    /// One that rests on what was counted, and moves nothing by itself.
    pub(crate) fn of(
        gap: &Gap<'_>,
        entry: &CauseEntry,
        share: Option<f64>,
        confidence: Confidence,
        told: Told,
    ) -> Self {
        let Told { summary, remedy, facts, further } = told;
        let finding = Finding {
            cause: entry.id.to_owned(),
            target: gap.case.plan.targets.get(gap.slow).map(|target| target.name.clone()),
            confidence,
            explains: share,
            summary,
            evidence: gap.preamble().into_iter().chain(facts).chain(further).collect(),
            remedy,
            leads: Leads::default(),
        };
        Self {
            finding,
            moved_ns: 0.0,
            is_counted: true,
            shown_on_twin: false,
            is_under_load: false,
            hides_rest: false,
            below: None,
        }
    }
}

/// An entry of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CauseEntry {
    /// Stable id, such as `tls.aes-unused`.
    pub id: &'static str,
    /// What it is, in one line.
    pub description: &'static str,
    /// What it looks like, so that it is told from others.
    pub signature: &'static str,
    /// How firmly it may stand at most, and by what.
    pub at_most: &'static str,
    /// Whether it is found only where the machine of the target is read.
    pub needs_machine: bool,
}

/// A cause of HTTP has nothing to do with other workloads.
pub(crate) fn needs_http<'a>(gap: &Gap<'a>) -> Result<&'a HttpPlan, Standing> {
    gap.case.http().ok_or_else(|| Standing::RuledOut(gap.not_measured("the workload is not HTTP".to_owned())))
}

/// A cause of TLS has nothing to do with a slow side that does not use it.
pub(crate) fn needs_tls(gap: &Gap<'_>) -> Result<(), Standing> {
    let without = || Standing::RuledOut(gap.first_contact(format!("{} does not use TLS", gap.slow_name())));
    gap.uses_tls(gap.slow).then_some(()).ok_or_else(without)
}

/// What is known of the slow side and of the fast one. Where it is not known of both, in the words of `unknown`, the
/// cause is left open.
pub(crate) fn of_both<T>(gap: &Gap<'_>, unknown: &str, of: impl Fn(usize) -> Option<T>) -> Result<[T; 2], Standing> {
    match [gap.slow, gap.fast].map(of) {
        [Some(of_slow), Some(of_fast)] => Ok([of_slow, of_fast]),
        _ => Err(Standing::Undecided(gap.not_measured(unknown.to_owned()))),
    }
}

/// What a flip showed. It is wanted where it was not made yet, and where it cannot be used the cause is left open.
pub(crate) fn shown_flip<'a>(gap: &Gap<'a>, kind: Kind) -> Result<Box<Flip<'a>>, Standing> {
    shown(gap, gap.flip(kind))
}

/// What a probe showed, in the same way.
pub(crate) fn shown_look<'a>(gap: &Gap<'a>, kind: Kind) -> Result<View<'a>, Standing> {
    match gap.look(kind) {
        Look::Shown(view) => Ok(view),
        Look::NotAsked(probe) => Err(Standing::Wants(vec![probe])),
        Look::Missing(why) => Err(Standing::Undecided(gap.not_measured(why))),
    }
}

/// The same of a flip that was looked at.
pub(crate) fn shown<'a>(gap: &Gap<'a>, look: FlipLook<'a>) -> Result<Box<Flip<'a>>, Standing> {
    match look {
        FlipLook::Shown(flip) => Ok(flip),
        FlipLook::NotAsked(probe) => Err(Standing::Wants(vec![probe])),
        FlipLook::Missing(why) => Err(Standing::Undecided(gap.not_measured(why))),
    }
}

/// A fit that rests on a flip.
pub(crate) fn fit(
    gap: &Gap<'_>,
    entry: &CauseEntry,
    flip: &Flip<'_>,
    confidence: Confidence,
    mut told: Told,
) -> Standing {
    told.facts.push(gap.evidence(&flip.view, gap.tell_flip(flip)));
    let share = Some(flip.gone.share());
    let (moved_ns, is_counted) = (flip.moved_ns, false);
    Standing::Fits(Box::new(Fit { moved_ns, is_counted, ..Fit::of(gap, entry, share, confidence, told) }))
}

/// A fit that rests on what the machines do, without a flip.
///
/// `share` is the share of the log of the gap that the cause is worth by what was counted, where that can be told. It
/// is `Likely` at best: nothing was taken away.
pub(crate) fn fit_by_host(
    gap: &Gap<'_>,
    entry: &CauseEntry,
    share: Option<f64>,
    confidence: Confidence,
    told: Told,
) -> Standing {
    let share = share.map(|share| share.clamp(0.0, 1.0));
    // In time per op: what is left of the gap's ratio when that share of its log is gone.
    let moved_ns = share.zip(gap.known_reference()).and_then(|(share, reference)| {
        let left = ((1.0 - share) * reference.log.mid).exp();
        Some(reference.fast_ns()? * (reference.ratio - left))
    });
    let fit = Fit::of(gap, entry, share, confidence.min(Confidence::Likely), told);
    Standing::Fits(Box::new(Fit { moved_ns: moved_ns.unwrap_or(0.0), ..fit }))
}

/// A fit that rests on twins of the slow side's server: with the cause taken away from one, and nothing else, its gap is
/// gone.
pub(crate) fn fit_by_twin(gap: &Gap<'_>, entry: &CauseEntry, twins: twins::Told<'_>, mut told: Told) -> Standing {
    let confirms = twins.confirms();
    told.further.extend(twins.evidence);
    let share = twins.flip.as_ref().map(|flip| gap.share_by_twin(flip));
    fit_by_host(gap, entry, share, Confidence::Likely, told).with(|fit| {
        let Some(flip) = &twins.flip else { return };
        fit.finding.confidence = if confirms { Confidence::Confirmed } else { Confidence::Likely };
        fit.moved_ns = flip.moved_ns;
        fit.is_counted = false;
        fit.shown_on_twin = confirms;
    })
}

/// A fit, and what twins make of it: with the change the gap is gone, and the cause is confirmed; or the twins say otherwise,
/// and it is left open.
fn on_twins(gap: &Gap<'_>, mut fit: Box<Fit>, cure: Cure) -> Standing {
    let twins = match gap.on_twins(cure.change) {
        Twins::NotAllowed => return Standing::Fits(fit),
        Twins::Wanted(probe) => return Standing::Wants(vec![probe]),
        Twins::Told(twins) => twins,
    };
    let last = twins.evidence.last().cloned();
    if let Some(evidence) = last
        && (twins.acquits() || twins.has_no_gap && !cure.may_lie_outside)
    {
        return Standing::Undecided(Evidence {
            text: format!("{} But {}", fit.finding.summary, evidence.text),
            ..evidence
        });
    }
    fit.finding.evidence.extend(twins.evidence);
    let Some(flip) = twins.flip else { return Standing::Fits(fit) };
    if flip.confirms() {
        let share = gap.share_by_twin(&flip);
        let gone =
            format!(" A twin shows that it is this: {}, {} of the gap is gone.", flip.kind.phrase(), percent(share));
        fit.finding.summary.push_str(&gone);
        fit.finding.confidence = Confidence::Confirmed;
        fit.finding.explains = Some(share);
        fit.moved_ns = flip.moved_ns;
        fit.is_counted = false;
        fit.shown_on_twin = true;
    } else if !twins.may_not_hold {
        // It is worth no more than taking it away can have moved.
        let most = flip.gone.most();
        if let Some(share) = fit.finding.explains.filter(|share| *share > most) {
            fit.finding.explains = Some(most);
            fit.moved_ns *= most / share;
        }
    }
    Standing::Fits(fit)
}

/// What the user will read of a fit.
pub(crate) struct Told {
    pub(crate) summary: String,
    pub(crate) remedy: String,
    /// Evidence from before the flip.
    pub(crate) facts: Vec<Evidence>,
    /// Evidence from after it.
    pub(crate) further: Vec<Evidence>,
}

/// The standing of a cause whose flip was made and did not move the gap beyond doubt, in the sentence that says so. Where a longer look
/// would tell and there is time for it, that is wanted.
pub(crate) fn did_not_move(gap: &Gap<'_>, flip: &Flip<'_>) -> Standing {
    let text = gap.tell_flip(flip);
    if flip.is_negligible() {
        Standing::RuledOut(gap.evidence(&flip.view, text))
    } else if let Some(longer) = gap.longer(flip) {
        Standing::Wants(vec![longer])
    } else {
        Standing::Undecided(gap.evidence(&flip.view, format!("{text}: that leaves open whether it matters")))
    }
}

/// The same where the sides are known to differ in what the flip makes equal. That costs what it costs, also beside a larger cause: it is
/// ruled out only if that is less than the margin at most.
pub(crate) fn moved_little(gap: &Gap<'_>, flip: &Flip<'_>) -> Standing {
    match did_not_move(gap, flip) {
        Standing::RuledOut(seen) if flip.moved_log.high() >= gap.case.margin_log() => {
            let text = format!("{}: that may be up to {} of the gap", seen.text, percent(flip.gone.most()));
            Standing::Minor(Evidence { text, ..seen })
        }
        settled => settled,
    }
}
