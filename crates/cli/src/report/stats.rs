//! The statistics file of a run. `docs/statistics.md` explains each name.
//!
//! CSV has one row per number, `worker,role,name,value`, so a new counter does not move a column. The worker `job`
//! stands for the whole run. JSON has the same names, nested.

use std::io::{self, Write};
use std::path::Path;

use gristmill::Summary;
use gristmill::stats::{COUNTS, NodeReads, PHASES};
use gristmill_os::allocations::Allocations;
use gristmill_report::timeline::role;
use serde_json::{Map, Value, json};

use crate::output::side_files::WholeFile;
use crate::terminal::failure::Failure;
use crate::terminal::messages::printable;

/// The statistics file, written when the job has ended.
pub struct Stats {
    file: WholeFile,
    form: Form,
}

/// The form of a statistics file.
#[derive(Clone, Copy)]
pub enum Form {
    /// A row for each number.
    Csv,
    /// One object.
    Json,
}

impl Stats {
    /// Begins the file, so that a failure to write shows before the job begins.
    pub fn open(path: &Path) -> Result<Stats, Failure> {
        let form = match path.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => Form::Csv,
            Some("json") => Form::Json,
            _ => {
                return Err(Failure::Usage(format!(
                    "{} is neither .csv nor .json: --stats writes these",
                    path.display()
                )));
            }
        };
        Ok(Stats { file: WholeFile::begin(path)?, form })
    }

    /// Writes the file. `files` is the number of files of the input, `bad_files` that of files set aside before the
    /// job.
    pub fn finish(self, summary: &Summary, files: u64, bad_files: u64) -> Result<(), Failure> {
        let of_job = of_job(summary, files, bad_files);
        self.write(|form, to| match form {
            Form::Csv => csv(&of_job, summary, to),
            Form::Json => json(&of_job, summary, to),
        })
    }

    /// Writes the file by a function.
    pub fn write(self, write: impl FnOnce(Form, &mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        self.file.write(|to| write(self.form, to))
    }
}

/// Returns the numbers of the whole run.
fn of_job(summary: &Summary, files: u64, bad_files: u64) -> [(&'static str, u64); 15] {
    let Allocations { count, bytes } = Allocations::of_thread();
    [
        ("wall_ns", summary.wall_ns),
        ("started_ns", summary.start_ns),
        ("input_bytes", summary.input_bytes),
        ("files", files),
        ("memory_bytes", summary.memory_bytes),
        ("tasks", summary.tasks as u64),
        ("resumed_tasks", summary.resumed_tasks as u64),
        ("pairs", summary.pairs),
        ("steps", u64::from(summary.steps)),
        ("rounds", u64::from(summary.rounds)),
        ("deaths", summary.deaths.len() as u64),
        ("bad_records", summary.bad_records.len() as u64),
        ("bad_files", bad_files),
        ("allocations", count),
        ("allocated_bytes", bytes),
    ]
}

fn csv(of_job: &[(&'static str, u64)], summary: &Summary, to: &mut dyn Write) -> io::Result<()> {
    writeln!(to, "worker,role,name,value")?;
    for (name, value) in of_job {
        writeln!(to, "job,,{name},{value}")?;
    }
    for NodeReads { memory, reader, bytes } in &summary.node_reads {
        writeln!(to, "job,,node_{memory}_read_by_{reader}_bytes,{bytes}")?;
    }
    for worker in &summary.workers {
        let (number, role) = (worker.number, role(worker.maps, worker.reduces));
        for phase in PHASES {
            writeln!(to, "{number},{role},{}_ns,{}", phase.name(), worker.counters.time_ns(phase))?;
            writeln!(to, "{number},{role},{}_calls,{}", phase.name(), worker.counters.calls(phase))?;
        }
        for count in COUNTS {
            writeln!(to, "{number},{role},{},{}", count.name(), worker.counters.get(count))?;
        }
    }
    Ok(())
}

fn json(of_job: &[(&'static str, u64)], summary: &Summary, to: &mut dyn Write) -> io::Result<()> {
    let mut job: Map<String, Value> =
        of_job.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
    // The texts name files, and JSON only escapes the first 32 control characters.
    let deaths: Vec<String> = summary.deaths.iter().map(|death| printable(death)).collect();
    job.insert("deaths".into(), json!(deaths));
    let reads = summary
        .node_reads
        .iter()
        .map(|NodeReads { memory, reader, bytes }| json!({ "memory": memory, "reader": reader, "bytes": bytes }));
    job.insert("node_reads".into(), reads.collect());
    let workers: Vec<Value> = summary
        .workers
        .iter()
        .map(|worker| {
            let counters = &worker.counters;
            let phases: Map<String, Value> = PHASES
                .map(|phase| {
                    let times = json!({ "ns": counters.time_ns(phase), "calls": counters.calls(phase) });
                    (phase.name().to_owned(), times)
                })
                .into_iter()
                .collect();
            let counts: Map<String, Value> =
                COUNTS.map(|count| (count.name().to_owned(), counters.get(count).into())).into_iter().collect();
            json!({ "worker": worker.number, "role": role(worker.maps, worker.reduces), "phases": phases, "counts": counts })
        })
        .collect();
    serde_json::to_writer_pretty(&mut *to, &json!({ "job": job, "workers": workers }))?;
    writeln!(to)
}
