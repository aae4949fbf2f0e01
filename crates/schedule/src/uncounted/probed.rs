//! Demands of the phases of programs, on a machine that counts nothing, from readings.
//!
//! A quantum's readings belong to the phases that its programs had in it. Work is measured in microseconds of processor
//! time, and a request is the pressure of one unit of slow-down for a microsecond; the policy only compares demands
//! with each other, so their unit does not matter.
//!
//! What a program loses beside others cannot be measured without a count of instructions. [`avoidable`] estimates how
//! much of it the choice of programs could avoid.

use std::collections::BTreeMap;

use crate::machine::{ProgramId, Reading};
use crate::uncounted::pressure::{Pressing, Pressure, Pressures};

/// The number of quanta after which the demands are computed again, and the share of all quanta. So their cost does not
/// grow with the time.
const QUANTA: u32 = 5;
const QUANTA_SHARE: u32 = 8;

/// The least distance between demands at which they count as different. On a machine at hand, where contention comes
/// and goes, demands of the same program were up to 0.14 apart while there was none; while there was, a demanding
/// program slowed readings down by 0.3 to 0.5.
pub const DEMAND_MIN: f64 = 0.2;

/// A phase of a program: its build, and the place of the phase.
pub type PhaseKey = (String, usize);

/// The readings of this session, by phase and by build.
#[derive(Clone, Debug, Default)]
pub struct Probed {
    phases: Pressed<PhaseKey>,
    builds: Pressed<String>,
    quanta: u32,
    /// The quantum after which the demands are computed next.
    next: u32,
}

/// Readings beside things that press on the memory.
#[derive(Clone, Debug)]
struct Pressed<T> {
    pressures: Pressures,
    sources: BTreeMap<T, Pressing>,
}

impl<T> Default for Pressed<T> {
    fn default() -> Pressed<T> {
        Pressed { pressures: Pressures::default(), sources: BTreeMap::new() }
    }
}

impl<T: Ord> Pressed<T> {
    /// Adds a reading. One during which a program ran that `of` does not know is left out.
    fn add(&mut self, reading: &Reading, of: impl Fn(ProgramId) -> Option<T>) {
        let used = reading.used.iter().filter(|(_, processors)| *processors > 0.0);
        let sources: Option<Vec<(Pressing, f64)>> = used
            .map(|(id, processors)| {
                let next = self.sources.len();
                Some((*self.sources.entry(of(*id)?).or_insert(next), *processors))
            })
            .collect();
        if let Some(sources) = sources {
            self.pressures.add(&sources, reading.took_us);
        }
    }

    fn demands(&self) -> BTreeMap<&T, f64> {
        let demands = self.pressures.demands();
        self.sources.iter().filter_map(|(what, source)| Some((what, *demands.get(source)?))).collect()
    }
}

impl Probed {
    /// Adds a quantum's readings. `phase` returns the phase of a program in this quantum.
    pub fn add(&mut self, readings: &[Reading], phase: impl Fn(ProgramId) -> Option<PhaseKey>) {
        for reading in readings {
            self.phases.add(reading, &phase);
            self.builds.add(reading, |id| phase(id).map(|(build, _)| build));
        }
    }

    /// Returns the demands of builds, each with how sure it is.
    pub fn pressures(&self) -> impl Iterator<Item = (&String, Pressure)> {
        let found = self.builds.pressures.pressures();
        self.builds.sources.iter().filter_map(move |(build, source)| Some((build, *found.get(source)?)))
    }

    /// Returns the demands of builds and those of phases, where readings determine them. `None` in most quanta, because
    /// they are computed from time to time.
    pub fn demands(&mut self) -> Option<(BTreeMap<&String, f64>, BTreeMap<&PhaseKey, f64>)> {
        self.quanta += 1;
        if self.quanta < self.next.max(QUANTA) {
            return None;
        }
        self.next = self.quanta + QUANTA.max(self.quanta / QUANTA_SHARE);
        Some((self.builds.demands(), self.phases.demands()))
    }
}

