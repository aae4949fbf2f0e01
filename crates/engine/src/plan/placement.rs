//! Where workers run on a machine with several NUMA nodes. A pure function of the nodes, the settings and the sample.
//!
//! ```text
//!  nodes of the machine -> homes: a node with memory, and the processors next to it -> the home of each worker
//! ```
//!
//! A worker is pinned to the processors of its home. Its tables, its arena and its extents of the shelf then lie there,
//! because the kernel takes memory from the node whose processor touches it first
//! ([68](../../../../docs/decisions/68-memory-lies-where-its-worker-runs.md)).

use gristmill_os::machine::NumaNode;

use crate::data::order::Order;
use crate::plan::known::Known;
use crate::plan::reason::Reason::{self, Asked, Because, Instead};
use crate::plan::sample::Sample;
use crate::plan::settings::Placement;
use crate::plan::workers::Roles;

/// The memory of a node, and the processors that use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    /// The number of the node.
    pub node: usize,
    pub cpus: Vec<usize>,
}

/// Which node each processor belongs to, and the home of each worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    /// Empty if the machine has one node, or workers run where the kernel puts them.
    pub homes: Vec<Home>,
    /// The home of each worker, in the order of slots. Empty without homes.
    pub of_worker: Vec<usize>,
    /// The nodes that have processors, if there are several; what workers read of each is counted.
    pub nodes: Vec<usize>,
    /// For each processor, the index of its node in `nodes`.
    pub node_of_cpu: Vec<u16>,
}

impl Places {
    /// Finds a home for each of these workers; those of a group do the same, and are spread over the nodes together.
    pub fn new(nodes: &[NumaNode], placement: Placement, groups: &[usize]) -> Places {
        let (numbers, node_of_cpu) = node_of_cpu(nodes);
        let mut homes = homes(nodes);
        let workers: usize = groups.iter().sum();
        // One worker has nothing to exchange, and the kernel knows best which processor is free.
        if placement == Placement::Off || homes.len() < 2 || workers < 2 {
            homes.clear();
        }
        let of_worker = groups.iter().flat_map(|workers| spread(&homes, *workers)).collect();
        Places { homes, of_worker, nodes: numbers, node_of_cpu }
    }

    /// Returns the number of shares if each home reduces the pairs of its own workers: one for each home, if all of
    /// them have a reducer. The last `reduce_workers` of `workers` reduce.
    pub fn shares(&self, workers: usize, reduce_workers: usize) -> usize {
        let reduces = |home: usize| self.of_worker[workers - reduce_workers..].contains(&home);
        if !self.homes.is_empty() && (0..self.homes.len()).all(reduces) { self.homes.len() } else { 1 }
    }

    /// Returns the index of the node that a processor belongs to.
    #[inline]
    pub fn node_of(&self, cpu: usize) -> usize {
        self.node_of_cpu.get(cpu).copied().unwrap_or(0).into()
    }
}

/// Chooses the homes of all workers, and the number of shares.
pub(crate) fn place(known: &Known<'_>, roles: Roles) -> (Places, usize, Reason) {
    let Known { settings, program, .. } = *known;
    let groups: &[usize] = match roles.fused {
        true => &[roles.map_workers],
        false => &[roles.map_workers, roles.reduce_workers],
    };
    let places = Places::new(known.machine.nodes, settings.placement, groups);
    let joins = program.joins && settings.order == Order::ByKey && !known.combines_in_order();
    let shares = match joins && reduces_by_node(settings.placement, known.sample) {
        true => places.shares(roles.workers(), roles.reduce_workers),
        false => 1,
    };
    let is_asked = settings.placement != Placement::Auto;
    let why = match settings.placement {
        Placement::Off => Asked,
        _ if places.nodes.len() < 2 => Reason::new("this machine has one node", is_asked),
        _ if roles.workers() < 2 => Reason::new("one worker has nothing to exchange", is_asked),
        _ if places.homes.is_empty() => Reason::new("one node has all the memory", is_asked),
        Placement::ByNode if shares == 1 => {
            Instead("what the nodes would reduce cannot be joined in this job, so workers are pinned only")
        }
        Placement::Pinned | Placement::ByNode => Asked,
        Placement::Auto if shares == 1 => Because("their memory is there, too; pages cross"),
        Placement::Auto => {
            Because("keys repeat, so each of them crosses once from each node instead of with each page")
        }
    };
    (places, shares, why)
}

