//! `gristmill-lab mr-search-job`: one run of a job, whose counts and costs it prints as one object.

use std::fs;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::thread;

use clap::{Args, ValueEnum};
use gristmill::Error;
use gristmill_cli::hand_over::wait;
use gristmill_cli::{Failure, print};
use gristmill_os::process::fork_worker;
use serde_json::{Value, json};

use super::exchange::in_messages::{InMessages, Lines};
use super::exchange::in_pages::{InPages, shared_pages};
use super::exchange::in_threads::{Grid, InThreads};
use super::jobs::{Search, SteppedJob, WordCount};
use super::steps::{self, WorkerReport};
use super::supply::{MemorySource, Pool, ROLES, Role, Supply};

/// Run a search of states or a word count with some source of memory and some exchange
///
/// A part of `gristmill-lab mr-search`.
#[derive(Args)]
pub struct JobRun {
    /// How workers give pairs to each other
    #[arg(long, value_enum)]
    exchange: Way,

    /// Where the memory of buffers, tables and lists comes from
    #[arg(long, value_enum)]
    memory: MemorySource,

    /// The number of workers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    workers: u32,

    /// For --memory prealloc, the words of a buffer, of a table and of a list
    #[arg(long, value_name = "N,N,N", value_delimiter = ',')]
    room: Vec<usize>,

    /// The rows and columns of the puzzle
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..=4))]
    side: u32,

    /// The depth of the search
    #[arg(long, value_name = "N", default_value_t = 31)]
    depth: u32,

    /// Count the words of this file instead
    #[arg(long, value_name = "FILE")]
    words: Option<PathBuf>,
}

/// A way for workers to give pairs to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Way {
    /// Threads: lists change hands
    Threads,
    /// Processes: pages of shared memory change hands
    Pages,
    /// Processes: messages through pipes
    Pipe,
    /// Processes: messages through Unix sockets
    Socket,
}

impl JobRun {
    pub fn run(&self) -> Result<(), Failure> {
        let reports = match &self.words {
            Some(path) => {
                let text = fs::read(path).map_err(|source| Error::Input { path: path.clone(), source })?;
                self.reports(&WordCount { text })
            }
            None => {
                let side = self.side as usize;
                self.reports(&Search { rows: side, columns: side, depth: self.depth as usize })
            }
        };
        let reports = reports.map_err(|source| Error::System { what: "running the job", source })?;
        print(sum(&reports).to_string())
    }

    /// Runs all workers.
    fn reports(&self, job: &impl SteppedJob) -> io::Result<Vec<WorkerReport>> {
        let workers = self.workers as usize;
        match self.exchange {
            Way::Threads => self.in_threads(job),
            Way::Pages => {
                let pages = shared_pages(workers)?;
                apart(
                    workers,
                    |worker, supply| {
                        let mut exchange = InPages::new(&pages, worker, self.memory)?;
                        self.prepare(supply, 0);
                        steps::run(job, worker, workers, &mut exchange, supply)
                    },
                    self.memory,
                )
            }
            Way::Pipe | Way::Socket => {
                raise_limit_of_files();
                let lines = Lines::open(workers, self.exchange == Way::Socket)?;
                apart(
                    workers,
                    |worker, supply| {
                        self.prepare(supply, 0);
                        steps::run(job, worker, workers, &mut InMessages::new(&lines, worker), supply)
                    },
                    self.memory,
                )
            }
        }
    }

    fn in_threads(&self, job: &impl SteppedJob) -> io::Result<Vec<WorkerReport>> {
        let workers = self.workers as usize;
        let (grid, pool) = (Grid::new(workers), Pool::default());
        let work = |worker| {
            steps::pin(worker)?;
            let [mut own, mut supply] = [(), ()].map(|()| Supply::new(self.memory, &pool));
            self.prepare(&mut supply, 0);
            // Two grids are in use at a time, and a third list is filled.
            self.prepare(&mut own, 3 * workers);
            let mut exchange = InThreads::new(&grid, worker, own);
            let mut report = steps::run(job, worker, workers, &mut exchange, &mut supply)?;
            report.most[Role::Buffer as usize] = exchange.supply.most()[Role::Buffer as usize];
            Ok(report)
        };
        let work = &work;
        thread::scope(|scope| {
            let all: Vec<_> = (0..workers).map(|worker| scope.spawn(move || work(worker))).collect();
            all.into_iter().map(|thread| thread.join().expect("no worker panics")).collect()
        })
    }

    /// Makes and touches the memory of a worker, if it is to be there before the search: this many buffers, or, for 0,
    /// tables and a list.
    fn prepare(&self, supply: &mut Supply<'_>, buffers: usize) {
        let (MemorySource::Prealloc, &[buffer, table, list]) = (self.memory, &self.room[..]) else { return };
        match buffers {
            0 => {
                supply.prepare(Role::Table, 2, table);
                supply.prepare(Role::List, 1, list);
            }
            _ => supply.prepare(Role::Buffer, buffers, buffer),
        }
    }
}