/// Estimates the share of its speed that each program loses in the system's order, and would keep in even sets.
///
/// A program is slowed down like a reading beside the others, as far as its own demand reaches the largest one: a
/// program that hardly uses the memory hardly waits for it. In the system's order, any other program may be beside it;
/// in an even set, the others demand what it leaves of the target. Programs with the same demand lose the same in any
/// order, so this is 0 for them. It is negative for a program that even sets slow down.
pub fn avoidable(demands: &[f64], processors: usize) -> Vec<f64> {
    let (least, most) =
        demands.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), demand| (least.min(*demand), most.max(*demand)));
    if demands.len() <= processors || processors < 2 || most - least < DEMAND_MIN {
        return vec![0.0; demands.len()];
    }
    let others = (processors - 1) as f64;
    let lost = |slow_down: f64| slow_down / (1.0 + slow_down);
    let beside_any: f64 = demands.iter().map(|demand| lost(others * demand)).sum();
    let target = processors as f64 * demands.iter().sum::<f64>() / demands.len() as f64;
    let kept = |demand: &f64| {
        let usual = (beside_any - lost(others * demand)) / (demands.len() - 1) as f64;
        (demand / most) * (usual - lost((target - demand).max(0.0)))
    };
    demands.iter().map(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::know::blocks::BlockVector;
    use crate::know::phases::{Phase, Similarity};
    use crate::know::store::{KnownProgram, Store};

    #[test]
    fn the_avoidable_loss_is_that_of_the_systems_order_less_that_of_even_sets() {
        // On two processors, a demanding program meets the other one in a third of the time, and never in even sets.
        let losses = avoidable(&[0.5, 0.5, 0.0, 0.0], 2);
        let expected = 0.5 / 1.5 / 3.0;
        assert!((losses[0] - expected).abs() < 1e-9 && losses[2] == 0.0, "{losses:?}");
    }

    #[test]
    fn nothing_is_avoidable_for_equal_programs_or_with_a_processor_for_each() {
        assert_eq!(avoidable(&[1.0; 4], 2), [0.0; 4]);
        assert_eq!(avoidable(&[1.0, 0.0], 2), [0.0; 2]);
        assert_eq!(avoidable(&[1.0, 0.0], 1), [0.0; 2]);
        assert_eq!(avoidable(&[], 2), []);
    }

    #[test]
    fn demands_that_may_be_noise_cost_nobody_anything() {
        assert_eq!(avoidable(&[0.15, 0.15, 0.0, 0.0], 2), [0.0; 4]);
        // All of them seem to press equally while a foreign program does.
        assert_eq!(avoidable(&[0.9, 1.0, 0.8, 0.9], 2), [0.0; 4]);
        assert!(avoidable(&[0.6, 0.6, 0.0, 0.0], 2)[0] > 0.1);
    }

    /// Programs of which this many quanta were seen, each with other code.
    fn programs(builds: &[(&str, usize)]) -> Store {
        let seen = |quanta: usize| {
            let mut program = KnownProgram::default();
            for quantum in 0..quanta {
                let vector = BlockVector::of(&[quantum as u64 * 64]);
                program.phases.recognise(&vector, &Similarity::default());
            }
            program
        };
        let programs = builds.iter().map(|(build, quanta)| ((*build).to_owned(), seen(*quanta)));
        Store { programs: programs.collect(), ..Store::default() }
    }

    fn update(probed: &mut Probed, store: &mut Store) {
        if let Some((builds, phases)) = probed.demands() {
            store.take_demands(&builds, &phases);
        }
    }

    fn demands(store: &Store, build: &str) -> Vec<Option<f64>> {
        let demand = |phase: &Phase| phase.rate.valid.then_some(phase.bandwidth.mean);
        store.programs[build].phases.iter().map(demand).collect()
    }

    fn reading(took_us: f64, ids: &[u32]) -> Reading {
        Reading { took_us, used: ids.iter().map(|id| (ProgramId(*id), 1.0)).collect() }
    }

    #[test]
    fn a_reading_beside_a_program_without_a_phase_is_left_out() {
        let (mut probed, mut programs) = (Probed::default(), programs(&[("a", 1)]));
        let phase = |id: ProgramId| (id.0 == 1).then(|| ("a".to_owned(), 0));
        (0..8).for_each(|_| probed.add(&[reading(10.0, &[]), reading(10.0, &[1]), reading(90.0, &[2])], phase));
        (0..QUANTA).for_each(|_| update(&mut probed, &mut programs));
        assert_eq!(demands(&programs, "a"), [Some(0.0)]);
    }

    /// Programs with dozens of phases, as a compiler is, were never known: few phases meet the same other phase often
    /// enough.
    #[test]
    fn a_phase_that_was_read_too_rarely_has_the_demand_of_its_program() {
        let (mut probed, mut programs) = (Probed::default(), programs(&[("a", 1), ("many", 30)]));
        (0..8).for_each(|_| probed.add(&[reading(10.0, &[])], |_| None));
        for turn in 0..30 {
            let phase = |id: ProgramId| Some(if id.0 == 1 { ("a".to_owned(), 0) } else { ("many".to_owned(), turn) });
            probed.add(&[reading(10.0, &[1]), reading(15.0, &[1, 2])], phase);
        }
        (0..QUANTA).for_each(|_| update(&mut probed, &mut programs));
        assert_eq!(demands(&programs, "many"), [Some(0.5); 30]);
        // The last of them is read often enough now, and more than the others.
        let last = |_| Some(("many".to_owned(), 29));
        (0..8).for_each(|_| probed.add(&[reading(18.0, &[2])], last));
        (0..QUANTA).for_each(|_| update(&mut probed, &mut programs));
        let [before, last] = demands(&programs, "many")[28..] else { panic!("two of thirty") };
        assert!(before == Some(0.5) && last.is_some_and(|demand| (demand - 0.8).abs() < 0.01), "{last:?}");
    }
}