/// Joins each processor to memory: that of its node, or of the nearest node that has some.
fn homes(nodes: &[NumaNode]) -> Vec<Home> {
    let with_memory = |node: &&NumaNode| node.has_memory;
    let mut homes: Vec<Home> =
        nodes.iter().filter(with_memory).map(|node| Home { node: node.number, cpus: node.cpus.clone() }).collect();
    for node in nodes.iter().filter(|node| !node.has_memory) {
        let distance = |home: &&mut Home| {
            let at = nodes.iter().position(|other| other.number == home.node).expect("it is one of them");
            node.distances.get(at).copied().unwrap_or(u32::MAX)
        };
        if let Some(nearest) = homes.iter_mut().min_by_key(distance) {
            nearest.cpus.extend(&node.cpus);
        }
    }
    homes.retain(|home| !home.cpus.is_empty());
    homes
}

/// Spreads workers over homes in proportion to their processors, and the first ones as evenly as all: a job begins
/// with as many as may map at once.
fn spread(homes: &[Home], workers: usize) -> Vec<usize> {
    let mut placed = vec![0; homes.len()];
    let next = |_| {
        // The home that has the fewest workers for each of its processors, with this one.
        let load = |home: &usize| ((placed[*home] + 1) as f64 / homes[*home].cpus.len() as f64).to_bits();
        let home = (0..homes.len()).min_by_key(load)?;
        placed[home] += 1;
        Some(home)
    };
    (0..workers).filter_map(next).collect()
}

/// Returns the nodes that have processors, and for each processor the index of its node; nothing for a single node.
fn node_of_cpu(nodes: &[NumaNode]) -> (Vec<usize>, Vec<u16>) {
    let nodes: Vec<&NumaNode> = nodes.iter().filter(|node| !node.cpus.is_empty()).collect();
    if nodes.len() < 2 {
        return (Vec::new(), Vec::new());
    }
    let cpus = nodes.iter().flat_map(|node| &node.cpus).max().map_or(0, |cpu| cpu + 1);
    let mut node_of_cpu = vec![0; cpus];
    for (at, node) in nodes.iter().enumerate() {
        node.cpus.iter().for_each(|cpu| node_of_cpu[*cpu] = at as u16);
    }
    (nodes.iter().map(|node| node.number).collect(), node_of_cpu)
}

