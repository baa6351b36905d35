//! How much of a line was used, where one is known that the bytes of ops go over.

use crate::figures::maybe;
use crate::table::Row;
use crate::totals::Totals;
use duel_model::Line;
use serde::Serialize;

/// Shares of a line's rate, in per cent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct LineUse {
    pub(crate) used_percent: f64,
    /// Bytes of ops.
    pub(crate) payload_percent: f64,
    /// What carrying them took: headers, gaps, what was sent again.
    pub(crate) overhead_percent: f64,
    pub(crate) idle_percent: f64,
}

impl LineUse {
    /// Of a target's line; `None` where its rate or its overhead is not known.
    pub(crate) fn of(target: &Totals<'_>) -> Option<Self> {
        let facts = target.negotiated.as_ref()?;
        let number = |line: Line| {
            let declared = target.schema.facts.iter().find(|declared| declared.line == Some(line))?;
            facts.number(declared.name).filter(|&number| number > 0.0)
        };
        Self::split(target.bytes_per_s()?, number(Line::Rate)?, number(Line::PayloadPercent)?)
    }

    fn split(bytes_per_s: f64, line_mbps: f64, payload_of_wire_percent: f64) -> Option<Self> {
        let payload_percent = 100.0 * bytes_per_s * 8.0 / (line_mbps * 1e6);
        let used_percent = payload_percent * 100.0 / payload_of_wire_percent;
        let is_sound = used_percent.is_finite() && payload_of_wire_percent <= 100.0;
        is_sound.then_some(Self {
            used_percent,
            payload_percent,
            overhead_percent: used_percent - payload_percent,
            // More than the line's rate: whoever told it was wrong, and nothing is idle.
            idle_percent: (100.0 - used_percent).max(0.0),
        })
    }
}

/// The rows of a table of figures; none where no target's line is known.
pub(crate) fn rows(targets: &[Totals<'_>]) -> Vec<Row> {
    let lines: Vec<Option<LineUse>> = targets.iter().map(LineUse::of).collect();
    if lines.iter().all(Option::is_none) {
        return Vec::new();
    }
    let row = |title: &str, of: fn(&LineUse) -> f64| {
        let cell = |line: &Option<LineUse>| maybe(line.as_ref().map(of), |percent| format!("{percent:.1} %"));
        Row::new(title, lines.iter().map(cell).collect())
    };
    vec![
        row("line rate used", |line| line.used_percent),
        row("  by payload", |line| line.payload_percent),
        row("  by overhead", |line| line.overhead_percent),
        row("line rate idle", |line| line.idle_percent),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_into_payload_overhead_and_idle() {
        // 100 Mbit/s, of which 82.0 are payload, with 1448 of 1538 bytes payload.
        let line = LineUse::split(82.0e6 / 8.0, 100.0, 100.0 * 1448.0 / 1538.0).unwrap();
        let shares = [line.used_percent, line.payload_percent, line.overhead_percent, line.idle_percent];
        let rounded = shares.map(|share| (share * 10.0).round() / 10.0);
        assert_eq!(rounded, [87.1, 82.0, 5.1, 12.9]);
        assert_eq!(LineUse::split(1.0, 0.0, 50.0), None);
        assert_eq!(LineUse::split(20e6, 100.0, 95.0).unwrap().idle_percent, 0.0);
    }
}
