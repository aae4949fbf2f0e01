//! The curve as SVG: times with the laws that fit them, and the efficiency.

use crate::diagnose::{Curve, Fit, FittedLaw, Point};

use super::text::{ideal, lowest};
use crate::section::shown;
use gristmill_report::chart::{Anchor, Label, Labels, WIDTH, begin};

const TOP: f64 = 20.0;
const START: f64 = 70.0;
const FIRST: f64 = START + 26.0;
const LAST: f64 = WIDTH - 30.0;
/// The height below the axis, for its numbers and its name.
const BELOW: f64 = 46.0;

/// The axes of a chart. Workers double from one place to the next.
struct Axes {
    height: f64,
    workers: (f64, f64),
    values: (f64, f64),
    /// True if the values double as well.
    is_log: bool,
}

impl Axes {
    fn new(height: f64, curve: &Curve, values: (f64, f64), is_log: bool) -> Axes {
        let first = curve.base().workers as f64;
        let last = curve.points[curve.points.len() - 1].workers as f64;
        Axes { height, workers: (first, last.max(first * 2.0)), values, is_log }
    }

    fn x(&self, workers: f64) -> f64 {
        let (first, last) = self.workers;
        FIRST + (LAST - FIRST) * (workers / first).ln() / (last / first).ln()
    }

    fn bottom(&self) -> f64 {
        self.height - BELOW
    }

    fn y(&self, value: f64) -> f64 {
        let (least, most) = self.values;
        let share =
            if self.is_log { (value / least).ln() / (most / least).ln() } else { (value - least) / (most - least) };
        self.bottom() - (self.bottom() - TOP) * share.clamp(0.0, 1.0)
    }

    fn path(&self, places: impl IntoIterator<Item = (f64, f64)>) -> String {
        let places = places.into_iter().map(|(workers, value)| format!("{:.1} {:.1}", self.x(workers), self.y(value)));
        format!("M{}", places.collect::<Vec<_>>().join("L"))
    }

    /// Draws lines at these values, and the numbers of workers.
    fn draw(&self, svg: &mut String, labels: &mut Labels, curve: &Curve, marks: &[(f64, String)]) {
        for (value, label) in marks {
            let y = self.y(*value);
            svg.push_str(&format!("<path class='grid' d='M{START} {y:.1}H{WIDTH}'/>"));
            labels.add([Label::new(Anchor::End, START - 8.0, y, label.as_str())]);
        }
        for Point { workers, .. } in &curve.points {
            labels.add([Label::new(
                Anchor::Middle,
                self.x(*workers as f64),
                self.bottom() + 15.0,
                workers.to_string(),
            )]);
        }
        labels.add([Label::new(Anchor::Middle, f64::midpoint(FIRST, LAST), self.height - 10.0, "workers")]);
        let is_between = |processors: &f64| *processors > self.workers.0 && *processors < self.workers.1;
        if let Some(processors) = curve.processors.map(|processors| processors as f64).filter(is_between) {
            let x = self.x(processors);
            svg.push_str(&format!("<path class='limit' d='M{x:.1} {TOP}V{:.1}'/>", self.bottom()));
        }
    }
}

/// Returns the laws that hold, the best first.
pub fn laws(curve: &Curve) -> Vec<&Fit> {
    let holds = |fit: &&Fit| match &curve.verdict {
        FittedLaw::Law(law) => fit.fitted.law == *law,
        FittedLaw::Several(laws) => laws.contains(&fit.fitted.law),
        _ => false,
    };
    curve.fits.iter().filter(holds).collect()
}

/// Returns numbers of workers between the least and the most that laws were fitted to.
fn fitted(curve: &Curve) -> Vec<f64> {
    const STEPS: u32 = 64;
    let points = curve.points.iter().map(|point| point.workers).filter(|workers| !curve.is_crowded(*workers));
    let (first, last) = (curve.base().workers as f64, points.max().unwrap_or(1) as f64);
    (0..=STEPS).map(|step| first * (last / first).powf(f64::from(step) / f64::from(STEPS))).collect()
}

/// Returns 1, 2, 5, 10 and so on between two values.
fn marks(least: f64, most: f64) -> Vec<f64> {
    let digits = least.log10().floor() as i32..=most.log10().ceil() as i32;
    let all = digits.flat_map(|digit| [1.0, 2.0, 5.0].map(|first| first * 10_f64.powi(digit)));
    all.filter(|value| (least..=most).contains(value)).collect()
}

