//! Runs under changed circumstances, and what they show of a loss.
//!
//! 1. A change has one or two effects, each a share of the loss: that which vanishes under the change, or that which
//!    one worker shows beside a program that does nothing but read memory.
//! 2. A share of half or more is an effect; a quarter or less is none; what lies between decides nothing.
//! 3. A suspect (`suspect.rs`) that predicted otherwise is ruled out.
//! 4. Where equal runs lie apart by more than half of what there is to explain, they show nothing.
//! 5. Processors that are slower while others work slow down any computation. If a computation is not slowed down
//!    beside another, they are ruled out; and if the workers are nevertheless, that is chance, and their runs beside
//!    other processes do not count.

use std::fmt;

use crate::diagnose::change::Change;
use crate::diagnose::suspect::{Prediction, Suspect};

/// The cost of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// The time from start to end.
    pub seconds: f64,
    /// The processor time, in the program and in the kernel.
    pub processor: f64,
    /// The number of page faults.
    pub faults: u64,
}

/// The costs under a change, for the fewest and the most workers to which it applies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangeTrial {
    /// The change.
    pub change: Change,
    /// The cost with the fewest workers.
    pub few: Option<Cost>,
    /// The cost with the most workers.
    pub many: Option<Cost>,
}

/// How far the middle half of equal runs lies apart, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// The processor time with the fewest workers.
    pub processor: f64,
    /// The times from start to end, each as often as there are workers, with the fewest and with the most together.
    pub thread_seconds: f64,
}

/// The experiments on a loss.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiments {
    /// The fewest workers and the most workers.
    pub workers: [u64; 2],
    /// The number of processors that count as half of them.
    pub half: u64,
    /// The costs of both without any change.
    pub plain: [Cost; 2],
    /// How far the middle half of equal runs lies apart, in seconds.
    pub spread: Spread,
    /// How much longer a computation takes beside another: 0.02 is two percent. `None` if that was not measured.
    pub computing_growth: Option<f64>,
    /// The experiments that were made.
    pub trials: Vec<ChangeTrial>,
}

/// The effect of a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// The change.
    pub change: Change,
    /// The share of the loss that the change takes away or, beside other processes, brings about. May lie outside of 0
    /// to 1.
    pub share: f64,
}

impl Effect {
    /// Returns whether there is an effect; `None` if that cannot be decided.
    pub fn is_there(&self) -> Option<bool> {
        match self.share {
            share if share >= EFFECT_MIN => Some(true),
            share if share <= NONE_MAX => Some(false),
            _ => None,
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = (self.share * 100.0).clamp(0.0, 200.0);
        match self.change {
            Change::HalfProcessors => write!(f, "removes {share:.0} % of the additional processor time"),
            Change::BesideComputing | Change::BesideReading => {
                write!(f, "brings about {share:.0} % of the additional processor time")
            }
            _ => write!(f, "removes {share:.0} % of the loss"),
        }
    }
}

/// The smallest share of the loss that is an effect.
const EFFECT_MIN: f64 = 0.5;
/// The largest share of the loss that is none.
const NONE_MAX: f64 = 0.25;
/// The smallest growth of the processor time to examine, as a share of that of the fewest workers.
const GROWTH_MIN: f64 = 0.08;
/// The largest spread of equal runs, as a share of the growth or of the loss to examine.
const SPREAD_MAX: f64 = 0.5;
/// The processors beyond those of a program that show that it runs on others, too.
const BUSY_MIN: f64 = 0.1;
/// The growth of the processor time beside a computing process that is noise, as a share.
const NOISE_MAX: f64 = 0.05;
/// The share of the page faults that huge pages leave at most where they are used.
const FAULTS_LEFT_MAX: f64 = 0.5;

impl Experiments {
    /// Returns the effect of each change that has one which can be told from noise.
    pub fn effects(&self) -> Vec<Effect> {
        self.trials
            .iter()
            .filter_map(|trial| Some(Effect { change: trial.change, share: self.share(trial)? }))
            .collect()
    }