/// Returns whether each node should reduce the pairs of its own workers, and the coordinator join what comes of them.
/// That pays if pairs combine: each key then crosses once from each node, and not with each page.
///
/// A sample is small. If half of its pairs repeat a key, hardly any pair of the whole input is the first of its key.
fn reduces_by_node(placement: Placement, sample: Option<&Sample>) -> bool {
    match placement {
        Placement::ByNode => true,
        Placement::Auto => sample.is_some_and(|sample| sample.told_apart > 0 && sample.keys * 2 <= sample.told_apart),
        Placement::Pinned | Placement::Off => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: usize, cpus: std::ops::Range<usize>) -> NumaNode {
        NumaNode { number, cpus: cpus.collect(), has_memory: true, distances: Vec::new() }
    }

    /// Returns the number of workers in each home.
    fn counts(places: &Places) -> Vec<usize> {
        (0..places.homes.len()).map(|home| places.of_worker.iter().filter(|of| **of == home).count()).collect()
    }

    fn placed(nodes: &[NumaNode], workers: usize) -> Places {
        Places::new(nodes, Placement::Auto, &[workers])
    }

    #[test]
    fn one_node_places_and_counts_nothing() {
        for nodes in [&[][..], &[node(0, 0..64)]] {
            assert_eq!(placed(nodes, 64), Places::default());
        }
    }

    #[test]
    fn workers_are_spread_over_two_four_and_eight_nodes() {
        for nodes in [2, 4, 8] {
            let nodes: Vec<NumaNode> = (0..nodes).map(|number| node(number, number * 4..number * 4 + 4)).collect();
            for per_node in [1, 4, 32] {
                let places = placed(&nodes, nodes.len() * per_node);
                assert_eq!(counts(&places), vec![per_node; nodes.len()]);
                let first: Vec<usize> = places.of_worker[..nodes.len()].to_vec();
                assert_eq!(first, (0..nodes.len()).collect::<Vec<_>>(), "the first workers are on all nodes");
            }
        }
    }

    #[test]
    fn a_node_has_workers_in_proportion_to_its_processors() {
        let places = placed(&[node(0, 0..6), node(1, 6..8)], 8);
        assert_eq!(counts(&places), [6, 2]);
        // Any number of first workers, too.
        for first in 1..=8 {
            let on_small = places.of_worker[..first].iter().filter(|home| **home == 1).count();
            assert!((first / 4..=first.div_ceil(4)).contains(&on_small), "{on_small} of {first}");
        }
    }

    #[test]
    fn a_node_outside_the_cpuset_has_no_worker() {
        let excluded = NumaNode { cpus: Vec::new(), has_memory: false, ..node(1, 0..0) };
        assert_eq!(placed(&[node(0, 0..4), excluded.clone()], 4), Places::default());
        let places = placed(&[node(0, 0..2), excluded, node(2, 4..6)], 4);
        assert_eq!((counts(&places), places.nodes), (vec![2, 2], vec![0, 2]));
    }

    #[test]
    fn memory_without_processors_is_nobody_s_home() {
        let places = placed(&[node(0, 0..2), node(1, 2..4), node(2, 0..0)], 4);
        assert_eq!((counts(&places), places.nodes), (vec![2, 2], vec![0, 1]));
        assert_eq!(placed(&[node(0, 0..2), node(1, 0..0)], 2), Places::default());
    }

    #[test]
    fn processors_without_memory_use_that_of_the_nearest_node() {
        let bare = NumaNode { has_memory: false, distances: vec![30, 20, 10], ..node(2, 4..6) };
        let places = placed(&[node(0, 0..2), node(1, 2..4), bare.clone()], 6);
        assert_eq!(places.homes[1], Home { node: 1, cpus: vec![2, 3, 4, 5] });
        assert_eq!(counts(&places), [2, 4]);
        // Then all memory is in one place, and nothing can be placed; but what is read of it is counted.
        let places = placed(&[node(0, 0..2), NumaNode { distances: vec![20, 10], ..bare }], 4);
        assert_eq!((places.homes.len(), places.nodes), (0, vec![0, 2]));
    }

    #[test]
    fn mappers_and_reducers_are_spread_each_on_their_own() {
        let nodes = [node(0, 0..2), node(1, 2..4)];
        let places = Places::new(&nodes, Placement::Auto, &[3, 2]);
        assert_eq!(places.of_worker, [0, 1, 0, 0, 1]);
    }

    #[test]
    fn without_placement_nothing_is_pinned_and_everything_is_counted() {
        let places = Places::new(&[node(0, 0..2), node(1, 2..4)], Placement::Off, &[4]);
        assert_eq!((places.of_worker, places.nodes, places.node_of_cpu), (vec![], vec![0, 1], vec![0, 0, 1, 1]));
        assert_eq!(placed(&[node(0, 0..2), node(1, 2..4)], 1).of_worker, [], "one worker has nothing to exchange");
    }

    #[test]
    fn nodes_reduce_on_their_own_if_keys_repeat() {
        let sample = |keys| Some(Sample { told_apart: 1000, keys, ..Sample::default() });
        let auto = |sample: Option<Sample>| reduces_by_node(Placement::Auto, sample.as_ref());
        assert!(auto(sample(400)) && !auto(sample(900)));
        assert!(!auto(None) && !auto(Some(Sample::default())));
        assert!(reduces_by_node(Placement::ByNode, None) && !reduces_by_node(Placement::Pinned, sample(400).as_ref()));
        let both = placed(&[node(0, 0..2), node(1, 2..4)], 4);
        assert_eq!((both.shares(4, 4), both.shares(4, 1), Places::default().shares(4, 4)), (2, 1, 1));
    }
}
