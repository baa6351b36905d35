//! Under which conditions a run was made: plan, generator, machines.

use super::html::Html;
use crate::facts::{Sorted, unread};
use crate::settings::settings;
use crate::table::{Align, Row, Table};
use crate::text::{clean, clean_whole, plural};
use duel_model::{Facts, HostRecord, Run};

/// The section of the conditions.
pub(super) fn section(html: &mut Html, run: &Run) {
    html.raw("<section id=\"environment\"><h2>Conditions</h2><h3>Plan</h3><p>");
    html.text(&settings(run));
    html.raw("</p>");
    let missing = run.plan.missing_secrets();
    if !missing.is_empty() {
        html.raw("<p>Values of these header fields are secrets and were not kept: ");
        html.text(&missing.iter().map(|name| clean(name)).collect::<Vec<_>>().join(", "));
        html.raw("</p>");
    }
    generator(html, run);
    hosts(html, run);
    html.raw("</section>");
}

fn generator(html: &mut Html, run: &Run) {
    let versions = &run.versions;
    let cpus = if versions.cpus > 0 { versions.cpus.to_string() } else { String::new() };
    let rows: Vec<Row> = [
        ("duel", &versions.duel),
        ("system", &versions.os),
        ("processor", &versions.arch),
        ("CPUs", &cpus),
        ("TLS", &versions.tls),
        ("event loop", &versions.event_loop),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(label, value)| Row::new(label, vec![clean(value)]))
    .collect();
    if !rows.is_empty() {
        html.raw("<h3>Load generator</h3>");
        html.table(
            &Table { corner: String::new(), heads: vec!["value".to_owned()], rows, align: Align::Left },
            "Load generator",
        );
    }
}

/// The machines that were read: what differs first, the rest folded.
fn hosts(html: &mut Html, run: &Run) {
    let read: Vec<(&str, &HostRecord)> = run
        .plan
        .targets
        .iter()
        .zip(&run.hosts)
        .filter_map(|(target, host)| Some((target.name.as_str(), host.as_ref()?)))
        .collect();
    if read.is_empty() {
        return;
    }
    html.raw("<h3>Machines</h3><ul>");
    for (name, record) in &read {
        html.raw("<li>");
        html.text(&format!("{}: read {}", clean(name), clean(&record.how)));
        if let Some(why) = &record.lost {
            html.text(&format!("; reading ended early: {}", clean(why)));
        }
        for doubt in &record.doubts {
            html.raw("<br>");
            html.text(&clean_whole(doubt));
        }
        html.raw("</li>");
    }
    html.raw("</ul>");
    let machines: Vec<(&str, &Facts)> = read.iter().map(|(name, record)| (*name, &record.facts)).collect();
    let heads: Vec<String> = machines.iter().map(|(name, _)| clean(name)).collect();
    let Sorted { differing, same, .. } = Sorted::of(&machines);
    let unread = unread(&machines);
    if machines.len() > 1 {
        if differing.is_empty() {
            html.raw("<p>No fact differs between the machines.</p>");
        } else {
            html.raw("<h4>What differs</h4>");
            let table = Table { corner: String::new(), heads, rows: differing, align: Align::Left };
            html.table(&table, "Facts that differ between the machines");
        }
    }
    if !same.is_empty() {
        let (title, head) =
            if machines.len() > 1 { ("The same on all", "on all".to_owned()) } else { ("Facts", clean(machines[0].0)) };
        html.raw(&format!("<details><summary>{title} ({})</summary>", same.len()));
        html.table(&Table { corner: String::new(), heads: vec![head], rows: same, align: Align::Left }, title);
        html.raw("</details>");
    }
    if !unread.is_empty() {
        html.raw(&format!("<details><summary>Not available ({})</summary><ul>", unread.len()));
        for (key, why) in &unread {
            html.raw("<li>");
            html.text(&format!("{key}: {why}"));
            html.raw("</li>");
        }
        html.raw("</ul></details>");
    }
    for (name, record) in &read {
        last_words(html, name, record);
    }
}

/// What a machine's kernel said while it was watched.
fn last_words(html: &mut Html, name: &str, record: &HostRecord) {
    let since = record.watched_from_uptime_ns;
    let lines: Vec<&str> = record
        .last_words
        .iter()
        .filter(|line| line.uptime_ns.zip(since).is_some_and(|(at, since)| at >= since))
        .map(|line| line.text.as_str())
        .collect();
    if lines.is_empty() {
        return;
    }
    html.raw("<details><summary>");
    html.text(&format!("What the kernel of {} said meanwhile ({})", clean(name), plural(lines.len() as u64, "line")));
    html.raw("</summary><ul>");
    for line in lines {
        html.raw("<li>");
        html.text(line);
        html.raw("</li>");
    }
    html.raw("</ul></details>");
}
