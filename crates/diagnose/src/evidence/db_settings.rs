//! Settings in which databases differ, and what becomes of the gap when duel's own sessions have the fast side's.

use crate::cause::{CauseEntry, Standing, Told, did_not_move, fit, fit_by_twin, shown_flip};
use crate::evidence::database::{LogSizes, MEMORY_FOR_BLOCKS, counted, reads_again, same_system};
use crate::gap::{Flip, Gap, percent};
use crate::probes::{LOGGING_SETTINGS, OTHER_SETTINGS, copy_setting, copy_with, sessions::Group, sessions::settable};
use crate::twins::{self, Twins};
use duel_model::{Confidence, Declaration, sanitize_line};
use std::collections::{BTreeMap, BTreeSet};

/// Of several settings that differ each is tried alone, as far as the load time allows; of more than these nobody would read.
const MOST_ALONE: usize = 4;

/// Of more settings than these a sentence is no longer read. Leads have a line for each, and the table of settings marks them.
const MOST_TOLD: usize = 6;

/// How names of settings begin that act over minutes: a look of some seconds, just behind the checkpoint that a copy begins with, tells
/// nothing against them.
const OVER_MINUTES: [&str; 9] = [
    "autovacuum",
    "bgwriter_",
    "checkpoint_",
    "max_wal_size",
    "min_wal_size",
    "vacuum_",
    "wal_recycle",
    "innodb_io_capacity",
    "innodb_log_file_size",
];

/// Whether both sides tell of them. Of logging: each setting that one of them tells of, and at least one; of all others: what
/// they have set at all.
fn is_known(group: Group, gap: &Gap<'_>) -> bool {
    let of_both = |name: &str| [gap.slow, gap.fast].map(|side| gap.fact(side, |seen| seen.value(name)).is_some());
    let told: Vec<[bool; 2]> = match group {
        Group::Other => vec![of_both("sql.set")],
        Group::Logging => {
            group.declared(&gap.case).map(|of| of_both(of.name)).filter(|of| of.contains(&true)).collect()
        }
    };
    !told.is_empty() && told.iter().all(|of| *of == [true, true])
}

/// A setting in which both sides differ.
struct Differing {
    fact: &'static str,
    slow: String,
    fast: String,
    /// What sets it in a session of both, where that may be.
    setting: Option<String>,
}

impl Differing {
    fn all(gap: &Gap<'_>, group: Group) -> Vec<Self> {
        let of = |side: usize, name: &str| gap.fact(side, |seen| seen.value(name).map(ToString::to_string));
        let differing = group.declared(&gap.case).filter_map(|declared| {
            let (slow, fast) = (of(gap.slow, declared.name)?, of(gap.fast, declared.name)?);
            let setting = settable(&gap.case, declared.name);
            (slow != fast).then_some(Self { fact: declared.name, slow, fast, setting })
        });
        differing.collect()
    }

    /// Whether a private copy of the slow server tells what it is worth. A memory for blocks that is too small has a cause of its own, and so
    /// has a log.
    fn can_be_tried(&self, gap: &Gap<'_>) -> bool {
        let is_small_memory =
            MEMORY_FOR_BLOCKS.contains(&self.fact) && counted(gap, "server-reads", "").is_ok_and(reads_again);
        let is_small_log = LogSizes::of(gap).is_some_and(|sizes| sizes.fact == self.fact && sizes.is_smaller());
        copy_setting(&gap.case, gap.slow, self.fact).is_some() && !is_small_memory && !is_small_log
    }

    /// What its server calls it.
    fn name<'a>(&self, gap: &Gap<'a>) -> &'a str {
        copy_setting(&gap.case, gap.slow, self.fact).unwrap_or_else(|| label(self.fact))
    }

    fn told(&self, gap: &Gap<'_>) -> String {
        let name = self.setting.as_deref().unwrap_or_else(|| label(self.fact));
        let [name, slow, fast] = [name, &self.slow, &self.fast].map(sanitize_line);
        format!("{name} is {slow} on {} and {fast} on {}", gap.slow_name(), gap.fast_name())
    }
}

/// Settings in a sentence, those first that are declared first, and how many there are besides.
fn in_a_sentence(told: &[String]) -> String {
    let first = told.iter().take(MOST_TOLD).map(String::as_str).collect::<Vec<_>>().join("; ");
    match told.len().saturating_sub(MOST_TOLD) {
        0 => first,
        more => format!("{first}; and {more} more that differ (--json)"),
    }
}

