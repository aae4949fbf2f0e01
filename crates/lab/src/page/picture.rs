//! Curves as a picture of its own, beside a page.

use std::fmt::Write;

use gristmill_report::plane::{Axis, Dot, Line, STYLE, plane};
use gristmill_report::text::escape;

/// The classes of curves, in the order of the colours below.
const CLASSES: [&str; 6] = ["c0", "c1", "c2", "c3", "c4", "c5"];
const COLOURS: [&str; 6] = ["#1b5e8c", "#c2571a", "#2e7d4f", "#7b3f98", "#8a6d00", "#555555"];

/// A curve: its name, and its points.
pub type Curve = (String, Vec<(f64, f64)>);

/// Draws at most six curves from zero on, with a legend, as an SVG file.
///
/// # Panics
/// When there are more.
pub fn curves(x: &'static str, y: &'static str, curves: &[Curve]) -> String {
    assert!(curves.len() <= CLASSES.len(), "six curves have colours");
    let most = |of: fn(&(f64, f64)) -> f64| {
        let values = curves.iter().flat_map(|(_, points)| points.iter().map(of));
        values.fold(f64::MIN_POSITIVE, f64::max)
    };
    let axes = [(most(|point| point.0), x), (most(|point| point.1), y)];
    let [x, y] = axes.map(|(to, name)| Axis { from: 0.0, to, name });
    let named = || curves.iter().zip(CLASSES);
    let lines: Vec<Line> = named().map(|((_, points), class)| Line { points: points.clone(), class }).collect();
    let dots = named().flat_map(|((_, points), class)| points.iter().map(move |&(x, y)| Dot { x, y, class }));
    let drawn = plane(&x, &y, &dots.collect::<Vec<_>>(), &lines);
    let mut style = format!(
        "svg {{ background: #fff; --soft: #999; }} text {{ font: 11px sans-serif; }} .grid {{ stroke: #ddd; }} \
         .name {{ text-anchor: end; dominant-baseline: middle; }} .tick {{ text-anchor: middle; }} {STYLE}"
    );
    let mut legend = String::new();
    for (at, (((name, _), class), colour)) in named().zip(COLOURS).enumerate() {
        let _ =
            write!(style, " .line.{class} {{ stroke: {colour}; }} .dot.{class}, text.{class} {{ fill: {colour}; }}");
        let _ = write!(legend, "<text class='{class}' x='{}' y='9'>{}</text>", 56 + 84 * at, escape(name));
    }
    drawn.replacen("<svg ", "<svg xmlns='http://www.w3.org/2000/svg' ", 1).replacen(
        '>',
        &format!("><style>{style}</style>{legend}"),
        1,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_stands_alone_and_names_its_curves() {
        let picture = curves("workers", "seconds", &[("one < two".into(), vec![(1.0, 2.0), (2.0, 1.0)])]);
        assert!(picture.starts_with("<svg xmlns='http://www.w3.org/2000/svg' viewBox="), "{picture}");
        assert!(picture.contains("y='9'>one &lt; two</text>") && picture.contains("class='line c0'"), "{picture}");
        assert!(!picture.contains("NaN"), "{picture}");
    }
}
