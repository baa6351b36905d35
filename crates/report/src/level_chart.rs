//! A chart of what a factor does, in bars with their intervals.

use crate::experiment::{figure, metrics, title};
use crate::figures::{TimeUnit, rate};
use crate::style::{Ink, Style};
use crate::text::{clean, columns, cut_middle, pad_left, pad_right, wrap};
use duel_model::{FactorVerdict, LevelVerdict, Metric, Ranged};

/// Widest name of a target.
const NAME: usize = 17;

/// The main metric at each level, a bar for each target. Levels that are numbers share a scale. Others differ in what they are
/// (a signature and a hash): each has a scale of its own, which compares targets, so one target has no such chart.
pub(crate) fn level_chart(factor: &FactorVerdict, targets: &[&str], style: Style) -> Vec<String> {
    let is_numeric = factor.levels.iter().all(|level| level.number.is_some());
    let compares = factor.levels.len() > 1 && (is_numeric || targets.len() > 1);
    let Some(&metric) = metrics(&factor.levels).first().filter(|_| compares) else { return Vec::new() };
    let known = |levels: &[LevelVerdict]| -> Vec<Ranged> {
        levels.iter().flat_map(|level| targets.iter().filter_map(|name| figure(level, name, metric).copied())).collect()
    };
    // An interval that is wider than all figures would leave no room for them; it is cut, and says so.
    let end_of = |levels: &[LevelVerdict]| {
        let known = known(levels);
        let highest = known.iter().map(|figure| figure.value).filter(|value| value.is_finite()).fold(0.0, f64::max);
        let high =
            known.iter().filter_map(|figure| figure.high).filter(|high| high.is_finite()).fold(highest, f64::max);
        high.min(highest * 1.5)
    };
    let end = end_of(&factor.levels);
    if end <= 0.0 {
        return Vec::new();
    }

    let names: Vec<String> = targets.iter().map(|name| cut_middle(&clean(name), NAME)).collect();
    let name_width = if names.len() > 1 { names.iter().map(|name| columns(name)).max().unwrap_or(0) + 2 } else { 0 };
    let labels: Vec<String> = factor.levels.iter().map(|level| cut_middle(&clean(&level.label), NAME)).collect();
    let label_width = labels.iter().map(|label| columns(label)).max().unwrap_or(0);
    let width = style.columns().saturating_sub(2 + label_width + 2 + name_width).clamp(8, 60);

    let unit = TimeUnit::suiting([end]);
    let end_shown = if metric == Metric::Rate { rate(end) } else { unit.show(end) };
    let scale =
        if is_numeric { format!("bars from 0 to {end_shown}") } else { "bars from 0, a scale for each".to_owned() };
    let heading = format!("{} by {}: {scale}; the light part is the interval", title(metric), clean(&factor.name));
    let mut lines = wrap(&heading, style.columns(), "", "  ");
    for (level, label) in factor.levels.iter().zip(&labels) {
        let end = if is_numeric { end } else { end_of(std::slice::from_ref(level)) };
        for (place, (target, name)) in targets.iter().zip(&names).enumerate() {
            let label = pad_left(if place == 0 { label } else { "" }, label_width);
            let name = if name_width > 0 { pad_right(name, name_width) } else { String::new() };
            let drawn = figure(level, target, metric)
                .filter(|_| end > 0.0)
                .map_or_else(|| "not known".to_owned(), |f| bar(f, end, width));
            lines.push(format!("  {label}  {name}{}", style.paint(Ink::Bar, &drawn)));
        }
    }
    lines
}

/// Full up to the interval's low end, light from there to its high end; full up to the figure where there is no interval.
fn bar(figure: &Ranged, end: f64, width: usize) -> String {
    let column = |value: f64| ((value / end).clamp(0.0, 1.0) * width as f64).round() as usize;
    let (low, high) = figure.low.zip(figure.high).unwrap_or((figure.value, figure.value));
    let (full, all) = (column(low), column(high));
    // What is there is seen, however small.
    let light = all.saturating_sub(full).max(usize::from(all == 0));
    let mut drawn = "█".repeat(full) + &"░".repeat(light);
    if high > end {
        drawn.pop();
        drawn.push('→');
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_model::LevelFigure;

    fn ranged(value: f64, low: f64, high: f64) -> Ranged {
        Ranged { value, low: Some(low), high: Some(high) }
    }

    fn factor(levels: &[(&str, Option<f64>, Option<Ranged>)]) -> FactorVerdict {
        let level = |&(label, number, figure): &(&str, Option<f64>, Option<Ranged>)| LevelVerdict {
            label: label.to_owned(),
            number,
            figures: figure
                .map(|figure| LevelFigure { target: "A".into(), metric: Metric::Rate, figure })
                .into_iter()
                .collect(),
            pairs: vec![],
        };
        FactorVerdict { name: "connections".into(), levels: levels.iter().map(level).collect(), dependences: vec![] }
    }

    #[test]
    fn bars_show_the_interval() {
        assert_eq!(bar(&ranged(50.0, 40.0, 60.0), 100.0, 10), "████░░");
        assert_eq!(bar(&Ranged { value: 50.0, low: None, high: None }, 100.0, 10), "█████");
        assert_eq!(bar(&ranged(0.1, 0.05, 0.2), 100.0, 10), "░");
        // Cut, and that it is cut is seen.
        assert_eq!(bar(&ranged(90.0, 10.0, 900.0), 100.0, 10), "█░░░░░░░░→");
    }

    #[test]
    fn a_level_without_a_figure_is_not_drawn_as_none() {
        let known = Some(ranged(100.0, 90.0, 110.0));
        let lines =
            level_chart(&factor(&[("1", Some(1.0), known), ("16", Some(16.0), None)]), &["A"], Style::default());
        assert_eq!(lines[0], "Rate by connections: bars from 0 to 110/s; the light part is the interval");
        assert_eq!(lines[2], "  16  not known");
        assert!(lines[1].starts_with("   1  ██"), "{lines:?}");
    }

    #[test]
    fn only_numbers_make_a_chart() {
        let known = Some(ranged(100.0, 90.0, 110.0));
        let style = Style::default();
        assert!(level_chart(&factor(&[("on", None, known), ("off", None, known)]), &["A"], style).is_empty());
        assert!(level_chart(&factor(&[("1", Some(1.0), known)]), &["A"], style).is_empty());
        assert!(level_chart(&factor(&[("1", Some(1.0), None), ("2", Some(2.0), None)]), &["A"], style).is_empty());
    }
}
