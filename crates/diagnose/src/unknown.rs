//! `unknown`: no cause fits, or not all of the gap is told by those that do. Then at least: where does the gap sit, and what
//! is it not.

use crate::cause::{Cause, CauseEntry, Fit, Standing};
use crate::gap::{FlipLook, Gap, Look, Reference, differences_in, failed_share, per_byte_share, percent};
use crate::leads::leads;
use crate::probes::{ALL_CLOSE, ALONE, CHACHA20, IDENTITY, KEPT, Kind, Mode, RANGE_1, RANGE_HALF, RESUMED};
use duel_model::web::phase;
use duel_model::{
    AboutCause, Confidence, Evidence, Finding, Leads, Phase, Probe, Stands, TargetObservation, capitalized,
    format_bytes, format_duration_ns, format_figure, sanitize_line, shell_word, web,
};

pub(crate) static ENTRY: CauseEntry = CauseEntry {
    id: "unknown",
    description: "no cause of the catalogue fits; tells where the gap sits, where to look first and what was ruled out",
    signature: "no cause fits, or not all of the gap is told: tells in which phase the gap sits, whether it is \
                paid per request or per byte, whether it shows over one connection, what does not matter, what is \
                ruled out and what is left open",
    at_most: "possible",
    needs_machine: false,
};

/// The flips that place a gap, whatever its cause.
const PLACING: [Kind; 5] = [RANGE_1, CHACHA20, ALL_CLOSE, KEPT, RANGE_HALF];

/// Probes that would place the gap better.
pub(crate) fn wants(gap: &Gap<'_>) -> Vec<Probe> {
    if gap.known_reference().is_none() {
        return Vec::new();
    }
    let both_tls = gap.uses_tls(gap.slow) && gap.uses_tls(gap.fast);
    PLACING
        .into_iter()
        .filter(|kind| *kind != CHACHA20 || both_tls)
        // Half of the response tells whether the cost per byte is constant: nothing, where there is none.
        .filter(|kind| *kind != RANGE_HALF || matches!(gap.look(RANGE_1), Look::Shown(_)))
        .filter_map(|kind| match gap.look(kind) {
            Look::NotAsked(probe) => Some(probe),
            Look::Missing(_) | Look::Shown(_) => None,
        })
        .collect()
}

/// What is said of a gap that no cause explains, or of the rest of one; `left` is the share that is left.
pub(crate) fn finding(gap: &Gap<'_>, causes: &[&Cause], standings: &[Standing], left: f64) -> Finding {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let mut place = Place::default();
    place.by_failures(gap);
    place.by_concurrency(gap);
    place.by_phase(gap);
    place.by_size(gap);
    place.by_flips(gap);
    place.by_bytes(gap);

    let mut evidence = gap.preamble();
    evidence.extend(place.evidence);
    evidence.extend(no_twin(gap));
    let mut settled = true;
    let mut about_causes = Vec::new();
    for (cause, standing) in causes.iter().zip(standings) {
        let (stands, by) = match standing {
            Standing::RuledOut(by) => (Stands::RuledOut, by.clone()),
            Standing::Minor(by) | Standing::Undecided(by) => (Stands::Open, by.clone()),
            Standing::Suspected(by) => (Stands::Suspected, by.clone()),
            Standing::Wants(probes) => {
                let ids: Vec<_> = probes.iter().map(|probe| &*probe.id).collect();
                // What was not made cannot be repeated.
                let why = if gap.case.is_interrupted() { "since you ended the search" } else { "for want of time" };
                let text = format!("not made {why}: {}", ids.join(", "));
                (Stands::Open, Evidence::new("comparison", text, None))
            }
            Standing::Fits(_) => continue,
        };
        settled &= stands == Stands::RuledOut;
        let about = AboutCause { cause: cause.entry.id.to_owned(), stands };
        about_causes.push((stands, Evidence { about: Some(about), ..by }));
    }
    // What fits, and may not be named, is what somebody reads on for.
    about_causes.sort_by_key(|(stands, _)| *stands != Stands::Suspected);
    evidence.extend(about_causes.into_iter().map(|(_, line)| line));
    if let Reference::Missing(why) = &gap.reference {
        evidence.push(gap.evidence(&gap.comparison, format!("no flip could be held against the gap: {why}")));
    }

    let where_to = if place.says.is_empty() {
        "Where it sits was not found out.".to_owned()
    } else {
        format!("{}.", capitalized(&place.says.join("; ")))
    };
    let fits: Vec<&Fit> = standings.iter().filter_map(Standing::fit).collect();
    let is_whole = left > 0.99;
    let what_is_left = if is_whole {
        let why = match (&fits[..], settled) {
            ([_, ..], _) => "",
            ([], true) => ", and no known cause fits",
            ([], false) => ", and no cause could be shown",
        };
        let by = gap.by_metric(&gap.comparison);
        format!("{slow} is {}x slower than {fast}{by}{why}", format_figure(gap.comparison.ratio))
    } else {
        format!("About {} of the gap between {slow} and {fast} is left unexplained", percent(left))
    };
    let ended = if gap.case.is_interrupted() { "You ended the search before it was done. " } else { "" };
    let summary = format!("{ended}{what_is_left}{} {where_to}", reservations(&fits, is_whole));
    let leads = leads(gap, causes, standings);
    Finding {
        cause: ENTRY.id.to_owned(),
        target: gap.case.plan.targets.get(gap.slow).map(|target| target.name.clone()),
        confidence: Confidence::Possible,
        explains: None,
        summary,
        evidence,
        remedy: remedy(gap, place.remedy, &leads),
        leads,
    }
}

