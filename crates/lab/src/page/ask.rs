//! The options that all pages have.

use std::path::PathBuf;

use clap::Args;

/// The options of a page.
#[derive(Args)]
pub struct Ask {
    /// Only this figure of the paper
    #[arg(long, value_name = "N", group = "only")]
    figure: Option<u32>,

    /// Only this table of the paper
    #[arg(long, value_name = "N", group = "only")]
    table: Option<u32>,

    /// Only this slide, for a paper that is a talk
    #[arg(long, value_name = "N", group = "only")]
    slide: Option<u32>,

    /// Only this section of the paper, such as 4.2
    #[arg(long, value_name = "N", group = "only")]
    section: Option<String>,

    /// How often each measurement is repeated; fewer than three give no verdict
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,

    /// Small input: a first look in a minute or two, whose verdicts say little
    #[arg(long)]
    pub quick: bool,

    /// Write the page (page.md), its pictures and its rows into this directory
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

impl Ask {
    /// Returns the label of the one item that is asked for, or nothing if all are.
    pub fn only(&self) -> Option<String> {
        let kinds = [("figure", self.figure), ("table", self.table), ("slide", self.slide)];
        let numbered = kinds.iter().find_map(|(kind, number)| number.map(|number| format!("{kind} {number}")));
        numbered.or_else(|| self.section.as_ref().map(|number| format!("section {number}")))
    }
}