    fn share(&self, trial: &ChangeTrial) -> Option<f64> {
        let [few, many] = self.plain;
        let growth = many.processor - few.processor;
        let grew = growth >= GROWTH_MIN * few.processor && growth > 0.0 && self.spread.processor <= SPREAD_MAX * growth;
        match trial.change {
            Change::HalfProcessors => {
                let half = trial.many?;
                // A program may choose its processors itself.
                let held = half.processor <= (self.half as f64 + BUSY_MIN) * half.seconds;
                (grew && held).then_some((many.processor - half.processor) / growth)
            }
            Change::BesideComputing | Change::BesideReading if self.is_by_chance() => None,
            Change::BesideComputing => grew.then_some((trial.few?.processor - few.processor) / growth),
            Change::BesideReading => {
                // Memory that is read also keeps a processor busy, which may slow down the others by itself.
                let base = self.beside_computing().unwrap_or(few);
                grew.then_some((trial.few?.processor - base.processor) / growth)
            }
            // Memory that does not come from the allocator keeps its pages.
            Change::HugePages if trial.many?.faults as f64 > FAULTS_LEFT_MAX * many.faults as f64 => None,
            Change::HugePages | Change::SmallPages | Change::OtherAllocator => {
                let loss = self.loss(few, many);
                (loss > 0.0 && !self.is_noise(loss)).then_some(1.0 - self.loss(trial.few?, trial.many?) / loss)
            }
            Change::Threads | Change::PreparedPages | Change::InputInMemory => {
                // Whatever makes all runs shorter by the same factor is no cause of the loss.
                let relative = |few: Cost, many| self.loss(few, many) / (self.workers[0] as f64 * few.seconds);
                let loss = relative(few, many);
                (loss > 0.0 && !self.is_noise(self.loss(few, many)))
                    .then_some(1.0 - relative(trial.few?, trial.many?) / loss)
            }
        }
    }

    fn beside_computing(&self) -> Option<Cost> {
        self.trials.iter().find(|trial| trial.change == Change::BesideComputing)?.few
    }

    /// Returns whether a computing process slows down the workers much more than a computation.
    fn is_by_chance(&self) -> bool {
        let (Some(beside), Some(computing)) = (self.beside_computing(), self.computing_growth) else { return false };
        beside.processor / self.plain[0].processor - 1.0 > 2.0 * computing + NOISE_MAX
    }

    /// Returns whether computations are slowed down so little by others that shared cores cannot be the loss.
    fn cores_are_apart(&self) -> bool {
        let [few, many] = self.plain;
        let grew = many.processor / few.processor - 1.0;
        grew >= GROWTH_MIN && self.computing_growth.is_some_and(|computing| computing <= NONE_MAX * grew)
    }

    /// Returns whether equal runs lie too far apart to tell what a change does to this loss.
    fn is_noise(&self, loss: f64) -> bool {
        self.spread.thread_seconds > SPREAD_MAX * loss
    }

    /// Returns the thread-seconds lost, those that a change takes off one worker, too.
    fn loss(&self, few: Cost, many: Cost) -> f64 {
        let [few_workers, many_workers] = self.workers.map(|workers| workers as f64);
        many_workers * many.seconds - few_workers * few.seconds
    }

