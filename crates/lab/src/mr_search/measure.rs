//! Runs of this room's jobs as programs: with each source of memory, each exchange and each number of workers, in turn.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use gristmill::Error;
use gristmill_cli::Failure;
use gristmill_os::usage::Usage;
use serde_json::Value;

use super::allocator::ALLOCATORS;
use super::job::Way;
use super::jobs::{STATES_OF_8, STATES_OF_15};
use super::supply::MemorySource;
use crate::generate::name;
use crate::page::Turns;

/// A source of memory, and the allocator under it.
#[derive(Clone, Debug)]
pub struct Memory {
    pub name: &'static str,
    source: MemorySource,
    preload: Option<PathBuf>,
}

/// Returns the sources that are here, the C library's malloc first, and advice about those that are not.
pub fn memories() -> (Vec<Memory>, Vec<String>) {
    let plain = |name, source| Memory { name, source, preload: None };
    let (mut here, mut absent) = (vec![plain("C library", MemorySource::Malloc)], Vec::new());
    for allocator in &ALLOCATORS {
        match allocator.find() {
            preload @ Some(_) => here.push(Memory { preload, ..plain(allocator.name, MemorySource::Malloc) }),
            None => absent.push(allocator.advice()),
        }
    }
    here.extend([
        plain("reuse", MemorySource::Reuse),
        plain("pool", MemorySource::Pool),
        plain("prealloc", MemorySource::Prealloc),
    ]);
    (here, absent)
}

/// A job, as arguments.
#[derive(Clone, Debug)]
pub enum Task {
    /// The puzzle with so many rows and columns, to a depth.
    Search { side: usize, depth: usize },
    /// The words of a file.
    Words(PathBuf),
}

/// A way to run a job.
#[derive(Clone, Debug)]
pub struct Variation<'m> {
    pub exchange: Way,
    pub memory: &'m Memory,
    pub workers: u64,
}

/// The costs of a run.
#[derive(Clone, Debug)]
pub struct MeasuredRun {
    /// All steps, without the start of workers and without memory that was touched before.
    pub steps_ms: f64,
    /// The program, from its start to its exit.
    pub whole_ms: f64,
    /// Page faults of all workers in all steps.
    pub faults: f64,
    /// Processor time of all workers in all steps, in the kernel and in user mode.
    pub system_ms: f64,
    pub user_ms: f64,
    /// Page faults and kernel time of the whole program.
    pub whole_faults: f64,
    pub whole_system_ms: f64,
    /// The bytes of tables that are there after the last step, and those on another node than their worker.
    pub placed: Option<[u64; 2]>,
    /// The words of the largest buffer, table and list.
    room: String,
    /// The result of the job: the keys after each step, and the sum of all values.
    found: (Vec<u64>, u64),
}

impl Task {
    fn arguments(&self) -> Vec<OsString> {
        match self {
            Task::Search { side, depth } => {
                ["--side".into(), side.to_string().into(), "--depth".into(), depth.to_string().into()].into()
            }
            Task::Words(path) => vec!["--words".into(), path.into()],
        }
    }

    /// Runs it once.
    fn run(&self, plan: &Variation<'_>, room: &str) -> Result<MeasuredRun, Failure> {
        let failed = |what| move |source| Failure::from(Error::System { what, source });
        let program = std::env::current_exe().map_err(failed("asking for the path of this program"))?;
        let mut command = Command::new(program);
        command.args(["mr-search-job", "--exchange", &name(plan.exchange), "--memory", &name(plan.memory.source)]);
        command.args(["--workers", &plan.workers.to_string()]).args(self.arguments());
        if !room.is_empty() {
            command.args(["--room", room]);
        }
        if let Some(library) = &plan.memory.preload {
            command.env("LD_PRELOAD", library);
        }
        let (before, began) = (Usage::of_children(), Instant::now());
        let output = command.stdin(Stdio::null()).output().map_err(failed("starting this program again"))?;
        let (whole, used) = (began.elapsed(), Usage::of_children() - before);
        let said = String::from_utf8_lossy(&output.stderr);
        let wrong = || {
            let why = said.lines().next().unwrap_or("it said nothing");
            let Variation { exchange, memory, workers } = plan;
            let text = format!("{}, {} workers, {}: {why}", name(*exchange), workers, memory.name);
            failed("running a job of mr-search")(io::Error::other(text))
        };
        let object: Value = serde_json::from_slice(&output.stdout).map_err(|_| wrong())?;
        let run = MeasuredRun::of(&object).filter(|_| output.status.success()).ok_or_else(wrong)?;
        let known: Option<&[u64]> = match self {
            Task::Search { side: 3, .. } => Some(&STATES_OF_8),
            Task::Search { side: 4, .. } => Some(&STATES_OF_15),
            _ => None,
        };
        if known.is_some_and(|known| !known.starts_with(&run.found.0)) {
            let text = format!("{} does not count the known states: {:?}", name(plan.exchange), run.found.0);
            return Err(failed("checking a search")(io::Error::other(text)));
        }
        Ok(MeasuredRun {
            whole_ms: whole.as_secs_f64() * 1e3,
            whole_faults: used.minor_faults as f64,
            whole_system_ms: used.sys_us as f64 / 1e3,
            ..run
        })
    }

