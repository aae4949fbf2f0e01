//! The times of all combinations of parameters, as a table.

use gristmill_report::messages::printable;
use gristmill_report::text::escape;

use crate::run::parameters::Combination;
use crate::run::rounds::Series;
use crate::section::{Grid, Section, shown};

/// The times of all combinations.
pub struct Table<'t> {
    pub combinations: &'t [Combination],
    /// Those of each combination, one for each number of workers.
    pub series: &'t [Vec<Series>],
    /// True if the work grew with the workers, so that times are divided by them.
    pub is_weak: bool,
}

impl Table<'_> {
    fn median(&self, series: &Series) -> Option<f64> {
        let share = if self.is_weak { series.workers as f64 } else { 1.0 };
        series.median().map(|seconds| seconds / share)
    }

    /// Returns the number of workers with the shortest median, and that.
    fn best(&self, series: &[Series]) -> Option<(u64, f64)> {
        let medians = series.iter().filter_map(|series| Some((series.workers, self.median(series)?)));
        medians.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Returns the place of the combination with the shortest time.
    pub fn fastest(&self) -> usize {
        let times = self.series.iter().map(|series| self.best(series).map_or(f64::INFINITY, |(_, seconds)| seconds));
        times.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(at, _)| at)
    }

    /// Returns the cells of all rows, the heads first: names, times by number of workers, and the best number.
    fn rows(&self) -> Vec<Vec<String>> {
        let names = self.combinations[0].0.iter().map(|(name, _)| name.clone());
        let numbers = self.series[0].iter().map(|series| series.workers.to_string());
        let mut rows = vec![names.chain(numbers).chain(["best".to_owned()]).collect()];
        for (Combination(values), series) in self.combinations.iter().zip(self.series) {
            let values = values.iter().map(|(_, value)| printable(value));
            let times = series.iter().map(|series| self.median(series).map_or("failed".to_owned(), shown));
            let best = self.best(series).map_or("none".to_owned(), |(workers, _)| workers.to_string());
            rows.push(values.chain(times).chain([best]).collect());
        }
        rows
    }

    /// Formats a row for each combination; empty without parameters.
    pub fn section(&self) -> Section {
        if self.combinations[0].0.is_empty() {
            return Section::default();
        }
        let (rows, best) = (self.rows(), self.fastest());
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
        let (grid, fastest) = (Grid(rows), &self.combinations[best]);
        Section {
            text: format!(
                "Median time by number of workers, and the number with the shortest:\n{}\n\
                 {fastest} has the shortest time; what follows is about it.\n\n",
                grid.text(|column| widths[column] + if column > 0 { 2 } else { 0 })
            ),
            html: format!(
                "<h2>Parameters</h2><p class='soft'>Median time by number of workers, and the number with the shortest. All else on this \
                 page is about {}, which has the shortest time.</p>{}",
                escape(&fastest.to_string()),
                grid.html(Some(best + 1))
            ),
        }
    }
}
