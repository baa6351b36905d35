//! What was agreed with each target, side by side, differences marked.

use crate::figures::{UNKNOWN, count};
use crate::style::Style;
use crate::table::{Align, Row, Table};
use crate::text::{clean, wrap};
use crate::totals::Totals;
use duel_model::Negotiated;

/// What was negotiated, as text.
pub(crate) fn side_by_side(targets: &[Totals<'_>], style: Style) -> Vec<String> {
    let Some((title, table)) = table(targets) else { return Vec::new() };
    let mut lines = wrap(title, style.columns(), "", "  ");
    lines.extend(table.lines(style.columns()));
    lines
}

/// A table of what was negotiated, with its title; a row that no target has is left out. `None` without any row.
pub(crate) fn table(targets: &[Totals<'_>]) -> Option<(&'static str, Table)> {
    let facts: Vec<Vec<(&str, Option<String>)>> =
        targets.iter().map(|t| rows(&t.negotiated.clone().unwrap_or_default())).collect();
    let first = facts.first()?;
    let mut differs = false;
    let mut table_rows = Vec::new();
    for (i, (label, _)) in first.iter().enumerate() {
        let cells: Vec<Option<&String>> = facts.iter().map(|f| f[i].1.as_ref()).collect();
        // That another port was asked for is no finding; that a name led to another machine may be one.
        let compared = |cell: Option<&String>| match (*label, cell) {
            ("peer", Some(peer)) => Some(peer.rsplit_once(':').map_or(peer.as_str(), |(host, _)| host).to_owned()),
            (_, cell) => cell.cloned(),
        };
        if cells.iter().all(Option::is_none) {
            continue;
        }
        // Of a target that was never reached nothing is known, which is no difference.
        let mut known =
            cells.iter().zip(targets).filter(|(_, t)| t.negotiated.is_some()).map(|(cell, _)| compared(*cell));
        let reference = known.next();
        let different = reference.is_some_and(|reference| known.any(|cell| cell != reference));
        differs |= different;
        let mark = if different { "≠" } else { " " };
        let cells = cells.into_iter().map(|c| c.cloned().unwrap_or_else(|| UNKNOWN.to_owned())).collect();
        table_rows.push(Row::new(format!("{mark} {label}"), cells));
    }
    if table_rows.is_empty() {
        return None;
    }
    let title = if differs { "Negotiated (≠ marks what differs)" } else { "Negotiated" };
    let heads = targets.iter().map(|t| t.name.clone()).collect();
    Some((title, Table { corner: String::new(), heads, rows: table_rows, align: Align::Left }))
}

/// Streams at a time where a server names no bound.
const UNBOUNDED: u32 = (1 << 31) - 1;

/// Every fact with its name; unknown ones are `None`. The texts are safe to show.
pub(crate) fn rows(seen: &Negotiated) -> Vec<(&'static str, Option<String>)> {
    let text = |value: &Option<String>| value.as_deref().map(clean);
    vec![
        ("protocol", text(&seen.http)),
        ("TLS", text(&seen.tls)),
        ("cipher", text(&seen.cipher)),
        ("group", text(&seen.group)),
        ("ALPN", text(&seen.alpn)),
        ("key", seen.certificate_key.as_ref().map(|key| clean(&key.to_string()))),
        ("chain bytes", seen.chain_bytes.map(count)),
        ("server", text(&seen.server)),
        ("via", text(&seen.via)),
        ("status", seen.status.map(|status| status.to_string())),
        ("type", text(&seen.content_type)),
        ("encoding", text(&seen.content_encoding)),
        ("location", text(&seen.location)),
        ("body bytes", seen.body_bytes.map(count)),
        (
            "streams",
            seen.max_streams
                .map(|most| if most == UNBOUNDED { "any number".to_owned() } else { count(u64::from(most)) }),
        ),
        ("keeps alive", seen.keeps_alive.map(|keeps| if keeps { "yes" } else { "no" }.to_owned())),
        ("peer", text(&seen.peer)),
        ("no answer", (!seen.dead_addresses.is_empty()).then(|| clean(&seen.dead_addresses.join("; ")))),
    ]
}