/// How the paths to all machines are measured without their servers; empty where that was done, and where a machine is not known, is this
/// one, or is that of both sides.
fn path_alone(gap: &Gap<'_>) -> String {
    let targets = &gap.case.plan.targets;
    let machine = |side: usize| {
        let target = targets.get(side)?;
        target.machine().filter(|machine| !machine.is_empty() && !target.is_on_loopback())
    };
    let option = |side: usize| {
        let machine = machine(side)?;
        let host = if machine.contains(':') { format!("[{machine}]") } else { machine.to_owned() };
        Some(format!("--net-server {}", shell_word(&format!("{}=tcp://{}", gap.name(side), sanitize_line(&host)))))
    };
    let options: Option<Vec<String>> = (0..targets.len()).map(option).collect();
    match options
        .filter(|_| gap.case.http().is_some() && !gap.case.has_net_servers && machine(gap.slow) != machine(gap.fast))
    {
        Some(options) => format!(
            " To measure the paths without the servers, start `duel net serve` on these machines and add `{}`.",
            options.join(" ")
        ),
        None => String::new(),
    }
}

/// That the user's leave to start twins was not used, where it was not.
fn no_twin(gap: &Gap<'_>) -> Option<Evidence> {
    let is_tried = gap.case.outcomes.iter().any(|outcome| outcome.probe.variation.twin.is_some());
    (gap.case.may_have_twin(gap.slow) && !is_tried).then(|| {
        let slow = gap.slow_name();
        gap.not_measured(format!(
            "no twin of {slow}'s server was started: no cause that one can take away was likely enough, or no time was left"
        ))
    })
}

/// What to do next: what differs goes first, then what fits to the place of the gap.
fn remedy(gap: &Gap<'_>, of_place: Option<String>, leads: &Leads) -> String {
    let first = if leads.slow_ops.is_none() && leads.differences.is_empty() {
        ""
    } else {
        "Begin with what stands first under 'where to look first'. "
    };
    let slow = gap.slow_name();
    let next = of_place.unwrap_or_else(|| {
        if gap.case.plan.schema().lanes_are_threads() {
            return format!("Give diagnosis more time, and profile {slow} while the comparison runs (`perf top`).");
        }
        format!("Give diagnosis more time, and look at {slow}'s host (CPU, disk, network) while the comparison runs.")
    });
    format!("{first}{next}")
}

/// Ends a sentence on the gap, or on what is left of it, and says what is uncertain about the causes that fit: they stand
/// beside this, and it would deny them.
fn reservations(fits: &[&Fit], is_whole: bool) -> String {
    let listed = |holds: &dyn Fn(&Finding) -> bool| {
        let findings = fits.iter().map(|fit| &fit.finding).filter(|finding| holds(finding));
        listed(&findings.map(|finding| &*finding.cause).collect::<Vec<_>>())
    };
    let is_possible = |finding: &Finding| finding.confidence == Confidence::Possible;
    // Of what is left, the share of a cause that is only possible has been taken away.
    let is_taken_away = |finding: &Finding| !is_whole && finding.explains.is_some();
    let mut text = String::new();
    if let Some((causes, several)) = listed(&|finding| is_possible(finding) && is_taken_away(finding)) {
        let (have, they_are, were) = if several { ("have", "they are", "were") } else { ("has", "it is", "was") };
        text.push_str(&format!(
            ", and more if {causes} {have} no part in it: {they_are} possible, but {were} not shown"
        ));
    }
    text.push('.');
    if let Some((causes, several)) = listed(&|finding| is_possible(finding) && !is_taken_away(finding)) {
        let (are, were) = if several { ("are", "were") } else { ("is", "was") };
        text.push_str(&format!(" {causes} {are} possible, but {were} not shown."));
    }
    if let Some((causes, several)) = listed(&|finding| finding.explains.is_none()) {
        let make = if several { "make" } else { "makes" };
        text.push_str(&format!(" How much of the gap {causes} {make} is not known."));
    }
    text
}

