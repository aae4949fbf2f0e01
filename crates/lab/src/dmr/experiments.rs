//! The experiments of the page, and the results that several figures share.

use gristmill_cli::Failure;
use gristmill_counters::load::Load;
use gristmill_report::messages::tell;
use gristmill_report::tally::Tally;

use super::engine::{self, EngineRuns};
use super::judge::SHARE_MIN;
use super::model::application::ModelApp;
use super::model::strategy::{BufferKind, ChannelKind, CombineAt, Strategy, Way};
use super::runs::{Group, ModelRuns};
use crate::generate::Size;
use crate::mr_search::allocator::ALLOCATORS;

/// The numbers of workers of the paper.
pub const WORKERS: [usize; 6] = [1, 2, 4, 8, 16, 32];
/// The groups of runs: with the C library's allocator, and with jemalloc.
pub const GLIBC: usize = 0;
pub const JEMALLOC: usize = 1;
/// No allocation takes longer, unless it waits: a bound of what the choice of an allocator can change.
const ALLOCATION_NS: f64 = 100.0;

/// No pair takes longer from the map function to the answer, unless it waits: a bound of what can become of few pairs.
const PAIR_NS: f64 = 300.0;

/// The systems whose curves the paper shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    PhoenixCombined,
    PhoenixPlain,
    DmrHash,
    DmrArray,
    DmrArrayPlain,
}

impl System {
    const ALL: [System; 5] =
        [System::PhoenixCombined, System::PhoenixPlain, System::DmrHash, System::DmrArray, System::DmrArrayPlain];

    pub fn with(self, workers: usize) -> Strategy {
        match self {
            System::PhoenixCombined => Strategy::phoenix(true, workers),
            System::PhoenixPlain => Strategy::phoenix(false, workers),
            System::DmrHash => Strategy::dmr(BufferKind::Hash, CombineAt::BOTH, workers),
            System::DmrArray => Strategy::dmr(BufferKind::Array, CombineAt::REDUCE, workers),
            System::DmrArrayPlain => Strategy::dmr(BufferKind::Array, CombineAt::NOWHERE, workers),
        }
    }
}

/// The map functions alone.
const MAP_ONLY: Strategy = Strategy { way: Way::MapOnly, workers: 1 };

/// The runs of each application.
pub type OfApps = Vec<(ModelApp, ModelRuns)>;

/// The experiments.
pub struct Experiments {
    pub size: Size,
    pub rounds: u32,
    pub processors: usize,
    scaling: Option<OfApps>,
    sampled: Option<OfApps>,
    channels: Option<ModelRuns>,
    engine: Option<Vec<(ModelApp, EngineRuns)>>,
}

impl Experiments {
    pub fn new(size: Size, rounds: u32, processors: usize) -> Experiments {
        Experiments { size, rounds, processors, scaling: None, sampled: None, channels: None, engine: None }
    }

    /// The largest number of workers that each have a processor.
    pub fn own_processors(&self) -> usize {
        WORKERS.into_iter().rev().find(|workers| *workers <= self.processors).unwrap_or(1)
    }

    /// Returns the runs of all systems with all numbers of workers.
    pub fn scaling(&mut self) -> Result<&OfApps, Failure> {
        if self.scaling.is_none() {
            let with = |systems: &[System]| {
                systems.iter().flat_map(|system| WORKERS.map(|workers| system.with(workers))).collect::<Vec<_>>()
            };
            let mut own = with(&System::ALL);
            own.push(MAP_ONLY);
            let other = ALLOCATORS[0].find().map(|library| Group {
                preload: Some(library),
                strategies: with(&[System::PhoenixCombined, System::PhoenixPlain]),
            });
            let groups: Vec<Group> =
                [Some(Group { preload: None, strategies: own }), other].into_iter().flatten().collect();
            self.scaling = Some(self.of_apps("times", &groups, &[])?);
        }
        Ok(self.scaling.as_ref().expect("measured above"))
    }

    /// Returns runs of Phoenix during which the kernel was sampled. Their times do not count.
    pub fn sampled(&mut self) -> Result<&OfApps, Failure> {
        if self.sampled.is_none() {
            let with = |systems: &[System]| {
                systems.iter().flat_map(|system| WORKERS.map(|workers| system.with(workers))).collect()
            };
            let own = Group { preload: None, strategies: with(&[System::PhoenixCombined, System::PhoenixPlain]) };
            let other = ALLOCATORS[0]
                .find()
                .map(|library| Group { preload: Some(library), strategies: with(&[System::PhoenixCombined]) });
            let groups: Vec<Group> = [Some(own), other].into_iter().flatten().collect();
            self.sampled = Some(self.of_apps("what the kernel does", &groups, &["--sample", "--unchecked"])?);
        }
        Ok(self.sampled.as_ref().expect("measured above"))
    }

