//! Options that were asked for and that this job cannot follow, each with the reason. An option that contradicts another one is refused
//! instead, when the plan is made.

use crate::plan::job_plan::Plan;
use crate::plan::settings::{Combining, Placement};

/// Returns the options that `plan` does not follow, and why.
pub(crate) fn ignored(plan: &Plan) -> Vec<(&'static str, String)> {
    let (asked, combining) = (plan.asked, plan.combining);
    let mut ignored = Vec::new();
    if asked.map_at_once.is_some_and(|workers| workers > plan.map_workers) {
        ignored.push(("map-at-once", format!("{} workers map in all", plan.map_workers)));
    }
    if let Some(why) = placement(plan) {
        ignored.push(("placement", why.to_owned()));
    }
    if let Some(bytes) = asked.split_bytes.filter(|bytes| *bytes < plan.split_bytes) {
        let why = format!("splits of {bytes} bytes would be too many tasks, so they have {} bytes", plan.split_bytes);
        ignored.push(("split-bytes", why));
    }
    let at_the_end = "rounded values are combined at the end, in ascending order";
    match asked.combining {
        Combining::Both | Combining::Off => {}
        _ if !plan.known.program.combines => ignored.push(("combine", "this job combines no values".to_owned())),
        _ if combining.in_order => ignored.push(("combine", at_the_end.to_owned())),
        Combining::Map | Combining::Reduce => {}
    }
    match asked.combine_after {
        Some(_) if combining.in_order => ignored.push(("combine-after", at_the_end.to_owned())),
        Some(_) if combining.in_reduce => {
            ignored.push(("combine-after", "values are combined in reduce as they arrive".to_owned()));
        }
        _ => {}
    }
    if let Some(partitions) = asked.partitions.filter(|partitions| *partitions < plan.reduce_workers) {
        let why = format!("{partitions} would be fewer than the {} workers that reduce", plan.reduce_workers);
        ignored.push(("partitions", why));
    }
    ignored
}

/// Returns why workers are not placed as asked.
fn placement(plan: &Plan) -> Option<&'static str> {
    let places = &plan.places;
    match plan.asked.placement {
        Placement::Auto | Placement::Off => None,
        _ if places.nodes.len() < 2 => Some("this machine has one node"),
        _ if plan.workers() < 2 => Some("one worker has nothing to exchange"),
        _ if places.homes.is_empty() => Some("one node has all the memory"),
        Placement::ByNode if plan.shares == 1 => {
            Some("what the nodes would reduce cannot be joined in this job, so workers are pinned only")
        }
        Placement::ByNode | Placement::Pinned => None,
    }
}

#[cfg(test)]
mod tests {
    use gristmill_os::machine::NumaNode;

    use gristmill_os::machine::Processors;

    use super::*;
    use crate::plan::job_plan::{Machine, PROGRAM, Program};
    use crate::plan::settings::{Buffer, Settings};

    const ONE_NODE: [usize; 1] = [0];
    const TWO_NODES: [usize; 2] = [0, 1];

    /// Returns the names of options that a job with these settings ignores.
    fn names(settings: &Settings, program: Program, nodes: &[usize]) -> Vec<&'static str> {
        let node = |number| NumaNode { number, cpus: vec![number], has_memory: true, distances: vec![10; nodes.len()] };
        let nodes: Vec<NumaNode> = nodes.iter().copied().map(node).collect();
        let machine = Machine { processors: Processors::within(2, None), nodes: &nodes, available_bytes: 1 << 34 };
        let plan = Plan::new(settings, machine, 64 << 20, program, None).expect("nothing contradicts itself");
        ignored(&plan).into_iter().map(|(option, _)| option).collect()
    }

    #[test]
    fn nothing_is_ignored_of_what_is_left_open() {
        for nodes in [&ONE_NODE[..], &TWO_NODES] {
            assert_eq!(names(&Settings::default(), PROGRAM, nodes), [""; 0]);
        }
    }

    #[test]
    fn each_option_that_a_job_cannot_follow_is_named() {
        // `--placement pinned` on a machine with one node, and `--combine map` without a combiner, were ignored without a word.
        let placed = |placement| Settings { placement, ..Settings::default() };
        let plain = Program { combines: false, ..PROGRAM };
        let joins = Program { joins: true, ..PROGRAM };
        let none = [""; 0];
        for placement in [Placement::Pinned, Placement::ByNode] {
            assert_eq!(names(&placed(placement), joins, &ONE_NODE), ["placement"]);
            assert_eq!(names(&placed(placement), joins, &TWO_NODES), none);
            let one = Settings { workers: Some(1), ..placed(placement) };
            assert_eq!(names(&one, joins, &TWO_NODES), ["placement"]);
        }
        assert_eq!(names(&placed(Placement::ByNode), PROGRAM, &TWO_NODES), ["placement"]);
        assert_eq!(names(&placed(Placement::Off), PROGRAM, &ONE_NODE), none);
        for combine in [Combining::Map, Combining::Reduce] {
            let settings = Settings { combine, ..Settings::default() };
            assert_eq!(names(&settings, plain, &ONE_NODE), ["combine"]);
            assert_eq!(names(&settings, PROGRAM, &ONE_NODE), none);
            let in_order = Settings { deterministic: true, ..settings };
            assert_eq!(names(&in_order, Program { rounds: true, ..PROGRAM }, &ONE_NODE), ["combine"]);
        }
        let off = Settings { combine: Combining::Off, ..Settings::default() };
        assert_eq!(names(&off, plain, &ONE_NODE), none, "nothing is combined, as was asked");
        let after = Settings { combine_after: Some(9), ..Settings::default() };
        assert_eq!(names(&after, PROGRAM, &ONE_NODE), ["combine-after"]);
        assert_eq!(names(&Settings { combine: Combining::Map, ..after }, PROGRAM, &ONE_NODE), none);
        let at_once =
            |map_at_once| Settings { workers: Some(4), map_at_once: Some(map_at_once), ..Settings::default() };
        assert_eq!(names(&at_once(4), PROGRAM, &ONE_NODE), none);
        assert_eq!(names(&at_once(5), PROGRAM, &ONE_NODE), ["map-at-once"]);
        let parts = |partitions| Settings { workers: Some(4), partitions: Some(partitions), ..Settings::default() };
        assert_eq!(names(&parts(4), PROGRAM, &ONE_NODE), none);
        assert_eq!(names(&parts(3), PROGRAM, &ONE_NODE), ["partitions"]);
        let split = |bytes| Settings { split_bytes: Some(bytes), ..Settings::default() };
        assert_eq!(names(&split(1024), PROGRAM, &ONE_NODE), none);
        assert_eq!(names(&split(1023), PROGRAM, &ONE_NODE), ["split-bytes"]);
    }

    #[test]
    fn an_array_that_is_to_combine_in_map_is_refused() {
        // `--buffer array --combine map` was accepted, and combined nowhere before the end.
        let settings = Settings { buffer: Buffer::Array, combine: Combining::Map, ..Settings::default() };
        let machine = Machine { processors: Processors::within(2, None), nodes: &[], available_bytes: 1 << 34 };
        let why =
            Plan::new(&settings, machine, 1 << 20, PROGRAM, None).expect_err("they contradict each other").to_string();
        assert!(
            why.starts_with("the array buffer combines nothing, and values were to be combined in map only"),
            "{why}"
        );
        Plan::new(&Settings { combine: Combining::Off, ..settings }, machine, 1 << 20, PROGRAM, None)
            .expect("nothing combines");
    }
}
