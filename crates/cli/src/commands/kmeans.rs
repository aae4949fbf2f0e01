//! `gristmill kmeans`: finds centres such that each point is near one.

use std::num::NonZeroUsize;

use clap::{Args, ValueEnum};
use gristmill_apps::Clusters;

use crate::options::tables::{Tables, tell_notes};
use crate::output::column::{ColumnType, Field, matrix_columns, matrix_fields};
use crate::run::common_options::CommonOptions;
use crate::run::job_runner::{JobRunner, refuse};
use crate::terminal::failure::Failure;
use crate::terminal::progress::Unit;

/// Find k centres among points, each the mean of the points nearest to it
///
/// Points are the rows of CSV files or of .npy files of float64; CSV files that name their columns may have them in
/// different orders. Prints for each centre its number, the number of its points, and its coordinates.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct KMeans {
    /// Number of centres
    #[arg(long, short, value_name = "K", help_heading = CENTRES)]
    k: NonZeroUsize,

    /// Where the centres start
    #[arg(long, value_enum, default_value_t, help_heading = CENTRES)]
    start: Start,

    /// Seed of k-means++: the same seed, the same start [default: 0]
    #[arg(long, value_name = "N", help_heading = CENTRES)]
    seed: Option<u64>,

    /// Stop after this many steps, even if the centres still move
    #[arg(long, value_name = "N", default_value = "1000", help_heading = CENTRES)]
    iterations: NonZeroUsize,

    #[command(flatten)]
    tables: Tables,

    #[command(flatten)]
    common: CommonOptions,
}

const CENTRES: &str = "Centres";

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Start {
    /// Points chosen at random, far from each other (k-means++)
    #[default]
    PlusPlus,
    /// The first k points
    First,
}

const EXAMPLES: &str = "\
Examples:
  gristmill kmeans -k 8 points.csv
  gristmill kmeans -k 100 --start first --iterations 50 -o centres.csv points.npy";

impl KMeans {
    pub fn run(&self) -> Result<(), Failure> {
        refuse("--seed", self.seed.is_some() && self.start == Start::First, "the first k points are no random choice")?;
        let runs = JobRunner::of_matrices(&self.common)?.counted_in(Unit::Steps(Some(self.iterations.get())));
        let [points] = self.tables.matrices([runs.text(&self.tables.text)?], self.common.job.quiet)?;
        let integers = ["centre", "points"].map(|name| ColumnType::Integer.named(name));
        let columns: Vec<_> = integers.into_iter().chain(matrix_columns(points.columns)).collect();
        let output = self.common.destination.open(columns)?;
        let start = match self.start {
            Start::PlusPlus => gristmill_apps::Start::PlusPlus { seed: self.seed.unwrap_or(0) },
            Start::First => gristmill_apps::Start::First,
        };
        let question = gristmill_apps::KMeans {
            start,
            iterations_max: self.iterations.get(),
            ..gristmill_apps::KMeans::new(self.k.get())
        };
        let (clusters, summary) = question.find(&points, |job, state, control| runs.iterate(job, state, control))?;
        let row = |(row, (number, size)): (usize, (u64, &u64))| {
            let counts = [Field::Integer(number), Field::Integer(*size)].into_iter();
            counts.chain(matrix_fields(clusters.centres.row(row))).collect::<Vec<_>>()
        };
        output.write((1..).zip(&clusters.sizes).enumerate().map(row))?;
        tell_notes(&notes_on(&clusters), self.common.job.quiet);
        runs.finish(&summary, "partial sums", "sums")
    }
}

/// Returns what a user should know before trusting the centres.
fn notes_on(clusters: &Clusters) -> Vec<String> {
    let mut notes = Vec::new();
    if !clusters.settled {
        let steps = match clusters.iterations {
            1 => "the only step".to_owned(),
            steps => format!("the last of {steps} steps"),
        };
        notes.push(format!(
            "the centres still moved in {steps}, by up to {:e} along one dimension; more steps may help: --iterations",
            clusters.moved
        ));
    }
    let empty =
        (1..).zip(&clusters.sizes).filter(|(_, size)| **size == 0).map(|(number, _): (u64, _)| number.to_string());
    let empty: Vec<String> = empty.collect();
    let and_more = match empty.len().saturating_sub(EMPTY_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = empty[..empty.len().min(EMPTY_NAMED)].join(", ");
    let which = match empty.len() {
        0 => return notes,
        1 => format!("centre {named} has no points and stayed where it was"),
        _ => format!("centres {named}{and_more} have no points and stayed where they were"),
    };
    notes.push(format!("{which}: take fewer centres (-k), or another start (--seed, --start)"));
    notes
}

/// The number of centres without points that a note names.
const EMPTY_NAMED: usize = 10;
