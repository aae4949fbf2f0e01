//! Times over numbers of threads, beside those of the paper.

use std::collections::BTreeSet;
use std::fmt::Write;

use gristmill_report::tally::Tally;
use serde_json::Value;

use crate::page::picture::Picture;
use crate::page::{Answer, spread};

/// A column of a table of the paper, as printed: the threads, the seconds, and the efficiency in percent; that is empty
/// where the paper has none.
pub type PaperColumn = (u64, &'static str, &'static str);

/// Numbers of threads, and a time or a share of each.
pub type ByThreads = Vec<(u64, Tally)>;

/// A table of the paper, and the same measured here.
pub struct Scaling {
    /// The first is one thread.
    pub paper: &'static [PaperColumn],
    /// Numbers of threads and milliseconds; the first is one thread.
    pub here: ByThreads,
    pub processors: u64,
}

/// Returns the quotient of two medians, and the least and the greatest that single runs allow.
pub fn quotient(above: &Tally, below: &Tally) -> Tally {
    Tally::of(&[above.least / below.most, above.median / below.median, above.most / below.least])
}

/// Formats a share, and its least and greatest where they are others.
pub fn percents(share: &Tally) -> String {
    let [least, median, most] = [share.least, share.median, share.most].map(|share| format!("{:.0} %", share * 100.0));
    if least == most { median } else { format!("{median} ({least} to {most})") }
}

fn seconds(column: &PaperColumn) -> f64 {
    column.1.parse().expect("the paper's times are numbers")
}

/// Returns `E = (T1 / Tk) / k` for the times of each number of threads.
fn efficiencies(times: &[(u64, Tally)]) -> ByThreads {
    let efficiency = |(threads, time): &(u64, Tally)| {
        let one = if *threads == 1 { Tally::of(&[1.0]) } else { quotient(&times[0].1, time) };
        let ideal = *threads as f64;
        (*threads, Tally::of(&[one.least / ideal, one.median / ideal, one.most / ideal]))
    };
    times.iter().map(efficiency).collect()
}

impl Scaling {
    /// The efficiencies measured here, of threads that have a processor each.
    pub fn uncrowded(&self) -> ByThreads {
        efficiencies(&self.here).into_iter().filter(|(threads, _)| *threads <= self.processors).collect()
    }

    /// The efficiencies that follow from the paper's times.
    fn of_paper(&self) -> ByThreads {
        let times: ByThreads = self.paper.iter().map(|column| (column.0, Tally::of(&[seconds(column)]))).collect();
        efficiencies(&times)
    }

    /// The median time with this number of threads.
    pub fn median_ms(&self, threads: u64) -> Option<f64> {
        self.here.iter().find(|(number, _)| *number == threads).map(|(_, tally)| tally.median)
    }

    /// The greatest speed-up of several threads that was measured here.
    pub fn best_speed_up(&self) -> Option<Tally> {
        let several = self.here.iter().filter(|(threads, _)| *threads > 1);
        several.map(|(_, time)| quotient(&self.here[0].1, time)).max_by(|a, b| a.median.total_cmp(&b.median))
    }

    /// Returns the table as text.
    pub fn table(&self, threads: &str) -> String {
        let mut table = format!(
            "| {threads} | paper | efficiency, as printed | here, median (least to most) | efficiency |\n|---|---|---|---|---|\n"
        );
        let efficiencies = efficiencies(&self.here);
        let measured = self.here.iter().map(|(threads, _)| *threads);
        let numbers: BTreeSet<u64> = self.paper.iter().map(|column| column.0).chain(measured).collect();
        for number in &numbers {
            let printed = self.paper.iter().find(|column| column.0 == *number);
            let paper = printed.map_or(String::new(), |column| format!("{} s", column.1));
            let printed = printed.filter(|column| !column.2.is_empty());
            let printed = printed.map_or(String::new(), |column| format!("{} %", column.2));
            let cell = |of: &[(u64, Tally)], cell: fn(&Tally) -> String| {
                of.iter().find(|(threads, _)| threads == number).map_or("-".to_owned(), |(_, tally)| cell(tally))
            };
            let star = if *number > self.processors { "*" } else { "" };
            let [here, efficiency] = [cell(&self.here, spread), cell(&efficiencies, percents)];
            let _ = writeln!(table, "| {number}{star} | {paper} | {printed} | {here} | {efficiency} |");
        }
        if numbers.iter().any(|threads| *threads > self.processors) {
            let _ = write!(table, "\n\\* More threads than the {} processors: they take turns.", self.processors);
            table += if numbers.len() > self.here.len() { " -: not run.\n" } else { "\n" };
        }
        table
    }

