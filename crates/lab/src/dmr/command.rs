//! `gristmill-lab dmr`: the page of DMR.

use clap::{Args, ValueEnum};
use gristmill_cli::Failure;

use super::experiments::Experiments;
use super::paper::PAPER;
use crate::compare::machine::MachineFacts;
use crate::generate::Size;
use crate::page::Ask;

/// Ask every figure and table of DMR (Yu and Zhang 2017) again, on this machine
///
/// Prints a page: what the paper found, what was found here, and whether both agree.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Dmr {
    #[command(flatten)]
    ask: Ask,

    /// The size of the input
    #[arg(long, value_enum, default_value_t, conflicts_with = "quick")]
    size: InputSize,
}

const EXAMPLES: &str = "\
Examples:
  gristmill-lab dmr --quick                       a first look, one or two minutes
  gristmill-lab dmr --figure 11                   one figure
  gristmill-lab dmr --size paper --output page    input of the paper's size: hours, and 10 GB of memory and disk";

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum InputSize {
    /// Smaller: 8 to 200 MB for each application
    #[default]
    Smaller,
    /// That of the paper's table 1
    Paper,
}

impl Dmr {
    pub fn run(&self) -> Result<(), Failure> {
        let size = match (self.ask.quick, self.size) {
            (true, _) => Size::Small,
            (false, InputSize::Smaller) => Size::Medium,
            (false, InputSize::Paper) => Size::Large,
        };
        let mut experiments = Experiments::new(size, self.ask.rounds, MachineFacts::here().processors);
        PAPER.answer(&self.ask, &mut experiments)
    }
}
