//! The verdict and its doubts.

use super::html::Html;
use crate::about::about;
use crate::sentence::{headlines, pair_sentence, told_first};
use crate::settings::{ended_early, status_word};
use crate::summary::names;
use crate::text::{clean, clean_whole};
use crate::totals::{Totals, all_doubts, op_noun};
use crate::{contest, search, single};
use duel_model::{Call, Doubt, HeadlineKind, Run, Verdict};

/// Opens the first section, which the caller closes: the title, what was decided, and for whom.
pub(super) fn section(html: &mut Html, run: &Run, verdict: &Verdict, targets: &[Totals<'_>], title: &str) {
    html.raw("<header><p class=\"faint\">");
    let when = crate::utc(run.started_unix_ms);
    html.text(&format!("duel report, {when} UTC, {}", status_word(&run.status)));
    html.raw("</p><h1>");
    html.text(title);
    html.raw("</h1></header><section id=\"verdict\"><h2>Verdict</h2>");
    for (headline, text) in verdict.headlines.iter().zip(headlines(verdict)) {
        html.raw("<p class=\"call\">");
        alarm(html, headline.kind);
        html.text(&text);
        html.raw("</p>");
    }
    if let Some(experiment) = &verdict.experiment {
        html.raw("<p>");
        html.text(&crate::experiment::overview(run, experiment));
        html.raw("</p>");
        if targets.len() > 1 {
            html.raw("<p>Over all treatments (geometric mean):</p>");
            calls(html, run, verdict);
        }
    } else if !verdict.searches.is_empty() {
        searched(html, run, verdict, targets);
    } else if let [one] = targets {
        html.raw("<p class=\"call\">");
        html.text(&single::outcome(one, op_noun(run)));
        html.raw("</p>");
    } else {
        calls(html, run, verdict);
    }
    if let Some(text) = about(run, verdict, false) {
        html.raw("<p class=\"faint\">");
        html.text(&text);
        html.raw(".</p>");
    }
    if let Some(text) = ended_early(&run.status) {
        html.raw("<p class=\"doubt\">");
        html.text(&text);
        html.raw("</p>");
    }
    html.raw("<dl class=\"targets\">");
    for (i, target) in targets.iter().enumerate() {
        html.raw(&format!("<dt class=\"s{}\"><span class=\"swatch\" aria-hidden=\"true\"></span>", i % 8));
        html.text(&target.name);
        html.raw(if i == 0 && targets.len() > 1 {
            " <span class=\"faint\">baseline</span></dt><dd>"
        } else {
            "</dt><dd>"
        });
        html.text(&target.address);
        html.raw("</dd>");
    }
    html.raw("</dl>");
}

/// The main metric of each target with its call, the others below it.
fn calls(html: &mut Html, run: &Run, verdict: &Verdict) {
    let doubts: Vec<Doubt> = all_doubts(run, verdict).into_iter().cloned().collect();
    if verdict.pairs.is_empty() {
        html.raw("<p class=\"call\">No verdict: no pair of targets was compared.</p>");
    }
    for (i, pair) in verdict.pairs.iter().enumerate() {
        let is_main = verdict.pairs[..i].iter().all(|earlier| earlier.target != pair.target);
        // A further metric of which nothing is known is told by its doubt alone.
        if !is_main && pair.ratio.is_none() {
            continue;
        }
        html.raw(if is_main { "<p class=\"call\">" } else { "<p class=\"further\">" });
        match told_first(verdict, pair) {
            Some(kind) => alarm(html, kind),
            None => badge(html, pair.call),
        }
        html.text(&pair_sentence(verdict, pair, run.plan.compare.margin, &doubts));
        html.raw("</p>");
    }
}

/// A badge that goes before any call.
fn alarm(html: &mut Html, kind: HeadlineKind) {
    let text = match kind {
        HeadlineKind::TargetDied => "stopped answering",
        HeadlineKind::ContentWrong => "wrong content",
        HeadlineKind::Failing => "requests fail",
        HeadlineKind::RateNotReached => "rate not reached",
        _ => "see the doubts",
    };
    html.raw(&format!("<span class=\"badge slower\">! {text}</span> "));
}

/// The word says it; the sign says it without colours, and the class with them.
fn badge(html: &mut Html, call: Call) {
    let (class, sign) = match call {
        Call::Slower => ("slower", "\u{25bc} slower"),
        Call::Faster => ("faster", "\u{25b2} faster"),
        Call::Equivalent => ("equivalent", "= equivalent"),
        Call::Unknown => ("unknown", "? unknown"),
    };
    html.raw(&format!("<span class=\"badge {class}\">{sign}</span> "));
}

/// The highest rates: against each other, and of each target.
fn searched(html: &mut Html, run: &Run, verdict: &Verdict, targets: &[Totals<'_>]) {
    for contest in &verdict.contests {
        html.raw("<p class=\"call\">");
        badge(html, contest.call);
        html.text(&contest::sentence(contest, search::promises(verdict), run.plan.compare.margin));
        html.raw("</p>");
    }
    for wanted in &verdict.searches {
        let name = match targets.get(wanted.target) {
            Some(target) if targets.len() > 1 => format!("{}: ", target.name),
            _ => String::new(),
        };
        html.raw(if targets.len() > 1 { "<p class=\"further\">" } else { "<p class=\"call\">" });
        html.text(&format!("{name}{}", search::answer(wanted)));
        html.raw("</p>");
    }
}

/// The doubts, each with its kind.
pub(super) fn doubts(html: &mut Html, run: &Run, verdict: &Verdict) {
    let doubts = all_doubts(run, verdict);
    if doubts.is_empty() {
        return;
    }
    html.raw("<section id=\"doubts\"><h2>Doubts</h2><p class=\"faint\">What weakens the numbers on this page.</p><ul>");
    for doubt in doubts {
        let text = clean_whole(&doubt.text);
        html.raw("<li class=\"doubt\">");
        match doubt.target.as_deref().map(clean) {
            // Most doubts name their target themselves.
            Some(name) if !names(&text, &name) => html.text(&format!("{name}: {text}")),
            _ => html.text(&text),
        }
        html.raw("</li>");
    }
    html.raw("</ul></section>");
}
