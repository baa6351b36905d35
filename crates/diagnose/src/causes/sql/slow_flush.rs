//! `disk.slow-flush` of databases: what the slow server waits for is that its log is on the disk.
//!
//! With commits that do not wait for the disk (PostgreSQL's `synchronous_commit=off` in duel's own sessions, on all targets) the gap goes
//! away; both have to flush about as often. What looks like it: settings that differ in how often, or whether at all, is waited
//! (`db.config`); locks that are held for as long as a commit takes, which then are long in the same measure.
//!
//! MySQL and MariaDB have no such setting for a session. There it is looked at what the threads of both servers sleep in under load: how many
//! connections wait for the log at a time tells how long each transaction does ([`crate::evidence::flushes`]). Nothing is taken
//! away by that, so it is likely at most. What looks like it: a slow disk of reads, a lock, a busy CPU, where no more time is spent in
//! the log, or each visit to it lasts no longer; more flushes for a transaction, which are counted, and of which the fast side's would take as much more time; and logs that
//! lie elsewhere than in the data folder, where no thread is seen in them.

use super::KINDS;
use crate::cause::{Cause, CauseEntry, Standing, Told, fit, fit_by_host, shown_flip};
use crate::evidence::by_hand;
use crate::evidence::database::{Side as Statements, counted, differing_flushes, same_system, writes};
use crate::evidence::flushes::{Held, are_seen, times};
use crate::evidence::machines::{Machines, Side};
use crate::gap::{Flip, Gap, percent, phase_share_of};
use crate::probes::ASYNCHRONOUS;
use duel_model::{Confidence, HostDemand, format_duration_ns};
use duel_stats::Estimate;

static ENTRY: CauseEntry = CauseEntry {
    id: "disk.slow-flush",
    description: "the disk takes long to say that what was written is safe, and each commit waits for it",
    signature: "of PostgreSQL: with commits that do not wait for the disk the gap goes away; of MySQL and MariaDB, \
                hosts: their threads wait longer in writes and flushes of the log, for each transaction, by as much; flushes per transaction \
                are alike, and so are the settings that decide on them",
    at_most: "confirmed; likely of MySQL and MariaDB",
    needs_machine: false,
};

/// Flushes for each transaction may differ by so much, and still be as many: commits that come together share one.
const AS_MANY: f64 = 2.0;
/// Fewer flushes for a transaction than this are as good as none: those of a server that flushes once a second.
const FEWEST: f64 = 0.05;

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let open = |text: String| Standing::Undecided(gap.at_reference(text));
    if !writes(gap) {
        return Err(Standing::RuledOut(gap.not_measured("what only reads commits nothing".to_owned())));
    }
    same_system(gap)?;
    if let Some(text) = differing_flushes(gap) {
        return Err(Standing::Undecided(gap.first_contact(format!("{text}: see db.config"))));
    }
    let flushes = counted(gap, "server-flushes", "how often they flush");
    if let Ok([of_slow, of_fast]) = flushes
        && of_slow > AS_MANY * of_fast.max(FEWEST)
    {
        let text = format!(
            "{slow} flushes {of_slow:.2} times for each transaction, {fast} {of_fast:.2} times: it is how often, not how long"
        );
        return Err(open(text));
    }
    let reference = gap.known_reference().ok_or_else(|| open("there is no reference".to_owned()))?;
    if phase_share_of(reference, &Statements::PHASES_OF_STATEMENTS).is_some_and(|share| share < 0.5) {
        return Err(open("most of the gap does not sit in the statements and their commit".to_owned()));
    }
    if gap.text(gap.slow, "sql.synchronous_commit").is_none() {
        return by_threads(gap, flushes.ok());
    }
    let flip = shown_flip(gap, ASYNCHRONOUS)?;
    if flip.is_negligible() {
        return Err(Standing::RuledOut(gap.evidence(&flip.view, gap.tell_flip(&flip))));
    }
    if !flip.moved() {
        return Err(Standing::Undecided(gap.evidence(&flip.view, gap.tell_flip(&flip))));
    }
    let saved = format_duration_ns(flip.moved_ns.max(0.0));
    let summary = format!(
        "{slow} waits longer until its log is on the disk: when commits do not wait for that, a transaction saves {saved} more on it \
         than on {fast}. That is {} of the gap.",
        flip.percent()
    );
    let remedy = format!(
        "Look at the disk under {slow}'s log: `pg_test_fsync` on both, a mount with `sync`, a cap on writes, a cache without a \
         battery. `synchronous_commit = off` gives up the last moments before a crash and nothing else."
    );
    let confidence = if flip.confirms() { Confidence::Confirmed } else { Confidence::Likely };
    let facts = match (counted(gap, "server-flush_ns", ""), flushes) {
        (Ok([of_slow, of_fast]), Ok([slow_flushes, fast_flushes])) => vec![gap.at_reference(format!(
            "for each transaction {slow} flushes {slow_flushes:.2} times and waits {} for its log, {fast} {fast_flushes:.2} times and {}",
            format_duration_ns(of_slow),
            format_duration_ns(of_fast)
        ))],
        _ => Vec::new(),
    };
    Ok(fit(gap, &ENTRY, &flip, confidence, Told { summary, remedy, facts, further: Vec::new() }))
}

