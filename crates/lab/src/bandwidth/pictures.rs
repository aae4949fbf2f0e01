//! Pictures of the page: files of their own, each with its style, its heading and its legend.

use gristmill_report::chart::WIDTH;
use gristmill_report::plane::{Dot, Line};
use gristmill_report::text::escape;

/// The class of each colour, and its colour.
const COLOURS: [(&str, &str); 6] = [
    ("grey", "#7d868d"),
    ("green", "#2f7d5b"),
    ("orange", "#c2702a"),
    ("violet", "#8a5aa8"),
    ("blue", "#4b76c4"),
    ("pale", "#c9d6cf"),
];

/// An axis with round ticks.
pub struct Ticks {
    /// The value at its beginning.
    pub from: f64,
    /// The value at its end.
    pub to: f64,
    /// The distance of two ticks, which are at its multiples.
    pub step: f64,
    /// Its label: what it measures, and the unit.
    pub name: &'static str,
}

impl Ticks {
    /// Makes an axis that has room for all values and begins and ends at a tick, with at most ten of them.
    pub fn around(name: &'static str, values: impl Iterator<Item = f64>) -> Ticks {
        let (least, most) =
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(value), most.max(value)));
        let steps = (-2..).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)));
        let ends = |step: f64| ((least / step).floor(), (most / step).ceil());
        let fits = |step: &f64| ends(*step).1 - ends(*step).0 <= 9.0;
        let step = steps.take(24).find(fits).unwrap_or(1.0);
        Ticks { from: ends(step).0 * step, to: ends(step).1 * step, step, name }
    }

    /// Returns the values of the ticks.
    fn values(&self) -> impl Iterator<Item = f64> {
        let [first, last] = [(self.from / self.step - 1e-6).ceil(), (self.to / self.step + 1e-6).floor()];
        (first as i32..=last as i32).map(|at| f64::from(at) * self.step)
    }
}

/// Draws dots and lines whose classes are colours, below a heading and above a legend of names and colours. Zero has a
/// darker line.
pub fn picture(heading: &str, x: &Ticks, y: &Ticks, dots: &[Dot], lines: &[Line], legend: &[(&str, &str)]) -> String {
    const LEFT: f64 = 52.0;
    const RIGHT: f64 = WIDTH - 12.0;
    const TOP: f64 = 30.0;
    const BOTTOM: f64 = 216.0;
    const ROW: f64 = 18.0;
    let at_x = |value: f64| LEFT + (RIGHT - LEFT) * (value - x.from) / (x.to - x.from);
    let at_y = |value: f64| BOTTOM - (BOTTOM - TOP) * (value - y.from) / (y.to - y.from);
    let round = |value: f64| (value * 100.0).round() / 100.0;
    let height = BOTTOM + 48.0 + ROW * legend.len().div_ceil(2) as f64;
    let mut svg = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' font-family='sans-serif' font-size='12'>\
         <style>text{{fill:#1f2428;dominant-baseline:central}} .tick{{text-anchor:middle}} .grid{{stroke:#dcdad4}} \
         .zero{{stroke:#555}} .line{{fill:none;stroke-width:1.8}} .dashed{{stroke-dasharray:4 4;stroke-width:1}}"
    );
    svg.extend(
        COLOURS.map(|(class, colour)| format!(" .dot.{class}{{fill:{colour}}} .line.{class}{{stroke:{colour}}}")),
    );
    svg += &format!("</style><rect width='{WIDTH}' height='{height}' fill='#fff'/>");
    svg += &format!("<text x='{LEFT}' y='14' font-weight='bold'>{}</text>", escape(heading));
    for value in y.values() {
        let (place, class) = (at_y(value), if round(value) == 0.0 { "zero" } else { "grid" });
        svg += &format!("<path class='{class}' d='M{LEFT} {place:.1}H{RIGHT}'/>");
        svg += &format!("<text x='{}' y='{place:.1}' text-anchor='end'>{}</text>", LEFT - 6.0, round(value));
    }
    for value in x.values() {
        svg += &format!("<text class='tick' x='{:.1}' y='{}'>{}</text>", at_x(value), BOTTOM + 14.0, round(value));
    }
    let (centre, middle) = ((LEFT + RIGHT) / 2.0, (TOP + BOTTOM) / 2.0);
    svg += &format!("<text class='tick' x='{centre}' y='{}'>{}</text>", BOTTOM + 30.0, escape(x.name));
    svg += &format!("<text class='tick' transform='translate(10 {middle}) rotate(-90)'>{}</text>", escape(y.name));
    for Line { points, class } in lines {
        let places: Vec<String> = points.iter().map(|(x, y)| format!("{:.1} {:.1}", at_x(*x), at_y(*y))).collect();
        svg += &format!("<path class='line {class}' d='M{}'/>", places.join("L"));
    }
    for Dot { x, y, class } in dots {
        svg += &format!("<circle class='dot {class}' cx='{:.1}' cy='{:.1}' r='2'/>", at_x(*x), at_y(*y));
    }
    for (place, (name, class)) in (0_u32..).zip(legend) {
        let (left, y) = (LEFT + f64::from(place % 2) * 250.0, BOTTOM + 52.0 + f64::from(place / 2) * ROW);
        svg += &format!("<circle class='dot {class}' cx='{left}' cy='{y}' r='4'/>");
        svg += &format!("<text x='{}' y='{y}'>{}</text>", left + 12.0, escape(name));
    }
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_a_file_of_its_own_and_has_a_heading_a_zero_line_and_a_legend() {
        let axis = |name| Ticks::around(name, [-1.0, 4.0].into_iter());
        let line = Line { points: vec![(0.0, 1.0), (4.0, 2.0)], class: "green" };
        let svg = picture("Gain", &axis("execution"), &axis("gain, %"), &[], &[line], &[("a method", "green")]);
        assert!(svg.starts_with("<svg xmlns='http://www.w3.org/2000/svg' ") && svg.ends_with("</svg>\n"));
        assert_eq!((svg.matches("<svg").count(), svg.matches("class='zero'").count()), (1, 1));
        assert!(svg.contains("class='line green'") && svg.contains(">a method</text>") && svg.contains(">Gain</text>"));
        assert!(!svg.contains("var("));
    }

    #[test]
    fn ticks_are_round_have_zero_among_them_and_room_for_all_values() {
        let axis = |values: [f64; 2]| Ticks::around("", values.into_iter()).values().collect::<Vec<f64>>();
        assert_eq!(axis([-8.3, 9.1]), [-10.0, -5.0, 0.0, 5.0, 10.0]);
        assert_eq!(axis([0.0, 40.0]), [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0]);
        assert_eq!(axis([-1.3, 5.2]), [-2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let groups = Ticks { from: 0.4, to: 3.6, step: 1.0, name: "" };
        assert_eq!(groups.values().collect::<Vec<f64>>(), [1.0, 2.0, 3.0]);
    }
}
