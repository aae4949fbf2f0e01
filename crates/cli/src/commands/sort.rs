//! `gristmill sort`: sorts lines or records within any memory budget.

use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gristmill::sinks::{Row, Target};
use gristmill::{Job, MapReduce, Order, Records};
use gristmill_apps::{SortLines, SortLinesBy, SortTera, TERA_RECORDS};

use crate::options::inputs::INPUT;
use crate::options::text::Text;
use crate::output::destination::{RESULT, Raw};
use crate::output::outputs::Outputs;
use crate::output::parts::Parts;
use crate::run::common_options::CommonOptions;
use crate::run::job_runner::JobRunner;
use crate::terminal::failure::Failure;

/// Sort lines, or TeraSort records, byte by byte
///
/// Data that does not fit --memory is spilled to --spill-dir and merged. The order is that of LC_ALL=C sort: lines
/// that agree in their key are ordered by all of their bytes.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Sort {
    /// The records to sort
    #[arg(long, value_enum, default_value_t, help_heading = INPUT)]
    records: RecordFormat,

    /// Sort by these bytes of a line, e.g. 0..10; the first is 0, the last is not included
    #[arg(long, value_name = "A..B", value_parser = range, conflicts_with = "records", help_heading = INPUT)]
    key_bytes: Option<(usize, usize)>,

    #[command(flatten)]
    text: Text,

    /// Write the result to this new folder: files that follow each other in order, part-00000 and so on, and
    /// manifest.json, which has the records, bytes, checksum, first and last key of each. It appears when it is whole
    #[arg(long, value_name = "DIR", conflicts_with_all = ["output", "checkpoint"], help_heading = RESULT)]
    parts: Option<PathBuf>,

    #[command(flatten)]
    common: CommonOptions,
}

const EXAMPLES: &str = "\
Examples:
  gristmill sort --memory 1GiB --spill-dir /mnt/fast big.txt > sorted.txt
  gristmill sort --parts sorted big.txt && cat sorted/part-* | cmp - sorted.txt
  gristmill-lab terasort generate 10000000 -o tera && gristmill sort --records terasort tera | gristmill-lab terasort validate";

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum RecordFormat {
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
        if self.records == RecordFormat::Terasort && self.text.is_named() {
            return Err(Failure::Usage("TeraSort records are no text: leave out --encoding".to_owned()));
        }
        match (self.records, self.key_bytes) {
            (RecordFormat::Terasort, _) => self.sort(&SortTera, TERA_RECORDS),
            (RecordFormat::Lines, Some((from, to))) => self.sort(&SortLinesBy { from, to }, Records::Lines),
            (RecordFormat::Lines, None) => self.sort(&SortLines, Records::Lines),
        }
    }

    fn sort<J: MapReduce + Row<J::Key, J::Value>>(&self, program: &J, records: Records) -> Result<(), Failure> {
        let mut outputs = Outputs::begin(self.common.destination.path()).in_place();
        if let Some(dir) = &self.parts {
            outputs.folder("--parts", dir);
        }
        self.common.job.engine().spill_dirs().for_each(|dir| outputs.scratch("--spill-dir", dir));
        let runs = JobRunner::with_outputs(&self.common, outputs)?;
        let destination = match &self.parts {
            Some(dir) => Raw::Parts(Parts::begin(dir)?),
            None => self.common.destination.open_raw(self.common.job.checkpoint.is_some())?,
        };
        let input = match self.records {
            RecordFormat::Lines => runs.text(&self.text)?,
            RecordFormat::Terasort => runs.input()?,
        };
        let job = Job::new(program, input).records(records).order(Order::ByKey);
        let summary = match destination {
            Raw::Stream(mut to) => {
                let (mut written, mut bytes) = (Ok(()), Vec::new());
                let summary = runs.run_while(job, |key, value| {
                    bytes.clear();
                    program.write(key, value, &mut bytes);
                    written = to.write(&bytes);
                    if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                })?;
                to.finish(written)?;
                summary
            }
            Raw::File(to) => {
                let target = Target::File { file: to.file(), start: to.start };
                let (parts, summary) = runs.write_rows(job, &to.name, target, program)?;
                to.finish(parts.iter().map(|part| part.bytes).sum())?;
                summary
            }
            Raw::Parts(mut to) => {
                let dir = to.dir.clone();
                let (parts, summary) =
                    runs.write_rows(job, &dir, Target::Parts(&mut |count| to.make(count)), program)?;
                to.finish(&parts)?;
                summary
            }
        };
        runs.finish(&summary, "records", "sorted")
    }
}
