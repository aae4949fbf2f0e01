//! Curves over numbers of workers, as rows.

use std::fmt::Write;

/// A curve: its name, and a value for each number of workers, if there is one.
pub struct Curve {
    pub name: String,
    pub values: Vec<Option<f64>>,
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
    fn a_curve_is_a_row_for_each_number_of_workers() {
        let lines = [
            Curve { name: "a".into(), values: vec![Some(1.0), None, Some(4.0)] },
            Curve { name: "b".into(), values: vec![None, None, None] },
        ];
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
