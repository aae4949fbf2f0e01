//! The options of every subcommand: input, destination, and job.

use clap::Args;

use crate::options::inputs::Inputs;
use crate::options::job_options::JobOptions;
use crate::output::destination::Destination;

/// The options that all subcommands share.
#[derive(Args)]
pub struct CommonOptions {
    /// The input of the subcommand.
    #[command(flatten)]
    pub inputs: Inputs,

    /// Where the result goes.
    #[command(flatten)]
    pub destination: Destination,

    /// How its job runs.
    #[command(flatten)]
    pub job: JobOptions,
}