    /// Examines the suspects.
    pub fn examine(&self, suspects: &[Suspect]) -> Findings {
        let effects = self.effects();
        let refuter = |suspect: Suspect| {
            let contradicts = |effect: &&Effect| match (suspect.predicts(effect.change), effect.is_there()) {
                // Whether the program took the other allocator is unknown.
                (Prediction::Effect, Some(false)) => effect.change != Change::OtherAllocator,
                (Prediction::NoEffect, Some(true)) => true,
                _ => false,
            };
            let apart = suspect == Suspect::SharedCores && self.cores_are_apart();
            effects.iter().find(contradicts).map(|effect| effect.change).or(apart.then_some(Change::BesideComputing))
        };
        let suspects: Vec<(Suspect, Option<Change>)> =
            suspects.iter().map(|suspect| (*suspect, refuter(*suspect))).collect();
        let left: Vec<Suspect> =
            suspects.iter().filter(|(_, refuted)| refuted.is_none()).map(|(suspect, _)| *suspect).collect();
        // An effect that only one of those that are left predicted.
        let foretold = |effect: &Effect| {
            let is_case_of_another = |suspect: &Suspect| suspect.general().is_some_and(|other| left.contains(&other));
            let predicts = |suspect: &&Suspect| suspect.predicts(effect.change) == Prediction::Effect;
            let mut all = left.iter().filter(predicts).filter(|suspect| !is_case_of_another(suspect));
            let (first, second) = (all.next(), all.next());
            first.copied().filter(|_| effect.is_there() == Some(true) && second.is_none())
        };
        // Half the processors come last: other changes show more of how the workers disturb each other.
        let (half, others): (Vec<&Effect>, Vec<&Effect>) =
            effects.iter().partition(|effect| effect.change == Change::HalfProcessors);
        let finding = match others.into_iter().chain(half).find_map(foretold) {
            Some(suspect) => Finding::Measured(suspect),
            None if left.len() < suspects.len() && (1..=2).contains(&left.len()) => Finding::Left(left),
            None => Finding::Open,
        };
        let has_effect = |change: Change| effects.iter().any(|effect| effect.change == change);
        let vain = self.trials.iter().map(|trial| trial.change).filter(|change| !has_effect(*change)).collect();
        Findings { workers: self.workers[1], effects, vain, suspects, finding }
    }
}

/// The findings of experiments.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// The most workers, whose loss it is.
    pub workers: u64,
    /// The effect of each change.
    pub effects: Vec<Effect>,
    /// The changes whose effect cannot be told from noise, or that the program did not follow.
    pub vain: Vec<Change>,
    /// The suspects, each with the change that rules it out.
    pub suspects: Vec<(Suspect, Option<Change>)>,
    /// The conclusion.
    pub finding: Finding,
}

/// The result of experiments.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// An experiment showed what only this suspect predicts.
    Measured(Suspect),
    /// The others are ruled out.
    Left(Vec<Suspect>),
    /// Too many suspects are left, or none.
    Open,
}