/// Runs each worker in a process of its own, and collects their reports.
fn apart(
    workers: usize,
    work: impl Fn(usize, &mut Supply<'_>) -> io::Result<WorkerReport>,
    source: MemorySource,
) -> io::Result<Vec<WorkerReport>> {
    let (mut from, to) = io::pipe()?;
    let one = |worker: usize| -> io::Result<()> {
        steps::pin(worker)?;
        let pool = Pool::default();
        let report = work(worker, &mut Supply::new(source, &pool))?;
        // At most 4096 bytes, so that reports do not mix.
        (&to).write_all(format!("{}\n", row(&report)).as_bytes())
    };
    let status = |outcome: io::Result<()>| outcome.map_or_else(|error| error.raw_os_error().unwrap_or(1), |()| 0);
    let children: Result<Vec<_>, _> = (0..workers).map(|worker| fork_worker(|| status(one(worker)))).collect();
    wait(children.map_err(io::Error::other)?)?;
    drop(to);
    let mut rows = String::new();
    from.read_to_string(&mut rows)?;
    let reports: Option<Vec<WorkerReport>> = rows.lines().map(of_row).collect();
    let reports = reports.filter(|reports| reports.len() == workers);
    reports.ok_or_else(|| io::Error::other("a worker has not reported"))
}

/// Lets this process open as many files as it may.
fn raise_limit_of_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Should it fail, opening a pipe fails, and says so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Formats a report as numbers.
fn row(report: &WorkerReport) -> String {
    let WorkerReport { keys, sum, steps_us, faults, user_us, system_us, placed, most } = report;
    let of_all = [*sum, *steps_us, *faults, *user_us, *system_us];
    let placed = placed.map_or([u64::MAX; 2], |bytes| bytes);
    let numbers = of_all.into_iter().chain(placed).chain(most.map(|words| words as u64)).chain(keys.iter().copied());
    numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
}

fn of_row(row: &str) -> Option<WorkerReport> {
    let numbers: Vec<u64> = row.split(' ').map(|number| number.parse().ok()).collect::<Option<_>>()?;
    let (&[sum, steps_us, faults, user_us, system_us, placed, remote], rest) = numbers.split_first_chunk::<7>()?;
    let (most, keys) = rest.split_first_chunk::<ROLES>()?;
    Some(WorkerReport {
        keys: keys.to_vec(),
        sum,
        steps_us,
        faults,
        user_us,
        system_us,
        placed: (placed != u64::MAX).then_some([placed, remote]),
        most: most.map(|words| words as usize),
    })
}

/// Adds up the reports of all workers.
fn sum(reports: &[WorkerReport]) -> Value {
    let total = |of: fn(&WorkerReport) -> u64| reports.iter().map(of).sum::<u64>();
    let steps = reports.iter().map(|report| report.keys.len()).max().unwrap_or(0);
    let keys: Vec<u64> = (0..steps).map(|step| reports.iter().map(|report| report.keys[step]).sum()).collect();
    let placed: Option<Vec<[u64; 2]>> = reports.iter().map(|report| report.placed).collect();
    let of_placed = |at: usize| placed.as_ref().map(|all| all.iter().map(|bytes| bytes[at]).sum::<u64>());
    let most = |role: Role| reports.iter().map(|report| report.most[role as usize]).max();
    json!({
        "keys": keys,
        "sum": total(|report| report.sum),
        "steps_ms": reports.iter().map(|report| report.steps_us).max().unwrap_or(0) as f64 / 1e3,
        "faults": total(|report| report.faults),
        "user_ms": total(|report| report.user_us) as f64 / 1e3,
        "system_ms": total(|report| report.system_us) as f64 / 1e3,
        "placed_bytes": of_placed(0),
        "remote_bytes": of_placed(1),
        "room": [most(Role::Buffer), most(Role::Table), most(Role::List)],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives_its_way_through_a_pipe() {
        let report = WorkerReport {
            keys: vec![1, 2, 4],
            sum: 7,
            steps_us: 8,
            faults: 9,
            user_us: 10,
            system_us: 11,
            placed: Some([8192, 4096]),
            most: [12, 13, 14],
        };
        assert_eq!(of_row(&row(&report)), Some(report.clone()));
        let unknown = WorkerReport { placed: None, ..report.clone() };
        assert_eq!(of_row(&row(&unknown)), Some(unknown.clone()));
        assert_eq!(of_row("1 2 x"), None);
        let all = sum(&[report, unknown]);
        assert_eq!((&all["keys"], &all["remote_bytes"]), (&json!([2, 4, 8]), &Value::Null));
        assert_eq!((&all["sum"], &all["room"]), (&json!(14), &json!([12, 13, 14])));
    }

    /// An exchange that loses or doubles a pair makes another count, whatever the memory.
    #[test]
    fn threads_with_any_memory_count_the_known_states() {
        for memory in [MemorySource::Malloc, MemorySource::Reuse, MemorySource::Pool, MemorySource::Prealloc] {
            let run = JobRun {
                exchange: Way::Threads,
                memory,
                workers: 3,
                room: vec![20_000, 100_000, 50_000],
                side: 3,
                depth: 20,
                words: None,
            };
            let reports = run.reports(&Search { rows: 3, columns: 3, depth: 20 }).expect("it runs");
            assert_eq!(sum(&reports)["keys"], json!(super::super::jobs::STATES_OF_8[..21]), "{memory:?}");
        }
    }
}
