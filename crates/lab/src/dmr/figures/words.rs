//! Tables in Markdown, curves, and numbers in words.

use gristmill_os::machine::processors;
use gristmill_report::tally::Tally;

use crate::dmr::curves::{Curve, rows, short};
use crate::dmr::experiments::WORKERS;
use crate::page::Answer;
use crate::page::picture::Picture;

/// Returns a table in Markdown.
pub fn table(head: &[&str], body: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let rule = format!("|{}\n", "---|".repeat(head.len()));
    let body: String = body.into_iter().map(|cells| line(&cells)).collect();
    format!("{}{rule}{body}", line(&head))
}

/// Returns a table with a column for each number of workers, and a row for each name with its cells.
pub fn by_workers(what: &str, body: impl IntoIterator<Item = (String, Vec<String>)>) -> String {
    let numbers = WORKERS.map(|workers| workers.to_string());
    let head: Vec<&str> = std::iter::once(what).chain(numbers.iter().map(String::as_str)).collect();
    table(&head, body.into_iter().map(|(name, cells)| std::iter::once(name).chain(cells).collect()))
}

/// Formats the quotient of two medians, and in brackets the least and the greatest quotient of two runs.
pub fn quotient(above: Option<Tally>, below: Option<Tally>) -> String {
    let (Some(above), Some(below)) = (above, below) else { return "-".into() };
    let at = |above: f64, below: f64| short(above / below.max(f64::MIN_POSITIVE));
    format!("{} ({} to {})", at(above.median, below.median), at(above.least, below.most), at(above.most, below.least))
}

/// Formats a median, and in brackets the least and the greatest value, each divided by `unit`.
pub fn median(tally: Option<Tally>, unit: f64) -> String {
    let Some(tally) = tally else { return "-".into() };
    let [middle, low, high] = [tally.median, tally.least, tally.most].map(|value| short(value / unit));
    if low == high { middle } else { format!("{middle} ({low} to {high})") }
}

/// Returns the quotient of two medians as a number.
pub fn ratio(above: Option<Tally>, below: Option<Tally>) -> Option<f64> {
    Some(above?.median / below?.median.max(f64::MIN_POSITIVE))
}

/// Adds curves to an answer, as a picture and as rows.
pub fn drawn(answer: Answer, name: &str, y: &str, lines: &[Curve]) -> Answer {
    with_picture(answer, name, Picture { x: "workers", y, level: None, processors: Some(processors().usable) }, lines)
}

/// As [`drawn`], for quotients: 1 is marked.
pub fn drawn_quotients(answer: Answer, name: &str, y: &str, lines: &[Curve]) -> Answer {
    let picture = Picture { x: "workers", y, level: Some(1.0), processors: Some(processors().usable) };
    with_picture(answer, name, picture, lines)
}

fn with_picture(answer: Answer, name: &str, picture: Picture<'_>, lines: &[Curve]) -> Answer {
    let points = |Curve { name, values }: &Curve| {
        let known = WORKERS.iter().zip(values).filter_map(|(workers, value)| Some((*workers as f64, (*value)?)));
        (name.clone(), known.collect())
    };
    let value = picture.y.replace([',', '÷'], "").split_whitespace().collect::<Vec<_>>().join("_");
    answer
        .with(format!("{name}.svg"), picture.draw(&lines.iter().map(points).collect::<Vec<_>>()))
        .with(format!("{name}.csv"), rows(&value, &WORKERS, lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_rule_below_its_head() {
        assert_eq!(table(&["a", "b"], [vec!["1".into(), "2".into()]]), "| a | b |\n|---|---|\n| 1 | 2 |\n");
        let rows = by_workers("n", [("x".to_owned(), vec!["0".to_owned(); 6])]);
        assert!(rows.starts_with("| n | 1 | 2 | 4 | 8 | 16 | 32 |\n|---|---|"), "{rows}");
    }

    #[test]
    fn a_quotient_of_spreads_is_between_its_bounds() {
        let [above, below] = [[4.0, 4.0, 8.0], [2.0, 2.0, 2.0]].map(|values| Some(Tally::of(&values)));
        assert_eq!(quotient(above, below), "2.00 (2.00 to 4.00)");
        assert_eq!(quotient(above, None), "-");
        assert_eq!((median(below, 2.0), ratio(above, below)), ("1.00".into(), Some(2.0)));
    }
}
