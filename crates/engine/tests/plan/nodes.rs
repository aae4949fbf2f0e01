//! Counts the reads across nodes, under every placement.

use gristmill::options::Placement;
use gristmill::stats::{Count, Counters};
use gristmill::{Input, Job, Records, Summary};
use gristmill_os::machine::cpus_allowed;

use crate::{NUMBERS, chosen};

/// Runs a job on two nodes, of a processor each; returns its plan for pages, and its summary.
fn run(placement: Placement) -> (String, Summary) {
    // Every number occurs 100 times.
    let bytes: Vec<u8> = (0..200_000u64).flat_map(|at| (at * 7919 % 2000).to_le_bytes()).collect();
    let input = Input::bytes("numbers", &bytes).expect("memory");
    let mut plan = Vec::new();
    let job = Job::new(&NUMBERS, input).records(Records::Fixed(8)).workers(2).nodes(&[&[0], &[1]]);
    let job = job.placement(placement).on_plan(|choices| plan.extend_from_slice(choices));
    let (counts, summary) = job.run().expect("the job runs");
    assert!(counts.iter().eq((0..2000).map(|number| (number, 100))), "every number occurs as often with {placement:?}");
    (chosen(&plan, "placement").to_owned(), summary)
}

/// Returns all bytes, and those that one node has read of the other.
fn read(summary: &Summary) -> (u64, u64) {
    let remote = summary.node_reads.iter().filter(|read| read.memory != read.reader);
    (summary.node_reads.iter().map(|read| read.bytes).sum(), remote.map(|read| read.bytes).sum())
}

pub(crate) fn reads_of_nodes() {
    let (pinned, summary) = run(Placement::Pinned);
    assert_eq!(pinned, "pinned to 2 nodes");
    let (all, remote) = read(&summary);
    let counters = Counters::sum(summary.workers.iter().map(|worker| &worker.counters));
    let sent = counters.get(Count::BytesSent) + 32 * counters.get(Count::PagesSent);
    assert_eq!(all, sent, "what was sent was read, by workers and by the coordinator");
    let on_both = [0, 1].iter().all(|cpu| cpus_allowed().expect("known").contains(cpu));
    assert!(remote > all / 4 || !on_both, "a half of what was sent to workers crosses: {remote} of {all}");
    // Each node sends its keys to the coordinator, which is on one of them. Nothing else crosses.
    let (by_node, summary) = run(Placement::ByNode);
    assert_eq!(by_node, "pinned to 2 nodes, each reduces its own pairs");
    let of_result: u64 =
        summary.workers.iter().map(|worker| worker.counters.get(Count::Keys) * (4 + 8 + 8) + 64 * 32).sum();
    let (_, remote) = read(&summary);
    assert!(remote <= of_result, "{remote} bytes cross, and the results of both nodes have {of_result}");
    // Without placement the kernel decides where workers run, and everything is still counted.
    let (off, summary) = run(Placement::Off);
    assert_eq!((&off[..], summary.node_reads.len()), ("wherever the kernel puts them", 4));
}