fn label(fact: &'static str) -> &'static str {
    Declaration::of(fact).and_then(|declared| declared.label).unwrap_or(fact)
}

/// Whether the sides differ in settings that sessions may have, such as those of the planner.
pub(crate) fn differ_as_sessions_may(gap: &Gap<'_>) -> bool {
    Differing::all(gap, Group::Other).iter().any(|differing| differing.setting.is_some())
}

/// How a cause stands that is settings of this group.
pub(crate) fn weigh(gap: &Gap<'_>, entry: &'static CauseEntry, group: Group) -> Result<Standing, Standing> {
    same_system(gap)?;
    let differing = Differing::all(gap, group);
    let all = match group {
        Group::Logging => LOGGING_SETTINGS,
        Group::Other => OTHER_SETTINGS,
    };
    let may_set: Vec<&Differing> = differing.iter().filter(|one| one.setting.is_some()).collect();
    let fixed: Vec<&Differing> = differing.iter().filter(|one| one.setting.is_none()).collect();
    let undeclared = if group == Group::Other { differing_undeclared(gap) } else { Vec::new() };
    let undeclared: Vec<String> = undeclared.iter().map(|one| one.told(gap)).collect();
    if may_set.is_empty() {
        return on_copies(gap, entry, group, &fixed, &undeclared);
    }
    let together = shown_flip(gap, all.of(gap.fast))?;
    if !together.moved() {
        return Err(match (together.is_negligible(), fixed.is_empty() && undeclared.is_empty()) {
            (true, false) => return on_copies(gap, entry, group, &fixed, &undeclared),
            _ => did_not_move(gap, &together),
        });
    }
    let (mut best, mut tried): (Option<(&Differing, Box<Flip<'_>>)>, Vec<String>) = (None, Vec::new());
    if may_set.len() == 1 {
        best = Some((may_set[0], shown_flip(gap, all.of(gap.fast))?));
    } else {
        for differing in may_set.iter().take(MOST_ALONE) {
            match shown_flip(gap, all.of(gap.fast).with_setting(differing.fact)) {
                Ok(flip) => {
                    tried.push(format!("{}: {}", differing.told(gap), gap.tell_flip(&flip)));
                    let is_more = |known: &Flip<'_>| flip.gone.compared().mid > known.gone.compared().mid;
                    if flip.moved() && best.as_ref().is_none_or(|(_, known)| is_more(known)) {
                        best = Some((differing, flip));
                    }
                }
                Err(Standing::Wants(probes)) => return Err(Standing::Wants(probes)),
                Err(_) => {}
            }
        }
    }
    let Some((setting, flip)) = best else {
        // Any of them may do the same, so that only all together take it away.
        let told: Vec<String> = may_set.iter().map(|one| one.told(gap)).collect();
        let summary = format!(
            "With {}'s values of these settings in duel's own sessions on all targets, {} of the gap is gone, with none of them alone: {}.",
            gap.fast_name(),
            together.percent(),
            in_a_sentence(&told)
        );
        let remedy = format!(
            "Are these settings of {} meant to be? Where not, set them as on {}.",
            gap.slow_name(),
            gap.fast_name()
        );
        let facts = vec![gap.first_contact(in_a_sentence(&told))];
        let further = tried.into_iter().map(|text| gap.evidence(&together.view, text)).collect();
        let told = Told { summary, remedy, facts, further };
        return Ok(fit(gap, entry, &together, Confidence::Likely, told));
    };
    let name = setting.setting.as_deref().unwrap_or_else(|| label(setting.fact));
    let summary = format!(
        "{}. With {}'s value in duel's own sessions on all targets, {} of the gap is gone.",
        setting.told(gap),
        gap.fast_name(),
        flip.percent()
    );
    let remedy = remedy(gap, setting, name);
    let facts = vec![gap.first_contact(setting.told(gap))];
    let further = tried.into_iter().map(|text| gap.evidence(&flip.view, text)).collect();
    let confidence = if flip.confirms() { Confidence::Confirmed } else { Confidence::Likely };
    Ok(fit(gap, entry, &flip, confidence, Told { summary, remedy, facts, further }))
}

/// What to do about a setting, which its server knows by this name.
fn remedy(gap: &Gap<'_>, setting: &Differing, name: &str) -> String {
    format!(
        "Find out what `{name} = {}` is there for on {}: a slower setting often protects data or tells what happens. Where nobody \
         needs it, set it to `{}` as on {}.",
        sanitize_line(&setting.slow),
        gap.slow_name(),
        sanitize_line(&setting.fast),
        gap.fast_name()
    )
}

/// What private copies of the slow server say of settings that no session may change, each with the fast side's value alone.
fn on_copies(
    gap: &Gap<'_>,
    entry: &'static CauseEntry,
    group: Group,
    fixed: &[&Differing],
    undeclared: &[String],
) -> Result<Standing, Standing> {
    let tried: Vec<&&Differing> = fixed.iter().filter(|one| one.can_be_tried(gap)).take(MOST_ALONE).collect();
    let (mut best, mut told): (Option<(&Differing, twins::Told<'_>)>, Vec<twins::Told<'_>>) = (None, Vec::new());
    for one in &tried {
        match gap.on_copies(copy_with(one.fact)) {
            Twins::NotAllowed => return Err(without_flip(gap, group, fixed, undeclared)),
            Twins::Wanted(probe) => return Err(Standing::Wants(vec![probe])),
            Twins::Told(copies) => {
                let share = |of: &twins::Told<'_>| of.flip.as_ref().map_or(0.0, |flip| flip.gone.compared().mid);
                let moved = copies.flip.as_ref().is_some_and(|flip| flip.moved());
                if moved && best.as_ref().is_none_or(|(_, known)| share(&copies) > share(known)) {
                    told.extend(best.replace((one, copies)).map(|(_, known)| known));
                } else {
                    told.push(copies);
                }
            }
        }
    }
    let Some((setting, copies)) = best else {
        let Some(last) = told.iter().rev().find_map(|copies| copies.evidence.last().cloned()) else {
            return Err(without_flip(gap, group, fixed, undeclared));
        };
        let acts_over_minutes = |name: &&str| OVER_MINUTES.iter().any(|begin| name.starts_with(begin));
        let slow: Vec<&str> = tried.iter().map(|one| one.name(gap)).filter(acts_over_minutes).collect();
        let is_all = tried.len() == 1 && fixed.len() == 1 && undeclared.is_empty() && slow.is_empty();
        if is_all && told.iter().all(twins::Told::acquits) {
            return Err(Standing::RuledOut(last));
        }
        let differ: Vec<String> = fixed.iter().map(|one| one.told(gap)).chain(undeclared.iter().cloned()).collect();
        let mut tried: Vec<&str> =
            told.iter().filter_map(|copies| Some(copies.evidence.last()?.text.as_str())).collect();
        tried.dedup();
        let slow = match slow.is_empty() {
            true => String::new(),
            false => format!(
                ". Of {} they show little: that acts over minutes, and copies are looked at for seconds, just behind a checkpoint",
                slow.join(", ")
            ),
        };
        let text = format!(
            "no session may change these: {}. What copies show: {}{slow}",
            in_a_sentence(&differ),
            tried.join("; ")
        );
        return Err(Standing::Undecided(duel_model::Evidence { text, ..last }));
    };
    let name = setting.name(gap);
    let percent = copies.flip.as_ref().map(|flip| percent(gap.share_by_twin(flip))).unwrap_or_default();
    let summary = format!(
        "{}. On a private copy of {}'s server that has {}'s value, and nothing else changed, {percent} of the gap is gone.",
        setting.told(gap),
        gap.slow_name(),
        gap.fast_name()
    );
    let remedy = remedy(gap, setting, name);
    let facts = vec![gap.first_contact(setting.told(gap))];
    let further = told.into_iter().filter_map(|copies| copies.evidence.into_iter().next_back()).collect();
    Ok(fit_by_twin(gap, entry, copies, Told { summary, remedy, facts, further }))
}

/// How a user lets duel try on private copies what no session may change, or that there are none of such a server.
pub(crate) fn how_to_allow_copies(gap: &Gap<'_>) -> String {
    const MEGABYTE: u64 = 1_000_000;
    match (gap.case.most_copied_bytes, gap.count(gap.slow, "sql.copy_bytes")) {
        // With room for what is written meanwhile.
        (None, Some(bytes)) => format!(
            "; --may-copy-database {}MB lets duel try it on private copies of {}'s server, which {} for each",
            bytes.div_ceil(MEGABYTE).next_power_of_two(),
            gap.slow_name(),
            if is_postgres(gap) { "makes a checkpoint at once" } else { "lets commits wait for a moment" }
        ),
        (Some(_), None) => {
            "; duel makes private copies of PostgreSQL and MariaDB servers on this machine only, of MariaDB by root or the server's own user"
                .to_owned()
        }
        (None, None) | (Some(_), Some(_)) => String::new(),
    }
}

fn is_postgres(gap: &Gap<'_>) -> bool {
    gap.text(gap.slow, "sql.server").is_some_and(|text| text.starts_with("PostgreSQL"))
}

/// How it stands where no flip says more.
fn without_flip(gap: &Gap<'_>, group: Group, fixed: &[&Differing], undeclared: &[String]) -> Standing {
    let told: Vec<String> = fixed.iter().map(|one| one.told(gap)).chain(undeclared.iter().cloned()).collect();
    if told.is_empty() {
        return match is_known(group, gap) {
            true => Standing::RuledOut(gap.first_contact("such settings are the same on both".to_owned())),
            false => {
                Standing::Undecided(gap.not_measured("the servers do not both tell all of their settings".to_owned()))
            }
        };
    }
    // How often is waited for the disk is counted, and only a setting of the whole server changes it.
    let flushes =
        counted(gap, "server-flushes", "").ok().filter(|[slow, fast]| slow - fast >= 0.5 && *slow >= 2.0 * fast);
    let flushes = flushes.map_or_else(String::new, |[slow, fast]| {
        format!(
            "; {} flushes {slow:.2} times for each transaction, {} {fast:.2} times",
            gap.slow_name(),
            gap.fast_name()
        )
    });
    let statements: Vec<String> = fixed
        .iter()
        .take(3)
        .map(|one| format!("`SET GLOBAL {} = {}`", label(one.fact), sanitize_line(&one.fast)))
        .collect();
    let attempt = if statements.is_empty() || is_postgres(gap) {
        "make them alike in the server's configuration, and compare again".to_owned()
    } else {
        format!("try {} on {} and compare again", statements.join(", "), gap.slow_name())
    };
    let can_be_tried = |one: &&Differing| one.can_be_tried(gap) || gap.count(gap.slow, "sql.copy_bytes").is_none();
    let copies = if fixed.iter().any(can_be_tried) { how_to_allow_copies(gap) } else { String::new() };
    Standing::Undecided(
        gap.first_contact(format!("no session may change these: {}{flushes}; {attempt}{copies}", in_a_sentence(&told))),
    )
}

/// A setting that has no fact of its own, and differs. `None`: it is as the server was built.
pub(crate) struct UndeclaredSetting<'a> {
    pub(crate) name: &'a str,
    slow: Option<&'a str>,
    fast: Option<&'a str>,
}

impl UndeclaredSetting<'_> {
    /// Its values on the slow side and on the fast one.
    pub(crate) fn values(&self) -> [String; 2] {
        [self.slow, self.fast].map(|value| value.map_or_else(|| "as built".to_owned(), sanitize_line))
    }

    fn told(&self, gap: &Gap<'_>) -> String {
        let [slow, fast] = self.values();
        format!("{} is {slow} on {} and {fast} on {}", sanitize_line(self.name), gap.slow_name(), gap.fast_name())
    }
}

/// Settings that differ from how the servers were built, beyond those that have a fact of their own; by name.
pub(crate) fn differing_undeclared<'a>(gap: &Gap<'a>) -> Vec<UndeclaredSetting<'a>> {
    // A server in which nothing is set tells `none`, which is no setting: the list says whether it told, and not what is in it.
    let set = |side: usize| {
        let set = gap.fact(side, |seen| Some(seen.list("sql.set")).filter(|set| !set.is_empty()))?;
        Some(set.iter().filter_map(|set| set.split_once('=')).collect::<BTreeMap<&str, &str>>())
    };
    let has_fact = |name: &str| {
        let declared = gap.case.plan.schema().facts.iter();
        declared.filter_map(|of| of.label).any(|label| label == name)
    };
    let Some((slow, fast)) = set(gap.slow).zip(set(gap.fast)) else { return Vec::new() };
    let names: BTreeSet<&str> = slow.keys().chain(fast.keys()).copied().filter(|name| !has_fact(name)).collect();
    let of_both = |name| UndeclaredSetting { name, slow: slow.get(name).copied(), fast: fast.get(name).copied() };
    names.into_iter().map(of_both).filter(|one| one.slow != one.fast).collect()
}
