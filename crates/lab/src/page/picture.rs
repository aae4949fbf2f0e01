//! Curves as a picture of its own, beside a page.

use std::fmt::Write;

use gristmill_report::text::escape;

/// Colours that readers who cannot tell red from green tell apart.
const COLOURS: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b07a00", "#56b4e9", "#7f7f7f", "#000000"];
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 56.0;
/// Names of curves are to the right of it.
const RIGHT: f64 = 430.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = HEIGHT - 44.0;

/// A curve: its name, and its points.
pub type Curve = (String, Vec<(f64, f64)>);

/// The axes of a picture: values from 0 up over numbers that multiply, such as workers.
#[derive(Clone, Copy)]
pub struct Picture<'a> {
    /// The numbers: what they count.
    pub x: &'a str,
    /// The values: what they measure, and the unit.
    pub y: &'a str,
    /// A value that is marked, such as 1 for quotients.
    pub level: Option<f64>,
    /// The processors of this machine, if they bound what the numbers can do.
    pub processors: Option<usize>,
}

impl Picture<'_> {
    /// Draws at most eight curves, with a legend, as an SVG file. The numbers are on a logarithmic axis.
    ///
    /// # Panics
    /// When there are more, or a number is not above 0.
    pub fn draw(&self, curves: &[Curve]) -> String {
        assert!(curves.len() <= COLOURS.len(), "eight curves have colours");
        let points = || curves.iter().flat_map(|(_, points)| points);
        let mut numbers: Vec<f64> = points().map(|point| point.0).collect();
        numbers.sort_by(f64::total_cmp);
        numbers.dedup();
        assert!(numbers.iter().all(|number| *number > 0.0), "the axis is logarithmic");
        let [first, last] = [numbers.first(), numbers.last()].map(|number| number.copied().unwrap_or(1.0));
        let most = points().map(|point| point.1).chain(self.level).fold(f64::MIN_POSITIVE, f64::max);
        let step = round_step(most);
        let top = (most / step).ceil() * step;
        let at_x = |x: f64| LEFT + (RIGHT - LEFT) * (x / first).ln() / (last / first).ln().max(f64::MIN_POSITIVE);
        let at_y = |y: f64| BOTTOM - (BOTTOM - TOP) * y / top;
        let mut svg = format!(
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' font-family='sans-serif' font-size='12'>\
             <rect width='{WIDTH}' height='{HEIGHT}' fill='white'/>"
        );
        let mut put = |text: std::fmt::Arguments<'_>| svg.write_fmt(text).expect("a string takes everything");
        for mark in (0..=(top / step).round() as usize).map(|mark| mark as f64 * step) {
            let y = at_y(mark);
            put(format_args!("<path d='M{LEFT} {y:.1}H{RIGHT}' stroke='#ddd'/>"));
            put(format_args!("<text x='{}' y='{:.1}' text-anchor='end'>{}</text>", LEFT - 6.0, y + 4.0, plain(mark)));
        }
        if let Some(level) = self.level {
            put(format_args!("<path d='M{LEFT} {:.1}H{RIGHT}' stroke='#555'/>", at_y(level)));
        }
        if let Some(here) = self.processors.map(|here| here as f64).filter(|here| (first..=last).contains(here)) {
            let x = at_x(here);
            put(format_args!("<path d='M{x:.1} {TOP}V{BOTTOM}' stroke='#555' stroke-dasharray='3 3'/>"));
            put(format_args!("<text x='{:.1}' y='{}' font-size='10'>{here} processors</text>", x + 3.0, TOP - 4.0));
        }
        for number in &numbers {
            let (x, y) = (at_x(*number), BOTTOM + 18.0);
            put(format_args!("<text x='{x:.1}' y='{y}' text-anchor='middle'>{}</text>", plain(*number)));
        }
        let [x, y] = [self.x, self.y].map(escape);
        let (centre, middle) = ((LEFT + RIGHT) / 2.0, HEIGHT / 2.0);
        put(format_args!("<text x='{centre}' y='{}' text-anchor='middle'>{x}</text>", HEIGHT - 8.0));
        put(format_args!("<text transform='translate(14 {middle}) rotate(-90)' text-anchor='middle'>{y}</text>"));
        for (row, ((name, points), colour)) in curves.iter().zip(COLOURS).enumerate() {
            let places: Vec<String> = points.iter().map(|(x, y)| format!("{:.1} {:.1}", at_x(*x), at_y(*y))).collect();
            if !places.is_empty() {
                put(format_args!("<path d='M{}' fill='none' stroke='{colour}' stroke-width='1.8'/>", places.join("L")));
            }
            for (x, y) in points {
                put(format_args!("<circle cx='{:.1}' cy='{:.1}' r='2.6' fill='{colour}'/>", at_x(*x), at_y(*y)));
            }
            let row = TOP + 8.0 + 18.0 * row as f64;
            put(format_args!("<path d='M{} {row}h18' stroke='{colour}' stroke-width='3'/>", RIGHT + 14.0));
            put(format_args!("<text x='{}' y='{}'>{}</text>", RIGHT + 38.0, row + 4.0, escape(name)));
        }
        svg + "</svg>\n"
    }
}

/// Returns a step of 1, 2 or 5 times a power of ten, of which three to seven reach `most`.
fn round_step(most: f64) -> f64 {
    let power = 10_f64.powf((most / 3.0).log10().floor());
    [5.0, 2.0, 1.0].map(|digit| digit * power).into_iter().find(|step| *step <= most / 3.0).unwrap_or(power)
}

/// Formats a mark of an axis without needless zeros.
fn plain(mark: f64) -> String {
    let text = format!("{mark:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PICTURE: Picture<'_> = Picture { x: "workers", y: "seconds", level: Some(1.0), processors: Some(2) };

    #[test]
    fn a_picture_stands_alone_and_names_its_curves() {
        let picture = PICTURE.draw(&[("one < two".into(), vec![(1.0, 2.0), (2.0, 1.0)]), ("none".into(), vec![])]);
        assert!(picture.starts_with("<svg xmlns='http://www.w3.org/2000/svg' viewBox="), "{picture}");
        assert!(picture.contains(">one &lt; two</text>") && picture.contains(">2 processors</text>"), "{picture}");
        assert_eq!((picture.matches("<circle").count(), picture.matches("fill='none'").count()), (2, 1));
        assert!(!picture.contains("NaN"), "{picture}");
        assert!(!PICTURE.draw(&[]).contains("NaN"));
    }

    #[test]
    fn numbers_that_double_are_as_far_apart() {
        let picture = PICTURE.draw(&[("a".into(), vec![(1.0, 0.0), (2.0, 1.0), (4.0, 2.0)])]);
        let places: Vec<f64> =
            picture.split("cx='").skip(1).map(|rest| rest.split('\'').next().unwrap().parse().unwrap()).collect();
        assert_eq!(places, [LEFT, (LEFT + RIGHT) / 2.0, RIGHT]);
    }

    #[test]
    fn marks_are_round_and_reach_the_most() {
        for (most, step) in [(1.0, 0.2), (2.0, 0.5), (7.8, 2.0), (103.0, 20.0), (0.14, 0.02), (31.0, 10.0), (0.0, 0.0)]
        {
            let found = if most > 0.0 { round_step(most) } else { 0.0 };
            assert!((found - step).abs() < 1e-12, "{most}: {found}");
        }
        assert_eq!([0.0, 0.02, 2.5, 100.0].map(plain), ["0", "0.02", "2.5", "100"]);
    }
}
