//! The command `gristmill`.
//!
//! ```text
//!  terminal     messages, errors, progress, standard output
//!  options      files, job options, tables, sizes and durations
//!  output       rows in any format, into files that appear whole or not at all
//!  report       what was set aside, and what the job took
//!  run          the job of a command, from its options to its result
//!  commands     one file for each subcommand
//!  experiment   compares strategies
//!  scale        why it does not get faster
//!  batch        which programs run together (simulated)
//! ```
//!
//! Only results go to standard output. Workers are forked from this process, so it starts no thread.

mod terminal;
mod options;
mod output;
mod report;
mod run;
mod commands;
mod experiment;
mod scale;
mod batch;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use gristmill_os::allocations::Counting;

use crate::terminal::messages::{printable, printable_lines};

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
    WordCount(commands::word_count::WordCount),
    GroupBy(commands::group_by::GroupBy),
    Histogram(commands::histogram::Histogram),
    LinearRegression(commands::linear_regression::LinearRegression),
    StringMatch(commands::string_match::StringMatch),
    #[command(name = "kmeans")]
    KMeans(commands::kmeans::KMeans),
    Pca(commands::pca::Pca),
    TileSearch(commands::tile_search::TileSearch),
    MatrixMultiply(commands::matrix_multiply::MatrixMultiply),
    Palindromes(commands::palindromes::Palindromes),
    Sort(commands::sort::Sort),
    Terasort(commands::terasort::Terasort),
    Generate(commands::generate::Generate),
    Experiment(experiment::Experiment),
    Machine(commands::machine::Machine),
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
            terminal::failure::Failure::output("standard output", source).report(&mut asked_for())
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
