//! How a job runs: options that every subcommand understands.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use gristmill::{Job, MapReduce};

use crate::options::units;

/// How the job runs, and what is told about it.
#[derive(Args)]
pub struct JobOptions {
    /// Workers that both map and reduce [default: one per processor this process may use]
    #[arg(long, short = 'j', value_name = "N", value_parser = up_to(1024), help_heading = WORKERS)]
    workers: Option<usize>,

    /// Workers that only map, in a job where others only reduce [default: half the processors]
    #[arg(long, value_name = "N", value_parser = up_to(1024), conflicts_with = "workers", help_heading = WORKERS)]
    map_workers: Option<usize>,

    /// Workers that only reduce, in a job where others only map [default: half the processors]
    #[arg(long, value_name = "N", value_parser = up_to(1024), conflicts_with = "workers", help_heading = WORKERS)]
    reduce_workers: Option<usize>,

    /// Workers that map at the same time; the others reduce, and replace those that die [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = up_to(1024), help_heading = WORKERS)]
    map_at_once: Option<usize>,

    /// What a worker is
    #[arg(long, value_enum, default_value_t, help_heading = WORKERS)]
    isolation: Isolation,

    /// How often to retry a task whose worker died before the job fails
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = WORKERS)]
    retries: u32,

    /// Kill a worker whose task takes longer than this, e.g. 30s, or that is stopped for as long [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = units::duration, help_heading = WORKERS)]
    task_timeout: Option<Duration>,

    /// How many workers may die before the job fails [default: 32, or the number of workers if that is more]
    #[arg(long, value_name = "N", help_heading = WORKERS)]
    max_failures: Option<u32>,

    /// Set aside up to N records that the map function rejects, crashes on or (with --task-timeout) never returns from, and
    /// give the result of the others. A record that needs more memory, or is longer, than this run allows ends the job
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = WORKERS)]
    pub skip_bad_records: u32,

    /// Where to list records and files that were set aside, with place and cause, as JSON lines [default: the name of
    /// --output followed by .bad.jsonl, or bad-records.jsonl]
    #[arg(long, value_name = "FILE", help_heading = WORKERS)]
    pub bad_records: Option<PathBuf>,

    /// Keep finished work in this folder: the same command, run again, continues where this one stopped. The folder is made
    /// for this user alone, and removed when the result is complete
    #[arg(long, value_name = "DIR", help_heading = WORKERS)]
    pub checkpoint: Option<PathBuf>,

    /// About how much work a crash may cost
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "10s", requires = "checkpoint",
        help_heading = WORKERS)]
    pub checkpoint_every: Duration,

    /// When reducers begin
    #[arg(long, value_enum, default_value_t, help_heading = DATA_FLOW)]
    exchange: Exchange,

    /// How the map function's pairs are gathered before they go to pages
    #[arg(long, value_enum, default_value_t, help_heading = DATA_FLOW)]
    buffer: Buffer,

    /// Where the values of one key are combined
    #[arg(long, value_enum, default_value_t, help_heading = DATA_FLOW)]
    combine: Combine,

    /// With --combine map or off: still combine in reduce once a key has more values than this
    #[arg(long, value_name = "N", help_heading = DATA_FLOW)]
    combine_after: Option<u32>,

    /// Where the memory of pages comes from
    #[arg(long, value_enum, default_value_t, help_heading = DATA_FLOW)]
    pages: Pages,

    /// Size of a page, a multiple of 4KiB up to 64MiB [default: by the number of workers]
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = DATA_FLOW)]
    page_bytes: Option<usize>,

    /// Partitions of the keys, rounded up to a power of two [default: 64, or 2 for each reducer if that is more]
    #[arg(long, value_name = "N", value_parser = up_to(4096),
        help_heading = DATA_FLOW)]
    partitions: Option<usize>,

    /// Approximate input bytes of a map task [default: by the size of the input and the time that a byte takes]
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = DATA_FLOW)]
    split_bytes: Option<usize>,

    /// Approximate input bytes of one call of the map function [default: 256KiB]
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = DATA_FLOW)]
    chunk_bytes: Option<usize>,

    /// Plan without a sample: no part of the input is mapped before the job begins
    #[arg(long, help_heading = DATA_FLOW)]
    no_sample: bool,

    /// Print to standard error how the job is planned, and why; then run it
    #[arg(long, help_heading = REPORTS)]
    pub explain: bool,

    /// Memory for all processes of the job together, e.g. 2GiB; data that does not fit is spilled to disk, and what cannot be
    /// spilled (a decoded picture, a matrix, the window of a compressed file) is refused [default: half of what is
    /// available]
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = MEMORY)]
    pub memory: Option<usize>,

    /// A folder to spill to. If several are given, best on different disks, they are used in turn. The first also takes
    /// copies of pipes, in full [default: the folder for temporary files]
    #[arg(long = "spill-dir", value_name = "DIR", help_heading = MEMORY)]
    pub spill_dirs: Vec<PathBuf>,

    /// Make sums of fractions the same to the last digit on every run, and cut the input into the same tasks for any number of
    /// workers. Sums of numbers without a point are exact even without this option. group-by takes up to a fifth more time
    #[arg(long, help_heading = DATA_FLOW)]
    pub deterministic: bool,

    /// Write times, calls and counts of every worker and phase to a .csv or .json file
    #[arg(long, value_name = "FILE", help_heading = REPORTS)]
    pub stats: Option<PathBuf>,

    /// Print errors only: no progress bar, no summary, no notes
    #[arg(long, short, help_heading = REPORTS)]
    pub quiet: bool,
}

