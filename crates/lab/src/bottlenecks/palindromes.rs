//! `gristmill-lab palindromes`: counts with readers and workers, and writes where their time went.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use clap::Args;
use gristmill_cli::{Algorithm, ColumnType, CommonOptions, Failure, Field, Form, JobRunner, Text};
use gristmill_cli::{tell_notes, too_large};
use serde_json::{Map, Value, json};

use super::rounds::{Counted, Rounds, ThreadTime};

/// Count palindromes with readers and workers as in thread bottlenecks (Chen 2020)
///
/// Readers and workers are threads. Prints the count of all files together. No other job option applies.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Palindromes {
    /// How many threads read, in rounds, and wake --workers others that count [default workers: the processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    readers: u32,

    /// The files that each reader reads in a round [default: all, in one round]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    chunk_files: Option<u32>,

    /// How palindromes are found
    #[arg(long, value_enum, default_value_t)]
    algorithm: Algorithm,

    #[command(flatten)]
    text: Text,

    #[command(flatten)]
    common: CommonOptions,
}

const EXAMPLES: &str = "\
Examples:
  gristmill-lab palindromes --readers 2 --chunk-files 25 --stats times.csv notes
  gristmill scale --vary readers=1,2,4 --vary chunk-files=25,250 -- \\
    gristmill-lab palindromes --workers {workers} --readers {readers} --chunk-files {chunk-files} notes";

/// The job options that apply: the others are for a job, and there is none.
const OF_THREADS: [&str; 4] = ["workers", "memory", "spill-dir", "keep-free"];

impl Palindromes {
    pub fn run(&self) -> Result<(), Failure> {
        let options = self.common.job.engine();
        let ignored = options.names().filter(|name| !OF_THREADS.contains(name));
        let ignored: Vec<String> = ignored
            .map(|name| format!("--{name} is ignored: --readers counts with threads, and without a job"))
            .collect();
        tell_notes(&ignored, self.common.job.quiet);
        let runs = JobRunner::new(&self.common)?;
        let mut input = runs.text(&self.text)?;
        let sources = input.sources()?;
        let began = Instant::now();
        let readers = self.readers as usize;
        let rounds = Rounds {
            readers,
            workers: options.workers().unwrap_or(gristmill_os::machine::processors().usable),
            chunk_files: self.chunk_files.map_or(sources.len().div_ceil(readers).max(1), |files| files as usize),
        };
        let program = gristmill_apps::Palindromes::new(self.algorithm.into());
        let counted = rounds.run(|text| program.in_text(text), sources)?;
        let wall = began.elapsed();
        let mut output =
            self.common.destination.open([ColumnType::Text.named("name"), ColumnType::Integer.named("palindromes")])?;
        let total = gristmill_apps::Palindromes::total(counted.files.iter().copied());
        let total = total.map_err(|why| too_large("total", why))?;
        let written = output.row(&[Field::Bytes(b"total"), Field::Integer(total)]);
        output.finish(written)?;
        let Some(stats) = runs.into_stats() else { return Ok(()) };
        let input_bytes = sources.iter().map(|source| source.bytes).sum();
        stats.write(|form, to| write_times(form, &counted, wall, input_bytes, to))
    }
}

/// Writes the times of all threads in the form of a job's statistics (docs/statistics.md).
fn write_times(form: Form, counted: &Counted, wall: Duration, input_bytes: u64, to: &mut dyn Write) -> io::Result<()> {
    let of_run =
        [("wall_ns", wall.as_nanos() as u64), ("input_bytes", input_bytes), ("files", counted.files.len() as u64)];
    let readers = counted.readers.iter().map(|time| ("reader", time));
    let threads = readers.chain(counted.workers.iter().map(|time| ("map", time))).zip(1_u64..);
    let phases = |time: &ThreadTime| {
        [("input", time.reading), ("map", time.computing), ("idle", time.waiting)]
            .map(|(name, time)| (name, time.as_nanos() as u64))
    };
    match form {
        Form::Csv => {
            writeln!(to, "worker,role,name,value")?;
            of_run.iter().try_for_each(|(name, value)| writeln!(to, "job,,{name},{value}"))?;
            for ((role, time), number) in threads {
                phases(time).iter().try_for_each(|(name, ns)| writeln!(to, "{number},{role},{name}_ns,{ns}"))?;
            }
            Ok(())
        }
        Form::Json => {
            let object = |pairs: &mut dyn Iterator<Item = (&str, Value)>| -> Map<String, Value> {
                pairs.map(|(name, value)| (name.to_owned(), value)).collect()
            };
            let workers: Vec<Value> = threads
                .map(|((role, time), number)| {
                    let phases = object(&mut phases(time).into_iter().map(|(name, ns)| (name, json!({ "ns": ns }))));
                    json!({ "worker": number, "role": role, "phases": phases })
                })
                .collect();
            let job = object(&mut of_run.into_iter().map(|(name, value)| (name, value.into())));
            serde_json::to_writer_pretty(&mut *to, &json!({ "job": job, "workers": workers }))?;
            writeln!(to)
        }
    }
}