/// Draws times over workers, both doubling from line to line, so that perfect scaling is straight.
pub fn times(curve: &Curve) -> String {
    let ranges: Vec<(f64, f64)> = curve.points.iter().map(Point::range).collect();
    let least = lowest(curve, ranges.iter().map(|range| range.0).fold(f64::INFINITY, f64::min)) / 1.3;
    // Keeps small differences from looking large.
    let most = (ranges.iter().map(|range| range.1).fold(0.0, f64::max) * 1.2).max(least * 3.0);
    let axes = Axes::new(330.0, curve, (least, most), true);
    let (mut svg, mut labels) = (begin(axes.height, "time over workers"), Labels::default());
    let mut put = |text: String| svg.push_str(&text);
    if let Some((from, to)) = curve.best.interval.filter(|(from, to)| from < to) {
        let (left, right) = (axes.x(from as f64), axes.x(to as f64));
        put(format!(
            "<rect class='best' x='{left:.1}' y='{TOP}' width='{:.1}' height='{:.1}'/>",
            right - left,
            axes.bottom() - TOP
        ));
    }
    let grid = fitted(curve);
    for (at, fit) in laws(curve).into_iter().enumerate() {
        if at == 0 {
            let above = grid.iter().map(|workers| (*workers, fit.seconds(*workers).to));
            let below = grid.iter().rev().map(|workers| (*workers, fit.seconds(*workers).from));
            put(format!("<path class='band' d='{}Z'/>", axes.path(above.chain(below))));
        }
        let line = axes.path(grid.iter().map(|workers| (*workers, fit.fitted.seconds(*workers))));
        put(format!("<path class='law law{}' d='{line}'/>", at.min(2)));
    }
    let without_loss = curve.points.iter().map(|point| (point.workers as f64, ideal(curve, point.workers)));
    put(format!("<path class='ideal' d='{}'/>", axes.path(without_loss.take_while(|(_, seconds)| *seconds >= least))));
    for point in &curve.points {
        let (x, middle) = (axes.x(point.workers as f64), axes.y(point.median()));
        let (lower, upper) = (axes.y(point.range().0), axes.y(point.range().1));
        put(format!("<path class='runs' d='M{x:.1} {upper:.1}V{lower:.1}'/>"));
        put(format!("<circle class='point' cx='{x:.1}' cy='{middle:.1}' r='4'/>"));
        let places = [upper - 12.0, lower + 12.0];
        labels.add(places.map(|y| Label::new(Anchor::Middle, x, y, shown(point.median()))));
    }
    let marks: Vec<(f64, String)> = marks(least, most).into_iter().map(|value| (value, shown(value))).collect();
    axes.draw(&mut svg, &mut labels, curve, &marks);
    svg + &labels.svg() + "</svg>"
}

/// Draws the efficiency over workers.
pub fn efficiency(curve: &Curve) -> String {
    let most = curve.points.iter().map(|point| curve.efficiency(point)).fold(1.0, f64::max) * 1.12;
    let axes = Axes::new(250.0, curve, (0.0, most), false);
    let (mut svg, mut labels) = (begin(axes.height, "efficiency over workers"), Labels::default());
    let base = curve.base();
    let grid = fitted(curve);
    for (at, fit) in laws(curve).into_iter().enumerate() {
        let place = |workers: &f64| {
            let seconds = fit.fitted.seconds(*workers);
            (*workers, base.median() * base.workers as f64 / seconds / workers)
        };
        svg.push_str(&format!("<path class='law law{}' d='{}'/>", at.min(2), axes.path(grid.iter().map(place))));
    }
    for point in &curve.points {
        let value = curve.efficiency(point);
        let (x, y) = (axes.x(point.workers as f64), axes.y(value));
        svg.push_str(&format!("<circle class='point' cx='{x:.1}' cy='{y:.1}' r='4'/>"));
        let label = format!("{:.0} %", value * 100.0);
        labels.add([y - 13.0, y + 13.0].map(|y| Label::new(Anchor::Middle, x, y, label.as_str())));
    }
    let marks = [0.0, 0.5, 1.0].map(|value| (value, format!("{:.0} %", value * 100.0)));
    axes.draw(&mut svg, &mut labels, curve, &marks);
    svg + &labels.svg() + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::Times;

    fn curve(processors: Option<u64>) -> Curve {
        let mut times = Times::default();
        for (workers, seconds) in [(1, 40.6), (2, 21.2), (4, 11.0), (8, 6.6), (16, 5.2), (32, 5.7), (64, 6.7)] {
            times.add(workers, seconds).expect("a time");
        }
        Curve::with(&times, processors).expect("there are times")
    }

    #[test]
    fn the_law_of_the_paper_is_drawn_with_its_band() {
        let drawn = times(&curve(None));
        assert_eq!((drawn.matches("class='point'").count(), drawn.matches("class='band'").count()), (7, 1), "{drawn}");
        assert_eq!(
            (drawn.matches("class='law law0'").count(), drawn.matches("class='limit'").count()),
            (1, 0),
            "{drawn}"
        );
        assert!(drawn.contains(">5.20 s<") && drawn.contains("class='best'"), "{drawn}");
        assert_eq!(efficiency(&curve(None)).matches(" %</text>").count(), 7 + 3);
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"));
    }

    #[test]
    fn laws_are_drawn_only_if_they_hold() {
        let few = curve(Some(8));
        assert!(laws(&few).is_empty());
        let drawn = times(&few);
        assert!(!drawn.contains("class='law") && drawn.contains("class='limit'"), "{drawn}");
        let mut one = Times::default();
        one.add(4, 1.0).expect("a time");
        let drawn = times(&Curve::of(&one).expect("a time"));
        assert!(drawn.contains("class='point'") && !drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
    }

    #[test]
    fn marks_are_round_numbers() {
        assert_eq!(marks(0.4, 60.0), [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0]);
    }
}
