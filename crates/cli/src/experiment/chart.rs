//! Charts as SVG that stands in a page: its colours are those of the page (`report.css`).

use std::fmt::Write;

use super::tally::Tally;

/// A strategy in a chart of bars.
pub struct Bar<'b> {
    pub name: &'b str,
    pub tally: Tally,
    /// It is the fastest, or level with it.
    pub is_first: bool,
}

const WIDTH: f64 = 520.0;
/// Where bars begin and end; names stand before, times behind.
const LEFT: f64 = 120.0;
const RIGHT: f64 = 400.0;
const ROW: f64 = 26.0;

/// A bar for each strategy, from zero to the median; a line over the quartiles, a thin one from the least to the most.
pub fn bars(bars: &[Bar<'_>]) -> String {
    let most = bars.iter().map(|bar| bar.tally.upper_quartile).fold(f64::MIN_POSITIVE, f64::max) * 1.02;
    let least = bars.iter().map(|bar| bar.tally.median).fold(f64::INFINITY, f64::min);
    let x = |value: f64| LEFT + (RIGHT - LEFT) * (value / most).min(1.0);
    let mut svg = begin(bars.len() as f64 * ROW + 4.0, &format!("{} strategies", bars.len()));
    for (row, Bar { name, tally, is_first }) in bars.iter().enumerate() {
        let (top, middle) = (row as f64 * ROW + 4.0, row as f64 * ROW + ROW / 2.0 + 2.0);
        let class = if *is_first { "bar first" } else { "bar" };
        let (from, to) = (x(tally.least), x(tally.most));
        let (lower, upper) = (x(tally.lower_quartile), x(tally.upper_quartile));
        let ratio = tally.median / least;
        let times = if ratio < 1.005 { String::new() } else { format!(" · {ratio:.2}×") };
        write!(
            svg,
            "<text class='name' x='{:.1}' y='{middle:.1}'>{}</text>\
             <rect class='{class}' x='{LEFT}' y='{top:.1}' width='{:.1}' height='{:.1}' rx='2'/>\
             <path class='range' d='M{from:.1} {middle:.1}H{to:.1}'/>\
             <path class='quartiles' d='M{lower:.1} {middle:.1}H{upper:.1}'/>\
             <text class='time' x='{:.1}' y='{middle:.1}'>{}{times}</text>",
            LEFT - 8.0,
            escape(name),
            x(tally.median) - LEFT,
            ROW - 7.0,
            RIGHT + 8.0,
            milliseconds(tally.median),
        )
        .expect("a string takes everything");
    }
    svg + "</svg>"
}

/// Times over numbers of workers, which double from point to point; dashed, what `processors` could reach at best.
pub fn curve(points: &[(f64, Tally)], processors: usize) -> String {
    const HEIGHT: f64 = 210.0;
    const TOP: f64 = 22.0;
    const BOTTOM: f64 = HEIGHT - 34.0;
    const START: f64 = 60.0;
    let most = points.iter().map(|(_, tally)| tally.upper_quartile).fold(f64::MIN_POSITIVE, f64::max) * 1.05;
    let step = (WIDTH - START - 40.0) / (points.len().max(2) - 1) as f64;
    let x = |at: usize| START + step * at as f64;
    let y = |value: f64| BOTTOM - (BOTTOM - TOP) * (value / most).min(1.0);
    let path = |values: &[f64]| -> String {
        let places = values.iter().enumerate().map(|(at, value)| format!("{:.1} {:.1}", x(at), y(*value)));
        format!("M{}", places.collect::<Vec<_>>().join("L"))
    };
    let mut svg = begin(HEIGHT, "time over workers");
    let mut put = |text: String| svg.push_str(&text);
    for mark in [0.0, most / 1.05] {
        let at = y(mark);
        put(format!("<path class='grid' d='M{START} {at:.1}H{:.1}'/>", WIDTH - 20.0));
        put(format!("<text class='name' x='{:.1}' y='{at:.1}'>{}</text>", START - 8.0, milliseconds(mark)));
    }
    let first = points.first().map_or(0.0, |(_, tally)| tally.median);
    let ideal: Vec<f64> = points.iter().map(|(workers, _)| first / workers.min(processors as f64)).collect();
    put(format!("<path class='ideal' d='{}'/>", path(&ideal)));
    put(format!(
        "<path class='curve' d='{}'/>",
        path(&points.iter().map(|(_, tally)| tally.median).collect::<Vec<_>>())
    ));
    for (at, (workers, tally)) in points.iter().enumerate() {
        let (x, middle) = (x(at), y(tally.median));
        let (upper, lower) = (y(tally.upper_quartile), y(tally.lower_quartile));
        put(format!("<path class='quartiles' d='M{x:.1} {upper:.1}V{lower:.1}'/>"));
        put(format!("<circle class='point' cx='{x:.1}' cy='{middle:.1}' r='3.5'/>"));
        put(format!(
            "<text class='tick' x='{x:.1}' y='{:.1}'>{}</text>",
            middle.min(upper) - 11.0,
            milliseconds(tally.median)
        ));
        put(format!("<text class='tick' x='{x:.1}' y='{:.1}'>{workers}</text>", BOTTOM + 16.0));
    }
    svg + "</svg>"
}

fn begin(height: f64, label: &str) -> String {
    format!("<svg viewBox='0 0 {WIDTH} {height}' role='img' aria-label='{label}'>")
}

/// Three digits of a time.
pub fn milliseconds(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        ..1.0 => format!("{value:.3} ms"),
        ..10.0 => format!("{value:.2} ms"),
        ..100.0 => format!("{value:.1} ms"),
        ..1000.0 => format!("{value:.0} ms"),
        _ => format!("{:.2} s", value / 1e3),
    }
}

/// Text as it stands in HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\'', "&#39;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        let shown = [0.8126, 8.126, 81.26, 812.6, 8126.0].map(milliseconds);
        assert_eq!(shown, ["0.813 ms", "8.13 ms", "81.3 ms", "813 ms", "8.13 s"]);
    }

    #[test]
    fn the_longest_bar_is_that_of_the_slowest() {
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
}
