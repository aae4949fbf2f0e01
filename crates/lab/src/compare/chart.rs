//! Charts as SVG within a page, in the colours of the page (`page.css` of the crate `report`).

use std::fmt::Write;

use gristmill_report::chart::{Anchor, Label, Labels, WIDTH, begin, milliseconds};
use gristmill_report::tally::Tally;

/// A strategy in a bar chart.
pub struct Bar<'b> {
    pub name: &'b str,
    pub tally: Tally,
    /// True if it is the fastest, or level with it.
    pub is_first: bool,
}

/// The bounds of the bars. Names are to the left of them, times to the right.
const LEFT: f64 = 146.0;
const RIGHT: f64 = 424.0;
const ROW: f64 = 26.0;

/// Draws a bar for each strategy, from zero to the median, with a line over the quartiles and a thin one over the
/// range.
pub fn bars(bars: &[Bar<'_>]) -> String {
    let most = bars.iter().map(|bar| bar.tally.upper_quartile).fold(f64::MIN_POSITIVE, f64::max) * 1.02;
    let least = bars.iter().map(|bar| bar.tally.median).fold(f64::INFINITY, f64::min);
    let x = |value: f64| LEFT + (RIGHT - LEFT) * (value / most).min(1.0);
    let mut svg = begin(bars.len() as f64 * ROW + 4.0, &format!("{} strategies", bars.len()));
    let mut labels = Labels::default();
    for (row, Bar { name, tally, is_first }) in bars.iter().enumerate() {
        let (top, middle) = (row as f64 * ROW + 4.0, row as f64 * ROW + ROW / 2.0 + 2.0);
        let class = if *is_first { "bar first" } else { "bar" };
        let (from, to) = (x(tally.least), x(tally.most));
        let (lower, upper) = (x(tally.lower_quartile), x(tally.upper_quartile));
        write!(
            svg,
            "<rect class='{class}' x='{LEFT}' y='{top:.1}' width='{:.1}' height='{:.1}' rx='2'/>\
             <path class='range' d='M{from:.1} {middle:.1}H{to:.1}'/>\
             <path class='quartiles' d='M{lower:.1} {middle:.1}H{upper:.1}'/>",
            x(tally.median) - LEFT,
            ROW - 7.0,
        )
        .expect("a string takes everything");
        let time = match tally.median / least {
            ..1.005 => milliseconds(tally.median),
            ratio @ ..100.0 => format!("{} · {ratio:.2}×", milliseconds(tally.median)),
            ratio => format!("{} · {ratio:.0}×", milliseconds(tally.median)),
        };
        labels.add([Label::new(Anchor::End, LEFT - 8.0, middle, *name)]);
        labels.add([Label::new(Anchor::Start, RIGHT + 8.0, middle, time)]);
    }
    svg + &labels.svg() + "</svg>"
}

/// Draws times over numbers of workers, which double from point to point. A dashed line shows the best that
/// `processors` could reach.
pub fn curve(points: &[(f64, Tally)], processors: usize) -> String {
    const HEIGHT: f64 = 210.0;
    const TOP: f64 = 28.0;
    const BOTTOM: f64 = HEIGHT - 34.0;
    /// The x of the axis. The first point is far enough from it to leave room for a time.
    const START: f64 = 72.0;
    const FIRST: f64 = START + 36.0;
    const LAST: f64 = WIDTH - 36.0;
    let most = points.iter().map(|(_, tally)| tally.upper_quartile).fold(f64::MIN_POSITIVE, f64::max) * 1.05;
    let step = (LAST - FIRST) / (points.len().max(2) - 1) as f64;
    let x = |at: usize| FIRST + step * at as f64;
    let y = |value: f64| BOTTOM - (BOTTOM - TOP) * (value / most).min(1.0);
    let path = |values: &[f64]| -> String {
        let places = values.iter().enumerate().map(|(at, value)| format!("{:.1} {:.1}", x(at), y(*value)));
        format!("M{}", places.collect::<Vec<_>>().join("L"))
    };
    let (mut svg, mut labels) = (begin(HEIGHT, "time over workers"), Labels::default());
    let mut put = |text: String| svg.push_str(&text);
    for mark in [0.0, most / 1.05] {
        let at = y(mark);
        put(format!("<path class='grid' d='M{START} {at:.1}H{WIDTH}'/>"));
        labels.add([Label::new(Anchor::End, START - 8.0, at, milliseconds(mark))]);
    }
    let first = points.first().map_or(0.0, |(_, tally)| tally.median);
    let ideal: Vec<f64> = points.iter().map(|(workers, _)| first / workers.min(processors as f64)).collect();
    put(format!("<path class='ideal' d='{}'/>", path(&ideal)));
    put(format!(
        "<path class='curve' d='{}'/>",
        path(&points.iter().map(|(_, tally)| tally.median).collect::<Vec<_>>())
    ));
    for (at, (workers, _)) in points.iter().enumerate() {
        labels.add([Label::new(Anchor::Middle, x(at), BOTTOM + 18.0, workers.to_string())]);
    }
    for (at, (_, tally)) in points.iter().enumerate() {
        let (x, middle) = (x(at), y(tally.median));
        let (upper, lower) = (y(tally.upper_quartile), y(tally.lower_quartile));
        put(format!("<path class='quartiles' d='M{x:.1} {upper:.1}V{lower:.1}'/>"));
        put(format!("<circle class='point' cx='{x:.1}' cy='{middle:.1}' r='3.5'/>"));
        let places = [middle.min(upper) - 13.0, middle.max(lower) + 13.0];
        labels.add(places.map(|y| Label::new(Anchor::Middle, x, y, milliseconds(tally.median))));
    }
    svg + &labels.svg() + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_strategy_has_the_longest_bar() {
        let [fast, slow] = [10.0, 20.0].map(|time| Tally::of(&[time]));
        let svg =
            bars(&[Bar { name: "a<b", tally: slow, is_first: false }, Bar { name: "c", tally: fast, is_first: true }]);
        let widths: Vec<f64> = svg
            .split("width='")
            .skip(1)
            .map(|rest| rest.split('\'').next().expect("quoted").parse().expect("a number"))
            .collect();
        assert!((widths[0] - 2.0 * widths[1]).abs() < 0.2, "{widths:?}");
        assert!(svg.contains("a&lt;b") && svg.contains("2.00×"));
    }

    /// Times of one worker were once drawn over those of the axis and, with sixty-four processors, over each other.
    #[test]
    fn labels_do_not_overlap() {
        for (most, fall) in [(812.6, 1.9), (9.99, 1.0), (81.26, 1.05), (8126.0, 0.9), (0.9, 2.0)] {
            for count in 2..=12 {
                let times: Vec<f64> = (0..count).map(|at| most / f64::powi(fall, at)).collect();
                let points: Vec<(f64, Tally)> = times
                    .iter()
                    .enumerate()
                    .map(|(at, time)| (f64::powi(2.0, at as i32), Tally::of(&[*time, time * 0.9, time * 1.2])))
                    .collect();
                let labels = labels(&curve(&points, 64));
                assert!(labels.len() > 2 + count as usize, "points without a time: {count} of {most}");
                is_clear(&labels);
            }
        }
        let names = ["shared by threads", "pages of 128 KiB"];
        let times = [(12.34, 1e4), (999.4, 999.4 * 12.34), (99_990.0, 99_990.0), (0.123, 99.9)];
        for (fast, slow) in times.map(|(fast, slow)| (Tally::of(&[fast]), Tally::of(&[slow]))) {
            let drawn = bars(&[
                Bar { name: names[0], tally: slow, is_first: false },
                Bar { name: names[1], tally: fast, is_first: true },
            ]);
            let labels = labels(&drawn);
            assert_eq!(labels.len(), 4);
            is_clear(&labels);
        }
    }

    /// Returns the texts of a chart as a reader sees them.
    fn labels(svg: &str) -> Vec<Label> {
        let label = |text: &str| {
            let value = |name: &str| text.split(name).nth(1).and_then(|rest| rest.split('\'').next()).expect("quoted");
            let anchor = match value("class='") {
                "time" => Anchor::Start,
                "tick" => Anchor::Middle,
                "name" => Anchor::End,
                other => panic!("an unknown class {other}"),
            };
            let [x, y] = ["x='", "y='"].map(|name| value(name).parse().expect("a number"));
            let said = text.split('>').nth(1).and_then(|rest| rest.split('<').next()).expect("a text");
            Label::new(anchor, x, y, said)
        };
        svg.split("<text ").skip(1).map(label).collect()
    }

    fn is_clear(labels: &[Label]) {
        for (at, label) in labels.iter().enumerate() {
            let ([left, right], _) = label.bounds();
            assert!(left >= 0.0 && right <= WIDTH, "{} leaves the chart: {left} to {right}", label.text);
            for other in &labels[at + 1..] {
                assert!(!label.overlaps(other), "{} and {} overlap", label.text, other.text);
            }
        }
    }
}