impl Finding {
    /// Returns what stops the workers; `None` if that is open.
    pub fn meaning(&self) -> Option<String> {
        match self {
            Finding::Measured(suspect) => Some(format!("{suspect} (measured by experiments)")),
            Finding::Left(left) => {
                let left: Vec<String> = left.iter().map(Suspect::to_string).collect();
                Some(format!("{} (what experiments have not ruled out)", left.join(", or ")))
            }
            Finding::Open => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOWER: [Suspect; 5] =
        [Suspect::Memory, Suspect::SharedLines, Suspect::SharedCores, Suspect::Spinning, Suspect::MoreWork];

    fn cost(seconds: f64, processor: f64) -> Cost {
        Cost { seconds, processor, faults: 100 }
    }

    /// One and two workers, two workers on one processor, and one beside a process that computes or reads.
    fn experiments(plain: [Cost; 2], half: Cost, beside: [Cost; 2]) -> Experiments {
        let trial = |change, few| ChangeTrial { change, few: Some(few), many: None };
        let trials = vec![
            ChangeTrial { change: Change::HalfProcessors, few: None, many: Some(half) },
            trial(Change::BesideComputing, beside[0]),
            trial(Change::BesideReading, beside[1]),
        ];
        Experiments { workers: [1, 2], half: 1, plain, spread: Spread::default(), computing_growth: None, trials }
    }

    const KERNEL: [Suspect; 4] = [Suspect::Contention, Suspect::FreshMemory, Suspect::Allocator, Suspect::MoreWork];

    /// Recorded of `bench/zoo.sh`'s spin on two processors.
    #[test]
    fn a_worker_that_spins_does_so_on_half_the_processors_too() {
        let spin = experiments(
            [cost(0.969, 0.94), cost(1.392, 1.381)],
            cost(1.523, 1.39),
            [cost(2.245, 0.954), cost(2.712, 0.973)],
        );
        let findings = spin.examine(&SLOWER);
        assert_eq!(refuted(&findings), [Suspect::Memory, Suspect::SharedLines, Suspect::SharedCores]);
        assert_eq!(findings.finding, Finding::Left(vec![Suspect::Spinning, Suspect::MoreWork]));
        let said = findings.finding.meaning().expect("two are left");
        assert!(said.starts_with("spinning for a lock that others hold for long, or work that grows"), "{said}");
    }

    /// `bench/zoo.sh`'s tiny-tasks took 0.6 to 2 s, and was once said to be limited by memory: the shortest runs were
    /// compared.
    #[test]
    fn runs_that_differ_by_more_than_the_growth_show_nothing() {
        let tiny = experiments(
            [cost(0.731, 0.735), cost(0.636, 1.27)],
            cost(0.95, 0.95),
            [cost(0.73, 0.735), cost(1.14, 1.14)],
        );
        assert_eq!(tiny.examine(&SLOWER).finding, Finding::Measured(Suspect::Memory));
        let wide = Experiments { spread: Spread { processor: 0.3, thread_seconds: 1.9 }, ..tiny };
        let findings = wide.examine(&SLOWER);
        assert_eq!((findings.finding, findings.effects.len()), (Finding::Open, 0));
    }

    /// Recorded of its files: all of them are made in one folder, which has a lock. The last run was disturbed, and is
    /// not as recorded.
    #[test]
    fn workers_that_want_one_lock_of_the_kernel_lose_less_if_they_take_turns() {
        let files = experiments(
            [cost(1.204, 0.792), cost(1.414, 0.943)],
            cost(1.18, 0.766),
            [cost(2.668, 0.784), cost(3.445, 0.8)],
        );
        let findings = files.examine(&KERNEL);
        assert_eq!(findings.finding, Finding::Measured(Suspect::Contention));
        assert_eq!(refuted(&findings), [Suspect::MoreWork]);
    }

    /// Recorded of its cache, while other programs used the memory: each effect was between half and a quarter.
    #[test]
    fn effects_between_half_and_a_quarter_decide_nothing() {
        let cache = experiments(
            [cost(0.679, 0.599), cost(0.722, 0.72)],
            cost(0.691, 0.681),
            [cost(1.296, 0.588), cost(1.263, 0.628)],
        );
        let findings = cache.examine(&SLOWER);
        assert_eq!(findings.effects.iter().map(Effect::is_there).collect::<Vec<_>>(), [None, Some(false), None]);
        assert_eq!((refuted(&findings), findings.finding), (vec![Suspect::SharedCores], Finding::Open));
    }

    #[test]
    fn memory_is_told_from_cache_lines_by_a_process_that_reads() {
        let plain = [cost(1.0, 1.0), cost(0.9, 1.8)];
        let examined = |computing_growth, computing, reading| {
            let all = experiments(plain, cost(1.05, 1.02), [cost(1.0, computing), cost(1.0, reading)]);
            Experiments { computing_growth: Some(computing_growth), ..all }.examine(&SLOWER).finding
        };
        assert_eq!(examined(0.0, 1.01, 1.7), Finding::Measured(Suspect::Memory));
        assert_eq!(examined(0.0, 1.01, 1.03), Finding::Measured(Suspect::SharedLines));
        // Any busy processor slows down the other, whether it reads or not.
        assert_eq!(examined(0.6, 1.7, 1.75), Finding::Measured(Suspect::SharedCores));
    }

    /// `bench/zoo.sh`'s bandwidth got slower by chance while another program computed. That was taken for shared
    /// cores, though computations did not slow down each other.
    #[test]
    fn workers_that_are_slower_beside_a_computing_process_by_chance_prove_no_shared_cores() {
        let plain = [cost(1.0, 1.0), cost(0.75, 1.4)];
        let all = experiments(plain, cost(1.1, 1.02), [cost(1.0, 1.25), cost(1.0, 1.3)]);
        let findings = Experiments { computing_growth: Some(0.01), ..all.clone() }.examine(&SLOWER);
        assert_eq!(findings.effects.iter().map(|effect| effect.change).collect::<Vec<_>>(), [Change::HalfProcessors]);
        assert_eq!(findings.finding, Finding::Left(vec![Suspect::Memory, Suspect::SharedLines]));
        // Where computations are slowed down as much, it is no chance.
        let findings = Experiments { computing_growth: Some(0.25), ..all }.examine(&SLOWER);
        assert_eq!(findings.finding, Finding::Measured(Suspect::SharedCores));
    }

    /// Recorded of its faults with `glibc.malloc.hugetlb=1`; the run of two workers is an assumption, as others
    /// disturbed it.
    #[test]
    fn huge_pages_show_that_page_faults_are_the_loss_if_there_are_fewer_of_them() {
        let faults = |count, seconds, processor| Cost { seconds, processor, faults: count };
        let examined = |faults_left| {
            let trial = ChangeTrial {
                change: Change::HugePages,
                few: Some(faults(faults_left, 0.296, 0.194)),
                many: Some(faults(faults_left, 0.247, 0.165)),
            };
            let plain = [faults(393_512, 0.795, 0.784), faults(393_516, 0.722, 1.365)];
            let trials = vec![trial];
            Experiments { workers: [1, 2], half: 1, plain, spread: Spread::default(), computing_growth: None, trials }
                .examine(&KERNEL)
        };
        assert_eq!(examined(1_090).finding, Finding::Measured(Suspect::FreshMemory));
        // The memory is not that of the allocator.
        assert_eq!((examined(393_000).effects, examined(393_000).finding), (Vec::new(), Finding::Open));
        assert_eq!(examined(393_000).vain, [Change::HugePages]);
    }

    /// A program that chooses its processors itself is not held on half of them.
    #[test]
    fn experiments_that_cannot_be_made_rule_nothing_out() {
        let plain = [cost(1.0, 1.0), cost(0.9, 1.8)];
        let all = experiments(plain, cost(0.9, 1.8), [cost(1.0, 1.01), cost(1.0, 1.03)]);
        let findings = all.examine(&SLOWER);
        assert!(findings.effects.iter().all(|effect| effect.change != Change::HalfProcessors));
        assert_eq!(refuted(&findings), [Suspect::Memory, Suspect::SharedCores]);
        // Another allocator that was perhaps never loaded, and a loss without more processor time.
        let same = |change| ChangeTrial { change, few: Some(plain[0]), many: Some(plain[1]) };
        let all = Experiments { trials: vec![same(Change::OtherAllocator)], ..all };
        assert_eq!(refuted(&all.examine(&KERNEL)), []);
        let all =
            Experiments { plain: [cost(1.0, 1.0), cost(0.9, 1.01)], trials: vec![same(Change::HalfProcessors)], ..all };
        assert_eq!(all.effects(), []);
    }

    /// A disk that is too slow for one worker is so for two; a disk that all runs wait for alike is no loss.
    #[test]
    fn only_what_makes_the_workers_more_efficient_is_the_cause_of_their_loss() {
        let examined = |few, many| {
            let trial =
                ChangeTrial { change: Change::InputInMemory, few: Some(cost(few, 1.0)), many: Some(cost(many, 1.0)) };
            let plain = [cost(10.0, 1.0), cost(9.0, 1.0)];
            let all = Experiments {
                workers: [1, 2],
                half: 1,
                plain,
                spread: Spread::default(),
                computing_growth: None,
                trials: vec![trial],
            };
            all.examine(&[Suspect::Reading, Suspect::Processes])
        };
        assert_eq!(examined(1.0, 0.55).finding, Finding::Measured(Suspect::Reading));
        // Everything takes a tenth of the time, and two workers still hardly help.
        assert_eq!(refuted(&examined(1.0, 0.9)), [Suspect::Reading]);
    }

    fn refuted(findings: &Findings) -> Vec<Suspect> {
        findings.suspects.iter().filter(|(_, by)| by.is_some()).map(|(suspect, _)| *suspect).collect()
    }
}