/// `a, b and c`, and whether that is several.
fn listed(words: &[&str]) -> Option<(String, bool)> {
    let (last, others) = words.split_last()?;
    let text = if others.is_empty() { (*last).to_owned() } else { format!("{} and {last}", others.join(", ")) };
    Some((text, !others.is_empty()))
}

/// Where a gap sits, as far as it is known.
#[derive(Default)]
struct Place {
    /// Half sentences for the summary, the most telling first.
    says: Vec<String>,
    evidence: Vec<Evidence>,
    remedy: Option<String>,
}

impl Place {
    fn by_failures(&mut self, gap: &Gap<'_>) {
        for (side, seen) in [(gap.slow, gap.comparison.slow), (gap.fast, gap.comparison.fast)] {
            let share = failed_share(seen);
            if share > 0.1 {
                let (name, ops) = (gap.name(side), gap.case.plan.schema().op.many);
                self.says.push(format!("{:.0} % of the {ops} to {name} failed", 100.0 * share));
                self.remedy.get_or_insert(format!("Find out first why {ops} to {name} fail; then compare again."));
            }
        }
    }

    fn by_concurrency(&mut self, gap: &Gap<'_>) {
        let slow = gap.slow_name();
        match (&gap.reference, gap.mode, gap.look(ALONE)) {
            (Reference::Missing(_), Mode::Loaded, Look::Shown(_)) if gap.case.is_open_loop() => {
                self.says.push("the gap shows at the offered rate, not in a closed loop".to_owned());
                self.remedy
                    .get_or_insert(format!("Look for queues on {slow}: compare at a lower rate, and at a higher one."));
            }
            (_, Mode::Loaded, Look::Shown(alone)) => {
                let small = alone.log.low() <= 0.0;
                // One connection may be unlike the next one, as behind a balancer: such an interval holds all of the gap as well.
                let is_open = small && alone.log.high() >= gap.comparison.log.mid;
                self.says.push(if is_open {
                    "whether the gap shows over one connection is open".to_owned()
                } else if small {
                    "the gap does not show over one connection: it is one of concurrency".to_owned()
                } else {
                    "most of the gap shows beyond one connection only".to_owned()
                });
                self.remedy.get_or_insert(format!(
                    "Compare under 1, 2, 4, 8, ... connections: where does {slow} stop to scale? Then look at its number \
                     of workers and CPUs, its limits on rate, and locks."
                ));
            }
            _ => {}
        }
    }