const WORKERS: &str = "Workers";
const DATA_FLOW: &str = "Data flow (each strategy can be switched on its own)";
const MEMORY: &str = "Memory";
const REPORTS: &str = "Reports";

/// A number from 1 to `most`.
fn up_to(most: i64) -> impl clap::builder::TypedValueParser<Value = usize> {
    use clap::builder::TypedValueParser;
    clap::value_parser!(u16).range(1..=most).map(usize::from)
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum Isolation {
    /// A process of its own: the job survives its crash
    #[default]
    Process,
    /// A thread of this process
    Thread,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum Exchange {
    /// With the first page that arrives
    #[default]
    Pipelined,
    /// When everything is mapped
    Barrier,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum Buffer {
    /// Dense or hash if values are combined in map, otherwise array
    #[default]
    Auto,
    /// Append only
    Array,
    /// A combining table
    Hash,
    /// A plain array, for programs whose keys are small numbers
    Dense,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum Combine {
    /// In map and as pages arrive
    #[default]
    Both,
    /// Before values are sent, and once at the end
    Map,
    /// As pages arrive
    Reduce,
    /// Once at the end
    Off,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum Pages {
    /// Returned to the kernel after each use
    Fresh,
    /// Reused
    #[default]
    Reuse,
    /// Faulted in before the first task, then reused
    Prealloc,
}

impl JobOptions {
    /// How many workers there shall be, of all kinds, if somebody says it.
    pub fn workers(&self) -> Option<usize> {
        let apart = [self.map_workers, self.reduce_workers].into_iter().flatten().reduce(|map, reduce| map + reduce);
        self.workers.or(apart)
    }

    /// The folder for copies of pipes.
    pub fn spool_dir(&self) -> Option<&Path> {
        self.spill_dirs.first().map(PathBuf::as_path)
    }

    /// The job, told to run this way.
    pub fn apply<'j, J: MapReduce>(&self, mut job: Job<'j, J>) -> Job<'j, J> {
        if let Some(workers) = self.workers {
            job = job.workers(workers);
        }
        if let Some(workers) = self.map_workers {
            job = job.map_workers(workers);
        }
        if let Some(workers) = self.reduce_workers {
            job = job.reduce_workers(workers);
        }
        if let Some(bytes) = self.page_bytes {
            job = job.page_bytes(bytes);
        }
        if let Some(values) = self.combine_after {
            job = job.combine_after(values);
        }
        if let Some(bytes) = self.split_bytes {
            job = job.split_bytes(bytes as u64);
        }
        if let Some(bytes) = self.chunk_bytes {
            job = job.chunk_bytes(bytes);
        }
        if let Some(partitions) = self.partitions {
            job = job.partitions(partitions);
        }
        if let Some(workers) = self.map_at_once {
            job = job.mapping_at_once(workers);
        }
        if let Some(bytes) = self.memory {
            job = job.memory(bytes);
        }
        if !self.spill_dirs.is_empty() {
            job = job.spill_dirs(&self.spill_dirs);
        }
        if let Some(timeout) = self.task_timeout {
            job = job.task_timeout(timeout);
        }
        if let Some(failures) = self.max_failures {
            job = job.max_failures(failures);
        }
        job.retries(self.retries)
            .skip_bad_records(self.skip_bad_records)
            .sample(!self.no_sample)
            .deterministic(self.deterministic)
            .isolation(match self.isolation {
                Isolation::Process => gristmill::Isolation::Process,
                Isolation::Thread => gristmill::Isolation::Thread,
            })
            .exchange(match self.exchange {
                Exchange::Pipelined => gristmill::Exchange::Pipelined,
                Exchange::Barrier => gristmill::Exchange::Barrier,
            })
            .buffer(match self.buffer {
                Buffer::Auto => gristmill::Buffer::Auto,
                Buffer::Array => gristmill::Buffer::Array,
                Buffer::Hash => gristmill::Buffer::Hash,
                Buffer::Dense => gristmill::Buffer::Dense,
            })
            .combine(match self.combine {
                Combine::Both => gristmill::Combining::Both,
                Combine::Map => gristmill::Combining::Map,
                Combine::Reduce => gristmill::Combining::Reduce,
                Combine::Off => gristmill::Combining::Off,
            })
            .pages(match self.pages {
                Pages::Fresh => gristmill::PagePolicy::Fresh,
                Pages::Reuse => gristmill::PagePolicy::Reuse,
                Pages::Prealloc => gristmill::PagePolicy::Prealloc,
            })
    }
}
