//! The report on the terminal: a table, the U, and its meaning.

use crate::diagnose::{Curve, Point, Trend};

use crate::measure::evidence::Evidence;
use crate::section::{About, shown};

/// Formats the whole report. Failures come first, and the conclusion last, where a terminal shows it.
pub fn report(about: &About, curve: &Curve, evidence: Option<&Evidence>, mark: impl Fn(u64) -> String) -> String {
    let line = |sentence: &str| format!("{sentence}\n");
    let mut failures: String = about.conclusion.failures.iter().map(|failure| line(&failure.sentence)).collect();
    if !failures.is_empty() {
        failures.push('\n');
    }
    let notes: String = about.notes.iter().map(|note| line(note)).collect();
    let account = evidence.map_or(String::new(), |evidence| evidence.table() + "\n");
    let (table, drawn) = (table(curve, about.time, mark), drawn(curve));
    let (varied, phases, conclusion) = (&about.varied.text, &about.phases.text, about.conclusion.sentence());
    format!("{failures}{varied}{table}\n{drawn}\n{phases}{account}{notes}{conclusion}")
}

/// Formats a row for each number of workers. `time` is the name of the times.
pub fn table(curve: &Curve, time: &str, notes: impl Fn(u64) -> String) -> String {
    let mut text =
        format!("{:>8}  {:>10}  {:>21}  {:>8}  {:>10}\n", "workers", time, "from - to", "speed-up", "efficiency");
    for point in &curve.points {
        let mark = if curve.is_crowded(point.workers) { "*" } else { " " };
        let range = range(point, "-");
        let line = format!(
            "{:>7}{mark}  {:>10}  {range:>21}  {:>8.2}  {:>8.0} %  {}",
            point.workers,
            shown(point.median()),
            curve.speed_up(point),
            curve.efficiency(point) * 100.0,
            notes(point.workers)
        );
        text += line.trim_end();
        text.push('\n');
    }
    if let Some(processors) = crowded(curve) {
        text.push_str(&format!("* more workers than the {processors} processors, so they take turns\n"));
    }
    text
}

/// Formats the least and the most time of a number of workers.
pub fn range(point: &Point, dash: &str) -> String {
    let (least, most) = point.range();
    match point.seconds.len() {
        1 => "one run".to_owned(),
        _ => format!("{} {dash} {}", shown(least), shown(most)),
    }
}

/// Returns the number of processors, if some number of workers exceeds it.
pub fn crowded(curve: &Curve) -> Option<u64> {
    curve.processors.filter(|_| curve.points.iter().any(|point| curve.is_crowded(point.workers)))
}

/// Returns the time without loss: that of the first point, shared by as many workers as there are processors.
pub fn ideal(curve: &Curve, workers: u64) -> f64 {
    let base = curve.base();
    let at_once = curve.processors.map_or(workers, |processors| workers.min(processors.max(base.workers)));
    base.median() * base.workers as f64 / at_once as f64
}

/// Returns the least time to show below `least`, the least one that was measured: the line without loss is shown as
/// far as it leaves room for the curve.
pub fn lowest(curve: &Curve, least: f64) -> f64 {
    const ROOM: f64 = 4.0;
    let without_loss = curve.points.iter().map(|point| ideal(curve, point.workers)).fold(least, f64::min);
    without_loss.max(least / ROOM)
}

const ROWS: usize = 10;
const COLUMN: usize = 7;

/// Draws the time over the workers with characters, both in logarithms, so that perfect scaling is a straight line.
pub fn drawn(curve: &Curve) -> String {
    if curve.points.len() < 2 {
        return String::new();
    }
    let medians = || curve.points.iter().map(Point::median);
    let least = lowest(curve, medians().fold(f64::INFINITY, f64::min)) / 1.2;
    let most = medians().fold(0.0, f64::max);
    // Keeps small differences from looking large.
    let most = most.max(least * 3.0);
    let row = |seconds: f64| {
        let share = (most / seconds).ln() / (most / least).ln();
        (share * (ROWS - 1) as f64).round().clamp(0.0, (ROWS - 1) as f64) as usize
    };
    let mut grid = vec![vec![' '; curve.points.len() * COLUMN]; ROWS];
    for (at, point) in curve.points.iter().enumerate() {
        let column = at * COLUMN + COLUMN / 2;
        let ideal = ideal(curve, point.workers);
        if ideal >= least {
            grid[row(ideal)][column] = '.';
        }
        grid[row(point.median())][column] = 'o';
    }
    let mut text = String::new();
    for (at, line) in grid.iter().enumerate() {
        let label = match at {
            0 => shown(most),
            _ if at == ROWS - 1 => shown(least),
            _ => String::new(),
        };
        let line: String = line.iter().collect();
        text.push_str(&format!("{label:>10} |{}\n", line.trim_end()));
    }
    let axis = "-".repeat(curve.points.len() * COLUMN);
    let numbers: String = curve.points.iter().map(|point| format!("{:^COLUMN$}", point.workers)).collect();
    text.push_str(&format!("{:>10} +{axis}\n{:>10}  {}\n", "", "workers", numbers.trim_end()));
    text.push_str(&format!("{:>10}  o measured   . without loss\n", ""));
    text
}

/// Formats the regions: `gain 1 to 16, saturation 16 to 32`.
pub fn regions(curve: &Curve) -> String {
    let named = |trend| match trend {
        Trend::Gain => "gain",
        Trend::Saturation => "saturation",
        Trend::Loss => "loss",
        Trend::Unclear => "unclear, because the times vary too much,",
    };
    let all: Vec<String> = curve
        .regions
        .iter()
        .map(|region| format!("{} from {} to {}", named(region.trend), region.from, region.to))
        .collect();
    all.join(", ")
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
    fn the_curve_of_the_paper_is_drawn_as_a_u() {
        let drawn = drawn(&curve(None));
        let rows: Vec<usize> = (0..7)
            .map(|at| {
                let column = 12 + at * COLUMN + COLUMN / 2;
                drawn.lines().position(|line| line.chars().nth(column) == Some('o')).expect("a point in each column")
            })
            .collect();
        assert!(rows.is_sorted_by(|a, b| a <= b) || rows[4] >= rows[6], "{drawn}");
        assert!(rows[0] == 0 && rows[4] > rows[0] && rows[6] <= rows[4], "{drawn}");
        assert!(drawn.lines().all(|line| line.chars().count() <= 80), "{drawn}");
    }

    #[test]
    fn rows_beyond_the_processors_are_marked() {
        let text = table(&curve(Some(16)), "time", |_| String::new());
        assert!(text.contains("     16   ") && text.contains("     32*  "), "{text}");
        assert!(text.contains("* more workers than the 16 processors"), "{text}");
        assert!(!table(&curve(None), "time", |_| String::new()).contains('*'));
        let regions = regions(&curve(None));
        assert!(regions.starts_with("gain from 1 to 16, ") && regions.ends_with("loss from 32 to 64"), "{regions}");
    }
}
