//! Pictures of the page: files of their own, each with its style and its legend.

use gristmill_report::chart::WIDTH;
use gristmill_report::plane::{Axis, Dot, Line, plane};

/// The class of each colour, and its colour.
const COLOURS: [(&str, &str); 6] = [
    ("grey", "#7d868d"),
    ("green", "#2f7d5b"),
    ("orange", "#c2702a"),
    ("violet", "#8a5aa8"),
    ("blue", "#4b76c4"),
    ("pale", "#c9d6cf"),
];

/// Draws dots and lines whose classes are colours, above a legend of names and colours.
pub fn picture(x: &Axis, y: &Axis, dots: &[Dot], lines: &[Line], legend: &[(&str, &str)]) -> String {
    const HEIGHT: f64 = 240.0;
    const ROW: f64 = 18.0;
    let drawn = plane(x, y, dots, lines);
    let inner = drawn.split_once('>').map_or("", |(_, rest)| rest).trim_end_matches("</svg>");
    let colours: String = COLOURS
        .iter()
        .map(|(class, colour)| format!(".dot.{class}{{fill:{colour}}} .line.{class}{{stroke:{colour}}} "))
        .collect();
    let keys: String = (0_u32..)
        .zip(legend)
        .map(|(place, (name, class))| {
            let (left, y) = (52.0 + f64::from(place % 2) * 250.0, HEIGHT + 10.0 + f64::from(place / 2) * ROW);
            format!(
                "<circle class='dot {class}' cx='{left}' cy='{y}' r='4'/><text x='{}' y='{y}'>{name}</text>",
                left + 12.0
            )
        })
        .collect();
    let height = HEIGHT + ROW * legend.len().div_ceil(2) as f64 + 6.0;
    format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' font-family='sans-serif' font-size='12'>\
         <style>text{{fill:#1f2428;dominant-baseline:central}} .name{{text-anchor:end}} .tick{{text-anchor:middle}} \
         .grid{{stroke:#dcdad4}} .line{{fill:none;stroke-width:1.8}} .line.pale{{stroke-width:1}} {colours}</style>\
         <rect width='{WIDTH}' height='{height}' fill='#fff'/>{inner}{keys}</svg>\n"
    )
}

/// Returns an axis of percents that has room for all values, and begins and ends at multiples of `step`.
pub fn percents(name: &'static str, values: impl Iterator<Item = f64>, step: f64) -> Axis {
    let (least, most) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(value), most.max(value)));
    Axis { from: (least / step).floor() * step, to: (most / step).ceil() * step, name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_a_file_of_its_own_and_has_a_legend() {
        let axis = |name| Axis { from: 0.0, to: 4.0, name };
        let line = Line { points: vec![(0.0, 1.0), (4.0, 2.0)], class: "green" };
        let svg = picture(&axis("execution"), &axis("gain, %"), &[], &[line], &[("a method", "green")]);
        assert!(svg.starts_with("<svg xmlns='http://www.w3.org/2000/svg' ") && svg.ends_with("</svg>\n"));
        assert_eq!((svg.matches("<svg").count(), svg.matches("</svg>").count()), (1, 1));
        assert!(svg.contains("class='line green'") && svg.contains(">a method</text>") && !svg.contains("var("));
    }

    #[test]
    fn an_axis_has_room_for_all_values() {
        let axis = percents("gain, %", [-1.3, 5.2].into_iter(), 2.0);
        assert_eq!((axis.from, axis.to), (-2.0, 6.0));
    }
}
