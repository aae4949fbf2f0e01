//! One worker of a job in steps: map, exchange, reduce, again and again.

use std::cell::Cell;
use std::io;
use std::time::Instant;

use gristmill_os::machine::{cpu_now, cpus_allowed, numa_nodes, pin_to_cpu};
use gristmill_os::memory::nodes_of;
use gristmill_os::usage::Usage;

use super::exchange::{Exchange, partition};
use super::jobs::SteppedJob;
use super::supply::{ROLES, Role, Supply};
use super::table::Table;

/// The counts and costs of a worker.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkerReport {
    /// The keys of its partition after each step, from the start on.
    pub keys: Vec<u64>,
    /// The sum of the values after the last step.
    pub sum: u64,
    /// The time of all steps.
    pub steps_us: u64,
    /// Page faults, and microseconds in user mode and in the kernel, of all steps.
    pub faults: u64,
    pub user_us: u64,
    pub system_us: u64,
    /// The bytes of the table and the list after the last step, and those on other nodes; nothing if the kernel does
    /// not tell.
    pub placed: Option<[u64; 2]>,
    /// For each role, the words of its largest memory.
    pub most: [usize; ROLES],
}

/// Pins the calling worker to a processor, in turn.
pub fn pin(worker: usize) -> io::Result<()> {
    let allowed = cpus_allowed()?;
    pin_to_cpu(allowed[worker % allowed.len()])
}

/// Runs the steps of a job.
pub fn run(
    job: &impl SteppedJob,
    worker: usize,
    workers: usize,
    exchange: &mut impl Exchange,
    supply: &mut Supply<'_>,
) -> io::Result<WorkerReport> {
    let mut list = supply.take(Role::List, 0);
    for pair in job.start().into_iter().filter(|[key, _]| partition(*key, workers) == worker) {
        list.extend_from_slice(&pair);
    }
    let mut report = WorkerReport { keys: vec![list.len() as u64 / 2], ..WorkerReport::default() };
    // A step without pairs: all begin together.
    exchange.end_step(&mut |_| {})?;
    let (began, before) = (Instant::now(), Usage::of_thread());
    for step in 1..=job.steps() {
        let mut table = Table::new(list.len(), supply);
        let failure = Cell::new(None);
        job.map(worker, workers, &list, &mut |key, value| {
            let mut take = |[key, value]: [u64; 2]| table.insert(key, value, |a, b| job.combine(a, b), supply);
            if let Err(error) = exchange.give(partition(key, workers), [key, value], &mut take) {
                failure.set(Some(error));
            }
        });
        if let Some(error) = failure.take() {
            return Err(error);
        }
        supply.give_back(Role::List, list);
        exchange.end_step(&mut |[key, value]| table.insert(key, value, |a, b| job.combine(a, b), supply))?;
        report.keys.push(table.keys() as u64);
        if step == job.steps() {
            let used = Usage::of_thread() - before;
            report.steps_us = began.elapsed().as_micros() as u64;
            (report.faults, report.user_us, report.system_us) = (used.minor_faults, used.user_us, used.sys_us);
            report.placed = placed(table.words());
            report.sum = table.words().as_chunks::<2>().0.iter().map(|[_, value]| value).sum();
        }
        list = table.into_list(supply);
    }
    report.most = supply.most();
    Ok(report)
}

/// Returns the bytes of this memory that are there, and those on another node than the calling worker's.
fn placed(memory: &[u64]) -> Option<[u64; 2]> {
    let nodes = nodes_of(memory).ok()?;
    // Without several nodes, all memory is on the one that there is.
    let own = numa_nodes().ok()?.into_iter().find(|node| node.cpus.contains(&cpu_now()));
    let own = own.map_or(nodes.iter().find_map(|node| *node), |node| Some(node.number as u32));
    let page_bytes = gristmill_os::machine::os_page_bytes() as u64;
    let count =
        |is_counted: &dyn Fn(u32) -> bool| nodes.iter().flatten().filter(|node| is_counted(**node)).count() as u64;
    Some([count(&|_| true) * page_bytes, count(&|node| Some(node) != own) * page_bytes])
}
