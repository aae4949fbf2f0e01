//! The command `gristmill`.
//!
//! One file per subcommand; what all of them share is beside them:
//!
//! ```text
//!  common       the options that all of them have:
//!    inputs       which files            job_options  how the job runs
//!    patterns     names with stars
//!    output       where the result goes
//!  outputs      all files that are written: no two are one, and none is read
//!  tables       how CSV is read, for those that read it
//!  runs         the job itself         progress     what a terminal sees meanwhile
//!  rows         the rows of a result:  aside        a file that appears whole or not at all
//!    text         row by row           columns      column by column (feature columnar)
//!  packer       a file that is compressed as it is written
//!  bad_records  what was set aside
//!  messages     what goes to standard error
//!  parts        a folder of files that appears whole or not at all
//!  stats        what it took           units        sizes and durations as people write them
//!  generate     makes input            experiment   compares strategies
//!  batch        which programs run together (simulated)
//! ```
//!
//! Only results go to standard output. Workers are forked from this process, so it starts no thread.

mod aside;
mod bad_records;
mod batch;
#[cfg(feature = "columnar")]
mod columns;
mod common;
mod experiment;
mod failure;
mod generate;
mod group_by;
mod histogram;
mod inputs;
mod job_options;
mod kmeans;
mod linear_regression;
mod machine;
mod matrix_multiply;
mod messages;
mod output;
mod outputs;
mod packer;
mod palindromes;
mod parts;
mod patterns;
mod pca;
mod progress;
mod rows;
mod runs;
mod scale;
mod sort;
mod stats;
mod string_match;
mod tables;
mod terasort;
mod text;
mod tile_search;
mod units;
mod word_count;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use gristmill_os::allocations::Counting;

use messages::{printable, printable_lines};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

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
    GroupBy(group_by::GroupBy),
    Histogram(histogram::Histogram),
    LinearRegression(linear_regression::LinearRegression),
    StringMatch(string_match::StringMatch),
    #[command(name = "kmeans")]
    KMeans(kmeans::KMeans),
    Pca(pca::Pca),
    TileSearch(tile_search::TileSearch),
    MatrixMultiply(matrix_multiply::MatrixMultiply),
    Palindromes(palindromes::Palindromes),
    Sort(sort::Sort),
    Terasort(terasort::Terasort),
    Generate(generate::Generate),
    Experiment(experiment::Experiment),
    Machine(machine::Machine),
    Scale(scale::Scale),
    Batch(batch::Batch),
    #[command(hide = true)]
    HandOver(experiment::HandOver),
}

const EXIT_STATUS: &str = "\
Exit status: 0 if the result is complete (or its reader closed the pipe), 1 if the job failed, 2 if the command line \
is wrong.";

fn main() -> ExitCode {
    // Whatever this command writes, it says which file was too large, and is not ended by a signal.
    let _guard = gristmill_os::file_size::LimitIsAnError::new();
    let command = match Command::try_parse() {
        Ok(command) => command,
        Err(error) => return told(&error),
    };
    let outcome = match command.program {
        Program::WordCount(word_count) => word_count.run(),
        Program::GroupBy(group_by) => group_by.run(),
        Program::Histogram(histogram) => histogram.run(),
        Program::LinearRegression(regression) => regression.run(),
        Program::StringMatch(string_match) => string_match.run(),
        Program::KMeans(kmeans) => kmeans.run(),
        Program::Pca(pca) => pca.run(),
        Program::TileSearch(search) => search.run(),
        Program::MatrixMultiply(product) => product.run(),
        Program::Palindromes(palindromes) => palindromes.run(),
        Program::Sort(sort) => sort.run(),
        Program::Terasort(terasort) => terasort.run(),
        Program::Generate(generate) => generate.run(),
        Program::Experiment(experiment) => experiment.run(),
        Program::Machine(machine) => machine.run(),
        Program::Scale(scale) => scale.run(),
        Program::Batch(batch) => batch.run(),
        Program::HandOver(hand_over) => hand_over.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(&mut asked_for()),
    }
}

/// Prints help, or why the command makes no sense.
fn told(error: &clap::Error) -> ExitCode {
    // What was typed stands in the message.
    let is_plain = |word: std::ffi::OsString| word.to_str().is_some_and(|word| printable(word) == word);
    let printed = match error.use_stderr() || !gristmill_os::standard::was_closed(1) {
        true if error.use_stderr() && !std::env::args_os().all(is_plain) => {
            std::io::stderr().write_all(printable_lines(&error.render().to_string()).as_bytes())
        }
        true => error.print(),
        false => Err(rustix::io::Errno::BADF.into()),
    };
    match printed {
        // Help that nobody has read is no help.
        Err(source) if !error.use_stderr() && source.kind() != std::io::ErrorKind::BrokenPipe => {
            failure::Failure::output("standard output", source).report(&mut asked_for())
        }
        _ => ExitCode::from(error.exit_code() as u8),
    }
}

/// The subcommand of this process, whose usage a message shows.
fn asked_for() -> clap::Command {
    let mut command = Command::command();
    command.build();
    for word in std::env::args_os().skip(1) {
        match command.find_subcommand(&word) {
            Some(subcommand) => command = subcommand.clone(),
            None => break,
        }
    }
    command
}