    fn of_apps(&self, what: &str, groups: &[Group], extra: &[&str]) -> Result<OfApps, Failure> {
        let measured = ModelApp::ALL.map(|app| {
            tell(format_args!("{}: {what}", app.title()));
            Ok((app, ModelRuns::measure(app, self.size, groups, self.rounds, extra)?))
        });
        measured.into_iter().collect()
    }

    /// Returns runs of word count with each channel.
    pub fn channels(&mut self) -> Result<&ModelRuns, Failure> {
        if self.channels.is_none() {
            let kinds = [ChannelKind::Mailbox, ChannelKind::Queue, ChannelKind::Remap];
            let strategies = kinds.into_iter().flat_map(|kind| WORKERS.map(|workers| through(kind, workers))).collect();
            let group = Group { preload: None, strategies };
            tell("word count: channels");
            let measured = ModelRuns::measure(ModelApp::WordCount, self.size, &[group], self.rounds, &[])?;
            self.channels = Some(measured);
        }
        Ok(self.channels.as_ref().expect("measured above"))
    }

    /// Returns the runs of the engine with all numbers of workers.
    pub fn engine(&mut self) -> Result<&[(ModelApp, EngineRuns)], Failure> {
        if self.engine.is_none() {
            let runs = ModelApp::ALL.map(|app| {
                tell(format_args!("{}: the engine", app.title()));
                Ok((app, engine::race(app, self.size, engine::workers(&WORKERS), self.rounds)?))
            });
            self.engine = Some(runs.into_iter().collect::<Result<_, Failure>>()?);
        }
        Ok(self.engine.as_deref().expect("measured above"))
    }

    /// Runs strategies of the model on an application, in turn, with the map functions alone.
    pub fn compare(&self, app: ModelApp, strategies: &[Strategy]) -> Result<ModelRuns, Failure> {
        let strategies = strategies.iter().copied().chain([MAP_ONLY]).collect();
        ModelRuns::measure(app, self.size, &[Group { preload: None, strategies }], self.rounds, &[])
    }
}

/// DMR with an array that is combined in reduce, and a channel of this kind.
pub fn through(channel: ChannelKind, workers: usize) -> Strategy {
    let (buffer, combine) = (BufferKind::Array, CombineAt::REDUCE);
    Strategy { way: Way::Dmr { buffer, combine, channel, isolated: true, barrier: false }, workers }
}

/// Returns the mean load of several measurements, if one of them was disturbed.
pub fn worst<'r>(runs: impl IntoIterator<Item = &'r Option<Load>>) -> Option<Load> {
    runs.into_iter().flatten().filter(|load| load.disturbs()).max_by(|a, b| a.foreign.total_cmp(&b.foreign)).copied()
}

/// Returns the share of the processor time that becomes of pairs at most: it is not that of the map functions, and not
/// more than all pairs can take.
pub fn share_of_pairs(runs: &ModelRuns, strategy: &Strategy) -> Option<f64> {
    let [all, map] = [strategy, &MAP_ONLY].map(|strategy| runs.processor_ms(GLIBC, strategy));
    let pairs_ms = runs.tally(GLIBC, strategy, "emitted")?.median * PAIR_NS / 1e6;
    let all_ms = all?.median.max(1e-9);
    Some((1.0 - map?.median / all_ms).clamp(0.0, pairs_ms / all_ms))
}

/// Returns why nothing is said about what is done with pairs, if that takes less than a hundredth of the time.
pub fn too_few_pairs(runs: &ModelRuns, strategies: &[Strategy]) -> Option<String> {
    let shares = strategies.iter().filter_map(|strategy| share_of_pairs(runs, strategy));
    let most = shares.fold(0.0, f64::max);
    (most < SHARE_MIN).then(|| format!("pairs take {:.2} % of the processor time at most", most * 100.0))
}

/// Returns the most that allocations can take of a run's processor time.
pub fn share_of_allocations(runs: &ModelRuns, group: usize, strategy: &Strategy) -> Option<Tally> {
    runs.tally_of(group, strategy, |value| {
        let calls = value("map_allocations")? + value("reduce_allocations")?;
        Some(calls * ALLOCATION_NS / value("processor_ns")?.max(1.0))
    })
}
