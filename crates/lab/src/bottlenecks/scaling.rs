//! Times over numbers of threads, beside those of the paper.

use std::collections::BTreeSet;
use std::fmt::Write;

use gristmill_report::tally::Tally;
use serde_json::Value;

use crate::page::picture::curves;
use crate::page::{Answer, spread};

/// A table of the paper, and the same measured here.
pub struct Scaling {
    /// Numbers of threads and seconds; the first is one thread.
    pub paper: &'static [(u64, f64)],
    /// Numbers of threads and milliseconds; the first is one thread.
    pub here: Vec<(u64, Tally)>,
    pub processors: u64,
}

/// Returns `E = (T1 / Tk) / k` for the times of each number of threads.
fn efficiencies(times: impl IntoIterator<Item = (u64, f64)>) -> Vec<(u64, f64)> {
    let times: Vec<(u64, f64)> = times.into_iter().collect();
    times.iter().map(|(threads, time)| (*threads, times[0].1 / time / *threads as f64)).collect()
}

impl Scaling {
    /// The efficiencies measured here, of threads that have a processor each.
    pub fn uncrowded(&self) -> Vec<(u64, f64)> {
        self.of_here().into_iter().filter(|(threads, _)| *threads <= self.processors).collect()
    }

    fn of_here(&self) -> Vec<(u64, f64)> {
        efficiencies(self.here.iter().map(|(threads, tally)| (*threads, tally.median)))
    }

    /// The median time with so many threads.
    pub fn median_ms(&self, threads: u64) -> Option<f64> {
        self.here.iter().find(|(number, _)| *number == threads).map(|(_, tally)| tally.median)
    }

    /// The greatest speed-up measured here.
    pub fn best_speed_up(&self) -> f64 {
        self.here.iter().map(|(_, tally)| self.here[0].1.median / tally.median).fold(0.0, f64::max)
    }

    /// Returns the table as text.
    pub fn table(&self, threads: &str) -> String {
        let mut table = format!(
            "| {threads} | paper | efficiency | here, median (least to most) | efficiency |\n|---|---|---|---|---|\n"
        );
        let (of_paper, of_here) = (efficiencies(self.paper.iter().copied()), self.of_here());
        let numbers: BTreeSet<u64> = of_paper.iter().chain(&of_here).map(|(number, _)| *number).collect();
        let percent = |of: &[(u64, f64)], number| {
            let of = of.iter().find(|(other, _)| *other == number);
            of.map_or("-".to_owned(), |(_, efficiency)| format!("{:.0} %", efficiency * 100.0))
        };
        for number in numbers {
            let paper = self.paper.iter().find(|(other, _)| *other == number);
            let paper = paper.map_or("-".to_owned(), |(_, seconds)| format!("{seconds} s"));
            let here =
                self.here.iter().find(|(other, _)| *other == number).map_or("-".to_owned(), |(_, tally)| spread(tally));
            let star = if number > self.processors { "*" } else { "" };
            let [efficiency, measured] = [&of_paper, &of_here].map(|of| percent(of, number));
            let _ = writeln!(table, "| {number}{star} | {paper} | {efficiency} | {here} | {measured} |");
        }
        if self.here.iter().any(|(threads, _)| *threads > self.processors) {
            let _ = writeln!(table, "\n\\* More threads than the {} processors: they take turns.", self.processors);
        }
        table
    }

    /// Adds the times as rows, and the efficiencies as a picture, to an answer.
    pub fn attach(&self, answer: Answer, name: &str) -> Answer {
        let mut rows = "threads,paper_s,median_ms,least_ms,most_ms\n".to_owned();
        for (threads, tally) in &self.here {
            let paper = self.paper.iter().find(|(number, _)| number == threads);
            let paper = paper.map_or(String::new(), |(_, seconds)| seconds.to_string());
            let _ = writeln!(rows, "{threads},{paper},{:.3},{:.3},{:.3}", tally.median, tally.least, tally.most);
        }
        let points =
            |of: Vec<(u64, f64)>| of.into_iter().map(|(threads, value)| (threads as f64, value * 100.0)).collect();
        let both = [
            ("the paper".to_owned(), points(efficiencies(self.paper.iter().copied()))),
            ("here".to_owned(), points(self.of_here())),
        ];
        answer
            .with(format!("bottlenecks-{name}.csv"), rows)
            .with(format!("bottlenecks-{name}.svg"), curves("threads", "efficiency, %", &both))
    }
}

/// Returns what `gristmill scale --from` says of the paper's own times.
pub fn told_of_paper(table: &'static str, times: &[(u64, f64)]) -> String {
    let lines: String = times.iter().map(|(threads, seconds)| format!("{threads},{seconds}\n")).collect();
    let report = gristmill_scale::analyse(table, &lines, None).expect("the paper's times are times");
    let object: Value = serde_json::from_str(&report.json()).expect("an object");
    let statements = object["statements"].as_array().map_or(&[][..], Vec::as_slice);
    let sentences: Vec<&str> = statements.iter().filter_map(|statement| statement["sentence"].as_str()).collect();
    format!("\n`gristmill scale --from` says of the paper's times: \"{}\"\n", sentences.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaling() -> Scaling {
        let here = [(1, 100.0), (2, 60.0), (4, 50.0)].map(|(threads, time)| (threads, Tally::of(&[time])));
        Scaling { paper: &[(1, 3.01), (2, 1.58), (8, 0.69)], here: here.into(), processors: 2 }
    }

    #[test]
    fn efficiencies_are_those_of_the_paper() {
        let percents: Vec<u64> = efficiencies([(1, 3.01), (2, 1.58), (4, 0.9), (8, 0.69)])
            .into_iter()
            .map(|(_, efficiency)| (efficiency * 100.0) as u64)
            .collect();
        // The paper's own row has 100, 95, 83 and 54 percent.
        assert_eq!(percents, [100, 95, 83, 54]);
        let uncrowded = scaling().uncrowded();
        assert!(uncrowded.len() == 2 && (uncrowded[1].1 - 100.0 / 60.0 / 2.0).abs() < 1e-9);
        assert_eq!(scaling().best_speed_up(), 2.0);
    }

    #[test]
    fn a_table_has_a_row_for_each_number_and_marks_threads_that_take_turns() {
        let table = scaling().table("readers");
        assert!(table.contains("| 2 | 1.58 s | 95 % | 60.0 ms (60.0 ms to 60.0 ms) | 83 % |\n"), "{table}");
        assert!(
            table.contains("| 4* | - | - | 50.0 ms") && table.contains("| 8* | 0.69 s | 55 % | - | - |"),
            "{table}"
        );
        assert!(
            told_of_paper("table 7", &[(1, 40.6), (2, 21.2), (4, 11.0), (8, 6.6), (16, 5.2), (32, 5.7), (64, 6.7)])
                .contains("More workers help up to 16")
        );
    }
}