    fn by_phase(&mut self, gap: &Gap<'_>) {
        // A stream goes through phases before its first op, and its ops through none.
        if gap.case.plan.is_streamed() {
            return;
        }
        let reference = gap.known_reference().unwrap_or(&gap.comparison);
        let schema = gap.case.plan.schema();
        let mut differences = differences_in(reference, schema.phases);
        let whole_ns: f64 = differences.iter().map(|(_, ns)| ns).sum();
        if whole_ns <= 0.0 {
            return;
        }
        // Largest first; a fifth of the whole is the least that helps to look in the right place.
        differences.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        differences.retain(|(_, ns)| *ns >= 0.2 * whole_ns);
        let Some((first, _)) = differences.first() else { return };
        let share = |(phase, ns): &(Phase, f64)| (percent(ns / whole_ns), phase.name);
        let extra = format!("{} per {} {}", format_duration_ns(whole_ns), schema.op.one, reference.over(gap.case.plan));
        let mut text = match &differences[..] {
            [only] => {
                let (share, phase) = share(only);
                format!("{share} of the extra {extra} is in {phase}")
            }
            several => {
                let shares: Vec<_> =
                    several.iter().map(share).map(|(share, phase)| format!("{share} in {phase}")).collect();
                format!("the extra {extra} is spread: {}", shares.join(", "))
            }
        };
        if reference.connections() != Some(1) {
            text.push_str(" (queueing included)");
        }
        self.evidence.push(gap.evidence(reference, text.clone()));
        self.says.push(text);
        let slow = gap.slow_name();
        // Phases of other kinds may have the name and the place of one of the web.
        let is_web = *schema == web::SCHEMA;
        self.remedy.get_or_insert(match *first {
            other if !is_web => format!("Look at what {slow} does in the phase '{}'.", other.name),
            phase::DNS => format!("Look up {slow}'s name by hand (`dig`): which name server is slow?"),
            phase::CONNECT => format!(
                "Look at the path to {slow} (`ping`, `traceroute`) and its listen queue (`ss -lnt`).{}",
                path_alone(gap)
            ),
            phase::TLS => format!(
                "Look at {slow}'s handshake: `openssl s_client -connect HOST:PORT` tells version, group, chain and \
                 resumption; `openssl speed rsa ecdsa ecdh` on its host tells what they cost."
            ),
            phase::SEND => format!("Look at the path to {slow}: requests are taken in slowly.{}", path_alone(gap)),
            phase::WAIT => format!(
                "Look at what {slow} does before it answers: log the time per request, watch its CPU and disk, look for \
                 a proxy in between, and for the round trip."
            ),
            phase::RECEIVE => format!(
                "Look at what {slow} does per byte: CPU use during a download, `openssl speed`, limits on rate, socket \
                 buffers, losses (`ss -ti`), small TLS records.{}",
                path_alone(gap)
            ),
            other => format!("Look at what {slow} does in the phase '{}'.", other.name),
        });
    }

    fn by_size(&mut self, gap: &Gap<'_>) {
        let (Look::Shown(first_byte), Some(reference)) = (gap.look(RANGE_1), gap.known_reference()) else {
            return;
        };
        let Some(share) = per_byte_share(reference, &first_byte) else { return };
        // Told only where the interval leaves no other reading.
        let reading = if share.low() > 0.5 {
            "the gap grows with the size of the response"
        } else if share.high() < 0.5 {
            "the gap is paid per request, whatever the size of the response"
        } else {
            "whether the gap is paid per request or per byte is open"
        };
        let text = format!(
            "{}: {}; {} of the gap is paid per byte",
            RANGE_1.phrase(),
            gap.tell(&first_byte),
            percent(share.mid)
        );
        self.evidence.push(gap.evidence(&first_byte, text));
        if let Look::Shown(half) = gap.look(RANGE_HALF)
            && let (Some(whole), Some(middle), Some(fixed)) =
                (reference.difference_ns(), half.difference_ns(), first_byte.difference_ns())
        {
            let text = format!(
                "the extra time per request is {} for one byte, {} for half of the response, {} for all of it",
                format_duration_ns(fixed.mid.max(0.0)),
                format_duration_ns(middle.mid.max(0.0)),
                format_duration_ns(whole.mid.max(0.0))
            );
            self.evidence.push(gap.evidence(&half, text));
        }
        self.says.push(reading.to_owned());
    }

    fn by_flips(&mut self, gap: &Gap<'_>) {
        for (kind, of) in [
            (CHACHA20, "the cipher"),
            (ALL_CLOSE, "whether connections are kept"),
            (KEPT, "whether connections are kept"),
            (RESUMED, "whether sessions are resumed"),
            (IDENTITY, "compression"),
        ] {
            let FlipLook::Shown(flip) = gap.flip(kind) else { continue };
            self.evidence.push(gap.evidence(&flip.view, gap.tell_flip(&flip)));
            if flip.is_negligible() {
                self.says.push(format!("it does not depend on {of}"));
            } else if flip.moved() {
                self.says.push(format!("{} of it goes away {}", flip.percent(), kind.phrase()));
            } else if flip.gone.is_growth() {
                self.says.push(format!("it is larger {}", kind.phrase()));
            }
        }
    }

    fn by_bytes(&mut self, gap: &Gap<'_>) {
        let of = |seen: &TargetObservation| seen.body_bytes_per_op.filter(|bytes| *bytes > 0.0);
        if let (Some(slow), Some(fast)) = (of(gap.comparison.slow), of(gap.comparison.fast))
            && (slow / fast).ln().abs() > gap.case.margin_log()
        {
            let text = format!(
                "{} sends {} per response, {} {}",
                gap.slow_name(),
                format_bytes(slow),
                gap.fast_name(),
                format_bytes(fast)
            );
            self.evidence.push(gap.evidence(&gap.comparison, text.clone()));
            self.says.push(text);
        }
    }
}