/// What the servers' threads were seen in tells how long transactions wait for flushes. `flushes`: how often each of them flushes for a
/// transaction, where both tell that.
fn by_threads(gap: &Gap<'_>, flushes: Option<[f64; 2]>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let open = |text: String| {
        let text = format!(
            "{text}; whether {slow} waits for its disk can be tried for the whole server: `SET GLOBAL innodb_flush_log_at_trx_commit = 2` on \
             both, compare again, and set it back"
        );
        Standing::Undecided(gap.at_reference(text))
    };
    let Some(flushes) = flushes else {
        return Err(open("the servers do not both tell how often they flush".to_owned()));
    };
    if let Some(why) = seen_otherwise(gap) {
        return Err(open(why));
    }
    let machines = match Machines::read(gap) {
        Ok(machines) => machines,
        Err(Standing::Undecided(why)) => return Err(open(why.text)),
        Err(other) => return Err(other),
    };
    let Some(of_fast) = machines.fast.as_ref().map(Side::demand) else {
        return Err(open(format!("the machine of {fast} is not read")));
    };
    let view = &machines.view;
    let of_slow = machines.slow.demand();
    let connections = view.connections().map_or(1.0, f64::from);
    let held = [of_slow, of_fast].map(|demand| Held::of(demand, connections));
    let ([Some(held_slow), Some(held_fast)], Some(slow_ns), Some(fast_ns)) = (held, view.slow_ns(), view.fast_ns())
    else {
        return Err(open("what the threads of both servers sleep in could not be seen".to_owned()));
    };
    // If the fast side flushed as often for a transaction, it would wait as many times as long.
    let as_often = (flushes[0] / flushes[1].max(FEWEST)).clamp(1.0, AS_MANY);
    let waits = |held: Estimate, ns: f64| times(held, ns / connections);
    let (slow_waits, fast_waits) = (waits(held_slow.seen, slow_ns), waits(held_fast.seen, fast_ns));
    let (slow_waits_ns, fast_waits_ns) = (slow_waits.mid, fast_waits.mid);
    // Without what it waits longer a transaction takes no less than on the fast side.
    let share = |extra_ns: f64| {
        let without_ns = (slow_ns - extra_ns.max(0.0)).max(fast_ns);
        machines.share((slow_ns / without_ns).ln())
    };
    // Who holds a lock over his commit has others wait for that, however short it is. As much as a visit to the log lasts no longer than on the
    // fast side is none of the disk. The rate of visits is that of transactions times flushes for each of them.
    let visit = |held: &Held, ns: f64, flushes: f64| times(held.busy, ns / flushes.max(FEWEST));
    let (of_slow_visit, of_fast_visit) =
        (visit(&held_slow, slow_ns, flushes[0]), visit(&held_fast, fast_ns, flushes[1]));
    let same = of_fast_visit.over(of_slow_visit).unwrap_or(Estimate::around(1.0, 0.0));
    let longer = same.complement();
    let extra = slow_waits.minus(times(fast_waits, as_often));
    let worth = share(extra.mid.min(longer.mid * slow_waits.mid));
    let least = share(extra.low().min(longer.low() * slow_waits.low()));
    let most_ns = (held_slow.most * slow_ns / connections - fast_waits.low()).max(0.0);
    let most = share(most_ns);
    let seen = format!(
        "a transaction waits about {} for writes and flushes of the log on {slow} and {} on {fast}: of {connections:.0} connection{} {:.1} and {:.1} \
         do so at a time, in {} and {} looks at the servers' threads",
        format_duration_ns(slow_waits_ns),
        format_duration_ns(fast_waits_ns),
        if connections > 1.0 { "s" } else { "" },
        held_slow.seen.mid,
        held_fast.seen.mid,
        of_slow.sleepers.looks_at_calls,
        of_fast.sleepers.looks_at_calls
    );
    let repeat = || Some(by_hand::sleepers(gap, gap.slow));
    let told = |worth: f64, least: f64, most: f64| {
        format!("{seen}. That is {} of the gap ({} to {})", percent(worth), percent(least), percent(most.min(1.0)))
    };
    // A disk may also be waited for without sleep: by looking whether it is done, or for a CPU. Where none of the slow side's threads was seen
    // in its log, that may lie where nobody looks.
    let without_sleep_ns =
        awake_ns(of_slow).zip(awake_ns(of_fast)).map(|(of_slow, of_fast)| (of_slow - of_fast).max(0.0));
    let most_in_all = without_sleep_ns.map(|ns| share(most_ns + ns));
    if most_in_all.is_some_and(|most| most < Flip::NOTEWORTHY) && are_seen(of_slow) {
        return Err(Standing::RuledOut(gap.on_host(told(worth, least, most), repeat())));
    }
    if least < Flip::NOTEWORTHY {
        // More looks make the interval narrower, wherever its middle is by now.
        let longer = gap.longer_hosts().filter(|_| most >= Flip::NOTEWORTHY);
        return Err(longer.map_or_else(|| open(told(worth, least, most)), |probe| Standing::Wants(vec![probe])));
    }
    let summary = format!("{slow} waits longer until its log is on the disk: {}.", told(worth, least, most));
    let remedy = format!(
        "Look at the disk under {slow}'s log: `ioping -D -W` or `fio --fdatasync=1` in its data folder on both, a mount with `sync`, a cap \
         on writes, a cache without a battery. `SET GLOBAL innodb_flush_log_at_trx_commit = 2` shows what it costs, and gives up the last \
         second before a crash."
    );
    let told = Told { summary, remedy, facts: vec![gap.on_host(seen, repeat())], further: Vec::new() };
    Ok(fit_by_host(gap, &ENTRY, Some(worth), Confidence::Likely, told))
}

/// Why what is seen of both servers' logs cannot be held against each other.
fn seen_otherwise(gap: &Gap<'_>) -> Option<String> {
    let both = [gap.slow, gap.fast];
    if let Some(side) = both.into_iter().find(|&side| gap.text(side, "sql.logs") != Some("in the data folder")) {
        return Some(format!(
            "it is not known that {}'s logs lie in its data folder, where they are looked for",
            gap.name(side)
        ));
    }
    // MariaDB counts flushes of its log up to 10.7, and those of all its files from then on.
    let counts_all = both.map(|side| {
        let version = gap.text(side, "sql.server")?.trim_start_matches("MySQL ").trim_start_matches("MariaDB ");
        let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse::<u32>().ok());
        Some((numbers.next()?, numbers.next()?) >= (10, 8))
    });
    (counts_all[0] != counts_all[1]).then(|| "the servers count flushes in different ways".to_owned())
}

/// What a transaction takes of CPU time and of waiting for a CPU.
fn awake_ns(demand: &HostDemand) -> Option<f64> {
    Some(demand.per_op("process.cpu_ns")? + demand.per_op("workers.wait_ns")?)
}
