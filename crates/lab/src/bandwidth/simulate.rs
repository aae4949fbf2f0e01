//! `gristmill-lab simulate`: all experiments, as tables, a page and rows.

use std::path::PathBuf;

use clap::Args;
use gristmill_cli::{Failure, print};
use gristmill_report::messages::tell;

use super::repetition::{Repetition, SimulationSize};
use super::report::{page, rows, table};
use crate::results::ResultFile;

/// Repeat the experiments about bandwidth-aware scheduling on a simulated machine
///
/// The paper is that of Xu, Wu and Feng (docs/bibliography.md). Programs with the demands of SPEC CPU2006 run on eight
/// simulated processors: under Linux, and under a scheduler that learns what memory bandwidth they need. Prints how
/// many executions learning takes and how much faster groups of programs become. Nothing of this machine is measured:
/// the same seed gives the same numbers everywhere.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Simulate {
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Few executions: some seconds instead of some minutes
    #[arg(long)]
    quick: bool,

    /// Executions of each group with each method [default: 40, with --quick 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,

    /// Write a page with charts
    #[arg(long, short, value_name = "FILE.html")]
    output: Option<PathBuf>,

    /// Write a row for each execution
    #[arg(long, value_name = "FILE.csv")]
    rows: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  gristmill-lab simulate --quick
  gristmill-lab simulate --seed 7 --output simulation.html --rows simulation.csv";

impl Simulate {
    pub fn run(&self) -> Result<(), Failure> {
        if self.output.is_some() && self.output == self.rows {
            return Err(Failure::Usage("--output and --rows name the same file; give each its own".into()));
        }
        let begin = |path: &Option<PathBuf>| path.as_deref().map(ResultFile::begin).transpose();
        let (to_page, to_rows) = (begin(&self.output)?, begin(&self.rows)?);
        let plan = if self.quick { SimulationSize::quick(self.seed) } else { SimulationSize::new(self.seed) };
        let rounds = self.rounds.map_or(plan.rounds, |rounds| rounds as usize);
        let repetition = Repetition::run(SimulationSize { rounds, ..plan }, |next| tell(next));
        print(table::text(&repetition).trim_end())?;
        to_page.map_or(Ok(()), |file| file.publish(&page::html(&repetition, &self.command())))?;
        to_rows.map_or(Ok(()), |file| file.publish(&rows::csv(&repetition)))
    }

    /// Returns the command that reproduces these numbers.
    fn command(&self) -> String {
        let quick = if self.quick { " --quick" } else { "" };
        let rounds = self.rounds.map_or(String::new(), |rounds| format!(" --rounds {rounds}"));
        format!("gristmill-lab simulate --seed {}{quick}{rounds}", self.seed)
    }
}