    /// Adds the times as rows, and the efficiencies as a picture, to an answer.
    pub fn attach(&self, answer: Answer, name: &str) -> Answer {
        let mut rows = "threads,paper_s,median_ms,least_ms,most_ms\n".to_owned();
        for (threads, tally) in &self.here {
            let paper = self.paper.iter().find(|column| column.0 == *threads).map_or("", |column| column.1);
            let _ = writeln!(rows, "{threads},{paper},{:.3},{:.3},{:.3}", tally.median, tally.least, tally.most);
        }
        let points =
            |of: ByThreads| of.iter().map(|(threads, share)| (*threads as f64, share.median * 100.0)).collect();
        let both = [
            ("the paper, from its times".to_owned(), points(self.of_paper())),
            ("here".to_owned(), points(efficiencies(&self.here))),
        ];
        let processors = Some(self.processors as usize);
        let picture = Picture { x: "threads", y: "efficiency, %", level: Some(100.0), processors };
        answer
            .with(format!("bottlenecks-{name}.csv"), rows)
            .with(format!("bottlenecks-{name}.svg"), picture.draw(&both))
    }

    /// Returns the first sentence that `gristmill scale --from` says of the paper's own times. The others would need
    /// more than one run of each.
    pub fn told_of_paper(&self, table: &'static str) -> String {
        let lines: String = self.paper.iter().map(|(threads, seconds, _)| format!("{threads},{seconds}\n")).collect();
        let report = gristmill_scale::analyse(table, &lines, None).expect("the paper's times are times");
        let object: Value = serde_json::from_str(&report.json()).expect("an object");
        let told = object["statements"][0]["sentence"].as_str().unwrap_or_default();
        let first = told.split_once(". ").map_or(told.trim_end_matches('.'), |(first, _)| first);
        format!("\n`gristmill scale --from` says of the paper's times: \"{first}.\"\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAPER: &[PaperColumn] = &[(1, "3.01", "100"), (2, "1.58", "95"), (4, "0.90", "83"), (8, "0.69", "")];

    fn scaling(numbers: &[u64]) -> Scaling {
        let times = [(1, [90.0, 100.0, 110.0]), (2, [60.0; 3]), (6, [50.0; 3])];
        let here = times.into_iter().filter(|(threads, _)| numbers.contains(threads));
        Scaling {
            paper: PAPER,
            here: here.map(|(threads, times)| (threads, Tally::of(&times))).collect(),
            processors: 2,
        }
    }

    #[test]
    fn efficiencies_are_those_of_the_paper() {
        let scaling = scaling(&[1, 2, 6]);
        let percents: Vec<u64> = scaling.of_paper().iter().map(|(_, share)| (share.median * 100.0) as u64).collect();
        // The paper's own row has 100, 95, 83 and 54 percent.
        assert_eq!(percents, [100, 95, 83, 54]);
        let [(1, one), (2, two)] = scaling.uncrowded()[..] else { panic!("two numbers have processors") };
        assert_eq!([super::percents(&one), super::percents(&two)], ["100 %", "83 % (75 % to 92 %)"]);
        let best = scaling.best_speed_up().expect("several threads were measured");
        assert_eq!([best.least, best.median, best.most], [1.8, 2.0, 2.2]);
        assert!(super::tests::scaling(&[1]).best_speed_up().is_none());
    }

    #[test]
    fn a_table_has_what_the_paper_printed_and_marks_threads_that_take_turns() {
        let table = scaling(&[1, 2, 6]).table("readers");
        for row in [
            "| 2 | 1.58 s | 95 % | 60.0 ms (60.0 ms to 60.0 ms) | 83 % (75 % to 92 %) |\n",
            "| 4* | 0.90 s | 83 % | - | - |\n",
            "| 6* |  |  | 50.0 ms",
            "| 8* | 0.69 s |  | - | - |\n",
            "\n\\* More threads than the 2 processors: they take turns. -: not run.\n",
        ] {
            assert!(table.contains(row), "{row}: {table}");
        }
    }

    #[test]
    fn one_sentence_is_told_of_the_papers_times() {
        let told = scaling(&[1]).told_of_paper("table 1");
        assert!(told.contains("says of the paper's times: \"More workers help up to "), "{told}");
        assert!(told.ends_with("%.\"\n") && told.matches(". ").count() == 0, "{told}");
    }
}
