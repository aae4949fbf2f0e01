//! Everything that a plan is made from.

use gristmill_os::machine::{NumaNode, Processors};

use crate::plan::history::{self, Learned};
use crate::plan::sample::Sample;
use crate::plan::settings::Settings;

/// The share of waiting, in proportion to the work, from which more workers than processors read.
const WAITS_MIN: f64 = 0.25;
/// The approximate cost of a pair after the map function.
const PAIR_NS: f64 = 25.0;

/// The properties of a program that the plan depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Properties {
    /// Whether it has a combiner.
    pub combines: bool,
    /// Whether the result of combining depends on the order of its values.
    pub rounds: bool,
    /// The size of its key domain, if it declares one.
    pub keys: Option<usize>,
    /// The largest domain that its key type allows; 0 if the type is not an unsigned integer.
    pub keys_max: u64,
    /// Whether the job runs in steps.
    pub iterates: bool,
    /// Whether pairs reach the result as map emits them, and the program does not choose their partitions.
    pub passes: bool,
    /// Whether the coordinator could join pairs of one key that several reducers deliver: it gets each reducer's pairs
    /// in the order of their keys, and nothing was done to them but combining.
    pub joins: bool,
    /// The most memory that decoding a file of its input takes.
    pub decoder_bytes_max: usize,
    /// Whether its map function takes memory for what it makes of files.
    pub unpacks: bool,
    /// The size of a hash buffer.
    pub hash_bytes: usize,
    /// The size of one place in a dense buffer.
    pub place_bytes: usize,
}

/// The resources of the machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resources<'m> {
    pub processors: Processors,
    pub nodes: &'m [NumaNode],
    /// Memory that could be used without swapping or being killed.
    pub available_bytes: u64,
}

/// The facts that every choice is a function of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'k> {
    pub settings: &'k Settings,
    pub machine: Resources<'k>,
    pub input_bytes: u64,
    pub program: Properties,
    pub sample: Option<&'k Sample>,
    /// The earlier run that the plan follows.
    pub learned: Option<Learned>,
}

impl<'k> Known<'k> {
    /// Collects the facts, and compares the times of earlier runs.
    pub fn new(
        settings: &'k Settings,
        machine: Resources<'k>,
        input_bytes: u64,
        program: Properties,
        sample: Option<&'k Sample>,
    ) -> Known<'k> {
        let known = Known { settings, machine, input_bytes, program, sample, learned: None };
        // Times that were measured when reading did not wait say nothing about a run in which it does.
        let learned = if known.wait_ns() > 0.0 { None } else { history::learned(settings) };
        Known { learned, ..known }
    }

    /// Estimates the time of the job on one worker, in nanoseconds; 0 without a sample.
    pub fn work_ns(&self) -> f64 {
        self.sample.map_or(0.0, |sample| sample.map_ns(self.input_bytes) + sample.pairs_of(self.input_bytes) * PAIR_NS)
    }

    /// Returns the waiting of the job on one worker in nanoseconds, for what it reads; 0 if it is too little to matter.
    pub fn wait_ns(&self) -> f64 {
        let wait_ns = self.sample.map_or(0.0, |sample| sample.wait_ns_of(self.input_bytes));
        if wait_ns < WAITS_MIN * self.work_ns() { 0.0 } else { wait_ns }
    }

    /// Returns whether values combine in ascending order, so that rounded sums have the same bits.
    pub fn combines_in_order(&self) -> bool {
        self.settings.deterministic && self.program.rounds
    }
}
