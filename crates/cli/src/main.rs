//! The command `gristmill`.
//!
//! One file per subcommand; what all of them share is beside them:
//!
//! ```text
//!  inputs       which files            job_options  how the job runs
//!  run          the job itself         progress     what a terminal sees meanwhile
//!  output       where the result goes  rows         how a row is written
//!  aside        a file that appears whole or not at all
//!  stats        what it took           units        sizes and durations as people write them
//! ```
//!
//! Only results go to standard output. Workers are forked from this process, so it starts no thread.

mod aside;
mod failure;
mod inputs;
mod job_options;
mod output;
mod progress;
mod rows;
mod run;
mod stats;
mod units;
mod word_count;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// MapReduce for one big machine: every worker is a process of its own, and only pages of memory pass
/// between them.
#[derive(Parser)]
#[command(name = "gristmill", version, arg_required_else_help = true, after_help = EXIT_STATUS)]
struct Command {
    #[command(subcommand)]
    program: Program,
}

#[derive(Subcommand)]
enum Program {
    WordCount(word_count::WordCount),
}

const EXIT_STATUS: &str = "\
Exit status: 0 when the result is complete (or its reader wanted no more of it), 1 when the job failed,
2 when the command makes no sense.";

fn main() -> ExitCode {
    let outcome = match Command::parse().program {
        Program::WordCount(word_count) => word_count.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(&mut Command::command()),
    }
}
