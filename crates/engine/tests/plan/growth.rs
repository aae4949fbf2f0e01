//! Counts the cost of a job as its workers grow in number (docs/limits.md).

use gristmill::stats::Phase;
use gristmill::{Input, Job, Records, Summary};
use gristmill_os::usage::Usage;

use crate::{NUMBERS, numbers};

/// Runs a job with so many workers of which two map at a time, and counts the page faults of all its processes.
fn faults(bytes: &[u8], workers: usize) -> (u64, Summary) {
    let input = Input::bytes("numbers", bytes).expect("memory");
    let before = (Usage::of_process(), Usage::of_children());
    // One task, so that each reducer is sent the same number of pages in each run.
    let job = Job::new(&NUMBERS, input).records(Records::Fixed(8)).split_bytes(bytes.len() as u64);
    let job = job.workers(workers).map_at_once(2);
    let (counts, summary) = job.run().expect("the job runs");
    let faults = (Usage::of_process() - before.0).minor_faults + (Usage::of_children() - before.1).minor_faults;
    assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), bytes.len() as u64 / 8);
    (faults, summary)
}

/// How many workers were started.
fn started(summary: &Summary) -> usize {
    summary.workers.iter().filter(|worker| worker.counters.time_ns(Phase::Start) > 0).count()
}

/// A job of one word took 2 ms with 2 workers and 2,820 ms with 1,024, all of which were started to find that there is
/// nothing for them.
pub(crate) fn idle_workers() {
    let one = 7u64.to_le_bytes();
    faults(&one, 2);
    let (few, many) = (faults(&one, 8), faults(&one, 1000));
    for (_, summary) in [&few, &many] {
        // Two that map, and one that reduces; a kernel under load may start the second of them too late to be asked.
        assert!((1..=3).contains(&started(summary)), "{} workers were started", started(summary));
    }
    assert_eq!(many.1.workers.len(), 1000, "those that were not started are listed all the same");
    // Words of the coordinator for each worker and partition, 32 or fewer of them to a fault.
    assert!(many.0 < few.0 + 1000, "{} page faults with 8 workers, {} with 1,000", few.0, many.0);
}

/// Each worker attached to the rings of every other one: 502 page faults with 2 workers, 4,124 with 32, 48,640 with
/// 128, and 619,439 with 512.
pub(crate) fn busy_workers() {
    let numbers = numbers(1 << 15);
    let count = |workers: usize| {
        let (faults, summary) = faults(&numbers, workers);
        assert_eq!(started(&summary), workers, "all of them have something to reduce");
        faults as f64
    };
    count(2);
    // Each of these plans has two partitions for each worker.
    let [few, some, many] = [32, 64, 128].map(count);
    // What one worker more costs, among few and among many.
    let (among_few, among_many) = ((some - few) / 32.0, (many - some) / 64.0);
    assert!(
        among_many < among_few * 1.3,
        "a worker costs {among_few:.0} page faults among 32 to 64, and {among_many:.0} among 64 to 128"
    );
}
