//! Curves over numbers of workers, all in one picture.

use std::fmt::Write;

/// A curve: its name, and a value for each number of workers, if there is one.
pub struct Curve {
    pub name: String,
    pub values: Vec<Option<f64>>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 56.0;
/// Names of curves are to the right of it.
const RIGHT: f64 = 430.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = HEIGHT - 44.0;
/// Colours that readers who cannot tell red from green tell apart.
const COLOURS: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000"];

/// Draws curves over numbers of workers that double, with an axis from 0. It is a file of its own, so it has its
/// styles.
pub fn curves(y: &str, workers: &[usize], curves: &[Curve]) -> String {
    let most = curves.iter().flat_map(|curve| curve.values.iter().flatten()).fold(f64::MIN_POSITIVE, |a, b| a.max(*b));
    let step = (RIGHT - LEFT) / (workers.len().max(2) - 1) as f64;
    let at_x = |at: usize| LEFT + step * at as f64;
    let at_y = |value: f64| BOTTOM - (BOTTOM - TOP) * value / most;
    let mut svg = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' font-family='sans-serif' font-size='12'>\
         <rect width='{WIDTH}' height='{HEIGHT}' fill='white'/>"
    );
    let mut put = |text: std::fmt::Arguments<'_>| svg.write_fmt(text).expect("a string takes everything");
    for mark in [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| share * most) {
        let y = at_y(mark);
        put(format_args!("<path d='M{LEFT} {y:.1}H{RIGHT}' stroke='#ddd'/>"));
        put(format_args!("<text x='{}' y='{:.1}' text-anchor='end'>{}</text>", LEFT - 6.0, y + 4.0, short(mark)));
    }
    for (at, count) in workers.iter().enumerate() {
        put(format_args!("<text x='{:.1}' y='{}' text-anchor='middle'>{count}</text>", at_x(at), BOTTOM + 18.0));
    }
    let middle = (LEFT + RIGHT) / 2.0;
    put(format_args!("<text x='{middle}' y='{}' text-anchor='middle'>workers</text>", HEIGHT - 8.0));
    put(format_args!("<text transform='translate(14 {}) rotate(-90)' text-anchor='middle'>{y}</text>", HEIGHT / 2.0));
    for (number, Curve { name, values }) in curves.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let known: Vec<(f64, f64)> =
            values.iter().enumerate().filter_map(|(at, value)| Some((at_x(at), at_y((*value)?)))).collect();
        let places: Vec<String> = known.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        if !places.is_empty() {
            put(format_args!("<path d='M{}' fill='none' stroke='{colour}' stroke-width='1.8'/>", places.join("L")));
        }
        for (x, y) in known {
            put(format_args!("<circle cx='{x:.1}' cy='{y:.1}' r='2.6' fill='{colour}'/>"));
        }
        let row = TOP + 8.0 + 18.0 * number as f64;
        put(format_args!("<path d='M{} {row}h18' stroke='{colour}' stroke-width='3'/>", RIGHT + 14.0));
        put(format_args!("<text x='{}' y='{}'>{name}</text>", RIGHT + 38.0, row + 4.0));
    }
    svg + "</svg>\n"
}

/// Returns the values of curves as CSV, a line for each curve and number of workers.
pub fn rows(value: &str, workers: &[usize], curves: &[Curve]) -> String {
    let mut text = format!("curve,workers,{value}\n");
    for Curve { name, values } in curves {
        for (workers, value) in workers.iter().zip(values) {
            let value = value.map_or(String::new(), |value| format!("{value:.6}"));
            writeln!(text, "{name},{workers},{value}").expect("a string takes everything");
        }
    }
    text
}

/// Formats a number with three digits.
pub fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        ..0.001 => format!("{value:.2e}"),
        ..0.1 => format!("{value:.4}"),
        ..10.0 => format!("{value:.2}"),
        ..1000.0 => format!("{value:.0}"),
        _ => indicatif::HumanCount(value as u64).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_without_some_values_goes_through_the_others() {
        let lines = [
            Curve { name: "a".into(), values: vec![Some(1.0), None, Some(4.0)] },
            Curve { name: "b".into(), values: vec![None, None, None] },
        ];
        let svg = curves("times as fast", &[1, 2, 4], &lines);
        assert_eq!((svg.matches("<circle").count(), svg.matches("fill='none'").count()), (2, 1));
        assert!(svg.contains(&format!("M{LEFT:.1} {:.1}L{RIGHT:.1} {TOP:.1}", BOTTOM - (BOTTOM - TOP) / 4.0)));
        let rows = rows("speed_up", &[1, 2, 4], &lines);
        assert!(rows.starts_with("curve,workers,speed_up\na,1,1.000000\na,2,\na,4,4.000000\nb,1,\n"), "{rows}");
    }

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!(
            [0.0, 0.00025, 0.0312, 1.5, 41.7, 17_941_890.0].map(short),
            ["0", "2.50e-4", "0.0312", "1.50", "42", "17,941,890"]
        );
    }
}
