//! `gristmill tile-search`: counts the states of a sliding-tile puzzle at each distance.

use std::ops::ControlFlow;

use clap::Args;

use crate::options::job_options::JobOptions;
use crate::output::column::{ColumnType, Field};
use crate::output::destination::Destination;
use crate::run::job_runner::JobRunner;
use crate::terminal::failure::Failure;
use crate::terminal::messages::tell;
use crate::terminal::progress::Unit;
use gristmill::units;

/// Count the states of a sliding-tile puzzle by their distance from a start
///
/// A breadth-first search, one step of the job for each depth. Prints for each depth the number of states that need so
/// many moves. With a goal it ends when the goal is found: the last depth is the number of moves that it needs.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct TileSearch {
    /// Rows of the board
    #[arg(long, value_name = "N", default_value_t = 3, help_heading = PUZZLE)]
    rows: usize,

    /// Squares in a row; a board has at most 16
    #[arg(long, value_name = "N", default_value_t = 3, help_heading = PUZZLE)]
    columns: usize,

    /// The tiles to start from, left to right and top to bottom, separated by commas, 0 for the blank [default: in
    /// order, the blank last]
    #[arg(long, value_name = "TILES", value_delimiter = ',', help_heading = PUZZLE)]
    start: Option<Vec<u8>>,

    /// The tiles to look for, written as those of --start
    #[arg(long, value_name = "TILES", value_delimiter = ',', help_heading = PUZZLE)]
    goal: Option<Vec<u8>>,

    /// Go no deeper [default: until there is no other state]
    #[arg(long, value_name = "N", help_heading = PUZZLE)]
    depth: Option<u32>,

    /// Memory for the states of two depths in a row [default: half of what --memory leaves, or of what is available]
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = PUZZLE)]
    keep_bytes: Option<usize>,

    #[command(flatten)]
    destination: Destination,

    #[command(flatten)]
    job: JobOptions,
}

const PUZZLE: &str = "Puzzle";

const EXAMPLES: &str = "\
Examples:
  gristmill tile-search
  gristmill tile-search --rows 4 --columns 4 --depth 20
  gristmill tile-search --start 8,6,7,2,5,4,3,0,1 --goal 1,2,3,4,5,6,7,8,0";

impl TileSearch {
    pub fn run(&self) -> Result<(), Failure> {
        let steps = self.depth.map(|depth| depth as usize + 1);
        let runs = JobRunner::without_input(&self.job, &self.destination)?.counted_in(Unit::Steps(steps));
        let mut output =
            self.destination.open([ColumnType::Integer.named("depth"), ColumnType::Integer.named("states")])?;
        let mut search = gristmill_apps::TileSearch {
            goal: self.goal.clone(),
            depth_max: self.depth,
            ..gristmill_apps::TileSearch::new(self.rows, self.columns)
        };
        if let Some(start) = &self.start {
            search.start.clone_from(start);
        }
        let mut written = Ok(());
        let (found, summary) = search.run(
            |job, state, control| {
                let job = match self.keep_bytes {
                    Some(bytes) => job.keep_bytes(bytes as u64),
                    None => job,
                };
                runs.iterate(job, state, control)
            },
            |depth, states| {
                written = output.row(&[Field::Integer(u64::from(depth)), Field::Integer(states)]);
                if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            },
        )?;
        output.finish(written)?;
        if self.goal.is_some() && found.goal_depth.is_none() && !self.job.quiet {
            tell(format_args!("the goal is more than {} moves away", self.depth.unwrap_or_default()));
        }
        runs.finish(&summary, "moves", "states")
    }
}
