//! The draws as the first part of `SCORE.md`.

use super::kind;
use super::looked::Looked;
use super::tally::Tally;
use crate::case::NAMELESS;
use crate::score::cell;
use crate::score::judge::Outcome;
use crate::score::share;
use std::fmt::Write;

/// The part of the page; says so where nothing was drawn yet.
pub(super) fn text(looks: &[Looked]) -> String {
    let mut text = "## Draws\n\nSet-ups and faults by chance, of which nobody knew when the diagnosis was written. Each draw is \
                    looked at once by each commit, and the first look is the one that counts. Before duel was asked, other \
                    tools saw under the draw's own load that a fault makes a request, transaction or op 1.05 times as long at least, \
                    and that a decoy does not. Near that line the tools' own noise decides, as the decoys show.\n\n"
        .to_owned();
    if looks.is_empty() {
        return text + "None so far.\n\n";
    }
    // The latest commit first: it is the one that is asked about.
    let mut commits: Vec<&str> = Vec::new();
    for look in looks.iter().rev() {
        if !commits.contains(&&*look.key.commit) {
            commits.push(&look.key.commit);
        }
    }
    for commit in commits {
        for kind in kind::ALL {
            let are_of = |look: &&Looked| look.key.commit == commit && look.key.kind == kind.name;
            let looks: Vec<&Looked> = looks.iter().filter(are_of).collect();
            if !looks.is_empty() {
                text += &headline(commit, kind.name, &looks);
                text += &list(&looks);
            }
        }
    }
    text
}

fn headline(commit: &str, kind: &str, looks: &[&Looked]) -> String {
    let tally = Tally::of(looks);
    let mut seeds: Vec<u64> = looks.iter().map(|look| look.key.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
    let mut dates: Vec<&str> = looks.iter().map(|look| &*look.date).collect();
    dates.sort_unstable();
    let mut text = format!(
        "### Commit {}: {kind}\n\n{} draws of seed {}, from {} to {}; load average before the looks {}.\n\n\
         | first looks | of | share | 95 % interval (Wilson) |\n|---|---|---|---|\n",
        cell(commit),
        looks.len(),
        seeds.join(", "),
        cell(dates.first().copied().unwrap_or_default()),
        cell(dates.last().copied().unwrap_or_default()),
        load_averages(looks),
    );
    for (name, row) in &tally.rows {
        let _ = writeln!(text, "| {name} | {}/{} | {} |", row.hits, row.of, share(row.hits, row.of));
    }
    text.push('\n');
    let _ = match tally.median_seconds {
        Some((median, of)) => writeln!(
            text,
            "* Seconds from the end of the comparison to a finding, where a cause was named: {median:.0} in the median of {of}."
        ),
        None => writeln!(text, "* Seconds to a finding: no cause was named."),
    };
    let _ = writeln!(
        text,
        "* Not counted: {} of which the fault did not bite or the decoy did harm, {} in which the bench failed.\n",
        tally.did_not_bite, tally.failed
    );
    text
}

fn load_averages(looks: &[&Looked]) -> String {
    let mut known: Vec<f64> = looks.iter().filter_map(|look| look.load_average).collect();
    known.sort_by(f64::total_cmp);
    match (known.first(), known.get(known.len() / 2), known.last()) {
        (Some(least), Some(median), Some(most)) => format!("{least:.1} to {most:.1}, {median:.1} in the median"),
        _ => "not known".to_owned(),
    }
}

fn list(looks: &[&Looked]) -> String {
    let mut text = "| draw | sort | at work | set-up | strength | first look | said | ruled out wrongly | seconds | load | verified |\n\
                    |---|---|---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for look in looks {
        let truth = match look.truth.as_slice() {
            [] => "nothing".to_owned(),
            [one] if one == NAMELESS => "no cause of duel's".to_owned(),
            causes => causes.iter().map(|cause| format!("`{}`", cell(cause))).collect::<Vec<_>>().join(", "),
        };
        let said = match look.outcome {
            Outcome::Failed | Outcome::NoAnswer => look.remark.clone(),
            Outcome::NotVerified => "-".to_owned(),
            _ if look.said.is_empty() => "nothing".to_owned(),
            _ => look.said.join(", "),
        };
        let acquitted = look.wrongly_ruled_out.as_ref().map_or("?".to_owned(), |names| names.join(", "));
        let number = |number: Option<f64>, digits: usize| number.map_or("-".to_owned(), |n| format!("{n:.digits$}"));
        let _ = writeln!(
            text,
            "| {}/{} | {} | {truth} on {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            look.key.seed,
            look.key.number,
            look.sort.name(),
            cell(&look.faulty),
            cell(&look.setup),
            cell(&look.strength),
            look.outcome.name(),
            cell(&said),
            cell(&acquitted),
            number(look.seconds, 0),
            number(look.load_average, 1),
            cell(&look.verified),
        );
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::super::draw::Sort;
    use super::super::looked::tests::looked;
    use super::*;

    #[test]
    fn the_latest_commit_comes_first_and_no_draw_is_left_out() {
        let of = |number: u32, commit: &str, outcome: Outcome| Looked {
            outcome,
            load_average: Some(f64::from(number)),
            ..looked(Sort::Catalogue, number, commit)
        };
        let mut looks =
            vec![of(1, "old", Outcome::First), of(2, "new", Outcome::Wrong), of(3, "new", Outcome::NotVerified)];
        looks[1].said = vec!["a|b\n".to_owned()];
        let text = text(&looks);
        assert!(text.find("### Commit new: web").unwrap() < text.find("### Commit old: web").unwrap());
        assert!(text.contains("| faults of the catalogue: right first | 0/1 | 0 % |"), "{text}");
        assert!(text.contains("| faults of the catalogue: right first | 1/1 | 100 % |"), "{text}");
        assert!(text.contains("load average before the looks 2.0 to 3.0, 3.0 in the median"), "{text}");
        assert!(text.contains("* Not counted: 1 of which"));
        for number in 1..=3 {
            assert!(text.contains(&format!("\n| 1/{number} | catalogue |")), "{text}");
        }
        assert!(text.contains("| a/b |"), "what duel said stays in its cell");
    }

    #[test]
    fn each_kind_has_totals_of_its_own() {
        let of = |kind: &str, number: u32, outcome: Outcome| {
            let mut look = Looked { outcome, ..looked(Sort::Catalogue, number, "abc") };
            look.key.kind = kind.to_owned();
            look
        };
        let text = text(&[of("sql", 1, Outcome::First), of("web", 2, Outcome::Wrong), of("sql", 3, Outcome::First)]);
        let parts: Vec<&str> = text.split("### Commit ").skip(1).collect();
        let [web, sql] = parts[..] else { panic!("{text}") };
        assert!(web.starts_with("abc: web\n\n1 draws of seed 1,") && sql.starts_with("abc: sql\n\n2 draws of seed 1,"));
        assert!(web.contains("| faults of the catalogue: right first | 0/1 |"), "{web}");
        assert!(sql.contains("| faults of the catalogue: right first | 2/2 |"), "{sql}");
        assert!(sql.contains("\n| 1/3 | catalogue |") && !sql.contains("\n| 1/2 |"), "{sql}");
    }

    #[test]
    fn without_draws_there_is_no_figure() {
        assert!(text(&[]).contains("None so far."));
    }
}
