//! The text exposition format of Prometheus (version 0.0.4).
//!
//! Names and units by its conventions: base units (seconds, bytes, ratios), the unit in the name, `_total` for what only
//! grows. The format is a few lines; a library for it would want its own counters beside ours.

use super::figures::{BOUNDS_NS, Counts, Figures, TargetFigures};
use duel_model::sanitize_line;
use std::fmt::Write;

/// What a scraper is told about the content.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The page.
pub(super) fn page(figures: &Figures) -> String {
    let mut page = Page(String::new());
    page.family("duel_info", "gauge", "The run that these figures are of.");
    // Until the run has begun it has no name.
    if !figures.run.is_empty() {
        page.sample("duel_info", &[("run", &figures.run), ("version", env!("CARGO_PKG_VERSION"))], 1.0);
    }

    let targets = figures.so_far();
    page.family("duel_requests_total", "counter", "Requests that ended, in slots of every role.");
    for (TargetFigures { name, .. }, counts) in &targets {
        page.sample("duel_requests_total", &[("target", name), ("outcome", "ok")], counts.ok as f64);
        page.sample("duel_requests_total", &[("target", name), ("outcome", "failed")], counts.failed_total() as f64);
    }
    page.family("duel_request_failures_total", "counter", "Failed requests by kind.");
    for (TargetFigures { name, .. }, counts) in &targets {
        for (kind, count) in &counts.failed {
            let labels = [("target", name.as_str()), ("kind", kind.name())];
            page.sample("duel_request_failures_total", &labels, *count as f64);
        }
    }
    page.family("duel_slots_total", "counter", "Slots that are over, by what they were for.");
    for (TargetFigures { name, slots, .. }, _) in &targets {
        for (role, count) in slots {
            page.sample("duel_slots_total", &[("target", name), ("role", role)], *count as f64);
        }
    }
    type Figure = fn(&Counts) -> f64;
    let counters: [(&str, &str, Figure); 5] = [
        ("duel_load_seconds_total", "Time under load.", Counts::load_s),
        (
            "duel_generator_standstill_seconds_total",
            "Time under load in which the generator itself stood still; response times hold it.",
            Counts::stood_still_s,
        ),
        ("duel_received_bytes_total", "Bytes read from connections.", |counts| counts.traffic.bytes_in as f64),
        ("duel_sent_bytes_total", "Bytes written to connections.", |counts| counts.traffic.bytes_out as f64),
        ("duel_connections_opened_total", "Connections that were established.", |counts| {
            counts.traffic.connections as f64
        }),
    ];
    for (name, help, figure) in counters {
        page.family(name, "counter", help);
        targets.iter().for_each(|(target, counts)| page.sample(name, &[("target", &target.name)], figure(counts)));
    }
    page.family(
        "duel_response_seconds",
        "histogram",
        "Response times from the due time on, in slots of every role, warm-up included.",
    );
    targets.iter().for_each(|(target, counts)| page.histogram("duel_response_seconds", &target.name, counts));
    page.family("duel_response_p99_seconds", "gauge", "99th percentile of the same response times so far.");
    for (target, counts) in &targets {
        if let Some(p99_ns) = counts.response.quantile_ns(0.99) {
            page.sample("duel_response_p99_seconds", &[("target", &target.name)], p99_ns as f64 / 1e9);
        }
    }
    page.family("duel_target_active", "gauge", "Whether the target is under load now (1) or not (0).");
    for (place, (target, _)) in targets.iter().enumerate() {
        let active = f64::from(u8::from(figures.active == Some(place)));
        page.sample("duel_target_active", &[("target", &target.name)], active);
    }
    page.family(
        "duel_progress_ratio",
        "gauge",
        "Share of the planned load that is done, of a probe's own load while it runs.",
    );
    if let Some(progress) = figures.progress {
        page.sample("duel_progress_ratio", &[], progress);
    }
    page.0
}

struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> = labels.iter().map(|(label, text)| format!("{label}=\"{}\"", escaped(text))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    /// Buckets are cumulated, and the last one has no bound.
    fn histogram(&mut self, name: &str, target: &str, counts: &Counts) {
        let mut below = 0;
        for (place, count) in counts.by_bound().iter().enumerate() {
            below += count;
            let bound = BOUNDS_NS.get(place).map_or_else(|| "+Inf".to_owned(), |&ns| (ns as f64 / 1e9).to_string());
            self.sample(&format!("{name}_bucket"), &[("target", target), ("le", &bound)], below as f64);
        }
        self.sample(&format!("{name}_sum"), &[("target", target)], counts.response.sum_ns as f64 / 1e9);
        self.sample(&format!("{name}_count"), &[("target", target)], below as f64);
    }
}

/// A label's value: backslash, quote and newline are escaped.
fn escaped(text: &str) -> String {
    sanitize_line(text).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::{of, slot};
    use super::*;

    #[test]
    fn a_page_is_what_a_scraper_reads() {
        let mut figures = of(&["A", "b\"\\\n"]);
        figures.add(&slot(0, 3, 2, 2));
        let page = page(&figures);
        for line in [
            "duel_requests_total{target=\"A\",outcome=\"ok\"} 3",
            "duel_requests_total{target=\"A\",outcome=\"failed\"} 2",
            "duel_requests_total{target=\"b\\\"\\\\ \",outcome=\"ok\"} 0",
            "duel_request_failures_total{target=\"A\",kind=\"refused\"} 2",
            "duel_slots_total{target=\"A\",role=\"measured\"} 1",
            "duel_load_seconds_total{target=\"A\"} 1",
            "duel_received_bytes_total{target=\"A\"} 30",
            "duel_response_seconds_bucket{target=\"A\",le=\"0.001\"} 0",
            "duel_response_seconds_bucket{target=\"A\",le=\"0.0025\"} 3",
            "duel_response_seconds_bucket{target=\"A\",le=\"+Inf\"} 3",
            "duel_response_seconds_sum{target=\"A\"} 0.006",
            "duel_response_seconds_count{target=\"A\"} 3",
            "duel_response_p99_seconds{target=\"A\"} 0.002",
        ] {
            assert!(page.lines().any(|found| found == line), "{line}\n{page}");
        }
        // Unknown is not zero: it is not there.
        assert!(!page.contains("\nduel_progress_ratio ") && !page.contains("p99_seconds{target=\"b"), "{page}");
        // Every line is a comment or `name{labels} value`, each family is announced once.
        let mut families: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        families.sort_unstable();
        families.dedup();
        assert_eq!(families.len(), page.matches("# TYPE ").count());
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let (_, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
}
