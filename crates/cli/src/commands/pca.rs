//! `gristmill pca`: computes means, covariances and principal components.

use std::num::NonZeroUsize;

use clap::{Args, ValueEnum};

use crate::options::tables::Tables;
use crate::output::column::{ColumnType, Field, matrix_columns, matrix_fields};
use crate::run::common_options::CommonOptions;
use crate::run::job_runner::{JobRunner, refuse};
use crate::terminal::failure::Failure;
use crate::terminal::progress::Unit;

/// Find the directions in which data varies most, and its covariances
///
/// Observations are the rows of CSV files or of .npy files of float64; CSV files that name their columns may have them
/// in different orders.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Pca {
    /// Result to print
    #[arg(long, value_enum, default_value_t)]
    print: Print,

    /// Number of components, or all of them if there are fewer [default: 3]
    #[arg(long, short, value_name = "N")]
    components: Option<NonZeroUsize>,

    #[command(flatten)]
    tables: Tables,

    #[command(flatten)]
    common: CommonOptions,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Print {
    /// A row for each component: its number, the variance along it, its share of the whole variance, and its direction,
    /// a number for each variable
    #[default]
    Components,
    /// A row for each variable, which is a column of the input: its number, from 1, and its mean
    Means,
    /// A row for each variable, in the order of the input: its covariances with the first, the second, and so on
    Covariances,
}

const EXAMPLES: &str = "\
Examples:
  gristmill pca measurements.csv
  gristmill pca --components 10 -o components.csv data.npy
  gristmill pca --print covariances data.npy";

impl Pca {
    pub fn run(&self) -> Result<(), Failure> {
        let is_useless = self.components.is_some() && self.print != Print::Components;
        refuse("--components", is_useless, "components are printed with --print components")?;
        let runs = JobRunner::of_matrices(&self.common)?.counted_in(Unit::Share);
        let [data] = self.tables.matrices([runs.text(&self.tables.text)?], self.common.job.quiet)?;
        let mut columns = match self.print {
            Print::Components => {
                vec![
                    ColumnType::Integer.named("component"),
                    ColumnType::Number.named("variance"),
                    ColumnType::Number.named("share"),
                ]
            }
            Print::Means => vec![ColumnType::Integer.named("variable"), ColumnType::Number.named("mean")],
            Print::Covariances => Vec::new(),
        };
        if self.print != Print::Means {
            columns.extend(matrix_columns(data.columns));
        }
        let output = self.common.destination.open(columns)?;
        let components = if self.print == Print::Components {
            self.components.map_or(3, NonZeroUsize::get).min(data.columns)
        } else {
            0
        };
        let (pca, summary) = gristmill_apps::Pca::of(data, components, |job| runs.run(job))?;
        if self.print == Print::Covariances && pca.is_too_small {
            return Err(gristmill_apps::Pca::too_small().into());
        }
        let rows: Box<dyn Iterator<Item = Vec<Field<'_>>>> = match self.print {
            Print::Components => Box::new((1..).zip(&pca.components).map(|(number, component)| {
                let numbers = [component.variance, component.share].map(Field::Number);
                let first = [Field::Integer(number)].into_iter().chain(numbers);
                first.chain(matrix_fields(&component.direction)).collect()
            })),
            Print::Means => {
                Box::new((1..).zip(&pca.means).map(|(number, mean)| vec![Field::Integer(number), Field::Number(*mean)]))
            }
            Print::Covariances => {
                Box::new((0..pca.covariance.rows).map(|row| matrix_fields(pca.covariance.row(row)).collect()))
            }
        };
        output.write(rows)?;
        runs.finish(&summary, "pieces of rows", "pieces")
    }
}
