//! What private twins of the slow side's server show.
//!
//! Two twins are held against each other: one started as the server is, one with a single change. Both are newly started,
//! in the same surroundings, and reached in the same way, so what differs between their gaps comes from the change. The
//! twin as it is has to show the gap itself; if it does not, nothing follows from the changed one.

use crate::gap::{Flip, Gap, Look, View};
use crate::probes::{self, COPY, Kind};
use crate::repeat;
use duel_model::{Evidence, Probe, TwinChange, TwinReading, sanitize_line};

/// What is known from twins.
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and it is taken apart at once")]
pub(crate) enum Twins<'a> {
    /// Nobody has allowed one.
    NotAllowed,
    /// This probe will tell more.
    Wanted(Probe),
    /// What they told.
    Told(Told<'a>),
}

/// What twins told.
pub(crate) struct Told<'a> {
    /// In sentences, what could not be found out too.
    pub(crate) evidence: Vec<Evidence>,
    /// What the change did to the gap of the twin as it is, where that twin shows the gap.
    pub(crate) flip: Option<Box<Flip<'a>>>,
    /// The twin as it is shows no gap: the cause is not in how the server is started and set up.
    pub(crate) has_no_gap: bool,
    /// The change may not have taken hold everywhere.
    pub(crate) may_not_hold: bool,
    /// Both may have begun with different parts of their tables in memory.
    began_unlike: bool,
}

impl Told<'_> {
    /// With the change the gap is gone.
    pub(crate) fn confirms(&self) -> bool {
        self.flip.as_ref().is_some_and(|flip| flip.confirms()) && !self.began_unlike
    }

    /// The gap is there with the change, which took hold, as without it.
    pub(crate) fn acquits(&self) -> bool {
        self.flip.as_ref().is_some_and(|flip| flip.is_negligible()) && !self.may_not_hold && !self.began_unlike
    }

    /// Neither of both told anything, so that what was known without them stands: none could be made, or too little is known of its gap.
    pub(crate) fn tells_nothing(&self) -> bool {
        self.flip.is_none() && !self.has_no_gap
    }

    /// Of twins from which nothing follows.
    fn nothing(evidence: Evidence) -> Self {
        Self { evidence: vec![evidence], flip: None, has_no_gap: false, may_not_hold: false, began_unlike: false }
    }
}