    /// Runs it in each way, in turn. All must find the same.
    ///
    /// Memory that is to be there before is as large as that which a run before has needed.
    pub fn measure(&self, plans: &[Variation<'_>], rounds: u32) -> Result<Turns<MeasuredRun>, Failure> {
        let mut rooms: Vec<(u64, String)> = Vec::new();
        let mut found = None;
        let trial = Memory { name: "a trial", source: MemorySource::Reuse, preload: None };
        for plan in plans {
            if plan.memory.source == MemorySource::Prealloc && rooms.iter().all(|(workers, _)| *workers != plan.workers)
            {
                let trial = Variation { exchange: Way::Threads, memory: &trial, ..*plan };
                rooms.push((plan.workers, self.run(&trial, "")?.room));
            }
        }
        let room = |workers| rooms.iter().find(|(number, _)| *number == workers).map_or("", |(_, room)| room);
        Turns::take(plans.len(), rounds, |way| {
            let run = self.run(&plans[way], room(plans[way].workers))?;
            match &found {
                None => found = Some(run.found.clone()),
                Some(found) if *found == run.found => {}
                Some(_) => {
                    let source = io::Error::other(format!("{} finds something else", name(plans[way].exchange)));
                    return Err(Error::System { what: "comparing runs", source }.into());
                }
            }
            Ok(run)
        })
    }
}

impl MeasuredRun {
    /// Reads what `mr-search-job` prints; what is measured from outside is zero.
    fn of(object: &Value) -> Option<MeasuredRun> {
        let number = |name: &str| object[name].as_f64();
        let bytes = |name: &str| object[name].as_u64();
        let words: Vec<u64> = object["room"].as_array()?.iter().map(Value::as_u64).collect::<Option<_>>()?;
        let keys = object["keys"].as_array()?.iter().map(Value::as_u64).collect::<Option<_>>()?;
        Some(MeasuredRun {
            steps_ms: number("steps_ms")?,
            whole_ms: 0.0,
            faults: number("faults")?,
            system_ms: number("system_ms")?,
            user_ms: number("user_ms")?,
            whole_faults: 0.0,
            whole_system_ms: 0.0,
            placed: bytes("placed_bytes").zip(bytes("remote_bytes")).map(|(placed, remote)| [placed, remote]),
            room: words.iter().map(u64::to_string).collect::<Vec<_>>().join(","),
            found: (keys, object["sum"].as_u64()?),
        })
    }
}

/// Returns the numbers of workers to try: 1, 2, 4 ... up to twice the processors, and the number of processors itself.
pub fn workers(processors: u64) -> Vec<u64> {
    let doubled = std::iter::successors(Some(1), |workers| Some(workers * 2));
    let mut all: Vec<u64> = doubled.take_while(|workers| *workers <= 2 * processors.max(2)).collect();
    all.push(processors);
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_double_up_to_twice_the_processors() {
        assert_eq!(workers(1), [1, 2, 4]);
        assert_eq!(workers(2), [1, 2, 4]);
        assert_eq!(workers(6), [1, 2, 4, 6, 8]);
    }
}
