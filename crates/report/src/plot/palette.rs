//! Colours, for light and for dark.
//!
//! Series colours follow Okabe and Ito (2008), which people with any kind of colour blindness can tell apart; some are
//! darkened on white and lightened on black until they have the contrast of 3:1 that graphics need (WCAG 2.2, 1.4.11).
//! Since colour alone is no answer for everybody, series also differ by dashes and marks.

/// Colours of one theme, as hexadecimal RGB.
pub(crate) struct Theme {
    pub(crate) background: &'static str,
    pub(crate) text: &'static str,
    /// Axis labels, and everything that must not outshine the data.
    pub(crate) faint: &'static str,
    pub(crate) grid: &'static str,
    pub(crate) series: [&'static str; SERIES],
}

/// Colours before they repeat.
pub(crate) const SERIES: usize = 8;

pub(crate) const LIGHT: Theme = Theme {
    background: "#ffffff",
    text: "#1b1f24",
    faint: "#57606a",
    grid: "#d8dee4",
    series: ["#0072b2", "#d55e00", "#008a64", "#b5478a", "#8a6d00", "#3a87c8", "#6b6b6b", "#7a3ea1"],
};

pub(crate) const DARK: Theme = Theme {
    background: "#14171a",
    text: "#e6e9ec",
    faint: "#a0a8b0",
    grid: "#343a41",
    series: ["#56b4e9", "#e69f00", "#2dc998", "#e58fc4", "#e8dc4a", "#9ab8ff", "#b3b3b3", "#c99af0"],
};

/// Dashes of the lines, in the same order; the first is whole.
const DASHES: [&str; SERIES] = ["", "7 3", "2 3", "9 3 2 3", "12 4", "4 4", "1 4", "7 3 2 3 2 3"];

/// The colour of a series on white.
pub(crate) fn light(series: usize) -> &'static str {
    LIGHT.series[series % SERIES]
}

/// The dashes of a series; empty for a whole line. From the second turn of the palette on none is whole.
pub(crate) fn dashes(series: usize) -> &'static str {
    DASHES[(series + series / SERIES) % SERIES]
}

/// The rules that turn drawings dark where the reader prefers that. In light, and for readers without style sheets, the
/// attributes hold that every element carries; so files look right in programs that know less CSS than browsers.
pub(crate) fn dark_rules() -> String {
    let Theme { background, text, faint, grid, series } = &DARK;
    let series: String = series
        .iter()
        .enumerate()
        .map(|(i, color)| format!(".duel-chart .s{i}.line{{stroke:{color}}}.duel-chart .s{i}.fill{{fill:{color}}}"))
        .collect();
    format!(
        "@media screen and (prefers-color-scheme:dark){{.duel-chart text{{fill:{text}}}.duel-chart .faint{{fill:{faint}}}\
         .duel-chart .grid{{stroke:{grid}}}.duel-chart .axis{{stroke:{faint}}}.duel-chart .zone{{fill:{grid}}}\
         .duel-chart .ground{{fill:{background}}}{series}}}"
    )
}

/// The custom properties of a theme, as declarations: `--background`, `--text`, `--faint`, `--grid`, `--s0` to `--s7`.
fn declarations(theme: &Theme) -> String {
    let series: String = theme.series.iter().enumerate().map(|(i, color)| format!("--s{i}:{color};")).collect();
    format!(
        "--background:{};--text:{};--faint:{};--grid:{};{series}",
        theme.background, theme.text, theme.faint, theme.grid
    )
}

/// The custom properties for `selector`: light, dark where the reader prefers that, and light on paper.
pub(crate) fn rules(selector: &str) -> String {
    let (light, dark) = (declarations(&LIGHT), declarations(&DARK));
    format!("{selector}{{{light}}}@media screen and (prefers-color-scheme:dark){{{selector}{{{dark}}}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WCAG 2.2, relative luminance and contrast ratio.
    fn contrast(a: &str, b: &str) -> f64 {
        let luminance = |color: &str| {
            let part = |from: usize| f64::from(u8::from_str_radix(&color[from..from + 2], 16).unwrap()) / 255.0;
            let linear = |v: f64| if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) };
            0.2126 * linear(part(1)) + 0.7152 * linear(part(3)) + 0.0722 * linear(part(5))
        };
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn what_is_drawn_can_be_seen() {
        for theme in [&LIGHT, &DARK] {
            for color in theme.series {
                assert!(contrast(color, theme.background) >= 3.0, "{color}: {}", contrast(color, theme.background));
            }
            assert!(contrast(theme.text, theme.background) >= 7.0);
            assert!(contrast(theme.faint, theme.background) >= 4.5, "{}", contrast(theme.faint, theme.background));
        }
    }

    #[test]
    fn no_two_series_look_alike_in_the_first_two_turns() {
        let looks: std::collections::BTreeSet<_> = (0..2 * SERIES).map(|i| (light(i), dashes(i))).collect();
        assert_eq!(looks.len(), 2 * SERIES);
    }
}
