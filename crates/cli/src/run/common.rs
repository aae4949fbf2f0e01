//! What every subcommand understands: which input, where the result goes, how the job runs.

use clap::Args;

use crate::options::inputs::Inputs;
use crate::options::job_options::JobOptions;
use crate::output::destination::Destination;

/// The options that all subcommands share.
#[derive(Args)]
pub struct Common {
    #[command(flatten)]
    pub inputs: Inputs,

    #[command(flatten)]
    pub destination: Destination,

    #[command(flatten)]
    pub job: JobOptions,
}
