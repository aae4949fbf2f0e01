//! `gristmill batch simulate`: the experiments of bandwidth-aware scheduling (Xu et al.; docs/bibliography.md) on a simulated machine.
//!
//! ```text
//!  table   the output on a terminal
//!  page    a page to read        charts   its pictures
//!  rows    all numbers, as CSV
//! ```

mod rows;
mod charts;
mod table;
mod page;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use gristmill_schedule::experiments::{Plan, Repetition};

use crate::output::aside::Aside;
use crate::terminal::failure::Failure;
use crate::terminal::messages::tell;
use crate::terminal::standard_output::print;

/// Repeat the experiments about bandwidth-aware scheduling on a simulated machine
///
/// The paper is that of Xu, Wu and Feng (docs/bibliography.md). Programs with the demands of SPEC CPU2006 run on eight simulated processors: under Linux, and under a scheduler that learns what
/// memory bandwidth they need. Prints how many executions learning takes and how much faster groups of programs become. Nothing of
/// this machine is measured: the same seed gives the same numbers everywhere.
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
  gristmill batch simulate --quick
  gristmill batch simulate --seed 7 --output simulation.html --rows simulation.csv";

impl Simulate {
    pub fn run(&self) -> Result<(), Failure> {
        if self.output.is_some() && self.output == self.rows {
            return Err(Failure::Usage("--output and --rows name the same file; give each its own".into()));
        }
        // The outputs are opened first, so that a file that cannot be written fails at once and not after minutes.
        let begun = |path: &Option<PathBuf>| -> Result<Option<(PathBuf, Aside)>, Failure> {
            let Some(path) = path else { return Ok(None) };
            let aside = Aside::create(path).map_err(|source| Failure::output(path, source))?;
            Ok(Some((path.clone(), aside)))
        };
        let (page, rows) = (begun(&self.output)?, begun(&self.rows)?);
        let plan = if self.quick { Plan::quick(self.seed) } else { Plan::new(self.seed) };
        let rounds = self.rounds.map_or(plan.rounds, |rounds| rounds as usize);
        let repetition = Repetition::run(Plan { rounds, ..plan }, |next| tell(next));
        print(table::text(&repetition).trim_end())?;
        for (begun, content) in [(page, page::html(&repetition, &self.command())), (rows, rows::csv(&repetition))] {
            if let Some((path, aside)) = begun {
                publish(aside, &path, &content)?;
            }
        }
        Ok(())
    }

    /// Returns the command that reproduces these numbers.
    fn command(&self) -> String {
        let quick = if self.quick { " --quick" } else { "" };
        let rounds = self.rounds.map_or(String::new(), |rounds| format!(" --rounds {rounds}"));
        format!("gristmill batch simulate --seed {}{quick}{rounds}", self.seed)
    }
}

fn publish(mut aside: Aside, path: &Path, content: &str) -> Result<(), Failure> {
    let written = aside.file.write_all(content.as_bytes()).and_then(|()| aside.publish());
    written.map_err(|source| Failure::output(path, source))
}