impl<'a> Gap<'a> {
    /// What twins of the slow side's server tell about this change. The changed one is asked for first: where the change
    /// cannot be made, that takes no time.
    pub(crate) fn on_twins(&self, change: TwinChange) -> Twins<'a> {
        if !self.case.may_have_twin(self.slow) {
            return Twins::NotAllowed;
        }
        self.on_both([Some(change), None].map(|change| probes::twin(change).of(self.slow)))
    }

    /// What private copies of the slow side's server tell about a change that is made to one of them.
    pub(crate) fn on_copies(&self, changed: Kind) -> Twins<'a> {
        if self.case.most_copied_bytes.is_none() {
            return Twins::NotAllowed;
        }
        self.on_both([changed, COPY].map(|kind| kind.of(self.slow)))
    }

    fn on_both(&self, [changed, same]: [Kind; 2]) -> Twins<'a> {
        // Neither tells anything without the other. What cannot be afforded any more must not keep a cause waiting for it.
        let left_ns = self.case.budget_left_ns;
        let too_late = |kind: Kind| {
            let (stand_ins, more) = match kind.entry.is_copy {
                true => ("private copies", "; a longer --why-budget has some"),
                false => ("twins", ""),
            };
            let text =
                format!("there was no time left for {stand_ins}, which may confirm it or speak against it{more}");
            Twins::Told(Told::nothing(self.of_twins(kind, text)))
        };
        let changed_look = match self.look(changed) {
            Look::NotAsked(probe) if 2 * probe.budget_ns > left_ns => return too_late(changed),
            Look::NotAsked(probe) => return Twins::Wanted(probe),
            Look::Missing(why) => Err(why),
            Look::Shown(view) => Ok(view),
        };
        let same_view = match self.look(same) {
            Look::NotAsked(probe) if probe.budget_ns > left_ns => return too_late(same),
            Look::NotAsked(probe) => return Twins::Wanted(probe),
            Look::Missing(why) => {
                let text = format!("no twin of {}'s server tells anything: {why}", self.slow_name());
                return Twins::Told(Told::nothing(self.of_twins(same, text)));
            }
            Look::Shown(view) => view,
        };
        Twins::Told(match self.twin_shows_the_gap(&same_view) {
            Shows::Gap => self.changed(changed, changed_look, same, &same_view),
            Shows::NoGap => {
                let besides = self.differs_besides(same);
                let has_no_gap = besides.is_none();
                let text = match besides {
                    Some(besides) => format!(
                        "{}: {} instead of {}; but {besides}, so nothing follows from twins",
                        same.phrase(),
                        self.tell(&same_view),
                        self.reference_ratio()
                    ),
                    None => self.gone_when_started_anew(same, &same_view),
                };
                Told { has_no_gap, ..Told::nothing(self.of_twins(same, text)) }
            }
            Shows::Unclear => {
                let may_be = self.known_reference().is_some_and(|reference| {
                    same_view.log.low() < reference.log.mid && reference.log.mid < same_view.log.high()
                });
                let what =
                    if may_be { "too little is known of how large that gap is" } else { "that is not the gap itself" };
                let text = format!(
                    "{}: {} instead of {}; {what}, so nothing follows from twins",
                    same.phrase(),
                    self.tell(&same_view),
                    self.reference_ratio()
                );
                Told::nothing(self.of_twins(same, text))
            }
        })
    }

    /// In what a twin as it is differs from its server in spite of that, which may be where the gap is.
    fn differs_besides(&self, same: Kind) -> Option<String> {
        let reading = self.reading(same)?;
        // Packets cost less, and a gap may be one of packets.
        let is_elsewhere = reading.is_reached_otherwise.then(|| {
            let how = match same.entry.is_copy {
                true => {
                    "the copy is reached by a Unix socket and its server is not, or their logs lie on different disks"
                }
                false => "the twin is reached over a loopback interface and its server is not",
            };
            how.to_owned()
        });
        let left_out = Some(reading.left_out.join(", ")).filter(|names| !names.is_empty());
        is_elsewhere.or(left_out.map(|names| format!("it was started without the server's {}", sanitize_line(&names))))
    }

    fn twin_shows_the_gap(&self, same: &View<'_>) -> Shows {
        let Some(reference) = self.known_reference() else { return Shows::Unclear };
        let whole = reference.log.mid;
        // One that is larger by all of its interval is made of something else, too.
        let is_larger = same.log.low() > whole / Flip::EXPLAINS;
        if same.log.mid >= Flip::EXPLAINS * whole && same.log.low() > 0.5 * whole && !is_larger {
            Shows::Gap
        } else if same.log.mid <= (1.0 - Flip::EXPLAINS) * whole && same.log.high() < 0.5 * whole {
            Shows::NoGap
        } else {
            Shows::Unclear
        }
    }

    /// The share of the gap that went away with a change to a twin: of the twin's own gap, and no more than what moved is of the server's.
    pub(crate) fn share_by_twin(&self, flip: &Flip<'_>) -> f64 {
        let of_server = self.known_reference().map_or(0.0, |reference| flip.moved_log.mid / reference.log.mid);
        flip.gone.share().min(of_server).max(0.0)
    }

    fn changed(&self, changed: Kind, look: Result<View<'a>, String>, same: Kind, same_view: &View<'a>) -> Told<'a> {
        let shown = format!("{}: {}", same.phrase(), self.tell(same_view));
        let mut told = Told::nothing(self.of_twins(same, shown));
        let view = match look {
            Ok(view) => view,
            Err(why) => {
                told.evidence.push(self.of_twins(changed, format!("the change could not be made: {why}")));
                return told;
            }
        };
        let of_library = matches!(changed.entry.twin, Some(TwinChange::NoMask | TwinChange::SystemLibcrypto));
        let how = self.reading(changed).map_or_else(String::new, |reading| {
            let library = reading.libcrypto.as_deref().filter(|_| of_library);
            let parts = [
                reading.changed.as_deref().map(sanitize_line),
                library.map(|path| format!("it maps {}", sanitize_line(path))),
            ];
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            format!(" ({})", parts.join("; "))
        });
        told.may_not_hold = self.reading(changed).is_some_and(|reading| reading.may_not_hold);
        told.began_unlike =
            [same, changed].iter().any(|kind| self.reading(*kind).is_some_and(|reading| reading.warming_was_cut));
        let cold = match changed.entry.is_copy && told.may_not_hold {
            _ if told.began_unlike => {
                "; one of the copies could not read its tables into memory in time, so that neither a gap that stays nor one that \
                 goes away proves anything"
            }
            true => "; it began with less in its memory than all tables, so that a gap that stays says little",
            false => "",
        };
        let text = format!(
            "{}: {} instead of {:.2}x without that change{how}{cold}",
            changed.phrase(),
            self.tell(&view),
            same_view.ratio
        );
        told.evidence.push(self.of_twins(changed, text));
        if told.may_not_hold && !changed.entry.is_copy {
            let text = "whether the change took hold everywhere in the twin is not known".to_owned();
            told.evidence.push(self.of_twins(changed, text));
        }
        told.flip = Flip::new(changed, same_view, view).map(Box::new);
        told
    }

    /// A new process with what is known of the old one does not show the gap: evidence of its own.
    fn gone_when_started_anew(&self, same: Kind, view: &View<'_>) -> String {
        if same.entry.is_copy {
            return format!(
                "{}: {} instead of {}, so it lies neither in its data nor in its settings, but in what has become of the running \
                 server (its memory, other sessions), or in what stands around it",
                same.phrase(),
                self.tell(view),
                self.reference_ratio()
            );
        }
        let known = self.reading(same).is_some_and(|reading| reading.environment_known);
        let follows = if known {
            "so it lies neither in the program nor in its arguments, environment, limits or its configuration as it is now, \
             but in what has become of the running process (a configuration that was changed after its start, say), or in \
             what stands around it and not around a twin, such as its control group or the path to it"
        } else {
            "with a clean environment, since the server has written over its own: so what the running server was started \
             with (a configuration that was changed since, say), what has become of it, or what stands around it and not \
             around a twin (its control group, the path to it) matters"
        };
        format!("{}: {} instead of {}, {follows}", same.phrase(), self.tell(view), self.reference_ratio())
    }

    fn reference_ratio(&self) -> String {
        self.known_reference().map_or_else(|| "the gap".to_owned(), |view| format!("{:.2}x", view.ratio))
    }

    fn reading(&self, kind: Kind) -> Option<&'a TwinReading> {
        self.case.outcome(&kind.id(self.mode))?.twin.as_ref()
    }

    fn of_twins(&self, kind: Kind, text: String) -> Evidence {
        let targets = [0, self.slow.max(self.fast)];
        if kind.entry.is_copy {
            let repeat = self.case.most_copied_bytes.and_then(|most| repeat::with_copies(&self.case, targets, most));
            return Evidence::new(kind.id(self.mode), text, repeat);
        }
        let pids = targets.map(|target| self.host_fact(target, "process.pid")?.parse().ok());
        let repeat = repeat::with_twins(&self.case, targets, self.slow, pids);
        Evidence::new(kind.id(self.mode), text, repeat)
    }
}

/// Whether a twin that was started as the server was shows the gap.
enum Shows {
    Gap,
    NoGap,
    Unclear,
}
