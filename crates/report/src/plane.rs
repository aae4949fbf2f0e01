//! Dots and lines between two axes.

use std::fmt::Write;

use crate::chart::WIDTH;
use crate::text::escape;

/// The style of dots and lines.
pub const STYLE: &str =
    "svg .dot { stroke: none; } svg .line { fill: none; stroke-width: 1.6; } svg .axis { stroke: var(--soft); }";

/// A dot.
#[derive(Clone, Debug)]
pub struct Dot {
    /// Its place on the axes.
    pub x: f64,
    /// See `x`.
    pub y: f64,
    /// The class of its style.
    pub class: &'static str,
}

/// A line through points.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its points on the axes.
    pub points: Vec<(f64, f64)>,
    /// The class of its style.
    pub class: &'static str,
}

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The value at its beginning.
    pub from: f64,
    /// The value at its end.
    pub to: f64,
    /// Its label: what it measures, and the unit.
    pub name: &'static str,
}

/// Draws dots and lines between two axes, as SVG for a page. [`STYLE`] has what all such pictures need, and each page
/// adds the colours of its classes.
///
/// ```
/// use gristmill_report::plane::{Axis, Dot, plane};
///
/// let [x, y] = ["run", "gain, %"].map(|name| Axis { from: 0.0, to: 4.0, name });
/// let svg = plane(&x, &y, &[Dot { x: 1.0, y: 2.5, class: "chosen" }], &[]);
/// assert!(svg.contains("class='dot chosen'"));
/// ```
pub fn plane(x: &Axis, y: &Axis, dots: &[Dot], lines: &[Line]) -> String {
    const HEIGHT: f64 = 240.0;
    const LEFT: f64 = 52.0;
    const RIGHT: f64 = WIDTH - 12.0;
    const TOP: f64 = 14.0;
    const BOTTOM: f64 = HEIGHT - 40.0;
    let at_x = |value: f64| LEFT + (RIGHT - LEFT) * (value - x.from) / (x.to - x.from);
    let at_y = |value: f64| BOTTOM - (BOTTOM - TOP) * (value - y.from) / (y.to - y.from);
    let label = escape(&format!("{} over {}", y.name, x.name));
    let mut svg = format!("<svg viewBox='0 0 {WIDTH} {HEIGHT:.0}' role='img' aria-label='{label}'>");
    for part in 0..=4 {
        let share = f64::from(part) / 4.0;
        let (mark_x, mark_y) = (x.from + share * (x.to - x.from), y.from + share * (y.to - y.from));
        put(&mut svg, format_args!("<path class='grid' d='M{LEFT} {:.1}H{RIGHT}'/>", at_y(mark_y)));
        put(
            &mut svg,
            format_args!("<text class='name' x='{}' y='{:.1}'>{}</text>", LEFT - 6.0, at_y(mark_y), number(mark_y)),
        );
        put(
            &mut svg,
            format_args!("<text class='tick' x='{:.1}' y='{}'>{}</text>", at_x(mark_x), BOTTOM + 14.0, number(mark_x)),
        );
    }
    let (centre, middle) = ((LEFT + RIGHT) / 2.0, (TOP + BOTTOM) / 2.0);
    put(&mut svg, format_args!("<text class='tick' x='{centre}' y='{}'>{}</text>", HEIGHT - 8.0, escape(x.name)));
    let upwards = format!("transform='translate(10 {middle}) rotate(-90)'");
    put(&mut svg, format_args!("<text class='tick' {upwards}>{}</text>", escape(y.name)));
    for Dot { x, y, class } in dots {
        put(&mut svg, format_args!("<circle class='dot {class}' cx='{:.1}' cy='{:.1}' r='2'/>", at_x(*x), at_y(*y)));
    }
    for Line { points, class } in lines {
        let places: Vec<String> = points.iter().map(|(x, y)| format!("{:.1} {:.1}", at_x(*x), at_y(*y))).collect();
        put(&mut svg, format_args!("<path class='line {class}' d='M{}'/>", places.join("L")));
    }
    svg + "</svg>"
}

fn put(svg: &mut String, text: std::fmt::Arguments<'_>) {
    svg.write_fmt(text).expect("a string takes everything");
}

/// Formats a tick of an axis without needless zeros.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_have_no_needless_zeros() {
        assert_eq!([0.0, 1.0, 0.25, 7.5, 40.0].map(number), ["0", "1", "0.25", "7.5", "40"]);
    }
}
