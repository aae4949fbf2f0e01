//! The statistics file of a run. `docs/statistics.md` explains each name.
//!
//! CSV has one row per number, `worker,role,name,value`, so a new counter does not move a column. The worker `job`
//! stands for the whole run. JSON has the same names, nested.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use gristmill::{COUNTS, NodeReads, PHASES, Summary, Worker};
use gristmill_apps::ThreadTime;
use gristmill_os::allocations::Allocations;
use serde_json::{Map, Value, json};

use crate::output::aside::Aside;
use crate::terminal::failure::Failure;
use crate::terminal::messages::printable;

/// The statistics file, written when the job has ended.
pub struct Stats {
    path: PathBuf,
    aside: Aside,
    write: fn(&[(&'static str, u64)], &Summary, &mut dyn Write) -> io::Result<()>,
}

impl Stats {
    /// Begins the file, so that a failure to write shows before the job begins.
    pub fn open(path: &Path) -> Result<Stats, Failure> {
        let write = match path.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => csv,
            Some("json") => json,
            _ => {
                return Err(Failure::Usage(format!(
                    "{} is neither .csv nor .json: --stats writes these",
                    path.display()
                )));
            }
        };
        let aside = Aside::create(path).map_err(|source| Failure::output(path, source))?;
        Ok(Stats { path: path.to_owned(), aside, write })
    }

    /// Writes the file. `files` is the number of files of the input, `bad_files` that of files set aside before the job.
    pub fn finish(self, summary: &Summary, files: u64, bad_files: u64) -> Result<(), Failure> {
        let Stats { path, aside, write } = self;
        let written = || -> io::Result<()> {
            let mut to = BufWriter::new(&aside.file);
            write(&of_job(summary, files, bad_files), summary, &mut to)?;
            to.flush()?;
            drop(to);
            aside.publish()
        };
        written().map_err(|source| Failure::output(path, source))
    }
}

/// The times of threads that did the work without the engine.
pub struct Threads<'t> {
    pub wall: Duration,
    pub input_bytes: u64,
    pub readers: &'t [ThreadTime],
    pub workers: &'t [ThreadTime],
}

impl Stats {
    /// Writes a file of the same form, with a row for each thread.
    pub fn finish_threads(self, threads: &Threads<'_>, files: u64) -> Result<(), Failure> {
        let Stats { path, aside, .. } = self;
        let of_job =
            [("wall_ns", threads.wall.as_nanos() as u64), ("input_bytes", threads.input_bytes), ("files", files)];
        let readers = threads.readers.iter().map(|time| ("reader", time));
        let all: Vec<_> = readers.chain(threads.workers.iter().map(|time| ("map", time))).zip(1..).collect();
        let phases = |time: &ThreadTime| {
            [("input", time.reading), ("map", time.computing), ("idle", time.waiting)]
                .map(|(name, time)| (name, time.as_nanos() as u64))
        };
        let written = || -> io::Result<()> {
            let mut to = BufWriter::new(&aside.file);
            if path.extension().is_some_and(|extension| extension == "csv") {
                writeln!(to, "worker,role,name,value")?;
                of_job.iter().try_for_each(|(name, value)| writeln!(to, "job,,{name},{value}"))?;
                for ((role, time), number) in &all {
                    phases(time).iter().try_for_each(|(name, ns)| writeln!(to, "{number},{role},{name}_ns,{ns}"))?;
                }
            } else {
                let job: Map<String, Value> =
                    of_job.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
                let worker = |((role, time), number): &((&str, &ThreadTime), u64)| {
                    let phases: Map<String, Value> =
                        phases(time).iter().map(|(name, ns)| ((*name).to_owned(), json!({ "ns": ns }))).collect();
                    json!({ "worker": number, "role": role, "phases": phases })
                };
                let workers: Vec<Value> = all.iter().map(worker).collect();
                serde_json::to_writer_pretty(&mut to, &json!({ "job": job, "workers": workers }))?;
                writeln!(to)?;
            }
            to.flush()?;
            drop(to);
            aside.publish()
        };
        written().map_err(|source| Failure::output(&path, source))
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

fn role(worker: &Worker) -> &'static str {
    match (worker.maps, worker.reduces) {
        (true, true) => "map+reduce",
        (true, false) => "map",
        (false, _) => "reduce",
    }
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
        let (number, role) = (worker.number, role(worker));
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
            json!({ "worker": worker.number, "role": role(worker), "phases": phases, "counts": counts })
        })
        .collect();
    serde_json::to_writer_pretty(&mut *to, &json!({ "job": job, "workers": workers }))?;
    writeln!(to)
}
