//! Charts of a simulation as SVG, in the colours of the page.

use std::fmt::Write;

use gristmill_report::chart::WIDTH;
use gristmill_report::text::escape;

use crate::bandwidth::interval::Interval;

/// Draws the means of each name, each with a line from the least to the greatest value. The classes are those of the
/// columns.
pub fn ranges(rows: &[(String, Vec<Interval>)], classes: &[&str]) -> String {
    const LEFT: f64 = 84.0;
    const RIGHT: f64 = WIDTH - 16.0;
    const TOP: f64 = 8.0;
    const STEP: f64 = 8.0;
    let all = || rows.iter().flat_map(|(_, values)| values);
    let from = all().map(|value| value.least).fold(0.0, f64::min).floor();
    let to = all().map(|value| value.greatest).fold(1.0, f64::max).ceil();
    let x = |value: f64| LEFT + (RIGHT - LEFT) * (value - from) / (to - from);
    let row_height = STEP * (classes.len() as f64 + 1.5);
    let bottom = TOP + row_height * rows.len() as f64;
    let mut svg = begin(bottom + 26.0, "gain over Linux, percent");
    let every = if to - from > 12.0 { 4 } else { 2 };
    for mark in (from as i64..=to as i64).filter(|mark| mark % every == 0) {
        let (at, class) = (x(mark as f64), if mark == 0 { "axis" } else { "grid" });
        put(&mut svg, format_args!("<path class='{class}' d='M{at:.1} {TOP}V{bottom:.1}'/>"));
        put(&mut svg, format_args!("<text class='tick' x='{at:.1}' y='{:.1}'>{mark} %</text>", bottom + 14.0));
    }
    for (place, (name, values)) in rows.iter().enumerate() {
        let top = TOP + row_height * place as f64 + STEP;
        let middle = top + STEP * (classes.len() as f64 - 1.0) / 2.0;
        put(&mut svg, format_args!("<text class='name' x='{}' y='{middle:.1}'>{}</text>", LEFT - 8.0, escape(name)));
        for (column, (value, class)) in values.iter().zip(classes).enumerate() {
            let y = top + STEP * column as f64;
            let (least, mean, greatest) = (x(value.least), x(value.mean), x(value.greatest));
            put(&mut svg, format_args!("<path class='line {class}' d='M{least:.1} {y:.1}H{greatest:.1}'/>"));
            put(&mut svg, format_args!("<circle class='dot {class}' cx='{mean:.1}' cy='{y:.1}' r='3.5'/>"));
        }
    }
    svg + "</svg>"
}

/// Draws the shares of a whole for each name, next to each other. The classes are those of the columns.
pub fn shares(rows: &[(&str, Vec<f64>)], classes: &[&str]) -> String {
    const LEFT: f64 = 92.0;
    const RIGHT: f64 = WIDTH - 16.0;
    const ROW: f64 = 18.0;
    let mut svg = begin(rows.len() as f64 * ROW + 4.0, "shares of states");
    for (place, (name, shares)) in rows.iter().enumerate() {
        let (top, sum) = (place as f64 * ROW + 4.0, shares.iter().sum::<f64>().max(f64::MIN_POSITIVE));
        put(
            &mut svg,
            format_args!("<text class='name' x='{}' y='{:.1}'>{}</text>", LEFT - 8.0, top + 6.0, escape(name)),
        );
        let mut x = LEFT;
        for (share, class) in shares.iter().zip(classes) {
            let width = (RIGHT - LEFT) * share / sum;
            put(
                &mut svg,
                format_args!("<rect class='dot {class}' x='{x:.1}' y='{top:.1}' width='{width:.1}' height='12'/>"),
            );
            x += width;
        }
    }
    svg + "</svg>"
}

fn begin(height: f64, label: &str) -> String {
    format!("<svg viewBox='0 0 {WIDTH} {height:.0}' role='img' aria-label='{}'>", escape(label))
}

fn put(svg: &mut String, text: std::fmt::Arguments<'_>) {
    svg.write_fmt(text).expect("a string takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_lies_within_the_chart_and_its_mean_between_its_ends() {
        let value = Interval { least: -3.2, low: 0.0, mean: 2.0, high: 3.0, greatest: 8.7 };
        let svg = ranges(&[("WL#01".into(), vec![value, value])], &["one", "two"]);
        let numbers = |before: &str| -> Vec<f64> {
            let parts = svg.split(before).skip(1);
            parts
                .map(|part| {
                    part.split([' ', '\'', 'H', 'V']).next().and_then(|text| text.parse().ok()).expect("a number")
                })
                .collect()
        };
        let (starts, means) = (numbers("<path class='line one' d='M"), numbers("cx='"));
        assert!(starts[0] >= 84.0 && means.iter().all(|mean| *mean > starts[0] && *mean < WIDTH), "{svg}");
    }
}
