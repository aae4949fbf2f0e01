//! `gristmill sort`: lines or records in order, whatever memory there is.

use std::ops::ControlFlow;

use clap::{Args, ValueEnum};
use gristmill::{Datum, Job, MapReduce, Order, Records};
use gristmill_apps::{SortLines, SortLinesBy, SortTera, TERA_RECORDS};

use crate::common::Common;
use crate::failure::Failure;
use crate::inputs::INPUT;
use crate::output::Output;
use crate::runs::Runs;

/// Sort lines, or TeraSort records, byte by byte
///
/// What does not fit --memory is spilled to --spill-dir and merged. The order is that of LC_ALL=C sort: lines
/// that agree in their key are ordered by all of their bytes.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Sort {
    /// What is sorted
    #[arg(long, value_enum, default_value_t, help_heading = INPUT)]
    records: Kind,

    /// Sort by these bytes of a line, e.g. 0..10; the first is 0, the last is not included
    #[arg(long, value_name = "A..B", value_parser = range, conflicts_with = "records", help_heading = INPUT)]
    key_bytes: Option<(usize, usize)>,

    #[command(flatten)]
    common: Common,
}

const EXAMPLES: &str = "\
Examples:
  gristmill sort --memory 1GiB --spill-dir /mnt/fast big.txt > sorted.txt
  gristmill terasort generate 10000000 -o tera && gristmill sort --records terasort tera | gristmill terasort validate";

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Lines; the last one gets an end if it has none
    #[default]
    Lines,
    /// Records of 100 bytes, by their first ten
    Terasort,
}

fn range(text: &str) -> Result<(usize, usize), String> {
    let numbers = text.split_once("..").and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    match numbers {
        Some((from, to)) if from < to => Ok((from, to)),
        Some((from, to)) => Err(format!("no byte lies in {from}..{to}")),
        None => Err("a range of bytes is two numbers, like 0..10".to_owned()),
    }
}

impl Sort {
    pub fn run(&self) -> Result<(), Failure> {
        let line = |output: &mut Output, line: &[u8]| output.bytes(&[line, b"\n"]);
        match (self.records, self.key_bytes) {
            (Kind::Terasort, _) => self.sort(&SortTera, TERA_RECORDS, |output, key, value| output.bytes(&[key, value])),
            (Kind::Lines, Some((from, to))) => {
                self.sort(&SortLinesBy { from, to }, Records::Lines, |output, _, text| line(output, text))
            }
            (Kind::Lines, None) => self.sort(&SortLines, Records::Lines, |output, text, ()| line(output, text)),
        }
    }

    fn sort<J: MapReduce>(
        &self,
        program: &J,
        records: Records,
        mut write: impl FnMut(&mut Output, <J::Key as Datum>::Ref<'_>, <J::Value as Datum>::Ref<'_>) -> std::io::Result<()>,
    ) -> Result<(), Failure> {
        let runs = Runs::new(&self.common)?;
        let mut output = self.common.destination.open_plain()?;
        let job = Job::new(program, self.common.inputs.input()?).records(records).order(Order::ByKey);
        let mut written = Ok(());
        let summary = runs.run_while(job, |key, value| {
            written = write(&mut output, key, value);
            if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        output.finish(written)?;
        runs.finish(&summary, "records", "sorted")
    }
}
