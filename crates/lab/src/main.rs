//! The command `gristmill-lab`: repeats the experiments of the papers that Gristmill follows (docs/bibliography.md).
//!
//! ```text
//!  results      the files that an experiment writes
//!  records      TeraSort records, from a seed
//!  generate     input for the applications, from a seed
//!  workloads    the applications as command lines, each with an input
//!  compare      runs strategies in turn, and reports which is the fastest
//!  page         a page for each paper, with a verdict for each figure and table
//!  ops          OPS: recorded runs of the Spark plugin, records to sort
//!  mr_search    MR-Search: a MapReduce with any source of memory, and messages
//!  dmr          DMR: its page, and a small MapReduce for it
//!  bottlenecks  thread bottlenecks: reading and computing with any number of threads
//!  bandwidth    bandwidth-aware scheduling, on a simulated machine
//!  experiment   the comparisons of DMR and MR-Search in one report
//!  many_cores   where more workers stop helping on a machine, in one file
//! ```
//!
//! An experiment is one file, which has its options and runs it, and one line in the list below. The applications that
//! it measures are those of `gristmill`: this program runs itself with the hidden subcommand `application`.

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod results;
mod records;
mod generate;
mod workloads;
mod compare;
mod page;
mod ops;
mod mr_search;
mod dmr;
mod bottlenecks;
mod bandwidth;
mod experiment;
mod many_cores;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use gristmill_cli::Applications;
use gristmill_os::allocations::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Repeat the experiments of the papers behind Gristmill
#[derive(Parser)]
#[command(name = "gristmill-lab", version, arg_required_else_help = true)]
struct Command {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Experiment(experiment::Experiment),
    ManyCores(many_cores::ManyCores),
    Dmr(dmr::command::Dmr),
    Palindromes(Box<bottlenecks::palindromes::Palindromes>),
    Bandwidth(bandwidth::items::Bandwidth),
    Generate(generate::Generate),
    Terasort(ops::terasort::Terasort),
    Ops(ops::paper::Ops),
    Bottlenecks(bottlenecks::paper::Bottlenecks),
    MrSearch(mr_search::paper::MrSearch),
    #[command(hide = true)]
    MrSearchJob(mr_search::job::JobRun),
    #[command(hide = true)]
    DmrModel(dmr::model::command::Model),
    /// Run an application of Gristmill, as experiments do
    #[command(hide = true)]
    Application {
        #[command(subcommand)]
        application: Box<Applications>,
    },
}

fn main() -> ExitCode {
    let run = |command: Command| match command.what {
        What::Experiment(experiment) => experiment.run(),
        What::ManyCores(measured) => measured.run(),
        What::Dmr(page) => page.run(),
        What::Palindromes(palindromes) => palindromes.run(),
        What::Bandwidth(bandwidth) => bandwidth.run(),
        What::Generate(generate) => generate.run(),
        What::Terasort(terasort) => terasort.run(),
        What::Ops(ops) => ops.run(),
        What::Bottlenecks(bottlenecks) => bottlenecks.run(),
        What::MrSearch(mr_search) => mr_search.run(),
        What::MrSearchJob(job) => job.run(),
        What::DmrModel(model) => model.run(),
        What::Application { application } => application.run(),
    };
    gristmill_cli::run_command(run, |_, _, _| None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_of_the_command_line_are_consistent() {
        <Command as clap::CommandFactory>::command().debug_assert();
    }
}
